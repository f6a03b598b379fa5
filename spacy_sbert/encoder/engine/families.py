"""Encoders that are BERT under other names: where each family keeps its parts, and what it adds to the scores."""

from dataclasses import dataclass, field
from operator import attrgetter

import torch
from torch.nn import Identity, functional

from ..hugging_face import Module, Network
from .windows import attend_within

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
class Parts:
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


def is_of_family(model: Network) -> bool:
    """Whether a model is of a class of FAMILIES itself, not of one derived from it."""
    return _class_of(model) in FAMILIES


def layers_of(model: Network) -> list[Parts]:
    """The parts of each layer of a model of FAMILIES."""
    layers, names = FAMILIES[_class_of(model)]
    return [
        Parts(**{part: attrgetter(name)(layer) for part, name in names.items()}) for layer in attrgetter(layers)(model)
    ]


def activation_of(model: Network) -> str:
    """The name of the activation between the linear layers of the feed-forward part."""
    return model.config.activation if FAMILIES[_class_of(model)][1] is DISTILBERT else model.config.hidden_act


def position_padding(model: Network) -> int | None:
    """The id of padding, after which RoBERTa and its like, and MPNet, count positions; None for the others."""
    return getattr(model.embeddings, "padding_idx", None)


def scores_by_distance(model: Network) -> torch.Tensor | None:
    """What MPNet adds to the attention scores, float (buckets of distances, heads); None for the others."""
    return model.encoder.relative_attention_bias.weight if FAMILIES[_class_of(model)][1] is MPNET else None


def added_to_scores(windows: torch.Tensor, by_distance: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor:
    """What is added to the attention scores: minus infinity between windows, and within them what the distance says.

    windows: int64 (rows, width), see attend_within. by_distance: see scores_by_distance.
    RETURNS (dtype (rows, heads or 1, width, width)).
    SOURCE: Raffel et al. 2020, Exploring the Limits of Transfer Learning, section 2.1; in MPNet: Song et al. 2020.
    """
    mask = attend_within(windows, dtype)
    if by_distance is None:
        return mask
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder  # imported already, where it is asked for

    places = torch.arange(windows.shape[1])  # in the row: windows are in one piece, distances in them are the same
    buckets = MPNetEncoder.relative_position_bucket(places - places[:, None]).to(windows.device)
    return mask + functional.embedding(buckets, by_distance).permute(2, 0, 1).contiguous().to(dtype)


def _class_of(model: Network) -> str:
    kind = type(model)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("transformers.models.")
