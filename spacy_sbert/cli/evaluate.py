"""`python -m spacy sbert evaluate`: how well a pipeline does on a file of examples."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument
from wasabi import msg

from ._util import app, check_new, check_pipeline, exit_on_error, fail, load_answering
from .infer_columns import reading_of
from .options import (
    AUTO,
    Code,
    Format,
    Gpu,
    Header,
    Label,
    MaxScore,
    Members,
    MinScore,
    Output,
    Overwrite,
    Pipe,
    Pipeline,
    Quiet,
    Score,
    layout_of,
)

if TYPE_CHECKING:
    from spacy.language import Language

_TABLE, _PAIR = "table", 2
_LABELS = {
    "sts_spearman": "Spearman",
    "sts_pearson": "Pearson",
    "pair_ap": "Average precision",
    "nli_acc": "Accuracy of labels",
    "triplet_acc": "Accuracy of triplets",
    "knn_acc": "Accuracy of the nearest text's label",
}


@app.command("evaluate")
def _evaluate_cli(
    pipeline: Pipeline,
    data_path: Annotated[Path, Argument(help="The file of examples, see --format.", exists=True)],
    output: Output = None,
    overwrite: Overwrite = False,
    pipe: Pipe = None,
    code: Code = None,
    quiet: Quiet = False,
    gpu_id: Gpu = -1,
    format: Format = AUTO,
    members: Members = None,
    score: Score = None,
    label: Label = None,
    min_score: MinScore = None,
    max_score: MaxScore = None,
    header: Header = True,
) -> None:
    """Score a pipeline on pairs, triplets or texts with labels.

    On the standard tasks of a folder of data sets, see `benchmark`; for results side by side, see `compare`.
    """
    if data_path.is_dir():
        fail(
            f"{data_path} is a folder: give a file of examples, or score the pipeline on the data sets in a "
            "folder with 'python -m spacy sbert benchmark'."
        )
    layout = layout_of(
        format=format,
        members=members,
        score=score,
        label=label,
        min_score=min_score,
        max_score=max_score,
        header=header,
    )
    check_new(output, overwrite=overwrite)
    check_pipeline(pipeline)
    nlp = load_answering(pipeline, pipe, code, quiet=quiet, gpu_id=gpu_id, also_scores=True)
    _evaluate(nlp, data_path, layout, output, shown=not quiet)


def _evaluate(nlp: "Language", data_path: Path, layout: dict[str, Any], output: Path | None, *, shown: bool) -> None:
    import srsly

    from ..evaluation.scoring import evaluate_with_reasons
    from ..files.atomic import write_text

    with exit_on_error(f"Cannot evaluate on {data_path}"):
        reading = reading_of(data_path, layout, nlp.config.get("corpora", {}).get("dev"), shown=shown)
        members = reading.get("members", ())
        if reading.get("format") == _TABLE and len(members) == _PAIR and not {"score", "label"} & reading.keys():
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
    rows += [(_LABELS.get(key, key), f"{100 * score:.2f}") for key, score in measured.items()]
    msg.table(rows, title="Scores x 100, vectors compared by cosine, triplets by Euclidean distance")
    if reasons and measured.keys() <= _LABELS.keys():
        msg.warn(f"Other scores are not defined: {'; '.join(reasons)}")
    if output is not None:
        with exit_on_error(f"Cannot write {output}"):
            write_text(output, srsly.json_dumps(scores, indent=2))
        msg.good(f"Saved the scores to {output}")
