"""The steps of an epoch are counted, not made: as many as spaCy's training loop has, for every
reader and batcher.
"""

import json
from itertools import islice

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Corpus
from spacy.training.loop import create_train_batches
from spacy.util import registry
from thinc.api import warmup_linear

from spacy_sbert.readers import MultiCorpus, PairCorpus, TeacherCorpus, convert, example_doc
from spacy_sbert.training.batchers import (
    batch_by_label,
    batch_by_objective,
    batch_in_turn,
    batch_mixed,
)
from spacy_sbert.training.schedules import epoch_steps, linear_warmup, linear_warmup_of_epochs

NLP = spacy.blank("en")
OWN = [batch_by_objective, batch_in_turn, batch_mixed]
COLUMNS = {"format": "table", "members": ["a", "b"]}


@pytest.fixture
def table(tmp_path):
    def write(size, name=None):
        path = tmp_path / f"{name or size}.jsonl"
        path.write_text(
            "".join(json.dumps({"a": f"A {i}", "b": f"B {i}"}) + "\n" for i in range(size))
        )
        return path

    return write


def loop_steps(corpus, batcher, epochs=2):
    """What spaCy's loop has, shuffled anew in each epoch."""
    return sum(1 for _ in create_train_batches(NLP, corpus, batcher, epochs)) / epochs


def entities(tmp_path, size):
    docs = [NLP.make_doc(f"no pair {i}") for i in range(size)]
    DocBin(docs=docs).to_disk(tmp_path / "docs.spacy")
    return Corpus(tmp_path / "docs.spacy")


def noted(tmp_path):
    """A .spacy whose examples note objectives themselves."""
    docs = [example_doc(NLP, ("a", "b")) for _ in range(23)]
    for i, doc in enumerate(docs):
        doc.spans["sbert"].attrs["objective"] = "one" if i % 3 else "two"
    DocBin(docs=docs).to_disk(tmp_path / "noted.spacy")
    return tmp_path / "noted.spacy"


def readers(table, tmp_path):
    convert(table(37), tmp_path / "pairs.spacy", **COLUMNS)
    pairs = {size: PairCorpus(table(size), **COLUMNS) for size in (12, 33, 8)}
    named = {"x": pairs[12], "y": pairs[33], "z": pairs[8]}
    files = [table(20), tmp_path / "pairs.spacy", table(9)]
    yield "limit", PairCorpus(table(33), limit=17, **COLUMNS)
    yield ".spacy", PairCorpus(tmp_path / "pairs.spacy", limit=36)
    yield ".spacy with objectives", PairCorpus(noted(tmp_path))
    yield "several files, a limit in the second", PairCorpus(files[::2], limit=25, **COLUMNS)
    yield "shuffled", PairCorpus(files[::2], shuffle_buffer=7, **COLUMNS)
    yield "other spans", PairCorpus(table(9), spans_key="k", **COLUMNS)
    yield "not pairs", entities(tmp_path, 29)
    yield "objectives", MultiCorpus(named)
    yield "weights", MultiCorpus(named, weights={"x": 1.0, "y": 2.0, "z": 9.0})
    yield (
        "both in turn",
        MultiCorpus({"x": pairs[12], "docs": entities(tmp_path, 29)}, sampling="round_robin"),
    )
    mixed = MultiCorpus({"docs": entities(tmp_path, 29), "y": pairs[33]})
    yield "mixed", MultiCorpus({"x": mixed, "z": pairs[8]})
    # Whose order changes from call to call
    mixed = MultiCorpus({"docs": entities(tmp_path, 29), "y": pairs[33]})
    yield "mixed in turn", MultiCorpus({"x": mixed, "z": pairs[33]}, sampling="round_robin")


@pytest.mark.parametrize(("make", "size"), [*((make, 4) for make in OWN), (batch_by_objective, 1)])
def test_steps_equal_those_of_spacys_loop(table, tmp_path, make, size):
    for (name, counted), (_, read) in zip(
        readers(table, tmp_path), readers(table, tmp_path), strict=True
    ):
        assert epoch_steps(counted, make(size)) == loop_steps(read, make(size)), name


@pytest.mark.parametrize("n", [33, 36, 38])
def test_steps_by_label_equal_those_of_spacys_loop(tmp_path, n):
    path = tmp_path / "classes.jsonl"
    rows = [{"text": f"T {i}", "label": "abc"[i % 3]} for i in range(n)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = PairCorpus(path, format="table", members=["text"], label="label")
    batcher = batch_by_label(8)
    assert epoch_steps(corpus, batcher) == loop_steps(corpus, batcher)


def test_a_teacher_is_not_asked(table):
    corpus = TeacherCorpus(PairCorpus(table(33), **COLUMNS), "no_such_pipeline")
    assert epoch_steps(corpus, batch_mixed(4)) == 8
    assert corpus.count() == 33


def test_other_batchers_make_their_batches(table):
    corpus = PairCorpus(table(33), **COLUMNS)
    by_sequence = registry.batchers.get("spacy.batch_by_sequence.v1")(size=4)
    assert epoch_steps(corpus, by_sequence) == loop_steps(corpus, by_sequence) == 9
    by_words = registry.batchers.get("spacy.batch_by_words.v1")(
        size=40, discard_oversize=False, tolerance=0.0
    )
    assert epoch_steps(corpus, by_words) == pytest.approx(loop_steps(corpus, by_words), abs=1)


def test_counting_makes_no_docs(table, tmp_path, monkeypatch):
    convert(table(37), tmp_path / "pairs.spacy", **COLUMNS)
    corpora = [PairCorpus([table(20), table(13)], **COLUMNS), PairCorpus(tmp_path / "pairs.spacy")]
    monkeypatch.setattr(Language, "make_doc", None)
    monkeypatch.setattr(DocBin, "get_docs", None)
    corpus = MultiCorpus({"x": corpora[0], "y": corpora[1]})
    assert [epoch_steps(one, batch_by_objective(16)) for one in (*corpora, corpus)] == [2, 3, 5]


def test_counting_keeps_the_order_of_the_reader(table):
    def orders(counted):
        corpus = MultiCorpus({"x": PairCorpus(table(30), shuffle_buffer=9, **COLUMNS)})
        for _ in range(counted):
            corpus.counts("sbert")
        return [example.reference.text for example in corpus(NLP)]

    assert orders(0) == orders(2)


def schedule(corpus, epochs, max_steps, batcher=None, **settings):
    return linear_warmup_of_epochs(
        1.0, epochs, max_steps, corpus, batcher or batch_mixed(4), **settings
    )


@pytest.mark.parametrize(
    ("epochs", "max_steps", "total"),
    [(1, 0, 25), (4, 0, 100), (1, 7, 7), (1, 26, 25), (0, 7, 7), (-1, 30, 30), (3, 75, 75)],
)
@pytest.mark.parametrize("settings", [{}, {"warmup": 0.5}, {"start_step": 3}])
def test_the_smaller_of_epochs_and_steps(table, epochs, max_steps, total, settings):
    corpus = PairCorpus(table(100), **COLUMNS)
    found = schedule(corpus, epochs, max_steps, **settings)
    assert list(islice(found, 110)) == list(islice(linear_warmup(1.0, total, **settings), 110))


def test_given_steps_need_no_corpus():
    rates = schedule(PairCorpus("no_such_file.csv"), 0, 10)
    assert next(rates) == 0.0
    assert next(rates) == 1.0
    with pytest.raises(ValueError, match="There is no file no_such_file"):
        schedule(PairCorpus("no_such_file.csv"), 1, 10)


def test_a_length_is_needed_and_a_fraction_that_warms_up(table):
    with pytest.raises(ValueError, match=r"epochs = 0 and max_steps = 0"):
        schedule(PairCorpus(table(9), **COLUMNS), 0, 0)
    with pytest.raises(ValueError, match="expected a fraction"):
        linear_warmup(1.0, 10, 1)
    with pytest.raises(ValueError, match="makes no batch"):
        schedule(lambda nlp: iter(()), 1, 0)


def test_equals_thinc_warmup_in_steps():
    ours = list(islice(linear_warmup(2e-5, total_steps=360, warmup=0.1), 400))
    assert ours == pytest.approx(list(islice(warmup_linear(2e-5, 36, 360), 400)))
    assert ours[0] == 0.0
    assert ours[36] == 2e-5
    assert ours[360] == 0.0
    assert list(islice(linear_warmup(1.0, total_steps=2, warmup=0), 4)) == [1.0, 0.5, 0.0, 0.0]
    assert list(islice(linear_warmup(2e-5, 360, start_step=7), 300)) == ours[7:307]
