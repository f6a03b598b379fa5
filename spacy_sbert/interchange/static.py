"""Encoders that are a table: the StaticEmbedding module of sentence-transformers."""

import warnings
from pathlib import Path

import numpy
from safetensors.numpy import save_file

from ..encoder.settings import FolderSettings, read_object
from ..encoder.table_source import TABLE_NAMES, TOKENIZER_FILE, WEIGHTS_FILE, read_static
from ..encoder.wordpiece_table import WordpieceTable
from .errors import Errors, Warnings

Table = tuple[str, numpy.ndarray]  # the JSON of its tokenizer, and float32 (wordpieces, width)


def write_table(folder: Path, table: WordpieceTable, *, pooling: str, name: str) -> None:
    """Write a StaticEmbedding module: its tokenizer and its table.

    pooling (str): of the pipe. name (str): of the pipe.
    RAISES (ValueError): if vectors are not pooled by mean, as the module does, or there is no table yet.
    """
    if pooling != "mean":
        raise ValueError(Errors.EXPORT_STATIC_POOLING.format(name=name, given=pooling))
    vectors = numpy.ascontiguousarray(table.ops.to_numpy(table.table()))
    (folder / TOKENIZER_FILE).write_text(table.attrs["tokenizer"], encoding="utf8")
    save_file({TABLE_NAMES[0]: vectors}, folder / WEIGHTS_FILE)


def read_table(module: Path, settings: FolderSettings) -> Table:
    """Read a StaticEmbedding module, and tell what of it does not come in; see read_static."""
    tokenizer, table = read_static(module, settings)
    prompts = [name for name, prompt in settings.prompts.items() if prompt]
    if prompts:
        warnings.warn(Warnings.IMPORT_STATIC_PROMPTS.format(name=settings.name, given=", ".join(prompts)), stacklevel=4)
    cut = read_object(module / TOKENIZER_FILE).get("truncation")
    if cut:
        warnings.warn(Warnings.IMPORT_STATIC_UNCUT.format(name=settings.name, limit=cut["max_length"]), stacklevel=4)
    return tokenizer, table


def table_config(table: Table, precision: str | None) -> dict[str, object]:
    """The settings of spacy-sbert.StaticSentenceEncoder.v1 for a table.

    RAISES (ValueError): if a precision is asked for, which only a transformer has.
    """
    if precision is not None:
        raise ValueError(Errors.IMPORT_STATIC_PRECISION.format(given=precision))
    return {"@architectures": "spacy-sbert.StaticSentenceEncoder.v1", "width": table[1].shape[1]}
