"""`spacy sbert train` scores the last step, whatever its number; what ends a training, and its steps, are spaCy's."""

import json
from pathlib import Path

import pytest
import spacy
from pipelines import HOLDER, TRAINED, shipped_config
from spacy.training.initialize import init_nlp
from spacy.util import load_config

from spacy_sbert.distributed.torch_distributed import launched
from spacy_sbert.distributed.train_loop import train

pytestmark = pytest.mark.filterwarnings("ignore:.*longer than the encoder's limit")
ROOT = Path(__file__).parents[2]
SMALL = {"corpora.train.limit": 57, "corpora.dev.limit": 12, "training.max_epochs": 1}  # 4 steps


@pytest.fixture
def run(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)

    def run(output="out", every=0, resume=False, stops_at=0, **settings):
        """Train, to the end or until an evaluation that is interrupted."""
        log = {"training.logger.output_file": str(tmp_path / f"{output}.jsonl")}
        overrides = {**SMALL, **log, **settings}
        shipped_config("sts", tiny_bert).to_disk(tmp_path / "sts.cfg", interpolate=False)
        nlp = init_nlp(load_config(tmp_path / "sts.cfg", overrides, interpolate=False))
        evaluate, calls = nlp.evaluate, []

        def stopping(*args, **kwargs):
            calls.append(1)
            if len(calls) == stops_at:
                raise KeyboardInterrupt
            return evaluate(*args, **kwargs)

        monkeypatch.setattr(nlp, "evaluate", stopping)
        with launched(-1) as ranks:
            return train(nlp, tmp_path / output, ranks, checkpoint_every=every, resume=resume)

    return run


def logged(tmp_path, name="out"):
    return [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text(encoding="utf8").splitlines()]


FLAT = {"training.optimizer.learn_rate": 0.0}  # so that no score is better than the first


@pytest.mark.parametrize(
    ("settings", "steps", "why"),
    [
        ({"training.eval_frequency": 2}, [0, 2, 3], ""),
        ({"training.eval_frequency": 2, "training.max_epochs": 0, "training.max_steps": 5}, [0, 2, 4, 5], ""),
        ({"training.eval_frequency": 2, "training.max_epochs": 9, "training.patience": 3, **FLAT}, [0, 2, 3], "for 3"),
    ],
    ids=["epoch", "max_steps", "patience"],
)
def test_the_last_step_is_scored(run, tmp_path, settings, steps, why):
    ended = run(**settings)
    lines = logged(tmp_path)
    assert [line["step"] for line in lines] == steps
    assert f"Training ended after step {steps[-1]}" in ended and why in ended
    best = max(lines, key=lambda line: (line["score"], -line["step"]))
    assert f"{best['score']:.2f}, is that of step {best['step']}." in ended
    for name, line in (("model-last", lines[-1]), ("model-best", best)):
        performance = json.loads((tmp_path / "out" / name / "meta.json").read_text())["performance"]
        assert 100 * performance["sts_spearman"] == pytest.approx(line["scores"]["sts_spearman"])


def test_interrupted_last_evaluation(run, tmp_path):
    """A training that resumes from the checkpoint of the last step takes no step, and scores it."""
    settings = {"training.eval_frequency": 2}
    run("straight", **settings)
    with pytest.raises(KeyboardInterrupt):
        run("broken", every=4, stops_at=3, **settings)
    assert (tmp_path / "broken" / "checkpoint" / "step-4").is_dir()
    run("broken", every=4, resume=True, **settings)
    straight, broken = (logged(tmp_path, name)[-1] for name in ("straight", "broken"))
    for line in (straight, broken):
        del line["examples_per_second"]
    assert straight == broken and broken["step"] == 3
    for name in ("model-last", "model-best"):
        first, second = (spacy.load(tmp_path / folder / name) for folder in ("straight", "broken"))
        assert first.get_pipe(HOLDER[TRAINED]).to_bytes() == second.get_pipe(HOLDER[TRAINED]).to_bytes()
        assert first.meta["performance"] == second.meta["performance"]
