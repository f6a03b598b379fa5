"""100,000 texts such as nobody writes: one finite vector each, however it is asked for, zero of no wordpiece."""

import random

import numpy
import pytest
import torch
from counting import parts
from made_texts import drawn_texts
from pipelines import INSTALLED
from tokenizers import ByteLevelBPETokenizer
from transformers import AutoTokenizer, RobertaConfig, RobertaModel, RobertaTokenizerFast

from spacy_sbert.models.resolve import find_local

pytestmark = pytest.mark.filterwarnings("ignore:.*longer than the encoder's limit")
PROMISE = "a text of any characters has the same vector by nlp, nlp.pipe and encode, zero if it has no wordpiece"
# Float32 adds up in another order in a batch of another shape. LayerNorm holds states, and so vectors, at about 1.
TOLERANCE = 1e-5
SLOW = {"tokenizer_config": {"use_fast": False}}
# By name: the encoder, and what tells its pipeline from the plain one.
PIPELINES = {
    "own, mean": ("bert", "own", {"model": {"normalize": True}}),
    "shared, mean": ("bert", "shared", {"model": {"normalize": True}}),
    "own, max": ("bert", "own", {"model": {"pooling": "max"}}),
    "shared, cls+mean": ("bert", "shared", {"model": {"pooling": "cls+mean"}}),
    "own, mean_sqrt_len, windows": ("bert", "own", {"model": {"pooling": "mean_sqrt_len", "overflow": "windows"}}),
    "shared, weightedmean, truncated": ("bert", "shared", {"model": {"pooling": "weightedmean", "truncate_dim": 5}}),
    "own, slow tokenizer": ("bert", "own", {"model": {"pooling": "lasttoken", **SLOW}}),
    "shared, slow tokenizer": ("bert", "shared", {"transformer": SLOW, "model": {"pooling": "mean"}}),
    "own, bytes": ("roberta", "own", {"model": {"pooling": "mean", "normalize": True}}),
    "shared, bytes": ("roberta", "shared", {"model": {"pooling": "cls"}}),
    "own, bytes, no token vectors": ("roberta", "own", {"model": {"pooling": "max"}, "token_vectors": False}),
}
PIPELINES = {name: made for name, made in PIPELINES.items() if made[1] in INSTALLED}
PART, N_PARTS = 500, 196
REAL_PART, N_REAL_PARTS = 400, 5


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory):
    """The folder of a random RoBERTa whose tokenizer knows every byte."""
    folder = tmp_path_factory.mktemp("tiny") / "roberta"
    folder.mkdir()
    bytes_alone = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bytes_alone.train_from_iterator(["the cat sat on the mat, a man is eating"], vocab_size=300, special_tokens=special)
    bytes_alone.save_model(str(folder))
    tokenizer = RobertaTokenizerFast.from_pretrained(folder, model_max_length=24)
    tokenizer.save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = RobertaConfig(
            vocab_size=len(tokenizer), max_position_embeddings=26, type_vocab_size=1, pad_token_id=1, **sizes
        )
        RobertaModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def wordpieces_of():
    """How many wordpieces the stock tokenizer of a folder makes of texts, special tokens left out."""

    def count(folder, texts, use_fast=True):
        tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=use_fast)
        return [len(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]

    return count


def judge(cases, what, nlp, texts, n_pieces, rng):
    """Each text is a case."""
    pipe = nlp.get_pipe("sbert")
    docs = list(nlp.pipe(texts, batch_size=rng.choice((7, 64, 500))))
    others = list(nlp.pipe(reversed(texts), batch_size=rng.choice((3, 33, 1000))))[::-1]
    encoded = pipe.encode(texts, window=rng.choice((5, 100, 5000)))
    if len(docs) != len(texts) or len(others) != len(texts) or encoded.shape[0] != len(texts):
        cases.wrong(f"{what}: {len(texts)} texts became {len(docs)}, {len(others)} and {encoded.shape[0]} vectors")
        return
    for i, text in enumerate(texts):
        one = nlp(text) if i % 3 == 0 else docs[i]  # it takes longest, and most of its time is spaCy's
        vectors = [docs[i].vector, others[i].vector, one.vector, one._.sbert_vector, encoded[i]]
        same_text = docs[i].text == others[i].text == one.text == text
        finite = all(numpy.isfinite(vector).all() for vector in vectors)
        width = {vector.shape for vector in vectors} == {encoded.shape[1:]}
        near = width and max(abs(vector - vectors[0]).max() for vector in vectors) <= TOLERANCE
        held = {docs[i].has_vector, others[i].has_vector, one.has_vector, bool(vectors[0].any())} == {n_pieces[i] > 0}
        tokens = i % 8 or all(numpy.isfinite(token.vector).all() for token in one if pipe.token_vectors)
        facts = {"text": same_text, "finite": finite, "width": width, "near": near, "held": held, "tokens": tokens}
        wrong = [name for name, holds in facts.items() if not holds]
        cases.check(not wrong, f"{what}, {text[:60]!r} of {n_pieces[i]} wordpieces: not {', '.join(wrong)}")


@pytest.mark.parametrize("part", parts(N_PARTS))
def test_fuzzed_texts(counted, make_nlp, tiny_bert, tiny_roberta, wordpieces_of, part):
    texts, rng = drawn_texts(PART, part), random.Random(part)
    folders = {"bert": tiny_bert, "roberta": tiny_roberta}
    with counted(PROMISE) as cases:
        for k, (name, (encoder, kind, config)) in enumerate(PIPELINES.items()):
            own = texts[k :: len(PIPELINES)]
            config = {**config, "model": dict(config["model"])}
            nlp = make_nlp(kind, name=folders[encoder], **config)
            judge(
                cases, f"part {part}, {name}", nlp, own, wordpieces_of(folders[encoder], own, "slow" not in name), rng
            )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(N_REAL_PARTS))
def test_fuzzed_texts_on_the_real_model(counted, minilm, wordpieces_of, part):
    folder = find_local("sentence-transformers/all-MiniLM-L6-v2")
    texts = drawn_texts(REAL_PART, 1000 + part)
    with counted(PROMISE) as cases:
        judge(cases, f"real, part {part}", minilm, texts, wordpieces_of(folder, texts), random.Random(part))


def test_drawn_texts():
    """The texts are those of their seed, hold what they are to hold, and no lone surrogate."""
    texts = drawn_texts(2000, 0)
    assert texts == drawn_texts(2000, 0) != drawn_texts(2000, 1)
    joined = "".join(texts)
    for character in "\x00\u200d\u202e\u0301\ufeff😀ع漢\u3000":
        assert character in joined, hex(ord(character))
    assert "" in texts and any(text.isspace() for text in texts) and max(map(len, texts)) > 500
    assert not any(0xD800 <= ord(character) < 0xE000 for character in joined)


@pytest.mark.parametrize("kind", ["own", "shared"])
def test_white_space_at_the_ends(make_nlp, tiny_roberta, kind):
    """A tokenizer of bytes sees it, and so do all ways to a vector."""
    nlp = make_nlp(kind, name=tiny_roberta)
    texts = ["Cat", "Cat ", " Cat", "Cat  ", "Cat\n", " ", "\n "]
    encoded = nlp.get_pipe("sbert").encode(texts)
    for text, vector, doc in zip(texts, encoded, nlp.pipe(texts), strict=True):
        assert doc.vector == pytest.approx(vector, abs=TOLERANCE), repr(text)
        assert nlp(text)[:].vector == pytest.approx(vector, abs=TOLERANCE), repr(text)
        assert doc.has_vector
