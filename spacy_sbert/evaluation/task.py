"""Evaluation tasks, their data sets, settings and cached embeddings."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NoReturn, Protocol, TypeVar, cast

import numpy
from pydantic import Field
from spacy.language import Language

from ..errors import Errors
from ..files.atomic import check_folder
from ..files.serialization import device, digest_of_parts, file_digest, read_arrays, versions, write_arrays
from ..validation import Seed, check_fields
from .encoders import Source
from .results import Entry, Measured, Scores, SettingsFacts
from .vector_transforms import NORMALIZATIONS, Transform, Variant, parse_size

Row = TypeVar("Row")

# Folders inside the one that was given: beside each other, or as SentEval has them.
PREFIXES = tuple(
    "/".join(part for part in (base, folder) if part)
    for base in ("", "senteval", "data", "senteval/data")
    for folder in ("", "sts", "STS", "nli", "argument", "probing", "downstream", "downstream/STS")
)


class MissingData(Exception):
    """A data set is not there: its task is listed as skipped, with the reason, and the others run."""


@dataclass(frozen=True)
class DataFile:
    """Where a data set is looked for, and where it comes from.

    names: folders or files, below the given folder or one of PREFIXES; the first that is there counts.
    source: who publishes it, an address.
    """

    names: tuple[str, ...]
    source: str

    def found(self, root: Path) -> Path | None:
        """The first of the names that is there; None if none is."""
        paths = (root / prefix / name for name in self.names for prefix in PREFIXES)
        return next((path for path in paths if path.exists()), None)

    def find(self, root: Path) -> Path:
        """The first of the names that is there. RAISES (MissingData): if none is."""
        return self.found(root) or self.refuse(self.names[0], root)

    def refuse(self, name: str | Path, root: Path) -> NoReturn:
        """RAISES (MissingData): says what is not below the root, and where to get it."""
        raise MissingData(Errors.MISSING_DATA.format(names=name, root=root, source=self.source))


def check_count(given: int, official: int | None, path: Path, any_count: bool) -> list[str]:
    """Refuse a data set that is not whole, or note it where any number will do.

    RETURNS (list of str): notes for the result.
    RAISES (ValueError): if the number of examples is not the official one, and must be.
    """
    if official is None or given == official:
        return []
    if not any_count:
        raise ValueError(
            f"{path}: {given} examples with a gold value, where the official data set has {official}. Get the "
            "whole file, or allow any number (any_count, on the command line --any-count); the scores then "
            "cannot be compared with published ones."
        )
    said = f"{path.name}: {given:,} examples, where the official data set has {official:,}"
    return [f"{said}: cannot be compared with published figures."]


def filled(rows: Iterable[Row], path: Path) -> list[Row]:
    """What is read of a file. RAISES (ValueError): if it is empty."""
    found = list(rows)
    if not found:
        raise ValueError(Errors.NO_PAIRS.format(path=path, expected="one example per line"))
    return found


def indices_by_name(names: Sequence[str]) -> dict[str, numpy.ndarray]:
    """Where each name stands, int (n,) each, in the order in which they first occur."""
    each = numpy.array(names)
    return {name: numpy.flatnonzero(each == name) for name in dict.fromkeys(names)}


def digests(paths: Iterable[Path], root: Path) -> dict[str, str]:
    """The SHA-256 of each file by its path below the root."""
    return {path.relative_to(root).as_posix(): file_digest(path) for path in sorted(paths)}


CLASSIFIERS = ("lr", "mlp")
MOST_RESAMPLES = 1_000_000  # a limit of an interval is then known to a thousandth of its width


@dataclass(frozen=True)
class Settings:
    """What is computed of the vectors.

    normalizations: scalings of the input, each reported: "none", "zscore", "unit", "zscore_unit", see variants.py.
        The first is the one that tables show.
    sizes: widths at which vectors are compared, each reported: "own", "pca-128" (principal components) or "up-1024"
        (random up-projection).
    seeds: of whatever is random: up-projections, MLPs, learned similarities. Scores are means over them.
    bootstrap: resamples of the 95 % intervals; 0 for no intervals.
    classifiers: of transfer and probing tasks: "lr", logistic regression, and "mlp".
    trained_on: data sets that the encoder was trained on, such as "stsb"; scores that they touch are marked.
    any_count: whether data sets may have another number of examples than the official ones.
    """

    normalizations: tuple[str, ...] = ("none",)
    sizes: tuple[str, ...] = ("own",)
    seeds: tuple[Seed, ...] = tuple(range(1, 11))
    bootstrap: Annotated[int, Field(ge=0, le=MOST_RESAMPLES)] = 1000
    classifiers: tuple[str, ...] = CLASSIFIERS
    trained_on: tuple[str, ...] = ()
    any_count: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        for name, expected in (("normalizations", NORMALIZATIONS), ("classifiers", CLASSIFIERS)):
            for given in getattr(self, name):
                if given not in expected:
                    message = (
                        f"Unknown value '{given}' among the {name} of the evaluation: expected some of "
                        f"{', '.join(expected)}."
                    )
                    raise ValueError(message)
        for size in self.sizes:
            parse_size(size)
        for name in ("normalizations", "sizes", "seeds", "classifiers"):
            given = getattr(self, name)
            if not given or len(set(given)) < len(given):
                raise ValueError(
                    f"The {name} of the evaluation are '{', '.join(map(str, given))}': expected at least "
                    "one, and none twice."
                )

    @property
    def variants(self) -> list[Variant]:
        """Every size with every normalisation; the first is the one that tables show."""
        return [Variant(normalization, size) for size in self.sizes for normalization in self.normalizations]

    def touched(self, note: str, *beginnings: str) -> list[str]:
        """The note with the data sets that the encoder was trained on whose names begin so; none without any."""
        names = ", ".join(name for name in self.trained_on if name.lower().startswith(beginnings))
        return [note.format(names)] if names else []

    def that_fit(self, rows: int, width: int) -> tuple["Settings", list[str]]:
        """The settings without the sizes that so many vectors of this width cannot be brought to, and a note on them.

        RAISES (ValueError): if no size is left.
        """
        left = tuple(size for size in self.sizes if Variant(size=size).fits(rows, width))
        gone = [size for size in self.sizes if size not in left]
        if not left:
            raise ValueError(
                f"None of the sizes {', '.join(gone)} can be made from {rows} vectors of width {width}: in "
                "up-D, D must be at least the width; in pca-D, at most the smaller of the two numbers. Add the "
                "size own, or another."
            )
        note = f"Not measured, of {rows} vectors of width {width}: {', '.join(gone)}."
        return replace(self, sizes=left), [note] if gone else []

    def to_json(self) -> SettingsFacts:
        """The settings as results hold them."""
        facts = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return cast(SettingsFacts, facts)


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


CHUNK = 1024  # texts encoded and saved at once: what an interruption may lose
KEY = 16  # bytes of the digest of a text


class VectorStore:
    """Vectors by text; see Encode for what a call does."""

    def __init__(self, source: Source, folder: Path | None, progress: Progress):
        """source (Source): what encodes. folder (Path): where vectors are kept, None to keep them in memory alone."""
        self.source = source
        made_by = digest_of_parts(source.digest, versions(), device())
        self.folder = None if folder is None else folder / f"vectors-{made_by[:KEY]}"
        self.progress = progress
        self.width: int | None = None  # of the vectors, where it is known yet
        self.encoded = 0  # distinct texts encoded, not read from disk
        self.place: dict[bytes, tuple[int, int]] = {}
        self.shards: list[numpy.ndarray] = []
        if self.folder is not None:
            check_folder(self.folder)
            for path in sorted(self.folder.glob("*.npz")):
                self._add(*_read(path))

    def __call__(self, texts: Sequence[str], *, fit_on: Sequence[str] | None = None) -> numpy.ndarray:
        """texts (n strings); fit_on: see Encode. RETURNS (float32 (n, width))."""
        distinct = list(dict.fromkeys(texts))
        if self.source.learns:
            self.encoded += len(distinct)
            rows = self.source.encode(distinct, list(dict.fromkeys(texts if fit_on is None else fit_on)))
            self.width = rows.shape[1]
            number = {text: i for i, text in enumerate(distinct)}
            return rows[[number[text] for text in texts]]
        # by length: batches of texts of like length waste no work on padding
        new = sorted((text for text in distinct if _key(text) not in self.place), key=len, reverse=True)
        for start in self.progress(range(0, len(new), CHUNK), "encoding") if new else []:
            chunk = new[start : start + CHUNK]
            self._keep(chunk, self.source.encode(chunk, ()).astype("float32", copy=False))
        places = [self.place[_key(text)] for text in texts]
        return numpy.stack([self.shards[shard][row] for shard, row in places])

    def _keep(self, texts: Sequence[str], vectors: numpy.ndarray) -> None:
        keys = numpy.frombuffer(b"".join(map(_key, texts)), dtype="uint8").reshape(-1, KEY)
        self.encoded += len(texts)
        self._add(keys, vectors)
        if self.folder is not None:
            # a name of its own, so that processes may share the folder
            path = self.folder / f"{hashlib.sha256(keys.tobytes()).hexdigest()[:KEY]}.npz"
            write_arrays(path, {"keys": keys, "vectors": vectors})

    def _add(self, keys: numpy.ndarray, vectors: numpy.ndarray) -> None:
        self.width = self.width or vectors.shape[1]
        self.place.update((key.tobytes(), (len(self.shards), row)) for row, key in enumerate(keys))
        self.shards.append(vectors)


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf8")).digest()[:KEY]


def _read(path: Path) -> tuple[numpy.ndarray, numpy.ndarray]:
    found = read_arrays(path, {"keys": ("uint8", 2), "vectors": ("float32", 2)}, message=Errors.BAD_CACHE)
    keys, vectors = found["keys"], found["vectors"]
    if keys.shape != (len(vectors), KEY):
        raise ValueError(Errors.BAD_CACHE.format(path=path, reason="arrays of another shape"))
    return keys, vectors
