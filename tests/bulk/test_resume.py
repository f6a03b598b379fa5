"""A run that was broken off goes on, and the file becomes the same, bit for bit."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest
import spacy
import torch

from spacy_sbert.bulk import encode_file
from spacy_sbert.bulk import file_encoding as run
from spacy_sbert.bulk.checkpoint import Checkpoint
from spacy_sbert.pipeline.listeners import find_transformer

N_TEXTS, WINDOW = 40, 4


def sentences(n):
    """Random ones, the last empty."""
    random = numpy.random.default_rng(0)
    words = ["man", "cat", "dog", "food", "meal", "mat", "fast", "ran", "cannot"]
    return [*(" ".join(random.choice(words, size=random.integers(1, 12))) for _ in range(n - 1)), ""]


@pytest.fixture
def given(write_texts):
    return write_texts("a.jsonl", sentences(N_TEXTS))


@pytest.fixture
def unbroken(sbert, given, tmp_path):
    """The bytes of the file that a run makes which nothing interrupts."""
    encode_file(sbert, given, tmp_path / "unbroken.npy", window=WINDOW)
    return (tmp_path / "unbroken.npy").read_bytes()


@pytest.fixture
def interrupt(sbert, given, monkeypatch):
    """Begin a run, and break it off after some windows."""

    def begin(output, n_windows, error=KeyboardInterrupt, **options):
        whole = Checkpoint.write

        def write(self, vectors, n_cut):
            if self.state.done == n_windows * WINDOW:
                raise error
            whole(self, vectors, n_cut)

        with monkeypatch.context() as patch, pytest.raises(error):
            patch.setattr(Checkpoint, "write", write)
            encode_file(sbert, given, output, window=WINDOW, **options)
        assert not output.exists()

    return begin


def encoded_texts(monkeypatch):
    """What is given to the encoder from now on."""
    seen, whole = [], run.encode_windows

    def watched(encoder, texts, **kwargs):
        texts = list(texts)
        seen.extend(texts)
        return whole(encoder, texts, **kwargs)

    monkeypatch.setattr(run, "encode_windows", watched)
    return seen


def texts_of(path):
    return [json.loads(line)["text"] for line in path.read_text().splitlines()]


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_killed_and_resumed(make_nlp, write_texts, tmp_path):
    """A real process with two of its own is killed; another goes on, with another number of processes."""
    make_nlp().to_disk(tmp_path / "nlp")
    sbert = spacy.load(tmp_path / "nlp").get_pipe("sbert")
    path = write_texts("a.tsv.gz", sentences(1200))
    encode_file(sbert, path, tmp_path / "unbroken.npy", window=8)

    output, run_file = tmp_path / "out.npy", tmp_path / "out.npy.partial" / "run.json"
    command = [sys.executable, "-m", "spacy", "sbert", "encode", path, output, "--pipeline", tmp_path / "nlp"]
    options = ["--window", "8", "--n-process", "2", "--quiet"]
    process = subprocess.Popen([*map(str, command), *options])
    while process.poll() is None and not (run_file.is_file() and json.loads(run_file.read_text())["done"] > 160):
        time.sleep(0.01)
    children = children_of(process.pid)
    with pytest.raises(RuntimeError, match="Another process writes the same output"):
        encode_file(sbert, path, output, window=8)
    process.kill()
    assert process.wait() == -signal.SIGKILL and not output.exists()

    report = encode_file(sbert, path, output, window=8)
    assert 160 <= report.resumed < 1200 == report.rows
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


@pytest.mark.parametrize("n_windows", [0, 1, 7])
def test_resume(sbert, given, unbroken, interrupt, tmp_path, monkeypatch, n_windows):
    output = tmp_path / "out.npy"
    interrupt(output, n_windows)
    seen = encoded_texts(monkeypatch)
    report = encode_file(sbert, given, output, window=WINDOW)
    assert output.read_bytes() == unbroken
    assert report.resumed == n_windows * WINDOW and seen == texts_of(given)[report.resumed :]
    assert report.zero == 1 and not numpy.load(output)[-1].any()


def test_parquet_goes_on(sbert, given, interrupt, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    options = {"window": WINDOW, "id_column": "id", "with_text": True}
    encode_file(sbert, given, tmp_path / "unbroken.parquet", **options)
    del options["window"]
    interrupt(tmp_path / "out.parquet", 5, **options)
    encode_file(sbert, given, tmp_path / "out.parquet", window=WINDOW, **options)
    assert parquet.read_table(tmp_path / "out.parquet").equals(parquet.read_table(tmp_path / "unbroken.parquet"))


def test_number_of_threads(sbert, given, unbroken, tmp_path, monkeypatch):
    """A forward pass holds as many wordpieces as ever: that of `encode` depends on the number of threads."""
    transformer, budgets, whole = find_transformer("sbert", sbert.model), [], run.encode_windows

    def watched(*args, **kwargs):
        budgets.append(transformer.max_batch_items)
        return whole(*args, **kwargs)

    monkeypatch.setattr(run, "encode_windows", watched)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3 - min(before, 2))
        encode_file(sbert, given, tmp_path / "out.npy", window=WINDOW)
    finally:
        torch.set_num_threads(before)
    assert (tmp_path / "out.npy").read_bytes() == unbroken
    assert budgets == [2048] and transformer.max_batch_items == 0


def change_bit(vectors):
    flip(vectors, 128 + WINDOW * 16 * 4 + 5)


def cut_short(vectors):
    os.truncate(vectors, vectors.stat().st_size - 1)


@pytest.mark.parametrize("damage", [change_bit, cut_short, os.remove])
def test_damaged_vectors_are_encoded_again(sbert, given, unbroken, interrupt, tmp_path, monkeypatch, damage):
    output = tmp_path / "out.npy"
    interrupt(output, 7)
    damage(tmp_path / "out.npy.partial" / "vectors.npy")
    seen = encoded_texts(monkeypatch)
    report = encode_file(sbert, given, output, window=WINDOW)
    assert output.read_bytes() == unbroken and report.resumed == 0
    assert seen == texts_of(given) and report.zero == 1


def test_rows_that_are_not_counted_are_encoded_again(sbert, given, unbroken, interrupt, tmp_path):
    """As after a kill between the vectors of a window and run.json: half of it, or all of it."""
    output = tmp_path / "out.npy"
    interrupt(output, 3)
    for n_bytes in (100, WINDOW * 16 * 4):
        with (tmp_path / "out.npy.partial" / "vectors.npy").open("ab") as file:
            file.write(b"x" * n_bytes)
        interrupt(output, 4 if n_bytes == 100 else 5)
    assert encode_file(sbert, given, output, window=WINDOW).resumed == 5 * WINDOW
    assert output.read_bytes() == unbroken


def test_unreadable_run(sbert, given, unbroken, interrupt, tmp_path):
    interrupt(tmp_path / "out.npy", 2)
    for content in ("", '{"format": "another"}', "[]", '{"format": "spacy-sbert encode 1"}'):
        (tmp_path / "out.npy.partial" / "run.json").write_text(content)
        with pytest.raises(ValueError, match=r"run\.json"):
            encode_file(sbert, given, tmp_path / "out.npy", window=WINDOW)
    encode_file(sbert, given, tmp_path / "out.npy", window=WINDOW, restart=True)
    assert (tmp_path / "out.npy").read_bytes() == unbroken


def change_input(sbert, given):
    given.write_text(given.read_text().replace("dog", "cat", 1))


def change_weights(sbert, given):
    with torch.no_grad():
        next(find_transformer("sbert", sbert.model).shim.network.parameters())[3, 3] += 1e-3


def change_precision(sbert, given):
    find_transformer("sbert", sbert.model).shim.precision = "bfloat16"


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (change_input, {}, r"input \(SHA-256\) was \w+, now"),
        (change_weights, {}, r"weights \(SHA-256\) was \w+, now"),
        (change_precision, {}, "precision was float32, now bfloat16"),
        (None, {"window": 5}, "window was 4, now 5"),
        (None, {"dtype": "float16"}, "dtype was float32, now float16"),
        (None, {"max_batch_items": 100}, "max_batch_items was 2048, now 100"),
        (None, {"column": "id"}, "column was text, now id"),
    ],
)
def test_different_run(make_nlp, sbert, given, interrupt, tmp_path, change, options, message):
    output = tmp_path / "out.npy"
    interrupt(output, 2)
    kept = (tmp_path / "out.npy.partial" / "vectors.npy").read_bytes()
    if change is not None:
        sbert = make_nlp().get_pipe("sbert")
        sbert.encode(["dog"])
        change(sbert, given)
    with pytest.raises(ValueError, match=f"holds an interrupted run that was begun otherwise: {message}.*--restart"):
        encode_file(sbert, given, output, **{"window": WINDOW, **options})
    assert (tmp_path / "out.npy.partial" / "vectors.npy").read_bytes() == kept
    if "column" not in options:
        report = encode_file(sbert, given, output, restart=True, **{"window": WINDOW, **options})
        assert report.resumed == 0 and len(numpy.load(output)) == N_TEXTS


def test_resume_with_a_used_pipe(make_nlp, given, unbroken, interrupt, tmp_path):
    interrupt(tmp_path / "out.npy", 2)
    nlp = make_nlp()
    nlp("A man is eating.")
    report = encode_file(nlp.get_pipe("sbert"), given, tmp_path / "out.npy", window=WINDOW)
    assert report.resumed == 2 * WINDOW and (tmp_path / "out.npy").read_bytes() == unbroken


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
    whole = run.encode_windows

    def changing(*args, **kwargs):
        for number, found in enumerate(whole(*args, **kwargs)):
            if number == 3:
                given.write_text(given.read_text().replace("dog", "cat"))
            yield found

    monkeypatch.setattr(run, "encode_windows", changing)
    with pytest.raises(ValueError, match="was changed while it was read"):
        encode_file(sbert, given, tmp_path / "out.npy", window=WINDOW)
    assert not (tmp_path / "out.npy").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size")
@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_full_disk(sbert, given, tmp_path, suffix):
    """What is done stays, nothing has the final name, and with room the run goes on."""
    resource = pytest.importorskip("resource")
    encode_file(sbert, given, tmp_path / f"unbroken{suffix}", window=WINDOW)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    output = tmp_path / f"out{suffix}"
    # 2560 bytes of vectors: in the first case there is room for seven windows, in the second for all, but not for a
    # table of them
    limit = 2000 if suffix == ".npy" else 2700
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        with pytest.raises(OSError, match=r"Cannot write .*File too large\. What is done is kept") as raised:
            encode_file(sbert, given, output, window=WINDOW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert raised.value.errno == errno.EFBIG and not output.exists()
    assert not (tmp_path / f"out{suffix}.partial" / "assembled").exists()
    report = encode_file(sbert, given, output, window=WINDOW)
    assert report.resumed == (7 * WINDOW if suffix == ".npy" else N_TEXTS)
    assert output.read_bytes() == (tmp_path / f"unbroken{suffix}").read_bytes()


def test_full_disk_from_the_start(sbert, given, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"Cannot write .*run\.json: No space left on device") as raised:
            encode_file(sbert, given, tmp_path / "out.npy", window=WINDOW)
    assert raised.value.errno == errno.ENOSPC and not list(tmp_path.glob("out*"))


def test_partial_writes(sbert, given, unbroken, tmp_path, monkeypatch):
    """What is written to an unbuffered file may be written in part."""
    whole = Checkpoint._append

    class Slow:
        def __init__(self, file):
            self.file, self.fileno = file, file.fileno

        def write(self, data):
            return self.file.write(data[:100])

    monkeypatch.setattr(Checkpoint, "_append", lambda self, file, data: whole(self, Slow(file), data))
    encode_file(sbert, given, tmp_path / "out.npy", window=WINDOW)
    assert (tmp_path / "out.npy").read_bytes() == unbroken


def test_other_files_are_kept(sbert, given, tmp_path):
    (tmp_path / "out.npy.partial").mkdir()
    (tmp_path / "out.npy.partial" / "notes.txt").write_text("mine")
    encode_file(sbert, given, tmp_path / "out.npy", restart=True)
    assert [path.name for path in (tmp_path / "out.npy.partial").iterdir()] == ["notes.txt"]
