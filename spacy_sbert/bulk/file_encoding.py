"""Encode a file of texts into a file of vectors.

Finished windows are kept, so an interrupted run resumes.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, NamedTuple

import numpy
from numpy.lib.format import dtype_to_descr, write_array_header_1_0

from ..errors import import_extra, warn
from ..files.atomic import check_apart, check_input, check_output
from ..files.checksum import file_digest
from ..files.serialization import versions
from ..files.tables import TextColumns, read_text_rows
from ..files.text_lines import check_texts
from ..models.encoded_docs import Encoded, TruncationCounter
from ..models.fingerprint import precision_of
from ..models.text_encoders import TextEncoder, TransformerTextEncoder, check_gpus, encode_chunks
from ..pipeline.sbert import SentenceBert
from ..progress import progress_bar
from ..validation import NonNegative, Positive, Processes, Width, check_fields, validated
from .embeddings_file import ENCODER_DIGEST, FileRecord, MadeOf, ScannedTexts
from .partial_run import PartialRun

if TYPE_CHECKING:
    import pyarrow

_INPUT = "input (SHA-256)"
_PACKAGES = ("spacy-sbert", "spacy", "thinc", "torch", "transformers", "tokenizers", "numpy")


@dataclass(frozen=True)
class Encoding:
    """Options of encode_file that its output depends on.

    RAISES (ValueError): for another type or range.
    """

    column: str = "text"
    header: bool = True
    id_column: str | None = None
    with_text: bool = False
    dtype: Literal["float32", "float16"] = "float32"
    window: Positive = 4096
    max_batch_items: NonNegative = 0
    prompt_name: str | None = None
    prompt: str | None = None
    truncate_dim: Width | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def columns(self) -> TextColumns:
        """The columns of a table that are read."""
        return TextColumns(self.column, self.id_column, self.header)

    def check_format(self, output: Path) -> None:
        """Check the name of an output. RAISES (ImportError, ValueError): see encode_file."""
        suffix = output.suffix.lower()
        if suffix not in (".npy", ".parquet"):
            raise ValueError(
                f"Cannot write the output {output}: expected a name that ends in one of .npy, "
                ".parquet."
            )
        if suffix == ".npy" and (self.with_text or self.id_column is not None):
            raise ValueError(
                f"{output} is an array. Leave out id_column and with_text, or name it *.parquet."
            )
        if suffix == ".parquet":
            import_extra("pyarrow", f"Writing {output} needs pyarrow", "parquet")

    def encoder(self, sbert: SentenceBert) -> TextEncoder:
        """Return the loaded encoder of a pipe with these options.

        The pipe warns if its folder asks for others.
        """
        sbert.load()
        return sbert.text_encoder(
            prompt_name=self.prompt_name, prompt=self.prompt, truncate_dim=self.truncate_dim
        )

    def made_of(self, encoder: TextEncoder, gpu_ids: Sequence[int], suffix: str) -> MadeOf:
        """Return all that the bytes of an output depend on, except the texts.

        Keys are the names that messages use.
        """
        encoder.check_calibrated()
        precision = "float32"
        if isinstance(encoder, TransformerTextEncoder):
            precision = precision_of(encoder.model.shim)
        packages = {name: number for name, number in versions().items() if name in _PACKAGES}
        return {
            **asdict(self),
            "output": suffix,
            "max_batch_items": encoder.budget(self.max_batch_items, gpu_ids),
            "encoder": encoder.name,
            ENCODER_DIGEST: encoder.digest(),
            "width": encoder.width,
            "precision": precision,
            "device": encoder.device_name(gpu_ids),
            **packages,
        }


@dataclass(frozen=True)
class BulkReport:
    """Counts of a file.

    rows (int): of the input, and of the output. width (int): of a vector.
    resumed (int): how many rows an interrupted run had done.
    zero (int): how many rows have no wordpieces, so that their vectors are zero.
    cut (int): how many rows are longer than the encoder's limit.
    """

    rows: int
    width: int
    resumed: int
    zero: int
    cut: int


@validated
def encode_file(
    sbert: SentenceBert,
    input_path: Path | str,
    output_path: Path | str,
    *,
    column: str = "text",
    header: bool = True,
    id_column: str | None = None,
    with_text: bool = False,
    dtype: Literal["float32", "float16"] = "float32",
    window: Positive = 4096,
    max_batch_items: NonNegative = 0,
    n_process: Processes = 1,
    gpu_ids: Sequence[NonNegative] = (),
    progress: bool = False,
    overwrite: bool = False,
    restart: bool = False,
    prompt_name: str | None = None,
    prompt: str | None = None,
    truncate_dim: Width | None = None,
) -> BulkReport:
    """Write the vectors of a file's texts to another file, a row for each text.

    They are those of SentenceBert.encode. Finished windows are kept in the folder OUT.partial.
    After an interruption of any kind the same call resumes, and the file is the same, bit for bit.
    OUT.json beside it says what it is made of, see FileVectors.

    sbert (SentenceBert): the pipe. input_path (Path): .txt, .jsonl, .csv (quoted), .tsv, each of
        them .gz or not, or .parquet. It is read more than once, the first time to find bad rows.
    output_path (Path): .npy, or .parquet with the columns row or id, text if asked for, vector.
    column (str): of the text. header (bool): whether .csv and .tsv have one; if not, columns are
        named "0", "1", ...
    id_column (str): strings or whole numbers that name the rows of a .parquet output. with_text
        (bool): whether it has the texts, too. dtype (str): "float32" or "float16".
    window (int): texts that are encoded together, and how often work is saved. As many texts, and a
        few times as many with several processes, are in memory.
    max_batch_items (int): the most wordpieces in a forward pass; 0 as the encoder says, or what
        suits the device.
    n_process, gpu_ids: see SentenceBert.encode. They may be others when the run resumes.
    progress (bool): whether to show a progress bar. overwrite (bool): whether an output that is
        there is replaced, when all is done. restart (bool): whether to start over, whatever
        OUT.partial holds.
    prompt_name, prompt (str), truncate_dim (int): see SentenceBert.predict.
    RETURNS (BulkReport): counts.
    RAISES (ValueError): for a bad row, with file and line; for an unknown format or option; for an
        interrupted run of another input, encoder or option; for what is not a file, or a link.
        (OSError): if a file cannot be read or written, or is there already. (RuntimeError): if
        another process writes the same output.

    Example:
        encode_file(find_sbert(nlp), "corpus.txt", "corpus.npy")
        FileVectors("corpus.npy")[:10]

    """
    encoding = Encoding(
        column,
        header,
        id_column,
        with_text,
        dtype,
        window,
        max_batch_items,
        prompt_name,
        prompt,
        truncate_dim,
    )
    source = Path(input_path)
    output = Path(output_path)
    check_paths(source, output, encoding, overwrite=overwrite)
    check_gpus(gpu_ids)
    encoder = encoding.encoder(sbert)
    settings = encoding.made_of(encoder, gpu_ids, output.suffix.lower())
    devices = _Devices(n_process, gpu_ids)
    with PartialRun(source, output, encoding.dtype, encoding.window) as run:
        report = _encode(
            run, encoding, encoder, settings, devices, restart=restart, progress=progress
        )
    counter = TruncationCounter()
    counter.add_rows(report.rows, report.cut, encoder.max_length)
    if counter.count:
        warn(counter.message)
    return report


def check_paths(source: Path, output: Path, encoding: Encoding, *, overwrite: bool) -> None:
    """Check the files of encode_file before anything is loaded; see there for what is raised."""
    encoding.check_format(output)
    check_texts(source)
    check_input(source)
    check_apart(source, output)
    check_output(output)
    for path in (output, FileRecord.path_of(output)):
        if path.exists() and not overwrite:
            raise FileExistsError(
                f"{path} is there already. Give the output another name, or use --overwrite."
            )


class _Devices(NamedTuple):
    """Processes and GPUs that encode a file; see encode_file."""

    n_process: int
    gpu_ids: Sequence[int]


def _encode(
    run: PartialRun,
    encoding: Encoding,
    encoder: TextEncoder,
    settings: MadeOf,
    devices: _Devices,
    *,
    restart: bool,
    progress: bool,
) -> BulkReport:
    """Encode the windows that are not finished, and write the output. settings: see made_of."""
    made_of: MadeOf = {_INPUT: file_digest(run.source), **settings}
    if restart or not run.resume(made_of):
        run.clear()
        texts = ScannedTexts.scan(run.source, encoding.columns, progress=progress)
        width = encoder.encode(encoder.tokenize(["a"]))[0].shape[1]
        run.begin(FileRecord(made_of=made_of, width=width, texts=texts))
    counts = [_count(finished) for finished in run.windows()]
    resumed = sum(count.rows for count in counts)
    counts += _encode_rest(run, encoding, encoder, devices, counts, progress=progress)
    run.finish(partial(_write_output, run, encoding))
    return BulkReport(
        rows=run.record.texts.rows,
        width=run.record.width,
        resumed=resumed,
        zero=sum(count.zero for count in counts),
        cut=sum(count.cut for count in counts),
    )


def _encode_rest(
    run: PartialRun,
    encoding: Encoding,
    encoder: TextEncoder,
    devices: _Devices,
    finished: Sequence["_Counts"],
    *,
    progress: bool,
) -> list["_Counts"]:
    """Encode and write the windows behind those that are finished, and return their counts."""
    n = run.record.texts.rows
    first = sum(count.rows for count in finished)
    if first == n:
        return []
    records = islice(read_text_rows(run.source, encoding.columns), first, None)
    budget = encoder.budget(encoding.max_batch_items, devices.gpu_ids)
    counts: list[_Counts] = []
    with (
        progress_bar(n, initial=first, shown=progress, unit="texts") as bar,
        _fixed(encoder, budget),
    ):
        windows = encode_chunks(
            encoder,
            (text for text, _ in records),
            window=encoding.window,
            n_process=devices.n_process,
            gpu_ids=devices.gpu_ids,
            moved=bar.update,
        )
        for number, window in enumerate(windows, len(finished)):
            counts.append(_count(run.write(number, window)))
    return counts


class _Counts(NamedTuple):
    """Counts of a window: its rows, those that are zero, and those that were cut."""

    rows: int
    zero: int
    cut: int


def _count(window: Encoded) -> _Counts:
    vectors, n_cut = window
    return _Counts(len(vectors), int((~vectors.any(axis=1)).sum()), n_cut)


@contextmanager
def _fixed(encoder: TextEncoder, budget: int) -> Iterator[None]:
    """Fix the size of batches, so that the last bits do not depend on the number of threads."""
    if not isinstance(encoder, TransformerTextEncoder):
        yield
        return
    shim = encoder.model.shim
    before = shim.max_batch_items
    shim.max_batch_items = budget
    try:
        yield
    finally:
        shim.max_batch_items = before


def _write_output(
    run: PartialRun, encoding: Encoding, file: BinaryIO, blocks: Iterator[numpy.ndarray]
) -> None:
    record = run.record
    if run.output.suffix.lower() == ".npy":
        _write_npy(file, blocks, (record.texts.rows, record.width), encoding.dtype)
    else:
        rows = read_text_rows(run.source, encoding.columns)
        _write_parquet(file, blocks, rows, record, encoding)


def _write_npy(
    file: BinaryIO, blocks: Iterable[numpy.ndarray], shape: tuple[int, int], dtype: str
) -> None:
    """Write the bytes that numpy.save writes of all blocks together."""
    header = {"descr": dtype_to_descr(numpy.dtype(dtype)), "fortran_order": False, "shape": shape}
    write_array_header_1_0(file, header)
    for block in blocks:
        file.write(block.data)


def _write_parquet(
    file: BinaryIO,
    blocks: Iterable[numpy.ndarray],
    rows: Iterator[tuple[str, str | int | None]],
    record: FileRecord,
    encoding: Encoding,
) -> None:
    """Write a table: row number or id, text if asked for, and vector, a list of fixed size.

    A row group per block.
    """
    import pyarrow  # noqa: PLC0415 (an extra)
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415 (an extra)

    schema = _schema(record, encoding)
    has_ids = record.texts.id_type is not None
    first = 0
    with ParquetWriter(file, schema, write_page_checksum=True) as writer:
        for vectors in blocks:
            block = list(islice(rows, len(vectors)))
            end = first + len(block)
            names = [row_id for _, row_id in block] if has_ids else range(first, end)
            columns = [pyarrow.array(names, schema.field(0).type)]
            if encoding.with_text:
                columns.append(pyarrow.array([text for text, _ in block], pyarrow.string()))
            vector_type = schema.field("vector").type
            numbers = pyarrow.array(vectors.ravel(), vector_type.value_type)
            columns.append(pyarrow.FixedSizeListArray.from_arrays(numbers, vector_type.list_size))
            writer.write_table(pyarrow.table(columns, schema=schema))
            first = end


def _schema(record: FileRecord, encoding: Encoding) -> "pyarrow.Schema":
    """Return the columns of a table of vectors: row or id, text if asked for, and vector."""
    import pyarrow  # noqa: PLC0415 (an extra)

    kinds: dict[str, pyarrow.DataType] = {}
    if record.texts.id_type is None:
        kinds["row"] = pyarrow.int64()
    elif record.texts.id_type == "int64":
        kinds["id"] = pyarrow.int64()
    else:
        kinds["id"] = pyarrow.string()
    if encoding.with_text:
        kinds["text"] = pyarrow.string()
    number = pyarrow.float32() if encoding.dtype == "float32" else pyarrow.float16()
    kinds["vector"] = pyarrow.list_(number, record.width)
    return pyarrow.schema(
        [pyarrow.field(name, kind, nullable=False) for name, kind in kinds.items()]
    )
