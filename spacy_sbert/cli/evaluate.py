"""`python -m spacy sbert evaluate`: how well a pipeline does on a file of examples."""

from pathlib import Path
from typing import Annotated

from typer import Argument
from wasabi import msg

from ._util import Computing, app, check_new, check_pipeline, exit_on_error, fail
from .infer_columns import reading_of
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
        fail(
            f"{data_path} is a folder: give a file of examples, or score the pipeline on the data sets in a "
            "folder with 'python -m spacy sbert benchmark'."
        )
    check_new(output, overwrite=overwrite)
    check_pipeline(pipeline)
    _evaluate(pipeline, data_path, layout, output, loading)


def _evaluate(pipeline: str, data_path: Path, layout: Layout, output: Path | None, loading: Computing) -> None:
    import srsly

    from ..evaluation.scoring import evaluate_with_reasons
    from ..files.atomic import write_text

    nlp, shown = loading.load_answering(pipeline, also_scores=True), loading.shown
    with exit_on_error(f"Cannot evaluate on {data_path}"):
        reading = reading_of(data_path, layout, nlp.config.get("corpora", {}).get("dev"), shown=shown)
        members = reading.get("members", ())
        if reading.get("format") == TABLE and len(members) == PAIR and not {"score", "label"} & reading.keys():
            fail(
                f"{data_path} has two texts a row ({', '.join(members)}) and no gold to score by, neither a "
                "score nor a label. Name its column by --score or --label, or give a table that has one."
            )
        scores, reasons = evaluate_with_reasons(nlp, data_path, progress=shown, **reading)
        measured = {key: score for key, score in scores.items() if key != "pairs" and score is not None}
        if not measured:
            raise ValueError(
                f"Nothing can be measured on {data_path}: {'; '.join(reasons)}. Give a file whose gold the "
                "pipeline can be scored by."
            )
    rows = [("Examples", str(scores["pairs"]))]
    rows += [(LABELS.get(key, key), f"{100 * score:.2f}") for key, score in measured.items()]
    msg.table(rows, title="Scores x 100, vectors compared by cosine, triplets by Euclidean distance")
    if reasons and measured.keys() <= LABELS.keys():
        msg.warn(f"Other scores are not defined: {'; '.join(reasons)}")
    if output is not None:
        with exit_on_error(f"Cannot write {output}"):
            write_text(output, srsly.json_dumps(scores, indent=2))
        msg.good(f"Saved the scores to {output}")
