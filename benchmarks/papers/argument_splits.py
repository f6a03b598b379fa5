"""Further ways to hold out pairs of arguments: no sentence on both sides, and folds of topics."""

import random
from collections.abc import Sequence

from protocols.arguments import FOLD_SEED, N_FOLDS, Split, leave_out

TOPIC_FOLDS = 4


def split_sentences(members: Sequence[tuple[str, ...]], folds: int = N_FOLDS) -> list[Split]:
    """Leave out each fold in turn; all pairs that share a sentence, directly or through others, are
    in one fold.

    The largest of these groups comes first, each into the fold that has the fewest pairs yet.

    members (n tuples of two strings): the pairs. folds (int): how many.
    RAISES (ValueError): if there are fewer than two folds, or more than groups.
    """
    groups = connected(members)
    _check_folds(folds, len(groups), "groups of pairs that share sentences")
    random.Random(FOLD_SEED).shuffle(groups)
    tests: list[list[int]] = [[] for _ in range(folds)]
    for group in sorted(groups, key=len, reverse=True):
        min(tests, key=len).extend(group)
    return [leave_out(f"fold {fold + 1}", members, test) for fold, test in enumerate(tests)]


def split_topic_folds(
    members: Sequence[tuple[str, ...]], topics: Sequence[str], folds: int = TOPIC_FOLDS
) -> list[Split]:
    """Shuffle the topics, and leave out each fold of them in turn.

    Of the other topics, pairs with a sentence that is scored are left out too.

    members (n tuples of two strings), topics (n strings): the pairs, and what each is about. folds
        (int): how many.
    RAISES (ValueError): if there are fewer than two folds, or more than topics.
    SOURCE: Reimers et al. 2019, Classification and Clustering of Arguments with Contextualized Word
        Embeddings, section 5 (four folds of seven topics).
    """
    order = list(dict.fromkeys(topics))
    _check_folds(folds, len(order), "topics")
    random.Random(FOLD_SEED).shuffle(order)
    fold_of = {topic: place % folds for place, topic in enumerate(order)}
    tests = (
        [i for i, topic in enumerate(topics) if fold_of[topic] == fold] for fold in range(folds)
    )
    return [leave_out(f"fold {fold + 1}", members, test) for fold, test in enumerate(tests)]


def _check_folds(folds: int, most: int, what: str) -> None:
    if not 2 <= folds <= most:
        raise ValueError(f"Cannot make {folds} folds of {most} {what}: expected 2 to {most}.")


def connected(members: Sequence[tuple[str, ...]]) -> list[list[int]]:
    """Return the indices of pairs that share a sentence, directly or through others; each pair is
    in one group.
    """
    group_of: dict[str, list[int]] = {}
    for i, pair in enumerate(members):
        met = {id(group_of[text]): group_of[text] for text in pair if text in group_of}
        merged = [i, *(j for group in met.values() for j in group)]
        group_of.update((text, merged) for j in merged for text in members[j])
    return [sorted(group) for group in {id(group): group for group in group_of.values()}.values()]
