"""`python -m spacy sbert evaluate`: how well a pipeline does on a file of examples."""

from pathlib import Path
from typing import Annotated

from typer import Argument
from wasabi import msg

from .ending import check_new, fail, or_fail
from .errors import Errors
from .found_columns import reading_of
from .group import app
from .loading import Computing, check_pipeline
from .options import Layout, Output, Overwrite, Pipeline, takes_options

TABLE, PAIR = "table", 2
LABELS = {
    "sts_spearman": "Spearman",
    "sts_pearson": "Pearson",
    "pair_ap": "Average precision",
    "nli_acc": "Accuracy of labels",
    "triplet_acc": "Accuracy of triplets",
    "knn_acc": "Accuracy of the nearest text's label",
}


@app.command("evaluate")
@takes_options
def evaluate_cli(
    pipeline: Pipeline,
    data_path: Annotated[Path, Argument(help="The file of examples, see --format.", exists=True)],
    output: Output = None,
    overwrite: Overwrite = False,
    *,
    loading: Computing,
    layout: Layout,
) -> None:
    """Score a pipeline on pairs, triplets or texts with labels.

    On the standard tasks of a folder of data sets, see `benchmark`; for results side by side, see `compare`.
    """
    if data_path.is_dir():
        fail(Errors.EVALUATE_FOLDER.format(path=data_path))
    check_new(output, overwrite=overwrite)
    check_pipeline(pipeline)
    _evaluate(pipeline, data_path, layout, output, loading)


def _evaluate(pipeline: str, data_path: Path, layout: Layout, output: Path | None, loading: Computing) -> None:
    import srsly

    from ..evaluation.examples import evaluate_with_reasons
    from ..files.whole import write_text

    nlp, shown = loading.load_answering(pipeline, also_scores=True), loading.shown
    with or_fail(f"Cannot evaluate on {data_path}"):
        reading = reading_of(data_path, layout, nlp.config.get("corpora", {}).get("dev"), shown=shown)
        members = reading.get("members", ())
        if reading.get("format") == TABLE and len(members) == PAIR and not {"score", "label"} & reading.keys():
            fail(Errors.EVALUATE_NO_GOLD.format(path=data_path, members=", ".join(members)))
        scores, reasons = evaluate_with_reasons(nlp, data_path, progress=shown, **reading)
        measured = {key: score for key, score in scores.items() if key != "pairs" and score is not None}
        if not measured:
            raise ValueError(Errors.EVALUATE_NO_SCORE.format(path=data_path, reasons="; ".join(reasons)))
    rows = [("Examples", str(scores["pairs"]))]
    rows += [(LABELS.get(key, key), f"{100 * score:.2f}") for key, score in measured.items()]
    msg.table(rows, title="Scores x 100, vectors compared by cosine, triplets by Euclidean distance")
    if reasons and measured.keys() <= LABELS.keys():
        msg.warn(f"Other scores are not defined: {'; '.join(reasons)}")
    if output is not None:
        with or_fail(f"Cannot write {output}"):
            write_text(output, srsly.json_dumps(scores, indent=2))
        msg.good(f"Saved the scores to {output}")
