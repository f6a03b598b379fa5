"""BERT and its like on packed rows: several windows stand in a row, and none attends to another."""

from collections.abc import Mapping

import numpy
import torch
from torch.nn import functional

from ..hugging_face import Module, Network
from ..wordpieces import Wordpieces
from .attention import attention
from .families import (
    Parts,
    activation_of,
    added_to_scores,
    is_of_family,
    layers_of,
    position_padding,
    scores_by_distance,
)
from .layout import lay_out, on_device, with_places
from .passes import Pass, packed_passes, places_for
from .private_torch import ACTIVATIONS, Linear, linear
from .windows import positions_after

LINEARS = ("heads", "mix", "widen", "narrow")  # the products of a layer; the heads' queries, keys and values are one
SMOOTHED = ("heads", "widen")  # those that read what layer norm gives, whose channels differ most


def is_packable(model: Network) -> bool:
    """Whether PackedBert computes the same as a Hugging Face model: an encoder of FAMILIES, without extras."""
    if not is_of_family(model):
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
        types, by_distance = getattr(embeddings, "token_type_embeddings", None), scores_by_distance(model)
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

    def passes(self, wordpieces: Wordpieces, windows: numpy.ndarray, budget: int) -> list[Pass]:
        n_threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        return packed_passes(wordpieces.lengths, windows, budget, at_a_time=n_threads)

    @torch.inference_mode()
    def encode(self, wordpieces: Wordpieces, rows: Pass) -> torch.Tensor:
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
        added_scores = added_to_scores(windows, self.by_distance, self.dtype)
        for layer in self.layers:
            states = layer(states, added_scores)
        return states[: ids.numel()]


class Layer:
    """A layer of a BERT-like encoder: self-attention and feed-forward, each with a residual and layer norm.

    parts (Parts): of the model. linears (Mapping[str, Linear]): for each of LINEARS the product and what belongs to it.
    """

    def __init__(self, parts: Parts, linears: Mapping[str, Linear]):
        self.n_heads, self.linears = parts.n_heads, linears
        self.norm_mixed, self.norm_output = LayerNorm(parts.norm_mixed), LayerNorm(parts.norm_output)

    def __call__(self, states: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
        heads = self.linears["heads"](states).view(len(states), 3, self.n_heads, -1)
        mixed = self.linears["mix"](attention(heads, added_scores))
        states = self.norm_mixed(mixed.add_(states))
        return self.norm_output(self.linears["narrow"](self.linears["widen"](states)).add_(states))


def weights_of(parts: Parts) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """For each of LINEARS weight (out, in) and bias (out,)."""
    heads = (parts.query, parts.key, parts.value)
    found = {name: (part.weight, part.bias) for name, part in zip(LINEARS[1:], parts.linear[3:], strict=True)}
    return {"heads": (torch.cat([part.weight for part in heads]), torch.cat([part.bias for part in heads])), **found}


def _linears(parts: Parts, activation: str, dtype: torch.dtype) -> dict[str, Linear]:
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
