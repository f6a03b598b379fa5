"""The site is built from the pages without a warning; its links hold, and nothing is fetched from elsewhere."""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

ROOT = Path(__file__).parent.parent
OTHERS = ["README", "CHANGELOG", "CONTRIBUTING", "ARCHITECTURE", "benchmarks/README"]
PAGES = [*(ROOT / f"{name}.md" for name in OTHERS), *sorted((ROOT / "docs").glob("*.md"))]


def build(folder: Path) -> str:
    """Build the site strictly, and return what mkdocs wrote to standard error; its own notices are off."""
    pytest.importorskip("material", reason="the site needs the extra docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


class Page(HTMLParser):
    """What a page of the site has: anchors, links, the links of its navigation, and what a browser fetches for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.navigation: list[str] = []
        self.fetched: list[str] = []
        self.depth = 0
        self.text = path.read_text(encoding="utf8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attrs}
        self.anchors |= {of["id"]} if "id" in of else set()
        self.depth += tag == "nav"
        if tag == "a" and "href" in of:
            self.links.append(of["href"])
            self.navigation += [of["href"]] if self.depth else []
        elif tag == "link":
            self.fetched.append(of["href"])
        elif "src" in of:
            self.fetched.append(of["src"])

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == "nav"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("site")
    return folder, build(folder)


def html_of(folder: Path, page: Path) -> Path:
    path = page.relative_to(ROOT)
    return folder / (path.with_name("index.html") if path.name == "README.md" else path.with_suffix(".html"))


@pytest.fixture(scope="module")
def pages(built: tuple[Path, str]) -> dict[Path, Page]:
    return {html_of(built[0], page): Page(html_of(built[0], page)) for page in PAGES}


def test_strict_build_has_no_warning(built: tuple[Path, str]):
    assert [line for line in built[1].splitlines() if line and not line.startswith("INFO")] == []


def test_every_page_is_in_the_navigation(built: tuple[Path, str], pages: dict[Path, Page]):
    first = built[0] / "index.html"
    listed = {(first.parent / unquote(urldefrag(link).url)).resolve() for link in pages[first].navigation}
    assert [path.name for path in pages if path.resolve() not in listed] == []


def test_a_page_of_benchmarks_has_its_name_in_the_navigation(pages: dict[Path, Page], built: tuple[Path, str]):
    text = pages[built[0] / "index.html"].text
    assert re.search(r'<a href="benchmarks/index.html" class="md-nav__link">\s*<span[^>]*>\s*Benchmarks\s', text)


def test_the_scheme_is_that_of_the_system_until_the_reader_chooses(pages: dict[Path, Page]):
    for page in pages.values():
        assert re.findall(r'data-md-color-media="(.*?)"', page.text)[0] == "(prefers-color-scheme)"


def test_links_and_anchors_of_the_site_resolve(pages: dict[Path, Page]):
    dead, seen = [], 0
    for path, page in pages.items():
        for link in page.links:
            if urlsplit(link).scheme:
                continue
            url, anchor = urldefrag(link)
            target = (path.parent / unquote(url)).resolve() if url else path
            target = target / "index.html" if target.is_dir() else target
            found = target.is_file() and (not anchor or target not in pages or anchor in pages[target].anchors)
            dead += [] if found else [(path.name, link)]
            seen += 1
    assert dead == [] and seen > 500


def test_nothing_is_fetched_from_elsewhere(built: tuple[Path, str], pages: dict[Path, Page]):
    fetched = [(path.name, link) for path, page in pages.items() for link in page.fetched]
    assert fetched and [pair for pair in fetched if urlsplit(pair[1]).netloc] == []
    assert not re.search(r"googleapis|gstatic|unpkg|jsdelivr", "".join(page.text for page in pages.values()))
    for sheet in built[0].rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", sheet.read_text(encoding="utf8")), sheet


def test_pictures_are_shown(built: tuple[Path, str], pages: dict[Path, Page]):
    """A map and a heat map, for light and for dark screens, at the same place in the repository and on the site."""
    for page in (ROOT / "README.md", ROOT / "docs" / "pictures.md"):
        path = html_of(built[0], page)
        for text in (page.read_text(encoding="utf8"), pages[path].text):
            found = re.findall(
                r"<source media=\"\(prefers-color-scheme: dark\)\" srcset=\"(.*?)\">\s*<img src=\"(.*?)\"", text
            )
            kinds = {(Path(dark).name, Path(light).name) for dark, light in found}
            assert kinds == {(f"{kind}-dark.png", f"{kind}-light.png") for kind in ("map", "heatmap")}
            for name in (name for pair in found for name in pair):
                shown = page.parent / name
                assert (path.parent / name).read_bytes() == shown.read_bytes() and shown.stat().st_size < 150_000


def test_pages_of_tables_are_copied_with_their_index(built: tuple[Path, str]):
    index = built[0] / "benchmarks" / "papers" / "papers.html"
    links = re.findall(r'href="([^"#]+)"', index.read_text(encoding="utf8"))
    assert len(links) > 15 and all((index.parent / link).is_file() for link in links)


def test_search_needs_no_server(built: tuple[Path, str], pages: dict[Path, Page]):
    assert (built[0] / "search" / "search_index.js").read_text(encoding="utf8").startswith("var __index = {")
    for page in pages.values():
        assert [link for link in page.fetched if "iframe-worker" in link]
    assert (built[0] / "iframe-worker.js").is_file()


SEARCH = """<script>
addEventListener("load", async () => {
  const pause = () => new Promise((done) => setTimeout(done, 200));
  const query = document.querySelector('[data-md-component="search-query"]');
  document.querySelector('[data-md-toggle="search"]').click();
  query.focus();
  query.value = "t-SNE";
  const found = () => [...document.querySelectorAll(".md-search-result__link")].map((one) => one.href);
  for (let time = 0; time < 100 && !found().length; time++) {
    query.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
    await pause();
  }
  const bar = document.querySelector('[data-md-component="search"]');
  document.body.dataset.found = `${getComputedStyle(bar).display} ${found().join(" ")}`;
});
</script></body>"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index.html", "docs/pictures.html"])
def test_search_from_a_disk(built: tuple[Path, str], tmp_path: Path, name: str):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("needs chromium on the PATH")
    file = (built[0] / name).with_name("searched.html")
    file.write_text((built[0] / name).read_text(encoding="utf8").replace("</body>", SEARCH), encoding="utf8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={tmp_path}"]
    command = [browser, *options, "--virtual-time-budget=30000", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    display, *links = re.search(r'<body[^>]* data-found="(.*?)"', done.stdout)[1].split()
    assert display == "block" and any("/docs/pictures.html" in link for link in links)


def test_no_markup_is_left_as_text(pages: dict[Path, Page]):
    """A table or a list without a blank line before it, or a product of two stars, would be."""
    for path, page in pages.items():
        assert not re.search(r"<p>(- |\d+\. |\| )", page.text), path
        assert not re.search(r"\w<em>", page.text), path


def slug(heading: str) -> str:
    """The anchor that GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf8"), flags=re.DOTALL)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def test_anchors_on_github_resolve():
    dead = []
    for page in PAGES:
        for path, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text(encoding="utf8")):
            target = (page.parent / path) if path else page
            dead += [] if anchor in anchors(target) else [(page.name, path, anchor)]
    assert dead == []
