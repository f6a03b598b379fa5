"""Pictures in a real browser: what is shown when they are pointed at. Needs a chromium on the PATH."""

import re
import shutil
import subprocess
from html import unescape

import pytest
from made_pages import data_of, made

from spacy_sbert import visual
from spacy_sbert.visual.colours import STEPS

pytestmark = pytest.mark.slow
EVIL = "<img src=x onerror=alert(1)> & </script>"
START = """
const put = (name, value) => document.body.setAttribute("data-" + name, value);
window.addEventListener("error", (event) => put("error", event.message));
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
    page = visual.render(docs, page=True)
    script = """
      const cell = document.querySelectorAll("tbody tr")[0].querySelectorAll("td")[1];
      cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
      const panel = document.querySelector(".pair"), spans = [...panel.querySelectorAll("span")];
      put("lines", [...panel.querySelectorAll("p")].map((line) => line.textContent).join("|"));
      put("score", panel.querySelector("strong").textContent);
      put("classes", spans.map((span) => span.className).join(" "));
      put("images", document.images.length);
      put("here", [...document.querySelectorAll("th.here b")].map((one) => one.textContent).sort().join());
      cell.focus();
      cell.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
      put("focused", document.activeElement.getAttribute("aria-label"));
      put("after", panel.querySelector("strong").textContent);
    """
    dom = act(page, script, tmp_path)
    assert kept(dom, "lines") == f"1{EVIL}|2A man is eating food."
    assert kept(dom, "score") == f"{docs[0].similarity(docs[1]):.4f}" and kept(dom, "images") == "0"
    rows = data_of(page)["rows"]
    cosines = [found[1] for found in rows[0]["cosines"] if found] + [found[0] for found in rows[1]["cosines"]]
    assert 0 < len(cosines) < len(docs[0]) + len(docs[1])  # the limit of the encoder left tokens without vectors
    assert kept(dom, "classes").split() == [f"v{round(STEPS * cosine / 100) + STEPS}" for cosine in cosines]
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
