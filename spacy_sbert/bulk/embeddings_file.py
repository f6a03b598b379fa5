"""Files of embeddings: written as .parquet, read as .npy or .parquet, and the record of what they were made of."""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy
from numpy.lib.format import read_array_header_1_0, read_magic
from pydantic import BaseModel, NonNegativeInt

from ..errors import reason_of
from ..files.atomic import open_new
from ..files.serialization import digest_of_stream, file_digest, parse_checksummed
from ..files.tables import TextColumns, TextRow, read_text_rows
from .checkpoint import Checkpoint, RunState, Values, differences, rewriting_os_errors, write_json
from .options import DTYPES, WEIGHTS

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import NativeFile

INPUT = "input (SHA-256)"
SUFFIXES = (".npy", ".parquet")
NO_PYARROW = "Writing {path} needs pyarrow. Install it: pip install 'spacy-sbert[parquet]'."
_BLOCK_ROWS = 2**12


def check_format(path: Path, *, with_columns: bool) -> None:
    """Check the name of an output. with_columns (bool): whether ids or texts are to be in it.

    RAISES (ValueError): for another name, or .npy with columns. (ImportError): for .parquet without pyarrow.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"Cannot write the output {path}: expected a name that ends in one of {', '.join(SUFFIXES)}.")
    if suffix == ".npy" and with_columns:
        raise ValueError(
            f"Cannot write ids or texts to {path}: an array has none. Give the output a name that ends in "
            ".parquet, or leave --id-column and --with-text out."
        )
    if suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401, PLC0415 (an extra)
        except ImportError as error:
            raise ImportError(NO_PYARROW.format(path=path)) from error


def write_parquet(path: Path, checkpoint: Checkpoint, rows: Iterator[TextRow], window: int, *, with_text: bool) -> None:
    """Write a table: row number or id, text if asked for, and vector, a list of a fixed size; a row group a window.

    path (Path): the file; on failure nothing of it stays. checkpoint (Checkpoint): all of its vectors are done.
    rows (Iterator[TextRow]): the rows they are of.
    RAISES (OSError): if that fails.
    """
    import pyarrow  # noqa: PLC0415 (an extra)
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415 (an extra)

    state = checkpoint.state
    schema = _schema(state, with_text=with_text)
    first = 0
    with rewriting_os_errors(path):
        try:
            with open_new(path) as file:
                with ParquetWriter(file, schema, write_page_checksum=True) as writer:
                    for vectors in checkpoint.blocks(window):
                        block = list(islice(rows, len(vectors)))
                        ids = [row.id for row in block] if state.id_type else range(first, first + len(block))
                        columns = [pyarrow.array(ids, schema.field(0).type)]
                        if with_text:
                            columns.append(pyarrow.array([row.text for row in block], pyarrow.string()))
                        flat = pyarrow.array(vectors.ravel(), schema.field("vector").type.value_type)
                        columns.append(pyarrow.FixedSizeListArray.from_arrays(flat, state.width))
                        writer.write_table(pyarrow.table(columns, schema=schema))
                        first += len(block)
                file.flush()
                os.fsync(file.fileno())
        except (pyarrow.ArrowException, OSError):
            path.unlink(missing_ok=True)
            raise


def _schema(state: RunState, *, with_text: bool) -> "pyarrow.Schema":
    import pyarrow  # noqa: PLC0415 (an extra)

    number = pyarrow.float32() if state.dtype == "float32" else pyarrow.float16()
    ids = pyarrow.string() if state.id_type == "string" else pyarrow.int64()
    fields = [("id" if state.id_type else "row", ids), ("vector", pyarrow.list_(number, state.width))]
    if with_text:
        fields.insert(1, ("text", pyarrow.string()))
    return pyarrow.schema([pyarrow.field(name, kind, nullable=False) for name, kind in fields])


class ArrayReader:
    """Reader of a .npy file. shape (tuple): (rows, width).

    RAISES (ValueError): if it is no array of the dtypes that vectors are written in.
    """

    def __init__(self, file: "NativeFile"):
        read_magic(file)
        shape, fortran, self._dtype = read_array_header_1_0(file)
        if fortran or self._dtype.name not in DTYPES or len(shape) != 2:
            raise ValueError(f"an array of {self._dtype} of shape {shape}")
        self.shape = shape[0], shape[1]
        self._file, self._start = file, file.tell()
        self._row_bytes = int(shape[1] * self._dtype.itemsize)

    def blocks(self) -> Iterator[numpy.ndarray]:
        """Yield all rows in order, float32 or float16 (b, width), b at most 4096."""
        self._file.seek(self._start)
        while data := self._file.read(_BLOCK_ROWS * self._row_bytes):
            yield numpy.frombuffer(data, dtype=self._dtype).reshape(-1, self.shape[1])

    def take(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Return some rows, (n, width). rows (int64 (n,)): from 0, ascending."""
        size, start = self._row_bytes, self._start
        data = b"".join(self._file.read_at(size, start + row * size) for row in rows.tolist())
        return numpy.frombuffer(data, dtype=self._dtype).reshape(len(rows), self.shape[1])

    def columns(self, rows: numpy.ndarray) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the ids and texts of some rows, None where none are kept."""
        return [None] * len(rows), [None] * len(rows)


class TableReader:
    """Reader of a .parquet file with the column vector, and maybe id and text; see ArrayReader.

    RAISES (ValueError): if it is another.
    """

    def __init__(self, file: "NativeFile"):
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 (an extra)
        from pyarrow.types import is_fixed_size_list  # noqa: PLC0415 (an extra)

        self._file = ParquetFile(file, page_checksum_verification=True)
        schema = self._file.schema_arrow
        if "vector" not in schema.names or not is_fixed_size_list(schema.field("vector").type):
            raise ValueError(f"a table of {', '.join(f'{field.name}: {field.type}' for field in schema)}")
        self.shape = self._file.metadata.num_rows, schema.field("vector").type.list_size

    def blocks(self) -> Iterator[numpy.ndarray]:
        """Yield all rows in order, float32 or float16 (b, width), b at most 4096."""
        for batch in self._file.iter_batches(_BLOCK_ROWS, columns=["vector"]):
            yield self._array(batch.column("vector"))

    def take(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Return some rows, (n, width). rows (int64 (n,)): from 0, ascending."""
        tables = self._tables(rows, ["vector"])
        return numpy.concatenate([self._array(table.column("vector").combine_chunks()) for table in tables])

    def columns(self, rows: numpy.ndarray) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the ids and texts of some rows, None where none are kept."""
        names = [name for name in ("id", "text") if name in self._file.schema_arrow.names]
        values: dict[str, list[Any]] = {"id": [], "text": []}
        for table in self._tables(rows, names) if names else ():
            for name in names:
                values[name] += table.column(name).to_pylist()
        return values["id"] or [None] * len(rows), values["text"] or [None] * len(rows)

    def _array(self, column: "pyarrow.FixedSizeListArray") -> numpy.ndarray:
        return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, self.shape[1])

    def _tables(self, rows: numpy.ndarray, names: list[str]) -> Iterator["pyarrow.Table"]:
        """Yield the rows, a table for each row group that has some of them."""
        sizes = [self._file.metadata.row_group(group).num_rows for group in range(self._file.num_row_groups)]
        starts = numpy.cumsum([0, *sizes])
        groups = numpy.searchsorted(starts, rows, side="right") - 1
        for group in numpy.unique(groups).tolist():
            yield self._file.read_row_group(group, columns=names).take(rows[groups == group] - starts[group])


def open_reader(file: "NativeFile", name: str) -> ArrayReader | TableReader:
    """Open a file of vectors by its name. RAISES (ValueError): if it is no such file."""
    return TableReader(file) if name.endswith(".parquet") else ArrayReader(file)


class _FileRecord(BaseModel):
    """What stands beside a file of vectors, under its name and .json.

    made_of: input, encoder and options. rows, width: of the vectors. digest (str): the SHA-256 of their file.
    texts (str): the SHA-256 of the texts without blank ones, by which they are known in another file, too.
    blank: the rows of the blank ones.
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
        _check_vectors(self.path)
        self.digest, record_file = file_digest(self.path), record_path(self.path)
        try:
            self._record = record = parse_checksummed(_FileRecord, record_file.read_bytes())
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{path} does not say what it was made of: {record_file.name} beside it cannot be read "
                f"({reason_of(error)}). Encode the texts to another file: python -m spacy sbert encode."
            ) from error
        if record.digest != self.digest:
            raise ValueError(
                f"{path} is not the file that was written: its SHA-256 is {self.digest}, of that it was "
                f"{record.digest}. Encode the texts again, with --overwrite."
            )
        self.shape = record.rows, record.width
        self.encoder = str(record.made_of["encoder"]), str(record.made_of[WEIGHTS])

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"FileVectors({self.name}: {self.shape[0]} vectors of {self.shape[1]} numbers by {self.encoder[0]})"

    def of_texts(self, corpus: Path, columns: TextColumns) -> numpy.ndarray:
        """Return the vectors of a file's texts without its blank ones, float32 (n, width).

        corpus (Path), columns (TextColumns): what was encoded, or a file that has these texts in this order, such as
            one that the command `cluster` wrote.
        RAISES (ValueError): if it has other texts, or it is the file, and this another column of it.
        """
        made_of = self._record.made_of
        read: Values = {INPUT: file_digest(corpus), "column": columns.text, "header": columns.header}
        differing = differences({key: made_of.get(key) for key in read}, read)
        blank = self._record.blank
        if differing:
            texts, _ = digest_texts(corpus, columns)
            if read[INPUT] == made_of.get(INPUT) or texts != self._record.texts:
                count = sum(1 for _ in read_text_rows(corpus, columns))
                raise ValueError(
                    f"The {len(self)} vectors in {self.path} are of other texts than the {count} of {corpus}: "
                    f"{differing}. Give the file and the column that were encoded, or encode these."
                )
        return numpy.delete(self._read(), blank, axis=0).astype("float32", copy=False)

    def _read(self) -> numpy.ndarray:
        if self.path.suffix.lower() == ".npy":
            return numpy.load(self.path, mmap_mode="r", allow_pickle=False)
        import pyarrow  # noqa: PLC0415 (an extra)

        with pyarrow.OSFile(self.name) as file:
            blocks = list(TableReader(file).blocks())
        return numpy.concatenate(blocks) if blocks else numpy.empty(self.shape, dtype="float32")


def _check_vectors(path: Path) -> None:
    reason = ""
    if path.suffix.lower() not in SUFFIXES:
        reason = "its name ends in neither .npy nor .parquet"
    elif not path.exists():
        reason = "there is no such file"
    if reason:
        message = (
            f"There are no vectors at {path}: {reason}. Give a .npy or .parquet file that was written by: python -m "
            f"spacy sbert encode TEXTS {path.with_suffix('.npy').name}."
        )
        raise FileNotFoundError(message) if "no such" in reason else ValueError(message)


def digest_texts(corpus: Path, columns: TextColumns) -> tuple[str, list[int]]:
    """Return the SHA-256 of the texts of a file without its blank ones, and the rows of these."""
    blank: list[int] = []

    def texts() -> Iterator[str]:
        for number, (text, _) in enumerate(read_text_rows(corpus, columns)):
            if text and not text.isspace():
                yield text
            else:
                blank.append(number)

    return digest_of_stream(texts()), blank


def record_path(path: Path) -> Path:
    """Return where the record of a file of vectors stands."""
    return path.with_name(path.name + ".json")


def write_record(
    path: Path, vectors: Path, made_of: Values, texts: tuple[str, list[int]], shape: tuple[int, int]
) -> None:
    """Write down what a file of vectors is made of.

    path (Path): where it is going to stand. vectors (Path): where it is now. texts: see digest_texts.
    shape (tuple): (n, width).
    """
    record = _FileRecord(
        made_of=dict(made_of),
        rows=shape[0],
        width=shape[1],
        digest=file_digest(vectors),
        texts=texts[0],
        blank=texts[1],
    )
    write_json(record_path(path), record)


def is_record(path: Path) -> bool:
    """Return whether a file is a record, which may be replaced."""
    try:
        parse_checksummed(_FileRecord, path.read_bytes())
    except (OSError, ValueError):
        return False
    return True
