"""The commands `search`, `mine` and `cluster`, as a user types them."""

import json

import pytest
from typer.testing import CliRunner

from spacy_sbert.cli import app

TEXTS = ["A man is eating food.", "The cat sat on the mat.", "He cannot go.", "The dog ran fast.", "the dog ran", "he"]


@pytest.fixture
def nlp(make_nlp, tmp_path):
    nlp = make_nlp()
    nlp.to_disk(tmp_path / "nlp")
    (tmp_path / "corpus.txt").write_text("\n".join(TEXTS), encoding="utf8")
    return nlp


def run(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, " ".join(done.output.split())


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]


def test_search_builds_an_index_and_finds_it_again(nlp, tmp_path):
    out = tmp_path / "found.jsonl"
    arguments = ["search", tmp_path / "nlp", tmp_path / "corpus.txt", "the dog ran", "he", "-k", 2, "--output", out]
    assert run(*arguments)[0] == 0
    exact = rows(out)
    assert [row["query"] for row in exact] == ["the dog ran"] * 2 + ["he"] * 2
    assert (exact[0]["text"], exact[0]["row"]) == ("the dog ran", 4) and exact[0]["score"] == pytest.approx(1)
    for _ in range(2):
        code, output = run(*arguments, "--index", tmp_path / "index")
        assert code == 0 and "1.0000 4 the dog ran" in output
        assert [row["row"] for row in rows(out)] == [row["row"] for row in exact]
    code, output = run("search", tmp_path / "nlp", tmp_path / "index", "the dog ran", "-k", 1)
    assert code == 0 and "1.0000 4 the dog ran" in output


def test_mine(nlp, tmp_path):
    code, output = run("mine", tmp_path / "nlp", tmp_path / "corpus.txt", tmp_path / "pairs.tsv", "-k", 2)
    assert code == 0 and "Wrote 2 rows" in output
    header, first, second = (tmp_path / "pairs.tsv").read_text(encoding="utf8").splitlines()
    assert header.split("\t") == ["score", "first_row", "second_row", "first", "second"]
    assert float(first.split("\t")[0]) >= float(second.split("\t")[0])
    i, j = map(int, first.split("\t")[1:3])
    assert first.split("\t")[3:] == [TEXTS[i], TEXTS[j]] and i < j


@pytest.mark.parametrize(
    "options", [["--threshold", 0.1, "--min-size", 1], ["-m", "hierarchical", "-n", 2], ["-m", "kmeans", "-n", 3]]
)
def test_cluster(nlp, tmp_path, options):
    code, output = run("cluster", tmp_path / "nlp", tmp_path / "corpus.txt", tmp_path / "out.jsonl", *options)
    found = rows(tmp_path / "out.jsonl")
    assert code == 0 and [row["text"] for row in found] == TEXTS and [row["row"] for row in found] == list(range(6))
    n = len({row["cluster"] for row in found})
    assert f"{n} clusters of 6 texts" in output and n == (options[-1] if "-n" in options else n)


def test_bad_input(nlp, make_nlp, tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"one\nM\xfcnchen\n")
    (tmp_path / "empty.txt").write_text("\n")
    make_nlp(model={"pooling": "max"}).to_disk(tmp_path / "other")
    assert run("search", tmp_path / "nlp", tmp_path / "corpus.txt", "he", "--index", tmp_path / "index")[0] == 0
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out.tsv"
    for arguments, message in [
        (["search", tmp_path / "nlp", tmp_path / "latin.txt", "he"], "line 2: not UTF-8"),
        (["mine", tmp_path / "nlp", tmp_path / "empty.txt", out], "holds no text"),
        (["search", tmp_path / "other", tmp_path / "index", "he"], "built with another encoder"),
        (["search", tmp_path / "nlp", tmp_path, "he"], "There is no index in"),
        (["mine", tmp_path / "nlp", corpus, tmp_path / "out.csv"], "ends in .tsv or .jsonl"),
        (["cluster", tmp_path / "nlp", corpus, out, "--method", "kmeans"], "--n-clusters"),
        (["cluster", tmp_path / "nothing", corpus, out], "Can't find model"),
    ]:
        code, output = run(*arguments)
        assert code == 1 and message in output, output
    assert not out.exists()
