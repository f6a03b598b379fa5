"""Tasks of evaluations, their data files, their settings, and the store of vectors."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NoReturn, TypeVar, cast

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

_RowT = TypeVar("_RowT")
# Folders inside the root: beside each other, or as SentEval has them.
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

    names: folders or files, below the root or one of PREFIXES; the first that exists counts.
    source: who publishes it, an address.
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
        raise MissingData(Errors.MISSING_DATA.format(names=name, root=root, source=self.source))


def check_count(n: int, official: int | None, path: Path, any_count: bool) -> list[str]:
    """Refuse a data set that is not whole, or note it where any number will do.

    RETURNS (list of str): notes for the result.
    RAISES (ValueError): if the number of examples is not the official one, and must be.
    """
    if official is None or n == official:
        return []
    if not any_count:
        raise ValueError(
            f"{path}: {n} examples with a gold value, where the official data set has {official}. Get the "
            "whole file, or allow any number (any_count, on the command line --any-count); the scores then "
            "cannot be compared with published ones."
        )
    counts = f"{path.name}: {n:,} examples, where the official data set has {official:,}"
    return [f"{counts}: cannot be compared with published figures."]


def filled(rows: Iterable[_RowT], path: Path) -> list[_RowT]:
    """Return the rows of a file. RAISES (ValueError): if it has none."""
    rows = list(rows)
    if not rows:
        raise ValueError(Errors.NO_PAIRS.format(path=path, expected="one example per line"))
    return rows


def indices_by_name(names: Sequence[str]) -> dict[str, numpy.ndarray]:
    """Return where each name stands, int (n,) each, in the order in which they first occur."""
    each = numpy.array(names)
    return {name: numpy.flatnonzero(each == name) for name in dict.fromkeys(names)}


def digests(paths: Iterable[Path], root: Path) -> dict[str, str]:
    """Return the SHA-256 of each file by its path below the root."""
    return {path.relative_to(root).as_posix(): file_digest(path) for path in sorted(paths)}


def sklearn_module(name: str, task: str) -> ModuleType:
    """Return a module of scikit-learn. RAISES (ImportError): if it is not installed; the message names the task."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{task} needs scikit-learn. Install it: pip install 'spacy-sbert[evaluation]'.") from error


_CLASSIFIERS = ("lr", "mlp")
_MOST_RESAMPLES = 1_000_000  # a limit of an interval is then known to a thousandth of its width


@dataclass(frozen=True)
class Settings:
    """What is computed of the vectors.

    normalizations: scalings of the vectors, each reported: "none", "zscore", "unit", "zscore_unit", see Variant.
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
    bootstrap: Annotated[int, Field(ge=0, le=_MOST_RESAMPLES)] = 1000
    classifiers: tuple[str, ...] = _CLASSIFIERS
    trained_on: tuple[str, ...] = ()
    any_count: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        for name, expected in (("normalizations", NORMALIZATIONS), ("classifiers", _CLASSIFIERS)):
            for value in getattr(self, name):
                if value not in expected:
                    raise ValueError(
                        f"Unknown value '{value}' among the {name} of the evaluation: expected some of "
                        f"{', '.join(expected)}."
                    )
        for size in self.sizes:
            parse_size(size)
        for name in ("normalizations", "sizes", "seeds", "classifiers"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise ValueError(
                    f"The {name} of the evaluation are '{', '.join(map(str, values))}': expected at least "
                    "one, and none twice."
                )

    @property
    def variants(self) -> list[Variant]:
        """Return every size with every normalisation; the first is the one that tables show."""
        return [Variant(normalization, size) for size in self.sizes for normalization in self.normalizations]

    def seeds_of(self, variant: Variant) -> tuple[int, ...]:
        """Return the seeds with which a variant is fitted: the first alone unless it is random."""
        return self.seeds if variant.is_random else self.seeds[:1]

    def touched(self, note: str, *beginnings: str) -> list[str]:
        """Return the note with the data sets of `trained_on` whose names begin so; none without any."""
        names = ", ".join(name for name in self.trained_on if name.lower().startswith(beginnings))
        return [note.format(names)] if names else []

    def that_fit(self, rows: int, width: int) -> tuple["Settings", list[str]]:
        """Return the settings without the sizes that so many vectors cannot be brought to, and a note on these.

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
        """Return the settings as results hold them."""
        facts = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return cast(SettingsFacts, facts)


Progress = Callable[[Sequence[Any], str], Iterable[Any]]  # items and what is done, to the items behind a bar


@dataclass(frozen=True)
class Run:
    """What a task works with.

    root: the folder of all data.
    encode: from texts (n strings) to vectors, float32 (n, width), see VectorStore. Its argument fit_on is what a source
        that learns from the corpus may see (idf, principal components): training texts, by default the texts.
    settings: how to evaluate. progress: a bar for long work.
    nlp: the pipeline where the source of the vectors is one, for tasks on more than vectors (heads).
    source: what gives the vectors, for tasks on how it does (speed).
    """

    root: Path
    encode: Callable[..., numpy.ndarray]
    settings: Settings
    progress: Progress
    nlp: Language | None = None
    source: Source | None = None


class Task:
    """One data set and what is measured on it.

    name: in results and tables, such as "STS12".
    suite: what asks for it, such as "sts".
    depends_on: the settings that its scores depend on, beside model, data, versions and device: names of fields of
        Settings; None for what is measured anew each time.
    """

    name: str
    suite: str
    depends_on: tuple[str, ...] | None = ("normalizations", "sizes", "seeds", "bootstrap", "trained_on", "any_count")

    def find(self, root: Path) -> list[Path]:
        """Return the files that are read. RAISES (MissingData): if they are not there."""
        raise NotImplementedError

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
        raise NotImplementedError


def score_variants(settings: Settings, fit_rows: numpy.ndarray, score: Callable[[Transform], Scores]) -> list[Entry]:
    """Score every variant; random ones as the mean over the seeds.

    fit_rows (float (n, width)): what moments and components are taken of, see Variant.fit.
    score (Callable): from a transform of vectors to the scores of what it transforms.
    RETURNS (list): as Task.run's "variants".
    """
    return [
        entry_of(variant, [score(variant.fit(fit_rows, seed)) for seed in settings.seeds_of(variant)])
        for variant in settings.variants
    ]


def entry_of(variant: Variant, scores: Sequence[Scores]) -> Entry:
    """Return the entry of a variant for results: the mean of the scores of each seed, and if random the deviation."""
    entry: Entry = {"normalization": variant.normalization, "size": variant.size, "scores": over_seeds(scores, mean)}
    if variant.is_random:
        entry["deviation"] = over_seeds(scores, deviation)
    return entry


def over_seeds(each: Sequence[Any], reduce: Callable[[Sequence[float]], float | None]) -> Any:  # noqa: ANN401 (nests)
    """Reduce equal nests of numbers leaf by leaf; a leaf that is None for one seed is None."""
    if isinstance(each[0], dict):
        return {key: over_seeds([one[key] for one in each], reduce) for key in each[0]}
    return None if any(value is None for value in each) else reduce(each)


def mean(values: Sequence[float]) -> float:
    """Return sum_i x_i / n, for over_seeds."""
    return values[0] if len(values) == 1 else float(numpy.mean(values))


def deviation(values: Sequence[float]) -> float | None:
    """Return sqrt(sum_i (x_i - mean)^2 / (n - 1)), for over_seeds; None for a single seed."""
    return float(numpy.std(values, ddof=1)) if len(values) > 1 else None


_CHUNK = 1024  # texts encoded and saved at once: what an interruption may lose
_KEY = 16  # bytes of the digest of a text


class VectorStore:
    """Vectors of texts, each distinct text encoded once, and kept in a folder; called as Run.encode."""

    def __init__(self, source: Source, folder: Path | None, progress: Progress):
        """Keep the vectors of a source in a folder (Path), None to keep them in memory alone."""
        self.source = source
        made_by = digest_of_parts(source.digest, versions(), device())
        self.folder = None if folder is None else folder / f"vectors-{made_by[:_KEY]}"
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
        """Return the vectors of n texts, float32 (n, width); fit_on: see Run."""
        distinct = list(dict.fromkeys(texts))
        if self.source.learns:
            self.encoded += len(distinct)
            rows = self.source.encode(distinct, list(dict.fromkeys(texts if fit_on is None else fit_on)))
            self.width = rows.shape[1]
            number = {text: i for i, text in enumerate(distinct)}
            return rows[[number[text] for text in texts]]
        # by length: batches of texts of like length waste no work on padding
        new = sorted((text for text in distinct if _key(text) not in self.place), key=len, reverse=True)
        for start in self.progress(range(0, len(new), _CHUNK), "encoding") if new else []:
            chunk = new[start : start + _CHUNK]
            self._keep(chunk, self.source.encode(chunk, ()).astype("float32", copy=False))
        places = [self.place[_key(text)] for text in texts]
        return numpy.stack([self.shards[shard][row] for shard, row in places])

    def _keep(self, texts: Sequence[str], vectors: numpy.ndarray) -> None:
        keys = numpy.frombuffer(b"".join(map(_key, texts)), dtype="uint8").reshape(-1, _KEY)
        self.encoded += len(texts)
        self._add(keys, vectors)
        if self.folder is not None:
            # a name of its own, so that processes may share the folder
            path = self.folder / f"{hashlib.sha256(keys.tobytes()).hexdigest()[:_KEY]}.npz"
            write_arrays(path, {"keys": keys, "vectors": vectors})

    def _add(self, keys: numpy.ndarray, vectors: numpy.ndarray) -> None:
        self.width = self.width or vectors.shape[1]
        self.place.update((key.tobytes(), (len(self.shards), row)) for row, key in enumerate(keys))
        self.shards.append(vectors)


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf8")).digest()[:_KEY]


def _read(path: Path) -> tuple[numpy.ndarray, numpy.ndarray]:
    arrays = read_arrays(path, {"keys": ("uint8", 2), "vectors": ("float32", 2)}, message=Errors.BAD_CACHE)
    keys, vectors = arrays["keys"], arrays["vectors"]
    if keys.shape != (len(vectors), _KEY):
        raise ValueError(Errors.BAD_CACHE.format(path=path, reason="arrays of another shape"))
    return keys, vectors
