"""SentEval's files, made; vectors that classifiers can learn in part; and scikit-learn's
classifiers of them.
"""

from pathlib import Path
from typing import Any

import numpy
import pytest
from helpers.made_data import HashedSource
from helpers.pipelines import real_data
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from spacy_sbert.evaluation import Settings
from spacy_sbert.evaluation.encoders import VectorStore
from spacy_sbert.evaluation.task import MissingData, Run, Task

# Some of SentEval's
GRID = {"C": [0.25, 8.0]}
FOLDS = StratifiedKFold(10, shuffle=True, random_state=1111)
INNER = StratifiedKFold(5, shuffle=True, random_state=1111)
COARSE = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


class Cued(HashedSource):
    """Noise, and a direction for the first word, that classifiers can learn in part."""

    def vector(self, text):
        return super().vector(text) + 0.8 * super().vector(text.split(" ")[0])


def run(
    task: Task, root: Path, source: HashedSource | None = None, **settings: Any
) -> dict[str, Any]:
    """The result of a task."""
    store = VectorStore(source or Cued(), None, lambda items, _: items)
    settings = {"any_count": True, "bootstrap": 50, **settings}
    return task.run(Run(root, store, Settings(**settings), lambda items, _: items))


def write(path: Path, lines, encoding="utf8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(("\n".join(lines) + "\n").encode(encoding))


def write_polarity(
    root, positive=40, negative=30, folder="MR", files=("rt-polarity.pos", "rt-polarity.neg")
):
    texts = [f"good film {i}" for i in range(positive)], [f"bad film {i}" for i in range(negative)]
    for file, lines in zip(files, texts, strict=True):
        write(root / folder / file, lines)
    return [*texts[0], *texts[1]], numpy.array(["positive"] * positive + ["negative"] * negative)


def write_treebank(root, labels, line, **sizes):
    found = {}
    for split, size in sizes.items():
        rows = [
            (f"word{i % len(labels)} {split} {i}", labels[i % len(labels)]) for i in range(size)
        ]
        folder = "binary" if len(labels) == 2 else "fine"
        write(root / f"SST/{folder}/sentiment-{split}", [line(*row) for row in rows])
        found[split] = [text for text, _ in rows], numpy.array([label for _, label in rows])
    return found


def write_questions(root, train=60, test=24):
    found = {}
    for split, file, size in (
        ("train", "train_5500.label", train),
        ("test", "TREC_10.label", test),
    ):
        rows = [(f"{COARSE[i % 6]}q\xe9 {split} {i} ?", COARSE[i % 6]) for i in range(size)]
        write(root / "TREC" / file, [f"{label}:fine {text}" for text, label in rows], "latin-1")
        found[split] = [text for text, _ in rows], numpy.array([label for _, label in rows])
    return found


def write_paraphrases(root, train=40, test=20):
    found = {}
    for split, size in (("train", train), ("test", test)):
        rows = [
            (str(i % 3 % 2), f'{split} "one {i}', f"{'same' if i % 3 % 2 else 'other'} {i}")
            for i in range(size)
        ]
        lines = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"]
        lines += [f"{y}\t{i}\t9\t{u}\t{v}" for i, (y, u, v) in enumerate(rows)]
        write(root / f"MRPC/msr_paraphrase_{split}.txt", lines)
        found[split] = rows
    return found


def search():
    return GridSearchCV(LogisticRegression(max_iter=1000), GRID, cv=INNER)


def bits(right):
    return "".join("01"[int(value)] for value in right)


def encoded(data, source=None):
    """Vectors and labels of each split."""
    return (((source or Cued()).encode(texts), labels) for texts, labels in data.values())


def real_paths(task: Task, least: int = 1) -> list[Path]:
    """The real files of a task; the test is skipped without them."""
    try:
        paths = task.find(real_data())
    except MissingData as missing:
        pytest.skip(str(missing))
    if len(paths) < least:
        pytest.skip("SentEval's own file")
    return paths
