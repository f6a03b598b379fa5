"""Train on graded pairs with many seeds, directly and after NLI pairs, and write the table of the
mean scores.

After Tables 1 and 2 of Reimers and Gurevych 2019. Vectors: the encoder as it is, trained on the STS
benchmark, on NLI pairs, and on NLI pairs first and the STS benchmark then; the same of a
cross-encoder, which gives no vectors and is not scored after NLI alone. --score are the files of
Table 2; --suites, a folder of data sets, gives Table 1 from the same pipelines. The second step is
compared with the first alone seed by seed, by a paired t-test. The last weights are
scored: no run and no step is selected by what it is scored on. What is finished is not made again.

    python benchmarks/papers/supervised_sts.py --train sts-train.csv --score sts-dev.csv
        sts-test.csv --suites data --nli snli_1.0_train.jsonl multinli_1.0_train.jsonl
"""

import argparse
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from runs import (
    ASSETS,
    CONFIGS,
    DIFFERENCE,
    RERANKER,
    Overrides,
    Runs,
    Scores,
    Settings,
    add_cross_options,
    add_options,
    cross_overrides,
    digest,
    in_one,
    length,
    load,
    markdown,
    mean_and_deviation,
    mean_of,
    paired_difference,
    settings_of,
    trained,
    untrained,
    use_device,
)
from spacy.language import Language

from spacy_sbert import evaluation
from spacy_sbert.evaluation import PipelineSource, evaluate, evaluate_suites

MEASURES = ("spearman", "pearson")
AGGREGATES = {"pooled": "all pairs", "mean": "mean of sub-sets"}
OVERLAP = (
    "What was trained on STS has seen pairs of STS12 to STS17, of which the STS benchmark was "
    "made.\n"
)
# By row and seed
Found = dict[str, dict[str, Scores]]


@dataclass(frozen=True)
class Training:
    """A row of the table.

    title: what it was trained on. data: "sts" or "nli". config: the option that names it. after:
        the row whose weights it goes on from. is_row: whether it is scored.
    """

    title: str
    data: str = ""
    config: str = "config"
    after: str = ""
    is_row: bool = True


TRAININGS = {
    "untrained": Training("nothing"),
    "sts": Training("STS", "sts"),
    "nli": Training("NLI", "nli", "nli_config"),
    "nli-sts": Training("NLI, then STS", "sts", "second_config", "nli"),
    "cross-sts": Training("cross-encoder: STS", "sts", "cross_config"),
    "cross-nli": Training("cross-encoder: NLI", "nli", "cross_nli_config", is_row=False),
    "cross-nli-sts": Training(
        "cross-encoder: NLI, then STS", "sts", "cross_second_config", "cross-nli"
    ),
}
ROWS = [name for name, training in TRAININGS.items() if training.is_row]
COMPARED = [
    ("nli-sts", "sts"),
    ("cross-nli-sts", "cross-sts"),
    ("cross-sts", "sts"),
    ("cross-nli-sts", "nli-sts"),
]


def score(args: argparse.Namespace, nlp: Language) -> Scores:
    """Both correlations with the grades of each file; of vectors, those of the suites, too."""
    found: Scores = {"files": {}, "suites": {}}
    for file in args.score:
        scores = evaluate(nlp, file, format="sts")
        found["files"][file.name] = {name: scores[f"sts_{name}"] for name in MEASURES}
    if args.suites and not nlp.has_pipe(RERANKER):
        how = evaluation.Settings(bootstrap=0, any_count=args.any_count)
        results = evaluate_suites(
            PipelineSource(nlp), args.suites, args.suite, settings=how, progress_bar=False
        )
        if results["failed"]:
            raise SystemExit(f"--suites {args.suites}: {results['failed']}")
        for name, task in results["tasks"].items():
            scores = task["variants"][0]["scores"]["cosine"]["spearman"]
            found["suites"][name] = {key: scores.get(key) for key in AGGREGATES} | {
                "data": task["data"]
            }
    return found


def model_of(args: argparse.Namespace, name: str, seed: int) -> tuple[Path, dict[str, float]]:
    """The folder of a trained pipeline, and the seconds of each training that led to it."""
    training = TRAININGS[name]
    overrides = on_data(args, name, seed)
    seconds: dict[str, float] = {}
    if training.after:
        checkpoint, seconds = model_of(args, training.after, seed)
        overrides["paths.checkpoint"] = str(checkpoint)
    folder = args.output / "models" / f"{name}-{seed}"
    took = trained(folder, weights_of(args, name), getattr(args, training.config), args, overrides)
    return folder, {**seconds, name: took}


def on_data(args: argparse.Namespace, name: str, seed: int) -> Overrides:
    """What a config is told of its data, its length and its head."""
    overrides: Overrides = {"system.seed": seed}
    if TRAININGS[name].data == "nli":
        files = [str(path) for path in args.nli]
        overrides |= length(args.nli_epochs, args.nli_steps)
        overrides["paths.dev"] = files[0]
    else:
        files = [str(args.train)]
        overrides |= length(args.epochs, args.steps)
        overrides["paths.dev"] = str(args.score[0])
    overrides["corpora.train.path"] = files if len(files) > 1 else files[0]
    if name == "nli" and args.head_factor is not None:
        overrides["components.sbert.loss.learn_rate_factor"] = args.head_factor
    if name in ("cross-sts", "cross-nli-sts"):
        overrides |= cross_overrides(args)
    return overrides


def weights_of(args: argparse.Namespace, name: str) -> Settings:
    """What the weights of a training depend on."""
    training = TRAININGS[name]
    files = {"nli": args.nli, "sts": [args.train]}.get(training.data, [])
    names = {"nli": ("nli_epochs", "nli_steps"), "sts": ("epochs", "steps")}.get(training.data, ())
    own = {
        "nli": ("head_factor",),
        "cross-sts": ("cross_objective",),
        "cross-nli-sts": ("cross_objective",),
    }
    found = settings_of(args, *names, *own.get(name, ()))
    found |= {"config": digest(getattr(args, training.config)), "data": digest(*files)}
    if training.after:
        found["after"] = weights_of(args, training.after)
    return found


def table(scores: dict[tuple[str, ...], Scores]) -> str:
    """Markdown, see sts_table, in the order of the rows."""
    runs = {
        name: {seed: one for (row, seed), one in scores.items() if row == name} for name in ROWS
    }
    titles = {name: training.title for name, training in TRAININGS.items()}
    compared = [(titles[one], titles[other]) for one, other in COMPARED]
    learned = [training.title for training in TRAININGS.values() if training.data == "sts"]
    return sts_table({titles[name]: each for name, each in runs.items() if each}, compared, learned)


def sts_table(found: Found, compared: Sequence[tuple[str, str]], learned: Collection[str]) -> str:
    """Markdown: correlations with each file, paired tests, and suites.

    found (dict): the scores by title and seed. compared (list): titles of rows, and of those that
        they are compared with. learned (list): titles of what was trained on graded pairs.
    """
    suites = _suites(found)
    if suites and any(title in found for title in learned):
        suites += f"\n{OVERLAP}"
    tables = [_files(found), _differences(found, compared), suites]
    return "\n".join(filter(None, tables))


def _files(found: Found) -> str:
    rows = []
    for title, runs in found.items():
        each = list(runs.values())
        took = mean_of([sum(run["seconds"].values()) for run in each if run["seconds"]])
        for file in each[0]["files"]:
            cells: list[str] = []
            for measure in MEASURES:
                cells += mean_and_deviation([run["files"][file][measure] for run in each])
            cells.append("-" if took is None else f"{took:.0f}")
            rows.append([title, file, *cells, len(each)])
    deviation = "standard deviation"
    scored = ["Spearman x 100", deviation, "Pearson x 100", deviation]
    return markdown(
        ["trained on", "file", *scored, "seconds of training, all steps", "seeds"], rows
    )


def _differences(found: Found, compared: Sequence[tuple[str, str]]) -> str:
    """Paired t-tests of Spearman's correlation, over the seeds that two rows have in common; empty
    without any.
    """
    rows = []
    for one, other in compared:
        seeds = [seed for seed in found.get(one, {}) if seed in found.get(other, {})]
        if not seeds:
            continue
        for file in found[one][seeds[0]]["files"]:
            values = [found[one][seed]["files"][file]["spearman"] for seed in seeds]
            others = [found[other][seed]["files"][file]["spearman"] for seed in seeds]
            difference = paired_difference(values, others)
            rows.append([f"{one}, less {other}", file, *difference, len(seeds)])
    if not rows:
        return ""
    return markdown(["compared", "file", *DIFFERENCE, "seeds"], rows)


def _suites(found: Found) -> str:
    """Spearman x 100 of each data set, of all its pairs and as the mean of its sub-sets; empty
    without any.
    """
    # Of each row, the results of each seed; cross-encoders have none
    scored: dict[str, list[Scores]] = {}
    tasks: dict[str, None] = {}
    for title, runs in found.items():
        for one in runs.values():
            if one["suites"]:
                scored.setdefault(title, []).append(one["suites"])
                tasks |= dict.fromkeys(one["suites"])
    if not scored:
        return ""
    rows = []
    for (title, each), (key, scored_by) in product(scored.items(), AGGREGATES.items()):
        columns = [[suites[task][key] for suites in each] for task in tasks]
        means = [mean_of(of_seed) for of_seed in zip(*columns, strict=True)]
        rows.append([title, scored_by, *map(in_one, [*columns, means]), len(each)])
    return markdown(["trained on", "scored by", *tasks, "mean", "seeds"], rows)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Supervised STS with many seeds.")
    add_options(
        parser, output="metrics/supervised_sts", config="sts.cfg", seeds=range(1, 11), epochs=4
    )
    parser.add_argument(
        "--rows", nargs="+", choices=ROWS, help="by default all, without --nli those that need none"
    )
    parser.add_argument("--train", type=Path, default=ASSETS / "pairs-train.csv", help="STS layout")
    parser.add_argument(
        "--score", nargs="+", type=Path, default=[ASSETS / "pairs-dev.csv"], help="STS layout"
    )
    parser.add_argument("--suites", type=Path, help="a folder of data sets, see docs/evaluation.md")
    parser.add_argument("--suite", nargs="+", default=["sts", "sick"], help="of --suites")
    parser.add_argument(
        "--any-count",
        action="store_true",
        help="data sets may have another size than the official one",
    )
    parser.add_argument(
        "--nli", nargs="+", type=Path, default=[], help="NLI pairs (.jsonl), to train on before"
    )
    parser.add_argument("--nli-epochs", type=int, default=1)
    parser.add_argument(
        "--nli-steps", type=int, default=0, help="batches, in place of epochs; 0 for epochs"
    )
    parser.add_argument(
        "--head-factor", type=float, help="on the rate of the head of NLI, by default the config's"
    )
    add_cross_options(parser)
    parser.add_argument(
        "--cross-seeds",
        nargs="+",
        type=int,
        help="of --seeds, those of cross-encoders; by default all",
    )
    configs = {"nli": "nli", "second": "two_step"}
    configs |= {"cross-nli": "reranker_nli", "cross-second": "reranker_two_step"}
    for option, config in configs.items():
        parser.add_argument(f"--{option}-config", type=Path, default=CONFIGS / f"{config}.cfg")
    parser.add_argument(
        "--keep-models", action="store_true", help="in models/, of each row and seed"
    )
    args = parser.parse_args()
    needs_nli = [name for name in args.rows or [] if "nli" in name]
    if needs_nli and not args.nli:
        raise SystemExit(
            f"--rows {' '.join(needs_nli)}: name the NLI pairs to train on, --nli FILE ..."
        )
    args.rows = args.rows or [name for name in ROWS if args.nli or "nli" not in name]
    return args


def main() -> None:
    args = parse()
    use_device(args)
    runs = Runs(args.output, vars(args), table)
    scored_on = {"score": digest(*args.score), "suites": args.suite if args.suites else []}

    def make(name: str, seed: int) -> Scores:
        if name == "untrained":
            return {**score(args, untrained(args.config, args)), "seconds": {}}
        folder, seconds = model_of(args, name, seed)
        return {**score(args, load(folder)), "seconds": seconds}

    def run(name: str, seed: int = 0) -> None:
        settings = {"weights": weights_of(args, name), **scored_on}
        runs(name, str(seed), settings=settings, make=partial(make, name, seed))

    if "untrained" in args.rows:
        run("untrained")
    # Seed by seed: a table that is stopped has each row
    for seed in args.seeds:
        for name in args.rows:
            if name != "untrained" and seed in seeds_of(args, name):
                run(name, seed)
        if not args.keep_models:
            remove_models(args.output / "models", seed)
    print(table(runs.found))


def seeds_of(args: argparse.Namespace, name: str) -> list[int]:
    if name.startswith("cross"):
        return args.cross_seeds or args.seeds
    return args.seeds


def remove_models(folder: Path, seed: int) -> None:
    """Those that no other run of the seed goes on from any more."""
    for name in TRAININGS:
        shutil.rmtree(folder / f"{name}-{seed}", ignore_errors=True)


if __name__ == "__main__":
    main()
