"""Scores on Docs, and a reranker that is saved, loaded, copied, packaged and disabled."""

import json

import numpy
import pytest
import spacy
import srsly
from helpers.pipelines import PAIRS, no_warnings, reloaded, weights
from sentence_transformers import CrossEncoder
from spacy.tokens import DocBin

from spacy_sbert.readers import example_doc, pair_doc

PIPE = "sbert_reranker"
TEXTS = [(first, second) for first, second, _ in PAIRS]
pytestmark = pytest.mark.filterwarnings("ignore:.*(has a new head|longer than the)")


def pair_docs(nlp):
    return [pair_doc(nlp, *pair) for pair in PAIRS]


@pytest.fixture(scope="module")
def trained(make_reranker, tiny_bert):
    nlp = make_reranker(tiny_bert)
    optimizer = nlp.initialize()
    examples = [spacy.training.Example(doc.copy(), doc) for doc in pair_docs(nlp)]
    nlp.update(examples, sgd=optimizer)
    return nlp


def test_pairs_among_docs_get_scores(make_reranker):
    nlp = make_reranker()
    scores = nlp.get_pipe(PIPE).score_pairs(TEXTS)
    plain = nlp.make_doc("the cat")
    triplet = example_doc(nlp, ["a", "b", "c"])
    docs = list(nlp.pipe([plain, *pair_docs(nlp), triplet]))
    assert docs[0] is plain
    assert docs[0]._.sbert_reranker_score is None
    assert docs[-1]._.sbert_reranker_score is None
    assert numpy.allclose([doc._.sbert_reranker_score for doc in docs[1:-1]], scores, atol=1e-6)
    assert "sbert_reranker_label" not in docs[1].spans["sbert"].attrs
    assert docs[1].spans["sbert"].attrs["score"] == 1.0
    assert nlp(pair_docs(nlp)[0])._.sbert_reranker_score == pytest.approx(
        float(scores[0]), abs=1e-6
    )


def test_labels_of_docs(make_reranker, nli_classifier):
    names = ["entailment", "neutral", "contradiction"]
    nlp = make_reranker(nli_classifier, objective="classification")
    scores = nlp.get_pipe(PIPE).score_pairs(TEXTS)
    for doc, of_pair in zip(nlp.pipe(pair_docs(nlp)), scores, strict=True):
        assert numpy.allclose(doc._.sbert_reranker_score, of_pair, atol=1e-6)
        assert doc.spans["sbert"].attrs["sbert_reranker_label"] == names[of_pair.argmax()]


def test_two_rerankers_of_other_names_and_keys(make_reranker, make_classifier):
    nlp = make_reranker()
    other = {"model": {"name": str(make_classifier(1, hidden_act="relu"))}, "spans_key": "pairs"}
    nlp.add_pipe("sbert_reranker", name="second", config=other)
    doc = pair_doc(nlp, "the cat", "a dog", 0.5)
    doc.spans["pairs"] = [doc[2:], doc[:2]]
    nlp(doc)
    second = nlp.get_pipe("second").score_pairs([("a dog", "the cat")])
    assert (
        doc._.second_score
        == pytest.approx(float(second[0]), abs=1e-6)
        != doc._.sbert_reranker_score
    )


def test_scores_beside_an_sbert_pipe_are_its_own(make_nlp, tiny_classifier):
    nlp = make_nlp()
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_classifier)}})
    examples = [spacy.training.Example(doc.copy(), doc) for doc in pair_docs(nlp)]
    scores = nlp.evaluate(examples)
    with nlp.select_pipes(disable=["sbert"]):
        alone = nlp.evaluate([spacy.training.Example(doc.copy(), doc) for doc in pair_docs(nlp)])
    assert scores["sbert_reranker_sts_pearson"] == pytest.approx(alone["sts_pearson"], abs=1e-6)
    assert scores["sts_pearson"] != pytest.approx(alone["sts_pearson"], abs=1e-3)


def test_what_is_saved_needs_no_folder(make_reranker, make_classifier, tmp_path):
    """And keeps the head that was trained, whatever the config says of outputs; an untrained one
    says so again.
    """
    folder = make_classifier(3)
    nlp = make_reranker(folder, model={"n_outputs": 2})
    expected = nlp.get_pipe(PIPE).score_pairs(TEXTS)
    nlp.to_disk(tmp_path / "nlp")
    folder.rename(folder.parent / "elsewhere")
    loaded = spacy.load(tmp_path / "nlp")
    with pytest.warns(UserWarning, match="has a new head"):
        assert numpy.array_equal(loaded.get_pipe(PIPE).score_pairs(TEXTS), expected)


def test_the_state_is_a_folder_of_sentence_transformers(trained, tmp_path):
    nlp = trained
    files = srsly.msgpack_loads(nlp.get_pipe(PIPE).model.shim.to_bytes())["files"]
    assert "model.safetensors" in files
    assert not [name for name in files if name.endswith((".bin", ".pt", ".pkl"))]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == [
        "BertForSequenceClassification"
    ]
    expected = nlp.get_pipe(PIPE).score_pairs(TEXTS)
    assert numpy.allclose(
        CrossEncoder(str(tmp_path), device="cpu").predict(TEXTS), expected, atol=1e-5
    )


def test_scores_survive_transport_and_processes(make_reranker):
    nlp = make_reranker()
    docs = list(nlp.pipe(pair_docs(nlp)))
    expected = [doc._.sbert_reranker_score for doc in docs]
    for store_user_data in (True, False):
        sent = DocBin().from_bytes(DocBin(docs=docs, store_user_data=store_user_data).to_bytes())
        assert [doc._.sbert_reranker_score for doc in sent.get_docs(nlp.vocab)] == expected
    assert [doc.copy()._.sbert_reranker_score for doc in docs] == expected
    assert (
        spacy.tokens.Doc(nlp.vocab).from_bytes(docs[0].to_bytes())._.sbert_reranker_score
        == expected[0]
    )
    given = [
        doc._.sbert_reranker_score for doc in nlp.pipe(pair_docs(nlp), n_process=2, batch_size=2)
    ]
    assert numpy.allclose(given, expected, atol=1e-6)


def test_saved_loaded_and_copied(trained, tmp_path):
    nlp = trained
    reranker = trained.get_pipe(PIPE)
    expected = reranker.score_pairs(TEXTS)
    before = weights(nlp, PIPE)
    of_bytes = spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())
    for loaded in (reloaded(nlp, tmp_path / "nlp"), of_bytes):
        with no_warnings():
            assert numpy.array_equal(loaded.get_pipe(PIPE).score_pairs(TEXTS), expected)
        numpy.testing.assert_equal(weights(loaded, PIPE), before)
    copied = reranker.model.copy()
    copied.shim._model.classifier.weight.data.zero_()
    assert copied.shim.id != reranker.model.shim.id
    numpy.testing.assert_equal(weights(nlp, PIPE), before)
