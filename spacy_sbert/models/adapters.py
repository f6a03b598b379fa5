"""LoRA adapters of peft, which are merged into their base when it is loaded."""

import re
from pathlib import Path

import torch
from pydantic import Field, PositiveInt
from pydantic.dataclasses import dataclass
from safetensors.torch import load_file

from .folder_files import ADAPTER_CONFIG, ADAPTER_WEIGHTS, check_keys, read_file, read_object
from .folder_keys import ADAPTER_KEYS, FLAG, TEXT, WHOLE

# Before the names of the base's layers
_PREFIX = "base_model.model."


@dataclass(frozen=True)
class LoraConfig:
    """The settings of an adapter that are followed, by peft's names.

    target_modules: how the names of the layers that it changes end, or a pattern of whole names.
    """

    base_model_name_or_path: str = Field(description=TEXT)
    r: PositiveInt = Field(description=WHOLE)
    lora_alpha: float = Field(description="a number")
    target_modules: str | list[str] = Field(description="a pattern, or a list of names")
    use_rslora: bool = Field(default=False, description=FLAG)

    @property
    def scaling(self) -> float:
        """The factor of the product of an adapter's matrices."""
        rank = self.r**0.5 if self.use_rslora else self.r
        return self.lora_alpha / rank

    @property
    def pattern(self) -> str:
        """A pattern of the names of the layers that it changes."""
        if isinstance(self.target_modules, str):
            return self.target_modules
        return rf"(.*\.)?({'|'.join(map(re.escape, self.target_modules))})"


def read_adapter(folder: Path) -> LoraConfig:
    """Read the settings of an adapter.

    RAISES (ValueError): if one is missing, or changes the weights in another way than LoRA does.
    """
    file = folder / ADAPTER_CONFIG
    check_keys(file, read_object(file), ADAPTER_KEYS)
    return read_file(file, LoraConfig)


def merge_adapter(base: torch.nn.Module, folder: Path) -> None:
    """Merge an adapter into the linear layers of its base: W + scaling * B A (Hu et al. 2021).

    W: (outputs, inputs). A: (r, inputs). B: (outputs, r). scaling: lora_alpha / r, or
        lora_alpha / sqrt(r) with use_rslora (Kalajdzievski 2023).
    base (Module): a Hugging Face model or BertParameters. folder (Path): of the adapter.
    RAISES (ValueError): if weights are missing, or have no place in the base.
    """
    config = read_adapter(folder)
    file = folder / ADAPTER_WEIGHTS
    adapter = load_file(file)
    layers = {}
    expected = {}
    for name, weight in base.named_parameters():
        layer = name.removesuffix(".weight")
        if weight.dim() == 2 and re.fullmatch(config.pattern, layer):
            first = f"{_PREFIX}{layer}.lora_A.weight"
            second = f"{_PREFIX}{layer}.lora_B.weight"
            layers[first, second] = weight
            expected[first] = [config.r, weight.shape[1]]
            expected[second] = [weight.shape[0], config.r]
    given = {name: list(matrix.shape) for name, matrix in adapter.items()}
    for name in sorted(given.keys() | expected.keys()):
        # The pooler of a base without weights for it is random, and not used
        is_unused = name.startswith(f"{_PREFIX}pooler.") and name not in expected
        if given.get(name) != expected.get(name) and not is_unused:
            raise ValueError(
                f"The adapter {file} does not fit its base '{config.base_model_name_or_path}': "
                f"{name} is {given.get(name, 'missing')}, expected {expected.get(name, 'none')}. "
                f"Correct base_model_name_or_path in {ADAPTER_CONFIG}, or save the adapter again."
            )
    for (first, second), weight in layers.items():
        change = adapter[second].float() @ adapter[first].float() * config.scaling
        weight.data = weight.data + change
