"""The classifier of a SetFit folder: its coefficients from a JSON file, never its pickle."""

from pathlib import Path
from typing import NamedTuple

import numpy
from pydantic import BaseModel, Field
from scipy.special import expit, softmax

from ..errors import Errors
from ..files.checksum import file_digest
from ..models.folder_files import read_file, read_keys
from ..models.folder_keys import SETFIT_KEYS
from ..textcat.logistic_regression import of_both

_PICKLE = "model_head.pkl"
_FILES = ("config_setfit.json", _PICKLE, "model_head.json")
# With the lines that write the coefficients of scikit-learn's logistic regression
_REFUSED = """The classifier of the SetFit folder {folder} is a pickle, which can run any code: it \
is never loaded here. If you trust it, write its coefficients with these lines and import again; \
or import the encoder alone, with --encoder-only.

import hashlib, json, joblib, numpy
head = joblib.load({pickle!r})
numbers = {{"weights": head.coef_, "bias": head.intercept_, "classes": head.classes_}}
numbers["probabilities"] = head.predict_proba(numpy.eye(head.coef_.shape[1]))
numbers = {{name: array.tolist() for name, array in numbers.items()}}
numbers["sha256"] = hashlib.sha256(open({pickle!r}, "rb").read()).hexdigest()
json.dump(numbers, open({file!r}, "w"))
"""
_ROWS = "a list of lists of numbers"


class _Coefficients(BaseModel):
    weights: list[list[float]] = Field(description=_ROWS)
    bias: list[float] = Field(description="a list of numbers")
    classes: list[str | int] = Field(description="a list of strings, or of whole numbers")
    # Of the unit vectors, by the classifier itself
    probabilities: list[list[float]] = Field(description=_ROWS)
    sha256: str = Field(description=f"the SHA-256 of {_PICKLE}")


class SetFitHead(NamedTuple):
    """The classifier of a SetFit folder.

    labels: in the order of the rows of weights, float64 (labels, width), and bias, float64
        (labels,).
    multi_label: whether each label has a sigmoid of its own, in place of a softmax over all.
    normalize: whether vectors are brought to unit length for it.
    """

    labels: list[str]
    weights: numpy.ndarray
    bias: numpy.ndarray
    multi_label: bool
    normalize: bool


def read_setfit(folder: Path) -> SetFitHead | None:
    """Read the classifier of a SetFit folder; None if it is no such folder.

    model_head.json has its weights, bias and classes, and the probabilities that it gives the unit
    vectors: they show the formula, softmax or sigmoid, and that the numbers are right.

    RAISES (ValueError): if there is no such file, it is damaged, or of another model_head.pkl than
        lies beside it, or the classifier has another formula.
    """
    config, pickle, file = (folder / name for name in _FILES)
    if not (config.exists() or pickle.exists() or file.exists()):
        return None
    settings = read_keys(config, SETFIT_KEYS)
    if not file.exists():
        raise ValueError(_REFUSED.format(folder=folder, pickle=str(pickle), file=str(file)))
    head = read_file(file, _Coefficients)
    try:
        if pickle.exists() and file_digest(pickle) != head.sha256:
            raise ValueError(f"it was written of another {_PICKLE} than lies beside it")
        weights, bias, multi_label = _checked(head)
    except ValueError as error:
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=error)) from error
    # Classes are numbers of labels, or labels
    names: dict[str | int, str] = dict(enumerate(settings.labels or ()))
    labels = [names.get(label, str(label)) for label in head.classes]
    return SetFitHead(labels, weights, bias, multi_label, bool(settings.normalize_embeddings))


def _checked(head: _Coefficients) -> tuple[numpy.ndarray, numpy.ndarray, bool]:
    """Return weights and bias, and whether the probabilities are their sigmoid."""
    weights = numpy.array(head.weights)
    bias = numpy.array(head.bias)
    if len(weights) == 1 and len(head.classes) == 2:
        weights = of_both(weights)
        bias = of_both(bias)
    logits = weights.T + bias
    probabilities = numpy.array(head.probabilities)
    for multi_label, expected in ((False, softmax(logits, axis=-1)), (True, expit(logits))):
        if numpy.allclose(probabilities, expected, rtol=0, atol=1e-6):
            return weights, bias, multi_label
    raise ValueError("its probabilities are neither the softmax nor the sigmoid of W x + b")
