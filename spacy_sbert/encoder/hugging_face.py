"""What Hugging Face makes, whose modules and settings are attributes that no stub describes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Network: TypeAlias = Any  # a PreTrainedModel
Module: TypeAlias = Any  # a part of one
Tokenizer: TypeAlias = Any  # a PreTrainedTokenizerBase


@dataclass
class HuggingFaceObjects:
    """An encoder's tokenizer and network, None until they are loaded, and the settings that they are loaded with.

    The names are those of spacy-transformers, whose model reads them.
    """

    tokenizer: Tokenizer = None
    transformer: Network = None
    vocab_file_contents: bytes | None = None
    _init_tokenizer_config: Mapping[str, Any] = field(default_factory=dict)
    _init_transformer_config: Mapping[str, Any] = field(default_factory=dict)
