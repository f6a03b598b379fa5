"""Settings of an encoder: those of its folder (modules.json ...), and those of its config."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_type_hints

from pydantic import (
    BaseModel,
    Field,
    NonNegativeInt,
    PositiveInt,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.dataclasses import dataclass
from spacy.util import SimpleFrozenDict
from thinc.api import PyTorchGradScaler

from ..errors import Errors, Warnings, warn
from ..validation import NonNegative, NonNegativeFloat, check, check_fields, invalid_value_message
from .folder_keys import (
    CROSS_ENCODER,
    FLAG,
    LISTED_KEYS,
    MODEL_KEYS,
    MODULE_KEYS,
    POOLING_FLAGS,
    SENTENCE_TRANSFORMER,
    TEXT,
    TEXTS,
    TRANSFORMER_FILES,
    TRANSFORMER_KEYS,
    WHOLE,
    Keys,
    refused_keys,
    unknown_keys,
)
from .overflow import Overflow
from .poolings import POOLING

# A precision, or rather the batches of sentence-transformers in float32
REFERENCE = "reference"
# Of linear layers in use
INT8 = "int8"
Precision = Literal["float32", "bfloat16", "float16", "int8", "auto", "reference"]


@plain_dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """How a transformer is loaded, how it encodes, and how it is trained.

    tokenizer_config, transformer_config (dict): keyword arguments of the tokenizer and of the
        transformer's config.
    trust_remote_code (bool): whether Python code that comes with the encoder may run, see
        loading.Source.
    overflow (str): "truncate", "windows" or "cut", for rows longer than the limit: a name of
        OVERFLOW (overflow.py).
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


# Of the known modules
PACKAGE = "sentence_transformers"
_SPARSE = ("a part of a sparse encoder", "Use an encoder of dense vectors.")
_ROUTES = (
    "several encoders, one for each kind of text",
    "Save one route as a folder of its own, and use that: modules = [module for part in model for "
    "module in getattr(part, 'sub_modules', {'query': [part]})['query']], then "
    "SentenceTransformer(modules=modules).save(...).",
)
OLD_TRANSFORMERS = (
    "ALBERT",
    "BERT",
    "CamemBERT",
    "DistilBERT",
    "RoBERTa",
    "T5",
    "XLMRoBERTa",
    "XLNet",
)
_OLD = (
    "a transformer, as sentence-transformers wrote it before 0.3",
    "Name it sentence_transformers.models.Transformer in modules.json, which reads the same files.",
)
_ALONE = "To train without it, use spacy-sbert.SentenceEncoder.v1 with normalize = true or false."
# Modules of sentence-transformers that are unknown here: what each is, and what to do.
FOREIGN = {
    "BoW": ("a count of words", "Use an encoder with a Transformer or StaticEmbedding."),
    "WordEmbeddings": (
        "a table of word vectors",
        "Use spacy-sbert.WordVectors.v1 in a Tok2VecSentenceEncoder.",
    ),
    "WordWeights": (
        "weights of words",
        "Use spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 in a Tok2VecSentenceEncoder.",
    ),
    "CNN": ("convolutions over words", "Train spacy.HashEmbedCNN.v2 in a Tok2VecSentenceEncoder."),
    "LSTM": (
        "a recurrent network",
        "Train spacy-sbert.BiLSTMEncoder.v1 in a Tok2VecSentenceEncoder.",
    ),
    "WeightedLayerPooling": ("a mean over all layers of the transformer", _ALONE),
    "LayerNorm": ("a layer that centres and scales vectors", _ALONE),
    "Router": _ROUTES,
    "Asym": _ROUTES,
    "CLIPModel": ("an encoder of pictures and texts", "Use an encoder of texts only."),
    "MLMTransformer": _SPARSE,
    "SpladePooling": _SPARSE,
    "SparseAutoEncoder": _SPARSE,
    "SparseStaticEmbedding": _SPARSE,
    "LogitScore": (
        "a score by the next word that a cross-encoder would write",
        "Use a cross-encoder with a head for sequence classification, or for vectors an encoder of "
        "single texts.",
    ),
    **dict.fromkeys(OLD_TRANSFORMERS, _OLD),
}


MODULES_FILE, MODEL_FILE = "modules.json", "config_sentence_transformers.json"
_STATIC = "StaticEmbedding"
# The last does nothing in use
KNOWN_MODULES = (
    "Transformer",
    _STATIC,
    "Pooling",
    "Normalize",
    "Dropout",
)
_ORDER = re.compile(
    r"Transformer|(Transformer Pooling|StaticEmbedding)( Dense| Dropout)*( Normalize)?( Dropout)*"
)
EXPECTED_MODULES = (
    "expected Transformer and Pooling, or StaticEmbedding, any number of Dense, and optionally "
    "Normalize, in this order"
)
# The modes of a Pooling module: its own names, and ours
POOLING_MODES = {name: name for name in POOLING_FLAGS.values()}
POOLING_MODES |= {POOLING[name].mode: name for name in POOLING_FLAGS.values()}
# Which every SentenceTransformer has, without a text unless the folder has one
_EMPTY_PROMPTS = (
    "query",
    "document",
)
_FileT = TypeVar("_FileT")
# Of peft and of AdapterHub
_ADAPTER_FILES = (
    "adapter_config.json",
    "adapter_model.safetensors",
    "adapter_model.bin",
    "pytorch_adapter.bin",
)


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


_TABLES = (*MODEL_KEYS.values(), *TRANSFORMER_KEYS.values(), *MODULE_KEYS.values())
_fields: dict[str, Any] = {
    name: (Annotated[key.kind | None, Field(description=key.expected)], None)
    for table in _TABLES
    for name, key in table.items()
    if key.kind is not None
}
# The values of the keys that are followed
_Settings: Any = create_model("_Settings", **_fields)


class _ListedModule(BaseModel):
    type: str
    path: str


# Of modules.json
_MODULES = TypeAdapter(Annotated[list[_ListedModule], Field(min_length=1)])


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
    is_other_model = model_type == CROSS_ENCODER and given != CROSS_ENCODER
    if is_other_model and _has_head(transformer_folder(folder)):
        # Its classifier is read without the other files
        return SentenceTransformersConfig(name=name)
    # CrossEncoder takes the transformer of a SentenceTransformer, with a new head and without
    # prompts.
    is_new = is_other_model and given == SENTENCE_TRANSFORMER
    if is_new:
        model_type = SENTENCE_TRANSFORMER
    _check_modules(folder, modules, model_type)
    shared = read_keys(folder / MODEL_FILE, MODEL_KEYS[model_type])
    limits = _Settings()
    if static_module(folder) is None:
        limits = _read_limits(transformer_folder(folder), model_type)
    poolings = [read_pooling(module.folder) for module in modules if module.kind == "Pooling"]
    pooling, include_prompt = poolings[0] if poolings else (None, True)
    kinds = [module.kind for module in modules]
    prompts: dict[str, str] = {}
    default_prompt_name = ""
    if not is_new:
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
    # Of several files sentence-transformers reads the first that is not empty
    files = (folder / file for file in TRANSFORMER_FILES if read_object(folder / file))
    return read_keys(next(files, folder / TRANSFORMER_FILES[0]), TRANSFORMER_KEYS[model_type])


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
    return SentenceTransformersConfig(name=name, pooling="lasttoken" if is_causal else None)


def _check_modules(folder: Path, modules: list["Module"], model_type: str) -> None:
    """Check that the modules of a folder, except unknown ones, can be followed.

    RAISES (ValueError): if not.
    """
    file = folder / MODULES_FILE
    listed = json.loads(file.read_text(encoding="utf8"))
    for entry in listed:
        check_keys(file, entry, LISTED_KEYS)
    names = [entry["name"] for entry in listed if "name" in entry]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise unexpected(file, "name", twice, "a name of its own for each module")
    kinds = [module.kind for module in modules]
    if model_type == CROSS_ENCODER and kinds != ["Transformer"]:
        raise _not_a_cross_encoder(folder, modules)
    known = [kind for kind in kinds if kind in (*KNOWN_MODULES, "Dense")]
    if not _ORDER.fullmatch(" ".join(known)):
        raise ValueError(
            f"The folder {folder} has the modules {', '.join(kinds)}: {EXPECTED_MODULES}."
        )
    for module in modules:
        if module.kind in KNOWN_MODULES and module.kind in MODULE_KEYS:
            read_keys(module.folder / "config.json", MODULE_KEYS[module.kind])


def _not_a_cross_encoder(folder: Path, modules: list["Module"]) -> ValueError:
    """Return the error of a folder that is a CrossEncoder with other modules than a Transformer."""
    for module in modules:
        foreign = foreign_module(folder, module)
        if foreign is not None:
            return foreign
    kinds = ", ".join(module.kind for module in modules)
    return ValueError(
        f"The folder {folder} is a CrossEncoder with the modules {kinds}: expected one "
        "Transformer, with a head for sequence classification. Use another cross-encoder."
    )


class Module(NamedTuple):
    """A module of a sentence encoder."""

    # Its class; with its package if that is not sentence_transformers
    kind: str
    folder: Path
    # As modules.json names it
    type: str


def read_modules(folder: Path) -> list[Module]:
    """Return the modules of a sentence encoder; none for a plain one.

    RAISES (ValueError): if the list is damaged.
    """
    file, modules = folder / MODULES_FILE, []
    if not file.exists():
        return []
    try:
        listed = _MODULES.validate_json(file.read_bytes(), strict=True)
    except ValidationError as error:
        reason = "expected a list of objects with 'type' and 'path', one at least"
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=reason)) from error
    for each in listed:
        inner = (folder / each.path).resolve()
        if not inner.is_relative_to(folder.resolve()):
            link = _first_link(folder, each.path)
            how = (
                "which lies outside of its folder"
                if link is None
                else f"and {link} is a link to {inner}, outside"
            )
            remedy = (
                "Use an encoder that you trust."
                if link is None
                else "Copy that folder to the place of the link."
            )
            raise ValueError(f"The file {file} names '{each.path}', {how}. {remedy}")
        package, _, name = each.type.rpartition(".")
        name = name if package.split(".")[0] == PACKAGE else f"{package or 'unknown'}.{name}"
        modules.append(Module(name, inner, each.type))
    return modules


def _first_link(folder: Path, path: str) -> Path | None:
    """Return the first symbolic link on a path below a folder; None if there is none."""
    below = folder
    for part in Path(path).parts:
        below = below / part
        if below.is_symlink():
            return below
    return None


def foreign_module(folder: Path, module: Module) -> ValueError | None:
    """Return the error for a module of sentence-transformers that is unknown here.

    None for others.
    """
    if module.kind not in FOREIGN:
        return None
    kind, remedy = FOREIGN[module.kind]
    return ValueError(
        f"The folder {folder} has the module {module.type}, which is unknown here: it is {kind}. "
        f"{remedy}"
    )


def transformer_folder(folder: Path) -> Path:
    """Return where config.json and the weights are.

    RAISES (ValueError): if the first module is no Transformer.
    """
    for module in read_modules(folder)[:1]:
        if module.kind == _STATIC:
            raise ValueError(
                f"The folder {folder} holds a static encoder, a table without a transformer. Use "
                f"spacy-sbert.StaticSentenceEncoder.v1, or python -m spacy sbert import {folder} "
                "OUT."
            )
        if module.kind != "Transformer":
            raise foreign_module(folder, module) or ValueError(
                f"The file {folder / MODULES_FILE} names the module {module.type}: expected "
                "sentence_transformers.models.Transformer. Use another encoder."
            )
        return module.folder
    return folder


def static_module(folder: Path) -> Path | None:
    """Return the folder of the table of a static encoder; None for another encoder."""
    return next((module.folder for module in read_modules(folder) if module.kind == _STATIC), None)


def read_pooling(folder: Path) -> tuple[str, bool]:
    """Return the pooling that the folder of a Pooling module names, and whether prompts are pooled.

    RAISES (ValueError): if the pooling is unknown.
    """
    file = folder / "config.json"
    if not read_object(file):
        raise ValueError(
            f"The file {file}, which names the pooling, is missing or empty. Copy or download the "
            "encoder again, with the folders inside of it."
        )
    config = read_file(file, _Settings)
    modes = [flag for flag in POOLING_FLAGS if getattr(config, flag)] or [
        "pooling_mode_mean_tokens"
    ]
    names = [POOLING_FLAGS[flag] for flag in modes]
    if config.pooling_mode is not None:
        names = (
            [config.pooling_mode] if isinstance(config.pooling_mode, str) else config.pooling_mode
        )
        if not names or not set(names) <= set(POOLING_MODES):
            raise unexpected(
                file, "pooling_mode", config.pooling_mode, f"some of {', '.join(POOLING_MODES)}"
            )
    return "+".join(POOLING_MODES[name] for name in names), config.include_prompt is not False


def read_keys(file: Path, keys: Keys) -> Any:
    """Return the values of a file that are followed, and warn of unknown keys; see folder_keys.

    RAISES (ValueError): if a key is refused, or a value does not fit.
    """
    check_keys(file, read_object(file), keys)
    return read_file(file, _Settings)


def check_keys(file: Path, content: Mapping[str, object], keys: Keys) -> None:
    """Warn of unknown keys in a file. RAISES (ValueError): if a value is refused."""
    for name, value, key in refused_keys(content, keys):
        allowed = " or ".join(json.dumps(one) for one in key.allowed)
        raise ValueError(
            f"The file {file} sets {name} = {_shown(value)} ({key.reason}), which is not "
            f"supported: expected {allowed}. Use another encoder, or a copy of the folder without "
            "that key, which has other vectors."
        )
    if unknown := ", ".join(unknown_keys(content, keys)):
        warn(Warnings.UNKNOWN_FOLDER_KEYS.format(file=file, names=unknown))


def check_merged(folder: Path) -> None:
    """Check that no adapter lies beside the weights. RAISES (ValueError): if there is one."""
    files = [name for name in _ADAPTER_FILES if (folder / name).is_file()]
    if files:
        raise ValueError(
            f"The folder {folder} holds an adapter ({', '.join(files)}), which is not followed. "
            "Merge it into its encoder: in sentence-transformers model[0].model.merge_and_unload() "
            "of peft, and save that."
        )


def read_object(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if there is no such file.

    RAISES (ValueError): if it is not an object.
    """
    if not file.exists():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=error)) from error
    if not isinstance(content, dict):
        reason = f"expected a JSON object, found {type(content).__name__}"
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=reason))
    return content


def read_file(file: Path, kind: type[_FileT]) -> _FileT:
    """Read a JSON file of an encoder's folder as a pydantic model, with its defaults.

    RAISES (ValueError): if a value does not fit; the description of its field is what is expected.
    """
    content = read_object(file)
    try:
        return TypeAdapter(kind).validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        expected = kind.__pydantic_fields__[key].description  # type: ignore[attr-defined]
        raise unexpected(file, key, content.get(key), str(expected)) from error


def unexpected(file: Path, key: str, value: object, expected: str) -> ValueError:
    """Return the error for a value in a file of an encoder's folder."""
    return ValueError(
        f"The file {file}, a part of the encoder's folder, says {key} = {_shown(value)}: expected "
        f"{expected}. Correct it, or download the encoder again."
    )


def _shown(value: object) -> str:
    return repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}..."
