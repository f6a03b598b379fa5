"""Rows of `unit = "doc+sent"`: the Doc's vector is that of the whole Doc, a sentence's that of the
sentence alone.
"""

import numpy
import pytest
import spacy
from helpers.pipelines import EVERY_ENCODER, OTHERS, TRANSFORMERS, no_warnings
from thinc.api import fix_random_seed
from transformers import BertTokenizer

from spacy_sbert.readers import example_doc

TEXT = "A man is eating food. The cat sat on the mat. He cannot go."


def close(given, expected):
    return given.shape == expected.shape and numpy.allclose(given, expected, atol=1e-6)


def test_default_unit_compares_sentences_as_texts():
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    sbert = nlp.add_pipe("sbert")
    assert nlp.config["components"]["sbert"]["model"]["get_spans"]["unit"] == "doc+sent"
    doc = nlp("The bank raised its rates. We sat on the river bank.")
    first, second = doc.sents
    alone = sbert.encode([doc.text, first.text, second.text])
    assert close(doc.vector, alone[0])
    assert close(first.vector, alone[1])
    assert close(second.vector, alone[2])
    assert first.similarity(second) == pytest.approx(float(alone[1] @ alone[2]), abs=1e-6)


@pytest.mark.parametrize(
    ("encoder", "pooling", "overflow"),
    [("shared", "mean", "truncate"), ("own", "cls+weightedmean", "truncate")]
    + [(one, "mean", "windows") for one in TRANSFORMERS]
    + [pytest.param(one, "mean", "truncate", marks=pytest.mark.slow) for one in OTHERS],
)
def test_rows_equal_those_of_the_other_units(make_nlp, encoder, pooling, overflow):
    settings = {"model": {"pooling": pooling}, "transformer": {"overflow": overflow}}
    both, doc_unit, sent_unit = (
        make_nlp(encoder, unit=unit, **settings) for unit in ("doc+sent", "doc", "sent")
    )
    texts = [TEXT, "", "The dog ran fast. \n\n ", " \n Food. The mat.", "dog", f"{TEXT} {TEXT}"]
    docs = zip(both.pipe(texts), doc_unit.pipe(texts), sent_unit.pipe(texts), strict=True)
    for doc, as_doc, as_sents in docs:
        assert close(doc.vector, as_doc.vector)
        assert doc.has_vector == as_doc.has_vector
        for sent, expected in zip(
            doc.sents if len(doc) else (), as_sents.sents if len(doc) else (), strict=True
        ):
            assert close(sent.vector, expected.vector)
            assert sent.has_vector == expected.has_vector
        # In the context of the Doc, each wordpiece once
        for token, expected in zip(
            doc,
            as_doc,
            strict=True,
        ):
            assert close(token.vector, expected.vector)
        assert not len(doc) or close(doc[:2].vector, as_doc[:2].vector)


@pytest.mark.filterwarnings("ignore:.*(rows were longer|behind the encoder's limit)")
@pytest.mark.parametrize("overflow", ["truncate", "windows"])
@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_a_slow_tokenizer(make_nlp, tiny_bert, tmp_path, encoder, overflow):
    BertTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path)
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((tiny_bert / name).read_bytes())
    settings = {"unit": "doc+sent", "transformer": {"overflow": overflow}}
    fast = make_nlp(encoder, **settings)(f"{TEXT} He can't ran, dog")
    settings["transformer"]["tokenizer_config"] = {"use_fast": False}
    slow = make_nlp(encoder, name=tmp_path, **settings)(fast.text)
    for given, expected in (
        (slow, fast),
        *zip(slow, fast, strict=True),
        *zip(slow.sents, fast.sents, strict=True),
    ):
        assert close(given.vector, expected.vector)
    assert close(slow[2:6].vector, fast[2:6].vector)
    assert slow[-1].has_vector == (overflow == "windows")


@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_sentences_behind_the_limit_have_vectors(make_nlp, encoder):
    nlp = make_nlp(encoder, unit="doc+sent")
    alone = make_nlp(encoder)
    with pytest.warns(UserWarning, match="were cut"):
        doc = nlp("A man is eating food. " * 8 + "The dog ran fast.")
    *_, last = doc.sents
    assert doc._.sbert_truncated
    assert close(last.vector, alone("The dog ran fast.").vector)
    ((found, score),) = doc._.sbert_most_similar("The dog ran fast.", k=1)
    assert found == last
    assert score == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("encoder", EVERY_ENCODER)
def test_trains_on_members_alone(make_nlp, examples, encoder):
    given = make_nlp(encoder, unit="doc+sent")
    expected = make_nlp(encoder)
    for nlp in (given, expected):
        fix_random_seed(0)
        nlp.initialize(lambda nlp=nlp: examples(nlp))
    assert given.update(examples(given), sgd=None) == expected.update(examples(expected), sgd=None)


def test_sentences_without_rows_are_pooled_with_a_warning_and_not_ranked(make_nlp):
    nlp = make_nlp()
    nlp.add_pipe("sentencizer", first=True)
    first, second, third = nlp(TEXT).sents
    with pytest.warns(
        UserWarning, match=r"(?s)in the context of its Doc.*components\.sbert.*\"doc\+sent\""
    ) as said:
        first.similarity(second)
        second.similarity(third)
    assert len(said) == 1
    with no_warnings():
        doc = make_nlp(unit="doc+sent")(TEXT)
        next(doc.sents).similarity(doc[:])
        assert doc[1].similarity(doc[2]) == pytest.approx(
            first.doc[1].similarity(first.doc[2]), abs=1e-6
        )
    with pytest.raises(
        ValueError,
        match=r"(?s)'A man is eating food\.' has no vector of its own.*unit = \"doc\+sent\"",
    ):
        nlp(TEXT)._.sbert_most_similar("food")


@pytest.mark.parametrize(
    ("encoder", "place"), [("own", "after"), ("shared", "after"), ("shared", "before")]
)
def test_warns_once_of_late_boundaries(make_nlp, encoder, place):
    """The sentencizer behind the pipe, and between it and a transformer that it hears."""
    nlp = make_nlp(encoder, unit="doc+sent")
    nlp.remove_pipe("sentencizer")
    reader = nlp.pipe_names[0]
    nlp.add_pipe("sentencizer", **{place: "sbert"})
    with pytest.warns(UserWarning) as said:
        nlp(TEXT), nlp(TEXT), list(nlp.pipe([TEXT] * 3))
    assert [str(one.message)[:21] for one in said] == ["[sbert-late-sentences"]
    assert f'before="{reader}"' in str(said[0].message)
    assert "'sentencizer', which sets" in str(said[0].message)
    nlp.remove_pipe("sentencizer")
    # As the message says
    nlp.add_pipe("sentencizer", before=reader)
    given = nlp(TEXT)
    expected = make_nlp(encoder, unit="doc+sent")(TEXT)
    assert all(
        close(one.vector, other.vector)
        for one, other in zip(given.sents, expected.sents, strict=True)
    )


@pytest.mark.parametrize("kind", ["whole Docs", "given", "nobody", "an example", "disabled"])
def test_no_warning_of_timely_boundaries(make_nlp, kind):
    nlp = make_nlp(unit="doc" if kind == "whole Docs" else "doc+sent")
    if kind != "whole Docs":
        nlp.remove_pipe("sentencizer")
    if kind != "nobody":
        nlp.add_pipe("sentencizer", "later")
    doc = (
        example_doc(nlp, ["A man is eating.", "He can go."])
        if kind == "an example"
        else nlp.make_doc(TEXT)
    )
    if kind == "given":
        doc[6].is_sent_start = True
    with no_warnings(), nlp.select_pipes(disable=["later"] * (kind == "disabled")):
        nlp(doc)


@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_warns_once_of_tokens_behind_the_limit(make_nlp, encoder):
    nlp = make_nlp(encoder)
    with pytest.warns(UserWarning, match="were cut"):
        doc = nlp("A man is eating food. " * 8 + "The dog ran fast.")
    with no_warnings():
        assert doc[2].has_vector
        assert not nlp(" ")[0].has_vector
    with pytest.warns(
        UserWarning, match=r"behind the encoder's limit.*overflow = \"windows\""
    ) as said:
        assert not doc[-1].has_vector
        assert not doc[-4:].has_vector
        assert doc[10:].has_vector
    assert len(said) == 1
