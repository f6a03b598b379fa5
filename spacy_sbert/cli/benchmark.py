"""`python -m spacy sbert benchmark` and `compare`: standard tasks, and results side by side."""

import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from spacy.cli._util import import_code
from typer import Argument, Exit, Option, echo
from wasabi import msg

from ..files.atomic import write_text
from ..progress import ticking
from ._util import check_new, command, exit_on_error, fail, named_output
from .options import LoadingOnGpu, Output, Overwrite, Pipeline, Quiet

_SUITES = (
    "The tasks: sts, sick, triplets, nli, transfer, speed, with commas between, or others that "
    "--code registers."
)
_OTHERS = "Others than this if the tasks of --code know them."
_BASELINES = (
    "Score one instead: static, sif, power-means, tf-idf, untuned-mean, untuned-cls, "
    "random-projection."
)
_CACHE = "Keeps vectors and results; by default beside --output."
# spaCy's name of a pipeline that has none
_NAMELESS = "pipeline"


@command("benchmark")
def _benchmark_cli(
    pipeline: Pipeline,
    folder: Annotated[
        Path, Argument(help="The folder of the data sets.", exists=True, file_okay=False)
    ],
    loading: LoadingOnGpu,
    output: Output = None,
    overwrite: Overwrite = False,
    suite: Annotated[str, Option("--suite", "-s", help=_SUITES)] = "sts",
    normalization: Annotated[str, Option("--normalization", help=_OTHERS)] = "none",
    size: Annotated[str, Option("--size", help=_OTHERS)] = "own",
    classifier: Annotated[str, Option("--classifier", help=_OTHERS)] = "lr",
    seeds: Annotated[
        int, Option("--seeds", help="The seeds of what is drawn at random.", min=1, max=1000)
    ] = 10,
    bootstrap: Annotated[
        int, Option("--bootstrap", help="The resamples of the 95 % intervals, or 0.", min=0)
    ] = 1000,
    trained_on: Annotated[
        str, Option("--trained-on", help="The encoder's training data, such as stsb,snli.")
    ] = "",
    any_count: Annotated[
        bool, Option("--any-count", help="Take data sets that are not whole, too.")
    ] = False,
    cache: Annotated[Path | None, Option(help=_CACHE, parser=named_output)] = None,
    baseline: Annotated[str | None, Option("--baseline", help=_BASELINES)] = None,
    counts: Annotated[
        Path | None, Option("--counts", help="Words and their counts, for the baseline sif.")
    ] = None,
    encoder: Annotated[
        str | None, Option(help="The transformer of untuned-*; by default BERT base.")
    ] = None,
) -> None:
    """Score a pipeline on the standard data sets.

    With --output also a Markdown and an HTML report are written beside the JSON, and vectors and
    finished tasks are kept for the next run: the same command goes on after an interruption, and
    brings its results up to date.
    """
    _check_output(output, overwrite=overwrite, renewed=True)

    from ..evaluation import PipelineSource, Settings, evaluate_suites
    from ..evaluation.baselines import make_baseline
    from ..evaluation.encoders import Source
    from ..evaluation.report import evaluation_report
    from ..evaluation.suite import check_suite, write_json
    from ..files.checksum import checksummed_json

    def save(results: dict[str, Any]) -> None:
        if output is not None:
            write_json(output, checksummed_json(results))

    if cache is None and output is not None:
        cache = output.with_suffix(".cache")
    # The code may register tasks
    import_code(loading.code)
    with exit_on_error(f"Cannot evaluate on {folder}"):
        settings = Settings(
            normalizations=_names_in(normalization),
            sizes=_names_in(size),
            classifiers=_names_in(classifier),
            seeds=tuple(range(1, seeds + 1)),
            bootstrap=bootstrap,
            trained_on=_names_in(trained_on),
            any_count=any_count,
        )
        for name in _names_in(suite):
            check_suite(name, settings)
    nlp = replace(loading, code=None).load(pipeline, answering=True)
    with exit_on_error(f"Cannot evaluate on {folder}"):
        with ticking("Loading", shown=loading.shown):
            source: Source
            if baseline is None:
                source = PipelineSource(nlp, name=_name(nlp.meta, pipeline, loading.pipe))
            else:
                source = make_baseline(baseline, nlp=nlp, counts=counts, encoder=encoder)
        results = evaluate_suites(
            source,
            folder,
            _names_in(suite),
            settings=settings,
            cache=cache,
            save=None if output is None else save,
            progress_bar=loading.shown,
        )
    report = evaluation_report(results)
    _show(report.markdown(), report.terminal)
    if output is not None:
        _write_reports(output, report.markdown(), report.html(), "results")
    for title, message in results["failed"].items():
        msg.fail(title, message)
    if results["failed"]:
        raise Exit(1)


def _name(meta: Mapping[str, Any], pipeline: str, pipe: str | None) -> str:
    """Return the name of a pipeline in results.

    It is its own; if it has none, the last two names of its path.
    """
    name = f"{meta['lang']}_{meta['name']}"
    is_nameless = meta["name"] == _NAMELESS and not pipeline.startswith("blank:")
    if is_nameless and Path(pipeline).is_dir():
        name = "/".join(Path(pipeline).resolve().parts[-2:])
    elif is_nameless:
        name = pipeline
    return name if pipe is None else f"{name}/{pipe}"


@command("compare")
def _compare_cli(
    results: Annotated[
        list[Path],
        Argument(help="The JSON files of `benchmark --output`, two or more.", exists=True),
    ],
    output: Output = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Put the results of several models side by side.

    Every other one is tested against the first. With --output also a Markdown and an HTML report
    are written beside the JSON.
    """
    _check_output(output, *results, overwrite=overwrite)
    with exit_on_error("Cannot compare"), ticking("Comparing", shown=not quiet):
        from ..evaluation.compare import compare
        from ..evaluation.report import comparison_report
        from ..evaluation.results import read_results
        from ..evaluation.suite import write_json

        read = [read_results(path) for path in results]
        stems = [path.stem for path in results]
        if len(set(stems)) < len(stems):
            stems = [str(number) for number in range(1, len(stems) + 1)]
        comparison = compare(read, files=stems)
    report = comparison_report(read, comparison)
    _show(report.markdown(), report.terminal)
    if output is not None:
        with exit_on_error(f"Cannot write {output}"):
            write_json(output, comparison)
        _write_reports(output, report.markdown(), report.html(), "comparison")


def _names_in(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _show(markdown: str, terminal: Callable[[int], str]) -> None:
    """Print a report: plain tables on a terminal, Markdown into a file or another program."""
    if sys.stdout.isatty():
        echo(terminal(shutil.get_terminal_size().columns))
    else:
        echo(markdown)


def _check_output(
    output: Path | None, *inputs: Path, overwrite: bool, renewed: bool = False
) -> None:
    """End the command, before hours of work, if its output does not end in .json or exists.

    renewed (bool): whether existing results of `benchmark` may be brought up to date.
    """
    if output is None:
        return
    if output.suffix != ".json":
        fail(
            f"Cannot save to {output}: expected a name that ends in .json; reports are written "
            "beside it"
        )
    if renewed and output.is_file():
        if not overwrite:
            _check_results(output)
        return
    for path in (output, output.with_suffix(".md"), output.with_suffix(".html")):
        check_new(path, *inputs, overwrite=overwrite)


def _check_results(path: Path) -> None:
    """End the command if a file that would be brought up to date holds no results."""
    from ..evaluation.results import read_results

    try:
        read_results(path)
    except ValueError:
        fail(f"{path} is there already, and holds no results. Give another name, or --overwrite.")


def _write_reports(output: Path, markdown: str, html: str, what: str) -> None:
    """Write the reports beside the JSON. what (str): the content of the JSON."""
    with exit_on_error(f"Cannot write the reports beside {output}"):
        write_text(output.with_suffix(".md"), markdown)
        write_text(output.with_suffix(".html"), html)
    msg.good(f"Saved the {what} to {output}, reports to {output.with_suffix('.md')} and .html")
