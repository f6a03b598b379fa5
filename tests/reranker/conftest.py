"""Random tiny sequence classifiers, made on the spot."""

from collections.abc import Callable
from pathlib import Path

import pytest
import spacy
import torch
from spacy.language import Language
from transformers import (
    AutoConfig,
    AutoTokenizer,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    DistilBertTokenizerFast,
)


@pytest.fixture(scope="session")
def make_classifier(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The folder of a random classifier with the vocabulary of tiny_bert: at most 24 wordpieces, no dropout."""

    def make(n_outputs: int = 1, kind: str = "bert", **config: object) -> Path:
        folder = tmp_path_factory.mktemp("classifier") / kind
        tokenizer = DistilBertTokenizerFast if kind == "distilbert" else AutoTokenizer
        tokenizer.from_pretrained(tiny_bert).save_pretrained(folder)
        base = AutoConfig.from_pretrained(tiny_bert, num_labels=n_outputs, initializer_range=0.3, **config)
        with torch.random.fork_rng():
            torch.manual_seed(n_outputs)
            if kind == "distilbert":
                sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 24}
                settings = DistilBertConfig(
                    vocab_size=base.vocab_size, initializer_range=0.3, num_labels=n_outputs, **sizes
                )
                DistilBertForSequenceClassification(settings).save_pretrained(folder)
            else:
                BertForSequenceClassification(base).save_pretrained(folder)
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
        nlp = spacy.blank("en")
        model = {"name": str(name or tiny_classifier), **config.pop("model", {})}  # type: ignore[dict-item]
        nlp.add_pipe("sbert_reranker", config={"model": model, **config})
        return nlp

    return make


@pytest.fixture(scope="session")
def nli_classifier(make_classifier: Callable[..., Path]) -> Path:
    """One of three labels, which are not in the order of the alphabet."""
    names = ["entailment", "neutral", "contradiction"]
    return make_classifier(3, id2label=dict(enumerate(names)), label2id={name: i for i, name in enumerate(names)})
