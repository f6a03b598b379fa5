"""Load the tokenizer of an encoder, and check its files and settings."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import transformers
from transformers.tokenization_utils_base import PreTrainedTokenizerBase
from transformers.utils import is_protobuf_available, is_sentencepiece_available

from ..errors import Errors, Warnings, warn
from .folder_files import read_object, unexpected
from .loading import (
    Source,
    Tokenizer,
    bad_setting,
    check_known_keys,
    in_one_line,
    needs_package,
)
from .surroundings import is_from_around, unmasked
from .tokenizer_keys import FOLLOWED, REFUSED, WITHOUT_EFFECT
from .transformers_versions import fast_tokenizer_class, is_backend_of_version_5

_CONFIG_FILE = "tokenizer_config.json"
_TOKENS_FILE = "special_tokens_map.json"
_ADDED_FILE = "added_tokens.json"
# Settings of every tokenizer, beside the arguments that its class names
_EVERY_TOKENIZER_TAKES = {
    "use_fast",
    "from_slow",
    "tokenizer_type",
    "revision",
    "cache_dir",
    "force_download",
    "local_files_only",
    "token",
    "proxies",
    "model_max_length",
    "max_len",
    "padding_side",
    "truncation_side",
    "chat_template",
    "model_input_names",
    "clean_up_tokenization_spaces",
    "split_special_tokens",
    "additional_special_tokens",
    "extra_special_tokens",
    "name_or_path",
    *PreTrainedTokenizerBase.SPECIAL_TOKENS_ATTRIBUTES,
}


def load_tokenizer(source: Source) -> Tokenizer:
    """Return the tokenizer.

    RAISES (ValueError): if one of its files is damaged, or a setting does not fit.
    """
    raw = read_object(source.folder / _CONFIG_FILE)
    tokens = read_object(source.folder / _TOKENS_FILE)
    # To find out whether it is damaged
    read_object(source.folder / _ADDED_FILE)
    _check_followed(source, raw)
    tokenizer = _make(source, raw)
    arguments = _arguments(type(tokenizer))
    _check_flags(source, raw, arguments)
    own = arguments.keys() | set(tokenizer.SPECIAL_TOKENS_ATTRIBUTES)
    of_folder = (raw.keys() & FOLLOWED) - REFUSED.keys()
    known = own | _EVERY_TOKENIZER_TAKES | of_folder
    check_known_keys("tokenizer_config", source.tokenizer_config, known)
    _warn_of_unknown_keys(source.folder, raw, tokens, own)
    return tokenizer


def _check_followed(source: Source, raw: Mapping[str, Any]) -> None:
    """Check the settings that no tokenizer follows, and the limit of the folder.

    RAISES (ValueError): if one does not fit.
    """
    settings = source.tokenizer_config
    for key in sorted(REFUSED.keys() & settings.keys()):
        reason = f"{key} = {settings[key]!r} is not followed: {REFUSED[key]}"
        raise ValueError(Errors.BAD_SETTING.format(setting="tokenizer_config", reason=reason))
    limit = raw.get("model_max_length")
    if limit is None:
        return
    is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
    if not is_number or limit < 1:
        file = source.folder / _CONFIG_FILE
        raise unexpected(file, "model_max_length", limit, "a whole number above 0")


def _make(source: Source, raw: Mapping[str, Any]) -> Tokenizer:
    """Return the tokenizer as its class reads it. RAISES (ValueError): if it does not."""
    try:
        kind = _tokenizer_class(source, str(raw.get("tokenizer_class")))
        tokenizer = kind.from_pretrained(**source.options, **source.tokenizer_config)
        tokenizer("a")
    except BaseException as raised:
        # Whatever files and settings lead to; a panic in Rust is not an Exception
        error = unmasked(raised)
        if isinstance(error, ImportError):
            part = f"tokenizer ({raw.get('tokenizer_class')})"
            raise needs_package(source, part, error) from error
        is_panic = type(error).__name__ == "PanicException"
        if is_from_around(error) or not (isinstance(error, Exception) or is_panic):
            raise error from error.__cause__
        raise _unreadable(source, in_one_line(error)) from error
    return tokenizer


def _unreadable(source: Source, reason: str) -> ValueError:
    """Return the error for files or settings that the class of a tokenizer cannot read."""
    if source.tokenizer_config:
        return ValueError(Errors.BAD_SETTING.format(setting="tokenizer_config", reason=reason))
    content = source.folder / "tokenizer.json"
    if content.is_file():
        return ValueError(Errors.BAD_TOKENIZER.format(folder=content, reason=reason))
    _check_sentencepiece(source.folder)
    return ValueError(Errors.BAD_TOKENIZER.format(folder=source.folder, reason=reason))


def _check_flags(source: Source, raw: Mapping[str, Any], arguments: Mapping[str, object]) -> None:
    """Check that flags are true or false. RAISES (ValueError): if one is not."""
    settings = source.tokenizer_config
    flags = [key for key, default in arguments.items() if isinstance(default, bool)]
    for key in flags:
        if not isinstance(raw.get(key, True), bool):
            raise unexpected(source.folder / _CONFIG_FILE, key, raw[key], "true or false")
        if not isinstance(settings.get(key, True), bool):
            raise bad_setting("tokenizer_config", key, settings[key], "true or false")


def _warn_of_unknown_keys(
    folder: Path, raw: Mapping[str, Any], tokens: Mapping[str, Any], own: set[str]
) -> None:
    named_tokens = raw.get("extra_special_tokens")
    known = own | FOLLOWED | WITHOUT_EFFECT.keys()
    if isinstance(named_tokens, dict):
        known |= set(named_tokens)
    for name, keys in ((_CONFIG_FILE, raw), (_TOKENS_FILE, tokens)):
        unknown = ", ".join(sorted(set(keys) - known))
        if unknown:
            warn(Warnings.UNKNOWN_TOKENIZER_KEYS.format(file=folder / name, names=unknown))


def _check_sentencepiece(folder: Path) -> None:
    """Check that the packages are here that read a tokenizer of SentencePiece.

    RAISES (ValueError): if one is not.
    """
    packages = {"sentencepiece": is_sentencepiece_available(), "protobuf": is_protobuf_available()}
    missing = " ".join(name for name, is_here in packages.items() if not is_here)
    models = sorted(file.name for file in folder.glob("*.model"))
    if models and missing:
        raise ValueError(
            f"The tokenizer in {folder} is {models[0]}, of SentencePiece, without tokenizer.json. "
            f"Install what reads it (pip install {missing}), or add the tokenizer.json of the same "
            "encoder."
        )


def _tokenizer_class(source: Source, name: str) -> Any:
    """Return the class that reads a folder: in version 4 the fast one of a name.

    AutoTokenizer finds the others.
    """
    if is_backend_of_version_5(name):
        return transformers.PreTrainedTokenizerFast
    if source.trust or source.tokenizer_config:
        return transformers.AutoTokenizer
    return fast_tokenizer_class(name) or transformers.AutoTokenizer


def _arguments(kind: type) -> dict[str, object]:
    """Return the arguments that a tokenizer's classes name, slow and fast, and their defaults."""
    slow = getattr(kind, "slow_tokenizer_class", None)
    fast = getattr(transformers, f"{kind.__name__}Fast", None)
    kinds = [each for each in (kind, slow, fast) if isinstance(each, type)]
    classes = [base for each in kinds for base in each.__mro__]
    arguments: dict[str, object] = {}
    # From the most general class to the tokenizer's own, whose defaults win
    for base in reversed(classes):
        if base is object or "__init__" not in vars(base):
            continue
        for each in inspect.signature(vars(base)["__init__"]).parameters.values():
            if each.kind is not each.VAR_KEYWORD and each.name != "self":
                arguments[each.name] = each.default
    return arguments
