"""Indexes of vectors by FAISS: built, searched, saved and loaded.

The folder of an index holds index.json, and the files that it names with their SHA-256. Each build
has new names, and index.json is replaced last, so that the folder always holds one whole index.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import chain, islice, zip_longest
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Any, Literal, NamedTuple
from weakref import ref

import numpy
from numpy.typing import ArrayLike
from pydantic import BaseModel, Field

from ..bulk import PartVectors, StoredVectors
from ..errors import Errors, import_extra
from ..files.atomic import Lock, atomic_write, rewrite_os_errors, write_text
from ..files.checksum import digest_of_stream, file_digest
from ..files.serialization import read_arrays
from ..pipeline.sbert import SentenceBert
from ..similarity import as_rows, checked, cosine, unit_length
from ..validation import Positive, check, one_column, short_repr, validated
from .exact import Best, check_widths, checked_queries, nearest, slices

MANIFEST = "index.json"
Rows = numpy.ndarray | StoredVectors
ROW_COUNT = "Given {given} texts or ids for {expected} vectors: expected one for each."
_CHANGED = (
    "The FAISS index {reason}: add, remove_ids and reset of FAISS leave texts, ids and equal "
    "vectors as they were. "
    "Build an index of the new vectors."
)
Kind = Literal["flat", "hnsw", "ivf", "ivfpq"]
# By VectorIndex.build; "ivfpq" by build_ivfpq
BuiltKind = Literal["flat", "hnsw", "ivf"]
# Of FAISS
_CLASSES = {
    "flat": "IndexFlat",
    "hnsw": "IndexHNSWFlat",
    "ivf": "IndexIVFFlat",
    "ivfpq": "IndexIVFPQ",
}
_NAME = r"(index-[0-9a-f]{32}\.(faiss|lists)|rows-[0-9a-f]{32}\.jsonl|places-[0-9a-f]{32}\.npz)"
# The files of an index, and those that a killed process left.
_OWN = re.compile(
    rf"{_NAME}|building-[0-9a-f]{{32}}-\w+\.faiss|\.(index|rows|places|building)[-.][^/]*\.\d+"
)
_BLOCK_ROWS = 2**14
# Of a vector to others, in each layer
_HNSW_LINKS = 32
# Candidates for them
_HNSW_BUILD = 80
# Candidates for the nearest: recall@10 of 0.99 among 100,000 sentences
_HNSW_SEARCH = 128
# Vectors a list is trained on; FAISS asks for 39 at least
_IVF_TRAINING = 64
# Vectors of a stream that its lists are trained on
_IVF_STREAMED = 2**16
# One list of so many is searched: recall@10 of 0.97 among 100,000 sentences
_IVF_PROBED = 12
# The least cosine of a vector and the same one, made in another run or precision
_SAME = 0.999
# By which the length of a vector may differ from 1
_ROUNDED = 1e-3
# Candidates of "ivfpq" for each vector wanted
_RESCORED = 10


def import_faiss() -> ModuleType:
    """Return FAISS. RAISES (ImportError): if it is not installed."""
    return import_extra("faiss", "An index needs FAISS", "search")


@dataclass(frozen=True)
class EncoderIdentity:
    """Identity that tells the vectors of one encoder from those of another.

    name (str): of the transformer, for messages. width (int): of the vectors. digest (str): see
        identify.
    """

    name: str
    width: int
    digest: str

    @classmethod
    def of(cls, vectors: StoredVectors) -> "EncoderIdentity":
        """Return the encoder that made stored vectors."""
        name, digest = vectors.encoder
        return cls(name, vectors.shape[1], digest)


def check_encoder(theirs: EncoderIdentity | None, ours: EncoderIdentity, where: Path | str) -> None:
    """Check which encoder made stored vectors. RAISES (ValueError): if not ours, or not known."""
    if theirs is None:
        raise ValueError(
            f"The index in {where} does not say which encoder made its vectors. Build it with "
            "encoder=identify(pipe)."
        )
    if (theirs.width, theirs.digest) != (ours.width, ours.digest):
        differing = (
            f"width {theirs.width} and {ours.width}"
            if theirs.width != ours.width
            else "weights or settings"
        )
        raise ValueError(
            f"The index in {where} was built with another encoder, '{theirs.name}', than "
            f"'{ours.name}' (other "
            f"{differing}). Search it with that pipeline, or build it again."
        )


def identify(pipe: SentenceBert) -> EncoderIdentity:
    """Return the identity of the encoder of an `sbert` pipe: the digest of weights, tokenizer and settings.

    It changes with training, not with use or saving.

    RAISES (TypeError): if the pipe is another one. (OSError, ValueError): if the encoder is not
        found, or foreign.
    """
    if not isinstance(pipe, SentenceBert):
        raise TypeError(
            f"Cannot identify the encoder of {short_repr(pipe)}: expected an 'sbert' pipe."
        )
    encoder = pipe.text_encoder()
    return EncoderIdentity(encoder.name, encoder.width, encoder.digest())


def _identity(encoder: EncoderIdentity | SentenceBert | None) -> EncoderIdentity | None:
    """Return the identity of an encoder that is given by it, or by its pipe.

    See identify for errors.
    """
    return encoder if encoder is None or isinstance(encoder, EncoderIdentity) else identify(encoder)


class IndexRow(NamedTuple):
    """Row that is saved beside a vector: its text, an id, and the row in its file.

    None if not known.
    """

    text: str | None
    id: str | int | None
    row: int | None = None


class Manifest(BaseModel, frozen=True):
    """Contents of index.json.

    kind (str), width (int), count (int): of the index. encoder (EncoderIdentity): what made the
        vectors, if known.
    files (dict): SHA-256 by name: the index, rows with texts and ids, the lists of "ivfpq".
    vectors (str), folder (str): of "ivfpq", the digest and the place of the stored vectors; None if
        in the index.
    """

    format: Literal["spacy-sbert index 2"] = "spacy-sbert index 2"
    kind: Kind
    width: int
    count: int
    encoder: EncoderIdentity | None
    files: dict[Annotated[str, Field(pattern=f"^{_NAME}$")], str] = {}
    vectors: str | None = None
    folder: str | None = None

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read index.json.

        RAISES (OSError): if there is no index; (ValueError): if it is damaged.
        """
        path = folder / MANIFEST
        if not path.is_file():
            raise FileNotFoundError(f"There is no index in {folder}. Build one, and save it there.")
        try:
            manifest = cls.model_validate_json(path.read_bytes(), strict=True)
        except ValueError as error:
            raise _damaged(path, str(error)[:200]) from error
        if manifest.encoder is not None and manifest.encoder.width != manifest.width:
            raise _damaged(
                path, f"the width is {manifest.width}, that of the encoder {manifest.encoder.width}"
            )
        return manifest


def index_html(index: Sized, texts: Iterable[str]) -> str:
    """Return what a notebook shows of an index: its repr, and the beginnings of the first five texts."""
    lines = (" ".join(text.split()) for text in islice(texts, 5))
    cells = (escape(line if len(line) <= 100 else f"{line[:99]}…") for line in lines)
    rows = [f"<tr><td>{row}</td><td dir=auto>{cell}</td></tr>" for row, cell in enumerate(cells)]
    table = f"<table><tr><th>row</th><th>text</th></tr>{''.join(rows)}</table>" if rows else ""
    return f"<p>{escape(repr(index))}</p>{table}"


class _Own(NamedTuple):
    """An index of FAISS that was made here, and that nothing else refers to."""

    index: Any


class _Lent:
    """The object by which the index of a VectorIndex was handed out; None once nobody has it.

    A copy has none.
    """

    def __init__(self, index: object = None):
        self._ref = None if index is None else ref(index)

    def __call__(self) -> Any:
        return None if self._ref is None else self._ref()

    def __reduce__(self) -> tuple[type, tuple]:
        return _Lent, ()


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
        self._kind = kind
        self._index = index.index if isinstance(index, _Own) else _copied(index, kind)
        self.encoder = encoder
        self._places = None if places is None else places.copy()
        if self._places is not None:
            self._places.flags.writeable = False
        self.vectors = vectors
        self.folder = folder
        if encoder is not None:
            check_widths(self.width, encoder.width)
        self._digest: str | None = (
            # Of the vectors that the rows are of, once `index` was handed out
            None
        )
        # Since the vectors were checked
        self._was_lent = False
        self._lent = _Lent()
        self.rows = rows

    @property
    def index(self) -> Any:
        """The index of FAISS, as long as it is kept one object.

        The next search and each save find out whether its vectors were changed; while it is kept,
        each search does.
        """
        self._note_vectors()
        lent = self._lent()
        if lent is None:
            # Another object of Python for the same index: it tells by its end that nobody can
            # change the index.
            lent = import_faiss().downcast_index(self._index)
            lent.referenced_objects = [self._index]
            self._lent = _Lent(lent)
        return lent

    @index.setter
    def index(self, index: Any) -> None:
        copied = _copied(index, self.kind)
        self._note_vectors()
        self._index = copied
        self._lent = _Lent()

    def _note_vectors(self) -> None:
        """Note which vectors `index` has before it is handed out, or replaced."""
        if self._digest is None:
            self._digest = _digest_of_vectors(self._index)
        self._was_lent = True

    @property
    def kind(self) -> Kind:
        return self._kind

    @property
    def places(self) -> numpy.ndarray | None:
        return self._places

    @property
    def rows(self) -> Sequence[IndexRow] | None:
        return self._rows

    @rows.setter
    def rows(self, rows: Sequence[IndexRow] | None) -> None:
        if rows is not None and len(rows) != len(self):
            raise ValueError(ROW_COUNT.format(given=len(rows), expected=len(self)))
        self._rows = (
            None
            if rows is None
            else tuple(row if isinstance(row, IndexRow) else IndexRow(*row) for row in rows)
        )
        # They are of the vectors that the index has now
        self._digest = None
        if self._lent() is not None:
            self._note_vectors()

    def __len__(self) -> int:
        return int(self._index.ntotal) if self.places is None else len(self.places)

    def __repr__(self) -> str:
        of = "" if self.encoder is None else f" by {self.encoder.name}"
        texts = "" if self.rows is None else ", with texts or ids"
        return f"VectorIndex({self.kind}: {len(self)} vectors of {self.width} numbers{of}{texts})"

    def _repr_html_(self) -> str:
        return index_html(
            self, (str(row.id) if row.text is None else row.text for row in self.rows or ())
        )

    @property
    def width(self) -> int:
        return int(self._index.d)

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
        """
        check("kind", kind, BuiltKind)
        encoder = _identity(encoder)
        # Before blocks are made
        faiss = import_faiss()
        rows = _rows(texts, ids)
        if not isinstance(vectors, Iterator | StoredVectors):
            vectors = as_rows(vectors, "vectors")
        if isinstance(vectors, StoredVectors):
            encoder = _same_encoder(encoder, EncoderIdentity.of(vectors), vectors.name)
        if rows is not None and not isinstance(vectors, Iterator) and len(rows) != len(vectors):
            raise ValueError(ROW_COUNT.format(given=len(rows), expected=len(vectors)))
        blocks = _unit_blocks(vectors)
        first = next(blocks, None)
        if first is None:
            raise ValueError(Errors.NOT_ROWS.format(name="vectors", given=(0,)))
        blocks, width, places = chain([first], blocks), first.shape[1], list[int]()
        if kind == "flat":
            index = faiss.IndexFlatIP(width)
        elif kind == "hnsw":
            index = faiss.IndexHNSWFlat(width, _HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction, index.hnsw.efSearch = _HNSW_BUILD, _HNSW_SEARCH
            blocks = _distinct(blocks, places)
        else:
            index, blocks = _trained_ivf(vectors, blocks, width)
        for block in blocks:
            index.add(block)
        has_copies = len(places) > index.ntotal
        return cls(
            _Own(index),
            kind,
            encoder=encoder,
            rows=rows,
            places=numpy.array(places) if has_copies else None,
        )

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
        """Find the k vectors most similar to each query, the best first: as `nearest`, but not exactly unless flat.

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
            check_encoder(self.encoder, encoder, "memory")
        rows = checked_queries(queries, (len(self), self.width), k)
        if vectors is None:
            return self._search(unit_length(rows), k)
        if vectors.digest != self.vectors:
            where = f"those that the index was built of, in {self.folder}"
            raise ValueError(
                f"The vectors in {vectors.name} are not {where}. Give these, or build the index "
                "again."
            )
        _, candidates = self._search(unit_length(rows), min(rescore * k, len(self)))
        wanted, places = numpy.unique(candidates, return_inverse=True)
        read, scores, found = vectors[wanted], list[numpy.ndarray](), list[numpy.ndarray]()
        for query, own in zip(rows, numpy.sort(places.reshape(candidates.shape)), strict=True):
            score, best = nearest(query[None], read[own], k=k)
            scores.append(score[0])
            found.append(wanted[own[best[0]]])
        return numpy.stack(scores), numpy.stack(found)

    def _search(self, rows: numpy.ndarray, k: int) -> Best:
        if self.places is None:
            return self._search_places(rows, k)
        scores, found = self._search_places(rows, min(k, self._index.ntotal))
        by_place, ends = self._of_places
        best = (
            numpy.empty((len(rows), k), dtype="float32"),
            numpy.empty((len(rows), k), dtype="int64"),
        )
        for i, own in enumerate(found):
            copies = [by_place[ends[place] : ends[place + 1]] for place in own]
            best[0][i] = numpy.repeat(scores[i], list(map(len, copies)))[:k]
            best[1][i] = numpy.concatenate(copies)[:k]
        return best

    @cached_property
    def _of_places(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """The rows by their place in `index`, and where those of each place begin among them."""
        places = numpy.arange(len(self)) if self.places is None else self.places
        return numpy.argsort(places, kind="stable"), numpy.cumsum([0, *numpy.bincount(places)])

    def _search_places(self, rows: numpy.ndarray, k: int) -> Best:
        # FAISS takes no integer of NumPy
        scores, indices = self._index.search(rows, int(k))
        # Fewer than k were seen: all are compared
        short = (indices < 0).any(axis=1)
        if short.any():
            faiss = import_faiss()
            if self.kind == "hnsw":
                found = faiss.downcast_index(self._index.storage).search(rows[short], k)
            else:
                found = self._index.search(
                    rows[short], k, params=faiss.SearchParametersIVF(nprobe=self._index.nlist)
                )
            scores[short], indices[short] = found
        return scores, indices

    def _check_unchanged(self, *, is_lent: bool = False) -> None:
        """Raise ValueError if the vectors in `index` are others than those that the rows, or the places, are of.

        is_lent (bool): whether to check the vectors even if `index` was not handed out since the
            last time.
        """
        expected = len(self) if self.rows is None else len(self.rows)
        if self.places is not None:
            expected = int(self.places.max()) + 1
        count = self._index.ntotal
        if not count or count != expected:
            raise ValueError(
                _CHANGED.format(reason=f"holds {count} vectors, expected {expected or 'some'}")
            )
        if self._was_lent or (is_lent and self._digest is not None):
            belongs = self._digest is not None and (
                self.rows is not None or self.places is not None
            )
            if belongs and _digest_of_vectors(self._index) != self._digest:
                raise ValueError(_CHANGED.format(reason="holds other vectors than before"))
            _check_lengths(self._index, self.kind)
            self._was_lent = self._lent() is not None

    def check_made_of(self, vectors: numpy.ndarray, texts: Sequence[str]) -> None:
        """Raise ValueError if the index is not of these vectors, float (n, width), and of these texts, in this order.

        The vectors may be those of another run or precision, but not of other texts or another
        encoder.
        """
        self._check_unchanged()
        if self.kind == "ivfpq":
            raise ValueError(
                "An index of the kind ivfpq is of stored vectors: search it with theirs (vectors=)."
            )
        check_widths(self.width, vectors.shape[1])
        reason = (
            f"it holds {len(self)} vectors, not {len(vectors)}" if len(self) != len(vectors) else ""
        )
        for place, (row, text) in enumerate(zip(self.rows or (), texts, strict=False)):
            if not reason and row.text not in (None, text):
                reason = f"its text {place} is {row.text[:50]!r}, not {text[:50]!r}"
        if not reason:
            stored = self._index.reconstruct_n(0, self._index.ntotal)
            scores = cosine(stored if self.places is None else stored[self.places], vectors)
            first = int((scores < _SAME).argmax())
            reason = (
                f"its vector {first} has the cosine {scores[first]:.3f} to it"
                if scores.min() < _SAME
                else ""
            )
        if reason:
            raise ValueError(
                f"The index is of others than these, or in another order: {reason}. Build it "
                "again of these."
            )

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
        self._check_unchanged(is_lent=True)
        manifest = Manifest(kind=self.kind, width=self.width, count=len(self), encoder=self.encoder)
        write_folder(Path(folder), manifest, lambda _: self._index, self.rows, self.places)

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
        folder, ours = Path(folder), _identity(encoder)
        saved = Manifest.read(folder)
        if ours is not None:
            check_encoder(saved.encoder, ours, folder)
        rows, places = _read_rows(folder, saved), _read_places(folder, saved)
        index = _read_index(folder, saved, saved.count if places is None else int(places.max()) + 1)
        stored = {"vectors": saved.vectors, "folder": saved.folder}
        return cls(
            _Own(index), saved.kind, encoder=saved.encoder, rows=rows, places=places, **stored
        )


def _copied(index: Any, kind: Kind) -> Any:
    """Return a copy of an index of FAISS, which nobody else can change.

    RAISES (ValueError): if it is no such index.
    """
    check("kind", kind, Kind)
    if not _is_of_kind(index, kind):
        raise ValueError(
            f"A {type(index).__name__} is no index of the kind {kind}: expected a "
            f"faiss.{_CLASSES[kind]} by inner "
            "product, whose similarities are cosines. Build one: VectorIndex.build(vectors)."
        )
    _check_lengths(index, kind)
    return import_faiss().clone_index(index)


def _check_lengths(index: Any, kind: Kind) -> None:
    """Raise ValueError if a vector in an index is of another length than 1, so that its products are no cosines."""
    start = 0
    # Whose codes are rough
    for block in _blocks_of(index) if kind != "ivfpq" else ():
        norms = numpy.linalg.norm(block, axis=1)
        is_other = (norms > 0) & (abs(norms - 1) > _ROUNDED)
        if is_other.any():
            first = int(is_other.argmax())
            raise ValueError(
                f"The FAISS index holds vectors of other lengths than 1 (number {start + first}: "
                f"{norms[first]:.3g}), "
                "whose products are no cosines. Scale them before they are added: "
                "faiss.normalize_L2(vectors)."
            )
        start += len(block)


def _digest_of_vectors(index: Any) -> str:
    """Return a digest of the vectors in an index, in their order."""
    return digest_of_stream(block.tobytes() for block in _blocks_of(index))


def _blocks_of(index: Any) -> Iterator[numpy.ndarray]:
    """Yield the vectors in an index, float32 (b, width).

    Nan for a number that no vector of a list has.
    """
    for part in slices(index.ntotal, _BLOCK_ROWS):
        # FAISS writes nothing for a number that no vector of a list has.
        rows = numpy.full((part.stop - part.start, index.d), numpy.nan, dtype="float32")
        yield index.reconstruct_n(part.start, len(rows), rows)


def _same_encoder(
    given: EncoderIdentity | None, of_vectors: EncoderIdentity, where: str
) -> EncoderIdentity:
    """Return the encoder of stored vectors. RAISES (ValueError): if another one was given."""
    if given is not None:
        check_encoder(of_vectors, given, where)
    return of_vectors


def _unit_blocks(vectors: Rows | Iterator[ArrayLike]) -> Iterator[numpy.ndarray]:
    """Yield blocks of vectors of length 1, float32 (b, width)."""
    blocks = (
        vectors
        if isinstance(vectors, Iterator)
        else (vectors[part] for part in slices(len(vectors), _BLOCK_ROWS))
    )
    start = width = 0
    for block in blocks:
        rows = unit_length(checked(block, f"vectors from row {start} on"))
        start, width = start + len(rows), width or rows.shape[1]
        check_widths(width, rows.shape[1])
        yield rows


def _distinct(blocks: Iterator[numpy.ndarray], places: list[int]) -> Iterator[numpy.ndarray]:
    """Yield the vectors that are equal to none before, and append to `places` the number among these of each vector.

    In a graph of neighbours equal vectors would have links to one another only, and lead nowhere
    else.
    """
    known: dict[bytes, int] = {}
    for block in blocks:
        before = len(known)
        # -0 is 0
        rows = block + numpy.float32(0)
        digests = [hashlib.blake2b(row.data, digest_size=16).digest() for row in rows]
        places += [known.setdefault(digest, len(known)) for digest in digests]
        _, first = numpy.unique(places[len(places) - len(rows) :], return_index=True)
        new = first[len(first) - (len(known) - before) :]
        if len(new):
            yield block[new]


def _trained_ivf(
    vectors: Rows | Iterator[ArrayLike], blocks: Iterator[numpy.ndarray], width: int
) -> tuple[Any, Iterator[numpy.ndarray]]:
    """Return an empty index whose lists are trained on some of the vectors, and all blocks."""
    faiss, training = import_faiss(), numpy.empty((0, width), dtype="float32")
    if isinstance(vectors, Iterator):
        held = list[numpy.ndarray]()
        while sum(map(len, held)) < _IVF_STREAMED and (block := next(blocks, None)) is not None:
            held.append(block)
        training, blocks = numpy.concatenate(held), chain(held, blocks)
    n = len(training) if isinstance(vectors, Iterator) else len(vectors)
    # 4 sqrt(n), as FAISS advises, if they can be trained
    n_lists = max(1, min(int(4 * n**0.5), n // _IVF_TRAINING))
    if not isinstance(vectors, Iterator):
        drawn = numpy.random.default_rng(0).choice(
            n, min(n, _IVF_TRAINING * n_lists), replace=False
        )
        training = unit_length(checked(vectors[numpy.sort(drawn)], "vectors"))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, n_lists, faiss.METRIC_INNER_PRODUCT)
    index.train(training)
    index.nprobe = min(n_lists, max(8, n_lists // _IVF_PROBED))
    return index, blocks


def _rows(texts: Sequence[str] | None, ids: Sequence[str | int] | None) -> list[IndexRow] | None:
    if texts is None and ids is None:
        return None
    columns = {"texts": _column("texts", texts, str), "ids": _column("ids", ids, str | int)}
    if texts is not None and ids is not None and len(columns["texts"]) != len(columns["ids"]):
        raise ValueError(
            ROW_COUNT.format(given=len(columns["ids"]), expected=len(columns["texts"]))
        )
    return [IndexRow(*pair) for pair in zip_longest(*columns.values())]


def _column(name: str, values: Iterable[Any] | None, kinds: type | UnionType) -> list[Any]:
    """Return texts or ids as they are saved.

    RAISES (TypeError): if one is missing, or of another type.
    """
    column = [
        item.item() if isinstance(item, numpy.generic) else item
        for item in one_column(() if values is None else values)
    ]
    for place, item in enumerate(column):
        if not isinstance(item, kinds) or isinstance(item, bool):
            expected = "a str" if kinds is str else "a str or a whole number"
            raise TypeError(
                f"Cannot index {name}[{place}] = {short_repr(item)}: expected {expected} for each "
                "vector."
            )
    return column


def write_folder(
    folder: Path,
    manifest: Manifest,
    make: Callable[[Path], Any],
    rows: Sequence[IndexRow] | None = None,
    places: numpy.ndarray | None = None,
) -> None:
    """Write an index, and remove the one that it replaces.

    RAISES (RuntimeError): if another process writes there.

    make (Callable): returns the index, and may write its lists to the path that it is given.
    """
    with rewrite_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    build = uuid.uuid4().hex
    made = [
        folder / f"index-{build}.faiss",
        folder / f"index-{build}.lists",
        folder / f"rows-{build}.jsonl",
    ]
    made += [folder / f"places-{build}.npz"]
    lock = Lock(folder / "lock")
    try:
        write_index(made[0], make(made[1]))
        if rows is not None:
            with atomic_write(made[2]) as file:
                file.writelines((json.dumps(row._asdict()) + "\n").encode("utf8") for row in rows)
        if places is not None:
            with atomic_write(made[3]) as file:
                numpy.savez(file, places=places)
        files = {path.name: file_digest(path) for path in made if path.exists()}
        write_text(
            folder / MANIFEST,
            manifest.model_copy(update={"files": files}).model_dump_json(indent=2) + "\n",
        )
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise
    else:
        for path in folder.iterdir():
            if _OWN.fullmatch(path.name) and path not in made:
                path.unlink(missing_ok=True)
    finally:
        lock.release(remove=True)


def write_index(path: Path, index: Any) -> None:
    """Write a file of FAISS, whole or not at all. RAISES (OSError): if that fails."""
    faiss = import_faiss()
    failures: list[OSError] = []
    with atomic_write(path) as file:

        def write(data: bytes) -> int:
            try:
                return file.write(data)
            except OSError as error:
                # FAISS would raise a RuntimeError without the reason
                failures.append(error)
                raise

        try:
            faiss.write_index(index, faiss.PyCallbackIOWriter(write))
        except RuntimeError:
            raise failures[0] if failures else RuntimeError(f"FAISS cannot write {path}.") from None


def _is_of_kind(index: Any, kind: Kind) -> bool:
    """Return whether an index is what the kind says, by inner product."""
    return isinstance(index, getattr(import_faiss(), _CLASSES[kind])) and index.metric_type == 0


def _read_index(folder: Path, manifest: Manifest, count: int) -> Any:
    faiss = import_faiss()
    path, on_disk = _checked_file(folder, manifest, ".faiss"), manifest.kind == "ivfpq"
    try:
        index = faiss.read_index(str(path), faiss.IO_FLAG_SKIP_IVF_DATA if on_disk else 0)
    except RuntimeError as error:
        raise _damaged(path, str(error)[:200]) from error
    if not _is_of_kind(index, manifest.kind) or (index.d, index.ntotal) != (manifest.width, count):
        raise _damaged(
            path, f"a {type(index).__name__} of {index.ntotal} vectors of width {index.d}"
        )
    if on_disk:
        lists_path, lists = (
            _checked_file(folder, manifest, ".lists"),
            faiss.downcast_InvertedLists(index.invlists),
        )
        if lists.totsize != lists_path.stat().st_size or lists.compute_ntotal() != index.ntotal:
            raise _damaged(lists_path, f"expected {index.ntotal} vectors in {lists.totsize} bytes")
        lists.filename, lists.read_only = str(lists_path), True
        lists.do_mmap()
    return index


def _read_rows(folder: Path, manifest: Manifest) -> list[IndexRow] | None:
    if not any(name.endswith(".jsonl") for name in manifest.files):
        return None
    with _checked_file(folder, manifest, ".jsonl").open(encoding="utf8", newline="\n") as file:
        return [IndexRow(**json.loads(line)) for line in file]


def _read_places(folder: Path, manifest: Manifest) -> numpy.ndarray | None:
    if not any(name.endswith(".npz") for name in manifest.files):
        return None
    path = _checked_file(folder, manifest, ".npz")
    places = read_arrays(path, {"places": ("int64", 1)})["places"]
    if len(places) != manifest.count or not len(places) or places.min() < 0:
        raise _damaged(path, f"it has {len(places)} places of {manifest.count} vectors")
    return places


def _checked_file(folder: Path, manifest: Manifest, suffix: str) -> Path:
    """Return the file with a suffix, whose SHA-256 is the one that was written."""
    for name, expected in manifest.files.items():
        if name.endswith(suffix):
            path = folder / name
            if not path.is_file():
                raise _damaged(path, "it is missing")
            if (digest := file_digest(path)) != expected:
                raise _damaged(path, f"its SHA-256 is {digest}, {MANIFEST} says {expected}")
            return path
    raise _damaged(folder / MANIFEST, f"it names no file *{suffix}")


def _damaged(path: Path, reason: str) -> ValueError:
    return ValueError(f"The index is damaged: {path}: {reason}. Build it again.")
