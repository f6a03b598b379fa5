"""Accuracy of classes from a few labelled texts of each.

It compares `sbert_textcat` and scikit-learn's logistic regression with its default settings, on the
same vectors of the default encoder.

python benchmarks/few_shot/run.py DATA --sets CR,MR,SST-2,TREC,BANKING77 --output results.json

DATA holds the folders of SentEval in senteval/, and intents/banking77_train.csv. TREC and SST-2 are
tested on their test sets, the others on 2,000 of the texts that were not drawn.
"""

import argparse
import json
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import spacy
from draws import Rows, draw, read_rows
from sklearn.linear_model import LogisticRegression

from spacy_sbert import find_sbert
from spacy_sbert.textcat.logistic_regression import fit

PACKAGES = ("spacy-sbert", "spacy", "torch", "transformers", "scikit-learn", "numpy")


class LabelledVectors(NamedTuple):
    """Vectors of texts, float32 (n, width), and the label of each, str (n,)."""

    vectors: numpy.ndarray
    labels: numpy.ndarray


def encoded(rows: Rows, nlp: spacy.Language) -> LabelledVectors:
    vectors = find_sbert(nlp).encode([text for text, _ in rows])
    return LabelledVectors(vectors, numpy.array([label for _, label in rows]))


def measure(learn: LabelledVectors, test: LabelledVectors) -> dict[str, float]:
    """Return the accuracy of both, in percent, and the seconds of our fit."""
    theirs = LogisticRegression(max_iter=1000).fit(learn.vectors, learn.labels)
    classes = theirs.classes_
    start = time.process_time()
    ours = fit(
        learn.vectors, learn.labels[:, None] == classes, multi_label=False, with_threshold=False
    )
    seconds = time.process_time() - start
    best = (test.vectors @ ours.weights.T + ours.bias).argmax(axis=1)
    return {
        "scikit-learn": 100 * float(theirs.score(test.vectors, test.labels)),
        "sbert_textcat": 100 * float((classes[best] == test.labels).mean()),
        "strength": ours.strength,
        "seconds": seconds,
    }


def save_report(path: Path, results: list[dict[str, Any]], **settings: int) -> None:
    """Write results as JSON, with the settings and the versions of packages."""
    versions = {package: version(package) for package in PACKAGES}
    report = {"versions": versions, **settings, "results": results}
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default="CR,MR,SST-2,TREC,BANKING77")
    parser.add_argument("--per-class", default="8,16,64")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--output", type=Path, help="JSON")
    given = parser.parse_args()
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert")
    results: list[dict[str, Any]] = []
    for name in given.sets.split(","):
        learn_rows, test_rows = read_rows(given.data, name)
        learn = encoded(learn_rows, nlp)
        test = encoded(test_rows, nlp) if test_rows else None
        for per_class in map(int, given.per_class.split(",")):
            runs = []
            for seed in range(given.seeds):
                drawn, rest = draw(learn.labels.tolist(), per_class, seed)
                chosen = LabelledVectors(learn.vectors[drawn], learn.labels[drawn])
                tested = test or LabelledVectors(learn.vectors[rest], learn.labels[rest])
                runs.append(measure(chosen, tested))
            results.append({"set": name, "per_class": per_class, **means(runs)})
            print(json.dumps(results[-1]), flush=True)
    if given.output is not None:
        save_report(given.output, results, seeds=given.seeds)


def means(runs: list[dict[str, float]]) -> dict[str, Any]:
    """Return the means over the seeds, with 95 % intervals of accuracies, and each strength."""
    found: dict[str, Any] = {"strengths": [run["strength"] for run in runs]}
    for key in ("scikit-learn", "sbert_textcat", "seconds"):
        values = numpy.array([run[key] for run in runs])
        found[key] = round(float(values.mean()), 2)
        if key != "seconds" and len(runs) > 1:
            interval = 1.96 * values.std(ddof=1) / len(runs) ** 0.5
            found[f"{key} +-"] = round(float(interval), 2)
    return found


if __name__ == "__main__":
    main()
