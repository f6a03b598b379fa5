"""What vectors depend on beside weights, texts and arithmetic: tokenizer, configuration, and how states are pooled.

It changes when a setting does that changes vectors, not with use, saving or another place on the disk.
"""

import json
from typing import Any

from ..encoder.transformer import EncoderModel
from .sentence_pooling import SentencePooling

# Of a transformer's configuration: what saving, a new version or training changes, and vectors do not depend on.
IGNORED = {"_name_or_path", "architectures", "transformers_version", "dtype", "torch_dtype", "use_cache", "return_dict"}
IGNORED |= {"id2label", "label2id", "problem_type", "initializer_range", "gradient_checkpointing", "output_attentions"}
IGNORED |= {"output_hidden_states", "_attn_implementation", "_attn_implementation_autoset"}
# What a slow tokenizer does to it tells how it normalises and splits: it has no one text that says so.
PROBE = "The Quick brown Fox's ÉCOLE Ångström ﬁne ½ 中文かな\tIt is 3,141.59 (e.g.) don't\u200b \u00a0_[MASK] <mask> İ"


def encoder_state(encoder: EncoderModel, pooling: SentencePooling) -> dict[str, Any]:
    """All that the vectors of an encoder depend on beside weights, texts and arithmetic, as JSON holds it.

    encoder (EncoderModel): it is loaded. pooling (SentencePooling): what makes vectors of its states.
    """
    settings = encoder.shim.load()
    return {
        "tokenizer": tokenizer_state(encoder.shim._hfmodel.tokenizer),
        "lowercase": settings.lowercase,
        "max_length": settings.max_length,
        "overflow": encoder.overflow,
        "prompt": encoder.prompt(),
        "include_prompt": encoder.prompts.include,
        "config": config_state(encoder.shim._model.config),
        "pooling": pooling_state(pooling),
        "normalize": pooling.normalizes(settings),
        "width": pooling.width(encoder.get_dim("nO"), settings),
    }


def tokenizer_state(tokenizer: Any) -> Any:
    """What wordpieces depend on: vocabulary, normaliser, splitting and special tokens, but not how rows are cut."""
    if tokenizer.is_fast:
        said = json.loads(tokenizer.backend_tokenizer.to_str())
        return {key: value for key, value in said.items() if key not in ("truncation", "padding")}
    ids = [tokenizer.encode(text, verbose=False) for text in (PROBE, PROBE.lower(), PROBE.upper(), "")]
    return [type(tokenizer).__name__, sorted(tokenizer.get_vocab().items()), ids]


def config_state(config: Any) -> dict[str, Any]:
    """What of a transformer's configuration is not as always, without what vectors do not depend on."""
    said = json.loads(config.to_json_string(use_diff=True))
    return {key: value for key, value in said.items() if key not in IGNORED and "drop" not in key}


def pooling_state(pooling: SentencePooling) -> list[Any]:
    """The layers that pool and finish vectors, with what each was made with."""
    kept: list[Any] = [pooling.pooling_name]  # the attrs of the pooling itself change with use
    for layer in pooling.layers:
        for node in layer.walk():
            made_with = {**getattr(node._func, "keywords", {}), **node.attrs}
            kept.append([node.name, {key: value for key, value in sorted(made_with.items()) if _is_plain(value)}])
    return kept


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)
