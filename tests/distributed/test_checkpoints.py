"""`spacy sbert train --checkpoint-every ... --resume`: a killed and resumed training equals an uninterrupted one."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy
import pytest
import spacy
import torch
from killing import command, killed_at, run, typed
from pipelines import HOLDER, TRAINED, shipped_config
from typer.testing import CliRunner

from spacy_sbert.cli import app
from spacy_sbert.distributed.checkpoint import _random_states, _set_random_states
from spacy_sbert.training.quickstart_config import check_config

pytestmark = pytest.mark.filterwarnings("ignore:.*longer than the encoder's limit")
STOPS = """
from spacy.util import registry

@registry.callbacks("stops.v1")
def make():
    def stop(nlp, done):
        if done["step"] == 5:
            raise KeyboardInterrupt
    return stop
"""
ROOT = Path(__file__).parents[2]
EPOCHS = {"training.max_epochs": 3, "training.eval_frequency": 3, "corpora.train.limit": 70, "corpora.dev.limit": 20}
STREAM = EPOCHS | {"training.max_epochs": -1, "training.max_steps": 13, "corpora.train.shuffle_buffer": 30}
DROPOUT = {f"components.{HOLDER[TRAINED]}.model.transformer_config": {"hidden_dropout_prob": 0.2}}
SECOND = 22 if TRAINED == "own" else 38  # the event while the second checkpoint is written, by the number of pipes


def arguments_of(encoder, folder, name, **settings):
    """Return a shipped config for an encoder, and settings, with paths that do not depend on the working directory."""
    config = shipped_config(name, encoder)
    for part in ("train", "dev"):
        config["paths"][part] = str(ROOT / config["paths"][part])
    path = folder / f"{name}.cfg"
    config.to_disk(path, interpolate=False)
    settings = {"training.logger.output_file": str(folder / "log.jsonl"), **settings}
    options = (word for key, value in settings.items() for word in (f"--{key}", json.dumps(value).strip('"')))
    return [path, *options]


@pytest.fixture
def config_of(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    return partial(arguments_of, tiny_bert, tmp_path)


def training(arguments, output, *options):
    return partial(command, "sbert", "train", *arguments, "--output", output, *options)


def files_of(folder):
    """The bytes of all weights, and what the pipeline scored."""
    nlp = spacy.load(folder)
    vectors = numpy.stack([doc.vector for doc in nlp.pipe(["A man is eating.", "Someone is having a meal."])])
    weights = {name: pipe.to_bytes() for name, pipe in nlp.components}
    return vectors.tobytes(), weights, nlp.meta["performance"]


def check_same(first, second):
    for name in ("model-last", "model-best"):
        assert files_of(first / name) == files_of(second / name), name
    assert sorted(path.name for path in second.iterdir()) == ["model-best", "model-last"]  # no checkpoint is left


KINDS = {
    "late": ("sts", EPOCHS),  # in the second epoch
    "dropout": ("sts", EPOCHS | DROPOUT),
    "stream": ("sts", STREAM),
    "averages": ("sts", EPOCHS | {"training.optimizer.use_averages": True}),
    "head": ("nli", EPOCHS),
    "parts": ("sts", EPOCHS | {"training.accumulate_gradient": 2}),
    "patience": ("sts", EPOCHS | {"training.max_epochs": 30, "training.patience": 9}),
    "tokens": ("word_average", EPOCHS),
}
SLOW = {"late", "parts", "averages", "patience"}  # which add the least


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind in SLOW)) for kind in KINDS])
def test_resumed_equals_uninterrupted(config_of, tmp_path, kind):
    """To the bit: weights, vectors, scores, and the best of them; killed at some moment after half of the steps."""
    name, settings = KINDS[kind]
    every = 6 if kind == "late" else 4
    arguments = config_of(name, **settings)
    run(training(arguments, tmp_path / "straight", "--checkpoint-every", every))
    log = tmp_path / "log.jsonl"
    whole = [json.loads(line) for line in log.read_text().splitlines()]
    log.unlink()
    broken = tmp_path / "broken"
    kill = partial(killed_at, training(arguments, broken, "--checkpoint-every", every), broken / "checkpoint")
    assert kill(event=22 if kind == "tokens" else SECOND)  # while the second one is written
    (checkpoint,) = [path for path in (broken / "checkpoint").iterdir() if path.name.startswith("step-")]
    begun = int(checkpoint.name.split("-")[1])
    assert begun == every
    log.unlink(missing_ok=True)
    run(training(arguments, broken, "--checkpoint-every", every, "--resume"))
    check_same(tmp_path / "straight", broken)
    rest = [json.loads(line) for line in log.read_text().splitlines()]
    expected = [line for line in whole if line["step"] >= begun]
    for line in (*rest, *expected):
        del line["examples_per_second"]
    assert rest == expected and rest  # with the loss since the last evaluation


def test_loop_equals_spacy_train(config_of, tmp_path):
    arguments = config_of("sts", **EPOCHS | {"training.eval_frequency": 7})  # of 15 steps spaCy scores the last, too
    run(training(arguments, tmp_path / "ours", "--checkpoint-every", 2))
    run(partial(command, "train", *arguments, "--output", tmp_path / "spacy"))
    check_same(tmp_path / "spacy", tmp_path / "ours")


@pytest.fixture(scope="module")
def killed_training(tiny_bert, tmp_path_factory):
    """The folder that a killed training has left, and its arguments, whose training corpus is a copy."""
    folder = tmp_path_factory.mktemp("killed")
    shutil.copy(ROOT / "assets" / "pairs-train.csv", folder / "train.csv")
    arguments = [*arguments_of(tiny_bert, folder, "sts", **EPOCHS), "--paths.train", folder / "train.csv"]
    kill = partial(killed_at, training(arguments, folder / "out", "--checkpoint-every", 4))
    assert kill(folder / "out" / "checkpoint", event=SECOND)
    return arguments, folder / "out"


@pytest.fixture
def broken(killed_training, tmp_path, monkeypatch):
    """A copy of what a killed training has left, and its arguments."""
    monkeypatch.chdir(ROOT)
    arguments, output = killed_training
    return arguments, shutil.copytree(output, tmp_path / "out")


def refused(arguments, output, *options):
    """Return the message of a command that refuses to train."""
    words = ["train", *arguments, "--output", output, *options]
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit), done.output
    return " ".join(done.output.split())


def test_checkpoint_of_another_run(broken):
    arguments, output = broken
    assert "holds a checkpoint of an interrupted training" in refused(arguments, output)
    assert "other settings in training:" in refused([*arguments, "--training.max_epochs", "4"], output, "--resume")
    model, train = output / "model-last" / "sbert" / "model", arguments[-1]
    model.write_bytes(b"weights of a later step")
    pairs = train.read_text(encoding="utf8").splitlines(keepends=True)
    cells = pairs[0].split("\t")
    other_score = "\t".join([*cells[:4], "5.000" if cells[4] != "5.000" else "0.000", *cells[5:]])
    try:
        for first in ([pairs[1], pairs[0]], [other_score, pairs[1]]):
            train.write_text("".join([*first, *pairs[2:]]), encoding="utf8")
            assert "Cannot resume: the training corpus has" in refused(arguments, output, "--resume")
            assert model.read_bytes() == b"weights of a later step"
    finally:
        train.write_text("".join(pairs), encoding="utf8")
    done = CliRunner().invoke(app, ["train", *map(str, arguments), "--checkpoint-every", "4"])
    assert done.exit_code == 1 and "--checkpoint-every and --resume need a f" in done.output
    assert (output / "checkpoint" / "step-4").is_dir()


def flipped(data):
    return data[:-90] + bytes([data[-90] ^ 1]) + data[-89:]


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("state.pt", lambda data: data[: len(data) // 2]),
        ("state.pt", flipped),
        ("state.pt", None),
        ("pipeline/sbert/model", flipped),
        ("pipeline/sbert/model", None),
    ],
)
def test_damaged_checkpoint_is_refused(broken, file, damage):
    arguments, output = broken
    path = output / "checkpoint" / "step-4" / file
    data = path.read_bytes()
    path.unlink()
    if damage is not None:
        path.write_bytes(damage(data))
    message = refused(arguments, output, "--resume")
    assert "step-4 cannot be resumed" in message and "is damaged" in message
    assert path.exists() == (damage is not None)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"paths.train": "nowhere.csv"}, "There is no file nowhere.csv"),
        ({"paths.train": "assets/entities-train.iob"}, "entities-train.iob"),
        (
            {"corpora.train.format": "table", "corpora.train.members": ["a", "b"]},
            "a table without a header needs --no-header, or header = false",
        ),
        ({f"components.{HOLDER[TRAINED]}.model.name": "no/such-encoder"}, "The encoder"),
        ({"paths.train": os.devnull}, "/dev/null"),
        ({"max_epochs": 2}, "There is no option --max_epochs: expected"),
        (
            {"training.max_epoch": 2},
            "[training] has no setting 'max_epoch', which would be ignored: expected max_epochs.",
        ),
        ({"components.sbert.name": "all-mpnet-base-v2"}, "Set name in [components.sbert.model]"),
        ({"training.logger.output_file": f"{ROOT / 'README.md'}/log.csv"}, "Cannot write"),
    ],
)
def test_errors_without_a_traceback(config_of, tmp_path, setting, message):
    assert message in refused(config_of("sts", **(EPOCHS | setting)), tmp_path / "out")


def test_settings_beside_a_source():
    block = {"source": "en_mine", "loss": {"@layers": "mine.v1"}, "replace_listeners": ["model.tok2vec"]}
    with pytest.raises(
        ValueError, match=r"a source and also loss, .*Load en_mine with .*\"components\.sbert\.loss\": "
    ):
        check_config({"training": {}, "components": {"sbert": block}})
    del block["loss"]
    check_config({"training": {}, "components": {"sbert": block | {"component": "other"}}})


def test_output_that_cannot_be_written(config_of, tmp_path):
    arguments, file = config_of("sts", **EPOCHS), tmp_path / "file"
    file.write_text("mine")
    for output in (file, file / "below"):
        message = refused(arguments, output)
        assert f"Cannot save to --output {output}: {file} is no folder." in message and "E #" not in message
    assert file.read_text() == "mine"


@pytest.mark.parametrize("every", [0, 4])
def test_ctrl_c_says_how_to_resume(config_of, tmp_path, every):
    """Stopped by the training itself, as the signal would, in step 5."""
    code = tmp_path / "code.py"
    code.write_text(STOPS)
    arguments = config_of("sts", **EPOCHS, **{"training.before_update": {"@callbacks": "stops.v1"}})
    options = ["-o", tmp_path / "out", "--code", code, "--checkpoint-every", every]
    done = typed("sbert", "train", *arguments, *options, folder=ROOT)
    output = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 130 and "Traceback" not in output, output
    assert ("with --resume continues from" in output and "step-4" in output) is (every == 4)
    assert ("no checkpoint to resume from: with --checkpoint-every 50" in output) is (every == 0)


def test_without_a_checkpoint_training_begins_and_foreign_files_stay(config_of, tmp_path):
    """A folder that only has the name of that of checkpoints, and other files beside checkpoints."""
    folder = tmp_path / "out" / "checkpoint"
    (folder / "step-by-step").mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    options = ["-o", tmp_path / "out", "--resume", "--checkpoint-every", 4]
    done = typed("sbert", "train", *config_of("sts", **EPOCHS), *options, folder=ROOT)
    output = " ".join(done.stdout.split())
    assert done.returncode == 0 and "training begins" in output, done.stdout + done.stderr
    best = json.loads((tmp_path / "out" / "model-best" / "meta.json").read_text())["performance"]["sts_spearman"]
    assert re.search(
        rf"Training ended after step \d+\. The best score, {100 * best:.2f}, is that of step \d+\.", output
    )
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt", "step-by-step"]


def test_random_states_survive():
    random.seed(3), numpy.random.seed(4), torch.manual_seed(5)
    random.gauss(0, 1), numpy.random.normal()  # which keep a number for the next call
    states = _random_states()

    def draw():
        return random.gauss(0, 1), random.random(), *numpy.random.normal(size=3), *torch.rand(3).tolist()

    first = draw()
    assert draw() != first
    _set_random_states(states)
    assert draw() == first


@pytest.mark.slow
def test_two_ranks_resume(config_of, tmp_path):
    """Each with its own random numbers, for dropout."""
    arguments = list(map(str, config_of("sts", **(EPOCHS | DROPOUT | {"training.max_epochs": 2}))))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "spacy"]

    def train(output, *options):
        command = [*launcher, "sbert", "train", *arguments, "--output", str(output), *options]
        return subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True)

    done = train(tmp_path / "straight", "--checkpoint-every", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    broken = [*launcher, "sbert", "train", *arguments, "--output", str(tmp_path / "broken"), "--checkpoint-every", "4"]
    process = subprocess.Popen(broken, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not list((tmp_path / "broken" / "checkpoint").glob("step-*")):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    process.terminate()
    output = process.communicate(timeout=120)[0]
    assert process.returncode != 0 and (tmp_path / "broken" / "checkpoint").is_dir(), output
    assert "made by 2 processes, and there are 1" in refused(arguments, tmp_path / "broken", "--resume")
    done = train(tmp_path / "broken", "--resume")
    assert done.returncode == 0 and "Resuming from" in " ".join(done.stdout.split()), done.stdout + done.stderr
    check_same(tmp_path / "straight", tmp_path / "broken")
