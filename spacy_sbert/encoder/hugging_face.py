"""What Hugging Face makes, whose modules and settings are attributes that no stub describes."""

from dataclasses import dataclass
from typing import Any, TypeAlias

Network: TypeAlias = Any  # a PreTrainedModel
Module: TypeAlias = Any  # a part of one
Tokenizer: TypeAlias = Any  # a PreTrainedTokenizerBase


@dataclass
class HuggingFaceObjects:
    """An encoder's tokenizer and network, None until they are loaded; spacy-transformers names them so."""

    tokenizer: Tokenizer = None
    transformer: Network = None
    vocab_file_contents: bytes | None = None
