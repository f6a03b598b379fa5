"""Load an encoder from a folder in the format of sentence-transformers or Hugging Face."""

import difflib
import inspect
import os
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

from ..errors import Errors
from .sbert_config import check_config, read_json, read_object, unexpected
from .versions import (
    Network,
    Tokenizer,
    check_causal,
    check_honoured,
    load_fast,
    reads_as_fast,
    warn_of_unknown,
    without_bars,
)

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
    """Return the config of the transformer.

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
        raise ValueError(
            f"The model '{source.name}' ({plain.model_type}) is an encoder with a decoder, which has no one "
            "state a wordpiece: expected an encoder alone, such as BERT, MPNet or RoBERTa."
        )
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
    """Return the tokenizer.

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
    """Return what work gives, or its error, whatever that is; a panic in Rust is not an Exception."""
    try:
        return work(), None
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        return None, error


def _name_tokenizer_file(source: Source) -> None:
    """Find the file of a tokenizer that cannot be read.

    RAISES (ValueError): naming the file, if it is found.
    """
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
    """Check that settings whose default is true or false are one of them.

    RAISES (ValueError): if one is something else.
    """
    for key, default in _parameters(kind).items():
        for given, error in _given(source, raw, key) if isinstance(default, bool) else ():
            if not isinstance(given, bool):
                raise error("true or false")


def _given(source: Source, raw: Mapping[str, object], key: str) -> Iterator[tuple[Any, Callable[[str], ValueError]]]:
    """Return the values of a key, of tokenizer_config.json and of the setting, each with its error."""
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
    """Return a model, and what Transformers says of its loading.

    auto_class: one of CLASSES. config: see load_config.
    RAISES (ValueError): if the weights are damaged, or their shapes are not those that config.json says.
    """
    try:
        own = None if source.trust else _own_class(auto_class, config)
        with without_bars():
            found = (own or auto_class).from_pretrained(**source.options, config=config, output_loading_info=True)
    except Exception as error:  # whatever config and weights lead to
        raise _unfit(source, _told(error)) from error
    check_causal(source.config_file, read_object(source.config_file), found[0])
    return found


def _own_class(auto_class: AutoClass, config: PretrainedConfig) -> Network:
    """Return the class of Transformers that an Auto class loads for a config; None where that is not plain.

    The Auto class finds it, too, but imports the configs of all models that it knows first.
    """
    found: Any = CLASSES[auto_class].get(type(config), None)
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
    """Return a limit on wordpieces, folder's or position limit, that leaves room beside the special tokens.

    RAISES (ValueError): if it does not.
    """
    n_special = tokenizer.num_special_tokens_to_add()
    if limit is not None and limit <= n_special:
        raise ValueError(
            f"The encoder in {source.folder} is limited to {limit} wordpieces (max_seq_length, "
            f"model_max_length or the number of its positions), of which {n_special} are special tokens: no "
            f"text fits. Expected more than {n_special}."
        )
    return limit


def model_max_length(tokenizer: Tokenizer) -> int | None:
    """Return the limit that the tokenizer knows; None if it knows none, which some say as 1e30."""
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
    """Return the arguments that a tokenizer's classes name, slow and fast, and their defaults."""
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
            raise ValueError(
                f"Unknown key '{key}' in {setting}, which Transformers would ignore{near}. Correct it in the "
                "config of the model, or leave it out."
            )


def _bad(setting: str, key: str, given: object, expected: str) -> ValueError:
    return ValueError(Errors.BAD_SETTING.format(setting=setting, reason=f"{key} = {given!r}, expected {expected}"))


def _unfit(source: Source, reason: str) -> ValueError:
    return ValueError(
        f"The weights in {source.folder} and the file {source.config_file} do not make an encoder ({reason}). "
        "Get the encoder anew, or correct config.json."
    )


def _told(error: BaseException) -> str:
    """Return what an exception says, in one line that is not too long."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


# Of buffers that are computed, and that some versions of Transformers saved with the weights.
BUFFERS = ("position_ids", "token_type_ids", "inv_freq", "masked_bias", ".attn.bias", "relative_position_index")


def check_architecture(model: Network, config: PretrainedConfig, folder: Path) -> None:
    """Whether config.json names a class of the encoder's own family, such as BertForMaskedLM where BertModel is loaded.

    model: of Hugging Face. config: as config.json says it. folder (Path): of the encoder.
    RAISES (ValueError): if it names another one, of which Transformers' stock class would make other states.
    """
    family = type(model).__name__.removesuffix("Model").removesuffix("ForSequenceClassification")
    names = config.architectures or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise unexpected(folder / "config.json", "architectures", names, "a list of strings")
    for name in names:
        stock = getattr(transformers, name, None)
        is_same = stock is not None and getattr(stock, "config_class", None) is type(model.config)
        if not is_same and not name.startswith(family):
            expected = f"{family}Model or the like"
            raise ValueError(
                f"The file {folder / 'config.json'} names the architecture {name}, for which Transformers "
                f"would take a class that makes other vectors: expected {expected}. Use another encoder, or "
                "correct architectures or model_type in that file."
            )


def check_weights(model: Network, loading: Mapping[str, Any], folder: Path, *, head: bool, cut: bool) -> None:
    """Compare the names of the weights in a folder with those that the model has.

    A pooler without weights is removed. A head that the model does not have, or whose classifier is still to be
    trained, is not a part of the encoder.

    model: of Hugging Face. loading (dict): what Transformers says of its loading. folder (Path): of the encoder.
    head (bool): whether the folder is to have the classifier's head. cut (bool): whether settings ask for fewer layers.
    RAISES (ValueError): if weights are missing, or there are some that the encoder has no place for.
    """
    encoder = model.base_model
    prefix = f"{encoder.base_model_prefix}."
    parts = {name.split(".")[0] for name, _ in chain(encoder.named_children(), encoder.named_parameters())}

    def part_of(key: str) -> str | None:
        """None for what is none of the encoder."""
        part = key.removeprefix(prefix).split(".")[0]
        return part if part in parts or key.startswith(prefix) else None

    missing = [key for key in loading["missing_keys"] if head or encoder is model or part_of(key)]
    if not head and encoder is not model:  # with the new head a new pooler is trained
        missing = [key for key in missing if part_of(key) != "pooler"]
    elif not head and "add_pooling_layer" in inspect.signature(type(model).__init__).parameters:
        if any(part_of(key) == "pooler" for key in missing):
            model.pooler = None
        missing = [key for key in missing if part_of(key) != "pooler"]
    left = [] if cut else [key for key in loading["unexpected_keys"] if part_of(key) not in (None, "pooler")]
    left = [key for key in left if not key.endswith(BUFFERS)]
    for keys, message in (
        (
            missing,
            (
                "The weights in {folder} lack {names}, which config.json asks for, and which would be random. Get the "
                "encoder anew, or correct config.json."
            ),
        ),
        (
            left,
            (
                "The weights in {folder} hold {names}, which the encoder that config.json describes has no place for. "
                "Get the encoder anew, or correct config.json; for fewer layers set num_hidden_layers in "
                "transformer_config."
            ),
        ),
    ):
        if keys:
            shown = ", ".join(sorted(keys)[:3]) + (" and others" if len(keys) > 3 else "")
            raise ValueError(message.format(folder=folder, names=shown))


TRUST = "SPACY_SBERT_TRUST_REMOTE_CODE"
FILES = ("config.json", "tokenizer_config.json")  # in which Transformers looks for classes of the folder's own


def may_run(folder: Path, settings: Mapping[str, Any], *, name: str, asked: bool, is_saved: bool) -> bool:
    """Whether Transformers is to run code that a folder brings, or names; False if there is none.

    A config's trust_remote_code = true is its author's word. Whose machine it is says so by the environment variable.

    folder (Path): with config.json. settings (dict): the transformer_config.
    name (str): what the encoder was asked for by. asked (bool): trust_remote_code.
    is_saved (bool): whether a pipeline was saved with the encoder in the folder; its weights are those of Transformers'
        own class if no code was saved with them.
    RAISES (ValueError): if there is code that may not run. Transformers' own class of that name is not taken instead.
    """
    naming = [file for file in FILES if read_object(folder / file).get("auto_map")]
    if "/" in str(settings.get("attn_implementation")):  # a compiled kernel to be fetched from the hub
        naming.append("transformer_config")
    is_stock = is_saved and not asked and not any(folder.glob("*.py"))
    if not naming or (is_stock and "transformer_config" not in naming):
        return False
    if asked and os.environ.get(TRUST) == "1":
        return True
    raise ValueError(
        f"The encoder '{name}' comes with Python code of its own ({' and '.join(naming)} name it), which is "
        f"not run: the config says trust_remote_code = {str(asked).lower()}, and that is its author's word, "
        "not yours. If you trust the code, set trust_remote_code = true and the environment variable "
        "SPACY_SBERT_TRUST_REMOTE_CODE=1; else use another encoder. Transformers' stock classes are not taken "
        "in its place: they would give other vectors."
    )


def freeze(network: Network, names: Sequence[str]) -> None:
    """Take parameters out of training.

    names (Sequence[str]): of them, or of the modules that hold them, such as "embeddings".
    RAISES (ValueError): if there are none of that name.
    """
    for prefix in names:
        named = [(name, p) for name, p in network.named_parameters() if f"{name}.".startswith(f"{prefix}.")]
        if not named:
            modules = sorted({name.rsplit(".", 1)[0] for name, _ in network.named_parameters()})
            raise ValueError(
                f"Cannot freeze '{prefix}': the transformer has no such parameter or module. It has "
                f"{', '.join(modules)}."
            )
        for _, parameter in named:
            parameter.requires_grad_(False)
