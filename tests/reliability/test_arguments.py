"""Every argument of every function that people call, with wrong values; and what is no text, no Doc and no label."""

import inspect

import numpy
import pytest
import spacy
from counting import parts
from wrong_settings import MANY, NUMBERS, PROMISE, entry_points, target, validated_functions

from spacy_sbert import bulk, meta, readers, search, visual
from spacy_sbert import hub as interchange
from spacy_sbert.hub.distillation import distill_static
from spacy_sbert.pipeline.most_similar import most_similar
from spacy_sbert.search import corpus_search as of_files

TEXT = "A man is eating food. The dog ran fast. He cannot go."
RNG = numpy.random.default_rng(0)
ROWS = RNG.normal(size=(12, 16)).astype("float32")
# What a function works on, which has errors of its own: see below
DATA = {
    "self",
    "cls",
    "nlp",
    "vocab",
    "model",
    "docs",
    "texts",
    "vectors",
    "queries",
    "query",
    "stream",
    "spans",
    "sbert",
    "teacher",
}
DATA |= {"get_examples", "pipe", "source", "estimator", "text", "columns", "labels", "index", "encoder", "sbert"}
DATA |= {"read", "first", "second", "jupyter", "target", "pairs", "device", "activation_fn"}
LATER = {"number as text", "unknown"}
RIGHT = {  # by the argument's name, with the reason; what flags are, what may be None and defaults go without saying
    "batch_size": MANY,  # no more than there are
    "window": MANY,
    "block_bytes": MANY,  # as much memory as it takes
    "gpu_ids": {"list"},  # none
    "k": MANY,  # all, if there are fewer
    "limit": MANY,
    "max_batch_items": MANY,
    "max_tokens": {"zero", *MANY},  # zero for all
    "prompt": {"empty text", *LATER},  # any text may be a prompt
    "title": {"empty text", *LATER},
    "tau": {"zero", "one and a half", *MANY},  # regularisation of any strength
    "learn_rate": {"one and a half", *MANY},  # a loss that is not finite is refused
    "threshold": {"zero"},
    "min_score": {"zero", "minus one"},
    "min_size": MANY,  # no group is as large
    "low": {"zero", "minus one"},
    "high": {"one and a half", *MANY},
    "version": {"empty text", *LATER},  # of a package, as spaCy takes it
    "seed": {"zero", "billion"},
    "hidden_layers": {"zero"},
}
SEEDS = {"zero", *MANY}
NO_MORE = {"k": set(), "rescore": {"zero", *MANY}}  # of vectors: at most as many as there are
EXACTLY_ONE = {"n_clusters": set(), "threshold": {"none"}}  # is given
ANY_LIST = {"list", "list of things"}  # of another baseline than the one that is made


@pytest.fixture(scope="module")
def folder(tiny_bert, tmp_path_factory):
    made = tmp_path_factory.mktemp("arguments")
    alone = spacy.blank("en")
    alone.add_pipe("sbert", config={"model": {"name": str(tiny_bert)}})
    alone.to_disk(made / "nlp")
    interchange.export_folder(alone, made / "exported")
    (made / "texts").mkdir()
    (made / "texts" / "one.txt").write_text("One.\n")
    (made / "corpus.txt").write_text("\n".join(["A man is eating.", "The dog ran fast.", "He cannot go."] * 2))
    (made / "pairs.csv").write_text("".join(f"a\tb\tc\td\t{i}.0\tOne {i}.\tTwo {i}.\n" for i in range(4)))
    return made


@pytest.fixture
def nlp(tiny_bert):
    made = spacy.blank("en")
    made.add_pipe("sentencizer")
    spans = {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc+sent"}
    for name in ("other", "sbert"):
        made.add_pipe("sbert", name=name, config={"model": {"name": str(tiny_bert), "get_spans": spans}})
    made.add_pipe("sbert_meta", config={"set_hooks": False})
    made.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert), "n_outputs": 1}})
    made.initialize()
    return made


def calls(nlp, folder):
    """What is called, with what it must have, and what is right beside RIGHT: by names of validated_functions."""
    sbert, reranker, combined = (nlp.get_pipe(name) for name in ("sbert", "sbert_reranker", "sbert_meta"))
    doc = nlp(TEXT)
    spans = search.SpanSearch(doc.sents)
    corpus, pairs, missing = folder / "corpus.txt", folder / "pairs.csv", folder / "none"
    index, binary = search.VectorIndex.build(ROWS), search.BinaryVectors.of(ROWS)
    int8 = search.Int8Vectors.fit(ROWS).apply(ROWS)
    of_file = {"pipe": sbert, "corpus": corpus}
    clustered = {"vectors": ROWS, "n_clusters": 3}
    written = {"input_path": corpus, "output_path": folder / "out.npy", "overwrite": True, "restart": True}
    no_columns = {"column": {"empty text", *LATER}}  # a .txt file has none
    two_texts = {"nlp": nlp, "first": "a", "second": "b", "score": 0.5}
    return {
        "SentenceBert.encode": (sbert.encode, {"texts": ["a man", "the dog"]}, {}),
        "SentenceBert.pipe": (sbert.pipe, {"stream": [doc]}, {}),
        "SentenceBert._settings": (sbert._settings, {}, {}),
        "SentenceMeta.encode": (combined.encode, {"texts": ["a man", "the dog"]}, {}),
        "SentenceMeta.pipe": (combined.pipe, {"stream": [doc]}, {}),
        "SentenceReranker.pipe": (reranker.pipe, {"stream": [doc]}, {}),
        "SentenceReranker.score_pairs": (
            reranker.score_pairs,
            {"pairs": [("a man", "the dog")]},
            {"apply_softmax": {"false"}},  # of one output
        ),
        "SentenceReranker.rank": (
            reranker.rank,
            {"query": "a man", "texts": ["the dog"]},
            {"k": {"none"}, "top_k": {"none", *MANY}},
        ),
        "most_similar": (most_similar, {"text": doc, "query": "a man"}, {}),
        "SpanSearch.__init__": (search.SpanSearch, {"spans": list(doc.sents)}, {}),
        "SpanSearch.search": (spans.search, {"query": "a man"}, {}),
        "collect_spans": (search.collect_spans, {"docs": [doc]}, {}),
        "nearest": (search.nearest, {"queries": ROWS, "vectors": ROWS, "k": 2}, NO_MORE),
        "most_similar_pairs": (search.most_similar_pairs, {"vectors": ROWS}, NO_MORE),
        "pairs_above": (
            search.pairs_above,
            {"vectors": ROWS, "min_score": 0.5},
            {"min_score": {"zero", "minus one"}, **NO_MORE},
        ),
        "similar_groups": (
            search.similar_groups,
            {"vectors": ROWS, "min_score": 0.5},
            {"min_score": {"zero", "minus one"}, **NO_MORE},
        ),
        "communities": (search.communities, {"vectors": ROWS}, {"threshold": {"zero", "minus one"}}),
        "hierarchical_clusters": (search.hierarchical_clusters, clustered, EXACTLY_ONE),
        "kmeans_clusters": (search.kmeans_clusters, clustered, {}),
        "VectorIndex.search": (index.search, {"queries": ROWS, "k": 2}, {"k": set(), "rescore": MANY}),
        "Int8Vectors.search": (int8.search, {"queries": ROWS, "k": 2}, NO_MORE),
        "BinaryVectors.search": (binary.search, {"queries": ROWS, "k": 2}, NO_MORE),
        "search_texts": (of_files.search_texts, {**of_file, "queries": ["a"]}, no_columns),
        "mine_texts": (of_files.mine_texts, of_file, no_columns),
        "group_texts": (of_files.group_texts, {**of_file, "min_score": 0.5}, no_columns),
        "cluster_texts": (of_files.cluster_texts, of_file, no_columns),
        "encode_file": (
            bulk.encode_file,
            {"sbert": sbert, **written},
            {**no_columns, "with_text": set()},  # an array has none
        ),
        "encode_dataset": (
            bulk.encode_dataset,
            {"source": folder / "texts", "target": folder / "vectors", "pipeline": folder / "nlp", "restart": True},
            {"large": MANY},
        ),
        "Concatenation.__init__": (meta.Concatenation, {}, {}),
        "GCCA.__init__": (meta.GCCA, {}, {}),
        "MetaEmbedding.__init__": (meta.SVD, {}, {}),
        "CrossViewAutoencoder.__init__": (meta.CrossViewAutoencoder, {}, {}),
        "convert": (
            readers.convert,
            {"input_path": pairs, "output_path": folder / "out.spacy"},
            {"min_score": {"zero"}, "max_score": set(), "members": {"none", "list"}, "missing": {"none", "list"}},
        ),
        "example_doc": (readers.example_doc, {"nlp": nlp, "members": ["a", "b"]}, {"spans_key": LATER}),
        "pair_doc": (
            readers.pair_doc,
            two_texts,
            {"spans_key": LATER, "score": NUMBERS},
        ),  # see the losses
        "export_folder": (interchange.export_folder, {"nlp": nlp, "path": missing}, {}),
        "import_folder": (
            interchange.import_folder,
            {"source": str(folder / "exported")},
            {"name": LATER},
        ),
        "render": (visual.render, {"docs": doc, "jupyter": False}, {"options": {"none", "dict"}}),
        "heatmap": (visual.heatmap.heatmap, {"docs": doc}, {}),
        "scatter": (visual.scatter.scatter, {"docs": doc, "labels": [0, 1, 1]}, {}),
        "tokens": (visual.heatmap.tokens, {"docs": [doc, doc]}, {}),
        "distill_static": (
            distill_static,
            {"teacher": nlp, "texts": [TEXT] * 6, "size": 2},
            {"words": {"zero", *MANY}},
        ),
    }


ELSEWHERE = {  # tried as registered functions, or with them
    "SentenceBert.__init__",
    "SentenceMeta.__init__",
    "SentenceReranker.__init__",
    "SmoothInverseFrequency.__init__",
    "build_ivfpq",  # by the commands, see test_options
}
LABELS = {"SentenceBert.classify", "SentenceBert.initialize", "SentenceReranker.initialize"}  # tried by test_given
FILES = {  # whose only settings are paths, which tests of files try
    "SentenceMeta.initialize",
}


def validated():
    """Those that are registered under no name."""
    registered = [made for _, made in entry_points().values()]
    known = {id(vars(made).get("__init__", made)) if inspect.isclass(made) else id(made) for made in registered}
    return {name: function for name, function in validated_functions().items() if id(function) not in known}


@pytest.mark.spacy_transformers
def test_none_is_forgotten(nlp, folder):
    assert validated().keys() == calls(nlp, folder).keys() | ELSEWHERE | FILES | LABELS


@pytest.mark.parametrize("part", parts(8))
def test_functions(counted, nlp, folder, part):
    with counted(PROMISE) as cases:
        for name, (call, given, right) in list(calls(nlp, folder).items())[part::8]:
            but = tuple(DATA | {key for key in given if key.endswith("path") or key in ("corpus", "method")})
            one = target(name, call, given, but)
            for setting, label in one.cases():
                one.judge(cases, setting, label, right.get(setting, RIGHT.get(setting, set()) | one.natural[setting]))
