"""Settings of an encoder: those of its folder (modules.json ...), and those of its config."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, get_type_hints

from pydantic import Field, NonNegativeInt, PositiveInt
from pydantic.dataclasses import dataclass
from spacy.util import SimpleFrozenDict
from thinc.api import PyTorchGradScaler

from ..validation import NonNegative, NonNegativeFloat, check, check_fields, invalid_value_message
from .folder_files import FollowedKeys, read_file, read_keys, read_object, unexpected
from .folder_keys import (
    CROSS_ENCODER,
    FLAG,
    MODEL_KEYS,
    POOLING_FLAGS,
    SENTENCE_TRANSFORMER,
    TEXT,
    TEXTS,
    TRANSFORMER_FILES,
    TRANSFORMER_KEYS,
    WHOLE,
)
from .folder_modules import (
    KNOWN_MODULES,
    Module,
    check_modules,
    read_modules,
    static_module,
    transformer_folder,
)
from .overflow import Overflow
from .poolings import POOLING

MODEL_FILE = "config_sentence_transformers.json"
# A precision, or rather the batches of sentence-transformers in float32
REFERENCE = "reference"
# A precision of linear layers in use
INT8 = "int8"
Precision = Literal["float32", "bfloat16", "float16", "int8", "auto", "reference"]


@plain_dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """How a transformer is loaded, how it encodes, and how it is trained.

    tokenizer_config, transformer_config (dict): keyword arguments of the tokenizer and of the
        transformer's config.
    trust_remote_code (bool): whether Python code that comes with the encoder may run, see
        loading.Source.
    overflow (str): what is read of rows longer than the limit, a name of OVERFLOW (overflow.py).
    precision (str): "float32", "bfloat16" or "float16" (GPU, with loss scaling) for the arithmetic,
        "auto" for what the device is quick at; weights and output are float32. "int8" rounds the
        inputs and weights of linear layers in use to 8 bits, by ranges that are found on texts (see
        calibrate), on CPUs that are quicker with it (AVX-512 VNNI, no AMX), and is "auto" elsewhere
        and in training. "reference" is float32 through the Hugging Face model in the batches of
        sentence-transformers, where other precisions pack and sort rows.
    backend (str): what computes, as in sentence-transformers: "torch", or another one of
        engine.backend.BACKENDS. "onnx" is ONNX Runtime, on CPUs and in use only, in float32 or
        "int8".
    backend_config (dict): keyword arguments of the backend: for "onnx" see ONNXBackendCache.

    Only training reads these:

    gradient_checkpointing (bool): whether only the input of each layer is kept, and the rest
        computed again.
    mini_batch_size (int): the most rows whose activations are kept, see cached_forward; 0 for no
        limit.
    frozen (list[str]): parameters that are not trained, or the modules that hold them, such as
        "embeddings".
    max_grad_norm (float): the norm that the gradient of all parameters together is scaled down to;
        0 for no limit.
    mixed_precision, grad_scaler_config: as in spacy-transformers.
    RAISES (ValueError): for an unknown precision or overflow, or a setting of another type or out
        of its range.
    """

    tokenizer_config: dict[str, Any] = field(default_factory=SimpleFrozenDict)
    transformer_config: dict[str, Any] = field(default_factory=SimpleFrozenDict)
    trust_remote_code: bool = False
    overflow: Overflow = "truncate"
    precision: Precision = "float32"
    backend: str = "torch"
    backend_config: dict[str, Any] = field(default_factory=SimpleFrozenDict)
    gradient_checkpointing: bool = False
    mini_batch_size: NonNegative = 0
    frozen: Sequence[str] = ()
    max_grad_norm: NonNegativeFloat = 0.0
    mixed_precision: bool = False
    grad_scaler_config: dict[str, Any] = field(default_factory=SimpleFrozenDict)

    def __post_init__(self) -> None:
        check_fields(self)
        known = get_type_hints(PyTorchGradScaler.__init__)
        for key, value in self.grad_scaler_config.items():
            if key not in known:
                expected = f"some of {', '.join(set(known) - {'return'})}"
                raise ValueError(invalid_value_message("grad_scaler_config", key, expected))
            check(f"grad_scaler_config.{key}", value, known[key])


# The modes of a Pooling module: its own names, and ours
POOLING_MODES = {name: name for name in POOLING_FLAGS.values()}
POOLING_MODES |= {POOLING[name].mode: name for name in POOLING_FLAGS.values()}
# Prompts that every SentenceTransformer has, without a text unless the folder gives one
_EMPTY_PROMPTS = ("query", "document")


@dataclass(frozen=True)
class SentenceTransformersConfig:
    """What the folder of an encoder specifies beside its weights. It is saved with them.

    name: the name the encoder was asked for by.
    max_length: the most wordpieces a row may have, special tokens included; None for no limit.
    normalize: whether its authors scale vectors to unit length.
    pooling: the pooling its authors use, such as "mean" or "cls+mean"; None if it is not specified.
    lowercase: whether texts are lower-cased before tokenization.
    unknown_modules: types of the folder's modules beside those that are known.
    prompts: what is put before a text, by name, such as {"query": "query: "}.
    default_prompt_name: the prompt of texts for which none is asked; "" for none.
    truncate_dim: how many dimensions of a vector its authors keep; 0 for all.
    include_prompt: whether its authors pool the wordpieces of a prompt with those of the text.
    adapter: the adapter that was merged into a base, see merge_adapter; "" for none.
    """

    name: str = Field(default="", description=TEXT)
    max_length: PositiveInt | None = Field(default=None, description=WHOLE)
    normalize: bool = Field(default=False, description=FLAG)
    pooling: str | None = Field(default=None, description=TEXT)
    lowercase: bool = Field(default=False, description=FLAG)
    unknown_modules: tuple[str, ...] = Field(default=(), description="a list of strings")
    prompts: dict[str, str] = Field(default_factory=dict, description=TEXTS)
    default_prompt_name: str = Field(default="", description=TEXT)
    truncate_dim: NonNegativeInt = Field(default=0, description="a whole number")
    include_prompt: bool = Field(default=True, description=FLAG)
    adapter: str = Field(default="", description=TEXT)


def read_settings(
    folder: Path, name: str, model_type: str = SENTENCE_TRANSFORMER
) -> SentenceTransformersConfig:
    """Read modules.json and the files it points to, as sentence-transformers does.

    Without it, it reads none of them.

    model_type (str): "SentenceTransformer" or "CrossEncoder", which reads other keys.
    RAISES (ValueError): if a value is not possible, or changes vectors in a way that is not
        supported.
    """
    modules = read_modules(folder)
    if not modules:
        return _plain_settings(folder, name)
    given = read_object(folder / MODEL_FILE).get("model_type", SENTENCE_TRANSFORMER)
    if model_type == SENTENCE_TRANSFORMER or given == CROSS_ENCODER:
        return _listed_settings(folder, name, modules, model_type)
    # What follows is a CrossEncoder of another model
    if _has_head(transformer_folder(folder)):
        # Its classifier is read without the other files
        return SentenceTransformersConfig(name=name)
    if given != SENTENCE_TRANSFORMER:
        return _listed_settings(folder, name, modules, model_type)
    # It gets a new head
    return _listed_settings(folder, name, modules, SENTENCE_TRANSFORMER, reads_prompts=False)


def _listed_settings(
    folder: Path, name: str, modules: list[Module], model_type: str, *, reads_prompts: bool = True
) -> SentenceTransformersConfig:
    """Return the settings of a folder with modules.json, see read_settings."""
    check_modules(folder, modules, model_type)
    shared = read_keys(folder / MODEL_FILE, MODEL_KEYS[model_type])
    limits = FollowedKeys()
    if static_module(folder) is None:
        limits = _read_limits(transformer_folder(folder), model_type)
    pooling, include_prompt = _read_poolings(modules)
    kinds = [module.kind for module in modules]
    prompts: dict[str, str] = {}
    default_prompt_name = ""
    if reads_prompts:
        prompts = {key: prompt or "" for key, prompt in (shared.prompts or {}).items()}
        default_prompt_name = _default_prompt_name(
            folder / MODEL_FILE, shared.default_prompt_name, prompts
        )
    return SentenceTransformersConfig(
        name=name,
        max_length=limits.max_seq_length,
        normalize="Normalize" in kinds,
        pooling=pooling,
        lowercase=bool(limits.do_lower_case),
        unknown_modules=tuple(kind for kind in kinds if kind not in KNOWN_MODULES),
        prompts=prompts,
        default_prompt_name=default_prompt_name,
        truncate_dim=shared.truncate_dim or 0,
        include_prompt=include_prompt,
    )


def _read_limits(folder: Path, model_type: str) -> Any:
    """Return the settings of the module Transformer: limit and case of texts."""
    file = folder / TRANSFORMER_FILES[0]
    for name in TRANSFORMER_FILES:
        # sentence-transformers reads the first file that is not empty
        if read_object(folder / name):
            file = folder / name
            break
    return read_keys(file, TRANSFORMER_KEYS[model_type])


def _default_prompt_name(file: Path, given: str | None, prompts: Mapping[str, str]) -> str:
    """Return the name of the default prompt, "" for none.

    sentence-transformers adds empty prompts of its own names, which a folder may name.

    RAISES (ValueError): if it names a prompt by "".
    """
    if given == "":
        raise ValueError(
            f"{file} names the default prompt '', which means none here. Give the prompt a name "
            "there, or write null for none."
        )
    if given is None or (given in _EMPTY_PROMPTS and given not in prompts):
        return ""
    return given


def _has_head(folder: Path) -> bool:
    names = read_object(folder / "config.json").get("architectures") or ()
    return any(str(name).endswith("ForSequenceClassification") for name in names)


def _plain_settings(folder: Path, name: str) -> SentenceTransformersConfig:
    """Return the settings of a plain folder, which is pooled by mean or last token."""
    config = read_object(folder / "config.json")
    architectures = config.get("architectures") or [""]
    is_causal = str(architectures[0]).endswith("ForCausalLM") and config.get("is_causal", True)
    pooling = "lasttoken" if is_causal else None
    return SentenceTransformersConfig(name=name, pooling=pooling)


def _read_poolings(modules: list[Module]) -> tuple[str | None, bool]:
    """Return the pooling that a folder names, None if none, and whether prompts are pooled."""
    for module in modules:
        if module.kind == "Pooling":
            return _read_pooling(module.folder)
    return None, True


def _read_pooling(folder: Path) -> tuple[str, bool]:
    """Return the pooling that the folder of a Pooling module names, and whether prompts are pooled.

    RAISES (ValueError): if the pooling is unknown.
    """
    file = folder / "config.json"
    if not read_object(file):
        raise ValueError(
            f"The file {file}, which names the pooling, is missing or empty. Copy or download the "
            "encoder again, with the folders inside of it."
        )
    config = read_file(file, FollowedKeys)
    modes = config.pooling_mode
    if modes is None:
        modes = [mode for flag, mode in POOLING_FLAGS.items() if getattr(config, flag)] or ["mean"]
    elif isinstance(modes, str):
        modes = [modes]
    if not modes or not set(modes) <= set(POOLING_MODES):
        expected = f"some of {', '.join(POOLING_MODES)}"
        raise unexpected(file, "pooling_mode", config.pooling_mode, expected)
    pooling = "+".join(POOLING_MODES[mode] for mode in modes)
    return pooling, config.include_prompt is not False
