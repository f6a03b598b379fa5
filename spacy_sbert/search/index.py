"""Indexes of vectors by FAISS: built, searched, saved and loaded.

The folder of an index holds index.json, and the files that it names with their SHA-256. Each build has new names, and
index.json is replaced last, so that the folder always holds one whole index.
"""

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from html import escape
from itertools import chain, islice, zip_longest
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, NamedTuple, cast

import numpy
from numpy.typing import ArrayLike
from pydantic import BaseModel, Field

from ..bulk import FileVectors, PartVectors
from ..errors import Errors, import_extra
from ..files.atomic import Lock, atomic_write, write_text
from ..files.serialization import file_digest
from ..pipeline.sbert import SentenceBert
from ..similarity import checked, unit_length
from ..validation import Positive, check, one_column, short_repr, validated
from .exact import Best, check_widths, checked_queries, nearest, slices

MANIFEST = "index.json"
ROW_COUNT = "Given {given} texts or ids for {expected} vectors: expected one for each."
Kind = Literal["flat", "hnsw", "ivf", "ivfpq"]
BuiltKind = Literal["flat", "hnsw", "ivf"]  # by VectorIndex.build; "ivfpq" by build_ivfpq
_CLASSES = {"flat": "IndexFlat", "hnsw": "IndexHNSWFlat", "ivf": "IndexIVFFlat", "ivfpq": "IndexIVFPQ"}  # of FAISS
_NAME = r"(index-[0-9a-f]{32}\.(faiss|lists)|rows-[0-9a-f]{32}\.jsonl)"
# The files of an index, and those that a killed process left.
_OWN = re.compile(rf"{_NAME}|building-[0-9a-f]{{32}}-\w+\.faiss|\.(index|rows|building)[-.][^/]*\.\d+")
_BLOCK_ROWS = 2**14
_HNSW_LINKS = 32  # of a vector to others, in each layer
_HNSW_BUILD = 80  # candidates for them
_HNSW_SEARCH = 128  # candidates for the nearest: recall@10 of 0.99 among 100,000 sentences
_IVF_TRAINING = 64  # vectors a list is trained on; FAISS asks for 39 at least
_IVF_STREAMED = 2**16  # vectors of a stream that its lists are trained on
_IVF_PROBED = 12  # one list of so many is searched: recall@10 of 0.97 among 100,000 sentences
_RESCORED = 10  # candidates of "ivfpq" for each vector wanted


def import_faiss() -> ModuleType:
    """Return FAISS. RAISES (ImportError): if it is not installed."""
    return import_extra("faiss", "An index needs FAISS", "search")


@dataclass(frozen=True)
class EncoderIdentity:
    """Identity that tells the vectors of one encoder from those of another.

    name (str): of the transformer, for messages. width (int): of the vectors. digest (str): see identify.
    """

    name: str
    width: int
    digest: str

    @classmethod
    def of(cls, vectors: FileVectors | PartVectors) -> "EncoderIdentity":
        """Return the encoder that made stored vectors."""
        name, digest = vectors.encoder
        return cls(name, vectors.shape[1], digest)


def check_encoder(theirs: EncoderIdentity | None, ours: EncoderIdentity, where: Path | str) -> None:
    """Check which encoder made stored vectors. RAISES (ValueError): if not ours, or not known."""
    if theirs is None:
        raise ValueError(
            f"The index in {where} does not say which encoder made its vectors. Build it with encoder=identify(pipe)."
        )
    if (theirs.width, theirs.digest) != (ours.width, ours.digest):
        differing = f"width {theirs.width} and {ours.width}" if theirs.width != ours.width else "weights or settings"
        raise ValueError(
            f"The index in {where} was built with another encoder, '{theirs.name}', than '{ours.name}' (other "
            f"{differing}). Search it with that pipeline, or build it again."
        )


def identify(pipe: SentenceBert) -> EncoderIdentity:
    """Return the identity of the encoder of an `sbert` pipe: the digest of weights, tokenizer and settings.

    It changes with training, not with use or saving.

    RAISES (TypeError): if the pipe is another one. (OSError, ValueError): if the encoder is not found, or foreign.
    """
    if not isinstance(pipe, SentenceBert):
        raise TypeError(f"Cannot identify the encoder of {short_repr(pipe)}: expected an 'sbert' pipe.")
    encoder = pipe.text_encoder()
    return EncoderIdentity(encoder.name, encoder.width, encoder.digest())


class IndexRow(NamedTuple):
    """Row that is saved beside a vector: its text, an id, and the row in its file; None if not known."""

    text: str | None
    id: str | int | None
    row: int | None = None


class Manifest(BaseModel, frozen=True):
    """Contents of index.json.

    kind (str), width (int), count (int): of the index. encoder (EncoderIdentity): what made the vectors, if known.
    files (dict): SHA-256 by name: the index, rows with texts and ids, the lists of "ivfpq".
    vectors (str), folder (str): of "ivfpq", the digest and the place of the stored vectors; None if in the index.
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
        """Read index.json. RAISES (OSError): if there is no index; (ValueError): if it is damaged."""
        path = folder / MANIFEST
        if not path.is_file():
            raise FileNotFoundError(f"There is no index in {folder}. Build one, and save it there.")
        try:
            manifest = cls.model_validate_json(path.read_bytes(), strict=True)
        except ValueError as error:
            raise _damaged(path, str(error)[:200]) from error
        if manifest.encoder is not None and manifest.encoder.width != manifest.width:
            raise _damaged(path, f"the width is {manifest.width}, that of the encoder {manifest.encoder.width}")
        return manifest


def index_html(index: Sized, texts: Iterable[str]) -> str:
    """Return what a notebook shows of an index: its repr, and the beginnings of the first five texts."""
    lines = (" ".join(text.split()) for text in islice(texts, 5))
    cells = (escape(line if len(line) <= 100 else f"{line[:99]}…") for line in lines)
    rows = [f"<tr><td>{row}</td><td dir=auto>{cell}</td></tr>" for row, cell in enumerate(cells)]
    table = f"<table><tr><th>row</th><th>text</th></tr>{''.join(rows)}</table>" if rows else ""
    return f"<p>{escape(repr(index))}</p>{table}"


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
        return index_html(self, (str(row.id) if row.text is None else row.text for row in self.rows or ()))

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
        RAISES (ValueError): if there is no vector, or shapes, counts, numbers or the kind are wrong. (ImportError):
            if FAISS is not installed.
        SOURCE: Malkov and Yashunin 2018 (hnsw); Jégou et al. 2011, section 4 (ivf); Douze et al. 2024, FAISS.
        """
        check("kind", kind, BuiltKind)
        faiss = import_faiss()  # before blocks are made
        blocks = _unit_blocks(vectors)
        first = next(blocks, None)
        if first is None:
            raise ValueError(Errors.NOT_ROWS.format(name="vectors", given=(0,)))
        blocks, width = chain([first], blocks), first.shape[1]
        if kind == "flat":
            index = faiss.IndexFlatIP(width)
        elif kind == "hnsw":
            index = faiss.IndexHNSWFlat(width, _HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction, index.hnsw.efSearch = _HNSW_BUILD, _HNSW_SEARCH
        else:
            index, blocks = _trained_ivf(vectors, blocks, width)
        for block in blocks:
            index.add(block)
        return cls(index, kind, encoder=encoder, rows=_rows(texts, ids))

    @validated
    def search(
        self, queries: ArrayLike, *, k: int, vectors: PartVectors | None = None, rescore: Positive = _RESCORED
    ) -> Best:
        """Find the k vectors most similar to each query, the best first: as `nearest`, but not exactly unless flat.

        queries (float array of shape (n, width)), k (int): see `nearest`.
        vectors (PartVectors): those that an "ivfpq" index is of, to put rescore * k candidates in order by their own
            cosines; None to go by their codes, whose similarities are rough.
        RETURNS (float32 array of shape (n, k), int64 array of shape (n, k)): the similarities, and the rows.
        RAISES (ValueError): if the array is of another shape or width, a number is not finite, there are fewer than k
            vectors, or the stored vectors are others.
        """
        rows = checked_queries(queries, (len(self), self.width), k)
        if vectors is None:
            return self._search(unit_length(rows), k)
        if vectors.digest != self.vectors:
            where = f"those that the index was built of, in {self.folder}"
            raise ValueError(f"The vectors in {vectors.name} are not {where}. Give these, or build the index again.")
        _, candidates = self._search(unit_length(rows), min(rescore * k, len(self)))
        wanted, places = numpy.unique(candidates, return_inverse=True)
        read, scores, found = vectors[wanted], list[numpy.ndarray](), list[numpy.ndarray]()
        for query, own in zip(rows, numpy.sort(places.reshape(candidates.shape)), strict=True):
            score, best = nearest(query[None], read[own], k=k)
            scores.append(score[0])
            found.append(wanted[own[best[0]]])
        return numpy.stack(scores), numpy.stack(found)

    def _search(self, rows: numpy.ndarray, k: int) -> Best:
        scores, indices = self.index.search(rows, k)
        short = (indices < 0).any(axis=1)  # fewer than k were seen: all are compared
        if short.any():
            faiss = import_faiss()
            if self.kind == "hnsw":
                found = faiss.downcast_index(self.index.storage).search(rows[short], k)
            else:
                found = self.index.search(rows[short], k, params=faiss.SearchParametersIVF(nprobe=self.index.nlist))
            scores[short], indices[short] = found
        return scores, indices

    def save(self, folder: str | Path) -> None:
        """Write the index, its manifest and its rows to a folder.

        An index that is there is replaced when all is written, and stays if that fails.

        RAISES (OSError): if it cannot be written; (RuntimeError): if another process writes to the folder.
        """
        if self.kind == "ivfpq":
            raise ValueError("An index of the kind ivfpq is in a folder already. Copy the folder.")
        manifest = Manifest(kind=self.kind, width=self.width, count=len(self), encoder=self.encoder)
        write_folder(Path(folder), manifest, lambda _: self.index, self.rows)

    @classmethod
    def load(cls, folder: str | Path, *, encoder: EncoderIdentity | None = None) -> "VectorIndex":
        """Read what `save` wrote. An index is data that FAISS parses: take it from those you trust.

        encoder (EncoderIdentity): what will make the queries; None not to check that it made the vectors.
        RAISES (ValueError): if the vectors are of another encoder, or a file is damaged; (OSError): if there is none;
            (ImportError): if FAISS is not installed.
        """
        folder = Path(folder)
        saved = Manifest.read(folder)
        if encoder is not None:
            check_encoder(saved.encoder, encoder, folder)
        index, rows = _read_index(folder, saved), _read_rows(folder, saved)
        return cls(index, saved.kind, encoder=saved.encoder, rows=rows, vectors=saved.vectors, folder=saved.folder)


def _unit_blocks(vectors: ArrayLike | Iterator[ArrayLike]) -> Iterator[numpy.ndarray]:
    """Yield blocks of vectors of length 1, float32 (b, width)."""
    if not isinstance(vectors, Iterator):
        if numpy.ndim(vectors) != 2:
            raise ValueError(Errors.NOT_ROWS.format(name="vectors", given=numpy.shape(vectors)))
        rows = cast(numpy.ndarray, vectors)  # maybe memory-mapped, or on a GPU
        vectors = (rows[part] for part in slices(len(rows), _BLOCK_ROWS))
    start = width = 0
    for block in vectors:
        rows = unit_length(checked(block, f"vectors from row {start} on"))
        start, width = start + len(rows), width or rows.shape[1]
        check_widths(width, rows.shape[1])
        yield rows


def _trained_ivf(
    vectors: ArrayLike | Iterator[ArrayLike], blocks: Iterator[numpy.ndarray], width: int
) -> tuple[Any, Iterator[numpy.ndarray]]:
    """Return an empty index whose lists are trained on some of the vectors, and all blocks."""
    faiss, training = import_faiss(), numpy.empty((0, width), dtype="float32")
    if isinstance(vectors, Iterator):
        held = list[numpy.ndarray]()
        while sum(map(len, held)) < _IVF_STREAMED and (block := next(blocks, None)) is not None:
            held.append(block)
        training, blocks = numpy.concatenate(held), chain(held, blocks)
    n = len(training) or len(cast(numpy.ndarray, vectors))
    n_lists = max(1, min(int(4 * n**0.5), n // _IVF_TRAINING))  # 4 sqrt(n), as FAISS advises, if they can be trained
    if not isinstance(vectors, Iterator):
        drawn = numpy.random.default_rng(0).choice(n, min(n, _IVF_TRAINING * n_lists), replace=False)
        training = unit_length(checked(cast(numpy.ndarray, vectors)[numpy.sort(drawn)], "vectors"))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, n_lists, faiss.METRIC_INNER_PRODUCT)
    index.train(training)
    index.nprobe = min(n_lists, max(8, n_lists // _IVF_PROBED))
    return index, blocks


def _rows(texts: Sequence[str] | None, ids: Sequence[str | int] | None) -> list[IndexRow] | None:
    if texts is None and ids is None:
        return None
    columns = [[] if column is None else list(one_column(column)) for column in (texts, ids)]
    if texts is not None and ids is not None and len(columns[0]) != len(columns[1]):
        raise ValueError(ROW_COUNT.format(given=len(columns[1]), expected=len(columns[0])))
    items = ((item.item() if isinstance(item, numpy.generic) else item for item in column) for column in columns)
    return [IndexRow(*pair) for pair in zip_longest(*items)]


def write_folder(
    folder: Path, manifest: Manifest, make: Callable[[Path], Any], rows: Sequence[IndexRow] | None
) -> None:
    """Write an index, and remove the one that it replaces. RAISES (RuntimeError): if another process writes there.

    make (Callable): returns the index, and may write its lists to the path that it is given.
    """
    folder.mkdir(parents=True, exist_ok=True)
    build = uuid.uuid4().hex
    made = [folder / f"index-{build}.faiss", folder / f"index-{build}.lists", folder / f"rows-{build}.jsonl"]
    lock = Lock(folder / "lock")
    try:
        write_index(made[0], make(made[1]))
        if rows is not None:
            with atomic_write(made[2]) as file:
                file.writelines((json.dumps(row._asdict()) + "\n").encode("utf8") for row in rows)
        files = {path.name: file_digest(path) for path in made if path.exists()}
        write_text(folder / MANIFEST, manifest.model_copy(update={"files": files}).model_dump_json(indent=2) + "\n")
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


def write_index(path: Path, index: Any) -> None:  # noqa: ANN401 (FAISS has no types)
    """Write a file of FAISS, whole or not at all. RAISES (OSError): if that fails."""
    faiss = import_faiss()
    failures: list[OSError] = []
    with atomic_write(path) as file:

        def write(data: bytes) -> int:
            try:
                return file.write(data)
            except OSError as error:  # FAISS would raise a RuntimeError without the reason
                failures.append(error)
                raise

        try:
            faiss.write_index(index, faiss.PyCallbackIOWriter(write))
        except RuntimeError:
            raise failures[0] if failures else RuntimeError(f"FAISS cannot write {path}.") from None


def _read_index(folder: Path, manifest: Manifest) -> Any:  # noqa: ANN401 (FAISS has no types)
    faiss = import_faiss()
    path, on_disk = _checked_file(folder, manifest, ".faiss"), manifest.kind == "ivfpq"
    try:
        index = faiss.read_index(str(path), faiss.IO_FLAG_SKIP_IVF_DATA if on_disk else 0)
    except RuntimeError as error:
        raise _damaged(path, str(error)[:200]) from error
    is_expected = isinstance(index, getattr(faiss, _CLASSES[manifest.kind])) and index.metric_type == 0  # inner product
    if not is_expected or (index.d, index.ntotal) != (manifest.width, manifest.count):
        raise _damaged(path, f"a {type(index).__name__} of {index.ntotal} vectors of width {index.d}")
    if on_disk:
        lists_path, lists = _checked_file(folder, manifest, ".lists"), faiss.downcast_InvertedLists(index.invlists)
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
