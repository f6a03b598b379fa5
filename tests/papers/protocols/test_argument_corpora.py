import csv

import pytest
from helpers.pipelines import real_data
from protocols.argument_corpora import ASPECT_SCORES, ArgumentRow, read_arguments

# characters: csv by itself reads 131,072
LONG = "x" * 200_000
HEADER = ["regression_label", *(f"column_{i}" for i in range(2, 10)), "sentence_1", "sentence_2"]
ASPECTS = ["topic\tsentence_1\tsentence_2\tlabel"]
ASPECTS += ['Big data\t "Quoted \tSecond.\tHS', "Drones\tThird.\tFourth.\tDTORCD"]


def afs_record(score, first, second):
    return [score, *map(str, range(8)), first, second]


def write_afs(folder, *records, name="ArgPairs_GC.csv", header=HEADER):
    with (folder / name).open("w", encoding="iso-8859-1", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([header, *records])
    return folder / name


def write_aspects(folder, *lines):
    (folder / "UKP_ASPECT.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    return folder / "UKP_ASPECT.tsv"


def test_afs_topics_scores_and_quotes(tmp_path):
    records = [
        afs_record("5", "Caf\xe9s, \xbb\x96\xab", 'He said "no".'),
        afs_record("0", "Two\nlines", LONG),
    ]
    write_afs(tmp_path, *records)
    write_afs(tmp_path, afs_record("2.5", "Die?", "Live!"), name="ArgPairs_DP.csv")
    write_afs(tmp_path, afs_record("1", "Marry.", "Do not."), name="ArgPairs_GM_x_y.csv")
    write_afs(tmp_path, afs_record("1", "Other", "file"), name="pairs.csv")
    assert read_arguments(tmp_path, "afs") == [
        ArgumentRow(("Die?", "Live!"), 2, score=0.5, topic="death penalty"),
        ArgumentRow(("Caf\xe9s, \xbb\x96\xab", 'He said "no".'), 2, score=1.0, topic="gun control"),
        ArgumentRow(("Two\nlines", LONG), 3, score=0.0, topic="gun control"),
        ArgumentRow(("Marry.", "Do not."), 2, score=0.2, topic="gay marriage"),
    ]
    # A setting of the process
    assert csv.field_size_limit() == 131_072


def test_aspect_labels_are_scores(tmp_path):
    write_aspects(tmp_path, *ASPECTS)
    assert read_arguments(tmp_path, "ukp") == [
        ArgumentRow(('"Quoted', "Second."), 2, score=1.0, label="HS", topic="Big data"),
        ArgumentRow(("Third.", "Fourth."), 3, score=0.0, label="DTORCD", topic="Drones"),
    ]
    assert ASPECT_SCORES == {"DTORCD": 0.0, "NS": 0.0, "SS": 0.5, "HS": 1.0}


@pytest.mark.parametrize(
    ("layout", "message"), [("afs", "no pairs"), ("ukp", "no pairs"), ("sts", "'sts'")]
)
def test_a_folder_without_pairs(tmp_path, layout, message):
    with pytest.raises(ValueError, match=message):
        read_arguments(tmp_path, layout)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        pytest.param(afs_record("5.5", "a", "b"), r"line 4: .*'5\.5'", id="score above 5"),
        pytest.param(afs_record("nan", "a", "b"), "line 4: .*'nan'", id="NaN"),
        pytest.param(afs_record("1", "a", " "), "line 4: sentence_2", id="no sentence"),
        pytest.param(["1", "a", "b"], "line 4: .*11 .*3", id="few cells"),
    ],
)
def test_a_bad_record_of_afs(tmp_path, record, message):
    # Takes lines 2 and 3
    before = afs_record("1", "Two\nlines", "b")
    path = write_afs(tmp_path, before, record)
    with pytest.raises(ValueError, match=message) as caught:
        read_arguments(path, "afs")
    assert str(path) in str(caught.value)


def test_an_unknown_topic_of_afs(tmp_path):
    with pytest.raises(ValueError, match=r"ArgPairs_XX\.csv.*topic"):
        read_arguments(write_afs(tmp_path, name="ArgPairs_XX.csv"), "afs")


def test_a_file_of_afs_without_a_header(tmp_path):
    path = write_afs(tmp_path, header=afs_record("1.5", "a", "b"))
    with pytest.raises(ValueError, match=r"line 1: .*'1\.5'"):
        read_arguments(path, "afs")


def test_an_open_quote_in_afs(tmp_path):
    path = tmp_path / "ArgPairs_DP.csv"
    path.write_text(",".join(HEADER) + '\n1,2,3,4,5,6,7,8,9,"a,b\n', encoding="utf8")
    with pytest.raises(ValueError, match="line 2: "):
        read_arguments(path, "afs")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param([*ASPECTS, "Drones\ta\tb\tXS"], "line 4: .*'XS'", id="unknown label"),
        pytest.param([*ASPECTS, "Drones\ta\tb"], "line 4: .*'label'", id="no label"),
        pytest.param([*ASPECTS, "Drones\t\tb\tHS"], "line 4: sentence_1", id="no sentence"),
        pytest.param([*ASPECTS, " \ta\tb\tHS"], "line 4: topic", id="no topic"),
        pytest.param(ASPECTS[:1], "no pairs", id="no pairs"),
    ],
)
def test_bad_lines_of_aspects(tmp_path, lines, message):
    with pytest.raises(ValueError, match=message):
        read_arguments(write_aspects(tmp_path, *lines), "ukp")


def test_real_aspects():
    rows = read_arguments(real_data() / "argument", "ukp")
    labels = [row.label for row in rows]
    assert {label: labels.count(label) for label in ASPECT_SCORES} == {
        "DTORCD": 571,
        "NS": 1723,
        "SS": 841,
        "HS": 460,
    }
    assert len({row.topic for row in rows}) == 28
