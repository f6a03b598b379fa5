"""`python -m spacy sbert evaluate`: how well a pipeline's similarities agree with graded pairs."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from . import app


@app.command("evaluate")
def evaluate_cli(
    pipeline: Annotated[str, Argument(help="A folder or an installed package")],
    data_path: Annotated[
        Path, Argument(help="Pairs: the STS benchmark's layout (.csv, .tsv) or .spacy", exists=True, dir_okay=False)
    ],
    output: Annotated[Path | None, Option("--output", "-o", help="JSON file for the scores", dir_okay=False)] = None,
    gpu_id: Annotated[int, Option("--gpu-id", "-g", help="GPU to use, -1 for the CPU")] = -1,
) -> None:
    """Score a pipeline on graded pairs: Spearman and Pearson correlation of cosine similarity with gold."""
    import srsly
    from spacy.cli._util import setup_gpu
    from spacy.util import load_model

    from ..evaluate import evaluate

    setup_gpu(gpu_id)
    try:
        scores = evaluate(load_model(pipeline), data_path)
    except ValueError as error:
        msg.fail(f"Cannot evaluate on {data_path}", str(error), exits=1)
    rows = [("Pairs", str(scores["pairs"]))]
    for label, key in (("Spearman", "sts_spearman"), ("Pearson", "sts_pearson")):
        rows.append((label, "-" if scores[key] is None else f"{100 * scores[key]:.2f}"))
    msg.table(rows, title="Similarity of pairs (cosine, x 100)")
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        srsly.write_json(output, scores)
        msg.good(f"Saved the scores to {output}")
