"""The splits of argument_similarity.py: folds of pairs, folds that keep sentences apart, and topics."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from spacy_sbert.readers.arguments import ArgumentRow

FOLD_SEED = 0  # the folds are the same for all seeds of a training
PROTOCOLS = {
    "folds": "{count}-fold cross-validation over pairs",
    "sentences": "{count}-fold cross-validation, no sentence on both sides",
    "topics": "leave one topic out ({count})",
}


@dataclass(frozen=True)
class Split:
    """What to train on and what to score on: indices of pairs; name: of the fold or topic that is left out."""

    name: str
    train: tuple[int, ...]
    test: tuple[int, ...]


def make_splits(protocol: str, rows: Sequence[ArgumentRow], folds: int) -> list[Split]:
    """Those of one of PROTOCOLS."""
    if protocol == "topics":
        return split_topics(rows)
    return (split_folds if protocol == "folds" else split_sentences)(rows, folds)


def split_folds(rows: Sequence[ArgumentRow], folds: int) -> list[Split]:
    """Shuffle the pairs, leave out each fold in turn. A pair that occurs twice may be in two folds: what is scored is
    then left out of training."""
    check_folds(folds, len(rows), "pairs")
    order = list(range(len(rows)))
    random.Random(FOLD_SEED).shuffle(order)
    pairs = [frozenset(row.members) for row in rows]
    splits = []
    for fold in range(folds):
        test = order[fold::folds]
        scored = {pairs[i] for i in test}
        train = [i for i, pair in enumerate(pairs) if pair not in scored]
        splits.append(Split(f"fold {fold + 1}", tuple(train), tuple(sorted(test))))
    return splits


def split_sentences(rows: Sequence[ArgumentRow], folds: int) -> list[Split]:
    """Leave out each fold in turn, which holds all pairs that share a sentence, directly or through others: the largest
    of these groups first, each to the fold that has the fewest pairs yet."""
    groups = connected(rows)
    check_folds(folds, len(groups), "groups of pairs that share sentences")
    random.Random(FOLD_SEED).shuffle(groups)
    tests: list[list[int]] = [[] for _ in range(folds)]
    for group in sorted(groups, key=len, reverse=True):
        min(tests, key=len).extend(group)
    return [leave_out(f"fold {fold + 1}", rows, test) for fold, test in enumerate(tests)]


def split_topics(rows: Sequence[ArgumentRow]) -> list[Split]:
    """Leave out each topic in turn."""
    topics = dict.fromkeys(row.topic for row in rows)
    if len(topics) < 2:
        raise SystemExit(f"All pairs are about {', '.join(topics)}: expected two topics or more, to leave one out")
    return [leave_out(topic, rows, [i for i, row in enumerate(rows) if row.topic == topic]) for topic in topics]


def leave_out(name: str, rows: Sequence[ArgumentRow], test: Sequence[int]) -> Split:
    """Train on all other pairs without a sentence that is scored."""
    scored = {text for i in test for text in rows[i].members}
    train = [i for i, row in enumerate(rows) if scored.isdisjoint(row.members)]
    return Split(name, tuple(train), tuple(sorted(test)))


def connected(rows: Sequence[ArgumentRow]) -> list[list[int]]:
    """The indices of pairs that share a sentence, directly or through others; each pair is in one group."""
    group_of: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        met = {id(group_of[text]): group_of[text] for text in row.members if text in group_of}
        merged = [i, *(j for group in met.values() for j in group)]
        group_of.update((text, merged) for j in merged for text in rows[j].members)
    return [sorted(group) for group in {id(group): group for group in group_of.values()}.values()]


def check_folds(folds: int, most: int, what: str) -> None:
    if not 2 <= folds <= most:
        raise SystemExit(f"--folds {folds}: expected 2 to {most}, the number of {what}")


def chosen(splits: list[Split], only: Sequence[str]) -> list[Split]:
    """Those of the names asked for, or all."""
    unknown = set(only) - {split.name for split in splits}
    if unknown:
        raise SystemExit(f"--only {', '.join(unknown)}: expected some of {', '.join(split.name for split in splits)}")
    return [split for split in splits if not only or split.name in only]
