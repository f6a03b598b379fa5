"""Search over Spans: units, parity with similarity, places in the text, and what is refused."""

import re

import numpy
import pytest
import spacy
from helpers.pipelines import ROOT, shim_of, through_docbin
from spacy.tokens import Doc, Span

from spacy_sbert.search import SpanSearch, VectorIndex, collect_spans

TEXTS = [
    "A man is eating food. The cat sat on the mat.",
    "",
    "He cannot go. \n The dog ran fast. ",
    "The man ran.",
]


@pytest.fixture(scope="module")
def nlp(make_nlp):
    return make_nlp(unit="doc+sent")


@pytest.fixture
def docs(nlp):
    return list(nlp.pipe(TEXTS))


def test_units(nlp, docs):
    docs[0].ents = [Span(docs[0], 1, 2, label="PERSON")]
    docs[2].spans["mine"] = [docs[2][0:2], docs[2][4:6]]
    assert [span.text for span in collect_spans(docs, "doc")] == [
        docs[i][:].text for i in (0, 2, 3)
    ]
    assert [span.text for span in collect_spans(docs)][:2] == [
        "A man is eating food.",
        "The cat sat on the mat.",
    ]
    assert [span.text for span in collect_spans(docs, "ents")] == ["man"]
    mine = collect_spans(docs[2:3], lambda doc: doc.spans["mine"])
    assert list(mine) == list(docs[2].spans["mine"])
    words = ["the", "cat", "sat"]
    parsed = Doc(
        spacy.blank("en").vocab,
        words,
        heads=[1, 2, 2],
        deps=["det", "nsubj", "ROOT"],
        pos=["DET", "NOUN", "VERB"],
    )
    assert [span.text for span in collect_spans([parsed], "noun_chunks")] == ["the cat"]


@pytest.mark.parametrize(
    ("kind", "query"),
    [("exact", "str"), ("exact", "doc"), ("flat", "span"), ("hnsw", "vector"), ("ivf", "doc")],
)
def test_which_sentence_says_this(nlp, docs, kind, query):
    search = SpanSearch(collect_spans(docs), kind=kind)
    assert len(search) == 5
    doc = nlp("The dog ran fast.")
    found = search.search(
        {"str": doc.text, "doc": doc, "span": doc[:], "vector": doc.vector}[query], k=3
    )
    scores = [doc.similarity(span) for span in search.spans]
    assert [one.score for one in found] == pytest.approx(sorted(scores, reverse=True)[:3], abs=1e-6)
    assert [doc.similarity(one.span) for one in found] == pytest.approx(
        [one.score for one in found], abs=1e-6
    )
    places = [
        (one.span.doc, docs[2].text[one.span.start_char : one.span.end_char]) for one in found
    ]
    assert any(doc is docs[2] and "The dog ran fast." in text for doc, text in places)


def test_docs_that_lost_their_hooks(nlp, docs):
    loaded = through_docbin(docs, nlp.vocab)
    expected = SpanSearch(collect_spans(docs)).search("the cat", k=5)
    found = SpanSearch(collect_spans(loaded)).search("the cat", k=5, nlp=nlp)
    assert [(one.span.text, one.score) for one in found] == [
        (one.span.text, one.score) for one in expected
    ]


def test_static_vectors_of_spacy():
    nlp = spacy.blank("xx")
    nlp.vocab.set_vector("cat", numpy.array([1.0, 0.0], dtype="f"))
    nlp.vocab.set_vector("dog", numpy.array([0.0, 1.0], dtype="f"))
    search = SpanSearch([nlp("cat")[:], nlp("dog")[:]])
    assert search.search(nlp("dog"), k=1)[0].span.text == "dog"
    with pytest.raises(ValueError, match="carries no sentence vectors"):
        search.search("dog")


def test_a_saved_index_of_the_same_spans(docs, tmp_path):
    spans = list(collect_spans(docs))
    VectorIndex.build(SpanSearch(spans).vectors).save(tmp_path)
    found = SpanSearch(spans, index=VectorIndex.load(tmp_path)).search("the cat", k=2)
    expected = SpanSearch(spans).search("the cat", k=2)
    assert [one.span for one in found] == [one.span for one in expected]
    with pytest.raises(ValueError, match=r"5 vectors, not 4"):
        SpanSearch(spans[1:], index=VectorIndex.load(tmp_path))
    with pytest.raises(ValueError, match=r"its vector 0 has the cosine -?0\.0"):
        other = numpy.zeros_like(spans[0].vector)
        other[numpy.abs(spans[0].vector).argmin()] = 1.0
        SpanSearch(spans[:1], index=VectorIndex.build(other[None]))


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        pytest.param(3, TypeError, "expected a str, a Doc", id="a number"),
        pytest.param("  ", ValueError, "it has no text", id="white space"),
        pytest.param(
            spacy.blank("xx")("a"), ValueError, "carries no sentence vectors", id="a plain Doc"
        ),
        pytest.param(numpy.ones(3), ValueError, "unequal width: 3 and 16", id="a narrow vector"),
        pytest.param(numpy.ones((2, 16)), ValueError, r"shape \(1, 2, 16\)", id="two vectors"),
    ],
)
def test_queries_that_cannot_be(docs, query, error, message):
    search = SpanSearch(collect_spans(docs))
    with pytest.raises(error, match=message):
        search.search(query)


def test_a_query_without_text(docs):
    search = SpanSearch(collect_spans(docs))
    with pytest.raises(ValueError, match="it has no text"):
        search.search(docs[1])


@pytest.mark.parametrize("k", [0, 1.5])
def test_k_is_a_positive_whole_number(docs, k):
    with pytest.raises(ValueError, match=f"k = {k}: expected "):
        SpanSearch(collect_spans(docs)).search("a", k=k)


def test_spans_without_a_vector(docs):
    with pytest.raises(ValueError, match="no Span with a vector"):
        SpanSearch([])
    # White space
    with pytest.raises(ValueError, match="no Span with a vector"):
        SpanSearch([docs[2][5:6]])


def test_docs_without_the_unit(make_nlp, docs):
    with pytest.raises(ValueError, match="carries no sentence vectors"):
        SpanSearch(collect_spans(spacy.blank("xx").pipe(["a"]), "doc"))
    with pytest.raises(ValueError, match="Sentence boundaries unset"):
        SpanSearch(collect_spans([make_nlp()("a b")]))
    with pytest.raises(ValueError, match="unit = 'page': expected 'doc', 'sent', 'noun_chunks'"):
        collect_spans(docs, "page")


def test_each_sentence_finds_the_one_of_the_other_doc_that_says_the_same():
    """As docs/search.md says."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("sbert")
    recipe = re.search(
        r"two Docs\n.*?```python\n(.*?)```",
        (ROOT / "docs" / "search.md").read_text(encoding="utf8"),
        re.DOTALL,
    )[1]
    found: dict = {"nlp": nlp, "SpanSearch": SpanSearch, "collect_spans": collect_spans}
    exec(recipe, found)
    pairs = {sentence.text: other.text for _, sentence, other in found["matches"]}
    assert pairs["A man is eating food."] == "Someone is having a meal."
    assert pairs["The bank raised its rates."] == "Interest is higher now."
    assert len(pairs) == 3
    spans = collect_spans(nlp("One is here. Another is there."), "sent")
    assert len(list(spans)) == 2
    assert list(spans) == []


def _trained(nlp):
    for parameter in shim_of(nlp).weights.parameters():
        parameter.data = parameter.data * 1.5


# The Spans that an index is opened with, from those that it was built of
MADE_OF = {
    "another order": lambda make_nlp, spans: spans[::-1],
    "two of them changed places": lambda make_nlp, spans: [spans[1], spans[0], *spans[2:]],
    "fewer": lambda make_nlp, spans: spans[:-1],
    "more": lambda make_nlp, spans: [*spans, spans[0]],
    "one twice": lambda make_nlp, spans: [spans[0], *spans[:-1]],
    "a text that was edited": lambda make_nlp, spans: _spans(
        make_nlp(unit="doc+sent"), [TEXTS[0], "", "The dog ran fast. He ran.", TEXTS[3]]
    ),
    "an encoder that was trained": lambda make_nlp, spans: _spans(
        make_nlp(unit="doc+sent"), TEXTS, _trained
    ),
    "another pooling": lambda make_nlp, spans: _spans(
        make_nlp(unit="doc+sent", model={"pooling": "cls"}), TEXTS
    ),
    "another width": lambda make_nlp, spans: _spans(
        make_nlp(unit="doc+sent", model={"truncate_dim": 8}), TEXTS
    ),
    "a prompt": lambda make_nlp, spans: _spans(
        make_nlp(unit="doc+sent", model={"prompts": {"p": "a dog "}, "default_prompt_name": "p"}),
        TEXTS,
    ),
}


def _spans(nlp, texts, change=lambda nlp: None):
    nlp(texts[0])
    change(nlp)
    return list(collect_spans(nlp.pipe(texts)))


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])
@pytest.mark.parametrize("change", MADE_OF)
def test_an_index_of_other_spans_is_refused(make_nlp, docs, kind, change, tmp_path):
    """Built of their vectors alone, or by the search itself, with their texts; saved and loaded."""
    spans = list(collect_spans(docs))
    given = MADE_OF[change](make_nlp, spans)
    VectorIndex.build(SpanSearch(spans).vectors, kind=kind).save(tmp_path / "plain")
    SpanSearch(spans, kind=kind).index.save(tmp_path / "texts")
    for name in ("plain", "texts"):
        index = VectorIndex.load(tmp_path / name)
        assert len(SpanSearch(spans, index=index)) == len(spans)
        with pytest.raises(ValueError, match=r"The index is of others than these|unequal width"):
            SpanSearch(given, index=index)


def test_docs_that_another_encoder_read_since_are_not_asked_by_it(make_nlp):
    """The search holds the vectors that the Docs had."""
    nlp = make_nlp(unit="doc+sent")
    docs = list(nlp.pipe(TEXTS))
    search = SpanSearch(collect_spans(docs))
    assert search.search("The man ran.", k=1)[0].score == pytest.approx(1)
    _trained(nlp)
    for doc in docs:
        nlp.get_pipe("sbert")(doc)
    with pytest.raises(ValueError, match="does not know a pipe with the encoder"):
        search.search("The man ran.", k=1)
    with pytest.warns(UserWarning, match="sbert-other-encoder"):
        search.search(nlp("The man ran."), k=1)


@pytest.mark.parametrize("kind", ["exact", "flat"])
def test_docs_that_were_retokenized_since(make_nlp, kind):
    """Their Spans lie on other tokens now, or beyond the end."""
    nlp = make_nlp(unit="doc+sent")
    doc = nlp("A man is eating food. The cat sat on the mat.")
    search = SpanSearch(collect_spans(doc), kind=kind)
    assert search.search("The cat sat on the mat.", k=1)[0].span.text == "The cat sat on the mat."
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    with pytest.raises(ValueError, match=r"'The cat sat on the mat\.' .*retokenized"):
        search.search(nlp("The cat sat on the mat."), k=2)


def test_what_a_search_holds_is_not_changed(docs):
    search = SpanSearch(collect_spans(docs))
    assert isinstance(search.spans, tuple)
    with pytest.raises(ValueError, match="read-only"):
        search.vectors[0] = 0


@pytest.mark.parametrize("name", ["spans", "vectors", "index"])
def test_what_a_search_is_made_of_stays(name):
    nlp = spacy.blank("xx")
    nlp.vocab.set_vector("cat", numpy.array([1.0, 0.0], dtype="f"))
    search = SpanSearch([nlp("cat")[:]])
    with pytest.raises(AttributeError, match=f"property '{name}'"):
        setattr(search, name, getattr(search, name))
