"""BERT and architectures like it: where their parts are, and their parameters alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch.nn import Identity
from transformers import PretrainedConfig

from ..folder_files import read_object
from ..load_weights import BUFFERS
from ..loading import Network, Source, odd_types
from ..private_attributes import FUSED_ACTIVATIONS, own_parameters

# A part of a model
TorchModule: TypeAlias = Any
# A layer: its parts by BERT's names in Hugging Face's class, such as "attention.self.query"
Layer: TypeAlias = Mapping[str, Any]
# The matrix products of a layer; those of queries, keys and values are one
ATTENTION = "attention.self"
ATTENTION_OUTPUT = "attention.output.dense"
INTERMEDIATE = "intermediate.dense"
OUTPUT = "output.dense"
LINEARS = (ATTENTION, ATTENTION_OUTPUT, INTERMEDIATE, OUTPUT)
# Those that read what layer norm gives, whose channels differ most
SMOOTHED = (ATTENTION, INTERMEDIATE)
QUERY_KEY_VALUE = ("attention.self.query", "attention.self.key", "attention.self.value")
N_HEADS = "attention.self.num_attention_heads"
NORMS = ("attention.output.LayerNorm", "output.LayerNorm")
_LINEAR_MODULES = (*QUERY_KEY_VALUE, ATTENTION_OUTPUT, INTERMEDIATE, OUTPUT)
_OTHERS = (
    "attention.self.dropout",
    "attention.output.dropout",
    "intermediate.intermediate_act_fn",
    "output.dropout",
)
_PARTS = (N_HEADS, *_LINEAR_MODULES, *NORMS, *_OTHERS)


@dataclass(frozen=True)
class Family:
    """Where an architecture has the parts of BERT, and what else tells it from BERT.

    layers (str): the path of the layers.
    names (dict): the paths in a layer, by BERT's, of the parts that are elsewhere than in BERT; ""
        for a dropout that is missing.
    activation, inner_size (str): the keys of the config for the activation in the feed-forward part
        and for the width there.
    layer_norm_eps (float): the eps of all layer norms, None for that of the config.
    has_token_types, has_pooler (bool): whether there are parameters of these.
    counts_padding (bool): whether positions begin behind padding_idx, as in RoBERTa.
    padding_idx (int): that wordpiece, None for the pad_token_id of the config.
    relative_bias (str): the path of what is added to attention scores by distance, an embedding of
        (buckets of distances, heads); "" for none.
    """

    layers: str = "encoder.layer"
    names: Mapping[str, str] = field(default_factory=dict)
    activation: str = "hidden_act"
    inner_size: str = "intermediate_size"
    layer_norm_eps: float | None = None
    has_token_types: bool = True
    has_pooler: bool = True
    counts_padding: bool = False
    padding_idx: int | None = None
    relative_bias: str = ""

    def path(self, part: str) -> str:
        """Return the path of a part in a layer; "" if it is missing."""
        return self.names.get(part, part)

    def padding_of(self, config: PretrainedConfig) -> int | None:
        """Return the wordpiece that is padding, from which positions are counted."""
        return config.pad_token_id if self.padding_idx is None else self.padding_idx


_ROBERTA = Family(counts_padding=True)
# By name: an encoder's own module alone is to be imported. This is the one place of registration.
FAMILIES = {
    "bert.modeling_bert.BertModel": Family(),
    "camembert.modeling_camembert.CamembertModel": _ROBERTA,
    "distilbert.modeling_distilbert.DistilBertModel": Family(
        layers="transformer.layer",
        names={
            N_HEADS: "attention.n_heads",
            "attention.self.query": "attention.q_lin",
            "attention.self.key": "attention.k_lin",
            "attention.self.value": "attention.v_lin",
            "attention.self.dropout": "attention.dropout",
            "attention.output.dense": "attention.out_lin",
            "attention.output.dropout": "",
            "attention.output.LayerNorm": "sa_layer_norm",
            "intermediate.dense": "ffn.lin1",
            "intermediate.intermediate_act_fn": "ffn.activation",
            "output.dense": "ffn.lin2",
            "output.dropout": "ffn.dropout",
            "output.LayerNorm": "output_layer_norm",
        },
        activation="activation",
        inner_size="hidden_dim",
        layer_norm_eps=1e-12,
        has_token_types=False,
        has_pooler=False,
    ),
    "electra.modeling_electra.ElectraModel": Family(has_pooler=False),
    "mpnet.modeling_mpnet.MPNetModel": Family(
        names={
            N_HEADS: "attention.attn.num_attention_heads",
            "attention.self.query": "attention.attn.q",
            "attention.self.key": "attention.attn.k",
            "attention.self.value": "attention.attn.v",
            "attention.self.dropout": "attention.attn.dropout",
            "attention.output.dense": "attention.attn.o",
            "attention.output.dropout": "attention.dropout",
            "attention.output.LayerNorm": "attention.LayerNorm",
        },
        has_token_types=False,
        counts_padding=True,
        padding_idx=1,
        relative_bias="encoder.relative_attention_bias",
    ),
    "roberta.modeling_roberta.RobertaModel": _ROBERTA,
    "xlm_roberta.modeling_xlm_roberta.XLMRobertaModel": _ROBERTA,
}


def family_of(model: Network) -> Family | None:
    """Return the family of a Hugging Face model or BertParameters; None for other architectures."""
    if isinstance(model, BertParameters):
        return FAMILIES[model.family]
    kind = type(model)
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("transformers.models.")
    return FAMILIES.get(name)


def family_names() -> list[str]:
    """Return the names of the architectures of FAMILIES, such as "DistilBert"."""
    return sorted(name.rpartition(".")[2].removesuffix("Model") for name in FAMILIES)


def _known_family(model: Network) -> Family:
    family = family_of(model)
    assert family is not None, "of a model that is packable"
    return family


def layers_of(model: Network) -> list[Layer]:
    """Return the layers of a model of FAMILIES."""
    family = _known_family(model)
    return [
        {part: _part_of(layer, family.path(part)) for part in _PARTS}
        for layer in attrgetter(family.layers)(model).children()
    ]


def _part_of(layer: TorchModule, path: str) -> Any:
    return attrgetter(path)(layer) if path else Identity()


def activation_of(model: Network) -> str:
    """Return the name of the activation between the linear layers of the feed-forward part."""
    return getattr(model.config, _known_family(model).activation)


def relative_bias_of(model: Network) -> torch.Tensor | None:
    """Return what MPNet adds to the attention scores, float (buckets of distances, heads).

    None for the others.
    """
    path = _known_family(model).relative_bias
    return attrgetter(path)(model).weight if path else None


def weights_of(layer: Layer) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Return weight (out, in) and bias (out,) for each of LINEARS."""
    projections = [layer[name] for name in QUERY_KEY_VALUE]
    weights = {
        ATTENTION: (
            torch.cat([projection.weight for projection in projections]),
            torch.cat([projection.bias for projection in projections]),
        )
    }
    for name in (ATTENTION_OUTPUT, INTERMEDIATE, OUTPUT):
        weights[name] = (layer[name].weight, layer[name].bias)
    return weights


def is_packable(model: Network) -> bool:
    """Return whether PackedBert computes what a model does: it is of FAMILIES, without extras."""
    if family_of(model) is None:
        return False
    return _has_known_config(model) and _has_only_known_parameters(model) and _is_unchanged(model)


def _has_known_config(model: Network) -> bool:
    """Return whether the config of a model asks for nothing that PackedBert does not do."""
    config = model.config
    # Version 5 of transformers gives some of these only to families that can be decoders.
    extras = (
        "is_decoder",
        "is_causal",
        "add_cross_attention",
        "output_hidden_states",
        "output_attentions",
    )
    if any(getattr(config, name, False) for name in extras):
        return False
    has_absolute_positions = getattr(config, "position_embedding_type", "absolute") == "absolute"
    return has_absolute_positions and activation_of(model) in FUSED_ACTIVATIONS


def _is_unchanged(model: Network) -> bool:
    """Return whether the linear layers and heads of a model are those of its class.

    Adapters (LoRA) put modules of their own in the place of linear layers.
    """
    layers = layers_of(model)
    if any(layer[N_HEADS] != model.config.num_attention_heads for layer in layers):
        return False
    expected = torch.nn.Module if isinstance(model, BertParameters) else torch.nn.Linear
    modules = [layer[name] for layer in layers for name in _LINEAR_MODULES]
    if hasattr(model, "embeddings_project"):
        modules.append(model.embeddings_project)
    return all(type(module) is expected for module in modules)


def _has_only_known_parameters(model: Network) -> bool:
    """Return whether a model has the parameters of its family: one that has more computes more."""
    has_pooler = getattr(model, "pooler", None) is not None
    shapes = _shapes(_known_family(model), model.config, has_pooler=has_pooler)
    return {name for name, _ in shapes} == {name for name, _ in model.named_parameters()}


class BertParameters(torch.nn.Module):
    """The parameters of an encoder of FAMILIES, without its class, which takes seconds to import.

    family (str): a key of FAMILIES. weights (dict): all of them, layer after layer.
    """

    embeddings: TorchModule

    def __init__(self, family: str, config: PretrainedConfig, weights: Mapping[str, torch.Tensor]):
        super().__init__()
        self.family = family
        self.config = config
        for name, weight in weights.items():
            path, _, last = name.rpartition(".")
            _module_at(self, path).register_parameter(last, torch.nn.Parameter(weight))
        self._set_constants(FAMILIES[family], config)
        # A walk over all modules, at each text, takes a tenth of the time of a short one
        self._holders = [module for module in self.modules() if own_parameters([module])]

    def parameters(self, recurse: bool = True) -> Iterator[torch.nn.Parameter]:
        """Return the parameters of all modules, in the order of torch.nn.Module.parameters."""
        holders = self._holders if recurse else [self]
        return iter(own_parameters(holders))

    def _set_constants(self, family: Family, config: PretrainedConfig) -> None:
        """Set the attributes of modules that are no parameters: paddings, heads and eps."""
        positions = self.embeddings.position_embeddings
        positions.num_embeddings = config.max_position_embeddings
        positions.padding_idx = None
        if family.counts_padding:
            self.embeddings.padding_idx = positions.padding_idx = family.padding_of(config)
        norms = [self.embeddings.LayerNorm]
        holder_of_heads, _, heads = family.path(N_HEADS).rpartition(".")
        # In the place of parts without parameters, so that a layer has all of its parts
        nothing = Identity()
        for layer in _module_at(self, family.layers).children():
            setattr(_module_at(layer, holder_of_heads), heads, config.num_attention_heads)
            norms += [_module_at(layer, family.path(part)) for part in NORMS]
            for part in _OTHERS:
                path, _, last = family.path(part).rpartition(".")
                if last:
                    holder = _module_at(layer, path) if path else layer
                    holder.add_module(last, nothing)
        eps = family.layer_norm_eps
        for norm in norms:
            norm.eps = config.layer_norm_eps if eps is None else eps

    @property
    def device(self) -> torch.device:
        return self.embeddings.word_embeddings.weight.device

    def get_input_embeddings(self) -> TorchModule:
        return self.embeddings.word_embeddings


def _module_at(root: TorchModule, path: str) -> TorchModule:
    """Return the module at a dotted path; one that is not there is made, and is empty."""
    for name in path.split("."):
        if not hasattr(root, name):
            root.add_module(name, torch.nn.Module())
        root = getattr(root, name)
    return root


def load_parameters(source: Source, config: PretrainedConfig) -> BertParameters | None:
    """Return the weights of an encoder of FAMILIES, if they are just those of its config.

    RETURNS: None for any other folder, or with settings: loading.load_weights reads it, or says
        what is wrong with it.
    """
    kind = type(config).__name__.replace("Config", "Model")
    name = next((name for name in FAMILIES if name.endswith(f".{kind}")), None)
    file = source.folder / "model.safetensors"
    if name is None or not file.is_file() or not _is_plain(source, config, kind):
        return None
    family = FAMILIES[name]
    if not _has_possible_sizes(family, config):
        return None
    weights = _read_float32(file)
    shapes = dict(_shapes(family, config, has_pooler="pooler.dense.weight" in weights))
    if {key: weight.shape for key, weight in weights.items()} != shapes:
        return None
    parameters = BertParameters(name, config, {key: weights[key] for key in shapes})
    return parameters if is_packable(parameters) else None


def _has_possible_sizes(family: Family, config: PretrainedConfig) -> bool:
    n_heads = config.num_attention_heads
    if n_heads < 1 or config.hidden_size % n_heads:
        return False
    return family.padding_of(config) in range(config.vocab_size)


def _read_float32(file: Path) -> dict[str, torch.Tensor]:
    """Return the weights in a file; none if it is damaged, or some are not float32."""
    try:
        tensors = load_file(file)
    except (OSError, SafetensorError):
        return {}
    weights = {key: tensor for key, tensor in tensors.items() if not key.endswith(BUFFERS)}
    is_float32 = all(weight.dtype == torch.float32 for weight in weights.values())
    return weights if is_float32 else {}


def _is_plain(source: Source, config: PretrainedConfig, kind: str) -> bool:
    """Return whether a folder holds float32 weights of a class, and its config nothing odd."""
    if source.trust or source.transformer_config or hasattr(config, "quantization_config"):
        return False
    architectures = config.architectures or []
    prefix = kind.removesuffix("Model")
    if not isinstance(architectures, list):
        return False
    if not all(str(name).startswith(prefix) for name in architectures):
        return False
    # In which version 5 reads weights
    if getattr(config, "dtype", None) not in (None, torch.float32):
        return False
    # For settings of odd types the class says what is wrong
    return not any(odd_types(read_object(source.folder / "config.json"), config))


def _shapes(
    family: Family, config: PretrainedConfig, *, has_pooler: bool
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name and shape of each parameter of an encoder of FAMILIES, layer after layer."""
    hidden = config.hidden_size
    width = getattr(config, "embedding_size", hidden)
    yield "embeddings.word_embeddings.weight", (config.vocab_size, width)
    yield "embeddings.position_embeddings.weight", (config.max_position_embeddings, width)
    if family.has_token_types:
        yield "embeddings.token_type_embeddings.weight", (config.type_vocab_size, width)
    if family.relative_bias:
        n_buckets = config.relative_attention_num_buckets
        yield f"{family.relative_bias}.weight", (n_buckets, config.num_attention_heads)
    # The others have a bias, too
    weights: dict[str, tuple[int, ...]] = {"embeddings.LayerNorm": (width,)}
    if width != hidden:
        weights["embeddings_project"] = (hidden, width)
    of_layer = _shapes_of_layer(hidden, getattr(config, family.inner_size))
    for i in range(config.num_hidden_layers):
        for part, shape in of_layer.items():
            weights[f"{family.layers}.{i}.{family.path(part)}"] = shape
    if has_pooler and family.has_pooler:
        weights["pooler.dense"] = (hidden, hidden)
    for name, shape in weights.items():
        yield f"{name}.weight", shape
        yield f"{name}.bias", shape[:1]


def _shapes_of_layer(hidden: int, inner: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of the weight of each part of a layer that has parameters."""
    return {
        **dict.fromkeys((*QUERY_KEY_VALUE, ATTENTION_OUTPUT), (hidden, hidden)),
        INTERMEDIATE: (inner, hidden),
        OUTPUT: (hidden, inner),
        **dict.fromkeys(NORMS, (hidden,)),
    }
