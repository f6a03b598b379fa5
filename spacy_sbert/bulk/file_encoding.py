"""Encode a file of texts into a file of embeddings, resumable."""

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import Errors
from ..files.atomic import check_input, check_output, replace
from ..files.serialization import file_digest
from ..files.tables import TextColumns, TextRow, read_text_rows
from ..files.text_lines import check_texts
from ..models.encoded_docs import TruncationCounter
from ..models.text_encoders import TextEncoder, TransformerTextEncoder, check_gpus, encode_windows, texts_budget
from ..pipeline.sbert import SentenceBert
from ..progress import progress_bar, progress_of
from ..validation import NonNegative, Positive, Processes, Width, check_fields, validated
from .checkpoint_dir import CheckpointDir, ResumeInfo, Values, describe
from .embeddings_file import INPUT, described, is_record, record_path, write_record
from .writers import DTYPES, Layout, Result, VectorFile, rewriting_os_errors, writer_of


@dataclass(frozen=True)
class Encoding:
    """The options of encode_file that its output depends on, with what they are by default.

    RAISES (ValueError): for an option of another type or range, or an unknown dtype.
    """

    column: str = "text"
    header: bool = True
    id_column: str | None = None
    with_text: bool = False
    dtype: str = "float32"
    window: Positive = 4096
    max_batch_items: NonNegative = 0
    prompt_name: str | None = None
    prompt: str | None = None
    truncate_dim: Width | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.dtype not in DTYPES:
            raise ValueError(f"Unknown dtype '{self.dtype}' of the output: expected one of {', '.join(DTYPES)}.")

    @property
    def with_columns(self) -> bool:
        """Whether the output has columns beside the vectors."""
        return self.with_text or self.id_column is not None

    def encoder(self, sbert: SentenceBert) -> TextEncoder:
        """What encodes."""
        return sbert.text_encoder(prompt_name=self.prompt_name, prompt=self.prompt, truncate_dim=self.truncate_dim)

    def budget(self, encoder: TextEncoder, gpu_ids: Sequence[int]) -> int:
        """The most wordpieces in a forward pass."""
        return texts_budget(encoder, self.max_batch_items, gpu_ids)

    def made_of(self, encoder: TextEncoder, budget: int, gpu_ids: Sequence[int], suffix: str) -> Values:
        """What the bytes depend on, by what messages call it. suffix (str): of the output."""
        return {
            "column": self.column,
            "header": self.header,
            "id_column": self.id_column,
            "with_text": self.with_text,
            "output": suffix,
            "dtype": self.dtype,
            "window": self.window,
            **describe(encoder, budget, gpu_ids),
        }


IdType = Literal["int64", "string"] | None


class Source:
    """The rows of a file, read as often as needed.

    path (Path): the file, whose name tells its format. columns (TextColumns): what is read of it.
    sha256: of its bytes, as it was made.
    RAISES (OSError, ValueError): if it cannot be read, is not a file, or its name tells no format.
    """

    def __init__(self, path: Path, columns: TextColumns):
        self.path = path
        self.columns = columns
        self.rows()  # which refuses a name that tells no format
        self._seen = _stamp(path)
        self.sha256 = file_digest(path)

    def rows(self) -> Iterator[TextRow]:
        """RAISES (ValueError): for a bad row; the message names file and line."""
        return read_text_rows(self.path, self.columns)

    def check_contents(self, *, progress: bool) -> tuple[int, IdType]:
        """Read the whole file once: a bad row is found before any work is done.

        RETURNS (int, str): how many rows there are, and the type of all ids; None where none is read.
        RAISES (ValueError): for a bad row, or ids that are not of one type.
        """
        counts: Counter[IdType] = Counter(
            None if row.id is None else "int64" if isinstance(row.id, int) else "string"
            for row in progress_of(self.rows(), desc="Reading", unit="rows", shown=progress)
        )
        if len(counts) > 1:
            raise ValueError(
                f"{self.path}: the column '{self.columns.id}' has strings and whole numbers. Make all ids of "
                "one type, or leave --id-column out."
            )
        return counts.total(), next(iter(counts), None)

    def check_unchanged(self) -> None:
        """RAISES (ValueError): if the file was written to since this was made."""
        if _stamp(self.path) != self._seen:
            raise ValueError(Errors.BULK_INPUT_CHANGED.format(path=self.path))


def _stamp(path: Path) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino


@dataclass(frozen=True)
class BulkReport:
    """What became of a file.

    rows: of the input and of the output. width: of a vector. resumed: rows that an interrupted run had done.
    zero: rows without wordpieces, whose vectors are zero. cut: rows longer than the encoder's limit.
    """

    rows: int
    width: int
    resumed: int
    zero: int
    cut: int


@dataclass(frozen=True)
class Workers:
    """What computes, which changes no bit: n_process and gpu_ids of SentenceBert.encode."""

    n_process: int
    gpu_ids: tuple[int, ...]


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
    dtype: str = "float32",
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

    What is done is kept in the folder OUT.partial, window by window. After an interruption of any kind the same call
    goes on, and the file becomes the same, bit for bit. OUT.json beside it says what it is made of, see FileVectors.

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
    n_process, gpu_ids: see SentenceBert.encode. They may be others when the run goes on.
    progress (bool): whether to show a progress bar.
    overwrite (bool): whether the output may be there already; it is replaced when all is done.
    restart (bool): whether to begin anew, whatever OUT.partial holds.
    prompt_name, prompt (str), truncate_dim (int): see SentenceBert.predict.
    RETURNS (BulkReport): counts.
    RAISES (ValueError): for a bad row, with file and line; for an unknown format or option; for an interrupted run of
        another input, encoder or option; where something stands that is not a file, or a link.
    RAISES (OSError): if a file cannot be read, is there already, or cannot be written, as on a full disk.
    RAISES (RuntimeError): if another process writes the same output.
    """
    source_path, output = Path(input_path), Path(output_path)
    encoding = Encoding(
        column, header, id_column, with_text, dtype, window, max_batch_items, prompt_name, prompt, truncate_dim
    )
    write = check_given(source_path, output, encoding, overwrite=overwrite)
    workers = Workers(n_process, tuple(gpu_ids))
    check_gpus(workers.gpu_ids)
    encoder = encoding.encoder(sbert)
    budget = encoding.budget(encoder, workers.gpu_ids)
    with CheckpointDir(output) as work:
        if restart:
            work.clear()
        source = Source(source_path, TextColumns(column, id_column, header))
        made_of: Values = {
            INPUT: source.sha256,
            **encoding.made_of(encoder, budget, workers.gpu_ids, output.suffix.lower()),
        }
        kept = work.begun(made_of) or _begin(work, made_of, source, encoder, progress)
        layout = Layout(kept.rows, kept.width, dtype, window)
        with VectorFile(work.vectors, work.journal, layout) as vectors, _fixed_budget(encoder, budget):
            resumed = vectors.rows_done
            _encode(encoder, source, vectors, workers, progress)
            made = write(Result(vectors, source.rows, kept.id_type, with_text), work.assembled)
        texts = described(source_path, source.columns)
        source.check_unchanged()
        shape = layout.rows, layout.width
        write_record(output, made, made_of, texts, shape)  # first: no output is ever without one
        with rewriting_os_errors(output):
            replace(made, output)
        work.clear()
    report = BulkReport(layout.rows, layout.width, resumed, vectors.n_zero, sum(vectors.done.values()))
    cuts = TruncationCounter()
    cuts.add_rows(report.rows, report.cut, encoder.max_length)
    if cuts.count:
        warnings.warn(cuts.message, stacklevel=2)
    return report


def check_given(source: Path, output: Path, encoding: Encoding, *, overwrite: bool) -> Callable[[Result, Path], Path]:
    """Before anything is loaded, or the work folder is made: what is wrong with the files of encode_file.

    RETURNS (Callable): the writer of the output. RAISES (ImportError, OSError, ValueError): see encode_file.
    """
    write = writer_of(output, with_columns=encoding.with_columns)
    check_texts(source)
    check_input(source)
    if output.exists() and source.exists() and output.samefile(source):
        raise ValueError(f"{output} is the input, and was given as the output, too. Give the output another name.")
    check_output(output)
    record = record_path(output)
    taken = output if output.exists() else record if record.exists() and not is_record(record) else None
    if taken is not None and not overwrite:
        raise FileExistsError(
            f"{taken} is there already. Give the output another name, or replace the file with --overwrite."
        )
    return write


def _begin(work: CheckpointDir, made_of: Values, source: Source, encoder: TextEncoder, progress: bool) -> ResumeInfo:
    """Find out what a new run keeps, and write it down."""
    rows, id_type = source.check_contents(progress=progress)
    probe, _ = encoder.encode(encoder.tokenize(["a"]))
    kept = ResumeInfo(rows=rows, id_type=id_type, width=probe.shape[1])
    work.clear()  # what is there without a run.json is of no use
    work.begin(made_of, kept)
    return kept


def _encode(encoder: TextEncoder, source: Source, vectors: VectorFile, workers: Workers, progress: bool) -> None:
    """Encode the windows that are missing. Those that are done are read, but not encoded: the borders stay."""
    if not (missing := vectors.missing):
        return
    layout, wanted = vectors.layout, set(missing)
    texts = (row.text for number, row in enumerate(source.rows()) if number // layout.window in wanted)
    with progress_bar(layout.rows, initial=vectors.rows_done, shown=progress, unit="texts") as bar:
        encoded = encode_windows(
            encoder, texts, window=layout.window, moved=bar.update, n_process=workers.n_process, gpu_ids=workers.gpu_ids
        )
        for number in missing:
            found, n_cut = next(encoded, (None, 0))
            source.check_unchanged()
            if found is None or found.shape != (layout.rows_in(number), layout.width):
                raise ValueError(Errors.BULK_INPUT_CHANGED.format(path=source.path))
            vectors.write(number, found, n_cut)


@contextmanager
def _fixed_budget(encoder: TextEncoder, budget: int) -> Iterator[None]:
    """Without one the passes would depend on the number of threads, and the last bits of the vectors on them."""
    if not isinstance(encoder, TransformerTextEncoder):
        yield
        return
    before = encoder.model.max_batch_items
    encoder.model.max_batch_items = budget
    try:
        yield
    finally:
        encoder.model.max_batch_items = before
