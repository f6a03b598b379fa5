"""Reports in Markdown and HTML: the figures of results made by hand."""

import json
import re

import pytest
from helpers.made_pages import read
from helpers.made_results import OWN, classified, graded, results

from spacy_sbert.evaluation import tables
from spacy_sbert.evaluation.compare import compare
from spacy_sbert.evaluation.report import Results, comparison_report, evaluation_report
from spacy_sbert.render.document import Table

EVIL = 'a|b <script>alert(1)</script> "x" & ![i](http://evil.example/i.png) \u202e\ud83d\nnext'
STS = "STS (laid out as Table 1)"


def markdown(found):
    return evaluation_report(found).markdown()


def html(found):
    return evaluation_report(found).html()


def table(text, title):
    """The rows of the table below a heading, as lists of cells; the first is the header."""
    block = text.split(f"## {title}", 1)[1].split("\n\n")[1]
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block.splitlines()
    ]
    return [rows[0], *rows[2:]]


def all_sts(**changed):
    names = [*(f"STS{year}" for year in range(12, 17)), "STSb-test", "SICK-R-test"]
    tasks = {name: graded(0.1 * place) for place, name in enumerate(names, 1)}
    return {**tasks, **changed}


def test_sts_table_and_average():
    rows = table(
        markdown(results(all_sts(STS14=graded(0.3, subsets={"OnWN": 0.5, "images": 0.7})))), STS
    )
    assert rows[0] == [
        "Model",
        "Sub-sets",
        "STS12",
        "STS13",
        "STS14",
        "STS15",
        "STS16",
        "STSb",
        "SICK-R",
        "Avg.",
    ]
    assert rows[1][1:] == ["all pairs pooled", *(f"{10 * i}.00" for i in range(1, 8)), "40.00"]
    means = ["10.00", "20.00", "60.00", "40.00", "50.00", "60.00", "70.00", "44.29"]
    assert rows[2][1:] == ["mean of the sub-sets", *means]
    assert rows[3][1] == "size-weighted mean of the sub-sets"
    rows = table(markdown(results({"STS12": graded(0.5), "STSb-dev": graded(0.9)})), STS)
    assert rows[1][7] == "-", "the dev split is not the test split"


def test_undefined_is_said():
    tasks = all_sts(STS13=graded(None))
    text = markdown(results(tasks))
    row = table(text, STS)[1]
    assert (row[3], row[-1]) == ("undefined", "undefined")
    del tasks["STS13"]
    row = table(markdown(results(tasks)), STS)[1]
    assert (row[3], row[-1]) == ("-", "-"), "no average of some sets"
    assert "nan" not in text.lower().replace("normalisation", "")
    assert "None" not in text
    page = html(results({"STS13": graded(None, subsets={"FNWN": None, "OnWN": 0.4})}))
    assert "Spearman x 100: undefined" in page
    # In place of the bar
    assert ">undefined</text>" in page


def test_notes_stand_beside_scores_and_their_average():
    tasks = all_sts(STS12=graded(0.1, notes=["Seen."]), STS15=graded(0.4, notes=["Seen.", "Old."]))
    text = markdown(results(tasks))
    cells = [
        r"10.00 \[1\]",
        "20.00",
        "30.00",
        r"40.00 \[1, 2\]",
        "50.00",
        "60.00",
        "70.00",
        r"40.00 \[1, 2\]",
    ]
    assert table(text, STS)[1][2:] == cells
    assert r"- \[1\] Seen." in text
    assert r"- \[2\] Old." in text
    assert '<a href="#note-2">2</a>' in html(results(tasks))
    assert '<li id="note-2">Old.</li>' in html(results(tasks))


def test_subsets_with_counts_and_intervals():
    task = graded(0.6, subsets={"OnWN": 0.5, "images": None})
    task["intervals"] |= {
        "cosine.spearman.subsets.OnWN": [0.41, 0.62],
        "cosine.spearman.subsets.images": None,
    }
    task["variants"][0]["scores"]["dot"]["spearman"]["subsets"]["OnWN"] = -0.25
    rows = table(markdown(results({"STS14": task})), "Every figure: sts")
    assert rows[0] == [
        "Task",
        "Figure",
        "Examples",
        "cosine",
        "95 %",
        "manhattan",
        "euclidean",
        "dot",
    ]
    assert rows[1][:5] == ["STS14", "spearman pooled", "6", "60.00", "50.00 to 65.00"]
    assert rows[2] == [
        "STS14",
        "spearman OnWN",
        "3",
        "50.00",
        "41.00 to 62.00",
        "50.00",
        "50.00",
        "-25.00",
    ]
    assert rows[3][3:5] == ["undefined", "undefined"]


def test_transfer_by_classifier():
    names = ["MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC"]
    tasks = {name: classified(0.7 + 0.01 * place, 0.6) for place, name in enumerate(names)}
    tasks["MR"]["variants"][0]["deviation"] = {
        "lr": {"accuracy": None},
        "mlp": {"accuracy": 0.0123},
    }
    tasks["MRPC"]["variants"][0]["scores"]["lr"]["f1"] = 0.81
    text = markdown(results(tasks))
    rows = table(text, "Transfer (laid out as Table 5)")
    assert rows[0][2:] == [*names, "Avg."]
    assert rows[1][1:] == ["logistic regression", *(f"{70 + i}.00" for i in range(7)), "73.00"]
    assert rows[2][1:3] == ["MLP", "60.00 ± 1.23"]
    assert rows[2][-1] == "60.00"
    assert table(text, "Every figure: transfer")[-1] == ["MRPC", "f1", "4 test", "81.00", "-"]


def test_every_suite_has_its_figures():
    scores = {
        "euclidean": {"accuracy": 0.7},
        "cosine": {"accuracy": 0.6},
        "manhattan": {"accuracy": 0.5},
    }
    more = {
        "variants": [{**OWN, "scores": scores}],
        "primary": "euclidean.accuracy",
        "counts": {"test": 1201},
    }
    speeds = {"own": {"sentences_per_second": 1234.567, "wordpieces_per_second": None}}
    learned = {"learned": {"spearman": 0.5, "mse": 1.25}, "cosine": {"spearman": 0.25}}
    tasks = {
        "wikisec": classified(0, suite="triplets", **more),
        "SentLen": classified(
            0.8, None, suite="probing", counts={"train": 10, "test": 4, "all": 14}
        ),
        "speed": classified(
            0,
            suite="speed",
            primary="own.sentences_per_second",
            variants=[{**OWN, "scores": speeds}],
        ),
        "SNLI-dev": classified(
            0, suite="nli", primary="accuracy", variants=[{**OWN, "scores": {"accuracy": 0.843}}]
        ),
        "STSb": classified(
            0, suite="learned", primary="learned.spearman", variants=[{**OWN, "scores": learned}]
        ),
    }
    text = markdown(results(tasks))
    expected = {
        "triplets": [["wikisec", "accuracy", "1201 test", "70.00", "60.00", "50.00"]],
        "probing": [["SentLen", "accuracy", "14", "80.00", "undefined"]],
        "nli": [["SNLI-dev", "", "4 test", "84.30"]],
        "learned": [
            ["STSb", "spearman", "4 test", "50.00", "25.00"],
            ["STSb", "mse", "4 test", "1.2500", "-"],
        ],
    }
    assert {suite: table(text, f"Every figure: {suite}")[1:] for suite in expected} == expected
    speeds = [row[1::2] for row in table(text, "Every figure: speed")[1:]]
    assert speeds == [["sentences per second", "1,234.57"], ["wordpieces per second", "undefined"]]


def test_speed_of_models_and_baselines_in_one_table():
    def timed(name, **ways):
        scores = {way: {"sentences_per_second": value} for way, value in ways.items()}
        more = {
            "primary": "own.sentences_per_second",
            "counts": {"sentences": 2000, "wordpieces": 9},
        }
        return results(
            {"speed": classified(0, suite="speed", variants=[{**OWN, "scores": scores}], **more)},
            name,
        )

    models = [timed("sbert", naive=100.0, smart=150.5, own=1400.0), timed("static", own=9000.0)]
    rows = table(comparison_report(models, compare(models)).markdown(), "Shared tasks: speed")
    assert rows == [["Model", "speed"], ["sbert", "1,400.00"], ["static", "9,000.00"]]
    rows = table(markdown(models[0]), "Every figure: speed")
    assert rows[0][3:] == ["naive", "smart", "own"]
    assert rows[1][1:] == [
        "sentences per second",
        "2000 sentences, 9 wordpieces",
        "100.00",
        "150.50",
        "1,400.00",
    ]


def test_tables_of_your_own(monkeypatch):
    monkeypatch.setattr(tables, "_further_tables", [])
    for _ in range(2):
        tables.register_tables(own_tables)
    found = {**results({"MR": classified(0.5)}), "skipped": {"CR": "missing"}}
    text = markdown(found)
    assert table(text, "Counts") == [["Task", "Examples"], ["MR", "4"]]
    titles = re.findall("^## (.*)", text, re.MULTILINE)
    assert titles.count("Counts") == 1
    assert titles.index("Every figure: transfer") < titles.index("Counts") < titles.index("Skipped")


def own_tables(found):
    rows = [(name, str(task["counts"]["test"])) for name, task in found["tasks"].items()]
    return [Table("Counts", ("Task", "Examples"), rows)]


def evil_results():
    tasks = {
        EVIL: graded(0.5, subsets={EVIL: 0.4, "fine": 0.6}, notes=[EVIL]),
        "MR": classified(0.5),
    }
    return {**results(tasks, name=EVIL), "failed": {EVIL: EVIL}}


def test_page_is_balanced_and_refers_to_nothing_outside():
    page = html(evil_results())
    page.encode("utf8")
    elements = read(page).elements
    tags = [tag for tag, _ in elements]
    # points, and bars of both suites
    assert tags.count("svg") == 3
    assert not {"script", "img", "link", "iframe", "object"} & set(tags)
    assert not any(key.startswith("on") for _, attributes in elements for key in attributes)
    loading = ("src", "href", "xlink:href", "srcset", "action")
    references = [
        attributes[key] for _, attributes in elements for key in loading if key in attributes
    ]
    assert references
    assert all(reference.startswith("#") for reference in references)
    assert {reference[1:] for reference in references} <= set(re.findall(r' id="([^"]+)"', page))
    assert "url(" not in page
    assert "@import" not in page


def test_markdown_shows_names_as_they_are():
    text = markdown(evil_results())
    text.encode("utf8")
    row = table(text, "Failed")[1]
    assert "<" not in text
    assert len(row) == 2
    assert r"\!\[i\](http" in row[0]
    assert row[0].startswith(r"a\|b &lt;script&gt;alert(1)&lt;/script&gt;")
    page = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table").render(text)
    assert not any(tag in page for tag in ("<img", "<script", "<a ", "<em>"))
    assert page.count("<td>a|b &lt;script&gt;alert(1)&lt;/script&gt;") >= 2


def test_points_are_sampled_and_it_is_said():
    predictions = {
        "predicted": [place / 4000 for place in range(4000)],
        "gold": [place % 6 for place in range(4000)],
    }
    page = html(
        results({"STSb-dev": graded(0.5, predictions={**predictions, "subset": ["all"] * 4000})})
    )
    assert "1500 of 4000 pairs, drawn at random with seed 0" in page
    assert sum(layer.count("M") for layer in re.findall(r'class="dots" d="([^"]*)"', page)) == 1500
    assert "drawn at random" not in html(results({"STSb-dev": graded(0.5)}))


def test_a_notebook_shows_results_as_their_report():
    plain = results({"STSb-test": graded(0.5)}, name='"><script>')
    found = Results(plain)
    ((tag, attributes),) = read(found._repr_html_()).elements
    assert (tag, attributes["sandbox"], attributes["srcdoc"]) == ("iframe", "", html(found))
    assert found == plain
    assert json.loads(json.dumps(found)) == found
