"""Checks of a loaded encoder: whether tokenizer and weights fit, and how long a row may be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from transformers import PretrainedConfig

from ..errors import DivergedError, Errors, Warnings, warn
from .load_weights import likely_cause
from .loading import ENCODERS_TO_USE, Network, Source, Tokenizer, in_one_line
from .surroundings import is_from_around
from .transformers_versions import ROPE

# Tokenizers without a limit have 1e30
_NO_LIMIT = 1_000_000
REPAIR_TOKENS = (
    "Take the word out of the tokenizer, or save the encoder again after "
    "model.resize_token_embeddings(len(tokenizer)) and training."
)
_TYPES = "token_type_ids"
# Dimensions of states: rows, wordpieces and channels; the logits of a classifier have two
_STATES = 3
# Rotary positions whose frequencies depend on the longest row of a batch
_ROPE_BY_LENGTH = ("dynamic", "longrope")
# Attributes that hold a table with a row a position, whatever their module is.
_POSITION_TABLES = (
    "position_embeddings",
    "position_embedding",
    "embed_positions",
    "positions_embed",
    "wpe",
    "pos_encoding",
    "positions_encoding",
)

Encode = Callable[[Mapping[str, torch.Tensor]], torch.Tensor]


def check_encoder(
    source: Source,
    tokenizer: Tokenizer,
    model: Network,
    encode: Encode,
    texts: Sequence[str],
    max_length: int | None,
) -> int | None:
    """Check that a tokenizer fits an encoder: encode a text, or a pair, as the first use would.

    encode (Callable): from input_ids and the like, (1, wordpieces), to states.
    max_length (int): the limit of the folder, None for none.
    RETURNS (int): the most wordpieces of a row: of the folder, the positions, or the tokenizer;
        None for no limit.
    RAISES (ValueError): if the vocabulary or the limit does not fit, or states are not finite.
    """
    vocabulary = tokenizer.get_vocab()
    rows = _check_vocabulary(source, vocabulary, model)
    inputs = dict(tokenizer(*texts, return_tensors="pt"))
    if not inputs["input_ids"].numel():
        raise _bad_tokenizer(source, f"no wordpiece in {texts}")
    _check_rows(source, vocabulary, inputs["input_ids"], rows)
    _check_inputs(source, tokenizer, model, inputs)
    _check_states(source, model, encode, inputs)
    return _check_limit(source, tokenizer, model, max_length)


def _bad_tokenizer(source: Source, reason: str) -> ValueError:
    return ValueError(Errors.BAD_TOKENIZER.format(folder=source.folder, reason=reason))


def _check_vocabulary(source: Source, vocabulary: Mapping[str, int], model: Network) -> int:
    """Return how many wordpieces the encoder has an embedding of.

    RAISES (ValueError): if it has no embeddings, or many more or fewer than the tokenizer has
        wordpieces.
    """
    rows = embedding_rows(model)
    if rows is None:
        raise ValueError(
            f"The encoder in {source.folder} ({model.config.model_type}) has no embeddings of "
            f"wordpieces: it reads characters or other input. {ENCODERS_TO_USE}."
        )
    n_wordpieces = len(vocabulary)
    n_ids = max(vocabulary.values(), default=-1) + 1
    # Tables are padded to a number of embeddings that is quick to multiply
    is_padded = rows % 64 == 0 and rows - n_wordpieces < 128
    lacks_wordpieces = n_wordpieces < 0.9 * rows and not is_padded
    if lacks_wordpieces or n_ids > 2 * rows + 1000:
        reason = f"it has {n_wordpieces} wordpieces with ids below {n_ids}, the encoder has {rows}"
        if source.tokenizer_config:
            reason += f"; tokenizer_config sets {', '.join(source.tokenizer_config)}"
        raise _bad_tokenizer(source, reason)
    return rows


def _check_rows(
    source: Source, vocabulary: Mapping[str, int], ids: torch.Tensor, rows: int
) -> None:
    """Check that an encoder has an embedding of special tokens.

    Warn of other wordpieces that it has none of.
    """
    without = {number: name for name, number in vocabulary.items() if number >= rows}
    largest = int(ids.max())
    if largest >= rows or int(ids.min()) < 0:
        token = without.get(largest)
        reason = f"its token {token!r} has the id {largest}, and the encoder has {rows} embeddings"
        raise _bad_tokenizer(source, reason)
    if not without:
        return
    names = ", ".join(without[number] for number in sorted(without)[:3])
    if len(without) > 3:
        names += ", ..."
    text = Warnings.TOKENS_WITHOUT_EMBEDDING.format(
        folder=source.folder, count=len(without), names=names
    )
    warn(f"{text} {REPAIR_TOKENS}")


def _check_inputs(
    source: Source, tokenizer: Tokenizer, model: Network, inputs: Mapping[str, torch.Tensor]
) -> None:
    """Check that an encoder reads nothing beside wordpieces. RAISES (ValueError): if it does."""
    supported = {"input_ids", "attention_mask", _TYPES}
    others = sorted(inputs.keys() & _forward_arguments(model.__class__) - supported)
    if others:
        raise ValueError(
            f"The tokenizer {type(tokenizer).__name__} of '{source.name}' gives the encoder "
            f"{', '.join(others)} beside the wordpieces, which is not supported. Use an encoder "
            "that reads wordpieces only."
        )


def _check_states(
    source: Source, model: Network, encode: Encode, inputs: Mapping[str, torch.Tensor]
) -> None:
    """Check that an encoder has a finite state for each wordpiece. RAISES (ValueError): if not."""
    try:
        with torch.no_grad():
            states = encode(inputs)
    except Exception as error:
        # Whatever config and weights lead to
        if is_from_around(error):
            raise
        raise _unable(source, model, in_one_line(error)) from error
    n_wordpieces = inputs["input_ids"].shape[1]
    if states.dim() == _STATES and states.shape[:2] != (1, n_wordpieces):
        reason = f"it has {states.shape[1]} states for {n_wordpieces} wordpieces"
        raise _unable(source, model, reason)
    if torch.isfinite(states).all():
        return
    if source.is_saved:
        raise DivergedError(Errors.DIVERGED_WEIGHTS.format(reason="its states are not finite"))
    raise ValueError(
        f"The states of the encoder in {source.folder} are not finite: training diverged, or the "
        "weights overflow. Use an earlier checkpoint, or copy or download the weights again."
    )


def _check_limit(
    source: Source, tokenizer: Tokenizer, model: Network, max_length: int | None
) -> int | None:
    """Return the most wordpieces of a row; None for no limit.

    RAISES (ValueError): if no text fits.
    """
    # As sentence-transformers does: the setting wins over max_seq_length, and that over the limits
    # of the two files.
    of_tokenizer = None
    if tokenizer.model_max_length < _NO_LIMIT:
        of_tokenizer = int(tokenizer.model_max_length)
    if "model_max_length" in source.tokenizer_config:
        asked = of_tokenizer
    else:
        asked = max_length or _least(of_tokenizer, configured_positions(model.config))
    limit = _least(asked, position_limit(model))
    n_special = tokenizer.num_special_tokens_to_add()
    if limit is not None and limit <= n_special:
        raise ValueError(
            f"The encoder in {source.folder} is limited to {limit} wordpieces (max_seq_length, "
            f"model_max_length or the number of its positions), of which {n_special} are special "
            f"tokens: no text fits. Expected more than {n_special}."
        )
    return limit


def _least(*limits: int | None) -> int | None:
    """Return the least of some limits, None or 0 for none; None if there are none."""
    return min(filter(None, limits), default=None)


@cache
def _forward_arguments(kind: Any) -> frozenset[str]:
    """Return the arguments that the forward method of an encoder's class names."""
    return frozenset(inspect.signature(kind.forward).parameters)


def takes_token_types(model: Network) -> bool:
    """Return whether an encoder reads token types.

    Some add an embedding of type 0, and none if they are left out.
    """
    return _TYPES in _forward_arguments(model.__class__)


def embedding_rows(model: Network) -> int | None:
    """Return how many wordpieces an encoder has an embedding of.

    None if it has no table of them.
    """
    try:
        table = model.get_input_embeddings()
    except NotImplementedError:
        return None
    weight = getattr(table, "weight", None)
    if weight is None:
        return None
    return weight.shape[0]


def padding_id(encoder: Network) -> int:
    """Return the wordpiece that fills rows, 0 if that of the config has no embedding."""
    padding = getattr(encoder.config, "pad_token_id", None) or 0
    rows = embedding_rows(encoder)
    has_embedding = padding > 0 and (rows is None or padding < rows)
    return padding if has_embedding else 0


def _unable(source: Source, model: Network, reason: str) -> ValueError:
    return ValueError(
        f"The encoder in {source.folder} ({model.config.model_type}) cannot encode a text by "
        f"itself ({reason}). {likely_cause(source, model.config)}{ENCODERS_TO_USE}, or correct its "
        "config.json."
    )


def position_limit(transformer: Network) -> int | None:
    """Return how many wordpieces the tables of positions have room for.

    None if none is limited by a table.

    RoBERTa and its like count positions from padding_idx + 1 on. Rotary and relative positions go
    on behind max_position_embeddings, as do those that are computed when they are needed.
    """
    # A classifier holds the encoder and a head
    encoder: Any = getattr(transformer, "base_model", transformer)
    rooms = [room for module in encoder.modules() for room in _rooms_of(module)]
    if not rooms:
        return None
    return _least(*rooms, configured_positions(transformer.config))


def _rooms_of(module: torch.nn.Module) -> Iterator[int]:
    """Yield how many wordpieces each table of positions of a module has room for."""
    for name in _POSITION_TABLES:
        table = getattr(module, name, None)
        weight = table
        if not isinstance(table, torch.Tensor):
            weight = getattr(table, "weight", None)
        if not isinstance(weight, torch.Tensor):
            continue
        room = len(weight) - getattr(table, "offset", 0)
        padding_idx = getattr(table, "padding_idx", None)
        if padding_idx is not None:
            room -= padding_idx + 1
        yield room


def configured_positions(config: PretrainedConfig) -> int | None:
    """Return max_position_embeddings; None if there is none, which XLNet writes as -1."""
    limit = getattr(config, "max_position_embeddings", None)
    if not isinstance(limit, int) or limit <= 0:
        return None
    return limit


def ignores_padding(model: Network, tokenizer: Tokenizer, limit: int | None) -> bool:
    """Return whether padding behind a text leaves its states as they are.

    It does not with convolutions over rows, or if the encoder takes no mask (FNet).
    Classifiers are not tried: pairs are padded.

    limit (int): the most wordpieces of a row, None for no limit.
    """
    if model.base_model is not model:
        return True
    ids = tokenizer("a b c d e f g", return_tensors="pt")["input_ids"]
    # As many wordpieces of padding are added
    if limit is not None:
        ids = ids[:, : max(1, limit // 2)]
    length = ids.shape[1]
    padded = torch.nn.functional.pad(ids, (0, length), value=padding_id(model))
    mask = (torch.arange(2 * length) < length).long()[None]
    with torch.no_grad():
        alone = model(input_ids=ids, **attention_mask(model, mask[:, :length])).last_hidden_state
        beside = model(input_ids=padded, **attention_mask(model, mask)).last_hidden_state
    tolerance = 1e-3 * float(alone.abs().max())
    return torch.allclose(alone, beside[:, :length], rtol=0, atol=tolerance)


def rope_by_length(model: Network, limit: int | None) -> str:
    """Return the type of rotary positions that depend on the longest row; "" without.

    They change behind the length that the encoder was made for at first.

    limit (int): the most wordpieces of a row, None for no limit.
    """
    for module in model.modules():
        for layer, kind in _rope_types(module):
            if kind not in _ROPE_BY_LENGTH:
                continue
            if limit is None or limit > _first_length(module, layer):
                return kind
    return ""


def _rope_types(module: Any) -> list[tuple[str, str]]:
    """Return the types of a module's rotary positions, by the type of layers ("" for all)."""
    kinds = getattr(module, "rope_type", None) or {}
    if not isinstance(kinds, dict):
        kinds = {"": str(kinds)}
    return list(kinds.items())


def _first_length(module: Any, layer: str) -> int:
    """Return the most wordpieces for which rotary positions keep their first frequencies."""
    name = "original_max_position_embeddings"
    parameters = getattr(module.config, ROPE, None) or {}
    of_layer = parameters.get(layer, parameters).get(name)
    lengths = [of_layer, getattr(module.config, name, None), module.original_max_seq_len]
    return min(length for length in lengths if length)


def reset_rope(model: Network, args: object) -> None:
    """Undo that dynamic rotary positions keep the frequencies of the longest row so far."""
    for module in model.modules():
        for layer, kind in _rope_types(module):
            if kind != "dynamic":
                continue
            prefix = f"{layer}_" if layer else ""
            frequencies = getattr(module, f"{prefix}inv_freq")
            first = getattr(module, f"{prefix}original_inv_freq")
            setattr(module, f"{prefix}inv_freq", first.to(frequencies.device))
            setattr(module, f"{prefix}max_seq_len_cached", module.original_max_seq_len)


def attention_mask(model: Network, mask: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the mask as an argument of an encoder; none for FNet, which takes none."""
    arguments = _forward_arguments(model.__class__)
    if arguments.isdisjoint(("attention_mask", "kwargs")):
        return {}
    return {"attention_mask": mask}
