"""Compare a poly-encoder with a bi-encoder and a cross-encoder on duplicate questions of Quora.

All begin with all-MiniLM-L6-v2, learn from the same questions for one epoch, and score the same
sample of labelled pairs. Nothing is selected by it: the last weights are scored. Runs that are
saved are not made again. What they learn from is one of these:

ranking: pairs of duplicates, in batches of 32. The bi-encoder and the poly-encoder rank within the
    batch. The cross-encoder learns to tell each pair from a pair with a negative, which is mined
    for every other question (by the cosine of the encoder before training) and random for the
    others.
labels: other labelled pairs, in batches of 16. The cosine and the score of the poly-encoder learn
    the labels, 0 and 1, by the squared error, and the cross-encoder by binary cross-entropy.

    python benchmarks/papers/poly_encoder/compare.py
    python benchmarks/papers/poly_encoder/compare.py --learn labels --pairs 2000
        --output metrics/poly-labels
    python benchmarks/papers/poly_encoder/compare.py --seeds 1 --rows bi-encoder poly-encoder
        --output metrics/poly-again
"""

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy
import spacy
from spacy.language import Language
from thinc.api import fix_random_seed

from spacy_sbert import find_reranker, find_sbert
from spacy_sbert.search.hard_negatives import mine_hard_negatives
from spacy_sbert.similarity import cosine

HERE = Path(__file__).parent
sys.path += [str(HERE.parent), str(HERE.parent.parent)]
import poly_encoder  # noqa: E402
from quora import duplicate_pairs, labelled_pairs  # noqa: E402
from runs import CONFIGS, Overrides, Runs, Scores, load, markdown, trained  # noqa: E402

PRECISION = "bfloat16"
RANKING = "ranking"
LABELS = "labels"
BATCH_SIZES = {RANKING: 32, LABELS: 16}
QUESTIONS = ["question1", "question2"]
# Of the sample of labelled pairs
SAMPLE_SEED = 0
CROSS = "cross-encoder"
POLY = "poly-encoder"
BI = "bi-encoder"
NOT_TRAINED = ", not trained"
UNTRAINED = BI + NOT_TRAINED
ROWS = (BI, POLY, CROSS)
ENCODER = {"@architectures": "spacy-sbert.SentenceEncoder.v1", "precision": PRECISION}
# The second texts of the pairs that are scored, in turn
N_CANDIDATES = 10_000
N_QUERIES = 20
RESAMPLES = 1000
HEADER = (
    "",
    "average precision x 100",
    "standard deviation",
    "less the bi-encoder",
    "95 % interval",
    "encoding a query, ms",
    "scoring 10,000 candidates, ms",
    "seeds",
)


class Quora:
    """The pairs to train on, and the labelled pairs that are scored.

    n_pairs (int): the first pairs of two different questions. n_scored (int): how many of the
    labelled pairs are drawn.
    """

    def __init__(self, folder: Path, n_pairs: int, n_scored: int):
        self.folder = folder
        self.n_pairs = n_pairs
        self.n_scored = n_scored

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Return the pairs to train on, without repeats."""
        return duplicate_pairs(self.folder, self.n_pairs)

    @cached_property
    def labelled(self) -> list[list[str]]:
        """Return label, first and second question of all labelled pairs."""
        return labelled_pairs(self.folder)

    @cached_property
    def scored(self) -> list[list[str]]:
        """Return the labelled pairs that are scored."""
        return random.Random(SAMPLE_SEED).sample(self.labelled, self.n_scored)

    @property
    def to_learn(self) -> list[tuple[str, str, int]]:
        """Return first and second question and label of labelled pairs that are not scored."""
        scored = {tuple(pair) for pair in self.scored}
        others = [pair for pair in self.labelled if tuple(pair) not in scored]
        drawn = random.Random(SAMPLE_SEED).sample(others, self.n_pairs)
        return [(first, second, int(label)) for label, first, second in drawn]

    @property
    def gold(self) -> numpy.ndarray:
        """Return the labels of the pairs that are scored, int (n,)."""
        return numpy.array([int(label) for label, _, _ in self.scored])

    def with_negatives(self) -> list[tuple[str, str, int]]:
        """Return each pair with the score 1, and a pair of its first question with the score 0.

        Every other negative is mined, if there is one in the margin; the others are random.
        """
        nlp = spacy.blank("en")
        nlp.add_pipe("sbert")
        mined = mine_hard_negatives(
            find_sbert(nlp), self.pairs, num_negatives=1, relative_margin=0.05
        )
        hard = {pair.anchor: pair.negatives for pair in mined}
        positives: dict[str, set[str]] = {}
        for first, second in self.pairs:
            positives.setdefault(first, {first}).add(second)
        draw = random.Random(SAMPLE_SEED)
        rows = []
        for number, (first, second) in enumerate(self.pairs):
            negatives = hard[first]
            if number % 2 or not negatives:
                others = (draw.choice(self.pairs)[1] for _ in self.pairs)
                negatives = (next(text for text in others if text not in positives[first]),)
            rows += [(first, second, 1), (first, negatives[0], 0)]
        return rows


# Training


def train_poly(n_codes: int, folder: Path, data: Quora, learn: str, seed: int) -> Language:
    """Return a pipeline with a poly-encoder, trained by spaCy with poly_encoder.py as its code."""
    overrides: Overrides = {
        "poly.n_codes": n_codes,
        "components.sbert.model.encoder.precision": PRECISION,
    }
    if learn == LABELS:
        overrides |= scored_pairs(folder, lambda: data.to_learn)
        overrides["components.sbert.loss.@layers"] = "poly_regression.v1"
    else:
        overrides |= duplicates(folder, data)
    return train(folder, HERE / "poly_encoder.cfg", overrides, learn, seed)


def train_bi(folder: Path, data: Quora, learn: str, seed: int) -> Language:
    """Return a pipeline with a bi-encoder."""
    if learn == LABELS:
        config = CONFIGS / "sts.cfg"
        overrides = scored_pairs(folder, lambda: data.to_learn)
    else:
        config = CONFIGS / "ranking.cfg"
        overrides = duplicates(folder, data)
    overrides["components.transformer.model.precision"] = PRECISION
    return train(folder, config, overrides, learn, seed)


def train_cross(folder: Path, data: Quora, learn: str, seed: int) -> Language:
    """Return a pipeline with a cross-encoder, trained on pairs with scores 0 and 1."""
    if learn == LABELS:
        overrides = scored_pairs(folder, lambda: data.to_learn)
    else:
        overrides = scored_pairs(folder, data.with_negatives)
    overrides["components.sbert_reranker.model.precision"] = PRECISION
    return train(folder, CONFIGS / "reranker.cfg", overrides, learn, seed)


def duplicates(folder: Path, data: Quora) -> Overrides:
    """Return overrides that name the pairs of duplicates, which are written beside a folder."""
    path = folder.parent / "pairs.tsv"
    write_table(path, QUESTIONS, lambda: data.pairs)
    return {"corpora.train.path": str(path)}


def scored_pairs(folder: Path, read: Callable[[], list[tuple[str, str, int]]]) -> Overrides:
    """Return overrides that name pairs with scores, which are written beside a folder."""
    path = folder.parent / "scored-pairs.tsv"
    write_table(path, [*QUESTIONS, "score"], read)
    return {
        "corpora.train.path": str(path),
        "corpora.train.format": "table",
        "corpora.train.members": QUESTIONS,
        "corpora.train.score": "score",
    }


def train(folder: Path, config: Path, overrides: Overrides, learn: str, seed: int) -> Language:
    """Train for one epoch by spaCy, and return the pipeline with the last weights."""
    given = argparse.Namespace(encoder=None, precision=None, limit=0, learn_rate=None, gpu_id=-1)
    settings = {
        "system.seed": seed,
        "training.max_epochs": 1,
        "training.batcher.size": BATCH_SIZES[learn],
    }
    trained(folder, {"seed": seed}, config, given, {**settings, **overrides})
    return load(folder)


def write_table(
    path: Path, header: Sequence[str], read: Callable[[], Iterable[Sequence[object]]]
) -> None:
    """Write a table of texts, unless it is there."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [header, *read()]
    # A cell that begins with a double quote would be read as a quoted one
    lines = ["\t".join(str(cell).replace('"', "'") for cell in row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf8")


# Scoring


class Vectors:
    """Pairs scored by vectors of their texts.

    n_codes (int): of a poly-encoder; 0 of a bi-encoder.
    """

    def __init__(self, nlp: Language, n_codes: int = 0):
        self.encode = find_sbert(nlp).encode
        self.n_codes = n_codes

    def score_pairs(self, first: list[str], second: list[str]) -> numpy.ndarray:
        """Return the score of each pair, float (n,)."""
        vectors = self.encode(first), self.encode(second)
        if self.n_codes:
            return poly_encoder.score_rows(*vectors, self.n_codes)
        return cosine(*vectors)

    def seconds(self, queries: list[str], texts: list[str]) -> dict[str, float]:
        """Return the time to encode a query, and to score the candidates, of known vectors."""
        vectors = self.candidates(texts)
        candidates = numpy.resize(vectors, (N_CANDIDATES, vectors.shape[1]))
        encoding = []
        scoring = []
        for query in queries:
            start = time.process_time()
            vector = self.encode([query])
            encoded = time.process_time()
            self.score(vector, candidates)
            scoring.append(time.process_time() - encoded)
            encoding.append(encoded - start)
        return {"encoding": statistics.median(encoding), "scoring": statistics.median(scoring)}

    def candidates(self, texts: list[str]) -> numpy.ndarray:
        vectors = self.encode(texts)
        if self.n_codes:
            return poly_encoder.candidate_vectors(vectors, self.n_codes)
        return vectors

    def score(self, query: numpy.ndarray, candidates: numpy.ndarray) -> numpy.ndarray:
        """Return the scores of a query with all candidates, float (1, k)."""
        if self.n_codes:
            contexts = poly_encoder.context_vectors(query, self.n_codes)
            return poly_encoder.poly_scores(contexts, candidates)[0]
        return query @ candidates.T


class Pairs:
    """Pairs scored by a cross-encoder, which reads both texts at once."""

    def __init__(self, nlp: Language):
        self.reranker = find_reranker(nlp)

    def score_pairs(self, first: list[str], second: list[str]) -> numpy.ndarray:
        """Return the score of each pair, float (n,)."""
        return self.reranker.score_pairs(zip(first, second, strict=True))

    def seconds(self, queries: list[str], texts: list[str]) -> dict[str, float]:
        """Return the time to score all candidates of one query."""
        pairs = [(queries[0], text) for text in islice(cycle(texts), N_CANDIDATES)]
        start = time.process_time()
        self.reranker.score_pairs(pairs)
        return {"scoring": time.process_time() - start}


def measure(scorer: Vectors | Pairs, data: Quora, timed: bool) -> Scores:
    """Return the average precision, the score of each pair, and the times."""
    _, first, second = map(list, zip(*data.scored, strict=True))
    scores = scorer.score_pairs(first, second)
    # As they are saved
    written = [f"{score:.6g}" for score in scores.tolist()]
    found: Scores = {"pairs": " ".join(written)}
    found["average_precision"] = average_precision(read_pairs(found), data.gold)
    if timed:
        found["seconds"] = scorer.seconds(first[:N_QUERIES], second)
    return found


def read_pairs(scores: Scores) -> numpy.ndarray:
    """Return the saved scores of the pairs, float (n,)."""
    return numpy.array([float(score) for score in scores["pairs"].split()])


def average_precision(scores: numpy.ndarray, gold: numpy.ndarray) -> float:
    return float(resampled_precisions(scores, gold, numpy.ones((1, len(gold))))[0])


def resampled_precisions(
    scores: numpy.ndarray, gold: numpy.ndarray, counts: numpy.ndarray
) -> numpy.ndarray:
    """Return the average precision of each sample of the pairs, float (samples,).

    counts (samples, n): how often each pair is in a sample.
    """
    order = numpy.argsort(-scores, kind="stable")
    drawn = counts[:, order]
    right = drawn * gold[order]
    precisions = right.cumsum(axis=1) / numpy.maximum(drawn.cumsum(axis=1), 1)
    return (right * precisions).sum(axis=1) / right.sum(axis=1)


# Table


def table(gold: numpy.ndarray, found: dict[tuple[str, ...], Scores]) -> str:
    """Return the table as Markdown."""
    by_row: dict[str, list[Scores]] = {}
    for (row, _), scores in found.items():
        by_row.setdefault(row, []).append(scores)
    draw = numpy.random.default_rng(0)
    counts = draw.multinomial(len(gold), numpy.full(len(gold), 1 / len(gold)), size=RESAMPLES)
    samples = {
        row: numpy.mean(
            [resampled_precisions(read_pairs(each), gold, counts) for each in runs], axis=0
        )
        for row, runs in by_row.items()
    }
    means = {
        row: statistics.mean(each["average_precision"] for each in runs)
        for row, runs in by_row.items()
    }
    rows = []
    for row, runs in by_row.items():
        deviation = "-"
        if len(runs) > 1:
            deviation = f"{100 * statistics.stdev(each['average_precision'] for each in runs):.2f}"
        difference = ["-", "-"]
        if row != BI and BI in by_row:
            low, high = 100 * numpy.quantile(samples[row] - samples[BI], [0.025, 0.975])
            difference = [f"{100 * (means[row] - means[BI]):+.2f}", f"{low:+.2f} to {high:+.2f}"]
        seconds: dict[str, float] = next(
            (each["seconds"] for each in runs if "seconds" in each), {}
        )
        times = [milliseconds(seconds.get(name)) for name in ("encoding", "scoring")]
        rows.append([row, f"{100 * means[row]:.2f}", deviation, *difference, *times, len(runs)])
    return markdown(HEADER, rows)


def milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{1000 * seconds:.1f}"


# Command


def make(row: str, n_codes: int, seed: int, *, data: Quora, learn: str, folder: Path) -> Scores:
    """Train a row with a seed, and return what is measured."""
    fix_random_seed(seed)
    scorer: Vectors | Pairs
    if row == UNTRAINED:
        scorer = Vectors(untrained({}))
    elif row.endswith(NOT_TRAINED):
        model = {"@architectures": "poly_encoder.v1", "n_codes": n_codes}
        scorer = Vectors(untrained({**model, "encoder": ENCODER}), n_codes)
    elif row == CROSS:
        scorer = Pairs(train_cross(folder, data, learn, seed))
    elif row == BI:
        scorer = Vectors(train_bi(folder, data, learn, seed))
    else:
        scorer = Vectors(train_poly(n_codes, folder, data, learn, seed), n_codes)
    return measure(scorer, data, timed=seed <= 1 and learn == RANKING)


def untrained(model: dict[str, Any]) -> Language:
    """Return a pipeline whose encoder is not trained."""
    nlp = spacy.blank("en")
    config = {"model": model or {"precision": PRECISION}, "token_vectors": False}
    nlp.add_pipe("sbert", config=config)
    nlp.initialize()
    return nlp


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = os.environ.get("SPACY_SBERT_DATA", ".")
    parser.add_argument("--data", type=Path, default=Path(source) / "quora")
    parser.add_argument("--output", type=Path, default=Path("metrics/poly-encoder"))
    parser.add_argument("--learn", choices=list(BATCH_SIZES), default=RANKING)
    parser.add_argument("--pairs", type=int, default=1600, help="to train on")
    parser.add_argument("--scored", type=int, default=3000, help="labelled pairs")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument(
        "--cross-seeds", nargs="+", type=int, help="of --seeds, those of the cross-encoder"
    )
    parser.add_argument("--codes", nargs="+", type=int, default=[16], help="m")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS)
    return parser.parse_args()


def main() -> None:
    args = parse()
    data = Quora(args.data, args.pairs, args.scored)
    settings: dict[str, Any] = {"pairs": args.pairs, "scored": args.scored}
    if args.learn == LABELS:
        settings["learn"] = LABELS
    runs = Runs(args.output, {**settings, "precision": PRECISION}, partial(table, data.gold))

    def run(row: str, seed: int, n_codes: int = 0) -> None:
        folder = args.output / "models" / f"{row.split(',')[0]}-{n_codes}-{seed}"
        measured = partial(make, row, n_codes, seed, data=data, learn=args.learn, folder=folder)
        runs(row, str(seed), settings=settings, make=measured)

    if BI in args.rows:
        run(UNTRAINED, 0)
    # Seed by seed: a table that is stopped has each row
    for seed in args.seeds:
        if BI in args.rows:
            run(BI, seed)
        if POLY in args.rows:
            for n_codes in args.codes:
                name = f"{POLY}, m = {n_codes}"
                run(name + NOT_TRAINED, seed, n_codes)
                run(name, seed, n_codes)
        if CROSS in args.rows and seed in (args.cross_seeds or args.seeds):
            run(CROSS, seed)
    print(table(data.gold, runs.found))


if __name__ == "__main__":
    main()
