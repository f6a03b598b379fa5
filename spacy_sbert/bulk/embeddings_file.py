"""Files of vectors: written and read as .npy or .parquet, and the record beside each that says what it was made of."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy
from numpy.lib.format import dtype_to_descr, read_array_header_1_0, read_magic, write_array_header_1_0
from pydantic import BaseModel, NonNegativeInt

from ..files.serialization import digest_of_stream, file_digest, parse_checksummed
from ..files.tables import TextColumns, TextRow, read_text_rows
from ..progress import progress_of

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import NativeFile

MadeOf = dict[str, str | bool | int | None]  # what vectors depend on, by the name that messages use
ENCODER_DIGEST = "encoder (SHA-256)"
NO_PYARROW = "Writing {path} needs pyarrow. Install it: pip install 'spacy-sbert[parquet]'."
_SUFFIXES = (".npy", ".parquet")
_BLOCK_ROWS = 2**12


def check_format(path: Path, *, with_columns: bool) -> None:
    """Check the name of an output. with_columns (bool): whether ids or texts are written, too.

    RAISES (ValueError): for another name, or .npy with columns. (ImportError): for .parquet without pyarrow.
    """
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise ValueError(f"Cannot write the output {path}: expected a name that ends in one of {', '.join(_SUFFIXES)}.")
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


class ScannedTexts(BaseModel):
    """Result of reading all texts of a file.

    rows (int): how many there are. blank (list of int): the rows without text. digest (str): the SHA-256 of the other
    texts. id_type (str): "int64" or "string"; None if no ids are read.
    """

    rows: NonNegativeInt
    blank: list[NonNegativeInt]
    digest: str
    id_type: Literal["int64", "string"] | None


def scan_texts(path: Path, columns: TextColumns, *, progress: bool = False) -> ScannedTexts:
    """Read all texts of a file once. RAISES (ValueError): for a bad row, or ids of several types."""
    blank: list[int] = []
    id_types: set[str | None] = set()
    count = 0

    def texts() -> Iterator[str]:
        nonlocal count
        for row in progress_of(read_text_rows(path, columns), desc="Reading", unit="rows", shown=progress):
            id_types.add(None if row.id is None else "int64" if isinstance(row.id, int) else "string")
            if row.text and not row.text.isspace():
                yield row.text
            else:
                blank.append(count)
            count += 1

    digest = digest_of_stream(texts())
    if len(id_types) > 1:
        raise ValueError(
            f"{path}: the column '{columns.id}' has strings and whole numbers. Make all ids of "
            "one type, or leave --id-column out."
        )
    return ScannedTexts.model_validate(
        {"rows": count, "blank": blank, "digest": digest, "id_type": next(iter(id_types), None)}
    )


def write_npy(file: BinaryIO, blocks: Iterable[numpy.ndarray], shape: tuple[int, int], dtype: str) -> None:
    """Write the bytes that numpy.save writes of all blocks together."""
    header = {"descr": dtype_to_descr(numpy.dtype(dtype)), "fortran_order": False, "shape": shape}
    write_array_header_1_0(file, header)
    for block in blocks:
        file.write(block.data)


def write_parquet(
    file: BinaryIO,
    blocks: Iterable[numpy.ndarray],
    rows: Iterator[TextRow],
    id_type: str | None,
    with_text: bool,
    width: int,
    dtype: str,
) -> None:
    """Write a table: row number or id, text if asked for, and vector, a list of fixed size; a row group per block."""
    import pyarrow  # noqa: PLC0415 (an extra)
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415 (an extra)

    number = pyarrow.float32() if dtype == "float32" else pyarrow.float16()
    kinds = {"id" if id_type else "row": pyarrow.string() if id_type == "string" else pyarrow.int64()}
    if with_text:
        kinds["text"] = pyarrow.string()
    kinds["vector"] = pyarrow.list_(number, width)
    schema = pyarrow.schema([pyarrow.field(name, kind, nullable=False) for name, kind in kinds.items()])
    first = 0
    with ParquetWriter(file, schema, write_page_checksum=True) as writer:
        for vectors in blocks:
            block = list(islice(rows, len(vectors)))
            ids = [row.id for row in block] if id_type else range(first, first + len(block))
            columns = [pyarrow.array(ids, schema.field(0).type)]
            if with_text:
                columns.append(pyarrow.array([row.text for row in block], pyarrow.string()))
            columns.append(pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel(), number), width))
            writer.write_table(pyarrow.table(columns, schema=schema))
            first += len(block)


class ArrayReader:
    """Reader of a .npy file of vectors. shape (tuple): (rows, width).

    RAISES (ValueError): if the array has another dtype or number of dimensions.
    """

    def __init__(self, file: "NativeFile"):
        read_magic(file)
        shape, fortran, self._dtype = read_array_header_1_0(file)
        if fortran or self._dtype.name not in ("float32", "float16") or len(shape) != 2:
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
        """Return the ids and texts of some rows: none, as an array has no columns."""
        return [None] * len(rows), [None] * len(rows)


class TableReader:
    """Reader of a .parquet file with the column vector, and maybe id and text; see ArrayReader."""

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
        """Return the ids and texts of some rows, None for those that are not stored."""
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
    """Return a reader of a file of vectors. RAISES (ValueError): if it has no vectors."""
    return TableReader(file) if name.endswith(".parquet") else ArrayReader(file)


class FileRecord(BaseModel):
    """Contents of the record, which has the name of the file of vectors and .json.

    made_of (dict): input, encoder and options. width (int): of the vectors. digest (str): the SHA-256 of their file.
    texts (ScannedTexts): the texts that were encoded.
    """

    format: Literal["spacy-sbert file 2"] = "spacy-sbert file 2"
    made_of: MadeOf
    width: NonNegativeInt
    digest: str
    texts: ScannedTexts


def record_path(path: Path) -> Path:
    """Return the path of the record of a file of vectors."""
    return path.with_name(path.name + ".json")


def is_record(path: Path) -> bool:
    """Return whether a file is a record that this package wrote."""
    try:
        parse_checksummed(FileRecord, path.read_bytes())
    except (OSError, ValueError):
        return False
    return True


class FileVectors:
    """The vectors that encode_file wrote.

    path (Path): .npy or .parquet.
    name (str): the path. shape (tuple): (n, width). encoder (tuple): name and SHA-256 of the encoder.
    digest (str): of the file.
    RAISES (ValueError): if there is no record beside the file, or the file was changed. (OSError): if there is no such
        file.
    """

    def __init__(self, path: Path | str):
        self.path, self.name = Path(path), str(path)
        self.digest, record = file_digest(self.path), record_path(self.path)
        try:
            self._record = parse_checksummed(FileRecord, record.read_bytes())
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{path} does not say what it was made of: {record.name} beside it cannot be read "
                f"({error}). Encode the texts to another file: python -m spacy sbert encode."
            ) from error
        made_of, expected = self._record.made_of, self._record.digest
        if self.digest != expected:
            raise ValueError(
                f"{path} is not the file that was written: its SHA-256 is {self.digest}, expected {expected}. "
                "Encode the texts again, with --overwrite."
            )
        self.shape = self._record.texts.rows, self._record.width
        self.encoder = str(made_of["encoder"]), str(made_of[ENCODER_DIGEST])

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"FileVectors({self.name}: {self.shape[0]} vectors of {self.shape[1]} numbers by {self.encoder[0]})"

    def of_texts(self, corpus: Path, columns: TextColumns) -> numpy.ndarray:
        """Return the vectors of a file's texts without its blank ones, float32 (n, width).

        corpus (Path), columns (TextColumns): the file that was encoded, or one with the same texts in the same order,
            such as the command `cluster` writes.
        RAISES (ValueError): if it has other texts.
        """
        texts, theirs = self._record.texts, scan_texts(corpus, columns)
        if theirs.digest != texts.digest:
            raise ValueError(
                f"The {len(self)} vectors in {self.path} are of other texts than the {theirs.rows} of {corpus}. Give "
                "the file and the column that were encoded, or encode these."
            )
        return numpy.delete(self._read(), texts.blank, axis=0).astype("float32", copy=False)

    def _read(self) -> numpy.ndarray:
        if self.path.suffix.lower() == ".npy":
            return numpy.load(self.path, mmap_mode="r", allow_pickle=False)
        import pyarrow  # noqa: PLC0415 (an extra)

        with pyarrow.OSFile(self.name) as file:
            return numpy.concatenate([numpy.empty((0, self.shape[1]), dtype="float32"), *TableReader(file).blocks()])
