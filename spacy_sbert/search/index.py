"""Indexes of vectors: built, searched by cosine, saved and loaded."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from functools import cached_property
from html import escape
from itertools import islice, zip_longest
from pathlib import Path
from types import UnionType
from typing import Any

import numpy
from numpy.typing import ArrayLike

from ..arrays import as_rows
from ..bulk import PartVectors, StoredVectors
from ..pipeline.sbert import SentenceBert
from ..similarity import cosine, unit_length
from ..validation import Positive, check, one_column, short_repr, validated
from .exact import Best, check_widths, checked_queries, nearest
from .faiss_index import (
    BuiltKind,
    FaissIndex,
    Kind,
    build_index,
    check_numbers,
    copied_index,
    import_faiss,
)
from .identity import EncoderIdentity, check_same_encoder, identity_of
from .index_folder import (
    IndexManifest,
    IndexRow,
    read_index,
    read_index_rows,
    read_places,
    write_folder,
)

# The least cosine of a vector and the same one, made in another run or precision
_SAME = 0.999
# How many candidates of "ivfpq" there are for each vector wanted
_RESCORED = 10


def index_html(index: Sized, texts: Iterable[str]) -> str:
    """Return what a notebook shows of an index: its repr, and the beginnings of five texts."""
    rows: list[str] = []
    for number, text in enumerate(islice(texts, 5)):
        line = " ".join(text.split())
        if len(line) > 100:
            line = f"{line[:99]}…"
        rows.append(f"<tr><td>{number}</td><td dir=auto>{escape(line)}</td></tr>")
    html = f"<p>{escape(repr(index))}</p>"
    if rows:
        html += f"<table><tr><th>row</th><th>text</th></tr>{''.join(rows)}</table>"
    return html


class VectorIndex:
    """Vectors of length 1 in a FAISS index by inner product, which is their cosine similarity.

    index (faiss.Index): the index, which is copied.
    kind (str): "flat", "hnsw", "ivf", or "ivfpq" by build_ivfpq.
    encoder (EncoderIdentity): what made the vectors; None if not known.
    rows (Sequence[IndexRow]): text and id of each vector; None if there are none.
    places (int64 (n,)): of each vector its place in `index`, where equal ones are once; None if it
        has all of them.
    vectors (str), folder (str): of "ivfpq", the digest and the place of the stored vectors.
    """

    def __init__(
        self,
        index: Any,
        kind: Kind,
        *,
        encoder: EncoderIdentity | None = None,
        rows: Sequence[IndexRow] | None = None,
        vectors: str | None = None,
        folder: str | None = None,
        places: numpy.ndarray | None = None,
    ):
        if not isinstance(index, FaissIndex):
            index = FaissIndex(copied_index(index, kind), kind)
            if rows is not None:
                check_numbers(index.raw, kind)
        self._faiss: FaissIndex = index
        self.encoder = encoder
        self._places: numpy.ndarray | None = None
        if places is not None:
            self._places = places.copy()
            self._places.flags.writeable = False
        self.vectors = vectors
        self.folder = folder
        if encoder is not None:
            check_widths(self.width, encoder.width)
        self.rows = rows

    @property
    def index(self) -> Any:
        """The index of FAISS, as long as it is kept one object.

        The next search and each save find out whether its vectors were changed; while it is kept,
        each search does.
        """
        return self._faiss.lend()

    @index.setter
    def index(self, index: Any) -> None:
        self._faiss.replace(index)

    @property
    def kind(self) -> Kind:
        return self._faiss.kind

    @property
    def places(self) -> numpy.ndarray | None:
        return self._places

    @property
    def rows(self) -> Sequence[IndexRow] | None:
        return self._rows

    @rows.setter
    def rows(self, rows: Sequence[IndexRow | tuple[str | None, str | int | None]] | None) -> None:
        own = None
        if rows is not None:
            _check_row_count(len(rows), len(self))
            own = tuple(row if isinstance(row, IndexRow) else IndexRow(*row) for row in rows)
        # They are of the vectors that the index has now
        self._faiss.accept_vectors(has_order=own is not None)
        self._rows = own

    def __len__(self) -> int:
        if self.places is not None:
            return len(self.places)
        return int(self._faiss.raw.ntotal)

    def __repr__(self) -> str:
        text = f"{self.kind}: {len(self)} vectors of {self.width} numbers"
        if self.encoder is not None:
            text += f" by {self.encoder.name}"
        if self.rows is not None:
            text += ", with texts or ids"
        return f"VectorIndex({text})"

    def _repr_html_(self) -> str:
        shown = (str(row.id) if row.text is None else row.text for row in self.rows or ())
        return index_html(self, shown)

    @property
    def width(self) -> int:
        return int(self._faiss.raw.d)

    @classmethod
    def build(
        cls,
        vectors: ArrayLike | Iterator[ArrayLike],
        *,
        kind: BuiltKind = "flat",
        encoder: EncoderIdentity | SentenceBert | None = None,
        texts: Sequence[str] | None = None,
        ids: Sequence[str | int] | None = None,
    ) -> "VectorIndex":
        """Make an index of a collection.

        vectors (float array of shape (n, width), or an iterator of such): the collection, maybe
            memory-mapped, or blocks of it, so that it need not be in memory beside the index.
        kind (str): "flat", exact; "hnsw", a graph of neighbours, the quickest to search and slow to
            build; "ivf", lists of near vectors, of which those near the query are searched. The
            lists of blocks are trained on the first 65,536 vectors, those of an array on vectors
            drawn from all of it.
        encoder (EncoderIdentity or SentenceBert): what made the vectors, see `identify`.
        texts (Sequence[str]), ids (Sequence[str or int]): of each vector, saved beside them.
        RAISES (ValueError): if there is no vector, or shapes, counts, numbers or the kind are
            wrong. (ImportError): if FAISS is not installed.
        SOURCE: Malkov and Yashunin 2018 (hnsw); Jégou et al. 2011, section 4 (ivf); Douze et al.
            2024, FAISS.

        Example:
            index = VectorIndex.build(pipe.encode(texts), kind="hnsw", encoder=pipe, texts=texts)
            index.save("index")

        """
        check("kind", kind, BuiltKind)
        identity = identity_of(encoder)
        # Before blocks are made
        import_faiss()
        rows = _rows(texts, ids)
        if isinstance(vectors, StoredVectors):
            stored = EncoderIdentity.of(vectors)
            if identity is not None:
                check_same_encoder(stored, identity, vectors.name)
            identity = stored
        elif not isinstance(vectors, Iterator):
            vectors = as_rows(vectors, "vectors")
        if rows is not None and not isinstance(vectors, Iterator):
            _check_row_count(len(rows), len(vectors))
        index, places = build_index(kind, vectors)
        return cls(FaissIndex(index, kind), kind, encoder=identity, rows=rows, places=places)

    @validated
    def search(
        self,
        queries: ArrayLike,
        *,
        k: int,
        vectors: PartVectors | None = None,
        rescore: Positive = _RESCORED,
        encoder: EncoderIdentity | None = None,
    ) -> Best:
        """Find the k vectors most similar to each query, the best first.

        They are those of `nearest`, but not exactly unless the index is flat.

        queries (float array of shape (n, width)), k (int): see `nearest`.
        vectors (PartVectors): those that an "ivfpq" index is of, to put rescore * k candidates in
            order by their own cosines; None to go by their codes, whose similarities are rough.
        encoder (EncoderIdentity): what made the queries, see `identify`; None not to check that it
            made the vectors.
        RETURNS (float32 array of shape (n, k), int64 array of shape (n, k)): the similarities, and
            the rows.
        RAISES (ValueError): if the array is of another shape or width, a number is not finite,
            there are fewer than k vectors, the stored vectors or the encoder are others, or `index`
            was changed.
        """
        self._check_unchanged()
        if encoder is not None:
            check_same_encoder(self.encoder, encoder, "memory")
        rows = checked_queries(queries, (len(self), self.width), k)
        if vectors is None:
            return self._search(unit_length(rows), k)
        if vectors.digest != self.vectors:
            raise ValueError(
                f"The vectors in {vectors.name} are not those that the index was built of, in "
                f"{self.folder}. Give these, or build the index again."
            )
        _, candidates = self._search(unit_length(rows), min(rescore * k, len(self)))
        return _rescored(rows, candidates, vectors, k)

    def _search(self, rows: numpy.ndarray, k: int) -> Best:
        if self.places is None:
            return self._faiss.search(rows, k)
        scores, found = self._faiss.search(rows, min(k, self._faiss.raw.ntotal))
        by_place, ends = self._rows_by_place
        best_scores = numpy.empty((len(rows), k), dtype="float32")
        best_rows = numpy.empty((len(rows), k), dtype="int64")
        for i, own in enumerate(found):
            copies = [by_place[ends[place] : ends[place + 1]] for place in own]
            counts = [len(equal) for equal in copies]
            best_scores[i] = numpy.repeat(scores[i], counts)[:k]
            best_rows[i] = numpy.concatenate(copies)[:k]
        return best_scores, best_rows

    @cached_property
    def _rows_by_place(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """The rows by their place in `index`, and where those of each place begin among them."""
        places = self.places
        if places is None:
            places = numpy.arange(len(self))
        return numpy.argsort(places, kind="stable"), numpy.cumsum([0, *numpy.bincount(places)])

    def _check_unchanged(self, *, is_saved: bool = False) -> None:
        """Raise ValueError if `index` has other vectors than those of the rows, or the places.

        is_saved (bool): whether to check them even if `index` was not handed out since the last
            time.
        """
        expected = len(self)
        if self.places is not None:
            expected = int(self.places.max()) + 1
        elif self.rows is not None:
            expected = len(self.rows)
        has_order = self.rows is not None or self.places is not None
        self._faiss.check_unchanged(expected, has_order=has_order, is_saved=is_saved)

    def check_made_of(self, vectors: numpy.ndarray, texts: Sequence[str]) -> None:
        """Raise ValueError if the index is not of these vectors and texts, in this order.

        vectors (float (n, width)), texts (Sequence[str]): of each row. The vectors may be those of
            another run or precision, but not of other texts or another encoder.
        """
        self._check_unchanged()
        if self.kind == "ivfpq":
            raise ValueError(
                "An index of the kind ivfpq is of stored vectors: search it with theirs (vectors=)."
            )
        check_widths(self.width, vectors.shape[1])
        reason = self._difference(vectors, texts)
        if reason is not None:
            raise ValueError(
                f"The index is of others than these, or in another order: {reason}. Build it again "
                "of these."
            )

    def _difference(self, vectors: numpy.ndarray, texts: Sequence[str]) -> str | None:
        """Return what is different in an index of other vectors and texts; None if nothing is."""
        if len(self) != len(vectors):
            return f"it holds {len(self)} vectors, not {len(vectors)}"
        for place, (row, text) in enumerate(zip(self.rows or (), texts, strict=False)):
            if row.text not in (None, text):
                return f"its text {place} is {row.text[:50]!r}, not {text[:50]!r}"
        stored = self._faiss.raw.reconstruct_n(0, self._faiss.raw.ntotal)
        if self.places is not None:
            stored = stored[self.places]
        scores = cosine(stored, vectors)
        if scores.min() >= _SAME:
            return None
        first = int((scores < _SAME).argmax())
        return f"its vector {first} has the cosine {scores[first]:.3f} to it"

    @validated
    def save(self, folder: str | Path) -> None:
        """Write the index, its manifest and its rows to a folder.

        An index that is there is replaced when all is written, and stays if that fails.

        RAISES (ValueError): if `index` was changed so that it could not be loaded, or does not fit
            the rows; (OSError): if it cannot be written; (RuntimeError): if another process writes
            to the folder.
        """
        if self.kind == "ivfpq":
            raise ValueError("An index of the kind ivfpq is in a folder already. Copy the folder.")
        self._check_unchanged(is_saved=True)
        manifest = IndexManifest(
            kind=self.kind, width=self.width, count=len(self), encoder=self.encoder
        )
        write_folder(Path(folder), manifest, lambda _: self._faiss.raw, self.rows, self.places)

    @classmethod
    @validated
    def load(
        cls, folder: str | Path, *, encoder: EncoderIdentity | SentenceBert | None = None
    ) -> "VectorIndex":
        """Read what `save` wrote. An index is data that FAISS parses: take it from those you trust.

        encoder (EncoderIdentity or SentenceBert): what will make the queries; None not to check.
        RAISES (ValueError): if the vectors are of another encoder, or a file is damaged; (OSError):
            if there is none; (ImportError): if FAISS is not installed.
        """
        folder = Path(folder)
        ours = identity_of(encoder)
        saved = IndexManifest.read(folder)
        if ours is not None:
            check_same_encoder(saved.encoder, ours, folder)
        rows = read_index_rows(folder, saved)
        places = read_places(folder, saved)
        count = saved.count
        if places is not None:
            count = int(places.max()) + 1
        return cls(
            FaissIndex(read_index(folder, saved, count), saved.kind),
            saved.kind,
            encoder=saved.encoder,
            rows=rows,
            places=places,
            vectors=saved.vectors,
            folder=saved.folder,
        )


def _rescored(
    queries: numpy.ndarray, candidates: numpy.ndarray, vectors: PartVectors, k: int
) -> Best:
    """Return the k best candidates of each query by the cosine of their stored vectors."""
    wanted, places = numpy.unique(candidates, return_inverse=True)
    read = vectors[wanted]
    scores: list[numpy.ndarray] = []
    rows: list[numpy.ndarray] = []
    own_places = numpy.sort(places.reshape(candidates.shape))
    for query, own in zip(queries, own_places, strict=True):
        (score,), (best,) = nearest(query[None], read[own], k=k)
        scores.append(score)
        rows.append(wanted[own[best]])
    return numpy.stack(scores), numpy.stack(rows)


def _check_row_count(given: int, expected: int) -> None:
    if given != expected:
        raise ValueError(
            f"Given {given} texts or ids for {expected} vectors: expected one for each."
        )


def _rows(texts: Sequence[str] | None, ids: Sequence[str | int] | None) -> list[IndexRow] | None:
    """Return the rows of texts and ids; None if neither is given."""
    if texts is None and ids is None:
        return None
    own_texts = _column("texts", texts, str)
    own_ids = _column("ids", ids, str | int)
    if texts is not None and ids is not None:
        _check_row_count(len(own_ids), len(own_texts))
    return [IndexRow(*pair) for pair in zip_longest(own_texts, own_ids)]


def _column(name: str, values: Iterable[Any] | None, kinds: type | UnionType) -> list[Any]:
    """Return texts or ids as they are saved.

    RAISES (TypeError): if one is missing, or of another type.
    """
    if values is None:
        return []
    expected = "a str" if kinds is str else "a str or a whole number"
    column: list[Any] = []
    for number, value in enumerate(one_column(values)):
        item = value
        if isinstance(value, numpy.generic):
            item = value.item()
        if not isinstance(item, kinds) or isinstance(item, bool):
            raise TypeError(
                f"Cannot index {name}[{number}] = {short_repr(item)}: expected {expected} for each "
                "vector."
            )
        column.append(item)
    return column
