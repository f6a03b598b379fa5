"""Load an encoder from a folder in the format of sentence-transformers or Hugging Face."""

import difflib
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import torch
import transformers
from packaging.version import InvalidVersion, Version
from transformers import CONFIG_MAPPING, AutoConfig, PretrainedConfig
from transformers.tokenization_utils_base import PreTrainedTokenizerBase
from transformers.utils import is_protobuf_available, is_sentencepiece_available, logging

from ..errors import DivergedError, Errors, Warnings, warn
from .sbert_config import TransformerConfig, check_merged, read_object, unexpected
from .surroundings import is_from_around, unmasked
from .tokenizer_keys import FOLLOWED, REFUSED, WITHOUT_EFFECT

# A PreTrainedModel
Network: TypeAlias = Any
# A PreTrainedTokenizerBase
Tokenizer: TypeAlias = Any
# From configs to classes, which a module imports that takes seconds
_MAPPINGS = {
    "AutoModel": "MODEL_MAPPING",
    "AutoModelForSequenceClassification": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING",
}
INSTALLED = Version(transformers.__version__)
TRUST = "SPACY_SBERT_TRUST_REMOTE_CODE"
# Tokenizers without a limit have 1e30
_NO_LIMIT = 1_000_000
# To build more would take until memory is full
_MAX_LAYERS = 1000
# Values of a config and their defaults
_ALIKE = (int, int | float, str, list | tuple, dict)
# Encoders with a decoder whose encoder is a class of its own, which sentence-transformers loads,
# too.
_ENCODER_PARTS = {
    "t5": "T5EncoderModel",
    "mt5": "MT5EncoderModel",
    "umt5": "UMT5EncoderModel",
    "longt5": "LongT5EncoderModel",
    "switch_transformers": "SwitchTransformersEncoderModel",
}
# Attention of BigBird to blocks of a long row, which depend on its length
SPARSE = "block_sparse"
# Rotary positions whose frequencies depend on the longest row of a pass
_ROPE_BY_LENGTH = ("dynamic", "longrope")
# Types of models that load and encode, but whose vectors depend on more than the text.
_UNSUITABLE = {"reformer": "draws hashes at random whenever it reads a long text"}
_OTHERS = "Use an encoder of plain text, such as BERT, MPNet, RoBERTa or ModernBERT"
# Attributes that hold a table with a row a position, whatever their module is.
_POSITION_TABLES = (
    *(
        "position_embeddings",
        "position_embedding",
        "embed_positions",
        "positions_embed",
        "wpe",
        "pos_encoding",
    ),
    *("positions_encoding",),
)
_TOKENIZER_FILES = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
# As settings, beside the arguments that its class names
_EVERY_TOKENIZER_TAKES = {
    *("use_fast", "from_slow", "tokenizer_type", "revision", "cache_dir", "force_download"),
    *(
        "local_files_only",
        "token",
        "proxies",
        "model_max_length",
        "max_len",
        "padding_side",
        "truncation_side",
    ),
    *("chat_template", "model_input_names", "clean_up_tokenization_spaces", "split_special_tokens"),
    *("additional_special_tokens", "extra_special_tokens", "name_or_path"),
    *PreTrainedTokenizerBase.SPECIAL_TOKENS_ATTRIBUTES,
}
REPAIR_TOKENS = (
    "Take the word out of the tokenizer, or save the encoder again after "
    "model.resize_token_embeddings(len(tokenizer)) and training."
)


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
    def of(cls, folder: Path, name: str, options: TransformerConfig, *, is_saved: bool) -> "Source":
        """Return the source of an encoder with the settings of a config.

        is_saved (bool): whether a pipeline was saved with the encoder in the folder; its weights
            are those of Transformers' own class if no code was saved with them.
        RAISES (ValueError): if the folder names code, and the config or the environment variable do
            not allow it; or if it holds an adapter.
        """
        check_merged(folder)
        settings, asked = dict(options.transformer_config), options.trust_remote_code
        files = ("config.json", "tokenizer_config.json")
        naming = [file for file in files if read_object(folder / file).get("auto_map")]
        if is_saved and not asked and not any(folder.glob("*.py")):
            naming = []
        # A compiled kernel from the hub
        if "/" in str(settings.get("attn_implementation")):
            naming.append("transformer_config")
        if naming and not (asked and os.environ.get(TRUST) == "1"):
            raise ValueError(
                f"The encoder '{name}' comes with Python code of its own ({' and '.join(naming)} "
                "name it), and "
                f"trust_remote_code = {str(asked).lower()} in the config is its author's word, "
                "not yours. If you trust "
                f"it, set trust_remote_code = true and the environment variable {TRUST}=1; else "
                "use another encoder."
            )
        return cls(folder, name, dict(options.tokenizer_config), settings, bool(naming), is_saved)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of every from_pretrained."""
        return {"pretrained_model_name_or_path": str(self.folder), "trust_remote_code": self.trust}


def load_config(source: Source) -> PretrainedConfig:
    """Return the config of the transformer.

    RAISES (ValueError): if it is no encoder's, or a setting does not fit.
    """
    file, settings = source.folder / "config.json", source.transformer_config
    raw = read_object(file)
    try:
        plain = AutoConfig.from_pretrained(**source.options)
    except Exception as error:
        # Whatever its values lead to
        if is_from_around(error):
            raise
        raise _unreadable(file, raw.get("model_type"), error) from error
    if plain.model_type in _UNSUITABLE or (
        plain.is_encoder_decoder and plain.model_type not in _ENCODER_PARTS
    ):
        reason = _UNSUITABLE.get(
            plain.model_type, "is an encoder with a decoder (is_encoder_decoder = true)"
        )
        raise ValueError(f"The model '{source.name}' ({plain.model_type}) {reason}. {_OTHERS}.")
    for key, expected in _misread(raw, plain):
        raise unexpected(file, key, raw[key], expected)
    _check_honored(file, raw, plain)
    with suppress(InvalidVersion):
        if Version(str(raw.get("transformers_version"))) > INSTALLED:
            _warn_of_unknown(file, raw, plain)
    known = {
        key
        for key in dir(plain)
        if not key.startswith("_") and not callable(getattr(type(plain), key, None))
    }
    _check_known(
        "transformer_config", settings, known | set(plain.attribute_map) | {"attn_implementation"}
    )
    for key in ("dtype", "torch_dtype"):
        if settings.get(key, "float32") not in ("float32", torch.float32):
            raise _bad_setting(
                "transformer_config", key, settings[key], "float32. For another one set precision"
            )
    for key, expected in _misread(settings, plain):
        raise _bad_setting("transformer_config", key, settings[key], expected)
    try:
        return AutoConfig.from_pretrained(**source.options, **{**settings, "return_dict": True})
    except Exception as error:
        # Whatever the values lead to
        if is_from_around(error):
            raise
        raise ValueError(
            Errors.BAD_SETTING.format(setting="transformer_config", reason=_in_one_line(error))
        ) from error


def _unreadable(file: Path, model_type: object, error: Exception) -> ValueError:
    """Return the error for a config.json that Transformers cannot read."""
    if model_type == "model2vec":
        return ValueError(
            f"The folder {file.parent} holds a table of model2vec without modules.json. Save it "
            "again by "
            "sentence-transformers: "
            "SentenceTransformer(modules=[StaticEmbedding.from_model2vec(folder)]).save(...)."
        )
    if isinstance(model_type, str) and model_type not in CONFIG_MAPPING:
        return ValueError(
            f"The file {file} names the model_type '{model_type}', which transformers {INSTALLED} "
            "does not know. "
            "Install a version that does, or use another encoder."
        )
    return ValueError(
        f"Transformers {INSTALLED} cannot read {file} ({_in_one_line(error)}). Correct the file."
    )


def _misread(values: Mapping[str, Any], config: PretrainedConfig) -> Iterator[tuple[str, str]]:
    """Yield the settings that would be misread without an error, and what is expected of each.

    For settings that Transformers does not take see `odd_types`.
    """
    for key, value in values.items():
        name = config.attribute_map.get(key, key)
        if "num_hidden_layers" in (key, name) and isinstance(value, int) and value > _MAX_LAYERS:
            yield key, f"at most {_MAX_LAYERS}"
        # Version 5 checks the types of its classes itself.
        if (
            Version("5.0") > INSTALLED
            and isinstance(value, str)
            and isinstance(_default(config, name), bool)
        ):
            yield key, "true or false"


def odd_types(values: Mapping[str, Any], config: PretrainedConfig) -> Iterator[tuple[str, str]]:
    """Yield the settings that have not the type of their default, and what is expected of each.

    A class may take more types than that: this is no error, but if there is one it is the likely
    cause.
    """
    for key, value in values.items():
        if key in _METADATA or key.endswith("_token_id") or key.startswith("summary_"):
            continue
        default: Any = _default(config, config.attribute_map.get(key, key))
        alike = next((kinds for kinds in _ALIKE if isinstance(default, kinds)), object)
        if isinstance(default, int) and default in (0, 1):
            alike = int | float
        fits = isinstance(value, alike) and (
            isinstance(value, bool) == isinstance(default, bool) or alike is object
        )
        may_be_none = value is None and isinstance(default, bool | list | tuple | dict)
        if not (fits or may_be_none):
            yield key, f"a {type(default).__name__}, such as {default!r}"


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


def load_tokenizer(source: Source) -> Tokenizer:
    """Return the tokenizer.

    RAISES (ValueError): if one of its files is damaged, or a setting does not fit.
    """
    settings, file = source.tokenizer_config, source.folder / _TOKENIZER_FILES[0]
    raw, tokens, _ = [read_object(source.folder / each) for each in _TOKENIZER_FILES]
    for key in sorted(REFUSED.keys() & settings.keys()):
        reason = f"{key} = {settings[key]!r} is not followed: {REFUSED[key]}"
        raise ValueError(Errors.BAD_SETTING.format(setting="tokenizer_config", reason=reason))
    limit = raw.get("model_max_length")
    if limit is not None and (
        not isinstance(limit, int | float) or isinstance(limit, bool) or limit < 1
    ):
        raise unexpected(file, "model_max_length", limit, "a whole number above 0")
    try:
        kind = _tokenizer_class(source, str(raw.get("tokenizer_class")))
        tokenizer = kind.from_pretrained(**source.options, **settings)
        tokenizer("a")
    except (
        BaseException
        # Whatever files and settings lead to; a panic in Rust is not an Exception
    ) as raised:
        error = unmasked(raised)
        if isinstance(error, ImportError):
            raise _needs_package(
                source, f"tokenizer ({raw.get('tokenizer_class')})", error
            ) from error
        if is_from_around(error) or not (
            isinstance(error, Exception) or type(error).__name__ == "PanicException"
        ):
            raise error from error.__cause__
        reason, content = _in_one_line(error), source.folder / "tokenizer.json"
        if settings:
            raise ValueError(
                Errors.BAD_SETTING.format(setting="tokenizer_config", reason=reason)
            ) from error
        if not content.is_file():
            _check_sentencepiece(source.folder)
        damaged = content if content.is_file() else source.folder
        raise ValueError(Errors.BAD_TOKENIZER.format(folder=damaged, reason=reason)) from error
    arguments = _arguments(type(tokenizer))
    for key in [key for key, default in arguments.items() if isinstance(default, bool)]:
        if not isinstance(raw.get(key, True), bool):
            raise unexpected(file, key, raw[key], "true or false")
        if not isinstance(settings.get(key, True), bool):
            raise _bad_setting("tokenizer_config", key, settings[key], "true or false")
    own = arguments.keys() | set(tokenizer.SPECIAL_TOKENS_ATTRIBUTES)
    of_folder = (raw.keys() & FOLLOWED) - REFUSED.keys()
    _check_known("tokenizer_config", settings, own | _EVERY_TOKENIZER_TAKES | of_folder)
    named_tokens = raw.get("extra_special_tokens")
    listed = (
        own
        | FOLLOWED
        | WITHOUT_EFFECT.keys()
        | set(named_tokens if isinstance(named_tokens, dict) else ())
    )
    for path, keys in ((file, raw), (source.folder / _TOKENIZER_FILES[1], tokens)):
        unknown = ", ".join(sorted(set(keys) - listed))
        if unknown:
            warn(Warnings.UNKNOWN_TOKENIZER_KEYS.format(file=path, names=unknown))
    return tokenizer


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
            "Install what reads "
            f"it (pip install {missing}), or add the tokenizer.json of the same encoder."
        )


def _tokenizer_class(source: Source, name: str) -> Any:
    """Return the class that reads a folder: in version 4 the fast one of a name.

    AutoTokenizer finds the others.
    """
    if Version("5.0") > INSTALLED:
        # Which version 5 names in every folder with a tokenizer.json
        if name == "TokenizersBackend":
            return transformers.PreTrainedTokenizerFast
        fast = getattr(transformers, f"{name.removesuffix('Fast')}Fast", None)
        # The Auto class finds the same, but imports what it takes to generate texts: seconds.
        if fast is not None and not (source.trust or source.tokenizer_config):
            return fast
    return transformers.AutoTokenizer


def _arguments(kind: type) -> dict[str, object]:
    """Return the arguments that a tokenizer's classes name, slow and fast, and their defaults."""
    others = [
        getattr(kind, "slow_tokenizer_class", None),
        getattr(transformers, f"{kind.__name__}Fast", None),
    ]
    classes = [base for each in (kind, *others) if isinstance(each, type) for base in each.__mro__]
    makers = [
        vars(base)["__init__"]
        for base in classes
        if base is not object and "__init__" in vars(base)
    ]
    named = [
        each for make in reversed(makers) for each in inspect.signature(make).parameters.values()
    ]
    return {
        each.name: each.default
        for each in named
        if each.kind is not each.VAR_KEYWORD and each.name != "self"
    }


def _check_known(setting: str, keys: Iterable[str], known: set[str]) -> None:
    for key in sorted(set(keys) - known):
        matches = " or ".join(difflib.get_close_matches(key, sorted(known), n=3))
        near = f" (did you mean {matches}?)" if matches else ""
        raise ValueError(
            f"Unknown key '{key}' in {setting}, which Transformers would ignore{near}. Correct it "
            "in the "
            "config of the model, or leave it out."
        )


def _bad_setting(setting: str, key: str, value: object, expected: str) -> ValueError:
    return ValueError(
        Errors.BAD_SETTING.format(setting=setting, reason=f"{key} = {value!r}, expected {expected}")
    )


def _needs_package(source: Source, part: str, error: BaseException) -> ValueError:
    """Return the error for a part of a folder that Transformers reads only with a package that is missing."""
    return ValueError(
        f"The {part} in {source.folder} needs a package that is not installed or too old: "
        f"{_in_one_line(error)}."
    )


def _in_one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


# Weights

_REPAIR = "Correct config.json, or copy or download the weights again."


# Version 5 reads weights in the precision in which they were saved, version 4 in float32.
_IN_FLOAT32: dict[str, Any] = {"dtype": torch.float32} if Version("5.0") <= INSTALLED else {}


def half_precision(config: PretrainedConfig) -> str:
    """Return the half precision in which sentence-transformers would compute; "" if in none."""
    # Of no effect before version 5
    dtype = str(getattr(config, "dtype", None)).removeprefix("torch.")
    return dtype if _IN_FLOAT32 and dtype in ("float16", "bfloat16") else ""


def load_weights(
    source: Source, auto_class: str, config: PretrainedConfig, *, keeps_head: bool = False
) -> tuple[Network, list[str]]:
    """Return a model, and the names of its weights that the folder does not have, such as those of a new head.

    auto_class (str): "AutoModel" or "AutoModelForSequenceClassification". config: see load_config.
    keeps_head (bool): whether the folder should have the classifier's head.
    RAISES (ValueError): if the weights are damaged, or are not those that config.json describes.
    """
    # The Auto class finds the same class, but imports the configs of all models that it knows
    # first.
    own: Any = (
        None
        if source.trust
        else getattr(transformers, _MAPPINGS[auto_class]).get(type(config), None)
    )
    kind = (
        own
        if getattr(own, "config_class", None) is type(config)
        else getattr(transformers, auto_class)
    )
    if config.model_type in _ENCODER_PARTS and not source.trust:
        kind = _encoder_part(source, auto_class, config)
    elif own is None and not source.trust:
        raise ValueError(
            f"Transformers has no class for the model '{source.name}' ({config.model_type}) that "
            f"{auto_class} finds. "
            f"{_OTHERS}."
        )
    try:
        with without_bars():
            model, report = kind.from_pretrained(
                **source.options, **_IN_FLOAT32, config=config, output_loading_info=True
            )
    except ImportError as error:
        raise _needs_package(source, f"encoder ({config.model_type})", error) from error
    except Exception as error:
        # Whatever config and weights lead to
        if is_from_around(error):
            raise
        raise _unfit(source, _in_one_line(error), config) from error
    config_file = source.folder / "config.json"
    # Which asks for attention both ways
    for block, _ in _blocks(read_object(config_file), None):
        is_asked = block.get(_CAUSAL) is False and Version("5.2") > INSTALLED
        if is_asked and any(getattr(part, _CAUSAL, False) for part in model.modules()):
            raise _ignored(config_file, _CAUSAL, block, "5.2 or later")
    if not source.trust:
        _check_architecture(config_file, model, config)
    _check_names(source, model, report, keeps_head=keeps_head)
    if getattr(config, "attention_type", None) == SPARSE:
        model.base_model.register_forward_pre_hook(_reset_attention)
    return model, report["missing_keys"]


def build_network(config: PretrainedConfig, weights: Mapping[str, torch.Tensor]) -> Network:
    """Return the model of a config with all of its weights, which it shares.

    See bert_families.load_parameters.
    """
    kind: Any = transformers.MODEL_MAPPING[type(config)]
    takes_pooler = "add_pooling_layer" in inspect.signature(kind.__init__).parameters
    settings = {"add_pooling_layer": "pooler.dense.weight" in weights} if takes_pooler else {}
    with without_bars():
        network = kind.from_pretrained(None, config=config, state_dict=dict(weights), **settings)
    network.config.name_or_path = config.name_or_path
    return network


def _encoder_part(source: Source, auto_class: str, config: PretrainedConfig) -> Any:
    """Return the class of an encoder that has a decoder.

    RAISES (ValueError): for a classifier, which needs both.
    """
    if auto_class != "AutoModel":
        raise ValueError(
            f"The model '{source.name}' ({config.model_type}) is an encoder with a decoder, which "
            "cannot score pairs. "
            f"{_OTHERS}."
        )
    return getattr(transformers, _ENCODER_PARTS[config.model_type])


def _reset_attention(model: Network, args: object) -> None:
    """Undo that BigBird, once it has read a short row, attends to all of a long one, too."""
    model.set_attention_type(model.config.attention_type)


def _unfit(source: Source, reason: str, config: PretrainedConfig) -> ValueError:
    return ValueError(
        f"The weights in {source.folder} and {source.folder / 'config.json'} do not make an "
        f"encoder ({reason}). "
        f"{_likely_cause(source, config)}{_REPAIR}"
    )


def _likely_cause(source: Source, config: PretrainedConfig) -> str:
    """Return a sentence on a setting of an odd type, which may be why an encoder does not load.

    "" if none has.
    """
    file = source.folder / "config.json"
    for place, values in (
        ("transformer_config", source.transformer_config),
        (file, read_object(file)),
    ):
        for key, expected in odd_types(values, config):
            return f"The cause may be {key} = {values[key]!r} in {place}: expected {expected}. "
    return ""


def _check_architecture(file: Path, model: Network, config: PretrainedConfig) -> None:
    """Check that config.json names a class of the encoder's family, such as BertForMaskedLM for a BertModel."""
    family = type(model).__name__.removesuffix("Model").removesuffix("ForSequenceClassification")
    names = config.architectures or []
    for name in map(str, names if isinstance(names, list) else [names]):
        stock = getattr(transformers, name, None)
        if getattr(stock, "config_class", None) is not type(model.config) and not name.startswith(
            family
        ):
            raise ValueError(
                f"The file {file} names the architecture {name}, for which Transformers would "
                "load a class that makes "
                f"other vectors: expected {family}Model or the like. Correct architectures or "
                "model_type in that file."
            )


# Buffers that are computed, and that some versions of Transformers saved with the weights.
BUFFERS = (
    "position_ids",
    "token_type_ids",
    "inv_freq",
    "masked_bias",
    ".attn.bias",
    "relative_position_index",
)


def _check_names(
    source: Source, model: Network, report: Mapping[str, Any], *, keeps_head: bool
) -> None:
    """Compare the names of the weights in a folder with those that the model has.

    A pooler without weights is removed. A head that is not used, or is still to be trained, is no
    part of the encoder.
    """
    encoder = model.base_model
    prefix = f"{encoder.base_model_prefix}."
    parts = {
        name.split(".")[0] for name, _ in (*encoder.named_children(), *encoder.named_parameters())
    }

    def part_of(key: str) -> str | None:
        """Return the part of the encoder that a weight belongs to; None if to none."""
        part = key.removeprefix(prefix).split(".")[0]
        return part if part in parts or key.startswith(prefix) else None

    missing = [
        key for key in report["missing_keys"] if keeps_head or encoder is model or part_of(key)
    ]
    has_own_pooler = "add_pooling_layer" in inspect.signature(type(model).__init__).parameters
    # With a new head a new pooler is trained
    if not keeps_head and (encoder is not model or has_own_pooler):
        if encoder is model and any(part_of(key) == "pooler" for key in missing):
            model.pooler = None
        missing = [key for key in missing if part_of(key) != "pooler"]
    left = [key for key in report["unexpected_keys"] if part_of(key) not in (None, "pooler")]
    left = [key for key in left if not key.endswith(BUFFERS)]
    cuts_layers = any("layers" in key for key in source.transformer_config)
    if missing or (left and not cuts_layers):
        names = ", ".join(sorted(missing or left)[:3]) + (
            " and others" if len(missing or left) > 3 else ""
        )
        raise ValueError(
            f"The weights in {source.folder} lack {names}, which config.json asks for. {_REPAIR}"
            if missing
            else f"The weights in {source.folder} hold {names}, which the encoder that config.json "
            "describes has no "
            "place for. Correct config.json; for fewer layers set num_hidden_layers in "
            "transformer_config."
        )


def check_encoder(
    source: Source,
    tokenizer: Tokenizer,
    model: Network,
    encode: Callable[[Mapping[str, torch.Tensor]], torch.Tensor],
    texts: Sequence[str],
    max_length: int | None,
) -> int | None:
    """Check that a tokenizer fits an encoder: encode a text, or a pair, as the first use would.

    encode (Callable): from input_ids and the like, (1, wordpieces), to states.
    max_length (int): the limit of the folder, None for none.
    RETURNS (int): the most wordpieces of a row: of the folder, the positions, or the tokenizer;
        None for no limit.
    RAISES (ValueError): if the vocabulary or the limit does not fit, or states are not finite.
    """
    vocabulary = tokenizer.get_vocab()
    ids = vocabulary.values()
    known, rows = max(ids, default=-1) + 1, embedding_rows(model)
    if rows is None:
        raise ValueError(
            f"The encoder in {source.folder} ({model.config.model_type}) has no embeddings of "
            "wordpieces: it reads "
            f"characters or other input. {_OTHERS}."
        )
    # To a number of embeddings that is quick to multiply
    is_padded = rows % 64 == 0 and rows - len(ids) < 128
    if (len(ids) < 0.9 * rows and not is_padded) or known > 2 * rows + 1000:
        reason = f"it has {len(ids)} wordpieces with ids below {known}, the encoder has {rows}"
        if source.tokenizer_config:
            reason += f"; tokenizer_config sets {', '.join(source.tokenizer_config)}"
        raise ValueError(Errors.BAD_TOKENIZER.format(folder=source.folder, reason=reason))
    inputs = dict(tokenizer(*texts, return_tensors="pt"))
    if not inputs["input_ids"].numel():
        raise ValueError(
            Errors.BAD_TOKENIZER.format(folder=source.folder, reason=f"no wordpiece in {texts}")
        )
    _check_rows(source, vocabulary, inputs["input_ids"], rows)
    others = sorted(
        inputs.keys()
        & _forward_arguments(model.__class__) - {"input_ids", "attention_mask", _TYPES}
    )
    if others:
        raise ValueError(
            f"The tokenizer {type(tokenizer).__name__} of '{source.name}' gives the encoder "
            f"{', '.join(others)} beside "
            "the wordpieces, which is not supported. Use an encoder that reads wordpieces only."
        )
    try:
        with torch.no_grad():
            states = encode(inputs)
    except Exception as error:
        # Whatever config and weights lead to
        if is_from_around(error):
            raise
        raise _unable(source, model, _in_one_line(error)) from error
    if states.dim() == _STATES and states.shape[:2] != inputs["input_ids"].shape:
        reason = f"it has {states.shape[1]} states for {inputs['input_ids'].shape[1]} wordpieces"
        raise _unable(source, model, reason)
    is_finite = bool(torch.isfinite(states).all())
    if not is_finite and source.is_saved:
        raise DivergedError(Errors.DIVERGED_WEIGHTS.format(reason="its states are not finite"))
    if not is_finite:
        raise ValueError(
            f"The states of the encoder in {source.folder} are not finite: training diverged, or "
            "the weights overflow. "
            "Use an earlier checkpoint, or copy or download the weights again."
        )
    of_tokenizer = (
        int(tokenizer.model_max_length) if tokenizer.model_max_length < _NO_LIMIT else None
    )
    # As in sentence-transformers: the setting wins over max_seq_length, and that over the limits of
    # the two files.
    of_files = min(filter(None, (of_tokenizer, _configured_positions(model.config))), default=None)
    asked = (
        of_tokenizer if "model_max_length" in source.tokenizer_config else max_length or of_files
    )
    limit = min(filter(None, (asked, position_limit(model))), default=None)
    n_special = tokenizer.num_special_tokens_to_add()
    if limit is not None and limit <= n_special:
        raise ValueError(
            f"The encoder in {source.folder} is limited to {limit} wordpieces (max_seq_length, "
            "model_max_length or the "
            f"number of its positions), of which {n_special} are special tokens: no text fits. "
            "Expected more than "
            f"{n_special}."
        )
    return limit


_TYPES = "token_type_ids"
# dimensions: rows, wordpieces and channels; the logits of a classifier have two
_STATES = 3


@cache
def _forward_arguments(kind: Any) -> frozenset[str]:
    """Return the arguments that the forward method of an encoder's class names."""
    return frozenset(inspect.signature(kind.forward).parameters)


def takes_token_types(model: Network) -> bool:
    """Return whether an encoder reads token types.

    Some add an embedding of type 0, and none if they are left out.
    """
    return _TYPES in _forward_arguments(model.__class__)


def embedding_rows(model: Network) -> int | None:
    """Return how many wordpieces an encoder has an embedding of.

    None if it has no table of them.
    """
    try:
        table = model.get_input_embeddings()
    except NotImplementedError:
        return None
    weight = getattr(table, "weight", None)
    return None if weight is None else weight.shape[0]


def padding_id(encoder: Network) -> int:
    """Return the wordpiece that fills rows, which are masked there: 0 if that of the config has no embedding."""
    padding = getattr(encoder.config, "pad_token_id", None) or 0
    rows = embedding_rows(encoder)
    return padding if padding > 0 and (rows is None or padding < rows) else 0


def _check_rows(
    source: Source, vocabulary: Mapping[str, int], ids: torch.Tensor, rows: int
) -> None:
    """Check that an encoder has an embedding of special tokens.

    Warn of other wordpieces that it has none of.
    """
    without = {number: name for name, number in vocabulary.items() if number >= rows}
    largest = int(ids.max())
    if largest >= rows or int(ids.min()) < 0:
        reason = (
            f"its token {without.get(largest)!r} has the id {largest}, and the encoder has {rows} "
            "embeddings"
        )
        raise ValueError(Errors.BAD_TOKENIZER.format(folder=source.folder, reason=reason))
    if without:
        shown = ", ".join(without[number] for number in sorted(without)[:3]) + (
            ", ..." if len(without) > 3 else ""
        )
        text = Warnings.TOKENS_WITHOUT_EMBEDDING.format(
            folder=source.folder, count=len(without), names=shown
        )
        warn(f"{text} {REPAIR_TOKENS}")


def _unable(source: Source, model: Network, reason: str) -> ValueError:
    return ValueError(
        f"The encoder in {source.folder} ({model.config.model_type}) cannot encode a text by "
        f"itself ({reason}). "
        f"{_likely_cause(source, model.config)}{_OTHERS}, or correct its config.json."
    )


def position_limit(transformer: Network) -> int | None:
    """Return how many wordpieces the tables of positions have room for.

    None if none is limited by a table.

    RoBERTa and its like count positions from padding_idx + 1 on. Rotary and relative positions go
    on behind max_position_embeddings, as do those that are computed when they are needed.
    """
    # Without the head of a classifier
    encoder: Any = getattr(transformer, "base_model", transformer)
    found = []
    for module in encoder.modules():
        for name in _POSITION_TABLES:
            table = getattr(module, name, None)
            weight = table if isinstance(table, torch.Tensor) else getattr(table, "weight", None)
            if isinstance(weight, torch.Tensor):
                padding_idx, offset = (
                    getattr(table, "padding_idx", None),
                    getattr(table, "offset", 0),
                )
                found.append(len(weight) - offset - (0 if padding_idx is None else padding_idx + 1))
    return min([*found, _configured_positions(transformer.config) or found[0]]) if found else None


def _configured_positions(config: PretrainedConfig) -> int | None:
    """Return max_position_embeddings; None if there is none, which XLNet writes as -1."""
    limit = getattr(config, "max_position_embeddings", None)
    return limit if isinstance(limit, int) and limit > 0 else None


def ignores_padding(model: Network, tokenizer: Tokenizer, limit: int | None) -> bool:
    """Return whether padding behind a text leaves its states as they are.

    It does not with convolutions over rows, or if the encoder takes no mask (FNet).
    Classifiers are not tried: pairs are padded. limit (int): the most wordpieces of a row, None for
    no limit.
    """
    if model.base_model is not model:
        return True
    ids = tokenizer("a b c d e f g", return_tensors="pt")["input_ids"]
    ids = ids[:, : max(1, (limit or 2 * ids.shape[1]) // 2)]
    length = ids.shape[1]
    padded = torch.nn.functional.pad(ids, (0, length), value=padding_id(model))
    mask = (torch.arange(2 * length) < length).long()[None]
    with torch.no_grad():
        alone = model(input_ids=ids, **attention_mask(model, mask[:, :length])).last_hidden_state
        beside = model(input_ids=padded, **attention_mask(model, mask)).last_hidden_state[
            :, :length
        ]
    return torch.allclose(alone, beside, rtol=0, atol=1e-3 * float(alone.abs().max()))


def rope_by_length(model: Network, limit: int | None) -> str:
    """Return the type of rotary positions whose frequencies depend on the longest row of a pass; "" if there are none.

    They change behind the length that the encoder was made for at first. limit (int): the most
    wordpieces of a row, None for no limit.
    """
    for module in model.modules():
        for layer, kind in _rope_types(module):
            if kind in _ROPE_BY_LENGTH and (limit is None or limit > _first_length(module, layer)):
                return kind
    return ""


def _rope_types(module: Any) -> list[tuple[str, str]]:
    """Return the types of a module's rotary positions, by the type of layers; "" if there is but one for all."""
    kinds = getattr(module, "rope_type", None) or {}
    return list(kinds.items()) if isinstance(kinds, dict) else [("", str(kinds))]


def _first_length(module: Any, layer: str) -> int:
    """Return the most wordpieces for which rotary positions keep their first frequencies."""
    config, name = module.config, "original_max_position_embeddings"
    parameters = getattr(config, _ROPE, None) or {}
    found = (parameters.get(layer, parameters).get(name), getattr(config, name, None))
    return min([*filter(None, found), module.original_max_seq_len])


def reset_rope(model: Network, args: object) -> None:
    """Undo that dynamic rotary positions keep the frequencies of the longest row so far."""
    for module in model.modules():
        for layer, kind in _rope_types(module):
            if kind == "dynamic":
                prefix = f"{layer}_" if layer else ""
                frequencies = getattr(module, f"{prefix}inv_freq")
                first = getattr(module, f"{prefix}original_inv_freq")
                setattr(module, f"{prefix}inv_freq", first.to(frequencies.device))
                setattr(module, f"{prefix}max_seq_len_cached", module.original_max_seq_len)


def attention_mask(model: Network, mask: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the mask as an argument of an encoder; none for FNet, which takes none."""
    name = "attention_mask"
    arguments = _forward_arguments(model.__class__)
    return {name: mask} if name in arguments or "kwargs" in arguments else {}


def prepare_training(network: Network, options: TransformerConfig) -> None:
    """Set up gradient checkpointing, and freeze parameters.

    RAISES (ValueError): if there are none of a name.
    """
    if options.gradient_checkpointing:
        settings = {"use_reentrant": False}
        # As version 5 calls it
        if hasattr(network, "activation_checkpointing_enable"):
            network.activation_checkpointing_enable(activation_checkpointing_kwargs=settings)
        else:
            network.gradient_checkpointing_enable(gradient_checkpointing_kwargs=settings)
    for prefix in options.frozen:
        named = [p for name, p in network.named_parameters() if f"{name}.".startswith(f"{prefix}.")]
        if not named:
            modules = sorted({name.rsplit(".", 1)[0] for name, _ in network.named_parameters()})
            raise ValueError(
                f"Cannot freeze '{prefix}': the transformer has no such parameter or module. It "
                "has "
                f"{', '.join(modules)}."
            )
        for parameter in named:
            parameter.requires_grad_(False)


_BIDIRECTIONAL, _CAUSAL, _ROPE = "use_bidirectional_attention", "is_causal", "rope_parameters"
# Keys of a config.json that the computation does not depend on
_METADATA = {
    *(
        "architectures",
        "auto_map",
        "dtype",
        "finetuning_task",
        "id2label",
        "label2id",
        "license",
        "model_type",
    ),
    *(
        "problem_type",
        "sentence_transformers",
        "task_specific_params",
        "torch_dtype",
        "transformers_version",
    ),
    *("transformers.js_config", "use_cache", "initializer_range", "has_new_head"),
}


def _check_honored(file: Path, raw: Mapping[str, Any], config: PretrainedConfig) -> None:
    """Check that the installed version computes as a config asks.

    RAISES (ValueError): for a setting it ignores.
    """
    for block, read in _blocks(raw, config):
        # Of Gemma 3
        if Version("4.56.2") > INSTALLED and block.get(_BIDIRECTIONAL):
            raise _ignored(file, _BIDIRECTIONAL, block, "4.56.2 or later")
        # Version 4 reads rope_theta and rope_scaling in place of rope_parameters.
        plain = {"rope_type": "default", "rope_theta": getattr(read, "rope_theta", None)}
        if (
            Version("5.0") > INSTALLED
            and isinstance(block.get(_ROPE), Mapping)
            and {**plain, **block[_ROPE]} != plain
        ):
            raise _ignored(file, _ROPE, block, "5.0 or later")
        positions = "position_embedding_type"
        if Version("5.0") <= INSTALLED and block.get(positions) in (
            "relative_key",
            "relative_key_query",
        ):
            raise _ignored(file, positions, block, "before 5.0")


def _ignored(file: Path, setting: str, block: Mapping[str, Any], needed: str) -> ValueError:
    return ValueError(
        f"{file} asks for {setting} = {block[setting]}, which transformers {INSTALLED} ignores: "
        "its vectors would be "
        f"others. Install transformers {needed}."
    )


def _blocks(raw: Mapping[str, Any], config: Any) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Yield the config, and the block for texts in that of a model which reads images, too."""
    yield raw, config
    if isinstance(raw.get("text_config"), Mapping):
        yield raw["text_config"], getattr(config, "text_config", None)


def _warn_of_unknown(file: Path, raw: Mapping[str, Any], config: PretrainedConfig) -> None:
    """Warn of settings that a newer version wrote, and that the installed config class does not know."""
    written = raw.get("transformers_version")
    unknown: list[str] = []
    for block, read in _blocks(raw, config):
        # A class of Hugging Face, or of None
        kind: Any = type(read)
        try:
            known = {
                *vars(kind()),
                *getattr(kind, "attribute_map", {}),
                *_METADATA,
                _BIDIRECTIONAL,
                _CAUSAL,
                _ROPE,
            }
        except Exception:
            # A class of the folder's own may take arguments
            continue
        known = known.union(*(inspect.signature(base).parameters for base in kind.__mro__[:-1]))
        set_keys = [key for key, value in block.items() if value not in (None, False, [], {})]
        unknown += [key for key in set_keys if key not in known and not key.startswith("_")]
    names = ", ".join(sorted(key for key in unknown if not key.endswith("_token_id")))
    if names:
        text = Warnings.UNKNOWN_SETTINGS.format(
            file=file, names=names, written=written, installed=INSTALLED
        )
        warn(text)


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
