"""Pipelines to test: on a random tiny BERT made on the spot, and on the real model that the test
extra installs.
"""

import importlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

# No test needs the network
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import pytest
import spacy
import torch
from helpers.pipelines import (
    CNN,
    MAX_LENGTH,
    ROOT,
    SHARING,
    TOK2VEC_LISTENER,
    TOKENS,
    add_curated,
    blank,
    scored_pairs,
)
from helpers.wordpieces import BERT_TOKENS, LETTERS, anywhere
from spacy.language import Language
from spacy.training import Example
from thinc.api import fix_random_seed
from transformers import BertConfig, BertModel, BertTokenizerFast

from spacy_sbert.models.private_attributes import is_installed

# So that its failures show their values
pytest.register_assert_rewrite("helpers.loss_checks")

WORDS = [
    "a",
    "man",
    "is",
    "eating",
    "food",
    "someone",
    "having",
    "meal",
    "the",
    "cat",
    "sat",
    "on",
    "mat",
    "he",
    "can",
]
WORDS += ["##not", "go", "##ing", "dog", "ran", "fast"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--counts", help="a file for the counted cases of tests/reliability, as JSON")
    parser.addoption(
        "--minutes",
        type=float,
        help="skip and count the tests that have not begun after so many minutes",
    )
    parser.addoption(
        "--gpu-id", type=int, default=0, help="of tests/gpu; -1 tries them out on the CPU"
    )


BEGUN = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    minutes = item.config.getoption("--minutes")
    if minutes is not None and time.monotonic() - BEGUN > 60 * minutes:
        pytest.skip(f"not begun after {minutes:g} minutes")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of spacy-transformers, and skip what needs it where that is not installed."""
    for item in items:
        given = getattr(item, "callspec", None)
        if given is not None and any(map(_needs_package, given.params.values())):
            item.add_marker("spacy_transformers")
        if item.get_closest_marker("spacy_transformers") and not is_installed():
            item.add_marker(pytest.mark.skip(reason="spacy-transformers is not installed"))


def _needs_package(given: object) -> bool:
    """Whether a case is of spacy-transformers: "spacy-transformers", with ", and a setting", or in
    a dict.
    """
    names = given.values() if isinstance(given, dict) else [given]
    return any(
        isinstance(name, str) and name.partition(",")[0] == "spacy-transformers" for name in names
    )


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random BERT: 2 layers, width 16, at most 24 wordpieces, no dropout."""
    folder = tmp_path_factory.mktemp("tiny") / "bert"
    folder.mkdir()
    vocab = [*BERT_TOKENS, *anywhere(LETTERS), *".,'"]
    vocab += [word for word in WORDS if word not in vocab] + ["cannot"]
    (folder / "vocab.txt").write_text("\n".join(vocab), encoding="utf8")
    BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=MAX_LENGTH).save_pretrained(
        folder
    )
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    sizes |= {"vocab_size": len(vocab), "max_position_embeddings": MAX_LENGTH}
    config = BertConfig(initializer_range=0.5, **sizes, **no_dropout)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def other_bert(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny BERT with other weights."""
    folder = shutil.copytree(tiny_bert, tmp_path_factory.mktemp("other") / "bert")
    model = BertModel.from_pretrained(folder)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.3 * torch.sin(torch.arange(weight.numel(), dtype=torch.float32)).view_as(
                weight
            )
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def narrow_bert(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another BERT, width 8."""
    folder = tmp_path_factory.mktemp("narrow")
    BertModel(
        BertConfig.from_pretrained(tiny_bert, hidden_size=8, intermediate_size=16)
    ).save_pretrained(folder)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny_bert / name, folder)
    return folder


@pytest.fixture(scope="session")
def make_nlp(tiny_bert: Path) -> Callable[..., Language]:
    """Build a pipeline: an encoder of its own, or one that shares the pipeline's transformer."""

    def make(
        encoder: str = "own",
        name: Any = None,
        unit: str = "doc",
        transformer: Any = None,
        lang: str = "xx",
        **config: Any,
    ) -> Language:
        nlp = blank(lang)
        if unit != "doc":
            nlp.add_pipe("sentencizer")
        spans = {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": unit}
        source = {"name": str(name or tiny_bert), "get_spans": spans, **(transformer or {})}
        model = config.pop("model", {})
        if encoder in TOKENS:
            return add_token_encoder(nlp, encoder, {"get_spans": spans, **model}, config)
        if encoder == "own":
            model = {**source, **model}
        elif encoder == "static":
            table = {"name": str(name or tiny_bert), "width": 16, "get_spans": spans}
            model = {"@architectures": "spacy-sbert.StaticSentenceEncoder.v1", **table, **model}
        elif encoder == "curated":
            add_curated(nlp, name or tiny_bert)
            model = {
                "@architectures": "spacy-sbert.SharedSentenceEncoder.v1",
                "get_spans": spans,
                **model,
            }
        else:
            factory, architecture = SHARING[encoder]
            source.setdefault("@architectures", architecture)
            nlp.add_pipe(factory, name="transformer", config={"model": source})
            model = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1", **model}
        nlp.add_pipe("sbert", config={"model": model, **config})
        if encoder == "static":
            draw(nlp)
        return nlp

    return make


def add_token_encoder(
    nlp: Language, encoder: str, model: dict[str, Any], config: dict[str, Any]
) -> Language:
    """Add a small convolutional tok2vec and a sentence encoder over it, initialised, as they have
    no other weights.
    """
    tok2vec = CNN if encoder == "tokens" else TOK2VEC_LISTENER
    if encoder == "listening":
        nlp.add_pipe("tok2vec", config={"model": CNN})
    architecture = {"@architectures": "spacy-sbert.Tok2VecSentenceEncoder.v1", "tok2vec": tok2vec}
    nlp.add_pipe("sbert", config={"model": {**architecture, **model}, **config})
    draw(nlp)
    return nlp


def draw(nlp: Language) -> None:
    """Initialise a pipeline, with the same weights each time."""
    fix_random_seed(0)
    nlp.initialize()


@pytest.fixture(scope="session")
def minilm() -> Language:
    """The default pipeline, on the real model."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert")
    return nlp


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """To be called with a number of threads for PyTorch; afterwards it has as many as before."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def examples() -> Callable[[Language], list[Example]]:
    return scored_pairs


@pytest.fixture(scope="module")
def load_script() -> Iterator[Callable[[str], ModuleType]]:
    """Import a script by its name, with the root of the repository as the working directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        patch.chdir(ROOT)
        yield importlib.import_module


@pytest.fixture(scope="module")
def run_script(load_script: Callable[[str], ModuleType]) -> Callable[..., None]:
    """Run a script with arguments."""

    def run(name: str, *arguments: object) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
            load_script(name).main()

    return run
