"""Indexes of vectors: built, searched by cosine, saved and loaded."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from html import escape
from itertools import compress, islice
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import ArrayLike

from ..arrays import as_rows
from ..bulk import PartVectors, StoredVectors
from ..pipeline.sbert import SentenceBert
from ..similarity import check_widths, cosine, unit_length
from ..validation import Cosine, Positive, check, short_repr, validated
from .duplicates import Duplicate, without_duplicates
from .exact import Best, checked_queries, nearest
from .faiss_index import (
    BuiltKind,
    FaissIndex,
    Kind,
    build_index,
    check_numbers,
    copied_index,
    import_faiss,
    unit_blocks,
)
from .identity import EncoderIdentity, check_same_encoder, identity_of
from .index_folder import (
    IndexManifest,
    read_index,
    read_index_rows,
    write_folder,
)
from .index_rows import (
    IndexRow,
    RowId,
    check_alike,
    check_row_count,
    checked_ids,
    checked_rows,
    find_ids,
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
    places (int64 (n,)): of each row the place of its vector in `index`, a graph that has equal ones
        once and may have deleted ones; None if it has all of them, and no others.
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
    ):
        if not isinstance(index, FaissIndex):
            index = FaissIndex(copied_index(index, kind), kind)
            if rows is not None:
                check_numbers(index.raw, kind)
        self._faiss: FaissIndex = index
        self.encoder = encoder
        self.vectors = vectors
        self.folder = folder
        # What was there when it was loaded from a folder, or saved to it
        self._saved: dict[Path, IndexManifest] = {}
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
        return self._faiss.places

    @property
    def rows(self) -> Sequence[IndexRow] | None:
        return self._rows

    @rows.setter
    def rows(self, rows: Sequence[IndexRow | tuple[str | None, str | int | None]] | None) -> None:
        own = None
        if rows is not None:
            check_row_count(len(rows), len(self))
            own = tuple(row if isinstance(row, IndexRow) else IndexRow(*row) for row in rows)
        # They are of the vectors that the index has now
        self._faiss.accept_vectors(has_rows=own is not None)
        self._rows = own

    def __len__(self) -> int:
        return len(self._faiss)

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
        ids: Sequence[RowId] | None = None,
        columns: Sequence[Mapping[str, object]] | None = None,
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
        columns (Sequence[dict]): the other columns of each, values of JSON by name.
        RAISES (ValueError): if there is no vector, or shapes, counts, numbers or the kind are
            wrong. (ImportError): if FAISS is not installed.
        SOURCE: Malkov and Yashunin 2018 (hnsw); Jégou et al. 2011, section 4 (ivf); Douze et al.
            2024, FAISS.

        Example:
            index = VectorIndex.build(pipe.encode(texts), kind="hnsw", encoder=pipe, texts=texts)
            index.save("index")

        """
        check("kind", kind, BuiltKind)
        identity = _encoder_of(vectors, encoder)
        # Before blocks are made
        import_faiss()
        rows = checked_rows(texts, ids, columns)
        if not isinstance(vectors, Iterator | StoredVectors):
            vectors = as_rows(vectors, "vectors")
        if rows is not None and not isinstance(vectors, Iterator):
            check_row_count(len(rows), len(vectors))
        return cls(build_index(kind, vectors), kind, encoder=identity, rows=rows)

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
        self._faiss.check_unchanged()
        check_same_encoder(self.encoder, encoder, "memory")
        rows = checked_queries(queries, (len(self), self.width), k)
        if vectors is None:
            return self._faiss.search(unit_length(rows), k)
        if vectors.digest != self.vectors:
            raise ValueError(
                f"The vectors in {vectors.name} are not those that the index was built of, in "
                f"{self.folder}. Give these, or build the index again."
            )
        _, candidates = self._faiss.search(unit_length(rows), min(rescore * k, len(self)))
        return _rescored(rows, candidates, vectors, k)

    def add(
        self,
        vectors: ArrayLike | Iterator[ArrayLike],
        *,
        texts: Sequence[str] | None = None,
        ids: Sequence[RowId] | None = None,
        columns: Sequence[Mapping[str, object]] | None = None,
        encoder: EncoderIdentity | SentenceBert | None = None,
        replace: bool = False,
        skip_duplicates: Cosine | None = None,
    ) -> list[Duplicate]:
        """Add vectors behind the others, with texts and ids if those have them.

        If anything is wrong with what is given, nothing is changed.

        vectors (float array of shape (n, width), or an iterator of such): see `build`. Blocks are
            made after all else was checked.
        texts, ids, columns: of each, see `build`. Ids must be unique.
        encoder (EncoderIdentity or SentenceBert): what made the vectors; None not to check that it
            made the others.
        replace (bool): whether ids may be there already: their vectors, texts and columns go.
        skip_duplicates (float): the cosine similarity from which on a new vector is left out, if
            the nearest one of the index, as `search` finds it, is so near, or one before it that is
            added. None to add all.
        RETURNS (list[Duplicate]): the vectors that were left out, and the rows that they are near
            to.
        RAISES (ValueError): if an id is there already, or more than once; the width, the encoder or
            counts differ; or the index is of the kind "ivfpq". For others see `build`.

        Example:
            new = pipe.encode(texts)
            for number, row, score in index.add(new, texts=texts, ids=ids, skip_duplicates=0.95):
                print(f"{ids[number]} is left out, as it is like {index.rows[row].id}: {score:.2f}")

        """
        check("skip_duplicates", skip_duplicates, Cosine | None)
        if replace and skip_duplicates is not None:
            raise ValueError(
                "Cannot skip duplicates of vectors that are replaced. Replace them first, and then "
                "add the new ones."
            )
        self._check_can_change()
        check_same_encoder(self.encoder, _encoder_of(vectors, encoder), "memory")
        rows = checked_rows(texts, ids, columns) or []
        check_alike(self.rows or (), rows)
        replaced = self._find_replaced(rows, replace=replace)
        if not isinstance(vectors, Iterator):
            vectors = iter([vectors])
        new = numpy.concatenate(list(unit_blocks(vectors)))
        check_widths(self.width, new.shape[1])
        check_row_count(len(rows or new), len(new))
        duplicates: list[Duplicate] = []
        blocks = iter([new])
        if skip_duplicates is not None:
            blocks = without_duplicates(self._faiss, new, skip_duplicates, duplicates)
        self._faiss.add(blocks)
        all_rows: list[IndexRow] | None = None
        if self.rows is not None:
            left_out = {one.number for one in duplicates}
            all_rows = [*self.rows]
            all_rows += [row for number, row in enumerate(rows) if number not in left_out]
        # Also where there are none: the count of vectors is another one
        self.rows = all_rows
        self._remove(replaced)
        return duplicates

    def delete(self, ids: Sequence[RowId]) -> None:
        """Remove vectors with their texts. The rows behind them move up.

        ids (Sequence[str or int]): of vectors that are there. Give many at once: each call reads
            the ids of all.
        RAISES (ValueError): if an id is not there or given twice, ids of the index are not unique,
            no vector would be left, or the index is of the kind "ivfpq". Nothing is changed then.
        """
        self._check_can_change()
        given = checked_ids(ids) or []
        numbers = find_ids(self.rows or (), given)
        missing = [row_id for row_id in given if str(row_id) not in numbers]
        if missing:
            raise ValueError(
                f"The index has no row with the id {short_repr(missing[0])} ({len(missing)} of "
                f"{len(given)} are not there). Leave them out."
            )
        if len(given) == len(self):
            raise ValueError(
                "Cannot delete all vectors: an index has one at least. Build a new index."
            )
        self._remove(numbers.values())

    def _find_replaced(self, rows: Sequence[IndexRow], *, replace: bool) -> Collection[int]:
        """Return the numbers of the rows that have the ids of new ones.

        RAISES (ValueError): if there are any, but for replace.
        """
        replaced = find_ids(self.rows or (), [row.id for row in rows if row.id is not None])
        if replaced and not replace:
            raise ValueError(
                f"The index has the id {short_repr(next(iter(replaced)))} already "
                f"({len(replaced)} of {len(rows)} are there). Leave them out, or replace their "
                "vectors: replace=True (--replace)."
            )
        return replaced.values()

    def _check_can_change(self) -> None:
        if self.kind == "ivfpq":
            raise ValueError(
                "An index of the kind ivfpq can't be changed. Change the stored vectors that it is "
                "of, and build it again: build_ivfpq."
            )
        self._faiss.check_unchanged()

    def _remove(self, numbers: Collection[int]) -> None:
        if numbers:
            is_kept = numpy.ones(len(self), dtype=bool)
            is_kept[list(numbers)] = False
            self._faiss.keep(is_kept)
            self.rows = list(compress(self.rows or (), is_kept))

    def check_made_of(self, vectors: numpy.ndarray, texts: Sequence[str]) -> None:
        """Raise ValueError if the index is not of these vectors and texts, in this order.

        vectors (float (n, width)), texts (Sequence[str]): of each row. The vectors may be those of
            another run or precision, but not of other texts or another encoder.
        """
        self._faiss.check_unchanged()
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
        scores = cosine(self._faiss.vectors(), vectors)
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
            to the folder, or has changed the index since it was loaded from there.
        """
        if self.kind == "ivfpq":
            raise ValueError("An index of the kind ivfpq is in a folder already. Copy the folder.")
        self._faiss.check_unchanged(is_saved=True)
        manifest = IndexManifest(
            kind=self.kind, width=self.width, count=len(self), encoder=self.encoder
        )
        place = Path(folder).absolute()
        self._saved[place] = write_folder(
            Path(folder),
            manifest,
            lambda _: self._faiss.raw,
            self.rows,
            self.places,
            former=self._saved.get(place),
        )

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
        saved = IndexManifest.read(folder)
        check_same_encoder(saved.encoder, encoder, folder)
        rows = read_index_rows(folder, saved)
        index = cls(
            read_index(folder, saved),
            saved.kind,
            encoder=saved.encoder,
            rows=rows,
            vectors=saved.vectors,
            folder=saved.folder,
        )
        index._saved[folder.absolute()] = saved
        return index


def _encoder_of(
    vectors: object, encoder: EncoderIdentity | SentenceBert | None
) -> EncoderIdentity | None:
    """Return what made vectors: stored ones know it.

    RAISES (ValueError): if that is not the given encoder.
    """
    if not isinstance(vectors, StoredVectors):
        return identity_of(encoder)
    stored = EncoderIdentity.of(vectors)
    check_same_encoder(stored, encoder, vectors.name)
    return stored


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
