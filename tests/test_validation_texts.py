"""Texts as they are held elsewhere: columns of tables, arrays, Docs and Spans; and what is no
sequence of texts.
"""

from enum import Enum

import numpy
import pandas
import pyarrow
import pytest
from helpers.pipelines import one_pipe
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer

from spacy_sbert import find_meta
from spacy_sbert.validation import checked_texts

TEXTS = ["a dog", "the cat sat", ""]
TABLE = pyarrow.table({"text": TEXTS})
FRAME = pandas.DataFrame({"text": TEXTS}, index=[5, 3, 5])
TWO_COLUMNS = FRAME.assign(other="x")
COLUMNS = [
    *(
        FRAME,
        FRAME["text"],
        FRAME.values,
        *(FRAME["text"].astype(kind) for kind in ("string", "category", "object")),
    ),
    *(
        numpy.array(TEXTS),
        numpy.array(TEXTS, dtype=object),
        numpy.array(TEXTS)[:, None],
        tuple(TEXTS),
    ),
    *(TABLE, TABLE["text"], TABLE["text"].combine_chunks(), TABLE.to_batches()[0]),
    *(
        pyarrow.array(TEXTS).dictionary_encode(),
        iter(TEXTS),
        dict.fromkeys(TEXTS).keys(),
        map(str, TEXTS),
    ),
]


def test_a_column_is_its_texts():
    for given in COLUMNS:
        found = list(checked_texts(given))
        assert found == TEXTS and all(isinstance(text, str) for text in found), type(given)


def test_polars():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"text": TEXTS})
    assert list(checked_texts(frame)) == list(checked_texts(frame["text"])) == TEXTS
    with pytest.raises(TypeError, match="2 columns"):
        checked_texts(frame.with_columns(other=polars.lit("x")))
    with pytest.raises(TypeError, match=r"text number 2, .*expected str"):
        checked_texts(polars.Series(["a", None]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (TWO_COLUMNS, r'2 columns \(\'text\', \'other\'\): .*df\["text"\]'),
        (pandas.DataFrame(), r"0 columns \(\): expected one"),
        (pyarrow.table({"text": TEXTS, "other": TEXTS}), "2 columns"),
        (numpy.array([TEXTS, TEXTS]), r"shape \(2, 3\): expected shape \(n,\) or \(n, 1\)"),
        (numpy.array([TEXTS]), r"shape \(1, 3\)"),
        (numpy.array("a dog"), r"shape \(\)"),
        (numpy.str_("a dog"), "expected several texts"),
        (3, "expected several texts"),
        ({"text": TEXTS}, r"expected several texts.*texts\.values\(\)"),
        ({"a dog", "a cat"}, "expected several texts in an order"),
        (numpy.arange(3), "text number 1, .*expected str, got int64"),
        ([["a dog"], ["a cat"]], "text number 1, .*expected str, got list"),
        (numpy.ma.array(["a", "b"], mask=[False, True]), "text number 2, .*expected str"),
        (pyarrow.array(["a", None]), "text number 2, .*expected str"),
        ([numpy.float32("nan")], "text number 1, .*expected str"),
        *(
            (["a", gap], "text number 2, .*expected str")
            for gap in (None, float("nan"), pandas.NA, pandas.NaT)
        ),
        *(
            (pandas.Series(["a", gap], dtype="string"), "text number 2, .*expected str")
            for gap in (None, pandas.NA)
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_what_is_no_sequence_of_texts(given, message):
    with pytest.raises(TypeError, match=message):
        checked_texts(given)


def test_each_function_takes_columns(make_nlp):
    sbert = make_nlp().get_pipe("sbert")
    expected = sbert.encode(TEXTS)
    for given in (FRAME, TABLE, numpy.array(TEXTS)[:, None]):
        assert numpy.array_equal(sbert.encode(given), expected)
    for call in (sbert.encode, sbert.calibrate):
        with pytest.raises(TypeError, match="2 columns"):
            call(TWO_COLUMNS)
    step = ColumnTransformer([("sbert", FunctionTransformer(sbert.encode), [0])])
    assert numpy.array_equal(
        step.fit_transform(numpy.array(TEXTS, dtype=object)[:, None]), expected
    )


def test_docs_and_spans_are_their_texts_alone(make_nlp, monkeypatch):
    nlp = make_nlp("own", unit="doc+sent")
    docs = list(nlp.pipe(["the cat sat . a dog ran .", "he is eating food ."]))
    sbert = nlp.get_pipe("sbert")
    spans = [docs[0][3:6], *docs[0].sents]
    assert numpy.array_equal(sbert.encode(docs), sbert.encode([doc.text for doc in docs]))
    assert numpy.array_equal(sbert.encode(iter(spans)), sbert.encode([span.text for span in spans]))
    mixed = sbert.encode([docs[1], spans[0], "a dog"])
    assert numpy.array_equal(mixed, sbert.encode([docs[1].text, spans[0].text, "a dog"]))
    assert numpy.array_equal(sbert.encode(docs[0]), sbert.encode([docs[0]])[0])
    # A list is checked before that
    monkeypatch.setattr(type(sbert.text_encoder()), "encode", None)
    with pytest.raises(TypeError, match=r"text number 9, .*expected str"):
        sbert.encode([*"abcdefgh", None], window=1)


def test_pairs_and_texts_of_a_reranker(tiny_bert):
    reranker = one_pipe(tiny_bert, "sbert_reranker", n_outputs=1).get_pipe("sbert_reranker")
    with pytest.warns(UserWarning, match="reranker-new-head"):
        expected = reranker.rank("a dog", TEXTS)
    for given in (FRAME, FRAME["text"], pyarrow.array(TEXTS), numpy.array(TEXTS)):
        assert reranker.rank("a dog", given) == expected
    with pytest.raises(TypeError, match="2 columns"):
        reranker.rank("a dog", TWO_COLUMNS)
    with pytest.raises(TypeError, match="expected several texts"):
        reranker.rank("a dog", set(TEXTS))
    for pairs in (FRAME, {("a", "b")}, {"q": "p"}):
        with pytest.raises(TypeError, match="Cannot score"):
            reranker.score_pairs(pairs)
    assert reranker.score_pairs(zip(FRAME["text"], FRAME["text"], strict=True)).shape == (3,)


@pytest.mark.parametrize(
    "options", [{}, {"normalize_embeddings": True}, {"convert_to_tensor": True}]
)
def test_a_single_text_has_a_single_vector(make_nlp, options):
    """As in sentence-transformers; a Doc or Span is one text, too."""
    nlp = make_nlp()
    nlp.add_pipe("sbert", name="other", config={"model": nlp.get_pipe_config("sbert")["model"]})
    nlp.add_pipe("sbert_meta")
    doc = nlp("the cat sat")
    for encode in (nlp.get_pipe("sbert").encode, find_meta(nlp).encode):
        expected = encode(["the cat sat"], **options)[0]
        for text in (
            "the cat sat",
            numpy.str_("the cat sat"),
            numpy.array("the cat sat"),
            doc,
            doc[:],
        ):
            found = encode(text, **options)
            assert type(found) is type(expected)
            assert found.shape == expected.shape == (expected.shape[0],)
            assert (found == expected).all()
        assert not encode("", **options).any()
        with pytest.raises(TypeError, match=r"shape \(\)"):
            encode(numpy.array(3.0), **options)


@pytest.mark.parametrize(
    "options", [{"prompt": "a dog "}, {"prompt_name": "query"}, {"truncate_dim": 4}]
)
def test_a_single_text_has_its_prompt_and_its_dimensions(make_nlp, options):
    sbert = make_nlp(model={"prompts": {"query": "a query: "}}).get_pipe("sbert")
    assert numpy.array_equal(
        sbert.encode("a cat", **options), sbert.encode(["a cat"], **options)[0]
    )


class Topic(str, Enum):  # noqa: UP042 (str of a StrEnum is its value)
    FOOD = "the cat sat on the mat"


def test_a_class_derived_of_str_is_its_text(make_nlp):
    sbert = make_nlp().get_pipe("sbert")
    (expected,) = sbert.encode([Topic.FOOD.value])
    for given in (Topic.FOOD, numpy.str_(Topic.FOOD.value)):
        assert numpy.array_equal(sbert.encode(given), expected)
        assert numpy.array_equal(sbert.encode([given])[0], expected)
