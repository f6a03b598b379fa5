"""What `spacy sbert evaluate` does with a folder of data sets, and with results to compare."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer import Exit, echo
from wasabi import msg

from .ending import fail


def evaluate(
    pipeline: str,
    folder: Path,
    suites: Sequence[str],
    settings: dict[str, Any],
    baseline: str | None,
    made: dict[str, Any],
    output: Path | None,
    cache: Path | None,
) -> None:
    """Run suites, and show and save the results; fails if nothing could be run or a file is broken.

    pipeline (str): what spaCy loads. folder (Path): of the data sets. suites, settings: see evaluate_suites.
    baseline (str), made (dict): the name of a baseline and what it needs, see make_baseline. output (Path): JSON; the
    Markdown and HTML reports are written beside it. cache (Path): by default beside the output.
    """
    from spacy.util import load_model

    from ..evaluation import PipelineSource, Settings, evaluate_suites
    from ..evaluation.baselines import make_baseline
    from ..evaluation.report import html, markdown
    from ..evaluation.sources import Source
    from ..evaluation.suite import write_json
    from ..files.sealed_json import sealed

    _check_output(output)

    def save(results: dict[str, Any]) -> None:
        if output is not None:
            write_json(output, sealed(results))

    if cache is None and output is not None:
        cache = output.with_suffix(".cache")
    try:
        how = Settings(**settings)
        nlp = load_model(pipeline)
        source: Source = PipelineSource(nlp) if baseline is None else make_baseline(baseline, nlp=nlp, **made)
        results = evaluate_suites(source, folder, suites, settings=how, cache=cache, save=save)
    except (ImportError, OSError, ValueError) as error:
        fail(f"Cannot evaluate on {folder}", str(error))
    report = markdown(results)
    echo(report)
    if output is not None:
        _write(output, report, html(results))
        msg.good(f"Saved the results to {output}, reports to {output.with_suffix('.md')} and .html")
    for name, message in results["failed"].items():
        msg.fail(name, message)
    if results["failed"]:
        raise Exit(1)


def compare(paths: Sequence[Path], output: Path | None) -> None:
    """Put the results of several models side by side, and save the comparison.

    paths: JSON that `evaluate` wrote; every other model is tested against the first. output (Path): JSON; Markdown and
    HTML beside it.
    """
    from ..evaluation.compare import compare, compare_html, compare_markdown
    from ..evaluation.results import read_results
    from ..evaluation.suite import write_json

    _check_output(output)
    try:
        results = [read_results(path) for path in paths]
        found = compare(results)
    except (OSError, ValueError) as error:
        fail("Cannot compare", str(error))
    report = compare_markdown(results, found)
    echo(report)
    if output is not None:
        try:
            write_json(output, found)
        except (OSError, ValueError) as error:
            fail(f"Cannot write {output}", str(error))
        _write(output, report, compare_html(results, found))
        msg.good(f"Saved the comparison to {output}, reports to {output.with_suffix('.md')} and .html")


def _write(output: Path, markdown: str, html: str) -> None:
    """The reports beside the JSON."""
    from ..files.whole import write_text

    try:
        write_text(output.with_suffix(".md"), markdown)
        write_text(output.with_suffix(".html"), html)
    except (OSError, ValueError) as error:
        fail(f"Cannot write the reports beside {output}", str(error))


def _check_output(output: Path | None) -> None:
    if output is not None and output.suffix != ".json":
        fail(f"Cannot save to {output}: expected a name that ends in .json; reports are written beside it")
