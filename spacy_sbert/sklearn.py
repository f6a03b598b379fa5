"""Sentence vectors as a step of a scikit-learn pipeline."""

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
        # Beside the parameters of scikit-learn: the name of the encoder, and its pipe
        loaded = self.__dict__.get("_loaded")
        if loaded is None or loaded[0] != self.pipeline:
            pipe = load_pipe(self.pipeline)
            fitted = getattr(self, "encoder_", None)
            if fitted is not None and pipe.fingerprint() != fitted:
                raise ValueError(
                    f"The encoder '{self.pipeline}' has changed since fit: it gives other vectors. "
                    "Fit this and what learned from the vectors again, or restore the encoder."
                )
            loaded = (self.pipeline, pipe)
            self._loaded = loaded
        return loaded[1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_loaded"}

    def __sklearn_clone__(self) -> Self:
        clone = type(self)(**self.get_params(deep=False))
        if "_loaded" in self.__dict__:
            # Cross-validation, which clones, loads the encoder once
            clone.__dict__["_loaded"] = self._loaded
        return clone

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = []
        return tags


def _check_is_column(X: object) -> None:
    """Raise ValueError for a single text, in the words of scikit-learn's vectorizers."""
    if isinstance(X, NOT_SEVERAL):
        raise ValueError(
            f"Iterable over raw text documents expected, {type(X).__name__} object received. Put a "
            "single text into a list."
        )
