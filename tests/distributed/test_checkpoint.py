"""`spacy sbert train`: its steps are spaCy's, its last step is scored, and it resumes to
the bit.
"""

import json
import os
import random
import shutil
import time
from functools import partial

import numpy
import pytest
import spacy
import torch
from helpers.invoking import said
from helpers.killing import command, killed_at, run
from helpers.made_tables import write_classes
from helpers.pipelines import HOLDER, ROOT, TRAINED, shipped_config
from helpers.ranks import start, typed
from spacy.cli.train import train as spacy_train
from spacy.language import Language
from spacy.util import registry

from spacy_sbert.distributed.checkpoint import _random_states, _set_random_states
from spacy_sbert.errors import DivergedError, Warnings
from spacy_sbert.training.gold import untrained_warning
from spacy_sbert.training.quickstart_config import check_config, quickstart_config

pytestmark = pytest.mark.filterwarnings("ignore:.*longer than the encoder's limit")
# In step STOP[0], as Ctrl-C does
STOPS = {"training.before_update": {"@callbacks": "tests.stop.v1"}}
STOP = [-1]
EPOCHS = {
    "training.max_epochs": 2,
    "training.eval_frequency": 3,
    "corpora.train.limit": 70,
    "corpora.dev.limit": 20,
}
STREAM = EPOCHS | {
    "training.max_epochs": -1,
    "training.max_steps": 10,
    "corpora.train.shuffle_buffer": 30,
}
DROPOUT = {f"components.{HOLDER[TRAINED]}.model.transformer_config": {"hidden_dropout_prob": 0.2}}
# The event while the second checkpoint is written, by the number of pipes
SECOND = 22 if TRAINED == "own" else 38


@registry.callbacks("tests.stop.v1")
def make_stop():
    def stop(nlp, done):
        if done["step"] == STOP[0]:
            raise KeyboardInterrupt

    return stop


def arguments_of(encoder, folder, name, **settings):
    """Return a shipped config for an encoder, and settings, with paths that do not depend on the
    working directory.
    """
    config = shipped_config(name, encoder)
    for part in ("train", "dev"):
        config["paths"][part] = str(ROOT / config["paths"][part])
    path = folder / f"{name}.cfg"
    config.to_disk(path, interpolate=False)
    settings = {"training.logger.output_file": str(folder / "log.jsonl"), **settings}
    options = (
        word
        for key, value in settings.items()
        for word in (f"--{key}", json.dumps(value).strip('"'))
    )
    return [path, *options]


@pytest.fixture
def config_of(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    return partial(arguments_of, tiny_bert, tmp_path)


def train(arguments, output, *options, code=0):
    return said("train", *arguments, "--output", output, *options, code=code)


refused = partial(train, code=1)


def stopped(arguments, output, step, *options):
    STOP[0] = step
    try:
        return train(arguments, output, *options, code=130)
    finally:
        STOP[0] = -1


def logged(folder):
    """Return the lines of the log without its times, and remove it."""
    lines = [
        json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf8").splitlines()
    ]
    (folder / "log.jsonl").unlink()
    for line in lines:
        del line["examples_per_second"]
    return lines


def files_of(folder):
    """The bytes of all weights, and what the pipeline scored."""
    nlp = spacy.load(folder)
    vectors = numpy.stack(
        [doc.vector for doc in nlp.pipe(["A man is eating.", "Someone is having a meal."])]
    )
    weights = {name: pipe.to_bytes() for name, pipe in nlp.components}
    return vectors.tobytes(), weights, nlp.meta["performance"]


def check_same(first, second):
    for name in ("model-last", "model-best"):
        assert files_of(first / name) == files_of(second / name), name
    # No checkpoint is left
    assert sorted(path.name for path in second.iterdir()) == [
        "model-best",
        "model-last",
    ]


@pytest.fixture(scope="module")
def killed_training(tiny_bert, tmp_path_factory):
    """The arguments, whose corpus is a copy, and the folder of a training that was killed in its
    second checkpoint.
    """
    folder = tmp_path_factory.mktemp("killed")
    shutil.copy(ROOT / "assets" / "pairs-train.csv", folder / "train.csv")
    arguments = [
        *arguments_of(tiny_bert, folder, "sts", **EPOCHS | DROPOUT),
        "--paths.train",
        folder / "train.csv",
    ]
    work = partial(
        command, "sbert", "train", *arguments, "--output", folder / "out", "--checkpoint-every", 4
    )
    assert killed_at(work, folder / "out" / "checkpoint", event=SECOND)
    (folder / "log.jsonl").unlink()
    return arguments, folder


@pytest.fixture
def broken(killed_training, tmp_path, monkeypatch):
    """The arguments, and a copy of what the killed training has left."""
    monkeypatch.chdir(ROOT)
    arguments, folder = killed_training
    return arguments, shutil.copytree(folder / "out", tmp_path / "out")


def test_killed_and_resumed(broken, killed_training, tmp_path):
    """To the bit: weights, vectors, scores, and the best of them."""
    arguments, output = broken
    train(arguments, tmp_path / "straight", "--checkpoint-every", 4)
    whole = logged(killed_training[1])
    assert [path.name for path in (output / "checkpoint").iterdir() if path.name[0] != "."] == [
        "step-4"
    ]
    run(
        partial(
            command,
            "sbert",
            "train",
            *arguments,
            "--output",
            output,
            "--checkpoint-every",
            4,
            "--resume",
        )
    )
    check_same(tmp_path / "straight", output)
    # With the loss since the last evaluation
    rest = [line for line in whole if line["step"] >= 4]
    assert logged(killed_training[1]) == rest


KINDS = {
    # In the second epoch
    "late": ("sts", EPOCHS | DROPOUT | {"training.max_epochs": 3}, 6),
    "stream": ("sts", STREAM, 4),
    "averages": ("sts", EPOCHS | {"training.optimizer.use_averages": True}, 4),
    "head": ("nli", EPOCHS, 4),
    "parts": ("sts", EPOCHS | {"training.accumulate_gradient": 2}, 4),
    "patience": ("sts", EPOCHS | {"training.max_epochs": 30, "training.patience": 9}, 4),
    "tokens": ("word_average", EPOCHS, 4),
}
# Which add the least
SLOW = {"late", "parts", "averages", "patience", "tokens"}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind in SLOW)) for kind in KINDS]
)
def test_resumed_equals_uninterrupted(config_of, tmp_path, kind):
    name, settings, every = KINDS[kind]
    arguments = config_of(name, **settings, **STOPS)
    options = ("--checkpoint-every", every)
    train(arguments, tmp_path / "straight", *options)
    whole = logged(tmp_path)
    told = stopped(arguments, tmp_path / "broken", every + 2, *options)
    assert "with --resume continues from" in told
    assert f"/checkpoint/step-{every}" in told.replace(" ", "")
    logged(tmp_path)
    assert "Resuming from" in train(arguments, tmp_path / "broken", *options, "--resume")
    check_same(tmp_path / "straight", tmp_path / "broken")
    assert logged(tmp_path) == [line for line in whole if line["step"] >= every]


def test_classes_resume(tiny_bert, tmp_path):
    """With the classes, which are fitted at each evaluation and checkpoint."""
    table = {"members": ["text"], "label": "label"}
    train_table = {"path": write_classes(tmp_path / "train.csv"), **table}
    dev_table = {"path": write_classes(tmp_path / "dev.csv", n=30), **table}
    config = quickstart_config(
        train_table, dev_table, kind="classes", count=60, encoder=str(tiny_bert)
    )
    config["training"]["batcher"]["size"] = 16
    config["training"] |= {"eval_frequency": 5, "patience": 0}
    config["training"]["optimizer"]["learn_rate"]["initial_rate"] = 2e-3
    config["training"]["before_update"] = STOPS["training.before_update"]
    config.to_disk(tmp_path / "own.cfg")
    arguments = [tmp_path / "own.cfg"]
    options = ("--checkpoint-every", 7)
    train(arguments, tmp_path / "straight", *options)
    stopped(arguments, tmp_path / "broken", 9, *options)
    assert "Resuming from" in train(arguments, tmp_path / "broken", *options, "--resume")
    check_same(tmp_path / "straight", tmp_path / "broken")


def test_loop_equals_spacy_train(config_of, tmp_path):
    # Of whose 10 steps spaCy scores the last, too
    arguments = config_of("sts", **EPOCHS)
    train(arguments, tmp_path / "ours", "--checkpoint-every", 2)
    spacy_train(arguments[0], tmp_path / "spacy", overrides=EPOCHS)
    check_same(tmp_path / "spacy", tmp_path / "ours")


SMALL = {
    "corpora.train.limit": 57,
    "corpora.dev.limit": 12,
    "training.max_epochs": 1,
    "training.eval_frequency": 2,
}
# So that no score is better than the first
FLAT = {"training.optimizer.learn_rate": 1e-30}


@pytest.mark.parametrize(
    ("settings", "steps", "why"),
    [
        ({}, [0, 2, 3], ""),
        ({"training.max_epochs": 0, "training.max_steps": 5}, [0, 2, 4, 5], ""),
        ({"training.max_epochs": 9, "training.patience": 3, **FLAT}, [0, 2, 3], "for 3"),
    ],
    ids=["epoch", "max_steps", "patience"],
)
def test_the_last_step_is_scored(config_of, tmp_path, settings, steps, why):
    ended = train(config_of("sts", **SMALL | settings), tmp_path / "out")
    lines = logged(tmp_path)
    assert [line["step"] for line in lines] == steps
    assert f"Training ended after step {steps[-1]}" in ended
    assert why in ended
    best = max(lines, key=lambda line: (line["score"], -line["step"]))
    assert f"{best['score']:.2f}, is that of step {best['step']}." in ended
    for name, line in (("model-last", lines[-1]), ("model-best", best)):
        performance = json.loads((tmp_path / "out" / name / "meta.json").read_text())["performance"]
        assert 100 * performance["sts_spearman"] == pytest.approx(line["scores"]["sts_spearman"])


def test_interrupted_last_evaluation(config_of, tmp_path, monkeypatch):
    """A training that resumes from the checkpoint of the last step takes no step, and scores it."""
    arguments = config_of("sts", **SMALL)
    calls = []
    evaluate = Language.evaluate

    def stopping(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return evaluate(*args, **kwargs)

    train(arguments, tmp_path / "straight")
    straight = logged(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Language, "evaluate", stopping)
        train(arguments, tmp_path / "broken", "--checkpoint-every", 4, code=130)
    assert (tmp_path / "broken" / "checkpoint" / "step-4").is_dir()
    logged(tmp_path)
    train(arguments, tmp_path / "broken", "--checkpoint-every", 4, "--resume")
    assert logged(tmp_path) == straight[-1:]
    assert straight[-1]["step"] == 3
    check_same(tmp_path / "straight", tmp_path / "broken")


@pytest.mark.parametrize(
    ("others", "missing"),
    [({}, "WORLD_SIZE, MASTER_ADDR"), ({"WORLD_SIZE": "2"}, "MASTER_ADDR, MASTER_PORT")],
)
def test_a_rank_that_another_launcher_has_left(config_of, tmp_path, monkeypatch, others, missing):
    for name, value in {"RANK": "1", **others}.items():
        monkeypatch.setenv(name, value)
    told = refused(config_of("sts", **SMALL), tmp_path / "out")
    assert f"The environment has RANK, and not {missing}" in told


def test_code_of_another_run(broken, tmp_path):
    arguments, output = broken
    code = tmp_path / "code.py"
    code.write_text("RATE = 1")
    told = refused(arguments, output, "--resume", "--code", code)
    assert "The file of --code has changed" in told
    assert "Resuming from" in train(arguments, output, "--resume")


def test_checkpoint_of_another_run(broken):
    arguments, output = broken
    assert "holds a checkpoint of an interrupted training" in refused(arguments, output)
    for name, value in (
        ("training.max_epochs", 4),
        ("training.seed", 5),
        ("components.sbert.loss_weight", 0.5),
    ):
        told = refused([*arguments, f"--{name}", str(value)], output, "--resume")
        assert f"other settings in {name.partition('.')[0]} ({name.partition('.')[2]}" in told
    model = output / "model-last" / "sbert" / "model"
    corpus = arguments[-1]
    model.write_bytes(b"weights of a later step")
    pairs = corpus.read_text(encoding="utf8").splitlines(keepends=True)
    cells = pairs[0].split("\t")
    other_score = "\t".join([*cells[:4], "5.000" if cells[4] != "5.000" else "0.000", *cells[5:]])
    try:
        for first in ([pairs[1], pairs[0]], [other_score, pairs[1]]):
            corpus.write_text("".join([*first, *pairs[2:]]), encoding="utf8")
            assert "The texts or the gold of the training corpus have" in refused(
                arguments, output, "--resume"
            )
            assert model.read_bytes() == b"weights of a later step"
    finally:
        corpus.write_text("".join(pairs), encoding="utf8")
    dev = corpus.with_name("dev.csv")
    dev.write_text(
        (ROOT / "assets" / "pairs-dev.csv").read_text(encoding="utf8").replace("\t0.0", "\t4.0")
    )
    assert "other settings in corpora (dev.path" in refused(
        [*arguments, "--paths.dev", dev], output, "--resume"
    )
    assert "--checkpoint-every and --resume need a f" in said(
        "train", *arguments, "--checkpoint-every", 4, code=1
    )
    assert (output / "checkpoint" / "step-4").is_dir()


def test_dev_file_that_changed(config_of, tmp_path):
    """The scores before and after could not be compared."""
    dev = tmp_path / "dev.csv"
    arguments = config_of("sts", **EPOCHS, **STOPS)
    lines = (ROOT / "assets" / "pairs-dev.csv").read_text(encoding="utf8").splitlines(keepends=True)
    dev.write_text("".join(lines), encoding="utf8")
    arguments = [*arguments, "--paths.dev", dev]
    stopped(arguments, tmp_path / "out", 6, "--checkpoint-every", 4)
    cells = lines[3].split("\t")
    other_score = "\t".join([*cells[:4], "2.125", *cells[5:]])
    for changed in ([*lines[:3], other_score, *lines[4:]], lines[1:], lines[::-1]):
        dev.write_text("".join(changed), encoding="utf8")
        told = refused(arguments, tmp_path / "out", "--resume")
        assert "The texts or the gold of the dev corpus have changed since it was made" in told
    dev.write_text("".join(lines), encoding="utf8")
    assert "Resuming from" in train(arguments, tmp_path / "out", "--resume")


DIVERGING = {"training.optimizer.learn_rate": 1e30, "training.optimizer.grad_clip": 0.0}


@pytest.mark.parametrize("rate", [1e30, 1e38])
def test_training_that_diverges(config_of, tmp_path, rate):
    """It ends with its step, and what it has made is no model."""
    arguments = config_of("sts", **SMALL | DIVERGING | {"training.optimizer.learn_rate": rate})
    told = refused(arguments, tmp_path / "out", "--checkpoint-every", 1)
    assert "Training diverged at step " in told
    assert told.lower().count("lower the learning rate") == 1
    for folder in (tmp_path / "out").glob("**/config.cfg"):
        assert numpy.isfinite(spacy.load(folder.parent)("A man is eating.").vector).all()


def test_spacy_train_stops_where_it_diverges(config_of, tmp_path):
    """At the first score that is not finite; spaCy saves model-last all the same, and loading says
    what it is.
    """
    with pytest.raises(DivergedError, match="training diverged"):
        spacy_train(config_of("sts")[0], tmp_path / "out", overrides=SMALL | DIVERGING)
    with pytest.raises(DivergedError, match="Training had diverged before this was saved"):
        spacy.load(tmp_path / "out" / "model-last")


def test_untrained_best_is_named(config_of, tmp_path):
    rate = {"training.optimizer.learn_rate": 0.05}
    told = train(config_of("sts", **SMALL | rate | {"training.max_epochs": 2}), tmp_path / "out")
    scores = [line["score"] for line in logged(tmp_path)]
    assert ("[sbert-nothing-learned]" in told) == (max(scores[1:]) < scores[0])
    assert untrained_warning([(0.5, 0), (0.4, 2)]) == Warnings.NOTHING_LEARNED
    assert untrained_warning([(0.5, 0), (0.5, 2)]) == Warnings.SCORES_UNCHANGED
    assert untrained_warning([(0.5, 0), (0.5, 2), (0.4, 4)]) is None
    assert untrained_warning([(0.5, 0)]) is None
    assert untrained_warning([(0.4, 0), (0.5, 2), (0.3, 4)]) is None
    assert untrained_warning([]) is None


@pytest.mark.parametrize("name", ["eval_frequency", "accumulate_gradient", "patience"])
def test_settings_are_checked_before_anything_is_written(config_of, tmp_path, name):
    value = -1 if name == "patience" else 0
    told = refused(config_of("sts", **SMALL | {f"training.{name}": value}), tmp_path / "out")
    assert f"Cannot use {name} = {value}: expected greater than or equal to {value + 1}." in told
    assert not (tmp_path / "out").exists()


def flipped(data):
    return data[:-90] + bytes([data[-90] ^ 1]) + data[-89:]


def test_damaged_checkpoint_is_refused(broken):
    arguments, output = broken
    state, model = (
        output / "checkpoint" / "step-4" / file for file in ("state.pt", "pipeline/sbert/model")
    )
    for path, damage in (
        (state, lambda data: data[: len(data) // 2]),
        (state, flipped),
        (state, None),
        (model, flipped),
        (model, None),
    ):
        data = path.read_bytes()
        path.unlink()
        if damage is not None:
            path.write_bytes(damage(data))
        message = refused(arguments, output, "--resume")
        assert "step-4 cannot be resumed" in message
        assert "is damaged" in message
        assert path.exists() == (damage is not None)
        path.write_bytes(data)


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
        (
            {"paths.trian": "x.csv"},
            "[paths] has no setting 'trian', which would be ignored: expected train.",
        ),
        ({"components.sbert.name": "all-mpnet-base-v2"}, "Set name in [components.sbert.model]"),
        ({"training.logger.output_file": f"{ROOT / 'README.md'}/log.csv"}, "Cannot write"),
    ],
)
def test_errors_without_a_traceback(config_of, tmp_path, setting, message):
    assert message in refused(config_of("sts", **(EPOCHS | setting)), tmp_path / "out")


def test_settings_beside_a_source():
    block = {
        "source": "en_mine",
        "loss": {"@layers": "mine.v1"},
        "replace_listeners": ["model.tok2vec"],
    }
    config = {"training": {}, "components": {"sbert": block}}
    with pytest.raises(
        ValueError,
        match=r"a source and also loss, .*Load en_mine with .*\"components\.sbert\.loss\": ",
    ):
        check_config(config, config)
    del block["loss"]
    block["component"] = "other"
    check_config(config, config)


def test_output_that_cannot_be_written(config_of, tmp_path):
    arguments = config_of("sts", **EPOCHS)
    file = tmp_path / "file"
    file.write_text("mine")
    for output in (file, file / "below"):
        message = refused(arguments, output)
        assert f"Cannot write {output}:" in message
        assert "E #" not in message
    assert file.read_text() == "mine"


def test_without_a_checkpoint_training_begins_and_foreign_files_stay(config_of, tmp_path):
    """A folder that only has the name of that of checkpoints, and other files beside
    checkpoints.
    """
    folder = tmp_path / "out" / "checkpoint"
    (folder / "step-by-step").mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    arguments = config_of("sts", **SMALL, **STOPS)
    told = stopped(arguments, tmp_path / "out", 1)
    assert (
        "no checkpoint to resume from: with --checkpoint-every 2 there is one for each evaluation"
        in told
    )
    told = stopped(arguments, tmp_path / "out", 1, "--checkpoint-every", 3)
    assert "no checkpoint to resume from yet: the first comes after step 3" in told
    assert "training begins" in train(
        arguments, tmp_path / "out", "--resume", "--checkpoint-every", 2
    )
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt", "step-by-step"]


def test_random_states_survive():
    random.seed(3), numpy.random.seed(4), torch.manual_seed(5)
    # Which keep a number for the next call
    random.gauss(0, 1), numpy.random.normal()
    states = _random_states()

    def draw():
        return (
            random.gauss(0, 1),
            random.random(),
            *numpy.random.normal(size=3),
            *torch.rand(3).tolist(),
        )

    first = draw()
    assert draw() != first
    _set_random_states(states)
    assert draw() == first


@pytest.mark.slow
def test_two_ranks_resume(config_of, tmp_path):
    """Each with its own random numbers, for dropout."""
    arguments = config_of("sts", **EPOCHS | DROPOUT)

    def begin(name, *options):
        given = (
            "sbert",
            "train",
            *arguments,
            "--output",
            tmp_path / name,
            "--checkpoint-every",
            4,
            *options,
        )
        return start(partial(typed, tmp_path / name, *given))

    def end(ranks):
        for rank in ranks:
            rank.join(300)
        return [rank.exitcode for rank in ranks]

    assert end(begin("straight")) == [0, 0]
    broken = begin("broken")
    while not list((tmp_path / "broken" / "checkpoint").glob("step-*")):
        time.sleep(0.02)
    for rank in broken:
        rank.kill()
    assert end(broken) == [-9, -9]
    assert (tmp_path / "broken" / "checkpoint").is_dir()
    assert "made by 2 processes, and there are 1" in refused(
        arguments, tmp_path / "broken", "--resume"
    )
    assert end(begin("broken", "--resume")) == [0, 0]
    assert "Resuming from" in (tmp_path / "broken-0").read_text()
    check_same(tmp_path / "straight", tmp_path / "broken")
