"""A report in HTML: one file, nothing fetched from elsewhere."""

from collections.abc import Iterable, Mapping
from typing import Any

from ...render.markup import safe
from .contents import contents
from .document import Cell, Document, Table, as_cell
from .figures import Plot, figures
from .style import STYLE


def html(results: Mapping[str, Any]) -> str:
    """A report on one model in HTML, with the tables of the Markdown report, and plots.

    results (dict): see evaluate_suites.
    RETURNS (str): a whole page, the same for the same results.
    """
    return page(contents(results), figures(results))


def page(document: Document, plots: Iterable[Plot]) -> str:
    """A document and its plots as a page."""
    drawn = "".join(f"<figure><figcaption>{safe(caption)}</figcaption>{svg}</figure>\n" for caption, svg in plots)
    notes = "".join(f'<li id="note-{number}">{safe(note)}</li>' for number, note in enumerate(document.notes, 1))
    parts = [
        f"<h1>{safe(document.title)}</h1>",
        *(f"<p>{safe(paragraph)}</p>" for paragraph in document.paragraphs),
        _links(document, drawn),
        *(_table(table, place) for place, table in enumerate(document.tables)),
        f'<section id="plots"><h2>Plots</h2><div class="plots">\n{drawn}</div></section>' if drawn else "",
        f'<section id="notes"><h2>Notes</h2><ol>{notes}</ol></section>' if notes else "",
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{safe(document.title)}</title><style>{STYLE}</style>'
    )
    body = "\n".join(part for part in parts if part)
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body><main>\n{body}\n</main></body>\n</html>\n'


def _links(document: Document, drawn: str) -> str:
    """Links to the parts of the page."""
    parts = {f"table-{place}": table.title for place, table in enumerate(document.tables)}
    parts |= {"plots": "Plots"} if drawn else {}
    parts |= {"notes": "Notes"} if document.notes else {}
    items = "".join(f'<li><a href="#{name}">{safe(title)}</a></li>' for name, title in parts.items())
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def _table(table: Table, place: int) -> str:
    kinds = ["words" if column < table.texts else "figure" for column in range(len(table.columns))]
    head = "".join(
        f'<th scope="col" class="{kind}">{safe(name)}</th>' for kind, name in zip(kinds, table.columns, strict=True)
    )
    rows = "".join(f"<tr>{_row([as_cell(cell) for cell in row], kinds)}</tr>\n" for row in table.rows)
    caption = f'<p class="caption">{safe(table.caption)}</p>' if table.caption else ""
    # a wide table scrolls by itself, which the keyboard can reach
    return (
        f'<section id="table-{place}"><h2>{safe(table.title)}</h2><div class="wide" tabindex="0" role="region" '
        f'aria-label="{safe(table.title)}"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>'
        f"{caption}</section>"
    )


def _row(cells: list[Cell], kinds: list[str]) -> str:
    first, *rest = (safe(cell.text) + _marks(cell.marks) for cell in cells)
    others = "".join(f'<td class="{kind}">{text}</td>' for kind, text in zip(kinds[1:], rest, strict=True))
    return f'<th scope="row" class="{kinds[0]}">{first}</th>{others}'


def _marks(marks: tuple[int, ...]) -> str:
    links = ", ".join(f'<a href="#note-{mark}">{mark}</a>' for mark in marks)
    return f" <sup>[{links}]</sup>" if links else ""
