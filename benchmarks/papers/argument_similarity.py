"""Train on pairs of arguments and score on held-out pairs and on held-out topics, and write the
table of the means.

After Table 3 of Reimers and Gurevych 2019 (section 4.3; Misra et al. 2016), by four protocols:

folds: cross-validation over the pairs. A pair that is scored is never trained on, in neither order;
    a sentence may stand in pairs of both sides. The paper does not say how its ten folds were
    drawn.
sentences: the same, but no sentence is on both sides: pairs that share one, directly or through
    others, are in the same fold. Not by default: all pairs of the sample are connected so.
topics: train on all topics but one and score on that one, for each; no sentence is on both sides.
topic-folds: the same with folds of topics, --topic-folds of them, which takes fewer trainings.

Rows: vectors without training and with it, support vector regression on those without, a
    cross-encoder, tf-idf and,
with --static, averaged static vectors. Both
correlations, averaged over folds or topics, with their standard deviation. What is finished is not
made again.

    python benchmarks/papers/argument_similarity.py --data UKP_ASPECT.tsv --layout ukp --output
    metrics/aspect
"""

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy
import spacy
from argument_splits import TOPIC_FOLDS, split_sentences, split_topic_folds
from protocols.argument_corpora import ARGUMENTS, ArgumentRow, argument_files, read_arguments
from protocols.arguments import N_FOLDS, Split, fit_support_vectors, split_folds, split_topics
from runs import (
    ASSETS,
    RERANKER,
    Overrides,
    Runs,
    Scores,
    Settings,
    add_cross_options,
    add_options,
    cross_overrides,
    digest,
    length,
    load,
    markdown,
    mean_and_deviation,
    mean_of,
    settings_of,
    trained,
    untrained,
    use_device,
)
from spacy.language import Language
from spacy.util import load_config

from spacy_sbert.evaluation import PipelineSource
from spacy_sbert.evaluation.baselines import make_baseline
from spacy_sbert.evaluation.encoders import VectorSource, VectorStore
from spacy_sbert.evaluation.protocols.sts import CORRELATIONS
from spacy_sbert.losses.softmax import SYMMETRIC, concatenated
from spacy_sbert.similarity import cosine

SVR = "svr"
FIXED = {
    "untrained": "vectors, not trained",
    "tf-idf": "tf-idf",
    "static": "averaged static vectors",
    SVR: "support vector regression on vectors that are not trained",
}
TRAINED = {"bi-encoder": "vectors, trained", "cross-encoder": "cross-encoder, trained"}
TITLES = {**FIXED, **TRAINED}
PROTOCOLS = {
    "folds": "{count}-fold cross-validation over pairs",
    "sentences": "{count}-fold cross-validation, no sentence on both sides",
    "topics": "leave one topic out ({count})",
    "topic-folds": "{count}-fold cross-validation over topics",
}
# What is predicted of each test pair, float (n,), and the seconds of training
Predicted = tuple[numpy.ndarray, float]
# Draws the inner folds that choose the settings of SVR
SVR_SEED = 0
# In the order of the paper
MEASURES = ("pearson", "spearman")


def make_splits(
    protocol: str, rows: Sequence[ArgumentRow], folds: int, only: Sequence[str] = ()
) -> list[Split]:
    """The splits of one of PROTOCOLS: all, or only those of some names. folds (int): of pairs,
    sentences or topics.
    """
    members = [row.members for row in rows]
    topics = [row.topic for row in rows]
    make: dict[str, Callable[[], list[Split]]] = {
        "folds": lambda: split_folds(members, folds),
        "sentences": lambda: split_sentences(members, folds),
        "topics": lambda: split_topics(members, topics),
        "topic-folds": lambda: split_topic_folds(members, topics, folds),
    }
    try:
        splits = make[protocol]()
    except ValueError as error:
        raise SystemExit(str(error)) from error
    if not only:
        return splits
    by_name = {split.name: split for split in splits}
    unknown = set(only) - by_name.keys()
    if unknown:
        raise SystemExit(f"--only {', '.join(unknown)}: expected some of {', '.join(by_name)}")
    return [split for split in splits if split.name in only]


def fixed_source(args: argparse.Namespace, row: str) -> VectorSource:
    """What gives vectors without learning from scores; tf-idf has its document frequencies of all
    texts.
    """
    if row == "untrained":
        return PipelineSource(untrained(args.config, args))
    if row == "static":
        return make_baseline(row, nlp=spacy.load(args.static))
    return make_baseline(row)


def vectors(
    source: VectorSource, rows: Sequence[ArgumentRow]
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Those of both sides of pairs, float32 (n, width) each; each distinct text is encoded once."""
    first, second = zip(*(row.members for row in rows), strict=True)
    encode = VectorStore(source, None, lambda items, name: items)
    u, v = numpy.split(encode([*first, *second]), 2)
    return u, v


def vector_similarities(source: VectorSource, rows: Sequence[ArgumentRow]) -> numpy.ndarray:
    """The cosine of each pair."""
    return cosine(*vectors(source, rows))


def similarities(nlp: Language, rows: Sequence[ArgumentRow]) -> numpy.ndarray:
    """Those of vectors, or the scores of a cross-encoder."""
    if nlp.has_pipe(RERANKER):
        return nlp.get_pipe(RERANKER).score_pairs(row.members for row in rows)  # type: ignore[attr-defined]
    return vector_similarities(PipelineSource(nlp), rows)


def correlate(predicted: numpy.ndarray, rows: Sequence[ArgumentRow]) -> Scores:
    """Both correlations with the scores of pairs."""
    return {
        name: measure(predicted, [row.score for row in rows])
        for name, measure in CORRELATIONS.items()
    }


def score_fixed(
    args: argparse.Namespace, row: str, rows: Sequence[ArgumentRow], splits: Sequence[Split]
) -> Scores:
    """The scores of vectors that are not trained, of each split."""
    if row == SVR:
        predicted = regressed(fixed_source(args, "untrained"), rows, splits)
    else:
        predicted = vector_similarities(fixed_source(args, row), rows)
    return {
        split.name: correlate(predicted[list(split.test)], [rows[i] for i in split.test])
        for split in splits
    }


def regressed(
    source: VectorSource, rows: Sequence[ArgumentRow], splits: Sequence[Split]
) -> numpy.ndarray:
    """What support vector regression on |u-v| and u*v says of each pair that is held out, float
    (n,).
    """
    features = concatenated(*vectors(source, rows), parts=SYMMETRIC)
    scores = numpy.array([row.score for row in rows])
    predicted = numpy.full(len(rows), numpy.nan)
    for split in splits:
        train = list(split.train)
        test = list(split.test)
        predict = fit_support_vectors((features[train], scores[train]), SVR_SEED)
        predicted[test] = predict(features[test])
    return predicted


def fit_and_score(
    args: argparse.Namespace, row: str, rows: Sequence[ArgumentRow], split: Split, seed: int
) -> Scores:
    """Learn from a split, and score its test pairs."""
    train = list(split.train)
    test = [rows[i] for i in split.test]
    # So that a limit leaves pairs of all topics
    random.Random(seed).shuffle(train)
    limited = [rows[i] for i in train[: args.limit or len(train)]]
    predicted, seconds = LEARNERS[row](args, row, limited, test, seed)
    return {**correlate(predicted, test), "seconds": seconds}


def fit_pipeline(
    args: argparse.Namespace,
    row: str,
    train: Sequence[ArgumentRow],
    test: Sequence[ArgumentRow],
    seed: int,
) -> Predicted:
    """Train a pipeline, and predict with it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.jsonl"
        model = Path(folder) / "model"
        lines = [json.dumps(as_record(pair)) + "\n" for pair in train]
        path.write_text("".join(lines), encoding="utf8")
        given = {"system.seed": seed, "paths.train": str(path), "paths.dev": str(path)}
        overrides: Overrides = {**given, **length(args.epochs, args.steps), **columns_of_records()}
        config = args.config
        if row == "cross-encoder":
            config = args.cross_config
            overrides |= cross_overrides(args)
        seconds = trained(model, {}, config, args, overrides)
        return similarities(load(model), test), seconds


# What learns from pairs: from the options, its row, training pairs, test pairs and a seed to what
# it predicts of these.
LEARNERS: dict[str, Callable[..., Predicted]] = {
    "bi-encoder": fit_pipeline,
    "cross-encoder": fit_pipeline,
}


def as_record(row: ArgumentRow) -> dict[str, object]:
    first, second = row.members
    return {"first": first, "second": second, "score": row.score}


def columns_of_records() -> Overrides:
    """How a reader reads the records."""
    columns = {"format": "table", "members": ["first", "second"], "score": "score"}
    return {
        f"corpora.{part}.{key}": value
        for part in ("train", "dev")
        for key, value in columns.items()
    }


def vectors_of(args: argparse.Namespace, row: str) -> Settings:
    """What the scores of a row depend on that is not trained, beside the pairs."""
    if row in ("untrained", SVR):
        return {"encoder": args.encoder, "precision": args.precision, "config": digest(args.config)}
    if row == "static":
        return {"static": args.static}
    return {}


def weights_of(args: argparse.Namespace, row: str) -> Settings:
    """What the weights of a training depend on, beside the pairs."""
    settings = settings_of(args, "epochs", "steps")
    if row == "bi-encoder":
        return {**settings, "config": digest(args.config)}
    return {
        **settings,
        "config": digest(args.cross_config),
        "cross_objective": args.cross_objective,
    }


def table(scores: dict[tuple[str, ...], Scores]) -> str:
    """Markdown, a line for each protocol and row: mean and standard deviation over splits, of the
    means over seeds.
    """
    found: dict[tuple[str, str], dict[str, list[Scores]]] = {}
    for (protocol, row, *rest), one in scores.items():
        splits = found.setdefault((protocol, row), {})
        # A run of vectors that are not trained has the scores of all splits
        of_splits = one if row in FIXED else {rest[0]: one}
        for split, of_split in of_splits.items():
            splits.setdefault(split, []).append(of_split)
    lines = []
    for protocol, row in product(PROTOCOLS, TITLES):
        if (protocol, row) in found:
            lines.append(line(protocol, row, list(found[protocol, row].values())))
    header = ["protocol", "what"]
    for name in MEASURES:
        header += [f"{name.title()} x 100", "standard deviation"]
    return markdown([*header, "scored", "seeds"], lines)


def line(protocol: str, row: str, splits: Sequence[Sequence[Scores]]) -> list[object]:
    """A line of the table. splits: the scores of each, by seed."""
    cells: list[object] = []
    for name in MEASURES:
        means = [mean_of([one[name] for one in runs]) for runs in splits]
        cells += mean_and_deviation(means)
    seeds = "-" if row in FIXED else str(min(map(len, splits)))
    title = PROTOCOLS[protocol].format(count=len(splits))
    return [title, TITLES[row], *cells, len(splits), seeds]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Argument similarity: cross-validation and left-out topics."
    )
    add_options(parser, output="metrics/arguments", config="sts.cfg", seeds=[1], epochs=4)
    add_cross_options(parser)
    parser.add_argument(
        "--rows", nargs="+", choices=list(TITLES), help="by default all; static with --static alone"
    )
    parser.add_argument(
        "--data", type=Path, default=ASSETS / "arguments.tsv", help="a file, or AFS's folder"
    )
    parser.add_argument("--layout", choices=list(ARGUMENTS), default="ukp")
    parser.add_argument("--static", help="a pipeline with static vectors, such as en_core_web_md")
    parser.add_argument(
        "--protocols", nargs="+", choices=list(PROTOCOLS), default=["folds", "topics"]
    )
    parser.add_argument("--folds", type=int, default=N_FOLDS, help="of pairs and of sentences")
    parser.add_argument("--topic-folds", type=int, default=TOPIC_FOLDS)
    parser.add_argument(
        "--only", nargs="+", default=[], help='some of the splits, such as "fold 1" or a topic'
    )
    args = parser.parse_args()
    rows = [row for row in TITLES if row != "static" or args.static]
    if RERANKER in load_config(args.config)["components"]:
        args.cross_config = args.config
        rows = ["cross-encoder"]
    args.rows = args.rows or rows
    if "static" in args.rows and not args.static:
        raise SystemExit("--rows static: name a pipeline with static vectors, --static PIPELINE")
    return args


def main() -> None:
    args = parse()
    use_device(args)
    rows = read_arguments(args.data, args.layout)
    data = {"layout": args.layout, "data": digest(*argument_files(args.data, args.layout))}
    settings: dict[str, Settings] = {}
    splits: dict[str, list[Split]] = {}
    for protocol in args.protocols:
        folds = args.topic_folds if protocol == "topic-folds" else args.folds
        settings[protocol] = {**data, "folds": folds, "protocol": protocol}
        splits[protocol] = make_splits(protocol, rows, folds, args.only)
    runs = Runs(args.output, vars(args), table)
    fixed = [row for row in args.rows if row in FIXED]
    learned = [row for row in args.rows if row in TRAINED]
    for protocol, row in product(splits, fixed):
        depends = {**vectors_of(args, row), **settings[protocol], "only": args.only}
        make = partial(score_fixed, args, row, rows, splits[protocol])
        runs(protocol, row, settings=depends, make=make)
    # Seed by seed: a table that is stopped has each row
    for seed, protocol in product(args.seeds, splits):
        for split, row in product(splits[protocol], learned):
            depends = {**weights_of(args, row), **settings[protocol], "split": split.name}
            make = partial(fit_and_score, args, row, rows, split, seed)
            runs(protocol, row, split.name, str(seed), settings=depends, make=make)
    print(table(runs.found))


if __name__ == "__main__":
    main()
