"""Two ranks learn what one does from the whole batch: gradients, weights and losses of every objective."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import spacy
from objectives import MULTI, OBJECTIVES, layer, make_examples, several
from thinc.api import fix_random_seed

sys.path.insert(0, str(Path(__file__).parent))
from one_rank import run

from spacy_sbert.distributed.torch_distributed import TorchDistributed
from spacy_sbert.models.private_attributes import is_installed

LOSSES = [*OBJECTIVES, "MultiTaskLoss"]
ENCODERS = ("own", "shared", "tokens", "listening", "static")
CASES = [("own", loss) for loss in LOSSES]
IN_BATCH = ("MultipleNegativesRankingLoss", "CachedMultipleNegativesRankingLoss", "BatchHardTripletLoss")
CASES += [("shared", loss) for loss in (*IN_BATCH, "SoftmaxLoss", "MultiTaskLoss")]
CASES += [(encoder, loss) for encoder in ENCODERS[2:] for loss in ("MultipleNegativesRankingLoss", "SoftmaxLoss")]


def start(folder, size=2):
    """Start ranks as torchrun does, and wait until they end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
    shared["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, str(Path(__file__).with_name("one_rank.py")), str(folder)]
    ranks = [
        subprocess.Popen(
            command,
            env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(size)
    ]
    said = [rank.communicate(timeout=600)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * size, "\n".join(said)


def save(make_nlp, folder, encoder, loss):
    fix_random_seed(0)
    n_members, gold, settings = OBJECTIVES.get(loss, (0, {}, {}))
    nlp = make_nlp(encoder, loss=MULTI if loss == "MultiTaskLoss" else layer(loss, **settings))
    nlp.initialize(lambda: several(nlp) if loss == "MultiTaskLoss" else make_examples(nlp, n_members, **gold))
    nlp.to_disk(folder / f"{encoder}, {loss}")


@pytest.fixture(scope="module")
def trained(make_nlp, tmp_path_factory):
    """Every case, trained by two ranks."""
    folder = tmp_path_factory.mktemp("ranks")
    for encoder, loss in CASES:
        if encoder == "shared" and not is_installed():
            continue
        save(make_nlp, folder, encoder, loss)
    start(folder)
    return folder


def both_ranks(path):
    return [dict(numpy.load(path / f"rank{rank}.npz")) for rank in (0, 1)]


def alone(path):
    return run(spacy.load(path), path.name.split(", ")[1], TorchDistributed())


def difference(given, expected, kind):
    """The largest of any parameter, and the largest expected value."""
    keys = [key for key in expected if key.startswith(kind)]
    assert keys == [key for key in given if key.startswith(kind)] and keys
    return (
        max(float(abs(given[key] - expected[key]).max()) for key in keys),
        max(float(abs(expected[key]).max()) for key in keys),
    )


@pytest.mark.parametrize(("encoder", "loss"), CASES)
def test_two_ranks_learn_what_one_does(trained, encoder, loss):
    first, second = both_ranks(trained / f"{encoder}, {loss}")
    expected = alone(trained / f"{encoder}, {loss}")
    off, largest = difference(first, expected, "gradient")
    assert off <= 5e-6 * largest
    assert difference(first, expected, "weights")[0] <= 1e-6
    assert first["losses"] == pytest.approx(expected["losses"], rel=1e-5)
    assert numpy.array_equal(first["losses"], second["losses"])
    assert first.keys() == second.keys()
    assert all(numpy.array_equal(first[key], second[key]) for key in first)
