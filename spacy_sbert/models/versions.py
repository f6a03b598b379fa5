"""What differs between versions of transformers, and types of its objects."""

import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import transformers
from packaging.version import InvalidVersion, Version
from transformers import PreTrainedTokenizerFast
from transformers.utils import logging

from ..errors import Warnings

Network: TypeAlias = Any  # a PreTrainedModel
Module: TypeAlias = Any  # a part of one
Tokenizer: TypeAlias = Any  # a PreTrainedTokenizerBase
Config: TypeAlias = Any  # a PretrainedConfig


@dataclass
class TransformersObjects:
    """An encoder's tokenizer and network, None until they are loaded, and the settings that they are loaded with.

    The names are those of spacy-transformers, whose model reads them.
    """

    tokenizer: Tokenizer = None
    transformer: Network = None
    vocab_file_contents: bytes | None = None
    _init_tokenizer_config: Mapping[str, Any] = field(default_factory=dict)
    _init_transformer_config: Mapping[str, Any] = field(default_factory=dict)


INSTALLED = Version(transformers.__version__)
DTYPE = "dtype" if INSTALLED.major >= 5 else "torch_dtype"  # the argument of from_pretrained and its like
# The first version that computes as these settings of a config.json ask; earlier ones ignore them.
BIDIRECTIONAL, BIDIRECTIONAL_SINCE = "use_bidirectional_attention", Version("4.56.2")  # of Gemma 3
CAUSAL, CAUSAL_SINCE = "is_causal", Version("5.2")
ROPE, ROPE_SINCE = "rope_parameters", Version("5.0")  # in place of rope_theta and rope_scaling
# Version 5 reads absolute positions of BERT and its like alone; its ESM still has rotary ones.
POSITIONS, POSITIONS_UNTIL = "position_embedding_type", Version("5.0")
RELATIVE = ("relative_key", "relative_key_query")
# Version 5 names this class in every folder whose tokenizer is a tokenizer.json; version 4 has it by another name.
TOKENIZERS_BACKEND = "TokenizersBackend"
# Keys of a config.json that say nothing about the computation.
METADATA = {
    *("architectures", "auto_map", "dtype", "finetuning_task", "id2label", "label2id", "license", "model_type"),
    *("problem_type", "sentence_transformers", "task_specific_params", "torch_dtype", "transformers_version"),
    *("transformers.js_config", "use_cache", "initializer_range", "has_new_head"),
}


def check_honoured(file: Path, raw: Mapping[str, Any], config: Config) -> None:
    """Check that the installed transformers computes as a config asks, as far as the config alone tells.

    file (Path): config.json. raw (dict): what is in it. config: the same as transformers reads it.
    RAISES (ValueError): for a setting that it ignores.
    """
    for block, read in _blocks(raw, config):
        if block.get(BIDIRECTIONAL) and INSTALLED < BIDIRECTIONAL_SINCE:
            raise _ignored(file, BIDIRECTIONAL, block[BIDIRECTIONAL], BIDIRECTIONAL_SINCE)
        rope = block.get(ROPE)
        if isinstance(rope, Mapping) and INSTALLED < ROPE_SINCE and not _is_default_rope(rope, block, read):
            raise _ignored(file, ROPE, rope, ROPE_SINCE)
        if block.get(POSITIONS) in RELATIVE and INSTALLED >= POSITIONS_UNTIL:
            raise _ignored(file, POSITIONS, block[POSITIONS], before=POSITIONS_UNTIL)


def check_causal(file: Path, raw: Mapping[str, Any], network: Network) -> None:
    """Check that attention looks both ways where a config asks for that.

    RAISES (ValueError): if it is causal in the installed transformers.
    """
    asked = any(block.get(CAUSAL) is False for block, _ in _blocks(raw, None))
    if asked and INSTALLED < CAUSAL_SINCE and any(getattr(part, CAUSAL, False) for part in network.modules()):
        raise _ignored(file, CAUSAL, False, CAUSAL_SINCE)


def warn_of_unknown(file: Path, raw: Mapping[str, Any], config: Config) -> None:
    """Warn of settings that a newer transformers wrote, and that the installed configuration class does not know."""
    try:
        is_newer = Version(str(raw.get("transformers_version"))) > INSTALLED
    except InvalidVersion:
        return
    unknown = sorted(key for block, read in _blocks(raw, config) for key in _unknown_keys(block, read))
    if is_newer and unknown:
        written, names = raw["transformers_version"], ", ".join(unknown)
        text = Warnings.UNKNOWN_SETTINGS.format(file=file, names=names, written=written, installed=INSTALLED)
        warnings.warn(text, stacklevel=2)


@contextmanager
def without_bars() -> Iterator[None]:
    """Load or save weights without the bar that version 5 draws for each model."""
    drawn = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if drawn:
            logging.enable_progress_bar()


def recompute_states(model: Network) -> None:
    """Have a model keep the inputs of its layers alone in training: gradient checkpointing, renamed in version 5."""
    settings = {"use_reentrant": False}
    if hasattr(model, "activation_checkpointing_enable"):
        model.activation_checkpointing_enable(activation_checkpointing_kwargs=settings)
    else:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=settings)


def recomputes_states(model: Network) -> bool:
    """Return whether recompute_states was called for a model."""
    name = "is_activation_checkpointing"
    return bool(getattr(model, name if hasattr(type(model), name) else "is_gradient_checkpointing"))


def reads_as_fast(raw: Mapping[str, Any]) -> bool:
    """Return whether a tokenizer is of the class that version 5 names, and the installed one knows by another name."""
    return raw.get("tokenizer_class") == TOKENIZERS_BACKEND and not hasattr(transformers, TOKENIZERS_BACKEND)


def load_fast(folder: Path, settings: Mapping[str, Any]) -> Tokenizer:
    """Return the tokenizer of a folder's tokenizer.json."""
    return PreTrainedTokenizerFast.from_pretrained(str(folder), **settings)


def _blocks(raw: Mapping[str, Any], config: Config) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Yield the config, and the block for texts in that of a model which reads images, too."""
    yield raw, config
    if isinstance(raw.get("text_config"), Mapping):
        yield raw["text_config"], getattr(config, "text_config", None)


def _is_default_rope(rope: Mapping[str, Any], block: Mapping[str, Any], config: Config) -> bool:
    """Return whether rotary positions are those that version 4 takes, from its own settings or by default."""
    blocks = [rope, *(one for one in rope.values() if isinstance(one, Mapping))]
    if any(one.get("rope_type", "default") != "default" for one in blocks) and not block.get("rope_scaling"):
        return False
    given = {float(one["rope_theta"]) for one in blocks if isinstance(one.get("rope_theta"), int | float)}
    names = [name for name in vars(config) if name.endswith("rope_theta")] if config is not None else []
    return given == {float(getattr(config, name)) for name in names}


def _unknown_keys(block: Mapping[str, Any], config: Config) -> Iterator[str]:
    kind = type(config)
    try:
        known = {*vars(kind()), *getattr(kind, "attribute_map", {}), *METADATA, BIDIRECTIONAL, CAUSAL, ROPE}
    except Exception:  # a class of the folder's own may take arguments
        return
    for one in kind.__mro__[:-1]:
        known |= {*inspect.signature(one).parameters}
    for key, value in block.items():
        says_nothing = value in (None, False, [], {}) or key.startswith("_") or key.endswith("_token_id")
        if key not in known and not says_nothing:
            yield key


def _ignored(
    file: Path, setting: str, given: object, needed: Version | None = None, *, before: Version | None = None
) -> ValueError:
    versions = f"transformers {needed} or later" if before is None else f"a transformers before {before}"
    told = {"setting": setting, "given": given, "installed": INSTALLED, "versions": versions}
    return ValueError(
        (
            "{file} asks for {setting} = {given}, which transformers {installed} ignores: its vectors would be "
            "others. Install {versions}."
        ).format(file=file, **told)
    )
