"""spaCy's own commands over an `sbert_transformer` that three of its components and an `sbert` pipe
listen to.
"""

import json

import numpy
import pytest
import spacy
from helpers.invoking import said
from helpers.pipelines import blank, parameters_of
from spacy.cli import app
from spacy.tokens import DocBin, Span
from spacy.training.initialize import init_nlp
from thinc.api import Config
from typer.testing import CliRunner

CONFIG = """
[paths]
train = "train.spacy"
dev = "train.spacy"
init_tok2vec = null

[nlp]
lang = "xx"
pipeline = ["transformer","tagger","ner","textcat","sbert"]

[components]

[components.transformer]
factory = "sbert_transformer"

[components.transformer.model]
name = "ENCODER"

[components.tagger]
factory = "tagger"

[components.tagger.model]
@architectures = "spacy.Tagger.v2"

[components.tagger.model.tok2vec]
@architectures = "spacy-sbert.TransformerListener.v1"

[components.ner]
factory = "ner"

[components.ner.model]
@architectures = "spacy.TransitionBasedParser.v2"
state_type = "ner"
extra_state_tokens = false
hidden_width = 16
maxout_pieces = 2
use_upper = false

[components.ner.model.tok2vec]
@architectures = "spacy-sbert.TransformerListener.v1"
pooling = {"@layers":"reduce_max.v1"}

[components.textcat]
factory = "textcat"

[components.textcat.model]
@architectures = "spacy.TextCatReduce.v1"
exclusive_classes = true
use_reduce_first = false
use_reduce_last = false
use_reduce_max = false
use_reduce_mean = true

[components.textcat.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = 16

[components.sbert]
factory = "sbert"

[components.sbert.model]
@architectures = "spacy-sbert.SharedSentenceEncoder.v1"

[training]
max_steps = 3
eval_frequency = 3
"""
TEXTS = ["A man is eating food.", "The cat sat on the mat.", "He can go.", "dog ran fast"]
FOOD = {"A man is eating food.": (4, 5), "The cat sat on the mat.": (5, 6)}


def gold(nlp, text):
    doc = nlp.make_doc(text)
    for token in doc:
        token.tag_ = "X" if len(token) > 2 else "Y"
    doc.ents = [Span(doc, *FOOD[text], "FOOD")] if text in FOOD else []
    doc.cats = {"CAT": float("cat" in text), "NONE": float("cat" not in text)}
    return doc


@pytest.fixture
def config(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nlp = blank()
    DocBin(docs=[gold(nlp, text) for text in TEXTS] * 5, store_user_data=True).to_disk(
        "train.spacy"
    )
    (tmp_path / "base.cfg").write_text(CONFIG.replace("ENCODER", str(tiny_bert)), encoding="utf8")
    typed("init", "fill-config", "base.cfg", "full.cfg")
    return tmp_path / "full.cfg"


def typed(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def train(*settings, output="out", run=typed):
    run("train", "full.cfg", "--output", output, *settings)
    return spacy.load(f"{output}/model-last")


pytestmark = pytest.mark.filterwarnings("ignore:.*(without pairs|no pairs|W0|W1)")


def test_config(config):
    filled = Config().from_disk(config)["components"]
    assert filled["transformer"]["model"]["get_spans"]["unit"] == "doc"
    assert filled["tagger"]["model"]["tok2vec"] == {
        "@architectures": "spacy-sbert.TransformerListener.v1",
        "grad_factor": 1.0,
        "upstream": "*",
        "pooling": {"@layers": "reduce_mean.v1"},
    }
    assert "Config is valid" in typed("debug", "config", config)
    # Which finds so little data an error
    told = CliRunner().invoke(app, ["debug", "data", str(config)]).output
    assert (
        "Pipeline can be initialized with data" in told
        and "Training pipeline: transformer, tagger" in told
    ), told


def test_training_and_evaluation(config):
    nlp = train()
    assert {
        "transformer_loss",
        "ner_loss",
        "tagger_loss",
        "textcat_loss",
        "sbert_loss",
    } <= nlp.meta["performance"].keys()
    typed("evaluate", "out/model-last", "train.spacy", "--output", "scores.json")
    with open("scores.json", encoding="utf8") as file:
        scores = json.load(file)
    for name in ("tag_acc", "ents_f", "cats_score"):
        assert scores[name] == pytest.approx(nlp.meta["performance"][name])
    typed(
        "find-threshold",
        "out/model-last",
        "train.spacy",
        "textcat",
        "threshold",
        "cats_macro_f",
        "-n",
        2,
    )
    ours = train(output="ours", run=said)
    expected = parameters_of(nlp)
    found = parameters_of(ours)
    assert all(numpy.array_equal(found[key], expected[key]) for key in expected)


def source_all(config):
    """Take all components from the pipeline that was trained."""
    sourced = Config().from_disk(config)
    for component in sourced["components"]:
        sourced["components"][component] = {"source": "out/model-last"}
    sourced.to_disk(config)


def test_assemble(config):
    nlp = train()
    source_all(config)
    typed("assemble", config, "assembled")
    expected = parameters_of(nlp)
    found = parameters_of(spacy.load("assembled"))
    assert all(numpy.array_equal(found[key], expected[key]) for key in expected)


# The settings, and what moves
FROZEN = {
    "listeners": (["sbert", "textcat"], [], {"transformer", "tagger", "ner"}),
    "annotating listener": (
        ["textcat"],
        ["transformer", "textcat"],
        {"transformer", "tagger", "ner"},
    ),
    "transformer": (["transformer"], ["transformer"], {"tagger", "ner", "textcat"}),
    "first and last": (["tagger", "sbert"], [], {"transformer", "ner", "textcat"}),
}


@pytest.mark.parametrize("name", FROZEN)
def test_frozen_components_of_a_trained_pipeline(config, name):
    """They are evaluated as they were, and saved."""
    frozen, annotating, moving = FROZEN[name]
    before = parameters_of(train())
    source_all(config)
    settings = {"frozen_components": frozen, "annotating_components": annotating}
    words = [
        word for key, value in settings.items() for word in (f"--training.{key}", json.dumps(value))
    ]
    after = parameters_of(train(*words, output="again"))
    assert {key[0] for key in before if not numpy.array_equal(before[key], after[key])} == moving


def test_frozen_from_the_beginning(config):
    """Neither trained nor loaded: those that listen are left out when spaCy initializes the others,
    and evaluated.
    """
    nlp = train("--training.frozen_components", '["sbert"]')
    assert nlp(TEXTS[0]).has_vector


def test_init_tok2vec(config):
    """Weights of a trained transformer, for one of the same kind."""
    trained = train()
    (config.parent / "weights.bin").write_bytes(trained.get_pipe("transformer").model.to_bytes())
    typed("init", "fill-config", "base.cfg", "full.cfg", "--pretraining")
    settings = {"pretraining.component": "transformer", "initialize.init_tok2vec": "weights.bin"}
    nlp = init_nlp(spacy.util.load_config(config, overrides=settings, interpolate=False))
    expected, found = (
        {key: value for key, value in parameters_of(each).items() if key[0] == "transformer"}
        for each in (trained, nlp)
    )
    assert expected
    assert all(numpy.array_equal(found[key], expected[key]) for key in expected)
