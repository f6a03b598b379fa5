"""`spacy train` as a user runs it: every shipped config, beside other components, from a trained
pipeline.
"""

import io
import json
import subprocess
import sys

import numpy
import pytest
import spacy
from helpers.invoking import said as run_command
from helpers.pipelines import HOLDER, SHARING, TRAINED, finish_update, shipped_config, weights
from helpers.workflows import (
    CONFIGS,
    FROM_TEACHERS,
    ROOT,
    TOKENS,
    TWO_STEPS,
    entities,
    settings_for,
)
from spacy.cli.init_config import fill_config
from spacy.cli.train import train
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as train_nlp
from thinc.api import Adam, Config

from spacy_sbert.training.schedules import epoch_steps

pytestmark = pytest.mark.filterwarnings("ignore:.*longer than the encoder's limit")


def weights_of(nlp):
    return weights(nlp, HOLDER[TRAINED])


def choose_transformer(file, encoder):
    """Put the transformer of spacy-transformers into a config, as the project does."""
    script = [sys.executable, ROOT / "scripts" / "choose_transformer.py", file, file]
    subprocess.run([*map(str, script), "--transformer", SHARING[encoder][0]], check=True)


def limit(block, n):
    """Read at most n examples of each file."""
    if block.get("@readers") in ("spacy-sbert.PairCorpus.v1", "spacy.Corpus.v1"):
        block["limit"] = n
    for inner in block.values():
        if isinstance(inner, dict):
            limit(inner, n)


@pytest.fixture
def fit(tiny_bert, tmp_path, monkeypatch):
    """Train a shipped config on the random tiny BERT, from the folder of the project."""
    monkeypatch.chdir(ROOT)

    def run(name, output="out", encoder=TRAINED, **overrides):
        config = shipped_config(name, tiny_bert)
        limit(config["corpora"]["train"], 96)
        limit(config["corpora"]["dev"], 40)
        file = tmp_path / f"{name}.cfg"
        config.to_disk(file, interpolate=False)
        choose_transformer(file, encoder)
        train(
            file,
            tmp_path / output,
            overrides={**TWO_STEPS, "training.eval_frequency": 3, **overrides},
        )
        return spacy.load(tmp_path / output / "model-last")

    return run


@pytest.mark.parametrize("encoder", SHARING)
@pytest.mark.parametrize("name", [file.stem for file in CONFIGS])
def test_every_shipped_config_trains(fit, make_nlp, tmp_path, name, encoder):
    nlp = fit(name, encoder=encoder, **settings_for(name, make_nlp, encoder, tmp_path))
    assert nlp.get_pipe_meta("transformer").factory == SHARING[encoder][0]
    performance = nlp.meta["performance"]
    weighted = [key for key, weight in nlp.config["training"]["score_weights"].items() if weight]
    assert weighted
    assert all(0 < performance[key] <= 1 or key in ("sts_spearman", "ents_f") for key in weighted)
    assert performance["sbert_loss"] > 0
    # The losses are of one scale
    if name == "joint":
        assert 0.02 < performance["sbert_loss"] / performance["ner_loss"] < 50
    fresh = make_nlp(encoder)
    fresh.initialize()
    before = weights_of(fresh)
    after = weights_of(nlp)
    assert [
        key for key in before if numpy.array_equal(before[key], after[key]) and "pooler" not in key
    ] == []
    assert nlp("A man is eating.").similarity(nlp("A man is eating.")) == pytest.approx(
        1.0, abs=1e-5
    )


BARS = {"infersent": 0.6, "paraphrase_average": 0.65, "word_average": 0.45}
# Of 300 sentences
BARS |= {"distillation_static": 0.57, "distillation_tok2vec": 0.42}


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*TOKENS, *FROM_TEACHERS])
def test_configs_without_a_transformer_train(fit, make_nlp, request, tmp_path, name, is_whole):
    """As their comments say; all-MiniLM-L6-v2 stands for training/sts/model-best, and no setting
    but paths differs.
    """
    overrides = {}
    text = "A man is eating."
    if name in FROM_TEACHERS:
        here = {"lang": "en", "model": {"normalize": True}}
        teacher = request.getfixturevalue("minilm") if is_whole else make_nlp("own", **here)
        teacher.to_disk(tmp_path / "teacher")
        overrides["paths.teacher"] = str(tmp_path / "teacher")
    if name == "distillation_static":
        options = ["--vocabulary", "assets/texts-train.txt", "--size", 64 if is_whole else 8]
        run_command("distill-static", tmp_path / "teacher", tmp_path / "static", *options)
        overrides["paths.student"] = str(tmp_path / "static")
    elif name == "distillation_tok2vec" and not is_whole:
        overrides["components.sbert.model.dense.nO"] = 16
    if is_whole:
        train(ROOT / "configs" / f"{name}.cfg", tmp_path / "out", overrides=overrides)
    else:
        fit(name, **overrides)
    nlp = spacy.load(tmp_path / "out" / "model-best")
    (measure,) = [key for key, weight in nlp.config["training"]["score_weights"].items() if weight]
    assert nlp.meta["performance"][measure] > (BARS[name] if is_whole else -1)
    assert numpy.allclose(nlp(text).vector, nlp.get_pipe("sbert").encode([text])[0], atol=1e-6)
    if name == "distillation_static":
        first, last = (
            spacy.load(tmp_path / path).get_pipe("sbert") for path in ("static", "out/model-last")
        )
        assert numpy.array_equal(
            *(pipe.model.get_ref("loss").get_param("W") for pipe in (first, last))
        )
        assert not numpy.array_equal(first.encode([text]), last.encode([text]))


def test_same_seed_same_weights(fit):
    settings = [{"system.seed": seed, "training.accumulate_gradient": 3} for seed in (1, 1, 2)]
    runs = [weights_of(fit("nli", f"out{i}", **given)) for i, given in enumerate(settings)]
    assert all(numpy.array_equal(runs[0][key], runs[1][key]) for key in runs[0])
    assert not all(numpy.array_equal(runs[0][key], runs[2][key]) for key in runs[0])


def test_joint_training_learns_from_both(tiny_bert, tmp_path, monkeypatch):
    """Entities and pairs, each on examples of its own, through one encoder."""
    monkeypatch.chdir(ROOT)
    config = shipped_config("joint", tiny_bert)
    config["paths"] |= {key.split(".")[1]: path for key, path in entities(tmp_path).items()}
    limit(config["corpora"], 20)
    nlp = init_nlp(config)
    examples = list(
        spacy.registry.resolve({"train": nlp.config.interpolate()["corpora"]["train"]})["train"](
            nlp
        )
    )
    pairs = [eg for eg in examples if "sbert" in eg.reference.spans]
    others = [eg for eg in examples if "sbert" not in eg.reference.spans]
    assert len(pairs) == len(others) == 20

    def step(batch):
        """The losses of a step, and whether it changes the encoder."""
        before = weights_of(nlp)
        losses = nlp.update(batch, sgd=False)
        finish_update(nlp, Adam(0.001))
        after = weights_of(nlp)
        return losses, any(not numpy.array_equal(before[key], after[key]) for key in before)

    losses, learns = step(pairs[:8])
    assert losses["ner"] == pytest.approx(0.0, abs=1e-6)
    assert losses["sbert"] > 0
    assert learns
    losses, learns = step(others[:8])
    assert losses["ner"] > 0
    assert losses["sbert"] == 0.0
    assert learns
    losses, _ = step([*pairs[:8], *others[:8]])
    assert losses["ner"] > 0
    assert losses["sbert"] > 0


def test_training_resumes_from_sourced_pipes(fit, tmp_path):
    """Transformer and head sourced: the loss goes on where it was, and the head keeps its
    labels.
    """
    first = fit("nli", "first")
    config = first.config
    for name in ("transformer", "sbert"):
        config["components"][name] = {"source": str(tmp_path / "first" / "model-last")}
    nlp = init_nlp(config)
    assert (
        nlp.get_pipe("sbert").labels
        == first.get_pipe("sbert").labels
        == ("contradiction", "entailment", "neutral")
    )
    before = weights_of(nlp)
    assert all(numpy.array_equal(value, before[key]) for key, value in weights_of(first).items())
    (tmp_path / "second").mkdir()
    train_nlp(nlp, tmp_path / "second", stdout=io.StringIO(), stderr=io.StringIO())
    after = weights_of(spacy.load(tmp_path / "second" / "model-last"))
    assert any(not numpy.array_equal(value, before[key]) for key, value in after.items())


def logged(tmp_path):
    return [
        json.loads(line)
        for line in (tmp_path / "log.jsonl").read_text(encoding="utf8").splitlines()
    ]


COUNTED = {"training.max_epochs": 1, "training.max_steps": 0}


def test_an_epoch_is_all_pairs_of_a_file(fit, tmp_path):
    """Whatever file --paths.train names: the steps are counted, and the rate falls to its end with
    them.
    """
    pairs = (
        (ROOT / "assets" / "pairs-train.csv").read_text(encoding="utf8").splitlines(keepends=True)
    )
    (tmp_path / "other.csv").write_text("".join(pairs[:57]), encoding="utf8")
    log = {
        "training.logger.output_file": str(tmp_path / "log.jsonl"),
        "paths.train": str(tmp_path / "other.csv"),
    }
    nlp = fit("sts", **COUNTED, **log, **{"training.eval_frequency": 1})
    assert [line["step"] for line in logged(tmp_path)] == [0, 1, 2, 3]
    config = nlp.config.interpolate()["training"]
    rates = spacy.registry.resolve({"rates": config["optimizer"]["learn_rate"]})["rates"]
    # No warm-up of 0.4 steps
    assert [next(rates) for _ in range(5)] == pytest.approx([2e-5, 1.5e-5, 1e-5, 5e-6, 0])


def test_filled_config_trains(tiny_bert, tmp_path, monkeypatch):
    """The block that names the corpus survives `init fill-config` and to_disk; resume_training
    needs no corpus.
    """
    monkeypatch.chdir(ROOT)
    fill_config(tmp_path / "full.cfg", ROOT / "configs" / "sts.cfg", silent=True)
    assert "corpus = ${corpora.train}" in (tmp_path / "full.cfg").read_text(encoding="utf8")
    settings = {
        "components.transformer.model.name": str(tiny_bert),
        "corpora.train.limit": 20,
        "corpora.dev.limit": 20,
    }
    train(
        tmp_path / "full.cfg",
        tmp_path / "out",
        overrides={**settings, "training.eval_frequency": 1},
    )
    nlp = spacy.load(tmp_path / "out" / "model-last")
    assert nlp.config["training"]["optimizer"]["learn_rate"]["corpus"] == "${corpora.train}"
    assert nlp.resume_training().learn_rate == 2e-5


def test_last_step_on_the_sample_is_evaluated(tmp_path, monkeypatch):
    """model-best may then be what was trained to the end."""
    monkeypatch.chdir(ROOT)
    for file in sorted((ROOT / "configs").glob("*.cfg")):
        config = Config().from_disk(
            file, overrides=entities(tmp_path) if file.stem == "joint" else {}
        )
        training = config["training"]
        made = spacy.registry.resolve(
            {"corpus": config["corpora"]["train"], "batcher": training["batcher"]}
        )
        last = training["max_epochs"] * epoch_steps(made["corpus"], made["batcher"]) - 1
        assert last % training["eval_frequency"] == 0 and training["eval_frequency"] <= last, file
