"""Every row of a file is a text, whatever the format, and a bad one has a place; an array or a
table is written.
"""

import csv
import gzip
import sys

import numpy
import pyarrow
import pytest
from pyarrow import parquet

from spacy_sbert.bulk import encode_file, file_encoding
from spacy_sbert.files.tables import TextColumns, read_text_rows

FORMATS = [
    "a.txt",
    "a.txt.gz",
    "a.jsonl",
    "a.jsonl.gz",
    "a.csv",
    "a.csv.gz",
    "a.tsv",
    "a.tsv.gz",
    "a.parquet",
]


@pytest.mark.parametrize("name", ["a.txt.gz", "a.csv", "a.parquet"])
def test_equals_encode(sbert, texts, write_texts, tmp_path, name):
    report = encode_file(sbert, write_texts(name, texts), tmp_path / "out.npy", window=3)
    found = numpy.load(tmp_path / "out.npy", allow_pickle=False)
    expected = sbert.encode(texts, window=3)
    assert found.dtype == numpy.float32
    assert found.shape == (8, 16)
    assert numpy.allclose(found, expected, atol=1e-6)
    assert expected[0].any()
    assert (report.rows, report.zero, report.cut) == (8, 3, 0)
    assert not found[[1, 5, 7]].any()
    assert not (tmp_path / "out.npy.partial").exists()


@pytest.mark.parametrize("name", FORMATS)
def test_rows_with_ids(texts, write_texts, name):
    if name == "a.parquet":
        with pytest.raises(ValueError, match=r"line 2: .*None"):
            list(read_text_rows(write_texts(name, ["one", None]), TextColumns()))
    path = write_texts(name, texts)
    if ".txt" in name:
        with pytest.raises(ValueError, match=r"no column 'id': a \.txt file has a text a line"):
            list(read_text_rows(path, TextColumns(id="id")))
        return
    ids = [str(10 * i) if "sv" in name else 10 * i for i in range(len(texts))]
    assert list(read_text_rows(path, TextColumns(id="id"))) == list(zip(texts, ids, strict=True))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"one\ntw\xff\n", r"a\.txt, line 2"),
        ("a.jsonl", b'{"text": "one"}\n\n["two"]\n', r"a\.jsonl, line 3"),
        ("a.jsonl", b'{"text": "one"}\n{"id": 3}\n', r"line 2: .*'text'"),
        ("a.jsonl", b'{"text": 3.5}\n', r"line 1: .*3\.5"),
        ("a.jsonl", b'{"text": "\\ud83d"}\n', r"line 1: .*UTF-8"),
        ("a.csv", b'text\none\n"two\n', r"a\.csv, line 3"),
        ("a.csv", b"id,text\n1,one\n2\n", r"line 3: .*'text'"),
        ("a.parquet", b"PAR1", r"a\.parquet, record 1"),
        (
            "a.txt.gz",
            gzip.compress(b"one\ntwo\n" * 99, mtime=0)[:-9],
            r"line \d+: the compressed file is damaged",
        ),
        ("a.txt.gz", b"no gzip at all", "line 1: the compressed file is damaged"),
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param("1.5", r"1\.5", id="fraction"),
        pytest.param("null", "None", id="null"),
        pytest.param("true", "True", id="bool"),
        pytest.param(str(2**63), str(2**63), id="too large"),
        pytest.param('"b"', "'id'", id="a str among numbers"),
    ],
)
def test_bad_ids(sbert, tmp_path, given, message):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "one", "id": 1}}\n{{"text": "two", "id": {given}}}\n')
    with pytest.raises(ValueError, match=message):
        encode_file(sbert, path, tmp_path / "out.parquet", id_column="id")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_parquet_equals_npy(sbert, texts, write_texts, tmp_path, dtype):
    path = write_texts("a.jsonl", texts)
    for output in (tmp_path / "out.npy", tmp_path / "out.parquet"):
        encode_file(sbert, path, output, window=3, dtype=dtype)
    vectors = numpy.load(tmp_path / "out.npy", mmap_mode="r")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert vectors.dtype == dtype
    assert numpy.allclose(vectors, sbert.encode(texts, window=3), rtol=2**-10, atol=1e-5)
    numpy.save(tmp_path / "numpy.npy", vectors)
    assert (tmp_path / "out.npy").read_bytes() == (tmp_path / "numpy.npy").read_bytes()
    assert table.column_names == ["row", "vector"]
    assert str(table.schema.field("vector").type).startswith("fixed_size")
    assert table["row"].to_pylist() == list(range(8))
    assert numpy.array_equal(numpy.array(table["vector"].to_pylist(), dtype=dtype), vectors)
    assert parquet.ParquetFile(tmp_path / "out.parquet").num_row_groups == 3


@pytest.mark.parametrize(("name", "kind"), [("a.jsonl", int), ("a.csv", str), ("a.parquet", int)])
def test_parquet_with_ids_and_texts(sbert, texts, write_texts, tmp_path, name, kind):
    output = tmp_path / "sub" / "out.parquet"
    encode_file(sbert, write_texts(name, texts), output, window=3, id_column="id", with_text=True)
    table = parquet.read_table(output)
    assert table.column_names == ["id", "text", "vector"]
    assert table["id"].to_pylist() == [kind(10 * i) for i in range(8)]
    assert table["text"].to_pylist() == texts


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.parquet"])
def test_no_rows(sbert, tmp_path, write_texts, name):
    path = write_texts(name, [])
    if name == "a.parquet":
        parquet.write_table(pyarrow.table({"text": pyarrow.array([], pyarrow.string())}), path)
    for suffix in (".npy", ".parquet"):
        assert encode_file(sbert, path, tmp_path / f"out{suffix}").rows == 0
    assert numpy.load(tmp_path / "out.npy").shape == (0, 16)
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == 0


def test_existing_output(sbert, texts, write_texts, tmp_path):
    path = write_texts("a.txt", texts)
    output = tmp_path / "out.npy"
    output.write_bytes(b"precious")
    with pytest.raises(FileExistsError, match=r"out\.npy is there already.*--overwrite"):
        encode_file(sbert, path, output)
    assert output.read_bytes() == b"precious"
    encode_file(sbert, path, output, overwrite=True)
    assert numpy.load(output).shape == (8, 16)


def test_the_input_is_no_output(sbert, write_texts):
    path = write_texts("a.parquet", ["one"])
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is the input, and was given as the output"):
        encode_file(sbert, path, path, overwrite=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("output", "options", "message"),
    [
        pytest.param("out.json", {}, r"\.npy, \.parquet", id="format"),
        pytest.param("out.npy", {"with_text": True}, "array", id="texts in an array"),
        pytest.param("out.npy", {"id_column": "id"}, "array", id="ids in an array"),
        pytest.param("out.npy", {"dtype": "int8"}, "int8", id="dtype"),
        pytest.param("out.npy", {"gpu_ids": [99]}, "GPU 99", id="GPU"),
    ],
)
def test_options_are_checked(sbert, texts, write_texts, tmp_path, output, options, message):
    with pytest.raises(ValueError, match=message):
        encode_file(sbert, write_texts("a.txt", texts), tmp_path / output, **options)
    assert not list(tmp_path.glob("out*"))


def test_pyarrow_that_is_not_installed(sbert, texts, write_texts, tmp_path, monkeypatch):
    path = write_texts("a.txt", texts)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow. .*spacy-sbert\[parquet\]"):
        encode_file(sbert, path, tmp_path / "out.parquet")
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize(("value", "dtype"), [(numpy.nan, "float32"), (1e6, "float16")])
def test_vectors_that_are_not_finite(
    sbert, texts, write_texts, tmp_path, monkeypatch, value, dtype
):
    """Nor is one that is too large for the dtype made infinite."""

    def broken(*args, **kwargs):
        yield numpy.zeros((3, 16), dtype="float32"), 0
        yield numpy.full((3, 16), value, dtype="float32"), 0

    monkeypatch.setattr(file_encoding, "encode_chunks", broken)
    with pytest.raises(ValueError, match=f"row 3 .* not finite in {dtype}"):
        encode_file(
            sbert,
            write_texts("a.txt", texts),
            tmp_path / "out.npy",
            window=3,
            dtype=dtype,
            restart=True,
        )
    assert not (tmp_path / "out.npy").exists()
