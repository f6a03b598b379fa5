"""A way of somebody else to read long texts: one entry in the table."""

import warnings

import numpy
import pytest
from helpers.pipelines import MAX_LENGTH, one_pipe
from transformers import AutoTokenizer, BertTokenizer

from spacy_sbert.hub import export_folder
from spacy_sbert.models.overflow import OVERFLOW, OverflowMode
from spacy_sbert.models.sbert_config import SentenceTransformersConfig
from spacy_sbert.models.tokenization import BatchTokenizer

# 60 wordpieces, of as many tokens
LONG = "the cat sat on a mat he is eating food " * 6
HALF = (MAX_LENGTH - 2) // 2


def head_and_tail(n, room, cuts_left):
    half = room // 2
    return [[*range(half), *range(n - (room - half), n)]]


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    mode = OverflowMode(head_and_tail, keeps_prompt=False, export_warning="{name} has a tail")
    monkeypatch.setitem(OVERFLOW, "head+tail", mode)


@pytest.mark.parametrize("kind", [AutoTokenizer, BertTokenizer], ids=["fast", "slow"])
def test_wordpieces(tiny_bert, kind):
    tokenizer = kind.from_pretrained(tiny_bert)
    batched = BatchTokenizer(tokenizer, SentenceTransformersConfig("x", MAX_LENGTH), "head+tail")
    batched.check()
    given = batched([LONG, "dog"], offsets=True)
    pieces = tokenizer.tokenize(LONG)
    expected = ["[CLS]", *pieces[:HALF], *pieces[-HALF:], "[SEP]", "[CLS]", "dog", "[SEP]"]
    assert batched.strings[given.ids].tolist() == expected
    assert given.n_cut.tolist() == [60 - 2 * HALF, 0]


@pytest.mark.parametrize("use_fast", [True, False])
def test_docs_spans_and_texts(tiny_bert, use_fast):
    nlp = one_pipe(tiny_bert, overflow="head+tail", tokenizer_config={"use_fast": use_fast})
    with pytest.warns(UserWarning, match="sbert-truncated"):
        doc = nlp(LONG)
    with pytest.warns(UserWarning, match="sbert-truncated"):
        assert numpy.allclose(nlp.get_pipe("sbert").encode(LONG), doc.vector, atol=1e-6)
    kept = [i for i, token in enumerate(doc) if token.has_vector]
    assert kept == [*range(HALF), *range(60 - HALF, 60)]


@pytest.mark.parametrize(
    ("first", "last", "is_read"),
    [(1, HALF, True), (-HALF, -1, True), (1, HALF + 1, False), (1, -1, False)],
)
def test_spans_over_the_gap_warn(tiny_bert, first, last, is_read):
    doc = one_pipe(tiny_bert, overflow="head+tail")(LONG)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert doc[first:last].vector.any()
    assert ("[sbert-behind-limit]" not in str(caught[0].message)) == is_read


def test_refused_and_exported(tiny_bert, tmp_path):
    with pytest.raises(ValueError, match=r"overflow = \"head\+tail\" do not go together"):
        one_pipe(tiny_bert, overflow="head+tail", include_prompt=False)
    with pytest.raises(ValueError, match="expected 'truncate', 'windows', 'cut' or 'head\\+tail'"):
        one_pipe(tiny_bert, overflow="tail")
    with pytest.warns(UserWarning, match="has a tail"):
        export_folder(one_pipe(tiny_bert, overflow="head+tail"), tmp_path / "out")
