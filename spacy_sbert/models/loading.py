"""Load an encoder from a folder in the format of sentence-transformers or Hugging Face."""

import difflib
import inspect
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import tokenizers
import torch
import transformers
from packaging.version import InvalidVersion, Version
from transformers import (
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedTokenizerFast,
)
from transformers.tokenization_utils_base import PreTrainedTokenizerBase
from transformers.utils import logging

from ..errors import Errors, Warnings
from .sbert_config import check_config, read_object, unexpected

Network: TypeAlias = Any  # a PreTrainedModel
Tokenizer: TypeAlias = Any  # a PreTrainedTokenizerBase
_AutoClass = type[AutoModel] | type[AutoModelForSequenceClassification]
_CLASSES = {AutoModel: MODEL_MAPPING, AutoModelForSequenceClassification: MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING}
_NO_LIMIT = 1_000_000  # tokenizers without a limit have 1e30
_TOKENIZER_FILES = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
_TOKENIZER_KEYS = {  # of from_pretrained, and what each tokenizer takes beside the arguments that it names
    *("use_fast", "from_slow", "tokenizer_type", "subfolder", "revision", "cache_dir", "force_download"),
    *("local_files_only", "token", "proxies", "model_max_length", "max_len", "padding_side", "truncation_side"),
    *("chat_template", "model_input_names", "clean_up_tokenization_spaces", "split_special_tokens"),
    *("additional_special_tokens", "extra_special_tokens", "name_or_path"),
    *PreTrainedTokenizerBase.SPECIAL_TOKENS_ATTRIBUTES,
}


@dataclass(frozen=True)
class Source:
    """Where an encoder is loaded from, and how.

    folder (Path): with config.json, weights and tokenizer. name (str): what it was asked for by.
    tokenizer_config, transformer_config (dict): the settings. trust (bool): whether code of the folder's own may run.
    """

    folder: Path
    name: str
    tokenizer_config: Mapping[str, Any]
    transformer_config: Mapping[str, Any]
    trust: bool

    @property
    def cuts_layers(self) -> bool:
        """Whether the settings ask for other layers than the folder has."""
        return any("layers" in key for key in self.transformer_config)

    @property
    def config_file(self) -> Path:
        return self.folder / "config.json"

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of every from_pretrained."""
        return {"pretrained_model_name_or_path": str(self.folder), "trust_remote_code": self.trust}


def load_config(source: Source) -> PretrainedConfig:
    """Return the config of the transformer.

    RAISES (ValueError): if it is damaged, not that of an encoder, or a setting is unknown or of another type.
    """
    file, settings = source.config_file, dict(source.transformer_config)
    raw = read_object(file)
    try:
        plain = AutoConfig.from_pretrained(**source.options)
    except Exception as error:  # whatever its values lead to
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=_in_one_line(error))) from error
    if plain.is_encoder_decoder:
        raise ValueError(
            f"The model '{source.name}' ({plain.model_type}) is an encoder with a decoder. Use an encoder only, "
            "such as BERT, MPNet or RoBERTa."
        )
    check_config(raw, plain, partial(unexpected, file))
    _check_honored(file, raw, plain)
    _warn_of_unknown(file, raw, plain)
    known = {key for key in dir(plain) if not key.startswith("_") and not callable(getattr(type(plain), key, None))}
    _check_known("transformer_config", settings, known | set(plain.attribute_map) | {"attn_implementation"})
    check_config(settings, plain, partial(_bad_setting, "transformer_config"))
    try:
        return AutoConfig.from_pretrained(**source.options, **{**settings, "return_dict": True})
    except Exception as error:  # whatever the values lead to
        raise ValueError(Errors.BAD_SETTING.format(setting="transformer_config", reason=_in_one_line(error))) from error


def load_tokenizer(source: Source) -> Tokenizer:
    """Return the tokenizer.

    RAISES (ValueError): if one of its files is damaged, or a setting is unknown or does not fit.
    """
    settings, file = dict(source.tokenizer_config), source.folder / _TOKENIZER_FILES[0]
    raw, *_ = [read_object(source.folder / name) for name in _TOKENIZER_FILES]
    limit = raw.get("model_max_length")
    if limit is not None and (not isinstance(limit, int | float) or isinstance(limit, bool) or limit < 1):
        raise unexpected(file, "model_max_length", limit, "a whole number above 0")
    named = getattr(transformers, str(raw.get("tokenizer_class")), None)
    if isinstance(named, type):  # before it fails in other words
        _check_flags(named, file, raw, settings)
    # Version 5 names this class in every folder with a tokenizer.json; version 4 has it by another name.
    is_fast = raw.get("tokenizer_class") == "TokenizersBackend" and not hasattr(transformers, "TokenizersBackend")
    kind = PreTrainedTokenizerFast if is_fast else AutoTokenizer
    try:
        tokenizer = kind.from_pretrained(**source.options, **settings)
        tokenizer("a")
    except BaseException as error:  # whatever files and settings lead to; a panic in Rust is not an Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        _check_fast_tokenizer(source.folder / "tokenizer.json")
        reason = _in_one_line(error)
        if settings:
            raise ValueError(Errors.BAD_SETTING.format(setting="tokenizer_config", reason=reason)) from error
        raise ValueError(Errors.BAD_TOKENIZER.format(folder=source.folder, reason=reason)) from error
    _check_flags(type(tokenizer), file, raw, settings)
    _check_known("tokenizer_config", settings, _arguments(type(tokenizer)).keys() | _TOKENIZER_KEYS | raw.keys())
    return tokenizer


def _check_fast_tokenizer(file: Path) -> None:
    """Raise a ValueError that names the file of a fast tokenizer, if it is there and cannot be read."""
    if file.is_file():
        try:
            tokenizers.Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises no other type
            raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=_in_one_line(error))) from error


def _check_flags(kind: type, file: Path, raw: Mapping[str, object], settings: Mapping[str, object]) -> None:
    """Check that settings of a tokenizer whose default is true or false are one of them."""
    for key in [key for key, default in _arguments(kind).items() if isinstance(default, bool)]:
        if not isinstance(raw.get(key, True), bool):
            raise unexpected(file, key, raw[key], "true or false")
        if not isinstance(settings.get(key, True), bool):
            raise _bad_setting("tokenizer_config", key, settings[key], "true or false")


def _arguments(kind: type) -> dict[str, object]:
    """Return the arguments that a tokenizer's classes name, slow and fast, and their defaults."""
    others = [getattr(kind, "slow_tokenizer_class", None), getattr(transformers, f"{kind.__name__}Fast", None)]
    classes = [base for each in (kind, *others) if isinstance(each, type) for base in each.__mro__]
    makers = [vars(base)["__init__"] for base in classes if base is not object and "__init__" in vars(base)]
    named = [each for make in reversed(makers) for each in inspect.signature(make).parameters.values()]
    return {each.name: each.default for each in named if each.kind is not each.VAR_KEYWORD and each.name != "self"}


def check_vocabulary(source: Source, tokenizer: Tokenizer, model: Network) -> None:
    """Check that a tokenizer has about as many wordpieces as the encoder; a few are often left unused.

    RAISES (ValueError): if it is another one's, or cut.
    """
    ids = tokenizer.get_vocab().values()
    known, rows = max(ids, default=-1) + 1, model.get_input_embeddings().weight.shape[0]
    if len(ids) < 0.9 * rows or known > 2 * rows + 1000:
        reason = f"it has {len(ids)} wordpieces with ids below {known}, the encoder has {rows}"
        raise ValueError(Errors.BAD_TOKENIZER.format(folder=source.folder, reason=reason))


def load_weights(
    source: Source, auto_class: _AutoClass, config: PretrainedConfig
) -> tuple[Network, dict[str, list[str]]]:
    """Return a model, and what Transformers reports of its loading.

    auto_class: AutoModel or AutoModelForSequenceClassification. config: see load_config.
    RAISES (ValueError): if the weights are damaged, or their shapes are not those of config.json.
    """
    # The Auto class finds the same class, but imports the configs of all models that it knows first.
    own: Any = None if source.trust else _CLASSES[auto_class].get(type(config), None)
    kind = own if getattr(own, "config_class", None) is type(config) else auto_class
    try:
        with without_bars():
            loaded = kind.from_pretrained(**source.options, config=config, output_loading_info=True)
    except Exception as error:  # whatever config and weights lead to
        raise _unfit(source, _in_one_line(error)) from error
    _check_causal(source.config_file, loaded[0])
    return loaded


def try_once(source: Source, model: Network, tokenizer: Tokenizer, texts: Sequence[str]) -> None:
    """Encode a text, or a pair, as the first use would.

    RAISES (ValueError): if that fails, or gives numbers that are not finite.
    """
    inputs = dict(tokenizer(*texts, return_tensors="pt"))
    if not inputs["input_ids"].numel():
        raise ValueError(Errors.BAD_TOKENIZER.format(folder=source.folder, reason=f"no wordpiece in {texts}"))
    if "token_type_ids" in inputs and not inputs["token_type_ids"].any():
        del inputs["token_type_ids"]  # some encoders have none
    try:
        with torch.no_grad():
            is_finite = bool(torch.isfinite(model(**inputs)[0]).all())
    except Exception as error:  # whatever config and weights lead to
        raise _unfit(source, _in_one_line(error)) from error
    if not is_finite:
        raise _unfit(source, "its states are not finite")


def room_for_text(source: Source, tokenizer: Tokenizer, model: Network, max_length: int | None) -> int | None:
    """Return the most wordpieces of a row: of the folder, the positions, or the tokenizer; None for no limit.

    RAISES (ValueError): if it leaves no room beside the special tokens.
    """
    of_tokenizer = int(tokenizer.model_max_length) if tokenizer.model_max_length < _NO_LIMIT else None
    limit = min(filter(None, (max_length, position_limit(model), of_tokenizer)), default=None)
    n_special = tokenizer.num_special_tokens_to_add()
    if limit is not None and limit <= n_special:
        raise ValueError(
            f"The encoder in {source.folder} is limited to {limit} wordpieces (max_seq_length, "
            f"model_max_length or the number of its positions), of which {n_special} are special tokens: no "
            f"text fits. Expected more than {n_special}."
        )
    return limit


def position_limit(transformer: Network) -> int | None:
    """Return how many positions the encoder has; RoBERTa and its like count theirs from padding_idx + 1 on."""
    encoder = getattr(transformer, "base_model", transformer)  # without the head of a classifier
    positions = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    if positions is not None and hasattr(positions, "num_embeddings"):
        skipped = 0 if positions.padding_idx is None else positions.padding_idx + 1
        return positions.num_embeddings - skipped
    limit = getattr(transformer.config, "max_position_embeddings", None)
    return limit if limit and limit > 0 else None  # XLNet has no limit, and -1


def _check_known(setting: str, keys: Iterable[str], known: set[str]) -> None:
    for key in sorted(set(keys) - known):
        matches = " or ".join(difflib.get_close_matches(key, sorted(known), n=3))
        near = f" (did you mean {matches}?)" if matches else ""
        raise ValueError(
            f"Unknown key '{key}' in {setting}, which Transformers would ignore{near}. Correct it in the "
            "config of the model, or leave it out."
        )


def _bad_setting(setting: str, key: str, value: object, expected: str) -> ValueError:
    return ValueError(Errors.BAD_SETTING.format(setting=setting, reason=f"{key} = {value!r}, expected {expected}"))


def _unfit(source: Source, reason: str) -> ValueError:
    return ValueError(
        f"The weights in {source.folder} and the file {source.config_file} do not make an encoder ({reason}). "
        "Download the encoder again, or correct config.json."
    )


def _in_one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def check_architecture(model: Network, config: PretrainedConfig, folder: Path) -> None:
    """Check that config.json names a class of the encoder's family, such as BertForMaskedLM for a BertModel.

    RAISES (ValueError): if it names another one, for which Transformers' stock class would give other states.
    """
    family = type(model).__name__.removesuffix("Model").removesuffix("ForSequenceClassification")
    names = config.architectures or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise unexpected(folder / "config.json", "architectures", names, "a list of strings")
    for name in names:
        stock = getattr(transformers, name, None)
        is_same = stock is not None and getattr(stock, "config_class", None) is type(model.config)
        if not is_same and not name.startswith(family):
            raise ValueError(
                f"The file {folder / 'config.json'} names the architecture {name}, for which Transformers "
                f"would load a class that makes other vectors: expected {family}Model or the like. Use another "
                "encoder, or correct architectures or model_type in that file."
            )


# Buffers that are computed, and that some versions of Transformers saved with the weights.
_BUFFERS = ("position_ids", "token_type_ids", "inv_freq", "masked_bias", ".attn.bias", "relative_position_index")


def check_weights(model: Network, loading: Mapping[str, Any], folder: Path, *, head: bool, cut: bool) -> None:
    """Compare the names of the weights in a folder with those that the model has.

    A pooler without weights is removed. A head that the model does not have, or whose classifier is still to be
    trained, is not a part of the encoder.

    loading (dict): see load_weights. head (bool): whether the folder should have the classifier's head.
    cut (bool): whether settings ask for fewer layers.
    RAISES (ValueError): if weights are missing, or the encoder has no place for some.
    """
    encoder = model.base_model
    prefix = f"{encoder.base_model_prefix}."
    parts = {
        name.split(".")[0] for named in (encoder.named_children(), encoder.named_parameters()) for name, _ in named
    }

    def part_of(key: str) -> str | None:
        """Return the part of the encoder that a weight belongs to; None if to none."""
        part = key.removeprefix(prefix).split(".")[0]
        return part if part in parts or key.startswith(prefix) else None

    missing = [key for key in loading["missing_keys"] if head or encoder is model or part_of(key)]
    has_own_pooler = "add_pooling_layer" in inspect.signature(type(model).__init__).parameters
    if not head and (encoder is not model or has_own_pooler):  # with a new head a new pooler is trained
        if encoder is model and any(part_of(key) == "pooler" for key in missing):
            model.pooler = None
        missing = [key for key in missing if part_of(key) != "pooler"]
    left = [] if cut else [key for key in loading["unexpected_keys"] if part_of(key) not in (None, "pooler")]
    left = [key for key in left if not key.endswith(_BUFFERS)]
    if missing:
        raise ValueError(
            f"The weights in {folder} lack {_first_names(missing)}, which config.json asks for, and which would be "
            "random. Download the encoder again, or correct config.json."
        )
    if left:
        raise ValueError(
            f"The weights in {folder} hold {_first_names(left)}, which the encoder that config.json describes has no "
            "place for. Correct config.json; for fewer layers set num_hidden_layers in transformer_config."
        )


def _first_names(keys: list[str]) -> str:
    return ", ".join(sorted(keys)[:3]) + (" and others" if len(keys) > 3 else "")


TRUST = "SPACY_SBERT_TRUST_REMOTE_CODE"


def may_run(folder: Path, settings: Mapping[str, Any], *, name: str, asked: bool, is_saved: bool) -> bool:
    """Return whether Transformers should run code that a folder brings, or names; False if there is none.

    A config's trust_remote_code = true is its author's word; the environment variable is that of who runs it.

    settings (dict): the transformer_config. name (str): of the encoder. asked (bool): trust_remote_code.
    is_saved (bool): whether a pipeline was saved with the encoder in the folder; its weights are those of Transformers'
        own class if no code was saved with them.
    RAISES (ValueError): if there is code that may not run. Transformers' own class is not used instead.
    """
    naming = [file for file in ("config.json", "tokenizer_config.json") if read_object(folder / file).get("auto_map")]
    if is_saved and not asked and not any(folder.glob("*.py")):
        naming = []
    if "/" in str(settings.get("attn_implementation")):  # a compiled kernel from the hub
        naming.append("transformer_config")
    if not naming:
        return False
    if asked and os.environ.get(TRUST) == "1":
        return True
    raise ValueError(
        f"The encoder '{name}' comes with Python code of its own ({' and '.join(naming)} name it), which is "
        f"not run: the config says trust_remote_code = {str(asked).lower()}, and that is its author's word, "
        f"not yours. If you trust the code, set trust_remote_code = true and the environment variable {TRUST}=1; "
        "else use another encoder."
    )


def freeze(network: Network, names: Sequence[str]) -> None:
    """Take parameters out of training.

    names (Sequence[str]): of parameters, or of the modules that hold them, such as "embeddings".
    RAISES (ValueError): if there are none of that name.
    """
    for prefix in names:
        named = [p for name, p in network.named_parameters() if f"{name}.".startswith(f"{prefix}.")]
        if not named:
            modules = sorted({name.rsplit(".", 1)[0] for name, _ in network.named_parameters()})
            raise ValueError(
                f"Cannot freeze '{prefix}': the transformer has no such parameter or module. It has "
                f"{', '.join(modules)}."
            )
        for parameter in named:
            parameter.requires_grad_(False)


# What differs between versions of Transformers

INSTALLED = Version(transformers.__version__)
_BIDIRECTIONAL, _CAUSAL, _ROPE = "use_bidirectional_attention", "is_causal", "rope_parameters"
_METADATA = {  # keys of a config.json that the computation does not depend on
    *("architectures", "auto_map", "dtype", "finetuning_task", "id2label", "label2id", "license", "model_type"),
    *("problem_type", "sentence_transformers", "task_specific_params", "torch_dtype", "transformers_version"),
    *("transformers.js_config", "use_cache", "initializer_range", "has_new_head"),
}


def _check_honored(file: Path, raw: Mapping[str, Any], config: PretrainedConfig) -> None:
    """Check that the installed version computes as a config asks.

    RAISES (ValueError): for a setting that it ignores.
    """
    for block, read in _blocks(raw, config):
        if block.get(_BIDIRECTIONAL) and Version("4.56.2") > INSTALLED:  # of Gemma 3
            raise _ignored(file, _BIDIRECTIONAL, block[_BIDIRECTIONAL], "4.56.2 or later")
        rope = block.get(_ROPE)  # in place of rope_theta and rope_scaling
        if isinstance(rope, Mapping) and Version("5.0") > INSTALLED and not _is_default_rope(rope, block, read):
            raise _ignored(file, _ROPE, rope, "5.0 or later")
        positions = block.get("position_embedding_type")
        if positions in ("relative_key", "relative_key_query") and Version("5.0") <= INSTALLED:
            raise _ignored(file, "position_embedding_type", positions, "before 5.0")


def _check_causal(file: Path, network: Network) -> None:
    """Check that attention looks both ways if the config asks for that. RAISES (ValueError): if it does not."""
    is_asked = any(block.get(_CAUSAL) is False for block, _ in _blocks(read_object(file), None))
    if is_asked and Version("5.2") > INSTALLED and any(getattr(part, _CAUSAL, False) for part in network.modules()):
        raise _ignored(file, _CAUSAL, False, "5.2 or later")


def _ignored(file: Path, setting: str, value: object, versions: str) -> ValueError:
    needed = f"a transformers {versions}" if versions.startswith("before") else f"transformers {versions}"
    return ValueError(
        f"{file} asks for {setting} = {value}, which transformers {INSTALLED} ignores: its vectors would be "
        f"others. Install {needed}."
    )


def _warn_of_unknown(file: Path, raw: Mapping[str, Any], config: PretrainedConfig) -> None:
    """Warn of settings that a newer version wrote, and that the installed config class does not know."""
    try:
        is_newer = Version(str(raw.get("transformers_version"))) > INSTALLED
    except InvalidVersion:
        return
    unknown = (
        sorted(key for block, read in _blocks(raw, config) for key in _unknown_keys(block, read)) if is_newer else []
    )
    if unknown:
        written, names = raw["transformers_version"], ", ".join(unknown)
        text = Warnings.UNKNOWN_SETTINGS.format(file=file, names=names, written=written, installed=INSTALLED)
        warnings.warn(text, stacklevel=2)


def _blocks(raw: Mapping[str, Any], config: Any) -> Iterator[tuple[Mapping[str, Any], Any]]:  # noqa: ANN401 (of Hugging Face)
    """Yield the config, and the block for texts in that of a model which reads images, too."""
    yield raw, config
    if isinstance(raw.get("text_config"), Mapping):
        yield raw["text_config"], getattr(config, "text_config", None)


def _is_default_rope(rope: Mapping[str, Any], block: Mapping[str, Any], config: PretrainedConfig | None) -> bool:
    """Return whether rotary positions are those that version 4 takes, from its own settings or by default."""
    blocks = [rope, *(value for value in rope.values() if isinstance(value, Mapping))]
    if any(each.get("rope_type", "default") != "default" for each in blocks) and not block.get("rope_scaling"):
        return False
    thetas = {float(each["rope_theta"]) for each in blocks if isinstance(each.get("rope_theta"), int | float)}
    names = [name for name in vars(config) if name.endswith("rope_theta")] if config is not None else []
    return thetas == {float(getattr(config, name)) for name in names}


def _unknown_keys(block: Mapping[str, Any], config: PretrainedConfig | None) -> list[str]:
    kind: Any = type(config)  # a class of Hugging Face, or of None
    try:
        known = {*vars(kind()), *getattr(kind, "attribute_map", {}), *_METADATA, _BIDIRECTIONAL, _CAUSAL, _ROPE}
    except Exception:  # a class of the folder's own may take arguments
        return []
    known = known.union(*(inspect.signature(base).parameters for base in kind.__mro__[:-1]))
    return [
        key
        for key, value in block.items()
        if key not in known and value not in (None, False, [], {}) and not key.startswith("_")
        if not key.endswith("_token_id")
    ]


@contextmanager
def without_bars() -> Iterator[None]:
    """Load or save weights without the progress bar that version 5 draws for each model."""
    is_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if is_enabled:
            logging.enable_progress_bar()


def recompute_states(model: Network) -> None:
    """Keep only the inputs of layers in training: gradient checkpointing, renamed in version 5."""
    settings = {"use_reentrant": False}
    if hasattr(model, "activation_checkpointing_enable"):
        model.activation_checkpointing_enable(activation_checkpointing_kwargs=settings)
    else:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=settings)


def recomputes_states(model: Network) -> bool:
    """Return whether recompute_states was called for a model."""
    name = "is_activation_checkpointing"
    return bool(getattr(model, name if hasattr(type(model), name) else "is_gradient_checkpointing"))
