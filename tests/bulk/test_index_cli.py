"""From a folder of texts to vectors, to an index, to what is found in both: the commands, one after the other."""

import json
from itertools import islice, permutations

import pytest
from typer.testing import CliRunner

from spacy_sbert.cli import app

pytest.importorskip("pyarrow")
WORDS = ["the", "cat", "sat", "on", "mat", "dog", "ran", "he", "man", "food"]
ROW = 1234
QUERY = " ".join(list(islice(permutations(WORDS, 5), ROW + 1))[-1])


def run(*arguments, code=0):
    found = CliRunner().invoke(app, list(map(str, arguments)))
    assert found.exit_code == code, found.output
    return " ".join(found.output.split())


@pytest.fixture
def search(tmp_path):
    def found(folder, *options, code=0):
        output = tmp_path / "found.jsonl"
        said = run(
            "search", tmp_path / "nlp", folder, QUERY, "-k", 3, "--output", output, "--overwrite", *options, code=code
        )
        return said if code else [json.loads(line) for line in output.read_text().splitlines()]

    return found


def test_encode_index_and_search(make_nlp, search, tmp_path):
    make_nlp().to_disk(tmp_path / "nlp")
    (tmp_path / "texts").mkdir()
    for number in range(2):
        lines = [" ".join(words) + "\n" for words in islice(permutations(WORDS, 4 + number), 5000)]
        (tmp_path / "texts" / f"{number}.txt").write_text("".join(lines))
    options = ["--pipeline", tmp_path / "nlp", "--with-text", "--quiet"]
    run("encode", tmp_path / "texts", tmp_path / "vectors", *options, "--output-format", "parquet")
    exact = search(tmp_path / "vectors")
    assert (exact[0]["file"], exact[0]["row"], exact[0]["text"], exact[0]["id"]) == ("1.txt.parquet", ROW, QUERY, None)
    assert exact[0]["score"] == pytest.approx(1, abs=1e-6)

    said = run("index", tmp_path / "vectors", tmp_path / "index", "--lists", 8, "--bytes", 16, "--quiet")
    assert "Wrote an index of 10000 vectors" in said
    found = search(tmp_path / "index")
    assert found[0] == exact[0] and all(one["score"] > 0.9 for one in found)
    (tmp_path / "vectors").rename(tmp_path / "moved")
    assert "is no folder of vectors that is whole" in search(tmp_path / "index", code=1)
    assert search(tmp_path / "index", "--vectors", tmp_path / "moved") == found
    assert "so --vectors x cannot be searched" in search(tmp_path / "moved", "--vectors", "x", code=1)
    assert "--kind is of a file of texts" in search(tmp_path / "index", "--kind", "flat", code=1)
    make_nlp(model={"pooling": "cls"}).to_disk(tmp_path / "nlp")
    for folder in ("index", "moved"):
        assert "was built with another encoder" in search(tmp_path / folder, code=1)
