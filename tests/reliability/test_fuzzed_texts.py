"""100,000 texts such as nobody writes: one finite vector each, however it is asked for, zero of no
wordpiece.
"""

import random
import sys
import unicodedata
from collections import defaultdict
from functools import cache, partial

import numpy
import pytest
from helpers.counted_cases import parts
from helpers.pipelines import INSTALLED
from helpers.spacy_transformers_tests import make_models
from transformers import AutoTokenizer

from spacy_sbert.models.resolve import find_local

pytestmark = pytest.mark.filterwarnings("ignore:.*longer than the encoder's limit")
PROMISE = (
    "a text of any characters has the same vector by nlp, nlp.pipe and encode, zero if it has no "
    "wordpiece"
)
# Float32 adds up in another order in a batch of another shape. LayerNorm holds states, and so
# vectors, at about 1.
TOLERANCE = 1e-5
SLOW = {"tokenizer_config": {"use_fast": False}}
# By name: the encoder, and what tells its pipeline from the plain one.
PIPELINES = {
    "own, bytes": ("roberta", "own", {"model": {"pooling": "mean", "normalize": True}}),
    "own, mean": ("bert", "own", {"model": {"normalize": True}}),
    "own, max": ("bert", "own", {"model": {"pooling": "max"}}),
    "shared, cls+mean": ("bert", "shared", {"model": {"pooling": "cls+mean"}}),
    "own, mean_sqrt_len, windows": (
        "bert",
        "own",
        {"model": {"pooling": "mean_sqrt_len", "overflow": "windows"}},
    ),
    "shared, weightedmean, truncated": (
        "bert",
        "shared",
        {"model": {"pooling": "weightedmean", "truncate_dim": 5}},
    ),
    "shared, mean": ("bert", "shared", {"model": {"normalize": True}}),
    "own, slow tokenizer": ("bert", "own", {"model": {"pooling": "lasttoken", **SLOW}}),
    "shared, slow tokenizer": (
        "bert",
        "shared",
        {"transformer": SLOW, "model": {"pooling": "mean"}},
    ),
    "own, bytes, no token vectors": (
        "roberta",
        "own",
        {"model": {"pooling": "max"}, "token_vectors": False},
    ),
    "shared, bytes": ("roberta", "shared", {"model": {"pooling": "cls"}}),
}
PIPELINES = {name: made for name, made in PIPELINES.items() if made[1] in INSTALLED}
# Texts of a round; the parts of a round, by pipelines
N_TEXTS = 500
N_ROUNDS = 196
N_SHARES = 6
N_REAL_TEXTS = 400
N_REAL_PARTS = 5


WRITTEN = """A man is eating food, isn't he? The cat sat on the mat; it cost $3.50 (about 3,20 €)!
Größe und Maß — naïve café, Ærøskøbing. Έναν ζεστό καφέ, παρακαλώ. Москва́ стои́т на реке́. 漢字とかなの混じった文です。
我喜欢吃苹果。السلام عليكم ورحمة الله. שלום עולם, מה שלומך? हिन्दी में एक वाक्य। ภาษาไทยไม่มีช่องว่าง 한국어 문장입니다.
http://example.org/a?b=c&d=%20e#f user@example.org #tag @name C++ O'Neill's 10^-3 <b>x</b> {"a": [1, 2]} \\n e.g."""
WORDS = ("a", "man", "Cat", "FOOD", "cannot", "sat.", "the", "don't", "dog,")
SPACES = [character for character in map(chr, range(sys.maxunicode)) if character.isspace()]
UNSEEN = "\x00\x01\x07\x08\x1b\x7f\x80\x9f\xad\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u2066\u2069"
UNSEEN += "\ufeff\ufffd\ufffe\uffff"
MARKS = "\u0300\u0301\u0308\u0327\u0338\u0345\u0489\u0591\u05b8\u064b\u0651\u0e31\u0e49\u20dd\u20e3\u3099\ufe0f"
MARKS += "\ufe0e\U000e0100"
FACES = "😀👩💻👨👧🏳🌈🏴❤🤦✈☠👍🇩🇪🇺🇸1#"
GLUE = ("", "\u200d", "\ufe0f", "\ufe0f\u200d", "\U0001f3fb", "\U0001f3fd", "\U0001f3ff")
SPECIAL = (
    "[CLS]",
    "[SEP]",
    "[PAD]",
    "[MASK]",
    "[UNK]",
    "<s>",
    "</s>",
    "<pad>",
    "<mask>",
    "##a",
    "Ġ",
)


@cache
def by_category() -> list[list[str]]:
    """The characters of each general category, but for surrogates."""
    found = defaultdict(list)
    for character in map(chr, range(sys.maxunicode + 1)):
        found[unicodedata.category(character)].append(character)
    del found["Cs"]
    return list(found.values())


def drawn(rng, most, draw):
    return "".join(draw(rng) for _ in range(min(most, int(rng.paretovariate(0.6)))))


def written(rng):
    start = rng.randrange(len(WRITTEN))
    return WRITTEN[start : start + rng.randrange(1, 80)]


def one_category(rng):
    characters = rng.choice(by_category())
    return drawn(rng, 30, lambda rng: rng.choice(characters))


def any_character(rng):
    code = rng.randrange(sys.maxunicode + 1)
    return chr(code) if not 0xD800 <= code < 0xE000 else ""


def marked(rng):
    return rng.choice("aeo נعก漢 ") + "".join(rng.choices(MARKS, k=rng.randrange(6)))


def turned(rng):
    letters = "אבגדوزحطيABC123 "
    inner = drawn(rng, 30, lambda rng: rng.choice(letters))
    return rng.choice("\u202b\u202e\u2067") + inner + rng.choice(("", "\u202c"))


def long_word(rng):
    return rng.choice(("a", "ab", "é", "漢", "1", "-", "a\u0301", "😀")) * rng.choice(
        (50, 101, 200, 700)
    )


KINDS = [
    *(written, written, written, one_category, one_category, turned, long_word),
    *2 * [partial(drawn, most=40, draw=lambda rng: rng.choice(WORDS) + " ")],
    partial(drawn, most=30, draw=lambda rng: rng.choice(rng.choice(by_category()))),
    partial(drawn, most=20, draw=any_character),
    partial(drawn, most=12, draw=lambda rng: rng.choice(SPACES)),
    partial(drawn, most=8, draw=lambda rng: rng.choice(UNSEEN)),
    partial(drawn, most=12, draw=marked),
    partial(drawn, most=15, draw=lambda rng: rng.choice(FACES) + rng.choice(GLUE)),
    lambda rng: rng.choice(SPECIAL),
    lambda rng: "",
]


def drawn_texts(n, seed):
    """Each of one kind or of several."""
    rng = random.Random(seed)
    texts = []
    for _ in range(n):
        kinds = rng.choices(KINDS, k=rng.choice((1, 1, 1, 2, 3, 5)))
        joint = rng.choice(("", " ", "\n", ". ", rng.choice(SPACES)))
        texts.append(joint.join(kind(rng) for kind in kinds))
    return texts


def test_drawn_texts():
    """The texts are those of their seed, hold what they are to hold, and no lone surrogate."""
    texts = drawn_texts(2000, 0)
    assert texts == drawn_texts(2000, 0) != drawn_texts(2000, 1)
    joined = "".join(texts)
    for character in "\x00\u200d\u202e\u0301\ufeff😀ع漢\u3000":
        assert character in joined, hex(ord(character))
    assert "" in texts
    assert any(text.isspace() for text in texts)
    assert max(map(len, texts)) > 500
    assert not any(0xD800 <= ord(character) < 0xE000 for character in joined)


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory):
    """The folder of a random RoBERTa whose tokenizer knows every byte."""
    folder = tmp_path_factory.mktemp("tiny")
    make_models(folder, "Roberta")
    return folder / "roberta-base"


def judge(cases, what, nlp, texts, tokenizer, rng):
    """Each text is a case."""
    pipe = nlp.get_pipe("sbert")
    n_pieces = [len(i) for i in tokenizer(texts, add_special_tokens=False)["input_ids"]]
    docs = list(nlp.pipe(texts, batch_size=rng.choice((7, 64, 500))))
    others = list(nlp.pipe(reversed(texts), batch_size=rng.choice((3, 33, 1000))))[::-1]
    encoded = pipe.encode(texts, window=rng.choice((5, 100, 5000)))
    if not len(docs) == len(others) == encoded.shape[0] == len(texts):
        cases.wrong(
            f"{what}: {len(texts)} texts became {len(docs)}, {len(others)} and {encoded.shape[0]} "
            "vectors"
        )
        return
    for i, text in enumerate(texts):
        # It takes longest, and most of its time is spaCy's
        one = nlp(text) if i % 3 == 0 else docs[i]
        vectors = [docs[i].vector, others[i].vector, one.vector, one._.sbert_vector, encoded[i]]
        held = {docs[i].has_vector, others[i].has_vector, one.has_vector, bool(vectors[0].any())}
        width = {vector.shape for vector in vectors} == {encoded.shape[1:]}
        facts = {
            "text": docs[i].text == others[i].text == one.text == text,
            "finite": all(numpy.isfinite(vector).all() for vector in vectors),
            "width": width,
            "near": width
            and max(abs(vector - vectors[0]).max() for vector in vectors) <= TOLERANCE,
            "held": held == {n_pieces[i] > 0},
            "tokens": i % 8
            or all(numpy.isfinite(token.vector).all() for token in one if pipe.token_vectors),
        }
        wrong = [name for name, holds in facts.items() if not holds]
        cases.check(
            not wrong, f"{what}, {text[:60]!r} of {n_pieces[i]} wordpieces: not {', '.join(wrong)}"
        )


@pytest.mark.parametrize("part", parts(N_ROUNDS * N_SHARES))
def test_fuzzed_texts(counted, make_nlp, tiny_bert, tiny_roberta, part):
    number, share = divmod(part, N_SHARES)
    texts = drawn_texts(N_TEXTS, number)
    folders = {"bert": tiny_bert, "roberta": tiny_roberta}
    with counted(PROMISE) as cases:
        for k, (name, (encoder, kind, config)) in list(enumerate(PIPELINES.items()))[
            share::N_SHARES
        ]:
            nlp = make_nlp(
                kind, name=folders[encoder], **{**config, "model": dict(config["model"])}
            )
            tokenizer = AutoTokenizer.from_pretrained(folders[encoder], use_fast="slow" not in name)
            own = texts[k :: len(PIPELINES)]
            judge(cases, f"part {part}, {name}", nlp, own, tokenizer, random.Random(part))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(N_REAL_PARTS))
def test_fuzzed_texts_on_the_real_model(counted, minilm, part):
    tokenizer = AutoTokenizer.from_pretrained(find_local("sentence-transformers/all-MiniLM-L6-v2"))
    with counted(PROMISE) as cases:
        texts = drawn_texts(N_REAL_TEXTS, 1000 + part)
        judge(cases, f"real, part {part}", minilm, texts, tokenizer, random.Random(part))
