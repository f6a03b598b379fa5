"""Every argument of every function that people call, with wrong values; and what is no text, no Doc and no label."""

import inspect

import numpy
import pytest
import spacy
from counted_cases import parts
from wrong_settings import LATER, MANY, NUMBERS, PROMISE, entry_points, target, validated_functions

from spacy_sbert import bulk, meta, readers, search, visual
from spacy_sbert import hub as interchange
from spacy_sbert.pipeline.most_similar import most_similar
from spacy_sbert.search import corpus_search as of_files

TEXT = "A man is eating food. The dog ran fast. He cannot go."
RNG = numpy.random.default_rng(0)
ROWS = RNG.normal(size=(12, 16)).astype("float32")
# What a function works on, which has errors of its own: see below
DATA = {"self", "cls", "nlp", "vocab", "model", "docs", "texts", "vectors", "queries", "query", "stream", "spans"}
DATA |= {"sbert", "teacher", "get_examples", "pipe", "source", "estimator", "text", "columns", "labels", "index"}
DATA |= {"encoder", "read", "first", "second", "jupyter", "target", "pairs", "device", "activation_fn"}
RIGHT = {  # by the argument's name, with the reason; what flags are, what may be None and defaults go without saying
    **dict.fromkeys(("batch_size", "window", "k", "limit"), MANY),  # no more than there are
    **dict.fromkeys(("block_bytes", "max_batch_items"), MANY),  # as much memory as it takes
    "gpu_ids": {"list"},  # none
    "max_tokens": {"zero", *MANY},  # zero for all
    **{key: {"empty text", *LATER} for key in ("prompt", "title")},  # any text may be one
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
NO_MORE = {"k": set(), "rescore": {"zero", *MANY}}  # of vectors: at most as many as there are
BELOW_ZERO = {"min_score": {"zero", "minus one"}, **NO_MORE}
NO_COLUMNS = {"column": {"empty text", *LATER}}  # a .txt file has none
TABLE = {"min_score": {"zero"}, "max_score": set(), "members": {"none", "list"}, "missing": {"none", "list"}}
ALSO_RIGHT = {  # beside RIGHT, by names of validated_functions
    "SentenceReranker.score_pairs": {"apply_softmax": {"false"}},  # of one output
    "SentenceReranker.rank": {"k": {"none"}, "top_k": {"none", *MANY}},
    **dict.fromkeys(("nearest", "most_similar_pairs", "Int8Vectors.search", "BinaryVectors.search"), NO_MORE),
    **dict.fromkeys(("pairs_above", "similar_groups"), BELOW_ZERO),
    "communities": {"threshold": {"zero", "minus one"}},
    "hierarchical_clusters": {"n_clusters": set(), "threshold": {"none"}},  # exactly one is given
    "VectorIndex.search": {"k": set(), "rescore": MANY},
    **dict.fromkeys(("search_texts", "mine_texts", "group_texts", "cluster_texts"), NO_COLUMNS),
    "encode_file": {**NO_COLUMNS, "with_text": set()},  # an array has none
    "encode_dataset": {"large": MANY},
    "convert": TABLE,
    "example_doc": {"spans_key": LATER},
    "pair_doc": {"spans_key": LATER, "score": NUMBERS},  # see the losses
    "import_folder": {"name": LATER},
    "render": {"options": {"none", "dict"}},
    "distill_static": {"words": {"zero", *MANY}},
}


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
    """What is called, with what it must have, by names of validated_functions."""
    sbert, reranker, combined = (nlp.get_pipe(name) for name in ("sbert", "sbert_reranker", "sbert_meta"))
    doc = nlp(TEXT)
    corpus, texts = folder / "corpus.txt", ["a man", "the dog"]
    index, binary = search.VectorIndex.build(ROWS), search.BinaryVectors.of(ROWS)
    int8 = search.Int8Vectors.fit(ROWS).apply(ROWS)
    of_file, rows = {"pipe": sbert, "corpus": corpus}, {"vectors": ROWS}
    written = {"input_path": corpus, "output_path": folder / "out.npy", "overwrite": True, "restart": True}
    dataset = {"source": folder / "texts", "target": folder / "vectors", "pipeline": folder / "nlp", "restart": True}
    return {
        "SentenceBert.encode": (sbert.encode, {"texts": texts}),
        "SentenceBert.pipe": (sbert.pipe, {"stream": [doc]}),
        "SentenceBert._settings": (sbert.predict, {"docs": [doc]}),
        "SentenceMeta.encode": (combined.encode, {"texts": texts}),
        "SentenceMeta.pipe": (combined.pipe, {"stream": [doc]}),
        "SentenceReranker.pipe": (reranker.pipe, {"stream": [doc]}),
        "SentenceReranker.score_pairs": (reranker.score_pairs, {"pairs": [("a man", "the dog")]}),
        "SentenceReranker.rank": (reranker.rank, {"query": "a man", "texts": ["the dog"]}),
        "most_similar": (most_similar, {"text": doc, "query": "a man"}),
        "SpanSearch.__init__": (search.SpanSearch, {"spans": list(doc.sents)}),
        "SpanSearch.search": (search.SpanSearch(doc.sents).search, {"query": "a man"}),
        "collect_spans": (search.collect_spans, {"docs": [doc]}),
        "nearest": (search.nearest, {"queries": ROWS, **rows, "k": 2}),
        "most_similar_pairs": (search.most_similar_pairs, rows),
        "pairs_above": (search.pairs_above, {**rows, "min_score": 0.5}),
        "similar_groups": (search.similar_groups, {**rows, "min_score": 0.5}),
        "communities": (search.communities, rows),
        "hierarchical_clusters": (search.hierarchical_clusters, {**rows, "n_clusters": 3}),
        "kmeans_clusters": (search.kmeans_clusters, {**rows, "n_clusters": 3}),
        "VectorIndex.search": (index.search, {"queries": ROWS, "k": 2}),
        "Int8Vectors.search": (int8.search, {"queries": ROWS, "k": 2}),
        "BinaryVectors.search": (binary.search, {"queries": ROWS, "k": 2}),
        "search_texts": (of_files.search_texts, {**of_file, "queries": ["a"]}),
        "mine_texts": (of_files.mine_texts, of_file),
        "group_texts": (of_files.group_texts, {**of_file, "min_score": 0.5}),
        "cluster_texts": (of_files.cluster_texts, of_file),
        "encode_file": (bulk.encode_file, {"sbert": sbert, **written}),
        "encode_dataset": (bulk.encode_dataset, dataset),
        "Concatenation.__init__": (meta.Concatenation, {}),
        "GCCA.__init__": (meta.GCCA, {}),
        "MetaEmbedding.__init__": (meta.SVD, {}),
        "CrossViewAutoencoder.__init__": (meta.CrossViewAutoencoder, {}),
        "convert": (readers.convert, {"input_path": folder / "pairs.csv", "output_path": folder / "out.spacy"}),
        "example_doc": (readers.example_doc, {"nlp": nlp, "members": ["a", "b"]}),
        "pair_doc": (readers.pair_doc, {"nlp": nlp, "first": "a", "second": "b", "score": 0.5}),
        "export_folder": (interchange.export_folder, {"nlp": nlp, "path": folder / "none"}),
        "import_folder": (interchange.import_folder, {"source": str(folder / "exported")}),
        "render": (visual.render, {"docs": doc, "jupyter": False}),
        "heatmap": (visual.heatmap.heatmap, {"docs": doc}),
        "scatter": (visual.scatter.scatter, {"docs": doc, "labels": [0, 1, 1]}),
        "tokens": (visual.heatmap.tokens, {"docs": [doc, doc]}),
        "distill_static": (interchange.distill_static, {"teacher": nlp, "texts": [TEXT] * 6, "size": 2}),
    }


ELSEWHERE = {  # tried as registered functions, by the commands, and by test_given; the last one has only paths
    *("SentenceBert.__init__", "SentenceMeta.__init__", "SentenceReranker.__init__", "SmoothInverseFrequency.__init__"),
    *("build_ivfpq", "SentenceBert.classify", "SentenceBert.initialize", "SentenceReranker.initialize"),
    "SentenceMeta.initialize",
}


def validated():
    """Those that are registered under no name."""
    registered = [made for _, made in entry_points().values()]
    known = {id(vars(made).get("__init__", made)) if inspect.isclass(made) else id(made) for made in registered}
    return {name: function for name, function in validated_functions().items() if id(function) not in known}


@pytest.mark.spacy_transformers
def test_none_is_forgotten(nlp, folder):
    assert validated().keys() == calls(nlp, folder).keys() | ELSEWHERE


@pytest.mark.parametrize("part", parts(16))
def test_functions(counted, nlp, folder, part):
    with counted(PROMISE) as cases:
        for name, (call, given) in list(calls(nlp, folder).items())[part::16]:
            right = RIGHT | ALSO_RIGHT.get(name, {})
            but = tuple(DATA | {key for key in given if key.endswith("path") or key in ("corpus", "method")})
            one = target(name, call, given, but)
            for setting, label in one.cases():
                natural = set() if setting in ALSO_RIGHT.get(name, {}) else one.natural[setting]
                one.judge(cases, setting, label, right.get(setting, set()) | natural)
