"""A plugin of pytest that runs spacy-transformers' own tests on our TransformerModel.v1, with tiny
random models.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from helpers.wordpieces import BERT_TOKENS, LETTERS, anywhere
from tokenizers import pre_tokenizers

SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
SMALL_DISTILBERT = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
# By the names in the tests: the class, and its config
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "distilbert-base-uncased": ("DistilBertModel", SMALL_DISTILBERT),
    "hf-internal-testing/tiny-random-DistilBertModel": ("DistilBertModel", SMALL_DISTILBERT),
    "sgugger/tiny-distilbert-classification": (
        "DistilBertForSequenceClassification",
        SMALL_DISTILBERT,
    ),
    "bert-base-uncased": ("BertModel", SMALL),
    "roberta-base": ("RobertaModel", {**SMALL, "max_position_embeddings": 514}),
    "albert-base-v2": ("AlbertModel", {**SMALL, "embedding_size": 8}),
    "hf-internal-testing/tiny-xlm-roberta": (
        "XLMRobertaModel",
        {**SMALL, "max_position_embeddings": 514},
    ),
    "hf-internal-testing/tiny-random-gpt2": (
        "GPT2Model",
        {"n_embd": 16, "n_layer": 2, "n_head": 2},
    ),
    "hf-internal-testing/tiny-random-xlnet": (
        "XLNetModel",
        {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32},
    ),
}
BYTE_LEVEL = {"roberta-base": "Roberta", "hf-internal-testing/tiny-random-gpt2": "GPT2"}


def make_models(root: Path, kinds: str | tuple[str, ...] = "") -> None:
    """Put the models whose class begins with `kinds` into folders of their names: they are found
    before the hub.
    """
    for seed, (name, (kind, settings)) in enumerate(MODELS.items()):
        if not kind.startswith(kinds):
            continue
        folder = root / name
        folder.mkdir(parents=True)
        if name in BYTE_LEVEL:
            special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"]
            pieces = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet()), "\u0120t"]
            (folder / "vocab.json").write_text(
                json.dumps({piece: i for i, piece in enumerate(pieces)})
            )
            (folder / "merges.txt").write_text("#version: 0.2\n\u0120 t\n", encoding="utf8")
        else:
            pieces = [*BERT_TOKENS, *anywhere(LETTERS), *".,'"]
            (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf8")
        family = BYTE_LEVEL.get(name, "DistilBert" if kind.startswith("Distil") else "Bert")
        tokenizer = getattr(transformers, f"{family}TokenizerFast").from_pretrained(
            folder, model_max_length=512
        )
        tokenizer.save_pretrained(folder)
        model_class = getattr(transformers, kind)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            config = model_class.config_class(
                vocab_size=len(tokenizer), initializer_range=0.2, **settings
            )
            model_class(config).save_pretrained(folder)


def our_model(name: str, get_spans: Any, *args: Any, **kwargs: Any) -> Any:
    """What the class TransformerModel is called with, in all versions of the architecture."""
    from spacy_transformers.layers._util import replace_listener_cfg

    from spacy_sbert.architectures import transformer_model

    settings = ("tokenizer_config", "transformer_config", "mixed_precision", "grad_scaler_config")
    model = transformer_model(name, get_spans, **dict(zip(settings, args, strict=False)), **kwargs)
    model.attrs["replace_listener_cfg"] = (
        # The tests look for the stock names in the config
        replace_listener_cfg
    )
    return model


def pytest_configure(config: pytest.Config) -> None:
    from spacy_transformers import architectures

    architectures.TransformerModel = our_model


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        module = getattr(item, "module", None)
        # Which makes the model itself
        if module.__name__.endswith("test_model_wrapper"):
            module.TransformerModel = our_model
