"""Commands killed at any moment: what is on disk is whole or refused by name, and run again they give the same."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy
import pytest
import spacy
from counting import parts
from killing import command, count_events, killed, killed_at, moments, run, save_index
from made_data import write_benchmark

from spacy_sbert.evaluation.results import read_results
from spacy_sbert.search import VectorIndex

pytestmark = [pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL"), pytest.mark.filterwarnings("ignore")]
PROMISE = "killed at any moment: what is on disk is whole or refused by name; run again, nothing is lost or doubled"
N_PARTS = 25  # each with two kills of each command: at a moment, and before a change of a file
WORDS = ["man", "cat", "dog", "food", "meal", "mat", "fast", "ran", "cannot"]


@dataclass
class Job:
    """work: what is killed; it can be pickled, and writes to the folder `out`. check: return what is on the disk, or
    raise what readers raise. again: run it again, and return all that is there.
    """

    work: Callable[[], Any]
    check: Callable[[], list]
    again: Callable[[], list]


def sentences(n):
    random = numpy.random.default_rng(0)
    return [" ".join(random.choice(WORDS, size=random.integers(1, 12))) for _ in range(n)]


def make_encode(pipeline, folder):
    given, output = folder / "in.txt", folder / "out" / "vectors.npy"
    given.write_text("\n".join(sentences(200)) + "\n")
    options = ["--pipeline", pipeline, "--window", 8, "--quiet"]
    work = partial(command, "sbert", "encode", given, output, *options)

    def check():
        return [output.read_bytes()] if output.exists() else []

    def again():
        run(partial(work, "--overwrite") if output.exists() else work)
        assert sorted(path.name for path in output.parent.iterdir()) == [output.name, f"{output.name}.json"]
        return check()

    return Job(work, check, again)


def make_fit_meta(pipeline, folder):
    nlp = spacy.load(pipeline)
    config = nlp.config["components"]["sbert"]["model"]
    nlp.add_pipe("sbert", name="other", config={"model": {**config, "pooling": "cls"}})
    nlp.to_disk(folder / "two")
    (folder / "in.txt").write_text("\n".join(sentences(150)) + "\n")
    output = folder / "out" / "fitted"
    options = ["--method", "svd", "--size", 3, "--cache", folder / "out" / "cache"]
    work = partial(command, "sbert", "fit-meta", folder / "two", folder / "in.txt", output, *options)

    def check():
        return [spacy.load(output)("the cat ran").vector.tolist()] if output.exists() else []

    def again():
        if not output.exists():
            run(work)
        return check()

    return Job(work, check, again)


def make_benchmark(pipeline, folder):
    for split in ("train", "dev", "test"):
        write_benchmark(folder / "data", split, pairs=40)
    output = folder / "out" / "results.json"
    options = ["--output", output, "--any-count", "--bootstrap", 20, "--seeds", 1]
    work = partial(command, "sbert", "benchmark", pipeline, folder / "data", *options)

    def check():
        tasks = read_results(output)["tasks"] if output.exists() else {}
        return [(name, task["variants"], task["predictions"]) for name, task in tasks.items()]

    def again():
        run(work)
        return check()

    return Job(work, check, again)


def make_index(pipeline, folder):
    """In place of one that is there already."""
    output = folder / "out" / "index"
    save_index(output, 500)
    work = partial(save_index, output, 2000)

    def check():
        index = VectorIndex.load(output)
        assert index.rows[-1].text == f"text {len(index) - 1}"
        return [(len(index), index.search(numpy.ones((1, 32)), k=5)[1].tolist())]

    def again():
        run(work)
        return [*check(), len(list(output.iterdir()))]

    return Job(work, check, again)


def make_train(pipeline, folder):
    nlp, texts = spacy.load(pipeline), sentences(32)
    rows = [f"g\tf\ty\t{i}\t{i % 6}\t{texts[i]}\t{texts[-i - 1]}\n" for i in range(16)]
    (folder / "in.tsv").write_text("".join(rows))
    config = nlp.config.copy()
    reader = {"@readers": "spacy-sbert.PairCorpus.v1", "path": str(folder / "in.tsv")}
    config["corpora"] = {"train": reader, "dev": reader}
    config["training"].update(max_steps=8, eval_frequency=2, patience=0)
    config.to_disk(folder / "config.cfg")
    output = folder / "out" / "model"
    work = partial(command, "train", folder / "config.cfg", "--output", output)

    def check():
        found = [output / name for name in ("model-best", "model-last") if (output / name).exists()]
        assert all(spacy.load(path)("the cat ran").has_vector for path in found)
        return []  # of which step they are nobody knows

    def again():
        run(work)
        return [spacy.load(output / name)("the cat ran").vector.tolist() for name in ("model-best", "model-last")]

    return Job(work, check, again)


JOBS = {
    "encode": make_encode,
    "fit-meta": make_fit_meta,
    "benchmark": make_benchmark,
    "index": make_index,
    "train": make_train,
}


@pytest.fixture(scope="module")
def pipeline(tiny_bert, tmp_path_factory):
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": str(tiny_bert)}})
    folder = tmp_path_factory.mktemp("kills") / "nlp"
    nlp.to_disk(folder)
    return folder


@pytest.fixture(scope="module")
def unbroken(pipeline, tmp_path_factory):
    """From the name of a job to the seconds, the changes of files and the result of a run that nothing kills."""

    @cache
    def find(name):
        job = made(name, pipeline, tmp_path_factory.mktemp("unbroken"))
        seconds = run(job.work)
        folder = tmp_path_factory.mktemp("counted")
        events = count_events(made(name, pipeline, folder).work, folder / "out", folder / "events")
        return seconds, events, job.again()

    return find


def made(name, pipeline, folder):
    folder.mkdir(exist_ok=True)
    (folder / "out").mkdir()
    return JOBS[name](pipeline, folder)


def cases_of():
    for name in JOBS:
        for param in parts(N_PARTS, quick=1 if name == "encode" else 0):
            yield pytest.param(name, *param.values, marks=param.marks)


@pytest.mark.parametrize(("name", "part"), list(cases_of()))
def test_killed(counted, pipeline, unbroken, tmp_path, name, part):
    (seconds, events, expected), random = unbroken(name), numpy.random.default_rng(part)
    after = list(moments(seconds, N_PARTS, random))[part]
    event = int(list(moments(events, N_PARTS, random))[part])
    with counted(f"{name}, {PROMISE}") as cases:
        for how in ("time", "event"):
            folder = tmp_path / how
            job = made(name, pipeline, folder)
            before = job.check()
            if how == "time":
                case = f"{name}, part {part}, after {after:.3f} of {seconds:.3f} s"
                killed(job.work, after)
            else:
                case = f"{name}, part {part}, before change {event} of {events}"
                assert killed_at(job.work, folder / "out", event), case
            judge(cases, case, job, before, expected)


def judge(cases, case, job, before, expected):
    try:
        found = job.check()
    except (OSError, ValueError) as error:
        if "/out/" not in str(error):
            cases.wrong(f"{case}: the message names no file: {type(error).__name__}: {error}")
            return
        cases.refused()
    except Exception as error:
        cases.wrong(f"{case}: {type(error).__name__}: {error}")
        return
    else:
        if not all(one in [*before, *expected] for one in found):
            cases.wrong(f"{case}: neither what was there, nor what was to be there")
            return
        cases.right()
    try:
        again = job.again()
    except Exception as error:
        cases.wrong(f"{case}: run again: {type(error).__name__}: {error}")
    else:
        cases.check(again == expected, f"{case}: run again, it gives another result")
