"""Pieces of which tests make vocabularies."""

from collections.abc import Iterable
from string import ascii_lowercase

BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
LETTERS = [*ascii_lowercase]


def anywhere(characters: Iterable[str]) -> list[str]:
    """Return the pieces that spell any word of some characters."""
    first = [*characters]
    return [*first, *(f"##{character}" for character in first)]
