"""A saved index of vectors."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from html import escape
from itertools import chain, islice, repeat
from pathlib import Path
from typing import cast

import numpy
from numpy.typing import ArrayLike

from ..errors import Errors
from ..similarity import check_count, checked, unit_length
from ..validation import Positive, check, one_column, validated
from .exact import Best, check_widths, slices
from .index_folder import (
    BuiltKind,
    FaissIndex,
    IndexRow,
    Kind,
    Manifest,
    import_faiss,
    read_index,
    read_manifest,
    read_rows,
    write_folder,
)
from .memory_mapped import EncoderIdentity, StoredVectors, rescored

_FIRST = 5  # texts that are shown
_LONGEST = 100  # characters of each


def shown_index(index: Sized, texts: Iterable[str]) -> str:
    """Return the repr of an index, and the first of its texts, as HTML in which texts are escaped.

    index: one of n rows. texts: those of the rows, or none.
    """
    first = list(islice(texts, _FIRST))
    rows = [f"<tr><td>{row}</td><td dir=auto>{escape(_shortened(text))}</td></tr>" for row, text in enumerate(first)]
    if not rows:
        return f"<p>{escape(repr(index))}</p>"
    more = f"<p>and {len(index) - len(first):,} more</p>" if len(index) > len(first) else ""
    head = "<thead><tr><th>row</th><th>text</th></tr></thead>"
    return f"<p>{escape(repr(index))}</p><table>{head}<tbody>{''.join(rows)}</tbody></table>{more}"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


_BLOCK_ROWS = 2**14
_HNSW_LINKS = 32  # of a vector to others, in each layer
_HNSW_BUILD = 80  # candidates for them
_HNSW_SEARCH = 128  # candidates for the nearest: recall@10 of 0.99 among 100,000 sentences
_IVF_TRAINING = 64  # vectors a list is trained on; FAISS asks for 39 at least
_IVF_STREAMED = 2**16  # vectors of a stream that its lists are trained on
_RESCORED = 10  # candidates of "ivfpq" for each vector wanted
_IVF_PROBED = 12  # one list of so many is searched: recall@10 of 0.97 among 100,000 sentences


class VectorIndex:
    """Vectors of length 1 in a FAISS index by inner product, which is their cosine similarity.

    index (faiss.Index): the index. kind (str): "flat", "hnsw", "ivf", or "ivfpq" as build_ivfpq makes it.
    encoder (EncoderIdentity): what made the vectors; None if nobody said.
    rows (Sequence[IndexRow]): text and id of each vector, None if there are none.
    vectors (str), folder (str): of "ivfpq", the digest of the stored vectors, and where they stood; else None.
    """

    def __init__(
        self,
        index: FaissIndex,
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
            raise ValueError(Errors.SEARCH_ROW_COUNT.format(given=len(rows), expected=index.ntotal))
        self.index = index
        self.kind = kind
        self.encoder = encoder
        self.rows = rows
        self.vectors = vectors
        self.folder = folder

    def __len__(self) -> int:
        return int(self.index.ntotal)

    def __repr__(self) -> str:
        of = "" if self.encoder is None else f" by {self.encoder.name}"
        texts = "" if self.rows is None else ", with texts or ids"
        return f"VectorIndex({self.kind}: {len(self)} vectors of {self.width} numbers{of}{texts})"

    def _repr_html_(self) -> str:
        return shown_index(self, (row.text if row.text is not None else str(row.id) for row in self.rows or ()))

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
                f"The vectors in {vectors.name} are not those that the index was built of, which stood in "
                f"{self.folder}. Give these, or build the index again."
            )
        _, candidates = self._search(unit_length(rows), min(rescore * k, len(self)))
        return rescored(rows, candidates, vectors, k=k)

    def _search(self, rows: numpy.ndarray, k: int) -> Best:
        scores, indices = self.index.search(rows, k)
        short = (indices < 0).any(axis=1)  # fewer than k came into view
        if short.any():
            scores[short], indices[short] = self._search_all(rows[short], k)
        return scores, indices

    def _search_all(self, rows: numpy.ndarray, k: int) -> Best:
        faiss = import_faiss()
        if self.kind == "hnsw":
            return faiss.downcast_index(self.index.storage).search(rows, k)
        return self.index.search(rows, k, params=faiss.SearchParametersIVF(nprobe=self.index.nlist))

    def save(self, folder: str | Path) -> None:
        """Write the index, its manifest and its rows to a folder.

        What stood there is replaced when all is written, and stays if that fails.

        RAISES (OSError): if it cannot be written; (RuntimeError): if another process writes to the folder;
            (ValueError): for an "ivfpq" index, which stands in a folder already.
        """
        if self.kind == "ivfpq":
            raise ValueError("An index of the kind ivfpq stands in a folder already: copy that.")
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
        manifest = read_manifest(folder)
        if encoder is not None:
            manifest.check_encoder(encoder, folder)
        index = read_index(folder, manifest)
        return cls(
            index,
            manifest.kind,
            encoder=manifest.encoder,
            rows=read_rows(folder, manifest),
            vectors=manifest.vectors,
            folder=manifest.folder,
        )


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


def _empty(kind: str, width: int) -> FaissIndex:
    faiss = import_faiss()
    if kind == "flat":
        return faiss.IndexFlatIP(width)
    index = faiss.IndexHNSWFlat(width, _HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = _HNSW_BUILD, _HNSW_SEARCH
    return index


def _n_lists(n: int) -> int:
    """4 sqrt(n), as FAISS advises, or fewer where they would have too few vectors to be trained on."""
    return max(1, min(int(4 * n**0.5), n // _IVF_TRAINING))


def _trained_ivf(
    vectors: ArrayLike | Iterator[ArrayLike], blocks: Iterator[numpy.ndarray]
) -> tuple[FaissIndex, Iterator[numpy.ndarray]]:
    """Return an empty index whose lists are trained on some of the vectors, and all blocks again."""
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
    if texts is None and ids is None:
        return None
    if texts is not None and ids is not None and len(texts) != len(ids):
        raise ValueError(Errors.SEARCH_ROW_COUNT.format(given=len(ids), expected=len(texts)))
    count = len(texts if texts is not None else ids)  # type: ignore[arg-type]
    nothing = repeat(None, count)
    columns = [nothing if column is None else map(_plain, one_column(column)) for column in (texts, ids)]
    return [IndexRow(*row) for row in zip(*columns, strict=True)]


def _plain(item: object) -> object:
    """Return the Python value of a NumPy scalar, and other values as they are."""
    return item.item() if isinstance(item, numpy.generic) else item
