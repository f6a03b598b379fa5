"""Static embeddings: a table of token vectors, without a transformer."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy
from safetensors.torch import load_file
from spacy.tokens import Doc
from thinc.api import uniform_init
from thinc.types import Floats2d
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from ..errors import Errors
from ..validation import ConfiguredModel
from .engine.concurrency import prepare_forks
from .hub import check_safetensors, resolve
from .hub_loading import Source, load_tokenizer
from .sbert_config import SentenceTransformersConfig, read_settings, static_module, transformer_folder
from .span_batch import Array, Backprop, EncodedSpans, TokenEmbeddings, encode_spans, no_gradient
from .spans import SpanGetter
from .tokenization import BatchTokenizer, TokenizedBatch

TOKENIZER_FILE, WEIGHTS_FILE = "tokenizer.json", "model.safetensors"
TABLE_NAMES = ("embedding.weight", "embeddings")  # of sentence-transformers and of model2vec


@dataclass(frozen=True)
class _TableSource:
    """tokenizer: the JSON of the tokenizers library. table: float32 (wordpieces, width); None where there is none."""

    tokenizer: str
    table: numpy.ndarray | None


def _read_table_source(name: str) -> _TableSource:
    """Read a static encoder, or the tokenizer of a transformer.

    name (str): see resolve; a folder with a StaticEmbedding module of sentence-transformers, as model2vec writes it,
        too, or a transformer.
    RAISES (OSError): if it is not found; (ValueError): if a file is damaged, the tokenizer is a slow one, or a prompt
        is put before every text.
    """
    folder = resolve(name)
    module = static_module(folder)
    if module is not None:
        return _TableSource(*read_static(module, read_settings(folder, name)))
    tokenizer = load_tokenizer(Source(transformer_folder(folder), name, {}, {}, False))
    if not tokenizer.is_fast:
        raise ValueError(Errors.SLOW_TOKENIZER.format(name=name))
    settings = read_settings(folder, name)
    return _TableSource(
        without_special_tokens(tokenizer.backend_tokenizer.to_str(), lowercase=settings.lowercase), None
    )


def read_static(folder: Path, settings: SentenceTransformersConfig) -> tuple[str, numpy.ndarray]:
    """Read a StaticEmbedding module.

    folder (Path): of the module. settings (SentenceTransformersConfig): of the encoder.
    RETURNS (str, float32 (wordpieces, width)): the JSON of the tokenizer, which adds nothing and does not cut, and the
        table.
    RAISES (ValueError): if a file is missing or damaged, or has more in it than a table, or the encoder puts a prompt
        before every text.
    """
    default = settings.default_prompt_name
    if settings.prompts.get(default, default):
        given = {"name": settings.name, "given": settings.prompts.get(default, default)}
        raise ValueError(
            (
                "The static encoder {name} puts the prompt '{given}' before every text by default "
                "(config_sentence_transformers.json), and a table of wordpieces takes no prompts: set "
                "default_prompt_name to null there, and put the prompt before your texts."
            ).format(**given)
        )
    files = {name: folder / name for name in (TOKENIZER_FILE, WEIGHTS_FILE)}
    for name, file in files.items():
        if not file.is_file():
            raise ValueError(f"The static encoder in {folder} has no {name}: get it anew, or save it with safetensors.")
    check_safetensors(files[WEIGHTS_FILE])
    arrays = {
        key: tensor.float().numpy() for key, tensor in load_file(files[WEIGHTS_FILE]).items()
    }  # NumPy has no bfloat16
    table = next((arrays[name] for name in TABLE_NAMES if name in arrays), None)
    try:
        tokenizer = Tokenizer.from_file(str(files[TOKENIZER_FILE]))
    except Exception as error:  # the library raises no other type
        raise ValueError(Errors.BAD_TOKENIZER.format(folder=folder, reason=error)) from error
    n_ids = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=0) + 1
    if table is None or len(arrays) > 1 or table.ndim != 2 or len(table) < n_ids or not numpy.isfinite(table).all():
        shapes = {name: array.shape for name, array in arrays.items()}
        raise ValueError(
            f"The file model.safetensors in {folder} holds {shapes}: expected one table of finite numbers, "
            f"embedding.weight or embeddings, of {f'({n_ids}, width)'}. Get the encoder anew; one that is "
            "quantised by its vocabulary must be made without that."
        )
    return without_special_tokens(tokenizer.to_str()), table


def without_special_tokens(tokenizer: str, *, lowercase: bool = False) -> str:
    """Return the JSON of a tokenizer that adds no special tokens, does not cut and does not pad.

    lowercase (bool): whether it lower-cases first of all.
    """
    said = json.loads(tokenizer)
    said.update(truncation=None, padding=None, post_processor=None)
    if lowercase:
        steps = [{"type": "Lowercase"}, *([said["normalizer"]] if said["normalizer"] else [])]
        said["normalizer"] = {"type": "Sequence", "normalizers": steps}
    return json.dumps(said, ensure_ascii=False)


CHUNK = 16384  # wordpieces that are looked up at once in use, so that many texts take little more memory than a few


class StaticEmbedding(ConfiguredModel[TokenizedBatch, Floats2d]):
    """Look up the wordpieces of rows, without special tokens, in a table.

    y_w = E_w

    name (str): what the tokenizer is taken from, and the table, if it is a static encoder (see _read_table_source); it
        is read when the table is first needed, and no more once the pipeline was saved.
    width (int): of the vectors. get_spans (Callable): from Docs to the Spans that are its rows.
    """

    def __init__(self, name: str, width: int, get_spans: SpanGetter):
        attrs = {"get_spans": get_spans, "tokenizer": ""}
        super().__init__("wordpiece_table", _forward, init=_init, params={"E": None}, dims={"nO": width}, attrs=attrs)
        self.source = name
        self._tokenizer: tuple[str, BatchTokenizer] | None = None
        prepare_forks()

    @property
    def wordpiece_tokenizer(self) -> BatchTokenizer:
        """The tokenizer, for whole batches."""
        self.load()
        content = self.attrs["tokenizer"]
        if self._tokenizer is None or self._tokenizer[0] != content:
            fast = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(content))
            self._tokenizer = content, BatchTokenizer(fast, SentenceTransformersConfig(name=self.source), "truncate")
        return self._tokenizer[1]

    def load(self) -> None:
        """Read tokenizer and table, unless they are there.

        RAISES (OSError, ValueError): if the source is not found, or does not fit.
        """
        if self.attrs["tokenizer"]:
            return
        source = _read_table_source(self.source)
        if source.table is not None:
            self.set_table(source.tokenizer, source.table)
        self.attrs["tokenizer"] = source.tokenizer

    def set_table(self, tokenizer: str, table: numpy.ndarray) -> None:
        """Take a tokenizer, the JSON of the tokenizers library, and a table, float32 (wordpieces, width).

        RAISES (ValueError): if the table is of another width.
        """
        if table.shape[1] != self.get_dim("nO"):
            given = {"name": self.source, "given": table.shape[1], "expected": self.get_dim("nO")}
            raise ValueError(
                (
                    "The table of '{name}' has vectors of {given} numbers, and the static encoder was configured "
                    "for {expected}: set width = {given} in spacy-sbert.StaticSentenceEncoder.v1."
                ).format(**given)
            )
        self.attrs["tokenizer"] = tokenizer
        self.set_param("E", self.ops.asarray2f(table))  # type: ignore[arg-type]

    def table(self) -> Floats2d:
        """Return the vectors of all wordpieces: float32 (wordpieces, width).

        RAISES (ValueError): if there are none yet; what load raises.
        """
        self.load()
        if not self.has_param("E"):
            raise ValueError(
                f"The static encoder has no table yet: '{self.source}' is a transformer, of which it takes the "
                "tokenizer alone. Draw a table with nlp.initialize() and train it, or make one of a teacher: "
                "python -m spacy sbert distill-static TEACHER OUT --vocabulary texts.txt."
            )
        return cast(Floats2d, self.get_param("E"))

    @contextmanager
    def read(self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool) -> Iterator[EncodedSpans]:
        """Return the rows of Docs, and what the table has for their wordpieces.

        prompt (str): none can be put before them. with_pieces (bool): whether to say where the wordpieces stand.
        is_train (bool): whether a gradient will come.
        """
        if prompt:
            raise ValueError(Errors.TOKEN_PROMPT.format(prompt=prompt))
        spans = self.attrs["get_spans"](docs)
        if not any(spans):
            yield EncodedSpans.none(len(docs))
            return
        wordpieces, batch = encode_spans(self.wordpiece_tokenizer, spans, prompt="", with_pieces=with_pieces)
        batch.states, batch.backprop = self.states(wordpieces, is_train)
        yield batch

    def states(
        self, wordpieces: TokenizedBatch, is_train: bool
    ) -> tuple[Iterator[TokenEmbeddings] | list[TokenEmbeddings], Backprop]:
        """Return the vectors of windows that have wordpieces, and what takes their gradient to the table."""
        table = self.table()
        if not is_train:
            return self._chunks(table, wordpieces), no_gradient
        windows = numpy.flatnonzero(wordpieces.lengths)
        values, backprop = self(wordpieces, True)
        return [TokenEmbeddings(windows, wordpieces.lengths[windows], values)], lambda d_values: backprop(d_values[0])

    def _chunks(self, table: Floats2d, wordpieces: TokenizedBatch) -> Iterator[TokenEmbeddings]:
        ids = self.ops.xp.asarray(wordpieces.ids)
        lengths, places = wordpieces.lengths, numpy.append(wordpieces.starts, len(ids))
        borders = numpy.flatnonzero(numpy.diff(wordpieces.lengths.cumsum() // CHUNK)) + 1
        for first, last in pairwise([0, *borders, len(lengths)]):
            windows = first + numpy.flatnonzero(lengths[first:last])
            yield TokenEmbeddings(windows, lengths[windows], table[ids[places[first] : places[last]]])


def _forward(model: StaticEmbedding, wordpieces: TokenizedBatch, is_train: bool) -> tuple[Floats2d, Backprop]:
    table, ids = model.get_param("E"), model.ops.xp.asarray(wordpieces.ids)

    def backprop(d_values: Array) -> TokenizedBatch:
        d_table = model.ops.alloc2f(*table.shape, dtype=table.dtype)
        model.ops.scatter_add(d_table, ids, d_values)
        model.inc_grad("E", d_table)
        return wordpieces

    return table[ids], backprop


def _init(model: StaticEmbedding, X: object = None, Y: object = None) -> None:
    """Draw a table, unless there is one."""
    n_wordpieces = len(model.wordpiece_tokenizer.strings)
    if not model.has_param("E"):
        model.set_param("E", uniform_init(model.ops, (n_wordpieces, model.get_dim("nO"))))
