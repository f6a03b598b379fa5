"""What works with `sbert` works with `sbert_meta`."""

import numpy
import pytest

from spacy_sbert import find_meta, find_sbert
from spacy_sbert.search import SpanSearch, collect_spans, identify

TEXT = "A man is eating food. The cat sat on the mat."


@pytest.fixture
def nlp(make_nlp):
    nlp = make_nlp(unit="doc+sent")
    nlp.add_pipe("sbert", name="other", source=make_nlp(unit="doc+sent"))
    nlp.add_pipe("sbert_meta")
    return nlp


@pytest.mark.parametrize(
    "given",
    [
        {"device": "cuda"},
        {"prompt_name": "query"},
        {"batch_size": 0},
        {"window": 0},
        {"precision": "int8"},
        {"normalize_embeddings": "yes"},
        {"convert_to_numpy": False},
    ],
    ids=str,
)
def test_wrong_values(nlp, given):
    with pytest.raises(ValueError, match=f"Cannot use {next(iter(given))} = "):
        find_meta(nlp).encode(["a man"], **given)


@pytest.mark.parametrize(
    "given", [{"n_process": 2}, {"gpu_ids": [0]}, {"prompt": "query: "}, {"truncate_dim": 8}], ids=str
)
def test_what_the_members_decide(nlp, given):
    with pytest.raises(TypeError, match="got an unexpected keyword argument"):
        find_meta(nlp).encode(["a man"], **given)


def test_most_similar_to_a_text(nlp):
    doc = nlp(TEXT)
    found = doc._.sbert_meta_most_similar("the cat", k=2)
    expected = {sent.text: find_meta(nlp).vector(nlp("the cat")) @ sent.vector / 2 for sent in doc.sents}
    assert {one.span.text: one.score for one in found} == pytest.approx(expected, abs=1e-6)
    assert found[0].score > found[1].score
    search = SpanSearch(collect_spans(doc, "sent"))
    assert search.search("the cat", k=2) == found
    with pytest.raises(ValueError, match=r"Cannot use prompt_name = 'query'.* default_prompt_name"):
        search.search("the cat", prompt_name="query")


def test_the_vector_of_a_token(nlp):
    doc = nlp("a man is eating")
    members = [nlp.get_pipe(name).vector(doc[1]) for name in ("sbert", "other")]
    expected = numpy.concatenate([member / numpy.linalg.norm(member) for member in members])
    assert find_meta(nlp).vector(doc[1]) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(TypeError, match="There is no vector of 'a man'"):
        find_meta(nlp).vector("a man")


def test_errors_go_to_the_error_handler(nlp, monkeypatch):
    meta, failed = find_meta(nlp), []
    nlp.set_error_handler(lambda name, pipe, docs, error: failed.append((name, len(docs), str(error))))
    combine = meta._combine
    monkeypatch.setattr(meta, "_combine", lambda views: combine(views) if len(views[0]) == 1 else 1 / 0)
    texts = ["a man", "a dog", "he ran"]
    assert [doc.text for doc in nlp.pipe(texts, batch_size=2)] == ["he ran"]
    assert failed == [("sbert_meta", 2, "division by zero")]


def test_a_pipe_of_another_kind_is_named(nlp):
    message = r"'sbert' pipe named 'sbert_meta': those it has are sbert, other\..* is a SentenceMeta: .*get_pipe"
    with pytest.raises(ValueError, match=message):
        find_sbert(nlp, "sbert_meta")
    with pytest.raises(
        ValueError, match=r"'sbert_meta' pipe named 'sbert': those it has are sbert_meta\..*SentenceBert"
    ):
        find_meta(nlp, "sbert")
    with pytest.raises(TypeError, match=r"Cannot tell the encoder of SentenceMeta\(.*without encoder"):
        identify(find_meta(nlp))
