"""Similarity of arguments: AFS and the UKP aspect corpus, without training on them and learned from
others.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy

from spacy_sbert.evaluation.encoders import sklearn_module
from spacy_sbert.evaluation.protocols.sts import TRAINED, GradedPairs, GradedTask, PairsTask
from spacy_sbert.evaluation.results import MSE, Json
from spacy_sbert.evaluation.task import PREFIXES, DataFile, Run, Task, check_official_count
from spacy_sbert.losses.softmax import SYMMETRIC, concatenated
from spacy_sbert.similarity import cosine

from .argument_corpora import (
    AFS_MAX_SCORE,
    AFS_TOPICS,
    ASPECT_FILE,
    afs_rows,
    argument_files,
    aspect_rows,
)
from .learned_similarity import Part, Predict, fit_ridge
from .variants import EveryVariant, Variant, VariedTask, seeds_of, that_fit, variants_of

_AFS_PLACE = DataFile(
    ("AFS", "afs", "AFS_corpus", "."), "https://nlds.soe.ucsc.edu, the lab of Misra et al. 2016"
)
_ASPECT_PLACE = DataFile(
    (ASPECT_FILE, f"UKP_ASPECT/{ASPECT_FILE}", f"ukp_aspect/{ASPECT_FILE}"),
    "https://github.com/UKPLab/acl2019-BERT-argument-classification-and-clustering",
)
_ASPECT_NOTE = (
    "Labels as scores: DTORCD 0, NS 0, SS 1/2, HS 1. Reimers et al. 2019 oppose the first two to "
    "the last two; Spearman's correlation depends on the order of the scores alone, Pearson's also "
    "on where SS stands."
)


class _FacetTask(PairsTask):
    """AFS: pairs of arguments of three debates, graded from 0 (different topic) to 5 (completely
    equivalent).
    """

    name = "AFS"
    suite = "arguments"

    def find(self, root: Path) -> list[Path]:
        folders = (root / prefix / name for name in _AFS_PLACE.names for prefix in PREFIXES)
        files: list[Path] = next(
            filter(None, (argument_files(folder, "afs") for folder in folders)), []
        )
        missing = [
            topic for topic in AFS_TOPICS if not any(f"_{topic}" in file.stem for file in files)
        ]
        if missing:
            _AFS_PLACE.refuse(" and ".join(f"ArgPairs_{topic}*.csv" for topic in missing), root)
        return files

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        each = {file: list(afs_rows(file)) for file in self.find(run.root)}
        for file, rows in each.items():
            check_official_count(len(rows), file)
        notes = ["The number of pairs is not checked: no official one is known for each topic."]
        notes += run.settings.touched(TRAINED, "afs")
        return GradedPairs.from_rows(
            [row for rows in each.values() for row in rows], 0.0, AFS_MAX_SCORE
        ), notes


_ASPECT = GradedTask(
    "UKP-ASPECT", "arguments", _ASPECT_PLACE, 3595, aspect_rows, 0.0, 1.0, ("ukp",), (_ASPECT_NOTE,)
)
_CORPORA: tuple[PairsTask, ...] = (_FacetTask(), _ASPECT)


N_FOLDS = 10
# The folds are the same for all seeds of a training
FOLD_SEED = 0
_Members = Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Split:
    """Indices of the pairs to train on and to score.

    name: of the fold or topic that is left out.
    """

    name: str
    train: tuple[int, ...]
    test: tuple[int, ...]


def split_folds(members: _Members, folds: int = N_FOLDS) -> list[Split]:
    """Shuffle the pairs, and leave out each fold in turn.

    A pair that occurs twice, in either order of its arguments, may be in two folds: what is scored
    is then left out of training. A single sentence may be on both sides.

    members (n tuples of two strings): the pairs. folds (int): how many.
    RAISES (ValueError): if there are fewer than two folds, or more than pairs.
    SOURCE: Misra et al. 2016, section 4; Reimers and Gurevych 2019, section 4.3 (ten folds).
    """
    if not 2 <= folds <= len(members):
        raise ValueError(
            f"Cannot make {folds} folds of {len(members)} pairs: expected 2 to {len(members)}."
        )
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
    RAISES (ValueError): if there is only one topic.
    SOURCE: Reimers and Gurevych 2019, section 4.3 (cross-topic).
    """
    each = dict.fromkeys(topics)
    if len(each) < 2:
        raise ValueError(
            f"All pairs are about {', '.join(each)}: expected two topics or more, to leave one out."
        )
    return [
        leave_out(topic, members, [i for i, other in enumerate(topics) if other == topic])
        for topic in each
    ]


def leave_out(name: str, members: _Members, test: Sequence[int]) -> Split:
    """Return the split that scores `test` and trains on all other pairs without a sentence that is
    scored.
    """
    scored = {text for i in test for text in members[i]}
    train = (i for i, pair in enumerate(members) if scored.isdisjoint(pair))
    return Split(name, tuple(train), tuple(sorted(test)))


# Values of C
_PENALTIES = (0.1, 1.0, 10.0)
# Values of gamma times the number of features
_WIDTHS = (0.3, 1.0)


def fit_support_vectors(train: Part, seed: int) -> Predict:
    """Fit a support vector regressor with the radial kernel exp(-gamma |x - y|^2) to graded pairs.

    Features and gold scores are brought to mean 0 and deviation 1 by those of train. C is one of
    0.1, 1 and 10, and gamma 0.3 or 1 over the number of features, by the least mean squared error
    in three folds of train; epsilon is 0.1.

    train (Part): what it is fitted to. seed (int): of the folds.
    RETURNS (Callable): features, float (m, 2 width), to similarities on the scale of the gold
        scores, float (m,).
    RAISES (ImportError): without scikit-learn.
    SOURCE: Misra et al. 2016, Measuring the Similarity of Sentential Arguments in Dialogue, section
        4, with features of its own of the pairs.
    """
    selection, pairwise, preprocessing, svm = (
        sklearn_module(f"sklearn.{name}", "A learned similarity")
        for name in ("model_selection", "metrics.pairwise", "preprocessing", "svm")
    )
    features, gold = train
    scaler = preprocessing.StandardScaler().fit(features)
    x = scaler.transform(features)
    middle = gold.mean()
    spread = gold.std() or 1.0
    y = (gold - middle) / spread
    # Once for all settings and folds
    distances = pairwise.euclidean_distances(x, squared=True) / x.shape[1]

    def kernel(
        setting: tuple[float, float], rows: numpy.ndarray, at: numpy.ndarray
    ) -> numpy.ndarray:
        return numpy.exp(-setting[1] * distances[numpy.ix_(rows, at)])

    def fit(setting: tuple[float, float], at: numpy.ndarray) -> Predict:
        """Return the prediction from the kernel of other examples with those at `at`."""
        return (
            svm.SVR(kernel="precomputed", C=setting[0]).fit(kernel(setting, at, at), y[at]).predict
        )

    def error(setting: tuple[float, float], at: numpy.ndarray, held: numpy.ndarray) -> float:
        return float(((fit(setting, at)(kernel(setting, held, at)) - y[held]) ** 2).mean())

    folds = list(selection.KFold(3, shuffle=True, random_state=seed).split(x))
    grid = list(product(_PENALTIES, _WIDTHS))
    best = min(grid, key=lambda setting: sum(error(setting, *fold) for fold in folds))
    from_kernel = fit(best, numpy.arange(len(x)))

    def predict(rows: numpy.ndarray) -> numpy.ndarray:
        between = pairwise.euclidean_distances(scaler.transform(rows), x, squared=True) / x.shape[1]
        return middle + spread * from_kernel(numpy.exp(-best[1] * between))

    return predict


# What is left out at a time, and what is then not trained on
_HELD_OUT = {
    "folds": (
        f"{N_FOLDS} folds of the pairs",
        "A pair that is scored is not trained on; a single sentence may be.",
    ),
    "topics": ("topics", "A sentence that is scored is not trained on."),
}


@dataclass(frozen=True)
class _HeldOutArguments(VariedTask):
    """Pairs of arguments, each scored by what is learned from the pairs of other folds, or of other
    topics: held.

    SOURCE: Misra et al. 2016, section 4 (support vector regression); Reimers and Gurevych 2019,
        section 4.3 (both ways to hold out).
    """

    name: str
    corpus: PairsTask
    held: str
    suite: str = "learned"
    needs_sklearn = True

    def find(self, root: Path) -> list[Path]:
        return self.corpus.find(root)

    def run(self, run: Run) -> Json:
        pairs, notes = self.corpus.pairs(run)
        members = list(zip(pairs.first, pairs.second, strict=True))
        if self.held == "folds":
            splits = split_folds(members)
        else:
            splits = split_topics(members, pairs.subset)
        result = _score_held_out(pairs, splits, run)
        what, kept_out = _HELD_OUT[self.held]
        tested = f"{what}, one left out at a time"
        note = f"Learned from pairs of arguments, {tested}: not zero-shot. {kept_out}"
        return {**result, "splits": {"test": tested}, "notes": [*result["notes"], *notes, note]}


TASKS: tuple[Task, ...] = (
    *(EveryVariant(corpus) for corpus in _CORPORA),
    *(
        _HeldOutArguments(f"{corpus.name}-{held}", corpus, held)
        for corpus in _CORPORA
        for held in _HELD_OUT
    ),
)


def _score_held_out(pairs: GradedPairs, splits: Sequence[Split], run: Run) -> Json:
    """Correlate learned similarities and the cosine with the gold scores of pairs that are held out
    in turn.

    pairs (GradedPairs): all of them. splits: each pair is tested in one.
    RETURNS (dict): see Task.run. Scores: both correlations of "svr", "learned" (ridge regression)
        and "cosine", of each split, their mean and pooled; of the learned ones also the mean
        squared error. Moments and components are of the training pairs of each split, for the
        cosine too.
    """
    names = {i: split.name for split in splits for i in split.test}
    held = replace(pairs, subset=[names[i] for i in range(len(pairs.gold))])
    smallest = min(splits, key=lambda split: len(split.train))
    _, _, width = _vectors(pairs, smallest, run).shape
    settings, notes = that_fit(run.settings, 2 * len(smallest.train), width)
    firsts: list[numpy.ndarray] = []
    variants: list[Json] = []
    for variant in variants_of(settings):
        scores = []
        for seed in seeds_of(settings, variant):
            predicted = _predicted(variant, seed, pairs, splits, run)
            firsts.append(predicted["svr"])
            scores.append({kind: held.correlations(values) for kind, values in predicted.items()})
            for kind in ("svr", "learned"):
                scores[-1][kind][MSE] = float(((predicted[kind] - held.gold) ** 2).mean())
        variants.append(variant.entry(scores))
    return {
        "counts": held.counts,
        "primary": "svr.spearman.mean",
        "variants": variants,
        "intervals": held.intervals(firsts[0], settings, "svr"),
        # Of the first variant and seed
        "predictions": held.with_gold(firsts[0]),
        "notes": notes,
    }


def _predicted(
    variant: Variant, seed: int, pairs: GradedPairs, splits: Sequence[Split], run: Run
) -> dict[str, numpy.ndarray]:
    """Return the similarities of all pairs by each kind, learned from the others of each split."""
    predicted = {kind: numpy.zeros(len(pairs.gold)) for kind in ("svr", "learned", "cosine")}
    for split in run.progress(splits, "held out"):
        train = list(split.train)
        test = list(split.test)
        rows = _vectors(pairs, split, run)
        transform = variant.fit(rows[:, train].reshape(-1, rows.shape[2]), seed)
        first, second = (transform(side) for side in rows)
        features = concatenated(first, second, parts=SYMMETRIC)
        learned_from = (features[train], pairs.gold[train])
        predicted["svr"][test] = fit_support_vectors(learned_from, seed)(features[test])
        predicted["learned"][test] = fit_ridge(learned_from, None, seed)[0](features[test])
        predicted["cosine"][test] = cosine(first[test], second[test])
    return predicted


def _vectors(pairs: GradedPairs, split: Split, run: Run) -> numpy.ndarray:
    """Return both sides of all pairs, float (2, n, width), by a source that may learn from the
    training pairs.
    """
    seen = [side[i] for side in (pairs.first, pairs.second) for i in split.train]
    rows = run.encode([*pairs.first, *pairs.second], fit_on=seen)
    return rows.reshape(2, len(pairs.gold), -1)
