"""Train one config with every pooling, concatenation and seed, and write the mean scores.

After Table 6 of Reimers and Gurevych 2019, whose columns are two runs of this: classification on
NLI pairs, and regression on graded pairs, whose loss concatenates nothing. Both are scored by the
Spearman correlation of cosine similarities with the grades of STS pairs, which no run is selected
by. What is finished is not made again.

    python benchmarks/papers/ablation.py --train snli.jsonl multinli.jsonl --dev sts-dev.csv \
        --output metrics/ablation
    python benchmarks/papers/ablation.py --config configs/sts.cfg --train sts-train.csv \
        --dev sts-dev.csv --output metrics/sts
"""

import argparse
import tempfile
from functools import partial
from itertools import product
from pathlib import Path

from runs import (
    ASSETS,
    Overrides,
    Runs,
    Scores,
    add_options,
    digest,
    length,
    load,
    markdown,
    mean_and_deviation,
    sample_paths,
    settings_of,
    trained,
    use_device,
)
from spacy.util import load_config

from spacy_sbert.evaluation import evaluate

TABLE_6 = [
    "u,v",
    "abs_diff",
    "product",
    "abs_diff,product",
    "u,v,product",
    "u,v,abs_diff",
    "u,v,abs_diff,product",
]
# A bar alone would end a cell
WRITTEN = {
    "u": "u",
    "v": "v",
    "abs_diff": "\\|u-v\\|",
    "product": "u*v",
}
# The concatenation of a loss that has none
NONE = "none"


def run(args: argparse.Namespace, pooling: str, concatenation: str, seed: int) -> Scores:
    """Train once, and score the last weights."""
    overrides: Overrides = {"system.seed": seed, **length(args.epochs, args.steps)}
    overrides["components.sbert.model.pooling"] = pooling
    if args.train:
        files = [str(path) for path in args.train]
        overrides["corpora.train.path"] = files if len(files) > 1 else files[0]
    if concatenation != NONE:
        overrides["components.sbert.loss.concatenation"] = concatenation.split(",")
        if args.head_factor is not None:
            overrides["components.sbert.loss.learn_rate_factor"] = args.head_factor
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        seconds = trained(model, {}, args.config, args, overrides)
        scores = evaluate(load(model), args.dev, format="sts")
    return {"spearman": scores["sts_spearman"], "seconds": seconds}


def table(scores: dict[tuple[str, ...], Scores]) -> str:
    """Markdown, a row for each pooling and concatenation: mean, standard deviation, seeds."""
    found: dict[tuple[str, str], list[float]] = {}
    for (pooling, concatenation, _), run in scores.items():
        found.setdefault((pooling, concatenation), []).append(run["spearman"])
    rows = [
        [*name(*key), *mean_and_deviation(values), len(values)] for key, values in found.items()
    ]
    return markdown(
        ["pooling", "concatenation", "STS Spearman x 100", "standard deviation", "seeds"], rows
    )


def name(pooling: str, concatenation: str) -> tuple[str, str]:
    """As a table has them."""
    if concatenation == NONE:
        return pooling, "-"
    parts = [WRITTEN[part] for part in concatenation.split(",")]
    return pooling, f"({', '.join(parts)})"


def main() -> None:
    parser = argparse.ArgumentParser(description="Ablation of pooling and concatenation.")
    add_options(parser, output="metrics/ablation", config="nli.cfg", seeds=[1, 2], epochs=1)
    parser.add_argument(
        "--train", nargs="+", type=Path, help="as the config reads them, by default its own"
    )
    parser.add_argument(
        "--dev", type=Path, default=ASSETS / "pairs-dev.csv", help="graded pairs, STS layout"
    )
    parser.add_argument("--pooling", nargs="+", default=["mean", "max", "cls"])
    parser.add_argument(
        "--concatenation", nargs="+", default=TABLE_6, help="not of a loss that has none"
    )
    parser.add_argument(
        "--head-factor", type=float, help="on the head's learning rate, by default the config's"
    )
    args = parser.parse_args()
    use_device(args)
    config = load_config(args.config, overrides=sample_paths(args.config), interpolate=True)
    concatenations = [NONE]
    if "concatenation" in config["components"]["sbert"]["loss"]:
        concatenations = args.concatenation
    given = args.train or config["corpora"]["train"]["path"]
    data = [Path(given)] if isinstance(given, str) else list(map(Path, given))
    settings = settings_of(args, "epochs", "steps", "head_factor")
    settings.update(config=digest(args.config), data=digest(*data, args.dev))
    runs = Runs(args.output, vars(args), table)
    # Seed by seed: a table that is stopped has each row
    for seed in args.seeds:
        for each in product(args.pooling, concatenations):
            runs(*each, str(seed), settings=settings, make=partial(run, args, *each, seed))
    print(table(runs.found))


if __name__ == "__main__":
    main()
