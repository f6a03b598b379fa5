"""Two ways to hold out pairs of arguments, folds and topics: no pair that is scored is trained on."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import Errors

FOLDS = 10
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
    if not 2 <= folds <= len(members):
        raise ValueError(Errors.BAD_FOLDS.format(given=folds, pairs=len(members)))
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


def split_topics(members: Members, topics: Sequence[str]) -> list[Split]:
    """Leave out each topic in turn, and of the others the pairs with a sentence that is scored.

    members (n tuples of two strings), topics (n strings): the pairs, and what each is about.
    RAISES (ValueError): if there is one topic alone.
    SOURCE: Reimers and Gurevych 2019, section 4.3 (cross-topic).
    """
    each = dict.fromkeys(topics)
    if len(each) < 2:
        raise ValueError(Errors.ONE_TOPIC.format(given=", ".join(each)))
    splits = []
    for topic in each:
        test = [i for i, other in enumerate(topics) if other == topic]
        scored = {text for i in test for text in members[i]}
        train = (i for i, pair in enumerate(members) if scored.isdisjoint(pair))
        splits.append(Split(topic, tuple(train), tuple(test)))
    return splits
