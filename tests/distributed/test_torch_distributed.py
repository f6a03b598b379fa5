"""Two ranks learn what one does from the whole batch: gradients, weights and losses of every
objective.
"""

import os
import pickle
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from functools import partial

import numpy
import pytest
import spacy
import torch
from helpers.invoking import said
from helpers.objectives import OBJECTIVES, make
from helpers.pipelines import ROOT, TRAINED, add_tagger, make_example, shim_of, shipped_config
from helpers.ranks import descend, descend_all, in_threads, start, typed
from spacy.training import Example

from spacy_sbert.distributed.joint_training import JointTraining
from spacy_sbert.distributed.torch_distributed import TorchDistributed, _parameters_of

IN_BATCH = (
    "MultipleNegativesRankingLoss",
    "CachedMultipleNegativesRankingLoss",
    "BatchHardTripletLoss",
)
CASES = [("own", loss) for loss in (*OBJECTIVES, "MultiTaskLoss")]
CASES += [("shared", loss) for loss in (*IN_BATCH, "SoftmaxLoss", "MultiTaskLoss")]
CASES += [
    (one, loss)
    for one in ("tokens", "listening", "static")
    for loss in (IN_BATCH[0], "SoftmaxLoss")
]
# Of the loss of a whole batch, of heads, of several objectives, and of each encoder: the others are
# of a kind.
QUICK = {("own", loss) for loss in (IN_BATCH[0], "SoftmaxLoss", "MultiTaskLoss")}
QUICK |= {
    ("shared", "MultiTaskLoss"),
    ("tokens", IN_BATCH[0]),
    ("listening", "SoftmaxLoss"),
    ("static", IN_BATCH[0]),
}
IN_PROCESSES = [("own", IN_BATCH[0]), ("own", "MultiTaskLoss")]


def save(make_nlp, folder, encoder, loss):
    nlp, _ = make(make_nlp, encoder, loss)
    nlp.to_disk(folder / f"{encoder}, {loss}")
    return folder / f"{encoder}, {loss}"


def check_equal(path, loss, first, second):
    expected = descend(spacy.load(path), loss, TorchDistributed())

    def difference(kind):
        keys = [key for key in expected if key.startswith(kind)]
        assert keys == [key for key in first if key.startswith(kind)]
        assert keys
        return max(float(abs(first[key] - expected[key]).max()) for key in keys)

    largest = max(float(abs(expected[key]).max()) for key in expected if key.startswith("gradient"))
    assert difference("gradient") <= 5e-6 * largest
    assert difference("weights") <= 1e-6
    assert first["losses"] == pytest.approx(expected["losses"], rel=1e-5)
    assert first.keys() == second.keys()
    assert all(numpy.array_equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize(
    ("encoder", "loss"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case not in QUICK)) for case in CASES],
)
def test_two_ranks_learn_what_one_does(make_nlp, tmp_path, encoder, loss):
    path = save(make_nlp, tmp_path, encoder, loss)
    pipelines = [spacy.load(path), spacy.load(path)]
    check_equal(path, loss, *in_threads(lambda ranks: descend(pipelines[ranks.rank], loss, ranks)))


def test_two_processes_learn_what_one_does(make_nlp, tmp_path):
    for case in IN_PROCESSES:
        save(make_nlp, tmp_path, *case)
    processes = start(partial(descend_all, tmp_path))
    for process in processes:
        process.join(300)
    assert [process.exitcode for process in processes] == [0, 0]
    for encoder, loss in IN_PROCESSES:
        path = tmp_path / f"{encoder}, {loss}"
        check_equal(path, loss, *(dict(numpy.load(path / f"rank{rank}.npz")) for rank in (0, 1)))


# What ranks cannot train together is refused by all of them; what they find out by themselves is
# told to all

TEXTS = ["A man is eating food.", "The cat sat on the mat.", "He cannot go.", "The dog ran fast."]


class Pair(TorchDistributed):
    """The first of two ranks, the other of which says the same, or `differs`."""

    differs = False

    def __init__(self, rank=0):
        super().__init__()
        self.rank = rank
        self.size = 2
        self.is_first = rank == 0

    def gather_objects(self, value):
        return [value, value + self.differs]

    def all_reduce(self, values):
        return values


def examples(nlp, n=4):
    return [
        make_example(nlp, text, other) for text, other in zip(TEXTS, reversed(TEXTS), strict=True)
    ][:n]


def ready(make_nlp, **training):
    nlp = make_nlp(TRAINED)
    nlp.config["training"].update(
        {"seed": 1, "frozen_components": [], "accumulate_gradient": 1, **training}
    )
    nlp.initialize(lambda: examples(nlp))
    return nlp


def joined(nlp, ranks=None):
    return closing(JointTraining(nlp, ranks or Pair()))


def test_what_ranks_cannot_train(make_nlp, tiny_bert):
    nlp = make_nlp(TRAINED)
    add_tagger(nlp)
    with pytest.raises(ValueError, match=r"2 ranks cannot train tagger, transformer together"):
        JointTraining(nlp, Pair())
    nlp.config["training"]["frozen_components"] = ["tagger"]
    nlp.initialize(lambda: examples(nlp))
    with joined(nlp):
        assert isinstance(nlp.get_pipe("sbert").peers, Pair)
        # A copy is alone
        assert pickle.loads(pickle.dumps(nlp.get_pipe("sbert").peers)) is None
    assert nlp.get_pipe("sbert").peers is None
    nlp.config["training"]["frozen_components"] = ["tagger", "sbert", "transformer"]
    with pytest.raises(ValueError, match=r"together: .* transformer, sbert"):
        JointTraining(nlp, Pair())
    nlp.config["training"].update(frozen_components=["tagger"], accumulate_gradient=2)
    with pytest.raises(ValueError, match=r"training.accumulate_gradient is 2"):
        JointTraining(nlp, Pair())
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert)}})
    with pytest.raises(ValueError, match=r"2 ranks cannot train sbert_reranker together"):
        JointTraining(nlp, Pair())


def test_one_rank_takes_everything(make_nlp, monkeypatch):
    nlp = ready(make_nlp, accumulate_gradient=2)
    add_tagger(nlp)
    monkeypatch.setattr(nlp, "update", lambda batch, **settings: (batch, settings))
    with joined(nlp, TorchDistributed()) as joint:
        assert joint.update("a batch", sgd=False) == ("a batch", {"sgd": False})
        assert nlp.get_pipe("sbert").peers is None


def test_batches_and_weights_are_checked(make_nlp):
    """A batch of one, and one whose others have no members; different batches, and different
    weights.
    """
    nlp = ready(make_nlp)
    ranks = Pair()
    others = [Example(nlp.make_doc(text), nlp.make_doc(text)) for text in TEXTS[:2]]
    with joined(nlp, ranks) as joint:
        for batch in ([*examples(nlp)[:1], *others], examples(nlp)[:1]):
            with pytest.raises(ValueError, match=f"of {len(batch)} examples leaves rank 1 without"):
                joint.update(batch, sgd=False)
        ranks.differs = True
        with pytest.raises(ValueError, match=r"in step 0.*\(it is 1\)"):
            joint.update(examples(nlp), sgd=False)
        with pytest.raises(ValueError, match=r"after step 0"):
            joint.evaluate(lambda: nlp.evaluate(examples(nlp)))


def test_first_rank_evaluates(make_nlp):
    nlp = ready(make_nlp)
    expected = nlp.evaluate(examples(nlp))

    def read():
        # As a reader that shuffles
        random.random()
        yield from examples(nlp)

    first = Pair()
    second = Pair(rank=1)
    first.gather_objects = lambda value: [value, value]
    second.gather_objects = lambda value: [scores if value is None else value] * 2
    state = random.getstate()
    with joined(nlp, first) as joint:
        scores = joint.evaluate(lambda: nlp.evaluate(read()))
    assert scores["sts_spearman"] == expected["sts_spearman"]
    assert random.getstate() == state
    with joined(nlp, second) as joint:
        assert joint.evaluate(pytest.fail) is scores


def test_gradients_are_summed_where_any_rank_has_one(make_nlp, monkeypatch):
    """And a parameter without one anywhere stays without; an overflow on one rank is one on all."""
    nlp = ready(make_nlp)

    class Other(Pair):
        def all_reduce(self, values):
            return values + theirs if len(values) == len(theirs) else values

    models = [nlp.get_pipe("transformer").model]
    sizes = [weights.numel() for weights, *_ in _parameters_of(models)]
    n = len(sizes)
    theirs = torch.zeros(n + 1 + sum(sizes))
    theirs[0] = theirs[n] = (
        # The other rank has a gradient for the first alone, which has overflowed
        1.0
    )
    theirs[n + 1 : n + 1 + sizes[0]] = 0.5
    seen = []
    with joined(nlp, Other()) as joint:
        monkeypatch.setattr(nlp, "update", lambda own: seen.append(own) or {})
        joint.update(examples(nlp))
    assert [example.predicted.text for example in seen[0]] == [
        example.predicted.text for example in examples(nlp)[::2]
    ]
    first, *others = [gradient for _, gradient, _ in _parameters_of(models)]
    assert (first == 0.5).all()
    assert all(gradient is None for gradient in others)
    assert shim_of(nlp, "transformer")._grad_scaler.found_inf


def test_first_rank_gives_its_weights(make_nlp):
    pipelines = [make_nlp("own"), make_nlp("own")]
    for nlp in pipelines:
        nlp.initialize(lambda nlp=nlp: examples(nlp))
    kept = [
        [weights.clone() for weights, *_ in _parameters_of([nlp.get_pipe("sbert").model])]
        for nlp in pipelines
    ]
    for weights, *_ in _parameters_of([pipelines[1].get_pipe("sbert").model]):
        weights += 1
    in_threads(lambda ranks: JointTraining(pipelines[ranks.rank], ranks).close())
    for nlp in pipelines:
        given = [weights for weights, *_ in _parameters_of([nlp.get_pipe("sbert").model])]
        assert all(map(torch.equal, given, kept[0]))


def test_order_of_gathered_rows():
    """Of batches with none to three members each, by three ranks."""
    counts = [2, 1, 3, 2, 0, 1, 1]
    whole = numpy.arange(2 * sum(counts), dtype="float32").reshape(-1, 2)
    starts = numpy.cumsum([0, *counts])

    def gather(ranks):
        part = numpy.concatenate(
            [whole[starts[i] : starts[i + 1]] for i in range(ranks.rank, len(counts), 3)]
        )
        return numpy.array_equal(ranks.gather(part, counts), whole), numpy.array_equal(
            ranks.own(whole, counts), part
        )

    assert in_threads(gather, size=3) == [(True, True)] * 3


# `spacy sbert train` as torchrun starts it: one folder and one log, ended by Ctrl-C and by the
# death of a rank

FEW = ["--corpora.train.limit", "70", "--corpora.dev.limit", "20", "--training.max_epochs", "0"]
TWO_STEPS = [*FEW, "--training.max_steps", "2", "--training.eval_frequency", "1"]
NO_END = [*FEW, "--training.max_steps", "100000", "--training.eval_frequency", "2"]


@pytest.fixture
def config(tiny_bert, tmp_path, monkeypatch):
    """The shipped config of ranking, with the random tiny BERT."""
    monkeypatch.chdir(ROOT)
    config = shipped_config("ranking", tiny_bert)
    config["training"]["dropout"] = 0.0
    config.to_disk(tmp_path / "ranking.cfg", interpolate=False)
    return tmp_path / "ranking.cfg"


def torchrun(*words):
    """What two ranks say that torchrun starts."""
    launcher = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "-m",
        "spacy",
    ]
    command = list(map(str, [sys.executable, *launcher, *words]))
    settings = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_two_ranks_train_as_one_does(config, tmp_path):
    told = torchrun("sbert", "train", config, "--output", tmp_path / "2", *TWO_STEPS)
    said("train", config, "--output", tmp_path / "1", *TWO_STEPS)
    assert (
        told.count("Saved the pipeline to")
        == told.count("LOSS SBERT") + told.count("loss sbert")
        == 1
    )
    first, second = (spacy.load(tmp_path / ranks / "model-last") for ranks in "12")
    assert first.meta["performance"]["sbert_loss"] == pytest.approx(
        second.meta["performance"]["sbert_loss"], rel=1e-4
    )
    assert first.meta["performance"]["pair_ap"] == pytest.approx(
        second.meta["performance"]["pair_ap"], abs=1e-3
    )
    vectors = [numpy.stack([doc.vector for doc in nlp.pipe(TEXTS)]) for nlp in (first, second)]
    assert abs(vectors[0] - vectors[1]).max() < 1e-4
    assert sorted(path.name for path in (tmp_path / "2").iterdir()) == ["model-best", "model-last"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed rank", "Ctrl-C"])
def test_ended_job(config, tmp_path, number):
    """A rank whose peer is killed ends by itself; what both had saved is whole."""
    output = tmp_path / "out"
    ranks = start(
        partial(typed, tmp_path / "log", "sbert", "train", config, "--output", output, *NO_END)
    )
    end = time.monotonic() + 300
    while not (output / "model-best" / "meta.json").exists():
        logs = "".join(path.read_text() for path in tmp_path.glob("log-*"))
        assert ranks[0].is_alive() and time.monotonic() < end, logs
        time.sleep(0.1)
    for rank in ranks[1:] if number == signal.SIGKILL else ranks:
        os.kill(rank.pid, number)
    for rank in ranks:
        rank.join(120)
    told = " ".join((tmp_path / "log-0").read_text().split())
    assert all(rank.exitcode for rank in ranks), told
    assert ("Rank 0 of 2 lost the other ranks" if number == signal.SIGKILL else "Stopped") in told
    assert "Traceback" not in told
    for name in ("model-last", "model-best"):
        assert len(spacy.load(output / name)(TEXTS[0]).vector) == 16
