"""The methods by the names that configs and the command line use, and the serialization of estimators."""

from collections.abc import Callable

import srsly

from ..errors import Errors
from ..files.serialization import add_checksum, verify_checksum
from .autoencoder import CrossViewAutoencoder
from .estimators import Average, Concatenation, MetaEmbedding
from .linear import GCCA, SVD

METHODS: dict[str, type[MetaEmbedding]] = {
    estimator.method: estimator for estimator in (Concatenation, Average, SVD, GCCA, CrossViewAutoencoder)
}


def make_estimator(method: str, **settings: object) -> MetaEmbedding:
    """Make a meta-embedding that is not fitted.

    method (str): one of METHODS. settings: arguments of its class.
    RAISES (ValueError): for an unknown method, or a setting that the method does not have.
    """
    if method not in METHODS:
        raise ValueError(f"Unknown method '{method}' of meta-embedding: expected one of {', '.join(METHODS)}.")
    kind: Callable[..., MetaEmbedding] = METHODS[method]
    known = kind().settings
    unknown = sorted(settings.keys() - known.keys())
    if unknown:
        expected = ", ".join(known)
        raise ValueError(f"The method '{method}' has no setting {', '.join(unknown)}: expected some of {expected}.")
    return kind(**settings)


def estimator_to_bytes(estimator: MetaEmbedding) -> bytes:
    """Return an estimator, its settings and what it learned, as MessagePack with a checksum."""
    state = {"method": estimator.method, "settings": estimator.settings, **estimator.state()}
    return add_checksum(srsly.msgpack_dumps(state))


def estimator_from_bytes(data: bytes) -> MetaEmbedding:
    """Load an estimator from the bytes of `estimator_to_bytes`, such as the file `estimator` of a saved pipe.

    RAISES (ValueError): if these are not such bytes, or arrays in them do not fit its settings.
    """
    state = verify_checksum(data)
    try:
        parts = srsly.msgpack_loads(state)
    except Exception as error:  # msgpack and NumPy raise many kinds
        raise ValueError(Errors.META_BAD_STATE.format(what="an estimator", given=error)) from error
    if not (isinstance(parts, dict) and isinstance(parts.get("settings"), dict)):
        raise ValueError(Errors.META_BAD_STATE.format(what="method, settings and state", given=type(parts).__name__))
    return make_estimator(parts.get("method", ""), **parts["settings"]).set_state(parts)
