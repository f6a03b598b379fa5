"""The adapter for spacy-transformers: a model for its `transformer`, and its output."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy
import torch
from spacy.tokens import Doc, Span
from spacy_transformers.data_classes import FullTransformerBatch, TransformerData, WordpieceBatch
from spacy_transformers.layers import TransformerModel, split_trf_batch
from spacy_transformers.layers.listener import TransformerListener
from thinc.api import Model, chain, torch2xp, xp2torch
from thinc.types import Ragged
from thinc.util import get_array_module, to_numpy
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.utils import ModelOutput

from .encoder_checks import takes_token_types
from .engine.bert_families import is_packable
from .engine.packing import ragged_arange
from .listener import SentenceListener
from .sbert_config import TransformerConfig
from .shared_transformer import DocStates, as_stretch, join_states, part_numbers
from .span_batch import (
    Array,
    Backprop,
    EncodedSpans,
    SpanBatch,
    TokenEmbeddings,
    align_wordpieces,
    borders_of,
    encode_spans,
    no_gradient,
    piece_characters,
    row_characters,
)
from .spans import SpanGetter
from .surroundings import undisturbed
from .tokenization import BatchTokenizer, TokenizedBatch
from .transformer import SpanTransformer, load


class SharedTransformer(SpanTransformer, TransformerModel):
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
    if is_train or not shim.backends.trains or is_packable(shim.network):
        with encoder.states(wordpieces, is_train) as (states, backprop_states):
            hidden, backprop_padded = _pad_states(
                wordpieces, states, encoder.get_dim("nO"), shim.device
            )
        model_output: ModelOutput = BaseModelOutputWithPooling(cast(Any, hidden))
        pooler = getattr(shim.network, "pooler", None)
        if pooler is not None and not is_train:
            with torch.no_grad():
                # It has no dropout
                model_output["pooler_output"] = pooler(hidden)
    else:
        inputs: dict[str, Any] = {
            "input_ids": padded.input_ids,
            "attention_mask": padded.attention_mask,
        }
        if wordpieces.has_type_ids and takes_token_types(shim.network):
            inputs["token_type_ids"] = padded.token_type_ids
        on_device = {key: xp2torch(value, device=shim.device) for key, value in inputs.items()}
        model_output = shim.whole_output(on_device)
    align = align_wordpieces(tokenizer, wordpieces, spans, cast(list[str], batch.texts))
    places = ragged_arange(
        numpy.arange(len(wordpieces.lengths)) * padded.input_ids.shape[1], wordpieces.lengths
    )
    in_padded = Ragged(places[align.dataXd].astype("int32"), align.lengths)
    output = _Output(_windows_of(spans, batch), padded, model_output, in_padded)
    output.window_borders = batch.window_borders
    output.token_borders = borders_of(
        len(doc_spans[0].doc) if doc_spans else 0 for doc_spans in spans
    )

    @undisturbed()
    def backprop(d_output: FullTransformerBatch) -> list[Doc]:
        if is_train:
            backprop_states(backprop_padded(next(iter(d_output.model_output.values()))))
        return docs

    return output, backprop


@dataclass
class _PaddedBatch(WordpieceBatch):
    """A WordpieceBatch that knows its rows; several windows for a Span that was too long."""

    rows: SpanBatch
    # int32 (windows, wordpieces, 2), of each wordpiece in its Doc
    characters: numpy.ndarray

    def __getitem__(self, index: int | slice) -> "_PaddedBatch":
        windows = (
            slice(index, index + 1) if isinstance(index, int) else slice(*index.indices(len(self)))
        )
        row_of = self.rows.row_of[windows]
        rows = self.rows.part(
            slice(row_of[0], row_of[-1] + 1) if len(row_of) else slice(0, 0), windows
        )
        return _PaddedBatch(
            **vars(super().__getitem__(windows)), rows=rows, characters=self.characters[windows]
        )


class _Output(FullTransformerBatch):
    """The output for a batch of Docs. Unlike the stock class, it splits rows that leave out tokens.

    window_borders, token_borders: where the windows and tokens of each Doc begin, and the last end.
    """

    window_borders: list[int]
    token_borders: list[int]

    def split_by_doc(self) -> list[TransformerData]:
        arrays: dict[str, Any] = {}
        for key, value in self.model_output.items():
            parts = value if isinstance(value, tuple) else (value,)
            if all(map(torch.is_tensor, parts)):
                arrays[key] = [torch2xp(part) for part in parts]
        pieces = numpy.append(0, numpy.cumsum(cast(numpy.ndarray, self.align.lengths)))[
            self.token_borders
        ].tolist()
        bounds = zip(*map(pairwise, (self.window_borders, self.token_borders, pieces)), strict=True)
        docs = []
        for (first, last), tokens, own_pieces in bounds:
            if first == last:
                docs.append(TransformerData.empty())
                continue
            output = ModelOutput()
            for key, of_batch in arrays.items():
                own = [array[first:last] for array in of_batch]
                output[key] = own if isinstance(self.model_output[key], tuple) else own[0]
            indices = (
                self.align.dataXd[slice(*own_pieces)] - first * self.wordpieces.input_ids.shape[1]
            )
            align = Ragged(indices, self.align.lengths[slice(*tokens)])
            docs.append(TransformerData(self.wordpieces[first:last], output, align))
        return docs


def _windows_of(spans: list[list[Span]], batch: EncodedSpans) -> list[list[Span]]:
    """Return the span of each window of Docs."""
    n_windows = iter(numpy.bincount(batch.rows.row_of).tolist())
    return [
        [same for span in doc_spans for same in [span] * next(n_windows)] for doc_spans in spans
    ]


def _pad_wordpieces(
    tokenizer: BatchTokenizer, wordpieces: TokenizedBatch, batch: EncodedSpans
) -> _PaddedBatch:
    lengths = wordpieces.lengths
    shape = len(lengths), int(lengths.max())
    places = ragged_arange(numpy.arange(shape[0]) * shape[1], lengths)

    def pad(values: numpy.ndarray | int, padding: int, dtype: str) -> Any:
        padded = numpy.full((*shape, *numpy.shape(values)[1:]), padding, dtype=dtype)
        padded.reshape(-1, *padded.shape[2:])[places] = values
        return padded

    ids = pad(wordpieces.ids, tokenizer.pad_id, "int64")
    type_ids = 0 if wordpieces.type_ids is None else wordpieces.type_ids
    return _PaddedBatch(
        strings=tokenizer.strings[ids].tolist(),
        input_ids=ids,
        attention_mask=pad(1, 0, "float32"),
        lengths=lengths.tolist(),
        token_type_ids=pad(type_ids, tokenizer.pad_type_id, "int64")
        if tokenizer.has_type_ids
        else None,
        rows=batch.rows,
        characters=pad(cast(numpy.ndarray, batch.characters), 0, "int32"),
    )


def _pad_states(
    wordpieces: TokenizedBatch, parts: Iterable[TokenEmbeddings], width: int, device: torch.device
) -> tuple[torch.Tensor, Callable[[torch.Tensor], list[Array]]]:
    """Return states padded, float32 (windows, wordpieces, width), and the way back."""
    shape = (len(wordpieces.lengths), int(wordpieces.lengths.max()))
    padded = torch.zeros(shape[0] * shape[1], width, device=device)
    places = []
    for part in parts:
        places.append(
            torch.from_numpy(ragged_arange(part.windows * shape[1], part.lengths)).to(device)
        )
        padded[places[-1]] = xp2torch(part.values, device=device)

    def backprop(d_padded: torch.Tensor) -> list[Array]:
        # A thread that does not know of the GPU makes it on the CPU
        flat = d_padded.reshape(-1, width).to(device)
        return [torch2xp(flat[of_part]) for of_part in places]

    return padded.view(*shape, width), backprop


# What sentence encoders read


class _Read(NamedTuple):
    """The states of a Doc, and where they are in its padded output, int64 (N,)."""

    states: DocStates
    places: numpy.ndarray


def spans_from_transformer_data(
    datas: list[TransformerData], docs: Sequence[Doc], backprop: Backprop
) -> EncodedSpans:
    """Return the rows of Docs as a transformer encoded them, and its states without padding.

    datas: of each Doc. backprop: takes the gradient of those that have rows.
    """
    held = [i for i, data in enumerate(datas) if "last_hidden_state" in data.model_output]
    if not held:
        return EncodedSpans.empty(len(datas), backprop)
    read = {i: _read(datas[i], docs[i]) for i in held}
    empty = DocStates.empty()
    batch = join_states([read[i].states if i in read else empty for i in range(len(datas))])

    def backprop_states(d_values: list[Array]) -> object:
        d_datas: list[TransformerData] = [datas[i] for i in held]
        for numbers, d_part in zip(
            part_numbers([read[i].states for i in held]), d_values, strict=True
        ):
            borders = pairwise(borders_of(len(read[held[number]].places) for number in numbers))
            for number, border in zip(numbers, borders, strict=True):
                data = datas[held[number]]
                states = data.model_output["last_hidden_state"]
                # In the dtype that the transformer gave
                d_states = get_array_module(states).zeros_like(states)
                places = read[held[number]].places
                d_states.reshape(-1, states.shape[-1])[places] = d_part[slice(*border)].astype(
                    states.dtype
                )
                d_output = ModelOutput(last_hidden_state=d_states)
                d_datas[number] = TransformerData(data.wordpieces, d_output, data.align)
        return backprop(d_datas)

    batch.backprop = no_gradient if backprop is no_gradient else backprop_states
    return batch


def _read(data: TransformerData, doc: Doc) -> _Read:
    """Return the states of a Doc, with the spans that its encoder, or the alignment, shows."""
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
        characters = piece_characters(
            Ragged(cast(Any, indices), data.align.lengths), [doc], len(places)
        )
        rows = _aligned_rows(data, doc)
    # (windows, wordpieces, width)
    hidden = data.model_output["last_hidden_state"]
    xp = get_array_module(hidden)
    values = hidden.reshape(-1, hidden.shape[-1])[xp.asarray(places)]
    if values.dtype == xp.float16:
        # Sums would lose too much in half precision
        values = values.astype(xp.float32)
    windows = xp.split(values, numpy.cumsum(lengths)[:-1])
    states = DocStates(rows, lengths, windows, characters, characters[:, 1] > characters[:, 0])
    if not rows.overlap:
        return _Read(states, places)
    stretch, chosen = as_stretch(states, doc)
    return _Read(stretch, places[chosen])


def _aligned_rows(data: TransformerData, doc: Doc) -> SpanBatch:
    """Return a row for each window of another package's model."""
    (n_rows, row_width), lengths = data.wordpieces.input_ids.shape, to_numpy(data.align.lengths)
    n_tokens = len(lengths)
    tokens = numpy.repeat(numpy.arange(n_tokens), lengths)
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
    weights = (numpy.bincount(rows, minlength=n_rows) > 0).astype("int64")
    n_cut = ends - last - 1
    # A token is in two rows
    if (n_cut < 0).any():
        ends = numpy.maximum(ends, last + 1)
        n_cut = numpy.zeros(n_rows, dtype="int64")
    spans = [doc[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    characters = row_characters(spans, [span.text for span in spans])
    tokens_of = numpy.stack([starts, ends], axis=1)
    return SpanBatch(tokens_of, numpy.arange(n_rows), weights, n_cut, None, characters)
