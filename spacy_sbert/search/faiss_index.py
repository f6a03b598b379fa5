"""Indexes of FAISS by inner product: kinds, how they are built, and whether others changed them."""

import hashlib
from collections.abc import Iterator
from itertools import chain
from types import ModuleType
from typing import Any, Literal
from weakref import ref

import numpy
from numpy.typing import ArrayLike

from ..arrays import checked
from ..bulk import StoredVectors
from ..errors import Errors, import_extra
from ..files.checksum import digest_of_stream
from ..similarity import unit_length
from ..validation import check
from .exact import Best, check_widths, slices

Rows = numpy.ndarray | StoredVectors
_CHANGED = (
    "The FAISS index {reason}: add, remove_ids and reset of FAISS leave texts, ids and equal "
    "vectors as they were. Build an index of the new vectors."
)
Kind = Literal["flat", "hnsw", "ivf", "ivfpq"]
# Kinds that VectorIndex.build makes; build_ivfpq makes "ivfpq"
BuiltKind = Literal["flat", "hnsw", "ivf"]
# The class of FAISS that each kind is
_CLASSES = {
    "flat": "IndexFlat",
    "hnsw": "IndexHNSWFlat",
    "ivf": "IndexIVFFlat",
    "ivfpq": "IndexIVFPQ",
}
_BLOCK_ROWS = 2**14
# How many links a vector has to others, in each layer
_HNSW_LINKS = 32
# How many candidates there are for links
_HNSW_BUILD = 80
# How many candidates there are for the nearest: recall@10 of 0.99 among 100,000 sentences
_HNSW_SEARCH = 128
# How many vectors a list is trained on; FAISS asks for 39 at least
_IVF_TRAINING = 64
# How many vectors of a stream its lists are trained on
_IVF_STREAMED = 2**16
# One list of so many is searched: recall@10 of 0.97 among 100,000 sentences
_IVF_PROBED = 12
# How much the length of a vector may differ from 1
_ROUNDED = 1e-3


def import_faiss() -> ModuleType:
    """Return FAISS. RAISES (ImportError): if it is not installed."""
    return import_extra("faiss", "An index needs FAISS", "search")


def is_of_kind(index: Any, kind: Kind) -> bool:
    """Return whether an index is what the kind says, by inner product."""
    return isinstance(index, getattr(import_faiss(), _CLASSES[kind])) and index.metric_type == 0


def copied_index(index: Any, kind: Kind) -> Any:
    """Return a copy of an index of FAISS, which nobody else can change.

    RAISES (ValueError): if it is no such index.
    """
    check("kind", kind, Kind)
    if not is_of_kind(index, kind):
        raise ValueError(
            f"A {type(index).__name__} is no index of the kind {kind}: expected a "
            f"faiss.{_CLASSES[kind]} by inner product, whose similarities are cosines. Build one: "
            "VectorIndex.build(vectors)."
        )
    _check_lengths(index, kind)
    return import_faiss().clone_index(index)


def _check_lengths(index: Any, kind: Kind) -> None:
    """Raise ValueError if a vector in an index is not of length 1: its products are no cosines."""
    if kind == "ivfpq":
        # The codes of vectors are rough
        return
    start = 0
    for block in _blocks_of(index):
        norms = numpy.linalg.norm(block, axis=1)
        is_other = (norms > 0) & (abs(norms - 1) > _ROUNDED)
        if is_other.any():
            first = int(is_other.argmax())
            raise ValueError(
                f"The FAISS index holds vectors of other lengths than 1 (number {start + first}: "
                f"{norms[first]:.3g}), whose products are no cosines. Scale them before they are "
                "added: faiss.normalize_L2(vectors)."
            )
        start += len(block)


def check_numbers(index: Any, kind: Kind) -> None:
    """Raise ValueError if the vectors of an index are not numbered from 0 without a gap.

    FAISS finds a vector by its number, by which its text and id are looked up. What is removed from
    lists leaves a gap; flat indexes number anew, and graphs remove nothing.
    """
    if kind not in ("ivf", "ivfpq"):
        return
    start = 0
    for block in _blocks_of(index):
        is_missing = numpy.isnan(block[:, 0])
        if is_missing.any():
            raise ValueError(
                f"The FAISS index has no vector of the number {start + int(is_missing.argmax())}, "
                "so texts and ids would be those of other vectors. Build it again of the vectors "
                "that stay: VectorIndex.build(vectors, texts=texts)."
            )
        start += len(block)


def _digest_of_vectors(index: Any) -> str:
    """Return a digest of the vectors in an index, in their order."""
    return digest_of_stream(block.tobytes() for block in _blocks_of(index))


def _blocks_of(index: Any) -> Iterator[numpy.ndarray]:
    """Yield the vectors in an index, float32 (b, width), NaN where a number has no vector."""
    for part in slices(index.ntotal, _BLOCK_ROWS):
        # FAISS writes nothing for a number that no vector of a list has
        rows = numpy.full((part.stop - part.start, index.d), numpy.nan, dtype="float32")
        yield index.reconstruct_n(part.start, len(rows), rows)


def unit_blocks(vectors: Rows | Iterator[ArrayLike]) -> Iterator[numpy.ndarray]:
    """Yield blocks of vectors of length 1, float32 (b, width)."""
    if isinstance(vectors, Iterator):
        blocks: Iterator[ArrayLike] = vectors
    else:
        blocks = (vectors[part] for part in slices(len(vectors), _BLOCK_ROWS))
    start = 0
    width = 0
    for block in blocks:
        rows = unit_length(checked(block, f"vectors from row {start} on"))
        start += len(rows)
        width = width or rows.shape[1]
        check_widths(width, rows.shape[1])
        yield rows


def build_index(
    kind: BuiltKind, vectors: Rows | Iterator[ArrayLike]
) -> tuple[Any, numpy.ndarray | None]:
    """Return an index of FAISS of vectors, and the place of each in it if equal ones are once.

    RAISES (ValueError): if there is no vector.
    """
    faiss = import_faiss()
    blocks = unit_blocks(vectors)
    first = next(blocks, None)
    if first is None:
        raise ValueError(Errors.NOT_ROWS.format(name="vectors", given=(0,)))
    blocks = chain([first], blocks)
    width = first.shape[1]
    places: list[int] = []
    if kind == "flat":
        index = faiss.IndexFlatIP(width)
    elif kind == "hnsw":
        index = _empty_graph(width)
        blocks = _distinct(blocks, places)
    elif isinstance(vectors, Iterator):
        sample, blocks = _first_vectors(blocks)
        index = _trained_ivf(sample, _n_lists(len(sample)))
    else:
        n_lists = _n_lists(len(vectors))
        index = _trained_ivf(_drawn_vectors(vectors, _IVF_TRAINING * n_lists), n_lists)
    for block in blocks:
        index.add(block)
    if len(places) > index.ntotal:
        return index, numpy.array(places)
    return index, None


def _empty_graph(width: int) -> Any:
    faiss = import_faiss()
    index = faiss.IndexHNSWFlat(width, _HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = _HNSW_BUILD
    index.hnsw.efSearch = _HNSW_SEARCH
    return index


def _distinct(blocks: Iterator[numpy.ndarray], places: list[int]) -> Iterator[numpy.ndarray]:
    """Yield the vectors that are equal to none before, float32 (b, width).

    In a graph of neighbours equal vectors would have links to one another only, and lead nowhere
    else.

    places (list of int): the number of each vector among those yielded is appended.
    """
    known: dict[bytes, int] = {}
    for block in blocks:
        new: list[int] = []
        # -0 is 0
        for i, row in enumerate(block + numpy.float32(0)):
            digest = hashlib.blake2b(row.data, digest_size=16).digest()
            if digest not in known:
                known[digest] = len(known)
                new.append(i)
            places.append(known[digest])
        if new:
            yield block[new]


def _n_lists(n: int) -> int:
    """Return how many lists n vectors get: 4 sqrt(n), as FAISS advises, if they can be trained."""
    return max(1, min(int(4 * n**0.5), n // _IVF_TRAINING))


def _first_vectors(
    blocks: Iterator[numpy.ndarray],
) -> tuple[numpy.ndarray, Iterator[numpy.ndarray]]:
    """Return the first vectors of a stream, on which lists are trained, and all blocks."""
    held: list[numpy.ndarray] = []
    n = 0
    for block in blocks:
        held.append(block)
        n += len(block)
        if n >= _IVF_STREAMED:
            break
    return numpy.concatenate(held), chain(held, blocks)


def _drawn_vectors(vectors: Rows, count: int) -> numpy.ndarray:
    """Return vectors drawn from all, of length 1."""
    n = len(vectors)
    drawn = numpy.random.default_rng(0).choice(n, min(n, count), replace=False)
    return unit_length(checked(vectors[numpy.sort(drawn)], "vectors"))


def _trained_ivf(sample: numpy.ndarray, n_lists: int) -> Any:
    """Return an empty index whose lists are trained on a sample."""
    faiss = import_faiss()
    width = sample.shape[1]
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, n_lists, faiss.METRIC_INNER_PRODUCT)
    index.train(sample)
    index.nprobe = min(n_lists, max(8, n_lists // _IVF_PROBED))
    return index


class FaissIndex:
    """Index of FAISS that may be handed out, and so changed by others.

    raw: the index, to which nothing else refers. kind (str): what it is.
    """

    def __init__(self, raw: Any, kind: Kind):
        self.raw = raw
        self.kind = kind
        # The object by which it was handed out; it ends when nobody has it
        self._lent: ref[Any] | None = None
        # Whether it was handed out since its vectors were checked
        self._was_lent = False
        # The digest of the vectors that its owner knows, once it was handed out
        self._digest: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Nobody has a copy
        return {**vars(self), "_lent": None}

    @property
    def is_lent(self) -> bool:
        """Whether somebody has the index."""
        return self._lent is not None and self._lent() is not None

    def lend(self) -> Any:
        """Return the index, the same object as long as it is kept."""
        self._note_vectors()
        lent = self._lent() if self._lent is not None else None
        if lent is None:
            # Another object of Python for the same index: when it ends, nobody can change the
            # index any more
            lent = import_faiss().downcast_index(self.raw)
            lent.referenced_objects = [self.raw]
            self._lent = ref(lent)
        return lent

    def replace(self, index: Any) -> None:
        """Take another index in place of this one; its vectors must be the same."""
        raw = copied_index(index, self.kind)
        self._note_vectors()
        self.raw = raw
        self._lent = None

    def accept_vectors(self, *, has_order: bool) -> None:
        """Take the vectors that the index has now as known.

        has_order (bool): whether something is known of each vector, such as its text.
        RAISES (ValueError): if so, and vectors were removed from its lists.
        """
        if has_order and self._digest is not None:
            check_numbers(self.raw, self.kind)
        self._digest = None
        if self.is_lent:
            self._note_vectors()

    def check_unchanged(self, expected: int, *, has_order: bool, is_saved: bool = False) -> None:
        """Raise ValueError if others changed the index so that it does not fit what is known of it.

        expected (int): how many vectors it should have. has_order (bool): whether something is
            known of each vector, such as its text. is_saved (bool): whether to check the vectors
            even if it was not handed out since the last time.
        """
        count = self.raw.ntotal
        if not count or count != expected:
            reason = f"holds {count} vectors, expected {expected or 'some'}"
            raise ValueError(_CHANGED.format(reason=reason))
        was_noted = self._digest is not None
        if self._was_lent or (is_saved and was_noted):
            if was_noted and has_order and _digest_of_vectors(self.raw) != self._digest:
                raise ValueError(_CHANGED.format(reason="holds other vectors than before"))
            _check_lengths(self.raw, self.kind)
            self._was_lent = self.is_lent

    def _note_vectors(self) -> None:
        """Note which vectors the index has before it is handed out, or replaced."""
        if self._digest is None:
            self._digest = _digest_of_vectors(self.raw)
        self._was_lent = True

    def search(self, rows: numpy.ndarray, k: int, is_live: numpy.ndarray | None = None) -> Best:
        """Return the k nearest of each query of length 1, also if lists or graphs show fewer.

        is_live (bool (ntotal,)): of a graph, which of its vectors are to be found; None for all.
        """
        faiss = import_faiss()
        # FAISS takes no integer of NumPy
        k = int(k)
        live = None
        every = None
        if is_live is not None and not is_live.all():
            selector = faiss.IDSelectorBitmap(numpy.packbits(is_live, bitorder="little"))
            # As many candidates as if there were no others
            candidates = int(self.raw.hnsw.efSearch / is_live.mean())
            live = faiss.SearchParametersHNSW(sel=selector, efSearch=candidates)
            every = faiss.SearchParameters(sel=selector)
        scores, indices = self.raw.search(rows, k, params=live)
        is_short = (indices < 0).any(axis=1)
        if not is_short.any():
            return scores, indices
        # All vectors are compared
        if self.kind == "hnsw":
            found = faiss.downcast_index(self.raw.storage).search(rows[is_short], k, params=every)
        else:
            every = faiss.SearchParametersIVF(nprobe=self.raw.nlist)
            found = self.raw.search(rows[is_short], k, params=every)
        scores[is_short], indices[is_short] = found
        return scores, indices

    def add(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Add vectors of length 1, and return the place of each, int64 (n,).

        In a graph, a vector that is equal to one before it has the place of that one.
        """
        start = self.raw.ntotal
        if self.kind != "hnsw":
            self.raw.add(rows)
            return numpy.arange(start, self.raw.ntotal)
        _, nearest = self.raw.search(rows, 1)
        places = nearest[:, 0]
        is_new = (self.raw.reconstruct_batch(places) != rows).any(axis=1)
        new_places: list[int] = []
        for block in _distinct(iter([rows[is_new]]), new_places):
            self.raw.add(block)
        places[is_new] = numpy.array(new_places, dtype="int64") + start
        return places

    def remove(self, is_kept: numpy.ndarray) -> None:
        """Remove vectors from a flat index or from lists, and number the others from 0 on.

        is_kept (bool (ntotal,)): whether each stays.
        """
        self.raw.remove_ids(numpy.flatnonzero(~is_kept))
        if self.kind == "flat":
            return
        faiss = import_faiss()
        new_numbers = numpy.cumsum(is_kept) - 1
        lists = faiss.downcast_InvertedLists(self.raw.invlists)
        for number in range(lists.nlist):
            size = lists.list_size(number)
            # An empty list may point to nothing
            if size:
                numbers = faiss.rev_swig_ptr(lists.get_ids(number), size)
                numbers[:] = new_numbers[numbers]

    def rebuild(self, places: numpy.ndarray) -> None:
        """Make a graph of the vectors at these places only, in their order."""
        graph = _empty_graph(self.raw.d)
        graph.hnsw.efSearch = self.raw.hnsw.efSearch
        for part in slices(len(places), _BLOCK_ROWS):
            graph.add(self.raw.reconstruct_batch(places[part]))
        self.raw = graph
        self._lent = None
