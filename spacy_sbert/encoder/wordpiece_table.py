"""A table of wordpieces over rows of Docs: each wordpiece has one vector, whatever stands beside it."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import cast

import numpy
from spacy.tokens import Doc
from thinc.api import uniform_init
from thinc.types import Floats2d
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from ..errors.configured import Configured
from ..spans import SpanGetter
from .concurrency import prepare_forks
from .errors import Errors
from .rows import RowStates, read_spans
from .settings import FolderSettings
from .states import Array, Backprop, States, no_gradient
from .table_source import read_table_source
from .wordpieces import Wordpieces, WordpieceTokenizer

CHUNK = 16384  # wordpieces that are looked up at once in use, so that many texts take little more memory than a few


class WordpieceTable(Configured[Wordpieces, Floats2d]):
    """Look up the wordpieces of rows, without special tokens, in a table.

    y_w = E_w

    name (str): what the tokenizer is taken from, and the table, if it is a static encoder, see read_table_source; it is
        read when the table is first needed, and no more once the pipeline was saved.
    width (int): of the vectors. get_spans (Callable): from Docs to the Spans that are its rows.
    """

    def __init__(self, name: str, width: int, get_spans: SpanGetter):
        attrs = {"get_spans": get_spans, "tokenizer": ""}
        super().__init__("wordpiece_table", forward, init=init, params={"E": None}, dims={"nO": width}, attrs=attrs)
        self.source = name
        self._tokenizer: tuple[str, WordpieceTokenizer] | None = None
        prepare_forks()

    @property
    def wordpiece_tokenizer(self) -> WordpieceTokenizer:
        """The tokenizer, for whole batches."""
        self.load()
        content = self.attrs["tokenizer"]
        if self._tokenizer is None or self._tokenizer[0] != content:
            fast = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(content))
            self._tokenizer = content, WordpieceTokenizer(fast, FolderSettings(name=self.source), "truncate")
        return self._tokenizer[1]

    def load(self) -> None:
        """Read tokenizer and table, unless they are there.

        RAISES (OSError, ValueError): if the source is not found, or does not fit.
        """
        if self.attrs["tokenizer"]:
            return
        source = read_table_source(self.source)
        if source.table is not None:
            self.set_table(source.tokenizer, source.table)
        self.attrs["tokenizer"] = source.tokenizer

    def set_table(self, tokenizer: str, table: numpy.ndarray) -> None:
        """Take a tokenizer, the JSON of the tokenizers library, and a table, float32 (wordpieces, width).

        RAISES (ValueError): if the table is of another width.
        """
        if table.shape[1] != self.get_dim("nO"):
            given = {"name": self.source, "given": table.shape[1], "expected": self.get_dim("nO")}
            raise ValueError(Errors.TABLE_WIDTH.format(**given))
        self.attrs["tokenizer"] = tokenizer
        self.set_param("E", self.ops.asarray2f(table))  # type: ignore[arg-type]

    def table(self) -> Floats2d:
        """The vectors of all wordpieces: float32 (wordpieces, width).

        RAISES (ValueError): if there are none yet; what load raises.
        """
        self.load()
        if not self.has_param("E"):
            raise ValueError(Errors.NO_TABLE.format(name=self.source))
        return cast(Floats2d, self.get_param("E"))

    @contextmanager
    def read(self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool) -> Iterator[RowStates]:
        """The rows of Docs, and what the table has for their wordpieces.

        prompt (str): none can be put before them. with_pieces (bool): whether to say where the wordpieces stand.
        is_train (bool): whether a gradient will come.
        """
        if prompt:
            raise ValueError(Errors.TOKEN_PROMPT.format(prompt=prompt))
        spans = self.attrs["get_spans"](docs)
        if not any(spans):
            yield RowStates.none(len(docs))
            return
        wordpieces, batch = read_spans(self.wordpiece_tokenizer, spans, prompt="", with_pieces=with_pieces)
        batch.states, batch.backprop = self.states(wordpieces, is_train)
        yield batch

    def states(self, wordpieces: Wordpieces, is_train: bool) -> tuple[Iterator[States] | list[States], Backprop]:
        """The vectors of windows that have wordpieces, and what takes their gradient to the table."""
        table = self.table()
        if not is_train:
            return self._chunks(table, wordpieces), no_gradient
        windows = numpy.flatnonzero(wordpieces.lengths)
        values, backprop = self(wordpieces, True)
        return [States(windows, wordpieces.lengths[windows], values)], lambda d_values: backprop(d_values[0])

    def _chunks(self, table: Floats2d, wordpieces: Wordpieces) -> Iterator[States]:
        ids = self.ops.xp.asarray(wordpieces.ids)
        lengths, places = wordpieces.lengths, numpy.append(wordpieces.starts, len(ids))
        borders = numpy.flatnonzero(numpy.diff(wordpieces.lengths.cumsum() // CHUNK)) + 1
        for first, last in pairwise([0, *borders, len(lengths)]):
            windows = first + numpy.flatnonzero(lengths[first:last])
            yield States(windows, lengths[windows], table[ids[places[first] : places[last]]])


def forward(model: WordpieceTable, wordpieces: Wordpieces, is_train: bool) -> tuple[Floats2d, Backprop]:
    table, ids = model.get_param("E"), model.ops.xp.asarray(wordpieces.ids)

    def backprop(d_values: Array) -> Wordpieces:
        d_table = model.ops.alloc2f(*table.shape, dtype=table.dtype)
        model.ops.scatter_add(d_table, ids, d_values)
        model.inc_grad("E", d_table)
        return wordpieces

    return table[ids], backprop


def init(model: WordpieceTable, X: object = None, Y: object = None) -> None:
    """Draw a table, unless there is one."""
    n_wordpieces = len(model.wordpiece_tokenizer.strings)
    if not model.has_param("E"):
        model.set_param("E", uniform_init(model.ops, (n_wordpieces, model.get_dim("nO"))))
