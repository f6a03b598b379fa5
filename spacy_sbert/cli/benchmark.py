"""`python -m spacy sbert benchmark`: how well a pipeline does on the standard tasks of the field."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit
from wasabi import msg

from ._util import Computing, app, check_output, check_pipeline, exit_on_error, show, write_reports
from .options import Benchmark, Output, Overwrite, Pipeline, listed, takes_options

NAMELESS = "pipeline"  # what spaCy calls a pipeline before somebody names it
TRAINED = ("model-best", "model-last")


@app.command("benchmark")
@takes_options
def benchmark_cli(
    pipeline: Pipeline,
    folder: Annotated[Path, Argument(help="The folder of the data sets.", exists=True, file_okay=False)],
    output: Output = None,
    overwrite: Overwrite = False,
    *,
    loading: Computing,
    suites: Benchmark,
) -> None:
    """Score a pipeline on the standard data sets.

    With --output also a Markdown and an HTML report are written beside the JSON, and vectors and finished tasks are
    kept for the next run: the same command goes on after an interruption, and brings its results up to date.
    """
    check_output(output, overwrite=overwrite, renewed=True)
    check_pipeline(pipeline)

    from ..evaluation import PipelineSource, evaluate_suites
    from ..evaluation.baselines import make_baseline
    from ..evaluation.encoders import Source
    from ..evaluation.report import html, markdown, terminal
    from ..evaluation.suite import check_packages, write_json
    from ..files.serialization import checksummed_json
    from ..progress import ticking

    save = None if output is None else lambda results: write_json(output, checksummed_json(results))
    cache = suites.cache or (output.with_suffix(".cache") if output is not None else None)
    with exit_on_error(f"Cannot evaluate on {folder}"):
        settings = suites.settings()
        for suite in listed(suites.suite):
            check_packages(suite)
    nlp = loading.load_answering(pipeline)
    with exit_on_error(f"Cannot evaluate on {folder}"):
        with ticking("Loading", shown=loading.shown):
            source: Source = PipelineSource(nlp, name=_name(nlp.meta, pipeline, loading.pipe))
            if suites.baseline is not None:
                source = make_baseline(suites.baseline, nlp=nlp, counts=suites.counts, encoder=suites.encoder)
        results = evaluate_suites(
            source, folder, listed(suites.suite), settings=settings, cache=cache, save=save, progress_bar=loading.shown
        )
    report = markdown(results)
    show(report, partial(terminal, results))
    if output is not None:
        write_reports(output, report, html(results), "results")
    for title, message in results["failed"].items():
        msg.fail(title, message)
    if results["failed"]:
        raise Exit(1)


def _name(meta: Mapping[str, Any], pipeline: str, pipe: str | None) -> str:
    """Return the name of a pipeline in results: its own, or if it has none the last parts of its path.

    meta (Mapping): of the pipeline. pipe (str): the pipe that was chosen, whose name follows.
    """
    folder, name = Path(pipeline).resolve(), "{lang}_{name}".format(**meta)
    if meta["name"] == NAMELESS:
        if folder.is_dir():
            name = "/".join(folder.parts[-2:]) if folder.name in TRAINED else folder.name
        elif not pipeline.startswith("blank:"):
            name = pipeline  # an encoder
    return name if pipe is None else f"{name}/{pipe}"
