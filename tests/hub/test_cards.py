"""Model cards: values of a made meta.json, names that would break Markdown or YAML, and what is
left alone.
"""

import math
import re

import pytest
import spacy
from helpers.invoking import said
from helpers.pipelines import ROOT
from huggingface_hub import ModelCard
from spacy.lookups import Lookups

from spacy_sbert.hub import cards
from spacy_sbert.hub.cards import describe, package_card, sentence_transformers_card, write_readme
from spacy_sbert.pipeline.sentence_model import find_transformer

ASSETS = ROOT / "assets"
NASTY = "a\"b|c\n---\n```\n# <b>[x](y)': *d* \u202e"
SCORES = {"sts_spearman": 0.75125, "nli_acc": None, "sbert_loss": 0.25, "ents_f": 0.5}


def trained(nlp, path=ASSETS / "pairs-train.csv", performance=SCORES):
    """A pipeline as `spacy train` leaves it."""
    reader = {"@readers": "spacy-sbert.PairCorpus.v1", "format": "sts"}
    config = nlp.config
    config["corpora"] = {
        "train": {
            "@readers": "spacy-sbert.MultiCorpus.v1",
            "corpora": {"sts": {**reader, "path": str(path)}},
        },
        "dev": {**reader, "path": str(ASSETS / "pairs-dev.csv")},
    }
    nlp.config = config
    nlp.meta["performance"] = performance
    return nlp


def rows(card):
    """The cells of each row of each table."""
    lines = [line for line in card.splitlines() if line.startswith("| ")]
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]


def cells(card):
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows(card)}


def test_facts(make_nlp, tiny_bert, tmp_path):
    with pytest.raises(ValueError, match=r"none of the pipes makes sentence vectors"):
        describe(spacy.blank("xx"))
    nlp = trained(make_nlp("own", lang="en", model={"pooling": "max", "normalize": True}))
    nlp.to_disk(tmp_path / "nlp")
    facts = describe(nlp, folder=tmp_path / "nlp", name="mine", version="1.2.3")
    assert (facts.name, facts.version, facts.languages, facts.answering) == (
        "en_mine",
        "1.2.3",
        "en",
        "sbert",
    )
    (encoder,) = facts.encoders
    assert (encoder.width, encoder.max_length, encoder.pooling, encoder.normalized) == (
        16,
        24,
        "max",
        True,
    )
    assert (encoder.base_model, encoder.is_on_hub) == (tiny_bert.name, False)
    assert encoder.objectives == ("spacy-sbert.CosineSimilarityLoss.v1",)
    transformer = find_transformer("sbert", nlp.get_pipe("sbert").model).shim._model
    assert facts.n_parameters == sum(p.numel() for p in transformer.parameters()) > 5000
    assert facts.size == sum(
        file.stat().st_size for file in (tmp_path / "nlp").rglob("*") if file.is_file()
    )
    assert facts.scores == {"sts_spearman": 0.75125, "ents_f": 0.5}
    found = [(corpus.role, corpus.file, corpus.size) for corpus in facts.corpora]
    assert found == [("train, sts", "pairs-train.csv", 480), ("dev", "pairs-dev.csv", 160)]
    nlp.config["corpora"]["dev"]["path"] = [
        str(ASSETS / f"pairs-{part}.csv") for part in ("dev", "train")
    ]
    (both,) = [
        corpus
        for corpus in describe(nlp, name="mine", version="1.2.3").corpora
        if corpus.role == "dev"
    ]
    assert (both.file, both.size) == ("pairs-dev.csv, pairs-train.csv", 640)
    assert describe(trained(nlp, path=tmp_path / "gone.csv")).corpora[0].size is None


def test_package_card(make_nlp, tiny_bert):
    card = package_card(
        describe(trained(make_nlp(lang="en"), performance={**SCORES, "sts_pearson": math.nan}))
    )
    table = cells(card)
    assert table["Width"] == ["16"]
    assert table["Longest text, in wordpieces"] == ["24"]
    assert table["dev"] == ["pairs-dev.csv", "160"]
    assert table["train, sts"] == [
        "pairs-train.csv",
        "480",
    ]
    assert table["Spearman correlation of cosine and gold score"] == ["sts_spearman", "75.12"]
    assert table["ents_f"] == ["ents_f", "50.00"]
    assert "on pairs-dev.csv" in card
    assert 'spacy.load("en_pipeline")' in card
    assert not re.search(r"\b(nan|None|null)\b", card)
    # nobody's folders
    assert str(tiny_bert.parent) not in card
    assert str(ASSETS) not in card


def test_several_encoders_and_a_pipe_without_a_model(make_nlp, tiny_bert):
    nlp = make_nlp()
    alone = describe(nlp).n_parameters
    nlp.add_pipe("sbert", name="other", config={"model": {"name": str(tiny_bert)}})
    nlp.add_pipe("sbert_meta")
    facts = describe(nlp)
    widths = [(encoder.pipe, encoder.width) for encoder in facts.encoders]
    assert widths == [("sbert", 16), ("other", 16), ("sbert_meta", 32)]
    assert facts.answering == "sbert_meta"
    assert "(32,)" in package_card(facts)
    assert cells(package_card(facts))["Base model"][2] == "sbert, other"
    assert facts.n_parameters == 2 * alone
    lookups = Lookups()
    lookups.add_table("lemma_lookup", {"ran": "run"})
    nlp.add_pipe("lemmatizer", config={"mode": "lookup"}).initialize(lookups=lookups)
    assert nlp.get_pipe("lemmatizer").model is None
    assert "lemmatizer" in package_card(describe(nlp))
    assert describe(nlp).n_parameters == 2 * alone


def nasty(nlp):
    nlp.meta.update({key: NASTY for key in ("name", "description", "author", "license", "notes")})
    nlp.meta["labels"] = {NASTY: [NASTY]}
    nlp.meta["sources"] = [NASTY, {"name": NASTY}]
    config = nlp.config
    config["corpora"]["dev"]["path"] = f"somewhere/{NASTY}"
    nlp.config = config
    return nlp


@pytest.mark.parametrize(
    "make", [lambda nlp: package_card(describe(nlp), front_matter=True), sentence_transformers_card]
)
def test_names_break_neither_tables_nor_yaml(make_nlp, make):
    plain = make(trained(make_nlp(lang="en")))
    strange = make(nasty(trained(make_nlp(lang="en"))))
    widths = {len(row) for row in rows(plain)}
    assert {len(row) for row in rows(strange)} == widths
    assert strange.count("```\n") == plain.count("```\n")
    heads = [len(re.findall(r"^#+ ", card, re.MULTILINE)) for card in (strange, plain)]
    assert heads[0] == heads[1] + strange.count("## Labels")
    read = ModelCard(strange)
    assert read.data["pipeline_tag"] == "sentence-similarity"
    assert read.data.model_name == "en_" + NASTY.replace("\n", " ").replace("\u202e", " ")
    assert read.data.eval_results[0].metric_value == 0.75125
    assert read.text.strip().startswith(
        "# en\\_" if "\\_" in read.text.splitlines()[1] else "# en_"
    )
    assert "<b>" not in read.text.split("```")[0]


def test_front_matter(make_nlp):
    nlp = trained(
        make_nlp(lang="en"), performance={**SCORES, "sts_spearman_sick": 0.5, "triplet_acc": 1.0}
    )
    find_transformer("sbert", nlp.get_pipe("sbert").model).attrs["name"] = "organisation/encoder"
    nlp.meta["license"] = "GNU GPL 3.0"
    data = ModelCard(package_card(describe(nlp, name="mine"), front_matter=True)).data.to_dict()
    assert data.pop("model-index") == [
        {
            "name": "en_mine",
            "results": [
                result("Semantic Similarity", "pairs-dev.csv", ("Spearman Cosine", 0.75125)),
                result("Semantic Similarity", "pairs-dev.csv, sick", ("Spearman Cosine", 0.5)),
                result("Triplet", "pairs-dev.csv", ("Euclidean Accuracy", 1.0)),
            ],
        }
    ]
    assert data == {
        "language": "en",
        "license": "gpl-3.0",
        "library_name": "spacy",
        "tags": ["spacy", "sentence-similarity", "feature-extraction"],
        "base_model": ["organisation/encoder"],
        "pipeline_tag": "sentence-similarity",
    }


def result(task, dataset, *metrics):
    return {
        "task": {"type": task.lower().replace(" ", "-"), "name": task},
        "dataset": {"type": re.sub(r"\W+", "-", dataset), "name": dataset},
        "metrics": [
            {"type": name.lower().replace(" ", "_"), "value": value, "name": name}
            for name, value in metrics
        ],
    }


# What spacy-huggingface-hub 0.0.10 puts before the README.md of a package.
PUSHED = """---
tags:
- spacy
- token-classification
language:
- en
license: mit
model-index:
- name: en_pipeline
  results: []
---
# Written by hand

---

Stays.
"""


def test_update_of_a_pushed_card(make_nlp, monkeypatch):
    pushed = {}
    monkeypatch.setattr(cards.ModelCard, "load", lambda repo: ModelCard(PUSHED))
    monkeypatch.setattr(
        cards.ModelCard, "push_to_hub", lambda card, repo, **_: pushed.update({repo: str(card)})
    )
    cards.update_hub("organisation/en_pipeline", describe(trained(make_nlp())))
    card = ModelCard(pushed["organisation/en_pipeline"])
    assert card.text == PUSHED.split("---\n", 2)[2]
    assert card.data["pipeline_tag"] == "sentence-similarity"
    assert card.data["license"] == "mit"
    assert card.data["tags"] == [
        "spacy",
        "token-classification",
        "sentence-similarity",
        "feature-extraction",
    ]
    assert [result.metric_value for result in card.data.eval_results] == [0.75125]


def test_sentence_transformers_card(make_nlp):
    nlp = make_nlp("shared")
    alone = describe(nlp).n_parameters
    nlp.add_pipe(
        "sbert", name="other", config={"model": nlp.config["components"]["sbert"]["model"]}
    )
    # The transformer counts once
    assert describe(nlp).n_parameters == alone
    scores = {
        "sts_spearman": 0.5,
        "sbert_sts_spearman": 0.25,
        "ents_f": 0.5,
        "sbert_loss": 1.0,
        "other_loss": 1.0,
    }
    trained(nlp, performance=scores)
    for pipe, score in (("sbert", 0.25), ("other", 0.5)):
        card = ModelCard(sentence_transformers_card(nlp, pipe, folder="organisation/mine"))
        assert card.data["library_name"] == "sentence-transformers"
        assert card.data["tags"] == [
            "sentence-transformers",
            "sentence-similarity",
            "feature-extraction",
        ]
        assert [found.metric_value for found in card.data.eval_results] == [score]
        assert 'SentenceTransformer("organisation/mine")' in card.text
        assert "ents_f" not in card.text
        assert cells(card.text)["Width"] == ["16"]
    with pytest.raises(ValueError, match=r"'ner' .* sbert, other"):
        sentence_transformers_card(nlp, "ner")


def test_readme_of_others_is_kept(tmp_path):
    path = tmp_path / "README.md"
    assert write_readme(tmp_path, "# First\n")
    assert write_readme(tmp_path, "# Second\n")
    assert path.read_text(encoding="utf8").startswith(
        "# Second\n\n<!-- Written by python -m spacy sbert card"
    )
    path.write_text(path.read_text(encoding="utf8").replace("Second", "Changed"), encoding="utf8")
    assert not write_readme(tmp_path, "# Third\n")
    assert "# Changed" in path.read_text(encoding="utf8")
    path.write_bytes(b"# By hand \xff\n")
    assert not write_readme(tmp_path, "# Third\n")
    assert path.read_bytes() == b"# By hand \xff\n"
    assert write_readme(tmp_path, "# Third\n", force=True)
    assert "# Third" in path.read_text(encoding="utf8")


def test_commands(make_nlp, tmp_path, monkeypatch):
    trained(make_nlp(lang="en")).to_disk(tmp_path / "nlp")
    path = tmp_path / "nlp" / "README.md"

    said("card", tmp_path / "nlp", "--name", "mine", "--version", "1.2.3", "--front-matter")
    card = ModelCard(path.read_text(encoding="utf8"))
    assert card.data.model_name == "en_mine"
    assert cells(card.text)["Version"] == ["1.2.3"]
    said("card", tmp_path / "nlp")
    text = path.read_text(encoding="utf8")
    assert text.startswith("# en_pipeline")
    assert cells(text)["Size on disk"] == cells(card.text)["Size on disk"]
    path.write_text("# By hand\n", encoding="utf8")
    assert "Kept" in said("card", tmp_path / "nlp")
    assert path.read_text(encoding="utf8") == "# By hand\n"
    said("card", tmp_path / "nlp", "--overwrite")
    assert "By hand" not in path.read_text(encoding="utf8")
    updated = []
    monkeypatch.setattr(cards, "update_hub", lambda repo, facts: updated.append((repo, facts.name)))
    said("hub-card", "organisation/en_mine", tmp_path / "nlp", "--name", "mine")
    assert updated == [("organisation/en_mine", "en_mine")]
    (tmp_path / "empty").mkdir()
    said("card", tmp_path / "empty", code=1)
    assert not (tmp_path / "empty" / "README.md").exists()
