"""Similarity of arguments: AFS and the UKP aspect corpus, without training on them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import Errors
from ...readers.arguments import AFS_MAX_SCORE, AFS_TOPICS, ASPECT_FILE, afs_files, afs_rows, aspect_rows
from ..results import Measured
from ..scoring import DEPENDS_ON, TRAINED, GradedPairs, GradedSet, GradedTask, graded_pairs, score_graded
from ..task import PREFIXES, DataFile, MissingData, Run, Task, filled

AFS_FOLDERS = ("AFS", "afs", "AFS_corpus", "")
AFS_SOURCE = "https://nlds.soe.ucsc.edu, the lab of Misra et al. 2016"
ASPECT_PAIRS = 3595
ASPECT_SOURCE = "https://github.com/UKPLab/acl2019-BERT-argument-classification-and-clustering"
ASPECT_NOTE = (
    "Labels as scores: DTORCD 0, NS 0, SS 1/2, HS 1. Reimers et al. 2019 oppose the first two to the last two; "
    "Spearman's correlation depends on the order of the scores alone, Pearson's also on where SS stands."
)
AFS_NOTE = "The number of pairs is not checked: no official one is known for each topic."


@dataclass(frozen=True)
class FacetTask:
    """AFS: pairs of arguments of three debates, graded from 0 (different topic) to 5 (completely equivalent)."""

    name: str = "AFS"
    suite: str = "arguments"
    depends_on: tuple[str, ...] = DEPENDS_ON

    def find(self, root: Path) -> list[Path]:
        folders = [root / prefix / name for name in AFS_FOLDERS for prefix in PREFIXES]
        files: list[Path] = next(filter(None, map(afs_files, folders)), [])
        found = [topic for topic in AFS_TOPICS if any(f"_{topic}" in file.stem for file in files)]
        if len(found) < len(AFS_TOPICS):
            missing = " and ".join(f"ArgPairs_{topic}*.csv" for topic in AFS_TOPICS if topic not in found)
            raise MissingData(Errors.MISSING_DATA.format(names=missing, root=root, source=AFS_SOURCE))
        return files

    def run(self, run: Run) -> Measured:
        pairs, notes = self.pairs(run)
        return score_graded(pairs, run, notes)

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        """The pairs, their topics as sub-sets, and notes on them."""
        rows = [row for file in self.find(run.root) for row in filled(afs_rows(file), file)]
        return graded_pairs(rows, 0.0, AFS_MAX_SCORE), [AFS_NOTE, *run.settings.touched(TRAINED, "afs")]


ASPECT_PLACE = DataFile((ASPECT_FILE, f"UKP_ASPECT/{ASPECT_FILE}", f"ukp_aspect/{ASPECT_FILE}"), ASPECT_SOURCE)
ASPECT = GradedSet({"all": ASPECT_PLACE}, {"all": ASPECT_PAIRS}, aspect_rows, 0.0, 1.0, ("ukp",), (ASPECT_NOTE,))
AFS, UKP = FacetTask(), GradedTask("UKP-ASPECT", "arguments", ASPECT, "all")
TASKS: tuple[Task, ...] = (AFS, UKP)


N_FOLDS = 10
TOPIC_FOLDS = 4
FOLD_SEED = 0  # the folds are the same for all seeds of a training
Members = Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Split:
    """What to train on and what to score on: indices of pairs; name: of the fold or topic that is left out."""

    name: str
    train: tuple[int, ...]
    test: tuple[int, ...]


def split_folds(members: Members, folds: int = N_FOLDS) -> list[Split]:
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


def split_sentences(members: Members, folds: int = N_FOLDS) -> list[Split]:
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
        raise ValueError(f"All pairs are about {', '.join(each)}: expected two topics or more, to leave one out.")
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
        raise ValueError(f"Cannot make {folds} folds of {most} {what}: expected 2 to {most}.")
