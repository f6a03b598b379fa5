"""Encode a file of texts into a file of vectors.

Finished windows are kept, so an interrupted run resumes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

import numpy
from numpy.lib.format import dtype_to_descr, write_array_header_1_0

from ..errors import import_extra, warn
from ..files.atomic import (
    Lock,
    atomic_write,
    check_apart,
    check_input,
    check_output,
    rewrite_os_errors,
)
from ..files.checksum import checksummed_json, file_digest, parse_checksummed
from ..files.serialization import read_arrays, versions
from ..files.tables import TextColumns, read_text_rows
from ..files.text_lines import check_texts
from ..models.encoded_docs import Encoded, TruncationCounter
from ..models.fingerprint import precision_of
from ..models.text_encoders import TextEncoder, TransformerTextEncoder, check_gpus, encode_windows
from ..pipeline.sbert import SentenceBert
from ..progress import progress_bar
from ..validation import NonNegative, Positive, Processes, Width, check_fields, validated
from .embeddings_file import ENCODER_DIGEST, FileRecord, MadeOf, ScannedTexts

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
        """Return the encoder of a pipe with these options, loaded: the pipe warns if its folder asks for others."""
        sbert.load()
        return sbert.text_encoder(
            prompt_name=self.prompt_name, prompt=self.prompt, truncate_dim=self.truncate_dim
        )

    def made_of(self, encoder: TextEncoder, gpu_ids: Sequence[int], suffix: str) -> MadeOf:
        """Return all that the bytes of an output depend on but the texts, by the names that messages use."""
        encoder.check_calibrated()
        precision = (
            precision_of(encoder.model.shim)
            if isinstance(encoder, TransformerTextEncoder)
            else "float32"
        )
        return {
            **asdict(self),
            "output": suffix,
            "max_batch_items": encoder.budget(self.max_batch_items, gpu_ids),
            "encoder": encoder.name,
            ENCODER_DIGEST: encoder.digest(),
            "width": encoder.width,
            "precision": precision,
            "device": encoder.device_name(gpu_ids),
            **{package: version for package, version in versions().items() if package in _PACKAGES},
        }


def differences(before: Mapping[str, object], now: Mapping[str, object]) -> str:
    """Return what differs between two descriptions, for a message; "" if they are equal."""
    keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return "; ".join(f"{key} was {before.get(key)}, now {now.get(key)}" for key in keys)


@dataclass(frozen=True)
class BulkReport:
    """Counts of a file.

    rows: of the input and of the output. width: of a vector. resumed: rows that an interrupted run
        had done.
    zero: rows without wordpieces, whose vectors are zero. cut: rows longer than the encoder's
        limit.
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
    """Write the vectors of a file's texts, those of SentenceBert.encode, a row for each, to another file.

    Finished windows are kept in the folder OUT.partial. After an interruption of any kind the same
    call resumes, and the file is the same, bit for bit. OUT.json beside it says what it is made of,
    see FileVectors.

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
    source, output = Path(input_path), Path(output_path)
    check_paths(source, output, encoding, overwrite=overwrite)
    check_gpus(gpu_ids)
    encoder = encoding.encoder(sbert)
    settings = encoding.made_of(encoder, gpu_ids, output.suffix.lower())
    with _PartialRun(source, output, encoding) as run:
        report = run.encode(
            encoder, settings, n_process, gpu_ids, restart=restart, progress=progress
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


class _PartialRun:
    """OUT.partial: the folder of a run, locked while in use, and removed with the run.

    run.json says what the vectors are made of. Each finished window is a file, written atomically.
    """

    record: FileRecord

    def __init__(self, source: Path, output: Path, encoding: Encoding):
        self.source, self.output, self.encoding = source, output, encoding
        self.columns = TextColumns(encoding.column, encoding.id_column, encoding.header)
        self._state = self._file_state()
        self.folder = output.with_name(output.name + ".partial")
        self._run = self.folder / "run.json"
        self._new, self._new_json = self.folder / "new", self.folder / "new.json"

    def __enter__(self) -> "_PartialRun":
        check_output(self.folder, is_folder=True)
        with rewrite_os_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self.folder / "lock")
        return self

    def __exit__(self, *error: object) -> None:
        is_done = not self._run.is_file()
        self._lock.release(remove=is_done)
        if is_done:
            # It has a file of the user
            with suppress(OSError):
                self.folder.rmdir()

    def encode(
        self,
        encoder: TextEncoder,
        settings: MadeOf,
        n_process: int,
        gpu_ids: Sequence[int],
        *,
        restart: bool,
        progress: bool,
    ) -> BulkReport:
        """Encode the windows that are not finished, write the output, and remove the run. settings: see made_of."""
        made_of: MadeOf = {_INPUT: file_digest(self.source), **settings}
        if restart or not self._resume(made_of):
            self.clear()
            texts = ScannedTexts.scan(self.source, self.columns, progress=progress)
            width = encoder.encode(encoder.tokenize(["a"]))[0].shape[1]
            self.record = FileRecord(made_of=made_of, width=width, texts=texts)
            self._write_record(self._run)
        counts = [_count(finished) for finished in self.windows()]
        n, resumed = self.record.texts.rows, sum(rows for rows, _, _ in counts)
        if resumed < n:
            left = (
                text for text, _ in islice(read_text_rows(self.source, self.columns), resumed, None)
            )
            size, budget = (
                self.encoding.window,
                encoder.budget(self.encoding.max_batch_items, gpu_ids),
            )
            with (
                progress_bar(n, initial=resumed, shown=progress, unit="texts") as bar,
                _fixed(encoder, budget),
            ):
                for window in encode_windows(
                    encoder,
                    left,
                    window=size,
                    n_process=n_process,
                    gpu_ids=gpu_ids,
                    moved=bar.update,
                ):
                    self._check_unchanged()
                    counts.append(_count(self.write(len(counts), window)))
        self._check_unchanged()
        self._assemble()
        self.clear()
        _, zero, cut = map(sum, zip((0, 0, 0), *counts, strict=True))
        return BulkReport(n, self.record.width, resumed, zero, cut)

    def _resume(self, made_of: MadeOf) -> bool:
        """Return whether there is an interrupted run.

        RAISES (ValueError): if it was made otherwise, or is damaged.
        """
        if not self._run.is_file():
            return False
        check_output(self._run)
        try:
            self.record = parse_checksummed(FileRecord, self._run.read_bytes())
        except ValueError as error:
            raise ValueError(
                f"Cannot resume the run of {self._run}: it is damaged ({error}). Start over with "
                "--restart."
            ) from error
        if differing := differences(self.record.made_of, made_of):
            raise ValueError(
                f"{self.folder} holds an interrupted run that was begun otherwise: {differing}. "
                "Resume with its input "
                "and options, or start over with --restart."
            )
        return True

    def clear(self) -> None:
        """Remove the run: run.json first, so that nothing resumes with the rest."""
        for path in (self._run, self._new, self._new_json, *self.folder.glob("window-*.npz")):
            path.unlink(missing_ok=True)

    def windows(self) -> Iterator[Encoded]:
        """Yield the finished windows, up to the first that is missing or damaged."""
        size, rows = self.encoding.window, self.record.texts.rows
        for number, first in enumerate(range(0, rows, size)):
            path = self._path(number)
            check_output(path)
            try:
                arrays = read_arrays(
                    path, {"vectors": (self.encoding.dtype, 2), "cut": ("int64", 0)}
                )
            except (FileNotFoundError, ValueError):
                return
            if arrays["vectors"].shape != (min(size, rows - first), self.record.width):
                return
            yield arrays["vectors"], int(arrays["cut"])

    def write(self, number: int, window: Encoded) -> Encoded:
        """Write a finished window, and return it with vectors of the dtype of the output.

        Finite ones only.
        """
        dtype, (rows, n_cut) = self.encoding.dtype, window
        # Infinite numbers are found below
        with numpy.errstate(over="ignore"):
            vectors = numpy.ascontiguousarray(rows, dtype=dtype)
        finite = numpy.isfinite(vectors).all(axis=1)
        if not finite.all():
            row = number * self.encoding.window + int(finite.argmin())
            raise ValueError(
                f"The vector of row {row} (from 0) is not finite in {dtype}. Write float32, or "
                "use --precision float32."
            )
        with atomic_write(self._path(number), temporary=self._new) as file:
            numpy.savez(file, vectors=vectors, cut=numpy.array(n_cut, dtype="int64"))
        return vectors, n_cut

    def _assemble(self) -> None:
        """Write the output of all windows, and its record."""
        shape = self.record.texts.rows, self.record.width
        with atomic_write(self.output, temporary=self._new) as file:
            if self.output.suffix.lower() == ".npy":
                _write_npy(file, self._blocks(), shape, self.encoding.dtype)
            else:
                rows = read_text_rows(self.source, self.columns)
                _write_parquet(file, self._blocks(), rows, self.record, self.encoding)
        self.record = self.record.model_copy(update={"digest": file_digest(self.output)})
        self._write_record(FileRecord.path_of(self.output))

    def _blocks(self) -> Iterator[numpy.ndarray]:
        left = self.record.texts.rows
        for vectors, _ in self.windows():
            yield vectors
            left -= len(vectors)
        self._check_unchanged(is_whole=not left)

    def _file_state(self) -> tuple[int, int, int]:
        stat = self.source.stat()
        return stat.st_size, stat.st_mtime_ns, stat.st_ino

    def _check_unchanged(self, *, is_whole: bool = True) -> None:
        """Raise ValueError if the input was changed since the run began, or lacks rows that it had."""
        if not is_whole or self._file_state() != self._state:
            raise ValueError(
                f"{self.source} was changed while it was read. Change it back and run the same "
                "command again, or start "
                "over with --restart."
            )

    def _path(self, number: int) -> Path:
        return self.folder / f"window-{number:08}.npz"

    def _write_record(self, path: Path) -> None:
        with atomic_write(path, temporary=self._new_json) as file:
            file.write(
                json.dumps(checksummed_json(self.record.model_dump()), indent=2).encode("utf8")
            )


def _count(window: Encoded) -> tuple[int, int, int]:
    """Return how many rows a window has, how many of them are zero, and how many were cut."""
    vectors, n_cut = window
    return len(vectors), int((~vectors.any(axis=1)).sum()), n_cut


@contextmanager
def _fixed(encoder: TextEncoder, budget: int) -> Iterator[None]:
    """Fix the size of forward passes, so that the last bits do not depend on the number of threads."""
    if not isinstance(encoder, TransformerTextEncoder):
        yield
        return
    before, encoder.model.shim.max_batch_items = encoder.model.shim.max_batch_items, budget
    try:
        yield
    finally:
        encoder.model.shim.max_batch_items = before


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

    id_type, width = record.texts.id_type, record.width
    number = pyarrow.float32() if encoding.dtype == "float32" else pyarrow.float16()
    kinds = {
        "id" if id_type else "row": pyarrow.string() if id_type == "string" else pyarrow.int64()
    }
    if encoding.with_text:
        kinds["text"] = pyarrow.string()
    kinds["vector"] = pyarrow.list_(number, width)
    schema = pyarrow.schema(
        [pyarrow.field(name, kind, nullable=False) for name, kind in kinds.items()]
    )
    first = 0
    with ParquetWriter(file, schema, write_page_checksum=True) as writer:
        for vectors in blocks:
            block = list(islice(rows, len(vectors)))
            ids = [row_id for _, row_id in block] if id_type else range(first, first + len(block))
            columns = [pyarrow.array(ids, schema.field(0).type)]
            if encoding.with_text:
                columns.append(pyarrow.array([text for text, _ in block], pyarrow.string()))
            columns.append(
                pyarrow.FixedSizeListArray.from_arrays(
                    pyarrow.array(vectors.ravel(), number), width
                )
            )
            writer.write_table(pyarrow.table(columns, schema=schema))
            first += len(block)
