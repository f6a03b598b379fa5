"""Random tiny sequence classifiers, made on the spot."""

from collections.abc import Callable
from pathlib import Path

import pytest
import spacy
import torch
from spacy.language import Language
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DistilBertConfig,
    DistilBertTokenizerFast,
)


@pytest.fixture(scope="session")
def make_classifier(
    tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """The folder of a random classifier with the vocabulary of tiny_bert: at most 24 wordpieces, no
    dropout.
    """

    def make(n_outputs: int = 1, kind: str = "bert", **settings: object) -> Path:
        folder = tmp_path_factory.mktemp("classifier") / kind
        settings |= {"num_labels": n_outputs, "initializer_range": 0.3}
        tokenizer = AutoTokenizer
        config = AutoConfig.from_pretrained(tiny_bert, **settings)
        if kind == "distilbert":
            sizes = {
                "dim": 16,
                "n_layers": 2,
                "n_heads": 2,
                "hidden_dim": 32,
                "max_position_embeddings": 24,
            }
            tokenizer = DistilBertTokenizerFast
            config = DistilBertConfig(vocab_size=config.vocab_size, **sizes, **settings)
        tokenizer.from_pretrained(tiny_bert).save_pretrained(folder)
        with torch.random.fork_rng():
            torch.manual_seed(n_outputs)
            AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def tiny_classifier(make_classifier: Callable[..., Path]) -> Path:
    """One of one output."""
    return make_classifier()


@pytest.fixture(scope="session")
def make_reranker(tiny_classifier: Path) -> Callable[..., Language]:
    """Build a pipeline of a reranker."""

    def make(name: object = None, **config: object) -> Language:
        nlp = spacy.blank("xx")
        model = {"name": str(name or tiny_classifier), **config.pop("model", {})}  # type: ignore[dict-item]
        nlp.add_pipe("sbert_reranker", config={"model": model, **config})
        return nlp

    return make


@pytest.fixture(scope="session")
def nli_classifier(make_classifier: Callable[..., Path]) -> Path:
    """One of three labels, which are not in the order of the alphabet."""
    names = ["entailment", "neutral", "contradiction"]
    return make_classifier(
        3, id2label=dict(enumerate(names)), label2id={name: i for i, name in enumerate(names)}
    )
