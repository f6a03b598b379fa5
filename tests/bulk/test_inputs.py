"""Every row of a file is a text, whatever the format, and a bad one has a place."""

import csv
import gzip

import numpy
import pytest

from spacy_sbert.bulk import encode_file
from spacy_sbert.files.tables import TextColumns, read_text_rows

FORMATS = ["a.txt", "a.txt.gz", "a.jsonl", "a.jsonl.gz", "a.csv", "a.csv.gz", "a.tsv", "a.tsv.gz", "a.parquet"]


def read(path, columns=None):
    return list(read_text_rows(path, columns or TextColumns()))


@pytest.mark.parametrize("name", ["a.txt.gz", "a.csv", "a.parquet"])
def test_equals_encode(sbert, texts, write_texts, tmp_path, name):
    report = encode_file(sbert, write_texts(name, texts), tmp_path / "out.npy", window=3)
    found = numpy.load(tmp_path / "out.npy", allow_pickle=False)
    expected = sbert.encode(texts, window=3)
    assert found.dtype == numpy.float32 and found.shape == (8, 16)
    assert numpy.allclose(found, expected, atol=1e-6) and expected[0].any()
    assert (report.rows, report.zero, report.cut) == (8, 3, 0)
    assert not found[[1, 5, 7]].any() and not (tmp_path / "out.npy.partial").exists()


@pytest.mark.parametrize("name", FORMATS)
def test_rows_with_ids(texts, write_texts, name):
    if name == "a.parquet":
        with pytest.raises(ValueError, match=r"line 2: .*None"):
            read(write_texts(name, ["one", None]))
    path = write_texts(name, texts)
    if ".txt" in name:
        with pytest.raises(ValueError, match=r"no column 'id': a \.txt file has a text a line"):
            read(path, TextColumns(id="id"))
        return
    ids = [str(10 * i) if "sv" in name else 10 * i for i in range(len(texts))]
    assert read(path, TextColumns(id="id")) == list(zip(texts, ids, strict=True))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"one\ntw\xff\n", r"a\.txt, line 2"),
        ("a.jsonl", b'{"text": "one"}\n\n{"text": "two"}\n', r"a\.jsonl, line 2"),
        ("a.jsonl", b'{"text": "one"}\n{"id": 3}\n', r"line 2: .*'text'"),
        ("a.jsonl", b'{"text": 3.5}\n', r"line 1: .*3\.5"),
        ("a.jsonl", b'{"text": "\\ud83d"}\n', r"line 1: .*UTF-8"),
        ("a.csv", b'text\none\n"two\n', r"a\.csv, line 3"),
        ("a.csv", b"id,text\n1,one\n2\n", r"line 3: .*'text'"),
        ("a.parquet", b"PAR1", r"a\.parquet, record 1"),
        ("a.txt.gz", gzip.compress(b"one\ntwo\n" * 99, mtime=0)[:-9], "damaged"),
        ("a.docx", b"", r"\.csv, \.jsonl, \.parquet, \.tsv, \.txt"),
        ("a.parquet.gz", b"", r"\.parquet"),
    ],
)
def test_bad_rows(sbert, tmp_path, name, content, message):
    """They are found before anything is encoded, and leave nothing."""
    with pytest.raises(FileNotFoundError, match=name):
        encode_file(sbert, tmp_path / name, tmp_path / "out.npy")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        encode_file(sbert, tmp_path / name, tmp_path / "out.npy", window=1)
    assert [path.name for path in tmp_path.iterdir() if path.name != "bert"] == [name]
    assert csv.field_size_limit() == 131072


def test_bad_ids(sbert, tmp_path):
    path = tmp_path / "a.jsonl"
    number = str(2**63)
    for given, message in (("1.5", "1.5"), ("null", "None"), ("true", "True"), (number, number), ('"b"', "'id'")):
        path.write_text(f'{{"text": "one", "id": 1}}\n{{"text": "two", "id": {given}}}\n')
        with pytest.raises(ValueError, match=message):
            encode_file(sbert, path, tmp_path / "out.parquet", id_column="id")
