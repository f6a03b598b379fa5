"""The sample data: what the script writes, and that each file holds what assets/README.md says."""

import csv
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from spacy.training.converters import iob_to_docs

ROOT = Path(__file__).parent.parent
ASSETS = ROOT / "assets"
COUNTS = {
    "pairs": (480, 160),
    "nli": (363, 120),
    "triplets": (240, 80),
    "questions": (300, 120),
    "duplicates": (240,),
    "topics": (240, 120),
    "entities": (150, 50),
    "texts": (300, 60),
}
PARTS = ("train", "dev")
FILES = [(name, part, count) for name, counts in COUNTS.items() for part, count in zip(PARTS, counts, strict=False)]


def find(name, part):
    (path,) = ASSETS.glob(f"{name}-{part}.*")
    return path


def read_table(name, part):
    path = find(name, part)
    with path.open(encoding="utf8", newline="") as file:
        if path.suffix == ".csv":
            return list(csv.DictReader(file, strict=True))
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def read_nli(part):
    return [json.loads(line) for line in find("nli", part).read_text(encoding="utf8").splitlines()]


def read_docs(part):
    return list(iob_to_docs(find("entities", part).read_text(encoding="utf8"), n_sents=1, no_print=True))


def texts_of(name, part):
    """The sentences of each entry."""
    if name == "pairs":
        return [line.split("\t")[5:] for line in find(name, part).read_text(encoding="utf8").splitlines()]
    if name == "nli":
        return [[row["sentence1"], row["sentence2"]] for row in read_nli(part)]
    if name == "entities":
        return [[doc.text.strip()] for doc in read_docs(part)]
    if name == "texts":
        return [[line] for line in find(name, part).read_text(encoding="utf8").splitlines()]
    columns = ("Sentence1", "Sentence2", "Sentence3", "question1", "question2", "text")
    return [[row[column] for column in columns if column in row] for row in read_table(name, part)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    command = [sys.executable, ROOT / "scripts" / "make_sample.py", "--output", folder, "--seed", "0"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_script_writes_every_file(written):
    names = {path.name for path in ASSETS.iterdir()} - {"README.md"}
    assert names == {path.name for path in written.iterdir()}
    assert len(names) == len(FILES) + 1  # and arguments.tsv, which has one part
    for name in names:
        assert (written / name).read_bytes() == (ASSETS / name).read_bytes(), name


@pytest.mark.parametrize("name,part,count", FILES)
def test_no_sentence_occurs_twice(name, part, count):
    entries = texts_of(name, part)
    texts = [text for entry in entries for text in entry]
    assert len(entries) == count
    assert len(set(texts)) == len(texts)
    assert all(text and text == text.strip() and text[-1] in ".?" for text in texts)


@pytest.mark.parametrize("name", COUNTS)
def test_train_and_dev_are_disjoint(name):
    train, dev = (
        {text for other, part, _ in FILES if part == wanted for entry in texts_of(other, part) for text in entry}
        for wanted in PARTS
    )
    assert not {text for entry in texts_of(name, "train") for text in entry} & dev
    if len(COUNTS[name]) > 1:
        assert not {text for entry in texts_of(name, "dev") for text in entry} & train


@pytest.mark.parametrize("part,pairs,undecided", [("train", 360, 3), ("dev", 120, 0)])
def test_nli_is_balanced(part, pairs, undecided):
    rows = read_nli(part)
    assert all(set(row) == {"gold_label", "sentence1", "sentence2"} for row in rows)
    labels = Counter(row["gold_label"] for row in rows)
    assert labels.pop("-", 0) == undecided
    assert labels == dict.fromkeys(("entailment", "contradiction", "neutral"), pairs // 3)


@pytest.mark.parametrize("part", PARTS)
def test_triplets_have_three_different_texts(part):
    rows = read_table("triplets", part)
    assert list(rows[0]) == ["Article Title", "Sentence1", "Sentence2", "Sentence3"]
    assert all(len(set(texts)) == 3 for texts in texts_of("triplets", part))
    assert len(set(Counter(row["Article Title"] for row in rows).values())) == 1


@pytest.mark.parametrize("part", PARTS)
def test_half_of_the_questions_are_duplicates(part):
    rows = read_table("questions", part)
    assert list(rows[0]) == ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"]
    assert Counter(row["is_duplicate"] for row in rows) == {"0": len(rows) // 2, "1": len(rows) // 2}
    assert len({row[qid] for row in rows for qid in ("qid1", "qid2")}) == 2 * len(rows)
    assert len({row["id"] for row in rows}) == len(rows)
    assert all(text.endswith("?") for entry in texts_of("questions", part) for text in entry)


def test_duplicates_have_two_columns():
    rows = read_table("duplicates", "train")
    assert all(list(row) == ["question1", "question2"] for row in rows)
    assert all(text.endswith("?") for entry in texts_of("duplicates", "train") for text in entry)


def test_topics_of_dev_occur_in_train():
    train, dev = (Counter(row["label"] for row in read_table("topics", part)) for part in PARTS)
    assert set(dev) == set(train)
    assert len(train) >= 6
    assert len(set(train.values())) == len(set(dev.values())) == 1


@pytest.mark.parametrize("part,count", [("train", 150), ("dev", 50)])
def test_entities_convert(part, count):
    docs = read_docs(part)
    assert len(docs) == count
    assert all(len(doc) and all(token.tag_ for token in doc) for doc in docs)
    labels = Counter(ent.label_ for doc in docs for ent in doc.ents)
    assert set(labels) == {"PERSON", "GPE", "DATE"}
    assert min(labels.values()) >= count / 3
    assert any(len(ent) > 1 for doc in docs for ent in doc.ents)
