"""Read files of embeddings."""

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy
from numpy.lib.format import read_array_header_1_0, read_magic
from pydantic import BaseModel, NonNegativeInt

from ..errors import Errors, reason_of
from ..files.serialization import checksummed_json, digest_of_stream, file_digest, parse_checksummed
from ..files.tables import TextColumns, read_text_rows
from .checkpoint_dir import WEIGHTS, Values
from .writers import DTYPES, write_atomically

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import NativeFile

BLOCK_ROWS = 2**12
Beside = tuple[Sequence[Any], Sequence[Any]]  # ids and texts of rows, None where none are kept


class VectorReader(Protocol):
    """A file of vectors; shape (tuple): (rows, width)."""

    shape: tuple[int, int]

    def blocks(self) -> Iterator[numpy.ndarray]:
        """All rows in order, float32 or float16 (b, width), b at most 4096."""

    def take(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Some rows, (n, width). rows (int64 (n,)): from 0, ascending."""

    def beside(self, rows: numpy.ndarray) -> Beside:
        """Their ids and texts."""


class ArrayReader:
    """A .npy file. RAISES (ValueError): if it is none of numbers that vectors are written in."""

    def __init__(self, file: "NativeFile"):
        read_magic(file)
        shape, fortran, self._dtype = read_array_header_1_0(file)
        if fortran or self._dtype.name not in DTYPES or len(shape) != 2:
            raise ValueError(f"an array of {self._dtype} of shape {shape}")
        self.shape = shape[0], shape[1]
        self._file, self._start = file, file.tell()

    @property
    def _row_bytes(self) -> int:
        return int(self.shape[1] * self._dtype.itemsize)

    def blocks(self) -> Iterator[numpy.ndarray]:
        self._file.seek(self._start)
        while data := self._file.read(BLOCK_ROWS * self._row_bytes):
            yield numpy.frombuffer(data, dtype=self._dtype).reshape(-1, self.shape[1])

    def take(self, rows: numpy.ndarray) -> numpy.ndarray:
        size, start = self._row_bytes, self._start
        found = [self._file.read_at(size, start + row * size) for row in rows.tolist()]
        return numpy.frombuffer(b"".join(found), dtype=self._dtype).reshape(len(rows), self.shape[1])

    def beside(self, rows: numpy.ndarray) -> Beside:
        return [None] * len(rows), [None] * len(rows)


class TableReader:
    """A .parquet file with the column vector, and maybe id and text. RAISES (ValueError): if it is another."""

    def __init__(self, file: "NativeFile"):
        from pyarrow.parquet import ParquetFile
        from pyarrow.types import is_fixed_size_list

        self._file = ParquetFile(file, page_checksum_verification=True)
        schema = self._file.schema_arrow
        if "vector" not in schema.names or not is_fixed_size_list(schema.field("vector").type):
            raise ValueError(f"a table of {', '.join(f'{field.name}: {field.type}' for field in schema)}")
        self.shape = self._file.metadata.num_rows, schema.field("vector").type.list_size

    @cached_property
    def _starts(self) -> numpy.ndarray:
        """The first row of each row group, and the end."""
        groups = range(self._file.num_row_groups)
        return numpy.cumsum([0, *(self._file.metadata.row_group(group).num_rows for group in groups)])

    def blocks(self) -> Iterator[numpy.ndarray]:
        for batch in self._file.iter_batches(BLOCK_ROWS, columns=["vector"]):
            yield _vectors(batch.column("vector"), self.shape[1])

    def take(self, rows: numpy.ndarray) -> numpy.ndarray:
        taken = [table.column("vector").combine_chunks() for table in self._tables(rows, ["vector"])]
        return numpy.concatenate([_vectors(column, self.shape[1]) for column in taken])

    def beside(self, rows: numpy.ndarray) -> Beside:
        tables = list(self._tables(rows, ["id", "text"]))
        ids, texts = ([one for table in tables for one in _values(table, name)] for name in ("id", "text"))
        return ids, texts

    def _tables(self, rows: numpy.ndarray, columns: list[str]) -> Iterator["pyarrow.Table"]:
        """The rows, a table for each row group that has some of them."""
        known = [name for name in columns if name in self._file.schema_arrow.names]
        groups = numpy.searchsorted(self._starts, rows, side="right") - 1
        for group in numpy.unique(groups).tolist():
            own = rows[groups == group] - self._starts[group]
            yield self._file.read_row_group(group, columns=known or ["vector"]).take(own)


def open_vectors(file: "NativeFile", name: str) -> VectorReader:
    """The reader of a file, by its name. RAISES (ValueError): if it is no such file."""
    return TableReader(file) if name.endswith(".parquet") else ArrayReader(file)


def _vectors(column: "pyarrow.FixedSizeListArray", width: int) -> numpy.ndarray:
    return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)


def _values(table: "pyarrow.Table", name: str) -> list[Any]:
    return table.column(name).to_pylist() if name in table.column_names else [None] * len(table)


INPUT = "input (SHA-256)"


class FileRecord(BaseModel):
    """What stands beside a file of vectors, under its name and .json.

    made_of: input, encoder and options. rows, width: of the vectors. digest (str): the SHA-256 of their file.
    texts (str): the SHA-256 of the texts without blank ones, by which they are known in another file, too.
        blank: the rows of those that are.
    """

    format: Literal["spacy-sbert file 1"] = "spacy-sbert file 1"
    made_of: dict[str, str | bool | int | None]
    rows: NonNegativeInt
    width: NonNegativeInt
    digest: str
    texts: str
    blank: list[NonNegativeInt]


class FileVectors:
    """The vectors that encode_file wrote.

    path (Path): .npy or .parquet.
    name (str): the path. shape (tuple): (n, width). encoder (tuple): name and SHA-256 of what made them.
    digest (str): of their file.
    RAISES (ValueError): if what they were made of does not stand beside them, or the file is not the one that was
        written. RAISES (OSError): if there is no such file.
    """

    def __init__(self, path: Path | str):
        self.path, self.name = Path(path), str(path)
        check_vectors(self.path)
        self.digest, record = file_digest(self.path), record_path(self.path)
        try:
            found = parse_checksummed(FileRecord, record.read_bytes())
        except (OSError, ValueError) as error:
            said = (
                f"{path} does not say what it was made of: {record.name} beside it cannot be read "
                f"({reason_of(error)}). Encode the texts to another file: python -m spacy sbert encode."
            )
            raise ValueError(said) from error
        if found.digest != self.digest:
            raise ValueError(
                f"{path} is not the file that was written: its SHA-256 is {self.digest}, of that it was "
                f"{found.digest}. Encode the texts again, with --overwrite."
            )
        self.made_of, self._texts, self._blank = found.made_of, found.texts, found.blank
        self.shape = found.rows, found.width
        self.encoder = str(self.made_of["encoder"]), str(self.made_of[WEIGHTS])

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"FileVectors({self.name}: {self.shape[0]} vectors of {self.shape[1]} numbers by {self.encoder[0]})"

    def of_texts(self, corpus: Path, columns: TextColumns) -> numpy.ndarray:
        """The vectors of a file's texts without its blank ones, float32 (n, width).

        corpus (Path), columns (TextColumns): what was encoded, or a file that has these texts in this order, such as
            one that the command `cluster` wrote.
        RAISES (ValueError): if it has other texts, or it is the file, and this another column of it.
        """
        given: Values = {INPUT: file_digest(corpus), "column": columns.text, "header": columns.header}
        differing = "; ".join(
            f"{key} was {known}, now {now}" for key, now in given.items() if (known := self.made_of.get(key)) != now
        )
        is_copy = given[INPUT] != self.made_of.get(INPUT) and described(corpus, columns)[0] == self._texts
        if differing and not is_copy:
            count = sum(1 for _ in read_text_rows(corpus, columns))
            said = {"path": self.path, "rows": len(self), "corpus": corpus, "count": count, "differing": differing}
            raise ValueError(
                (
                    "The {rows} vectors in {path} are of other texts than the {count} of {corpus}: {differing}. "
                    "Give the file and the column that were encoded, or encode these."
                ).format(**said)
            )
        blank = self._blank if is_copy else described(corpus, columns)[1]
        return numpy.delete(self._read(), blank, axis=0).astype("float32", copy=False)

    def _read(self) -> numpy.ndarray:
        if self.path.suffix.lower() == ".npy":
            return numpy.load(self.path, mmap_mode="r", allow_pickle=False)
        import pyarrow

        with pyarrow.OSFile(self.name) as file:
            blocks = list(open_vectors(file, self.name.lower()).blocks())
        return numpy.concatenate(blocks) if blocks else numpy.empty(self.shape, dtype="float32")


def check_vectors(path: Path) -> None:
    """RAISES (ValueError): if the name of a file tells that it has no vectors. (OSError): if there is no such file."""
    said = {"path": path, "expected": path.with_suffix(".npy").name}
    if path.suffix.lower() not in (".npy", ".parquet"):
        raise ValueError(Errors.BULK_NO_VECTORS.format(**said, reason="its name ends in neither .npy nor .parquet"))
    if not path.exists():
        raise FileNotFoundError(Errors.BULK_NO_VECTORS.format(**said, reason="there is no such file"))


def described(corpus: Path, columns: TextColumns) -> tuple[str, list[int]]:
    """The SHA-256 of the texts of a file without its blank ones, and the rows of these."""
    blank: list[int] = []

    def kept() -> Iterator[str]:
        for number, (text, _) in enumerate(read_text_rows(corpus, columns)):
            if text and not text.isspace():
                yield text
            else:
                blank.append(number)

    return digest_of_stream(kept()), blank


def record_path(path: Path) -> Path:
    """Where it stands what a file of vectors was made of."""
    return path.with_name(path.name + ".json")


def write_record(
    path: Path, vectors: Path, made_of: Values, texts: tuple[str, list[int]], shape: tuple[int, int]
) -> None:
    """Write down what a file of vectors is made of.

    path (Path): where it is going to stand. vectors (Path): where it is now. texts: see described. shape: (n, width).
    """
    record = FileRecord(
        made_of=dict(made_of),
        rows=shape[0],
        width=shape[1],
        digest=file_digest(vectors),
        texts=texts[0],
        blank=texts[1],
    )
    write_atomically(record_path(path), json.dumps(checksummed_json(record.model_dump()), indent=2).encode("utf8"))


def is_record(path: Path) -> bool:
    """Whether a file is a record, and may be replaced."""
    try:
        parse_checksummed(FileRecord, path.read_bytes())
    except (OSError, ValueError):
        return False
    return True
