"""The methods of meta-embedding by their names in a config."""

import inspect
from collections.abc import Callable

import numpy
import srsly

from ..errors import DivergedError, Errors
from ..files.checksum import verify_checksum
from .autoencoder import CrossViewAutoencoder
from .estimator import Average, Concatenation, MetaEmbedding
from .linear import GCCA, SVD

_ESTIMATORS: list[type[MetaEmbedding]] = [Concatenation, Average, SVD, GCCA, CrossViewAutoencoder]
METHODS = {estimator.method: estimator for estimator in _ESTIMATORS}


def make_estimator(method: str, **settings: object) -> MetaEmbedding:
    """Make a meta-embedding that is not fitted.

    method (str): one of METHODS. settings: arguments of its class.
    RAISES (ValueError): for an unknown method, or a setting that the method does not have.

    Example:
        make_estimator("gcca", size=256, tau=0.1)

    """
    if method not in METHODS:
        raise ValueError(
            f"Unknown method '{method}' of meta-embedding: expected one of {', '.join(METHODS)}."
        )
    kind: Callable[..., MetaEmbedding] = METHODS[method]
    known = inspect.signature(kind).parameters
    if unknown := sorted(settings.keys() - known.keys()):
        raise ValueError(
            f"The method '{method}' has no setting {', '.join(unknown)}: expected some of "
            f"{', '.join(known)}."
        )
    return kind(**settings)


def estimator_from_bytes(data: bytes) -> MetaEmbedding:
    """Load an estimator from the bytes of its `to_bytes`.

    A saved pipe has them in the file `estimator`.

    RAISES (ValueError): if the bytes are damaged, or those of something else.
    """
    state = srsly.msgpack_loads(verify_checksum(data))
    if not (isinstance(state, dict) and "method" in state):
        raise ValueError("These bytes are not a saved meta-embedding. Save it again.")
    estimator = make_estimator(state["method"], **state["settings"])
    estimator.names_ = tuple(state["names"])
    estimator.widths_ = tuple(state["widths"])
    estimator.size_ = state["size"]
    # Older pipelines have none
    estimator.made_of_ = state.get("made_of", {})
    if estimator.widths_:
        arrays = {name: numpy.array(array) for name, array in state["arrays"].items()}
        for name, array in arrays.items():
            if not numpy.isfinite(array).all():
                raise DivergedError(Errors.DIVERGED_WEIGHTS.format(reason=f"{name} is not finite"))
        estimator.set_arrays(arrays)
    return estimator
