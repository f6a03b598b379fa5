"""The speed task: what is timed, how wordpieces are counted, and what is said of the machine."""

import numpy
import pytest
import spacy
from pipelines import PAIRS

from spacy_sbert.evaluation import speed
from spacy_sbert.evaluation.datasets import MissingData
from spacy_sbert.evaluation.settings import Settings
from spacy_sbert.evaluation.task import Run

LINE = "main-captions\tMSRvid\t2012test\t{id}\t{score}\t{first}\t{second}\n"


@pytest.fixture
def root(tmp_path):
    """A folder with a small train and dev split, and no test split."""
    folder = tmp_path / "STSBenchmark"
    folder.mkdir()
    lines = [LINE.format(id=i, score=5 * score, first=a, second=b) for i, (a, b, score) in enumerate(PAIRS)]
    (folder / "sts-train.csv").write_text("".join(lines), encoding="utf8")
    (folder / "sts-dev.csv").write_text(lines[0], encoding="utf8")
    return tmp_path


def run_of(root, nlp):
    return Run(root, None, Settings(), lambda items, name: items, nlp)


@pytest.fixture
def clock(monkeypatch):
    """Runs take 1, 2, 4, 8, ... seconds; gives the texts that each encoded."""
    seen = []

    def time_(source, texts):
        seen.append(list(texts))
        return 2.0 ** (len(seen) - 1)

    monkeypatch.setattr(speed, "_time", time_)
    return seen


@pytest.mark.parametrize("encoder", ["own", "shared"])
def test_speeds_are_medians_of_runs_in_turn(root, make_nlp, clock, encoder):
    nlp = make_nlp(encoder)
    result = speed.SpeedTask().run(run_of(root, nlp))
    sentences = [text for first, second, _ in [*PAIRS, PAIRS[0]] for text in (first, second)]
    assert clock[1::2] == [sentences] * 3
    assert clock[0::2] == [sorted(sentences, key=len, reverse=True)] * 3
    tokenizer = next(n.tokenizer for n in nlp.get_pipe(nlp.pipe_names[0]).model.walk() if n.name == "transformer")
    pieces = sum(len(tokenizer.tokenize(text)) for text in sentences)
    assert result["counts"] == {"sentences": 8, "wordpieces": pieces}
    assert result["conditions"]["seconds"] == {"sorted": [1, 4, 16], "unsorted": [2, 8, 32]}
    (variant,) = result["variants"]
    expected = {name: {"sentences_per_second": 8 / s, "wordpieces_per_second": pieces / s} for name, s in RUNS.items()}
    assert variant["scores"] == expected
    assert result["primary"] == "sorted.sentences_per_second"


RUNS = {"sorted": 4, "unsorted": 8}


def test_the_clock_runs_while_vectors_are_made(root, make_nlp):
    task = speed.SpeedTask(sentences=5, repetitions=1)
    result = task.run(run_of(root, make_nlp()))
    assert result["counts"]["sentences"] == 5
    for order in speed.ORDERS:
        (seconds,) = result["conditions"]["seconds"][order]
        assert 0 < seconds < 60
    conditions = result["conditions"]
    assert conditions["device"] == "CPU" and conditions["threads"] >= 1 and conditions["cpu"]
    assert f"threads {conditions['threads']}" in result["notes"][0]


@pytest.mark.filterwarnings("ignore:.*rows were longer")
def test_wordpieces_that_are_cut_do_not_count(make_nlp):
    text = "cat " * 100  # one wordpiece each
    assert speed.count_wordpieces(make_nlp(), [text]) == 22  # of 24, two are special
    assert speed.count_wordpieces(make_nlp(model={"overflow": "windows"}), [text]) == 100
    assert speed.count_wordpieces(make_nlp(unit="sent"), ["A cat. A dog.", ""]) == 6


def test_a_pipeline_that_cannot_tell_wordpieces(root):
    nlp = spacy.blank("en")
    nlp.vocab.set_vector("man", numpy.ones(3, dtype="float32"))
    result = speed.SpeedTask(repetitions=1).run(run_of(root, nlp))
    assert "wordpieces" not in result["counts"]
    assert result["variants"][0]["scores"]["sorted"]["wordpieces_per_second"] is None
    assert result["variants"][0]["scores"]["sorted"]["sentences_per_second"] > 0
    assert "cannot be counted" in result["notes"][1]


def test_sentences_are_spread_evenly():
    texts = [str(i) for i in range(10)]
    assert speed.spread(texts, 4) == ["0", "3", "6", "9"]
    assert speed.spread(texts, 10) == speed.spread(texts, 11) == texts


def test_files_that_are_there_are_read(root, tmp_path):
    task = speed.SpeedTask()
    assert [path.name for path in task.find(root)] == ["sts-train.csv", "sts-dev.csv"]
    with pytest.raises(MissingData, match=r"sts-test.csv not found below .* Get it from http"):
        task.find(tmp_path / "nowhere")


def test_a_baseline_is_not_timed(root):
    with pytest.raises(MissingData, match="Only pipelines are timed"):
        speed.SpeedTask().run(run_of(root, None))
