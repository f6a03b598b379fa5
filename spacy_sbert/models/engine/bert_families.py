"""BERT and architectures like it: where their parts are, and their parameters without Hugging Face's classes."""

from collections.abc import Iterator, Mapping
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch.nn import Identity
from transformers import PretrainedConfig

from ..loading import BUFFERS, Network, Source, odd_types
from ..private_attributes import ACTIVATIONS
from ..sbert_config import read_object

# A part of a model
Module: TypeAlias = Any
# The products of a layer; the heads' queries, keys and values are one
LINEARS = (
    "heads",
    "mix",
    "widen",
    "narrow",
)
# Those that read what layer norm gives, whose channels differ most
SMOOTHED = ("heads", "widen")
BERT = {
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
MPNET = {
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
DISTILBERT = {
    "n_heads": "attention.n_heads",
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "drop_scores": "attention.dropout",
    # Without dropout behind it
    "mix": "attention.out_lin",
    "norm_mixed": "sa_layer_norm",
    "widen": "ffn.lin1",
    "activate": "ffn.activation",
    "narrow": "ffn.lin2",
    "drop_output": "ffn.dropout",
    "norm_output": "output_layer_norm",
}


class _Family(NamedTuple):
    """Where the layers of a class are, the parts in each, and what else tells it from BERT."""

    layers: str
    parts: dict[str, str]
    # Whether positions begin behind padding_idx
    counts_padding: bool = False
    has_pooler: bool = True


# By name: an encoder's own module alone is to be imported.
FAMILIES = {
    "bert.modeling_bert.BertModel": _Family("encoder.layer", BERT),
    "camembert.modeling_camembert.CamembertModel": _Family(
        "encoder.layer", BERT, counts_padding=True
    ),
    "distilbert.modeling_distilbert.DistilBertModel": _Family(
        "transformer.layer", DISTILBERT, has_pooler=False
    ),
    "electra.modeling_electra.ElectraModel": _Family("encoder.layer", BERT, has_pooler=False),
    "mpnet.modeling_mpnet.MPNetModel": _Family("encoder.layer", MPNET, counts_padding=True),
    "roberta.modeling_roberta.RobertaModel": _Family("encoder.layer", BERT, counts_padding=True),
    "xlm_roberta.modeling_xlm_roberta.XLMRobertaModel": _Family(
        "encoder.layer", BERT, counts_padding=True
    ),
}


def layers_of(model: Network) -> list[SimpleNamespace]:
    """Return the modules of each layer of a model of FAMILIES, by the names in BERT, and the `linear` ones in order."""
    path, names, *_ = FAMILIES[_class_of(model)]
    layers = []
    for layer in attrgetter(path)(model).children():
        parts = {part: attrgetter(name)(layer) for part, name in names.items()}
        linear = [parts[name] for name in ("query", "key", "value", "mix", "widen", "narrow")]
        layers.append(SimpleNamespace(**{"drop_mixed": Identity(), **parts}, linear=linear))
    return layers


def activation_of(model: Network) -> str:
    """Return the name of the activation between the linear layers of the feed-forward part."""
    return (
        model.config.activation
        if FAMILIES[_class_of(model)].parts is DISTILBERT
        else model.config.hidden_act
    )


def distance_bias(model: Network) -> torch.Tensor | None:
    """Return what MPNet adds to the attention scores, float (buckets of distances, heads).

    None for the others.
    """
    return (
        model.encoder.relative_attention_bias.weight
        if FAMILIES[_class_of(model)].parts is MPNET
        else None
    )


def weights_of(parts: SimpleNamespace) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Return weight (out, in) and bias (out,) for each of LINEARS."""
    heads = (parts.query, parts.key, parts.value)
    others = {
        name: (part.weight, part.bias)
        for name, part in zip(LINEARS[1:], parts.linear[3:], strict=True)
    }
    return {
        "heads": (
            torch.cat([part.weight for part in heads]),
            torch.cat([part.bias for part in heads]),
        ),
        **others,
    }


def _class_of(model: Network) -> str:
    if isinstance(model, BertParameters):
        return model.family
    kind = type(model)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("transformers.models.")


def is_packable(model: Network) -> bool:
    """Return whether PackedBert computes the same as a model: of a class of FAMILIES itself, without extras."""
    if _class_of(model) not in FAMILIES:
        return False
    config, layers = model.config, layers_of(model)
    # Adapters (LoRA) put modules of their own in the place of linear layers.
    expected = torch.nn.Module if isinstance(model, BertParameters) else torch.nn.Linear
    modules = [
        getattr(model, "embeddings_project", None),
        *(module for parts in layers for module in parts.linear),
    ]
    return (
        getattr(config, "position_embedding_type", "absolute") == "absolute"
        and activation_of(model) in ACTIVATIONS
        # Version 5 of transformers gives these two to families alone that can be decoders.
        and not (
            getattr(config, "is_decoder", False) or getattr(config, "add_cross_attention", False)
        )
        and not (config.output_hidden_states or config.output_attentions)
        and all(module is None or type(module) is expected for module in modules)
        and all(parts.n_heads == config.num_attention_heads for parts in layers)
    )


class BertParameters(torch.nn.Module):
    """The parameters of an encoder of FAMILIES by the names of its Hugging Face class, which takes seconds to import.

    family (str): a key of FAMILIES. weights (dict): all of them, layer after layer.
    """

    embeddings: Module

    def __init__(self, family: str, config: PretrainedConfig, weights: Mapping[str, torch.Tensor]):
        super().__init__()
        self.family, self.config = family, config
        for name, weight in weights.items():
            path, _, last = name.rpartition(".")
            _module_at(self, path).register_parameter(last, torch.nn.Parameter(weight))
        layers, names, counts_padding, _ = FAMILIES[family]
        positions, norms = self.embeddings.position_embeddings, [self.embeddings.LayerNorm]
        positions.num_embeddings, positions.padding_idx = config.max_position_embeddings, None
        if counts_padding:
            self.embeddings.padding_idx = positions.padding_idx = _padding_idx(names, config)
        for layer in _module_at(self, layers).children():
            parts = {
                part: _module_at(layer, name) for part, name in names.items() if part != "n_heads"
            }
            norms += [parts["norm_mixed"], parts["norm_output"]]
            holder, _, name = names["n_heads"].rpartition(".")
            setattr(_module_at(layer, holder), name, config.num_attention_heads)
        for norm in norms:
            norm.eps = 1e-12 if names is DISTILBERT else config.layer_norm_eps

    @property
    def device(self) -> torch.device:
        return self.embeddings.word_embeddings.weight.device

    def get_input_embeddings(self) -> Module:
        return self.embeddings.word_embeddings


def _module_at(root: Module, path: str) -> Module:
    """Return the module at a dotted path; one that is not there is made, and is empty."""
    for name in path.split("."):
        if not hasattr(root, name):
            root.add_module(name, torch.nn.Module())
        root = getattr(root, name)
    return root


def _padding_idx(parts: dict[str, str], config: PretrainedConfig) -> int | None:
    return 1 if parts is MPNET else config.pad_token_id


def load_parameters(source: Source, config: PretrainedConfig) -> BertParameters | None:
    """Return the weights of an encoder of FAMILIES, if its folder holds just those that its config describes.

    RETURNS: None for any other folder, or with settings: loading.load_weights reads it, or says
        what is wrong with it.
    """
    kind, file = (
        type(config).__name__.replace("Config", "Model"),
        source.folder / "model.safetensors",
    )
    family = next((family for family in FAMILIES if family.endswith(f".{kind}")), None)
    is_plain = not (
        source.trust or source.transformer_config or hasattr(config, "quantization_config")
    )
    names = config.architectures or []
    is_plain &= isinstance(names, list) and all(
        str(name).startswith(kind.removesuffix("Model")) for name in names
    )
    # In which version 5 reads weights
    is_plain &= getattr(config, "dtype", None) in (
        None,
        torch.float32,
    )
    # The class says what is wrong
    is_plain &= not any(odd_types(read_object(source.folder / "config.json"), config))
    if family is None or not is_plain or not file.is_file():
        return None
    padding, n_heads = _padding_idx(FAMILIES[family].parts, config), config.num_attention_heads
    if padding not in range(config.vocab_size) or n_heads < 1 or config.hidden_size % n_heads:
        return None
    try:
        weights = {
            name: weight for name, weight in load_file(file).items() if not name.endswith(BUFFERS)
        }
    except (OSError, SafetensorError):
        return None
    shapes = dict(_shapes(family, config, has_pooler="pooler.dense.weight" in weights))
    found = {
        name: weight.shape for name, weight in weights.items() if weight.dtype == torch.float32
    }
    if len(found) < len(weights) or found != shapes:
        return None
    parameters = BertParameters(family, config, {name: weights[name] for name in shapes})
    return parameters if is_packable(parameters) else None


def _shapes(
    family: str, config: PretrainedConfig, *, has_pooler: bool
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name and shape of each parameter of an encoder of FAMILIES, layer after layer."""
    layers, names, _, may_have_pooler = FAMILIES[family]
    hidden, width = config.hidden_size, getattr(config, "embedding_size", config.hidden_size)
    inner = config.hidden_dim if names is DISTILBERT else config.intermediate_size
    yield "embeddings.word_embeddings.weight", (config.vocab_size, width)
    yield "embeddings.position_embeddings.weight", (config.max_position_embeddings, width)
    if names is BERT:
        yield "embeddings.token_type_embeddings.weight", (config.type_vocab_size, width)
    if names is MPNET:
        n_buckets = config.relative_attention_num_buckets
        yield "encoder.relative_attention_bias.weight", (n_buckets, config.num_attention_heads)
    modules: dict[str, tuple[int, ...]] = {"embeddings.LayerNorm": (width,)}
    if width != hidden:
        modules["embeddings_project"] = hidden, width
    of_layer = {
        **dict.fromkeys(("query", "key", "value", "mix"), (hidden, hidden)),
        **{
            "widen": (inner, hidden),
            "narrow": (hidden, inner),
            "norm_mixed": (hidden,),
            "norm_output": (hidden,),
        },
    }
    for i in range(config.num_hidden_layers):
        modules |= {f"{layers}.{i}.{names[part]}": shape for part, shape in of_layer.items()}
    if has_pooler and may_have_pooler:
        modules["pooler.dense"] = hidden, hidden
    for name, shape in modules.items():
        yield f"{name}.weight", shape
        yield f"{name}.bias", shape[:1]
