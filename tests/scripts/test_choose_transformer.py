"""Configs over the transformer of spacy-transformers: the same settings, and none that it would not
follow.
"""

import pytest
from helpers.pipelines import MEAN, ROOT
from helpers.workflows import CONFIGS
from spacy.cli.init_config import fill_config
from thinc.api import Config

OURS = "sbert_transformer"
THEIRS = "transformer"


@pytest.fixture
def choose(run_script, tmp_path):
    """Write a config over a transformer, and return what was written."""

    def run(file, transformer):
        run_script(
            "choose_transformer",
            file,
            tmp_path / "out" / "chosen.cfg",
            "--transformer",
            transformer,
        )
        return (tmp_path / "out" / "chosen.cfg").read_text(encoding="utf8")

    return run


def of_text(text):
    return Config().from_str(text, interpolate=False)


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_shipped_configs(choose, file):
    """Only the transformer and its listeners are others; what shares none, and ours, stay to the
    letter.
    """
    text = file.read_text(encoding="utf8")
    assert choose(file, OURS) == text
    chosen = choose(file, THEIRS)
    config = of_text(text)
    transformer = config["components"]["transformer"]
    if "source" in transformer:
        assert chosen == text
        return
    transformer.update(factory="transformer", max_batch_items=32768)
    transformer["model"]["@architectures"] = "spacy-sbert.TransformerModel.v1"
    if file.stem == "joint":
        listener = config["components"]["ner"]["model"]["tok2vec"]
        listener["@architectures"] = "spacy-transformers.TransformerListener.v1"
    assert of_text(chosen) == config


@pytest.mark.parametrize("name", ["word_average", "reranker", "distillation_static"])
def test_configs_that_share_no_transformer_stay(choose, name):
    file = ROOT / "configs" / f"{name}.cfg"
    assert choose(file, THEIRS) == file.read_text(encoding="utf8")


def changed(tmp_path, path, value, name="joint"):
    """A shipped config with one setting changed, as a file."""
    config = Config().from_disk(ROOT / "configs" / f"{name}.cfg", interpolate=False)
    *sections, key = path.split(".")
    block = config
    for section in sections:
        block = block[section]
    block[key] = value
    config.to_disk(tmp_path / "changed.cfg", interpolate=False)
    return tmp_path / "changed.cfg"


def test_a_filled_config(choose, tmp_path, monkeypatch):
    """Its defaults are those of spacy-sbert.TransformerTok2Vec.v1, some of which the other has
    not.
    """
    monkeypatch.chdir(ROOT)
    full = tmp_path / "full.cfg"
    fill_config(full, ROOT / "configs" / "sts.cfg", silent=True)
    ours = of_text(full.read_text(encoding="utf8"))["components"]["transformer"]["model"]
    theirs = of_text(choose(full, THEIRS))["components"]["transformer"]["model"]
    only_ours = {
        "pooling",
        "grad_factor",
        "prompts",
        "default_prompt_name",
        "include_prompt",
        "max_batch_items",
    }
    assert ours.keys() - theirs.keys() == only_ours
    assert theirs.keys() <= ours.keys()


def test_settings_with_another_name(choose, tmp_path):
    file = changed(tmp_path, "components.transformer.model.max_batch_items", 500)
    assert of_text(choose(file, THEIRS))["components"]["transformer"]["max_batch_items"] == 500
    # Whose pooling has a default
    listener = {"@architectures": "spacy-sbert.TransformerListener.v1"}
    file = changed(tmp_path, "components.ner.model.tok2vec", listener)
    chosen = of_text(choose(file, THEIRS))["components"]["ner"]["model"]["tok2vec"]
    assert chosen == {
        "@architectures": "spacy-transformers.TransformerListener.v1",
        "pooling": MEAN,
    }


@pytest.mark.parametrize(
    "written",
    ["$$", r"\u0024"],
    # As spaCy writes it, and as init-config does
)
def test_a_dollar(choose, tmp_path, written):
    file = changed(tmp_path, "paths.train", "a-b.csv")
    file.write_text(
        file.read_text(encoding="utf8").replace("a-b.csv", f"a{written}b.csv"), encoding="utf8"
    )
    text = choose(file, THEIRS)
    assert of_text(text)["paths"]["train"] == Config().from_str(text)["paths"]["train"] == "a$b.csv"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("model.prompts", {"query": "query: "}, "prompts"),
        ("model.default_prompt_name", "query", "default_prompt_name"),
        ("model.include_prompt", False, "include_prompt"),
        ("model.grad_factor", 0.5, "grad_factor"),
        ("model.pooling", {"@layers": "reduce_max.v1"}, "pooling"),
    ],
)
def test_settings_that_it_would_not_follow(choose, tmp_path, path, value, message):
    file = changed(tmp_path, f"components.transformer.{path}", value)
    with pytest.raises(SystemExit, match=rf"changed\.cfg for spacy-transformers.*has {message} = "):
        choose(file, THEIRS)


def test_listeners_of_a_tok2vec(choose, tmp_path):
    """They do not hear it; those of a tok2vec in the same pipeline stay."""
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 384}
    file = changed(tmp_path, "components.ner.model.tok2vec", listener)
    with pytest.raises(
        SystemExit, match=r"spacy\.Tok2VecListener\.v1.*Use spacy-sbert\.TransformerListener\.v1"
    ):
        choose(file, THEIRS)
    config = Config().from_disk(file, interpolate=False)
    config["components"]["tok2vec"] = {"factory": "tok2vec"}
    config.to_disk(file, interpolate=False)
    assert of_text(choose(file, THEIRS))["components"]["ner"]["model"]["tok2vec"] == listener
