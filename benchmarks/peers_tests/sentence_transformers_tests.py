"""Run sentence-transformers' own tests over this package, through adapters, and count what passes.

    python benchmarks/peers_tests/sentence_transformers_tests.py --tests FOLDER

FOLDER holds test files of sentence-transformers, such as tests/test_util.py of its repository. In
this process alone, its names stand for the adapters below. Every model of the hub is replaced by
one on this machine.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy
import pytest
import spacy
import torch
from sentence_transformers import util
from thinc.api import Ragged
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from spacy_sbert import SentenceBert, find_reranker, find_sbert
from spacy_sbert.models.pooling import SentencePooling
from spacy_sbert.models.poolings import POOLING
from spacy_sbert.models.resolve import resolve
from spacy_sbert.pipeline.scorer import threshold_scores
from spacy_sbert.search import communities, most_similar_pairs, nearest
from spacy_sbert.similarity import (
    as_array,
    cos_sim,
    euclidean,
    manhattan,
    pairwise_cos_sim,
    unit_length,
)

MODEL = "all-MiniLM-L6-v2"
CLASSIFIERS = {1: "cross-encoder", 3: "nli"}
# Tests whose outcome differs, each by a row of docs/migrating.md or because it tests what no
# function here does.
NAMED = {
    "*test_encode_token_embeddings*": "output_value: token vectors are those of Docs",
    "*test_encode_single_sentences*": "the sums and the width of a model that is replaced",
    "*test_encode_normalize*": "the sums and the width of a model that is replaced",
    "*test_pooling_cls_uses_cls_token_embeddings*": "cls is the first wordpiece",
    "*test_pooling_lasttoken_all_padding*": "no wordpieces: a vector of zeros",
    "*test_encode_tuple_sentences*": "a pair is not one text: a reranker reads pairs",
    "*test_encode_quantization*-int8*": "precision: Int8Vectors, BinaryVectors",
    "*test_encode_quantization*-uint8*": "precision: Int8Vectors, BinaryVectors",
    "*test_encode_quantization*-binary*": "precision: Int8Vectors, BinaryVectors",
    "*test_encode_quantization*-ubinary*": "precision: Int8Vectors, BinaryVectors",
    "*test_encode_quantization*error*": "precision: another message",
    "*test_encode_quantization?None-*": "precision: None is no value, leave it out",
    "*test_encode_quantization*False-False?": "a tensor instead of a list of tensors",
    "*test_encode_truncate?None-*": "output_value: token vectors are those of Docs",
    "*test_encode_truncate*-False-False-*": "a tensor instead of a list of tensors",
    "*test_encode_truncate*": "truncate_dim: refused where it is wider than the vectors",
    "*test_prompts*": "both prompt and prompt_name: refused; another message for unknown names",
    "*test_prompt_output_value_None*": "output_value: token vectors are those of Docs",
    "*test_empty_encode*": "no texts: shape (0, width)",
    "*test_similarity_score?*": "similarity_fn_name: similarity is the cosine",
    "*test_similarity_score_save*": "similarity_fn_name: similarity is the cosine",
    "*test_empty_predict?False-False?": "a tensor instead of a list of tensors",
    "*test_predict_output_types?False-False?": "a tensor instead of a list of tensors",
    "*test_rank_multiple_labels*": "several outputs: another message",
    "*_sparse*": "sparse tensors: refused, make them dense",
    "*finite_gradients*": "gradients: similarities are arrays of NumPy",
    "*euclidean_sim_integer_inputs*": "whole numbers: their distances are float64",
    "*test_semantic_search_input_formats*-single_*": "a single query: an array of one row",
    "*test_semantic_search_empty_corpus*": "no vectors: refused",
    "*test_community_detection_min_community_size_larger_than_input?embeddings[123]?": "refused",
}
# Of loading, saving, cards, hubs, adapters, images and training: nothing stands for these classes
# here.
NO_COUNTERPART = (
    *(
        "*safetensors*",
        "*test_to",
        "test_torch_dtype*",
        "*load_with_torch_dtype*",
        "*push_to_hub*",
        "*safe_serialization*",
        "*revision*",
        "*_clip*",
    ),
    *(
        "*without_normalize_directory*",
        "*save_load_prompts*",
        "*prompt_length_calculation*",
        "*model_kwargs*",
    ),
    *(
        "*adapter*",
        "*peft*",
        "*fp16*",
        "*model_card*",
        "*config_versions*",
        "*hard_negatives*",
        "*dropout*",
    ),
    *(
        "*bfloat16*",
        "*test_device*",
        "*_device_*",
        "*pretrained_stsb*",
        "*train_stsb*",
        "*output_value=None*",
    ),
    *("*LabelAccuracy*", "*InformationRetrieval*"),
    *(
        "*dot_score_sparse*",
        "*angle_sim*",
        "*maxsim*",
        "*max_active_dims*",
        "*convert_to_tensor_*",
        "*large_vectors*",
    ),
    *("*max_pairs_capacity*", "*top_k_is_per_sentence*"),
)


def tensor(rows: Any) -> torch.Tensor:
    return torch.as_tensor(numpy.asarray(rows))


@cache
def loaded_pipe(name: str) -> SentenceBert:
    """Return the pipe of an encoder, loaded once for all tests.

    None of them changes its weights.
    """
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": name}})
    return find_sbert(nlp)


class SentenceTransformer:
    """Their class over our `sbert` pipe."""

    similarity_fn_name = "cosine"

    def __init__(self, name: str = MODEL, *, truncate_dim: int | None = None):
        self.sbert = loaded_pipe(name if Path(name).is_dir() else MODEL)
        self.prompts: dict[str, str] = {"query": "", "document": ""}
        self.default_prompt_name = None
        self.truncate_dim = truncate_dim
        self.device = torch.device("cpu")
        # Which evaluators report to
        self.model_card_data = Mock()

    def encode(self, sentences: Any, **options: Any) -> Any:
        name, prompt = options.pop("prompt_name", None), options.pop("prompt", None)
        options.pop("task", None)
        if name is not None:
            prompt = self.prompts[name] if prompt is None else prompt
        if options.get("truncate_dim") is None:
            options["truncate_dim"] = self.truncate_dim
        return self.sbert.encode(sentences, prompt=prompt, **options)

    def encode_query(self, sentences: Any, prompt_name: str | None = None, **options: Any) -> Any:
        options.setdefault("prompt", None)
        return self.encode(
            sentences=sentences, prompt_name=prompt_name or "query", task="query", **options
        )

    def encode_document(
        self, sentences: Any, prompt_name: str | None = None, **options: Any
    ) -> Any:
        options.setdefault("prompt", None)
        known = (name for name in ("document", "passage", "corpus") if name in self.prompts)
        chosen = prompt_name or next(known, None)
        return self.encode(sentences=sentences, prompt_name=chosen, task="document", **options)

    def similarity(self, u: Any, v: Any) -> torch.Tensor:
        return tensor(self.sbert.similarity(u, v))

    def similarity_pairwise(self, u: Any, v: Any) -> torch.Tensor:
        return tensor(self.sbert.similarity_pairwise(u, v))

    def get_sentence_embedding_dimension(self) -> int:
        return self.truncate_dim or self.sbert.width

    @contextmanager
    def truncate_sentence_embeddings(self, truncate_dim: int) -> Iterator[None]:
        before, self.truncate_dim = self.truncate_dim, truncate_dim
        yield
        self.truncate_dim = before


class CrossEncoder:
    """Their class over our `sbert_reranker` pipe."""

    def __init__(self, name: str = "", **settings: Any):
        self.num_labels = 3 if "nli" in name else 1
        nlp = spacy.blank("en")
        nlp.add_pipe(
            "sbert_reranker", config={"model": {"name": str(CLASSIFIERS[self.num_labels])}}
        )
        self.reranker = find_reranker(nlp)
        self.model = self
        self.device = torch.device("cpu")

    def predict(self, pairs: Any, **options: Any) -> Any:
        return self.reranker.score_pairs(pairs, **options)

    def rank(
        self, query: str, documents: Any, *, return_documents: bool = False, **options: Any
    ) -> list[dict]:
        ranked = self.reranker.rank(query, documents, **options)
        found = [{"corpus_id": one.index, "score": one.score, "text": one.text} for one in ranked]
        return (
            found
            if return_documents
            else [{k: v for k, v in one.items() if k != "text"} for one in found]
        )


class Pooling:
    """Their module over our poolings, which have no padding."""

    POOLING_MODES = tuple(POOLING)

    def __init__(
        self,
        embedding_dimension: int = 0,
        pooling_mode: Any = "mean",
        include_prompt: bool = True,
        pooling_mode_mean_tokens: bool = False,
        pooling_mode_mean_sqrt_len_tokens: bool = False,
    ):
        if pooling_mode_mean_tokens and pooling_mode_mean_sqrt_len_tokens:
            pooling_mode = "mean+mean_sqrt_len"
        self.layer = SentencePooling(pooling_mode, normalize=False)
        self.dimension = embedding_dimension * len(pooling_mode.split("+"))

    def get_embedding_dimension(self) -> int:
        return self.dimension

    def __call__(self, features: dict[str, Any]) -> dict[str, Any]:
        mask = features["attention_mask"].bool()
        given = zip(features["token_embeddings"], mask, strict=False)
        rows = [states.reshape(-1, states.shape[-1])[kept] for states, kept in given]
        states = Ragged(
            torch.cat(rows).numpy(), numpy.array([len(row) for row in rows], dtype="int32")
        )
        return {"sentence_embedding": torch.as_tensor(self.layer.layers[0].predict(states))}


def every(distance: Any) -> Any:
    """Each row with each, from a function of paired rows."""

    def of_all(u: Any, v: Any) -> torch.Tensor:
        rows = [distance(row[None], v) for row in as_array(u, "u", "vectors")]
        return tensor(-numpy.array(rows))

    return of_all


def semantic_search(queries: Any, corpus: Any, top_k: int = 10, **_: Any) -> list[list[dict]]:
    scores, rows = nearest(queries, corpus, k=top_k)
    both = zip(scores.tolist(), rows.tolist(), strict=True)
    return [
        [{"corpus_id": row, "score": score} for score, row in zip(*one, strict=True)]
        for one in both
    ]


def paraphrase_mining(model: SentenceTransformer, sentences: list[str]) -> list[list]:
    return paraphrase_mining_embeddings(model.encode(sentences))


def paraphrase_mining_embeddings(embeddings: Any, max_pairs: int = 500_000, **_: Any) -> list[list]:
    n = len(embeddings)
    scores, pairs = most_similar_pairs(embeddings, k=min(max_pairs, n * (n - 1) // 2))
    return [[score, *pair] for score, pair in zip(scores.tolist(), pairs.tolist(), strict=True)]


def community_detection(
    embeddings: Any, threshold: float = 0.75, min_community_size: int = 10, **_: Any
) -> list:
    return [
        group.tolist()
        for group in communities(embeddings, threshold=threshold, min_size=min_community_size)
    ]


def best_f1(
    scores: Any, labels: Any, high_score_more_similar: bool = True
) -> tuple[float | None, ...]:
    found = threshold_scores(numpy.asarray(scores), numpy.asarray(labels, dtype=float))
    return tuple(found[f"pair_{name}"] for name in ("f1", "precision", "recall", "f1_threshold"))


def best_accuracy(
    scores: Any, labels: Any, high_score_more_similar: bool = True
) -> tuple[float | None, ...]:
    found = threshold_scores(numpy.asarray(scores), numpy.asarray(labels, dtype=float))
    return found["pair_acc"], found["pair_acc_threshold"]


def put_in_place() -> None:
    """Give the names of sentence-transformers to the adapters."""
    # deprecated, and still what the tests import
    from sentence_transformers import evaluation

    functions = {
        "normalize_embeddings": lambda rows: tensor(unit_length(numpy.asarray(rows))),
        "cos_sim": lambda u, v: tensor(cos_sim(u, v)),
        "pytorch_cos_sim": lambda u, v: tensor(cos_sim(u, v)),
        "pairwise_cos_sim": lambda u, v: tensor(pairwise_cos_sim(u, v)),
        "pairwise_euclidean_sim": lambda u, v: tensor(-euclidean(u, v)),
        "pairwise_manhattan_sim": lambda u, v: tensor(-manhattan(u, v)),
        "euclidean_sim": every(euclidean),
        "manhattan_sim": every(manhattan),
        "semantic_search": semantic_search,
        "paraphrase_mining": paraphrase_mining,
        "paraphrase_mining_embeddings": paraphrase_mining_embeddings,
        "community_detection": community_detection,
    }
    modules = [
        util,
        *(
            module
            for name, module in sys.modules.items()
            if name.startswith("sentence_transformers.util")
        ),
    ]
    for module in modules:
        for name, function in functions.items():
            setattr(module, name, function)
    for module in [
        m for name, m in sys.modules.items() if name.partition(".")[0] == "sentence_transformers"
    ]:
        for adapter in (SentenceTransformer, CrossEncoder, Pooling):
            if hasattr(module, adapter.__name__):
                setattr(module, adapter.__name__, adapter)
    evaluator: Any = evaluation.BinaryClassificationEvaluator
    evaluator.find_best_f1_and_threshold = staticmethod(best_f1)
    evaluator.find_best_acc_and_threshold = staticmethod(best_accuracy)


class Counting:
    """A plugin of pytest: the fixtures of their conftest.py, and the count of outcomes."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    @pytest.fixture
    def stsb_bert_tiny_model(self) -> SentenceTransformer:
        return SentenceTransformer()

    @pytest.fixture
    def paraphrase_distilroberta_base_v1_model(self) -> SentenceTransformer:
        return SentenceTransformer()

    @pytest.fixture
    def reranker_bert_tiny_model(self) -> CrossEncoder:
        return CrossEncoder()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [
            item for item in items if not any(fnmatch(item.name, one) for one in NO_COUNTERPART)
        ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid] = report.outcome


def make_classifiers(folder: Path) -> None:
    """Save untrained cross-encoders of one and three outputs on the encoder."""
    source = resolve(MODEL)
    for n_outputs in list(CLASSIFIERS):
        CLASSIFIERS[n_outputs] = str(folder / CLASSIFIERS[n_outputs])
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=n_outputs)
        model.save_pretrained(CLASSIFIERS[n_outputs])
        AutoTokenizer.from_pretrained(source).save_pretrained(CLASSIFIERS[n_outputs])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tests", type=Path, required=True, help="test files of sentence-transformers"
    )
    parser.add_argument("--scratch", type=Path, required=True, help="an empty folder")
    arguments, rest = parser.parse_known_args()
    make_classifiers(arguments.scratch)
    put_in_place()
    counting = Counting()
    sys.path.insert(0, str(arguments.tests.resolve().parent))
    pytest.main(
        [str(arguments.tests), "-q", "--noconftest", "-p", "no:cacheprovider", *rest],
        plugins=[counting],
    )
    counts: Counter[str] = Counter()
    for test, outcome in counting.outcomes.items():
        name = test.rpartition("::")[2]
        reason = next((why for pattern, why in NAMED.items() if fnmatch(name, pattern)), None)
        kind = outcome if outcome != "failed" else f"named: {reason}" if reason else "other"
        counts[kind] += 1
        if kind == "other":
            print("other:", test)
    for kind, count in sorted(counts.items()):
        print(f"{count:5d} {kind}")
    return int(counts["other"] > 0)


if __name__ == "__main__":
    sys.exit(main())
