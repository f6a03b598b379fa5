"""Texts such as nobody writes, and some that somebody does: drawn from a seed, without lone surrogates."""

import random
import sys
import unicodedata
from collections import defaultdict
from functools import cache

WRITTEN = """A man is eating food, isn't he? The cat sat on the mat; it cost $3.50 (about 3,20 €)!
Größe und Maß — naïve café, Ærøskøbing. Έναν ζεστό καφέ, παρακαλώ. Москва́ стои́т на реке́. 漢字とかなの混じった文です。
我喜欢吃苹果。السلام عليكم ورحمة الله. שלום עולם, מה שלומך? हिन्दी में एक वाक्य। ภาษาไทยไม่มีช่องว่าง 한국어 문장입니다.
http://example.org/a?b=c&d=%20e#f user@example.org #tag @name C++ O'Neill's 10^-3 <b>x</b> {"a": [1, 2]} \\n e.g."""
SPACES = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2003\u2007\u2009\u200a\u2028\u2029\u202f"
SPACES += "\u205f\u3000"
UNSEEN = "\x00\x01\x07\x08\x1b\x7f\x80\x9f\xad\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u2066\u2069"
UNSEEN += "\ufeff\ufffd\ufffe\uffff"
MARKS = "\u0300\u0301\u0308\u0327\u0338\u0345\u0489\u0591\u05b8\u064b\u0651\u0e31\u0e49\u20dd\u20e3\u3099\ufe0f"
MARKS += "\ufe0e\U000e0100"
FACES = "😀👩💻👨👧🏳🌈🏴❤🤦✈☠👍🇩🇪🇺🇸1#"
TONES = "\U0001f3fb\U0001f3fd\U0001f3ff"


@cache
def by_category() -> dict[str, list[str]]:
    """The characters of each general category, but for surrogates."""
    found = defaultdict(list)
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        found[unicodedata.category(character)].append(character)
    del found["Cs"]
    return dict(found)


def drawn_text(rng: random.Random) -> str:
    """One text, of one kind or of several."""
    kinds = rng.choices(KINDS, k=rng.choice((1, 1, 1, 2, 3, 5)))
    joint = rng.choice(("", " ", "\n", ". ", rng.choice(SPACES)))
    return joint.join(kind(rng) for kind in kinds)


def drawn_texts(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    texts = [drawn_text(rng) for _ in range(n)]
    return [text.encode("utf-8", "strict").decode("utf-8") for text in texts]


def _n(rng: random.Random, most: int) -> int:
    return min(most, int(rng.paretovariate(0.6)))


def _written(rng: random.Random) -> str:
    start = rng.randrange(len(WRITTEN))
    return WRITTEN[start : start + rng.randrange(1, 80)]


def _words(rng: random.Random) -> str:
    return " ".join(
        rng.choice(("a", "man", "Cat", "FOOD", "cannot", "sat.", "the", "don't", "dog,")) for _ in range(_n(rng, 40))
    )


def _one_category(rng: random.Random) -> str:
    return "".join(rng.choices(rng.choice(list(by_category().values())), k=_n(rng, 30)))


def _any_category(rng: random.Random) -> str:
    categories = list(by_category().values())
    return "".join(rng.choice(rng.choice(categories)) for _ in range(_n(rng, 30)))


def _any_character(rng: random.Random) -> str:
    codes = (rng.randrange(sys.maxunicode + 1) for _ in range(_n(rng, 20)))
    return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)


def _spaces(rng: random.Random) -> str:
    return "".join(rng.choices(SPACES, k=_n(rng, 12)))


def _unseen(rng: random.Random) -> str:
    return "".join(rng.choices(UNSEEN, k=_n(rng, 8)))


def _marked(rng: random.Random) -> str:
    return "".join(
        rng.choice("aeo נعก漢 ") + "".join(rng.choices(MARKS, k=rng.randrange(6))) for _ in range(_n(rng, 12))
    )


def _faces(rng: random.Random) -> str:
    glue = ("", "\u200d", "\ufe0f", "\ufe0f\u200d", *TONES)
    return "".join(rng.choice(FACES) + rng.choice(glue) for _ in range(_n(rng, 15)))


def _turned(rng: random.Random) -> str:
    letters = "אבגדوزحطيABC123 "
    return rng.choice("\u202b\u202e\u2067") + "".join(rng.choices(letters, k=_n(rng, 30))) + rng.choice(("", "\u202c"))


def _long_word(rng: random.Random) -> str:
    return rng.choice(("a", "ab", "é", "漢", "1", "-", "a\u0301", "😀")) * rng.choice((50, 101, 200, 700))


def _special(rng: random.Random) -> str:
    return rng.choice(("[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]", "<s>", "</s>", "<pad>", "<mask>", "##a", "Ġ"))


def _nothing(rng: random.Random) -> str:
    return ""


KINDS = [_written, _written, _written, _words, _words, _one_category, _one_category, _any_category, _any_character]
KINDS += [_spaces, _unseen, _marked, _faces, _turned, _long_word, _special, _nothing]
