"""Accuracy of classes from a few labelled texts each: on the vectors as published, and after the
batch-hard objective.

python benchmarks/few_shot/run.py DATA/intents/banking77_train.csv --seeds 1,2,3
"""

import argparse
import csv
import json
import random
from importlib.metadata import version
from pathlib import Path

import numpy
import spacy
from sklearn.linear_model import LogisticRegression
from spacy.training import Example
from spacy.util import fix_random_seed, minibatch

from spacy_sbert import find_sbert
from spacy_sbert.readers import example_doc

Rows = list[tuple[str, str]]


def split(rows: Rows, per_class: int, n_test: int, seed: int) -> tuple[Rows, Rows]:
    """Draw `per_class` texts of each class to learn from, and `n_test` of the others to test on."""
    drawn = random.Random(seed)
    rows = drawn.sample(rows, len(rows))
    seen: dict[str, int] = {}
    learn, rest = [], []
    for text, label in rows:
        seen[label] = seen.get(label, 0) + 1
        (learn if seen[label] <= per_class else rest).append((text, label))
    return learn, rest[:n_test]


def accuracy(nlp: spacy.Language, learn: Rows, test: Rows) -> float:
    """Fit scikit-learn's logistic regression on the vectors, with its default settings but
    max_iter, and score it.
    """
    sbert = find_sbert(nlp)
    classifier = LogisticRegression(max_iter=1000)
    classifier.fit(sbert.encode([text for text, _ in learn]), [label for _, label in learn])
    return 100 * float(
        classifier.score(sbert.encode([text for text, _ in test]), [label for _, label in test])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="CSV with the columns text and category")
    parser.add_argument("--per-class", type=int, default=8)
    parser.add_argument("--n-test", type=int, default=2000)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--size", type=int, default=128, help="texts in a batch")
    parser.add_argument("--learn-rate", type=float, default=2e-5)
    parser.add_argument("--margin", type=float, default=1.0)
    parser.add_argument("--output", type=Path, help="JSON")
    given = parser.parse_args()
    with given.data.open(encoding="utf8", newline="") as file:
        rows = [
            (row["text"], row["category"])
            for row in csv.DictReader(file)
            if row["text"] and row["category"]
        ]
    results = []
    for seed in map(int, given.seeds.split(",")):
        learn, test = split(rows, given.per_class, given.n_test, seed)
        fix_random_seed(seed)
        nlp = spacy.blank("en")
        nlp.add_pipe(
            "sbert",
            config={
                "loss": {"@layers": "spacy-sbert.BatchHardTripletLoss.v1", "margin": given.margin}
            },
        )
        before = accuracy(nlp, learn, test)
        docs = [example_doc(nlp, [text], label=label) for text, label in learn]
        examples = [Example(doc.copy(), doc) for doc in docs]
        optimizer = nlp.initialize(lambda examples=examples: examples)
        optimizer.learn_rate = given.learn_rate
        order = random.Random(seed)
        for _ in range(given.epochs):
            order.shuffle(examples)
            for batch in minibatch(examples, given.size):
                nlp.update(batch, sgd=optimizer)
        after = accuracy(nlp, learn, test)
        results.append(
            {
                "seed": seed,
                "learned": len(learn),
                "tested": len(test),
                "before": before,
                "after": after,
            }
        )
        print(results[-1], flush=True)
        if given.output is not None:
            given.output.write_text(
                json.dumps(report(given, results), indent=2) + "\n", encoding="utf8"
            )


def report(given: argparse.Namespace, results: list[dict[str, float]]) -> dict[str, object]:
    """Return settings, versions, the runs so far and their means."""
    settings = {
        key: str(value) for key, value in vars(given).items() if key not in ("data", "output")
    }
    versions = {
        name: version(name) for name in ("spacy-sbert", "spacy", "torch", "scikit-learn", "numpy")
    }
    means = {key: float(numpy.mean([one[key] for one in results])) for key in ("before", "after")}
    return {"settings": settings, "versions": versions, "runs": results, "means": means}


if __name__ == "__main__":
    main()
