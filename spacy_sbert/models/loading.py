"""Where an encoder is loaded from, and how its config is read and checked."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import torch
from packaging.version import InvalidVersion, Version
from transformers import CONFIG_MAPPING, AutoConfig, PretrainedConfig

from ..errors import Errors, Warnings, warn
from .folder_files import read_object, unexpected
from .sbert_config import TransformerConfig
from .surroundings import is_from_around
from .transformers_versions import (
    BIDIRECTIONAL,
    CAUSAL,
    INSTALLED,
    ROPE,
    config_overrides,
    ignored_settings,
    takes_texts_for_flags,
)

# A PreTrainedModel
Network: TypeAlias = Any
# A PreTrainedTokenizerBase
Tokenizer: TypeAlias = Any
TRUST = "SPACY_SBERT_TRUST_REMOTE_CODE"
# More layers would be built until memory is full
_MAX_LAYERS = 1000
# Values of a config and their defaults
_ALIKE = (int, int | float, str, list | tuple, dict)
# Encoders with a decoder whose encoder is a class of its own, which sentence-transformers loads,
# too.
ENCODER_PARTS = {
    "t5": "T5EncoderModel",
    "mt5": "MT5EncoderModel",
    "umt5": "UMT5EncoderModel",
    "longt5": "LongT5EncoderModel",
    "switch_transformers": "SwitchTransformersEncoderModel",
}
# Types of models that load and encode, but whose vectors depend on more than the text.
_UNSUITABLE = {"reformer": "draws hashes at random whenever it reads a long text"}
ENCODERS_TO_USE = "Use an encoder of plain text, such as BERT, MPNet, RoBERTa or ModernBERT"
# Keys of a config.json that the computation does not depend on
_METADATA = {
    "architectures",
    "auto_map",
    "dtype",
    "finetuning_task",
    "id2label",
    "label2id",
    "license",
    "model_type",
    "problem_type",
    "sentence_transformers",
    "task_specific_params",
    "torch_dtype",
    "transformers_version",
    "transformers.js_config",
    "use_cache",
    "initializer_range",
    "has_new_head",
}


@dataclass(frozen=True)
class Source:
    """Where an encoder is loaded from, and how.

    folder (Path): with config.json, weights and tokenizer. name (str): what it was asked for by.
    tokenizer_config, transformer_config (dict): the settings. trust (bool): whether code of the
        folder's own may run.
    is_saved (bool): see of.
    """

    folder: Path
    name: str
    tokenizer_config: Mapping[str, Any] = field(default_factory=dict)
    transformer_config: Mapping[str, Any] = field(default_factory=dict)
    trust: bool = False
    is_saved: bool = False

    @classmethod
    def of(cls, folder: Path, name: str, options: TransformerConfig, *, is_saved: bool) -> Source:
        """Return the source of an encoder with the settings of a config.

        is_saved (bool): whether a pipeline was saved with the encoder in the folder; its weights
            are those of Transformers' own class if no code was saved with them.
        RAISES (ValueError): if the folder names code, and the config or the environment variable do
            not allow it.
        """
        asked = options.trust_remote_code
        files = ("config.json", "tokenizer_config.json")
        naming = [file for file in files if read_object(folder / file).get("auto_map")]
        if is_saved and not asked and not any(folder.glob("*.py")):
            naming = []
        # A compiled kernel from the hub
        if "/" in str(options.transformer_config.get("attn_implementation")):
            naming.append("transformer_config")
        if naming and not (asked and os.environ.get(TRUST) == "1"):
            raise ValueError(
                f"The encoder '{name}' comes with Python code of its own ({' and '.join(naming)} "
                f"name it), and trust_remote_code = {str(asked).lower()} in the config is its "
                "author's word, not yours. If you trust it, set trust_remote_code = true and the "
                f"environment variable {TRUST}=1; else use another encoder."
            )
        return cls(
            folder,
            name,
            tokenizer_config=dict(options.tokenizer_config),
            transformer_config=dict(options.transformer_config),
            trust=bool(naming),
            is_saved=is_saved,
        )

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of every from_pretrained."""
        return {"pretrained_model_name_or_path": str(self.folder), "trust_remote_code": self.trust}


def load_config(source: Source) -> PretrainedConfig:
    """Return the config of the transformer.

    RAISES (ValueError): if it is no encoder's, or a setting does not fit.
    """
    file = source.folder / "config.json"
    settings = source.transformer_config
    raw = read_object(file)
    try:
        plain = AutoConfig.from_pretrained(**source.options)
    except Exception as error:
        # Whatever its values lead to
        if is_from_around(error):
            raise
        raise _unreadable(file, raw.get("model_type"), error) from error
    _check_suitable(source, plain)
    _check_file(file, raw, plain)
    _check_settings(settings, plain)
    try:
        return AutoConfig.from_pretrained(**source.options, **{**settings, **config_overrides()})
    except Exception as error:
        # Whatever the values lead to
        if is_from_around(error):
            raise
        raise ValueError(
            Errors.BAD_SETTING.format(setting="transformer_config", reason=in_one_line(error))
        ) from error


def _check_file(file: Path, raw: Mapping[str, Any], config: PretrainedConfig) -> None:
    """Check that a config.json is followed by the installed version; warn of unknown settings.

    config: as that version read it.
    RAISES (ValueError): if it would misread or ignore a setting.
    """
    for key, expected in _misread(raw, config):
        raise unexpected(file, key, raw[key], expected)
    for block, read in blocks(raw, config):
        for setting, needed in ignored_settings(block, read):
            raise ignored_setting(file, setting, block, needed)
    with suppress(InvalidVersion):
        if Version(str(raw.get("transformers_version"))) > INSTALLED:
            _warn_of_unknown(file, raw, config)


def _check_suitable(source: Source, config: PretrainedConfig) -> None:
    """Check that a model encodes a text by itself. RAISES (ValueError): if it does not."""
    reason = _UNSUITABLE.get(config.model_type)
    if reason is None and config.is_encoder_decoder and config.model_type not in ENCODER_PARTS:
        reason = "is an encoder with a decoder (is_encoder_decoder = true)"
    if reason is not None:
        raise ValueError(
            f"The model '{source.name}' ({config.model_type}) {reason}. {ENCODERS_TO_USE}."
        )


def _check_settings(settings: Mapping[str, Any], config: PretrainedConfig) -> None:
    """Check transformer_config. RAISES (ValueError): for a key or value that does not fit."""
    attributes = {name for name in dir(config) if not name.startswith("_")}
    methods = {name for name in attributes if callable(getattr(type(config), name, None))}
    known = (attributes - methods) | set(config.attribute_map) | {"attn_implementation"}
    check_known_keys("transformer_config", settings, known)
    for key in ("dtype", "torch_dtype"):
        if settings.get(key, "float32") not in ("float32", torch.float32):
            expected = "float32. For another one set precision"
            raise bad_setting("transformer_config", key, settings[key], expected)
    for key, expected in _misread(settings, config):
        raise bad_setting("transformer_config", key, settings[key], expected)


def _unreadable(file: Path, model_type: object, error: Exception) -> ValueError:
    """Return the error for a config.json that Transformers cannot read."""
    if model_type == "model2vec":
        return ValueError(
            f"The folder {file.parent} holds a table of model2vec without modules.json. Save it "
            "again by sentence-transformers: "
            "SentenceTransformer(modules=[StaticEmbedding.from_model2vec(folder)]).save(...)."
        )
    if isinstance(model_type, str) and model_type not in CONFIG_MAPPING:
        return ValueError(
            f"The file {file} names the model_type '{model_type}', which transformers {INSTALLED} "
            "does not know. Install a version that does, or use another encoder."
        )
    return ValueError(
        f"Transformers {INSTALLED} cannot read {file} ({in_one_line(error)}). Correct the file."
    )


def _misread(values: Mapping[str, Any], config: PretrainedConfig) -> Iterator[tuple[str, str]]:
    """Yield the settings that would be misread without an error, and what is expected of each.

    For settings that Transformers does not take see `odd_types`.
    """
    for key, value in values.items():
        name = config.attribute_map.get(key, key)
        if "num_hidden_layers" in (key, name) and isinstance(value, int) and value > _MAX_LAYERS:
            yield key, f"at most {_MAX_LAYERS}"
        # The default comes last: a look at that of an old setting has Transformers warn
        may_be_flag = takes_texts_for_flags() and isinstance(value, str)
        if may_be_flag and isinstance(_default(config, name), bool):
            yield key, "true or false"


def odd_types(values: Mapping[str, Any], config: PretrainedConfig) -> Iterator[tuple[str, str]]:
    """Yield the settings that have not the type of their default, and what is expected of each.

    A class may take more types than that: this is no error, but if there is one it is the likely
    cause.
    """
    for key, value in values.items():
        if key in _METADATA or key.endswith("_token_id") or key.startswith("summary_"):
            continue
        default = _default(config, config.attribute_map.get(key, key))
        if not _is_alike(value, default):
            yield key, f"a {type(default).__name__}, such as {default!r}"


def _is_alike(value: object, default: object) -> bool:
    """Return whether a value has the type of a default, or one that is commonly taken for it."""
    if value is None and isinstance(default, bool | list | tuple | dict):
        return True
    kinds: Any = next((kinds for kinds in _ALIKE if isinstance(default, kinds)), None)
    if kinds is None:
        return True
    if isinstance(default, int) and default in (0, 1):
        kinds = int | float
    return isinstance(value, kinds) and isinstance(value, bool) == isinstance(default, bool)


def _default(config: PretrainedConfig, name: str) -> object:
    """Return the default of a setting; None if there is none."""
    kind: Any = type(config)
    # A class of the folder's own may take arguments, and layers may differ in a setting
    with suppress(Exception):
        return getattr(_defaults(kind), name, None)
    return None


@cache
def _defaults(kind: type[PretrainedConfig]) -> PretrainedConfig:
    return kind()


def check_known_keys(setting: str, keys: Iterable[str], known: set[str]) -> None:
    """Check the keys of a setting. RAISES (ValueError): for one that Transformers would ignore."""
    for key in sorted(set(keys) - known):
        near = ""
        matches = difflib.get_close_matches(key, sorted(known), n=3)
        if matches:
            near = f" (did you mean {' or '.join(matches)}?)"
        raise ValueError(
            f"Unknown key '{key}' in {setting}, which Transformers would ignore{near}. Correct it "
            "in the config of the model, or leave it out."
        )


def bad_setting(setting: str, key: str, value: object, expected: str) -> ValueError:
    """Return the error for a value of a setting."""
    return ValueError(
        Errors.BAD_SETTING.format(setting=setting, reason=f"{key} = {value!r}, expected {expected}")
    )


def needs_package(source: Source, part: str, error: BaseException) -> ValueError:
    """Return the error for a part of a folder that needs a package which is missing."""
    return ValueError(
        f"The {part} in {source.folder} needs a package that is not installed or too old: "
        f"{in_one_line(error)}."
    )


def in_one_line(error: BaseException) -> str:
    """Return the class and message of an error, of 300 characters at most."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def ignored_setting(file: Path, setting: str, block: Mapping[str, Any], needed: str) -> ValueError:
    """Return the error for a setting of a config that the installed version does not follow."""
    return ValueError(
        f"{file} asks for {setting} = {block[setting]}, which transformers {INSTALLED} ignores: "
        f"its vectors would be others. Install transformers {needed}."
    )


def blocks(raw: Mapping[str, Any], config: Any) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Yield the config, and the block for texts in that of a model which reads images, too."""
    yield raw, config
    if isinstance(raw.get("text_config"), Mapping):
        yield raw["text_config"], getattr(config, "text_config", None)


def _warn_of_unknown(file: Path, raw: Mapping[str, Any], config: PretrainedConfig) -> None:
    """Warn of settings of a newer version that the installed config class does not know."""
    unknown: list[str] = []
    for block, read in blocks(raw, config):
        known = _known_settings(type(read))
        if known is None:
            continue
        for key, value in block.items():
            is_set = value not in (None, False, [], {})
            if is_set and key not in known and not key.startswith("_"):
                unknown.append(key)
    names = ", ".join(sorted(key for key in unknown if not key.endswith("_token_id")))
    if names:
        text = Warnings.UNKNOWN_SETTINGS.format(
            file=file,
            names=names,
            written=raw.get("transformers_version"),
            installed=INSTALLED,
        )
        warn(text)


def _known_settings(kind: Any) -> set[str] | None:
    """Return the settings that a class of configs knows; None if it takes arguments."""
    try:
        defaults = vars(kind())
    except Exception:
        # A class of the folder's own may take arguments
        return None
    known = {*defaults, *getattr(kind, "attribute_map", {}), *_METADATA}
    known |= {BIDIRECTIONAL, CAUSAL, ROPE}
    for base in kind.__mro__[:-1]:
        known |= set(inspect.signature(base).parameters)
    return known
