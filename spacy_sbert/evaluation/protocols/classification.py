"""Classification on top of sentence embeddings, as SentEval does it: training, tuning, scores over folds and seeds."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import Any, NamedTuple

import numpy
import torch
from torch.nn import functional

from ...losses.softmax import SYMMETRIC, concatenated
from ...readers.examples import Row
from ..encoders import sklearn_module
from ..results import Json, intervals_of, mean_of
from ..task import OWN, Run, Transform, Variant, indices_by_name, over_seeds

ALL, TRAIN, DEV, TEST = "all", "train", "dev", "test"
_LR, _MLP = "lr", "mlp"
_OUTER_FOLDS = 10  # of tasks without a test split
_INNER_FOLDS = 5  # of training data without a dev split, to choose C
_FOLD_SEED = 1111  # SentEval's
_C_GRID = tuple(2.0**power for power in range(-2, 4))  # SentEval's for logistic regression
_C_MANY = 8.0
_MANY = 100  # classes
_TOLERANCE = 1e-4  # the largest gradient of a weight at which logistic regression stops: scikit-learn's
_FALLEN = 0.01  # and to which part of the first one it has to fall; see _tolerance
_HELD = 20  # folds of training data without a dev split, of which the first stops the MLP: SentEval's 5 %
_MLP_SEEDS = 3  # of the settings' seeds: more cost minutes and move a mean little
_MLP_ROWS = 120_000  # with more to train on, in all folds together, one seed: each takes minutes
_Halves = tuple[tuple[numpy.ndarray, numpy.ndarray], ...]  # what to fit and what to score, each time


@dataclass(frozen=True)
class Examples:
    """Labelled sentences or pairs.

    texts (n tuples of one or two strings), labels (str (n,)), places: the indices of each split, "all", or "train",
    "dev" and "test". positive (str): the label whose F1 is reported, if any.
    """

    texts: tuple[tuple[str, ...], ...]
    labels: numpy.ndarray
    places: Mapping[str, numpy.ndarray]
    positive: str | None = None

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, Row]], positive: str | None = None) -> "Examples":
        """Return rows with the split of each as examples."""
        splits, each = zip(*rows, strict=True)
        labels = numpy.array([row.label for row in each])
        return cls(tuple(row.members for row in each), labels, indices_by_name(splits), positive)


@dataclass(frozen=True)
class _Fold:
    """Indices of examples, int (n,) each; tuning: what to fit and what to score within train, to choose settings."""

    train: numpy.ndarray
    test: numpy.ndarray
    tuning: _Halves


class _Trained(NamedTuple):
    """A classifier trained in a fold, the labels it predicts of what is tested, and what was chosen in tuning."""

    variant: Variant
    classifier: str
    seed: int  # of the classifier, or of the vectors
    fold: int  # its number
    labels: numpy.ndarray
    accuracy: float  # in tuning
    chosen: object


def classify(examples: Examples, run: Run, task: str, notes: Sequence[str] = ()) -> Json:
    """Train classifiers on vectors and count what they get right.

    The features of a sentence are its vector u, those of a pair |u - v| and u * v. Moments and components of a variant
    are taken of the vectors of each fold's training examples.
    RETURNS (dict): see Task.run. Scores by classifier: accuracy, over all examples tested, and f1 if a label is the
        positive one; of the MLP means over the first 3 seeds, or only the first with more than 120,000 training
        examples. Beside them c and networks, what was chosen in each fold; protocol, how it was done; tuned, with
        several normalizations, the one that is best for each classifier in its tuning in each fold, and its scores.
    RAISES (ValueError): if there are too few examples or classes. (ImportError): if scikit-learn is not installed.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3; Eger et al. 2019, sections 3.2 and 3.3 (both classifiers,
        normalization).
    """
    sklearn_module("sklearn", task)
    folds = _make_folds(examples.places, examples.labels, task)
    smallest = min(folds, key=lambda fold: len(fold.train))
    width = 1 if run.settings.sizes == (OWN,) else _vectors(examples, smallest, run).shape[2]  # of OWN any will do
    settings, unfit = run.settings.that_fit(len(examples.texts[0]) * len(smallest.train), width)
    is_small = sum(len(fold.train) for fold in folds) <= _MLP_ROWS
    mlp_seeds = settings.seeds[: _MLP_SEEDS if is_small else 1]
    said = [*notes, *unfit]
    if _MLP in settings.classifiers and len(mlp_seeds) < len(settings.seeds):
        said.append(f"The MLP was trained with {len(mlp_seeds)} of the {len(settings.seeds)} seeds, to save time.")
    kind = task.lower().partition("-")[0]
    if names := ", ".join(name for name in settings.trained_on if name.lower().partition("-")[0] == kind):
        said.append(f"The encoder was trained on {names}, which holds sentences of this set.")
    trained = _train(examples, folds, replace(run, settings=settings), mlp_seeds, task)
    first, gold = _predicted(examples, folds, [one for one in trained if one.variant == settings.variants[0]])
    right = {name: numpy.stack([labels == gold for labels in each]) for name, each in first.items()}  # (seeds, tests)
    accuracies = {f"{name}.accuracy": mean_of(values.mean(axis=0)) for name, values in right.items()}
    primary = _LR if _LR in settings.classifiers else _MLP
    variants: list[Json] = []
    for variant in settings.variants:
        own = [one for one in trained if one.variant == variant]
        entry = {"normalization": variant.normalization, "size": variant.size, **_summary(examples, folds, own)}
        for name, key in ((_LR, "c"), (_MLP, "networks")):
            if chosen := [one.chosen for one in own if one.classifier == name and one.seed == settings.seeds[0]]:
                entry[key] = chosen
        variants.append(entry)
    result = {
        "counts": {**{name: len(at) for name, at in examples.places.items()}, ALL: len(examples.labels)},
        "primary": f"{primary}.accuracy",
        "variants": variants,
        "intervals": intervals_of(accuracies, len(gold), settings.bootstrap, settings.seeds[0]),
        "predictions": {"right": "".join(map(str, right[primary][0].astype(int)))},
        "protocol": _protocol(examples.places, settings.classifiers, mlp_seeds),
        "notes": said,
    }
    if len(settings.normalizations) > 1:
        same_size = settings.variants[: len(settings.normalizations)]
        result["tuned"] = _tuned(examples, folds, [one for one in trained if one.variant in same_size], primary)
    return result


def _train(examples: Examples, folds: Sequence[_Fold], run: Run, mlp_seeds: Sequence[int], task: str) -> list[_Trained]:
    """Train all classifiers in each fold and variant."""
    settings = run.settings
    trained: list[_Trained] = []
    for number, fold in enumerate(run.progress(folds, task)):
        vectors = _vectors(examples, fold, run)
        seen = vectors[:, fold.train].reshape(-1, vectors.shape[2])
        for variant in settings.variants:
            for seed in settings.seeds_of(variant):
                rows = _features(vectors, variant.fit(seen, seed))
                if _LR in settings.classifiers:
                    found = _predict_lr(rows, examples.labels, fold, compare=len(settings.normalizations) > 1)
                    trained.append(_Trained(variant, _LR, seed, number, *found))
                for each in mlp_seeds if _MLP in settings.classifiers else ():
                    if each == seed or not variant.is_random:
                        found = _predict_mlp(rows, examples.labels, fold, each)
                        trained.append(_Trained(variant, _MLP, each, number, *found))
    return trained


def _predicted(
    examples: Examples, folds: Sequence[_Fold], trained: Iterable[_Trained]
) -> tuple[dict[str, list[numpy.ndarray]], numpy.ndarray]:
    """Return the labels that each classifier predicts with each seed of what is tested, and the gold ones."""
    labels: dict[str, dict[int, numpy.ndarray]] = {}
    for one in trained:
        of_all = labels.setdefault(one.classifier, {}).setdefault(one.seed, numpy.empty_like(examples.labels))
        of_all[folds[one.fold].test] = one.labels
    tested = numpy.sort(numpy.concatenate([fold.test for fold in folds]))
    found = {name: [of_all[tested] for of_all in by_seed.values()] for name, by_seed in labels.items()}
    return found, examples.labels[tested]


def _summary(examples: Examples, folds: Sequence[_Fold], trained: Iterable[_Trained]) -> Json:
    """Return scores by classifier, means over seeds, with their deviation if seeds are several."""
    predicted, gold = _predicted(examples, folds, trained)
    entry: Json = {"scores": {}, "deviation": {}}
    for name, each in predicted.items():
        scores = [_scores(labels, gold, examples.positive) for labels in each]
        entry["scores"][name], entry["deviation"][name] = over_seeds(scores)
    if all(len(each) == 1 for each in predicted.values()):
        del entry["deviation"]
    return entry


def _tuned(examples: Examples, folds: Sequence[_Fold], trained: Sequence[_Trained], primary: str) -> Json:
    """Return the normalization with which each classifier is best in the tuning of each fold, and its scores."""
    by_fold: dict[tuple[str, int], dict[Variant, list[_Trained]]] = {}
    for one in trained:
        by_fold.setdefault((one.classifier, one.fold), {}).setdefault(one.variant, []).append(one)
    chosen: dict[str, list[str]] = {}
    best: list[_Trained] = []
    for (classifier, _), by_variant in by_fold.items():
        accuracies = {variant: numpy.mean([one.accuracy for one in own]) for variant, own in by_variant.items()}
        variant = max(accuracies, key=accuracies.__getitem__)
        chosen.setdefault(classifier, []).append(variant.normalization)
        best += by_variant[variant]
    return {"normalization": chosen[primary], "by_classifier": chosen, **_summary(examples, folds, best)}


def _vectors(examples: Examples, fold: _Fold, run: Run) -> numpy.ndarray:
    """Return the vectors of all examples, float32 (members, n, width)."""
    members = list(zip(*examples.texts, strict=True))
    seen = [text for i in fold.train for text in examples.texts[i]]
    rows = run.encode([text for member in members for text in member], fit_on=seen)
    return rows.reshape(len(members), len(examples.texts), -1)


def _features(vectors: numpy.ndarray, transform: Transform) -> numpy.ndarray:
    """Compute float (members, n, width) -> float32 (n, features): half the memory and time of float64."""
    members = [transform(rows) for rows in vectors]
    return (members[0] if len(members) == 1 else concatenated(*members, parts=SYMMETRIC)).astype("float32")


def _scores(predicted: numpy.ndarray, gold: numpy.ndarray, positive: str | None) -> Json:
    """Return accuracy = right / n, and F1 = 2 tp / (2 tp + fp + fn): None if nothing has or gets the label."""
    scores: Json = {"accuracy": float((predicted == gold).mean())}
    if positive is not None:
        is_gold, is_predicted = gold == positive, predicted == positive
        both = int(is_gold.sum() + is_predicted.sum())
        scores["f1"] = 2 * int((is_gold & is_predicted).sum()) / both if both else None
    return scores


def _make_folds(places: Mapping[str, numpy.ndarray], labels: numpy.ndarray, task: str) -> list[_Fold]:
    """Decide how to train, to tune and to test, by the splits that there are.

    "all": ten stratified folds are each tested once; "train" and "test": tuned by five stratified folds of train;
    "train", "dev" and "test": tuned on dev.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3.1. Its code has as many inner folds as outer ones, C from 2^-1
        to 2^5 where there is a test split but no dev split, and reports the mean of the folds.
    """

    def split(at: numpy.ndarray, folds: int) -> _Halves:
        _check_classes(labels[at], folds, task)
        return _stratified(at, labels, folds, _FOLD_SEED)

    if ALL in places:
        return [_Fold(train, test, split(train, _INNER_FOLDS)) for train, test in split(places[ALL], _OUTER_FOLDS)]
    train = places[TRAIN]
    _check_classes(labels[train], 1, task)
    return [_Fold(train, places[TEST], ((train, places[DEV]),) if DEV in places else split(train, _INNER_FOLDS))]


def _stratified(at: numpy.ndarray, labels: numpy.ndarray, folds: int, seed: int) -> _Halves:
    selection = sklearn_module("sklearn.model_selection", "A classifier")
    splitter = selection.StratifiedKFold(folds, shuffle=True, random_state=seed)
    return tuple((at[train], at[test]) for train, test in splitter.split(at, labels[at]))


def _check_classes(labels: numpy.ndarray, folds: int, task: str) -> None:
    names, counts = numpy.unique(labels, return_counts=True)
    needed, (fewest, rarest) = max(folds, 2), min(zip(counts, names, strict=True))
    if len(names) < 2 or fewest < needed:
        raise ValueError(
            f"{task}: the training examples have {len(names)} labels, the rarest, '{rarest}', {fewest} times. Expected "
            f"two labels or more, each at least {needed} times: once for each fold."
        )


def _protocol(splits: Collection[str], classifiers: Collection[str], mlp_seeds: Sequence[int]) -> dict[str, str]:
    """Describe in words how classifiers are trained, tuned and tested, for results."""
    folds = f"{_OUTER_FOLDS} stratified folds, shuffled with seed {_FOLD_SEED}; accuracy over all examples"
    tuned = "on dev" if DEV in splits else f"by {_INNER_FOLDS} stratified folds of the training data, seed {_FOLD_SEED}"
    held = "on dev" if DEV in splits else f"on 1/{_HELD} of the training data, drawn by the seed"
    words = {
        _LR: f"logistic regression, C of {', '.join(f'{c:g}' for c in _C_GRID)} chosen {tuned}",
        _MLP: f"{_HIDDEN} rectified linear units; l2, dropout and the end of training chosen by the cross-entropy "
        f"{held}; mean over the seeds {', '.join(map(str, mlp_seeds))}",
    }
    test = folds if ALL in splits else "trained on train, tested on test"
    return {"test": test, "moments": "of the training examples", **{name: words[name] for name in classifiers}}


def _predict_lr(
    rows: numpy.ndarray, labels: numpy.ndarray, fold: _Fold, *, compare: bool
) -> tuple[numpy.ndarray, float, Any]:
    """Fit logistic regression; return the labels predicted, str (tests,), the mean accuracy in tuning, and C.

    C is from 2^-2 to 2^3, the smallest of those with the highest accuracy; 8 with more than 100 classes, where each fit
    takes minutes. compare: whether the accuracy is needed even if there is no C to choose.
    """
    linear_model = sklearn_module("sklearn.linear_model", "Logistic regression")
    grid = _C_GRID if len(set(labels[fold.train])) <= _MANY else (_C_MANY,)

    def fit(c: float, at: numpy.ndarray) -> Any:  # noqa: ANN401 (LogisticRegression, which is not imported here)
        model = linear_model.LogisticRegression(max_iter=1000, C=c, tol=_tolerance(rows[at], labels[at]))
        with warnings.catch_warnings():  # of too few steps: their number is part of the protocol
            warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
            return model.fit(rows[at], labels[at])

    accuracies = numpy.zeros(len(grid))
    if len(grid) > 1 or compare:
        # never from the solution of another C: the solver would stop near it, and prefer another C than scikit-learn
        each = [[fit(c, train).score(rows[dev], labels[dev]) for train, dev in fold.tuning] for c in grid]
        accuracies = numpy.mean(each, axis=1)
    best = int(accuracies.argmax())
    return fit(grid[best], fold.train).predict(rows[fold.test]), float(accuracies[best]), grid[best]


def _tolerance(rows: numpy.ndarray, labels: numpy.ndarray) -> float:
    """Return the largest gradient of a weight at which logistic regression may stop.

    scikit-learn's 1e-4 is of the mean loss, whose gradient is below it from the start if classes are many or numbers
    small: it would stop before its first step, and predict one class for all. So, with K labels,

    min(1e-4, 0.01 max_kj |1/n sum_i (1/K - [y_i = k]) x_ij|)
    """
    names, classes = numpy.unique(labels, return_inverse=True)
    sums = numpy.zeros((len(names), rows.shape[1]))
    numpy.add.at(sums, classes, rows)
    first = numpy.abs(sums.sum(axis=0) / len(names) - sums).max() / len(rows)  # at weights of zero
    return float(min(_TOLERANCE, _FALLEN * first))


def _predict_mlp(
    rows: numpy.ndarray, labels: numpy.ndarray, fold: _Fold, seed: int
) -> tuple[numpy.ndarray, float, Any]:
    """Fit an MLP; return the labels predicted, str (tests,), the accuracy in tuning, and the settings that were chosen.

    It is tuned on dev, or on a stratified 5 % of the training data, more if these would not hold each class.
    """
    names, counts = numpy.unique(labels[fold.train], return_counts=True)
    classes = numpy.where(numpy.isin(labels, names), numpy.searchsorted(names, labels), -1)  # -1 is never right
    if len(fold.tuning) == 1:
        fit, held = fold.tuning[0]
    else:
        fit, held = _stratified(fold.train, labels, min(_HELD, *counts.tolist()), seed)[0]
    best = _fit_mlp((rows[fit], classes[fit]), (rows[held], classes[held]), len(names), seed)
    accuracy = float((best.predict(rows[held]) == classes[held]).mean())
    return names[best.predict(rows[fold.test])], accuracy, {**best.setting._asdict(), "passes": best.passes}


_HIDDEN = 50
_BATCH = 64
_PASSES = 4  # over the training data between two looks at the others
_PATIENCE = 5  # looks without a lower cross-entropy after which one more ends the training
_MAX_PASSES = 200
_Parameters = tuple[torch.Tensor, ...]  # weights and biases of two layers


class _Setting(NamedTuple):
    """The settings that are tuned. l2: times a weight, is added to its gradient. dropout: of hidden units."""

    l2: float
    dropout: float


_GRID = tuple(_Setting(*values) for values in product((1e-4, 1e-3), (0.0, 0.5)))


class _FittedMLP(NamedTuple):
    """A network: its setting, the passes over the training data, and the cross-entropy in tuning, in nats."""

    setting: _Setting
    passes: int
    loss: float
    parameters: _Parameters

    def predict(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Return the most likely classes, int64 (n,); rows (float32 (n, features))."""
        return _forward(self.parameters, torch.from_numpy(rows))[0].argmax(1).numpy()


def _fit_mlp(
    train: tuple[numpy.ndarray, numpy.ndarray],
    held: tuple[numpy.ndarray, numpy.ndarray],
    classes: int,
    seed: int,
    grid: Sequence[_Setting] = _GRID,
) -> _FittedMLP:
    """Train a perceptron for each setting, all at once, stop each early, and return the best.

    softmax(W_2 relu(W_1 x + b_1) + b_2), 50 hidden units; cross-entropy with Adam, rate 0.001, in batches of 64. After
    every fourth pass the mean cross-entropy of the held-out examples is taken; a network is as it was when that was
    lowest, and is left alone once it has not become lower six times, or after 200 passes. The setting is that of the
    lowest, too. Networks share batches, nothing else. Accuracy on a few hundred examples would move by chance.

    train, held (float32 (n, features), int (n,)): features and classes from 0: to fit to, and to stop and choose by.
        Of held, -1 is a class that train has not: no network predicts it, and none is chosen by it.
    classes (int): how many there are. seed (int): of weights, batches and dropout.
    RAISES (ValueError): if no loss of the held-out examples is a number.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3; its MLP, of which batches, passes and patience are taken.
        There hidden units are sigmoid, dropout comes before them and is not tuned, l2 goes from 1e-5 to 1e-2, and the
        accuracy stops and chooses.
    """
    generator, drops = (torch.Generator("cpu").manual_seed(seed) for _ in range(2))  # batches are those of any grid
    (x, y), (held_x, held_y) = ((torch.from_numpy(rows), torch.from_numpy(at).long()) for rows, at in (train, held))
    parameters = _drawn(len(grid), x.shape[1], classes, generator)
    kept = tuple(each.detach().clone() for each in parameters)
    l2, dropout = (torch.tensor(each, device="cpu").reshape(-1, 1, 1) for each in zip(*grid, strict=True))
    optimizer = torch.optim.Adam(parameters, fused=True)  # works number by number: networks do not touch
    best, at, failures = [inf] * len(grid), [0] * len(grid), [0] * len(grid)
    for done in range(_PASSES, _MAX_PASSES + _PASSES, _PASSES):
        permutations = (torch.randperm(len(x), generator=generator, device="cpu") for _ in range(_PASSES))
        for batch in (batch for permutation in permutations for batch in permutation.split(_BATCH)):
            scores = _forward(parameters, x[batch], dropout, drops)  # (networks, batch, classes)
            total = functional.cross_entropy(scores.flatten(0, 1), y[batch].repeat(len(grid)), reduction="sum")
            optimizer.zero_grad()
            (total / len(batch)).backward()
            for each in parameters:
                each.grad.addcmul_(l2, each.detach())  # type: ignore[union-attr]
            optimizer.step()
        for number, loss in enumerate(_losses(parameters, held_x, held_y)):
            if failures[number] <= _PATIENCE and loss < best[number]:
                best[number], at[number] = loss, done
                for copy, each in zip(kept, parameters, strict=True):
                    copy[number] = each[number].detach()
            else:
                failures[number] += 1
        if min(failures) > _PATIENCE:
            break
    chosen = min(range(len(grid)), key=best.__getitem__)
    if best[chosen] == inf:
        raise ValueError(
            f"The perceptron has no finite cross-entropy on {len(held_y)} held-out examples, of which "
            f"{int((held_y >= 0).sum())} have a class of the training data. Check the labels and the vectors."
        )
    return _FittedMLP(grid[chosen], at[chosen], best[chosen], tuple(each[chosen : chosen + 1] for each in kept))


def _losses(parameters: _Parameters, x: torch.Tensor, classes: torch.Tensor) -> list[float]:
    """Return the mean cross-entropy of each network over the examples whose class is known, NaN if there are none."""
    known = classes >= 0
    scores = _forward(parameters, x[known]).double()
    return [float(functional.cross_entropy(each, classes[known])) for each in scores]


def _drawn(networks: int, features: int, classes: int, generator: torch.Generator) -> _Parameters:
    """Draw uniformly within 1 / sqrt(inputs of the layer), as PyTorch's linear layers begin."""
    shapes = (features, _HIDDEN), (1, _HIDDEN), (_HIDDEN, classes), (1, classes)
    drawn = [torch.rand(networks, *shape, generator=generator, device="cpu") * 2 - 1 for shape in shapes]
    inputs = features, features, _HIDDEN, _HIDDEN
    return tuple((each * n**-0.5).requires_grad_() for each, n in zip(drawn, inputs, strict=True))


def _forward(
    parameters: _Parameters,
    x: torch.Tensor,
    dropout: torch.Tensor | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Compute float (n, features) -> float (networks, n, classes); without a graph if nothing is dropped out."""
    weights, biases, out_weights, out_biases = parameters
    with torch.set_grad_enabled(dropout is not None):
        hidden = (x @ weights + biases).relu()  # (networks, n, hidden)
        if dropout is not None:
            stays = torch.rand(hidden.shape, generator=generator, device="cpu") >= dropout
            hidden = hidden * stays / (1 - dropout)
        return hidden @ out_weights + out_biases
