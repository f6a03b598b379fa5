"""What is written: an array, or a table."""

import sys

import numpy
import pytest

from spacy_sbert.bulk import encode_file, file_encoding

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_parquet_equals_npy(sbert, texts, write_texts, tmp_path, dtype):
    path = write_texts("a.jsonl", texts)
    for output in (tmp_path / "out.npy", tmp_path / "out.parquet"):
        encode_file(sbert, path, output, window=3, dtype=dtype)
    vectors, table = numpy.load(tmp_path / "out.npy", mmap_mode="r"), parquet.read_table(tmp_path / "out.parquet")
    assert vectors.dtype == dtype and numpy.allclose(vectors, sbert.encode(texts, window=3), rtol=2**-10, atol=1e-5)
    numpy.save(tmp_path / "numpy.npy", vectors)
    assert (tmp_path / "out.npy").read_bytes() == (tmp_path / "numpy.npy").read_bytes()
    assert table.column_names == ["row", "vector"] and str(table.schema.field("vector").type).startswith("fixed_size")
    assert table["row"].to_pylist() == list(range(8))
    assert numpy.array_equal(numpy.array(table["vector"].to_pylist(), dtype=dtype), vectors)
    assert parquet.ParquetFile(tmp_path / "out.parquet").num_row_groups == 3


@pytest.mark.parametrize(("name", "kind"), [("a.jsonl", int), ("a.csv", str), ("a.parquet", int)])
def test_parquet_with_ids_and_texts(sbert, texts, write_texts, tmp_path, name, kind):
    output = tmp_path / "sub" / "out.parquet"
    encode_file(sbert, write_texts(name, texts), output, window=3, id_column="id", with_text=True)
    table = parquet.read_table(output)
    assert table.column_names == ["id", "text", "vector"]
    assert table["id"].to_pylist() == [kind(10 * i) for i in range(8)] and table["text"].to_pylist() == texts


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.parquet"])
def test_no_rows(sbert, tmp_path, write_texts, name):
    path = write_texts(name, [])
    if name == "a.parquet":
        import pyarrow

        parquet.write_table(pyarrow.table({"text": pyarrow.array([], pyarrow.string())}), path)
    for suffix in (".npy", ".parquet"):
        assert encode_file(sbert, path, tmp_path / f"out{suffix}").rows == 0
    assert numpy.load(tmp_path / "out.npy").shape == (0, 16)
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == 0


def test_existing_output(sbert, texts, write_texts, tmp_path):
    path, output = write_texts("a.txt", texts), tmp_path / "out.npy"
    output.write_bytes(b"precious")
    with pytest.raises(FileExistsError, match=r"out\.npy is there already.*--overwrite"):
        encode_file(sbert, path, output)
    assert output.read_bytes() == b"precious"
    encode_file(sbert, path, output, overwrite=True)
    assert numpy.load(output).shape == (8, 16)
    path = write_texts("a.parquet", ["one"])
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is the input, and was given as the output"):
        encode_file(sbert, path, path, overwrite=True)
    assert path.read_bytes() == before


def test_options_are_checked(sbert, texts, write_texts, tmp_path, monkeypatch):
    path = write_texts("a.txt", texts)
    for output, options, message in (
        ("out.json", {}, r"\.npy, \.parquet"),
        ("out.npy", {"with_text": True}, "array"),
        ("out.npy", {"id_column": "id"}, "array"),
        ("out.npy", {"dtype": "int8"}, "int8"),
        ("out.npy", {"gpu_ids": [99]}, "GPU 99"),
    ):
        with pytest.raises(ValueError, match=message):
            encode_file(sbert, path, tmp_path / output, **options)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"Writing .*out\.parquet needs pyarrow. .*spacy-sbert\[parquet\]"):
        encode_file(sbert, path, tmp_path / "out.parquet")
    assert not list(tmp_path.glob("out*"))


def test_vectors_that_are_not_finite(sbert, texts, write_texts, tmp_path, monkeypatch):
    """Nor is one that is too large for the dtype made infinite."""
    for value, dtype in ((numpy.nan, "float32"), (1e6, "float16")):

        def broken(*args, value=value, **kwargs):
            yield numpy.zeros((3, 16), dtype="float32"), 0
            yield numpy.full((3, 16), value, dtype="float32"), 0

        monkeypatch.setattr(file_encoding, "encode_windows", broken)
        with pytest.raises(ValueError, match=f"vector of row 3 .from 0. is not finite in {dtype}"):
            encode_file(sbert, write_texts("a.txt", texts), tmp_path / "out.npy", window=3, dtype=dtype, restart=True)
        assert not (tmp_path / "out.npy").exists()
