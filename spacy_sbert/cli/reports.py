"""What `benchmark` and `compare` write beside their JSON."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from typer import echo
from wasabi import msg

from .ending import check_new, fail, or_fail
from .errors import Errors

REPORTS = (".md", ".html")


def show(markdown: str, terminal: Callable[[int], str]) -> None:
    """Print a report: plain tables in a terminal, Markdown into a file or another program.

    terminal (Callable): makes the tables, for a terminal of so many columns.
    """
    echo(terminal(shutil.get_terminal_size().columns) if sys.stdout.isatty() else markdown)


def check_output(output: Path | None, *, overwrite: bool, renewed: bool = False) -> None:
    """End the command, before hours of work, if the name of its output does not end in .json, or it is there already.

    renewed (bool): whether results of `benchmark` that are there may be brought up to date.
    """
    if output is None:
        return
    if output.suffix != ".json":
        fail(f"Cannot save to {output}: expected a name that ends in .json; reports are written beside it")
    if renewed and output.is_file():
        if not overwrite and not _has_results(output):
            fail(Errors.OUTPUT_NOT_RESULTS.format(path=output))
        return
    for path in (output, *(output.with_suffix(suffix) for suffix in REPORTS)):
        check_new(path, overwrite=overwrite)


def _has_results(path: Path) -> bool:
    import srsly

    from ..evaluation.results import FORMAT

    try:
        found = srsly.read_json(path)
    except ValueError:  # of UnicodeDecodeError, too
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def write_reports(output: Path, markdown: str, html: str, what: str) -> None:
    """Write the reports beside the JSON. what (str): the JSON holds."""
    from ..files.whole import write_text

    with or_fail(f"Cannot write the reports beside {output}"):
        write_text(output.with_suffix(".md"), markdown)
        write_text(output.with_suffix(".html"), html)
    msg.good(f"Saved the {what} to {output}, reports to {output.with_suffix('.md')} and .html")
