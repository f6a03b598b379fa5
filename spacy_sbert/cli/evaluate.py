"""`python -m spacy sbert evaluate`: how well a pipeline does on a file of examples."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, echo
from wasabi import msg

from . import benchmark, compare
from .ending import fail, or_fail, use_gpu
from .errors import Warnings
from .group import app
from .options import AUTO, HIDDEN, Benchmark, Gpu, Layout, Output, takes_options

LABELS = {
    "sts_spearman": "Spearman",
    "sts_pearson": "Pearson",
    "pair_ap": "Average precision",
    "nli_acc": "Accuracy of labels",
    "triplet_acc": "Accuracy of triplets",
}


@app.command("evaluate")
@takes_options
def evaluate_cli(
    pipeline: Annotated[str, Argument(help="A folder or an installed package")],
    data_path: Annotated[Path | None, Argument(help="A file of examples")] = None,
    more: Annotated[list[Path] | None, Argument(exists=True, hidden=True)] = None,
    output: Output = None,
    gpu_id: Gpu = -1,
    compared: Annotated[bool, Option("--compare", hidden=True)] = False,
    *,
    layout: Layout,
    suites: Annotated[Benchmark, HIDDEN],
) -> None:
    """Score a pipeline on a file of pairs or triplets.

    On the standard tasks of a folder of data sets, see `benchmark`; for results side by side, see `compare`.
    """
    if compared:
        echo(Warnings.OLD_CALL.format(old="evaluate --compare", new="compare"), err=True)
        return compare.run([Path(pipeline), *([data_path] if data_path else []), *(more or [])], output)
    if data_path is None or not data_path.exists():
        fail(f"No data at {data_path}: give a file of examples, or a folder of data sets")
    if more:
        fail(f"Cannot take {more[0]}: expected one pipeline and one file or folder of data")
    use_gpu(gpu_id)
    if data_path.is_dir():
        echo(Warnings.OLD_CALL.format(old="evaluate PIPELINE FOLDER", new="benchmark"), err=True)
        return benchmark.run(pipeline, data_path, suites, output)
    _evaluate(pipeline, data_path, layout, output)


def _reading(config: Mapping[str, Any], path: Path, layout: Layout) -> dict[str, Any]:
    """How a file is read: a table as the pipeline was scored in training, if it has these columns, else by what is in
    it; other layouts as the options say."""
    from ..files.tables import column_names
    from ..readers.layouts import TABLE, is_own_table
    from ..readers.own_table import find_table

    if not is_own_table(path, layout.format):
        return layout.reading()
    own = {name: value for name, value in _scored_as(config).items() if name in Layout.__dataclass_fields__}
    if replace(layout, format=AUTO) == Layout() and own.get("format") == TABLE and own.get("members"):
        wanted = {*own["members"], *(own[gold] for gold in ("score", "label") if own.get(gold))}
        if wanted <= set(column_names(path, header=own.get("header", True))):
            msg.info(f"Columns as in its training: {', '.join(own['members'])}")
            return own
    found = find_table(path, **layout.known())
    columns = found.columns
    scaled = "" if columns.score is None else f", scores from {columns.min_score:g} to {columns.max_score:g}"
    msg.info(f"Columns found: {', '.join(columns.names)}{scaled}")
    return {"format": TABLE, **found.reading()}


def _scored_as(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The reader of what the pipeline was scored on in training; an empty one where there is none."""
    return config.get("corpora", {}).get("dev", {})


def _evaluate(pipeline: str, data_path: Path, layout: Layout, output: Path | None) -> None:
    import srsly
    from spacy.util import load_model

    from ..evaluation import evaluate
    from ..files.whole import write_text

    with or_fail(f"Cannot evaluate on {data_path}"):
        nlp = load_model(pipeline)
        scores = evaluate(nlp, data_path, **_reading(nlp.config, data_path, layout))
    rows = [("Examples", str(scores["pairs"]))]
    rows += [(name, f"{100 * score:.2f}") for key, name in LABELS.items() if (score := scores[key]) is not None]
    msg.table(rows, title="Scores x 100, vectors compared by cosine, triplets by Euclidean distance")
    if output is not None:
        with or_fail(f"Cannot write {output}"):
            write_text(output, srsly.json_dumps(scores, indent=2))
        msg.good(f"Saved the scores to {output}")
