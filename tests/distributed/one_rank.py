"""One rank of a training, as torchrun starts it, on pipelines that were saved: python one_rank.py FOLDER.

For each pipeline in the folder it makes five steps of gradient descent, and saves the gradients of the first, the
weights after all, and the losses.
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

from spacy_sbert.distributed.torch_distributed import _parameters_of, launched
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


def run(nlp, name, ranks):
    """RETURNS (dict): arrays by name."""
    optimizer, losses, found = SGD(0.02), [], {}
    models = [pipe.model for _, pipe in nlp.pipeline]
    with _together(nlp, ranks) as joint:
        for batch in batches(nlp, name):
            losses.append(joint.update(batch, sgd=False)["sbert"])
            if not found:
                gradients = enumerate(gradient for _, gradient, _ in _parameters_of(models))
                found = {f"gradient {i}": d.numpy().copy() for i, d in gradients if d is not None}
            for _, pipe in nlp.pipeline:
                pipe.finish_update(optimizer)
    found |= {f"weights {i}": weights.numpy().copy() for i, (weights, *_) in enumerate(_parameters_of(models))}
    return {**found, "losses": numpy.array(losses)}


def main(folder):
    with launched(-1) as ranks:
        assert ranks.size == int(os.environ["WORLD_SIZE"])
        joined = weakref.ref(distributed.group.WORLD)
        for path in sorted(Path(folder).iterdir()):
            if (path / "config.cfg").exists():
                nlp = spacy.load(path)
                name = nlp.config["components"]["sbert"]["loss"] and path.name.split(", ")[1]
                numpy.savez(path / f"rank{ranks.rank}.npz", **run(nlp, name, ranks))
    assert joined() is None  # else its threads go on while Python ends


if __name__ == "__main__":
    main(*sys.argv[1:])
