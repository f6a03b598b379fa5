"""The files of a data set read as one array, whatever their format; a file that is not what was
written is found.
"""

from shutil import copytree

import numpy
import pytest

from spacy_sbert.bulk import PartVectors, encode_dataset
from spacy_sbert.bulk.dataset_folder import RemoteFolder

pytest.importorskip("pyarrow")
# Of each file
TEXTS = [[f"The cat sat {number} {i}." for i in range(number)] for number in (3, 0, 7, 1)]


@pytest.fixture(scope="module", params=[".npy", ".parquet"])
def made(request, pipeline, tmp_path_factory):
    source = tmp_path_factory.mktemp("texts")
    for number, texts in enumerate(TEXTS):
        rows = "".join(f"{10 * i},{text}\n" for i, text in enumerate(texts))
        (source / f"part{number}.csv").write_text(f"id,text\n{rows}")
    columns = {"id_column": "id", "with_text": True} if request.param == ".parquet" else {}
    folder = tmp_path_factory.mktemp("vectors") / "out"
    encode_dataset(source, folder, pipeline=pipeline, window=2, output=request.param, **columns)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """A copy that a test may damage."""
    return copytree(made, tmp_path / "out")


def test_as_one_array(folder, sbert):
    vectors = PartVectors(folder)
    expected = sbert.encode([text for texts in TEXTS for text in texts])
    assert vectors.shape == expected.shape == (11, 16)
    assert len(vectors) == 11
    assert (
        repr(vectors)
        == f"PartVectors({folder}: 11 vectors of 16 numbers by {vectors.encoder[0]}, 4 parts)"
    )
    assert vectors.encoder[1] == sbert.text_encoder().digest()
    assert numpy.allclose(numpy.concatenate(list(vectors.blocks())), expected, atol=1e-6)
    for start in range(12):
        assert numpy.allclose(
            numpy.concatenate([expected[:0], *vectors.blocks(start)]), expected[start:], atol=1e-6
        )
    rows = numpy.array([10, 0, 3, 9, 3, 5])
    assert numpy.allclose(vectors[rows], expected[rows], atol=1e-6)
    assert vectors[rows].dtype == "float32"


def test_where(folder):
    vectors = PartVectors(folder)
    found = vectors.where(numpy.array([10, 2, 3]))
    suffix = vectors.parts[0].vectors.removeprefix("part0.csv")
    assert [row[:2] for row in found] == [
        (f"part{i}.csv{suffix}", row) for i, row in [(3, 0), (0, 2), (2, 0)]
    ]
    said = [("0", "The cat sat 1 0."), ("20", "The cat sat 3 2."), ("0", "The cat sat 7 0.")]
    assert [row[2:] for row in found] == (said if suffix == ".parquet" else [(None, None)] * 3)


def test_changed_files(folder, tmp_path):
    parts = PartVectors(folder).parts
    path = folder / parts[2].vectors
    data = bytearray(path.read_bytes())
    data[-200] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"{path.name} in .* is not the file"):
        list(PartVectors(folder).blocks())
    path.write_bytes((folder / parts[0].vectors).read_bytes())
    with pytest.raises(ValueError, match=f"{path.name} .* SHA-256"):
        PartVectors(folder)[numpy.array([4])]
    path.unlink()
    with pytest.raises(ValueError, match=f"{path.name} in .* is not the file"):
        PartVectors(folder)[numpy.array([4])]
    (folder / "index.json").unlink()
    for other in (folder, tmp_path):
        with pytest.raises(ValueError, match="is no folder of vectors that is whole"):
            PartVectors(other)


def test_credentials_are_not_shown(folder, monkeypatch):
    files = RemoteFolder(str(folder)).open()
    with monkeypatch.context() as patch:
        patch.setattr(RemoteFolder, "open", lambda place: files)
        vectors = PartVectors("s3://user:key@bucket/folder?region=north")
    assert vectors.name == "s3://bucket/folder?region=north"
    assert "key" not in repr(vectors.place)
    assert vectors.place.address == "s3://user:key@bucket/folder?region=north"
    with pytest.raises(ValueError, match=r"Cannot read the folder other://host/folder") as caught:
        RemoteFolder("other://user:key@host/folder").open()
    assert "key" not in str(caught.value)
