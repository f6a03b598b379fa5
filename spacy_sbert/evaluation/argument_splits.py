"""The two ways to hold out pairs of arguments: folds, and topics; no pair that is scored is trained on."""

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
    """Shuffle the pairs, leave out each fold in turn; pairs that occur twice may be in two folds.

    members (n tuples of two strings): the pairs. folds (int): how many.
    RAISES (ValueError): if there are fewer than two folds, or more than pairs.
    SOURCE: Misra et al. 2016, section 4; Reimers and Gurevych 2019, section 4.3 (ten folds).
    """
    if not 2 <= folds <= len(members):
        raise ValueError(Errors.BAD_FOLDS.format(given=folds, pairs=len(members)))
    order = list(range(len(members)))
    random.Random(FOLD_SEED).shuffle(order)
    return [leave_out(f"fold {fold + 1}", members, order[fold::folds]) for fold in range(folds)]


def split_topics(members: Members, topics: Sequence[str]) -> list[Split]:
    """Leave out each topic in turn.

    members (n tuples of two strings), topics (n strings): the pairs, and what each is about.
    RAISES (ValueError): if there is one topic alone.
    SOURCE: Reimers and Gurevych 2019, section 4.3 (cross-topic).
    """
    each = dict.fromkeys(topics)
    if len(each) < 2:
        raise ValueError(Errors.ONE_TOPIC.format(given=", ".join(each)))
    places = {topic: [i for i, other in enumerate(topics) if other == topic] for topic in each}
    return [leave_out(topic, members, at) for topic, at in places.items()]


def leave_out(name: str, members: Members, test: Sequence[int]) -> Split:
    """Train on all other pairs, but for those that are also scored, in either order of their arguments, under whatever
    topic: 39 pairs of the UKP aspect corpus stand under two."""
    scored, held = {frozenset(members[i]) for i in test}, set(test)
    train = [i for i, pair in enumerate(members) if i not in held and frozenset(pair) not in scored]
    return Split(name, tuple(train), tuple(sorted(test)))
