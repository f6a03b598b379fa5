"""The types of what Hugging Face makes, whose modules and settings are attributes that no stub describes."""

from typing import Any, TypeAlias

Network: TypeAlias = Any  # a PreTrainedModel
Module: TypeAlias = Any  # a part of one
Tokenizer: TypeAlias = Any  # a PreTrainedTokenizerBase
