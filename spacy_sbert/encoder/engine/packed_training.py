"""The forward pass of training on packed rows, with the weights and settings of the Hugging Face model's modules."""

import numpy
import torch

from ..hugging_face import Network
from ..wordpieces import Wordpieces
from .cpu_training import attention, dropout, embedding, linear
from .families import Parts, added_to_scores, layers_of, position_padding, scores_by_distance
from .layout import lay_out, on_device, with_places
from .packing import pack
from .passes import PLACES_APART, Pass, width_for
from .windows import positions_after, spread


def packed_states(model: Network, wordpieces: Wordpieces, windows: numpy.ndarray) -> torch.Tensor:
    """Encode windows without padding: several of them stand in a row.

    model: see is_packable; its dropout is as its mode says.
    windows (int64 (k,)): which of the wordpieces' windows.
    RETURNS (float (sum of lengths, hidden)): their states, one window after another, part of the graph.
    """
    lengths = wordpieces.lengths[windows]
    packing = pack(lengths, one_width=True)
    longest = (packing.column_of + lengths).max()
    # Of those who multiply, only oneDNN, in bfloat16 on the CPU, keeps a kernel for each shape.
    few_shapes = torch.is_autocast_enabled("cpu")
    width = width_for(longest) if few_shapes else int(longest)
    rows = Pass(windows, packing.row_of * width + packing.column_of, (len(packing.widths), width))
    arrays = lay_out(wordpieces, rows, model.config.pad_token_id or 0)
    ids, columns, types, owners = on_device(arrays, model.device)
    states = _embed(model, ids, columns, types, owners).flatten(0, 1)
    states = with_places(states, len(states) + (-len(states) % PLACES_APART if few_shapes else 0))
    added_scores = added_to_scores(owners, scores_by_distance(model), states.dtype)
    for parts in layers_of(model):
        states = _layer(parts, states, added_scores)
    return states.index_select(0, torch.from_numpy(spread(rows.starts, lengths)).to(model.device))


def _embed(
    model: Network, ids: torch.Tensor, columns: torch.Tensor, types: torch.Tensor, owners: torch.Tensor
) -> torch.Tensor:
    embeddings, padding = model.embeddings, position_padding(model)
    positions = columns if padding is None else positions_after(padding, ids, columns, owners)
    added = embedding(embeddings.word_embeddings, ids)
    if hasattr(embeddings, "token_type_embeddings"):
        added = added + embeddings.token_type_embeddings(types)
    states = dropout(embeddings.dropout, embeddings.LayerNorm(added + embeddings.position_embeddings(positions)))
    return linear(model.embeddings_project, states) if hasattr(model, "embeddings_project") else states


def _layer(parts: Parts, states: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
    """states: (places, hidden), those of the rows and maybe more; added_scores: (rows, 1 or heads, width, width)."""
    n_rows, width = added_scores.shape[::3]
    n_places, projections = n_rows * width, (parts.query, parts.key, parts.value)
    query, key, value = (
        linear(projection, states)[:n_places].view(n_rows, width, parts.n_heads, -1).transpose(1, 2)
        for projection in projections
    )
    p = parts.drop_scores.p if parts.drop_scores.training else 0.0
    attended = attention(query, key, value, added_scores.to(query.dtype), p)
    attended = with_places(attended.transpose(1, 2).reshape(n_places, -1), len(states))
    mixed = parts.norm_mixed(dropout(parts.drop_mixed, linear(parts.mix, attended)) + states)
    widened = parts.activate(linear(parts.widen, mixed))
    return parts.norm_output(dropout(parts.drop_output, linear(parts.narrow, widened)) + mixed)
