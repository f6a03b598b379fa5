"""The adapter for mteb: its protocol, without mteb, and made-up tasks that mteb runs."""

import sys
from types import SimpleNamespace

import numpy
import pytest
import spacy
import torch

from spacy_sbert.evaluation.mteb_adapter import MtebEncoder
from spacy_sbert.similarity import cosine, pearson, spearman

TEXTS = [
    "The cat sat on the mat.",
    "He cannot go.",
    "",
    "The dog ran fast, a man is eating food.",
    "He cannot go.",
]
BATCHES = [{"text": TEXTS[:2]}, {"text": TEXTS[2:]}]
PICTURES = SimpleNamespace(name="Pictures", type="ImageClustering")


@pytest.fixture(scope="module")
def encoder(make_nlp):
    return MtebEncoder(make_nlp())


def test_vectors_stand_in_the_order_of_the_texts(encoder):
    expected = numpy.stack([doc.vector for doc in encoder.source.nlp.pipe(TEXTS)])
    given = encoder.encode(
        BATCHES, task_metadata=None, hf_split="test", hf_subset="default", batch_size=2
    )
    assert given.dtype == "float32"
    assert given.shape == (5, 16)
    assert numpy.abs(given - expected).max() < 1e-6
    assert encoder.source.batch_size == 2
    assert encoder.encode([]).shape == (0, 16)


def test_similarities_are_cosines(encoder):
    u, v = numpy.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32")
    u[0] = 0
    pairwise = encoder.similarity_pairwise(u, torch.from_numpy(v))
    assert torch.is_tensor(pairwise)
    assert numpy.allclose(pairwise.numpy(), cosine(u, v), atol=1e-6)
    matrix = encoder.similarity(torch.from_numpy(u), v[:3])
    assert matrix.shape == (4, 3)
    expected = [[cosine(a[None], b[None])[0] for b in v[:3]] for a in u]
    assert numpy.allclose(matrix.numpy(), expected, atol=1e-6)
    assert not matrix[0].any()
    assert encoder.similarity(u[1], v[1]).item() == pytest.approx(pairwise[1].item())


def test_what_is_missing_is_said(encoder, monkeypatch):
    with pytest.raises(ValueError, match="'Pictures' gave a batch with image, but no text"):
        encoder.encode([{"image": [None]}], task_metadata=PICTURES)
    with pytest.raises(ValueError, match="gives no vectors"):
        MtebEncoder(spacy.blank("xx")).encode(BATCHES)
    monkeypatch.setitem(sys.modules, "mteb.models", None)
    with pytest.raises(ImportError, match=r"pip install 'spacy-sbert\[mteb\]"):
        _ = MtebEncoder(encoder.source.nlp).mteb_model_meta


GOLD = [5.0, 1.0, 3.0, 0.0]
FIRST = ["A man is eating food.", "The cat sat on the mat.", "He cannot go.", "The dog ran fast."]
SECOND = ["Someone is having a meal.", "A man is eating.", "He can go.", "The mat is food."]


def evaluated(encoder, base, kind, columns):
    """The scores of a task of mteb on data in memory, and the results."""
    import mteb
    from datasets import Dataset
    from mteb.abstasks.task_metadata import TaskMetadata

    facts = {
        "description": "Data in memory.",
        "reference": None,
        "dataset": {"path": "made/up", "revision": "1"},
    }
    facts |= {
        "category": "t2t",
        "modalities": ["text"],
        "eval_splits": ["test"],
        "eval_langs": ["eng-Latn"],
    }
    score = "cosine_spearman" if kind == "STS" else "f1"

    class MadeUp(base):
        metadata = TaskMetadata(name=f"MadeUp{kind}", type=kind, main_score=score, **facts)

        def load_data(self, *args, **kwargs):
            self.dataset = {"test": Dataset.from_dict(columns)}
            self.data_loaded = True

    results = mteb.evaluate(
        encoder, MadeUp(), cache=None, co2_tracker=False, show_progress_bar=False
    )
    (scores,) = results.task_results[0].scores["test"]
    return scores, results


def test_mteb_runs_made_up_tasks(encoder):
    pytest.importorskip("mteb")
    from mteb.abstasks.sts import AbsTaskSTS
    from mteb.abstasks.text.bitext_mining import AbsTaskBitextMining
    from mteb.models import EncoderProtocol

    assert isinstance(encoder, EncoderProtocol)
    columns = {"sentence1": FIRST, "sentence2": SECOND, "score": GOLD}
    scores, results = evaluated(encoder, AbsTaskSTS, "STS", columns)
    predicted = cosine(encoder.encode([{"text": FIRST}]), encoder.encode([{"text": SECOND}]))
    assert scores["cosine_spearman"] == pytest.approx(spearman(predicted, GOLD), abs=1e-6)
    # By our similarity_pairwise
    assert scores["pearson"] == pytest.approx(pearson(predicted, GOLD), abs=1e-5)
    assert results.model_name == "spacy/xx_pipeline"
    assert results.model_revision == encoder.source.digest[:40]
    assert encoder.mteb_model_meta.embed_dim == 16
    columns = {"sentence1": FIRST, "sentence2": FIRST}
    scores, _ = evaluated(encoder, AbsTaskBitextMining, "BitextMining", columns)
    assert scores["f1"] == 1.0, "each sentence finds itself, by our similarity"


PROMPTS = {
    "query": "The cat ",
    "document": "He cannot ",
    "STS": "A man ",
    "Own": "The dog ",
    "Retrieval-query": "The food ",
}
TASKS = [("Made", "STS"), ("Own", "STS"), ("Made", "Retrieval"), ("Made", "Reranking")]


@pytest.mark.parametrize(("name", "kind"), TASKS)
def test_prompts_are_chosen_as_by_mteb(name, kind, make_nlp, tiny_bert):
    pytest.importorskip("mteb")
    from mteb.models.abs_encoder import get_prompt_name
    from mteb.types import PromptType
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer

    module = Transformer(str(tiny_bert))
    pooling = Pooling(module.get_word_embedding_dimension(), "mean")
    theirs = SentenceTransformer(modules=[module, pooling], device="cpu")
    ours = MtebEncoder(make_nlp(model={"prompts": PROMPTS}))
    task = SimpleNamespace(name=name, type=kind)
    plain = ours.encode([{"text": FIRST}])
    roles = [None] if kind == "STS" else [PromptType.query, PromptType.document]
    for role in roles:
        given = ours.encode([{"text": FIRST}], task_metadata=task, prompt_type=role)
        prompt = PROMPTS[get_prompt_name(PROMPTS, task, role)]
        expected = theirs.encode(FIRST, prompt=prompt)
        assert numpy.abs(given - plain).max() > 1e-3
        assert cosine(given, expected) == pytest.approx(numpy.ones(4), abs=1e-6)
