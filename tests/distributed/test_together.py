"""What ranks cannot train together is refused by all of them; what they find out by themselves is told to all."""

import pickle
import random

import numpy
import pytest
import torch
from pipelines import TRAINED, add_tagger, make_example
from spacy.training import Example

from spacy_sbert.distributed.torch_distributed import TorchDistributed, _parameters_of
from spacy_sbert.distributed.train_loop import _together

TEXTS = ["A man is eating food.", "The cat sat on the mat.", "He cannot go.", "The dog ran fast."]


class Pair(TorchDistributed):
    """The first of two ranks, the other of which says the same, or `differs`."""

    differs = False

    def __init__(self, rank=0):
        super().__init__()
        self.rank, self.size = rank, 2

    def gather_objects(self, value):
        return [value, value + self.differs]

    def all_reduce(self, values):
        return 2 * values

    def broadcast(self, values):
        return values


def examples(nlp, n=4):
    return [make_example(nlp, text, other) for text, other in zip(TEXTS, reversed(TEXTS), strict=True)][:n]


def ready(make_nlp, **training):
    nlp = make_nlp(TRAINED)
    nlp.config["training"].update({"seed": 1, "frozen_components": [], "accumulate_gradient": 1, **training})
    nlp.initialize(lambda: examples(nlp))
    return nlp


def refused(nlp, message):
    with pytest.raises(ValueError, match=message), _together(nlp, Pair()):
        raise AssertionError


@pytest.mark.spacy_transformers
def test_other_components(make_nlp):
    nlp = make_nlp(TRAINED)
    add_tagger(nlp)
    refused(nlp, r"2 ranks cannot train tagger, transformer together")
    nlp.config["training"]["frozen_components"] = ["tagger"]
    nlp.initialize(lambda: examples(nlp))
    with _together(nlp, Pair()):
        assert isinstance(nlp.get_pipe("sbert").peers, Pair)


def test_reranker(tiny_bert, make_nlp):
    nlp = make_nlp("own")
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert)}})
    refused(nlp, r"2 ranks cannot train sbert_reranker together")


@pytest.mark.spacy_transformers
@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"frozen_components": ["sbert", "transformer"]}, "transformer, sbert"),
        ({"accumulate_gradient": 2}, r"training.accumulate_gradient is 2"),
    ],
)
def test_what_ranks_cannot_train(make_nlp, training, message):
    refused(ready(make_nlp, **training), message)


@pytest.mark.spacy_transformers
def test_one_rank_takes_everything(make_nlp, monkeypatch):
    nlp = ready(make_nlp, accumulate_gradient=2)
    add_tagger(nlp)
    monkeypatch.setattr(nlp, "update", lambda batch, **settings: (batch, settings))
    with _together(nlp, TorchDistributed()) as joint:
        assert joint.update("a batch", sgd=False) == ("a batch", {"sgd": False})
        assert nlp.get_pipe("sbert").peers is None


@pytest.mark.parametrize("without", [3, 1])
def test_rank_without_an_example(make_nlp, without):
    """Of a batch of one, and of one whose others have no members."""
    nlp = ready(make_nlp)
    batch = examples(nlp)[:1]
    batch += [Example(nlp.make_doc(text), nlp.make_doc(text)) for text in TEXTS[: without - 1]]
    message = f"of {without} examples.*leaves rank 1 without"
    with _together(nlp, Pair()) as joint, pytest.raises(ValueError, match=message):
        joint.update(batch, sgd=False)


def test_different_batches_or_weights(make_nlp):
    nlp, ranks = ready(make_nlp), Pair()
    with _together(nlp, ranks) as joint:
        ranks.differs = True
        with pytest.raises(ValueError, match=r"in step 0.*\(it is 1\)"):
            joint.update(examples(nlp), sgd=False)
        with pytest.raises(ValueError, match=r"after step 0"):
            joint.evaluate(lambda: nlp.evaluate(examples(nlp)))
    assert nlp.get_pipe("sbert").peers is None


def test_first_rank_evaluates(make_nlp):
    nlp = ready(make_nlp)
    expected = nlp.evaluate(examples(nlp))
    said = []

    class Second(Pair):
        def broadcast_object(self, given):
            return given if self.is_first else said[-1]

    def read():
        random.random()  # as a reader that shuffles
        yield from examples(nlp)

    random.seed(3)
    state = random.getstate()
    with _together(nlp, Second()) as joint:
        said.append(joint.evaluate(lambda: nlp.evaluate(read())))
    assert said[-1]["sts_spearman"] == expected["sts_spearman"]
    assert random.getstate() == state
    with _together(nlp, Second(rank=1)) as joint:
        assert joint.evaluate(pytest.fail) is said[-1]


@pytest.mark.spacy_transformers
def test_gradients_are_summed_where_any_rank_has_one(make_nlp, monkeypatch):
    """And a parameter without one anywhere stays without; an overflow on one rank is one on all."""
    nlp = ready(make_nlp)

    class Other(Pair):
        def all_reduce(self, values):
            return values + theirs

    models = [nlp.get_pipe("transformer").model]
    sizes = [weights.numel() for weights, *_ in _parameters_of(models)]
    n = len(sizes)
    theirs = torch.zeros(n + 1 + sum(sizes))
    theirs[0] = theirs[n] = 1.0  # the other rank has a gradient for the first alone, which has overflowed
    theirs[n + 1 : n + 1 + sizes[0]] = 0.5
    seen = []
    with _together(nlp, Other()) as joint:
        monkeypatch.setattr(nlp, "update", lambda own: seen.append(own) or {})
        joint.update(examples(nlp))
    assert [example.predicted.text for example in seen[0]] == [example.predicted.text for example in examples(nlp)[::2]]
    first, *others = [gradient for _, gradient, _ in _parameters_of(models)]
    assert (first == 0.5).all() and all(gradient is None for gradient in others)
    assert nlp.get_pipe("transformer").model.layers[0].shims[0]._grad_scaler.found_inf


def test_a_copy_is_alone(make_nlp):
    nlp = ready(make_nlp)
    with _together(nlp, Pair()):
        assert pickle.loads(pickle.dumps(nlp.get_pipe("sbert").peers)) is None


def test_order_of_gathered_rows():
    """Of batches with one, two or three members each, by three ranks."""
    counts = [2, 1, 3, 2, 0, 1, 1]
    whole = numpy.arange(2 * sum(counts), dtype="float32").reshape(-1, 2)
    starts = numpy.cumsum([0, *counts])

    class Third(TorchDistributed):
        def __init__(self, rank):
            super().__init__()
            self.rank, self.size = rank, 3

        def all_gather(self, values):
            return [pad(rank, values) for rank in range(3)]

    def part(rank):
        return numpy.concatenate([whole[starts[i] : starts[i + 1]] for i in range(rank, len(counts), 3)])

    def pad(rank, like):
        rows = torch.zeros_like(like)
        rows[: len(part(rank))] = torch.from_numpy(part(rank))
        return rows

    for rank in range(3):
        ranks = Third(rank)
        assert numpy.array_equal(ranks.gather(part(rank), counts), whole)
        assert numpy.array_equal(ranks.own(whole, counts), part(rank))
