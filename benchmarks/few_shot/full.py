"""Accuracy of classes from whole training sets: the encoder trained with them, or as it is.

It trains configs/textcat.cfg, spaCy's own `textcat` on sentence vectors with the transformer, and
fits logistic regression on the vectors of the default encoder, as scikit-learn and `sbert_textcat`
do by themselves.

python benchmarks/few_shot/full.py DATA --sets CR,MR,SST-2,TREC --output full.json

DATA holds the folders of SentEval in senteval/. TREC and SST-2 are tested on their test sets, of CR
and MR a fifth of the texts is held out.
"""

import argparse
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy
import spacy
from draws import Rows, read_rows, write_table
from run import encoded, measure, save_report
from spacy.cli.train import train

CONFIG = Path(__file__).parents[2] / "configs" / "textcat.cfg"
# Of SST-2, whose phrases are many
EPOCHS = {"SST-2": 1}
OTHER_EPOCHS = 3


def split(learn: Rows, test: Rows, seed: int) -> tuple[Rows, Rows]:
    """Return the rows to learn from and to test on; without a test set a fifth is held out."""
    if test:
        return learn, test
    shuffled = random.Random(seed).sample(learn, len(learn))
    n_test = len(shuffled) // 5
    return shuffled[n_test:], shuffled[:n_test]


def accuracy_of_textcat(name: str, learn: Rows, test: Rows, seed: int) -> dict[str, float]:
    """Train configs/textcat.cfg; return its accuracy in percent, and how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {kind: Path(folder) / f"{kind}.csv" for kind in ("train", "dev")}
        write_table(learn, paths["train"])
        # Nothing is chosen on a dev set: the weights after the last step are measured
        write_table(learn[:50], paths["dev"])
        settings = {
            "paths.train": str(paths["train"]),
            "paths.dev": str(paths["dev"]),
            "system.seed": seed,
            "training.max_epochs": EPOCHS.get(name, OTHER_EPOCHS),
            "training.eval_frequency": 100_000,
        }
        start = time.perf_counter()
        train(CONFIG, Path(folder) / "trained", overrides=settings)
        seconds = time.perf_counter() - start
        nlp = spacy.load(Path(folder) / "trained" / "model-last")
    docs = nlp.pipe([text for text, _ in test])
    found = [max(doc.cats, key=doc.cats.__getitem__) for doc in docs]
    right = [label == expected for label, (_, expected) in zip(found, test, strict=True)]
    return {"textcat": 100 * float(numpy.mean(right)), "textcat seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default="CR,MR,SST-2,TREC")
    parser.add_argument("--most", type=int, default=100_000, help="training texts of a set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="JSON")
    given = parser.parse_args()
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert")
    results: list[dict[str, Any]] = []
    for name in given.sets.split(","):
        learn, test = split(*read_rows(given.data, name, given.most), given.seed)
        found: dict[str, Any] = {"set": name, "learn": len(learn), "test": len(test)}
        frozen = measure(encoded(learn, nlp), encoded(test, nlp))
        found |= {f"{key}, frozen": value for key, value in frozen.items()}
        found |= accuracy_of_textcat(name, learn, test, given.seed)
        results.append(found)
        print(json.dumps(found), flush=True)
    if given.output is not None:
        save_report(given.output, results, seed=given.seed)


if __name__ == "__main__":
    main()
