"""A cache of the Hugging Face hub, made on the spot: tiny random models under the names that others download."""

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import pre_tokenizers

REVISION = "0" * 40
LETTERS = [chr(c) for c in range(ord("a"), ord("z") + 1)]
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
SMALL_DISTILBERT = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {  # what spacy-transformers' tests name: the class, and its config
    "distilbert-base-uncased": ("DistilBertModel", SMALL_DISTILBERT),
    "hf-internal-testing/tiny-random-DistilBertModel": ("DistilBertModel", SMALL_DISTILBERT),
    "sgugger/tiny-distilbert-classification": ("DistilBertForSequenceClassification", SMALL_DISTILBERT),
    "bert-base-uncased": ("BertModel", SMALL),
    "roberta-base": ("RobertaModel", {**SMALL, "max_position_embeddings": 514}),
    "albert-base-v2": ("AlbertModel", {**SMALL, "embedding_size": 8}),
    "hf-internal-testing/tiny-xlm-roberta": ("XLMRobertaModel", {**SMALL, "max_position_embeddings": 514}),
    "hf-internal-testing/tiny-random-gpt2": ("GPT2Model", {"n_embd": 16, "n_layer": 2, "n_head": 2}),
    "hf-internal-testing/tiny-random-xlnet": ("XLNetModel", {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}),
}
BYTE_LEVEL = {"roberta-base": "Roberta", "hf-internal-testing/tiny-random-gpt2": "GPT2"}


def make_hub_cache(hub: Path) -> None:
    """Put every model into a cache, for HF_HUB_CACHE."""
    for seed, (name, (kind, settings)) in enumerate(MODELS.items()):
        repository = hub / f"models--{name.replace('/', '--')}"
        folder = repository / "snapshots" / REVISION
        folder.mkdir(parents=True)
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text(REVISION, encoding="utf8")
        tokenizer = _byte_level(folder, BYTE_LEVEL[name]) if name in BYTE_LEVEL else _wordpieces(folder, kind)
        model_class = getattr(transformers, kind)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            config = model_class.config_class(vocab_size=len(tokenizer), initializer_range=0.2, **settings)
            model_class(config).save_pretrained(folder)


def _wordpieces(folder: Path, kind: str) -> Any:
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{c}" for c in LETTERS), ".", ",", "'"]
    (folder / "vocab.txt").write_text("\n".join(vocab), encoding="utf8")
    is_distilbert = kind.startswith("Distil")  # has no token types
    tokenizer_class = transformers.DistilBertTokenizerFast if is_distilbert else transformers.BertTokenizerFast
    tokenizer = tokenizer_class(str(folder / "vocab.txt"), model_max_length=512)
    tokenizer.save_pretrained(folder)
    return tokenizer


def _byte_level(folder: Path, kind: str) -> Any:
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"]
    characters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {piece: i for i, piece in enumerate([*special, *characters, "\u0120t"])}
    (folder / "vocab.json").write_text(json.dumps(vocab), encoding="utf8")
    (folder / "merges.txt").write_text("#version: 0.2\n\u0120 t\n", encoding="utf8")
    tokenizer_class = getattr(transformers, f"{kind}TokenizerFast")
    files = {"vocab_file": str(folder / "vocab.json"), "merges_file": str(folder / "merges.txt")}
    tokenizer = tokenizer_class(**files, model_max_length=512)
    tokenizer.save_pretrained(folder)
    return tokenizer
