"""Train one objective with spacy-sbert, in spaCy's own training loop, and save what it reaches.

Usage: python ours.py TASK SEED
A result that is there already is kept. The data, the steps and the measures are those of peer.py:
see tasks.py.
"""

import os
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy
import spacy
import srsly
from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config
from tasks import LABELS, RESULTS, TASKS, measure, run_once, training_rows

from spacy_sbert.pipeline.scorer import probabilities_of

ROOT = Path(__file__).parent.parent.parent
CONFIGS = {"regression": "sts", "triplet": "triplet", "ranking": "ranking"}


def main() -> None:
    task, seed = sys.argv[1], int(sys.argv[2])
    run_once(RESULTS, f"{task}-spacy-sbert-{seed}", lambda: run(task, seed))


def run(task: str, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        nlp = fit(task, seed, Path(folder))
        seconds = time.time() - start
    pipe = nlp.get_pipe("sbert")
    pipe.token_vectors = False
    heads = pipe.model.heads

    def encode(texts: list[str]) -> numpy.ndarray:
        return numpy.stack([doc.vector for doc in nlp.pipe(texts)])

    def classify(u: numpy.ndarray, v: numpy.ndarray) -> list[str]:
        head = heads[""]
        return [head.attrs["labels"][i] for i in probabilities_of(head, u, v).argmax(axis=1)]

    found = measure(task, encode, classify)
    versions = {
        name: version(name) for name in ("spacy-sbert", "spacy", "thinc", "transformers", "torch")
    }
    print({key: value for key, value in found.items() if key != "right"}, round(seconds))
    return {**found, "seconds": round(seconds), "versions": versions}


def fit(task: str, seed: int, folder: Path) -> Language:
    settings = TASKS[task]
    rows = training_rows(task)
    n_members = 3 if task == "triplet" else 2
    members = [f"text{i}" for i in range(n_members)]
    gold = {"regression": "score"}.get(task, "label" if task.startswith("classification") else None)
    columns = [*members, *([gold] if gold else [])]
    srsly.write_jsonl(
        folder / "train.jsonl", [dict(zip(columns, row, strict=True)) for row in rows]
    )
    reader = {"path": str(folder / "train.jsonl"), "format": "table", "members": members}
    reader.update({gold: gold} if gold else {})
    overrides = {
        "system.seed": seed,
        "components.sbert.model.normalize": settings.normalize,
        "training.logger.progress_bar": False,
        "training.batcher.size": settings.batch_size,
        "training.optimizer.learn_rate.initial_rate": settings.learning_rate,
        "training.optimizer.learn_rate.warmup": settings.warmup,
        "training.max_epochs": 1,
        # What counts is measured afterwards
        "training.eval_frequency": 1_000_000,
        **{
            f"corpora.{corpus}.{key}": value
            for corpus in ("train", "dev")
            for key, value in reader.items()
        },
        "corpora.dev.limit": 32,
    }
    if task == "classification_equal_head":
        overrides["components.sbert.loss.learn_rate_factor"] = 1.0
    config = load_config(
        ROOT / "configs" / f"{CONFIGS.get(task, 'nli')}.cfg", overrides=overrides, interpolate=False
    )
    nlp = init_nlp(config)
    if task.startswith("classification"):
        share_head(nlp, seed)
    (folder / "training").mkdir()
    train(nlp, folder / "training")
    return spacy.load(folder / "training" / "model-last")


def share_head(nlp: Language, seed: int) -> None:
    """Begin with the very classification head that the other side begins with."""
    from peer import build

    classifier = build("classification", seed)[1].classifier
    head = nlp.get_pipe("sbert").model.get_ref("loss")
    assert head.attrs["labels"] == LABELS
    head.set_param("W", classifier.weight.detach().numpy().copy())
    head.set_param("b", classifier.bias.detach().numpy().copy())


if __name__ == "__main__":
    main()
