"""One rank of a training, as torchrun starts it, on pipelines that were saved: python one_rank.py FOLDER [--alone].

For each pipeline in the folder it makes five steps of gradient descent, and saves the gradients of the first, the
weights after all, and the losses. --alone: each rank computes the loss of its part of the batch.
"""

import os
import sys
import weakref
from pathlib import Path

import numpy
import spacy

sys.path.insert(0, str(Path(__file__).parent.parent))
from objectives import OBJECTIVES, make_examples, several
from thinc.api import SGD
from torch import distributed

from spacy_sbert.distributed.torch_distributed import _parameters_of, _TorchParameter, launched
from spacy_sbert.distributed.train_loop import _together

SIZES = (6, 6, 6, 6, 5)  # the last is uneven


def batches(nlp, name):
    """Examples of five steps, no two of which see the same."""
    if name == "MultiTaskLoss":
        examples = several(nlp)
        return [examples[i:] + examples[:i] for i in range(5)]
    n_members, gold, _ = OBJECTIVES[name]
    examples = make_examples(nlp, n_members, sum(SIZES) + len(SIZES), **gold)
    starts = [sum(SIZES[:i]) + i for i in range(len(SIZES))]  # by one more, so that texts and gold values move
    return [examples[start : start + size] for start, size in zip(starts, SIZES, strict=True)]


def all_parameters(nlp):
    return list(_parameters_of(pipe.model for _, pipe in nlp.pipeline))


def run(nlp, name, ranks, alone=False):
    """RETURNS (dict): arrays by name."""
    optimizer, losses, found = SGD(0.02), [], {}
    with _together(nlp, ranks) as joint:
        if alone:
            nlp.get_pipe("sbert").peers = None
        for batch in batches(nlp, name):
            losses.append(joint.update(batch, sgd=False)["sbert"])
            if not found:
                found = {
                    f"gradient {i}": one.gradient.numpy().copy()
                    for i, one in enumerate(all_parameters(nlp))
                    if one.gradient is not None
                }
            for _, pipe in nlp.pipeline:
                pipe.finish_update(optimizer)
    found |= {f"weights {i}": one.weights.numpy().copy() for i, one in enumerate(all_parameters(nlp))}
    assert any(isinstance(one, _TorchParameter) or one.weights.numel() for one in all_parameters(nlp))
    return {**found, "losses": numpy.array(losses)}


def main(folder, *options):
    with launched(-1) as ranks:
        assert ranks.size == int(os.environ["WORLD_SIZE"])
        joined = weakref.ref(distributed.group.WORLD)
        for path in sorted(Path(folder).iterdir()):
            if (path / "config.cfg").exists():
                nlp = spacy.load(path)
                name = nlp.config["components"]["sbert"]["loss"] and path.name.split(", ")[1]
                numpy.savez(path / f"rank{ranks.rank}.npz", **run(nlp, name, ranks, alone="--alone" in options))
    assert joined() is None  # else its threads go on while Python ends


if __name__ == "__main__":
    main(*sys.argv[1:])
