"""Pictures in a real browser: what is shown when they are pointed at. Needs a chromium on the PATH."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest
from made_pages import data_of, made
from made_results import graded, results

from spacy_sbert import visual
from spacy_sbert.evaluation.report import html
from spacy_sbert.visual.colours import STEPS

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
    file.write_text(page.replace("</body>", f"<script>{START}{script}</script></body>"), encoding="utf8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
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
    assert kept(dom, "score") == f"{docs[0].similarity(docs[1]):.4f}" and kept(dom, "images") == "0"
    rows = data_of(page)["rows"]
    cosines = [found[1] for found in rows[0]["cosines"] if found] + [found[0] for found in rows[1]["cosines"]]
    assert 0 < len(cosines) < len(docs[0]) + len(docs[1])  # the limit of the encoder left tokens without vectors
    assert kept(dom, "classes").split() == [f"v{data_of(page)['steps'][cosine + 100]}" for cosine in cosines]
    assert f"from {data_of(page)['range']}" in kept(dom, "said")
    assert kept(dom, "here") == "1,2"
    assert kept(dom, "focused") == "1.0000, texts 2 and 2" and kept(dom, "after") == "1.0000"


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
    assert kept(dom, "inside") == "true,true,true" and kept(dom, "images") == "0"


def test_cells_in_another_order_show_their_own_texts(tmp_path):
    docs = [made(name, [x, 1]) for name, x in (("First.", 0), ("Second.", 9), ("Third.", 0.1))]
    page = visual.render(docs, page=True)
    script = """
      const shown = [...document.querySelectorAll("tbody td")].map((cell) => {
        cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
        const lines = [...document.querySelectorAll(".pair p")].map((line) => line.textContent);
        return [document.querySelector(".pair strong").textContent, ...lines].join(" ");
      });
      put("shown", shown.join("|"));
    """
    shown = kept(act(page, script, tmp_path), "shown").split("|")
    order = [0, 2, 1]
    assert shown == [
        f"{docs[i].similarity(docs[j]):.4f} {i + 1}{docs[i].text} {j + 1}{docs[j].text}" for i in order for j in order
    ]


def test_a_cell_of_tokens_shows_both_in_their_texts(make_nlp, tmp_path):
    docs = list(make_nlp().pipe(["A \n man eats.", "The cat sat."]))
    page = visual.render(docs, "tokens", page=True)
    script = """
      const cell = document.querySelectorAll("tbody tr")[2].querySelectorAll("td")[1];
      cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
      const panel = document.querySelector(".pair");
      put("lines", [...panel.querySelectorAll("p")].map((line) => line.textContent).join("|"));
      put("here", [...panel.querySelectorAll("span.here")].map((one) => one.textContent).join());
      put("titles", [...panel.querySelectorAll("span")].map((one) => one.title).join());
      put("score", panel.querySelector("strong").textContent);
    """
    dom = act(page, script, tmp_path)
    first, second = docs
    assert kept(dom, "lines") == f"{first.text.replace(chr(10), ' ')}|{second.text}"
    assert kept(dom, "here") == "eats,cat" and kept(dom, "score") == f"{first[3].similarity(second[1]):.4f}"
    titles = [token.similarity(second[1]) for token in first if not token.is_space]
    titles += [token.similarity(first[3]) for token in second]
    assert [float(title) for title in kept(dom, "titles").split(",")] == pytest.approx(titles, abs=0.0051)


ZOOM = """
  const plot = document.querySelector(".plot"), drawing = plot.querySelector("svg");
  const data = JSON.parse(document.querySelector('script[type="application/json"]').textContent);
  const size = drawing.getBoundingClientRect(), scale = size.width / 760;
  const at = ([x, y]) => ({ clientX: size.left + x * scale, clientY: size.top + y * scale, bubbles: true });
  const drawn = () => [...drawing.querySelectorAll(".points")].flatMap((path) =>
    [...path.getAttribute("d").matchAll(/M([\\d.-]+) ([\\d.-]+)m/g)].map(([, x, y]) => [+x, +y]));
  const key = (name, more) => plot.dispatchEvent(new KeyboardEvent("keydown", { key: name, ...more }));
  const wheel = (place, deltaY, more) => {
    const event = new WheelEvent("wheel", { ...at(place), deltaY, cancelable: true, ...more });
    drawing.dispatchEvent(event);
    return event.defaultPrevented;
  };
  const finger = (type, id, place) => drawing.dispatchEvent(new PointerEvent(type, { ...at(place), pointerId: id }));
  const gap = () => { const [a, b] = drawn(); return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0; };
  const buttons = [...plot.querySelectorAll(".zoom button")];
"""


@pytest.fixture
def near_points():
    """Two points near the middle of the field, and one far in each corner."""
    vectors = [[1, 0, 0], [1, 0.05, 0], [0.4, 1, 1], [0.4, -1, 1], [0.4, 1, -1], [0.4, -1, -1]]
    return [made(f"Text {number}.", vector) for number, vector in enumerate(vectors)]


def test_zoom_by_buttons_and_keys(near_points, tmp_path):
    script = """
      const begin = gap(), steps = [];
      put("names", buttons.map((one) => one.getAttribute("aria-label")).join());
      buttons[0].click(); steps.push(gap() / begin, drawn().length);
      buttons[1].click(); steps.push(gap() / begin);
      key("+"); key("+"); key("+"); key("+"); steps.push(gap() / begin, drawn().length);
      put("zoomed", plot.classList.contains("zoomed"));
      key("-"); steps.push(gap() / begin);
      key("+", { ctrlKey: true }); steps.push(gap() / begin);
      key("0"); steps.push(gap() / begin, drawn().length);
      for (let time = 0; time < 20; time++) key("+");
      buttons[2].click(); steps.push(gap() / begin);
      key("-"); steps.push(gap() / begin);
      put("steps", steps.map((one) => one.toFixed(3)).join());
    """
    page = visual.render(near_points, "map", page=True)
    dom = act(page, ZOOM + script, tmp_path)
    assert kept(dom, "names") == "Zoom in,Zoom out,Whole map" and kept(dom, "zoomed") == "true"
    scales = [float(step) for step in kept(dom, "steps").split(",")]
    steps = 1.6, 2, 1, 1.6**4, 2, 1.6**3, 1.6**3, 1, 6, 1, 1
    assert scales == pytest.approx(steps, rel=0.03)


def test_zoom_by_wheel_and_fingers(near_points, tmp_path):
    script = """
      const begin = gap(), [x, y] = data.places[0], steps = [];
      const moved = () => Math.hypot(drawn()[0][0] - x, drawn()[0][1] - y);
      put("plain", wheel([x, y], -50));
      put("ctrl", wheel([x, y], -50, { ctrlKey: true }));
      steps.push(gap() / begin, moved());
      plot.focus();
      put("focused", wheel([x, y], -50) || !plot.matches(":focus-within"));
      wheel([x, y], 50); wheel([x, y], 50); wheel([x, y], 50);
      put("out", wheel([x, y], 50, { ctrlKey: true }));
      key("0");
      finger("pointerdown", 1, [x, y]);
      finger("pointerdown", 2, [x + 40, y]);
      finger("pointermove", 2, [x + 120, y]);
      steps.push(gap() / begin, moved());
      finger("pointerup", 2, [x + 120, y]);
      finger("pointermove", 1, [x + 30, y + 20]);
      steps.push(drawn()[0][0] - x, drawn()[0][1] - y);
      finger("pointerup", 1, [x + 30, y + 20]);
      finger("pointermove", 1, [x + 60, y + 60]);
      steps.push(drawn()[0][0] - x, drawn()[0][1] - y);
      put("steps", steps.map((one) => one.toFixed(3)).join());
    """
    dom = act(visual.render(near_points, "map", page=True), ZOOM + script, tmp_path)
    assert [kept(dom, name) for name in ("plain", "ctrl", "focused", "out")] == ["false", "true", "true", "false"]
    steps = [float(step) for step in kept(dom, "steps").split(",")]
    assert steps == pytest.approx([2.718281828**0.5, 0, 3, 0, 30, 20, 30, 20], rel=0.03, abs=0.6)  # pixels are whole


def test_a_text_out_of_sight_is_brought_into_view(near_points, tmp_path):
    script = """
      for (let time = 0; time < 5; time++) key("+");
      key("ArrowRight"); key("ArrowLeft");
      put("tip", plot.querySelector(".tip").textContent);
      const ring = plot.querySelector(".ring"), [x1, y1, x2, y2] = data.frame;
      const [x, y] = [+ring.getAttribute("cx"), +ring.getAttribute("cy")];
      put("inside", x >= x1 && x <= x2 && y >= y1 && y <= y2);
      const grid = [...drawing.querySelectorAll(".grid")].filter((one) => one.getAttribute("visibility") !== "hidden");
      put("grid", grid.length < drawing.querySelectorAll(".grid").length);
    """
    dom = act(visual.render(near_points, "map", page=True), ZOOM + script, tmp_path)
    assert kept(dom, "tip") == "Text 5." and kept(dom, "inside") == "true" and kept(dom, "grid") == "true"


TEXTS = [f"A text that is rather long, so that its label does not fit beside the numbers, {n}." for n in range(12)]
WIDE = [made(text, [1, number, number**2]) for number, text in enumerate(TEXTS)]


@pytest.mark.parametrize("style", ["heatmap", "map", "tokens", "report"])
def test_pages_fit_a_phone(style, make_nlp, tmp_path):
    """What is wide scrolls by itself, and not the page."""
    if style == "report":
        made_results = results(
            {name: graded(0.5) for name in ("STS12", "STSb-test")}, name="a-rather-long-name-of-a-model"
        )
        page = html(made_results)
    elif style == "tokens":
        page = visual.render(
            list(make_nlp().pipe(["A man is eating food.", "The cat sat on the mat and ran."])), style, page=True
        )
    else:
        page = visual.render(WIDE, style, page=True, options={"labels": range(12)} if style == "map" else {})
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
    assert 370 <= inner <= 390 and needed <= inner
    assert float(kept(dom, "least")) >= 14


def test_colours_follow_the_theme_of_a_notebook(tmp_path):
    page = visual.render([made("One.", [1, 0]), made("Two.", [0, 1])], page=True)
    script = """
      const colours = () => [...document.querySelectorAll(".bar i"), document.querySelector("figure")]
        .map((one) => getComputedStyle(one).backgroundColor);
      document.body.dataset.jpThemeLight = "true";
      const light = colours();
      document.body.dataset.jpThemeLight = "false";
      const dark = colours();
      put("count", [new Set(light).size, new Set(dark).size].join());
      put("pages", [light.pop(), dark.pop()].join(" "));
    """
    dom = act(page, script, tmp_path)
    assert kept(dom, "count") == f"{2 * STEPS + 2},{2 * STEPS + 2}"  # the figure's own is another
    assert kept(dom, "pages") == "rgb(255, 255, 255) rgb(20, 23, 29)"


FRAMED = """
  const frame = document.createElement("iframe");
  frame.style.cssText = "width: WIDTHpx; height: 844px; border: 0";
  frame.srcdoc = PAGE;
  frame.onload = () => {
    const inner = frame.contentDocument, plot = inner.querySelector(".plot"), drawing = plot.querySelector("svg");
    const tip = plot.querySelector(".tip"), size = drawing.getBoundingClientRect(), scale = size.width / 760;
    const data = JSON.parse(inner.querySelector('script[type="application/json"]').textContent);
    const send = (type, [x, y], more) => drawing.dispatchEvent(new frame.contentWindow.PointerEvent(type, {
      clientX: size.left + x * scale, clientY: size.top + y * scale, bubbles: true, ...more }));
    SCRIPT
    put("done", "true");
  };
  document.body.replaceChildren(frame);
"""
LONG = "Words that go on and on, until the text fills a phone. " * 12
GROUPS = [
    made(LONG if n % 2 else f"Text {n}.", [n % 5 == k for k in range(5)] + [n / 40, n % 7 / 20]) for n in range(40)
]
NAMES = ["a rather long name of a label", "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW", "名" * 32, "b", "c and d"]


def in_frame(width, script, tmp_path):
    """The document after a script that knows a map of groups in a window of this width."""
    labels = [NAMES[number % 5] for number in range(40)]
    page = visual.render(GROUPS, "map", page=True, options={"labels": labels, "projection": "pca"})
    quoted = json.dumps(page).replace("<", "\\u003c")
    script = FRAMED.replace("WIDTH", str(width)).replace("SCRIPT", script).replace("PAGE", quoted)
    dom = act("<!doctype html><body></body>", script, tmp_path)
    assert kept(dom, "done") == "true"
    return dom


@pytest.mark.parametrize("width", [390, 560, 960])
def test_a_text_covers_less_than_a_third_of_the_map(width, tmp_path):
    script = """
      const shares = [], out = [];
      data.places.forEach((place, number) => {
        send("pointermove", place);
        if (tip.hidden) return;
        const box = tip.getBoundingClientRect();
        const across = Math.min(box.right, size.right) - Math.max(box.left, size.left);
        const down = Math.min(box.bottom, size.bottom) - Math.max(box.top, size.top);
        shares.push(Math.max(0, across) * Math.max(0, down) / (size.width * size.height));
        if (box.left < 0 || box.top < 0 || box.right > frame.clientWidth || box.bottom > frame.clientHeight)
          out.push(number);
      });
      put("most", Math.max(...shares));
      put("count", shares.length);
      put("out", out.join());
    """
    dom = in_frame(width, script, tmp_path)
    assert 0 <= float(kept(dom, "most")) < 1 / 3 and int(kept(dom, "count")) >= 35 and kept(dom, "out") == ""


@pytest.mark.parametrize("width", [390, 960])
def test_names_of_groups_can_be_read_at_every_width(width, tmp_path):
    script = """
      const look = () => {
        const names = [...drawing.querySelectorAll("text.group")].filter(
          (one) => one.getAttribute("visibility") !== "hidden");
        const boxes = names.map((one) => one.getBoundingClientRect());
        const apart = boxes.every((a, place) => boxes.slice(place + 1).every((b) =>
          a.right <= b.left || b.right <= a.left || a.bottom <= b.top + 4 || b.bottom <= a.top + 4));
        const whole = boxes.every((a) => a.left >= size.left && a.right <= size.right && a.top >= size.top - 1
          && a.bottom <= size.bottom + 1);
        const least = Math.min(...names.map((one) => parseFloat(frame.contentWindow.getComputedStyle(one).fontSize)));
        return [names.length, apart, whole, least * scale];
      };
      put("begin", look().join());
      plot.querySelector(".zoom button").click();
      put("zoomed", look().join());
      inner.querySelectorAll(".labels button")[1].click();
      plot.querySelectorAll(".zoom button")[2].click();
      put("alone", look()[0]);
    """
    dom = in_frame(width, script, tmp_path)
    for name in ("begin", "zoomed"):
        count, apart, whole, font = kept(dom, name).split(",")
        assert (apart, whole) == ("true", "true") and float(font) >= 12.5, name
        assert name == "zoomed" or int(count) >= 3
    assert kept(dom, "alone") == "1"


def test_a_tap_leaves_the_text(tmp_path):
    """A finger that is lifted is over nothing, which a browser says as that it left."""
    script = """
      const [x, y] = data.places[0], touch = { pointerType: "touch", pointerId: 3 };
      for (const type of ["pointerdown", "pointerup", "pointerleave"]) send(type, [x, y], touch);
      put("tapped", tip.hidden);
      put("text", tip.textContent);
      inner.body.dispatchEvent(new frame.contentWindow.PointerEvent("pointerdown", { bubbles: true }));
      put("elsewhere", tip.hidden);
    """
    dom = in_frame(390, script, tmp_path)
    assert kept(dom, "tapped") == "false" and "Text 0." in kept(dom, "text") and kept(dom, "elsewhere") == "true"
