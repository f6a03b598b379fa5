"""The fit of a table to a teacher: weights by frequency, and a linear map by least squares."""

from collections.abc import Sequence
from itertools import chain

import numpy
from scipy import sparse
from tokenizers import Tokenizer

from ...similarity.principal_components import principal_components

SMOOTHING = 1e-2  # a; what the fit leaves of the teacher's vectors hardly changes above it, and grows below
# Of a teacher's vectors. They may lie in a plane, as layer normalisation has it: what leads out of it is rounding.
ROUNDING = numpy.finfo("float32").eps


def wordpiece_counts(tokenizer: str, texts: Sequence[str], n_wordpieces: int) -> sparse.csr_array:
    """How often each wordpiece stands in each text: int64 (texts, wordpieces); tokenizer (str): its JSON."""
    encodings = Tokenizer.from_str(tokenizer).encode_batch_fast(list(texts), add_special_tokens=False)
    lengths = numpy.array([len(encoding) for encoding in encodings], dtype="int64")
    ids = numpy.fromiter(chain.from_iterable(encoding.ids for encoding in encodings), dtype="int64")
    rows = numpy.repeat(numpy.arange(len(texts)), lengths)
    return sparse.csr_array((numpy.ones(len(ids), dtype="int64"), (rows, ids)), shape=(len(texts), n_wordpieces))


def frequency_weights(counts: numpy.ndarray) -> numpy.ndarray:
    """How much each wordpiece counts: a / (a + p), p its share of all.

    counts (int64 (wordpieces,)). RETURNS (float64 (wordpieces,)): a = 0.01.
    SOURCE: Arora et al. 2017, section 3, equation 3.
    """
    return SMOOTHING / (SMOOTHING + counts / counts.sum())


def principal_axes(vectors: numpy.ndarray, size: int) -> numpy.ndarray:
    """float64 (width, size): the principal axes of vectors, float (n, width); the identity where size is width."""
    if size == vectors.shape[1]:
        return numpy.eye(size)
    return principal_components(vectors)[1].axes[:size].T


def least_squares(table: numpy.ndarray, counts: sparse.csr_array, targets: numpy.ndarray) -> numpy.ndarray:
    """The linear map with which the means of texts come nearest to their targets.

    R = argmin ||M R - T||^2,   M_s = sum_w c_sw E_w / sum_w c_sw

    table (float64 (wordpieces, width)): E. counts (int64 (texts, wordpieces)): c, without texts that have none.
    targets (float (texts, size)): T.
    RETURNS (float64 (width, size)): R, that of least norm where there are many.
    """
    means = (counts @ table) / counts.sum(axis=1)[:, None]
    return numpy.linalg.lstsq(means, targets, rcond=ROUNDING * table.shape[1])[0]
