"""Settings of an encoder: those of its folder (modules.json and the files beside it), and those of its config."""

import json
from collections.abc import Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_type_hints

from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt, TypeAdapter, ValidationError, create_model
from pydantic.dataclasses import dataclass
from spacy.util import SimpleFrozenDict
from thinc.api import PyTorchGradScaler

from ..errors import Errors
from ..validation import NonNegative, NonNegativeFloat, check, check_fields, invalid_value_message

REFERENCE = "reference"  # a precision, or rather the batches of sentence-transformers in float32
INT8 = "int8"  # of linear layers in use
Precision = Literal["float32", "bfloat16", "float16", "int8", "auto", "reference"]
Overflow = Literal["truncate", "windows"]


@plain_dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """How a transformer is loaded, how it encodes, and how it is trained.

    tokenizer_config, transformer_config (dict): keyword arguments of the tokenizer and of the transformer's config.
    trust_remote_code (bool): whether Python code that comes with the encoder may run, see loading.Source.
    overflow (str): "truncate" or "windows", for rows longer than the limit.
    precision (str): "float32", "bfloat16" or "float16" (GPU, with loss scaling) for the arithmetic, "auto" for what
        the device is quick at; weights and output are float32. "int8" rounds the inputs and weights of linear layers in
        use to 8 bits, by ranges that are found on texts (see calibrate), on CPUs that are quicker with it (AVX-512
        VNNI, no AMX), and is "auto" elsewhere and in training. "reference" is float32 through the Hugging Face model in
        the batches of sentence-transformers, where other precisions pack and sort rows.

    Only training reads these:

    gradient_checkpointing (bool): whether only the input of each layer is kept, and the rest computed again.
    mini_batch_size (int): the most rows whose activations are kept, see cached_forward; 0 for no limit.
    frozen (list[str]): parameters that are not trained, or the modules that hold them, such as "embeddings".
    max_grad_norm (float): the norm that the gradient of all parameters together is scaled down to; 0 for no limit.
    mixed_precision, grad_scaler_config: as in spacy-transformers.
    RAISES (ValueError): for an unknown precision or overflow, or a setting of another type or out of its range.
    """

    tokenizer_config: dict[str, Any] = field(default_factory=SimpleFrozenDict)
    transformer_config: dict[str, Any] = field(default_factory=SimpleFrozenDict)
    trust_remote_code: bool = False
    overflow: Overflow = "truncate"
    precision: Precision = "float32"
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


PACKAGE = "sentence_transformers"  # of the known modules
_SPARSE = ("a part of a sparse encoder", "Use an encoder of dense vectors.")
_ROUTES = (
    "several encoders, one for each kind of text",
    "Save one route as a folder of its own and use that: "
    "SentenceTransformer(modules=list(model[0].sub_modules['query'])).save(...).",
)
_ALONE = "To train without it, use spacy-sbert.SentenceEncoder.v1 with normalize = true or false."
# Modules of sentence-transformers that are unknown here: what each is, and what to do.
FOREIGN = {
    "BoW": ("a count of words", "Use an encoder with a Transformer or StaticEmbedding."),
    "WordEmbeddings": ("a table of word vectors", "Use spacy-sbert.WordVectors.v1 in a Tok2VecSentenceEncoder."),
    "WordWeights": (
        "weights of words",
        "Use spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 in a Tok2VecSentenceEncoder.",
    ),
    "CNN": ("convolutions over words", "Train spacy.HashEmbedCNN.v2 in a Tok2VecSentenceEncoder."),
    "LSTM": ("a recurrent network", "Train spacy-sbert.BiLSTMEncoder.v1 in a Tok2VecSentenceEncoder."),
    "WeightedLayerPooling": ("a mean over all layers of the transformer", _ALONE),
    "LayerNorm": ("a layer that centres and scales vectors", _ALONE),
    "Router": _ROUTES,
    "Asym": _ROUTES,
    "CLIPModel": ("an encoder of pictures and texts", "Use an encoder of texts only."),
    "MLMTransformer": _SPARSE,
    "SpladePooling": _SPARSE,
    "SparseAutoEncoder": _SPARSE,
    "SparseStaticEmbedding": _SPARSE,
    "LogitScore": ("the head of a CrossEncoder", "Use an encoder of single texts."),
}


MODULES_FILE = "modules.json"
_STATIC = "StaticEmbedding"
KNOWN_MODULES = ("Transformer", _STATIC, "Pooling", "Normalize", "Dropout")  # the last does nothing in use
# The flags in config.json of a pooling module, in the order in which results are concatenated, and its modes.
POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
POOLING_MODES = {**{name: name for name in POOLING_FLAGS.values()}, "mean_sqrt_len_tokens": "mean_sqrt_len"}
_WHOLE, _FLAG, TEXT = "a whole number above 0", "true or false", "a string"  # what errors say is expected
_FileT = TypeVar("_FileT")
# Of peft and of AdapterHub
_ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin", "pytorch_adapter.bin")


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
    """

    name: str = Field(default="", description=TEXT)
    max_length: PositiveInt | None = Field(default=None, description=_WHOLE)
    normalize: bool = Field(default=False, description=_FLAG)
    pooling: str | None = Field(default=None, description=TEXT)
    lowercase: bool = Field(default=False, description=_FLAG)
    unknown_modules: tuple[str, ...] = Field(default=(), description="a list of strings")
    prompts: dict[str, str] = Field(default_factory=dict, description="an object of strings")
    default_prompt_name: str = Field(default="", description=TEXT)
    truncate_dim: NonNegativeInt = Field(default=0, description="a whole number")


def _optional(kind: Any, expected: str) -> tuple[Any, None]:  # noqa: ANN401 (a type, or a union of them)
    return Annotated[kind | None, Field(description=expected)], None


_fields: dict[str, Any] = {
    "max_seq_length": _optional(PositiveInt, _WHOLE),
    "do_lower_case": _optional(bool, _FLAG),
    "prompts": _optional(dict[str, str | None], "an object of strings"),
    "default_prompt_name": _optional(str, TEXT),
    "truncate_dim": _optional(NonNegativeInt, "a whole number"),
    "pooling_mode": _optional(str | list[str], "a string, or a list of them"),
    **dict.fromkeys((*POOLING_FLAGS, "include_prompt"), _optional(bool, _FLAG)),
}
# Keys of config_sentence_transformers.json, sentence_bert_config.json, and config.json of a Pooling module.
_Settings: Any = create_model("_Settings", **_fields)


class _ListedModule(BaseModel):
    type: str
    path: str


_MODULES = TypeAdapter(list[_ListedModule])  # of modules.json


def read_settings(folder: Path, name: str) -> SentenceTransformersConfig:
    """Read modules.json and the files it points to. RAISES (ValueError): if a value is not possible."""
    modules = read_modules(folder)
    part = static_module(folder) or transformer_folder(folder)
    files = [*sorted(part.glob("sentence_*_config.json")), part / "sentence_bert_config.json"]
    limits, shared = read_file(files[0], _Settings), read_file(folder / "config_sentence_transformers.json", _Settings)
    return SentenceTransformersConfig(
        name=name,
        max_length=limits.max_seq_length,
        normalize=any(module.kind == "Normalize" for module in modules),
        pooling=next((read_pooling(module.folder)[0] for module in modules if module.kind == "Pooling"), None),
        lowercase=bool(limits.do_lower_case),
        unknown_modules=tuple(module.kind for module in modules if module.kind not in KNOWN_MODULES),
        prompts={key: prompt or "" for key, prompt in (shared.prompts or {}).items()},
        default_prompt_name=shared.default_prompt_name or "",
        truncate_dim=shared.truncate_dim or 0,
    )


class Module(NamedTuple):
    """A module of a sentence encoder."""

    kind: str  # its class; with its package if that is not sentence_transformers
    folder: Path
    type: str  # as modules.json names it


def read_modules(folder: Path) -> list[Module]:
    """Return the modules of a sentence encoder; none for a plain one. RAISES (ValueError): if the list is damaged."""
    file, modules = folder / MODULES_FILE, []
    try:
        listed = _MODULES.validate_json(file.read_bytes() if file.is_file() else "[]", strict=True)
    except ValidationError as error:
        reason = "expected a list of objects with 'type' and 'path'"
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=reason)) from error
    for each in listed:
        inner = (folder / each.path).resolve()
        if not inner.is_relative_to(folder.resolve()):
            raise ValueError(
                f"The file {file} names '{each.path}', which lies outside of its folder. Use an encoder that you trust."
            )
        package, _, name = each.type.rpartition(".")
        name = name if package.split(".")[0] == PACKAGE else f"{package or 'unknown'}.{name}"
        modules.append(Module(name, inner, each.type))
    return modules


def foreign_module(folder: Path, module: Module) -> ValueError | None:
    """Return the error for a module of sentence-transformers that is unknown here; None for others."""
    if module.kind not in FOREIGN:
        return None
    kind, remedy = FOREIGN[module.kind]
    return ValueError(
        f"The folder {folder} has the module {module.type}, which is unknown here: it is {kind}. {remedy}"
    )


def transformer_folder(folder: Path) -> Path:
    """Return where config.json and the weights are. RAISES (ValueError): if the first module is no Transformer."""
    for module in read_modules(folder)[:1]:
        if module.kind == _STATIC:
            raise ValueError(
                f"The folder {folder} holds a static encoder, a table without a transformer. Use "
                f"spacy-sbert.StaticSentenceEncoder.v1, or python -m spacy sbert import {folder} OUT."
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


def read_pooling(folder: Path) -> tuple[str | None, bool]:
    """Return the pooling that the folder of a Pooling module names, None if unknown, and whether prompts are pooled."""
    config = read_file(folder / "config.json", _Settings)
    modes = [mode for flag, mode in POOLING_FLAGS.items() if getattr(config, flag)]
    if config.pooling_mode is not None:
        named = [config.pooling_mode] if isinstance(config.pooling_mode, str) else config.pooling_mode
        modes = [POOLING_MODES[mode] for mode in named] if set(named) <= set(POOLING_MODES) else []
    return "+".join(modes) or None, config.include_prompt is not False


def check_merged(folder: Path) -> None:
    """Check that no adapter lies beside the weights. RAISES (ValueError): if there is one."""
    files = [name for name in _ADAPTER_FILES if (folder / name).is_file()]
    if files:
        raise ValueError(
            f"The folder {folder} holds an adapter ({', '.join(files)}), which is not followed. Merge it into its "
            "encoder: in sentence-transformers model[0].model.merge_and_unload() of peft, and save that."
        )


def read_object(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if there is no such file. RAISES (ValueError): if it is not an object."""
    if not file.is_file():
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
    """Read a JSON file of an encoder's folder as a pydantic model, with its defaults for what is missing.

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
    shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}..."
    return ValueError(
        f"The file {file}, a part of the encoder's folder, says {key} = {shown}: expected {expected}. Correct "
        "it, or download the encoder again."
    )
