"""Indexes of vectors by FAISS: built, searched, saved and loaded."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from html import escape
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

import numpy
from numpy.typing import ArrayLike

from ..errors import Errors
from ..similarity import check_count, checked, unit_length
from ..validation import Positive, check, one_column, validated
from .exact import Best, check_widths, slices
from .index_folder import (
    BuiltKind,
    IndexRow,
    Kind,
    Manifest,
    import_faiss,
    read_index,
    read_manifest,
    read_rows,
    write_folder,
)
from .memory_mapped import EncoderIdentity, StoredVectors, check_encoder, rescored

ROW_COUNT = "Given {given} texts or ids for {expected} vectors: expected one for each."

_BLOCK_ROWS = 2**14
_HNSW_LINKS = 32  # of a vector to others, in each layer
_HNSW_BUILD = 80  # candidates for them
_HNSW_SEARCH = 128  # candidates for the nearest: recall@10 of 0.99 among 100,000 sentences
_IVF_TRAINING = 64  # vectors a list is trained on; FAISS asks for 39 at least
_IVF_STREAMED = 2**16  # vectors of a stream that its lists are trained on
_IVF_PROBED = 12  # one list of so many is searched: recall@10 of 0.97 among 100,000 sentences
_RESCORED = 10  # candidates of "ivfpq" for each vector wanted


def index_html(index: Sized, texts: Iterable[str]) -> str:
    """Return the repr of an index, and its first texts, as HTML."""
    first = [" ".join(text.split()) for text in islice(texts, 5)]
    rows = [
        f"<tr><td>{row}</td><td dir=auto>{escape(text if len(text) <= 100 else f'{text[:99]}…')}</td></tr>"
        for row, text in enumerate(first)
    ]
    if not rows:
        return f"<p>{escape(repr(index))}</p>"
    more = f"<p>and {len(index) - len(first):,} more</p>" if len(index) > len(first) else ""
    head = "<thead><tr><th>row</th><th>text</th></tr></thead>"
    return f"<p>{escape(repr(index))}</p><table>{head}<tbody>{''.join(rows)}</tbody></table>{more}"


class VectorIndex:
    """Vectors of length 1 in a FAISS index by inner product, which is their cosine similarity.

    index (faiss.Index): the index. kind (str): "flat", "hnsw", "ivf", or "ivfpq" by build_ivfpq.
    encoder (EncoderIdentity): what made the vectors; None if not known.
    rows (Sequence[IndexRow]): text and id of each vector; None if there are none.
    vectors (str), folder (str): of "ivfpq", the digest and the place of the stored vectors.
    """

    def __init__(
        self,
        index: Any,  # noqa: ANN401 (FAISS has no types)
        kind: Kind,
        *,
        encoder: EncoderIdentity | None = None,
        rows: Sequence[IndexRow] | None = None,
        vectors: str | None = None,
        folder: str | None = None,
    ):
        if encoder is not None:
            check_widths(index.d, encoder.width)
        if rows is not None and len(rows) != index.ntotal:
            raise ValueError(ROW_COUNT.format(given=len(rows), expected=index.ntotal))
        self.index, self.kind, self.encoder, self.rows = index, kind, encoder, rows
        self.vectors, self.folder = vectors, folder

    def __len__(self) -> int:
        return int(self.index.ntotal)

    def __repr__(self) -> str:
        of = "" if self.encoder is None else f" by {self.encoder.name}"
        texts = "" if self.rows is None else ", with texts or ids"
        return f"VectorIndex({self.kind}: {len(self)} vectors of {self.width} numbers{of}{texts})"

    def _repr_html_(self) -> str:
        return index_html(self, (row.text if row.text is not None else str(row.id) for row in self.rows or ()))

    @property
    def width(self) -> int:
        return int(self.index.d)

    @classmethod
    def build(
        cls,
        vectors: ArrayLike | Iterator[ArrayLike],
        *,
        kind: BuiltKind = "flat",
        encoder: EncoderIdentity | None = None,
        texts: Sequence[str] | None = None,
        ids: Sequence[str | int] | None = None,
    ) -> "VectorIndex":
        """Make an index of a collection.

        vectors (float array of shape (n, width), or an iterator of such): the collection, maybe memory-mapped, or
            blocks of it, so that it need not be in memory beside the index.
        kind (str): "flat", exact; "hnsw", a graph of neighbours, the quickest to search and slow to build; "ivf",
            lists of near vectors, of which those near the query are searched. The lists of blocks are trained on the
            first 65,536 vectors, those of an array on vectors drawn from all of it.
        encoder (EncoderIdentity): what made the vectors, see `identify`.
        texts (Sequence[str]), ids (Sequence[str or int]): of each vector, saved beside them.
        RAISES (ValueError): if the shape is another, there is no vector, a number is not finite, widths or counts
            differ, or the kind is unknown; (ImportError): if FAISS is not installed.
        SOURCE: Malkov and Yashunin 2018 (hnsw); Jégou et al. 2011, section 4 (ivf); Douze et al. 2024, FAISS.
        """
        check("kind", kind, BuiltKind)
        import_faiss()  # before blocks are made
        blocks = _unit_blocks(vectors if isinstance(vectors, Iterator) else _parts(vectors))
        first = next(blocks, None)
        if first is None:
            raise ValueError(Errors.NOT_ROWS.format(name="vectors", given=(0,)))
        blocks = chain([first], blocks)
        if kind == "ivf":
            index, blocks = _trained_ivf(vectors, blocks)
        else:
            index = _empty(kind, first.shape[1])
        for block in blocks:
            index.add(block)
        return cls(index, kind, encoder=encoder, rows=_rows(texts, ids))

    @validated
    def search(
        self, queries: ArrayLike, *, k: int, vectors: StoredVectors | None = None, rescore: Positive = _RESCORED
    ) -> Best:
        """Find the k vectors most similar to each query, the best first: as `nearest`, but not exactly unless flat.

        queries (float array of shape (n, width), NumPy or CuPy): what to search for, a vector a row. k (int): how many
            to find of each, from 1 to as many as there are.
        vectors (StoredVectors): those that an "ivfpq" index is of, to put rescore * k candidates in order by their own
            cosines; None to go by their codes, whose similarities are rough.
        RETURNS (float32 array of shape (n, k), int64 array of shape (n, k)): the similarities, and the rows.
        RAISES (ValueError): if the array is of another shape or holds a number that is not finite, if its
            width is another, there are fewer than k vectors, or the stored vectors are others.
        """
        rows = checked(queries, "queries")
        check_widths(rows.shape[1], self.width)
        check_count(k, len(self), f"nearest of {len(self)} vectors")
        if vectors is None:
            return self._search(unit_length(rows), k)
        if vectors.digest != self.vectors:
            raise ValueError(
                f"The vectors in {vectors.name} are not those that the index was built of, in {self.folder}. "
                "Give these, or build the index again."
            )
        _, candidates = self._search(unit_length(rows), min(rescore * k, len(self)))
        return rescored(rows, candidates, vectors, k=k)

    def _search(self, rows: numpy.ndarray, k: int) -> Best:
        scores, indices = self.index.search(rows, k)
        short = (indices < 0).any(axis=1)  # fewer than k were seen
        if short.any():
            faiss = import_faiss()
            if self.kind == "hnsw":
                found = faiss.downcast_index(self.index.storage).search(rows[short], k)
            else:
                every = faiss.SearchParametersIVF(nprobe=self.index.nlist)
                found = self.index.search(rows[short], k, params=every)
            scores[short], indices[short] = found
        return scores, indices

    def save(self, folder: str | Path) -> None:
        """Write the index, its manifest and its rows to a folder.

        An index that is there is replaced when all is written, and stays if that fails.

        RAISES (OSError): if it cannot be written; (RuntimeError): if another process writes to the folder;
            (ValueError): for an "ivfpq" index, which is in a folder already.
        """
        if self.kind == "ivfpq":
            raise ValueError("An index of the kind ivfpq is in a folder already. Copy the folder.")
        manifest = Manifest(kind=self.kind, width=self.width, count=len(self), encoder=self.encoder)
        write_folder(Path(folder), manifest, lambda _: self.index, self.rows)

    @classmethod
    def load(cls, folder: str | Path, *, encoder: EncoderIdentity | None = None) -> "VectorIndex":
        """Read what `save` wrote. An index is data that FAISS parses: take it from those you trust.

        encoder (EncoderIdentity): what will make the queries; None not to check that it made the vectors.
        RAISES (ValueError): if the vectors are of another encoder or width, or a file is damaged, cut short or
            changed; (OSError): if there is none; (ImportError): if FAISS is not installed.
        """
        folder = Path(folder)
        saved = read_manifest(folder)
        if encoder is not None:
            check_encoder(saved.encoder, encoder, folder)
        index, rows = read_index(folder, saved), read_rows(folder, saved)
        return cls(index, saved.kind, encoder=saved.encoder, rows=rows, vectors=saved.vectors, folder=saved.folder)


def _parts(vectors: ArrayLike) -> Iterator[ArrayLike]:
    if numpy.ndim(vectors) != 2:
        raise ValueError(Errors.NOT_ROWS.format(name="vectors", given=numpy.shape(vectors)))
    rows = cast(numpy.ndarray, vectors)  # maybe memory-mapped, or on a GPU
    return (rows[part] for part in slices(len(rows), _BLOCK_ROWS))


def _unit_blocks(blocks: Iterator[ArrayLike]) -> Iterator[numpy.ndarray]:
    start = width = 0
    for block in blocks:
        rows = unit_length(checked(block, f"vectors from row {start} on"))
        start, width = start + len(rows), width or rows.shape[1]
        check_widths(width, rows.shape[1])
        yield rows


def _empty(kind: str, width: int) -> Any:  # noqa: ANN401 (FAISS has no types)
    faiss = import_faiss()
    if kind == "flat":
        return faiss.IndexFlatIP(width)
    index = faiss.IndexHNSWFlat(width, _HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = _HNSW_BUILD, _HNSW_SEARCH
    return index


def _n_lists(n: int) -> int:
    """Return 4 sqrt(n), as FAISS advises, or fewer if they had too few vectors to be trained on."""
    return max(1, min(int(4 * n**0.5), n // _IVF_TRAINING))


def _trained_ivf(
    vectors: ArrayLike | Iterator[ArrayLike], blocks: Iterator[numpy.ndarray]
) -> tuple[Any, Iterator[numpy.ndarray]]:
    """Return an empty index whose lists are trained on some of the vectors, and all blocks."""
    faiss = import_faiss()
    if isinstance(vectors, Iterator):
        held: list[numpy.ndarray] = []
        while sum(map(len, held)) < _IVF_STREAMED and (block := next(blocks, None)) is not None:
            held.append(block)
        training, blocks = numpy.concatenate(held), chain(held, blocks)
        n_lists = _n_lists(len(training))
    else:
        given = cast(numpy.ndarray, vectors)
        n_lists = _n_lists(len(given))
        drawn = numpy.random.default_rng(0).choice(len(given), min(len(given), _IVF_TRAINING * n_lists), replace=False)
        training = unit_length(checked(given[numpy.sort(drawn)], "vectors"))
    width = training.shape[1]
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, n_lists, faiss.METRIC_INNER_PRODUCT)
    index.train(training)
    index.nprobe = min(n_lists, max(8, n_lists // _IVF_PROBED))
    return index, blocks


def _rows(texts: Sequence[str] | None, ids: Sequence[str | int] | None) -> list[IndexRow] | None:
    columns = [None if column is None else [_plain(item) for item in one_column(column)] for column in (texts, ids)]
    counts = [len(column) for column in columns if column is not None]
    if not counts:
        return None
    if min(counts) != max(counts):
        raise ValueError(ROW_COUNT.format(given=counts[1], expected=counts[0]))
    filled: list[list[Any]] = [[None] * counts[0] if column is None else column for column in columns]
    return [IndexRow(*row) for row in zip(*filled, strict=True)]


def _plain(item: object) -> object:
    """Return the Python value of a NumPy scalar, and other values as they are."""
    return item.item() if isinstance(item, numpy.generic) else item
