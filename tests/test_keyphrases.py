"""Phrases of a text by maximal marginal relevance, and terms of groups of texts, by hand."""

import math
import pickle

import numpy
import pytest
import spacy
from helpers.pipelines import TOKENS
from spacy.tokens import Doc

from spacy_sbert import find_sbert
from spacy_sbert.keyphrases import class_terms, maximal_marginal_relevance, words_of

TEXT = "the cat sat on a mat. the dog ran fast."


@pytest.fixture
def nlp(make_nlp):
    made = make_nlp("own", lang="en")
    made.add_pipe("sbert_keyphrases")
    return made


def with_keyphrases(make_nlp, **config):
    made = make_nlp("own", lang="en")
    made.add_pipe("sbert_keyphrases", config=config)
    return made


def with_top(nlp, top_n):
    nlp.get_pipe("sbert_keyphrases").top_n = top_n
    return nlp


def found(doc, key="keyphrases"):
    return [span.text for span in doc.spans[key]]


def cosines(u, v):
    return u @ v.T / numpy.linalg.norm(u, axis=1)[:, None] / numpy.linalg.norm(v, axis=1)


def keybert_mmr(vector, candidates, top_n, diversity):
    """The choice of `mmr` in keybert/_mmr.py, which then sorts by relevance."""
    relevance = cosines(candidates, vector[None])
    similarity = cosines(candidates, candidates)
    chosen = [int(numpy.argmax(relevance))]
    others = [i for i in range(len(candidates)) if i != chosen[0]]
    for _ in range(min(top_n - 1, len(candidates) - 1)):
        nearest = numpy.max(similarity[others][:, chosen], axis=1)
        scores = (1 - diversity) * relevance[others, 0] - diversity * nearest
        chosen.append(others[int(numpy.argmax(scores))])
        others.remove(chosen[-1])
    return chosen


@pytest.mark.parametrize("diversity", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("top_n", [1, 5, 50])
def test_mmr_is_that_of_keybert(diversity, top_n):
    rng = numpy.random.default_rng(3)
    vector, candidates = rng.normal(size=8), rng.normal(size=(20, 8))
    chosen, scores = maximal_marginal_relevance(
        vector, candidates, top_n=top_n, diversity=diversity
    )
    assert chosen == keybert_mmr(vector, candidates, top_n, diversity)
    assert numpy.allclose(scores, cosines(candidates, vector[None])[chosen, 0])


def test_mmr_by_hand():
    candidates = numpy.array([[1.0, 0.0], [0.8, 0.6], [0.6, -0.8]])
    vector = numpy.array([2.0, 0.0])
    # Of the last two: 0.5 * 0.8 - 0.5 * 0.8 = 0.5 * 0.6 - 0.5 * 0.6, and from 0.5 on the second
    assert maximal_marginal_relevance(vector, candidates, top_n=2, diversity=0.0)[0] == [0, 1]
    assert maximal_marginal_relevance(vector, candidates, top_n=2, diversity=0.6)[0] == [0, 2]
    nothing = maximal_marginal_relevance(vector, candidates[:0], top_n=2, diversity=0.5)
    assert nothing[0] == [] and nothing[1].shape == (0,)


def test_ngrams_by_hand(make_nlp):
    nlp = with_keyphrases(make_nlp, ngram_sizes=[1, 2], top_n=99)
    doc = nlp("The old Library opens, at nine. old library's 2 shelves \n are here")
    # "at", "are", "here", "nine" and "'s" are stop words, and "Old Library" came before
    assert sorted(found(doc)) == sorted(
        ["old", "Library", "opens", "2", "shelves", "old Library", "Library opens", "2 shelves"]
    )
    nlp = with_keyphrases(make_nlp, ngram_sizes=[3], top_n=99)
    doc = nlp("readers of novels like open-source shelves, here. Rust - red")
    assert sorted(found(doc)) == [
        "Rust - red",
        "novels like open",
        "open-source",
        "readers of novels",
    ]


def parsed(vocab):
    words = ["The", "old", "library", "opens", "its", "doors", "to", "him"]
    return Doc(
        vocab,
        words,
        pos=["DET", "ADJ", "NOUN", "VERB", "PRON", "NOUN", "ADP", "PRON"],
        deps=["det", "amod", "nsubj", "ROOT", "poss", "dobj", "prep", "pobj"],
        heads=[2, 2, 3, 3, 5, 3, 3, 6],
    )


@pytest.mark.parametrize("candidates", ["auto", "noun_chunks"])
def test_noun_chunks_begin_with_no_stop_word(make_nlp, candidates):
    nlp = with_keyphrases(make_nlp, candidates=candidates)
    assert sorted(found(nlp(parsed(nlp.vocab)))) == ["doors", "old library"]


def test_ngrams_of_a_parsed_text(make_nlp):
    nlp = with_keyphrases(make_nlp, candidates="ngrams", ngram_sizes=[2], top_n=9)
    assert sorted(found(nlp(parsed(nlp.vocab)))) == ["library opens", "old library"]
    # "xx" has no noun chunks
    other = make_nlp("own")
    other.add_pipe("sbert_keyphrases", config={"ngram_sizes": [2], "top_n": 9})
    assert "old library" in found(other(parsed(other.vocab)))


def test_noun_chunks_need_a_parser(make_nlp):
    with pytest.raises(ValueError, match="E029"):
        with_keyphrases(make_nlp, candidates="noun_chunks")(TEXT)


def test_scores_are_cosines_of_texts_by_themselves(nlp):
    doc = nlp(TEXT)
    group = doc.spans["keyphrases"]
    vectors = find_sbert(nlp).encode(found(doc))
    assert len(group) == 5 and group.attrs["scores"].dtype == "float32"
    assert numpy.allclose(
        group.attrs["scores"], cosines(vectors, doc.vector[None])[:, 0], atol=1e-6
    )
    assert group.attrs["scores"][0] == group.attrs["scores"].max()


def test_a_batch_is_encoded_at_once(nlp, monkeypatch):
    sbert = find_sbert(nlp)
    encode, calls = sbert.encode, []

    def counted(texts):
        calls.append(texts)
        return encode(texts)

    monkeypatch.setattr(sbert, "encode", counted)
    texts = [TEXT, "", "the of", "the dog ran", TEXT]
    docs = list(nlp.pipe(texts))
    assert [found(doc) for doc in docs] == [found(nlp(text)) for text in texts]
    assert found(docs[1]) == found(docs[2]) == []
    assert docs[1].spans["keyphrases"].attrs["scores"].shape == (0,)
    assert len(calls) == 1 + len(texts)
    assert len(set(calls[0])) == len(calls[0])


def test_saved_loaded_and_in_other_processes(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    expected = nlp(TEXT)
    loaded = spacy.load(tmp_path)
    for doc in (loaded(TEXT), *loaded.pipe([TEXT] * 2, n_process=2)):
        assert found(doc) == found(expected)
        scores = doc.spans["keyphrases"].attrs["scores"]
        assert numpy.array_equal(scores, expected.spans["keyphrases"].attrs["scores"])


def test_pipes_that_were_pickled_need_no_pipeline(nlp):
    """As in a process that was spawned."""
    doc = nlp.make_doc(TEXT)
    for pipe in pickle.loads(pickle.dumps([pipe for _, pipe in nlp.pipeline])):
        doc = pipe(doc)
    assert found(doc) == found(nlp(TEXT))


def test_upstream_is_the_pipe_whose_vectors_count(make_nlp):
    nlp = make_nlp("own", lang="en")
    cls = {**nlp.get_pipe_config("sbert"), "set_hooks": False}
    cls["model"] = {**cls["model"], "pooling": "cls"}
    cls.pop("factory")
    nlp.add_pipe("sbert", name="cls", config=cls)
    nlp.add_pipe("sbert_keyphrases", config={"upstream": "sbert"})
    nlp.add_pipe("sbert_keyphrases", name="nearest", config={"spans_key": "nearest"})
    doc = nlp(TEXT)
    for key, name in (("keyphrases", "sbert"), ("nearest", "cls")):
        vectors = find_sbert(nlp, name).encode([TEXT, *found(doc, key)])
        expected = cosines(vectors[1:], vectors[:1])[:, 0]
        assert numpy.allclose(doc.spans[key].attrs["scores"], expected, atol=1e-6)


def test_a_doc_of_another_encoder_is_named(nlp, make_nlp):
    doc = make_nlp("own", lang="en", model={"pooling": "cls"})(TEXT)
    with pytest.warns(UserWarning, match="sbert-other-encoder"):
        nlp.get_pipe("sbert_keyphrases")(doc)


@pytest.mark.filterwarnings("error:.*other-encoder")
@pytest.mark.parametrize("encoder", ["own", "shared", "static", *TOKENS, "spacy-transformers"])
def test_every_encoder(make_nlp, encoder):
    nlp = make_nlp(encoder, lang="en")
    nlp.add_pipe("sbert_keyphrases", config={"top_n": 2})
    if encoder in TOKENS:
        nlp.initialize()
    doc = nlp(TEXT)
    expected = cosines(find_sbert(nlp).encode(found(doc)), doc.vector[None])[:, 0]
    assert numpy.allclose(doc.spans["keyphrases"].attrs["scores"], expected, atol=1e-5)
    assert len(expected) == 2


def test_without_vectors_it_is_named(make_nlp):
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert_keyphrases")
    with pytest.raises(ValueError, match="'sbert_keyphrases' reads the vectors of a pipe before"):
        nlp(TEXT)
    nlp = with_keyphrases(make_nlp, upstream="other")
    with pytest.raises(ValueError, match="no 'other' there"):
        nlp(TEXT)
    nlp = with_keyphrases(make_nlp)
    with pytest.raises(ValueError, match="no sentence vectors"), nlp.select_pipes(disable="sbert"):
        nlp(TEXT)
    with pytest.raises(TypeError, match="takes Docs"):
        nlp.get_pipe("sbert_keyphrases")(TEXT)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("top_n", 0),
        ("diversity", 1.5),
        ("candidates", "words"),
        ("ngram_sizes", []),
        ("ngram_sizes", [0]),
        ("spans_key", ""),
        ("upstream", ""),
    ],
)
def test_wrong_settings_are_named(make_nlp, setting, value):
    with pytest.raises(ValueError, match=setting):
        with_keyphrases(make_nlp, **{setting: value})


def test_terms_by_hand():
    words = [["a", "a", "b"], ["b", "c", "c", "d"], ["d"]]
    # groups 0 and 1 have 3 and 5 words, A = 4; tf: a 2, b 2, c 2, d 2; all have the idf log(1 + 4 /
    # 2)
    assert class_terms(words, [0, 1, 1], 2) == [["a", "b"], ["c", "d", "b"]]
    assert class_terms(words, [0, 1, 1], 2, count=1) == [["a"], ["c"]]
    # a frequent term gives way to a rare one: 3 log(1 + 5 / 7) < 2 log(1 + 5 / 2)
    words = [["all"] * 3 + ["own"] * 2, ["all"] * 4 + ["other"]]
    assert 3 * math.log(1 + 5 / 7) < 2 * math.log(1 + 5 / 2)
    assert class_terms(words, [0, 1], 2)[0] == ["own", "all"]
    assert words_of(spacy.blank("en")("The 2 Coins, a-b and x were NOT on Märkte!")) == [
        "coins",
        "märkte",
    ]
