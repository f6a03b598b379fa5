"""Train one config with every pooling, concatenation and seed, and write the table of the mean scores.

After Table 6 of Reimers and Gurevych 2019: classification on NLI pairs, scored by the Spearman correlation of cosine
similarities with the grades of STS pairs, which no run is selected by. Each run's score is saved at once and not made
again, so that the table can be stopped and gone on with.

    python scripts/ablation.py --output metrics/ablation --pooling mean max cls --seeds 1 2 3 4 5 6 7 8 9 10
"""

import argparse
import json
import statistics
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import spacy
from spacy.cli.train import train

from spacy_sbert.evaluation import evaluate

TABLE_6 = ["u,v", "abs_diff", "product", "abs_diff,product", "u,v,product", "u,v,abs_diff", "u,v,abs_diff,product"]
WRITTEN = {"u": "u", "v": "v", "abs_diff": "\\|u-v\\|", "product": "u*v"}  # a bar alone would end a cell


def run(args: argparse.Namespace, pooling: str, concatenation: str, seed: int) -> float:
    """Train once; the Spearman correlation x 100 of the last weights, or what was saved of them."""
    names = ("config", "train", "dev", "limit", "steps", "learn_rate", "head_factor")
    settings = {name: str(getattr(args, name)) for name in names}
    settings.update(train=args.train.name, dev=args.dev.name)  # not where they lie
    file = args.output / f"{pooling}-{concatenation.replace(',', '-')}-{seed}.json"
    if file.exists():
        saved = json.loads(file.read_text(encoding="utf8"))
        if saved["settings"] != settings:
            raise SystemExit(f"{file} was made with {saved['settings']}, not {settings}: choose another --output")
        return saved["sts_spearman"]
    overrides: dict[str, Any] = {
        "system.seed": seed,
        "paths.train": str(args.train),
        "corpora.train.limit": args.limit,
        "corpora.dev.limit": 1,  # nothing is selected by it
        "components.sbert.model.pooling": pooling,
        "components.sbert.model.normalize": False,
        "components.sbert.loss.concatenation": concatenation.split(","),
        "components.sbert.loss.learn_rate_factor": args.head_factor,
        "training.optimizer.learn_rate.initial_rate": args.learn_rate,
        "training.optimizer.learn_rate.total_steps": args.steps,
        "training.eval_frequency": 1_000_000,
        "training.logger.progress_bar": False,
    }
    with tempfile.TemporaryDirectory() as folder:
        train(args.config, Path(folder), use_gpu=args.gpu_id, overrides=overrides)
        nlp = spacy.load(Path(folder) / "model-last", config={"components.sbert.token_vectors": False})
        scores = evaluate(nlp, args.dev, format="sts")
    score = 100 * scores["sts_spearman"]
    file.write_text(json.dumps({"sts_spearman": score, "settings": settings}) + "\n", encoding="utf8")
    return score


def table(scores: dict[tuple[str, str], list[float]]) -> str:
    """Markdown, a row for each pooling and concatenation: mean, standard deviation and number of seeds."""
    lines = ["| pooling | concatenation | STS Spearman x 100 | standard deviation | seeds |", "|---|---|---|---|---|"]
    for (pooling, concatenation), found in scores.items():
        written = ", ".join(WRITTEN[part] for part in concatenation.split(","))
        deviation = f"{statistics.stdev(found):.2f}" if len(found) > 1 else "-"
        lines.append(f"| {pooling} | ({written}) | {statistics.mean(found):.2f} | {deviation} | {len(found)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Ablation of pooling and concatenation.")
    parser.add_argument("--config", type=Path, default=Path("configs/nli.cfg"))
    parser.add_argument("--train", type=Path, default=Path("assets/nli-train.jsonl"), help="NLI pairs")
    parser.add_argument("--dev", type=Path, default=Path("assets/pairs-dev.csv"), help="graded pairs, STS layout")
    parser.add_argument("--output", type=Path, default=Path("metrics/ablation"), help="folder for scores and table")
    parser.add_argument("--pooling", nargs="+", default=["mean", "max", "cls"])
    parser.add_argument("--concatenation", nargs="+", default=TABLE_6)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--limit", type=int, default=0, help="the most training pairs, 0 for all")
    parser.add_argument("--steps", type=int, default=23, help="of 16 pairs")
    parser.add_argument("--learn-rate", type=float, default=2e-5)
    parser.add_argument("--head-factor", type=float, default=50.0, help="on the head's learning rate")
    parser.add_argument("--gpu-id", type=int, default=-1)
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    scores: dict[tuple[str, str], list[float]] = {pair: [] for pair in product(args.pooling, args.concatenation)}
    for seed in args.seeds:  # seed by seed: a table that is stopped has each row
        for (pooling, concatenation), found in scores.items():
            found.append(run(args, pooling, concatenation, seed))
            (args.output / "table.md").write_text(table({key: s for key, s in scores.items() if s}), encoding="utf8")
    print(table(scores))


if __name__ == "__main__":
    main()
