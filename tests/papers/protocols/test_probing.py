"""Probing tasks are scikit-learn on the vectors; their files are read as SentEval and X-Probe have
them.
"""

import numpy
import pytest
from helpers import made_senteval
from helpers.made_senteval import GRID, Cued, bits, real_paths, search, write
from protocols.probing import TASKS, _x_probe_rows
from sklearn.linear_model import LogisticRegression

from spacy_sbert.evaluation.protocols import classification
from spacy_sbert.evaluation.task import MissingData

BY_NAME = {task.name: task for task in TASKS}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(classification, "_C_GRID", tuple(GRID["C"]))


def run(name, root, source=None, **settings):
    return made_senteval.run(BY_NAME[name], root, source, **settings)


@pytest.mark.parametrize(
    "name, size, classes",
    [("SentLen", 4998, 6), ("WC", 10_000, 1000), ("BShift", 10_000, 2), ("Tense", 10_000, 2)],
)
def test_real_files_of_probing_are_read_whole(name, size, classes):
    for path in real_paths(BY_NAME[name], least=2):
        rows = list(_x_probe_rows(path))
        assert (len(rows), len({row.label for row in rows})) == (size, classes)


SIZES = {"tr": 40, "va": 20, "te": 30}


def probing(splits=SIZES):
    labels = "NNS", "NN"
    return {
        split: [(f"cue{i % 2} {split} {i}", labels[i % 2]) for i in range(SIZES[split])]
        for split in splits
    }


def write_probing(root, file, data, more=""):
    rows = [
        f"{split}\t{label}\t{more}{text}" for split, each in data.items() for text, label in each
    ]
    write(root / "probing" / f"{file}.txt", rows)


def write_x_probe(root, file, data):
    for split, rows in data.items():
        write(
            root / "probing" / file / f"{split}.txt", [f"{text}\t{label}" for text, label in rows]
        )


def right(model, train, test):
    (texts, y), (tested, gold) = (map(list, zip(*rows, strict=True)) for rows in (train, test))
    return bits(
        model.fit(Cued().encode(texts), y).predict(Cued().encode(tested)) == numpy.array(gold)
    )


def test_both_layouts_of_probing_give_the_same(tmp_path):
    data = probing()
    write_probing(tmp_path, "word_content", data)
    official = run("WC", tmp_path)
    write_probing(tmp_path, "word_content", data, more="more\t")
    assert run("WC", tmp_path) == official, "the sentence is the last column"
    (tmp_path / "probing" / "word_content.txt").unlink()
    write_x_probe(tmp_path, "word_content", data)
    other = run("WC", tmp_path)
    assert official["counts"] == {"train": 40, "dev": 20, "test": 30, "all": 90}
    assert other["variants"] == official["variants"]
    (c,) = official["variants"][0]["c"]
    expected = right(LogisticRegression(C=c, max_iter=1000), data["tr"], data["te"])
    assert official["predictions"] == {"right": expected} == other["predictions"]
    assert "X-Probe" in other["notes"][0] and len(official["notes"]) == 3, (
        "three splits that are not whole"
    )


def test_without_tr_va_is_trained_on_and_it_is_said(tmp_path):
    data = probing(["va", "te"])
    write_x_probe(tmp_path, "obj_number", data)
    result = run("ObjNum", tmp_path)
    assert result["predictions"]["right"] == right(search(), data["va"], data["te"])
    assert result["counts"] == {"train": 20, "test": 30, "all": 50}
    assert any(note.startswith("Trained on va") for note in result["notes"])


def test_incomplete_probing_data_are_refused(tmp_path):
    write_probing(tmp_path, "bigram_shift", probing())
    with pytest.raises(ValueError, match=r"bigram_shift\.txt: 40 examples .* has 100000"):
        run("BShift", tmp_path, any_count=False)
    write_probing(tmp_path, "top_constituents", probing(["tr", "va"]))
    with pytest.raises(ValueError, match=r"top_constituents\.txt"):
        run("TopConst", tmp_path)
    write_x_probe(tmp_path, "past_present", probing(["va"]))
    with pytest.raises(MissingData, match=r"te\.txt not found"):
        BY_NAME["Tense"].find(tmp_path)


BROKEN = [
    (b"xx\tNN\ta\n", "line 1: unknown label 'xx', expected one of tr, va, te"),
    (b"tr\tNN\ta\nte\tNN\n", "line 2: no column 'sentence'"),
    (b"te\t\ta text\n", "line 1: label is empty"),
    (b"te\tNN\t \n", "line 1: sentence is empty"),
]


@pytest.mark.parametrize("content, message", BROKEN)
def test_broken_files_are_named_with_the_line(tmp_path, content, message):
    write_probing(tmp_path, "subj_number", probing())
    (tmp_path / "probing/subj_number.txt").write_bytes(content)
    with pytest.raises(ValueError, match=f"subj_number.txt, {message}"):
        run("SubjNum", tmp_path)
