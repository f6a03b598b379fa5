"""Probing tasks are read in SentEval's and in X-Probe's layout."""

import numpy
import pytest
from made_data import HashedSource
from pipelines import real_data
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from spacy_sbert.evaluation import Settings
from spacy_sbert.evaluation.protocols.probing import TASKS, _x_probe_rows
from spacy_sbert.evaluation.task import MissingData, Run, VectorStore

BY_FILE = {task.file: task for task in TASKS}
SIZES = {"tr": 40, "va": 20, "te": 30}


class Cued(HashedSource):
    def vector(self, text):
        return super().vector(text) + 0.8 * super().vector(text.split(" ")[0])


def run(file, root, **settings):
    settings = Settings(**{"any_count": True, "bootstrap": 0, "classifiers": ("lr",), **settings})
    store = VectorStore(Cued(), None, lambda items, _: items)
    return BY_FILE[file].run(Run(root, store, settings, lambda items, _: items))


def made(splits=SIZES):
    return {
        split: [(f"cue{i % 2} {split} {i}", "NN" if i % 2 else "NNS") for i in range(SIZES[split])] for split in splits
    }


def write_senteval(root, file, data):
    (root / "probing").mkdir(exist_ok=True)
    lines = [f"{split}\t{label}\t{text}" for split, rows in data.items() for text, label in rows]
    (root / "probing" / f"{file}.txt").write_text("\n".join(lines) + "\n", encoding="utf8")


def write_x_probe(root, file, data):
    folder = root / "probing" / file
    folder.mkdir(parents=True)
    for split, rows in data.items():
        (folder / f"{split}.txt").write_text("".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf8")


def right(model, train, test):
    (x, y), (tested, gold) = (
        (Cued().encode([t for t, _ in rows]), [label for _, label in rows]) for rows in (train, test)
    )
    predicted = model.fit(x, y).predict(tested) == numpy.array(gold)
    return "".join("01"[int(value)] for value in predicted)


@pytest.mark.parametrize("file", ["sentence_length", "word_content"])
def test_both_layouts_give_the_same(tmp_path, file):
    data = made()
    write_senteval(tmp_path, file, data)
    official = run(file, tmp_path)
    (tmp_path / "probing" / f"{file}.txt").unlink()
    write_x_probe(tmp_path, file, data)
    other = run(file, tmp_path)
    assert official["counts"] == {"train": 40, "dev": 20, "test": 30, "all": 90}
    assert other["variants"] == official["variants"]
    (c,) = official["variants"][0]["c"]
    expected = right(LogisticRegression(C=c, max_iter=1000), data["tr"], data["te"])
    assert official["predictions"] == {"right": expected} == other["predictions"]
    assert "X-Probe" in other["notes"][0] and len(official["notes"]) == 3, "three splits that are not whole"


def test_without_tr_va_is_trained_on_and_it_is_said(tmp_path):
    data = made(["va", "te"])
    write_x_probe(tmp_path, "obj_number", data)
    result = run("obj_number", tmp_path)
    folds = StratifiedKFold(5, shuffle=True, random_state=1111)
    search = GridSearchCV(LogisticRegression(max_iter=1000), {"C": [0.25, 0.5, 1, 2, 4, 8]}, cv=folds)
    assert result["predictions"]["right"] == right(search, data["va"], data["te"])
    assert result["counts"] == {"train": 20, "test": 30, "all": 50}
    assert any(note.startswith("Trained on va") for note in result["notes"])


def test_a_sentence_is_the_last_column(tmp_path):
    data = made()
    write_senteval(tmp_path, "tree_depth", data)
    expected = run("tree_depth", tmp_path)
    path = tmp_path / "probing/tree_depth.txt"
    lines = path.read_text(encoding="utf8").splitlines()
    extra = ["\t".join([*line.split("\t")[:2], "more", line.split("\t")[2]]) for line in lines]
    path.write_text("\n".join(extra), encoding="utf8")
    assert run("tree_depth", tmp_path) == expected


@pytest.mark.parametrize(
    "line, message",
    [
        ("xx\tNN\ta text", "line 91: unknown label 'xx', expected one of tr, va, te"),
        ("te\tNN", "line 91: no column 'sentence'"),
        ("te\t\ta text", "line 91: label is empty"),
        ("te\tNN\t ", "line 91: sentence is empty"),
    ],
)
def test_broken_lines_are_named(tmp_path, line, message):
    write_senteval(tmp_path, "subj_number", made())
    with (tmp_path / "probing/subj_number.txt").open("a", encoding="utf8") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match=rf"subj_number\.txt, {message}"):
        run("subj_number", tmp_path)


def test_incomplete_and_missing_data_are_refused(tmp_path):
    with pytest.raises(MissingData, match=r"word_content\.txt.* not found"):
        BY_FILE["word_content"].find(tmp_path)
    write_senteval(tmp_path, "bigram_shift", made())
    with pytest.raises(ValueError, match=r"bigram_shift\.txt: 40 examples .* has 100000"):
        run("bigram_shift", tmp_path, any_count=False)
    write_x_probe(tmp_path, "past_present", made(["va"]))
    with pytest.raises(MissingData, match=r"te\.txt not found"):
        BY_FILE["past_present"].find(tmp_path)


@pytest.mark.parametrize(
    "file, size, classes",
    [
        ("sentence_length", 4998, 6),
        ("word_content", 10_000, 1000),
        ("bigram_shift", 10_000, 2),
        ("past_present", 10_000, 2),
    ],
)
def test_real_files_are_read_whole(file, size, classes):
    try:
        paths = BY_FILE[file].find(real_data())
    except MissingData as missing:
        pytest.skip(str(missing))
    if len(paths) < 2:
        pytest.skip("SentEval's own file")
    for path in paths:
        rows = list(_x_probe_rows(path))
        assert len(rows) == size and len({row.label for row in rows}) == classes
