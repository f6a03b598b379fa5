"""`convert`, `evaluate`, `benchmark`, `compare` and `distill-static`."""

import json
import runpy
import shutil
import sys

import numpy
import pytest
import spacy
from helpers.invoking import invoke, said
from helpers.made_tables import write_rows
from helpers.pipelines import ROOT
from spacy.tokens import DocBin

from spacy_sbert.cli.benchmark import _show
from spacy_sbert.hub.distillation import distill_static
from spacy_sbert.pipeline.sbert import SentenceBert
from spacy_sbert.readers import PairCorpus, read_sts
from spacy_sbert.render.document import Cell, Document, Table

SAMPLE = ROOT / "assets"
PAPERS = ROOT / "benchmarks" / "papers" / "paper_tasks.py"
FEW = ["--suite", "sts,triplets", "--any-count", "--bootstrap", 20, "--quiet"]
BASELINE = ["benchmark", "blank:en", "data", *FEW, "--baseline", "random-projection", "-o"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The sample as a folder of data sets, with a third of its pairs."""
    folder = tmp_path_factory.mktemp("sample") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["evaluation_sample.py", str(folder), "--assets", str(SAMPLE)])
        runpy.run_path(str(ROOT / "scripts" / "evaluation_sample.py"), run_name="__main__")
    pairs = folder / "STSBenchmark" / "sts-dev.csv"
    pairs.write_text(
        "".join(pairs.read_text(encoding="utf8").splitlines(keepends=True)[:50]), encoding="utf8"
    )
    return folder


@pytest.fixture
def folder(nlp_folder, data):
    shutil.copytree(data, nlp_folder / "data")
    return nlp_folder


def test_benchmark_and_compare(folder):
    """A folder of data sets: results, reports, reuse, a baseline, and both side by side."""
    settings = [
        "--suite",
        "sts,triplets,arguments",
        "--any-count",
        "--bootstrap",
        20,
        "--code",
        PAPERS,
    ]
    (folder / "second").mkdir()
    for place in ("first", "second"):
        done = invoke("benchmark", "nlp", "data", *settings, "-o", f"{place}/tiny.json")
        results = json.loads((folder / place / "tiny.json").read_text())
        assert list(results["tasks"]) == ["STSb-dev", "wikisec", "UKP-ASPECT"]
        assert results["failed"] == {}
        assert "STS12" in results["skipped"]
        assert "STS12-en-test" in done.stdout
        spearman = results["tasks"]["STSb-dev"]["variants"][0]["scores"]["cosine"]["spearman"][
            "pooled"
        ]
        report = (folder / place / "tiny.md").read_text(encoding="utf8")
        assert f"{100 * spearman:.2f}" in report
        assert report.strip() in done.stdout
        assert "<svg" in (folder / place / "tiny.html").read_text(encoding="utf8")
        if place == "first":
            (folder / "first" / "tiny.cache").rename(folder / "second" / "tiny.cache")
    assert all(task["reused"] for task in results["tasks"].values())
    invoke(*BASELINE, "words.json")
    done = invoke("compare", "second/tiny.json", "words.json", "-o", "both.json")
    assert (folder / "both.html").is_file()
    assert (folder / "both.md").read_text(encoding="utf8").strip() in done.stdout
    shutil.copy("words.json", "again.json")
    done = invoke("compare", "words.json", "again.json", "--quiet")
    assert "one and the same model" in done.stdout
    assert done.stderr == ""
    # Without a name of its own
    shutil.copytree("nlp", "sts/model-best")
    invoke("benchmark", "sts/model-best", "data", "--suite", "sts", *FEW[2:], "-o", "sts.json")
    done = invoke("compare", "sts.json", shutil.copy("sts.json", "again.json"))
    assert "# Comparison of sts/model-best (sts), sts/model-best (again)" in done.stdout


def test_task_that_fails(folder):
    triplets = folder / "data" / "wikisec" / "test.csv"
    triplets.write_text(triplets.read_text(encoding="utf8") + "title,a,b,\n", encoding="utf8")
    invoke("benchmark", "nlp", "data", *FEW, "-o", "results.json", code=1)
    results = json.loads((folder / "results.json").read_text())
    assert list(results["tasks"]) == ["STSb-dev"]
    assert "test.csv, line 82" in results["failed"]["wikisec"]
    assert "Cannot compare 1 results" in said("compare", "results.json", code=1)


def test_plain_table_in_a_terminal(monkeypatch, capsys):
    """Elsewhere it is the Markdown of the file: see test_benchmark_and_compare."""
    table = Table("STS", ("Model", "STS12"), [("mine", Cell("70.00", ["Seen in training."]))])
    document = Document("Evaluation of mine", [], [table])
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    _show(document.markdown(), document.terminal)
    shown = capsys.readouterr().out
    assert "mine   70.00 [1]" in shown
    assert "|" not in shown


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["evaluate", "nlp"], 2, "data_path"),
        (["evaluate", "nlp", "plain.spacy"], 1, "plain.spacy"),
        (["evaluate", "without", "data/STSBenchmark/sts-dev.csv"], 1, "no 'sbert' pipe"),
        (["evaluate", "no-such-thing", "data/STSBenchmark/sts-dev.csv"], 1, "no-such-thing"),
        (["evaluate", "nlp", "data"], 1, "data is a folder: give a file of examples"),
        (["benchmark", "nlp", "data", "-s", "sick"], 1, "SICK_trial.txt"),
        (
            ["benchmark", "nlp", "data", "-s", "unknown"],
            1,
            "--code: benchmarks/papers/paper_tasks.py",
        ),
        (["benchmark", "nlp", "data", "-o", "a.md"], 1, "ends in .json"),
        (["compare", "data/STSBenchmark/sts-dev.csv"], 1, "sts-dev.csv"),
    ],
)
def test_refused(folder, arguments, code, message):
    DocBin(docs=[spacy.blank("xx")("no pair")]).to_disk(folder / "plain.spacy")
    spacy.blank("xx").to_disk(folder / "without")
    assert message in said(*arguments, code=code)


def test_convert_a_table(folder):
    (folder / "pairs.tsv").write_text("4\tOne.\tTwo.\tx\n2\tThree.\tFour.\ty\n", encoding="utf8")
    columns = [
        "--members",
        "2,1",
        "--score",
        0,
        "--label",
        3,
        "--min-score",
        2,
        "--max-score",
        4,
        "--no-header",
    ]
    assert "Wrote 1 pairs" in said("convert", "pairs.tsv", "out.spacy", *columns, "--limit", 1)
    (doc,) = DocBin().from_disk(folder / "out.spacy").get_docs(spacy.blank("xx").vocab)
    assert [span.text for span in doc.spans["sbert"]] == ["Two.", "One."]
    assert doc.spans["sbert"].attrs == {"score": 1.0, "label": "x"}
    done = said("convert", SAMPLE / "nli-train.jsonl", "nli.spacy", "--format", "nli")
    # Three have no label
    assert "Wrote 360 pairs" in done


def test_distill_static(folder):
    texts = (SAMPLE / "texts-train.txt").read_text(encoding="utf8").splitlines()
    options = ["-v", SAMPLE / "texts-train.txt", "--words", 3]
    said("distill-static", "nlp", "out", *options, "--size", 5)
    expected = (
        distill_static(spacy.load("nlp"), texts, size=5, words=3).get_pipe("sbert").encode(texts)
    )
    assert numpy.array_equal(spacy.load("out").get_pipe("sbert").encode(texts), expected)
    assert expected.shape == (300, 5)
    said("distill-static", "nlp", "new", *options, "--size", 99, code=1)
    said("distill-static", "none", "new", *options, "--size", 5, code=1)
    assert not (folder / "new").exists()


def own_table(folder):
    pairs = list(read_sts(SAMPLE / "pairs-dev.csv"))[:40]
    rows = [
        (i, first, second, f"{5 * score:.2f}") for i, (first, second, score) in enumerate(pairs)
    ]
    return write_rows(folder / "own.csv", ("id", "left", "right", "grade"), rows)


def test_evaluate_a_table(folder, tiny_bert):
    """The same scores as in the layout of the STS benchmark, and as with all options."""
    # An encoder without training
    said("evaluate", tiny_bert, own_table(folder), "-o", "before.json")
    assert json.loads((folder / "before.json").read_text())["pairs"] == 40
    path = own_table(folder)
    done = said("evaluate", "nlp", path, "-o", "found.json")
    assert "Columns found: left, right, grade, scores from 0 to 5" in done
    told = ["--members", "left,right", "--score", "grade", "--min-score", 0, "--max-score", 5]
    said("evaluate", "nlp", path, *told, "-o", "told.json")
    lines = (SAMPLE / "pairs-dev.csv").read_text(encoding="utf8").splitlines(keepends=True)[:40]
    (folder / "sts.csv").write_text("".join(lines), encoding="utf8")
    assert "Columns" not in said("evaluate", "nlp", "sts.csv", "-o", "sts.json")
    found, told, sts = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("found", "told", "sts")
    )
    assert found == told == sts
    assert found["pairs"] == 40
    assert f"{100 * found['sts_spearman']:.2f}" in done


def test_convert_a_table_of_found_columns(folder):
    """But for the range: another file of the data may show more of it."""
    assert "--max-score" in said("convert", own_table(folder), "own.spacy", code=1)
    assert not (folder / "own.spacy").exists()
    assert "Columns found: left, right, grade" in said(
        "convert", "own.csv", "own.spacy", "--max-score", 5
    )
    scores = {name: folder / f"{name}.json" for name in ("spacy", "csv")}
    for kind, output in scores.items():
        said("evaluate", "nlp", f"own.{kind}", "-o", output)
    assert scores["spacy"].read_bytes() == scores["csv"].read_bytes()
    told = said("convert", "own.csv", "pairs.spacy", "-m", "left,right")
    assert "Columns read: left, right; not read:" in told
    assert "grade" in told
    (doc, *_) = PairCorpus(folder / "pairs.spacy")(spacy.blank("xx"))
    # As the options say: texts alone
    assert "score" not in doc.reference.spans["sbert"].attrs


def test_errors_of_a_table(folder):
    path = own_table(folder)
    text = path.read_text(encoding="utf8")
    path.write_text(text.replace("\n7,", "\n7,A b c,D e f,oops\n99,"), encoding="utf8")
    done = said("evaluate", "nlp", path, code=1)
    assert "own.csv, line 9" in done
    assert "'oops'" in done
    assert "genre" not in done
    for content in ("a,b\n1,2\n", ""):
        path.write_text(content, encoding="utf8")
        assert "genre" not in said("evaluate", "nlp", path, code=1)


def test_table_without_gold(folder, monkeypatch):
    """Before anything is encoded: there is nothing to score by."""
    table = folder / "pairs.csv"
    table.write_text("first,second\n" + "".join(f"a cat {i},a dog {i}\n" for i in range(9)))
    with monkeypatch.context() as patch:
        patch.setattr(SentenceBert, "predict", None)
        assert "(first, second)" in said("evaluate", "nlp", table, code=1)
    table.write_text("a,b,c\n" + "".join(f"a cat {i},a dog {i},a man eats {i}\n" for i in range(9)))
    assert "Accuracy of triplets" in said("evaluate", "nlp", table, "--members", "a,b,c")


def test_the_title_says_how_texts_were_compared(folder, tiny_bert):
    assert "compared by cosine" in said("evaluate", "nlp", own_table(folder))
    table = folder / "triples.csv"
    write_rows(table, ("a", "b", "c"), [("the cat", "a cat", "he ran"), ("a dog", "dogs", "he")])
    done = said("evaluate", "nlp", table, "--members", "a,b,c")
    assert "triplets by Euclidean distance" in done
    assert "cosine" not in done
    nlp = spacy.blank("xx")
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert)}})
    nlp.initialize()
    nlp.to_disk(folder / "reranker")
    assert "Scores x 100 of the cross-encoder" in said("evaluate", "reranker", own_table(folder))


def test_scores_of_evaluate_are_in_one_column(folder):
    """Also behind labels that are longer than wasabi's columns."""
    rows = [("a", "b", "score"), ("the cat", "a dog", 1), ("he", "a cat", 0), ("food", "food", 1)]
    (folder / "pairs.csv").write_text("".join(f"{a},{b},{score}\n" for a, b, score in rows))
    lines = invoke("evaluate", "nlp", "pairs.csv").stdout.splitlines()
    first = next(line for line in lines if line.startswith("Examples"))
    longest = next(line for line in lines if line.startswith("Threshold of that accuracy"))
    assert longest.rindex("x 100") < first.index("3") == len(longest) - len(longest.split()[-1])
