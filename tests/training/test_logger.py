import csv
import io
import json
from types import SimpleNamespace

import pytest
from helpers.objectives import MULTI, several
from helpers.pipelines import TRAINED
from thinc.api import fix_random_seed

from spacy_sbert.training.gold import check_scored
from spacy_sbert.training.logger import progress_logger


def make(make_nlp, stderr, **settings):
    fix_random_seed(0)
    nlp = make_nlp(TRAINED, loss=MULTI)
    weights = {"sts_spearman": 1.0, "sts_pearson": None, "nli_acc": None}
    nlp.config["training"].update(max_steps=10, score_weights=weights)
    stdout = io.StringIO()
    log, close = progress_logger(**settings)(nlp, stdout, stderr)
    return nlp, stdout, log, close


def info_of(losses, step=4):
    return {
        "epoch": 0,
        "step": step,
        "losses": losses,
        "other_scores": {"sts_spearman": 0.5},
        "score": 0.5,
    }


@pytest.fixture
def logged(make_nlp, tmp_path):
    """The losses of a step of several objectives, the table, standard error, and the lines of the
    file.
    """
    file = tmp_path / "logs" / "log.jsonl"
    stderr = io.StringIO()
    nlp, stdout, log, close = make(make_nlp, stderr, output_file=file)
    batch = several(nlp)
    nlp.initialize(lambda: batch)
    losses = nlp.update(batch, sgd=False)
    assert nlp.get_pipe("sbert").examples_seen == len(batch)
    log(None)
    log(info_of(losses))
    log(info_of(losses, step=8))
    close()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return losses, stdout.getvalue().splitlines(), stderr.getvalue(), lines


def test_table_of_losses_and_speed(logged):
    _, (header, _, first, second), stderr, _ = logged
    for name in ("sbert", "sbert_nli", "sbert_sts", "sbert_tri"):
        assert f"loss {name} " in header
    assert "sts_spearman " in header
    # What it reports is the size of a gradient
    assert "transformer" not in header
    assert "nli_acc" not in header
    assert first.split()[:2] == ["0", "4"]
    assert second.split()[:2] == ["0", "8"]
    assert first.split()[-1] == "50"
    # No bar where there is no terminal
    assert stderr == ""


def test_file_of_losses_and_speed(logged):
    losses, _, _, lines = logged
    assert [line["step"] for line in lines] == [4, 8]
    own = {key: float(value) for key, value in losses.items() if key != "transformer"}
    assert lines[0]["losses"] == pytest.approx(own)
    assert lines[0]["scores"] == {"sts_spearman": 50.0}
    assert lines[0]["examples_per_second"] > 0


def test_log_line_every_half_minute(make_nlp, monkeypatch):
    """Of the step, the mean loss since the last line or row, the speed and the time left; whole
    lines, no bar.
    """
    clock = SimpleNamespace(now=0.0)
    stderr = io.StringIO()
    monkeypatch.setattr("spacy_sbert.training.training_log.perf_counter", lambda: clock.now)
    nlp, stdout, log, close = make(make_nlp, stderr)
    nlp.config["training"]["max_steps"] = 1000
    log.__self__.total = 1000
    pipe = nlp.get_pipe("sbert")

    def step(info=None):
        clock.now += 4
        pipe.examples_seen += 8
        pipe.loss_seen += 0.25
        log(info)

    step(info_of({"sbert": 0.25}, step=0))
    for _ in range(20):
        step()
    lines = stderr.getvalue().splitlines()
    assert lines == [
        "Step 9 of 1000, loss sbert 0.25, 2.0 examples/s, 1:06:04 left",
        "Step 17 of 1000, loss sbert 0.25, 2.0 examples/s, 1:05:32 left",
    ]
    # A row is a line, too
    step(info_of({"sbert": 0.25}, step=21))
    for _ in range(8):
        step()
    close()
    assert [line.split(",")[0] for line in stderr.getvalue().splitlines()[2:]] == [
        "Step 30 of 1000"
    ]
    assert "\r" not in stderr.getvalue() + stdout.getvalue()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"sts_spearman": 1.0}, None),
        ({"mine": 1.0}, "No component has the score 'mine'"),
        ({}, "All of .training.score_weights. are 0 or null"),
    ],
)
def test_evaluation_without_a_weighted_score(make_nlp, weights, message):
    nlp = make_nlp()
    nlp.config["training"].update(
        patience=10, score_weights={"sts_spearman": None, "sts_pearson": None, **weights}
    )
    if message is not None:
        with pytest.raises(ValueError, match=message):
            progress_logger()(nlp, io.StringIO(), io.StringIO())
        return
    log, close = progress_logger()(nlp, io.StringIO(), io.StringIO())
    log(info_of({"sbert": 1.0}))
    close()


def test_scores_that_an_evaluation_lacks():
    with pytest.raises(ValueError, match=r"\(mine\) .* sts_spearman"):
        check_scored({"mine": 1.0, "sts_spearman": None}, {"sts_spearman": 0.5})


@pytest.mark.parametrize(("later", "is_warned"), [(0.4, True), (0.5, False), (0.6, False)])
def test_best_step_is_the_first(make_nlp, later, is_warned):
    """`spacy train` does not score the last step, and does not look for the best one."""
    _, stdout, log, close = make(make_nlp, io.StringIO())
    results = [(0.5, 0), (later, 10)]
    log({**info_of({"sbert": 1.0}), "checkpoints": results})
    log(None)
    close()
    assert ("[sbert-nothing-learned]" in stdout.getvalue()) == is_warned


def test_bar_shows_speed_and_time_left(make_nlp):
    stderr = io.StringIO()
    stderr.isatty = lambda: True
    nlp, stdout, log, close = make(make_nlp, stderr)
    batch = several(nlp)
    nlp.initialize(lambda: batch)
    for _ in range(3):
        nlp.update(batch, sgd=False)
        log(None)
    assert "3/10" in stderr.getvalue()
    assert "examples/s" in stderr.getvalue()
    assert "<" in stderr.getvalue()
    # A training that resumed
    log(info_of({"sbert": 1.0}, step=6))
    log(None)
    bar = log.__self__.bar
    assert (bar.n, bar.total) == (8, 10)
    for _ in range(3):
        log(None)
    close()
    assert "11/" not in stderr.getvalue()
    assert "Steps after the last evaluation: 4." in " ".join(stdout.getvalue().split())


def test_a_table_grows_with_what_is_new(make_nlp, tmp_path):
    file = tmp_path / "log.csv"
    nlp, *_ = make(make_nlp, io.StringIO())
    for losses in ({"sbert": 3.0}, {"sbert": 2.0}, {"sbert": 1.5, "sbert_nli": 0.5}):
        # Each continues it
        log, close = progress_logger(output_file=file)(nlp, io.StringIO(), io.StringIO())
        log(info_of(losses))
        close()
    with file.open(encoding="utf8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["losses.sbert"] for row in rows] == ["3.0", "2.0", "1.5"]
    assert [row["losses.sbert_nli"] for row in rows] == ["", "", "0.5"]
    assert {row["scores.sts_spearman"] for row in rows} == {"50.0"}
    assert {row["step"] for row in rows} == {"4"}
