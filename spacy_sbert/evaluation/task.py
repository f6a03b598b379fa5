"""What a task of an evaluation is, and what it is given."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy
from spacy.language import Language

from .results import Entry, Measured, Scores
from .settings import Settings
from .sources import Source
from .variants import Transform

ItemT = TypeVar("ItemT")


class Progress(Protocol):
    """A bar over what is iterated, with its name."""

    def __call__(self, items: Sequence[ItemT], name: str, /) -> Iterable[ItemT]: ...


class Encode(Protocol):
    """Vectors for texts."""

    def __call__(self, texts: Sequence[str], *, fit_on: Sequence[str] | None = None) -> numpy.ndarray:
        """texts (n strings): each distinct one is encoded once in an evaluation. fit_on: what a source that learns from
        the corpus may see (idf, principal components): training texts, by default the texts themselves.
        RETURNS (float32 (n, width))."""


@dataclass(frozen=True)
class Run:
    """What a task is given.

    root: the folder of all data. encode: texts to vectors. settings: how to evaluate. progress: a bar for long work.
    nlp: the pipeline where the source of the vectors is one, for tasks on more than vectors (heads).
    source: what gives the vectors, for tasks on how it does (speed).
    """

    root: Path
    encode: Encode
    settings: Settings
    progress: Progress
    nlp: Language | None = None
    source: Source | None = None


class Task(Protocol):
    """One data set and what is measured on it.

    name: in results and tables, such as "STS12".
    suite: what asks for it, such as "sts".
    depends_on: the settings that its scores depend on, beside model, data, versions and device: names of fields of
        Settings; None for what is measured anew each time.
    """

    @property
    def name(self) -> str: ...

    @property
    def suite(self) -> str: ...

    @property
    def depends_on(self) -> tuple[str, ...] | None: ...

    def find(self, root: Path) -> list[Path]:
        """The files that are read. RAISES (MissingData): if they are not there."""

    def run(self, run: Run) -> Measured:
        """Measure.

        RETURNS (dict): JSON: "counts", examples by sub-set and split; "primary", the path into scores of the figure
        that stands for the task, such as "cosine.spearman.pooled"; "variants", a list of {"normalization", "size",
        "scores"} in the order of Settings.variants, for random ones also "deviation", the standard deviation over the
        seeds in the same shape; "intervals", the ends of 95 % intervals for figures of the first variant by their
        paths; "predictions", what the first variant says of each example and its gold value, for plots and paired
        tests; "notes", what a reader has to know.
        RAISES (ValueError): if a file is not what it should be; the message names file and line.
        """


def score_variants(settings: Settings, fit_rows: numpy.ndarray, score: Callable[[Transform], Scores]) -> list[Entry]:
    """Score every variant; random ones as the mean over the seeds.

    fit_rows (float (n, width)): what moments and components are taken of, see Variant.fit.
    score (Callable): from a transform of vectors to the scores of what it transforms.
    RETURNS (list): as Task.run's "variants".
    """
    found = []
    for variant in settings.variants:
        seeds = settings.seeds if variant.is_random else settings.seeds[:1]
        each = [score(variant.fit(fit_rows, seed)) for seed in seeds]
        entry: Entry = {"normalization": variant.normalization, "size": variant.size, "scores": over_seeds(each, mean)}
        if variant.is_random:
            entry["deviation"] = over_seeds(each, deviation)
        found.append(entry)
    return found


def over_seeds(each: Sequence[Any], reduce: Callable[[Sequence[float]], float | None]) -> Any:
    """Reduce equal nests of numbers leaf by leaf; a leaf that is None for one seed is None."""
    if isinstance(each[0], dict):
        return {key: over_seeds([one[key] for one in each], reduce) for key in each[0]}
    return None if any(value is None for value in each) else reduce(each)


def mean(values: Sequence[float]) -> float:
    """sum_i x_i / n, for over_seeds."""
    return values[0] if len(values) == 1 else float(numpy.mean(values))


def deviation(values: Sequence[float]) -> float | None:
    """sqrt(sum_i (x_i - mean)^2 / (n - 1)), for over_seeds; None for a single seed."""
    return float(numpy.std(values, ddof=1)) if len(values) > 1 else None
