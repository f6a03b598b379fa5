"""Scalings and sizes of vectors: what a comparison of encoders has to hold equal."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy

from ..similarity import principal_components, unit_length
from ..validation import MAX_DIMENSIONS

Transform = Callable[[numpy.ndarray], numpy.ndarray]
NORMALIZATIONS = ("none", "zscore", "unit", "zscore_unit")
_ROUNDING = 1e-6  # of the largest deviation: what float32 vectors leave of a number that never varies
OWN, _PCA, _UP = "own", "pca", "up"


@dataclass(frozen=True)
class Variant:
    """Vectors at one size, then with one normalisation.

    normalization: "none"; "zscore", each number less its mean, over its standard deviation; "unit", length 1;
        "zscore_unit", both in this order.
    size: "own"; "pca-D", the first D principal components; "up-D", random up-projection to D numbers.
    SOURCE: Eger et al. 2019, Pitfalls in the Evaluation of Sentence Embeddings, sections 3.1 (size) and 3.3
        (normalisation); Poerner et al. 2020, section 4 (up-projection).
    """

    normalization: str = "none"
    size: str = OWN

    def fits(self, rows: int, width: int) -> bool:
        """Return whether so many vectors of this width can be brought to the size."""
        kind, wanted = parse_size(self.size)
        return wanted >= width if kind == _UP else wanted <= min(rows, width)

    @property
    def is_random(self) -> bool:
        """Return whether it depends on a seed, so that scores are means over several."""
        return parse_size(self.size)[0] == _UP

    def fit(self, rows: numpy.ndarray, seed: int) -> Transform:
        """Take moments and components of vectors, and return the transform to this variant.

        rows (float (n, width)): all 2n rows of pairs compared by cosine; training data alone where something is
            learned.
        seed (int): of an up-projection.
        RETURNS (Callable): vectors, float (m, width), to this variant, (m, size): float64, or as they are where neither
            size nor normalisation changes them, as sentence-transformers compares them (see "Equal pairs" in
            docs/evaluation.md).
        RAISES (ValueError): if the size cannot be had from this width or this number of rows.
        """
        resize = _fit_size(self.size, rows, seed)
        normalize = _fit_normalization(self.normalization, resize(rows))
        return lambda vectors: normalize(resize(vectors))


def _fit_normalization(name: str, rows: numpy.ndarray) -> Transform:
    """Return a normalisation with the moments of the rows; a number that never varies is only centred."""
    if name == "none":
        return _unchanged
    if name == "unit":
        return lambda vectors: unit_length(vectors.astype("float64", copy=False))
    mean, deviation = rows.mean(axis=0, dtype="float64"), rows.std(axis=0, dtype="float64")
    deviation[deviation <= _ROUNDING * deviation.max()] = 1.0
    if name == "zscore":
        return lambda vectors: (vectors - mean) / deviation
    return lambda vectors: unit_length((vectors - mean) / deviation)


def _fit_size(size: str, rows: numpy.ndarray, seed: int) -> Transform:
    """Return a change of size: principal components of the rows, or a random up-projection; see Variant.fit."""
    kind, wanted = parse_size(size)
    width = rows.shape[1]
    if kind == OWN:
        return _unchanged
    if kind == _UP:
        if wanted < width:
            raise ValueError(
                f"Cannot up-project vectors of width {width} to size '{size}': expected at least up-{width}."
            )
        bound = width**-0.5
        matrix = numpy.random.default_rng(seed).uniform(-bound, bound, (wanted, width))  # d x d_j
        return lambda vectors: vectors @ matrix.T
    if wanted > min(rows.shape):
        raise ValueError(
            f"Cannot take '{size}' of {len(rows)} vectors of width {width}: there are no more components than "
            "the smaller of the two. Choose a smaller size."
        )
    mean, components = principal_components(rows)
    return lambda vectors: (vectors - mean) @ components.axes[:wanted].T


def parse_size(size: str) -> tuple[str, int]:
    """Return the kind and the width of a size. RAISES (ValueError): if it is not "own", "pca-D" or "up-D"."""
    kind, _, number = size.partition("-")
    if size == OWN:
        return OWN, 0
    if kind in (_PCA, _UP) and number.isdecimal() and len(number) < 9 and 0 < int(number) <= MAX_DIMENSIONS:
        return kind, int(number)
    raise ValueError(
        f"Unknown size '{size}': expected own, pca-D (D principal components) or up-D (random up-projection to "
        "D numbers, at most 65536), such as pca-128."
    )


def _unchanged(rows: numpy.ndarray) -> numpy.ndarray:
    return rows
