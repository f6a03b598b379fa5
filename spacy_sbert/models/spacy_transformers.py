"""The model of a shared transformer for spacy-transformers, and what sentence encoders read of its output."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy
import torch
from spacy.tokens import Doc, Span
from spacy.util import minibatch
from spacy_transformers.data_classes import FullTransformerBatch, TransformerData, WordpieceBatch
from spacy_transformers.layers import TransformerModel, split_trf_batch
from spacy_transformers.layers.listener import TransformerListener
from thinc.api import Model, chain, torch2xp, xp2torch
from thinc.types import Ragged
from thinc.util import get_array_module, to_numpy
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.utils import ModelOutput

from . import span_batch
from .engine.bert_families import is_packable
from .engine.packing import ragged_arange
from .listener import SentenceListener
from .loading import takes_token_types
from .sbert_config import TransformerConfig
from .spans import SpanGetter
from .surroundings import undisturbed
from .tokenization import BatchTokenizer, TokenizedBatch
from .transformer import SpanTransformer, load


class SharedTransformer(SpanTransformer, TransformerModel):
    """A drop-in for the TransformerModel of spacy-transformers: several components listen to it."""

    def __init__(self, name: str, get_spans: SpanGetter, options: TransformerConfig):
        SpanTransformer.__init__(self, name, get_spans, options)
        self._func = _forward
        self.attrs.update(replace_listener=_replace_listener, replace_listener_cfg=_replace_listener_cfg)


class TransformerSentenceListener(SentenceListener, TransformerListener):
    """A SentenceListener that a `transformer` component recognizes."""


def _replace_listener(model: Model) -> Model:
    """Return a copy of the transformer, split by Doc, as listeners return it."""
    return chain(model, split_trf_batch())


def _replace_listener_cfg(transformer_cfg: dict[str, Any], listener_cfg: dict[str, Any]) -> dict[str, Any]:
    """Return the config of what replaces a listener: in a component that pools wordpieces to tokens (ner) its own."""
    config = dict(transformer_cfg)
    if "TransformerListener" in listener_cfg.get("@architectures", ""):
        config["@architectures"] = "spacy-sbert.Tok2VecTransformer.v1"
        config["pooling"] = listener_cfg["pooling"]
        config["grad_factor"] = listener_cfg.get("grad_factor", 1.0)
    return config


@undisturbed()
def _forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[FullTransformerBatch, Callable]:
    encoder = cast(SpanTransformer, model)
    shim = load(encoder)
    spans = model.attrs["get_spans"](docs)
    if not any(spans):
        return FullTransformerBatch.empty(len(docs)), lambda d_output: docs
    shared = _SharedBatch(encoder.wordpiece_tokenizer, spans, encoder.prompt())
    output = _SharedOutput(shared, spans)
    if not is_train and is_packable(shim.network):
        with encoder.states(shared.wordpieces, False) as (states, _):
            shared.keep_states(states, shim.device, getattr(shim.network, "pooler", None))
        windows = enumerate(pairwise(shared.encoded.window_borders))
        output.cached_doc_data = [
            _UnpaddedDoc(shared, i) if first < last else TransformerData.empty() for i, (first, last) in windows
        ]
    elif not is_train:
        batch, _ = shared.padded
        inputs: dict[str, Any] = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
        if shared.wordpieces.has_type_ids and takes_token_types(shim.network):
            inputs["token_type_ids"] = batch.token_type_ids
        on_device = {key: xp2torch(value, device=shim.device) for key, value in inputs.items()}
        shared.model_output = shim.whole_output(on_device)
    else:
        with encoder.states(shared.wordpieces, True) as (states, backprop_states):
            padded, backprop_padded = _pad_states(shared.wordpieces, states, encoder.get_dim("nO"), shim.device)
        shared.model_output = BaseModelOutputWithPooling(last_hidden_state=cast(torch.FloatTensor, padded))

    @undisturbed()
    def backprop(d_output: FullTransformerBatch) -> list[Doc]:
        if is_train:
            backprop_states(backprop_padded(next(iter(d_output.model_output.values()))))
        return docs

    return output, backprop


@dataclass
class _PaddedBatch(WordpieceBatch):
    """A WordpieceBatch that knows its rows; several windows for a Span that was too long."""

    rows: span_batch.SpanBatch
    characters: numpy.ndarray  # int32 (windows, wordpieces, 2), of each wordpiece in its Doc

    def __getitem__(self, index: int | slice) -> "_PaddedBatch":
        windows = slice(index, index + 1) if isinstance(index, int) else slice(*index.indices(len(self)))
        row_of = self.rows.row_of[windows]
        rows = self.rows.part(slice(row_of[0], row_of[-1] + 1) if len(row_of) else slice(0, 0), windows)
        return _PaddedBatch(**vars(super().__getitem__(windows)), rows=rows, characters=self.characters[windows])


class _SharedBatch:
    """The spans of a batch of Docs, not all empty, and their states, padded when they are read; it holds no Doc.

    values: the states of each window, float32 (wordpieces, width). model_output: padded, of PyTorch.
    """

    def __init__(self, tokenizer: BatchTokenizer, spans: list[list[Span]], prompt: str = ""):
        self._tokenizer = tokenizer
        self.wordpieces, self.encoded = span_batch.encode_spans(tokenizer, spans, prompt=prompt, with_pieces=True)
        self._align = span_batch.align_wordpieces(
            tokenizer, self.wordpieces, spans, cast(list[str], self.encoded.texts)
        )
        self._token_borders = span_batch.borders_of(len(doc_spans[0].doc) if doc_spans else 0 for doc_spans in spans)
        self.starts = span_batch.borders_of(self.wordpieces.lengths.tolist())

    def keep_states(self, states: Iterable[span_batch.TokenEmbeddings], device: torch.device, pooler: Any) -> None:  # noqa: ANN401 (a module)
        """Keep the states of the windows, to be padded when they are read; the pooler of the network reads them now."""
        self._states, self._device = list(states), device
        self.values: list[span_batch.Array] = [None] * len(self.wordpieces.lengths)
        for part in self._states:
            borders = pairwise(span_batch.borders_of(part.lengths.tolist()))
            for window, border in zip(part.windows.tolist(), borders, strict=True):
                self.values[window] = part.values[slice(*border)]
        self._pooled = None
        if pooler is not None:
            firsts = get_array_module(self.values[0]).stack([values[:1] for values in self.values])
            with torch.no_grad():
                self._pooled = pooler(xp2torch(firsts, device=device))  # it has no dropout

    @cached_property
    def padded(self) -> tuple[_PaddedBatch, Ragged]:
        """The wordpieces as a padded batch, and the alignment of tokens with it."""
        tokenizer, wordpieces, lengths = self._tokenizer, self.wordpieces, self.wordpieces.lengths
        shape = len(lengths), int(lengths.max())
        places = ragged_arange(numpy.arange(shape[0]) * shape[1], lengths)

        def pad(values: numpy.ndarray | int, padding: int, dtype: str) -> Any:  # noqa: ANN401 (an array for spacy-transformers)
            padded = numpy.full((*shape, *numpy.shape(values)[1:]), padding, dtype=dtype)
            padded.reshape(-1, *padded.shape[2:])[places] = values
            return padded

        ids = pad(wordpieces.ids, tokenizer.pad_id, "int64")
        type_ids = 0 if wordpieces.type_ids is None else wordpieces.type_ids
        batch = _PaddedBatch(
            strings=tokenizer.strings[ids].tolist(),
            input_ids=ids,
            attention_mask=pad(1, 0, "float32"),
            lengths=lengths.tolist(),
            token_type_ids=pad(type_ids, tokenizer.pad_type_id, "int64") if tokenizer.has_type_ids else None,
            rows=self.encoded.rows,
            characters=pad(cast(numpy.ndarray, self.encoded.characters), 0, "int32"),
        )
        return batch, Ragged(places[self._align.dataXd].astype("int32"), self._align.lengths)

    @cached_property
    def model_output(self) -> ModelOutput:
        states, _ = _pad_states(self.wordpieces, self._states, self._states[0].values.shape[1], self._device)
        return BaseModelOutputWithPooling(cast(Any, states), pooler_output=cast(Any, self._pooled))

    @cached_property
    def docs(self) -> list[TransformerData]:
        """The padded output of each Doc, with an alignment of all its tokens: rows may leave out some."""
        batch, align = self.padded
        arrays: dict[str, list[span_batch.Array]] = {}
        for key, value in self.model_output.items():
            parts = value if isinstance(value, tuple) else (value,)
            if all(map(torch.is_tensor, parts)):
                arrays[key] = [torch2xp(part) for part in parts]
        pieces = numpy.append(0, numpy.cumsum(cast(numpy.ndarray, align.lengths)))[self._token_borders].tolist()
        bounds = zip(*map(pairwise, (self.encoded.window_borders, self._token_borders, pieces)), strict=True)
        docs = []
        for (first, last), tokens, own_pieces in bounds:
            if first == last:
                docs.append(TransformerData.empty())
                continue
            output = ModelOutput()
            for key, of_batch in arrays.items():
                own = [array[first:last] for array in of_batch]
                output[key] = own if isinstance(self.model_output[key], tuple) else own[0]
            indices = align.dataXd[slice(*own_pieces)] - first * batch.input_ids.shape[1]
            docs.append(TransformerData(batch[first:last], output, Ragged(indices, align.lengths[slice(*tokens)])))
        return docs


def _pad_states(
    wordpieces: TokenizedBatch, parts: Iterable[span_batch.TokenEmbeddings], width: int, device: torch.device
) -> tuple[torch.Tensor, Callable[[torch.Tensor], list[span_batch.Array]]]:
    """Return states in a padded batch, float32 (windows, wordpieces, width), and what takes its gradient to theirs."""
    shape = (len(wordpieces.lengths), int(wordpieces.lengths.max()))
    padded = torch.zeros(shape[0] * shape[1], width, device=device)
    places = []
    for part in parts:
        places.append(torch.from_numpy(ragged_arange(part.windows * shape[1], part.lengths)).to(device))
        padded[places[-1]] = xp2torch(part.values, device=device)

    def backprop(d_padded: torch.Tensor) -> list[span_batch.Array]:
        flat = d_padded.reshape(-1, width).to(device)  # a thread that does not know of the GPU makes it on the CPU
        return [torch2xp(flat[of_part]) for of_part in places]

    return padded.view(*shape, width), backprop


class _SharedOutput(FullTransformerBatch):
    """A FullTransformerBatch whose fields are those of a _SharedBatch."""

    def __init__(self, shared: _SharedBatch, spans: list[list[Span]]):
        n_windows = iter(numpy.bincount(shared.encoded.rows.row_of).tolist())
        self.spans = [[same for span in doc_spans for same in [span] * next(n_windows)] for doc_spans in spans]
        self._shared = shared
        self.cached_doc_data: list[TransformerData] | None = None

    wordpieces = property(lambda self: self._shared.padded[0])
    model_output = property(lambda self: self._shared.model_output)
    align = property(lambda self: self._shared.padded[1])

    def split_by_doc(self) -> list[TransformerData]:
        return self._shared.docs


class _UnpaddedDoc(TransformerData):
    """The TransformerData of a Doc in a batch, which is padded when a field is read; fields can be set."""

    def __init__(self, shared: _SharedBatch, number: int):
        self.shared, self.number = shared, number

    @cached_property
    def wordpieces(self) -> _PaddedBatch:
        return cast(_PaddedBatch, self.shared.docs[self.number].wordpieces)

    @cached_property
    def model_output(self) -> ModelOutput:
        return self.shared.docs[self.number].model_output

    @cached_property
    def align(self) -> Ragged:
        return self.shared.docs[self.number].align

    def __reduce__(self) -> tuple[type, tuple]:
        return TransformerData, (self.wordpieces, self.model_output, self.align)


_CHUNK = 32  # Docs whose states are copied at a time: they stay in the cache


class _DocSpans(NamedTuple):
    """The rows and windows of one Doc, N wordpieces in all."""

    rows: span_batch.SpanBatch
    lengths: numpy.ndarray  # int64 (windows,)
    values: list[span_batch.Array]  # float (N, width), in parts
    characters: numpy.ndarray | None  # int32 (N, 2), of each wordpiece in the Doc
    places: Any = None  # int64 (N,), in the flattened padded batch, if that was made


def spans_from_transformer_data(
    datas: list[TransformerData], docs: Sequence[Doc] | None, backprop: span_batch.Backprop
) -> span_batch.EncodedSpans:
    """Return the rows of Docs as a transformer encoded them, and its states without padding.

    datas: of each Doc. docs: the Docs, if what Spans and Tokens need is asked for. backprop: of those that have rows.
    """
    kept = (isinstance(data, _UnpaddedDoc) or "last_hidden_state" in data.model_output for data in datas)
    held = [i for i, is_kept in enumerate(kept) if is_kept]
    if not held:
        return span_batch.EncodedSpans.empty(len(datas), backprop)
    read = [_read(datas[i], docs[i] if docs else None) for i in held]
    kinds = [[i for i, doc in enumerate(read) if doc.rows.foreign == is_stretch] for is_stretch in (False, True)]
    parts = [chunk for own in kinds for chunk in minibatch(own, _CHUNK)]
    firsts = span_batch.borders_of(len(doc.lengths) for doc in read)

    def backprop_states(d_values: list[span_batch.Array]) -> object:
        d_datas: dict[int, TransformerData] = {}
        for own, d_part in zip(parts, d_values, strict=True):
            borders = pairwise(span_batch.borders_of(int(read[i].lengths.sum()) for i in own))
            for i, border in zip(own, borders, strict=True):
                data = datas[held[i]]
                states = data.model_output["last_hidden_state"]
                d_states = get_array_module(states).zeros_like(states)  # in the dtype that the transformer gave
                d_states.reshape(-1, states.shape[-1])[read[i].places] = d_part[slice(*border)].astype(states.dtype)
                d_datas[i] = TransformerData(data.wordpieces, ModelOutput(last_hidden_state=d_states), data.align)
        return backprop([d_datas[i] for i in range(len(held))])

    n_rows = dict(zip(held, (len(doc.rows.spans) for doc in read), strict=True))
    batch = span_batch.EncodedSpans(
        span_batch.SpanBatch.join([doc.rows for doc in read]),
        span_batch.borders_of(n_rows.get(i, 0) for i in range(len(datas))),
        numpy.concatenate([doc.lengths for doc in read]),
        (_states_of(read, firsts, own) for own in parts),
        span_batch.no_gradient if backprop is span_batch.no_gradient else backprop_states,
    )
    if docs:
        characters = numpy.concatenate([cast(numpy.ndarray, doc.characters) for doc in read])
        batch.keep_pieces(characters, characters[:, 1] > characters[:, 0])
    return batch


def _states_of(read: list[_DocSpans], firsts: list[int], own: list[int]) -> span_batch.TokenEmbeddings:
    """Return the states of some Docs. Half precision is for the transformer: sums would lose too much in it."""
    parts = [values for i in own for values in read[i].values]
    xp = get_array_module(parts[0])
    values = xp.concatenate(parts)
    values = values.astype(xp.float32) if values.dtype == xp.float16 else values
    windows = numpy.concatenate([numpy.arange(*firsts[i : i + 2]) for i in own])
    lengths = numpy.concatenate([read[i].lengths for i in own])
    return span_batch.TokenEmbeddings(windows, lengths, values, read[own[0]].rows.foreign)


def _read(data: TransformerData, doc: Doc | None) -> _DocSpans:
    """Return the rows of a Doc as its encoder recorded them, or else as the alignment shows them."""
    if isinstance(data, _UnpaddedDoc) and "model_output" not in vars(data):
        shared, number = data.shared, data.number
        encoded = shared.encoded
        own, windows = (slice(*of[number : number + 2]) for of in (encoded.borders, encoded.window_borders))
        rows = encoded.rows.part(own, windows)
        if not rows.overlap:
            pieces = slice(shared.starts[windows.start], shared.starts[windows.stop])
            characters = cast(numpy.ndarray, encoded.characters)[pieces]
            return _DocSpans(rows, shared.wordpieces.lengths[windows], shared.values[windows], characters)
    batch, places = data.wordpieces, numpy.flatnonzero(to_numpy(data.wordpieces.attention_mask))
    lengths = to_numpy(batch.attention_mask).sum(axis=1).astype("int64")
    states = data.model_output["last_hidden_state"]  # (windows, wordpieces, width)
    flat, xp = states.reshape(-1, states.shape[-1]), get_array_module(states)
    if isinstance(batch, _PaddedBatch) and not batch.rows.overlap:
        characters = batch.characters.reshape(-1, 2)[places]
        return _DocSpans(batch.rows, lengths, [flat[xp.asarray(places)]], characters, places)
    # The alignment of tokens, to wordpieces counted without padding.
    align = Ragged(numpy.searchsorted(places, to_numpy(data.align.dataXd).reshape(-1)), to_numpy(data.align.lengths))
    aligned = None if isinstance(batch, _PaddedBatch) else _aligned_rows(data)
    if aligned is None:
        aligned, align, chosen = _stretch(batch, align, lengths)
        lengths, places = numpy.array([len(chosen)]), places[chosen]
    of_pieces = None
    if doc is not None:
        spans = [doc[start:end] for start, end in aligned.spans.tolist()]
        aligned = replace(aligned, characters=span_batch.row_characters(spans, [span.text for span in spans]))
        of_pieces = span_batch.piece_characters(align, [doc], int(lengths.sum()))
    return _DocSpans(aligned, lengths, [flat[xp.asarray(places)]], of_pieces, places)


def _aligned_rows(data: TransformerData) -> span_batch.SpanBatch | None:
    """Return a row for each window of another package's model; None if a token is in two rows."""
    (n_rows, row_width), lengths = data.wordpieces.input_ids.shape, to_numpy(data.align.lengths)
    n_tokens = len(lengths)
    tokens = numpy.repeat(numpy.arange(n_tokens), lengths)
    rows = to_numpy(data.align.dataXd).reshape(-1) // row_width
    shared = numpy.unique(numpy.stack([tokens, rows]), axis=1)
    if len(numpy.unique(shared[0])) < shared.shape[1]:
        return None
    # Tokens without wordpieces (white space, what was cut) go to the row before them.
    starts = numpy.full(n_rows, n_tokens)
    numpy.minimum.at(starts, rows, tokens)
    starts = numpy.minimum.accumulate(starts[::-1])[::-1].copy()
    starts[0] = 0
    ends, last = numpy.append(starts[1:], n_tokens), starts - 1
    numpy.maximum.at(last, rows, tokens)
    weights = (numpy.bincount(rows, minlength=n_rows) > 0).astype("int64")
    return span_batch.SpanBatch(
        numpy.stack([starts, ends], axis=1), numpy.arange(n_rows), weights, ends - last - 1, None
    )


def _stretch(
    batch: WordpieceBatch, align: Ragged, lengths: numpy.ndarray
) -> tuple[span_batch.SpanBatch, Ragged, numpy.ndarray]:
    """Return one row for a Doc whose windows overlap, an alignment to its tokens' wordpieces, and these, each once."""
    recorded = batch.rows if isinstance(batch, _PaddedBatch) else None
    pieces, align_lengths = to_numpy(align.dataXd), to_numpy(align.lengths)
    windows = numpy.repeat(numpy.arange(len(lengths)), lengths)[pieces]
    # A token's wordpieces ascend: its first is in the first of the windows that it is in.
    starts = numpy.cumsum(align_lengths) - align_lengths
    tokens = numpy.repeat(numpy.arange(len(align_lengths)), align_lengths)
    once = windows == windows[starts[tokens]]
    counts = numpy.bincount(tokens[once], minlength=len(align_lengths))
    chosen, index = numpy.unique(pieces[once], return_inverse=True)
    rows = span_batch.SpanBatch(
        numpy.array([[0, recorded.spans[:, 1].max() if recorded else len(counts)]]),
        row_of=numpy.zeros(1, dtype="int64"),
        window_weights=numpy.array([int(len(chosen) > 0)]),
        n_cut=numpy.array([recorded.n_cut.sum() if recorded else 0]),
        settings=recorded.settings if recorded else None,
        is_stretch=numpy.array([True]),
    )
    chosen = chosen if len(chosen) else numpy.zeros(1, dtype="int64")  # a special token stands for no text
    return rows, Ragged(index, counts), chosen  # type: ignore[arg-type]
