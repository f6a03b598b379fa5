"""The forward pass of training on packed rows, through the modules of the Hugging Face model itself."""

from typing import Any

import numpy
import torch
from torch.nn import functional

from .packed_bert import position_padding
from .packing import pack
from .windows import attend_within, positions_after, spread


def packed_states(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Encode a padded batch without its padding: several of its rows stand in one.

    model: see is_packable; its dropout is as its mode says.
    inputs (dict): input_ids, attention_mask and maybe token_type_ids, int64 (rows, wordpieces), padded at the end.
    RETURNS (float (rows, wordpieces, hidden)): the states, part of the graph; zeros at padding.
    """
    device, (n_rows, width) = inputs["input_ids"].device, inputs["input_ids"].shape
    lengths = inputs["attention_mask"].sum(dim=1).long().cpu().numpy()
    packing = pack(lengths, one_width=True)
    shape = (len(packing.widths), int((packing.column_of + lengths).max()))
    starts = packing.row_of * shape[1] + packing.column_of
    of = torch.from_numpy(spread(numpy.arange(n_rows) * width, lengths)).to(device)
    to = torch.from_numpy(spread(starts, lengths)).to(device)

    def laid_out(values: torch.Tensor, fill: int) -> torch.Tensor:
        rows = torch.full(shape, fill, dtype=torch.int64, device=device)
        rows.view(-1)[to] = values
        return rows

    ids = laid_out(inputs["input_ids"].reshape(-1)[of], model.config.pad_token_id or 0)
    columns = laid_out(torch.from_numpy(spread(numpy.zeros_like(lengths), lengths)).to(device), 0)
    windows = laid_out(torch.from_numpy(numpy.repeat(numpy.arange(n_rows), lengths)).to(device), -1)
    types = inputs.get("token_type_ids")
    padding = position_padding(model)
    states = model.embeddings(
        input_ids=ids,
        position_ids=columns if padding is None else positions_after(padding, ids, columns, windows),
        token_type_ids=laid_out(torch.zeros_like(of) if types is None else types.reshape(-1)[of], 0),
    )
    mask = attend_within(windows, states.dtype)
    for layer in model.encoder.layer:
        states = _layer(layer, states, mask)
    padded = states.new_zeros(n_rows * width, states.shape[-1])
    return padded.index_copy(0, of, states.flatten(0, 1)[to]).view(n_rows, width, -1)


def _layer(layer: Any, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    attention = layer.attention.self
    projected = (projection(states) for projection in (attention.query, attention.key, attention.value))
    shape = (*states.shape[:2], attention.num_attention_heads, attention.attention_head_size)
    query, key, value = (part.view(shape).transpose(1, 2) for part in projected)
    dropout = attention.dropout.p if layer.training else 0.0
    mask = mask.to(query.dtype)
    attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    mixed = layer.attention.output(attended.transpose(1, 2).flatten(2), states)
    return layer.output(layer.intermediate(mixed), mixed)
