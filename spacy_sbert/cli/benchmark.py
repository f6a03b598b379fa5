"""`python -m spacy sbert benchmark`: how well a pipeline does on the standard tasks of the field."""

from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit
from wasabi import msg

from .ending import or_fail, use_gpu
from .group import app
from .options import Benchmark, Gpu, Output, Overwrite, Pipeline, Quiet, listed, takes_options
from .reports import check_output, show, write_reports

NAMELESS = "pipeline"  # what spaCy calls a pipeline before somebody names it
TRAINED = ("model-best", "model-last")


@app.command("benchmark")
@takes_options
def benchmark_cli(
    pipeline: Pipeline,
    folder: Annotated[Path, Argument(help="The folder of the data sets.", exists=True, file_okay=False)],
    output: Output = None,
    overwrite: Overwrite = False,
    gpu_id: Gpu = -1,
    quiet: Quiet = False,
    *,
    suites: Benchmark,
) -> None:
    """Score a pipeline on the standard data sets.

    With --output also a Markdown and an HTML report are written beside the JSON, and vectors and finished tasks are
    kept for the next run: the same command goes on after an interruption, and brings its results up to date.
    """
    use_gpu(gpu_id)
    run(pipeline, folder, suites, output, overwrite=overwrite, quiet=quiet)


def run(pipeline: str, folder: Path, suites: Benchmark, output: Path | None, *, overwrite: bool, quiet: bool) -> None:
    """Run suites, and show and save the results; fails if nothing could be run or a file is broken.

    pipeline (str): what spaCy loads. folder (Path): of the data sets. suites (Benchmark): which, and how.
    output (Path): JSON; the reports are written beside it, and the cache is kept there by default.
    overwrite (bool): whether to replace a file that holds other things than results. quiet (bool): show no bars.
    """
    from spacy.util import load_model

    from ..errors.progress import ticking
    from ..evaluation import PipelineSource, evaluate_suites
    from ..evaluation.baselines import make_baseline
    from ..evaluation.report import html, markdown, terminal
    from ..evaluation.sources import Source
    from ..evaluation.suite import tasks_of, write_json
    from ..files.sealed_json import sealed

    check_output(output, overwrite=overwrite, renewed=True)

    save = None if output is None else lambda results: write_json(output, sealed(results))
    cache = suites.cache or (output.with_suffix(".cache") if output is not None else None)
    with or_fail(f"Cannot evaluate on {folder}"):
        settings = suites.settings()
        for suite in listed(suites.suite):
            tasks_of(suite)  # is there one of this name?
        with ticking("Loading", shown=not quiet):
            nlp = load_model(pipeline)
            source: Source = PipelineSource(nlp, name=_name(nlp.meta["name"], pipeline))
            if suites.baseline is not None:
                source = make_baseline(suites.baseline, nlp=nlp, counts=suites.counts, encoder=suites.encoder)
        results = evaluate_suites(
            source, folder, listed(suites.suite), settings=settings, cache=cache, save=save, progress_bar=not quiet
        )
    report = markdown(results)
    show(report, partial(terminal, results))
    if output is not None:
        write_reports(output, report, html(results), "results")
    for title, message in results["failed"].items():
        msg.fail(title, message)
    if results["failed"]:
        raise Exit(1)


def _name(given: str, pipeline: str) -> str | None:
    """Of a pipeline that nobody gave a name that of its folder, with the one around it where spaCy has named it."""
    folder = Path(pipeline).resolve()
    if given != NAMELESS or not folder.is_dir():
        return None
    return "/".join(folder.parts[-2:]) if folder.name in TRAINED else folder.name
