"""A similarity learned by a support vector machine."""

from collections.abc import Callable
from itertools import product

import numpy

from .classifiers import sklearn_module

FOLDS = 3  # of the training data, to choose the settings
PENALTIES = (0.1, 1.0, 10.0)  # C
WIDTHS = (0.3, 1.0)  # gamma times the number of features
Part = tuple[numpy.ndarray, numpy.ndarray]  # features (n, 2 width) and gold scores (n,)
Predict = Callable[[numpy.ndarray], numpy.ndarray]


def fit_support_vectors(train: Part, seed: int) -> Predict:
    """Fit a support vector regressor with the radial kernel exp(-gamma |x - y|^2) to graded pairs.

    Features and gold scores are brought to mean 0 and deviation 1 by those of train. C is one of 0.1, 1 and 10, and
    gamma 0.3 or 1 over the number of features, by the least mean squared error in three folds of train; epsilon is 0.1.

    train (Part): what it is fitted to. seed (int): of the folds.
    RETURNS (Callable): features, float (m, 2 width), to similarities on the scale of the gold scores, float (m,).
    RAISES (ImportError): without scikit-learn.
    SOURCE: Misra et al. 2016, Measuring the Similarity of Sentential Arguments in Dialogue, section 4, with features of
        its own of the pairs.
    """
    selection = sklearn_module("sklearn.model_selection", "A learned similarity")
    from sklearn.metrics.pairwise import euclidean_distances
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    features, gold = train
    scaler = StandardScaler().fit(features)
    x, middle, spread = scaler.transform(features), gold.mean(), gold.std() or 1.0
    y = (gold - middle) / spread
    distances = euclidean_distances(x, squared=True) / x.shape[1]  # once for all settings and folds

    def fit(setting: tuple[float, float], at: numpy.ndarray) -> SVR:
        c, width = setting
        return SVR(kernel="precomputed", C=c).fit(numpy.exp(-width * distances[numpy.ix_(at, at)]), y[at])

    def error(setting: tuple[float, float], at: numpy.ndarray, held: numpy.ndarray) -> float:
        kernel = numpy.exp(-setting[1] * distances[numpy.ix_(held, at)])
        return float(((fit(setting, at).predict(kernel) - y[held]) ** 2).mean())

    folds = list(selection.KFold(FOLDS, shuffle=True, random_state=seed).split(x))
    grid = list(product(PENALTIES, WIDTHS))
    best = min(grid, key=lambda setting: sum(error(setting, *fold) for fold in folds))
    model = fit(best, numpy.arange(len(x)))

    def predict(given: numpy.ndarray) -> numpy.ndarray:
        between = euclidean_distances(scaler.transform(given), x, squared=True) / x.shape[1]
        return middle + spread * model.predict(numpy.exp(-best[1] * between))

    return predict
