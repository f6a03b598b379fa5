"""`python -m spacy sbert benchmark` and `compare`: standard tasks, and results side by side."""

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from spacy.cli._util import import_code
from spacy.language import Language
from typer import Argument, Exit, Option, echo
from wasabi import msg

from ..files.atomic import write_text
from ..progress import ticking
from ._util import check_new, command, exit_on_error, fail, named_output
from .options import LoadingOnGpu, Output, Overwrite, Pipeline, Quiet, not_empty

if TYPE_CHECKING:
    from ..evaluation import Settings
    from ..evaluation.encoders import VectorSource

_SUITES = (
    "The tasks: sts, sick, triplets, nli, transfer, speed, retrieval, with commas between, or "
    "others that --code registers."
)
_OTHERS = "Others than this if the tasks of --code know them."
_BASELINES = (
    "Score one instead: static, sif, power-means, tf-idf, untuned-mean, untuned-cls, "
    "random-projection."
)
_CACHE = "Keeps vectors and results; by default beside --output."
_RERANKER = "A reranker, by name or folder, for the suite retrieval."
# spaCy's name of a pipeline that has none
_NAMELESS = "pipeline"


@dataclass
class _Settings:
    """How the tasks are measured."""

    normalization: Annotated[str, Option("--normalization", help=_OTHERS)] = "none"
    size: Annotated[str, Option("--size", help=_OTHERS)] = "own"
    classifier: Annotated[str, Option("--classifier", help=_OTHERS)] = "lr"
    seeds: Annotated[
        int, Option("--seeds", help="The seeds of what is drawn at random.", min=1, max=1000)
    ] = 10
    bootstrap: Annotated[
        int, Option("--bootstrap", help="The resamples of the 95 % intervals, or 0.", min=0)
    ] = 1000
    trained_on: Annotated[
        str, Option("--trained-on", help="The encoder's training data, such as stsb,snli.")
    ] = ""
    any_count: Annotated[
        bool, Option("--any-count", help="Take data sets that are not whole, too.")
    ] = False

    def checked(self, suites: Iterable[str]) -> "Settings":
        """Return the settings of the evaluation.

        RAISES (ValueError): if a suite is unknown, or does not have them.
        """
        from ..evaluation import Settings
        from ..evaluation.suite import check_suite

        settings = Settings(
            normalizations=_names_in(self.normalization),
            sizes=_names_in(self.size),
            classifiers=_names_in(self.classifier),
            seeds=tuple(range(1, self.seeds + 1)),
            bootstrap=self.bootstrap,
            trained_on=_names_in(self.trained_on),
            any_count=self.any_count,
        )
        for name in suites:
            check_suite(name, settings)
        return settings


@dataclass
class _Baseline:
    """What is scored in place of the pipeline."""

    baseline: Annotated[str | None, Option("--baseline", help=_BASELINES)] = None
    counts: Annotated[
        Path | None, Option("--counts", help="Words and their counts, for the baseline sif.")
    ] = None
    encoder: Annotated[
        str | None, Option(help="The transformer of untuned-*; by default BERT base.")
    ] = None

    def source(self, nlp: Language, name: str) -> "VectorSource":
        """Return what gives the vectors. name (str): of the pipeline, in results."""
        from ..evaluation import PipelineSource
        from ..evaluation.baselines import make_baseline

        if self.baseline is None:
            return PipelineSource(nlp, name=name)
        return make_baseline(self.baseline, nlp=nlp, counts=self.counts, encoder=self.encoder)


@command("benchmark")
def _benchmark_cli(
    pipeline: Pipeline,
    folder: Annotated[
        Path, Argument(help="The folder of the data sets.", exists=True, file_okay=False)
    ],
    loading: LoadingOnGpu,
    measured: _Settings,
    baseline: _Baseline,
    output: Output = None,
    overwrite: Overwrite = False,
    suite: Annotated[str, Option("--suite", "-s", help=_SUITES)] = "sts",
    cache: Annotated[Path | None, Option(help=_CACHE, parser=named_output)] = None,
    reranker: Annotated[
        str | None, Option("--reranker", help=_RERANKER, callback=not_empty)
    ] = None,
) -> None:
    """Score a pipeline on the standard data sets.

    With --output also a Markdown and an HTML report are written beside the JSON, and vectors and
    finished tasks are kept for the next run: the same command goes on after an interruption, and
    brings its results up to date.
    """
    _check_output(output, overwrite=overwrite, renewed=True)

    from ..bulk.loading import load_reranker
    from ..evaluation import evaluate_suites
    from ..evaluation.report import evaluation_report

    if cache is None and output is not None:
        cache = output.with_suffix(".cache")
    # The code may register tasks
    import_code(loading.code)
    suites = _names_in(suite)
    with exit_on_error(f"Cannot evaluate on {folder}"):
        settings = measured.checked(suites)
    nlp = replace(loading, code=None).load(pipeline, answering=True)
    reranking = None
    with exit_on_error(f"Cannot evaluate on {folder}"):
        if reranker is not None:
            reranking = load_reranker(reranker)
        with ticking("Loading", shown=loading.shown):
            source = baseline.source(nlp, _name(nlp.meta, pipeline, loading.pipe))
        results = evaluate_suites(
            source,
            folder,
            suites,
            settings=settings,
            reranker=reranking,
            cache=cache,
            save=_saver(output),
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


def _saver(output: Path | None) -> Callable[[dict[str, Any]], None] | None:
    """Return what writes results to a file, with a checksum; None without a file."""
    if output is None:
        return None

    from ..evaluation.suite import write_json
    from ..files.checksum import checksummed_json

    def save(results: dict[str, Any]) -> None:
        write_json(output, checksummed_json(results))

    return save


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
    if pipe is not None:
        name = f"{name}/{pipe}"
    return name


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
        are_distinct = len(set(stems)) == len(stems)
        comparison = compare(read, files=stems if are_distinct else None)
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
