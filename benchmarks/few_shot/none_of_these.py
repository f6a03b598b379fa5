"""Texts of none of the classes: 20 of the 77 intents of BANKING77 are held out.

python benchmarks/few_shot/none_of_these.py DATA --per-class 8,16 --seeds 5

It prints the area under the curve of texts of the other 57 intents against held-out ones, by their
highest probability, and with the fitted threshold the accuracy of both, as cross-validation
promised it and on 3,000 texts that were not drawn.
"""

import argparse
import json
import random
from pathlib import Path

import numpy
import spacy
from draws import draw, read_rows
from run import LabelledVectors, encoded
from scipy.special import softmax
from sklearn.metrics import roc_auc_score

from spacy_sbert.textcat.logistic_regression import fit

N_HELD_OUT = 20
N_TEST = 3000


def measure(learn: LabelledVectors, test: LabelledVectors) -> dict[str, float]:
    """Return what cross-validation promised of the threshold, and what it keeps."""
    classes = numpy.unique(learn.labels)
    targets = learn.labels[:, None] == classes
    fitted = fit(learn.vectors, targets, multi_label=False, with_threshold=True)
    probabilities = softmax(test.vectors @ fitted.weights.T + fitted.bias, axis=1)
    best = probabilities.max(axis=1)
    is_known = numpy.isin(test.labels, classes)
    is_right = classes[probabilities.argmax(axis=1)] == test.labels
    assert fitted.threshold is not None
    is_accepted = best >= fitted.threshold
    promised = {f"promised {name}": value for name, value in fitted.scores.items()}
    return {
        **promised,
        "threshold": fitted.threshold,
        "none_auc": float(roc_auc_score(is_known, best)),
        "known_accuracy": float((is_right & is_accepted)[is_known].mean()),
        "none_accuracy": float((~is_accepted)[~is_known].mean()),
        "accuracy": float(numpy.where(is_known, is_right & is_accepted, ~is_accepted).mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--per-class", default="8,16")
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert")
    rows, _ = read_rows(given.data, "BANKING77")
    every = encoded(rows, nlp)
    for per_class in map(int, given.per_class.split(",")):
        runs = []
        for seed in range(given.seeds):
            held_out = random.Random(seed).sample(sorted(set(every.labels.tolist())), N_HELD_OUT)
            drawn, _ = draw(every.labels.tolist(), per_class, seed)
            learn = [place for place in drawn if every.labels[place] not in held_out]
            rest = numpy.setdiff1d(numpy.arange(len(every.labels)), learn)
            test = numpy.random.default_rng(seed).choice(rest, N_TEST, replace=False)
            runs.append(
                measure(
                    LabelledVectors(every.vectors[learn], every.labels[learn]),
                    LabelledVectors(every.vectors[test], every.labels[test]),
                )
            )
        means = {key: round(float(numpy.mean([run[key] for run in runs])), 4) for key in runs[0]}
        print(json.dumps({"per_class": per_class, "seeds": given.seeds, **means}), flush=True)


if __name__ == "__main__":
    main()
