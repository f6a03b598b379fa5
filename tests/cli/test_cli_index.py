"""`index add` and `index delete`: from a table to what is found, and what is refused."""

import csv
import json
from pathlib import Path

import numpy
import pytest
from helpers.invoking import said

from spacy_sbert.pipeline.sbert import SentenceBert
from spacy_sbert.search import VectorIndex, identify

pytest.importorskip("faiss")
HEADER = ("sku", "body", "text", "page")
PAGES = [
    ("a1", "A man is eating food.", "one", "3"),
    ("a2", "The cat sat on the mat.", "two", "4"),
    ("a4", "He cannot go.", "", "6"),
]
COLUMNS = ("--column", "body", "--id-column", "sku", "--quiet")


def write(name, rows, header=HEADER):
    with open(name, "w", encoding="utf8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture(scope="module")
def nlp_folder(make_nlp, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    make_nlp().to_disk(folder / "nlp")
    make_nlp(model={"pooling": "cls"}).to_disk(folder / "other")
    return folder


@pytest.fixture(autouse=True)
def inside(nlp_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("nlp", "other"):
        (tmp_path / name).symlink_to(nlp_folder / name)
    write("pages.csv", PAGES)


def rows_of(folder="index"):
    return {row.id: (row.text, row.columns) for row in VectorIndex.load(folder).rows}


def files_of(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])
def test_from_a_table_to_what_is_found(kind):
    done = said("index", "add", "nlp", "index", "pages.csv", *COLUMNS, "--kind", kind)
    assert "Added 3 texts: wrote an index of 3 to index" in done
    assert VectorIndex.load("index").kind == kind
    assert rows_of() == {
        name: (body, {"text": text, "page": page}) for name, body, text, page in PAGES if body
    }
    write("more.csv", [("a2", "The dog sat on the mat.", "2", "4"), ("a5", "Prices rose.", "", "")])
    done = said("index", "add", "nlp", "index", "more.csv", *COLUMNS, "--replace")
    assert "Added 2 texts: wrote an index of 4 to index" in done
    assert rows_of()["a2"] == ("The dog sat on the mat.", {"text": "2", "page": "4"})
    done = said("index", "delete", "index", "a1", "a4")
    assert "Deleted 2 texts: wrote an index of 2 to index" in done
    assert set(rows_of()) == {"a2", "a5"}
    query = ("The dog sat on the mat.", "-k", 1, "--quiet", "--overwrite")
    said("search", "nlp", "index", *query, "-o", "f.jsonl")
    (found,) = map(json.loads, Path("f.jsonl").read_text().splitlines())
    names = ["query", "score", "row", "id", "text", "text_2", "page"]
    assert list(found) == names
    assert found["score"] == pytest.approx(1, abs=1e-6)
    assert (found["id"], found["text_2"], found["page"]) == ("a2", "2", "4")
    said("search", "nlp", "index", *query, "-o", "f.tsv")
    with open("f.tsv", encoding="utf8", newline="") as file:
        (found,) = csv.DictReader(file, delimiter="\t")
    assert list(found) == names
    shown = said("search", "nlp", "index", query[0], "-k", 1)
    assert "Text_2 Page" in shown


def test_the_vectors_are_those_of_an_index_built_at_once(make_nlp):
    said("index", "add", "nlp", "index", "pages.csv", *COLUMNS, "--kind", "flat")
    write("more.csv", [("b1", "It rains.", "", "1"), ("b2", "Dogs ran.", "", "2")])
    said("index", "add", "nlp", "index", "more.csv", *COLUMNS)
    index = VectorIndex.load("index", encoder=identify(make_nlp().get_pipe("sbert")))
    texts = [row.text for row in index.rows]
    assert texts == [PAGES[0][1], PAGES[1][1], PAGES[2][1], "It rains.", "Dogs ran."]
    sbert = make_nlp().get_pipe("sbert")
    vectors = sbert.encode(texts, normalize_embeddings=True)
    assert numpy.allclose(index.index.reconstruct_n(0, 5), vectors, atol=1e-6)


def test_vectors_that_encode_wrote(monkeypatch):
    said("encode", "pages.csv", "pages.npy", "--pipeline", "nlp", "--column", "body", "--quiet")
    said("index", "add", "nlp", "one", "pages.csv", *COLUMNS, "--kind", "flat")
    monkeypatch.setattr(SentenceBert, "encode", None)
    given = ("pages.csv", *COLUMNS, "--kind", "flat", "--vectors", "pages.npy")
    said("index", "add", "nlp", "two", *given)
    one, two = (VectorIndex.load(name).index.reconstruct_n(0, 3) for name in ("one", "two"))
    assert numpy.allclose(one, two, atol=1e-6)


def test_near_duplicates():
    said("index", "add", "nlp", "index", "pages.csv", *COLUMNS)
    texts = [PAGES[1][1], "Prices rose by three percent.", "Prices rose by three percent."]
    write("more.csv", [(f"c{i}", text, "", str(i)) for i, text in enumerate(texts)])
    done = said("index", "add", "nlp", "index", "more.csv", *COLUMNS, "--skip-duplicates", 0.99)
    assert "Left out row 0, 'The cat sat on the mat.': 1.00 to 'a2'" in done
    assert "Left out row 2, 'Prices rose by three percent.': 1.00 to 'c1'" in done
    assert "Added 1 texts: wrote an index of 4" in done
    assert set(rows_of()) == {"a1", "a2", "a4", "c1"}


def test_ids_of_numbers_and_of_digits():
    records = [{"sku": 1, "body": "One."}, {"sku": 2, "body": "Two."}, {"sku": 3, "body": "Three."}]
    Path("n.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    said("index", "add", "nlp", "index", "n.jsonl", *COLUMNS)
    write("d.csv", [("2", "Another.", "", "")])
    assert "has the id '2' already" in said(
        "index", "add", "nlp", "index", "d.csv", *COLUMNS, code=1
    )
    said("index", "add", "nlp", "index", "d.csv", *COLUMNS, "--replace")
    assert rows_of()["2"][0] == "Another."
    said("index", "delete", "index", "1", "3", "--quiet")
    assert set(rows_of()) == {"2"}


def test_dates_of_a_parquet_file():
    pyarrow = pytest.importorskip("pyarrow")
    from datetime import date

    from pyarrow import parquet

    columns = {"sku": ["a", "b"], "body": ["One.", "Two."], "day": [date(2026, 1, 2), None]}
    parquet.write_table(pyarrow.table(columns), "t.parquet")
    said("index", "add", "nlp", "index", "t.parquet", *COLUMNS)
    assert [own["day"] for _, own in rows_of().values()] == ["2026-01-02", None]


TAKEN = ("index", "add", "nlp", "index", "pages.csv", *COLUMNS)
WRONG = {
    "ids that are there": (TAKEN, "has the id 'a1' already (3 of 3"),
    "another encoder": (("index", "add", "other", *TAKEN[3:]), "built with another encoder"),
    "another kind": ((*TAKEN, "--kind", "flat"), "of the kind hnsw, not flat"),
    "no kind": ((*TAKEN, "--kind", "tree"), "tree"),
    "no ids": ((*TAKEN[:5], "--column", "body"), "have texts and ids, the new ones texts"),
    "both": ((*TAKEN, "--replace", "--skip-duplicates", 0.9), "Replace them first"),
    "doubled ids": (("index", "add", "nlp", "index", "doubled.csv", *COLUMNS), "'x' is given"),
    "doubled ids of a new one": (
        ("index", "add", "nlp", "new", "doubled.csv", *COLUMNS),
        "id 'x' is given more than once",
    ),
    "nothing to compare with": (
        ("index", "add", "nlp", "new", "pages.csv", *COLUMNS, "--skip-duplicates", 0.9),
        "no index in new to compare",
    ),
    "an unknown id": (("index", "delete", "index", "a1", "zz"), "no row with the id 'zz' (1 of 2"),
    "all ids": (("index", "delete", "index", "a1", "a2", "a4"), "Cannot delete all vectors"),
    "no index": (("index", "delete", "nlp", "a"), "There is no index in nlp"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_refused_leaves_the_index_before_anything_is_encoded(wrong, monkeypatch):
    write("doubled.csv", [("x", "One.", "", ""), ("x", "Two.", "", "")])
    said(*TAKEN)
    before = files_of("index")
    encoded = []
    monkeypatch.setattr(SentenceBert, "encode", lambda self, texts, **_: encoded.append(texts))
    arguments, message = WRONG[wrong]
    assert message in said(*arguments, code=1)
    assert files_of("index") == before
    assert not Path("new").exists()
    assert encoded == []


def test_an_index_that_another_process_changes_meanwhile(monkeypatch):
    said(*TAKEN)
    encode = SentenceBert.encode

    def encode_slowly(self, texts, **settings):
        index = VectorIndex.load("index")
        index.delete(["a1"])
        index.save("index")
        return encode(self, texts, **settings)

    monkeypatch.setattr(SentenceBert, "encode", encode_slowly)
    write("more.csv", [("b", "It rains.", "", "1")])
    done = said("index", "add", "nlp", "index", "more.csv", *COLUMNS, code=1)
    assert "Load it again" in done
    assert set(rows_of()) == {"a2", "a4"}


@pytest.mark.parametrize(("name", "body"), [("a5", " "), ("", "It rains.")])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_blank_texts_and_ids_are_refused(name, body, place):
    """Replaced by a blank text, a row would keep its old one."""
    said("index", "add", "nlp", "index", "pages.csv", *COLUMNS, "--kind", "flat")
    before = files_of("index")
    rows = [("a1", "A woman is eating.", "one", "3"), ("a2", "A dog sat there.", "two", "4")]
    rows.insert(place, (name, body, "", ""))
    write("changed.csv", rows)
    for folder in ("index", "new"):
        output = said("index", "add", "nlp", folder, "changed.csv", *COLUMNS, "--replace", code=1)
        assert f"Row {place}, counted from 0, has no text or no id" in output
    assert files_of("index") == before
    assert not Path("new").exists()
