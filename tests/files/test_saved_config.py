"""What a config holds comes back from a saved pipeline as it was, however often it is saved."""

from pathlib import Path

import numpy
import pytest
import spacy
from invoking import said as run
from pipelines import make_example
from spacy.cli.train import train
from spacy.language import Language
from spacy.util import load_config

from spacy_sbert.models.tokenization import Prompts
from spacy_sbert.pipeline.listeners import find_transformer

PROMPTS = ["cost in $: ", "$", "$$", "$a $$$ $", " leading and trailing ", "100% \"quoted\" 'single'", "two\nlines\r\n"]
PROMPTS += ["a: b = c # d ; e", "é 中 \u2028 \U0001f600", "back\\slash \\u0024 \\n", "1", "true", "null", "[1]"]
PROMPTS += ["%(name)s", "$}", "{$}", "[section]", "'single'", "", "\t"]
NAMES = ["q", "a$", "$$", "a#b", "a;b", "a.b", "a b", "${a}", "Q", '"a"', "é", "1"]


def again(nlp: Language, path, **config) -> Language:
    nlp.to_disk(path)
    return spacy.load(path, config=config)


def prompts_of(nlp: Language) -> dict[str, str]:
    return dict(find_transformer("sbert", nlp.get_pipe("sbert").model).prompts.own)


def test_prompts_come_back(make_nlp, tmp_path):
    prompts = {f"p{i}": prompt for i, prompt in enumerate(PROMPTS)} | dict.fromkeys(NAMES, "the $ cat: ")
    nlp = make_nlp(model={"prompts": prompts, "default_prompt_name": "a$"})
    vectors = nlp.get_pipe("sbert").encode(["a dog", "he ran"])
    for turn in ("disk", "disk again", "bytes"):
        if turn == "bytes":
            nlp = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
        else:
            nlp = again(nlp, tmp_path / turn)
        assert prompts_of(nlp) == prompts
        model = nlp.config["components"]["sbert"]["model"]
        assert model["prompts"] == prompts and model["default_prompt_name"] == "a$"
        assert numpy.array_equal(nlp.get_pipe("sbert").encode(["a dog", "he ran"]), vectors)


def test_an_override_is_honoured(make_nlp, tmp_path):
    nlp = make_nlp(model={"prompts": {"q": "$: ", "p": "$$"}, "default_prompt_name": "q"})
    loaded = again(nlp, tmp_path / "a", **{"components.sbert.model.prompts.q": "the cat: "})
    assert prompts_of(loaded) == {"q": "the cat: ", "p": "$$"}
    expected = make_nlp(model={"prompts": {"q": "the cat: "}, "default_prompt_name": "q"})("a dog").vector
    assert numpy.array_equal(loaded("a dog").vector, expected)
    assert prompts_of(again(loaded, tmp_path / "b")) == {"q": "the cat: ", "p": "$$"}


def test_keys_of_spans_come_back(tiny_bert, tmp_path):
    spans = {"@span_getters": "spacy-sbert.sentence_spans.v1", "spans_key": "pair $"}
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": str(tiny_bert), "get_spans": spans}, "spans_key": "pair $"})
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert)}, "spans_key": "pair $"})
    nlp = again(nlp, tmp_path)
    assert [pipe.spans_key for _, pipe in nlp.pipeline] == ["pair $", "pair $"]
    doc = nlp.make_doc("a dog ran")
    doc.spans["pair $"] = [doc[:1], doc[1:]]
    doc = nlp.get_pipe("sbert")(doc)
    assert len(doc.user_data) and doc.spans["pair $"].attrs is not None


LOST = ["", "a\nb", "a:b", "a=b", "#a", ";a", "[a]", " a", "a "]  # names that a config reads otherwise, or not at all


def test_prompts_that_no_config_can_hold():
    for prompts in ({"q": "${a.b}: "}, {"q": "a ${"}, *({name: "a"} for name in LOST)):
        with pytest.raises(ValueError, match=r"encode\(texts, prompt=...\)"):
            Prompts(prompts)
    for name in ("${q}", "a${"):
        with pytest.raises(ValueError, match=r"default_prompt_name = .*encode\(texts, prompt_name=...\)"):
            Prompts({name: "the cat: "}, name)


@pytest.mark.slow
def test_columns_and_files_with_the_sign(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"the cat {i},a mat {i},{i % 2}" for i in range(8)]
    Path("$.csv").write_text("\n".join(["name ($),$$ title,similarity", *rows]))
    folder = tmp_path / "$ models"
    folder.symlink_to(tiny_bert)
    members = ("--members", "name ($),$$ title")
    run("init-config", "$.csv", "$.csv", "-o", "x.cfg", "-q", *members, "--encoder", folder, "--epochs", 1)
    for interpolate in (False, True):
        config = load_config("x.cfg", interpolate=interpolate).interpolate()
        assert config["paths"]["train"] == "$.csv" and config["corpora"]["dev"]["members"] == ["name ($)", "$$ title"]
        assert config["components"]["sbert"]["model"]["name"] == str(folder)
    train("x.cfg", output_path="out")
    nlp = spacy.load("out/model-last")
    for one in (nlp, again(nlp, "again")):
        assert one.config["corpora"]["dev"]["members"] == ["name ($)", "$$ title"]
        assert one.config["paths"]["train"] == "$.csv"
        assert one.config["components"]["sbert"]["model"]["name"] == str(folder)
    run("evaluate", "out/model-last", "$.csv", "-q")
    Path("${a}.csv").write_text("\n".join(["name ($),$$ title,similarity", *rows]))
    message = run("init-config", "${a}.csv", "$.csv", "-o", "y.cfg", "-q", *members, code=1)
    assert "begins a variable. Rename the file" in message and not Path("y.cfg").exists()


# Overrides


@pytest.mark.parametrize(
    ("encoder", "pipe"),
    [("own", "sbert"), ("shared", "transformer"), pytest.param("static", "sbert", marks=pytest.mark.slow)],
)
def test_overridden_name_of_a_saved_encoder(make_nlp, tmp_path, encoder, pipe):
    make_nlp(encoder).to_disk(tmp_path)
    with pytest.raises(ValueError, match=r"'/no'.*to use another encoder, make a new pipe"):
        spacy.load(tmp_path, config={f"components.{pipe}.model.name": "/no"})


@pytest.mark.filterwarnings("ignore:.*reranker-new-head")
def test_outputs_of_a_reranker(tiny_bert, tmp_path):
    nlp = spacy.blank("en")
    reranker = nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert), "n_outputs": 3}})
    nlp.initialize()
    scores = reranker.score_pairs([("a", "b"), ("a dog", "the cat")])
    assert scores.shape == (2, 3)
    pairs = [make_example(nlp, "a man", "the dog"), make_example(nlp, "a", "b")]
    with pytest.raises(ValueError, match=r'"regression" needs 1 outputs.*n_outputs = 3\. Set n_outputs = 0'):
        nlp.initialize(lambda: pairs)
    nlp.to_disk(tmp_path)
    for name, value in (("n_outputs", 2), ("name", "/no")):
        with pytest.raises(ValueError, match="to use another encoder"):
            spacy.load(tmp_path, config={f"components.sbert_reranker.model.{name}": value})
    loaded = spacy.load(tmp_path).get_pipe("sbert_reranker")
    assert numpy.array_equal(loaded.score_pairs([("a", "b"), ("a dog", "the cat")]), scores)
