"""What `vector`, `has_vector`, `vector_norm` and `similarity` answer, against the encoder's
states.
"""

import numpy
import pytest
import spacy
import torch
from helpers.pipelines import EVERY_ENCODER, OTHERS, TRANSFORMERS, no_warnings
from transformers import AutoModel, AutoTokenizer

from spacy_sbert.pipeline.doc_vectors import find, names
from spacy_sbert.similarity import cosine

TEXT = "A man is eating food. He cannot go."


def states_of(folder, text):
    """Wordpieces, their characters and their states, by Hugging Face alone."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    data = tokenizer(text, return_offsets_mapping=True, return_tensors="pt")
    offsets = data.pop("offset_mapping")[0].numpy()
    with torch.no_grad():
        return offsets, model(**data).last_hidden_state[0].numpy()


def pooled(states, pooling):
    return {"mean": states.mean(0), "max": states.max(0), "cls": states[0]}[pooling]


POOLINGS = pytest.mark.parametrize(
    ("encoder", "pooling", "normalize"),
    [
        ("own", "mean", False),
        ("own", "max", False),
        ("shared", "cls", False),
        ("shared", "mean", True),
    ],
)


def scaled(vector, normalize):
    return vector / numpy.linalg.norm(vector) if normalize else vector


@POOLINGS
def test_a_doc_pools_its_wordpieces(make_nlp, tiny_bert, encoder, pooling, normalize):
    doc = make_nlp(encoder, model={"pooling": pooling, "normalize": normalize})(TEXT)
    _, states = states_of(tiny_bert, TEXT)
    assert isinstance(doc.vector, numpy.ndarray)
    assert doc.vector.dtype == numpy.float32
    assert doc.has_vector is True
    assert doc.vector_norm == pytest.approx(numpy.linalg.norm(doc.vector))
    assert numpy.allclose(doc.vector, scaled(pooled(states, pooling), normalize), atol=1e-5)


@pytest.mark.parametrize(
    ("start", "end"), [(0, 2), (3, 5), (6, 9), (7, 8), (8, 9), (8, 10), (4, 5)]
)
@POOLINGS
def test_spans_and_tokens_pool_their_wordpieces(
    make_nlp, tiny_bert, encoder, pooling, normalize, start, end
):
    doc = make_nlp(encoder, model={"pooling": pooling, "normalize": normalize})(TEXT)
    offsets, states = states_of(tiny_bert, TEXT)
    span = doc[start:end]
    inside = [
        place
        for place, (first, last) in enumerate(offsets)
        if first < last and first < span.end_char and span.start_char < last
    ]
    # The first wordpiece of a span says nothing of it
    rule = "max" if pooling == "max" else "mean"
    expected = scaled(pooled(states[inside], rule), normalize)
    for given in [span, doc[start]] if end == start + 1 else [span]:
        assert numpy.allclose(given.vector, expected, atol=1e-5), given
        assert given.has_vector
        assert given.vector_norm == pytest.approx(float(numpy.linalg.norm(expected)), abs=1e-5)


def test_a_wordpiece_over_two_tokens_counts_once(make_nlp, tiny_bert):
    doc = make_nlp()(TEXT)
    assert [t.text for t in doc[7:9]] == ["can", "not"]
    offsets, states = states_of(tiny_bert, TEXT)
    cannot = states[[tuple(o) for o in offsets].index((25, 31))]
    for piece in (doc[7:9], doc[7:8], doc[8:9], doc[7], doc[8]):
        assert numpy.allclose(piece.vector, cannot, atol=1e-5)
    span = doc[7:9].vector
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[7:9])
    assert doc[7].text == "cannot"
    assert numpy.allclose(doc[7].vector, span)


@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_sentences_are_rows_of_their_own(make_nlp, tiny_bert, encoder):
    doc = make_nlp(encoder, unit="sent")(TEXT)
    rows = []
    for sent in doc.sents:
        _, states = states_of(tiny_bert, sent.text)
        rows.append(states.mean(0))
        assert numpy.allclose(sent.vector, rows[-1], atol=1e-5)
    assert len(rows) == 2
    assert numpy.allclose(doc.vector, numpy.mean(rows, axis=0), atol=1e-5)


KINDS = {"Doc": slice(None), "Span": slice(0, 2), "Token": 1}


@pytest.mark.parametrize("ours", KINDS)
@pytest.mark.parametrize("theirs", KINDS)
def test_similarity_is_cosine_between_all_kinds(make_nlp, ours, theirs):
    nlp = make_nlp()
    first = nlp("A man is eating.")
    second = nlp("The cat sat.")
    first = first if ours == "Doc" else first[KINDS[ours]]
    second = second if theirs == "Doc" else second[KINDS[theirs]]
    u = first.vector
    v = second.vector
    similarity = first.similarity(second)
    assert type(similarity) is float
    expected = u @ v / numpy.linalg.norm(u) / numpy.linalg.norm(v)
    assert similarity == pytest.approx(expected, abs=1e-6)
    assert first.similarity(first) == pytest.approx(1.0)


@pytest.mark.parametrize("encoder", EVERY_ENCODER)
@pytest.mark.parametrize("text", ["", " ", " \n\t ", "\u2003"])
def test_no_text_no_vector_no_warning(make_nlp, encoder, text):
    nlp = make_nlp(encoder)
    with no_warnings():
        # First of all
        doc = nlp(text)
        other = nlp("A man is eating.")
        assert doc.vector.tolist() == [0.0] * 16
        assert doc.has_vector is False
        assert doc.vector_norm == 0.0
        assert doc.similarity(other) == 0.0
        assert other.similarity(doc) == 0.0
        assert doc.similarity(doc) == 0.0
        assert not any(token.has_vector for token in doc)
        assert not any(token.vector.any() for token in doc)


DENSE = {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 12}
MODELS = {16: {}, 32: {"pooling": "cls+mean"}, 7: {"dense": DENSE, "truncate_dim": 7}}


@pytest.fixture
def nlp_of_width(make_nlp, encoder, width):
    """A pipeline whose first Doc is not made yet."""
    nlp = make_nlp(encoder, model=MODELS[width])
    if width == 7 and encoder == "shared":
        nlp.get_pipe("sbert").model.get_ref("pooling").dense.initialize()
    elif width == 7:
        nlp.initialize()
    return nlp


def truncated(width):
    """Settings of a call, in which nlp.pipe puts more."""
    return {"component_cfg": {"sbert": {"truncate_dim": width}}}


every_width = pytest.mark.parametrize("width", MODELS)
every_encoder = pytest.mark.parametrize("encoder", EVERY_ENCODER)


@every_width
@every_encoder
@pytest.mark.parametrize("first", ["", "A man."])
def test_empty_docs_are_as_wide_as_others(nlp_of_width, width, first):
    for settings, expected in ((truncated(3), 3), ({}, width)):
        texts = ["", TEXT, "   ", "The cat sat."]
        docs = [nlp_of_width(first, **settings), *nlp_of_width.pipe(texts, **settings)]
        assert {doc.vector.shape for doc in docs} == {(expected,)}
        assert {doc._.sbert_vector.shape for doc in docs} == {(expected,)}
        empty = [doc for doc in docs if not doc.text.strip()]
        assert not any(doc.has_vector for doc in empty)
        assert not any(doc.vector.any() for doc in empty)


@every_width
@every_encoder
def test_settings_of_a_call_leave_no_trace(nlp_of_width, width):
    # Loads the encoder
    nlp_of_width("A man.")
    before = nlp_of_width.get_pipe("sbert").to_bytes()
    nlp_of_width("", **truncated(3))
    for text in ("", "A man."):
        with pytest.raises(ValueError, match="33 dimensions"):
            nlp_of_width(text, **truncated(33))
    assert nlp_of_width.get_pipe("sbert").to_bytes() == before
    assert nlp_of_width("").vector.shape == (width,)


def test_several_pipes_keep_their_vectors(make_nlp, tiny_bert):
    nlp = make_nlp()
    nlp.add_pipe(
        "sbert", name="largest", config={"model": {"name": str(tiny_bert), "pooling": "max"}}
    )
    nlp.add_pipe(
        "sbert",
        name="quiet",
        config={"model": {"name": str(tiny_bert), "pooling": "cls"}, "set_hooks": False},
    )
    doc = nlp(TEXT)
    _, states = states_of(tiny_bert, TEXT)
    # The last that sets hooks
    assert numpy.allclose(doc.vector, states.max(0), atol=1e-5)
    assert numpy.allclose(doc._.sbert_vector, states.mean(0), atol=1e-5)
    assert numpy.allclose(doc._.largest_vector, states.max(0), atol=1e-5)
    assert numpy.allclose(doc._.quiet_vector, states[0], atol=1e-5)
    assert numpy.allclose(doc[0:2]._.largest_vector, doc[0:2].vector)
    (found,), (other,) = (
        getattr(doc._, f"{name}_most_similar")(TEXT) for name in ("sbert", "largest")
    )
    assert found.score == pytest.approx(1) == other.score
    assert names(doc) == ["sbert", "largest", "quiet"]
    for name, pipe in nlp.pipeline:
        vectors = pipe.encode([TEXT, "the dog"])
        expected = float(cosine(vectors[:1], vectors[1:])[0])
        assert getattr(doc._, f"{name}_similarity")(nlp("the dog")) == pytest.approx(
            expected, abs=1e-6
        )
    # Under another name
    assert doc._.quiet_similarity(make_nlp(model={"pooling": "cls"})(TEXT)) == pytest.approx(1)
    # By this pipe
    unprocessed = make_nlp()(TEXT)
    for ask in (
        lambda: unprocessed._.quiet_most_similar("the dog"),
        lambda: doc._.quiet_similarity(unprocessed),
    ):
        with pytest.raises(ValueError, match="of a pipe named 'quiet'"):
            ask()


def test_docs_keep_neither_states_nor_device_memory(make_nlp):
    doc = make_nlp()(TEXT)
    (record,) = doc.user_data.values()
    arrays = [v for v in record.values() if hasattr(v, "nbytes")]
    assert record["states"].shape == (len(record["characters"]), 16)
    assert all(
        (type(array) is numpy.ndarray and array.base is None) or array.nbytes < 1000
        for array in arrays
    )
    assert sum(array.nbytes for array in arrays) < 2 * (len(doc) + 2) * 16 * 4


def test_other_side_without_vectors(make_nlp):
    nlp = make_nlp()
    doc = nlp(TEXT)
    with pytest.raises(ValueError, match="carries no sentence vectors"):
        doc.similarity(spacy.blank("xx")(TEXT))
    with pytest.raises(ValueError, match="a Lexeme without a vector"):
        doc.similarity(nlp.vocab["dog"])
    with pytest.raises(ValueError, match="Process the text with the pipeline"):
        _ = spacy.blank("xx")(TEXT)._.sbert_vector
    for text in ("😀", "é中文 عربي 🎉 mixed", "a\x00b", "\x00", "x" * 100_000):
        assert numpy.isfinite(nlp(text).vector).all()
        assert doc.similarity(nlp(text)) <= 1.0
    wide = make_nlp(model={"pooling": "cls+mean"})
    with pytest.raises(ValueError, match="unequal width: 16 and 32"):
        doc.similarity(wide(TEXT))
    doc = make_nlp(unit="sent", token_vectors=False)(TEXT)
    assert numpy.array_equal(doc[:].vector, doc.vector)
    assert all(sent.vector.any() for sent in doc.sents)
    for piece in (doc[0:2], doc[1]):
        with pytest.raises(ValueError, match="token_vectors = true"):
            _ = piece.vector


SENTENCES = [
    "A man is eating food.",
    "The cat sat on the mat, he can not go. A dog ran fast.",
    "dog",
    "",
]
SENTENCES += [
    "Someone is having a meal. He cannot go.",
    SENTENCES[0],
    " the dog ",
    "The cat sat on the mat. " * 5,
]
SENTENCES += SENTENCES[:1]


@pytest.mark.filterwarnings("ignore:.*rows were longer")
@pytest.mark.parametrize(
    ("encoder", "settings"),
    [("own", {}), ("shared", {"unit": "sent"}), ("own", {"transformer": {"overflow": "windows"}})]
    + [pytest.param(one, {}, marks=pytest.mark.slow) for one in OTHERS]
    + [pytest.param("shared", {"transformer": {"overflow": "windows"}}, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("batch_size", [1, 3, 1000])
def test_vectors_do_not_depend_on_the_batch(make_nlp, encoder, settings, batch_size):
    nlp = make_nlp(encoder, **settings)
    alone = [nlp(text) for text in SENTENCES]
    for doc, expected in zip(nlp.pipe(SENTENCES, batch_size=batch_size), alone, strict=True):
        assert numpy.allclose(doc.vector, expected.vector, rtol=0, atol=1e-6)
        for given, token in zip(doc, expected, strict=True):
            assert given.has_vector == token.has_vector
            # By the processor, numbers up to 2 differ by 1.2e-6
            size = max(1.0, float(abs(token.vector).max(initial=0)))
            assert numpy.allclose(given.vector, token.vector, rtol=0, atol=1e-6 * size)


@pytest.mark.parametrize("encoder", EVERY_ENCODER)
def test_equal_texts_share_no_arrays(make_nlp, encoder):
    docs = list(make_nlp(encoder, unit="sent").pipe([TEXT, "dog", TEXT, TEXT], batch_size=4))
    kept = [{k: v for k, v in find(doc)[0].data.items() if hasattr(v, "nbytes")} for doc in docs]
    assert {"rows", "vectors", "has_text", "states", "characters"} <= kept[0].keys()
    for i, first in enumerate(kept):
        for second in kept[i + 1 :]:
            assert not any(
                numpy.shares_memory(a, b) for a in first.values() for b in second.values()
            )
    before = [(doc.vector.copy(), doc[1].vector.copy()) for doc in docs[2:]]
    docs[0].vector[:] = docs[0][1].vector[:] = 7.0
    for array in kept[0].values():
        array[...] = 1
    for doc, (vector, token) in zip(docs[2:], before, strict=True):
        assert numpy.array_equal(doc.vector, vector)
        assert numpy.array_equal(doc[1].vector, token)
    assert (docs[0].vector == 1.0).all(), "these are the arrays that answer"


def test_what_is_done_to_a_vector_in_place_changes_no_stored_one(make_nlp):
    nlp = make_nlp(unit="doc+sent")
    doc = nlp("A man is eating food. The cat sat on the mat.")
    for piece in (doc, doc[:], next(doc.sents), doc[0]):
        for read in (lambda piece=piece: piece.vector, lambda piece=piece: piece._.sbert_vector):
            expected = read().copy()
            vector = read()
            vector /= 2
            assert numpy.array_equal(read(), expected)
            assert expected.any()


def test_a_span_over_the_cut_end_of_a_sentence_warns(make_nlp):
    doc = make_nlp(unit="sent")("the cat sat on a mat " * 6 + ". a dog ran .")
    with pytest.warns(UserWarning, match="sbert-behind-limit"):
        assert doc[2:-1].vector.any()
