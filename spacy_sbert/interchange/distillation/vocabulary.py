"""The tokenizer of a static encoder: the teacher's, with the frequent words of a corpus as wordpieces of their own."""

import json
from collections import Counter
from collections.abc import Iterable

from tokenizers import Tokenizer

MIN_COUNT = 5  # of a word in the corpus
WORDPIECE = "WordPiece"


def tokenizer_kind(tokenizer: str) -> str:
    """The kind of model that cuts words, such as WordPiece or Unigram; tokenizer (str): the JSON."""
    return json.loads(tokenizer)["model"]["type"]


def frequent_words(tokenizer: str, texts: Iterable[str], count: int) -> list[str]:
    """The words of a corpus that a tokenizer cuts to pieces, most frequent first, each seen five times at least.

    tokenizer (str): the JSON of a WordPiece tokenizer, whose normaliser and whose splitting at spaces and signs say
        what a word is. count (int): the most words.
    """
    said, plain = json.loads(tokenizer), Tokenizer.from_str(tokenizer)
    known, longest = said["model"]["vocab"], said["model"]["max_input_chars_per_word"]
    counts: Counter[str] = Counter()
    for text in texts:
        normal = plain.normalizer.normalize_str(text) if plain.normalizer else text
        split = plain.pre_tokenizer.pre_tokenize_str(normal) if plain.pre_tokenizer else [(normal, None)]
        counts.update(word for word, _ in split)
    ranked = (word for word, seen in counts.most_common() if seen >= MIN_COUNT)
    return [word for word in ranked if word not in known and len(word) <= longest][:count]


def with_words(tokenizer: str, words: Iterable[str], first: int) -> str:
    """The JSON of a WordPiece tokenizer that keeps words whole: it takes the longest wordpiece that a word begins with.

    first (int): the id of the first word; the others follow.
    """
    said = json.loads(tokenizer)
    said["model"]["vocab"].update({word: number for number, word in enumerate(words, start=first)})
    return json.dumps(said, ensure_ascii=False)
