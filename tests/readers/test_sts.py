import pytest
import spacy

from spacy_sbert.readers import PairCorpus, convert, pair_doc, read_sts
from spacy_sbert.readers.formats import _starts_as_sts as starts_as_sts

NLP = spacy.blank("en")
LINES = [
    "main-captions\tMSRvid\t2012test\t0001\t5.000\tA plane is taking off.\tAn air plane is taking off.",
    'main-news\theadlines\t2013\t0002\t0\t He said "no \t\u00c9t\u00e9 \u4e2d\u6587 \tlicence\tmore',
]


PAIRS = [
    ["A plane is taking off.", "An air plane is taking off.", 1.0],
    ['He said "no', "\u00c9t\u00e9 \u4e2d\u6587", 0.0],
]


@pytest.fixture
def write(tmp_path):
    def write(*lines, name="pairs.csv"):
        path = tmp_path / name
        path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf8"))
        return path

    return write


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".spacy"])
def test_examples_carry_members_and_gold(write, tmp_path, suffix):
    path = write(*LINES, "", name="pairs.tsv" if suffix == ".tsv" else "pairs.csv")
    assert [[*row] for row in read_sts(path)] == PAIRS
    if suffix == ".spacy":
        assert convert(path, tmp_path / "sub" / "pairs.spacy", expect=2) == 2
        path = tmp_path / "sub" / "pairs.spacy"
    examples = list(PairCorpus(path)(NLP))
    found = [[span.text for span in example.predicted.spans["sbert"]] for example in examples]
    assert [[*texts, score] for texts, (*_, score) in zip(found, PAIRS, strict=True)] == PAIRS
    assert [example.reference.spans["sbert"].attrs for example in examples] == [{"score": 1.0}, {"score": 0.0}]
    assert all(not example.predicted.spans["sbert"].attrs for example in examples), "gold must not be seen"


def test_pair_doc_keeps_texts():
    for first, second in [("a b", "c"), ("(x)", ")y("), ("a  b", "c \n d"), ("end.", "Next")]:
        doc = pair_doc(NLP, first, second, 0.5)
        assert [span.text for span in doc.spans["sbert"]] == [first, second]


def test_other_tables_of_seven_columns(write):
    """The first line of this layout has a year, a score from 0 to 5 and two texts; others are named when read."""
    rows = ["a\tb\t2017\tx1\tnoun\tA man.\tA boy.", "a\tb\t2017\tx2\t2\tA dog.\t17", "a\tb\t2017\tx3\t9\tA.\tB c."]
    rows += ["a\tb\t7\tx1\t2\tA man.\tA boy.", "genre\tfile\tyear\tid\tscore\tsentence1\tsentence2"]
    assert not any(starts_as_sts(write(row, *LINES)) for row in rows)
    assert all(starts_as_sts(write(line, *rows)) for line in LINES) and starts_as_sts(write())
    with pytest.raises(ValueError, match="line 1: the layout of the STS benchmark has no header"):
        list(read_sts(write(rows[-1], *LINES)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a\tb\tc\td\t3.2\tonly one", "line 2: .*7 .*6"),
        *((f"a\tb\tc\td\t{score}\ts\tt", f"line 2: .*from 0 to 5.*'{score}'") for score in ("three", "5.1", "nan")),
        ("a\tb\tc\td\t1\ts\t  ", "line 2: sentence2"),
        ("a\tb\tc\td\t1\t\tt", "line 2: sentence1"),
        ("a\tb\tc\td\t1\ts\t\u200b\x00", "line 2: has a NUL character"),
    ],
)
def test_bad_lines_are_named(write, tmp_path, line, message):
    path = write(LINES[0], line)
    with pytest.raises(ValueError, match=message) as caught:
        convert(path, tmp_path / "out.spacy")
    assert str(path) in str(caught.value)
    assert not (tmp_path / "out.spacy").exists()
    with pytest.raises(ValueError, match=message):
        list(PairCorpus(path)(NLP))


def test_refused_files(write, tmp_path):
    (tmp_path / "latin.csv").write_bytes(LINES[0].encode() + b"\na\tb\tc\td\t1\tcaf\xe9\tt\n")
    with pytest.raises(ValueError, match=r"line 2: .*UTF-8"):
        list(read_sts(tmp_path / "latin.csv"))
    path = write(*LINES)
    write("", name="empty.csv")
    for call, message in (
        (lambda: convert(path, tmp_path / "out.spacy", expect=5749), r"2 pairs.* 5749"),
        (lambda: convert(path, tmp_path / "out.docbin"), r"\.spacy"),
        (lambda: list(PairCorpus(tmp_path / "none.csv")(NLP)), "no file"),
        (lambda: list(PairCorpus(tmp_path / "empty.csv")(NLP)), "no pairs"),
        (lambda: PairCorpus(tmp_path / "pairs.json"), "Cannot read"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
