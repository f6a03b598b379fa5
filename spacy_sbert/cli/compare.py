"""`python -m spacy sbert compare`: the results of several models side by side, with tests."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument

from .ending import or_fail
from .group import app
from .options import Output
from .reports import check_output, show, write_reports


@app.command("compare")
def compare_cli(
    results: Annotated[list[Path], Argument(help="What `benchmark --output` saved: a.json b.json ...", exists=True)],
    output: Output = None,
) -> None:
    """Put the results of several models side by side, and test every other one against the first.

    With --output also a Markdown and an HTML report are written beside the JSON.
    """
    run(results, output)


def run(paths: Sequence[Path], output: Path | None) -> None:
    """Compare results, and show and save the comparison.

    paths: JSON that `benchmark` wrote. output (Path): JSON; Markdown and HTML beside it.
    """
    from ..evaluation.compare import compare, compare_html, compare_markdown, compare_terminal
    from ..evaluation.results import read_results
    from ..evaluation.suite import write_json

    check_output(output)
    with or_fail("Cannot compare"):
        results = [read_results(path) for path in paths]
        found = compare(results, files=_told_apart(paths))
    report = compare_markdown(results, found)
    show(report, partial(compare_terminal, results, found))
    if output is not None:
        with or_fail(f"Cannot write {output}"):
            write_json(output, found)
        write_reports(output, report, compare_html(results, found), "comparison")


def _told_apart(paths: Sequence[Path]) -> list[str]:
    """A short name for each file, none twice."""
    stems = [path.stem for path in paths]
    return stems if len(set(stems)) == len(stems) else [str(number) for number in range(1, len(paths) + 1)]
