"""Triplet accuracy on the sections of Wikipedia articles."""

from pathlib import Path

import numpy

from ...files.text_lines import check_text
from ...readers.datasets import WIKISECTION_SENTENCES, wikisection_records
from ..bootstrap import intervals_of, mean_of
from ..results import Measured, Scores, digits
from ..task import DataFile, Run, Task, check_count, filled, score_variants
from ..vector_transforms import Transform
from .graded import SIMILARITIES

_OFFICIAL = 222_957  # test triplets of Ein Dor et al. 2018
_NAMES = ("euclidean", "cosine", "manhattan")
_EQUAL = "{count} triplets with two equal sentences are left out; the official number of triplets includes them."
_SOURCE = "https://sbert.net/datasets/wikipedia-sections-triplets.zip"


_FOLDERS = ("wikisec", "wikipedia-sections", "wikipedia-sections-triplets")
_PLACE = DataFile(tuple(f"{folder}/test.csv" for folder in _FOLDERS), _SOURCE)


class _TripletTask(Task):
    """Accuracy: how often the anchor is nearer to the sentence of its section than to that of another."""

    name = "wikisec"
    suite = "triplets"
    depends_on = ("normalizations", "sizes", "seeds", "bootstrap", "trained_on")

    def find(self, root: Path) -> list[Path]:
        return [_PLACE.find(root)]

    def run(self, run: Run) -> Measured:
        path = _PLACE.find(run.root)
        triplets, equal = _read_triplets(path)
        members = list(zip(*triplets, strict=True))
        n = len(triplets)
        rows = run.encode([text for member in members for text in member])
        right: list[numpy.ndarray] = []

        def score(transform: Transform) -> Scores:
            anchor, positive, negative = transform(rows).reshape(3, n, -1)
            each = {name: SIMILARITIES[name] for name in _NAMES}
            nearer = {name: near(anchor, positive) > near(anchor, negative) for name, near in each.items()}
            right.append(nearer[_NAMES[0]])
            return {name: {"accuracy": float(values.mean())} for name, values in nearer.items()}

        settings, notes = run.settings.that_fit(*rows.shape)
        variants = score_variants(settings, rows, score)
        first = right[0]  # of the first variant and seed
        notes += settings.touched("The encoder was trained on {}.", "wiki")
        notes += check_count(n + equal, _OFFICIAL, path, any_count=True)  # samples of it are in use
        notes += [_EQUAL.format(count=equal)] if equal else []
        return {
            "counts": {"test": n},
            "primary": "euclidean.accuracy",
            "variants": variants,
            "intervals": intervals_of({"euclidean.accuracy": mean_of(first)}, n, settings.bootstrap, settings.seeds[0]),
            "predictions": {"right": digits(first)},
            "notes": notes,
        }


def _read_triplets(path: Path) -> tuple[list[list[str]], int]:
    """Read triplets, and leave out those with two equal sentences: they ask nothing, or what has no answer.

    path (Path): see wikisection_records.
    RETURNS (list of three str each, int): anchor, positive and negative; and how many are left out.
    RAISES (ValueError): see wikisection_records; for an empty sentence; or if no triplet is left.
    """
    read = [
        [check_text(text, name, path, line) for text, name in zip(texts, WIKISECTION_SENTENCES, strict=True)]
        for line, texts in wikisection_records(path)
    ]
    triplets = filled((texts for texts in read if len(set(texts)) == len(texts)), path)
    return triplets, len(read) - len(triplets)


TASKS: tuple[Task, ...] = (_TripletTask(),)
