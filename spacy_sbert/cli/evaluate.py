"""`python -m spacy sbert evaluate`: how well a pipeline does on a file of examples, or on the field's data sets."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option
from wasabi import msg

from .group import app
from .ending import fail, use_gpu

LABELS = {
    "sts_spearman": "Spearman",
    "sts_pearson": "Pearson",
    "pair_ap": "Average precision",
    "nli_acc": "Accuracy of labels",
    "triplet_acc": "Accuracy of triplets",
}


def _of_file(*names: str, help: str) -> Any:
    return Option(*names, help=f"File: {help}")


def _of_folder(*names: str, help: str, min: int | None = None, max: int | None = None) -> Any:
    return Option(*names, help=f"Folder: {help}", min=min, max=max)


@app.command("evaluate")
def evaluate_cli(
    pipeline: Annotated[str, Argument(help="A folder or an installed package; with --compare: results")],
    data_path: Annotated[Path | None, Argument(help="A file of examples, or a folder of data sets")] = None,
    more: Annotated[list[Path] | None, Argument(help="With --compare: results", exists=True)] = None,
    output: Annotated[Path | None, Option("--output", "-o", help="JSON file for the results", dir_okay=False)] = None,
    gpu_id: Annotated[int, Option("--gpu-id", "-g", help="GPU to use, -1 for the CPU", min=-1)] = -1,
    compare: Annotated[bool, Option("--compare", help="Put results side by side: a.json b.json ...")] = False,
    format: Annotated[str, _of_file("--format", "-f", help="Layout, such as sts, nli, wikisection")] = "auto",
    members: Annotated[str | None, _of_file("--members", "-m", help="Columns of a table's texts: q1,q2")] = None,
    score: Annotated[str | None, _of_file("--score", help="Column of a table's score")] = None,
    label: Annotated[str | None, _of_file("--label", help="Column of a table's label")] = None,
    min_score: Annotated[float, _of_file("--min-score", help="Score of a table that is 0")] = 0.0,
    max_score: Annotated[float, _of_file("--max-score", help="Score of a table that is 1")] = 1.0,
    no_header: Annotated[bool, _of_file("--no-header", help="A table's columns are named 0, 1, ...")] = False,
    suite: Annotated[
        str, _of_folder("--suite", "-s", help="Any of sts,sick,triplets,nli,arguments,learned,transfer,probing,speed")
    ] = "sts",
    normalization: Annotated[str, _of_folder("--normalization", help="Any of none,zscore,unit,zscore_unit")] = "none",
    size: Annotated[str, _of_folder("--size", help="Widths compared: own,pca-128,up-1024")] = "own",
    classifier: Annotated[str, _of_folder("--classifier", help="Of transfer and probing: lr,mlp")] = "lr,mlp",
    seeds: Annotated[int, _of_folder("--seeds", help="Seeds of whatever is random", min=1, max=1000)] = 10,
    bootstrap: Annotated[
        int, _of_folder("--bootstrap", help="Resamples of the 95 % intervals, 0 for none", min=0)
    ] = 1000,
    trained_on: Annotated[str, _of_folder("--trained-on", help="What the encoder was trained on: stsb,snli")] = "",
    any_count: Annotated[bool, _of_folder("--any-count", help="Take data sets that are not whole")] = False,
    cache: Annotated[
        Path | None, _of_folder("--cache", help="For vectors and results; by default beside --output")
    ] = None,
    baseline: Annotated[
        str | None,
        _of_folder(
            "--baseline", help="static, sif, power-means, tf-idf, untuned-mean, untuned-cls or random-projection"
        ),
    ] = None,
    counts: Annotated[Path | None, _of_folder("--counts", help="Needed by sif: a file of words and counts")] = None,
    encoder: Annotated[
        str | None, _of_folder("--encoder", help="Of untuned-*: a transformer, by default BERT base")
    ] = None,
) -> None:
    """Score a pipeline on a file of pairs or triplets, or on a folder of the field's data sets; or compare results.

    With a folder, --output also writes a Markdown and an HTML report beside the JSON, and keeps vectors and finished
    tasks for the next run.
    """

    from . import suites

    if compare:
        given = [Path(pipeline), *([data_path] if data_path else []), *(more or [])]
        return suites.compare(given, output)
    if data_path is None or not data_path.exists():
        fail(f"No data at {data_path}: give a file of examples, or a folder of data sets")
    if more:
        fail(f"Cannot take {more[0]}: expected one pipeline and one file or folder of data")
    use_gpu(gpu_id)
    if data_path.is_dir():
        settings = {
            "normalizations": _listed(normalization),
            "sizes": _listed(size),
            "classifiers": _listed(classifier),
            "seeds": tuple(range(1, seeds + 1)),
            "bootstrap": bootstrap,
            "trained_on": _listed(trained_on),
            "any_count": any_count,
        }
        made = {"counts": counts, "encoder": encoder}
        return suites.evaluate(pipeline, data_path, _listed(suite), settings, baseline, made, output, cache)
    columns = {"members": members.split(",") if members else None, "score": score, "label": label}
    scale = {"min_score": min_score, "max_score": max_score, "header": not no_header}
    _evaluate_file(pipeline, data_path, {"format": format, **columns, **scale}, output)


def _evaluate_file(pipeline: str, data_path: Path, reader: dict[str, Any], output: Path | None) -> None:
    import srsly
    from spacy.util import load_model

    from ..evaluation import evaluate
    from ..files.whole import write_text

    try:
        scores = evaluate(load_model(pipeline), data_path, **reader)
    except (ImportError, OSError, ValueError) as error:
        fail(f"Cannot evaluate on {data_path}", str(error))
    rows = [("Examples", str(scores["pairs"]))]
    for key, name in LABELS.items():
        if scores[key] is not None:
            rows.append((name, f"{100 * scores[key]:.2f}"))
    msg.table(rows, title="Scores x 100, vectors compared by cosine, triplets by Euclidean distance")
    if output is not None:
        try:
            write_text(output, srsly.json_dumps(scores, indent=2))
        except (OSError, ValueError) as error:
            fail(f"Cannot write {output}", str(error))
        msg.good(f"Saved the scores to {output}")


def _listed(given: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(",") if name.strip())
