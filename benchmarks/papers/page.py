"""Put the index and the saved tables into docs/papers.md, and draw the tables:
benchmarks/papers/papers.html and a page for each section.

    python benchmarks/papers/page.py            after the results have changed
    python benchmarks/papers/page.py --check    whether the page says what was saved

In the page the index is between `<!-- index -->` and `<!-- end -->` (paper_index.py). A table is
between `<!-- table FILE -->` and `<!-- end -->`, FILE below benchmarks/papers/results, or the name
of a table that is made of saved scores (saved_scores.py). With `<!-- table FILE, plot COLUMN -->`
the figures of that column are drawn, too: the first number of each cell.
"""

import argparse
import re
from dataclasses import replace
from html import escape
from pathlib import Path

from paper_index import index
from saved_scores import TABLES

from spacy_sbert.render.document import Document, Table
from spacy_sbert.render.plots import Bar, Plot, bars

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "papers.md"
RESULTS = HERE / "results"
# The page that lists the others, and their folder
INDEX = "papers.html"
FOLDER = "pages"
# In every page
CONTENTS = '<nav aria-label="Contents"><ul>'
BLOCK = re.compile(
    r"<!-- table (?P<file>[^\s,]+)(?:, plot (?P<column>[^>]+?))? -->\n(?P<body>.*?)<!-- end -->",
    re.S,
)
OVERVIEW = re.compile(r"<!-- index -->\n.*?<!-- end -->", re.S)
# notes: until the next one
TABLE = re.compile(r"(?P<lines>(?:^\|.*\n)+)(?P<notes>(?:^(?!\|).*\n)*)", re.M)
HEADING = re.compile(r"^(#+) (.+)$", re.M)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
# A bar that is escaped ends no cell
CELLS = re.compile(r"(?<!\\)\|")


def filled(page: str) -> str:
    """The page with the index, and with the tables as they were saved."""

    def block(found: re.Match[str]) -> str:
        table = saved_table(found["file"]).strip()
        return f"{found[0].partition(chr(10))[0]}\n{table}\n<!-- end -->"

    overview = f"<!-- index -->\n{index()}<!-- end -->"
    return BLOCK.sub(block, OVERVIEW.sub(lambda found: overview, page))


def saved_table(name: str) -> str:
    """A table as it was saved, or made of saved scores."""
    if name in TABLES:
        return TABLES[name]()
    return (RESULTS / name).read_text(encoding="utf8")


def drawn(page: str) -> dict[str, str]:
    """Return HTML pages by their paths from benchmarks/papers: one for each section with tables,
    and their index.
    """
    # By paper, the path of each section's page
    sections: dict[str, dict[str, str]] = {}
    tables: dict[str, list[Table]] = {}
    plots: dict[str, list[Plot]] = {}
    for found in BLOCK.finditer(page):
        headings = HEADING.findall(page, 0, found.start())
        title = headings[-1][1]
        paper = next((words for marks, words in reversed(headings) if len(marks) <= 2), title)
        path = sections.setdefault(paper, {}).setdefault(title, f"{FOLDER}/{_slug(title)}.html")
        for part in TABLE.finditer(found["body"]):
            columns, _, *rows = map(_cells, part["lines"].splitlines())
            texts = 1 + max(
                (i for row in rows for i, cell in enumerate(row) if not _is_figure(cell)), default=0
            )
            notes = " ".join(part["notes"].split())
            table = Table(title, columns, rows, notes or found["file"], min(texts, len(columns)))
            tables.setdefault(path, []).append(table)
            if found["column"] in columns:
                plots.setdefault(path, []).append(
                    _plot(title, found["column"], columns, rows, texts)
                )
    pages = {INDEX: _index(sections)}
    for paper, paths in sections.items():
        for title, path in paths.items():
            made = Document(
                title, [paper], _numbered(tables[path]), plots=plots.get(path, [])
            ).html()
            pages[path] = made.replace(
                CONTENTS, f'{CONTENTS}\n<li><a href="../{INDEX}">All tables</a></li>'
            )
    return pages


def _index(sections: dict[str, dict[str, str]]) -> str:
    """Return the page that links to those of all sections."""
    parts = []
    for paper, paths in sections.items():
        links = "".join(
            f'<li><a href="{path}">{escape(title)}</a></li>\n' for title, path in paths.items()
        )
        parts.append(f"<h2>{escape(paper)}</h2>\n<ul>\n{links}</ul>\n")
    empty = Document(
        "The papers' tables", ["Each section of docs/papers.md that has tables, with plots."], []
    ).html()
    start = empty.index(CONTENTS)
    end = empty.index("</nav>") + len("</nav>")
    return empty[:start] + "".join(parts) + empty[end:]


def _numbered(tables: list[Table]) -> list[Table]:
    """Return the tables of a page, which have the same title, with their numbers if there are
    several.
    """
    if len(tables) == 1:
        return tables
    return [
        replace(table, title=f"{table.title} ({number})") for number, table in enumerate(tables, 1)
    ]


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _plot(title: str, column: str, columns: list[str], rows: list[list[str]], texts: int) -> Plot:
    place = columns.index(column)
    found = [(row, NUMBER.search(row[place])) for row in rows]
    each = [
        Bar(", ".join(cell for cell in row[: min(texts, place)] if cell), float(number[0]) / 100)
        for row, number in found
        if number
    ]
    return bars(each, column, f"{title}: {column}", "as in the table")


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in CELLS.split(line.strip())[1:-1]]


def _is_figure(cell: str) -> bool:
    return not cell or cell == "-" or bool(NUMBER.match(cell))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; fail where the page is not what was saved",
    )
    args = parser.parse_args()
    page = PAGE.read_text(encoding="utf8")
    made = filled(page)
    if args.check:
        if made != page:
            raise SystemExit(
                f"{PAGE} does not say what is saved: python benchmarks/papers/page.py writes it."
            )
        return
    PAGE.write_text(made, encoding="utf8")
    pages = drawn(made)
    for path in (HERE / FOLDER).glob("*.html"):
        if path.relative_to(HERE).as_posix() not in pages:
            path.unlink()
    for name, text in pages.items():
        (HERE / name).parent.mkdir(exist_ok=True)
        (HERE / name).write_text(text, encoding="utf8")


if __name__ == "__main__":
    main()
