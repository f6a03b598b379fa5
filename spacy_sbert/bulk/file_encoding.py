"""Encode a file of texts into a file of embeddings; an interrupted run goes on."""

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy

from ..files.atomic import check_input, check_output, replace
from ..files.serialization import file_digest
from ..files.tables import TextColumns, TextRow, read_text_rows
from ..files.text_lines import check_texts
from ..models.encoded_docs import TruncationCounter
from ..models.text_encoders import TextEncoder, TransformerTextEncoder, check_gpus, encode_windows, texts_budget
from ..pipeline.sbert import SentenceBert
from ..progress import progress_bar, progress_of
from ..validation import NonNegative, Positive, Processes, Width, validated
from .checkpoint import Checkpoint, IdType, RunState, Values, rewriting_os_errors
from .embeddings_file import INPUT, check_format, digest_texts, is_record, record_path, write_parquet, write_record
from .options import Encoding


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


class _Source:
    """The rows of a file, read as often as needed. sha256: of its bytes at first.

    RAISES (OSError, ValueError): if it cannot be read, is not a file, or its name tells no format.
    """

    def __init__(self, path: Path, columns: TextColumns):
        self.path = path
        self.columns = columns
        self.rows()  # which refuses a name that tells no format
        self._stamp = _stamp(path)
        self.sha256 = file_digest(path)

    def rows(self) -> Iterator[TextRow]:
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

    def check_unchanged(self, *, is_whole: bool = True) -> None:
        """Refuse a file that was written to in the meantime, or did not have its rows (is_whole).

        RAISES (ValueError): if it is one.
        """
        if not is_whole or _stamp(self.path) != self._stamp:
            raise ValueError(
                f"{self.path} was changed while it was read. Run the same command again; if the change is to stay, "
                "with --restart."
            )


def _stamp(path: Path) -> tuple[int, int, int]:
    stat = os.stat(path)
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


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
    check_paths(Path(input_path), Path(output_path), encoding, overwrite=overwrite)
    check_gpus(gpu_ids)
    encoder = encoding.encoder(sbert)
    report = _run(
        encoder,
        Path(input_path),
        Path(output_path),
        encoding,
        n_process=n_process,
        gpu_ids=gpu_ids,
        progress=progress,
        restart=restart,
    )
    counter = TruncationCounter()
    counter.add_rows(report.rows, report.cut, encoder.max_length)
    if counter.count:
        warnings.warn(counter.message, stacklevel=2)
    return report


def check_paths(source: Path, output: Path, encoding: Encoding, *, overwrite: bool) -> None:
    """Check the files of encode_file before anything is loaded, or OUT.partial is made.

    RAISES (ImportError, OSError, ValueError): see encode_file.
    """
    check_format(output, with_columns=encoding.with_columns)
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


def _run(
    encoder: TextEncoder,
    input_path: Path,
    output: Path,
    encoding: Encoding,
    *,
    n_process: int,
    gpu_ids: Sequence[int],
    progress: bool,
    restart: bool,
) -> BulkReport:
    suffix = output.suffix.lower()
    columns = TextColumns(encoding.column, encoding.id_column, encoding.header)
    settings = encoding.made_of(encoder, gpu_ids, suffix)
    with Checkpoint(output) as checkpoint:
        if restart:
            checkpoint.clear()
        source = _Source(input_path, columns)
        made_of: Values = {INPUT: source.sha256, **settings}
        if not checkpoint.resume(made_of):
            rows, id_type = source.check_contents(progress=progress)
            width = encoder.encode(encoder.tokenize(["a"]))[0].shape[1]
            checkpoint.begin(
                RunState.model_validate(
                    {"made_of": made_of, "rows": rows, "width": width, "dtype": encoding.dtype, "id_type": id_type}
                )
            )
        state = checkpoint.state
        resumed = state.done
        with _fixed_budget(encoder, texts_budget(encoder, encoding.max_batch_items, gpu_ids)):
            _encode(encoder, source, checkpoint, encoding.window, n_process, gpu_ids, progress)
        made = checkpoint.vectors
        if suffix == ".parquet":
            made = checkpoint.assembled
            write_parquet(made, checkpoint, source.rows(), encoding.window, with_text=encoding.with_text)
        texts = digest_texts(input_path, columns)
        source.check_unchanged()
        write_record(output, made, made_of, texts, (state.rows, state.width))  # first: no output is without one
        with rewriting_os_errors(output):
            replace(made, output)
        checkpoint.clear()
    return BulkReport(state.rows, state.width, resumed, state.zero, state.cut)


def _encode(
    encoder: TextEncoder,
    source: _Source,
    checkpoint: Checkpoint,
    window: int,
    n_process: int,
    gpu_ids: Sequence[int],
    progress: bool,
) -> None:
    """Encode the rows that are not done. Those that are done are read, but not encoded."""
    state = checkpoint.state
    if state.done == state.rows:
        return
    done = state.done
    texts = (row.text for number, row in enumerate(source.rows()) if number >= done)
    with progress_bar(state.rows, initial=done, shown=progress, unit="texts") as bar:
        encoded = encode_windows(encoder, texts, window=window, moved=bar.update, n_process=n_process, gpu_ids=gpu_ids)
        while state.done < state.rows:
            vectors, n_cut = next(encoded, (None, 0))
            expected = min(window, state.rows - state.done), state.width
            source.check_unchanged(is_whole=vectors is not None and vectors.shape == expected)
            checkpoint.write(cast(numpy.ndarray, vectors), n_cut)


@contextmanager
def _fixed_budget(encoder: TextEncoder, budget: int) -> Iterator[None]:
    """Fix the size of forward passes, so that the last bits do not depend on the number of threads."""
    if not isinstance(encoder, TransformerTextEncoder):
        yield
        return
    before = encoder.model.max_batch_items
    encoder.model.max_batch_items = budget
    try:
        yield
    finally:
        encoder.model.max_batch_items = before
