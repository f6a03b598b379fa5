"""Train on pairs of arguments and score on held-out pairs and on held-out topics, and write the table of the means.

The two protocols of Reimers and Gurevych 2019, section 4.3: (a) ten-fold cross-validation over the pairs; (b) train on
all topics but one and score on that one, for each topic. Both correlations, averaged over folds or topics, with their
standard deviation; and those of the encoder without training on the same pairs. A pair that is scored is never trained
on, in neither order of its arguments, whatever topic it also stands under; a single sentence may be in a pair of each
side. Each run's scores are saved at once and not made again.

    python scripts/argument_similarity.py --data UKP_ASPECT.tsv --layout ukp --output metrics/aspect
"""

import argparse
import json
import random
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy
from runs import (
    RERANKER,
    Scores,
    add_options,
    count_steps,
    digest,
    fit,
    markdown,
    mean_and_deviation,
    run_once,
    untrained,
)
from spacy.language import Language

from spacy_sbert.evaluation import PipelineSource
from spacy_sbert.evaluation.pairs import CORRELATIONS, weighted_mean
from spacy_sbert.evaluation.store import VectorStore
from spacy_sbert.readers.arguments import LAYOUTS, ArgumentRow, read_arguments
from spacy_sbert.similarity import cosine

FOLD_SEED = 0  # the folds are the same for all seeds of a training
PROTOCOLS = {"folds": "{count}-fold cross-validation", "topics": "leave one topic out ({count})"}


@dataclass(frozen=True)
class Split:
    """What to train on and what to score on: indices of pairs; name: of the fold or topic that is left out."""

    name: str
    train: tuple[int, ...]
    test: tuple[int, ...]


def split_folds(rows: Sequence[ArgumentRow], folds: int) -> list[Split]:
    """Shuffle the pairs, leave out each fold in turn; pairs that occur twice may be in two folds."""
    if not 2 <= folds <= len(rows):
        raise SystemExit(f"--folds {folds}: expected 2 to {len(rows)}, the number of pairs")
    order = list(range(len(rows)))
    random.Random(FOLD_SEED).shuffle(order)
    return [leave_out(f"fold {fold + 1}", rows, order[fold::folds]) for fold in range(folds)]


def split_topics(rows: Sequence[ArgumentRow]) -> list[Split]:
    """Leave out each topic in turn."""
    topics = dict.fromkeys(row.topic for row in rows)
    if len(topics) < 2:
        raise SystemExit(f"All pairs are about {', '.join(topics)}: expected two topics or more, to leave one out")
    return [leave_out(topic, rows, [i for i, row in enumerate(rows) if row.topic == topic]) for topic in topics]


def leave_out(name: str, rows: Sequence[ArgumentRow], test: Sequence[int]) -> Split:
    """Train on all other pairs, but for those that are also scored: 39 pairs of UKP's stand under two topics."""
    scored, held = {frozenset(rows[i].members) for i in test}, set(test)
    train = [i for i, row in enumerate(rows) if i not in held and frozenset(row.members) not in scored]
    return Split(name, tuple(train), tuple(sorted(test)))


def chosen(splits: list[Split], only: Sequence[str]) -> list[Split]:
    """Those of the names asked for, or all."""
    unknown = set(only) - {split.name for split in splits}
    if unknown:
        raise SystemExit(f"--only {', '.join(unknown)}: expected some of {', '.join(split.name for split in splits)}")
    return [split for split in splits if not only or split.name in only]


def similarities(nlp: Language, rows: Sequence[ArgumentRow]) -> numpy.ndarray:
    """The cosine of each pair, each distinct text being encoded once; or the scores of a cross-encoder."""
    if nlp.has_pipe(RERANKER):
        return nlp.get_pipe(RERANKER).score_pairs(row.members for row in rows)  # type: ignore[attr-defined]
    first, second = zip(*(row.members for row in rows), strict=True)
    encode = VectorStore(PipelineSource(nlp), None, lambda items, name: items)
    return cosine(*numpy.split(encode([*first, *second]), 2))


def correlate(predicted: numpy.ndarray, rows: Sequence[ArgumentRow]) -> Scores:
    """Both correlations with the scores of pairs."""
    return {name: measure(predicted, [row.score for row in rows]) for name, measure in CORRELATIONS.items()}


def fit_and_score(args: argparse.Namespace, rows: Sequence[ArgumentRow], split: Split, seed: int) -> Scores:
    """Train on a split, and score its test pairs."""
    train = list(split.train)
    random.Random(seed).shuffle(train)  # so that a limit leaves pairs of all topics
    train = train[: args.limit or len(train)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.jsonl"
        path.write_text("".join(json.dumps(as_record(rows[i])) + "\n" for i in train), encoding="utf8")
        overrides: dict[str, Any] = {
            "system__seed": seed,
            "paths__train": str(path),
            "paths__dev": str(path),
            "training__optimizer__learn_rate__total_steps": args.steps or count_steps(len(train), args.epochs, 0),
        }
        for part in ("train", "dev"):
            columns = {"format": "table", "members": ["first", "second"], "score": "score"}
            overrides.update({f"corpora__{part}__{key}": value for key, value in columns.items()})
        nlp = fit(args.config, Path(folder) / "model", args, encoder=args.encoder, **overrides)
        test = [rows[i] for i in split.test]
        return correlate(similarities(nlp, test), test)


def as_record(row: ArgumentRow) -> dict[str, Any]:
    first, second = row.members
    return {"first": first, "second": second, "score": row.score}


def score_untrained(args: argparse.Namespace, rows: Sequence[ArgumentRow], splits: Sequence[Split]) -> Scores:
    """The scores of each split without training."""
    predicted = similarities(untrained(args.config, args), rows)
    return {split.name: correlate(predicted[list(split.test)], [rows[i] for i in split.test]) for split in splits}


def table(found: dict[str, dict[str, dict[str, list[Scores]]]]) -> str:
    """Markdown, two rows for each protocol: mean and standard deviation over splits, of the means over seeds."""
    rows = []
    for protocol, trainings in found.items():
        for training, splits in trainings.items():
            runs = [each for each in splits.values() if each]
            columns = [
                mean_and_deviation([weighted_mean([one[name] for one in each], [1] * len(each)) for each in runs])
                for name in ("pearson", "spearman")
            ]
            seeds = min(map(len, runs), default=0) if training == "arguments" else "-"
            name = PROTOCOLS[protocol].format(count=len(splits))
            rows.append([name, training, *(part for column in columns for part in column), len(runs), seeds])
    deviation = "standard deviation"
    header = ["protocol", "trained on", "Pearson x 100", deviation, "Spearman x 100", deviation, "scored", "seeds"]
    return markdown(header, rows)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Argument similarity: cross-validation and left-out topics.")
    add_options(parser, "metrics/arguments")
    parser.set_defaults(seeds=[1])
    parser.add_argument("--data", type=Path, default=Path("assets/arguments.tsv"), help="a file, or AFS's folder")
    parser.add_argument("--layout", choices=list(LAYOUTS), default="ukp")
    parser.add_argument("--protocols", nargs="+", choices=list(PROTOCOLS), default=list(PROTOCOLS))
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=[], help='some of the splits, such as "fold 1" or a topic')
    return parser.parse_args()


def main() -> None:
    args = parse()
    args.output.mkdir(parents=True, exist_ok=True)
    rows = read_arguments(args.data, args.layout)
    files, _ = LAYOUTS[args.layout]
    names = ("layout", "encoder", "folds", "epochs", "steps", "limit", "learn_rate")
    settings: dict[str, Any] = {name: getattr(args, name) for name in names}
    settings.update(config=digest(args.config), data=digest(*files(args.data)))
    plans = {"folds": lambda: split_folds(rows, args.folds), "topics": lambda: split_topics(rows)}
    splits = {protocol: chosen(plans[protocol](), args.only) for protocol in args.protocols}
    found: dict[str, dict[str, dict[str, list[Scores]]]] = {}
    for protocol, each in splits.items():
        file = args.output / f"{protocol}-untrained.json"
        base = run_once(file, settings, partial(score_untrained, args, rows, each))
        found[protocol] = {"nothing": {name: [one] for name, one in base.items()}}
        found[protocol]["arguments"] = {split.name: [] for split in each}
    for seed in args.seeds:
        for protocol, split in ((protocol, split) for protocol, each in splits.items() for split in each):
            name = re.sub(r"\W+", "-", split.name.lower())
            file = args.output / f"{protocol}-{name}-{seed}.json"
            one = run_once(file, {**settings, "split": split.name}, partial(fit_and_score, args, rows, split, seed))
            found[protocol]["arguments"][split.name].append(one)
            (args.output / "table.md").write_text(table(found), encoding="utf8")
    print(table(found))


if __name__ == "__main__":
    main()
