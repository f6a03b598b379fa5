"""A similarity learned from graded pairs, beside the cosine: what vectors hold that the cosine does not show."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy

from ...losses.pair_features import SYMMETRIC, concatenated
from ...similarity import cosine
from ..bootstrap import intervals_of, spearman_of
from ..results import MSE, Measured, Scores
from ..scoring import DEPENDS_ON, TRAINED, GradedPairs, GradedSet, correlated, predictions_of
from ..task import Run, Task, score_variants
from .classifiers import sklearn_module
from .sick import SICK
from .softmax_regression import fit_distribution
from .sts import BENCHMARK

STRENGTHS = 10.0 ** numpy.arange(-1, 7)  # of the regularisation, what is tuned
FOLDS = 5  # of the training data, where there are no others to tune on
Part = tuple[numpy.ndarray, numpy.ndarray]  # features (n, 2 width) and gold scores (n,)
Predict = Callable[[numpy.ndarray], numpy.ndarray]


@dataclass(frozen=True)
class LearnedTask:
    """A data set with a training split: a regressor is fitted to it, and scored beside the cosine on the same pairs.

    splits: their names: to train on, to tune on and to score on. Without the last, the second is scored, and folds of
        the first are tuned on.
    """

    name: str
    data: GradedSet
    splits: tuple[str, str, str]
    suite: str = "learned"
    depends_on: tuple[str, ...] = DEPENDS_ON

    def find(self, root: Path) -> list[Path]:
        return list(self._paths(root).values())

    def run(self, run: Run) -> Measured:
        parts, notes = {}, []
        for split in self._paths(run.root):
            parts[split], counted = self.data.pairs(split, run)
            notes += counted
        train, *tune, test = parts
        scores = int(self.data.low), int(self.data.high)
        result = score_learned(parts[train], parts[tune[0]] if tune else None, parts[test], run, scores)
        tuned = tune[0] if tune else f"{FOLDS} folds of {train}"
        note = f"Learned on {train}, tuned on {tuned}, scored on {test}: a learned similarity is not zero-shot."
        return {
            **result,
            "counts": {split: len(part.gold) for split, part in parts.items()},
            "splits": {"train": train, "tune": tuned, "test": test},
            "notes": [*result["notes"], *notes, note, *run.settings.touched(TRAINED, *self.data.trained)],
        }

    def _paths(self, root: Path) -> dict[str, Path]:
        places, (train, tune, test) = self.data.places, self.splits
        found = {train: places[train].find(root)}
        found |= {split: path for split in (tune, test) if (path := places[split].found(root))}
        return found if len(found) > 1 else {**found, tune: places[tune].find(root)}  # which says what is missing


TASKS: tuple[Task, ...] = (
    LearnedTask("STSb-learned", BENCHMARK, ("train", "dev", "test")),
    LearnedTask("SICK-R-learned", SICK, ("train", "trial", "test")),
)


def score_learned(
    train: GradedPairs, tune: GradedPairs | None, test: GradedPairs, run: Run, scores: tuple[int, int] | None = None
) -> Measured:
    """Correlate learned similarities and the cosine with gold scores, for every variant of the vectors.

    train, test (GradedPairs): what they are fitted to, and what all are scored on. tune (GradedPairs): what the
        strength is chosen by, and the other regressor stopped by; None for folds of train, and the first of them.
    scores (int, int): the lowest and the highest of the data set; None for no distribution over the whole ones.
    RETURNS (dict): see Task.run. Scores: both correlations of "learned", ridge regression, "softmax", SentEval's
        regressor, with the first seed, and "cosine"; of the learned ones also the mean squared error. With several
        normalisations also tuned: the one with which ridge regression has the least mean squared error on what is tuned
        on, and the scores with it. Moments and components are taken of the vectors of train alone, for the cosine too:
        under another normalisation than "none" it differs from that of the STS tasks, which take theirs of the pairs
        that are scored.
    """
    given = {"train": train, "test": test} if tune is None else {"train": train, "tune": tune, "test": test}
    learned_from = [*train.first, *train.second]
    rows = {name: run.encode([*part.first, *part.second], fit_on=learned_from) for name, part in given.items()}
    settings, notes = run.settings.that_fit(*rows["train"].shape)

    each: list[tuple[dict[str, numpy.ndarray], float]] = []

    def score(transform: Predict) -> Scores:
        sides = {name: numpy.split(transform(both), 2) for name, both in rows.items()}
        parts = {name: (concatenated(*sides[name], parts=SYMMETRIC), given[name].gold) for name in sides}
        similarity, error = fit_similarity(parts["train"], parts.get("tune"), settings.seeds[0])
        found = {"learned": similarity(parts["test"][0])}
        if scores is not None:
            fit, held = halves(parts["train"], parts.get("tune"), settings.seeds[0])
            found["softmax"] = fit_distribution(fit, held, scores, settings.seeds[0])(parts["test"][0])
        errors = {name: float(((values - test.gold) ** 2).mean()) for name, values in found.items()}
        found["cosine"] = cosine(*sides["test"])
        each.append((found, error))
        return {
            name: correlated(values, test.gold) | ({MSE: errors[name]} if name in errors else {})
            for name, values in found.items()
        }

    variants = score_variants(settings, rows["train"], score)
    predicted = each[0][0]  # of the first variant and seed
    statistics = {f"{name}.spearman": spearman_of(values, test.gold) for name, values in predicted.items()}
    result: Measured = {
        "counts": {name: len(part.gold) for name, part in given.items()},
        "primary": "learned.spearman",
        "notes": notes,
        "variants": variants,
        "intervals": intervals_of(statistics, len(test.gold), settings.bootstrap, settings.seeds[0]),
        "predictions": predictions_of(predicted["learned"], test),
    }
    same_size = settings.variants[: len(settings.normalizations)]
    if len(same_size) > 1 and not same_size[0].is_random:
        best = min(range(len(same_size)), key=lambda i: each[i][1])
        result["tuned"] = {"normalization": [same_size[best].normalization], "scores": variants[best]["scores"]}
    return result


def fit_similarity(train: Part, tune: Part | None, seed: int) -> tuple[Predict, float]:
    """Fit a similarity to graded pairs by ridge regression, which has the least mean squared error.

    min_w sum_i (g_i - b - w . x_i)^2 + a ||w||^2, x the features of a pair, each less its mean, over its deviation in
    training; a is the one of STRENGTHS with the least mean squared error on what is tuned on. It is linear in
    (|u - v|, u * v), so that it weighs the terms that the Manhattan distance and the dot product weigh alike; it has
    one solution, where a perceptron has another for each seed; and its one setting is tuned in seconds.

    train (Part): what it is fitted to. tune (Part): what a is chosen by; None for folds of train, drawn with the seed.
    RETURNS (Callable, float): features, float (m, 2 width), to similarities, float (m,); and the mean squared error on
        what is tuned on.
    RAISES (ImportError): without scikit-learn.
    SOURCE: Eger et al. 2019, Pitfalls in the Evaluation of Sentence Embeddings: a learned similarity beside the cosine.
    """
    splits = folds_of(train, seed) if tune is None else [(train, tune)]
    errors = numpy.mean([squared_errors(fit, held) for fit, held in splits], axis=0)
    best = int(errors.argmin())
    return _ridge(train, STRENGTHS[[best]])[0], float(errors[best])


def folds_of(train: Part, seed: int) -> Iterator[tuple[Part, Part]]:
    """Folds of training data: what to fit to, and what to tune on. RAISES (ImportError): without scikit-learn."""
    selection = sklearn_module("sklearn.model_selection", "A learned similarity")
    x, gold = train
    for fit, held in selection.KFold(FOLDS, shuffle=True, random_state=seed).split(x):
        yield (x[fit], gold[fit]), (x[held], gold[held])


def halves(train: Part, tune: Part | None, seed: int) -> tuple[Part, Part]:
    """What to fit to, and what to stop by: the first fold of train where there is nothing else."""
    return next(folds_of(train, seed)) if tune is None else (train, tune)


def squared_errors(train: Part, held: Part) -> numpy.ndarray:
    """The mean squared error of each of STRENGTHS, fitted to one part, on another; float (strengths,)."""
    x, gold = held
    return numpy.array([((predict(x) - gold) ** 2).mean() for predict in _ridge(train, STRENGTHS)])


def _ridge(train: Part, strengths: numpy.ndarray) -> list[Predict]:
    """A regressor for each strength; what they have in common is computed once."""
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import StandardScaler

    x, gold = train
    scaler = StandardScaler().fit(x)
    model = Ridge(alpha=strengths).fit(scaler.transform(x), numpy.tile(gold[:, None], len(strengths)))

    def linear(weights: numpy.ndarray, bias: float) -> Predict:
        return lambda x: scaler.transform(x) @ weights + bias

    return list(map(linear, numpy.atleast_2d(model.coef_), numpy.atleast_1d(model.intercept_)))
