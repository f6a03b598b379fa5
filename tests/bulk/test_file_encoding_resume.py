"""An interrupted run resumes, and the file is the same, bit for bit."""

import errno
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

import numpy
import pytest
import torch
from helpers.killing import command, start
from helpers.pipelines import reloaded

from spacy_sbert.bulk import encode_file
from spacy_sbert.bulk import file_encoding as module
from spacy_sbert.bulk.partial_run import PartialRun
from spacy_sbert.pipeline.sentence_model import find_transformer

N_TEXTS = 40
WINDOW = 4


def sentences(n):
    """Random ones, the last empty."""
    random = numpy.random.default_rng(0)
    words = ["man", "cat", "dog", "food", "meal", "mat", "fast", "ran", "cannot"]
    return [
        *(" ".join(random.choice(words, size=random.integers(1, 12))) for _ in range(n - 1)),
        "",
    ]


@pytest.fixture
def given(write_texts):
    return write_texts("a.jsonl", sentences(N_TEXTS))


@pytest.fixture(scope="module")
def unbroken(sbert, tmp_path_factory):
    """The bytes of the file that a run makes which nothing interrupts."""
    folder = tmp_path_factory.mktemp("unbroken")
    (folder / "a.txt").write_text("\n".join(sentences(N_TEXTS)) + "\n")
    encode_file(sbert, folder / "a.txt", folder / "out.npy", window=WINDOW)
    return (folder / "out.npy").read_bytes()


@pytest.fixture
def interrupt(sbert, given, monkeypatch):
    """Begin a run, and interrupt it after some windows."""

    def begin(output, n_windows, error=KeyboardInterrupt, **options):
        whole = PartialRun.write

        def write(self, number, window):
            if number == n_windows:
                raise error
            return whole(self, number, window)

        with monkeypatch.context() as patch, pytest.raises(error):
            patch.setattr(PartialRun, "write", write)
            encode_file(sbert, given, output, window=WINDOW, **options)
        assert not output.exists()

    return begin


@pytest.fixture
def encoded(monkeypatch):
    """The texts that the encoder is given."""
    seen = []
    whole = module.encode_chunks

    def watched(encoder, texts, **kwargs):
        texts = list(texts)
        seen.extend(texts)
        return whole(encoder, texts, **kwargs)

    monkeypatch.setattr(module, "encode_chunks", watched)
    return seen


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_killed_and_resumed(make_nlp, write_texts, tmp_path):
    """A process with two of its own is killed; another resumes, with another number of
    processes.
    """
    sbert = reloaded(make_nlp(), tmp_path / "nlp").get_pipe("sbert")
    path = write_texts("a.tsv.gz", sentences(600))
    encode_file(sbert, path, tmp_path / "unbroken.npy", window=8)

    output = tmp_path / "out.npy"
    kept = tmp_path / "out.npy.partial"
    options = ["--pipeline", tmp_path / "nlp", "--window", "8", "--n-process", "2", "--quiet"]
    process = start(partial(command, "sbert", "encode", path, output, *options))
    while process.exitcode is None and len(list(kept.glob("window-*"))) <= 5:
        time.sleep(0.01)
    children = children_of(process.pid)
    with pytest.raises(RuntimeError, match="Another process writes the same output"):
        encode_file(sbert, path, output, window=8)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not output.exists()

    report = encode_file(sbert, path, output, window=8)
    assert 40 <= report.resumed < 600 == report.rows
    assert output.read_bytes() == (tmp_path / "unbroken.npy").read_bytes()
    assert sorted(found.name for found in tmp_path.glob("out*")) == ["out.npy", "out.npy.json"]
    deadline = time.monotonic() + 10
    while any(map(is_running, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, children)), "processes outlive the one that they work for"


def children_of(pid):
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.is_file() else []


def is_running(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@pytest.mark.parametrize("n_windows", [0, 5])
def test_resume(sbert, given, unbroken, interrupt, encoded, tmp_path, n_windows):
    output = tmp_path / "out.npy"
    interrupt(output, n_windows)
    encoded.clear()
    report = encode_file(sbert, given, output, window=WINDOW)
    assert output.read_bytes() == unbroken
    assert report.resumed == n_windows * WINDOW
    assert encoded == sentences(N_TEXTS)[report.resumed :]
    assert report.zero == 1
    assert not numpy.load(output)[-1].any()


def test_number_of_threads(sbert, given, unbroken, tmp_path, monkeypatch, threads):
    """A forward pass holds as many wordpieces as ever: that of `encode` depends on the number of
    threads.
    """
    shim = find_transformer("sbert", sbert.model).shim
    budgets = []
    whole = module.encode_chunks

    def watched(*args, **kwargs):
        budgets.append(shim.max_batch_items)
        return whole(*args, **kwargs)

    monkeypatch.setattr(module, "encode_chunks", watched)
    threads(3 - min(torch.get_num_threads(), 2))
    encode_file(sbert, given, tmp_path / "out.npy", window=WINDOW)
    assert (tmp_path / "out.npy").read_bytes() == unbroken
    assert budgets == [2048]
    assert shim.max_batch_items == 0


def change_bit(window):
    content = bytearray(window.read_bytes())
    content[len(content) // 2] ^= 1
    window.write_bytes(content)


@pytest.mark.parametrize(
    "damage", [change_bit, lambda path: os.truncate(path, path.stat().st_size - 1), os.remove]
)
def test_damaged_windows_are_encoded_again(
    sbert, given, unbroken, interrupt, encoded, tmp_path, damage
):
    """And all behind them."""
    output = tmp_path / "out.npy"
    interrupt(output, 5)
    damage(tmp_path / "out.npy.partial" / "window-00000003.npz")
    encoded.clear()
    report = encode_file(sbert, given, output, window=WINDOW)
    assert output.read_bytes() == unbroken
    assert report.resumed == 3 * WINDOW
    assert encoded == sentences(N_TEXTS)[3 * WINDOW :]
    assert report.zero == 1


def test_unreadable_run(sbert, given, unbroken, interrupt, tmp_path):
    output = tmp_path / "out.npy"
    kept = tmp_path / "out.npy.partial"
    interrupt(output, 2)
    (kept / "notes.txt").write_text("mine")
    for content in ("", '{"format": "another"}', "[]"):
        (kept / "run.json").write_text(content)
        with pytest.raises(ValueError, match=r"run\.json"):
            encode_file(sbert, given, output, window=WINDOW)
    encode_file(sbert, given, output, window=WINDOW, restart=True)
    assert output.read_bytes() == unbroken
    assert [path.name for path in kept.iterdir()] == ["notes.txt"]


def change_weights(sbert):
    with torch.no_grad():
        next(find_transformer("sbert", sbert.model).shim.network.parameters())[3, 3] += 1e-3


def change_precision(sbert):
    find_transformer("sbert", sbert.model).shim.precision = "bfloat16"


DIFFERENT = [
    (change_weights, {}, r"encoder \(SHA-256\) was \w+, now"),
    (change_precision, {}, "precision was float32, now bfloat16"),
    (None, {"window": 5}, "window was 4, now 5"),
    (None, {"dtype": "float16"}, "dtype was float32, now float16"),
    (None, {"max_batch_items": 100}, "max_batch_items was 2048, now 100"),
    (None, {"column": "id"}, "column was text, now id"),
]


@pytest.fixture
def kept(given, interrupt, tmp_path):
    """The folder of an interrupted run."""
    interrupt(tmp_path / "out.npy", 2)
    return tmp_path / "out.npy.partial"


@pytest.mark.parametrize(("change", "options", "message"), DIFFERENT)
def test_a_different_run_is_refused(
    make_nlp, sbert, given, kept, tmp_path, change, options, message
):
    before = {path: path.read_bytes() for path in kept.iterdir()}
    if change is not None:
        sbert = make_nlp().get_pipe("sbert")
        sbert.encode(["dog"])
        change(sbert)
    with pytest.raises(ValueError, match=f"{message}.*--restart"):
        encode_file(sbert, given, tmp_path / "out.npy", **{"window": WINDOW, **options})
    assert {path: path.read_bytes() for path in kept.iterdir()} == before


def test_another_input_is_refused(sbert, given, kept, tmp_path):
    given.write_text(given.read_text().replace("dog", "cat", 1))
    with pytest.raises(ValueError, match=r"input \(SHA-256\) was \w+, now"):
        encode_file(sbert, given, tmp_path / "out.npy", window=WINDOW)


def test_a_different_run_begins_again_if_told_to(sbert, given, kept, tmp_path):
    output = tmp_path / "out.npy"
    assert encode_file(sbert, given, output, restart=True, window=5).resumed == 0
    assert len(numpy.load(output)) == N_TEXTS


def test_old_output_is_kept_until_the_end(sbert, given, unbroken, interrupt, tmp_path):
    output = tmp_path / "out.npy"
    interrupt(output, 3)
    output.write_bytes(b"old")
    with pytest.raises(FileExistsError, match="--overwrite"):
        encode_file(sbert, given, output, window=WINDOW)
    assert output.read_bytes() == b"old"
    assert encode_file(sbert, given, output, window=WINDOW, overwrite=True).resumed == 3 * WINDOW
    assert output.read_bytes() == unbroken


def test_input_changes_during_a_run(sbert, given, tmp_path, monkeypatch):
    whole = module.encode_chunks

    def changing(*args, **kwargs):
        for number, found in enumerate(whole(*args, **kwargs)):
            if number == 3:
                given.write_text(given.read_text().replace("dog", "cat"))
            yield found

    monkeypatch.setattr(module, "encode_chunks", changing)
    with pytest.raises(ValueError, match="was changed while it was read"):
        encode_file(sbert, given, tmp_path / "out.npy", window=WINDOW)
    assert not (tmp_path / "out.npy").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size")
@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_full_disk(sbert, given, interrupt, tmp_path, suffix):
    """What is done stays, nothing has the final name, and with room the run resumes."""
    resource = pytest.importorskip("resource")
    options = {"id_column": "id", "with_text": True} if suffix == ".parquet" else {}
    encode_file(sbert, given, tmp_path / f"unbroken{suffix}", window=WINDOW, **options)
    interrupt(tmp_path / f"out{suffix}", 5, **options)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    output = tmp_path / f"out{suffix}"
    try:
        # A window has less, the output more
        resource.setrlimit(resource.RLIMIT_FSIZE, (2300, hard))
        with pytest.raises(OSError, match=r"Cannot write .*File too large") as raised:
            encode_file(sbert, given, output, window=WINDOW, **options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert raised.value.errno == errno.EFBIG
    assert not output.exists()
    assert not (tmp_path / f"out{suffix}.partial" / "new").exists()
    assert encode_file(sbert, given, output, window=WINDOW, **options).resumed == N_TEXTS
    assert output.read_bytes() == (tmp_path / f"unbroken{suffix}").read_bytes()


def test_full_disk_from_the_start(sbert, given, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            OSError, match=r"Cannot write .*run\.json: No space left on device"
        ) as raised:
            encode_file(sbert, given, tmp_path / "out.npy", window=WINDOW)
    assert raised.value.errno == errno.ENOSPC
    assert not list(tmp_path.glob("out*"))
