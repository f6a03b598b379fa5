"""LoRA adapters of peft, which are merged into their base when it is loaded."""

from pathlib import Path

import torch
from safetensors.torch import load_file

from ..files.checksum import file_digest
from .folder_files import ADAPTER_CONFIG, ADAPTER_WEIGHTS, check_keys, read_object
from .folder_keys import ADAPTER_KEYS


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
                scaling = config["lora_alpha"] / len(first) ** power
                weight.data.addmm_(second, first, alpha=scaling)
        if matrices:
            raise KeyError(min(matrices))
    except (KeyError, RuntimeError) as error:
        raise ValueError(
            f"The adapter {file} does not fit its base: missing, left over or of another shape is "
            f"{error}. Correct base_model_name_or_path in adapter_config.json, or save it again."
        ) from error
    return f"{config['base_model_name_or_path']} with the adapter {file_digest(file)}"
