"""Texts are encoded once: `search`, `mine`, `cluster` and `visualize` take the vectors that `encode` wrote."""

import re

import numpy
import pytest
from made_pages import data_of
from pipelines import run_command as run

from spacy_sbert import SentenceBert
from spacy_sbert.bulk import FileVectors
from spacy_sbert.files.tables import TextColumns

TEXTS = ["the cat sat on the mat", "", "a dog ran", "the dog ran", " ", "food for the man", "the cat sat on a mat"]
QUERY = "the dog ran"


@pytest.fixture
def corpus(nlp_folder):
    path = nlp_folder / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


@pytest.fixture
def encoded(monkeypatch):
    """The texts that the pipe is given."""
    texts, encode = [], SentenceBert.encode

    def counted(self, given, **options):
        texts.extend(given)
        return encode(self, given, **options)

    monkeypatch.setattr(SentenceBert, "encode", counted)
    return texts


def encode(corpus, name="vectors.npy", *options, pipeline="nlp"):
    output = corpus.parent / name
    run("encode", corpus, output, "--pipeline", corpus.parent / pipeline, "--quiet", *options)
    return output


COMMANDS = {
    "search": lambda nlp, corpus, output: ("search", nlp, corpus, QUERY, "-k", 3, "--output", output),
    "index": lambda nlp, corpus, output: (
        *("search", nlp, corpus, QUERY, "-k", 3, "--output", output),
        *("--index", output.with_suffix(".index"), "--kind", "flat"),
    ),
    "mine": lambda nlp, corpus, output: ("mine", nlp, corpus, output, "-k", 4),
    "cluster": lambda nlp, corpus, output: ("cluster", nlp, corpus, output, "-m", "hierarchical", "-n", 3),
}


@pytest.mark.parametrize(
    ("command", "name"), [*((command, "vectors.npy") for command in COMMANDS), ("search", "vectors.parquet")]
)
def test_same_results_as_of_the_texts(corpus, encoded, command, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    if command == "index":
        pytest.importorskip("faiss")
    nlp, vectors = corpus.parent / "nlp", encode(corpus, name)
    expected, found = corpus.parent / "expected.tsv", corpus.parent / "found.tsv"
    run(*COMMANDS[command](nlp, corpus, expected))
    assert set(encoded) >= {text for text in TEXTS if text.strip()}
    encoded.clear()
    run(*COMMANDS[command](nlp, corpus, found), "--vectors", vectors)
    assert found.read_text() == expected.read_text() and len(found.read_text().splitlines()) > 3
    assert encoded == ([QUERY] if command in ("search", "index") else [])


@pytest.mark.parametrize("style", ["heatmap", "map"])
def test_visualize_vectors(corpus, encoded, style, monkeypatch):
    nlp, vectors = corpus.parent / "nlp", encode(corpus)
    pages = [corpus.parent / "expected.html", corpus.parent / "found.html"]
    run("visualize", nlp, corpus, pages[0], "--style", style, "--limit", 4)
    monkeypatch.setattr(SentenceBert, "predict", None)
    run("visualize", nlp, corpus, pages[1], "--style", style, "--limit", 4, "--vectors", vectors)
    expected, found = (re.findall(r"-?\d\.\d+", page.read_text()) for page in pages)
    assert len(found) >= 4 and all(text in pages[1].read_text() for text in ("a dog ran", "food"))
    if style == "map":
        assert numpy.allclose(numpy.array(found, float), numpy.array(expected, float), atol=1e-4)
    assert run("visualize", nlp, corpus, pages[1], "--sentences", "--vectors", vectors, code=1).count("--vectors")


@pytest.mark.parametrize(
    ("method", "name"),
    [(("-m", "hierarchical", "-n", 3), "clusters.tsv"), (("-t", 0.9, "--min-size", 2), "clusters.jsonl")],
)
def test_visualize_clusters(corpus, encoded, method, name, monkeypatch):
    """Encoded once: the table that `cluster` writes has the same texts in the same order, without the blank lines."""
    nlp, vectors, table = corpus.parent / "nlp", encode(corpus), corpus.parent / name
    run("cluster", nlp, corpus, table, "--vectors", vectors, *method)
    pages = [corpus.parent / "expected.html", corpus.parent / "found.html"]
    drawn = ("--style", "map", "--labels", "cluster", "--terms")
    run("visualize", nlp, table, pages[0], *drawn)
    monkeypatch.setattr(SentenceBert, "predict", None)
    encoded.clear()
    run("visualize", nlp, table, pages[1], *drawn, "--vectors", vectors)
    expected, found = (data_of(page.read_text(encoding="utf8")) for page in pages)
    assert found["texts"] == [text for text in TEXTS if text.strip()] and encoded == []
    assert {key: found[key] for key in ("texts", "group", "names")} == {
        key: expected[key] for key in ("texts", "group", "names")
    }
    numpy.testing.assert_allclose(found["places"], expected["places"], atol=0.2)
    lines = table.read_text().splitlines(keepends=True)
    swapped = table.with_name(f"swapped-{name}")
    swapped.write_text("".join([*lines[:-2], lines[-1], lines[-2]]))
    run("visualize", nlp, swapped, pages[1], *drawn, "--vectors", vectors, "--overwrite", code=1)


def test_vectors_of_a_copy_of_the_texts(corpus):
    vectors, copy = encode(corpus), corpus.with_name("copy.txt")
    copy.write_text("\n\n" + "\n".join(filter(str.strip, TEXTS)))
    found = FileVectors(vectors).of_texts(corpus, TextColumns())
    assert numpy.array_equal(FileVectors(vectors).of_texts(copy, TextColumns()), found) and found.all(axis=1).all()
    copy.write_text("\n".join(reversed(TEXTS)))
    with pytest.raises(ValueError, match=r"vectors\.npy"):
        FileVectors(vectors).of_texts(copy, TextColumns())


def test_vectors_of_something_else(corpus, make_nlp):
    nlp, vectors, other = corpus.parent / "nlp", encode(corpus), corpus.parent / "other.txt"

    def refused(*given, by=vectors, pipeline=nlp):
        return run("mine", pipeline, *given[:1], corpus.with_suffix(".tsv"), "--vectors", by, *given[1:], code=1)

    other.write_text("\n".join(reversed(TEXTS)) + "\n")
    assert "other texts" in refused(other)
    other.write_text("\n".join(TEXTS[:-1]) + "\n")
    assert str(len(TEXTS)) in refused(other) and str(len(TEXTS) - 1) in refused(other)
    table, of_table = corpus.with_name("table.csv"), corpus.with_name("table.npy")
    table.write_text('"text","body"\n' + "".join(f'"{text}","{text}."\n' for text in TEXTS))
    run("encode", table, of_table, "--pipeline", nlp, "--quiet")
    assert "other texts" in refused(table, "--column", "body", by=of_table)
    make_nlp(model={"pooling": "max"}).to_disk(corpus.parent / "max")
    assert "encoder" in refused(corpus, pipeline=corpus.parent / "max")
    record = vectors.with_name("vectors.npy.json")
    sealed = record.read_text()
    record.write_text(sealed.replace('"rows": 7', '"rows": 8'))
    refused(corpus)
    record.unlink()
    refused(corpus)
    record.write_text(sealed)
    array = numpy.load(vectors)
    array[0, 0] += 1
    numpy.save(vectors, array)
    assert "vectors.npy" in refused(corpus)


def test_file_beside_the_output_is_not_overwritten(corpus):
    record = corpus.parent / "vectors.npy.json"
    record.write_text("{}")
    options = ("--pipeline", corpus.parent / "nlp", "--quiet")
    said = run("encode", corpus, corpus.parent / "vectors.npy", *options, code=1)
    assert "vectors.npy.json" in said and record.read_text() == "{}"
    run("encode", corpus, corpus.parent / "vectors.npy", *options, "--overwrite")
    found = FileVectors(corpus.parent / "vectors.npy")
    assert len(found) == len(TEXTS) and found.shape[1] == 16
    assert repr(found).endswith(f"vectors.npy: 7 vectors of 16 numbers by {found.encoder[0]})")


def test_half_precision_and_other_widths(corpus):
    nlp = corpus.parent / "nlp"
    half = encode(corpus, "half.npy", "--dtype", "float16")
    rows = FileVectors(half).of_texts(corpus, TextColumns())
    assert rows.dtype == "float32" and rows.shape == (5, 16)
    short = encode(corpus, "short.npy", "--truncate-dim", 8)
    assert "short.npy" in run("search", nlp, corpus, QUERY, "--vectors", short, code=1)
