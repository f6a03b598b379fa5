"""Vectors on every route that a Doc can take through spaCy. The table in the README says
the same.
"""

import pickle
import shutil
import warnings
from pathlib import Path

import numpy
import pytest
import spacy
from helpers.killing import scripted
from helpers.pipelines import EVERY_ENCODER, OTHERS, reloaded, slow, stock_nlp
from spacy.tokens import Doc

from spacy_sbert import restore

TEXT = "A man is eating food. The cat sat on the mat."
every_encoder = pytest.mark.parametrize("encoder", EVERY_ENCODER)


def assert_same(given, doc):
    """Doc, Spans, Tokens and similarity answer as they did before the way."""
    assert numpy.array_equal(given.vector, doc.vector)
    assert given.has_vector
    assert given.vector_norm == pytest.approx(doc.vector_norm)
    assert numpy.array_equal(given[1:4].vector, doc[1:4].vector)
    assert numpy.array_equal(given[2].vector, doc[2].vector)
    assert given.similarity(doc[6:]) == pytest.approx(doc.similarity(doc[6:]))


@every_encoder
@pytest.mark.filterwarnings("ignore:.*W109")
def test_a_pickled_doc_does_not_carry_the_pipe(make_nlp, encoder):
    nlp = make_nlp(encoder)
    # Drops the transformer's own output, doc._.trf_data
    nlp.add_pipe("doc_cleaner")
    doc = nlp(TEXT)
    assert len(pickle.dumps(doc)) < 1.5 * len(pickle.dumps(nlp.vocab)) + 20_000
    assert len(doc.to_bytes()) < 20_000


@pytest.mark.filterwarnings("ignore:.*W109")
def test_restore_wins_over_static_vectors(make_nlp):
    nlp = make_nlp()
    nlp.vocab.reset_vectors(width=16)
    for word in TEXT.split():
        nlp.vocab.set_vector(word, numpy.ones(16, dtype="float32"))
    doc = nlp(TEXT)
    given = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    # spaCy's mean of the static vectors: this is what restore is for
    assert given.vector.shape == (16,)
    # With no call at all
    for piece, expected in (
        (given, doc),
        (given[1:4], doc[1:4]),
        (given[2], doc[2]),
    ):
        assert numpy.array_equal(piece._.sbert_vector, expected.vector)
    assert given._.sbert_truncated is False
    assert spacy.blank("xx")(TEXT)._.sbert_truncated is False
    assert_same(restore(given), doc)


@every_encoder
def test_as_doc(make_nlp, encoder):
    doc = make_nlp(encoder, unit="sent")(TEXT)
    for sent in doc.sents:
        for given in (sent.as_doc(), sent.as_doc(copy_user_data=True)):
            assert numpy.array_equal(given.vector, sent.vector)
    doc = make_nlp(encoder)(TEXT)
    span = doc[6:11]
    for given in (span.as_doc(), span.as_doc(copy_user_data=True)):
        assert numpy.array_equal(given.vector, span.vector)
        assert numpy.array_equal(given._.sbert_vector, span.vector)
        assert given.similarity(doc) == pytest.approx(span.similarity(doc))
    given = span.as_doc(copy_user_data=True)
    assert numpy.array_equal(given[1:3].vector, doc[7:9].vector)
    assert numpy.array_equal(restore(given)[1:3]._.sbert_vector, doc[7:9].vector)
    with pytest.raises(ValueError, match="copy_user_data=True"):
        _ = span.as_doc()[1:3].vector


@every_encoder
def test_pipeline_to_disk_and_bytes(make_nlp, encoder, tmp_path):
    nlp = make_nlp(encoder)
    other = make_nlp(encoder)
    doc = nlp(TEXT)
    for loaded in (reloaded(nlp, tmp_path / "nlp"), other.from_bytes(nlp.to_bytes())):
        assert_same(loaded(TEXT), doc)
    # Thinc saves what is of PyTorch in it
    ours = tmp_path / "nlp" / ("sbert" if encoder == "curated" else "")
    assert (tmp_path / "nlp" / "sbert" / "model").is_file()
    for file in filter(Path.is_file, ours.rglob("*")):
        assert b"data.pkl" not in file.read_bytes(), f"{file} holds a pickle"


@every_encoder
def test_saving_counts_as_use(make_nlp, encoder, tiny_bert, tmp_path):
    moved = shutil.copytree(tiny_bert, tmp_path / "bert")
    nlp = make_nlp(encoder, name=moved)
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(moved)}})
    nlp.to_disk(tmp_path / "nlp")
    # What is saved stands on its own
    shutil.rmtree(moved)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*sbert-encoder-missing")
        loaded = spacy.load(tmp_path / "nlp")
    assert_same(loaded(TEXT), make_nlp(encoder)(TEXT))
    assert str(tmp_path) not in (tmp_path / "nlp" / "sbert" / "cfg").read_text(encoding="utf8")


N_PROCESS = """
import os, sys, warnings
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.pop("TOKENIZERS_PARALLELISM", None)
warnings.simplefilter("ignore")
import numpy, spacy, torch
torch.set_num_threads(2)
nlp = spacy.load(sys.argv[1])
texts = ["A man is eating food. " * 3, "The cat sat on the mat.", "", "He cannot go."] * 8
before = list(nlp.pipe(texts, batch_size=4))  # this process has used its thread pool
after = list(nlp.pipe(texts, batch_size=4, n_process=2))
import spacy_sbert
restored = list(spacy_sbert.restore(nlp.pipe(texts, batch_size=4, n_process=2)))
for a, b, c in zip(after, before, restored):
    assert numpy.array_equal(a._.sbert_vector, c.vector)
    assert numpy.allclose(a._.sbert_vector, b.vector, atol=1e-5)
    assert numpy.allclose(spacy_sbert.restore(a).vector, b.vector, atol=1e-5)
    assert len(a) < 3 or numpy.allclose(a[0:2].vector, b[0:2].vector, atol=1e-5)
assert torch.get_num_threads() == 2 and "TOKENIZERS_PARALLELISM" not in os.environ
print("same", len(after))
"""


@pytest.mark.parametrize("encoder", ["own", *slow("shared", "stock", *OTHERS)])
def test_two_processes_finish_after_this_one_has_encoded(make_nlp, tiny_bert, tmp_path, encoder):
    if encoder == "stock":
        pytest.importorskip("spacy_transformers")
        nlp = stock_nlp(tiny_bert, "spacy-sbert.sentence_spans.v1")
    else:
        nlp = make_nlp(encoder)
    nlp.to_disk(tmp_path / "nlp")
    done = scripted(N_PROCESS, tmp_path / "nlp")
    assert done.stdout.strip() == "same 32", done.stderr
    assert encoder == "stock" or "huggingface/tokenizers" not in done.stderr
