"""Train on graded pairs with many seeds, and write the mean and deviation of the scores: supervised STS.

After Table 2 of Reimers and Gurevych 2019: the encoder as it is, and trained on the STS benchmark; with --nli also
trained on NLI pairs, and on NLI pairs first and the STS benchmark then. The last weights are scored: no run and no step
is selected by the files it is scored on. Each run's scores are saved at once and not made again.

    python scripts/supervised_sts.py --train sts-train.csv --score sts-dev.csv sts-test.csv --nli snli_1.0_train.jsonl
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from runs import BATCH, Scores, add_options, count_steps, digest, fit, markdown, mean_and_deviation, run_once, untrained
from spacy.language import Language

from spacy_sbert.evaluation import evaluate
from spacy_sbert.readers import PairCorpus

TRAINED_ON = {"untrained": "nothing", "sts": "STS", "nli": "NLI", "nli-sts": "NLI, then STS"}
MEASURES = ("spearman", "pearson")


def score(nlp: Language, files: list[Path]) -> Scores:
    """Both correlations with the grades of each file."""
    found = {file.name: evaluate(nlp, file, format="sts") for file in files}
    return {file: {name: scores[f"sts_{name}"] for name in MEASURES} for file, scores in found.items()}


def fit_sts(args: argparse.Namespace, seed: int) -> Scores:
    """Train on graded pairs."""
    with tempfile.TemporaryDirectory() as folder:
        nlp = fit(args.config, Path(folder), args, encoder=args.encoder, **on_sts(args, seed))
        return {"sts": score(nlp, args.score)}


def fit_nli_then_sts(args: argparse.Namespace, seed: int) -> Scores:
    """Train on NLI pairs, then on graded pairs from its transformer."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "nli", Path(folder) / "sts"
        nlp = fit(args.nli_config, first, args, encoder=args.encoder, **on_nli(args, seed))
        scores = {"nli": score(nlp, args.score)}
        checkpoint = str(first / "model-last")
        nlp = fit(args.second_config, second, args, **on_sts(args, seed), paths__checkpoint=checkpoint)
        return {**scores, "nli-sts": score(nlp, args.score)}


def on_sts(args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """What a config is told to train on graded pairs."""
    steps = args.steps or count_steps(PairCorpus(args.train, format="sts").count(), args.epochs, args.limit)
    return on_data(args.train, args.score[0], args.limit, steps, seed)


def on_nli(args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """What a config is told to train on NLI pairs, by default for one epoch."""
    steps = args.nli_steps or count_steps(PairCorpus(args.nli, format="nli").count(), 1, args.limit)
    return on_data(args.nli, args.nli, args.limit, steps, seed)


def on_data(path: Path, dev: Path, limit: int, steps: int, seed: int) -> dict[str, Any]:
    return {
        "system__seed": seed,
        "paths__train": str(path),
        "paths__dev": str(dev),
        "corpora__train__limit": limit,
        "training__optimizer__learn_rate__total_steps": steps,
    }


def settings_of(args: argparse.Namespace, *configs: Path) -> dict[str, Any]:
    """What the scores of a run depend on."""
    names = ("encoder", "epochs", "steps", "limit", "learn_rate")
    settings = {name: getattr(args, name) for name in names}
    return {**settings, "configs": digest(*configs), "data": digest(args.train, *args.score)}


def table(scores: dict[str, list[Scores]]) -> str:
    """Markdown, a row for each training and file: mean and standard deviation over seeds."""
    rows = []
    for training, runs in scores.items():
        for file in runs[0] if runs else []:
            columns = [mean_and_deviation([run[file][name] for run in runs]) for name in MEASURES]
            rows.append([TRAINED_ON[training], file, *(part for column in columns for part in column), len(runs)])
    deviation = "standard deviation"
    return markdown(["trained on", "file", "Spearman x 100", deviation, "Pearson x 100", deviation, "seeds"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Supervised STS with many seeds.")
    add_options(parser, "metrics/supervised_sts")
    parser.add_argument("--train", type=Path, default=Path("assets/pairs-train.csv"), help="STS layout")
    parser.add_argument("--score", nargs="+", type=Path, default=[Path("assets/pairs-dev.csv")], help="STS layout")
    parser.add_argument("--nli", type=Path, help="NLI pairs (.jsonl), to train on before")
    parser.add_argument("--nli-config", type=Path, default=Path("configs/nli.cfg"))
    parser.add_argument("--second-config", type=Path, default=Path("configs/two_step.cfg"))
    parser.add_argument("--nli-steps", type=int, default=0, help=f"of {BATCH} pairs, 0 for one epoch")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    settings = settings_of(args, args.config)
    scores: dict[str, list[Scores]] = {name: [] for name in TRAINED_ON}

    def keep(found: Scores) -> None:
        for training, files in found.items():
            scores[training].append(files)
        (args.output / "table.md").write_text(table(scores), encoding="utf8")

    def make_untrained() -> Scores:
        return {"untrained": score(untrained(args.config, args), args.score)}

    keep(run_once(args.output / "untrained.json", settings, make_untrained))
    for seed in args.seeds:  # seed by seed: a table that is stopped has each row
        keep(run_once(args.output / f"sts-{seed}.json", settings, partial(fit_sts, args, seed)))
        if args.nli:
            both = settings_of(args, args.config, args.nli_config, args.second_config)
            both.update(nli=digest(args.nli), nli_steps=args.nli_steps)
            keep(run_once(args.output / f"nli-sts-{seed}.json", both, partial(fit_nli_then_sts, args, seed)))
    print(table(scores))


if __name__ == "__main__":
    main()
