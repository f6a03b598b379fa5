"""Sentence vectors as a step of a scikit-learn pipeline."""

import os
from collections.abc import Iterable
from typing import Any, Self

import numpy

from .bulk.loading import load_pipe
from .errors import import_extra
from .pipeline.sbert import SentenceBert
from .validation import NOT_SEVERAL, Text

_base: Any = import_extra("sklearn.base", "SentenceVectors needs scikit-learn", "evaluation")


class SentenceVectors(_base.TransformerMixin, _base.BaseEstimator):
    """Encode a column of texts.

    It learns nothing from them: fitted or not, it gives the same vectors.

    A pickle holds the name of the encoder, not its weights. One that was fitted refuses another
    encoder of that name.

    pipeline (str): the name of an encoder, an installed package, or the folder of a pipeline, see
        load_pipe.

    Example:
        model = make_pipeline(SentenceVectors("all-MiniLM-L6-v2"), LogisticRegression())
        model.fit(texts, labels).predict(["A man eats."])

    """

    def __init__(self, pipeline: str = "all-MiniLM-L6-v2") -> None:
        self.pipeline = pipeline

    def fit(self, X: object, y: object = None) -> Self:
        """Load the encoder, and note which one it is.

        RAISES (OSError, ValueError): if it is not found, or damaged.
        """
        _check_is_column(X)
        self.__dict__.pop("encoder_", None)
        # Its folder may have been written since
        self.__dict__.pop("_loaded", None)
        self.encoder_ = self.sbert.fingerprint()
        return self

    def transform(self, X: Iterable[Text]) -> numpy.ndarray:
        """Return the vectors of n texts.

        X (Iterable): n str, Docs or Spans; a column of a table, an array (n,) or (n, 1), or a table
            of one column.
        RETURNS (float32 (n, width)): in the order of the texts.
        RAISES (TypeError, ValueError): if X is a single text, an item is no text, or the encoder
            has changed since fit.
        """
        _check_is_column(X)
        return self.sbert.encode(X)

    def get_feature_names_out(self, input_features: object = None) -> numpy.ndarray:
        """Return the names of the columns, v0, v1 and so on, whatever the names of the input."""
        return numpy.array([f"v{column}" for column in range(self.sbert.width)], dtype=object)

    @property
    def sbert(self) -> SentenceBert:
        """The pipe that encodes, loaded when it is first needed.

        RAISES (ValueError): if it has changed since fit.
        """
        name, pipe = self.__dict__.get("_loaded", (None, None))
        if name != self.pipeline:
            pipe = self._load()
            fitted = getattr(self, "encoder_", None)
            if fitted is not None and pipe.fingerprint() != fitted:
                raise ValueError(
                    f"The encoder '{self.pipeline}' has changed since fit: it gives other vectors. "
                    "Fit this and what learned from the vectors again, or restore the encoder."
                )
            self._loaded = self.pipeline, pipe
        return pipe

    def _load(self) -> SentenceBert:
        """Load the encoder, unless this one or a clone has loaded the same files."""
        name = str(self.pipeline)
        written = _last_written(name)
        loaded = self._loaded_by_clones
        if name not in loaded or loaded[name][0] != written:
            loaded[name] = written, load_pipe(self.pipeline)
        return loaded[name][1]

    @property
    def _loaded_by_clones(self) -> dict[str, tuple[int, SentenceBert]]:
        """By name, when an encoder's files were written, and its pipe; clones share the dict."""
        return self.__dict__.setdefault("_shared", {})

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ("_loaded", "_shared")}

    def __sklearn_clone__(self) -> Self:
        clone = type(self)(**self.get_params(deep=False))
        # So cross-validation loads each encoder once, also if this one has loaded none yet
        clone.__dict__["_shared"] = self._loaded_by_clones
        return clone

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = []
        return tags


def _last_written(name: str) -> int:
    """Return when a file of the folder was last written, in ns; 0 if it is no folder."""
    if not os.path.isdir(name):
        return 0
    with os.scandir(name) as files:
        return max((file.stat().st_mtime_ns for file in files), default=0)


def _check_is_column(X: object) -> None:
    """Raise ValueError for a single text, in the words of scikit-learn's vectorizers."""
    if isinstance(X, NOT_SEVERAL):
        raise ValueError(
            f"Iterable over raw text documents expected, {type(X).__name__} object received. Put a "
            "single text into a list."
        )
