"""Packages that no extra installs, or where they are missing, what the pages call of them."""

import json
import sys
from abc import ABC, abstractmethod
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


class Embeddings(ABC):
    """As in langchain_core.embeddings."""

    @abstractmethod
    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...

    @abstractmethod
    def embed_query(self, text: str) -> list[float]: ...


class OpenAI:
    """Asks for embeddings, and no more."""

    def __init__(self, base_url: str, api_key: str, http_client: Any):
        self.address = f"{base_url}/embeddings"
        self.http_client = http_client
        self.embeddings = SimpleNamespace(create=self.create)

    def create(self, **body: Any) -> Any:
        answer = self.http_client.post(self.address, json=body)
        answer.raise_for_status()
        return json.loads(answer.text, object_hook=lambda fields: SimpleNamespace(**fields))


def stand_in_for_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, face in (("keybert", KeyBERT), ("bertopic", BERTopic)):
        if find_spec(name) is None:
            backend = SimpleNamespace(BaseEmbedder=BaseEmbedder)
            monkeypatch.setitem(sys.modules, f"{name}.backend", backend)
            monkeypatch.setitem(
                sys.modules, name, SimpleNamespace(backend=backend, **{face.__name__: face})
            )
    if find_spec("langchain_core") is None:
        embeddings = SimpleNamespace(Embeddings=Embeddings)
        monkeypatch.setitem(sys.modules, "langchain_core.embeddings", embeddings)
        monkeypatch.setitem(sys.modules, "langchain_core", SimpleNamespace(embeddings=embeddings))
    if find_spec("openai") is None:
        monkeypatch.setitem(sys.modules, "openai", SimpleNamespace(OpenAI=OpenAI))
