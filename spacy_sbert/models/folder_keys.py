"""Keys of the files of a sentence-transformers folder: what each does here.

A key is followed, or vectors do not depend on it, or it is refused unless it has one of the values
that change no vector. A key that is not listed is named in a warning.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import PositiveInt

from .poolings import POOLING

WHOLE, FLAG, TEXT, TEXTS = (
    "a whole number above 0",
    "true or false",
    "a string",
    "an object of strings",
)


@dataclass(frozen=True)
class Key:
    """What a key of a folder's file does here.

    reason: the setting that follows it, or why vectors do not depend on it, or what it would
        change.
    kind, expected: the type of a followed value, and its name in messages; None if what reads it
        checks it.
    allowed: the only values that are not refused; empty if any value is allowed.
    keys: what becomes of the keys of the object that it holds; None if it holds none.
    """

    reason: str
    kind: Any = None
    expected: str = ""
    allowed: tuple[object, ...] = ()
    keys: "Keys | None" = None


Keys: TypeAlias = Mapping[str, Key]
# The entry for all keys that a table does not list
OTHER_KEYS = "*"


def _refused(reason: str, *allowed: object) -> Key:
    return Key(reason, allowed=(None, *allowed))


def _object(reason: str, keys: Keys) -> Key:
    return Key(reason, allowed=(None,), keys=keys)


_NOT_TEXT = Key("for inputs that are not texts")
_HUB = dict.fromkeys(
    (
        "cache_dir",
        "force_download",
        "local_files_only",
        "proxies",
        "revision",
        "subfolder",
        "token",
    ),
    Key("where to download; sentence-transformers overwrites it"),
)
_HUB["trust_remote_code"] = Key("a folder cannot allow its own code")
_MODEL_ARGUMENTS = _object(
    "arguments of the transformer's from_pretrained",
    {
        **_HUB,
        "attn_implementation": _refused(
            "the same attention, computed in another way", "eager", "sdpa"
        ),
        **dict.fromkeys(
            ("dtype", "torch_dtype"), _refused("the precision of the weights", "float32")
        ),
        "device_map": Key("on which device weights are loaded"),
        "low_cpu_mem_usage": Key("how weights are loaded"),
        "use_safetensors": Key("which file of equal weights is read"),
        OTHER_KEYS: _refused("another transformer"),
    },
)
_TOKENIZER_ARGUMENTS = _object(
    "arguments of the tokenizer's from_pretrained",
    {**_HUB, OTHER_KEYS: _refused("another tokenizer")},
)
_CONFIG_ARGUMENTS = _object(
    "arguments of the config's from_pretrained",
    {**_HUB, "use_cache": Key("for generating texts"), OTHER_KEYS: _refused("another transformer")},
)
_CALL_ARGUMENTS = _object(
    "arguments of the tokenizer's call",
    {
        "padding": _refused("padding to a fixed length", True, "longest"),
        "truncation": _refused("which part of a long text is kept", True, "longest_first"),
        "add_special_tokens": _refused("texts without special tokens", True),
        "return_tensors": _refused("the type of arrays", "pt"),
        OTHER_KEYS: _refused("other wordpieces"),
    },
)


def _transformer_keys(task: str, output: str, method_output: str) -> Keys:
    """Return the keys of sentence_bert_config.json for a task, with the output that is encoded."""
    text = {
        "method": Key("the method of the transformer", allowed=("forward",)),
        "method_output_name": Key("its output", allowed=(method_output, [method_output])),
        OTHER_KEYS: _refused("how inputs are made"),
    }
    return {
        "max_seq_length": Key("the encoder's limit", PositiveInt, WHOLE),
        "do_lower_case": Key("the encoder's lower-casing", bool, FLAG),
        "transformer_task": Key("the class of the transformer", allowed=(task,)),
        "modality_config": _object(
            "how inputs are read",
            {
                "text": _object("how texts are read", text),
                "message": _refused("chat templates"),
                OTHER_KEYS: _NOT_TEXT,
            },
        ),
        "module_output_name": _refused("another output of the transformer", output),
        "processing_kwargs": _object(
            "arguments of the tokenizer's call",
            {
                **dict.fromkeys(("text", "common"), _CALL_ARGUMENTS),
                **dict.fromkeys(("audio", "image", "video"), _NOT_TEXT),
                "chat_template": Key("for chat messages"),
            },
        ),
        "unpad_inputs": Key("padding has no effect on vectors"),
        **dict.fromkeys(
            ("query_length", "document_length"), _refused("a limit of its own for a kind of text")
        ),
        "query_expansion": _refused("wordpieces added to queries"),
        **dict.fromkeys(("model_args", "model_kwargs"), _MODEL_ARGUMENTS),
        **dict.fromkeys(("tokenizer_args", "processor_kwargs"), _TOKENIZER_ARGUMENTS),
        **dict.fromkeys(("config_args", "config_kwargs"), _CONFIG_ARGUMENTS),
        "tokenizer_name_or_path": _refused("a tokenizer from elsewhere"),
        "backend": Key("sentence-transformers overwrites it"),
    }


def _model_keys(model_type: str) -> Keys:
    """Return the keys of config_sentence_transformers.json of a class of models."""
    return {
        "__version__": Key("the versions that wrote the folder"),
        "model_type": Key("the class of the model", allowed=(model_type,)),
        "prompts": Key("`prompts`", dict[str, str | None], TEXTS),
        "default_prompt_name": Key("`default_prompt_name`", str, TEXT),
        "similarity_fn_name": Key("vectors do not depend on it; `similarity` is the cosine here"),
        "keep_in_fp32_modules": Key("weights are float32 here"),
    }


# The types of models
SENTENCE_TRANSFORMER, CROSS_ENCODER = "SentenceTransformer", "CrossEncoder"
# The keys of config_sentence_transformers.json and sentence_bert_config.json, by the type of the
# model.
MODEL_KEYS: Mapping[str, Keys] = {
    SENTENCE_TRANSFORMER: {
        **_model_keys(SENTENCE_TRANSFORMER),
        "truncate_dim": Key("`truncate_dim`", PositiveInt, WHOLE),
        "activation_fn": Key("for scores of pairs"),
    },
    CROSS_ENCODER: {
        **_model_keys(CROSS_ENCODER),
        "truncate_dim": Key("for vectors"),
        "activation_fn": Key('`activation = "auto"`', str, TEXT),
    },
}
TRANSFORMER_KEYS: Mapping[str, Keys] = {
    SENTENCE_TRANSFORMER: _transformer_keys(
        "feature-extraction", "token_embeddings", "last_hidden_state"
    ),
    CROSS_ENCODER: _transformer_keys("sequence-classification", "scores", "logits"),
}
# The names of sentence_bert_config.json, in the order in which sentence-transformers looks for
# them.
TRANSFORMER_FILES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)

# The keys of the sentence_transformers block in the config.json of a cross-encoder.
ACTIVATION_KEYS: Keys = {
    "activation_fn": Key('`activation = "auto"`', str, TEXT),
    "version": Key("the version that wrote the folder"),
}

# The keys of an entry of modules.json.
LISTED_KEYS: Keys = {
    "idx": Key("modules are used in the order of the list"),
    "name": Key("a name; two modules cannot have the same"),
    "path": Key("the module's folder"),
    "type": Key("the module's class"),
    "kwargs": Key("names of arguments of `encode` that none is given here"),
}

# The flags in config.json of a Pooling module, in the order in which results are concatenated
POOLING_FLAGS = {kind.flag: name for name, kind in POOLING.items() if kind.flag}
_SENTENCES = {
    "module_input_name": _refused("the input of the module", "sentence_embedding"),
    "module_output_name": _refused("the output of the module", "sentence_embedding"),
}
# The keys of config.json of each kind of module.
MODULE_KEYS: Mapping[str, Keys] = {
    "Pooling": {
        **dict.fromkeys(
            ("embedding_dimension", "word_embedding_dimension"), Key("the transformer's width")
        ),
        **dict.fromkeys(POOLING_FLAGS, Key("`pooling`", bool, FLAG)),
        "pooling_mode": Key("`pooling`", str | list[str], "a string, or a list of them"),
        "include_prompt": Key("`include_prompt`", bool, FLAG),
    },
    "Dense": {
        **dict.fromkeys(
            ("in_features", "out_features"), Key("`dense`: nI and nO", PositiveInt, WHOLE)
        ),
        "activation_function": Key("`dense`: activation"),
        "bias": Key("`dense`: bias", bool, FLAG),
        **_SENTENCES,
        "use_residual": _refused("vectors added to those of the layer", False),
    },
    "Normalize": _SENTENCES,
    "Dropout": {"dropout": Key("it does nothing in use")},
}

# The keys of peft's adapter_config.json
ADAPTER_KEYS: Keys = {
    "init_lora_weights": _refused("merge it by peft: it changed its base", True, False, "gaussian"),
    **dict.fromkeys(
        (
            "base_model_name_or_path",
            "r",
            "lora_alpha",
            "target_modules",
            "use_rslora",
            "auto_mapping",
            "inference_mode",
            "lora_dropout",
            "megatron_core",
            "peft_version",
            "qalora_group_size",
            "task_type",
        ),
        Key("followed, or for training"),
    ),
    OTHER_KEYS: _refused("merge it by peft: not plain LoRA", False, {}, [], "LORA", "none"),
}

_ASPECTS = _refused("texts with an aspect before them")
# The keys of config_setfit.json
SETFIT_KEYS: Keys = {
    "labels": Key("the labels of the classes", list[str], "a list of strings"),
    "normalize_embeddings": Key("`normalize`", bool, FLAG),
    "spacy_model": _ASPECTS,
    "span_context": _ASPECTS,
}


def unknown_keys(content: Mapping[str, object], keys: Keys, place: str = "") -> Iterator[str]:
    """Yield the keys that a table does not list; inner ones with the key that holds them."""
    for key, value in content.items():
        rule = keys.get(key, keys.get(OTHER_KEYS))
        if rule is None:
            yield f"{place}{key}"
        elif rule.keys is not None and isinstance(value, Mapping):
            yield from unknown_keys(value, rule.keys, f"{place}{key}.")


def refused_keys(
    content: Mapping[str, object], keys: Keys, place: str = ""
) -> Iterator[tuple[str, object, Key]]:
    """Yield each key whose value is refused, the value, and its entry in the table."""
    for key, value in content.items():
        rule = keys.get(key, keys.get(OTHER_KEYS))
        if rule is None:
            continue
        if rule.keys is not None and isinstance(value, Mapping):
            yield from refused_keys(value, rule.keys, f"{place}{key}.")
        elif rule.allowed and not any(
            type(value) is type(one) and value == one for one in rule.allowed
        ):
            yield f"{place}{key}", value, rule
