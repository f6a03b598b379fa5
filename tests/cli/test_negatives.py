"""`mine-negatives`, as a user types it, and training with what it writes."""

from pathlib import Path

import pytest
import spacy
import srsly
from helpers.invoking import said
from spacy.tokens import DocBin

from spacy_sbert.readers import PairCorpus, example_doc
from spacy_sbert.readers.infer_schema import find_table
from spacy_sbert.search.hard_negatives import mine_hard_negatives

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


def test_rows():
    assert "Wrote 5 rows to out.jsonl" in said(*MINE)
    found = rows()
    negatives = ["negative_1", "negative_2", "negative_3"]
    assert list(found[0]) == ["anchor", "positive", *negatives, "scores"]
    assert {(row["anchor"], row["positive"]) for row in found} == set(PAIRS)
    for row in found:
        own = {row[name] for name in negatives}
        assert len(own) == 3
        assert own <= {*TEXTS, *(positive for _, positive in PAIRS)}
        if row["anchor"] == "who ran":
            assert not own & {"the dog ran fast", "a dog ran"}
        assert len(row["scores"]) == 4
        assert row["scores"][1:] == sorted(row["scores"][1:], reverse=True)


@pytest.mark.parametrize("suffix", ["jsonl", "tsv"])
def test_training_reads_them(suffix):
    """Their columns are found by their names."""
    output = f"out.{suffix}"
    said(*MINE[:3], output, *MINE[4:], "--num-negatives", 2)
    said(*MINE[:3], "same.jsonl", *MINE[4:], "--num-negatives", 2)
    names = ["anchor", "positive", "negative_1", "negative_2"]
    table = find_table(Path(output))
    assert (table.kind, list(table.columns.members)) == ("triplets", names)
    corpus = PairCorpus(output, format="table", **table.reading())
    for example, row in zip(corpus(spacy.blank("en")), rows("same.jsonl"), strict=True):
        texts = [span.text for span in example.reference.spans["sbert"]]
        assert texts == [row[name] for name in names]


def test_a_config_of_them_trains(tiny_bert, folder):
    said(*MINE, "--num-negatives", 2)
    output = said("init-config", "out.jsonl", "out.jsonl", "-o", "my.cfg", "--encoder", tiny_bert)
    assert "triplets" in output
    config = spacy.util.load_config("my.cfg")
    assert config["components"]["sbert"]["loss"]["@layers"].startswith(
        "spacy-sbert.MultipleNegativesRankingLoss"
    )
    said("train", "my.cfg", "-o", "trained", "--training.max_steps", 2)
    assert (folder / "trained" / "model-last").is_dir()


def test_scores_of_a_teacher_train(tiny_bert):
    """As in docs/training.md; the scores of the encoder itself would teach nothing."""
    nlp = spacy.load("nlp")
    docs = DocBin()
    for pair in mine_hard_negatives(nlp.get_pipe("sbert"), PAIRS, TEXTS, num_negatives=2):
        texts = [pair.anchor, pair.positive, *pair.negatives]
        docs.add(example_doc(nlp, texts, scores=[-score for score in pair.scores]))
    docs.to_disk("tuples.spacy")
    loss = {"@layers": "spacy-sbert.MarginMSELoss.v1", "similarity": "cosine"}
    config = {"model": {"name": str(tiny_bert)}, "loss": loss}
    new = spacy.blank("en")
    new.add_pipe("sbert", config=config)
    examples = list(PairCorpus("tuples.spacy")(new))
    new.initialize(lambda: examples)
    losses = [new.update(examples)["sbert"] for _ in range(3)]
    assert losses[-1] < losses[0]


def test_pairs_of_score_0_are_no_positives(folder):
    lines = [f"{anchor},{positive},1" for anchor, positive in PAIRS]
    wrong = "who ran,a meal is food,0"
    (folder / "pairs.csv").write_text(
        "\n".join(["question1,question2,is_duplicate", *lines, wrong])
    )
    said(*MINE)
    assert {row["positive"] for row in rows()} == {positive for _, positive in PAIRS}


def test_pairs_without_enough_negatives_are_left_out():
    output = said(*MINE, "--absolute-margin", 1.9)
    assert "Wrote 0 rows" in output
    assert "Left out 5 pairs with fewer negatives" in output


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
        ("text,label\na man,x\nthe dog,y\na cat,x", (), "There are no pairs"),
        ("first,second,label\na,b,x\nc,d,y", (), "There are no pairs"),
        ("anchor,positive,negative\na,b,c", (), "There are no pairs"),
        ("here,there\na,b", (), "Cannot tell which columns"),
        ("question,answer\na man, \nb,c", (), "line 2"),
        ("question,answer\na man,a man\nb,c", (), "one text twice"),
        (None, ("--range-min", 9, "--range-max", 9), "range_min = 9 among 9 ranks"),
        (None, ("--num-negatives", 50), "num_negatives = 50"),
        (None, ("--column", "other"), "no columns: leave --column out"),
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
