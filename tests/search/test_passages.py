"""Passages as rows of an index: what is found leads back to the document and its neighbours."""

import re

import numpy
import pytest
import spacy
from helpers.pipelines import real_data

from spacy_sbert import find_sbert
from spacy_sbert.search import SpanSearch, VectorIndex, collect_spans, passages

TEXT = "A man is eating food. The cat sat on the mat. He cannot go. The dog ran fast."
TEXTS = {"d/1": TEXT, "empty": " ", "d#2": "The dog ran fast.", "d/3": f"{TEXT} {TEXT}\n"}


@pytest.fixture
def nlp(make_nlp):
    made = make_nlp(unit="chunk")
    made.add_pipe("sbert_chunks", config={"max_length": 16, "min_length": 0}, before="sbert")
    return made


def test_rows_of_documents(nlp):
    docs = dict(zip(TEXTS, nlp.pipe(TEXTS.values()), strict=True))
    found = list(passages((doc, name) for name, doc in docs.items()))
    assert [passage.id for passage in found] == [
        *("d/1#0", "d/1#1", "d#2#0"),
        *("d/3#0", "d/3#1", "d/3#2", "d/3#3"),
    ]
    assert len({passage.id for passage in found}) == len(found)
    for passage in found:
        columns = passage.columns
        assert passage.id == f"{columns['document']}#{columns['passage']}"
        text = TEXTS[columns["document"]]
        assert text[columns["start_char"] : columns["end_char"]] == passage.text
        assert passage.span.text == passage.text
        assert passage.span.doc is docs[columns["document"]]
        assert list(docs[columns["document"]].spans["chunks"])[columns["passage"]] == passage.span


def test_documents_are_read_one_by_one(nlp):
    def stream():
        yield nlp(TEXT), 7
        raise RuntimeError

    found = passages(stream())
    assert [next(found).id for _ in range(2)] == ["7#0", "7#1"]


def test_an_index_leads_back(nlp, tmp_path):
    pytest.importorskip("faiss")
    sbert = find_sbert(nlp)
    pairs = [(text, name) for name, text in TEXTS.items()]
    found = list(passages(nlp.pipe(pairs, as_tuples=True)))
    texts = [passage.text for passage in found]
    vectors = sbert.encode(texts)
    stored = numpy.stack([passage.span.vector for passage in found])
    assert numpy.allclose(vectors, stored, atol=1e-6)
    ids = [passage.id for passage in found]
    VectorIndex.build(vectors, texts=texts, ids=ids, encoder=sbert).save(tmp_path / "index")
    index = VectorIndex.load(tmp_path / "index")
    _, rows = index.search(sbert.encode(["A man is eating food. The cat sat on the mat."]), k=1)
    row = index.rows[rows[0, 0]]
    document, number = row.id.rsplit("#", 1)
    assert TEXTS[document].startswith(row.text)
    assert f"{document}#{int(number) + 1}" in ids


def test_passages_are_searched_as_spans(nlp):
    docs = list(nlp.pipe(TEXTS.values()))
    search = SpanSearch(collect_spans(docs, "chunks"))
    assert len(search) == 7
    span, score = search.search("The dog ran fast.", k=1)[0]
    assert (span.doc, span.text) == (docs[2], "The dog ran fast.")
    assert score == pytest.approx(1.0, abs=1e-6)


def test_documents_without_passages_are_refused(nlp):
    doc = nlp(TEXT)
    with pytest.raises(ValueError, match=r"has no passages in doc\.spans\['others'\]"):
        list(passages([(doc, "a")], spans_key="others"))
    with pytest.raises(ValueError, match=r"has no passages in doc\.spans\['chunks'\]"):
        list(collect_spans(nlp.make_doc("a"), "chunks"))


def test_documents_of_cranfield(minilm_passages):
    records = (real_data() / "retrieval" / "cranfield" / "cran.all.1400").read_text(encoding="utf8")
    texts = [
        " ".join(re.split(r"^\.[TABW]$", one, flags=re.MULTILINE)[-1].split())
        for one in records.split("\n.I ")[:5]
    ]
    sbert = find_sbert(minilm_passages)
    found = list(passages(minilm_passages.pipe(zip(texts, range(5), strict=True), as_tuples=True)))
    alone = numpy.stack([sbert.vector(passage.span) for passage in found])
    context = numpy.stack([sbert.vector(passage.span, context=True) for passage in found])
    assert len(found) > 8
    assert numpy.allclose(alone, sbert.encode([passage.text for passage in found]), atol=1e-5)
    cosines = (alone * context).sum(axis=1)
    assert (cosines > 0.6).all()
    n_whole = len({p.columns["document"] for p in found if p.columns["passage"] == 0}) - len(
        {p.columns["document"] for p in found if p.columns["passage"] == 1}
    )
    assert (cosines > 0.9999).sum() == n_whole


@pytest.fixture(scope="module")
def minilm_passages():
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("sbert_chunks", config={"max_length": 96, "min_length": 24})
    model = {"get_spans": {"unit": "doc+chunk"}, "overflow": "windows"}
    nlp.add_pipe("sbert", config={"model": model})
    return nlp
