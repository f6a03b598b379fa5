import csv

import pytest
from pipelines import real_data

from spacy_sbert.readers.datasets import ASPECT_SCORES, ArgumentRow, read_arguments

HEADER = ["regression_label", *(f"column_{i}" for i in range(2, 10)), "sentence_1", "sentence_2"]
ASPECTS = ["topic\tsentence_1\tsentence_2\tlabel"]
ASPECTS += ['Big data\t "Quoted \tSecond.\tHS', "Drones\tThird.\tFourth.\tDTORCD"]


def afs_record(score, first, second):
    return [score, *map(str, range(8)), first, second]


@pytest.fixture
def write_afs(tmp_path):
    def write(*records, name="ArgPairs_GC_1.csv", header=HEADER):
        path = tmp_path / name
        with path.open("w", encoding="iso-8859-1", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([header, *records])
        return path

    return write


@pytest.fixture
def write_aspects(tmp_path):
    def write(*lines):
        path = tmp_path / "UKP_ASPECT.tsv"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
        return path

    return write


def test_afs_topics_scores_and_quotes(write_afs, tmp_path):
    write_afs(afs_record("5", "Caf\xe9s, \xbb\x96\xab", 'He said "no".'), afs_record("0", "Two\nlines", "Last."))
    write_afs(afs_record("2.5", "Die?", "Live!"), name="ArgPairs_DP.csv")
    write_afs(afs_record("1", "Marry.", "Do not."), name="ArgPairs_GM_x_y.csv")
    write_afs(afs_record("1", "Other", "file"), name="pairs.csv")
    assert read_arguments(tmp_path, "afs") == [
        ArgumentRow(("Die?", "Live!"), 2, score=0.5, topic="death penalty"),
        ArgumentRow(("Caf\xe9s, \xbb\x96\xab", 'He said "no".'), 2, score=1.0, topic="gun control"),
        ArgumentRow(("Two\nlines", "Last."), 3, score=0.0, topic="gun control"),
        ArgumentRow(("Marry.", "Do not."), 2, score=0.2, topic="gay marriage"),
    ]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (afs_record("5.5", "a", "b"), "line 4: .*'5.5'"),
        (afs_record("nan", "a", "b"), "line 4: .*'nan'"),
        (afs_record("1", "a", " "), "line 4: sentence_2"),
        (["1", "a", "b"], "line 4: .*11 .*3"),
    ],
)
def test_bad_afs_lines_are_named(write_afs, record, message):
    path = write_afs(afs_record("1", "Two\nlines", "b"), record)  # the record before it takes lines 2 and 3
    with pytest.raises(ValueError, match=message) as caught:
        read_arguments(path, "afs")
    assert str(path) in str(caught.value)


def test_bad_afs_files(write_afs, tmp_path):
    with pytest.raises(ValueError, match="topic"):
        read_arguments(write_afs(name="ArgPairs_XX.csv"), "afs")
    with pytest.raises(ValueError, match=r"line 1: .*'1\.5'"):
        read_arguments(write_afs(header=afs_record("1.5", "a", "b")), "afs")
    path = tmp_path / "ArgPairs_DP.csv"
    path.write_text(",".join(HEADER) + '\n1,2,3,4,5,6,7,8,9,"a,b\n', encoding="utf8")
    with pytest.raises(ValueError, match="line 2: "):
        read_arguments(path, "afs")


def test_aspect_labels_are_scores(write_aspects, tmp_path):
    write_aspects(*ASPECTS)
    assert read_arguments(tmp_path, "ukp") == [
        ArgumentRow(('"Quoted', "Second."), 2, score=1.0, label="HS", topic="Big data"),
        ArgumentRow(("Third.", "Fourth."), 3, score=0.0, label="DTORCD", topic="Drones"),
    ]
    assert ASPECT_SCORES == {"DTORCD": 0.0, "NS": 0.0, "SS": 0.5, "HS": 1.0}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Drones\ta\tb\tXS", "line 4: .*'XS'"),
        ("Drones\ta\tb", "line 4: .*'label'"),
        ("Drones\t\tb\tHS", "line 4: sentence_1"),
        (" \ta\tb\tHS", "line 4: topic"),
    ],
)
def test_bad_aspect_lines_are_named(write_aspects, line, message):
    with pytest.raises(ValueError, match=message):
        read_arguments(write_aspects(*ASPECTS, line), "ukp")


def test_no_pairs_and_unknown_layout(tmp_path, write_aspects):
    for layout in ("afs", "ukp"):
        with pytest.raises(ValueError, match="no pairs"):
            read_arguments(tmp_path, layout)
    with pytest.raises(ValueError, match="no pairs"):
        read_arguments(write_aspects(ASPECTS[0]), "ukp")
    with pytest.raises(ValueError, match="'sts'"):
        read_arguments(tmp_path, "sts")


def test_real_aspects():
    rows = read_arguments(real_data() / "argument", "ukp")
    labels = [row.label for row in rows]
    assert {label: labels.count(label) for label in ASPECT_SCORES} == {"DTORCD": 571, "NS": 1723, "SS": 841, "HS": 460}
    assert len({row.topic for row in rows}) == 28
