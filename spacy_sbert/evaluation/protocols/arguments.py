"""Similarity of arguments: AFS and the UKP aspect corpus, without training on them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import Errors
from ...readers.datasets import AFS_MAX_SCORE, AFS_TOPICS, ASPECT_FILE, afs_files, afs_rows, aspect_rows
from ..task import PREFIXES, DataFile, MissingData, Run, Task, filled
from .graded import TRAINED, GradedPairs, GradedSet, GradedTask, PairsTask, graded_pairs

_AFS_FOLDERS = ("AFS", "afs", "AFS_corpus", "")
_AFS_SOURCE = "https://nlds.soe.ucsc.edu, the lab of Misra et al. 2016"
_ASPECT_PAIRS = 3595
_ASPECT_SOURCE = "https://github.com/UKPLab/acl2019-BERT-argument-classification-and-clustering"
_ASPECT_NOTE = (
    "Labels as scores: DTORCD 0, NS 0, SS 1/2, HS 1. Reimers et al. 2019 oppose the first two to the last two; "
    "Spearman's correlation depends on the order of the scores alone, Pearson's also on where SS stands."
)
_AFS_NOTE = "The number of pairs is not checked: no official one is known for each topic."


class _FacetTask(PairsTask):
    """AFS: pairs of arguments of three debates, graded from 0 (different topic) to 5 (completely equivalent)."""

    name = "AFS"
    suite = "arguments"

    def find(self, root: Path) -> list[Path]:
        folders = [root / prefix / name for name in _AFS_FOLDERS for prefix in PREFIXES]
        files: list[Path] = next(filter(None, map(afs_files, folders)), [])
        missing = [topic for topic in AFS_TOPICS if not any(f"_{topic}" in file.stem for file in files)]
        if missing:
            names = " and ".join(f"ArgPairs_{topic}*.csv" for topic in missing)
            raise MissingData(Errors.MISSING_DATA.format(names=names, root=root, source=_AFS_SOURCE))
        return files

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        rows = [row for file in self.find(run.root) for row in filled(afs_rows(file), file)]
        return graded_pairs(rows, 0.0, AFS_MAX_SCORE), [_AFS_NOTE, *run.settings.touched(TRAINED, "afs")]


_ASPECT_PLACE = DataFile((ASPECT_FILE, f"UKP_ASPECT/{ASPECT_FILE}", f"ukp_aspect/{ASPECT_FILE}"), _ASPECT_SOURCE)
_ASPECT = GradedSet({"all": _ASPECT_PLACE}, {"all": _ASPECT_PAIRS}, aspect_rows, 0.0, 1.0, ("ukp",), (_ASPECT_NOTE,))
AFS, UKP = _FacetTask(), GradedTask("UKP-ASPECT", "arguments", _ASPECT, "all")
TASKS: tuple[Task, ...] = (AFS, UKP)


N_FOLDS = 10
FOLD_SEED = 0  # the folds are the same for all seeds of a training
_Members = Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Split:
    """Indices of the pairs to train on and to score; name: of the fold or topic that is left out."""

    name: str
    train: tuple[int, ...]
    test: tuple[int, ...]


def split_folds(members: _Members, folds: int = N_FOLDS) -> list[Split]:
    """Shuffle the pairs, and leave out each fold in turn.

    A pair that occurs twice, in either order of its arguments, may be in two folds: what is scored is then left out of
    training. A single sentence may be on both sides.

    members (n tuples of two strings): the pairs. folds (int): how many.
    RAISES (ValueError): if there are fewer than two folds, or more than pairs.
    SOURCE: Misra et al. 2016, section 4; Reimers and Gurevych 2019, section 4.3 (ten folds).
    """
    check_folds(folds, len(members), "pairs")
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


def split_topics(members: _Members, topics: Sequence[str]) -> list[Split]:
    """Leave out each topic in turn, and of the others the pairs with a sentence that is scored.

    members (n tuples of two strings), topics (n strings): the pairs, and what each is about.
    RAISES (ValueError): if there is one topic alone.
    SOURCE: Reimers and Gurevych 2019, section 4.3 (cross-topic).
    """
    each = dict.fromkeys(topics)
    if len(each) < 2:
        raise ValueError(f"All pairs are about {', '.join(each)}: expected two topics or more, to leave one out.")
    return [leave_out(topic, members, [i for i, other in enumerate(topics) if other == topic]) for topic in each]


def leave_out(name: str, members: _Members, test: Sequence[int]) -> Split:
    """Return the split that scores `test` and trains on all other pairs without a sentence that is scored."""
    scored = {text for i in test for text in members[i]}
    train = (i for i, pair in enumerate(members) if scored.isdisjoint(pair))
    return Split(name, tuple(train), tuple(sorted(test)))


def check_folds(folds: int, most: int, what: str) -> None:
    """Raise a ValueError if there are fewer than two folds, or more than can be made."""
    if not 2 <= folds <= most:
        raise ValueError(f"Cannot make {folds} folds of {most} {what}: expected 2 to {most}.")
