"""Put the saved tables into docs/papers.md, and draw them: benchmarks/papers/papers.html.

    python benchmarks/papers/page.py            after the results have changed
    python benchmarks/papers/page.py --check    whether the page says what was saved

In the page a table stands between `<!-- table FILE -->` and `<!-- end -->`, FILE below benchmarks/papers/results, and
with `<!-- table FILE, plot COLUMN -->` the figures of that column are drawn, too: the first number of each cell.
"""

import argparse
import re
from pathlib import Path

from spacy_sbert.render.document import Document, Table
from spacy_sbert.render.html import html
from spacy_sbert.render.plots import Bar, Plot, bars

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "papers.md"
RESULTS = HERE / "results"
BLOCK = re.compile(r"<!-- table (?P<file>[^\s,]+)(?:, plot (?P<column>[^>]+?))? -->\n(?P<body>.*?)<!-- end -->", re.S)
TABLE = re.compile(r"(?P<lines>(?:^\|.*\n)+)(?P<notes>(?:^(?!\|).*\n)*)", re.M)  # notes: until the next one
HEADING = re.compile(r"^#+ (.+)$", re.M)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
CELLS = re.compile(r"(?<!\\)\|")  # a bar that is escaped ends no cell


def filled(page: str) -> str:
    """The page with the tables as they were saved."""

    def block(found: re.Match[str]) -> str:
        table = (RESULTS / found["file"]).read_text(encoding="utf8").strip()
        return f"{found[0].partition(chr(10))[0]}\n{table}\n<!-- end -->"

    return BLOCK.sub(block, page)


def drawn(page: str) -> str:
    """All tables of the page and their plots, as HTML."""
    tables, plots = [], []
    for found in BLOCK.finditer(page):
        title = HEADING.findall(page, 0, found.start())[-1]
        for part in TABLE.finditer(found["body"]):
            columns, _, *rows = map(_cells, part["lines"].splitlines())
            texts = 1 + max((i for row in rows for i, cell in enumerate(row) if not _is_figure(cell)), default=0)
            notes = " ".join(part["notes"].split())
            tables.append(Table(title, columns, rows, notes or found["file"], min(texts, len(columns))))
            if found["column"] in columns:
                plots.append(_plot(title, found["column"], columns, rows, texts))
    return html(Document("The papers' tables", [], tables, []), plots)


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is not what was saved")
    args = parser.parse_args()
    page = PAGE.read_text(encoding="utf8")
    made = filled(page)
    if args.check:
        if made != page:
            raise SystemExit(f"{PAGE} does not say what is saved: python benchmarks/papers/page.py writes it anew.")
        return
    PAGE.write_text(made, encoding="utf8")
    (HERE / "papers.html").write_text(drawn(made), encoding="utf8")


if __name__ == "__main__":
    main()
