"""What a folder in the layout of sentence-transformers says about its encoder, beside the weights."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import Errors
from ..types import EncoderSettings

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
POOLING_MODES = {**{name: name for name in POOLING_FLAGS.values()}, "mean_sqrt_len_tokens": "mean_sqrt_len"}


def read_settings(folder: Path, name: str) -> EncoderSettings:
    """Read modules.json and the files it points to; a folder without it is that of a plain encoder.

    folder (Path): the encoder's folder.
    name (str): the name it was asked for by.
    RETURNS (EncoderSettings): the settings, max_length as far as the folder limits it.
    RAISES (ValueError): if a path in modules.json leads out of the folder, or a file says what cannot be.
    """
    modules = read_modules(folder)
    types = [module["type"].rsplit(".", 1)[-1] for module in modules]
    limits = _read_limits(transformer_folder(folder))
    shared = read_json(folder / "config_sentence_transformers.json", {})
    pooling = next((read_pooling(folder, m["path"]) for m in modules if m["type"].endswith("Pooling")), None)
    return EncoderSettings(
        name=name,
        max_length=limits.get("max_seq_length"),
        normalize="Normalize" in types,
        pooling=pooling.name if pooling else None,
        lowercase=bool(limits.get("do_lower_case", False)),
        unknown_modules=tuple(kind for kind in types if kind not in KNOWN_MODULES),
        prompts={str(key): str(prompt or "") for key, prompt in (shared.get("prompts") or {}).items()},
        default_prompt_name=str(shared.get("default_prompt_name") or ""),
        truncate_dim=int(shared.get("truncate_dim") or 0),
    )


def transformer_folder(folder: Path) -> Path:
    """Where config.json and the weights are: older folders keep them in a part of their own."""
    for module in read_modules(folder):
        if module["type"].endswith("Transformer"):
            return inside(folder, module["path"])
    return folder


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
    config = read_json(inside(folder, path) / "config.json", None)
    if config is None:
        return None
    modes = [mode for key, mode in POOLING_FLAGS.items() if config.get(key)]
    if "pooling_mode" in config:
        given = config["pooling_mode"]
        named = [given] if isinstance(given, str) else list(given)
        modes = [POOLING_MODES[mode] for mode in named] if set(named) <= set(POOLING_MODES) else []
    width = config.get("embedding_dimension", config.get("word_embedding_dimension"))
    return PoolingSettings("+".join(modes) or None, bool(config.get("include_prompt", True)), width)


def read_modules(folder: Path) -> list[dict[str, str]]:
    """The modules of a sentence encoder, each with its type and its path in the folder; none for a plain encoder.

    RAISES (ValueError): if the file is not of that form.
    """
    file = folder / "modules.json"
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
    except ValueError as error:
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=error)) from error


def inside(folder: Path, path: str) -> Path:
    """A part of a folder.

    RAISES (ValueError): if the path leads out of it.
    """
    inner = (folder / path).resolve()
    if not inner.is_relative_to(folder.resolve()):
        raise ValueError(Errors.UNSAFE_PATH.format(file=folder / "modules.json", path=path))
    return inner


def _read_limits(folder: Path) -> dict[str, Any]:
    file = next(iter(sorted(folder.glob("sentence_*_config.json"))), None)
    return read_json(file, {}) if file else {}
