"""Pictures in a real browser: what is shown when they are pointed at. Needs a chromium on the PATH."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest
from helpers.made_pages import data_of, made
from helpers.made_results import graded, results

from spacy_sbert import visual
from spacy_sbert.evaluation.report import evaluation_report

pytestmark = pytest.mark.slow
EVIL = "<img src=x onerror=alert(1)> & </script>"
START = """
const put = (name, value) => document.body.setAttribute("data-" + name, value);
window.addEventListener("error", (event) => put("error", event.message));
// What a browser says of a new focus, which it does not while its window has none.
const focused = () => document.activeElement.dispatchEvent(new FocusEvent("focusin", { bubbles: true }));
"""


def act(page, script, tmp_path):
    """The document as a browser has it after a script."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("needs chromium on the PATH")
    file = tmp_path / "page.html"
    file.write_text(
        page.replace("</body>", f"<script>{START}{script}</script></body>"), encoding="utf8"
    )
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    command = [browser, *options, "--window-size=1000,900", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert not re.search("<body[^>]* data-error=", done.stdout)
    return done.stdout


def kept(dom, name):
    return unescape(re.search(rf'<body[^>]* data-{name}="(.*?)"', dom, re.DOTALL)[1])


@pytest.mark.filterwarnings("ignore:.*were longer than the encoder's limit")
def test_a_cell_shows_both_texts_and_their_tokens(make_nlp, tmp_path):
    docs = list(make_nlp().pipe([EVIL, "A man is eating food.", "The cat sat."]))
    page = visual.render(docs, page=True, options={"order": "given"})
    script = """
      const cell = document.querySelectorAll("tbody tr")[0].querySelectorAll("td")[1];
      cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
      const panel = document.querySelector(".pair"), spans = [...panel.querySelectorAll("span")];
      put("lines", [...panel.querySelectorAll("p")].map((line) => line.textContent).join("|"));
      put("score", panel.querySelector("strong").textContent);
      put("said", panel.querySelector("small").textContent);
      put("classes", spans.map((span) => span.className).join(" "));
      put("images", document.images.length);
      put("here", [...document.querySelectorAll("th.here b")].map((one) => one.textContent).sort().join());
      cell.focus();
      cell.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
      focused();
      put("focused", document.activeElement.getAttribute("aria-label"));
      put("after", panel.querySelector("strong").textContent);
    """
    dom = act(page, script, tmp_path)
    assert kept(dom, "lines") == f"1{EVIL}|2A man is eating food."
    assert kept(dom, "score") == f"{docs[0].similarity(docs[1]):.4f}"
    assert kept(dom, "images") == "0"
    rows = data_of(page)["rows"]
    cosines = [found[1] for found in rows[0]["cosines"] if found] + [
        found[0] for found in rows[1]["cosines"]
    ]
    # The limit of the encoder left tokens without vectors
    assert 0 < len(cosines) < len(docs[0]) + len(docs[1])
    assert kept(dom, "classes").split() == [
        f"v{data_of(page)['steps'][cosine + 100]}" for cosine in cosines
    ]
    assert f"from {data_of(page)['range']}" in kept(dom, "said")
    assert kept(dom, "here") == "1,2"
    assert kept(dom, "focused") == "1.0000, texts 2 and 2"
    assert kept(dom, "after") == "1.0000"


def test_a_point_shows_its_text(tmp_path):
    docs = [made(EVIL, [1, 0, 0]), made("Two.", [0, 1, 0]), made("Three. " * 20, [0, 0, 1])]
    page = visual.render(docs, "map", page=True, options={"labels": ["a", "b", "b"]})
    script = """
      const plot = document.querySelector(".plot"), drawing = plot.querySelector("svg");
      const data = JSON.parse(document.querySelector('script[type="application/json"]').textContent);
      const tip = plot.querySelector(".tip"), size = drawing.getBoundingClientRect(), shown = [], inside = [];
      const point = ([x, y]) => drawing.dispatchEvent(new PointerEvent("pointermove", {
        clientX: size.left + x * size.width / 760 + 2, clientY: size.top + y * size.width / 760 }));
      const look = () => shown.push(tip.hidden ? "" : tip.textContent);
      data.places.forEach((place) => {
        point(place);
        look();
        const box = tip.getBoundingClientRect();
        inside.push(box.left >= size.left && box.right <= size.right && box.bottom <= size.bottom);
      });
      point([1, 1]);
      look();
      document.querySelectorAll(".labels button")[1].click();
      point(data.places[0]);
      look();
      plot.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
      look();
      put("shown", shown.join("|"));
      put("inside", inside.join());
      put("images", document.images.length);
    """
    dom = act(page, script, tmp_path)
    three = ("Three. " * 20).strip()
    assert kept(dom, "shown").split("|") == [f"a{EVIL}", "bTwo.", f"b{three}", "", "", "bTwo."]
    assert kept(dom, "inside") == "true,true,true"
    assert kept(dom, "images") == "0"


ZOOM = """
  const plot = document.querySelector(".plot"), drawing = plot.querySelector("svg");
  const drawn = () => [...drawing.querySelectorAll(".points")].flatMap((path) =>
    [...path.getAttribute("d").matchAll(/M([\\d.-]+) ([\\d.-]+)m/g)].map(([, x, y]) => [+x, +y]));
  const key = (name, more) => plot.dispatchEvent(new KeyboardEvent("keydown", { key: name, ...more }));
  const gap = () => { const [a, b] = drawn(); return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0; };
  const [zoomIn, zoomOut, whole] = plot.querySelectorAll(".zoom button");
  const begin = gap(), steps = [];
  for (const act of [
    () => zoomIn.click(), () => zoomOut.click(), () => "++++".split("").forEach((one) => key(one)), () => key("-"),
    () => key("+", { ctrlKey: true }), () => key("0"), () => { for (let n = 0; n < 20; n++) key("+"); whole.click(); },
  ]) { act(); steps.push(gap() / begin, drawn().length); }
  put("steps", steps.map((one) => one.toFixed(3)).join());
"""


def test_zoom_by_buttons_and_keys(tmp_path):
    """Of two points near the middle of the field, and one far in each corner."""
    vectors = [[1, 0, 0], [1, 0.05, 0], [0.4, 1, 1], [0.4, -1, 1], [0.4, 1, -1], [0.4, -1, -1]]
    docs = [made(f"Text {number}.", vector) for number, vector in enumerate(vectors)]
    steps = kept(act(visual.render(docs, "map", page=True), ZOOM, tmp_path), "steps").split(",")
    expected = [1.6, 2, 1, 6, 1.6**4, 2, 1.6**3, 2, 1.6**3, 2, 1, 6, 1, 6]
    assert [float(step) for step in steps] == pytest.approx(expected, rel=0.03)


TEXTS = [
    f"A text that is rather long, so that its label does not fit beside the numbers, {n}."
    for n in range(12)
]
WIDE = [made(text, [1, number, number**2]) for number, text in enumerate(TEXTS)]


@pytest.mark.parametrize("style", ["heatmap", "map", "tokens", "report"])
def test_pages_fit_a_phone(style, make_nlp, tmp_path):
    """What is wide scrolls by itself, and not the page."""
    if style == "report":
        tasks = {name: graded(0.5) for name in ("STS12", "STSb-test")}
        page = evaluation_report(results(tasks, name="a-rather-long-name-of-a-model")).html()
    elif style == "tokens":
        texts = ["A man is eating food.", "The cat sat on the mat and ran."]
        page = visual.render(list(make_nlp().pipe(texts)), style, page=True)
    else:
        page = visual.render(
            WIDE, style, page=True, options={"labels": range(12)} if style == "map" else {}
        )
    script = """
      const frame = document.createElement("iframe");
      frame.width = 390;
      frame.srcdoc = PAGE;
      frame.onload = () => {
        const inner = frame.contentDocument, size = inner.documentElement;
        put("widths", [size.clientWidth, size.scrollWidth].join());
        const small = [...inner.querySelectorAll("td")].map((one) => parseFloat(getComputedStyle(one).fontSize));
        put("least", Math.min(99, ...small));
      };
      document.body.replaceChildren(frame);
    """
    quoted = json.dumps(page).replace("<", "\\u003c")
    dom = act("<!doctype html><body></body>", script.replace("PAGE", quoted), tmp_path)
    inner, needed = map(int, kept(dom, "widths").split(","))
    assert 370 <= inner <= 390
    assert needed <= inner
    assert float(kept(dom, "least")) >= 14
