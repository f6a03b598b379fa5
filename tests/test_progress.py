"""Progress bars count what is done, on standard error; what is told to be quiet is silent."""

import io
import re
import sys
from functools import partial

import numpy
import pytest
import spacy

from spacy_sbert import progress
from spacy_sbert.models.text_encoders import encode_chunks
from spacy_sbert.progress import progress_bar, progress_of, ticking
from spacy_sbert.search.corpus_search import cluster_texts, mine_texts, search_texts

TEXTS = [
    "the cat sat on the mat",
    "a dog ran",
    "the dog ran",
    "food for the man",
    "a cat sat",
    "he cannot go",
]
LONGER = [f"{first} {second}" for first in TEXTS for second in TEXTS]


class Terminal(io.StringIO):
    encoding = "utf8"

    def isatty(self):
        return True


@pytest.fixture
def stderr(monkeypatch):
    """A terminal, on which each step is drawn."""
    terminal = Terminal()
    monkeypatch.setattr(progress, "tqdm", partial(progress.tqdm, file=terminal, mininterval=0))
    return terminal


def test_bars_count_items_one_by_one(stderr):
    with ticking("Loading", shown=True):
        assert "Loading:   0%" in stderr.getvalue()
    assert "Loading: 100%" in stderr.getvalue()
    taken = []
    for item in progress_of(
        (taken.append(i) or i for i in range(3)), shown=True, unit="numbers", total=3
    ):
        assert taken == list(range(item + 1))
    assert "3/3" in stderr.getvalue()
    with pytest.raises(ZeroDivisionError):
        list(progress_of((1 / i for i in (1, 0)), shown=True, unit="numbers"))


@pytest.mark.parametrize("shown", [True, False, None])
def test_bars_go_to_standard_error_or_are_not_shown(capsys, shown):
    """None: for one on a terminal, which there is not."""
    with progress_bar(2, shown=shown, unit="steps") as bar, ticking("Loading", shown=shown):
        bar.update(2)
    assert list(progress_of(iter("ab"), shown=shown, unit="letters")) == ["a", "b"]
    found = capsys.readouterr()
    assert "2/2" in found.err if shown else found.err == ""
    assert found.out == ""


@pytest.mark.parametrize("name", ["mine", "cluster", "search"])
def test_work_shows_a_bar_if_it_is_asked_to(make_nlp, stderr, tmp_path, name):
    pipe = make_nlp().get_pipe("sbert")
    corpus = tmp_path / "texts.txt"
    corpus.write_text("\n".join(TEXTS) + "\n")
    work = {
        "mine": lambda bar: mine_texts(pipe, corpus, k=None, progress=bar),
        "cluster": lambda bar: cluster_texts(pipe, corpus, min_size=1, progress=bar),
        "search": lambda bar: search_texts(pipe, corpus, ["a dog"], progress=bar),
    }[name]
    for bar in (False, True):
        work(bar)
        assert bool(re.search(r"\d+%\|", stderr.getvalue())) == bar


@pytest.mark.parametrize("encoder", ["own", "static"])
def test_a_bar_moves_with_the_passes(make_nlp, encoder):
    """Not window by window: of 4096 texts nothing would be seen to move for minutes."""
    # One is of several windows
    texts = [*LONGER, "", " ".join(20 * TEXTS), "he"]
    nlp = make_nlp(encoder, transformer={"overflow": "windows"} if encoder == "own" else None)
    text_encoder = nlp.get_pipe("sbert").text_encoder()
    moves = []
    if encoder == "own":
        text_encoder.model.shim.max_batch_items = 64
    one_window = {"window": 4096, "n_process": 1, "gpu_ids": ()}
    ((vectors, _),) = encode_chunks(text_encoder, texts, **one_window, moved=moves.append)
    assert sum(moves) == len(texts) == len(vectors)
    assert min(moves) >= 0
    # It takes no time
    assert len([n for n in moves if n]) > 4 or encoder == "static"
    ((same, _),) = encode_chunks(text_encoder, texts, **one_window)
    assert numpy.array_equal(vectors, same)


def test_reranking(tiny_bert, stderr):
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe(
        "sbert_reranker", config={"model": {"name": str(tiny_bert), "n_outputs": 1}}
    )
    nlp.initialize()
    pairs = [(text, TEXTS[0]) for text in TEXTS]
    expected = pipe.score_pairs(pairs)
    assert len(pipe.rank("a dog", TEXTS)) == 6
    assert stderr.getvalue() == ""
    assert numpy.array_equal(pipe.score_pairs(pairs, progress=True), expected)
    pipe.rank("a dog", TEXTS, k=2, show_progress_bar=True)
    assert stderr.getvalue().count("6/6") >= 2


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_no_bar_without_standard_error(monkeypatch, stream):
    if stream is not None:
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "__stderr__", stream)
    with progress_bar(8, shown=True) as bar:
        bar.update()


@pytest.mark.parametrize("leave", [True, False])
def test_a_log_file_gets_lines(monkeypatch, leave):
    """No carriage return: each state of the bar is a line."""
    log = io.TextIOWrapper(io.BytesIO(), encoding="utf8")
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(sys, "__stderr__", log)
    assert 10 <= progress._LINE_SECONDS <= 60
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0)
    with progress_bar(8, shown=True, unit="steps", desc="Waiting", leave=leave) as bar:
        for _ in range(8):
            bar.update()
    log.flush()
    lines = log.buffer.getvalue().decode("utf8").split("\n")
    assert "\r" not in "".join(lines)
    assert lines[-1] == ""
    assert lines[0].startswith("Waiting:   0%|")
    assert 3 <= len(lines) <= 14
    assert any("8/8" in line for line in lines)
