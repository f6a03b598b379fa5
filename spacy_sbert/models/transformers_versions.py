"""What versions of Transformers do differently: one function for each difference.

Those that name version 4 go once it is no longer supported, which is when spacy-transformers 2
lifts its cap on Transformers (transformers>=4.53.2 in setup.cfg, of July 2025).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import transformers
from packaging.version import Version
from transformers import PretrainedConfig
from transformers.utils import logging

INSTALLED = Version(transformers.__version__)
_IS_4 = Version("5.0") > INSTALLED
# Keys of a config that some versions ignore
BIDIRECTIONAL, CAUSAL, ROPE = "use_bidirectional_attention", "is_causal", "rope_parameters"
_POSITIONS = "position_embedding_type"
# The types of attention in layers of ModernBERT
GLOBAL_ATTENTION, LOCAL_ATTENTION = "full_attention", "sliding_attention"
_PRUNED = "pruned_heads"


def float32_weights() -> dict[str, Any]:
    """Return the arguments of from_pretrained for float32.

    Version 5 reads weights as they were saved, version 4 in float32 (until it goes).
    """
    return {} if _IS_4 else {"dtype": torch.float32}


def half_precision(config: PretrainedConfig) -> str:
    """Return the half precision in which sentence-transformers would compute; "" if in none.

    With version 4 it is none (until it goes).
    """
    dtype = str(getattr(config, "dtype", None)).removeprefix("torch.")
    return dtype if not _IS_4 and dtype in ("float16", "bfloat16") else ""


def config_overrides() -> dict[str, Any]:
    """Return what a config is read with, whatever its file says: none of it changes states.

    States are found by name, and feed-forward layers computed whole: those in chunks fail where a
    length is no multiple of the chunk. Version 5 cannot save a config with attentions. With version
    4, those who read the output of spacy-transformers' component may ask for them (until it goes).
    """
    overrides = {"return_dict": True, "chunk_size_feed_forward": 0}
    if not _IS_4:
        overrides |= {"output_attentions": False, "output_hidden_states": False}
    return overrides


def fast_tokenizer_class(name: str) -> Any:
    """Return the fast class of a tokenizer; None with version 5, which has one for both.

    The Auto class of version 4 finds the same, but imports what it takes to generate texts: seconds
    (until it goes).
    """
    return getattr(transformers, f"{name.removesuffix('Fast')}Fast", None) if _IS_4 else None


def is_backend_of_version_5(tokenizer_class: str) -> bool:
    """Return whether version 4 reads the class that version 5 names in most folders."""
    return _IS_4 and tokenizer_class == "TokenizersBackend"


def takes_texts_for_flags() -> bool:
    """Return whether "false" is taken for true: version 5 checks types itself."""
    return _IS_4


def enable_checkpointing(network: Any) -> None:
    """Keep only the input of each layer in training; version 5 has another name for it."""
    settings = {"use_reentrant": False}
    if hasattr(network, "activation_checkpointing_enable"):
        network.activation_checkpointing_enable(activation_checkpointing_kwargs=settings)
    else:
        network.gradient_checkpointing_enable(gradient_checkpointing_kwargs=settings)


def is_checkpointing(network: Any) -> bool:
    """Return whether states are computed again in the backward pass; version 5 has another name."""
    if hasattr(type(network), "is_activation_checkpointing"):
        return network.is_activation_checkpointing
    return network.is_gradient_checkpointing


def ignored_settings(block: Mapping[str, Any], read: Any) -> Iterator[tuple[str, str]]:
    """Yield the settings that the installed version does not follow, and what version does.

    read: the config that it made of them.
    """
    # Of Gemma 3; 4.56.2 is of September 2025
    if Version("4.56.2") > INSTALLED and block.get(BIDIRECTIONAL):
        yield BIDIRECTIONAL, "4.56.2 or later"
    # Version 4 reads rope_theta and rope_scaling in place of rope_parameters
    if _IS_4 and isinstance(block.get(ROPE), Mapping):
        plain = {"rope_type": "default", "rope_theta": getattr(read, "rope_theta", None)}
        if {**plain, **block[ROPE]} != plain:
            yield ROPE, "5.0 or later"
    # Version 5 has absolute positions only
    if not _IS_4 and block.get(_POSITIONS) in ("relative_key", "relative_key_query"):
        yield _POSITIONS, "before 5.0"
    # Version 5 builds all heads, and the weights of the others do not fit
    if not _IS_4 and block.get(_PRUNED):
        yield _PRUNED, "before 5.0"


def ignores_is_causal(block: Mapping[str, Any], model: torch.nn.Module) -> bool:
    """Return whether a config asks for attention both ways, which a decoder follows from 5.2 on."""
    if block.get(CAUSAL) is not False or Version("5.2") <= INSTALLED:
        return False
    return any(getattr(part, CAUSAL, False) for part in model.modules())


def modernbert_attention(layer: Any) -> str:
    """Return the type of attention of a layer of ModernBERT; version 4 has only its window."""
    if not _IS_4:
        return layer.attention_type
    return GLOBAL_ATTENTION if layer.attn.local_attention == (-1, -1) else LOCAL_ATTENTION


def modernbert_rope(config: PretrainedConfig) -> Mapping[str, Mapping[str, Any]]:
    """Return the rotary positions of ModernBERT by the type of attention, as version 5 has them."""
    if not _IS_4:
        return getattr(config, ROPE)
    scaling = getattr(config, "rope_scaling", None) or {"rope_type": "default"}
    of_global = config.global_rope_theta
    of_local = of_global if config.local_rope_theta is None else config.local_rope_theta
    return {
        GLOBAL_ATTENTION: {**scaling, "rope_theta": of_global},
        LOCAL_ATTENTION: {**scaling, "rope_theta": of_local},
    }


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
