"""What a folder in the layout of sentence-transformers says about its encoder, beside the weights."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from .errors import Errors

MODULES_FILE = "modules.json"
PACKAGE = "sentence_transformers"  # of which the modules are
KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")
# As pooling names them: the flags of config.json, in the order in which results are concatenated, and its list.
POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
WIDTHS = ("embedding_dimension", "word_embedding_dimension")  # newer folders name it so, older ones the other
POOLING_MODES = {**{name: name for name in POOLING_FLAGS.values()}, "mean_sqrt_len_tokens": "mean_sqrt_len"}


@dataclass(frozen=True)
class EncoderSettings:
    """What the folder of an encoder says beyond its weights, and what therefore travels with them.

    name: the name the encoder was asked for by.
    max_length: the most wordpieces a row may have, special tokens included; None where there is no limit.
    normalize: whether its authors scale vectors to unit length.
    pooling: the pooling its authors use, such as "mean" or "cls+mean", None where the folder does not say.
    lowercase: whether texts are lower-cased before the tokenizer sees them.
    unknown_modules: types of the folder's modules that are neither Transformer, Pooling nor Normalize.
    prompts: what is put before a text, by name, such as {"query": "query: "}.
    default_prompt_name: the one that is used if nobody asks for another, "" for none.
    truncate_dim: how many dimensions of a vector its authors keep, 0 for all.
    """

    name: str
    max_length: int | None = None
    normalize: bool = False
    pooling: str | None = None
    lowercase: bool = False
    unknown_modules: tuple[str, ...] = ()
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt_name: str = ""
    truncate_dim: int = 0


def read_settings(folder: Path, name: str) -> EncoderSettings:
    """Read modules.json and the files it points to; a folder without it is that of a plain encoder.

    folder (Path): the encoder's folder.
    name (str): the name it was asked for by.
    RETURNS (EncoderSettings): the settings, max_length as far as the folder limits it.
    RAISES (ValueError): if a path in modules.json leads out of the folder, or a file says what cannot be.
    """
    modules = read_modules(folder)
    types = [_kind(module["type"]) for module in modules]
    limits = _read_limits(transformer_folder(folder))
    shared = Values(folder / "config_sentence_transformers.json")
    prompts = shared.get("prompts", dict, {}, "an object of strings") or {}
    if not all(isinstance(prompt, str | None) for prompt in prompts.values()):
        raise shared.unexpected("prompts", "an object of strings")
    pooling = next(
        (
            read_pooling(folder, module["path"])
            for module, kind in zip(modules, types, strict=True)
            if kind == "Pooling"
        ),
        None,
    )
    return EncoderSettings(
        name=name,
        max_length=limits.get("max_seq_length", int, None, "a whole number above 0", least=1),
        normalize="Normalize" in types,
        pooling=pooling.name if pooling else None,
        lowercase=bool(limits.get("do_lower_case", bool, False, "true or false")),
        unknown_modules=tuple(kind for kind in types if kind not in KNOWN_MODULES),
        prompts={key: prompt or "" for key, prompt in prompts.items()},
        default_prompt_name=shared.get("default_prompt_name", str, "", "a string") or "",
        truncate_dim=shared.get("truncate_dim", int, 0, "a whole number", least=0) or 0,
    )


class Values:
    """The object in a JSON file of an encoder's folder, whose values are of the types that are expected.

    file (Path): empty if there is none. RAISES (ValueError): if it holds something else.
    """

    def __init__(self, file: Path):
        self.file = file
        self.content = read_object(file)

    def get(self, key: str, kind: type, default: Any, expected: str, *, least: int | None = None) -> Any:
        """A value; the default if it is missing, None if it is null.

        RAISES (ValueError): if it is of another type, or lower than `least`. expected (str): what the error asks for.
        """
        given = self.content.get(key, default)
        if given is None:
            return None
        is_other = not isinstance(given, kind) or (kind is int and isinstance(given, bool))  # true counts as 1
        if is_other or (least is not None and cast(int, given) < least):
            raise self.unexpected(key, expected)
        return given

    def unexpected(self, key: str, expected: str) -> ValueError:
        """The error that a value is not what is expected."""
        return unexpected(self.file, key, self.content.get(key), expected)


def unexpected(file: Path, key: str, given: Any, expected: str) -> ValueError:
    """The error that a value in a file of the encoder's folder is not what is expected."""
    shown = repr(given) if len(repr(given)) <= 60 else f"{repr(given)[:60]}..."
    return ValueError(Errors.BAD_FOLDER_VALUE.format(file=file, key=key, given=shown, expected=expected))


def transformer_folder(folder: Path) -> Path:
    """Where config.json and the weights are: older folders keep them in a part of their own."""
    for module in read_modules(folder):
        kind = _kind(module["type"])
        if kind == "Transformer":
            return inside(folder, module["path"])
        if kind.endswith("Transformer"):
            raise ValueError(Errors.FOREIGN_TRANSFORMER.format(file=folder / MODULES_FILE, given=module["type"]))
    return folder


def _kind(module: str) -> str:
    """The name of a module's class; with its package where that is not sentence_transformers."""
    package, _, name = module.rpartition(".")
    return name if package.split(".")[0] == PACKAGE else f"{package or 'unknown'}.{name}"


@dataclass(frozen=True)
class PoolingSettings:
    """name: as make_pooling takes it, None where the folder asks for something else. include_prompt: whether the
    wordpieces of a prompt are pooled, too. width: of the states."""

    name: str | None
    include_prompt: bool = True
    width: int | None = None


def read_pooling(folder: Path, path: str) -> PoolingSettings | None:
    """What the config.json of a Pooling module says, None if there is none.

    folder (Path): of the encoder. path (str): of the module in it.
    """
    file = inside(folder, path) / "config.json"
    if not file.is_file():
        return None
    config = Values(file)
    modes = [mode for key, mode in POOLING_FLAGS.items() if config.get(key, bool, False, "true or false")]
    given = config.content.get("pooling_mode")
    if given is not None:
        named = [given] if isinstance(given, str) else given
        if not isinstance(named, list) or not all(isinstance(mode, str) for mode in named):
            raise config.unexpected("pooling_mode", "a string, or a list of them")
        modes = [POOLING_MODES[mode] for mode in named] if set(named) <= set(POOLING_MODES) else []
    widths = [config.get(key, int, None, "a whole number", least=1) for key in WIDTHS]
    include = config.get("include_prompt", bool, True, "true or false")
    return PoolingSettings("+".join(modes) or None, include is not False, next(filter(None, widths), None))


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

    RAISES (ValueError): if it is no JSON.
    """
    if not file.is_file():
        return missing
    try:
        return json.loads(file.read_text(encoding="utf8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=error)) from error


def read_object(file: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if there is no such file.

    RAISES (ValueError): if it is no JSON, or no object.
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


def _read_limits(folder: Path) -> Values:
    return Values(next(iter(sorted(folder.glob("sentence_*_config.json"))), folder / "sentence_bert_config.json"))
