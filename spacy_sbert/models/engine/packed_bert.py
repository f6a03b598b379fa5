"""BERT and architectures like it on packed batches."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeAlias

import numpy
import torch
from torch.nn import Identity, functional

from ..loading import Network
from ..private_attributes import ACTIVATIONS, Linear, linear
from ..tokenization import TokenizedBatch
from .packing import (
    Batch,
    attention,
    block_diagonal_mask,
    lay_out,
    on_device,
    packed_batches,
    places_for,
    positions_after,
    with_places,
)

Module: TypeAlias = Any  # a part of a model
Names = dict[str, str]
BERT: Names = {
    "n_heads": "attention.self.num_attention_heads",
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "drop_scores": "attention.self.dropout",
    "mix": "attention.output.dense",
    "drop_mixed": "attention.output.dropout",
    "norm_mixed": "attention.output.LayerNorm",
    "widen": "intermediate.dense",
    "activate": "intermediate.intermediate_act_fn",
    "narrow": "output.dense",
    "drop_output": "output.dropout",
    "norm_output": "output.LayerNorm",
}
MPNET: Names = {
    **BERT,
    "n_heads": "attention.attn.num_attention_heads",
    "query": "attention.attn.q",
    "key": "attention.attn.k",
    "value": "attention.attn.v",
    "drop_scores": "attention.attn.dropout",
    "mix": "attention.attn.o",
    "drop_mixed": "attention.dropout",
    "norm_mixed": "attention.LayerNorm",
}
DISTILBERT: Names = {
    "n_heads": "attention.n_heads",
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "drop_scores": "attention.dropout",
    "mix": "attention.out_lin",
    "norm_mixed": "sa_layer_norm",
    "widen": "ffn.lin1",
    "activate": "ffn.activation",
    "narrow": "ffn.lin2",
    "drop_output": "ffn.dropout",
    "norm_output": "output_layer_norm",
}
# Where the layers of a class are, and the parts in each. By name: an encoder's own module alone is to be imported.
FAMILIES: dict[str, tuple[str, Names]] = {
    "bert.modeling_bert.BertModel": ("encoder.layer", BERT),
    "camembert.modeling_camembert.CamembertModel": ("encoder.layer", BERT),
    "distilbert.modeling_distilbert.DistilBertModel": ("transformer.layer", DISTILBERT),
    "electra.modeling_electra.ElectraModel": ("encoder.layer", BERT),
    "mpnet.modeling_mpnet.MPNetModel": ("encoder.layer", MPNET),
    "roberta.modeling_roberta.RobertaModel": ("encoder.layer", BERT),
    "xlm_roberta.modeling_xlm_roberta.XLMRobertaModel": ("encoder.layer", BERT),
}


@dataclass(frozen=True)
class LayerModules:
    """The modules of a layer: attention, then feed-forward, each with a residual and layer norm."""

    n_heads: int
    query: Module
    key: Module
    value: Module
    drop_scores: Module
    mix: Module
    norm_mixed: Module
    widen: Module
    activate: Module
    narrow: Module
    drop_output: Module
    norm_output: Module
    drop_mixed: Module = field(default_factory=Identity)  # DistilBERT drops out nothing there

    @property
    def linear(self) -> list[Module]:
        return [self.query, self.key, self.value, self.mix, self.widen, self.narrow]


def layers_of(model: Network) -> list[LayerModules]:
    """Return the parts of each layer of a model of FAMILIES."""
    layers, names = FAMILIES[_class_of(model)]
    return [
        LayerModules(**{part: attrgetter(name)(layer) for part, name in names.items()})
        for layer in attrgetter(layers)(model)
    ]


def activation_of(model: Network) -> str:
    """Return the name of the activation between the linear layers of the feed-forward part."""
    return model.config.activation if FAMILIES[_class_of(model)][1] is DISTILBERT else model.config.hidden_act


def position_padding(model: Network) -> int | None:
    """Return the id of padding, after which RoBERTa and its like, and MPNet, count positions; None for the others."""
    return getattr(model.embeddings, "padding_idx", None)


def distance_bias(model: Network) -> torch.Tensor | None:
    """Return what MPNet adds to the attention scores, float (buckets of distances, heads); None for the others."""
    return model.encoder.relative_attention_bias.weight if FAMILIES[_class_of(model)][1] is MPNET else None


def attention_bias(windows: torch.Tensor, by_distance: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor:
    """Return the attention bias: minus infinity between windows, and within them that of the distance.

    windows: int64 (rows, width), see block_diagonal_mask. by_distance: see distance_bias.
    RETURNS (dtype (rows, heads or 1, width, width)).
    SOURCE: Raffel et al. 2020, Exploring the Limits of Transfer Learning, section 2.1; in MPNet: Song et al. 2020.
    """
    mask = block_diagonal_mask(windows, dtype)
    if by_distance is None:
        return mask
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder  # noqa: PLC0415 (only MPNet has it)

    places = torch.arange(windows.shape[1])  # in the row: windows are in one piece, distances in them are the same
    buckets = MPNetEncoder.relative_position_bucket(places - places[:, None]).to(windows.device)
    return mask + functional.embedding(buckets, by_distance).permute(2, 0, 1).contiguous().to(dtype)


def _class_of(model: Network) -> str:
    kind = type(model)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("transformers.models.")


LINEARS = ("heads", "mix", "widen", "narrow")  # the products of a layer; the heads' queries, keys and values are one
SMOOTHED = ("heads", "widen")  # those that read what layer norm gives, whose channels differ most


def is_packable(model: Network) -> bool:
    """Return whether PackedBert computes the same as a model: of a class of FAMILIES itself, without extras."""
    if _class_of(model) not in FAMILIES:
        return False
    config, layers = model.config, layers_of(model)
    # Adapters (LoRA) put modules of their own in the place of linear layers.
    modules = [getattr(model, "embeddings_project", None), *(module for parts in layers for module in parts.linear)]
    return (
        getattr(config, "position_embedding_type", "absolute") == "absolute"
        and activation_of(model) in ACTIVATIONS
        # Version 5 of transformers gives these two to families alone that can be decoders.
        and not (getattr(config, "is_decoder", False) or getattr(config, "add_cross_attention", False))
        and not (config.output_hidden_states or config.output_attentions)
        and all(module is None or type(module) is torch.nn.Linear for module in modules)
        and all(parts.n_heads == config.num_attention_heads for parts in layers)
    )


class PackedBert:
    """The last hidden states of a BERT-like encoder, from the weights as they are now.

    model: of Hugging Face, see is_packable; on whatever device.
    dtype (torch.dtype): of the arithmetic; the sums of embeddings and what is returned are float32.
    layers (list[Layer]): with linear layers of their own; None for those of the model in this dtype.
    """

    def __init__(self, model: Network, dtype: torch.dtype, layers: "list[Layer] | None" = None):
        embeddings, project = model.embeddings, getattr(model, "embeddings_project", None)
        types, by_distance = getattr(embeddings, "token_type_embeddings", None), distance_bias(model)
        self.dtype = dtype
        self.padding = position_padding(model)
        self.words = embeddings.word_embeddings.weight.detach()
        self.positions = embeddings.position_embeddings.weight.detach()
        self.types = types and types.weight.detach()
        self.norm = LayerNorm(embeddings.LayerNorm)
        self.project = project and linear(project.weight, project.bias, dtype)
        self.by_distance = None if by_distance is None else by_distance.detach()
        self.layers = layers or [
            Layer(parts, _linears(parts, activation_of(model), dtype)) for parts in layers_of(model)
        ]

    merges_equal = in_parallel = True

    @property
    def device(self) -> torch.device:
        return self.words.device

    def passes(self, wordpieces: TokenizedBatch, windows: numpy.ndarray, budget: int) -> list[Batch]:
        n_threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        return packed_batches(wordpieces.lengths, windows, budget, at_a_time=n_threads)

    @torch.inference_mode()
    def encode(self, wordpieces: TokenizedBatch, rows: Batch) -> torch.Tensor:
        ids, columns, types, owners = on_device(lay_out(wordpieces, rows), self.device)
        used = int((rows.starts + wordpieces.lengths[rows.windows]).max())
        return self(ids, columns, None if wordpieces.type_ids is None else types, owners, used)

    def __call__(
        self,
        ids: torch.Tensor,
        columns: torch.Tensor,
        types: torch.Tensor | None,
        windows: torch.Tensor,
        n_used: int | None = None,
    ) -> torch.Tensor:
        """Encode rows.

        ids: int64 (rows, width), wordpieces.
        columns: int64 (rows, width), the place of each in its window, from 0.
        types: int64 (rows, width), token types; None for 0.
        windows: int64 (rows, width), the number of the window that a place belongs to; -1 for padding.
        n_used (int): the places up to the last of a window; None for all.
        RETURNS (dtype (n_used, hidden), or some more): the states; those of padding mean nothing.
        """
        positions = columns if self.padding is None else positions_after(self.padding, ids, columns, windows)
        added = self.words[ids] + self.positions[positions]
        if self.types is not None:
            added += self.types[0] if types is None else self.types[types]
        states = self.norm(added.flatten(0, 1)).to(self.dtype)
        states = with_places(states, places_for(n_used or len(states)))
        if self.project is not None:
            states = self.project(states)
        added_scores = attention_bias(windows, self.by_distance, self.dtype)
        for layer in self.layers:
            states = layer(states, added_scores)
        return states[: ids.numel()]


class Layer:
    """A layer of a BERT-like encoder; linears (Mapping[str, Linear]): its products, by the names of LINEARS."""

    def __init__(self, parts: LayerModules, linears: Mapping[str, Linear]):
        self.n_heads, self.linears = parts.n_heads, linears
        self.norm_mixed, self.norm_output = LayerNorm(parts.norm_mixed), LayerNorm(parts.norm_output)

    def __call__(self, states: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
        heads = self.linears["heads"](states).view(len(states), 3, self.n_heads, -1)
        mixed = self.linears["mix"](attention(heads, added_scores))
        states = self.norm_mixed(mixed.add_(states))
        return self.norm_output(self.linears["narrow"](self.linears["widen"](states)).add_(states))


def weights_of(parts: LayerModules) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Return weight (out, in) and bias (out,) for each of LINEARS."""
    heads = (parts.query, parts.key, parts.value)
    others = {name: (part.weight, part.bias) for name, part in zip(LINEARS[1:], parts.linear[3:], strict=True)}
    return {"heads": (torch.cat([part.weight for part in heads]), torch.cat([part.bias for part in heads])), **others}


def _linears(parts: LayerModules, activation: str, dtype: torch.dtype) -> dict[str, Linear]:
    activations = {"widen": activation}
    return {name: linear(*both, dtype, activations.get(name)) for name, both in weights_of(parts).items()}


class LayerNorm:
    """Layer norm whose factors stay float32 whatever the states are."""

    def __init__(self, norm: Module):
        self.weight, self.bias, self.eps = norm.weight.detach(), norm.bias.detach(), norm.eps

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        if states.is_cpu:
            return functional.layer_norm(states, self.weight.shape, self.weight, self.bias, self.eps)
        weight, bias = self.weight.to(states.dtype), self.bias.to(states.dtype)  # CUDA takes one dtype alone
        return functional.layer_norm(states, weight.shape, weight, bias, self.eps)
