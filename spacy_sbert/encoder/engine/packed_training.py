"""The forward pass of training on packed rows, through the modules of the Hugging Face model itself."""

import numpy
import torch
from torch.nn import functional

from ..hugging_face import Module, Network
from ..wordpieces import Wordpieces
from .layout import lay_out, on_device
from .packed_bert import position_padding
from .packing import pack
from .passes import Pass
from .windows import attend_within, positions_after, spread


def packed_states(model: Network, wordpieces: Wordpieces, windows: numpy.ndarray) -> torch.Tensor:
    """Encode windows without padding: several of them stand in a row.

    model: see is_packable; its dropout is as its mode says.
    windows (int64 (k,)): which of the wordpieces' windows.
    RETURNS (float (sum of lengths, hidden)): their states, one window after another, part of the graph.
    """
    lengths = wordpieces.lengths[windows]
    packing = pack(lengths, one_width=True)
    width = int((packing.column_of + lengths).max())
    rows = Pass(windows, packing.row_of * width + packing.column_of, (len(packing.widths), width))
    arrays = lay_out(wordpieces, rows, model.config.pad_token_id or 0)
    ids, columns, types, owners = on_device(arrays, model.device)
    padding = position_padding(model)
    states = model.embeddings(
        input_ids=ids,
        position_ids=columns if padding is None else positions_after(padding, ids, columns, owners),
        token_type_ids=types,
    )
    mask = attend_within(owners, states.dtype)
    for layer in model.encoder.layer:
        states = _layer(layer, states, mask)
    return states.flatten(0, 1).index_select(0, torch.from_numpy(spread(rows.starts, lengths)).to(model.device))


def _layer(layer: Module, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    attention = layer.attention.self
    projected = (projection(states) for projection in (attention.query, attention.key, attention.value))
    shape = (*states.shape[:2], attention.num_attention_heads, attention.attention_head_size)
    query, key, value = (part.view(shape).transpose(1, 2) for part in projected)
    dropout = attention.dropout.p if layer.training else 0.0
    mask = mask.to(query.dtype)
    attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    mixed = layer.attention.output(attended.transpose(1, 2).flatten(2), states)
    return layer.output(layer.intermediate(mixed), mixed)
