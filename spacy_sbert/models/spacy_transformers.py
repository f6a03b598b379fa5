"""The adapter for spacy-transformers: a model for its `transformer`, and its output."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import numpy
import torch
from spacy.tokens import Doc
from spacy_transformers.data_classes import FullTransformerBatch, TransformerData, WordpieceBatch
from spacy_transformers.layers import TransformerModel, split_trf_batch
from spacy_transformers.layers.listener import TransformerListener
from thinc.api import Model, chain, torch2xp, xp2torch
from thinc.types import Ragged
from thinc.util import get_array_module, to_numpy
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.utils import ModelOutput

from .alignment import align_wordpieces, piece_characters
from .doc_states import join_docs, joined_parts, merge_windows, states_of_doc
from .encoder_checks import takes_token_types
from .engine.bert_families import is_packable
from .listener import SentenceListener
from .ragged import borders_of, group_of, ragged_arange
from .sbert_config import TransformerConfig
from .shim import TransformerShim
from .span_batch import (
    Array,
    Backprop,
    EncodedSpans,
    SpanBatch,
    TokenEmbeddings,
    encode_spans,
    flat_spans,
    no_gradient,
    row_characters,
)
from .spans import SpanGetter, SpansByDoc
from .surroundings import undisturbed
from .tokenization import BatchTokenizer, TokenizedBatch
from .transformer import SpanTransformer, load


class SpacyTransformersModel(SpanTransformer, TransformerModel):
    """A drop-in for the TransformerModel of spacy-transformers: several components listen to it."""

    def __init__(self, name: str, get_spans: SpanGetter, options: TransformerConfig):
        SpanTransformer.__init__(self, name, get_spans, options)
        self._func = _forward
        self.attrs.update(
            replace_listener=_replace_listener, replace_listener_cfg=_replace_listener_cfg
        )


class TransformerSentenceListener(SentenceListener, TransformerListener):
    """A SentenceListener that a `transformer` component recognizes."""


def _replace_listener(model: Model) -> Model:
    """Return a copy of the transformer, split by Doc, as listeners return it."""
    return chain(model, split_trf_batch())


def _replace_listener_cfg(
    transformer_cfg: dict[str, Any], listener_cfg: dict[str, Any]
) -> dict[str, Any]:
    """Return the config of what replaces a listener, such as that of an ner."""
    config = dict(transformer_cfg)
    if "TransformerListener" in listener_cfg.get("@architectures", ""):
        config["@architectures"] = "spacy-sbert.Tok2VecTransformer.v1"
        config["pooling"] = listener_cfg["pooling"]
        config["grad_factor"] = listener_cfg.get("grad_factor", 1.0)
    return config


@undisturbed()
def _forward(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[FullTransformerBatch, Callable]:
    encoder = cast(SpanTransformer, model)
    shim = load(encoder)
    spans = model.attrs["get_spans"](docs)
    if not any(spans):
        return FullTransformerBatch.empty(len(docs)), lambda d_output: docs
    tokenizer = encoder.wordpiece_tokenizer
    wordpieces, batch = encode_spans(tokenizer, spans, prompt=encoder.prompt(), with_pieces=True)
    padded = _pad_wordpieces(tokenizer, wordpieces, batch)
    model_output: ModelOutput
    backprop_states: Callable[[Any], object] = no_gradient
    if is_train or not shim.backends.trains or is_packable(shim.network):
        hidden, backprop_states = _padded_states(encoder, wordpieces, is_train)
        model_output = BaseModelOutputWithPooling(cast(Any, hidden))
        if not is_train:
            _add_pooled(model_output, shim, hidden)
    else:
        model_output = _output_of_network(shim, wordpieces, padded)
    align = align_wordpieces(tokenizer, wordpieces, spans, cast(list[str], batch.texts))
    places = _padded_places(wordpieces.lengths, padded.input_ids.shape[1])
    output = _Output(
        _spans_of_windows(spans, batch),
        padded,
        model_output,
        Ragged(places[align.dataXd].astype("int32"), align.lengths),
        window_borders=batch.window_borders,
        token_borders=borders_of(len(doc_spans[0].doc) if doc_spans else 0 for doc_spans in spans),
    )

    @undisturbed()
    def backprop(d_output: FullTransformerBatch) -> list[Doc]:
        if is_train:
            backprop_states(next(iter(d_output.model_output.values())))
        return docs

    return output, backprop


def _padded_states(
    encoder: SpanTransformer, wordpieces: TokenizedBatch, is_train: bool
) -> tuple[torch.Tensor, Callable[[torch.Tensor], object]]:
    """Return the states of windows with padding, float32 (windows, wordpieces, width).

    And from their gradient to the parameters.
    """
    width = encoder.get_dim("nO")
    with encoder.states(wordpieces, is_train) as (states, backprop_states):
        padded, backprop_padded = _pad_states(wordpieces, states, width, encoder.shim.device)
    return padded, lambda d_padded: backprop_states(backprop_padded(d_padded))


def _add_pooled(output: ModelOutput, shim: TransformerShim, hidden: torch.Tensor) -> None:
    """Add what the pooler of a Hugging Face model makes of the states, if it has one."""
    pooler = getattr(shim.network, "pooler", None)
    if pooler is not None:
        with torch.no_grad():
            # It has no dropout
            output["pooler_output"] = pooler(hidden)


def _output_of_network(
    shim: TransformerShim, wordpieces: TokenizedBatch, padded: "_PaddedBatch"
) -> ModelOutput:
    """Return all that a Hugging Face model gives for a batch, such as hidden states."""
    inputs: dict[str, Any] = {
        "input_ids": padded.input_ids,
        "attention_mask": padded.attention_mask,
    }
    if wordpieces.has_type_ids and takes_token_types(shim.network):
        inputs["token_type_ids"] = padded.token_type_ids
    on_device = {key: xp2torch(value, device=shim.device) for key, value in inputs.items()}
    return shim.whole_output(on_device)


@dataclass
class _PaddedBatch(WordpieceBatch):
    """A WordpieceBatch that knows its rows; several windows for a Span that was too long."""

    rows: SpanBatch
    # int32 (windows, wordpieces, 2), of each wordpiece in its Doc
    characters: numpy.ndarray

    def __getitem__(self, index: int | slice) -> "_PaddedBatch":
        if isinstance(index, int):
            windows = slice(index, index + 1)
        else:
            windows = slice(*index.indices(len(self)))
        row_of = self.rows.row_of[windows]
        rows = slice(0, 0)
        if len(row_of):
            rows = slice(row_of[0], row_of[-1] + 1)
        return _PaddedBatch(
            **vars(super().__getitem__(windows)),
            rows=self.rows.part(rows, windows),
            characters=self.characters[windows],
        )


@dataclass
class _Output(FullTransformerBatch):
    """The output for a batch of Docs. Unlike the stock class, it splits rows that leave out tokens.

    window_borders, token_borders: where the windows and tokens of each Doc begin, and the last end.
    """

    window_borders: list[int] = field(default_factory=list)
    token_borders: list[int] = field(default_factory=list)

    def split_by_doc(self) -> list[TransformerData]:
        # Others, such as a cache of keys and values, are not split
        arrays: dict[str, Any] = {}
        for key, value in self.model_output.items():
            if torch.is_tensor(value):
                arrays[key] = torch2xp(value)
            elif isinstance(value, tuple) and all(map(torch.is_tensor, value)):
                arrays[key] = [torch2xp(part) for part in value]
        pieces = borders_of(cast(numpy.ndarray, self.align.lengths).tolist())
        width = self.wordpieces.input_ids.shape[1]
        docs = []
        for (first, last), (start, end) in zip(
            pairwise(self.window_borders), pairwise(self.token_borders), strict=True
        ):
            if first == last:
                docs.append(TransformerData.empty())
                continue
            output = ModelOutput()
            for key, value in arrays.items():
                output[key] = _windows_of(value, first, last)
            indices = self.align.dataXd[pieces[start] : pieces[end]] - first * width
            align = Ragged(indices, self.align.lengths[start:end])
            docs.append(TransformerData(self.wordpieces[first:last], output, align))
        return docs


def _windows_of(value: Any, first: int, last: int) -> Any:
    """Return some windows of an array, or of each of several."""
    if isinstance(value, list):
        return [array[first:last] for array in value]
    return value[first:last]


def _spans_of_windows(spans: SpansByDoc, batch: EncodedSpans) -> SpansByDoc:
    """Return the span of each window of Docs."""
    rows = flat_spans(spans)
    of_windows = [rows[row] for row in batch.rows.row_of.tolist()]
    return [of_windows[first:last] for first, last in pairwise(batch.window_borders)]


def _padded_places(lengths: numpy.ndarray, width: int) -> numpy.ndarray:
    """Return where wordpieces are among those of padded windows, int64 (sum of lengths,)."""
    return ragged_arange(numpy.arange(len(lengths)) * width, lengths)


def _pad_wordpieces(
    tokenizer: BatchTokenizer, wordpieces: TokenizedBatch, batch: EncodedSpans
) -> _PaddedBatch:
    lengths = wordpieces.lengths
    width = int(lengths.max())
    places = _padded_places(lengths, width)

    def pad(values: numpy.ndarray | int, padding: int, dtype: str) -> Any:
        inner = numpy.shape(values)[1:]
        flat = numpy.full((len(lengths) * width, *inner), padding, dtype=dtype)
        flat[places] = values
        return flat.reshape(len(lengths), width, *inner)

    ids = pad(wordpieces.ids, tokenizer.pad_id, "int64")
    type_ids = None
    if tokenizer.has_type_ids:
        known = 0 if wordpieces.type_ids is None else wordpieces.type_ids
        type_ids = pad(known, tokenizer.pad_type_id, "int64")
    return _PaddedBatch(
        strings=tokenizer.strings[ids].tolist(),
        input_ids=ids,
        attention_mask=pad(1, 0, "float32"),
        lengths=lengths.tolist(),
        token_type_ids=type_ids,
        rows=batch.rows,
        characters=pad(cast(numpy.ndarray, batch.characters), 0, "int32"),
    )


def _pad_states(
    wordpieces: TokenizedBatch, parts: Iterable[TokenEmbeddings], width: int, device: torch.device
) -> tuple[torch.Tensor, Callable[[torch.Tensor], list[Array]]]:
    """Return states padded, float32 (windows, wordpieces, width), and the way back."""
    n_windows = len(wordpieces.lengths)
    longest = int(wordpieces.lengths.max())
    padded = torch.zeros(n_windows * longest, width, device=device)
    places_of = []
    for part in parts:
        places = torch.from_numpy(ragged_arange(part.windows * longest, part.lengths)).to(device)
        padded[places] = xp2torch(part.values, device=device)
        places_of.append(places)

    def backprop(d_padded: torch.Tensor) -> list[Array]:
        # A thread that does not know of the GPU makes it on the CPU
        flat = d_padded.reshape(-1, width).to(device)
        return [torch2xp(flat[places]) for places in places_of]

    return padded.view(n_windows, longest, width), backprop


# What sentence encoders read


def spans_from_transformer_data(
    datas: list[TransformerData], docs: Sequence[Doc], backprop: Backprop
) -> EncodedSpans:
    """Return the rows of Docs as a transformer encoded them, and its states without padding.

    datas: of each Doc. backprop: takes the gradient of those that have rows.
    """
    read = []
    # Of the Docs that have rows, with the places of their states
    with_rows: list[tuple[TransformerData, numpy.ndarray]] = []
    for data, doc in zip(datas, docs, strict=True):
        if "last_hidden_state" in data.model_output:
            states, places = _read(data, doc)
            read.append(states)
            with_rows.append((data, places))
        else:
            read.append(EncodedSpans.empty(1))
    batch = join_docs(read)
    if not with_rows or backprop is no_gradient:
        batch.backprop = backprop
        return batch
    parts = joined_parts([states for states in read if len(states.lengths)])
    order = [number for numbers in parts for number in numbers]
    borders = borders_of(len(with_rows[number][1]) for number in order)

    def backprop_states(d_values: list[Array]) -> object:
        d_joined = get_array_module(d_values[0]).concatenate(d_values)
        d_datas: list[Any] = [None] * len(with_rows)
        for number, (start, end) in zip(order, pairwise(borders), strict=True):
            d_datas[number] = _gradient_of(*with_rows[number], d_joined[start:end])
        return backprop(d_datas)

    batch.backprop = backprop_states
    return batch


def _gradient_of(data: TransformerData, places: numpy.ndarray, d_states: Array) -> TransformerData:
    """Return the gradient of an output: that of the states at some places, zeros elsewhere."""
    states = data.model_output["last_hidden_state"]
    # In the dtype that the transformer gave
    d_hidden = get_array_module(states).zeros_like(states)
    d_hidden.reshape(-1, states.shape[-1])[places] = d_states.astype(states.dtype)
    return TransformerData(data.wordpieces, ModelOutput(last_hidden_state=d_hidden), data.align)


def _read(data: TransformerData, doc: Doc) -> tuple[EncodedSpans, numpy.ndarray]:
    """Return the states of a Doc, and where they are in its padded output, int64 (N,).

    With the spans that its encoder, or the alignment, shows.
    """
    batch = data.wordpieces
    mask = to_numpy(batch.attention_mask)
    places = numpy.flatnonzero(mask)
    lengths = mask.sum(axis=1).astype("int64")
    if isinstance(batch, _PaddedBatch):
        rows = batch.rows
        characters = batch.characters.reshape(-1, 2)[places]
    else:
        # The alignment of tokens, to wordpieces counted without padding.
        indices = numpy.searchsorted(places, to_numpy(data.align.dataXd).reshape(-1))
        align = Ragged(cast(Any, indices), data.align.lengths)
        characters = piece_characters(align, [doc], len(places))
        rows = _aligned_rows(data, doc)
    # (windows, wordpieces, width)
    hidden = data.model_output["last_hidden_state"]
    xp = get_array_module(hidden)
    values = hidden.reshape(-1, hidden.shape[-1])[xp.asarray(places)]
    if values.dtype == xp.float16:
        # Sums would lose too much in half precision
        values = values.astype(xp.float32)
    of_text = characters[:, 1] > characters[:, 0]
    states = states_of_doc(rows, lengths, values, characters, of_text)
    if not rows.overlap:
        return states, places
    merged, chosen = merge_windows(states, doc)
    return merged, places[chosen]


def _aligned_rows(data: TransformerData, doc: Doc) -> SpanBatch:
    """Return a row for each window of another package's model."""
    n_rows, row_width = data.wordpieces.input_ids.shape
    counts = to_numpy(data.align.lengths)
    n_tokens = len(counts)
    tokens = group_of(counts)
    rows = to_numpy(data.align.dataXd).reshape(-1) // row_width
    starts = numpy.full(n_rows, n_tokens)
    last = numpy.full(n_rows, -1)
    numpy.minimum.at(starts, rows, tokens)
    numpy.maximum.at(last, rows, tokens)
    # Tokens without wordpieces (white space, what was cut) go to the row before them.
    starts = numpy.minimum.accumulate(starts[::-1])[::-1].copy()
    starts[0] = 0
    ends = numpy.append(starts[1:], n_tokens)
    last = numpy.maximum(last, starts - 1)
    n_cut = ends - last - 1
    # A token is in two rows
    if (n_cut < 0).any():
        ends = numpy.maximum(ends, last + 1)
        n_cut = numpy.zeros(n_rows, dtype="int64")
    spans = [doc[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    return SpanBatch(
        numpy.stack([starts, ends], axis=1),
        row_of=numpy.arange(n_rows),
        window_weights=(numpy.bincount(rows, minlength=n_rows) > 0).astype("int64"),
        n_cut=n_cut,
        settings=None,
        characters=row_characters(spans, [span.text for span in spans]),
    )
