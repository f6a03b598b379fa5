"""BERT and its like on packed rows: several windows stand in a row, and none attends to another."""

import numpy
import torch
from torch.nn import functional
from transformers import BertModel, CamembertModel, RobertaModel, XLMRobertaModel

from ..hugging_face import Module, Network
from ..wordpieces import Wordpieces
from .layout import lay_out, on_device
from .passes import Pass, packed_passes
from .private_torch import ACTIVATIONS, linear
from .windows import attend_within, positions_after

BERT_LIKE = (BertModel, RobertaModel, XLMRobertaModel, CamembertModel)


def is_packable(model: Network) -> bool:
    """Whether PackedBert computes the same as a Hugging Face model: BERT or RoBERTa as an encoder, without extras."""
    if type(model) not in BERT_LIKE:
        return False
    config = model.config
    return (
        getattr(config, "position_embedding_type", "absolute") == "absolute"
        and config.hidden_act in ACTIVATIONS
        and not (config.is_decoder or config.add_cross_attention)
        and not (config.output_hidden_states or config.output_attentions)
        and all(type(module) is torch.nn.Linear for module in _linear_modules(model))
        and all(layer.attention.self.num_attention_heads == config.num_attention_heads for layer in model.encoder.layer)
    )


def _linear_modules(model: Network) -> list[Module]:
    """Adapters (LoRA) put modules of their own in the place of these."""
    layers = model.encoder.layer
    attention = [getattr(layer.attention.self, name) for layer in layers for name in ("query", "key", "value")]
    others = [module.dense for layer in layers for module in (layer.attention.output, layer.intermediate, layer.output)]
    return attention + others


class PackedBert:
    """The last hidden states of a BERT-like encoder, from the weights as they are now.

    model: of Hugging Face, see is_packable; on whatever device.
    dtype (torch.dtype): of the arithmetic; the sums of embeddings and what is returned are float32.
    """

    def __init__(self, model: Network, dtype: torch.dtype):
        config, embeddings = model.config, model.embeddings
        self.dtype = dtype
        self.n_heads = config.num_attention_heads
        self.padding = position_padding(model)
        self.words = embeddings.word_embeddings.weight.detach()
        self.positions = embeddings.position_embeddings.weight.detach()
        self.types = embeddings.token_type_embeddings.weight.detach()
        self.norm = LayerNorm(embeddings.LayerNorm)
        self.layers = [Layer(layer, self.n_heads, config.hidden_act, dtype) for layer in model.encoder.layer]

    merges_equal = in_parallel = True

    @property
    def device(self) -> torch.device:
        return self.words.device

    def passes(self, wordpieces: Wordpieces, windows: numpy.ndarray, budget: int) -> list[Pass]:
        return packed_passes(wordpieces.lengths, windows, budget)

    @torch.inference_mode()
    def encode(self, wordpieces: Wordpieces, rows: Pass) -> torch.Tensor:
        ids, columns, types, owners = on_device(lay_out(wordpieces, rows), self.device)
        return self(ids, columns, None if wordpieces.type_ids is None else types, owners)

    def __call__(
        self, ids: torch.Tensor, columns: torch.Tensor, types: torch.Tensor | None, windows: torch.Tensor
    ) -> torch.Tensor:
        """Encode rows.

        ids: int64 (rows, width), wordpieces.
        columns: int64 (rows, width), the place of each in its window, from 0.
        types: int64 (rows, width), token types; None for 0.
        windows: int64 (rows, width), the number of the window that a place belongs to; -1 for padding.
        RETURNS (dtype (rows * width, hidden)): the states; those of padding mean nothing.
        """
        positions = columns if self.padding is None else positions_after(self.padding, ids, columns, windows)
        added = self.words[ids] + self.positions[positions]
        added += self.types[0] if types is None else self.types[types]
        states = self.norm(added.flatten(0, 1)).to(self.dtype)
        mask = attend_within(windows, self.dtype)
        for layer in self.layers:
            states = layer(states, mask)
        return states


class Layer:
    """A layer of a BERT-like encoder: self-attention and feed-forward, each with a residual and layer norm."""

    def __init__(self, layer: Module, n_heads: int, activation: str, dtype: torch.dtype):
        self.n_heads = n_heads
        attention, parts = layer.attention, [getattr(layer.attention.self, n) for n in ("query", "key", "value")]
        weight = torch.cat([part.weight for part in parts])
        self.to_heads = linear(weight, torch.cat([part.bias for part in parts]), dtype)
        self.from_heads = linear(attention.output.dense.weight, attention.output.dense.bias, dtype)
        self.norm_attention = LayerNorm(attention.output.LayerNorm)
        self.widen = linear(layer.intermediate.dense.weight, layer.intermediate.dense.bias, dtype, activation)
        self.narrow = linear(layer.output.dense.weight, layer.output.dense.bias, dtype)
        self.norm_output = LayerNorm(layer.output.LayerNorm)

    def __call__(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        n_rows, width = len(mask), mask.shape[-1]
        heads = self.to_heads(states).view(n_rows, width, 3, self.n_heads, -1)
        query, key, value = (heads[:, :, i].transpose(1, 2) for i in range(3))  # (rows, heads, width, head size)
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        mixed = self.from_heads(attended.transpose(1, 2).reshape(states.shape))
        states = self.norm_attention(mixed.add_(states))
        return self.norm_output(self.narrow(self.widen(states)).add_(states))


class LayerNorm:
    """Layer norm whose factors stay float32 whatever the states are."""

    def __init__(self, norm: Module):
        self.weight, self.bias, self.eps = norm.weight.detach(), norm.bias.detach(), norm.eps

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        if states.is_cpu:
            return functional.layer_norm(states, self.weight.shape, self.weight, self.bias, self.eps)
        weight, bias = self.weight.to(states.dtype), self.bias.to(states.dtype)  # CUDA takes one dtype alone
        return functional.layer_norm(states, weight.shape, weight, bias, self.eps)


def position_padding(model: Network) -> int | None:
    """The id of padding, after which RoBERTa and its like count positions; None for BERT."""
    return None if isinstance(model, BertModel) else model.config.pad_token_id or 0
