"""Texts are encoded once: `search`, `mine`, `cluster` and `visualize` take the vectors that
`encode` wrote.
"""

import re
from pathlib import Path

import numpy
import pytest
from helpers.invoking import said
from helpers.made_pages import data_of

from spacy_sbert import SentenceBert
from spacy_sbert.bulk import FileVectors
from spacy_sbert.files.tables import TextColumns

TEXTS = [
    "the cat sat on the mat",
    "",
    "a dog ran",
    "the dog ran",
    " ",
    "food for the man",
    "the cat sat on a mat",
]
QUERY = "the dog ran"


@pytest.fixture(autouse=True)
def folder(nlp_folder):
    (nlp_folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    return nlp_folder


@pytest.fixture
def encoded(monkeypatch):
    """The texts that the pipe is given."""
    texts = []
    encode = SentenceBert.encode

    def counted(self, given, **options):
        texts.extend(given)
        return encode(self, given, **options)

    monkeypatch.setattr(SentenceBert, "encode", counted)
    return texts


def encode(name="vectors.npy", *options):
    said("encode", "texts.txt", name, "--pipeline", "nlp", "--quiet", *options)
    return name


SEARCH = ("search", "nlp", "texts.txt", QUERY, "-k", 3, "--output")
COMMANDS = {
    "search": lambda output: (*SEARCH, output),
    "index": lambda output: (*SEARCH, output, "--index", f"{output}.index", "--kind", "flat"),
    "mine": lambda output: ("mine", "nlp", "texts.txt", output, "-k", 4),
    "cluster": lambda output: (
        "cluster",
        "nlp",
        "texts.txt",
        output,
        "-m",
        "hierarchical",
        "-n",
        3,
    ),
}


@pytest.mark.parametrize(
    ("command", "name"),
    [*((command, "vectors.npy") for command in COMMANDS), ("search", "vectors.parquet")],
)
def test_same_results_as_of_the_texts(folder, encoded, command, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    if command == "index":
        pytest.importorskip("faiss")
    encode(name)
    said(*COMMANDS[command]("expected.tsv"))
    assert set(encoded) >= {text for text in TEXTS if text.strip()}
    encoded.clear()
    said(*COMMANDS[command]("found.tsv"), "--vectors", name)
    expected, found = ((folder / f"{which}.tsv").read_text() for which in ("expected", "found"))
    assert found == expected
    assert len(found.splitlines()) > 3
    assert encoded == ([QUERY] if command in ("search", "index") else [])


@pytest.mark.parametrize("style", ["heatmap", "map"])
def test_visualize_vectors(style, monkeypatch):
    vectors = encode()
    drawn = ("--style", style, "--limit", 4)
    said("visualize", "nlp", "texts.txt", "expected.html", *drawn)
    monkeypatch.setattr(SentenceBert, "predict", None)
    said("visualize", "nlp", "texts.txt", "found.html", *drawn, "--vectors", vectors)
    pages = [Path(f"{name}.html").read_text() for name in ("expected", "found")]
    expected, found = (re.findall(r"-?\d\.\d+", page) for page in pages)
    assert len(found) >= 4
    assert all(text in pages[1] for text in ("a dog ran", "food"))
    if style == "map":
        assert numpy.allclose(numpy.array(found, float), numpy.array(expected, float), atol=1e-4)
    assert "--vectors" in said(
        "visualize", "nlp", "texts.txt", "x.html", "--sentences", "--vectors", vectors, code=1
    )


@pytest.mark.parametrize(
    ("method", "table"),
    [
        (("-m", "hierarchical", "-n", 3), "clusters.tsv"),
        (("-t", 0.9, "--min-size", 2), "clusters.jsonl"),
    ],
)
def test_visualize_clusters(folder, encoded, method, table, monkeypatch):
    """Encoded once: the table that `cluster` writes has the same texts in the same order, without
    the blank lines.
    """
    vectors = encode()
    drawn = ("--style", "map", "--labels", "cluster", "--terms")
    said("cluster", "nlp", "texts.txt", table, "--vectors", vectors, *method)
    said("visualize", "nlp", table, "expected.html", *drawn)
    monkeypatch.setattr(SentenceBert, "predict", None)
    encoded.clear()
    said("visualize", "nlp", table, "found.html", *drawn, "--vectors", vectors)
    expected, found = (
        data_of((folder / f"{name}.html").read_text("utf8")) for name in ("expected", "found")
    )
    assert found["texts"] == [text for text in TEXTS if text.strip()]
    assert encoded == []
    assert all(found[key] == expected[key] for key in ("texts", "group", "names"))
    numpy.testing.assert_allclose(found["places"], expected["places"], atol=0.2)
    lines = (folder / table).read_text().splitlines(keepends=True)
    (folder / f"swapped-{table}").write_text("".join([*lines[:-2], lines[-1], lines[-2]]))
    said("visualize", "nlp", f"swapped-{table}", "new.html", *drawn, "--vectors", vectors, code=1)


def test_vectors_of_a_copy_of_the_texts(folder):
    vectors = Path(encode())
    copy = folder / "copy.txt"
    copy.write_text("\n\n" + "\n".join(filter(str.strip, TEXTS)))
    found = FileVectors(vectors).of_texts(folder / "texts.txt", TextColumns())
    assert numpy.array_equal(FileVectors(vectors).of_texts(copy, TextColumns()), found)
    assert found.all(axis=1).all()
    copy.write_text("\n".join(reversed(TEXTS)))
    with pytest.raises(ValueError, match=r"vectors\.npy"):
        FileVectors(vectors).of_texts(copy, TextColumns())


def test_vectors_of_something_else(folder, make_nlp):
    vectors = encode()
    other = folder / "other.txt"

    def refused(corpus="texts.txt", *options, by=vectors, pipeline="nlp"):
        return said("mine", pipeline, corpus, "new.tsv", "--vectors", by, *options, code=1)

    other.write_text("\n".join(reversed(TEXTS)) + "\n")
    assert "other texts" in refused(other)
    other.write_text("\n".join(TEXTS[:-1]) + "\n")
    assert str(len(TEXTS)) in refused(other)
    assert str(len(TEXTS) - 1) in refused(other)
    (folder / "table.csv").write_text(
        '"text","body"\n' + "".join(f'"{text}","{text}."\n' for text in TEXTS)
    )
    said("encode", "table.csv", "table.npy", "--pipeline", "nlp", "--quiet")
    assert "other texts" in refused("table.csv", "--column", "body", by="table.npy")
    make_nlp(model={"pooling": "max"}).to_disk("max")
    assert "encoder" in refused(pipeline="max")
    assert "short.npy" in refused(by=encode("short.npy", "--truncate-dim", 8))
    record = folder / "vectors.npy.json"
    sealed = record.read_text()
    record.write_text(sealed.replace('"rows": 7', '"rows": 8'))
    refused()
    record.unlink()
    refused()
    record.write_text(sealed)
    array = numpy.load(vectors)
    array[0, 0] += 1
    numpy.save(vectors, array)
    assert "vectors.npy" in refused()


def test_file_beside_the_output_is_not_overwritten(folder):
    record = folder / "vectors.npy.json"
    record.write_text("{}")
    options = ("encode", "texts.txt", "vectors.npy", "--pipeline", "nlp", "--quiet")
    assert "vectors.npy.json" in said(*options, code=1)
    assert record.read_text() == "{}"
    said(*options, "--overwrite")
    found = FileVectors(folder / "vectors.npy")
    assert len(found) == len(TEXTS)
    assert found.shape[1] == 16
    assert repr(found).endswith(f"vectors.npy: 7 vectors of 16 numbers by {found.encoder[0]})")
    rows = FileVectors(Path(encode("half.npy", "--dtype", "float16"))).of_texts(
        folder / "texts.txt", TextColumns()
    )
    assert rows.dtype == "float32"
    assert rows.shape == (5, 16)
