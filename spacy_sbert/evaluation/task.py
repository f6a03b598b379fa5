"""Tasks of evaluations: their data files, and their settings."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy
from pydantic import Field

from ..arrays import Arrays
from ..errors import Errors
from ..files.checksum import file_digest
from ..reranker.component import SentenceReranker
from ..validation import Seed, check_fields
from .encoders import Progress, VectorSource
from .results import Json, Resampled, interval, resample

# Folders inside the root: beside each other, or as SentEval has them
PREFIXES = tuple(
    "/".join(part for part in (base, folder) if part)
    for base in ("", "senteval", "data", "senteval/data")
    for folder in ("", "sts", "STS", "nli", "argument", "probing", "downstream", "downstream/STS")
)


class MissingData(Exception):
    """A data set is missing: its task is listed as skipped, with the reason, and the others run."""


@dataclass(frozen=True)
class DataFile:
    """Where a data set is looked for, and who publishes it.

    names: below the root or one of PREFIXES.
    """

    names: tuple[str, ...]
    source: str

    def found(self, root: Path) -> Path | None:
        """Return the first of the names that exists; None if none does."""
        paths = (root / prefix / name for name in self.names for prefix in PREFIXES)
        return next((path for path in paths if path.exists()), None)

    def find(self, root: Path) -> Path:
        """Return the first of the names that exists. RAISES (MissingData): if none does."""
        return self.found(root) or self.refuse(self.names[0], root)

    def refuse(self, name: str | Path, root: Path) -> NoReturn:
        """Raise MissingData, which says what is not below the root, and where to get it."""
        raise MissingData(f"{name} not found below {root}. Get it from {self.source}")


def check_official_count(
    n: int, path: Path, official: int | None = None, *, any_count: bool = True
) -> list[str]:
    """Return a note on a data set that is not whole.

    RAISES (ValueError): if it has no examples, or if the number must be the official one, and is
        not.
    """
    if not n:
        raise ValueError(Errors.NO_PAIRS.format(path=path, expected="one example per line"))
    if official is None or n == official:
        return []
    if not any_count:
        raise ValueError(
            f"{path}: {n} examples with a gold value, where the official data set has {official}. "
            "Get the whole file, or allow any number with any_count (--any-count): such scores do "
            "not compare with published ones."
        )
    counts = f"{n:,} examples, where the official data set has {official:,}"
    return [f"{path.name}: {counts}: cannot be compared with published figures."]


def indices_by_name(names: Sequence[str]) -> Arrays:
    """Return the indices of each name, int (n,) each, in the order in which they first occur."""
    each = numpy.array(names)
    return {name: numpy.flatnonzero(each == name) for name in dict.fromkeys(names)}


def as_they_are(scores: Json, **more: Any) -> list[Json]:
    """Return the "variants" of a result whose only one is of the vectors as they are.

    See Task.run.
    """
    return [{"normalization": "none", "size": "own", "scores": scores, **more}]


@dataclass(frozen=True)
class Settings:
    """What is computed of the vectors.

    normalizations, sizes: "none" and "own", the vectors as they are; others for tasks that know
        them, see Task.check.
    seeds: of whatever is random, such as intervals, which are of the first.
    bootstrap: resamples of the 95 % intervals; 0 for no intervals.
    classifiers: of transfer tasks: "lr", logistic regression; others as normalizations.
    trained_on: data sets that the encoder was trained on, such as "stsb"; scores that they touch
        are marked.
    any_count: whether data sets may have another number of examples than the official ones.
    """

    normalizations: tuple[str, ...] = ("none",)
    sizes: tuple[str, ...] = ("own",)
    seeds: tuple[Seed, ...] = tuple(range(1, 11))
    # So many tell an end to a thousandth of the width
    bootstrap: Annotated[int, Field(ge=0, le=1_000_000)] = 1000
    classifiers: tuple[str, ...] = ("lr",)
    trained_on: tuple[str, ...] = ()
    any_count: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("normalizations", "sizes", "seeds", "classifiers"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                given = ", ".join(map(str, values))
                raise ValueError(
                    f"The {name} of the evaluation are '{given}': expected at least one, and none "
                    "twice."
                )

    def touched(self, note: str, *beginnings: str) -> list[str]:
        """Return the note with the data sets of `trained_on` whose names begin so, if any do."""
        names = ", ".join(name for name in self.trained_on if name.lower().startswith(beginnings))
        if not names:
            return []
        return [note.format(names)]

    def intervals(
        self, statistics: Mapping[str, Resampled], n: int
    ) -> dict[str, list[float] | None]:
        """Return the interval of each statistic of the same n examples by its path.

        There are none without resamples.
        """
        if not self.bootstrap:
            return {}
        found: dict[str, list[float] | None] = {}
        for path, statistic in statistics.items():
            found[path] = interval(resample(statistic, n, self.bootstrap, self.seeds[0]))
        return found

    def to_json(self) -> Json:
        """Return the settings as results hold them."""
        return json.loads(json.dumps(asdict(self)))


@dataclass(frozen=True)
class Run:
    """Data, vectors and settings with which a task is run.

    root (Path): the folder of all data.
    encode (Callable): from texts (n strings) to vectors, float32 (n, width), see VectorStore. Its
        argument fit_on is the corpus of a source that learns: training texts, by default the texts;
        its argument role, "query" or "document", decides the prompt.
    settings (Settings): how to evaluate. progress (Callable): a bar for long work.
    source (Source): gives the vectors, for tasks on more than vectors (heads, speed).
    reranker (SentenceReranker): puts what a search finds in a new order, None for none.
    """

    root: Path
    encode: Callable[..., numpy.ndarray]
    settings: Settings
    progress: Progress
    source: VectorSource | None = None
    reranker: SentenceReranker | None = None


class Task:
    """Data set, and what is measured on it.

    name (str): in results and tables, such as "STS12". suite (str): such as "sts".
    place (DataFile): where its file is, if it has one.
    is_kept (bool): whether the result is reused while model, data, settings, versions and device
        are the same.
    needs_sklearn (bool): whether it runs only with scikit-learn.
    """

    name: str
    suite: str
    place: DataFile
    is_kept = True
    needs_sklearn = False

    def check(self, settings: Settings) -> None:
        """Check that the task follows the settings, before anything is encoded.

        RAISES (ValueError): if it does not: by default, for anything but vectors as they are and
            logistic regression.
        """
        for name, known in (("normalizations", "none"), ("sizes", "own"), ("classifiers", "lr")):
            others = [value for value in getattr(settings, name) if value != known]
            if others:
                raise ValueError(
                    f"{self.name} knows none of the {name} {', '.join(others)}: expected {known}. "
                    "Give tasks that know more with --code: benchmarks/papers/paper_tasks.py has "
                    "those of the papers."
                )

    def find(self, root: Path) -> list[Path]:
        """Return the files that are read. RAISES (MissingData): if they are missing."""
        return [self.place.find(root)]

    def digests(self, root: Path) -> dict[str, str]:
        """Return the SHA-256 of each file by its path below the root.

        RAISES (MissingData): if they are missing.
        """
        return {
            path.relative_to(root).as_posix(): file_digest(path) for path in sorted(self.find(root))
        }

    def run(self, run: Run) -> Json:
        """Measure.

        RETURNS (dict): JSON: "counts", examples by sub-set and split; "primary", the path of the
            figure that stands for the task, such as "cosine.spearman.pooled"; "variants", a list of
            {"normalization", "size", "scores"}, of random ones also "deviation" over the seeds, in
            the shape of scores; "intervals", 95 %, of figures of the first variant by path;
            "predictions", what the first variant says of each example and its gold value; "notes",
            what a reader has to know.
        RAISES (ValueError): if a file is not what it should be; the message names file and line.
        """
        raise NotImplementedError
