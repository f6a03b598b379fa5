"""The speed task: what is timed, how wordpieces are counted, and what is said of the machine."""

import numpy
import pytest
import spacy
from helpers.made_data import write_benchmark

from spacy_sbert.evaluation import PipelineSource
from spacy_sbert.evaluation.baselines import make_baseline
from spacy_sbert.evaluation.protocols import speed
from spacy_sbert.evaluation.task import MissingData, Run, Settings


@pytest.fixture
def root(tmp_path):
    """A folder with a small train and dev split, and no test split."""
    write_benchmark(tmp_path, "train", pairs=3)
    write_benchmark(tmp_path, "dev", pairs=1)
    return tmp_path


def run_of(root, nlp, source=None):
    return Run(
        root, None, Settings(), lambda items, name: items, source or (nlp and PipelineSource(nlp))
    )


@pytest.fixture
def clock(monkeypatch):
    """Runs take 1, 2, 4, 8, ... seconds; gives the way and the texts of each."""
    seen = []

    def time_(source, texts, way):
        seen.append((way, list(texts)))
        # After three that warm up
        return 2.0 ** (len(seen) - 4)

    monkeypatch.setattr(speed, "_time", time_)
    return seen


@pytest.mark.parametrize("encoder", ["own", "shared"])
def test_speeds_are_medians_of_runs_in_turn(root, make_nlp, clock, encoder):
    nlp = make_nlp(encoder)
    result = speed._SpeedTask().run(run_of(root, nlp))
    sentences = [f"{side} {pair}" for pair in (0, 1, 2, 0) for side in ("first", "second")]
    orders = {
        "naive": sentences,
        "smart": sorted(sentences, key=len, reverse=True),
        "own": sentences,
    }
    assert clock[3:] == [*orders.items()] * 3
    tokenizer = next(
        n.shim.tokenizer
        for n in nlp.get_pipe(nlp.pipe_names[0]).model.walk()
        if n.name == "transformer"
    )
    pieces = sum(len(tokenizer.tokenize(text)) for text in sentences)
    assert result["counts"] == {"sentences": 8, "wordpieces": pieces}
    assert result["conditions"]["seconds"] == {
        "naive": [1, 8, 64],
        "smart": [2, 16, 128],
        "own": [4, 32, 256],
    }
    medians = {"naive": 8, "smart": 16, "own": 32}
    expected = {
        way: {"sentences_per_second": 8 / s, "wordpieces_per_second": pieces / s}
        for way, s in medians.items()
    }
    assert result["variants"][0]["scores"] == expected
    assert result["primary"] == "own.sentences_per_second"


@pytest.mark.parametrize("encoder", ["own", "shared"])
def test_padded_batches_go_through_the_hugging_face_model(root, make_nlp, monkeypatch, encoder):
    """Naive and smart give the model whole batches, as wide as their longest text; the own way is
    packed.
    """
    monkeypatch.setattr(speed, "_BATCH_SIZE", 3)
    nlp = make_nlp(encoder)
    source = PipelineSource(nlp, batch_size=3)
    (transformer,) = [node for node in speed._encoders_of(nlp) if hasattr(node, "shim")]
    texts = [
        "a cat",
        "the cat sat on the mat",
        "dog",
        "a man is eating",
        "food",
        "he can not go",
        "meal",
    ]
    lengths = transformer.wordpiece_tokenizer(texts, offsets=False).lengths.tolist()
    shapes = []

    def note(module, args, kwargs):
        shapes.append(tuple(kwargs["input_ids"].shape))

    transformer.shim.network.register_forward_pre_hook(note, with_kwargs=True)
    speed._time(source, texts, "own")
    assert shapes == []
    speed._time(source, texts, "naive")
    groups = [lengths[:3], lengths[3:6], lengths[6:]]
    assert shapes == [(len(group), max(group)) for group in groups]
    naive = sum(rows * width for rows, width in shapes)
    shapes.clear()
    speed._time(source, sorted(texts, key=len, reverse=True), "smart")
    assert [rows for rows, _ in shapes] == [3, 3, 1]
    assert sum(rows * width for rows, width in shapes) < naive
    assert transformer.shim.precision == "float32", "as it was"
    packed = source.encode(texts)
    transformer.shim.precision = "reference"
    assert numpy.abs(source.encode(texts) - packed).max() < 1e-6


def test_the_clock_runs_while_vectors_are_made(root, make_nlp):
    result = speed._SpeedTask(sentences=5, repetitions=1).run(run_of(root, make_nlp()))
    conditions = result["conditions"]
    assert result["counts"]["sentences"] == 5
    assert list(conditions["seconds"]) == [
        "naive",
        "smart",
        "own",
    ]
    assert all(0 < seconds < 60 for (seconds,) in conditions["seconds"].values())
    assert conditions["device"] == "CPU"
    assert conditions["threads"] >= 1
    assert conditions["cpu"]
    assert f"threads {conditions['threads']}" in result["notes"][0]
    assert result["notes"][1].startswith("naive: padded")


@pytest.mark.filterwarnings("ignore:.*rows were longer")
def test_wordpieces_that_are_cut_do_not_count(make_nlp):
    # One wordpiece each
    text = "cat " * 100
    # Of 24, two are special
    assert speed._count_wordpieces(make_nlp(), [text]) == 22
    assert speed._count_wordpieces(make_nlp(model={"overflow": "windows"}), [text]) == 100
    assert speed._count_wordpieces(make_nlp(unit="sent"), ["A cat. A dog.", ""]) == 6


@pytest.mark.parametrize("name", ["static", "tf-idf"])
def test_a_baseline_is_timed(root, name):
    nlp = spacy.blank("xx")
    nlp.vocab.set_vector("first", numpy.ones(3, dtype="float32"))
    source = make_baseline(name, nlp=nlp)
    result = speed._SpeedTask(repetitions=1).run(run_of(root, None, source))
    assert list(result["variants"][0]["scores"]) == ["own"]
    assert result["primary"] == "own.sentences_per_second"
    assert result["variants"][0]["scores"]["own"]["sentences_per_second"] > 0
    assert any("in the time" in note for note in result["notes"]) == source.learns
    with pytest.raises(MissingData, match="no source of vectors to time"):
        speed._SpeedTask().run(run_of(root, None))
