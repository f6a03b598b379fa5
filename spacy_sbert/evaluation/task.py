"""Tasks of evaluations: their data files, their settings, and the variants of vectors that they score."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy
from pydantic import Field

from ..errors import Errors
from ..files.serialization import file_digest
from ..similarity import principal_components, unit_length
from ..validation import MAX_DIMENSIONS, Seed, check_fields
from .encoders import Progress, Source
from .results import Json

# Folders inside the root: beside each other, or as SentEval has them.
PREFIXES = tuple(
    "/".join(part for part in (base, folder) if part)
    for base in ("", "senteval", "data", "senteval/data")
    for folder in ("", "sts", "STS", "nli", "argument", "probing", "downstream", "downstream/STS")
)


class MissingData(Exception):
    """A data set is missing: its task is listed as skipped, with the reason, and the others run."""


@dataclass(frozen=True)
class DataFile:
    """Where a data set is looked for, names below the root or one of PREFIXES, and who publishes it."""

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


def check_count(n: int, path: Path, official: int | None = None, *, any_count: bool = True) -> list[str]:
    """Return a note on a data set that is not whole.

    RAISES (ValueError): if it has no examples, or if the number must be the official one, and is not.
    """
    if not n:
        raise ValueError(Errors.NO_PAIRS.format(path=path, expected="one example per line"))
    if official is None or n == official:
        return []
    if not any_count:
        raise ValueError(
            f"{path}: {n} examples with a gold value, where the official data set has {official}. Get the whole file, "
            "or allow any number with any_count (--any-count): such scores do not compare with published ones."
        )
    counts = f"{n:,} examples, where the official data set has {official:,}"
    return [f"{path.name}: {counts}: cannot be compared with published figures."]


def indices_by_name(names: Sequence[str]) -> dict[str, numpy.ndarray]:
    """Return the indices of each name, int (n,) each, in the order in which they first occur."""
    each = numpy.array(names)
    return {name: numpy.flatnonzero(each == name) for name in dict.fromkeys(names)}


Transform = Callable[[numpy.ndarray], numpy.ndarray]
OWN, _PCA, _UP = "own", "pca", "up"
_NORMALIZATIONS = ("none", "zscore", "unit", "zscore_unit")
_CLASSIFIERS = ("lr", "mlp")
_ROUNDING = 1e-6  # of the largest deviation: what float32 vectors leave of a number that never varies


@dataclass(frozen=True)
class Variant:
    """Vectors at one size, then with one normalization.

    normalization: "none"; "zscore", each number less its mean, over its standard deviation; "unit", length 1;
        "zscore_unit", both in this order. A number that never varies is only centered.
    size: "own"; "pca-D", the first D principal components; "up-D", random up-projection to D numbers.
    SOURCE: Eger et al. 2019, Pitfalls in the Evaluation of Sentence Embeddings, sections 3.1 (size) and 3.3
        (normalization); Poerner et al. 2020, section 4 (up-projection).
    """

    normalization: str = "none"
    size: str = OWN

    @property
    def target(self) -> tuple[str, int]:
        """The kind of the size, "own", "pca" or "up", and D. RAISES (ValueError): if it is another."""
        kind, _, number = self.size.partition("-")
        if self.size == OWN:
            return OWN, 0
        if kind in (_PCA, _UP) and number.isdecimal() and len(number) < 9 and 0 < int(number) <= MAX_DIMENSIONS:
            return kind, int(number)
        raise ValueError(
            f"Unknown size '{self.size}': expected own, pca-D or up-D (D at most {MAX_DIMENSIONS}), such as pca-128."
        )

    def fits(self, rows: int, width: int) -> bool:
        """Return whether so many vectors of this width can be brought to the size."""
        kind, wanted = self.target
        return wanted >= width if kind == _UP else wanted <= min(rows, width)

    @property
    def is_random(self) -> bool:
        """Whether it depends on a seed, so that scores are means over several."""
        return self.target[0] == _UP

    def fit(self, rows: numpy.ndarray, seed: int) -> Transform:
        """Take moments and components of vectors, and return the transform to this variant.

        rows (float (n, width)): all 2n rows of pairs compared by cosine; only training data if something is learned.
        seed (int): of an up-projection.
        RETURNS (Callable): vectors, float (m, width), to this variant, (m, size): float64, or as they are if neither
            size nor normalization changes them, as sentence-transformers compares them (see "Equal pairs" in
            docs/evaluation.md).
        RAISES (ValueError): if the size cannot be had from this width or this number of rows.
        """
        if not self.fits(*rows.shape):
            raise ValueError(f"Size '{self.size}' cannot be made from {len(rows)} vectors of width {rows.shape[1]}.")
        resize = self._resize(rows, seed)
        normalize = self._normalize(resize(rows))
        return lambda vectors: normalize(resize(vectors))

    def _resize(self, rows: numpy.ndarray, seed: int) -> Transform:
        kind, wanted = self.target
        if kind == OWN:
            return lambda vectors: vectors
        if kind == _UP:
            bound = rows.shape[1] ** -0.5
            matrix = numpy.random.default_rng(seed).uniform(-bound, bound, (wanted, rows.shape[1]))  # d x d_j
            return lambda vectors: vectors @ matrix.T
        mean, components = principal_components(rows)
        return lambda vectors: (vectors - mean) @ components.axes[:wanted].T

    def _normalize(self, rows: numpy.ndarray) -> Transform:
        if self.normalization == "none":
            return lambda vectors: vectors
        if self.normalization == "unit":
            return lambda vectors: unit_length(vectors.astype("float64", copy=False))
        mean, deviation = rows.mean(axis=0, dtype="float64"), rows.std(axis=0, dtype="float64")
        deviation[deviation <= _ROUNDING * deviation.max()] = 1.0
        if self.normalization == "zscore":
            return lambda vectors: (vectors - mean) / deviation
        return lambda vectors: unit_length((vectors - mean) / deviation)

    def entry(self, scores: Sequence[Json]) -> Json:
        """Return the entry in results: the means of the scores of each seed, and if it is random the deviations."""
        means, deviations = over_seeds(scores)
        entry = {"normalization": self.normalization, "size": self.size, "scores": means}
        return {**entry, "deviation": deviations} if self.is_random else entry


def over_seeds(each: Sequence[Any]) -> tuple[Any, Any]:
    """Return the means and the standard deviations of equal nests of numbers, leaf by leaf.

    sqrt(sum_i (x_i - mean)^2 / (n - 1)), None for a single seed; both are None if a number is None for one seed.
    """
    if isinstance(each[0], dict):
        pairs = {key: over_seeds([scores[key] for scores in each]) for key in each[0]}
        return {key: pair[0] for key, pair in pairs.items()}, {key: pair[1] for key, pair in pairs.items()}
    if any(value is None for value in each):
        return None, None
    return float(numpy.mean(each)), float(numpy.std(each, ddof=1)) if len(each) > 1 else None


@dataclass(frozen=True)
class Settings:
    """What is computed of the vectors.

    normalizations: "none", "zscore", "unit", "zscore_unit", see Variant, each reported; tables show the first.
    sizes: "own", "pca-128" (principal components) or "up-1024" (random up-projection), each reported.
    seeds: of whatever is random: up-projections, MLPs, learned similarities. Scores are means over them.
    bootstrap: resamples of the 95 % intervals; 0 for no intervals.
    classifiers: of transfer and probing tasks: "lr", logistic regression, and "mlp".
    trained_on: data sets that the encoder was trained on, such as "stsb"; scores that they touch are marked.
    any_count: whether data sets may have another number of examples than the official ones.
    """

    normalizations: tuple[str, ...] = ("none",)
    sizes: tuple[str, ...] = (OWN,)
    seeds: tuple[Seed, ...] = tuple(range(1, 11))
    bootstrap: Annotated[int, Field(ge=0, le=1_000_000)] = 1000  # so many tell an end to a thousandth of the width
    classifiers: tuple[str, ...] = _CLASSIFIERS
    trained_on: tuple[str, ...] = ()
    any_count: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        known = {"normalizations": _NORMALIZATIONS, "classifiers": _CLASSIFIERS}
        for name in ("normalizations", "sizes", "seeds", "classifiers"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values) or not {*values} <= {*known.get(name, values)}:
                expected = f"some of {', '.join(known[name])}" if name in known else "at least one"
                given = ", ".join(map(str, values))
                raise ValueError(f"The {name} of the evaluation are '{given}': expected {expected}, and none twice.")
        for variant in self.variants:
            _ = variant.target  # an unknown size is an error

    @property
    def variants(self) -> list[Variant]:
        """Return every size with every normalization; the first is the one that tables show."""
        return [Variant(normalization, size) for size in self.sizes for normalization in self.normalizations]

    def seeds_of(self, variant: Variant) -> tuple[int, ...]:
        """Return the seeds with which a variant is fitted: only the first unless it is random."""
        return self.seeds if variant.is_random else self.seeds[:1]

    def score_variants(self, fit_rows: numpy.ndarray, score: Callable[[Transform], Json]) -> list[Json]:
        """Score every variant; random ones as the mean over the seeds.

        fit_rows (float (n, width)): what moments and components are taken of, see Variant.fit.
        score (Callable): from a transform of vectors to the scores of what it transforms.
        RETURNS (list): as Task.run's "variants".
        """
        return [
            variant.entry([score(variant.fit(fit_rows, seed)) for seed in self.seeds_of(variant)])
            for variant in self.variants
        ]

    def touched(self, note: str, *beginnings: str) -> list[str]:
        """Return the note with the data sets of `trained_on` whose names begin so; none without any."""
        names = ", ".join(name for name in self.trained_on if name.lower().startswith(beginnings))
        return [note.format(names)] if names else []

    def that_fit(self, rows: int, width: int) -> tuple["Settings", list[str]]:
        """Return the settings without the sizes that so many vectors cannot be brought to, and a note on these."""
        left = tuple(size for size in self.sizes if Variant(size=size).fits(rows, width))
        gone = ", ".join(size for size in self.sizes if size not in left)
        if not left:
            raise ValueError(
                f"None of the sizes {gone} can be made from {rows} vectors of width {width}: up-D is at least as wide, "
                "and pca-D has at most the smaller number. Add the size own."
            )
        note = f"Not measured, of {rows} vectors of width {width}: {gone}."
        return replace(self, sizes=left), [note] if gone else []

    def to_json(self) -> Json:
        """Return the settings as results hold them."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


@dataclass(frozen=True)
class Run:
    """What a task works with.

    root: the folder of all data.
    encode: from texts (n strings) to vectors, float32 (n, width), see VectorStore. Its argument fit_on is the corpus
        of a source that learns: training texts, by default the texts.
    settings: how to evaluate. progress: a bar for long work.
    source: what gives the vectors, for tasks on more than vectors (heads, speed).
    """

    root: Path
    encode: Callable[..., numpy.ndarray]
    settings: Settings
    progress: Progress
    source: Source | None = None


class Task:
    """One data set and what is measured on it.

    name: in results and tables, such as "STS12". suite: what asks for it, such as "sts". place: of a task on one file.
    is_kept: whether the result is reused while model, data, settings, versions and device are the same.
    needs_sklearn: whether it runs only with scikit-learn.
    """

    name: str
    suite: str
    place: DataFile
    is_kept = True
    needs_sklearn = False

    def find(self, root: Path) -> list[Path]:
        """Return the files that are read. RAISES (MissingData): if they are missing."""
        return [self.place.find(root)]

    def digests(self, root: Path) -> dict[str, str]:
        """Return the SHA-256 of each file by its path below the root. RAISES (MissingData): if they are missing."""
        return {path.relative_to(root).as_posix(): file_digest(path) for path in sorted(self.find(root))}

    def run(self, run: Run) -> Json:
        """Measure.

        RETURNS (dict): JSON: "counts", examples by sub-set and split; "primary", the path of the figure that stands for
        the task, such as "cosine.spearman.pooled"; "variants", {"normalization", "size", "scores"} of each of
        Settings.variants, for random ones also "deviation" over the seeds, in the shape of scores; "intervals", 95 %,
        of figures of the first variant by path; "predictions", what the first variant says of each example and its gold
        value; "notes", what a reader has to know.
        RAISES (ValueError): if a file is not what it should be; the message names file and line.
        """
        raise NotImplementedError
