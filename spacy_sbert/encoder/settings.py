"""What a folder in the layout of sentence-transformers says about its encoder, beside the weights."""

import json
from pathlib import Path
from typing import Any

from ..errors import Errors
from ..types import EncoderSettings

KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")
POOLING_MODES = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_cls_token": "cls",
}


def read_settings(folder: Path, name: str) -> EncoderSettings:
    """Read modules.json and the files it points to; a folder without it is that of a plain encoder.

    folder (Path): the encoder's folder.
    name (str): the name it was asked for by.
    RETURNS (EncoderSettings): the settings, max_length as far as the folder limits it.
    RAISES (ValueError): if a path in modules.json leads out of the folder.
    """
    modules = _read_modules(folder)
    types = [module["type"].rsplit(".", 1)[-1] for module in modules]
    limits = _read_limits(transformer_folder(folder))
    return EncoderSettings(
        name=name,
        max_length=limits.get("max_seq_length"),
        normalize="Normalize" in types,
        pooling=_read_pooling(folder, modules),
        lowercase=bool(limits.get("do_lower_case", False)),
        unknown_modules=tuple(kind for kind in types if kind not in KNOWN_MODULES),
    )


def transformer_folder(folder: Path) -> Path:
    """Where config.json and the weights are: older folders keep them in a part of their own."""
    for module in _read_modules(folder):
        if module["type"].endswith("Transformer"):
            return _inside(folder, module["path"])
    return folder


def _read_modules(folder: Path) -> list[dict[str, Any]]:
    file = folder / "modules.json"
    return json.loads(file.read_text(encoding="utf8")) if file.is_file() else []


def _read_limits(folder: Path) -> dict[str, Any]:
    file = next(iter(sorted(folder.glob("sentence_*_config.json"))), None)
    return json.loads(file.read_text(encoding="utf8")) if file else {}


def _read_pooling(folder: Path, modules: list[dict[str, Any]]) -> str | None:
    for module in modules:
        file = _inside(folder, module["path"]) / "config.json"
        if module["type"].endswith("Pooling") and file.is_file():
            config = json.loads(file.read_text(encoding="utf8"))
            modes = [mode for key, mode in POOLING_MODES.items() if config.get(key)]
            if config.get("pooling_mode") in POOLING_MODES.values():
                modes = [config["pooling_mode"]]
            return modes[0] if len(modes) == 1 else None
    return None


def _inside(folder: Path, path: str) -> Path:
    inner = (folder / path).resolve()
    if not inner.is_relative_to(folder.resolve()):
        raise ValueError(Errors.UNSAFE_PATH.format(file=folder / "modules.json", path=path))
    return inner
