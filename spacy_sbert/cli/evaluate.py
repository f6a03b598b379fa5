"""`python -m spacy sbert evaluate`: how well a pipeline does on graded pairs, labelled pairs or triplets."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from . import app

LABELS = {
    "sts_spearman": "Spearman",
    "sts_pearson": "Pearson",
    "pair_ap": "Average precision",
    "nli_acc": "Accuracy of labels",
    "triplet_acc": "Accuracy of triplets",
}


@app.command("evaluate")
def evaluate_cli(
    pipeline: Annotated[str, Argument(help="A folder or an installed package")],
    data_path: Annotated[
        Path, Argument(help="Examples: .spacy, or an official layout that --format names", exists=True, dir_okay=False)
    ],
    output: Annotated[Path | None, Option("--output", "-o", help="JSON file for the scores", dir_okay=False)] = None,
    format: Annotated[str, Option("--format", "-f", help="Layout of the file, such as sts, nli, wikisection")] = "auto",
    members: Annotated[str | None, Option("--members", "-m", help="Columns of a table's texts: q1,q2")] = None,
    score: Annotated[str | None, Option("--score", help="Column of a table's score")] = None,
    label: Annotated[str | None, Option("--label", help="Column of a table's label")] = None,
    min_score: Annotated[float, Option("--min-score", help="Score of a table that is 0")] = 0.0,
    max_score: Annotated[float, Option("--max-score", help="Score of a table that is 1")] = 1.0,
    no_header: Annotated[bool, Option("--no-header", help="A table's columns are named 0, 1, ...")] = False,
    gpu_id: Annotated[int, Option("--gpu-id", "-g", help="GPU to use, -1 for the CPU")] = -1,
) -> None:
    """Score a pipeline: correlation of cosine with gold grades, average precision, accuracy of labels or triplets."""
    import srsly
    from spacy.cli._util import setup_gpu
    from spacy.util import load_model

    from ..evaluation import evaluate

    setup_gpu(gpu_id)
    columns = {"members": members.split(",") if members else None, "score": score, "label": label}
    scale = {"min_score": min_score, "max_score": max_score, "header": not no_header}
    try:
        scores = evaluate(load_model(pipeline), data_path, format=format, **columns, **scale)
    except (ImportError, OSError, ValueError) as error:
        msg.fail(f"Cannot evaluate on {data_path}", str(error), exits=1)
    rows = [("Examples", str(scores["pairs"]))]
    for key, label in LABELS.items():
        if scores[key] is not None:
            rows.append((label, f"{100 * scores[key]:.2f}"))
    msg.table(rows, title="Scores x 100, vectors compared by cosine, triplets by Euclidean distance")
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        srsly.write_json(output, scores)
        msg.good(f"Saved the scores to {output}")
