"""`mine-negatives`, as a user types it, and training with what it writes."""

from pathlib import Path

import pytest
import spacy
import srsly
from helpers.invoking import said

from spacy_sbert.readers import PairCorpus
from spacy_sbert.readers.infer_schema import find_table

PAIRS = [
    ("who is eating", "a man is eating food"),
    ("who ran", "the dog ran fast"),
    ("where is the cat", "the cat sat on the mat"),
    ("can he go", "he can go"),
    ("who ran", "a dog ran"),
]
TEXTS = ["someone is having a meal", "a cat sat", "the man ran", "the food", "a meal"]
MINE = ("mine-negatives", "nlp", "pairs.csv", "out.jsonl", "--corpus", "texts.txt", "--quiet")


@pytest.fixture(autouse=True)
def folder(nlp_folder):
    lines = ["question,answer", *(f"{anchor},{positive}" for anchor, positive in PAIRS)]
    (nlp_folder / "pairs.csv").write_text("\n".join(lines))
    (nlp_folder / "texts.txt").write_text("\n\n".join(TEXTS))
    return nlp_folder


def rows(path="out.jsonl"):
    return list(srsly.read_jsonl(path))


def test_triplets():
    assert "Wrote 15 rows to out.jsonl" in said(*MINE)
    found = rows()
    assert list(found[0]) == ["anchor", "positive", "negative", "scores"]
    assert {(row["anchor"], row["positive"]) for row in found} == set(PAIRS)
    for row in found:
        assert row["negative"] in {*TEXTS, *(positive for _, positive in PAIRS)}
        assert not (row["anchor"] == "who ran" and "dog ran" in row["negative"])
        assert len(row["scores"]) == 2


@pytest.mark.parametrize("suffix", ["jsonl", "tsv"])
def test_tuples_are_read_by_training(suffix):
    """Their columns are found by their names, and the scores by theirs."""
    said(*MINE, "--output-format", "n-tuple", "--num-negatives", 2)
    mined = rows()
    if suffix == "tsv":
        said(*MINE[:3], "out.tsv", *MINE[4:], "--output-format", "n-tuple", "--num-negatives", 2)
    names = ["anchor", "positive", "negative_1", "negative_2"]
    table = find_table(Path(f"out.{suffix}"))
    assert (table.kind, list(table.columns.members)) == ("triplets", names)
    corpus = PairCorpus(f"out.{suffix}", members=names, scores="scores")
    for example, row in zip(corpus(spacy.blank("en")), mined, strict=True):
        group = example.reference.spans["sbert"]
        assert [span.text for span in group] == [row[name] for name in names]
        assert group.attrs["scores"] == pytest.approx(row["scores"], abs=1e-6)


def test_a_config_of_them_trains(folder):
    said(*MINE, "--output-format", "n-tuple", "--num-negatives", 2)
    output = said("init-config", "out.jsonl", "out.jsonl", "-o", "my.cfg", "--encoder", "nlp")
    assert "triplets" in output
    config = spacy.util.load_config("my.cfg")
    assert config["components"]["sbert"]["loss"]["@layers"].startswith(
        "spacy-sbert.MultipleNegativesRankingLoss"
    )


def test_pairs_of_score_0_are_no_positives(folder):
    lines = [f"{anchor},{positive},1" for anchor, positive in PAIRS]
    wrong = "who ran,a meal is food,0"
    (folder / "pairs.csv").write_text(
        "\n".join(["question1,question2,is_duplicate", *lines, wrong])
    )
    said(*MINE)
    assert {row["positive"] for row in rows()} == {positive for _, positive in PAIRS}


def test_pairs_without_enough_negatives_are_counted():
    output = said(*MINE, "--output-format", "n-tuple", "--absolute-margin", 1.9)
    assert "Wrote 0 rows" in output
    assert "5 of 5 pairs have fewer than 3 negatives" in output


def test_a_reranker_scores(tiny_bert, folder):
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert), "n_outputs": 1}})
    nlp.initialize()
    nlp.to_disk("reranker")
    said(*MINE, "--reranker", "reranker")
    first = rows()[0]
    pair = (first["anchor"], first["positive"])
    expected = nlp.get_pipe("sbert_reranker").score_pairs(pair)
    assert first["scores"][0] == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("text,label\na man,x\nthe dog,y\na cat,x", (), "are read as classes"),
        ("first,second,score\na,b,0.5\nc,d,0.7", (), "are read as graded"),
        ("anchor,positive,negative\na,b,c", (), "are read as triplets"),
        ("one,two\na,b", (), "Cannot tell which columns"),
        ("question,answer\na man, \nb,c", (), "line 2"),
        ("question,answer\na man,a man\nb,c", (), "pair number 1"),
        (None, ("--output-format", "pairs"), "--output-format"),
        (None, ("--sampling-strategy", "best"), "sampling_strategy"),
        (None, ("--range-min", 9, "--range-max", 9), "range_max = 9"),
        (None, ("--num-negatives", 50), "too few for num_negatives = 50"),
        (None, ("--corpus", "pairs.csv"), "text"),
        (None, ("--reranker", "nlp"), "sbert_reranker"),
    ],
)
def test_refused(folder, table, options, message):
    if table is not None:
        (folder / "pairs.csv").write_text(table)
    given = [*MINE, *options]
    assert message in said(*given, code=1)
    assert not (folder / "out.jsonl").exists()


def test_name_of_the_output(folder):
    assert "ends in .tsv or .jsonl" in said(*MINE[:3], "out.txt", code=1)
