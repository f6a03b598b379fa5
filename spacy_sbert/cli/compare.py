"""`python -m spacy sbert compare`: the results of several models side by side, with tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument

from ._util import app, check_output, exit_on_error, show, write_reports
from .options import Output, Overwrite, Quiet


@app.command("compare")
def _compare_cli(
    results: Annotated[
        list[Path], Argument(help="The JSON files that `benchmark --output` saved, two or more.", exists=True)
    ],
    output: Output = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Put the results of several models side by side.

    Every other one is tested against the first. With --output also a Markdown and an HTML report are written beside
    the JSON.
    """
    from ..progress import ticking

    check_output(output, overwrite=overwrite)
    with exit_on_error("Cannot compare"), ticking("Comparing", shown=not quiet):
        from ..evaluation.compare import compare
        from ..evaluation.report import comparison_report
        from ..evaluation.results import read_results
        from ..evaluation.suite import write_json

        read = [read_results(path) for path in results]
        comparison = compare(read, files=_short_names(results))
    report = comparison_report(read, comparison)
    show(report.markdown(), report.terminal)
    if output is not None:
        with exit_on_error(f"Cannot write {output}"):
            write_json(output, comparison)
        write_reports(output, report.markdown(), report.html(), "comparison")


def _short_names(paths: Sequence[Path]) -> list[str]:
    """Return a short name for each file, none twice."""
    stems = [path.stem for path in paths]
    return stems if len(set(stems)) == len(stems) else [str(number) for number in range(1, len(paths) + 1)]
