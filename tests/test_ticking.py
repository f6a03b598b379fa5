"""Bars that tick: what takes longer than two seconds shows that it goes on; what is told to be quiet is silent."""

import io
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from functools import partial

import numpy
import pytest
import spacy

from spacy_sbert.errors import progress
from spacy_sbert.errors.progress import progress_bar, progress_of
from spacy_sbert.interchange import distill_static
from spacy_sbert.meta import fitting
from spacy_sbert.meta.methods import make_estimator
from spacy_sbert.search import most_similar_pairs, pairs_above
from spacy_sbert.search.texts import cluster_texts, mine_texts, search_texts
from spacy_sbert.vectors.texts import encode_windows

SLOW = 0.5  # seconds, of which each stands for many: a tick is due after a tenth of them
TEXTS = [
    "the cat sat on the mat",
    "a dog ran",
    "the dog ran",
    "food for the man",
    "the cat sat on a mat",
    "he cannot go",
]
LONGER = [f"{first} {second}" for first in TEXTS for second in TEXTS]


class Watched:
    """A terminal that notes when something is drawn on it."""

    encoding = "utf8"

    def __init__(self):
        self.times, self.shown = [], ""

    def write(self, text):
        if text.strip():
            self.times.append(time.monotonic())
            self.shown += text

    def flush(self):
        pass

    def isatty(self):
        return True

    @property
    def longest(self):
        """Seconds without anything new, between the first and the last drawing."""
        return max(numpy.diff(self.times), default=numpy.inf)


@pytest.fixture
def stderr(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS", SLOW / 10)
    watched = Watched()
    monkeypatch.setattr(progress, "tqdm", partial(progress.tqdm, file=watched))
    return watched


@pytest.fixture
def slow(monkeypatch):
    """Each forward pass of an encoder takes half a second."""

    def make(nlp, name="sbert"):
        model = nlp.get_pipe(name).text_encoder()
        encode = type(model).encode

        def slowly(self, *args, **kwargs):
            time.sleep(SLOW)
            return encode(self, *args, **kwargs)

        monkeypatch.setattr(type(model), "encode", slowly)
        return nlp

    return make


def test_a_bar_ticks_while_one_step_lasts(stderr):
    before = threading.active_count()
    with progress_bar(2, shown=True, unit="steps", desc="Waiting") as bar:
        time.sleep(SLOW)
        bar.update()
        time.sleep(SLOW)
        bar.update()
    assert len(stderr.times) > 5 and stderr.longest < 0.8 * SLOW
    assert "Waiting: 100%" in stderr.shown and "2/2" in stderr.shown
    assert threading.active_count() <= before + 1  # tqdm has one of its own; ours has ended


def test_two_seconds_is_the_most():
    assert 0 < progress.SECONDS <= 2


def test_a_bar_ends_where_the_work_fails(stderr):
    with pytest.raises(KeyError), progress_bar(2, shown=True, unit="steps"):
        raise KeyError("of the work")
    drawn = len(stderr.times)
    time.sleep(SLOW / 2)
    assert len(stderr.times) == drawn  # nothing ticks any more
    assert not [thread for thread in threading.enumerate() if thread.name == "progress"]


@pytest.mark.parametrize("shown", [False, None])
def test_no_bar_and_no_thread(monkeypatch, capsys, shown):
    """None: for one on a terminal, which there is not."""
    before = threading.active_count()
    with progress_bar(2, shown=shown, unit="steps") as bar:
        assert threading.active_count() == before
        bar.update()
    assert list(progress_of(iter("ab"), shown=shown, unit="letters")) == ["a", "b"]
    assert capsys.readouterr().err == ""


def test_items_are_handed_on_one_by_one(stderr):
    taken = []
    for item in progress_of((taken.append(i) or i for i in range(3)), shown=True, unit="numbers", total=3):
        assert taken == list(range(item + 1))
    assert "3/3" in stderr.shown
    with pytest.raises(ZeroDivisionError):
        list(progress_of((1 / i for i in (1, 0)), shown=True, unit="numbers"))
    assert not [thread for thread in threading.enumerate() if thread.name == "progress"]


def works(make_nlp, tmp_path):
    """Work that asks an encoder: by name, what is to be done, which takes progress."""
    nlp = make_nlp()
    pipe = nlp.get_pipe("sbert")
    corpus = tmp_path / "texts.txt"
    corpus.write_text("\n".join(TEXTS) + "\n")
    index = tmp_path / "index"
    return nlp, {
        "encode": lambda bar: pipe.encode(TEXTS, progress=bar),
        "mine": lambda bar: mine_texts(pipe, corpus, k=2, progress=bar),
        "mine all": lambda bar: mine_texts(pipe, corpus, k=None, progress=bar),
        "cluster": lambda bar: cluster_texts(pipe, corpus, min_size=1, progress=bar),
        "search": lambda bar: search_texts(pipe, corpus, ["a dog"], progress=bar),
        "index": lambda bar: search_texts(pipe, corpus, ["a dog"], index=index, progress=bar),
        "distill": lambda bar: distill_static(nlp, TEXTS, size=2, words=3, progress=bar),
    }


@pytest.mark.parametrize("name", ["encode", "mine", "mine all", "cluster", "search", "index", "distill"])
@pytest.mark.parametrize("bar", [True, False])
def test_slow_encoders(make_nlp, slow, stderr, tmp_path, name, bar):
    if name == "index":
        pytest.importorskip("faiss")
    nlp, made = works(make_nlp, tmp_path)
    slow(nlp)
    made[name](bar)
    if bar:
        assert len(stderr.times) > 5 and re.search(r"\d+%\|", stderr.shown)
        steps = [line for line in re.split(r"[\r\n]+", stderr.shown) if line.strip()]
        seconds = [float(found[1]) for line in steps if (found := re.search(r"\[00:0(\d)<", line))]
        assert seconds and stderr.longest < 2 * SLOW + 0.5  # a query is encoded without a bar: one pass
    else:
        assert stderr.shown == ""


@pytest.mark.parametrize("encoder", ["own", "shared", "static", "tokens"])
def test_a_bar_moves_with_the_passes(make_nlp, encoder):
    """Not window by window: of 4096 texts nothing would be seen to move for minutes."""
    texts = [*LONGER, "", " ".join(20 * TEXTS), "he"]  # one is of several windows
    nlp = make_nlp(encoder, transformer={"overflow": "windows"} if encoder == "own" else None)
    text_encoder, moves = nlp.get_pipe("sbert").text_encoder(), []
    if encoder in ("own", "shared"):
        text_encoder.transformer.max_batch_items = 64
    one_window = {"window": 4096, "n_process": 1, "gpu_ids": ()}
    ((vectors, _),) = encode_windows(text_encoder, texts, **one_window, moved=moves.append)
    assert sum(moves) == len(texts) == len(vectors) and min(moves) >= 0
    assert len([n for n in moves if n]) > 4 or encoder in ("static", "tokens")  # these take no time
    ((same, _),) = encode_windows(text_encoder, texts, **one_window)
    assert numpy.array_equal(vectors, same)


def test_the_bar_of_encode_shows_passes(make_nlp, stderr, monkeypatch):
    pipe = make_nlp().get_pipe("sbert")
    transformer = pipe.text_encoder().transformer
    transformer.max_batch_items = 128
    with transformer.shim.encoding(pipe.text_encoder().tokenize(TEXTS)) as engine:
        encode = type(engine).encode

    def slowly(*arguments):
        time.sleep(SLOW / 4)
        return encode(*arguments)

    monkeypatch.setattr(type(engine), "encode", slowly)
    pipe.encode(LONGER, show_progress_bar=True)
    assert len(set(re.findall(r"(\d+)/36", stderr.shown))) > 3 and "36/36" in stderr.shown


def test_what_is_opaque_ticks(monkeypatch, make_nlp, stderr, tmp_path):
    """A method of clustering that says nothing of itself."""
    from spacy_sbert.search import texts

    def work(vectors):
        time.sleep(2 * SLOW)
        return numpy.zeros(len(vectors), dtype="int64")

    monkeypatch.setitem(texts.METHODS, "kmeans", (work, ("n_clusters", "seed")))
    monkeypatch.setitem(texts.METHODS, "communities", (work, ()))
    corpus = tmp_path / "texts.txt"
    corpus.write_text("\n".join(TEXTS) + "\n")
    vectors = numpy.ones((len(TEXTS), 4))
    cluster_texts(make_nlp().get_pipe("sbert"), corpus, vectors=vectors, progress=True)
    assert stderr.shown.count("Clustering:") > 10 and stderr.longest < SLOW


@pytest.mark.parametrize("find", [lambda v, bar: most_similar_pairs(v, k=3, progress=bar, block_bytes=4 * 7**2)])
def test_pairs_count_their_blocks(stderr, find):
    vectors = numpy.random.default_rng(0).normal(size=(20, 4))
    find(vectors, True)
    assert "6/6" in stderr.shown and "Comparing" in stderr.shown  # of 3 by 3 blocks those above the diagonal
    stderr.shown = ""
    assert numpy.array_equal(find(vectors, False)[1], find(vectors, True)[1])
    pairs_above(vectors, 0.5, progress=False)


def test_fitting_a_meta_embedding(make_nlp, stderr):
    nlp = make_nlp()
    model = nlp.config["components"]["sbert"]["model"]
    nlp.add_pipe("sbert", name="other", config={"model": {**model, "pooling": "max"}})
    nlp.add_pipe("sbert_meta", config={"method": "svd", "size": 2})
    estimator = nlp.get_pipe("sbert_meta").estimator
    fit_moments = type(estimator).fit_moments

    def slowly(self, *args):
        time.sleep(2 * SLOW)
        return fit_moments(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(estimator), "fit_moments", slowly)
        fitting.fit_meta(nlp, "sbert_meta", lambda: TEXTS, progress=True)
        assert stderr.shown.count("Solving for") > 10
        assert all(done in stderr.shown for done in ("Reading", "Encoding", "Fitting"))
        stderr.shown = ""
        fitting.fit_meta(nlp, "sbert_meta", lambda: TEXTS, progress=False)
    assert stderr.shown == ""
    vectors = nlp.get_pipe("sbert_meta").encode(TEXTS, show_progress_bar=True)
    assert "6/6" in stderr.shown and vectors.shape == (6, 2)


def test_reranking(tiny_bert, stderr, monkeypatch):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert), "n_outputs": 1}})
    nlp.initialize()
    window = pipe._score_window

    def slowly(pairs, activation_fn, *, apply_softmax):
        time.sleep(SLOW)
        return window(pairs, activation_fn, apply_softmax=apply_softmax)

    monkeypatch.setattr(pipe, "_score_window", slowly)
    pairs = [(text, TEXTS[0]) for text in TEXTS]
    expected = pipe.score_pairs(pairs)
    assert len(pipe.rank("a dog", TEXTS)) == 6 and stderr.shown == ""
    for name in ("progress", "show_progress_bar"):
        stderr.times, stderr.shown = [], ""
        assert numpy.array_equal(pipe.score_pairs(pairs, **{name: True}), expected)
        assert "6/6" in stderr.shown and len(stderr.times) > 5 and stderr.longest < SLOW
        stderr.times, stderr.shown = [], ""
        pipe.rank("a dog", TEXTS, k=2, **{name: True})
        assert "6/6" in stderr.shown
        stderr.shown = ""
        pipe.score_pairs(iter(pairs), **{name: False})
        assert stderr.shown == ""


HOLDS = """
import sys
from spacy_sbert.errors import progress

progress.SECONDS = 0.05
with progress.ticking("Clustering", shown="shown" in sys.argv, alone=True):
    sum(range(int(4e7)))  # which lets no other thread run
    if "fails" in sys.argv:
        raise KeyError("of the work")
"""


def read(terminal):
    """What was written on a terminal, "" at its end."""
    try:
        return os.read(terminal, 2**16).decode("utf8", "replace")
    except OSError:  # as Linux ends it
        return ""


@pytest.mark.skipif(os.name != "posix", reason="a terminal")
@pytest.mark.parametrize("arguments", [["shown"], ["shown", "fails"], []])
def test_a_bar_ticks_where_no_thread_can(arguments):
    """As SciPy's linkage and linear algebra: the drawing of another process, which ends with the work."""
    termios = pytest.importorskip("termios")
    shown, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (24, 60))
    done = subprocess.run([sys.executable, "-c", HOLDS, *arguments], stderr=terminal, timeout=60)
    os.close(terminal)
    said = "".join(iter(partial(read, shown), "")).replace("\r\n", "\n")
    os.close(shown)
    began = said.count("\rClustering:   0%|          | 00:0")
    assert (began > 5) == ("shown" in arguments) and (done.returncode == 0) == ("fails" not in arguments)
    assert ("KeyError" in said) == ("fails" in arguments)
    assert re.search(r"Clustering: 100%\|█+\| 00:0\d *\n$", said) or arguments != ["shown"]


@pytest.mark.parametrize("leave", [True, False])
def test_a_log_file_gets_lines(monkeypatch, leave):
    """Half a minute stands between two of them, and no carriage return: a bar would be drawn anew every second."""
    log = io.TextIOWrapper(io.BytesIO(), encoding="utf8")
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(sys, "__stderr__", log)
    assert 10 <= progress.LINE_SECONDS <= 60
    monkeypatch.setattr(progress, "LINE_SECONDS", SLOW)
    monkeypatch.setattr(progress, "SECONDS", 0.01)
    with progress_bar(8, shown=True, unit="steps", desc="Waiting", leave=leave) as bar:
        for _ in range(8):
            time.sleep(SLOW / 4)
            bar.update()
    with progress.ticking("Loading", shown=True, alone=True):
        pass
    log.flush()
    lines = log.buffer.getvalue().decode("utf8").split("\n")
    assert "\r" not in "".join(lines) and lines[-1] == ""
    assert lines[0].startswith("Waiting:   0%|") and 4 <= len(lines) <= 16
    assert any("8/8" in line for line in lines) or not leave
    assert lines[-2].startswith("Loading: 100%")


def test_what_holds_python_is_drawn_apart(make_nlp, tmp_path, monkeypatch):
    drawn, rows = [], numpy.random.default_rng(1).standard_normal((20, 8)).astype("float32")
    monkeypatch.setattr(progress, "_drawn_apart", lambda desc: drawn.append(desc) or nullcontext())
    for method in ("gcca", "svd"):
        make_estimator(method, size=2).fit([rows, rows[:, :5] ** 2], ["a", "b"], progress=True)
    (tmp_path / "corpus.txt").write_text("\n".join(TEXTS))
    for options in ({"method": "hierarchical"}, {"method": "kmeans"}):
        cluster_texts(make_nlp().get_pipe("sbert"), tmp_path / "corpus.txt", n_clusters=2, progress=True, **options)
    assert drawn == ["Solving for 13 numbers"] * 2 + ["Clustering"]
