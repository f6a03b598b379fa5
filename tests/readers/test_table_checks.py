"""Odd rows: inverted scores, contradictions, repeated rows, and dev rows that also stand in the
training file.
"""

import pytest
from helpers.invoking import said as run
from helpers.made_tables import text, write_rows

from spacy_sbert.readers.examples import Row
from spacy_sbert.readers.table_checks import character_similarity, find_leak, scan_rows

ALIKE = [
    ("A man eats his food.", "A man eats the food."),
    ("My card was lost.", "My card was lost!"),
] * 2
UNLIKE = [
    ("A man eats his food.", "It rains now."),
    ("Is it free?", "My card was lost."),
    ("Go on!", "We like books."),
]
HEADER = ("one", "two", "score")


@pytest.mark.parametrize(
    ("alike", "unlike", "is_odd"),
    [(0.1, 0.9, True), (0, 1, True), (0.9, 0.1, False), (0.5, 0.6, 0)],
)
def test_inverted_scores(alike, unlike, is_odd):
    scored = [(pair, alike) for pair in ALIKE] + [(pair, unlike) for pair in UNLIKE]
    rows = [Row(pair, line, score=score) for line, (pair, score) in enumerate(scored, 2)]
    messages = [
        finding.message
        for finding in scan_rows(rows).findings("a.csv")
        if "inverted" in finding.message
    ]
    assert len(messages) == bool(is_odd)
    if is_odd:
        assert f"{alike:.2f} of 0 to 1 for 4 pairs" in messages[0]
        assert f"{unlike:.2f} for 3 pairs" in messages[0]


def test_scores_that_may_be_lower_by_chance():
    scored = [(pair, score) for pair, score in zip(ALIKE, (0, 0.9, 0.1, 0.2), strict=True)]
    scored += [(pair, score) for pair, score in zip(UNLIKE, (1, 0, 0.7), strict=True)]
    rows = [Row(pair, line, score=score) for line, (pair, score) in enumerate(scored, 2)]
    assert not any("inverted" in finding.message for finding in scan_rows(rows).findings("a.csv"))


@pytest.mark.parametrize(
    ("text", "other", "is_same"),
    [
        ("Where is my card?", "where is  my card", True),
        ("He said \u201cyes\u201d.", "he said yes", True),
        ("Stra\u00dfe", "STRASSE", True),
        ("\uff21\uff22", "ab", True),
        ("zero\u200bwidth \ufeffmark", "zerowidth mark", True),
        ("It costs 3.5.", "It costs 35.", False),
        ("C++", "C#", False),
        ("I like it \U0001f600", "I like it \U0001f621", False),
        ("!!!", "???", False),
    ],
)
def test_texts_that_are_the_same(text, other, is_same):
    scanned = scan_rows([Row((text,), 2, label="x"), Row((other,), 3, label="y")])
    assert scanned.contradicting == ([3] if is_same else [])
    assert len(find_leak(scanned, [Row((other,), 2, label="z")], "d", "t")) == 1


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        (["Entailment", "entailment", "neutral"], "'Entailment', 'entailment'"),
        (["not_entailment", "not entailment", "entailment"], "'not entailment', 'not_entailment'"),
        (["re\u2013order", "re-order", "cancel"], "'re-order', 're\u2013order'"),
        (["card\u200b", "card", "loan"], "'card', 'card\\u200b'"),
        (["-1", "1", "0"], None),
        (["C", "C++", "C#"], None),
    ],
)
def test_labels_that_differ_in_spelling_alone(labels, named):
    rows = [
        Row((f"text {number}",), number, label=label) for number, label in enumerate(labels * 2)
    ]
    messages = [finding.message for finding in scan_rows(rows).findings("a.csv")]
    assert len(messages) == (named is not None)
    assert not named or f"the labels {named} are read as different ones" in messages[0]


def test_character_similarity():
    assert character_similarity("ab", "AB ") == 1
    assert character_similarity("abc", "xyz") == 0
    # " ab", "abc", "bc " and " ab", "abd", "bd "
    assert character_similarity("abc", "abd") == 2 * 1 / 6


def test_contradictions_and_repetitions():
    rows = [
        Row(("a", "b"), 2, score=0.5),
        Row(("b", "a"), 5, score=0.5),
        Row(("a", "b"), 6, score=0.25),
        None,
    ]
    scanned = scan_rows(rows)
    assert (scanned.count, scanned.repeated, scanned.contradicting) == (3, [5], [6])
    rows = [
        Row(("a", "b"), 2, label="x"),
        Row(("b", "a"), 5, label="y"),
        Row(("a", "b"), 6, label="y"),
    ]
    # Labels may depend on the order
    assert (scan_rows(rows).repeated, scan_rows(rows).contradicting) == (
        [],
        [6],
    )
    many = [*rows, *(Row((f"{i}", "b"), i, label="x") for i in range(7, 200))]
    assert [finding.is_rare for finding in scan_rows(many).findings("a")] == [True]
    (finding,) = find_leak(
        scan_rows(rows), [Row(("a", "b"), 3, label="x"), Row(("c", "b"), 4, label="x")], "d", "t"
    )
    assert "d: 1 of 2 rows also stand in t (line 3)" in finding.message
    assert not finding.is_rare


def test_init_config_says_what_is_odd(tmp_path):
    train = [(text(), text(size=4), i % 5) for i in range(40)]
    dev = [(text(), text(size=4), i % 5) for i in range(38)]
    train[7] = (*train[3][:2], 4 - train[3][2] + 0.5)
    train[9] = train[8]
    paths = [
        write_rows(tmp_path / "train.csv", HEADER, train),
        write_rows(tmp_path / "dev.csv", HEADER, [*dev, *train[:2]]),
    ]
    said = run("init-config", *paths, "-o", tmp_path / "a.cfg")
    assert "[sbert-gold-contradicts]" in said
    assert "1 of 40 rows have the texts of a row before them" in said
    assert "[sbert-rows-repeated]" in said
    assert "(line 11)" in said
    assert "(line 9)" in said
    assert "[sbert-dev-in-train]" in said
    assert "2 of 40 rows also stand in" in said
    assert "(lines 40, 41)" in said


def test_convert_says_what_is_odd(tmp_path):
    rows = [(text(), text(size=4), "Same" if i % 2 else "same") for i in range(20)]
    path = write_rows(tmp_path / "a.csv", ("one", "two", "label"), rows)
    said = run("convert", path, tmp_path / "a.spacy")
    assert "[sbert-labels-alike]" in said
    assert "'Same', 'same'" in said
