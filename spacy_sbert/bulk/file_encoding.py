"""Encode a file of texts into a file of vectors. Finished windows are kept, so an interrupted run resumes."""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy
from pydantic import BaseModel, NonNegativeInt

from ..files.atomic import Lock, atomic_write, check_folder, check_input, check_output, rewrite_os_errors
from ..files.serialization import checksummed_json, file_digest, parse_checksummed, read_arrays, versions
from ..files.tables import TextColumns, read_text_rows
from ..files.text_lines import check_texts
from ..models.encoded_docs import TruncationCounter
from ..models.fingerprint import precision_of
from ..models.text_encoders import TextEncoder, TransformerTextEncoder, check_gpus, encode_windows
from ..pipeline.sbert import SentenceBert
from ..progress import progress_bar
from ..validation import NonNegative, Positive, Processes, Width, check_fields, validated
from .embeddings_file import (
    ENCODER_DIGEST,
    FileRecord,
    MadeOf,
    ScannedTexts,
    check_format,
    is_record,
    record_path,
    scan_texts,
    write_npy,
    write_parquet,
)

_INPUT = "input (SHA-256)"
_PACKAGES = ("spacy-sbert", "spacy", "thinc", "torch", "transformers", "tokenizers", "numpy")


@dataclass(frozen=True)
class Encoding:
    """Options of encode_file that its output depends on. RAISES (ValueError): for another type or range."""

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
    def with_columns(self) -> bool:
        """Whether the output has columns beside the vectors."""
        return self.with_text or self.id_column is not None

    def encoder(self, sbert: SentenceBert) -> TextEncoder:
        """Return the encoder of a pipe with these options."""
        return sbert.text_encoder(prompt_name=self.prompt_name, prompt=self.prompt, truncate_dim=self.truncate_dim)

    def made_of(self, encoder: TextEncoder, gpu_ids: Sequence[int], suffix: str) -> MadeOf:
        """Return all that the bytes of an output depend on but the texts, by the names that messages use.

        encoder (TextEncoder): it is loaded. gpu_ids (Sequence[int]): the GPUs to work on. suffix (str): of the output.
        RAISES (ValueError): if "int8" has no ranges yet.
        """
        encoder.check_calibrated()
        precision = "float32"
        if isinstance(encoder, TransformerTextEncoder):
            precision = precision_of(encoder.model.shim)
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
    """Return what differs between two descriptions, for a message; an empty text if they are equal."""
    keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return "; ".join(f"{key} was {before.get(key)}, now {now.get(key)}" for key in keys)


@dataclass(frozen=True)
class BulkReport:
    """Counts of a file.

    rows: of the input and of the output. width: of a vector. resumed: rows that an interrupted run had done.
    zero: rows without wordpieces, whose vectors are zero. cut: rows longer than the encoder's limit.
    """

    rows: int
    width: int
    resumed: int
    zero: int
    cut: int


class _Window(NamedTuple):
    """Vectors (rows, width), and how many of their texts were cut."""

    vectors: numpy.ndarray
    cut: int


class _Manifest(BaseModel):
    """Contents of run.json.

    made_of (dict): input, encoder and options. width (int): of the vectors. texts (ScannedTexts): the rows to encode.
    """

    format: Literal["spacy-sbert encode 3"] = "spacy-sbert encode 3"
    made_of: MadeOf
    width: NonNegativeInt
    texts: ScannedTexts


class PartialRun:
    """OUT.partial: the folder of a run, locked while in use, and removed with the run.

    run.json says what the vectors are made of. Each finished window is a file, written atomically.

    source (Path), encoding (Encoding): the texts, and how they are encoded. output (Path): OUT; its folder is made.
    RAISES (RuntimeError): if another process writes the same output.
    """

    manifest: _Manifest

    def __init__(self, source: Path, output: Path, encoding: Encoding):
        self.source, self.output, self.encoding = source, output, encoding
        self.columns = TextColumns(encoding.column, encoding.id_column, encoding.header)
        self._state = _file_state(source)
        self.folder = output.with_name(output.name + ".partial")
        self._run = self.folder / "run.json"
        self._new, self._new_json = self.folder / "new", self.folder / "new.json"

    def __enter__(self) -> "PartialRun":
        check_folder(self.folder)
        with rewrite_os_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self.folder / "lock")
        return self

    def __exit__(self, *error: object) -> None:
        is_done = not self._run.is_file()
        self._lock.release(remove=is_done)
        if is_done:
            with suppress(OSError):  # it has a file of the user
                self.folder.rmdir()

    def resume(self, made_of: MadeOf) -> bool:
        """Return whether there is an interrupted run, whose manifest is read.

        RAISES (ValueError): if it was made of something else, or run.json is damaged.
        """
        if not self._run.is_file():
            return False
        check_output(self._run)
        try:
            self.manifest = parse_checksummed(_Manifest, self._run.read_bytes())
        except ValueError as error:
            raise ValueError(
                f"Cannot resume the run of {self._run}: it is damaged ({error}). Start over with --restart."
            ) from error
        if differing := differences(self.manifest.made_of, made_of):
            raise ValueError(
                f"{self.folder} holds an interrupted run that was begun otherwise: {differing}. Resume with the "
                "input and the options of that run, or start over with --restart."
            )
        return True

    def begin(self, made_of: MadeOf, width: int, *, progress: bool) -> None:
        """Begin a run. RAISES (ValueError): for a bad row of the input."""
        self.clear()
        texts = scan_texts(self.source, self.columns, progress=progress)
        self.manifest = _Manifest(made_of=made_of, width=width, texts=texts)
        self._write_json(self._run, self.manifest)

    def clear(self) -> None:
        """Remove the run: run.json first, so that nothing resumes with the rest."""
        for path in (self._run, self._new, self._new_json, *self.folder.glob("window-*.npz")):
            path.unlink(missing_ok=True)

    def windows(self) -> Iterator[_Window]:
        """Yield the finished windows, up to the first that is missing or damaged."""
        for number in range(-(-self.manifest.texts.rows // self.encoding.window)):
            path = self._path(number)
            check_output(path)
            if not path.is_file():
                return
            try:
                arrays = read_arrays(path, {"vectors": (self.encoding.dtype, 2), "cut": ("int64", 0)})
            except ValueError:
                return
            if arrays["vectors"].shape != self.shape(number):
                return
            yield _Window(arrays["vectors"], int(arrays["cut"]))

    def shape(self, number: int) -> tuple[int, int]:
        """Return the shape of a window's vectors."""
        rows, window = self.manifest.texts.rows, self.encoding.window
        return min(window, rows - number * window), self.manifest.width

    def write(self, number: int, window: _Window) -> _Window:
        """Write a finished window, and return it with vectors of the dtype of the output.

        RAISES (ValueError): for a number that is not finite in this dtype. (OSError): if writing fails, as on a full
            disk; finished windows stay.
        """
        dtype, first = self.encoding.dtype, number * self.encoding.window
        with numpy.errstate(over="ignore"):  # infinite numbers are found below
            vectors = numpy.ascontiguousarray(window.vectors, dtype=dtype)
        finite = numpy.isfinite(vectors).all(axis=1)
        if not finite.all():
            raise ValueError(
                f"The vector of row {first + int(finite.argmin())} (from 0) is not finite in {dtype}. "
                "Write float32, or encode in another precision (--precision float32)."
            )
        with atomic_write(self._path(number), temporary=self._new) as file:
            numpy.savez(file, vectors=vectors, cut=numpy.array(window.cut, dtype="int64"))
        return _Window(vectors, window.cut)

    def check_unchanged(self, *, has_rows: bool = True) -> None:
        """Raise ValueError if the input was changed since the run began, or lacks rows that it had."""
        if not has_rows or _file_state(self.source) != self._state:
            raise ValueError(
                f"{self.source} was changed while it was read. Run the same command again; if the change is to stay, "
                "with --restart."
            )

    def assemble(self) -> None:
        """Write the output of all windows, and its record."""
        manifest, encoding = self.manifest, self.encoding
        texts, width = manifest.texts, manifest.width
        with atomic_write(self.output, temporary=self._new) as file:
            if self.output.suffix.lower() == ".npy":
                write_npy(file, self._blocks(), (texts.rows, width), encoding.dtype)
            else:
                rows = read_text_rows(self.source, self.columns)
                write_parquet(file, self._blocks(), rows, texts.id_type, encoding.with_text, width, encoding.dtype)
        record = FileRecord(made_of=manifest.made_of, width=width, digest=file_digest(self.output), texts=texts)
        self._write_json(record_path(self.output), record)

    def _blocks(self) -> Iterator[numpy.ndarray]:
        left = self.manifest.texts.rows
        for window in self.windows():
            yield window.vectors
            left -= len(window.vectors)
        self.check_unchanged(has_rows=not left)

    def _path(self, number: int) -> Path:
        return self.folder / f"window-{number:08}.npz"

    def _write_json(self, path: Path, content: BaseModel) -> None:
        with atomic_write(path, temporary=self._new_json) as file:
            file.write(json.dumps(checksummed_json(content.model_dump()), indent=2).encode("utf8"))


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

    Finished windows are kept in the folder OUT.partial. After an interruption of any kind the same call resumes, and
    the file is the same, bit for bit. OUT.json beside it says what it is made of, see FileVectors.

    sbert (SentenceBert): the pipe.
    input_path (Path): .txt, .jsonl, .csv (quoted), .tsv (not quoted), each of them .gz or not, or .parquet. It is read
        more than once, the first time to find bad rows.
    output_path (Path): .npy, or .parquet with the columns row or id, text if asked for, vector.
    column (str): of the text. header (bool): whether .csv and .tsv have one; if not, columns are named "0", "1", ...
    id_column (str): strings or whole numbers that name the rows of a .parquet output. with_text (bool): whether it has
        the texts, too.
    dtype (str): "float32" or "float16".
    window (int): texts that are encoded together, and how often work is saved. As many texts, and a few times as many
        with several processes, are in memory.
    max_batch_items (int): the most wordpieces in a forward pass; 0 as the encoder says, or what suits the device.
    n_process, gpu_ids: see SentenceBert.encode. They may be others when the run resumes.
    progress (bool): whether to show a progress bar.
    overwrite (bool): whether the output may be there already; it is replaced when all is done.
    restart (bool): whether to start over, whatever OUT.partial holds.
    prompt_name, prompt (str), truncate_dim (int): see SentenceBert.predict.
    RETURNS (BulkReport): counts.
    RAISES (ValueError): for a bad row, with file and line; for an unknown format or option; for an interrupted run of
        another input, encoder or option; where something stands that is not a file, or a link.
    RAISES (OSError): if a file cannot be read, is there already, or cannot be written, as on a full disk.
    RAISES (RuntimeError): if another process writes the same output.
    """
    encoding = Encoding(
        column, header, id_column, with_text, dtype, window, max_batch_items, prompt_name, prompt, truncate_dim
    )
    source, output = Path(input_path), Path(output_path)
    check_paths(source, output, encoding, overwrite=overwrite)
    check_gpus(gpu_ids)
    encoder = encoding.encoder(sbert)
    settings = encoding.made_of(encoder, gpu_ids, output.suffix.lower())
    with PartialRun(source, output, encoding) as run:
        if restart:
            run.clear()
        made_of: MadeOf = {_INPUT: file_digest(source), **settings}
        if not run.resume(made_of):
            width = encoder.encode(encoder.tokenize(["a"]))[0].shape[1]
            run.begin(made_of, width, progress=progress)
        with _fixed_budget(encoder, encoder.budget(max_batch_items, gpu_ids)):
            report = _encode(run, encoder, n_process, gpu_ids, progress)
        run.check_unchanged()
        run.assemble()
        run.clear()
    counter = TruncationCounter()
    counter.add_rows(report.rows, report.cut, encoder.max_length)
    if counter.count:
        warnings.warn(counter.message, stacklevel=2)
    return report


def check_paths(source: Path, output: Path, encoding: Encoding, *, overwrite: bool) -> None:
    """Check the files of encode_file before anything is loaded or written.

    RAISES (ImportError, OSError, ValueError): see encode_file.
    """
    check_format(output, with_columns=encoding.with_columns)
    check_texts(source)
    check_input(source)
    if output.exists() and source.exists() and output.samefile(source):
        raise ValueError(f"{output} is the input, and was given as the output, too. Give the output another name.")
    check_output(output)
    for path in (output, record_path(output)):
        is_left_over = path != output and is_record(path)  # its output was removed
        if path.exists() and not overwrite and not is_left_over:
            raise FileExistsError(
                f"{path} is there already. Give the output another name, or replace the file with --overwrite."
            )


_FileState = tuple[int, int, int]  # size, time of the last change, inode


def _file_state(path: Path) -> _FileState:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


def _encode(
    run: PartialRun, encoder: TextEncoder, n_process: int, gpu_ids: Sequence[int], progress: bool
) -> BulkReport:
    """Encode the windows that are not finished, and count all."""
    rows, window = run.manifest.texts.rows, run.encoding.window
    counts = [_count(finished) for finished in run.windows()]
    resumed = sum(n for n, _, _ in counts)
    if resumed < rows:
        read = enumerate(read_text_rows(run.source, run.columns))
        texts = (row.text for number, row in read if number >= resumed)
        with progress_bar(rows, initial=resumed, shown=progress, unit="texts") as bar:
            encoded = encode_windows(
                encoder, texts, window=window, moved=bar.update, n_process=n_process, gpu_ids=gpu_ids
            )
            for vectors, n_cut in encoded:
                run.check_unchanged()
                counts.append(_count(run.write(len(counts), _Window(vectors, n_cut))))
    _, zero, cut = map(sum, zip((0, 0, 0), *counts, strict=True))
    return BulkReport(rows, run.manifest.width, resumed, zero, cut)


def _count(window: _Window) -> tuple[int, int, int]:
    """Return how many rows a window has, how many of them are zero, and how many were cut."""
    return len(window.vectors), int((~window.vectors.any(axis=1)).sum()), window.cut


@contextmanager
def _fixed_budget(encoder: TextEncoder, budget: int) -> Iterator[None]:
    """Fix the size of forward passes, so that the last bits do not depend on the number of threads."""
    if not isinstance(encoder, TransformerTextEncoder):
        yield
        return
    before = encoder.model.shim.max_batch_items
    encoder.model.shim.max_batch_items = budget
    try:
        yield
    finally:
        encoder.model.shim.max_batch_items = before
