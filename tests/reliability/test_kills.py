"""Commands killed at any moment: what is on disk is whole or refused by name, and run again they
give the same.
"""

import sys
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy
import pytest
import spacy
from helpers.counted_cases import judge, parts
from helpers.killing import command, count_events, killed, killed_at, run, save_index
from helpers.made_data import write_benchmark
from helpers.made_views import SENTENCES

from spacy_sbert.evaluation.results import read_results
from spacy_sbert.search import VectorIndex

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL"),
    pytest.mark.filterwarnings("ignore"),
]
PROMISE = (
    "killed at any moment: what is on disk is whole or refused by name; run again, nothing is "
    "lost or doubled"
)
# Each with two kills of each command: at a moment, and before a change of a file
N_PARTS = 25


class Job(NamedTuple):
    """work (picklable) is killed and writes to `out`; found: what is there, or an error; again: a
    second run.
    """

    work: Callable[[], Any]
    found: Callable[[], list]
    again: Callable[[], Any]


def make_encode(pipeline, folder):
    given = folder / "in.txt"
    output = folder / "out" / "vectors.npy"
    given.write_text("\n".join(SENTENCES[:100]) + "\n")
    work = partial(
        command, "sbert", "encode", given, output, "--pipeline", pipeline, "--window", 8, "--quiet"
    )

    def found():
        return [output.read_bytes()] if output.exists() else []

    return Job(work, found, lambda: run(partial(work, "--overwrite") if output.exists() else work))


def make_fit_meta(pipeline, folder):
    nlp = spacy.load(pipeline)
    config = nlp.config["components"]["sbert"]["model"]
    nlp.add_pipe("sbert", name="other", config={"model": {**config, "pooling": "cls"}})
    nlp.to_disk(folder / "two")
    (folder / "in.txt").write_text("\n".join(SENTENCES) + "\n")
    output = folder / "out" / "fitted"
    options = ["--method", "svd", "--size", 3, "--cache", folder / "out" / "cache"]
    work = partial(
        command, "sbert", "fit-meta", folder / "two", folder / "in.txt", output, *options
    )

    def found():
        return [spacy.load(output)("the cat ran").vector.tolist()] if output.exists() else []

    return Job(work, found, lambda: output.exists() or run(work))


def make_benchmark(pipeline, folder):
    for split in ("train", "dev", "test"):
        write_benchmark(folder / "data", split, pairs=40)
    output = folder / "out" / "results.json"
    options = ["--output", output, "--any-count", "--bootstrap", 20, "--seeds", 1]
    work = partial(command, "sbert", "benchmark", pipeline, folder / "data", *options)

    def found():
        tasks = read_results(output)["tasks"] if output.exists() else {}
        return [(name, task["variants"], task["predictions"]) for name, task in tasks.items()]

    return Job(work, found, partial(run, work))


def make_index(pipeline, folder):
    """In place of one that is there already."""
    output = folder / "out" / "index"
    save_index(output, 500)
    work = partial(save_index, output, 2000)

    def found():
        index = VectorIndex.load(output)
        assert index.rows[-1].text == f"text {len(index) - 1}"
        return [(len(index), index.search(numpy.ones((1, 32)), k=5)[1].tolist())]

    return Job(work, found, partial(run, work))


def grow_index(folder):
    """Add, replace and delete vectors of a saved index; again, it gives the same."""
    index = VectorIndex.load(folder)
    new = numpy.random.default_rng(9).normal(size=(300, 32))
    ids = list(range(400, 700))
    index.add(new, ids=ids, texts=[f"new {i}" for i in ids], replace=True)
    there = {row.id for row in index.rows}
    index.delete([i for i in range(100) if i in there])
    index.save(folder)


def make_grown(pipeline, folder):
    output = folder / "out" / "index"
    vectors = numpy.random.default_rng(1).normal(size=(500, 32))
    index = VectorIndex.build(
        vectors, kind="ivf", ids=range(500), texts=[f"text {i}" for i in range(500)]
    )
    index.save(output)
    work = partial(grow_index, output)

    def found():
        index = VectorIndex.load(output)
        rows = [(row.id, row.text) for row in index.rows]
        return [(rows, index.search(numpy.ones((1, 32)), k=5)[1].tolist())]

    return Job(work, found, partial(run, work))


def make_train(pipeline, folder):
    nlp = spacy.load(pipeline)
    texts = SENTENCES[:32]
    rows = [f"g\tf\ty\t{i}\t{i % 6}\t{texts[i]}\t{texts[-i - 1]}\n" for i in range(16)]
    (folder / "in.tsv").write_text("".join(rows))
    config = nlp.config.copy()
    reader = {"@readers": "spacy-sbert.PairCorpus.v1", "path": str(folder / "in.tsv")}
    config["corpora"] = {"train": reader, "dev": reader}
    config["training"].update(max_steps=8, eval_frequency=2, patience=0)
    config.to_disk(folder / "config.cfg")
    output = folder / "out" / "model"

    def found():
        saved = [output / name for name in ("model-best", "model-last") if (output / name).exists()]
        return [spacy.load(path)("the cat ran").vector.tolist() for path in saved]

    # `spacy train` itself writes in place: half of a file of spaCy's own has no name in its error
    work = partial(command, "sbert", "train", folder / "config.cfg", "--output", output)
    return Job(work, found, partial(run, work))


JOBS = {
    "encode": make_encode,
    "fit-meta": make_fit_meta,
    "benchmark": make_benchmark,
    "index": make_index,
    "grown index": make_grown,
}
JOBS["train"] = make_train


@pytest.fixture(scope="module")
def make_job(nlp, tmp_path_factory):
    pipeline = tmp_path_factory.mktemp("kills") / "nlp"
    nlp.to_disk(pipeline)

    def make(name, folder):
        (folder / "out").mkdir(parents=True)
        return JOBS[name](pipeline, folder)

    return make


@pytest.fixture(scope="module")
def unbroken(make_job, tmp_path_factory):
    """From the name of a job to the seconds, the changes of files and the outcome of a run that
    nothing kills.
    """

    @cache
    def find(name):
        folder = tmp_path_factory.mktemp("unbroken")
        job = make_job(name, folder)
        # What forks imports everything before
        run(int)
        started = time.monotonic()
        events = count_events(job.work, folder / "out", folder / "events")
        seconds = time.monotonic() - started
        return seconds, events, outcome(name, job, folder)

    return find


def outcome(name, job, folder):
    """What is there, and for what writes a file or a folder of its own, of how many files it
    consists.
    """
    return job.found(), len(list((folder / "out").rglob("*"))) if name in (
        "encode",
        "index",
        "grown index",
    ) else None


def is_whole(known, found):
    """All of it was there, or was to be there. Of which step a pipeline is that training left,
    nobody knows: None.
    """
    return known is None or all(one in known for one in found)


@pytest.mark.parametrize("part", parts(N_PARTS))
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "encode" else pytest.mark.slow) for name in JOBS],
)
def test_killed(counted, make_job, unbroken, tmp_path, name, part):
    seconds, events, expected = unbroken(name)
    share = (part + numpy.random.default_rng(part).random(2)) / N_PARTS
    after = seconds * share[0]
    event = int(events * share[1])
    with counted(f"{name}, {PROMISE}") as cases:
        for how in ("time", "event"):
            folder = tmp_path / how
            job = make_job(name, folder)
            known = None if name == "train" else [*job.found(), *expected[0]]
            if how == "time":
                case = f"{name}, part {part}, after {after:.3f} of {seconds:.3f} s"
                killed(job.work, after)
            else:
                case = f"{name}, part {part}, before change {event} of {events}"
                assert killed_at(job.work, folder / "out", event), case
            judge(cases, case, job.found, partial(is_whole, known), "/out/")
            try:
                job.again()
                again = outcome(name, job, folder)
            except Exception as error:
                cases.wrong(f"{case}: run again: {type(error).__name__}: {error}")
            else:
                cases.check(again == expected, f"{case}: run again, it gives another result")
