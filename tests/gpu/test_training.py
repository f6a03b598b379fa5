"""Training on a GPU: every objective as on the CPU, every shipped config, beside ner, and in
float16.
"""

import json

import numpy
import pytest
import spacy
from helpers.objectives import OBJECTIVES, heads, make, step
from helpers.pipelines import HOLDER, TRANSFORMERS, gradients, shim_of, shipped_config, weights
from helpers.workflows import CONFIGS, ROOT, TWO_STEPS, copy_project, settings_for
from spacy.cli.train import train
from thinc.api import Adam

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("encoder", TRANSFORMERS)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_as_on_the_cpu(make_nlp, use_gpu, encoder, name):
    """The same loss and gradients; and then every parameter of encoder and head moves."""
    nlp, batch = make(make_nlp, encoder, name)
    loss = nlp.update(batch, sgd=False)["sbert"]
    expected = gradients(nlp, HOLDER[encoder])
    use_gpu()
    nlp, batch = make(make_nlp, encoder, name)
    before = weights(nlp, HOLDER[encoder])
    before_heads = heads(nlp)
    assert nlp.update(batch, sgd=False)["sbert"] == pytest.approx(loss, rel=1e-3)
    given = gradients(nlp, HOLDER[encoder])
    scale = max(abs(gradient).max() for gradient in expected.values())
    assert all(
        abs(given[key] - gradient).max() < 1e-3 * scale for key, gradient in expected.items()
    )
    step(nlp, batch)
    after = weights(nlp, HOLDER[encoder])
    after_heads = heads(nlp)
    assert [
        key for key in before if numpy.array_equal(before[key], after[key]) and "pooler" not in key
    ] == []
    assert [
        key for key in before_heads if numpy.array_equal(before_heads[key], after_heads[key])
    ] == []


def prepared(name, make_nlp, tiny_bert, folder):
    """A shipped config for the random tiny BERT as a file, and what else it needs."""
    shipped_config(name, tiny_bert).to_disk(folder / f"{name}.cfg", interpolate=False)
    return folder / f"{name}.cfg", {**TWO_STEPS, **settings_for(name, make_nlp, "shared", folder)}


@pytest.mark.filterwarnings("ignore:.*longer than the encoder's limit")
@pytest.mark.parametrize("name", [file.stem for file in CONFIGS])
def test_every_shipped_config_trains(
    make_nlp, tiny_bert, use_gpu, gpu_id, tmp_path, monkeypatch, name
):
    """As `spacy train --gpu-id 0`: with the allocator of the config, evaluation and saving."""
    monkeypatch.chdir(ROOT)
    file, overrides = prepared(name, make_nlp, tiny_bert, tmp_path)
    train(file, tmp_path / "out", use_gpu=gpu_id, overrides=overrides)
    nlp = spacy.load(tmp_path / "out" / "model-last")
    assert nlp.meta["performance"]["sbert_loss"] > 0
    fresh = make_nlp("shared")
    fresh.initialize()
    before = weights(fresh, "transformer")
    after = weights(nlp, "transformer")
    assert [
        key for key in before if numpy.array_equal(before[key], after[key]) and "pooler" not in key
    ] == []
    assert nlp("A man is eating.").similarity(nlp("A man is eating.")) == pytest.approx(
        1.0, abs=1e-5
    )


def test_joint_training_of_a_shared_transformer(
    make_nlp, tiny_bert, use_gpu, gpu_id, tmp_path, monkeypatch
):
    """Entities and pairs, of the transformer that both hear: pairs are learned, and entities do not
    diverge.
    """
    monkeypatch.chdir(ROOT)
    file, overrides = prepared("joint", make_nlp, tiny_bert, tmp_path)
    log = tmp_path / "log.jsonl"
    overrides |= {
        "training.max_steps": 61,
        "training.eval_frequency": 20,
        "training.logger.output_file": str(log),
    }
    overrides |= {"training.optimizer.learn_rate.initial_rate": 0.002}
    train(file, tmp_path / "out", use_gpu=gpu_id, overrides=overrides)
    losses = [json.loads(line)["losses"] for line in log.read_text(encoding="utf8").splitlines()]
    assert losses[-1]["sbert"] < 0.8 * losses[1]["sbert"]
    assert 0 < losses[-1]["ner"] < 1.1 * losses[1]["ner"]


@pytest.mark.parametrize("mini_batch_size", [0, 2])
@pytest.mark.parametrize(
    "settings", [{"precision": "float16"}, {"mixed_precision": True}, {"precision": "bfloat16"}]
)
def test_half_precision_learns(make_nlp, examples, use_gpu, gpu_id, settings, mini_batch_size):
    """Three pairs by heart; float16 from a scale that is too large at first, so that steps are
    skipped.
    """
    examples(make_nlp())
    use_gpu()
    if gpu_id < 0 and settings.get("precision") == "float16":
        settings = {"precision": "bfloat16"}
    scaling = (
        {"grad_scaler_config": {"init_scale": 2.0**30}}
        if "bfloat16" not in settings.values()
        else {}
    )
    scaling = scaling if gpu_id >= 0 else {}
    nlp = make_nlp(model={**settings, **scaling, "mini_batch_size": mini_batch_size})
    batch = examples(nlp)
    pipe = nlp.get_pipe("sbert")
    optimizer = Adam(0.003, use_averages=False)
    nlp.initialize(lambda: batch)
    shim = shim_of(nlp)
    for _ in range(100):
        loss = nlp.update(batch, sgd=False)["sbert"]
        pipe.finish_update(optimizer)
    assert loss < 0.02
    assert all(numpy.isfinite(value).all() for value in weights(nlp, "sbert").values())
    if scaling:
        scale = float(shim._grad_scaler._scale)
        steps = max(optimizer.nr_update.values())
        assert 1.0 <= scale < 2.0**30 and scale == 2.0 ** (30 - (100 - steps)), (
            "each skipped step has halved it"
        )


@pytest.mark.parametrize("workflow", ["train", "joint", "reranker"])
def test_workflows_of_the_project(tiny_bert, spacy_command, gpu_id, tmp_path, workflow):
    copy_project(tmp_path, tiny_bert)
    said = spacy_command("project", "run", workflow, ".", "--vars.gpu", gpu_id, folder=tmp_path)
    assert gpu_id < 0 or f"Using GPU: {gpu_id}" in said
