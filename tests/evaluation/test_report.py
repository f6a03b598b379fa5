"""Reports in Markdown and HTML: the figures of results made by hand."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from made_results import GOLD, OWN, classified, graded, results

from spacy_sbert.evaluation.report import compare_markdown, html, markdown, results_repr
from spacy_sbert.render.document import escape_markdown

EVIL = 'a|b <script>alert(1)</script> "x" & ![i](http://evil.example/i.png) \u202e\ud83d\nnext'
VOID = {"meta", "br", "link", "img", "input", "hr"}


def table(text, title):
    """The rows of the table below a heading, as lists of cells; the first is the header."""
    block = text.split(f"## {title}", 1)[1].split("\n\n")[1]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block.splitlines()]
    return [rows[0], *rows[2:]]


def all_sts(**changed):
    names = [*(f"STS{year}" for year in range(12, 17)), "STSb-test", "SICK-R-test"]
    tasks = {name: graded(0.1 * place) for place, name in enumerate(names, 1)}
    return {**tasks, **changed}


def test_sts_table_and_average():
    subsets = {"OnWN": 0.5, "images": 0.7}
    text = markdown(results(all_sts(STS14=graded(0.3, subsets=subsets))))
    rows = table(text, "STS (laid out as Table 1)")
    assert rows[0] == ["Model", "Sub-sets", "STS12", "STS13", "STS14", "STS15", "STS16", "STSb", "SICK-R", "Avg."]
    assert rows[1][1:] == ["all pairs pooled", *(f"{10 * i}.00" for i in range(1, 8)), "40.00"]
    assert rows[2][1:] == [
        "mean of the sub-sets", "10.00", "20.00", "60.00", "40.00", "50.00", "60.00", "70.00", "44.29",
    ]  # fmt: skip
    assert [row[1] for row in rows[1:]][2] == "size-weighted mean of the sub-sets"


def test_undefined_is_said():
    tasks = all_sts(STS13=graded(None))
    text = markdown(results(tasks))
    row = table(text, "STS (laid out as Table 1)")[1]
    assert (row[3], row[-1]) == ("undefined", "undefined")
    del tasks["STS13"]
    row = table(markdown(results(tasks)), "STS (laid out as Table 1)")[1]
    assert (row[3], row[-1]) == ("-", "-"), "no average of some sets"
    assert "nan" not in text.lower().replace("normalisation", "") and "None" not in text
    page = html(results({"STS13": graded(None, subsets={"FNWN": None, "OnWN": 0.4})}))
    assert "Spearman x 100: undefined" in page
    assert ">undefined</text>" in page  # in place of the bar


def test_notes_stand_beside_scores_and_their_average():
    tasks = all_sts(STS12=graded(0.1, notes=["Seen."]), STS15=graded(0.4, notes=["Seen.", "Old."]))
    text = markdown(results(tasks))
    row = table(text, "STS (laid out as Table 1)")[1]
    assert row[2:] == [
        r"10.00 \[1\]", "20.00", "30.00", r"40.00 \[1, 2\]", "50.00", "60.00", "70.00", r"40.00 \[1, 2\]",
    ]  # fmt: skip
    assert r"- \[1\] Seen." in text and r"- \[2\] Old." in text
    assert '<a href="#note-2">2</a>' in html(results(tasks)) and '<li id="note-2">Old.</li>' in html(results(tasks))


def test_subsets_with_counts_and_intervals():
    task = graded(0.6, subsets={"OnWN": 0.5, "images": None})
    task["intervals"] |= {"cosine.spearman.subsets.OnWN": [0.41, 0.62], "cosine.spearman.subsets.images": None}
    task["variants"][0]["scores"]["dot"]["spearman"]["subsets"]["OnWN"] = -0.25
    rows = table(markdown(results({"STS14": task})), "Every sub-set: Spearman's correlation by similarity")
    assert rows[0] == ["Task", "Pairs of", "Pairs", "cosine", "95 %", "manhattan", "euclidean", "dot"]
    assert rows[1] == ["STS14", "OnWN", "3", "50.00", "41.00 to 62.00", "50.00", "50.00", "-25.00"]
    assert rows[2][3:5] == ["undefined", "undefined"]
    assert rows[3][1:5] == ["all pairs pooled", "6", "60.00", "50.00 to 65.00"]


def test_transfer_by_classifier():
    names = ["MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC"]
    tasks = {name: classified(0.7 + 0.01 * place, 0.6) for place, name in enumerate(names)}
    tasks["MR"]["variants"][0]["deviation"] = {"lr": {"accuracy": None}, "mlp": {"accuracy": 0.0123}}
    tasks["MRPC"]["variants"][0]["scores"]["lr"]["f1"] = 0.81
    text = markdown(results(tasks))
    rows = table(text, "Transfer (laid out as Table 5)")
    assert rows[0][2:] == ["MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC", "Avg."]
    assert rows[1][1:] == ["logistic regression", *(f"{70 + i}.00" for i in range(7)), "73.00"]
    assert rows[2][1:3] == ["MLP", "60.00 ± 1.23"] and rows[2][-1] == "60.00"
    detail = table(text, "Transfer, every task")
    assert "logistic regression, f1" in detail[0] and "81.00" in detail[-1]


def test_triplets_arguments_probing_speed_and_labels():
    scores = {"euclidean": {"accuracy": 0.7}, "cosine": {"accuracy": 0.6}, "manhattan": {"accuracy": 0.5}}
    more = {"variants": [{**OWN, "scores": scores}], "primary": "euclidean.accuracy", "counts": {"test": 1201}}
    speeds = {"sorted": {"sentences_per_second": 1234.567, "wordpieces_per_second": None}}
    tasks = {
        "wikisec": classified(0, suite="triplets", **more),
        "UKP": graded(0.31, subsets={"Topic": 0.2, "Other": 0.4}, suite="arguments"),
        "SentLen": classified(0.8, None, suite="probing", counts={"train": 10, "test": 4, "all": 14}),
        "speed": classified(
            0, suite="speed", primary="sorted.sentences_per_second", variants=[{**OWN, "scores": speeds}]
        ),
        "SNLI-dev": classified(0, suite="nli", primary="accuracy", variants=[{**OWN, "scores": {"accuracy": 0.843}}]),
    }
    text = markdown(results(tasks))
    row = table(text, "Triplets (laid out as Table 4)")[1]
    assert row == ["en_model", "wikisec", "1201", "70.00", "-", "60.00", "50.00"]
    arguments = [row[3:] for row in table(text, "Arguments (laid out as Table 3)")[1:]]
    assert arguments == [["all pairs pooled", "6", "31.00", "31.00"], ["mean of the topics", "6", "30.00", "30.00"]]
    assert table(text, "Probing")[1] == ["SentLen", "train 10, test 4", "80.00", "undefined"]
    others = {row[1]: row[3] for row in table(text, "Other tasks")[1:]}
    assert others == {
        "sorted sentences per second": "1,234.57", "sorted wordpieces per second": "undefined", "accuracy": "84.30",
    }  # fmt: skip


def test_speed_of_models_and_baselines_in_one_table():
    def timed(**ways):
        scores = {way: {"sentences_per_second": value, "wordpieces_per_second": None} for way, value in ways.items()}
        more = {
            "primary": "own.sentences_per_second",
            "conditions": {"device": "CPU"},
            "counts": {"sentences": 2000, "wordpieces": 9},
        }
        return {"speed": classified(0, suite="speed", variants=[{**OWN, "scores": scores}], **more)}

    models = [results(timed(naive=100.0, smart=150.5, own=1400.0), "sbert"), results(timed(own=9000.0), "static")]
    rows = table(compare_markdown(models), "Speed (laid out as Table 7)")
    assert rows[0][3:] == ["padded, as they come", "padded, sorted (smart batching)", "own way"]
    assert rows[1] == ["sbert", "CPU", "2000", "100.00", "150.50", "1,400.00"] and rows[2][3:] == ["-", "-", "9,000.00"]
    others = {"sorted": {"sentences_per_second": 9.0}, "unsorted": {"sentences_per_second": 8.0}}
    task = classified(0, suite="speed", primary="sorted.sentences_per_second", variants=[{**OWN, "scores": others}])
    text = markdown(results({"speed": task}))
    assert "Table 7" not in text and "unsorted sentences per second" in text


def test_tuned_variants():
    task = classified(0.5)
    more = {"pca-2": 0.6, "pca-4": 0.7, "up-8": 0.75}
    for size, value in more.items():
        task["variants"].append({"normalization": "none", "size": size, "scores": {"lr": {"accuracy": value}}})
    task["variants"][-1]["deviation"] = {"lr": {"accuracy": 0.02}}
    task["tuned"] = {"normalization": ["unit", "none", "unit"], "scores": {"lr": {"accuracy": 0.55}}}
    found = results({"MR": task}, sizes=["own", *more])
    text = markdown(found)
    rows = table(text, "Variants of the input: transfer")
    assert rows[1:3] == [["none", "own", "50.00"], ["none", "pca-2", "60.00"]]
    assert rows[4:] == [["none", "up-8", "75.00 ± 2.00"], ["tuned in each fold", "own", "55.00"]]
    assert "tuned in each fold for MR: none 1, unit 2." in text and "MR: score against size" in html(found)


class Balance(HTMLParser):
    """Keeps the elements that are open, and what a page refers to."""

    def __init__(self):
        super().__init__()
        self.open, self.references, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.references += [value for key, value in attrs if key in ("src", "href", "xlink:href", "srcset", "action")]
        assert not any(key.startswith("on") for key, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def evil_results():
    tasks = {EVIL: graded(0.5, subsets={EVIL: 0.4, "fine": 0.6}, notes=[EVIL]), "MR": classified(0.5)}
    found = results(tasks, name=EVIL)
    found["failed"] = {EVIL: EVIL}
    return found


def test_page_is_balanced_and_refers_to_nothing_outside():
    page = html(evil_results())
    page.encode("utf8")
    balance = Balance()
    balance.feed(page)
    assert balance.open == []
    assert balance.tags.count("svg") == 5  # points, boxes and bars of the pairs; bars of both classifiers
    assert not {"script", "img", "link", "iframe", "object"} & set(balance.tags)
    assert balance.references and all(reference.startswith("#") for reference in balance.references)
    targets = set(re.findall(r' id="([^"]+)"', page))
    assert {reference[1:] for reference in balance.references} <= targets
    assert "url(" not in page and "@import" not in page


def test_markdown_shows_names_as_they_are():
    text = markdown(evil_results())
    text.encode("utf8")
    assert "<" not in text
    row = table(text, "Failed")[1]
    assert len(row) == 2 and row[0].startswith(r"a\|b &lt;script&gt;alert(1)&lt;/script&gt;")
    assert r"\!\[i\](http" in row[0]
    assert escape_markdown("_a_ en_core_web *b* `c` #d") == r"\_a\_ en_core_web \*b\* \`c\` \#d"
    page = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table").render(text)
    assert not any(tag in page for tag in ("<img", "<script", "<a ", "<em>"))
    assert page.count("<td>a|b &lt;script&gt;alert(1)&lt;/script&gt;") >= 2


def test_points_are_sampled_and_it_is_said():
    count = 4000
    task = graded(0.5)
    task["predictions"] = {
        "predicted": [place / count for place in range(count)],
        "gold": [GOLD[place % 6] for place in range(count)],
        "subset": ["all"] * count,
    }
    page = html(results({"STSb-dev": task}))
    assert "1500 of 4000 pairs, drawn at random with seed 0" in page
    layers = re.findall(r'class="dots" d="([^"]*)"', page)
    assert sum(layer.count("M") for layer in layers) == 1500
    assert "n=667" in page  # 4000 pairs over six gold scores
    assert "drawn at random" not in html(results({"STSb-dev": graded(0.5)}))


def test_a_notebook_shows_results_as_their_report():
    found = results_repr(results({"STSb-test": graded(0.5)}, name='"><script>'))
    page = found._repr_html_()
    frame = Balance()
    frame.feed(page)
    assert frame.tags == ["iframe"] and frame.open == []
    srcdoc = re.search(r'srcdoc="([^"]*)"', page).group(1)
    assert unescape(srcdoc) == html(found) and 'sandbox=""' in page
    assert found == results({"STSb-test": graded(0.5)}, name='"><script>') and isinstance(found, dict)
    assert json.loads(json.dumps(found)) == found


def test_development_split_is_not_the_test_split():
    text = markdown(results({"STS12": graded(0.5), "STSb-dev": graded(0.9)}))
    assert table(text, "STS (laid out as Table 1)")[1][7] == "-"
    assert table(text, "STS benchmark")[1][:6] == ["en_model", "nothing named", "dev", "cosine", "6", "90.00"]


def test_box_of_each_gold_score():
    task = graded(0.5)
    task["predictions"] = {
        "predicted": [0.0, 1.0, 2.0, 3.0, 4.0, 9.0],
        "gold": [1, 1, 1, 1, 1, 2],
        "subset": ["all"] * 6,
    }
    svg = next(one for one in re.findall(r"<svg.*?</svg>", html(results({"X": task})), re.DOTALL) if "whiskers" in one)
    root = ElementTree.fromstring(svg)
    assert [text.text for text in root.iter("text")][-4:] == ["1", "n=5", "2", "n=1"]
    tall, flat = (float(rect.get("height")) for rect in root.iter("rect"))
    # quartiles 1 and 3 of a field of 262 pixels for 0 to 10
    assert tall == pytest.approx(2 / 10 * 262, abs=0.1) and flat == 0.5
