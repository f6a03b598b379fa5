"""Folders of tiny random encoders with tokenizers of several kinds, in the layout of
sentence-transformers.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from helpers.pipelines import change_json, write_modules
from helpers.wordpieces import BERT_TOKENS, LETTERS, ROBERTA_TOKENS, anywhere
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    AutoConfig,
    AutoModel,
    BertTokenizer,
    BertTokenizerFast,
    ByT5Tokenizer,
    PreTrainedTokenizerFast,
    RobertaTokenizerFast,
)

TEXTS = [
    "one two three four five six seven eight nine ten eleven twelve",
    "A MAN is eating naïve food.",
    "[CLS] a <s> cat [MASK] <mask> [SEP]",
    "  the dog\tran, not fast  ",
    "日本 cat",
    "a",
]
WORDS = " ".join(TEXTS[:2] * 3).lower().replace(".", " .").split()
_NAMED = dict(
    zip(
        ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), BERT_TOKENS, strict=True
    )
)
_NAMED_ROBERTA = dict(
    zip(
        ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token"),
        ROBERTA_TOKENS,
        strict=True,
    )
)


def _wordpieces(folder: Path) -> Path:
    capitals = [letter.upper() for letter in LETTERS]
    pieces = [
        *anywhere([*LETTERS, *capitals]),
        *".,ï日",
        "##ï",
        "##本",
        "本",
    ]
    vocab = [*BERT_TOKENS, *pieces, *dict.fromkeys(word for word in WORDS if len(word) > 1)]
    (folder / "vocab.txt").write_text("\n".join(vocab), encoding="utf8")
    return folder / "vocab.txt"


def wordpiece(folder: Path) -> Any:
    """Return a fast tokenizer of BERT."""
    return BertTokenizerFast(str(_wordpieces(folder)), model_max_length=64)


def slow_wordpiece(folder: Path) -> Any:
    """Return one that is written in Python, where Transformers has it."""
    return BertTokenizer(str(_wordpieces(folder)), model_max_length=64)


def _template(first: str, last: str, backend: Tokenizer) -> Any:
    tokens = [(token, backend.token_to_id(token)) for token in (first, last)]
    return processors.TemplateProcessing(
        f"{first} $A {last}", f"{first} $A {last} $B:1 {last}:1", tokens
    )


def byte_bpe(folder: Path) -> Any:
    """Return a tokenizer of byte-level BPE, as RoBERTa's."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer, backend.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=ROBERTA_TOKENS,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    backend.train_from_iterator(WORDS, trainer)
    backend.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=False
    )
    backend.save(str(folder / "tokenizer.json"))
    backend.model.save(str(folder))
    tokens = {**_NAMED_ROBERTA, "bos_token": "<s>", "eos_token": "</s>"}
    return RobertaTokenizerFast.from_pretrained(folder, model_max_length=64, **tokens)


def unigram(folder: Path) -> Any:
    """Return a tokenizer of a unigram language model with "▁" for spaces, as SentencePiece has
    it.
    """
    backend = Tokenizer(models.Unigram())
    backend.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=80, special_tokens=ROBERTA_TOKENS, unk_token="<unk>", show_progress=False
    )
    backend.train_from_iterator([" ".join(WORDS)], trainer)
    backend.post_processor = _template("<s>", "</s>", backend)
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=64, **_NAMED_ROBERTA)


def characters(folder: Path) -> Any:
    """Return a tokenizer of single characters."""
    pieces = [*BERT_TOKENS, *sorted({letter for text in TEXTS for letter in text})]
    backend = Tokenizer(
        models.WordLevel({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    backend.post_processor = _template("[CLS]", "[SEP]", backend)
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=64, **_NAMED)


def slow_bytes(folder: Path) -> Any:
    """Return a tokenizer of bytes that is written in Python in every version."""
    return ByT5Tokenizer(model_max_length=64)


KINDS: dict[str, Callable[[Path], Any]] = {
    "wordpiece": wordpiece,
    "slow wordpiece": slow_wordpiece,
    "byte-level BPE": byte_bpe,
    "unigram": unigram,
    "characters": characters,
    "slow bytes": slow_bytes,
}


def make_folder(
    folder: Path, kind: str, model: str = "bert", limit: int | None = 10, **config: Any
) -> Path:
    """Write a random encoder of width 16 with a tokenizer of a kind, mean pooling, and a limit of
    wordpieces.

    config: of the transformer; keys that are ... are left out.
    """
    folder.mkdir(parents=True)
    tokenizer = KINDS[kind](folder)
    tokenizer.save_pretrained(folder)
    shape = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
    }
    shape |= {"max_position_embeddings": 64, "vocab_size": 1 + max(tokenizer.get_vocab().values())}
    shape |= {"pad_token_id": tokenizer.pad_token_id, "initializer_range": 0.5}
    given = {key: value for key, value in {**shape, **config}.items() if value is not ...}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = AutoModel.from_config(AutoConfig.for_model(model, **given))
    network.save_pretrained(folder)
    write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"))
    change_json(
        folder / "1_Pooling" / "config.json",
        word_embedding_dimension=16,
        pooling_mode_mean_tokens=True,
    )
    if limit is not None:
        change_json(folder / "sentence_bert_config.json", max_seq_length=limit, do_lower_case=False)
    return folder
