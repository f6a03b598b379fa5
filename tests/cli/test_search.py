"""The commands `search`, `mine` and `cluster`, as a user types them."""

import json

import pytest
import spacy
from typer.testing import CliRunner

from spacy_sbert.cli import app
from spacy_sbert.similarity import cosine

TEXTS = ["A man is eating food.", "The cat sat on the mat.", "He cannot go.", "The dog ran fast.", "the dog ran", "he"]


@pytest.fixture
def nlp(make_nlp, nlp_folder):
    (nlp_folder / "corpus.txt").write_text("\n".join(TEXTS), encoding="utf8")
    return make_nlp()


def run(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, " ".join(done.output.split())


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf8").split("\n") if line]


def test_search_with_an_index(nlp, tmp_path):
    out = tmp_path / "found.jsonl"
    arguments = ["search", tmp_path / "nlp", tmp_path / "corpus.txt", "the dog ran", "he", "-k", 2, "--output", out]
    arguments.append("--overwrite")
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
    assert code == 0 and "Wrote 2 rows" in output and "There may be more pairs" in output
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
        (["mine", tmp_path / "nlp", tmp_path / "empty.txt", out], "empty.txt"),
        (["search", tmp_path / "other", tmp_path / "index", "he"], "another encoder"),
        (["search", tmp_path / "nlp", tmp_path, "he"], "no index"),
        (["mine", tmp_path / "nlp", corpus, tmp_path / "out.csv"], ".tsv or .jsonl"),
        (["cluster", tmp_path / "nlp", corpus, out, "--method", "kmeans"], "--n-clusters"),
    ]:
        code, output = run(*arguments)
        assert code == 1 and message in output, output
    assert not out.exists()


def test_mine_all_pairs(nlp, tmp_path):
    """-k 0: as many as there are, as brute force finds them. Where these are too many, that is said at once."""
    many = tmp_path / "many.txt"
    many.write_text("".join(f"text {number}\n" for number in range(2830)))
    code, output = run("mine", tmp_path / "nlp", many, tmp_path / "all.tsv", "-k", 0)
    assert code == 1 and "pairs" in output
    vectors = nlp.get_pipe("sbert").encode(TEXTS)
    scores = {(i, j): float(cosine(vectors[[i]], vectors[[j]])[0]) for i in range(6) for j in range(i + 1, 6)}
    bound = sorted(scores.values())[7]
    for least in (-1.0, bound):
        expected = sorted((pair for pair in scores if scores[pair] >= least), key=lambda pair: (-scores[pair], pair))
        out = tmp_path / "pairs.jsonl"
        options = ["-k", 0, "--min-score", repr(least), "--overwrite"]
        code, output = run("mine", tmp_path / "nlp", tmp_path / "corpus.txt", out, *options)
        assert code == 0 and f"Wrote {len(expected)} rows" in output and "There may be more pairs" not in output
        assert [(row["first_row"], row["second_row"]) for row in rows(out)] == expected
    assert len(expected) == 8


def test_queries_from_a_file_or_standard_input(nlp, tmp_path):
    """The pipeline is loaded once, for all of them."""
    asked = ["the dog ran", "he", "a cat"]
    (tmp_path / "queries.txt").write_text("\ufeffhe\n\n  \na cat\n", encoding="utf8")
    out = tmp_path / "found.jsonl"
    search = ["search", tmp_path / "nlp", tmp_path / "corpus.txt"]
    options = ["-k", 2, "--output", out, "--overwrite", "--quiet"]
    assert run(*search, *asked, *options)[0] == 0
    expected = rows(out)
    assert run(*search, asked[0], "--queries", tmp_path / "queries.txt", *options)[0] == 0
    assert rows(out) == expected
    done = CliRunner().invoke(app, list(map(str, [*search, "--queries", "-", *options])), input="\n".join(asked) + "\n")
    assert done.exit_code == 0 and rows(out) == expected
    lines = "he\u2028ran\na cat\x85\n".encode()
    (tmp_path / "queries.txt").write_bytes(lines)
    for given, piped in ((tmp_path / "queries.txt", b""), ("-", lines)):
        done = CliRunner().invoke(app, list(map(str, [*search, "--queries", given, *options])), input=piped)
        assert done.exit_code == 0 and {row["query"] for row in rows(out)} == {"he\u2028ran", "a cat"}
    done = CliRunner().invoke(app, list(map(str, [*search, "--queries", "-", *options])), input=b"\xff\n")
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit) and "Cannot read the --queries" in done.output
    assert run(*search)[0] == 1
    code, output = run(*search, "--queries", tmp_path / "none.txt")
    assert code == 1 and "none.txt" in output


def test_cluster_without_clusters(nlp, tmp_path):
    cluster = ["cluster", tmp_path / "nlp", tmp_path / "corpus.txt", tmp_path / "c.tsv", "--overwrite", "--quiet"]
    for threshold, advice in ((0.999999, True), (-1, False)):
        code, output = run(*cluster, "--threshold", threshold, "--min-size", 2)
        assert code == 0 and ("lower --threshold" in output) is advice


def test_output_of_search(nlp, tmp_path):
    (tmp_path / "long.txt").write_text("the cat " * 20 + "\n" + "the dog\n", encoding="utf8")
    code, output = run("search", tmp_path / "nlp", tmp_path / "long.txt", "the cat", "-k", 2)
    assert code == 0 and ("the cat " * 20)[:99] + "…" in output and output.count("…") == 1
    search = ["search", tmp_path / "nlp", tmp_path / "corpus.txt", "the dog ran", "-k", 1]
    out = ["--output", tmp_path / "found.jsonl", "--overwrite"]
    assert "1.0000 4 the dog ran" in run(*search, *out)[1] and "1.0000" in run(*search, "--quiet")[1]
    code, output = run(*search, *out, "--quiet")
    assert code == 0 and "1.0000" not in output and "Wrote 1 rows" in output


def test_search_a_saved_index(nlp, tmp_path):
    """Its kind cannot be another one, and it holds its texts."""
    pytest.importorskip("faiss")
    index = tmp_path / "index"
    search = ["search", tmp_path / "nlp", tmp_path / "corpus.txt", "the dog ran", "--index", index]
    assert f"Saved the index to {index}" in run(*search)[1]
    assert f"Searched the index in {index}" in run(*search)[1]
    search = ["search", tmp_path / "nlp", index, "the dog ran"]
    assert run(*search)[0] == 0
    for option, value in (("--kind", "flat"), ("--index", tmp_path / "other")):
        code, output = run(*search, option, value)
        assert code == 1 and option in output and "hnsw" in output


def test_errors_name_the_argument(nlp, tmp_path):
    """The pipeline, the vectors or the query, not the file of texts."""
    corpus, saved = tmp_path / "corpus.txt", tmp_path / "nlp"
    (tmp_path / "blank.txt").write_text("\n  \n")
    spacy.blank("en").to_disk(tmp_path / "without")
    for arguments, message in [
        (["all-MiniLM-L6-v3", corpus, "he"], "Did you mean '"),
        (["blank", corpus, "he"], "blank"),
        ([saved, corpus, "he", "  "], "query number 2"),
        ([saved, corpus, "--queries", tmp_path / "blank.txt"], "--queries"),
        ([saved, corpus, "he", "--vectors", tmp_path / "none.npy"], "none.npy"),
        ([saved, corpus, "he", "--vectors", corpus], "corpus.txt"),
        ([tmp_path / "without", corpus, "he"], "no 'sbert' pipe"),
    ]:
        code, output = run("search", *arguments)
        assert code == 1 and message in output, output
    file = tmp_path / "vectors.npy"
    file.write_bytes(b"")
    code, output = run("index", file, tmp_path / "index")
    assert code == 1 and "vectors.npy" in output and "pyarrow" not in output
