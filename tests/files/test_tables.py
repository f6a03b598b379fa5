"""Tables and texts: whoever reads a file gets the same of it."""

import gzip
import json

import pytest
import spacy

from spacy_sbert.cli.visualize import read_texts
from spacy_sbert.files.tables import TextColumns, by_name, read_delimited, read_table, read_text_rows
from spacy_sbert.files.text_lines import read_lines, read_objects
from spacy_sbert.readers import PairCorpus, convert
from spacy_sbert.search.corpus_search import read_corpus

LONG = "x" * 200_000  # characters: csv by itself reads 131,072
TEXTS = [LONG, 'the "cat", sat', "on\u2028the\x85mat", "a dog"]


@pytest.fixture(params=["a.csv.gz", "a.tsv", "a.jsonl"])
def table(request, tmp_path):
    path = tmp_path / request.param
    if ".csv" in request.param:
        lines = ["id,text", *('{},"{}"'.format(i, text.replace('"', '""')) for i, text in enumerate(TEXTS))]
    elif ".tsv" in request.param:
        lines = ["id\ttext", *(f"{i}\t{text}" for i, text in enumerate(TEXTS))]
    else:
        lines = [json.dumps({"id": i, "text": text}) for i, text in enumerate(TEXTS)]
    data = ("\n".join(lines) + "\n").encode("utf8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_all_commands_take_the_same_texts(table, tmp_path):
    """encode, convert, train, visualize and search."""
    assert [row.text for row in read_text_rows(table, TextColumns())] == TEXTS
    nlp = spacy.blank("en")
    nlp.tokenizer = lambda text: spacy.tokens.Doc(nlp.vocab, words=[text])
    assert convert(table, tmp_path / "out.spacy", members=["text"]) == len(TEXTS)
    assert [example.reference.text.strip() for example in PairCorpus(table, members=["text"])(nlp)] == TEXTS
    assert read_texts(table, label="id") == (TEXTS, ["0", "1", "2", "3"])
    assert read_corpus(table).texts == TEXTS
    if table.suffix == ".tsv":
        assert read_corpus(table, "1", header=False).texts == ["text", *TEXTS]


def test_blank_lines(tmp_path):
    path = tmp_path / "a.txt"
    for delimiter in (",", "\t"):
        path.write_text("a\n\nb\n \n")
        every = [(1, ["a"]), (2, [""]), (3, ["b"]), (4, [" "])]
        assert list(read_delimited(path, delimiter=delimiter)) == [(1, ["a"]), (3, ["b"])]
        assert list(read_delimited(path, delimiter=delimiter, keep_blank=True)) == every
        path.write_text(f"a{delimiter}c\n\nb{delimiter}d\n \n")
        every = [(1, ["a", "c"]), (2, [""]), (3, ["b", "d"])]
        assert list(read_delimited(path, delimiter=delimiter, keep_blank=True)) == every
    (tmp_path / "a.jsonl").write_text('\n{"a": 1}\n')
    assert list(read_objects(tmp_path / "a.jsonl")) == [(2, {"a": 1})]
    with pytest.raises(ValueError, match=r"a\.jsonl, line 1: expected a JSON object"):
        list(read_objects(tmp_path / "a.jsonl", keep_blank=True))


def test_columns_by_name_or_number(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(" b \ta\tc\n1\t2\t3\n4\t5\n")
    assert next(by_name(read_delimited(path, delimiter="\t"), ["a", "b"], path)) == (2, ["2", "1"])
    with pytest.raises(ValueError, match="line 3: 2 columns, but the first line has 3"):
        list(read_table(path, ["1"], header=False))
    with pytest.raises(ValueError, match="line 3: no column 'c', the line has only 2 columns"):
        list(read_table(path, ["c"]))
    with pytest.raises(ValueError, match="expected a number counted from 0"):
        list(read_table(path, ["a"], header=False))
    path.write_text("")
    assert list(read_table(path, ["a"])) == []
    with pytest.raises(ValueError, match=r"ends in one of \.csv, \.jsonl, \.parquet, \.tsv"):
        read_table(tmp_path / "a.docx", ["a"])


def test_byte_order_mark(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\n")
    assert list(read_lines(tmp_path / "a.txt")) == [(1, "one\n")]
