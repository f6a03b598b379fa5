"""Stored vectors index as an array of NumPy does, or refuse by name: forms of an index by classes,
counted.
"""

import hashlib
import os
import shutil
from pathlib import Path

import numpy
import pytest

from spacy_sbert.bulk import FileVectors, PartVectors, encode_dataset, encode_file

pytest.importorskip("pyarrow")
N = 12
TEXTS = [f"The cat sat {i} on the mat." for i in range(N)]
MASK = numpy.arange(N) % 2 == 0
GRID = numpy.zeros((N, 16), dtype=bool)
GRID[3, 5] = GRID[7, 2] = True
FORMS = {
    "0": 0,
    "-1": -1,
    "numpy.int32": numpy.int32(3),
    "out of range": N,
    "negative out of range": -N - 1,
    "slice": slice(1, 5),
    "step": slice(None, None, 3),
    "negative step": slice(None, None, -2),
    "beyond": slice(10, 40),
    "empty slice": slice(5, 5),
    "mask": MASK,
    "list of bool": MASK.tolist(),
    "empty mask": MASK & False,
    "short mask": MASK[:5],
    "mask of numbers": GRID,
    "True": True,
    "False": False,
    **{
        f"rows {kind}": numpy.array([3, 0, 3], dtype=kind)
        for kind in ("i1", "u1", "<i2", ">i4", "u8", "i8")
    },
    "negative rows": numpy.array([-1, -N, 2]),
    "rows out of range": numpy.array([0, N]),
    "list": [5, 1, 5],
    "empty list": [],
    "rows of two dimensions": [[0, 1], [-1, 3]],
    "ragged": [[0, 1], [2]],
    "float": 1.0,
    "floats": [0.0, 1.0],
    "str": "0",
    "tuple of one": (3,),
    "empty tuple": (),
    "number": (3, 5),
    "rows and columns": ([0, 3], [5, -1]),
    "columns": (slice(None), slice(0, 16, 5)),
    "mask and columns": (MASK, slice(2)),
    "too many": (0, 0, 0),
    "Ellipsis": ...,
    "Ellipsis, column": (..., 0),
    "None": None,
    "None, row": (None, 3),
    "row, None": (3, None),
}
CLASSES = ["file.npy", "file.parquet", "parts.npy", "parts.parquet"]


@pytest.fixture(scope="module")
def stored(pipeline, sbert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    (folder / "texts").mkdir()
    for name, part in {
        "all.txt": TEXTS,
        "texts/a.txt": TEXTS[:5],
        "texts/b.txt": TEXTS[5:],
    }.items():
        (folder / name).write_text("\n".join(part) + "\n", encoding="utf8")
    made = {}
    for suffix in (".npy", ".parquet"):
        encode_file(sbert, folder / "all.txt", folder / f"all{suffix}", window=5)
        made[f"file{suffix}"] = FileVectors(folder / f"all{suffix}")
        encode_dataset(folder / "texts", folder / suffix, pipeline=pipeline, output=suffix)
        made[f"parts{suffix}"] = PartVectors(folder / suffix)
    return made


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("form", FORMS)
def test_as_numpy_or_refused(stored, kind, form):
    vectors = stored[kind]
    index = FORMS[form]
    array = numpy.asarray(vectors)
    try:
        expected = array[index]
    except (IndexError, ValueError):
        with pytest.raises(IndexError, match=r"Cannot take .*, vectors of shape \(12, 16\)"):
            vectors[index]
    else:
        assert numpy.array_equal(vectors[index], expected)
        assert vectors[index].shape == expected.shape
        assert vectors[index].dtype == "float32"


@pytest.mark.parametrize("kind", CLASSES)
def test_as_an_array(stored, sbert, kind):
    vectors = stored[kind]
    array = numpy.asarray(vectors)
    assert numpy.allclose(array, sbert.encode(TEXTS), atol=1e-6)
    assert (vectors.shape, vectors.dtype, vectors.ndim, len(vectors)) == ((N, 16), "float32", 2, N)
    assert numpy.array_equal(list(vectors), array)
    assert numpy.asarray(vectors, dtype="float64").dtype == "float64"
    assert numpy.array_equal(numpy.eye(N) @ vectors, numpy.eye(N) @ array)
    with pytest.raises(TypeError):
        vectors[0] = 1
    if numpy.lib.NumpyVersion(numpy.__version__) >= "2.0.0":
        with pytest.raises(ValueError, match="without a copy"):
            numpy.asarray(vectors, copy=False)


def test_where_takes_the_same_rows(stored):
    where = stored["parts.npy"].where
    assert where([-1]) == where(numpy.array([11])) == [("b.txt.npy", 6, None, None)]
    assert where(MASK) == where(numpy.flatnonzero(MASK))
    assert len(where(slice(3))) == 3
    with pytest.raises(IndexError, match="Cannot take"):
        where([N])


@pytest.mark.parametrize("kind", CLASSES)
def test_a_replaced_file_is_refused(stored, kind):
    vectors = stored[kind]
    path = (
        vectors.path
        if kind.startswith("file")
        else vectors.place.address + "/" + vectors.parts[0].vectors
    )
    with open(path, "rb") as file:
        data = file.read()
    time = os.stat(path).st_mtime
    try:
        with open(path, "wb") as file:
            file.write(data[:-8] + b"\0" * 8)
        os.utime(path, (time + 10, time + 10))
        with pytest.raises(ValueError, match=r"was changed since|is not the file that was written"):
            vectors[0]
    finally:
        with open(path, "wb") as file:
            file.write(data)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("times", ["of the other file", "of the file"])
def test_a_file_replaced_by_one_that_is_as_old_is_refused(stored, kind, times, tmp_path):
    vectors = stored[kind]
    path = (
        vectors.path
        if kind.startswith("file")
        else Path(vectors.place.address, vectors.parts[0].vectors)
    )
    other = tmp_path / path.name
    stat = path.stat()
    other.write_bytes(path.read_bytes()[:-8] + b"\0" * 8)
    os.utime(
        other, ns=(1, 1) if times == "of the other file" else (stat.st_atime_ns, stat.st_mtime_ns)
    )
    shutil.move(path, tmp_path / "before")
    try:
        shutil.move(other, path)
        again = vectors if kind.startswith("file") else PartVectors(vectors.place.address)
        for opened in (vectors, again):
            with pytest.raises(
                ValueError, match=r"was changed since|is not the file that was written"
            ):
                opened[0]
    finally:
        shutil.move(tmp_path / "before", path)
    # moved, but the same
    assert vectors[0].any()


def test_a_copied_folder_is_compared_once(stored, tmp_path, monkeypatch):
    shutil.copytree(stored["parts.npy"].place.address, tmp_path / "copy")
    for path in (tmp_path / "copy").glob("*.npy"):
        path.touch()
    vectors = PartVectors(tmp_path / "copy")
    compared = []
    digest = hashlib.file_digest
    monkeypatch.setattr(
        hashlib, "file_digest", lambda *given: compared.append(given) or digest(*given)
    )
    for _ in range(3):
        vectors[0]
    assert len(compared) == 1
