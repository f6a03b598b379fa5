"""`python -m spacy sbert benchmark`: how well a pipeline does on the standard tasks of the field."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option
from wasabi import msg

from ._util import app, check_output, check_pipeline, exit_on_error, load_answering, show, write_reports
from .options import Code, Gpu, Output, Overwrite, Pipe, Pipeline, Quiet, names_in

_NAMELESS = "pipeline"  # what spaCy calls a pipeline before somebody names it
_TRAINED = ("model-best", "model-last")


_Suite = Annotated[
    str,
    Option(
        "--suite",
        "-s",
        help="The tasks: any of sts, sick, triplets, nli, arguments, learned, transfer, probing and speed, with "
        "commas between.",
    ),
]
_Normalization = Annotated[
    str, Option("--normalization", help="How vectors are normalized: any of none, zscore, unit and zscore_unit.")
]
_Size = Annotated[str, Option("--size", help="The widths to compare, such as own,pca-128,up-1024.")]
_Classifier = Annotated[str, Option("--classifier", help="The classifiers of transfer and probing: lr, mlp or both.")]
_Seeds = Annotated[
    int, Option("--seeds", help="With how many seeds to repeat what is drawn at random.", min=1, max=1000)
]
_Bootstrap = Annotated[
    int, Option("--bootstrap", help="The number of resamples of the 95 % intervals, or 0 for none.", min=0)
]
_TrainedOn = Annotated[
    str, Option("--trained-on", help="The data sets that the encoder was trained on, such as stsb,snli.")
]
_AnyCount = Annotated[bool, Option("--any-count", help="Take data sets that are not whole, too.")]
_Cache = Annotated[
    Path | None,
    Option("--cache", help="The folder that keeps vectors and finished tasks; by default beside --output."),
]
_Baseline = Annotated[
    str | None,
    Option(
        "--baseline",
        help="Score a baseline in place of the pipeline: static, sif, power-means, tf-idf, untuned-mean, "
        "untuned-cls or random-projection.",
    ),
]
_Counts = Annotated[Path | None, Option("--counts", help="The file of words and counts that the baseline sif needs.")]
_Encoder = Annotated[
    str | None, Option("--encoder", help="The transformer of the baselines untuned-*; by default BERT base.")
]


@app.command("benchmark")
def _benchmark_cli(
    pipeline: Pipeline,
    folder: Annotated[Path, Argument(help="The folder of the data sets.", exists=True, file_okay=False)],
    output: Output = None,
    overwrite: Overwrite = False,
    pipe: Pipe = None,
    code: Code = None,
    quiet: Quiet = False,
    gpu_id: Gpu = -1,
    suite: _Suite = "sts",
    normalization: _Normalization = "none",
    size: _Size = "own",
    classifier: _Classifier = "lr,mlp",
    seeds: _Seeds = 10,
    bootstrap: _Bootstrap = 1000,
    trained_on: _TrainedOn = "",
    any_count: _AnyCount = False,
    cache: _Cache = None,
    baseline: _Baseline = None,
    counts: _Counts = None,
    encoder: _Encoder = None,
) -> None:
    """Score a pipeline on the standard data sets.

    With --output also a Markdown and an HTML report are written beside the JSON, and vectors and finished tasks are
    kept for the next run: the same command goes on after an interruption, and brings its results up to date.
    """
    check_output(output, overwrite=overwrite, renewed=True)
    check_pipeline(pipeline)

    from ..evaluation import PipelineSource, Settings, evaluate_suites
    from ..evaluation.encoders import Source, make_baseline
    from ..evaluation.suite import check_packages, write_json
    from ..files.serialization import checksummed_json
    from ..progress import ticking

    save = None if output is None else lambda results: write_json(output, checksummed_json(results))
    if cache is None and output is not None:
        cache = output.with_suffix(".cache")
    with exit_on_error(f"Cannot evaluate on {folder}"):
        settings = Settings(
            normalizations=names_in(normalization),
            sizes=names_in(size),
            classifiers=names_in(classifier),
            seeds=tuple(range(1, seeds + 1)),
            bootstrap=bootstrap,
            trained_on=names_in(trained_on),
            any_count=any_count,
        )
        for name in names_in(suite):
            check_packages(name)
    nlp = load_answering(pipeline, pipe, code, quiet=quiet, gpu_id=gpu_id)
    with exit_on_error(f"Cannot evaluate on {folder}"):
        with ticking("Loading", shown=not quiet):
            source: Source = PipelineSource(nlp, name=_name(nlp.meta, pipeline, pipe))
            if baseline is not None:
                source = make_baseline(baseline, nlp=nlp, counts=counts, encoder=encoder)
        results = evaluate_suites(
            source, folder, names_in(suite), settings=settings, cache=cache, save=save, progress_bar=not quiet
        )
    _report(results, output)


def _report(results: Any, output: Path | None) -> None:  # noqa: ANN401 (Results)
    """Show the results and write reports of them; failed tasks end the command with 1."""
    from ..evaluation.report import evaluation_report

    report = evaluation_report(results)
    show(report.markdown(), report.terminal)
    if output is not None:
        write_reports(output, report.markdown(), report.html(), "results")
    for title, message in results["failed"].items():
        msg.fail(title, message)
    if results["failed"]:
        raise Exit(1)


def _name(meta: Mapping[str, Any], pipeline: str, pipe: str | None) -> str:
    """Return the name of a pipeline in results: its own, or if it has none the last parts of its path.

    meta (Mapping): of the pipeline. pipe (str): the pipe that was chosen, whose name follows.
    """
    folder, name = Path(pipeline).resolve(), "{lang}_{name}".format(**meta)
    if meta["name"] == _NAMELESS:
        if folder.is_dir():
            name = "/".join(folder.parts[-2:]) if folder.name in _TRAINED else folder.name
        elif not pipeline.startswith("blank:"):
            name = pipeline  # an encoder
    return name if pipe is None else f"{name}/{pipe}"
