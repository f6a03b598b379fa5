"""Variants of the vectors that tasks score: sizes and normalizations, and the settings that name
them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy

from spacy_sbert.evaluation.protocols import nli, sts, triplets
from spacy_sbert.evaluation.results import Json
from spacy_sbert.evaluation.task import Run, Settings, Task
from spacy_sbert.similarity import principal_components, unit_length
from spacy_sbert.validation import MAX_DIMENSIONS

Transform = Callable[[numpy.ndarray], numpy.ndarray]
OWN = "own"
_PCA = "pca"
_UP = "up"
NORMALIZATIONS = ("none", "zscore", "unit", "zscore_unit")
CLASSIFIERS = ("lr", "mlp")
# The part of the largest deviation that float32 vectors leave of a number that never varies
_ROUNDING = 1e-6


class UnfitSizeError(ValueError):
    """A size that cannot be had from so many vectors of their width: shape."""

    def __init__(self, size: str, shape: tuple[int, ...]):
        self.shape = shape
        super().__init__(
            f"Size '{size}' cannot be made from {shape[0]} vectors of width {shape[1]}."
        )


@dataclass(frozen=True)
class Variant:
    """Vectors at one size, then with one normalization.

    normalization: "none"; "zscore", each number less its mean, over its standard deviation; "unit",
        length 1; "zscore_unit", both in this order. A number that never varies is only centered.
    size: "own"; "pca-D", the first D principal components; "up-D", random up-projection to D
        numbers.
    SOURCE: Eger et al. 2019, Pitfalls in the Evaluation of Sentence Embeddings, sections 3.1 (size)
        and 3.3 (normalization); Poerner et al. 2020, section 4 (up-projection).
    """

    normalization: str = "none"
    size: str = OWN

    @property
    def target(self) -> tuple[str, int]:
        """The kind of the size, "own", "pca" or "up", and D.

        RAISES (ValueError): if it is another.
        """
        if self.size == OWN:
            return OWN, 0
        kind, _, number = self.size.partition("-")
        # int() refuses very many digits
        width = int(number) if number.isdecimal() and len(number) < 9 else 0
        if kind in (_PCA, _UP) and 0 < width <= MAX_DIMENSIONS:
            return kind, width
        raise ValueError(
            f"Unknown size '{self.size}': expected own, pca-D or up-D (D at most "
            f"{MAX_DIMENSIONS}), such as pca-128."
        )

    def fits(self, rows: int, width: int) -> bool:
        """Return whether so many vectors of this width can be brought to the size."""
        kind, wanted = self.target
        if kind == _UP:
            return wanted >= width
        return wanted <= min(rows, width)

    @property
    def is_random(self) -> bool:
        """Whether it depends on a seed, so that scores are means over several."""
        return self.target[0] == _UP

    def fit(self, rows: numpy.ndarray, seed: int) -> Transform:
        """Take moments and components of vectors, and return the transform to this variant.

        rows (float (n, width)): all 2n rows of pairs compared by cosine; only training data if
            something is learned.
        seed (int): of an up-projection.
        RETURNS (Callable): vectors, float (m, width), to this variant, (m, size): float64, or as
            they are if neither size nor normalization changes them, as sentence-transformers
            compares them (see "Equal pairs" in docs/evaluation.md).
        RAISES (UnfitSizeError): if the size cannot be had from this width or this number of rows.
        """
        if not self.fits(*rows.shape):
            raise UnfitSizeError(self.size, rows.shape)
        resize = self._resize(rows, seed)
        normalize = self._normalize(resize(rows))
        return lambda vectors: normalize(resize(vectors))

    def _resize(self, rows: numpy.ndarray, seed: int) -> Transform:
        kind, wanted = self.target
        if kind == OWN:
            return lambda vectors: vectors
        if kind == _UP:
            bound = rows.shape[1] ** -0.5
            # D x d_j
            matrix = numpy.random.default_rng(seed).uniform(-bound, bound, (wanted, rows.shape[1]))
            return lambda vectors: vectors @ matrix.T
        mean, components = principal_components(rows)
        return lambda vectors: (vectors - mean) @ components.axes[:wanted].T

    def _normalize(self, rows: numpy.ndarray) -> Transform:
        if self.normalization == "none":
            return lambda vectors: vectors
        if self.normalization == "unit":
            return lambda vectors: unit_length(vectors.astype("float64", copy=False))
        mean = rows.mean(axis=0, dtype="float64")
        deviation = rows.std(axis=0, dtype="float64")
        deviation[deviation <= _ROUNDING * deviation.max()] = 1.0
        if self.normalization == "zscore":
            return lambda vectors: (vectors - mean) / deviation
        return lambda vectors: unit_length((vectors - mean) / deviation)

    def entry(self, scores: Sequence[Json]) -> Json:
        """Return the entry in results: the means of the scores of each seed, and if it is random
        the deviations.
        """
        means, deviations = over_seeds(scores)
        entry = {"normalization": self.normalization, "size": self.size, "scores": means}
        if self.is_random:
            entry["deviation"] = deviations
        return entry


def over_seeds(each: Sequence[Any]) -> tuple[Any, Any]:
    """Return the means and the standard deviations of equal nests of numbers, leaf by leaf.

    sqrt(sum_i (x_i - mean)^2 / (n - 1)), None for a single seed; both are None if a number is None
    for one seed.
    """
    if isinstance(each[0], dict):
        means: Json = {}
        deviations: Json = {}
        for key in each[0]:
            means[key], deviations[key] = over_seeds([scores[key] for scores in each])
        return means, deviations
    if any(value is None for value in each):
        return None, None
    deviation = None
    if len(each) > 1:
        deviation = float(numpy.std(each, ddof=1))
    return float(numpy.mean(each)), deviation


def variants_of(settings: Settings) -> list[Variant]:
    """Return every size with every normalization; the first is the one that tables show."""
    return [
        Variant(normalization, size)
        for size in settings.sizes
        for normalization in settings.normalizations
    ]


def seeds_of(settings: Settings, variant: Variant) -> tuple[int, ...]:
    """Return the seeds with which a variant is fitted: only the first unless it is random."""
    if variant.is_random:
        return settings.seeds
    return settings.seeds[:1]


def score_variants(
    settings: Settings, fit_rows: numpy.ndarray, score: Callable[[Transform], Json]
) -> list[Json]:
    """Score every variant; random ones as the mean over the seeds.

    fit_rows (float (n, width)): what moments and components are taken of, see Variant.fit.
    score (Callable): from a transform of vectors to the scores of what it transforms.
    RETURNS (list): as Task.run's "variants".
    """
    entries: list[Json] = []
    for variant in variants_of(settings):
        transforms = [variant.fit(fit_rows, seed) for seed in seeds_of(settings, variant)]
        entries.append(variant.entry([score(transform) for transform in transforms]))
    return entries


def that_fit(settings: Settings, rows: int, width: int) -> tuple[Settings, list[str]]:
    """Return the settings without the sizes that so many vectors cannot be brought to, and a note
    on these.
    """
    left = tuple(size for size in settings.sizes if Variant(size=size).fits(rows, width))
    gone = ", ".join(size for size in settings.sizes if size not in left)
    if not left:
        raise ValueError(
            f"None of the sizes {gone} can be made from {rows} vectors of width {width}: up-D is "
            "at least as wide, and pca-D has at most the smaller number. Add the size own."
        )
    notes = []
    if gone:
        notes.append(f"Not measured, of {rows} vectors of width {width}: {gone}.")
    return replace(settings, sizes=left), notes


class VariedTask(Task):
    """A task that scores every variant of the vectors, and knows both classifiers."""

    def check(self, settings: Settings) -> None:
        """Check the settings. RAISES (ValueError): for an unknown normalization, size or
        classifier.
        """
        for name, known in (("normalizations", NORMALIZATIONS), ("classifiers", CLASSIFIERS)):
            values = getattr(settings, name)
            if not {*values} <= {*known}:
                given = ", ".join(values)
                expected = ", ".join(known)
                raise ValueError(
                    f"The {name} of the evaluation are '{given}': expected some of {expected}."
                )
        for variant in variants_of(settings):
            # An unknown size is an error
            _ = variant.target


class EveryVariant(VariedTask):
    """A task of plain vectors, which all are encoded at once, for every variant of them.

    Moments and components are taken of all of them: of pairs, of all 2n rows. Intervals and
    predictions are of the first variant and seed.
    """

    def __init__(self, task: Task):
        self.task = task
        self.name = task.name
        self.suite = task.suite

    def find(self, root: Path) -> list[Path]:
        return self.task.find(root)

    def run(self, run: Run) -> Json:
        settings = replace(run.settings, normalizations=("none",), sizes=(OWN,))
        results: list[Json] = []
        variants: list[Json] = []
        notes: list[str] = []
        for variant in variants_of(run.settings):
            scores: list[Json] = []
            try:
                for seed in seeds_of(run.settings, variant):
                    encode = _varied(run, variant, seed)
                    result = self.task.run(replace(run, settings=settings, encode=encode))
                    results.append(result)
                    scores.append(result["variants"][0]["scores"])
                    # Intervals are of the first
                    settings = replace(settings, bootstrap=0)
            except UnfitSizeError as error:
                _, notes = that_fit(run.settings, *error.shape)
            else:
                variants.append(variant.entry(scores))
        return {**results[0], "variants": variants, "notes": [*notes, *results[0]["notes"]]}


def _varied(run: Run, variant: Variant, seed: int) -> Callable[..., numpy.ndarray]:
    """Return what encodes texts as a variant of their vectors, fitted to them."""

    def encode(texts: Sequence[str], **kwargs: Any) -> numpy.ndarray:
        rows = run.encode(texts, **kwargs)
        return variant.fit(rows, seed)(rows)

    return encode


# Heads of the suite nli have their own vectors
TASKS = tuple(
    EveryVariant(task) for task in (*sts.TASKS, *triplets.TASKS, *nli.TASKS) if task.suite != "nli"
)
