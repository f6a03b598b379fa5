"""Reports in a terminal: tables of a fixed width, without markup."""

from spacy_sbert.render.document import Cell, Document, Table, terminal

SCORES = Table(
    "Scores", ("Model", "Kind", "A", "Longer"), [("one", "x", Cell("1.00", (1,)), "2.00"), ("two", "y", "-", "3.5")]
)


def lines_of(table, width=80):
    return terminal(Document("Title", [], [table], ["Seen."]), width).splitlines()


def test_columns_and_notes():
    assert lines_of(SCORES) == [
        "Title",
        "",
        "Scores",
        "======",
        "Model  Kind         A  Longer",
        "-----  ----  --------  ------",
        "one       x  1.00 [1]    2.00",
        "two       y         -     3.5",
        "",
        "Notes",
        "=====",
        "[1] Seen.",
    ]


def test_wide_table_is_transposed():
    wide = Table("Wide", ("Model", *(f"column {n}" for n in range(9))), [("one", *map(str, range(9)))], "Read it so.")
    found = lines_of(wide, 40)
    assert found[4:7] == ["Model     one", "--------  ---", "column 0    0"]
    assert found[-5] == "Read it so." and max(map(len, found)) <= 40


def test_nothing_in_it_steers_the_terminal():
    text = terminal(
        Document("\x1b[31mred", ["a\rb"], [Table("\x07", ("\x9b2J",), [("\x1b]0;title\x07",)])], ["\x08"]), 80
    )
    assert not [character for character in text if character != "\n" and not character.isprintable()]
