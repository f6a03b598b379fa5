"""ModernBERT on packed rows, as it is computed in use."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from ..loading import Network
from ..private_attributes import FUSED_ACTIVATIONS, Linear, linear
from ..tokenization import TokenizedBatch
from ..transformers_versions import (
    GLOBAL_ATTENTION,
    LOCAL_ATTENTION,
    modernbert_attention,
    modernbert_rope,
)
from .bert_families import TorchModule
from .packed_bert import LayerNorm, PackedRows, attention, attention_bias
from .packing import Batch, lay_out, places_for, with_places

# Cosines and sines of the angles of each place, float32 (places, 1, 1, size of a head / 2)
Rotation = tuple[torch.Tensor, torch.Tensor]

# By name: an encoder's own module alone is to be imported
_MODULE = "transformers.models.modernbert.modeling_modernbert"
_MODEL = "ModernBertModel"
# Parts of PyTorch that the class has; adapters (LoRA) put others in their place
_PARTS_OF_PYTORCH = (
    torch.nn.Dropout,
    torch.nn.Embedding,
    torch.nn.Identity,
    torch.nn.LayerNorm,
    torch.nn.Linear,
    torch.nn.ModuleList,
    torch.nn.ReLU,
)
# Settings of a config that PackedModernBert does not follow
_UNKNOWN_SETTINGS = (
    "is_decoder",
    "is_causal",
    "add_cross_attention",
    "output_hidden_states",
    "output_attentions",
    # Of rotary positions
    "head_dim",
    "partial_rotary_factor",
)


def is_packable_modernbert(model: Network) -> bool:
    """Return whether PackedModernBert computes what a model does: a ModernBertModel as it comes."""
    kind = type(model)
    if (kind.__module__, kind.__qualname__) != (_MODULE, _MODEL):
        return False
    return _has_known_config(model) and _has_only_known_parts(model)


def _has_known_config(model: Network) -> bool:
    """Return whether the config of a model asks for nothing that PackedModernBert does not do."""
    config = model.config
    if any(getattr(config, name, False) for name in _UNKNOWN_SETTINGS):
        return False
    if config.hidden_activation not in FUSED_ACTIVATIONS:
        return False
    rope = modernbert_rope(config)
    return all(_is_plain_rope(rope.get(modernbert_attention(layer))) for layer in model.layers)


def _is_plain_rope(parameters: Mapping[str, object] | None) -> bool:
    """Return whether rotary positions have one base, and nothing that scales them."""
    if parameters is None or set(parameters) != {"rope_type", "rope_theta"}:
        return False
    return parameters["rope_type"] == "default"


def _has_only_known_parts(model: Network) -> bool:
    """Return whether all modules of a model are those that its class made."""
    for module in model.modules():
        kind = type(module)
        is_of_class = kind.__module__ in (_MODULE, "transformers.activations")
        if not is_of_class and kind not in _PARTS_OF_PYTORCH:
            return False
    return True


class PackedModernBert(PackedRows):
    """The last hidden states of a ModernBERT, from the weights of a model as they are now.

    See is_packable_modernbert.

    dtype (torch.dtype): of the arithmetic; sums of layers and what is returned are float32.
    SOURCE: Warner et al. 2024, Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder,
        section 2.1.
    """

    def __init__(self, model: Network, dtype: torch.dtype):
        config = model.config
        self.dtype = dtype
        self.words = model.embeddings.tok_embeddings.weight.detach()
        self.norm = LayerNorm(model.embeddings.norm)
        self.layers = [_Layer(layer, dtype) for layer in model.layers]
        self.final_norm = LayerNorm(model.final_norm)
        # How far places see in layers with local attention, to each side
        self.local_distance: int = config.local_attention // 2
        head_size = config.hidden_size // config.num_attention_heads
        rope = modernbert_rope(config)
        self.frequencies = {
            name: rotary_frequencies(rope[name]["rope_theta"], head_size).to(self.device)
            for name in {layer.attention for layer in self.layers}
        }

    @torch.inference_mode()
    def encode(self, wordpieces: TokenizedBatch, batch: Batch) -> torch.Tensor:
        ids, columns, _, owners = lay_out(wordpieces, batch, self.device)
        # Up to the last of a window
        n_used = int((batch.starts + wordpieces.lengths[batch.windows]).max())
        n_places = places_for(n_used, of_short_text=True)
        states = with_places(self.norm(self.words[ids]).flatten(0, 1), n_places)
        positions = with_places(columns.flatten(), n_places)
        rotations = {
            name: rotation(positions, frequencies) for name, frequencies in self.frequencies.items()
        }
        added_scores = {GLOBAL_ATTENTION: attention_bias(owners, None, self.dtype)}
        added_scores[LOCAL_ATTENTION] = without_distant(
            added_scores[GLOBAL_ATTENTION], self.local_distance
        )
        for layer in self.layers:
            states = layer(states, rotations[layer.attention], added_scores[layer.attention])
        return self.final_norm(states)[: ids.numel()]


class _Layer:
    """A layer in use. States are float32 (places, hidden), products are computed in a dtype.

    attention (str): GLOBAL_ATTENTION or LOCAL_ATTENTION.
    """

    def __init__(self, layer: TorchModule, dtype: torch.dtype):
        self.dtype = dtype
        self.attention = modernbert_attention(layer)
        self.head_size: int = layer.attn.head_dim
        # The first layer reads embeddings, which are normalized
        self.attention_norm: LayerNorm | None = None
        if not isinstance(layer.attn_norm, torch.nn.Identity):
            self.attention_norm = LayerNorm(layer.attn_norm)
        self.query_key_value = _linear(layer.attn.Wqkv, dtype)
        self.attention_output = _linear(layer.attn.Wo, dtype)
        self.output_norm = LayerNorm(layer.mlp_norm)
        self.intermediate, self.gate = _gated_linear(layer.mlp, dtype)
        self.output = _linear(layer.mlp.Wo, dtype)

    def __call__(
        self, states: torch.Tensor, rotation: Rotation, added_scores: torch.Tensor
    ) -> torch.Tensor:
        """Return the states behind the layer, in the place of those before it.

        added_scores: see attention_bias.
        """
        states += self.attention_output(self.attend(states, rotation, added_scores))
        normalized = self.output_norm(states).to(self.dtype)
        widened = self.intermediate(normalized).mul_(self.gate(normalized))
        states += self.output(widened)
        return states

    def attend(
        self, states: torch.Tensor, rotation: Rotation, added_scores: torch.Tensor
    ) -> torch.Tensor:
        """Return the values of all heads that each place attends to, (places, hidden)."""
        if self.attention_norm is not None:
            states = self.attention_norm(states)
        heads = self.query_key_value(states.to(self.dtype))
        heads = heads.view(len(heads), 3, -1, self.head_size)
        rotate(heads[:, :2], rotation)
        return attention(heads, added_scores)


def _linear(module: TorchModule, dtype: torch.dtype) -> Linear:
    return linear(module.weight, module.bias, dtype)


def _gated_linear(mlp: TorchModule, dtype: torch.dtype) -> tuple[Linear, Linear]:
    """Return the widening linear layer with its activation, and the gate that it is multiplied by.

    SOURCE: Shazeer 2020, GLU Variants Improve Transformer.
    """
    weights = mlp.Wi.weight.chunk(2)
    biases = (None, None) if mlp.Wi.bias is None else mlp.Wi.bias.chunk(2)
    activation = mlp.config.hidden_activation
    return linear(weights[0], biases[0], dtype, activation), linear(weights[1], biases[1], dtype)


# Rotary positions: Su et al. 2021, RoFormer, section 3.4.2


def rotary_frequencies(base: float, head_size: int) -> torch.Tensor:
    """Return the angles between neighbouring places, base^(-2 i / size): float32 (size / 2,)."""
    exponents = torch.arange(0, head_size, 2).float() / head_size
    return 1.0 / base**exponents


def rotation(positions: torch.Tensor, frequencies: torch.Tensor) -> Rotation:
    """Return the cosines and sines by which places are rotated.

    positions: int64 (places,), in their windows.
    """
    angles = positions[:, None, None, None].float() * frequencies
    return angles.cos(), angles.sin()


def rotate(heads: torch.Tensor, rotation: Rotation) -> None:
    """Rotate queries and keys in place: each number of the first half with one of the second.

    heads: (places, queries and keys, heads, size).
    """
    cosines, sines = rotation
    first, second = heads.chunk(2, dim=-1)
    # first * cosines - second * sines, in fewer passes over memory
    rotated = torch.addcmul(first * cosines, second, sines, value=-1)
    second.copy_(torch.addcmul(second * cosines, first, sines))
    first.copy_(rotated)


def without_distant(added_scores: torch.Tensor, distance: int) -> torch.Tensor:
    """Return what is added to scores, minus infinity beyond a distance.

    added_scores: (rows, 1, width, width), see attention_bias.
    SOURCE: Beltagy et al. 2020, Longformer, section 3.1 (sliding window).
    """
    width = added_scores.shape[-1]
    if width <= distance + 1:
        return added_scores
    # Distances in the row: a window lies in one piece, so that they are those in the window
    places = torch.arange(width, device=added_scores.device)
    is_distant = (places - places[:, None]).abs() > distance
    return added_scores.masked_fill(is_distant, -torch.inf)
