"""Static embeddings: a table of token vectors, without a transformer."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy
from safetensors.torch import load_file
from spacy.tokens import Doc
from thinc.api import uniform_init
from thinc.types import Floats2d
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from ..errors import Errors, Warnings, warn
from ..validation import ConfiguredModel
from .encoded_docs import EncodeSettings
from .encoder import Encoder, InPipe
from .engine.concurrency import prepare_forks
from .folder_modules import static_module, transformer_folder
from .load_tokenizer import load_tokenizer
from .loading import Source
from .pooling import SentencePooling
from .resolve import check_name, check_safetensors, current_folder, resolve
from .sbert_config import SentenceTransformersConfig, read_settings
from .span_batch import Array, Backprop, EncodedSpans, TokenEmbeddings, encode_spans, no_gradient
from .spans import SpanGetter
from .tokenization import BatchTokenizer, TokenizedBatch

TOKENIZER_FILE = "tokenizer.json"
WEIGHTS_FILE = "model.safetensors"
# The names of the table in files of sentence-transformers and of model2vec
TABLE_NAMES = ("embedding.weight", "embeddings")


def read_static(folder: Path, settings: SentenceTransformersConfig) -> tuple[str, numpy.ndarray]:
    """Return the tokenizer of a StaticEmbedding as JSON, and its table, (wordpieces, width).

    The tokenizer adds no special tokens. A warning tells what a table does not do: put a prompt
    before a text, or cut it.

    RAISES (ValueError): if the folder has a default prompt, or its files are missing or damaged.
    """
    prompt = settings.prompts.get(settings.default_prompt_name, settings.default_prompt_name)
    if prompt:
        raise ValueError(
            f"The static encoder {settings.name} puts the prompt '{prompt}' before every text by "
            "default, and a table takes none: set default_prompt_name to null in "
            "config_sentence_transformers.json."
        )
    for file in (TOKENIZER_FILE, WEIGHTS_FILE):
        if not (folder / file).is_file():
            raise ValueError(
                f"The encoder in {folder} has no {file}: download it again, or save it with "
                "safetensors."
            )
    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
    except Exception as error:
        # The library raises no other type
        raise ValueError(Errors.BAD_TOKENIZER.format(folder=folder, reason=error)) from error
    n_ids = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=0) + 1
    table, half = _read_table(folder, n_ids)
    name = settings.name
    if half:
        warn(Warnings.STATIC_HALF_PRECISION.format(name=name, dtype=" and ".join(half)))
    given = ", ".join(key for key, text in settings.prompts.items() if text)
    if given:
        warn(Warnings.IMPORT_STATIC_PROMPTS.format(name=name, given=given))
    if tokenizer.truncation:
        limit = tokenizer.truncation["max_length"]
        warn(Warnings.IMPORT_STATIC_UNCUT.format(name=name, limit=limit))
    return without_special_tokens(tokenizer.to_str()), table


def _read_table(folder: Path, n_ids: int) -> tuple[numpy.ndarray, set[str]]:
    """Return the table of a folder, and its dtype if that is of half precision.

    n_ids (int): the least number of rows.
    RAISES (ValueError): if there is another number of tables, or not all numbers are finite.
    """
    check_safetensors(folder / WEIGHTS_FILE)
    tensors = load_file(folder / WEIGHTS_FILE)
    # NumPy has no bfloat16
    arrays = {key: tensor.float().numpy() for key, tensor in tensors.items()}
    table = next((arrays[name] for name in TABLE_NAMES if name in arrays), None)
    is_table = table is not None and len(arrays) == 1 and table.ndim == 2 and len(table) >= n_ids
    if table is None or not is_table or not numpy.isfinite(table).all():
        shapes = {name: array.shape for name, array in arrays.items()}
        raise ValueError(
            f"The file model.safetensors in {folder} holds {shapes}: expected one table of finite "
            f"numbers, embedding.weight or embeddings, of ({n_ids}, width). Download the encoder "
            "again; one that is quantized by its vocabulary must be made without that."
        )
    dtypes = {str(tensor.dtype).removeprefix("torch.") for tensor in tensors.values()}
    return table, dtypes & {"float16", "bfloat16"}


def without_special_tokens(tokenizer: str, *, lowercase: bool = False) -> str:
    """Return the JSON of a tokenizer without special tokens, truncation and padding.

    lowercase (bool): whether it lower-cases first.
    """
    state = json.loads(tokenizer)
    state.update(truncation=None, padding=None, post_processor=None)
    if lowercase:
        steps = [{"type": "Lowercase"}]
        if state["normalizer"]:
            steps.append(state["normalizer"])
        state["normalizer"] = {"type": "Sequence", "normalizers": steps}
    return json.dumps(state, ensure_ascii=False)


# The attribute with the settings of a static encoder's folder, and which of them are saved with the
# table; others stay as pipelines had them before.
_FOLDER = "folder"
_SAVED_SETTINGS = ("normalize", "truncate_dim", "unknown_modules")
# Wordpieces that are looked up at once in use: many texts take little more memory than a few
_CHUNK = 16384


class StaticEmbedding(ConfiguredModel[TokenizedBatch, Floats2d], Encoder):
    """Look up the wordpieces of rows, without special tokens, in a table.

    y_w = E_w

    name (str): see resolve; a folder with a StaticEmbedding module of sentence-transformers or
        model2vec, or a transformer, of which only the tokenizer is used. It is read when it is
        first needed, and not in a saved pipeline.
    width (int): of the vectors. get_spans (Callable): from Docs to the Spans that are its rows.
    """

    def __init__(self, name: str, width: int, get_spans: SpanGetter):
        attrs = {"get_spans": get_spans, "tokenizer": ""}
        super().__init__(
            "wordpiece_table",
            _forward,
            init=_init,
            params={"E": None},
            dims={"nO": width},
            attrs=attrs,
        )
        self.source = name
        # A relative name begins here, wherever the program is when the encoder is read
        self.base = current_folder()
        self._tokenizer: tuple[str, BatchTokenizer] | None = None
        prepare_forks()

    kind = "a table of wordpieces"

    @property
    def is_loaded(self) -> bool:
        return bool(self.attrs["tokenizer"])

    @property
    def folder(self) -> SentenceTransformersConfig:
        return self.settings

    @property
    def source_name(self) -> str:
        return self.source

    def before_saving(self) -> None:
        # The table is no shim, which would load itself
        self.load()

    def describe(self) -> str:
        return f"table of wordpieces of {self.source}"

    def text_encoder(
        self, pooling: SentencePooling, settings: EncodeSettings, pipe: InPipe | None
    ) -> Any:
        from .text_encoders import StaticTextEncoder  # noqa: PLC0415 (not needed for Docs)

        if not self.is_loaded:
            check_name(self.source, self.base)
        return StaticTextEncoder(self, pooling, settings)

    def digest_settings(self, pooling: SentencePooling) -> object:
        return pooling.normalizes(self.settings)

    @property
    def wordpiece_tokenizer(self) -> BatchTokenizer:
        """The tokenizer, for whole batches."""
        self.load()
        content = self.attrs["tokenizer"]
        if self._tokenizer is None or self._tokenizer[0] != content:
            fast = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(content))
            self._tokenizer = (content, BatchTokenizer(fast, self.settings, "truncate"))
        return self._tokenizer[1]

    @property
    def settings(self) -> SentenceTransformersConfig:
        """What the folder of a static encoder specifies for its vectors; it has no limit."""
        return SentenceTransformersConfig(name=self.source, **self.attrs.get(_FOLDER, {}))

    def load(self) -> None:
        """Read tokenizer and table, unless they are there.

        RAISES (OSError, ValueError): if missing or damaged.
        """
        if self.is_loaded:
            return
        folder = resolve(self.source, self.base)
        module = static_module(folder)
        settings = read_settings(folder, self.source)
        if module is not None:
            self.set_table(*read_static(module, settings))
            given = {key: getattr(settings, key) for key in _SAVED_SETTINGS}
            if any(given.values()):
                self.attrs[_FOLDER] = given
            return
        tokenizer = load_tokenizer(Source(transformer_folder(folder), self.source))
        if not tokenizer.is_fast:
            raise ValueError(Errors.SLOW_TOKENIZER.format(name=self.source))
        state = tokenizer.backend_tokenizer.to_str()
        self.attrs["tokenizer"] = without_special_tokens(state, lowercase=settings.lowercase)

    def set_table(self, tokenizer: str, table: numpy.ndarray) -> None:
        """Take a tokenizer, as JSON of the tokenizers library, and a table.

        table: float32 (wordpieces, width).
        RAISES (ValueError): if it has another width than the config says.
        """
        if table.shape[1] != self.get_dim("nO"):
            raise ValueError(
                f"The table of '{self.source}' has vectors of {table.shape[1]} numbers, and the "
                f"static encoder was configured for {self.get_dim('nO')}: set width = "
                f"{table.shape[1]} in its config."
            )
        self.attrs["tokenizer"] = tokenizer
        self.set_param("E", self.ops.asarray2f(table))  # type: ignore[arg-type]

    def table(self) -> Floats2d:
        """Return the vectors of all wordpieces: float32 (wordpieces, width).

        RAISES (ValueError): if there are none.
        """
        self.load()
        if not self.has_param("E"):
            raise ValueError(
                f"The static encoder has no table yet: '{self.source}' is a transformer, which has "
                "a tokenizer alone. Draw a table with nlp.initialize() and train it, or make one: "
                "python -m spacy sbert distill-static."
            )
        return cast(Floats2d, self.get_param("E"))

    @contextmanager
    def read(
        self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool
    ) -> Iterator[EncodedSpans]:
        """Yield the rows of Docs, and the vectors of their wordpieces.

        For the arguments see Encoder.read.
        """
        if prompt:
            raise ValueError(Errors.TOKEN_PROMPT.format(prompt=prompt))
        spans = self.attrs["get_spans"](docs)
        if not any(spans):
            yield EncodedSpans.empty(len(docs))
            return
        wordpieces, batch = encode_spans(
            self.wordpiece_tokenizer, spans, prompt="", with_pieces=with_pieces
        )
        batch.states, batch.backprop = self.states(wordpieces, is_train)
        yield batch

    def states(
        self, wordpieces: TokenizedBatch, is_train: bool
    ) -> tuple[Iterable[TokenEmbeddings], Backprop]:
        """Return the vectors of windows that have wordpieces, and the table's backprop."""
        table = self.table()
        if not is_train:
            return self._chunks(table, wordpieces), no_gradient
        windows = numpy.flatnonzero(wordpieces.lengths)
        values, backprop = self(wordpieces, True)
        states = [TokenEmbeddings(windows, wordpieces.lengths[windows], values)]
        return states, lambda d_values: backprop(d_values[0])

    def _chunks(self, table: Floats2d, wordpieces: TokenizedBatch) -> Iterator[TokenEmbeddings]:
        """Yield the vectors of windows, about _CHUNK wordpieces at a time."""
        ids = self.ops.xp.asarray(wordpieces.ids)
        lengths = wordpieces.lengths
        places = numpy.append(wordpieces.starts, len(ids))
        borders = numpy.flatnonzero(numpy.diff(lengths.cumsum() // _CHUNK)) + 1
        for first, last in pairwise([0, *borders, len(lengths)]):
            windows = first + numpy.flatnonzero(lengths[first:last])
            values = table[ids[places[first] : places[last]]]
            yield TokenEmbeddings(windows, lengths[windows], values)


def _forward(
    model: StaticEmbedding, wordpieces: TokenizedBatch, is_train: bool
) -> tuple[Floats2d, Backprop]:
    table = model.get_param("E")
    ids = model.ops.xp.asarray(wordpieces.ids)

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
