"""Load the Hugging Face model of an encoder, check its weights, and merge an adapter into them."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file
from transformers import PretrainedConfig

from ..files.checksum import file_digest
from .folder_files import ADAPTER_CONFIG, ADAPTER_WEIGHTS, check_keys, read_object
from .folder_keys import ADAPTER_KEYS
from .loading import (
    ENCODER_PARTS,
    ENCODERS_TO_USE,
    Network,
    Source,
    blocks,
    ignored_setting,
    in_one_line,
    needs_package,
    odd_types,
)
from .sbert_config import TransformerConfig
from .surroundings import is_from_around
from .transformers_versions import (
    CAUSAL,
    enable_checkpointing,
    float32_weights,
    ignores_is_causal,
    without_bars,
)

# Names of the tables from configs to classes: the module that has them takes seconds to import
_MAPPINGS = {
    "AutoModel": "MODEL_MAPPING",
    "AutoModelForSequenceClassification": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING",
}
# Attention of BigBird to blocks of a long row, which depend on its length
SPARSE = "block_sparse"
# Buffers that are computed, and that some versions of Transformers saved with the weights.
BUFFERS = (
    "position_ids",
    "token_type_ids",
    "inv_freq",
    "masked_bias",
    ".attn.bias",
    "relative_position_index",
)
_REPAIR = "Correct config.json, or copy or download the weights again."


def load_weights(
    source: Source, auto_class: str, config: PretrainedConfig, *, keeps_head: bool = False
) -> tuple[Network, list[str]]:
    """Return a model, and the names of weights that the folder lacks, such as a new head's.

    auto_class (str): "AutoModel" or "AutoModelForSequenceClassification". config: see load_config.
    keeps_head (bool): whether the folder should have the classifier's head.
    RAISES (ValueError): if the weights are damaged, or are not those that config.json describes.
    """
    kind = _class_of(source, auto_class, config)
    try:
        with without_bars():
            model, report = kind.from_pretrained(
                **source.options, **float32_weights(), config=config, output_loading_info=True
            )
    except ImportError as error:
        raise needs_package(source, f"encoder ({config.model_type})", error) from error
    except Exception as error:
        # Whatever config and weights lead to
        if is_from_around(error):
            raise
        raise _unfit(source, in_one_line(error), config) from error
    config_file = source.folder / "config.json"
    for block, _ in blocks(read_object(config_file), None):
        if ignores_is_causal(block, model):
            raise ignored_setting(config_file, CAUSAL, block, "5.2 or later")
    if not source.trust:
        _check_architecture(config_file, model, config)
    _check_names(source, model, report, keeps_head=keeps_head)
    if getattr(config, "attention_type", None) == SPARSE:
        model.base_model.register_forward_pre_hook(_reset_attention)
    return model, report["missing_keys"]


def _class_of(source: Source, auto_class: str, config: PretrainedConfig) -> Any:
    """Return the class that makes the model, or the Auto class that finds it."""
    auto = getattr(transformers, auto_class)
    if source.trust:
        return auto
    if config.model_type in ENCODER_PARTS:
        return _encoder_part(source, auto_class, config)
    # The Auto class finds the same class, but imports the configs of all models that it knows
    # first.
    own = getattr(transformers, _MAPPINGS[auto_class]).get(type(config), None)
    if own is None:
        raise ValueError(
            f"Transformers has no class for the model '{source.name}' ({config.model_type}) that "
            f"{auto_class} finds. {ENCODERS_TO_USE}."
        )
    if getattr(own, "config_class", None) is type(config):
        return own
    return auto


def build_network(config: PretrainedConfig, weights: Mapping[str, torch.Tensor]) -> Network:
    """Return the model of a config with all of its weights, which it shares.

    See bert_families.load_parameters.
    """
    kind: Any = transformers.MODEL_MAPPING[type(config)]
    settings = {}
    if _takes_pooler(kind):
        settings["add_pooling_layer"] = "pooler.dense.weight" in weights
    with without_bars():
        network = kind.from_pretrained(None, config=config, state_dict=dict(weights), **settings)
    network.config.name_or_path = config.name_or_path
    return network


def _encoder_part(source: Source, auto_class: str, config: PretrainedConfig) -> Any:
    """Return the class of an encoder that has a decoder.

    RAISES (ValueError): for a classifier, which needs both.
    """
    if auto_class != "AutoModel":
        raise ValueError(
            f"The model '{source.name}' ({config.model_type}) is an encoder with a decoder, which "
            f"cannot score pairs. {ENCODERS_TO_USE}."
        )
    return getattr(transformers, ENCODER_PARTS[config.model_type])


def _reset_attention(model: Network, args: object) -> None:
    """Undo that BigBird, once it has read a short row, attends to all of a long one, too."""
    model.set_attention_type(model.config.attention_type)


def _unfit(source: Source, reason: str, config: PretrainedConfig) -> ValueError:
    return ValueError(
        f"The weights in {source.folder} and {source.folder / 'config.json'} do not make an "
        f"encoder ({reason}). {likely_cause(source, config)}{_REPAIR}"
    )


def likely_cause(source: Source, config: PretrainedConfig) -> str:
    """Return a sentence on a setting of an odd type, which may be why an encoder does not load.

    "" if none has.
    """
    file = source.folder / "config.json"
    settings = {"transformer_config": source.transformer_config, str(file): read_object(file)}
    for place, values in settings.items():
        for key, expected in odd_types(values, config):
            return f"The cause may be {key} = {values[key]!r} in {place}: expected {expected}. "
    return ""


def _check_architecture(file: Path, model: Network, config: PretrainedConfig) -> None:
    """Check that config.json names a class of the family: BertForMaskedLM for a BertModel.

    RAISES (ValueError): if it names another one.
    """
    family = type(model).__name__.removesuffix("Model").removesuffix("ForSequenceClassification")
    names: Any = config.architectures or []
    if not isinstance(names, list):
        names = [names]
    for name in map(str, names):
        stock = getattr(transformers, name, None)
        is_same = getattr(stock, "config_class", None) is type(model.config)
        if not is_same and not name.startswith(family):
            raise ValueError(
                f"The file {file} names the architecture {name}, for which Transformers would load "
                f"a class that makes other vectors: expected {family}Model or the like. Correct "
                "architectures or model_type in that file."
            )


def _check_names(
    source: Source, model: Network, report: Mapping[str, Any], *, keeps_head: bool
) -> None:
    """Compare the names of the weights in a folder with those that the model has.

    A pooler without weights is removed. A head that is not used, or is still to be trained, is no
    part of the encoder.
    RAISES (ValueError): if the names differ.
    """
    part_of = _parts_of(model.base_model)
    missing = _missing_names(model, report["missing_keys"], part_of, keeps_head=keeps_head)
    if missing:
        raise ValueError(
            f"The weights in {source.folder} lack {_first_names(missing)}, which config.json asks "
            f"for. {_REPAIR}"
        )
    left_over = [
        key
        for key in report["unexpected_keys"]
        if part_of(key) not in (None, "pooler") and not key.endswith(BUFFERS)
    ]
    cuts_layers = any("layers" in key for key in source.transformer_config)
    if left_over and not cuts_layers:
        raise ValueError(
            f"The weights in {source.folder} hold {_first_names(left_over)}, which the encoder "
            "that config.json describes has no place for. Correct config.json; for fewer layers "
            "set num_hidden_layers in transformer_config."
        )


def _parts_of(encoder: Network) -> Callable[[str], str | None]:
    """Return a function from the name of a weight to its part of the encoder, or None."""
    prefix = f"{encoder.base_model_prefix}."
    named = (*encoder.named_children(), *encoder.named_parameters())
    parts = {name.split(".")[0] for name, _ in named}

    def part_of(key: str) -> str | None:
        part = key.removeprefix(prefix).split(".")[0]
        if part in parts or key.startswith(prefix):
            return part
        return None

    return part_of


def _missing_names(
    model: Network,
    keys: list[str],
    part_of: Callable[[str], str | None],
    *,
    keeps_head: bool,
) -> list[str]:
    """Return the names of weights that the encoder needs, and the folder does not have."""
    is_plain = model.base_model is model
    missing = [key for key in keys if keeps_head or is_plain or part_of(key)]
    # A new pooler is trained with a new head
    may_lack_pooler = not is_plain or _takes_pooler(type(model))
    if keeps_head or not may_lack_pooler:
        return missing
    if is_plain and any(part_of(key) == "pooler" for key in missing):
        model.pooler = None
    return [key for key in missing if part_of(key) != "pooler"]


def _takes_pooler(kind: Any) -> bool:
    return "add_pooling_layer" in inspect.signature(kind.__init__).parameters


def _first_names(names: list[str]) -> str:
    listed = ", ".join(sorted(names)[:3])
    if len(names) > 3:
        listed += " and others"
    return listed


def merge_adapter(base: torch.nn.Module, folder: Path) -> str:
    """Merge an adapter into the linear layers of its base: W + scaling * B A (Hu et al. 2021).

    W: (outputs, inputs). A: (r, inputs). B: (outputs, r). scaling: lora_alpha / r, or
        lora_alpha / sqrt(r) with use_rslora (Kalajdzievski 2023).
    base (Module): a Hugging Face model or BertParameters. folder (Path): of the adapter.
    RETURNS (str): the name of the base, and the SHA-256 of the adapter's weights.
    RAISES (ValueError): if the adapter is not plain LoRA, or its weights are not those that the
        base has a place for.
    """
    file = folder / ADAPTER_WEIGHTS
    matrices = load_file(file)
    config = read_object(folder / ADAPTER_CONFIG)
    check_keys(folder / ADAPTER_CONFIG, config, ADAPTER_KEYS)
    power = 0.5 if config.get("use_rslora") else 1
    try:
        targets = tuple(f".{name}" for name in config["target_modules"])
        for name, weight in base.named_parameters():
            layer = f"base_model.model.{name.removesuffix('.weight')}"
            if layer.endswith(targets):
                first = matrices.pop(f"{layer}.lora_A.weight").float()
                second = matrices.pop(f"{layer}.lora_B.weight").float()
                if weight.shape != (len(second), first.shape[1]):
                    raise KeyError(layer)
                scaling = config["lora_alpha"] / len(first) ** power
                weight.data.addmm_(second, first, alpha=scaling)
        if matrices:
            raise KeyError(*matrices)
    except (KeyError, RuntimeError, TypeError) as error:
        raise ValueError(
            f"The adapter {file} does not fit its base. Missing, left over or of another shape: "
            f"{error}. Correct base_model_name_or_path in adapter_config.json, or save it again."
        ) from error
    return f"{config['base_model_name_or_path']} with the adapter {file_digest(file)}"


def prepare_training(network: Network, options: TransformerConfig) -> None:
    """Set up gradient checkpointing, and freeze parameters.

    RAISES (ValueError): if there are none of a name.
    """
    if options.gradient_checkpointing:
        enable_checkpointing(network)
    parameters = dict(network.named_parameters())
    for prefix in options.frozen:
        named = [name for name in parameters if f"{name}.".startswith(f"{prefix}.")]
        if not named:
            modules = sorted({name.rsplit(".", 1)[0] for name in parameters})
            raise ValueError(
                f"Cannot freeze '{prefix}': the transformer has no such parameter or module. It "
                f"has {', '.join(modules)}."
            )
        for name in named:
            parameters[name].requires_grad_(False)
