"""Hugging Face objects from a folder: what does not fit or is not known is an error, and nothing is made up."""

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import tokenizers
import torch
import transformers
from transformers import (
    CONFIG_MAPPING,
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PretrainedConfig,
)
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from .config_values import check_config
from .errors import Errors
from .hugging_face import Network, Tokenizer
from .settings import read_json, read_object, unexpected
from .versions import check_causal, check_honoured, load_fast, reads_as_fast, warn_of_unknown, without_bars

T = TypeVar("T")
AutoClass = type[AutoModel] | type[AutoModelForSequenceClassification]
CLASSES = {AutoModel: MODEL_MAPPING, AutoModelForSequenceClassification: MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING}
NO_LIMIT = 1_000_000  # tokenizers that know no limit say 1e30
TOKENIZER_FILES = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
TOKENIZER_KEYS = {  # of from_pretrained, and what each tokenizer takes beside the arguments that it names
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
    tokenizer_config: Mapping[str, object]
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
        return {"pretrained_model_name_or_path": str(self.folder), "trust_remote_code": self.trust}


def load_config(source: Source) -> PretrainedConfig:
    """The config of the transformer.

    RAISES (ValueError): if it is damaged, of a type or a class that does not fit, or a setting is unknown.
    """
    file, settings = source.config_file, dict(source.transformer_config)
    raw = read_object(file)
    is_known = raw.get("model_type") in CONFIG_MAPPING
    if is_known:  # before version 5 does, in other words
        check_config(raw, CONFIG_MAPPING[raw["model_type"]](), partial(unexpected, file))
    try:
        plain = AutoConfig.from_pretrained(**source.options)
    except Exception as error:  # whatever its values lead to
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=_told(error))) from error
    if plain.is_encoder_decoder:
        raise ValueError(Errors.ENCODER_DECODER.format(name=source.name, kind=plain.model_type))
    if not is_known:
        check_config(raw, plain, partial(unexpected, file))
    check_honoured(file, raw, plain)
    warn_of_unknown(file, raw, plain)
    known = {key for key in dir(plain) if not key.startswith("_") and not callable(getattr(type(plain), key, None))}
    _check_known("transformer_config", settings, known | set(plain.attribute_map) | {"attn_implementation"})
    check_config(settings, plain, lambda key, given, expected: _bad("transformer_config", key, given, expected))
    try:
        return AutoConfig.from_pretrained(**source.options, **{**settings, "return_dict": True})
    except Exception as error:  # whatever the values lead to
        raise ValueError(Errors.BAD_SETTING.format(setting="transformer_config", reason=_told(error))) from error


def load_tokenizer(source: Source) -> Tokenizer:
    """The tokenizer.

    RAISES (ValueError): if one of its files is damaged, or a setting is unknown or of a type that does not fit.
    """
    settings = dict(source.tokenizer_config)
    raw = {file: read_object(source.folder / file) for file in TOKENIZER_FILES}["tokenizer_config.json"]
    for given, error in _given(source, raw, "model_max_length"):
        if not isinstance(given, int | float | None) or isinstance(given, bool) or (given is not None and given < 1):
            raise error("a whole number above 0")
    tokenizer = _tokenizer_of(source, {key: settings[key] for key in settings.keys() & TOKENIZER_KEYS})
    _check_flags(source, raw, type(tokenizer))
    _check_known("tokenizer_config", settings, _parameters(type(tokenizer)).keys() | TOKENIZER_KEYS | raw.keys())
    return _tokenizer_of(source, settings) if settings.keys() - TOKENIZER_KEYS else tokenizer


def _tokenizer_of(source: Source, settings: Mapping[str, Any]) -> Tokenizer:
    raw = read_object(source.folder / "tokenizer_config.json")

    def load() -> Tokenizer:
        if reads_as_fast(raw):
            tokenizer = load_fast(source.folder, settings)
        else:
            tokenizer = AutoTokenizer.from_pretrained(**source.options, **settings)
        tokenizer("a")
        return tokenizer

    tokenizer, error = _attempt(load)
    if error is None:
        return tokenizer
    _name_tokenizer_file(source)
    if settings:
        _tokenizer_of(source, {})  # is the folder to blame?
        raise ValueError(Errors.BAD_SETTING.format(setting="tokenizer_config", reason=_told(error))) from error
    raise ValueError(Errors.BAD_TOKENIZER.format(folder=source.folder, reason=_told(error))) from error


def _attempt(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """What work gives, or its error, whatever that is; a panic in Rust is not an Exception."""
    try:
        return work(), None
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        return None, error


def _name_tokenizer_file(source: Source) -> None:
    """RAISES (ValueError): naming what cannot be read of a tokenizer, if it can be told."""
    raw = read_object(source.folder / "tokenizer_config.json")
    kind = getattr(transformers, str(raw.get("tokenizer_class")), None)
    if isinstance(kind, type):
        _check_flags(source, raw, kind)
    file = source.folder / "tokenizer.json"
    if file.is_file():
        read_json(file, None)
        _, error = _attempt(lambda: tokenizers.Tokenizer.from_file(str(file)))
        if error is not None:
            raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=_told(error))) from error


def _check_flags(source: Source, raw: Mapping[str, object], kind: type) -> None:
    """RAISES (ValueError): if what is true or false by default is something else."""
    for key, default in _parameters(kind).items():
        for given, error in _given(source, raw, key) if isinstance(default, bool) else ():
            if not isinstance(given, bool):
                raise error("true or false")


def _given(source: Source, raw: Mapping[str, object], key: str) -> Iterator[tuple[Any, Callable[[str], ValueError]]]:
    """The values of a key, of tokenizer_config.json and of the setting, each with its error."""
    if key in raw:
        yield raw[key], partial(unexpected, source.folder / "tokenizer_config.json", key, raw[key])
    if key in source.tokenizer_config:
        given = source.tokenizer_config[key]
        yield given, partial(_bad, "tokenizer_config", key, given)


def check_vocabulary(source: Source, tokenizer: Tokenizer, model: Network) -> None:
    """Whether a tokenizer has about as many wordpieces as the encoder; a few are often left unused.

    RAISES (ValueError): if it is another one's, or cut.
    """
    ids = tokenizer.get_vocab().values()
    known, rows = max(ids, default=-1) + 1, model.get_input_embeddings().weight.shape[0]
    if len(ids) < 0.9 * rows or known > 2 * rows + 1000:
        reason = f"it has {len(ids)} wordpieces with ids below {known}, the encoder has {rows}"
        raise ValueError(Errors.BAD_TOKENIZER.format(folder=source.folder, reason=reason))


def load_weights(
    source: Source, auto_class: AutoClass, config: PretrainedConfig
) -> tuple[Network, dict[str, list[str]]]:
    """A model, and what Transformers says of its loading.

    auto_class: one of CLASSES. config: see load_config.
    RAISES (ValueError): if the weights are damaged, or their shapes are not those that config.json says.
    """
    try:
        own = None if source.trust else own_class(auto_class, config)
        with without_bars():
            found = (own or auto_class).from_pretrained(**source.options, config=config, output_loading_info=True)
    except Exception as error:  # whatever config and weights lead to
        raise _unfit(source, _told(error)) from error
    check_causal(source.config_file, read_object(source.config_file), found[0])
    return found


def own_class(auto_class: AutoClass, config: PretrainedConfig) -> Any:
    """The class of Transformers that an Auto class loads for a config; None where that is not plain.

    The Auto class finds it, too, but imports the configs of all models that it knows first.
    """
    found = CLASSES[auto_class].get(type(config), None)
    return found if getattr(found, "config_class", None) is type(config) else None


def try_once(source: Source, model: Network, tokenizer: Tokenizer, texts: Sequence[str]) -> None:
    """Encode a text, or a pair, as the first use would.

    RAISES (ValueError): if that fails, or gives numbers that are not finite.
    """
    inputs = dict(tokenizer(*texts, return_tensors="pt"))
    if not inputs["input_ids"].numel():
        reason = f"it makes no wordpiece of {texts}"
        raise ValueError(Errors.BAD_TOKENIZER.format(folder=source.folder, reason=reason))
    if "token_type_ids" in inputs and not inputs["token_type_ids"].any():
        del inputs["token_type_ids"]  # some encoders have none
    try:
        with torch.no_grad():
            is_finite = bool(torch.isfinite(model(**inputs)[0]).all())
    except Exception as error:  # whatever config and weights lead to
        raise _unfit(source, _told(error)) from error
    if not is_finite:
        raise _unfit(source, "what it gives is not finite")


def room_for_text(source: Source, tokenizer: Tokenizer, limit: int | None) -> int | None:
    """A limit on wordpieces, folder's or position limit, that leaves room beside the special tokens.

    RAISES (ValueError): if it does not.
    """
    n_special = tokenizer.num_special_tokens_to_add()
    if limit is not None and limit <= n_special:
        raise ValueError(Errors.NO_ROOM.format(folder=source.folder, given=limit, special=n_special))
    return limit


def model_max_length(tokenizer: Tokenizer) -> int | None:
    """The limit that the tokenizer knows; None if it knows none, which some say as 1e30."""
    given = tokenizer.model_max_length
    return int(given) if given < NO_LIMIT else None


def position_limit(transformer: Network) -> int | None:
    """How many positions the encoder has; RoBERTa and its like count theirs from padding_idx + 1 on."""
    encoder = getattr(transformer, "base_model", transformer)  # without the head of a classifier
    positions = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    if positions is not None and hasattr(positions, "num_embeddings"):
        skipped = 0 if positions.padding_idx is None else positions.padding_idx + 1
        return positions.num_embeddings - skipped
    limit = getattr(transformer.config, "max_position_embeddings", None)
    return limit if limit and limit > 0 else None  # XLNet has no limit, and says -1


def _parameters(kind: type) -> dict[str, Any]:
    """The arguments that a tokenizer's classes name, slow and fast, and their defaults."""
    others = [getattr(kind, "slow_tokenizer_class", None), getattr(transformers, f"{kind.__name__}Fast", None)]
    classes = chain.from_iterable(one.__mro__ for one in (kind, *others) if isinstance(one, type))
    makers = [vars(one)["__init__"] for one in classes if one is not object and "__init__" in vars(one)]
    named = [each for make in reversed(makers) for each in inspect.signature(make).parameters.values()]
    return {each.name: each.default for each in named if each.kind is not each.VAR_KEYWORD and each.name != "self"}


def _check_known(setting: str, given: Iterable[str], known: Iterable[str]) -> None:
    for key in given:
        if key not in known:
            matches = " or ".join(difflib.get_close_matches(key, sorted(known), n=3))
            near = f" (did you mean {matches}?)" if matches else ""
            raise ValueError(Errors.UNKNOWN_KEY.format(setting=setting, given=key, near=near))


def _bad(setting: str, key: str, given: object, expected: str) -> ValueError:
    return ValueError(Errors.BAD_SETTING.format(setting=setting, reason=f"{key} = {given!r}, expected {expected}"))


def _unfit(source: Source, reason: str) -> ValueError:
    return ValueError(Errors.UNFIT_WEIGHTS.format(folder=source.folder, config=source.config_file, reason=reason))


def _told(error: BaseException) -> str:
    """What an exception says, in one line that is not too long."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
