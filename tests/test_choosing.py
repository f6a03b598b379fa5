"""docs/choosing.md carries over figures: each stands on a page that its row, or else its section, links to."""

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
TEXT = (DOCS / "choosing.md").read_text(encoding="utf8")
FIGURE = re.compile(r"(?<![\w.,-])\d+(?:,\d{3})*(?:\.\d+)?(?=x\b|[^\w-]|$)")  # also that of 2.34x
SMALL = {"0", "1"}  # of pairs with 0 and 1, and of MiniLM as the measure of speed


def figures(text: str) -> set[str]:
    """The numbers of a text, without those in code and in the addresses of links."""
    return set(FIGURE.findall(re.sub(r"`[^`]*`|\]\([^)]*\)", " ", text))) - SMALL


def linked(text: str) -> str:
    pages = re.findall(r"\]\(([^)#\s:]+)", text)
    return "\n".join((DOCS / page).read_text(encoding="utf8") for page in pages if page != "faq.md")


def unfounded(text: str, source: str) -> set[str]:
    found = set(FIGURE.findall(source))
    return figures(text) - found


def test_figures_of_a_row_stand_on_the_pages_that_it_links_to():
    rows = [row for row in re.findall(r"^\|.*\|$", TEXT, re.MULTILINE) if "](" in row]
    assert len(rows) > 30 and sum(len(figures(row)) for row in rows) > 50
    assert {row: missing for row in rows if (missing := unfounded(row, linked(row)))} == {}


def test_figures_of_the_text_stand_on_the_pages_that_its_section_links_to():
    sections = re.split(r"^## ", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL), flags=re.MULTILINE)[1:]
    pages = linked("[](results.md)")
    assert {part: missing for part in sections if (missing := unfounded(part, linked(part) + pages))} == {}


def test_the_check_of_figures_can_fail():
    assert unfounded("Spearman 12.34, [papers](papers.md)", linked("[papers](papers.md)")) == {"12.34"}
    assert figures("`configs/x1.cfg` 86.72, all-MiniLM-L6-v2, 10,000 pairs and 0.994") == {"86.72", "10,000", "0.994"}
