"""How pairs of arguments are held out: by folds of pairs, of sentences, of topics; what is scored is not trained on."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import Errors

FOLDS = 10
TOPIC_FOLDS = 4
FOLD_SEED = 0  # the folds are the same for all seeds of a training
Members = Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Split:
    """What to train on and what to score on: indices of pairs; name: of the fold or topic that is left out."""

    name: str
    train: tuple[int, ...]
    test: tuple[int, ...]


def split_folds(members: Members, folds: int = FOLDS) -> list[Split]:
    """Shuffle the pairs, leave out each fold in turn. A pair that occurs twice, in either order of its arguments, may
    be in two folds: what is scored is then left out of training. A single sentence may be on both sides.

    members (n tuples of two strings): the pairs. folds (int): how many.
    RAISES (ValueError): if there are fewer than two folds, or more than pairs.
    SOURCE: Misra et al. 2016, section 4; Reimers and Gurevych 2019, section 4.3 (ten folds).
    """
    _check_folds(folds, len(members), "pairs")
    order = list(range(len(members)))
    random.Random(FOLD_SEED).shuffle(order)
    pairs = [frozenset(pair) for pair in members]
    splits = []
    for fold in range(folds):
        test = order[fold::folds]
        scored = {pairs[i] for i in test}
        train = (i for i, pair in enumerate(pairs) if pair not in scored)
        splits.append(Split(f"fold {fold + 1}", tuple(train), tuple(sorted(test))))
    return splits


def split_sentences(members: Members, folds: int = FOLDS) -> list[Split]:
    """Leave out each fold in turn, which holds all pairs that share a sentence, directly or through others: the largest
    of these groups first, each to the fold that has the fewest pairs yet. No sentence is on both sides.

    members (n tuples of two strings): the pairs. folds (int): how many.
    RAISES (ValueError): if there are fewer than two folds, or more than groups.
    """
    groups = connected(members)
    _check_folds(folds, len(groups), "groups of pairs that share sentences")
    random.Random(FOLD_SEED).shuffle(groups)
    tests: list[list[int]] = [[] for _ in range(folds)]
    for group in sorted(groups, key=len, reverse=True):
        min(tests, key=len).extend(group)
    return [_leave_out(f"fold {fold + 1}", members, test) for fold, test in enumerate(tests)]


def split_topics(members: Members, topics: Sequence[str]) -> list[Split]:
    """Leave out each topic in turn, and of the others the pairs with a sentence that is scored.

    members (n tuples of two strings), topics (n strings): the pairs, and what each is about.
    RAISES (ValueError): if there is one topic alone.
    SOURCE: Reimers and Gurevych 2019, section 4.3 (cross-topic).
    """
    each = dict.fromkeys(topics)
    if len(each) < 2:
        raise ValueError(Errors.ONE_TOPIC.format(given=", ".join(each)))
    return [_leave_out(topic, members, [i for i, other in enumerate(topics) if other == topic]) for topic in each]


def split_topic_folds(members: Members, topics: Sequence[str], folds: int = TOPIC_FOLDS) -> list[Split]:
    """Shuffle the topics, leave out each fold of them in turn, and of the others the pairs with a sentence that is
    scored.

    members (n tuples of two strings), topics (n strings): the pairs, and what each is about. folds (int): how many.
    RAISES (ValueError): if there are fewer than two folds, or more than topics.
    SOURCE: Reimers et al. 2019, Classification and Clustering of Arguments with Contextualized Word Embeddings,
        section 5 (four folds of seven topics).
    """
    order = list(dict.fromkeys(topics))
    _check_folds(folds, len(order), "topics")
    random.Random(FOLD_SEED).shuffle(order)
    fold_of = {topic: place % folds for place, topic in enumerate(order)}
    tests = ([i for i, topic in enumerate(topics) if fold_of[topic] == fold] for fold in range(folds))
    return [_leave_out(f"fold {fold + 1}", members, test) for fold, test in enumerate(tests)]


def connected(members: Members) -> list[list[int]]:
    """The indices of pairs that share a sentence, directly or through others; each pair is in one group."""
    group_of: dict[str, list[int]] = {}
    for i, pair in enumerate(members):
        met = {id(group_of[text]): group_of[text] for text in pair if text in group_of}
        merged = [i, *(j for group in met.values() for j in group)]
        group_of.update((text, merged) for j in merged for text in members[j])
    return [sorted(group) for group in {id(group): group for group in group_of.values()}.values()]


def _leave_out(name: str, members: Members, test: Sequence[int]) -> Split:
    """Train on all other pairs without a sentence that is scored."""
    scored = {text for i in test for text in members[i]}
    train = (i for i, pair in enumerate(members) if scored.isdisjoint(pair))
    return Split(name, tuple(train), tuple(sorted(test)))


def _check_folds(folds: int, most: int, what: str) -> None:
    if not 2 <= folds <= most:
        raise ValueError(Errors.BAD_FOLDS.format(given=folds, most=most, what=what))
