"""From a transformer's wordpiece states to one vector a row, and back."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from spacy_transformers.data_classes import TransformerData
from thinc.api import Model
from thinc.types import Floats2d, Floats3d
from transformers.file_utils import ModelOutput

from ..encoder.rows import Rows, rows_of
from ..errors import Errors
from ..span_pooling import TokenStates, finish, reduce_tokens
from ..types import EncoderSettings
from .encoded import EncodedDoc
from .mean_pooling import Pooling
from .token_states import token_states
from .unit_length import unit_length

SentencePooling = Model[list[TransformerData], list[EncodedDoc]]
DocBackprop = Callable[[Floats2d], Floats3d]


def sentence_pooling(pooling: Pooling, pooling_name: str, normalize: bool | None) -> SentencePooling:
    """Pool each row of each Doc, average the windows of a row that was too long for one, and normalise.

    pooling (Model): from (states, mask) to one vector a row: mean_pooling, max_pooling or cls_pooling.
    pooling_name (str): "mean", "max" or "cls", for the Spans that are no rows.
    normalize (bool): whether vectors get unit length; None to do as the encoder's folder says.
    RETURNS (Model): Input: one TransformerData a Doc. Output: one EncodedDoc a Doc. Its backprop takes the gradient of
        each EncodedDoc's vectors, float (rows, width), and returns the gradient of each TransformerData that has rows.
        Its attrs: token_vectors, whether to return what other Spans and Tokens need; width, of the vectors, once
        known; upstream_normalize, what the folder of a transformer says that does not tell it with its output.
    """
    return Model(
        "sentence_pooling",
        partial(forward, pooling_name=pooling_name, normalize=normalize),
        layers=[pooling, unit_length()],
        attrs={"token_vectors": True, "width": 0, "upstream_normalize": False},
    )


def forward(
    model: SentencePooling,
    datas: list[TransformerData],
    is_train: bool,
    *,
    pooling_name: str,
    normalize: bool | None,
) -> tuple[list[EncodedDoc], Callable]:
    model.attrs["width"] = next((d.width for d in datas if "last_hidden_state" in d.model_output), model.attrs["width"])
    encoded: list[EncodedDoc] = []
    backprops: list[DocBackprop | None] = []
    for data in datas:
        if "last_hidden_state" not in data.model_output:
            encoded.append(_without_rows(model, pooling_name))
            backprops.append(None)
            continue
        rows = rows_of(data)
        unit = _follow_folder(model, rows.settings) if normalize is None else normalize
        vectors, backprop_doc = _pool_rows(model, data, rows, unit, is_train)
        tokens = None
        if not is_train and (rows.foreign or model.attrs["token_vectors"]):
            tokens = _token_states(model, data, pooling_name, rows.foreign)
            if rows.foreign:
                vectors = _pool_tokens(model, tokens, pooling_name, unit)
        encoded.append(EncodedDoc(rows, vectors, pooling_name, unit, tokens if model.attrs["token_vectors"] else None))
        backprops.append(backprop_doc)

    def backprop(d_vectors: list[Floats2d]) -> list[TransformerData]:
        d_datas = []
        for data, backprop_doc, d_doc in zip(datas, backprops, d_vectors, strict=True):
            if backprop_doc is not None:  # a Doc without rows is not in the transformer's batch: positions shift
                output = ModelOutput(last_hidden_state=backprop_doc(d_doc))
                d_datas.append(TransformerData(wordpieces=data.wordpieces, model_output=output, align=data.align))
        return d_datas

    return encoded, backprop


def _follow_folder(model: SentencePooling, settings: EncoderSettings | None) -> bool:
    """Whether the folder of the encoder normalises, for normalize = "auto"."""
    if settings is None:
        return model.attrs["upstream_normalize"]
    if settings.unknown_modules:
        unknown = ", ".join(settings.unknown_modules)
        raise ValueError(Errors.UNKNOWN_MODULES.format(folder=settings.name, unknown=unknown))
    return settings.normalize


def _pool_rows(
    model: SentencePooling, data: TransformerData, rows: Rows, unit: bool, is_train: bool
) -> tuple[Floats2d, DocBackprop]:
    pool, to_unit_length = model.layers
    xp = model.ops.xp
    given = data.model_output["last_hidden_state"]  # (windows, wordpieces, width)
    states = _at_least_float32(xp, given)
    windows, backprop_pool = pool((states, xp.asarray(data.wordpieces.attention_mask)), is_train)
    matrix = rows.averaging()
    averaging = None if matrix is None else xp.asarray(matrix, dtype=states.dtype)
    vectors = windows if averaging is None else averaging @ windows
    kept = xp.asarray(rows.has_text, dtype=states.dtype)[:, None]
    vectors = vectors * kept
    backprop_unit = None
    if unit:
        vectors, backprop_unit = to_unit_length(vectors, is_train)

    def backprop(d_vectors: Floats2d) -> Floats3d:
        d_rows = xp.asarray(d_vectors, dtype=states.dtype)
        d_rows = (d_rows if backprop_unit is None else backprop_unit(d_rows)) * kept
        d_states = backprop_pool(d_rows if averaging is None else averaging.T @ d_rows)
        return d_states.astype(given.dtype, copy=False)

    return vectors, backprop


def _at_least_float32(xp: Any, states: Any) -> Any:
    """Half precision is for the transformer: sums over wordpieces would lose too much in it."""
    return states.astype(xp.float32) if states.dtype == xp.float16 else states


def _token_states(model: SentencePooling, data: TransformerData, pooling_name: str, overlap: bool) -> TokenStates:
    states = _at_least_float32(model.ops.xp, data.model_output["last_hidden_state"])
    flat = states.reshape(-1, states.shape[-1])
    return token_states(model.ops, flat, data.align, pooling_name, overlapping=states.shape[1] if overlap else None)


def _pool_tokens(model: SentencePooling, tokens: TokenStates, pooling_name: str, unit: bool) -> Floats2d:
    """The vector of a Doc whose windows overlap: each token once, without special tokens."""
    vector = finish([reduce_tokens(tokens, 0, len(tokens.counts), pooling_name)], pooling_name, unit)
    zeros = model.ops.alloc2f(1, tokens.values.shape[1])
    return zeros if vector is None else model.ops.asarray2f(cast(Floats2d, vector.reshape(1, -1)))


def _without_rows(model: SentencePooling, pooling_name: str) -> EncodedDoc:
    return EncodedDoc(Rows.none(), model.ops.alloc2f(0, model.attrs["width"]), pooling_name, False, None)
