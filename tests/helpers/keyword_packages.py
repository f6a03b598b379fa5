"""KeyBERT and BERTopic, or where they are not installed, what takes an embedder as they do."""

import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy
import pytest


class BaseEmbedder:
    """As in keybert.backend and bertopic.backend."""

    def __init__(self, embedding_model: Any):
        self.embedding_model = embedding_model


class KeyBERT:
    """Ranks the words of a text by the cosine of their vectors and that of the text."""

    def __init__(self, model: BaseEmbedder):
        assert isinstance(model, BaseEmbedder)
        self.model = model

    def extract_keywords(self, docs: str, top_n: int, **settings: Any) -> list[tuple[str, float]]:
        words = numpy.array(sorted(set(docs.lower().replace(".", "").split())), dtype=object)
        doc = self.model.embed([docs])
        vectors = self.model.embed(words)
        scores = (vectors @ doc[0]) / numpy.linalg.norm(vectors, axis=1) / numpy.linalg.norm(doc)
        return [(str(words[i]), float(scores[i])) for i in (-scores).argsort()[:top_n]]


class BERTopic:
    """Two topics, by the sign of the first principal component."""

    def __init__(self, embedding_model: BaseEmbedder, **settings: Any):
        assert isinstance(embedding_model, BaseEmbedder)

    def fit_transform(
        self, documents: list[str], embeddings: numpy.ndarray
    ) -> tuple[list[int], None]:
        first = numpy.linalg.svd(embeddings - embeddings.mean(axis=0), full_matrices=False)[0][:, 0]
        return (first > 0).astype(int).tolist(), None


def stand_in_for_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, face in (("keybert", KeyBERT), ("bertopic", BERTopic)):
        if find_spec(name) is None:
            backend = SimpleNamespace(BaseEmbedder=BaseEmbedder)
            monkeypatch.setitem(sys.modules, f"{name}.backend", backend)
            monkeypatch.setitem(
                sys.modules, name, SimpleNamespace(backend=backend, **{face.__name__: face})
            )
