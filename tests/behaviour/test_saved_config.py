"""What a config holds comes back from a saved pipeline as it was, however often it is saved."""

from pathlib import Path

import numpy
import pytest
import spacy
from helpers.invoking import said as run
from helpers.pipelines import HOLDER, make_example, reloaded, slow
from spacy.language import Language
from spacy.util import load_config

from spacy_sbert.models.prompts import Prompts
from spacy_sbert.pipeline.sentence_model import find_transformer

PROMPTS = [
    " leading and trailing ",
    "100% \"quoted\" 'single'",
    "two\nlines\r\n",
    "a: b = c # d ; e",
    "{}",
    "",
    "\t",
]
PROMPTS += [
    "é 中 \u2028 \U0001f600",
    "back\\slash \\u0024 \\n",
    "1",
    "true",
    "null",
    "[1]",
    "%(name)s",
    "[section]",
]
NAMES = ["q", "a#b", "a;b", "a.b", "a b", "Q", '"a"', "é", "1"]


def again(nlp: Language, path, **config) -> Language:
    return reloaded(nlp, path, config=config)


def prompts_of(nlp: Language) -> dict[str, str]:
    return dict(find_transformer("sbert", nlp.get_pipe("sbert").model).prompts.own)


def test_prompts_come_back(make_nlp, tmp_path):
    prompts = {f"p{i}": prompt for i, prompt in enumerate(PROMPTS)} | dict.fromkeys(
        NAMES, "the cat: "
    )
    nlp = make_nlp(model={"prompts": prompts, "default_prompt_name": "a b"})
    vectors = nlp.get_pipe("sbert").encode(["a dog", "he ran"])
    for turn in ("disk", "disk again", "bytes"):
        if turn == "bytes":
            nlp = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
        else:
            nlp = again(nlp, tmp_path / turn)
        model = nlp.config["components"]["sbert"]["model"]
        assert prompts_of(nlp) == prompts == model["prompts"]
        assert model["default_prompt_name"] == "a b"
        assert numpy.array_equal(nlp.get_pipe("sbert").encode(["a dog", "he ran"]), vectors)
    loaded = again(nlp, tmp_path / "other", **{"components.sbert.model.prompts.q": "the dog: "})
    assert prompts_of(again(loaded, tmp_path / "other again")) == {**prompts, "q": "the dog: "}


# Names that a config reads otherwise
LOST = [
    "",
    "a\nb",
    "a:b",
    "a=b",
    "#a",
    ";a",
    "[a]",
    " a",
    "a ",
    "a$",
]


def test_what_no_config_can_hold(make_nlp, tiny_bert):
    """Each sign "$" comes back doubled."""
    for prompts in ({"q": "${a.b}: "}, {"q": "cost in $"}, *({name: "a"} for name in LOST)):
        with pytest.raises(ValueError, match=r"encode\(texts, prompt=...\)"):
            Prompts(prompts)
    with pytest.raises(
        ValueError, match=r"default_prompt_name' = .*encode\(texts, prompt_name=...\)"
    ):
        Prompts({}, "${q}")
    for factory in ("sbert", "sbert_reranker"):
        with pytest.raises(ValueError, match=r"spans_key.*without '\$'"):
            spacy.blank("xx").add_pipe(
                factory, config={"model": {"name": str(tiny_bert)}, "spans_key": "pair $"}
            )


def test_columns_files_and_folders_with_the_sign(make_nlp, tiny_bert, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("$.csv", "${a}.csv"):
        rows = [f"the cat {i},a mat {i},{i % 2}" for i in range(8)]
        Path(name).write_text("\n".join(["name ($),$$ title,similarity", *rows]))
    folder = tmp_path / "$ models"
    folder.symlink_to(tiny_bert)
    options = ("-q", "--members", "name ($),$$ title", "--encoder", folder)
    run("init-config", "$.csv", "$.csv", "-o", "x.cfg", *options)
    for interpolate in (False, True):
        config = load_config("x.cfg", interpolate=interpolate).interpolate()
        assert config["paths"]["train"] == "$.csv"
        assert config["corpora"]["dev"]["members"] == [
            "name ($)",
            "$$ title",
        ]
        assert config["components"]["sbert"]["model"]["name"] == str(folder)
    message = run("init-config", "${a}.csv", "$.csv", "-o", "y.cfg", *options, code=1)
    assert "begins a variable. Rename the file" in message
    assert not Path("y.cfg").exists()
    nlp = make_nlp(name=folder)
    expected = nlp("a dog ran").vector
    for turn in "ab":
        nlp = again(nlp, tmp_path / turn)
        assert numpy.array_equal(nlp("a dog ran").vector, expected)


@pytest.mark.parametrize("encoder", ["own", "shared", *slow("static")])
def test_overridden_name_of_a_saved_encoder(make_nlp, tmp_path, encoder):
    make_nlp(encoder).to_disk(tmp_path)
    with pytest.raises(ValueError, match=r"'/no'.*to use another encoder, make a new pipe"):
        spacy.load(tmp_path, config={f"components.{HOLDER[encoder]}.model.name": "/no"})


def test_another_dense_layer_than_was_saved(make_nlp, tmp_path):
    make_nlp("own").to_disk(tmp_path / "nlp")
    dense = {"@layers": "spacy-sbert.Dense.v1", "nO": 8, "nI": 32, "activation": "tanh"}
    with pytest.raises(ValueError, match="Cannot load the pipe 'sbert': its config makes other"):
        spacy.load(tmp_path / "nlp", config={"components": {"sbert": {"model": {"dense": dense}}}})


@pytest.mark.filterwarnings("ignore:.*reranker-new-head")
def test_outputs_of_a_reranker(tiny_bert, tmp_path):
    nlp = spacy.blank("xx")
    reranker = nlp.add_pipe(
        "sbert_reranker", config={"model": {"name": str(tiny_bert), "n_outputs": 3}}
    )
    nlp.initialize()
    scores = reranker.score_pairs([("a", "b"), ("a dog", "the cat")])
    assert scores.shape == (2, 3)
    with pytest.raises(
        ValueError, match=r'"regression" needs 1 outputs.*n_outputs = 3\. Set it to 0'
    ):
        nlp.initialize(lambda: [make_example(nlp, "a man", "the dog"), make_example(nlp, "a", "b")])
    nlp.to_disk(tmp_path)
    for name, value in (("n_outputs", 2), ("name", "/no")):
        with pytest.raises(ValueError, match="to use another encoder"):
            spacy.load(tmp_path, config={f"components.sbert_reranker.model.{name}": value})
    loaded = spacy.load(tmp_path).get_pipe("sbert_reranker")
    assert numpy.array_equal(loaded.score_pairs([("a", "b"), ("a dog", "the cat")]), scores)
