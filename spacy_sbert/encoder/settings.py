"""What a folder in the layout of sentence-transformers says about its encoder, beside the weights."""

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from .errors import Errors
from .modules import foreign_module, module_kind

MODULES_FILE = "modules.json"
STATIC = "StaticEmbedding"  # the module that is a table, as model2vec calls it, too
KNOWN_MODULES = ("Transformer", STATIC, "Pooling", "Normalize", "Dropout")  # the last does nothing in use
# As pooling names them: the flags of config.json, in the order in which results are concatenated, and its list.
POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
POOLING_MODES = {**{name: name for name in POOLING_FLAGS.values()}, "mean_sqrt_len_tokens": "mean_sqrt_len"}
WHOLE, FLAG, TEXT = "a whole number above 0", "true or false", "a string"  # what errors say that is expected
OBJECT, LIST = "an object of strings", "a list of strings"
FileT = TypeVar("FileT")


@dataclass(frozen=True)
class FolderSettings:
    """What the folder of an encoder says beyond its weights, and what therefore travels with them.

    name: the name the encoder was asked for by.
    max_length: the most wordpieces a row may have, special tokens included; None where there is no limit.
    normalize: whether its authors scale vectors to unit length.
    pooling: the pooling its authors use, such as "mean" or "cls+mean", None where the folder does not say.
    lowercase: whether texts are lower-cased before the tokenizer sees them.
    unknown_modules: types of the folder's modules beside those that are known.
    prompts: what is put before a text, by name, such as {"query": "query: "}.
    default_prompt_name: the one that is used if nobody asks for another, "" for none.
    truncate_dim: how many dimensions of a vector its authors keep, 0 for all.
    """

    name: str = Field(default="", description=TEXT)
    max_length: PositiveInt | None = Field(default=None, description=WHOLE)
    normalize: bool = Field(default=False, description=FLAG)
    pooling: str | None = Field(default=None, description=TEXT)
    lowercase: bool = Field(default=False, description=FLAG)
    unknown_modules: tuple[str, ...] = Field(default=(), description=LIST)
    prompts: dict[str, str] = Field(default_factory=dict, description=OBJECT)
    default_prompt_name: str = Field(default="", description=TEXT)
    truncate_dim: NonNegativeInt = Field(default=0, description="a whole number")


class Limits(BaseModel):
    """The file beside the transformer."""

    max_seq_length: PositiveInt | None = Field(None, description=WHOLE)
    do_lower_case: bool | None = Field(None, description=FLAG)


class SharedConfig(BaseModel):
    """config_sentence_transformers.json."""

    prompts: dict[str, str | None] | None = Field(None, description=OBJECT)
    default_prompt_name: str | None = Field(None, description=TEXT)
    truncate_dim: NonNegativeInt | None = Field(None, description="a whole number")


def read_settings(folder: Path, name: str) -> FolderSettings:
    """Read modules.json and the files it points to; a folder without it is that of a plain encoder.

    folder (Path): the encoder's folder.
    name (str): the name it was asked for by.
    RETURNS (FolderSettings): the settings, max_length as far as the folder limits it.
    RAISES (ValueError): if a path in modules.json leads out of the folder, or a file says what cannot be.
    """
    modules = [(module_kind(module["type"]), module["path"]) for module in read_modules(folder)]
    part = static_module(folder) or transformer_folder(folder)
    files = [*sorted(part.glob("sentence_*_config.json")), part / "sentence_bert_config.json"]
    limits, shared = read_file(files[0], Limits), read_file(folder / "config_sentence_transformers.json", SharedConfig)
    pooling = next((read_pooling(folder, path) for kind, path in modules if kind == "Pooling"), None)
    return FolderSettings(
        name=name,
        max_length=limits.max_seq_length,
        normalize="Normalize" in dict(modules),
        pooling=pooling.name if pooling else None,
        lowercase=bool(limits.do_lower_case),
        unknown_modules=tuple(kind for kind, _ in modules if kind not in KNOWN_MODULES),
        prompts={key: prompt or "" for key, prompt in (shared.prompts or {}).items()},
        default_prompt_name=shared.default_prompt_name or "",
        truncate_dim=shared.truncate_dim or 0,
    )


def read_file(file: Path, kind: type[FileT]) -> FileT:
    """The object in a JSON file of an encoder's folder as a pydantic model, whose defaults stand for what is missing.

    RAISES (ValueError): if it holds something else; the description of a field says what is expected.
    """
    content = read_object(file)
    try:
        return TypeAdapter(kind).validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        expected = kind.__pydantic_fields__[key].description  # type: ignore[attr-defined]
        raise unexpected(file, key, content.get(key), str(expected)) from error


def unexpected(file: Path, key: str, given: Any, expected: str) -> ValueError:
    """The error that a value in a file of the encoder's folder is not what is expected."""
    shown = repr(given) if len(repr(given)) <= 60 else f"{repr(given)[:60]}..."
    return ValueError(Errors.BAD_FOLDER_VALUE.format(file=file, key=key, given=shown, expected=expected))


def transformer_folder(folder: Path) -> Path:
    """Where config.json and the weights are: older folders keep them in a part of their own.

    RAISES (ValueError): if the first module, which reads the texts, is no Transformer.
    """
    for module in read_modules(folder):
        kind = module_kind(module["type"])
        if kind == "Transformer":
            return inside(folder, module["path"])
        if kind == STATIC:
            raise ValueError(Errors.STATIC_FOLDER.format(folder=folder))
        other = Errors.FOREIGN_TRANSFORMER.format(file=folder / MODULES_FILE, given=module["type"])
        raise foreign_module(folder, module["type"]) or ValueError(other)
    return folder


def static_module(folder: Path) -> Path | None:
    """Where the table of a static encoder is; None if the folder is that of another encoder."""
    paths = [module["path"] for module in read_modules(folder) if module_kind(module["type"]) == STATIC]
    return inside(folder, paths[0]) if paths else None


@dataclass(frozen=True)
class PoolingSettings:
    """name: as make_pooling takes it, None where the folder asks for something else. include_prompt: whether the
    wordpieces of a prompt are pooled, too. width: of the states."""

    name: str | None
    include_prompt: bool = True
    width: int | None = None


class PoolingConfig(BaseModel):
    """config.json of a Pooling module. Its flags stand in the order in which results are concatenated."""

    pooling_mode_cls_token: bool | None = Field(None, description=FLAG)
    pooling_mode_max_tokens: bool | None = Field(None, description=FLAG)
    pooling_mode_mean_tokens: bool | None = Field(None, description=FLAG)
    pooling_mode_mean_sqrt_len_tokens: bool | None = Field(None, description=FLAG)
    pooling_mode_weightedmean_tokens: bool | None = Field(None, description=FLAG)
    pooling_mode_lasttoken: bool | None = Field(None, description=FLAG)
    pooling_mode: str | list[str] | None = Field(None, description="a string, or a list of them")
    include_prompt: bool | None = Field(None, description=FLAG)
    embedding_dimension: PositiveInt | None = Field(None, description=WHOLE)  # in newer folders
    word_embedding_dimension: PositiveInt | None = Field(None, description=WHOLE)


def read_pooling(folder: Path, path: str) -> PoolingSettings | None:
    """What the config.json of a Pooling module says, None if there is none.

    folder (Path): of the encoder. path (str): of the module in it.
    """
    file = inside(folder, path) / "config.json"
    if not file.is_file():
        return None
    config = read_file(file, PoolingConfig)
    modes = [mode for flag, mode in POOLING_FLAGS.items() if getattr(config, flag)]
    if config.pooling_mode is not None:
        named = [config.pooling_mode] if isinstance(config.pooling_mode, str) else config.pooling_mode
        modes = [POOLING_MODES[mode] for mode in named] if set(named) <= set(POOLING_MODES) else []
    width = config.embedding_dimension or config.word_embedding_dimension
    return PoolingSettings("+".join(modes) or None, config.include_prompt is not False, width)


def read_modules(folder: Path) -> list[dict[str, str]]:
    """The modules of a sentence encoder, each with its type and its path in the folder; none for a plain encoder.

    RAISES (ValueError): if the file is not of that form.
    """
    file = folder / MODULES_FILE
    modules = read_json(file, [])
    expected = "a list of objects with 'type' and 'path'"
    if not isinstance(modules, list):
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=f"expected {expected}"))
    for module in modules:
        if not (isinstance(module, dict) and all(isinstance(module.get(key), str) for key in ("type", "path"))):
            raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=f"expected {expected}"))
    return modules


def read_json(file: Path, missing: Any) -> Any:
    """The content of a JSON file; `missing` if there is no such file.

    RAISES (ValueError): if it is not JSON.
    """
    if not file.is_file():
        return missing
    try:
        return json.loads(file.read_text(encoding="utf8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=error)) from error


def read_object(file: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if there is no such file.

    RAISES (ValueError): if it is not JSON, or not an object.
    """
    content = read_json(file, {})
    if not isinstance(content, dict):
        reason = f"expected a JSON object, found {type(content).__name__}"
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=reason))
    return content


def inside(folder: Path, path: str) -> Path:
    """A part of a folder.

    RAISES (ValueError): if the path leads out of it.
    """
    inner = (folder / path).resolve()
    if not inner.is_relative_to(folder.resolve()):
        raise ValueError(Errors.UNSAFE_PATH.format(file=folder / MODULES_FILE, path=path))
    return inner
