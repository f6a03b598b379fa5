"""Indexes of FAISS by inner product: kinds, how they are built, and whether others changed them."""

import hashlib
from collections.abc import Iterable, Iterator
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
from ..similarity import check_widths, unit_length
from ..validation import check
from .exact import Best, slices
from .places import Places

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
# The least share of vectors in a graph that are not deleted; it is built again with fewer
_LIVE = 2 / 3
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


def build_index(kind: BuiltKind, vectors: Rows | Iterator[ArrayLike]) -> "FaissIndex":
    """Return an index of vectors.

    RAISES (ValueError): if there is no vector.
    """
    faiss = import_faiss()
    blocks = unit_blocks(vectors)
    first = next(blocks, None)
    if first is None:
        raise ValueError(Errors.NOT_ROWS.format(name="vectors", given=(0,)))
    blocks = chain([first], blocks)
    width = first.shape[1]
    if kind == "flat":
        raw = faiss.IndexFlatIP(width)
    elif kind == "hnsw":
        raw = faiss.IndexHNSWFlat(width, _HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
        raw.hnsw.efConstruction = _HNSW_BUILD
        raw.hnsw.efSearch = _HNSW_SEARCH
    elif isinstance(vectors, Iterator):
        sample, blocks = _first_vectors(blocks)
        raw = _trained_ivf(sample, _n_lists(len(sample)))
    else:
        n_lists = _n_lists(len(vectors))
        raw = _trained_ivf(_drawn_vectors(vectors, _IVF_TRAINING * n_lists), n_lists)
    index = FaissIndex(raw, kind)
    index.add(blocks)
    return index


def _digests(rows: numpy.ndarray) -> list[bytes]:
    """Return a digest of each vector, the same of equal ones."""
    # -0 is 0
    return [hashlib.blake2b(row.data, digest_size=16).digest() for row in rows + numpy.float32(0)]


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
    """Index of FAISS with the places of rows in it, which may be handed out, and so changed.

    raw: the index, to which nothing else refers. kind (str): what it is. places (int64 (n,)): see
        VectorIndex.
    """

    def __init__(self, raw: Any, kind: Kind, places: numpy.ndarray | None = None):
        self.raw = raw
        self.kind = kind
        self._places: Places | None = None
        if places is not None:
            self._set_places(places)
        # How many vectors it must have, as something is known of each; None if any
        self._expected: int | None = None
        # The object by which it was handed out; it ends when nobody has it
        self._lent: ref[Any] | None = None
        # Whether it was handed out since its vectors were checked
        self._was_lent = False
        # The digest of the vectors that its owner knows, once it was handed out
        self._digest: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Nobody has a copy
        return {**vars(self), "_lent": None}

    def __len__(self) -> int:
        return len(self._places_of_rows())

    @property
    def places(self) -> numpy.ndarray | None:
        if self._places is None:
            return None
        return self._places.of_rows

    def _places_of_rows(self) -> numpy.ndarray:
        if self._places is None:
            return numpy.arange(self.raw.ntotal)
        return self._places.of_rows

    def _set_places(self, places: numpy.ndarray) -> None:
        count = int(self.raw.ntotal)
        self._places = None
        if not numpy.array_equal(places, numpy.arange(count)):
            self._places = Places(places, count)

    @property
    def _kept(self) -> Any:
        """The object that was handed out, if somebody still has it."""
        if self._lent is None:
            return None
        return self._lent()

    def lend(self) -> Any:
        """Return the index, the same object as long as it is kept."""
        self._note_vectors()
        lent = self._kept
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

    def accept_vectors(self, *, has_rows: bool) -> None:
        """Take the vectors that the index has now as known.

        has_rows (bool): whether something is known of each vector, such as its text.
        RAISES (ValueError): if so, and vectors were removed from its lists.
        """
        if has_rows and self._digest is not None:
            check_numbers(self.raw, self.kind)
        self._expected = None
        if self._places is not None:
            self._expected = self._places.count
        elif has_rows:
            self._expected = int(self.raw.ntotal)
        self._digest = None
        if self._kept is not None:
            self._note_vectors()

    def check_unchanged(self, *, is_saved: bool = False) -> None:
        """Raise ValueError if others changed the index so that it does not fit what is known of it.

        is_saved (bool): whether to check the vectors even if it was not handed out since the last
            time.
        """
        count = self.raw.ntotal
        if not count or self._expected not in (None, count):
            reason = f"holds {count} vectors, expected {self._expected or 'some'}"
            raise ValueError(_CHANGED.format(reason=reason))
        was_noted = self._digest is not None
        if self._was_lent or (is_saved and was_noted):
            is_known = was_noted and self._expected is not None
            if is_known and _digest_of_vectors(self.raw) != self._digest:
                raise ValueError(_CHANGED.format(reason="holds other vectors than before"))
            _check_lengths(self.raw, self.kind)
            self._was_lent = self._kept is not None

    def _note_vectors(self) -> None:
        """Note which vectors the index has before it is handed out, or replaced."""
        if self._digest is None:
            self._digest = _digest_of_vectors(self.raw)
        self._was_lent = True

    def search(self, queries: numpy.ndarray, k: int) -> Best:
        """Return the k nearest rows of each query of length 1, whatever lists or graphs show."""
        faiss = import_faiss()
        # FAISS takes no integer of NumPy
        n_found = int(k)
        live = None
        near = None
        if self._places is not None:
            is_live = self._places.n_rows > 0
            n_found = min(n_found, int(is_live.sum()))
            live = faiss.IDSelectorBitmap(numpy.packbits(is_live, bitorder="little"))
            # As many candidates as if there were no others
            candidates = int(self.raw.hnsw.efSearch / is_live.mean())
            near = faiss.SearchParametersHNSW(sel=live, efSearch=candidates)
        scores, found = self.raw.search(queries, n_found, params=near)
        is_short = (found < 0).any(axis=1)
        if is_short.any():
            scores[is_short], found[is_short] = self._search_all(queries[is_short], n_found, live)
        if self._places is None:
            return scores, found
        return self._places.best_rows(scores, found, k)

    def _search_all(self, queries: numpy.ndarray, k: int, live: Any) -> Best:
        """Compare all vectors of a graph that are live, or those of all lists."""
        faiss = import_faiss()
        if self.kind == "hnsw":
            vectors = faiss.downcast_index(self.raw.storage)
            return vectors.search(queries, k, params=faiss.SearchParameters(sel=live))
        return self.raw.search(queries, k, params=faiss.SearchParametersIVF(nprobe=self.raw.nlist))

    def vectors(self) -> numpy.ndarray:
        """Return the vector of each row, float32 (n, width)."""
        return self.raw.reconstruct_n(0, self.raw.ntotal)[self._places_of_rows()]

    def add(self, blocks: Iterable[numpy.ndarray]) -> None:
        """Add vectors of length 1, each block before the next one is made.

        In a graph of neighbours equal vectors would have links to one another only, and lead
        nowhere else. So it has them once.
        """
        known: dict[bytes, int] = {}
        if self.kind == "hnsw":
            stored = chain.from_iterable(map(_digests, _blocks_of(self.raw)))
            known = {digest: place for place, digest in enumerate(stored)}
        for block in blocks:
            if self.kind != "hnsw":
                self.raw.add(block)
                continue
            new: list[int] = []
            places = self._places_of_rows().tolist()
            for i, digest in enumerate(_digests(block)):
                if digest not in known:
                    known[digest] = self.raw.ntotal + len(new)
                    new.append(i)
                places.append(known[digest])
            self.raw.add(block[new])
            self._set_places(numpy.array(places))

    def keep(self, is_kept: numpy.ndarray) -> None:
        """Remove all other rows. A graph keeps their vectors until they are many.

        is_kept (bool (n,)): whether each stays.
        """
        places = self._places_of_rows()[is_kept]
        live, new_places = numpy.unique(places, return_inverse=True)
        if self.kind != "hnsw" or len(live) < _LIVE * self.raw.ntotal:
            vectors = self.raw.reconstruct_n(0, self.raw.ntotal)[live]
            # Lists stay trained
            self.raw.reset()
            self.raw.add(vectors)
            places = new_places
        self._set_places(places)
