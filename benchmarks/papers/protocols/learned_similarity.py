"""Similarities learned from graded pairs, beside the cosine: what vectors hold that the cosine does
not show.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch

from spacy_sbert.evaluation.encoders import sklearn_module
from spacy_sbert.evaluation.protocols.sts import (
    BENCHMARK,
    CORRELATIONS,
    SICK,
    TRAINED,
    GradedPairs,
    GradedTask,
)
from spacy_sbert.evaluation.results import MSE, Json, spearman_of
from spacy_sbert.evaluation.task import Run, Task
from spacy_sbert.losses.softmax import SYMMETRIC, concatenated
from spacy_sbert.similarity import cosine, pearson

from .variants import VariedTask, score_variants, that_fit, variants_of

# Features (n, 2 width) and gold scores (n,)
Part = tuple[numpy.ndarray, numpy.ndarray]
Predict = Callable[[numpy.ndarray], numpy.ndarray]
# Strengths of the regularization, one of which is chosen
_STRENGTHS = 10.0 ** numpy.arange(-1, 7)
# How many folds of the training data tune, if there are no others to tune on
_FOLDS = 5


@dataclass(frozen=True)
class _LearnedTask(VariedTask):
    """A data set with a training split: a regressor is fitted to it, and scored beside the cosine
    on the same pairs.

    splits: to train, to tune and to score on. Without the last the second is scored, and folds of
        the first tune.
    """

    name: str
    splits: Mapping[str, GradedTask]
    suite: str = "learned"
    needs_sklearn = True

    def find(self, root: Path) -> list[Path]:
        return [split.place.find(root) for split in self._there(root).values()]

    def _there(self, root: Path) -> dict[str, GradedTask]:
        """Return the splits whose files are there; the first two if they are too few."""
        first, second, _ = self.splits
        there = {name: split for name, split in self.splits.items() if split.place.found(root)}
        if first in there and len(there) > 1:
            return there
        return {name: self.splits[name] for name in (first, second)}

    def run(self, run: Run) -> Json:
        parts: dict[str, GradedPairs] = {}
        notes: list[str] = []
        for name, split in self._there(run.root).items():
            parts[name], counted = split.graded(run)
            notes += counted
        train, *tune, test = parts
        tune_pairs = None
        tuned = f"{_FOLDS} folds of {train}"
        if tune:
            (tuned,) = tune
            tune_pairs = parts[tuned]
        trained_on = self.splits[train]
        scores = (int(trained_on.low), int(trained_on.high))
        result = _score_learned(parts[train], tune_pairs, parts[test], run, scores)
        notes.append(
            f"Learned on {train}, tuned on {tuned}, scored on {test}: a learned similarity is not "
            "zero-shot."
        )
        notes += run.settings.touched(TRAINED, *trained_on.trained)
        return {
            **result,
            "counts": {split: len(part.gold) for split, part in parts.items()},
            "splits": {"train": train, "tune": tuned, "test": test},
            "notes": [*result["notes"], *notes],
        }


TASKS: tuple[Task, ...] = (
    _LearnedTask("STSb-learned", BENCHMARK),
    _LearnedTask("SICK-R-learned", SICK),
)


def _score_learned(
    train: GradedPairs,
    tune: GradedPairs | None,
    test: GradedPairs,
    run: Run,
    scores: tuple[int, int],
) -> Json:
    """Correlate learned similarities and the cosine with gold scores, for every variant of the
    vectors.

    tune: what the strength is chosen by, and the other regressor stopped by; None for folds of
        train, and the first of them. scores (int, int): the lowest and the highest of the data set.
    RETURNS (dict): see Task.run. Scores: both correlations of "learned", ridge regression,
        "softmax", SentEval's regressor, with the first seed, and "cosine"; of the learned ones also
        the mean squared error. With several normalizations also tuned: the one with the least error
        of ridge regression on what is tuned on, and its scores. Moments and components are of the
        vectors of train, for the cosine too: it is not that of the STS tasks.
    """
    pairs = {"train": train, "test": test}
    if tune is not None:
        pairs = {"train": train, "tune": tune, "test": test}
    learned_from = [*train.first, *train.second]
    rows: dict[str, numpy.ndarray] = {}
    for name, part in pairs.items():
        rows[name] = run.encode([*part.first, *part.second], fit_on=learned_from)
    settings, notes = that_fit(run.settings, *rows["train"].shape)
    seed = settings.seeds[0]
    # What was predicted, and the error on what is tuned on
    each: list[tuple[dict[str, numpy.ndarray], float]] = []

    def score(transform: Predict) -> Json:
        parts: dict[str, Part] = {}
        for name, part in pairs.items():
            u, v = numpy.split(transform(rows[name]), 2)
            parts[name] = (concatenated(u, v, parts=SYMMETRIC), part.gold)
        # The last are those of the test pairs
        learned, error = _learn(parts, scores, seed)
        predicted = {**learned, "cosine": cosine(u, v)}
        each.append((predicted, error))
        found: Json = {}
        for name, values in predicted.items():
            found[name] = {key: measure(values, test.gold) for key, measure in CORRELATIONS.items()}
        for name, values in learned.items():
            found[name][MSE] = float(((values - test.gold) ** 2).mean())
        return found

    variants = score_variants(settings, rows["train"], score)
    # Of the first variant and seed
    predicted, _ = each[0]
    statistics = {
        f"{name}.spearman": spearman_of(values, test.gold) for name, values in predicted.items()
    }
    result = {
        "counts": {name: len(part.gold) for name, part in pairs.items()},
        "primary": "learned.spearman",
        "notes": notes,
        "variants": variants,
        "intervals": settings.intervals(statistics, len(test.gold)),
        "predictions": test.with_gold(predicted["learned"]),
    }
    same_size = variants_of(settings)[: len(settings.normalizations)]
    if len(same_size) > 1 and not same_size[0].is_random:
        errors = [error for _, error in each[: len(same_size)]]
        best = errors.index(min(errors))
        result["tuned"] = {
            "normalization": [same_size[best].normalization],
            "scores": variants[best]["scores"],
        }
    return result


def _learn(
    parts: Mapping[str, Part], scores: tuple[int, int], seed: int
) -> tuple[dict[str, numpy.ndarray], float]:
    """Return the learned similarities of test pairs, and the error of ridge regression in tuning.

    parts (dict): features and gold scores: train, test, and tune if there is such a split.
    """
    similarity, error = fit_ridge(parts["train"], parts.get("tune"), seed)
    if "tune" in parts:
        fit, held = parts["train"], parts["tune"]
    else:
        fit, held = next(_folds(parts["train"], seed))
    softmax = _fit_distribution(fit, held, scores, seed)
    features, _ = parts["test"]
    return {"learned": similarity(features), "softmax": softmax(features)}, error


def fit_ridge(train: Part, tune: Part | None, seed: int) -> tuple[Predict, float]:
    """Fit a similarity to graded pairs by ridge regression, which has the least mean squared error.

    min_w sum_i (g_i - b - w . x_i)^2 + a ||w||^2, x the features of a pair, each less its mean,
    over its deviation in training; a is the strength from 0.1 to 1e6 with the least mean squared
    error on what is tuned on. It is linear in (|u - v|, u * v), so that it weighs the terms that
    the Manhattan distance and the dot product weigh alike.

    train (Part): what it is fitted to. tune (Part): what a is chosen by; None for folds of train,
        drawn with the seed.
    RETURNS (Callable, float): features, float (m, 2 width), to similarities, float (m,); and the
        mean squared error on what is tuned on.
    RAISES (ImportError): without scikit-learn.
    SOURCE: Eger et al. 2019, Pitfalls in the Evaluation of Sentence Embeddings: a learned
        similarity beside the cosine.
    """
    splits: Iterable[tuple[Part, Part]] = _folds(train, seed)
    if tune is not None:
        splits = [(train, tune)]
    errors = numpy.mean([_squared_errors(fit, held) for fit, held in splits], axis=0)
    best = int(errors.argmin())
    return _ridge(train, _STRENGTHS[[best]])[0], float(errors[best])


def _folds(train: Part, seed: int) -> Iterator[tuple[Part, Part]]:
    """Yield folds of training data: what to fit to, and what to tune on."""
    selection = sklearn_module("sklearn.model_selection", "A learned similarity")
    x, gold = train
    for fit, held in selection.KFold(_FOLDS, shuffle=True, random_state=seed).split(x):
        yield (x[fit], gold[fit]), (x[held], gold[held])


def _squared_errors(train: Part, held: Part) -> numpy.ndarray:
    """Return the mean squared error of each strength, fitted to one part, on another; float
    (strengths,).
    """
    x, gold = held
    regressors = _ridge(train, _STRENGTHS)
    return numpy.array([((predict(x) - gold) ** 2).mean() for predict in regressors])


def _ridge(train: Part, strengths: numpy.ndarray) -> list[Predict]:
    """Return a regressor for each strength; what they have in common is computed once."""
    linear_model = sklearn_module("sklearn.linear_model", "A learned similarity")
    preprocessing = sklearn_module("sklearn.preprocessing", "A learned similarity")
    x, gold = train
    scaler = preprocessing.StandardScaler().fit(x)
    targets = numpy.tile(gold[:, None], len(strengths))
    model = linear_model.Ridge(alpha=strengths).fit(scaler.transform(x), targets)

    def linear(weights: numpy.ndarray, bias: float) -> Predict:
        return lambda rows: scaler.transform(rows) @ weights + bias

    return list(map(linear, numpy.atleast_2d(model.coef_), numpy.atleast_1d(model.intercept_)))


_BATCH = 64
# How many passes over the training data there are between two looks at the held-out pairs
_PASSES = 50
# After so many looks without a higher correlation, one more ends the training
_PATIENCE = 3
_MAX_PASSES = 1000


def _fit_distribution(train: Part, held: Part, scores: tuple[int, int], seed: int) -> Predict:
    """Fit a distribution over whole scores, from the lowest to the highest, to graded pairs:
    SentEval's regressor.

    p = softmax(W x + b), the similarity r . p, r the whole scores; the mean squared error between p
    and the target distribution, with Adam, rate 0.001, in batches of 64. After every 50 passes
    Pearson's correlation with the held-out gold scores is taken; the weights are those with which
    it was highest, and training ends once it has not become higher four times, or after 1000
    passes.
    SOURCE: Tai et al. 2015, section 4.2 (target distribution); Conneau and Kiela 2018, SentEval,
        section 3, whose code has the squared error in place of the divergence, these numbers, and
        scores 1 to 5 for the STS benchmark too.
    """
    generator = torch.Generator("cpu").manual_seed(seed)
    whole = numpy.arange(scores[0], scores[1] + 1)
    features, gold = train
    x = torch.from_numpy(features.astype("float32"))
    targets = torch.from_numpy(_target_distribution(gold, whole))
    # The last row is b
    shape = (x.shape[1] + 1, targets.shape[1])
    drawn = torch.rand(shape, generator=generator, device="cpu") * 2 - 1
    weights = (drawn * x.shape[1] ** -0.5).requires_grad_()
    optimizer = torch.optim.Adam([weights], fused=True)

    def probabilities(weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x @ weights[:-1] + weights[-1], dim=1)

    def predict(weights: torch.Tensor, rows: numpy.ndarray) -> numpy.ndarray:
        x = torch.from_numpy(rows.astype("float32"))
        return probabilities(weights, x).double().numpy() @ whole

    highest = -1.0
    best = weights.detach().clone()
    failures = 0
    held_features, held_gold = held
    for _ in range(0, _MAX_PASSES + _PASSES, _PASSES):
        for _ in range(_PASSES):
            for batch in torch.randperm(len(x), generator=generator, device="cpu").split(_BATCH):
                loss = (probabilities(weights, x[batch]) - targets[batch]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        correlation = pearson(predict(weights.detach(), held_features), held_gold)
        if correlation is not None and correlation > highest:
            highest = correlation
            best = weights.detach().clone()
        elif failures >= _PATIENCE:
            break
        else:
            failures += 1
    return lambda rows: predict(best, rows)


def _target_distribution(gold: numpy.ndarray, whole: numpy.ndarray) -> numpy.ndarray:
    """Return t_i = max(0, 1 - |y - i|) of each gold score y and whole score i, float32 (n, scores);
    its mean is y.
    """
    return numpy.maximum(0.0, 1.0 - numpy.abs(gold[:, None] - whole)).astype("float32")
