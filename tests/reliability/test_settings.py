"""Every setting with wrong values: refused with an error that names it, before anything hangs or is
allocated.
"""

import inspect
from importlib.metadata import distribution

import numpy
import pytest
import spacy
from helpers.counted_cases import parts
from helpers.pipelines import ROOT
from helpers.wrong_settings import LATER, MANY, NUMBERS, PROMISE, target, validated_functions
from spacy.util import registry
from thinc.api import reduce_mean

from spacy_sbert import bulk, hub, meta, readers, search, visual
from spacy_sbert.architectures import sentence_listener
from spacy_sbert.losses.similarity import CosineSimilarityLoss
from spacy_sbert.models.private_attributes import is_installed
from spacy_sbert.models.spans import sentence_spans
from spacy_sbert.pipeline.most_similar import most_similar
from spacy_sbert.search import corpus_search
from spacy_sbert.search.hard_negatives import mine_hard_negatives
from spacy_sbert.search.texts import read_corpus
from spacy_sbert.training.batchers import batch_mixed
from spacy_sbert.training.quickstart_config import quickstart_config

# A finite factor; a loss that is not finite is refused in training
RIGHT_FACTORS = {
    "zero",
    "one and a half",
    *MANY,
}
# Values that are right, by setting: with the reason, so that nothing is accepted by accident.
ALLOWED = {
    # Factors and margins in formulas
    **dict.fromkeys(
        ("grad_factor", "learn_rate_factor", "loss_weight", "margin", "initial_rate"), RIGHT_FACTORS
    ),
    # Which divides, or makes all alike
    **dict.fromkeys(("scale", "temperature", "a"), RIGHT_FACTORS - {"zero"}),
    "max_grad_norm": RIGHT_FACTORS,
    # None
    "warmup": {"zero"},
    # Below max_score, 1
    "min_score": {"minus one", "zero"},
    # Above min_score, 0
    "max_score": {"one and a half", *MANY},
    # Limits, which large numbers take away
    **dict.fromkeys(
        (
            "batch_size",
            "limit",
            "max_batch_items",
            "mini_batch_size",
            "shuffle_buffer",
            "size",
            "total_steps",
        ),
        MANY,
    ),
    # A stream and no limit, which max_steps ends
    "epochs": {"minus one", "zero", *MANY},
    "max_steps": MANY,
    # Behind the end the rate is zero, at once
    "start_step": MANY,
    # More than the encoder has is refused when it is loaded
    "max_length": MANY,
    # Names that are anybody's choice, or found when they are used
    "spans_key": LATER,
    "chunks_key": LATER,
    # Refused by name when the pipeline is put together
    "upstream": LATER,
    # Of an encoder, which is loaded on first use: see test_unknown_encoders
    "name": LATER,
    # "" for none; the folder's prompts are known when it is loaded
    "default_prompt_name": {
        "empty text",
        *LATER,
    },
    # A pipeline that is loaded when the first example is read
    "teacher": LATER,
    # The same, with the first batch
    "guide": LATER,
    # A file that is read when the function is fitted
    "counts": LATER,
    # A file that will be written
    "output_file": LATER,
    # Python's generator takes any whole number
    "seed": {"minus one", *MANY},
    # Blocks and lists that may be empty, or hold what their own function checks
    **{key: {"dict"} for key in ("backend_config", "grad_scaler_config", "prompts")},
    **{key: {"dict", "dict of things"} for key in ("tokenizer_config", "transformer_config")},
    # Nothing
    "frozen": {"list"},
    # No columns are named
    "members": {"list"},
    # No label stands for none
    "missing": {"list"},
    # No examples yet
    "none_examples": {"list"},
    "labels": {"list"},
    # Without a threshold each text has a label
    "threshold": {"zero"},
}
# All that is right, whatever annotation and default say
ALONE = {
    # The default; the layout has a range of its own
    "spacy-sbert.PairCorpus.v1 min_score": {"zero"},
    "spacy-sbert.PairCorpus.v1 max_score": set(),
    # A collection that is read at the first evaluation
    **{f"spacy-sbert.retrieval_scorer.v1 {key}": LATER for key in ("path", "split")},
    # None stands for what the command line is to give
    "spacy-sbert.PairCorpus.v1 path": set(),
    # Of 32 bits
    "spacy-sbert.NgramHashEmbed.v1 seed": {"zero", "billion"},
    # Words alone
    "spacy-sbert.NgramHashEmbed.v1 ngram_size": {"zero"},
    # For code that may not be there
    "spacy-sbert.LossByName.v1 settings": {"none", "dict", "dict of things"},
    # Objectives that are not named have 1
    "spacy-sbert.MultiTaskLoss.v1 weights": {"none", "dict"},
    # The default
    **{f"{pipe} model": {"dict"} for pipe in ("sbert", "sbert_transformer", "sbert_reranker")},
    # None yet
    "sbert_textcat examples": {"dict"},
    # A key of doc.spans, which each Doc has or has not
    "sbert_textcat unit": LATER,
    # Up to max_length
    "sbert_chunks min_length": {"zero"},
    # A cosine; None for no threshold
    "sbert_chunks threshold": {"zero", "minus one", "none"},
    # No training; the default
    "sbert loss": {"none", "dict"},
    **{
        f"{pipe} scorer": {"none", "dict"}
        for pipe in ("sbert", "sbert_meta", "sbert_reranker", "sbert_textcat")
    },
    # That of the span getter: see test_spans_keys
    "sbert spans_key": set(),
    # All that there are
    "sbert_meta pipes": {"list"},
    # None
    **{f"sbert_meta {block}": {"dict"} for block in ("functions", "options")},
    "sbert_meta size": {"none"},
}
PAIRS = str(ROOT / "assets" / "pairs-dev.csv")
COSINE = {"@layers": "spacy-sbert.CosineSimilarityLoss.v1"}
CORPUS = {"@readers": "spacy-sbert.PairCorpus.v1", "path": PAIRS}
SIZES = {
    "nI": 16,
    "nO": 8,
    "size": 4,
    "initial_rate": 1e-3,
    "total_steps": 100,
    "epochs": 0,
    "max_steps": 100,
}
# What must be given
GIVEN = {
    **SIZES,
    "batcher": batch_mixed(4),
    "loss": CosineSimilarityLoss(),
    "dims": [4, 2],
    "objectives": {"one": CosineSimilarityLoss()},
    "corpora": {"one": lambda nlp: []},
    "corpus": readers.PairCorpus(PAIRS),
    "teacher": "en_teacher",
    "guide": "en_guide",
    "path": "pairs.csv",
    "name": "my-package.MyLoss.v1",
    "exclusive_classes": True,
    "pooling": reduce_mean(),
    "tok2vec": sentence_listener(),
    "get_spans": sentence_spans(),
}
# The same in a config
BLOCKS = {
    **{"loss": COSINE, "objectives": {"one": COSINE}, "corpora": {"one": CORPUS}, "corpus": CORPUS},
    "batcher": {"@batchers": "spacy-sbert.batch_mixed.v1", "size": 4},
    "pooling": {"@layers": "reduce_mean.v1"},
}
# Defaults that a config fills, and Python does not
DEFAULT_BLOCKS = ("tok2vec", "get_spans")
# By name: the registry, such as "layers", and what is registered
ENTRY_POINTS = {
    point.name: (point.group.split("_", 1)[1], point.load())
    for point in distribution("spacy-sbert").entry_points
    if point.group.startswith(("spacy_", "thinc_")) and point.group != "spacy_cli"
}
# They need a package that may not be installed
OF_SPACY_TRANSFORMERS = {"spacy-sbert.TransformerModel.v1", "spacy-sbert.Tok2VecTransformer.v1"}
REGISTERED = {
    name: made
    for name, made in ENTRY_POINTS.items()
    if made[0] != "factories" and (is_installed() or name not in OF_SPACY_TRANSFORMERS)
}


def given_to(function, source=GIVEN):
    parameters = inspect.signature(function).parameters
    needed = {key for key in parameters if parameters[key].default is inspect.Parameter.empty}
    return {
        key: source.get(key, GIVEN[key])
        for key in parameters
        if key in needed | set(DEFAULT_BLOCKS) & set(source)
    }


def try_all(counted, targets, but=""):
    with counted(PROMISE) as cases:
        for one in targets:
            alone = {
                key.split()[1]: right for key, right in ALONE.items() if key.split()[0] == one.name
            }
            one.judge_all(cases, ALLOWED, alone, but)


@pytest.mark.spacy_transformers
def test_what_is_registered_called_from_python(counted):
    try_all(
        counted,
        [target(name, function, given_to(function)) for name, (_, function) in REGISTERED.items()],
    )


@pytest.mark.parametrize("part", parts(4))
def test_what_is_registered_built_from_a_config(counted, part):
    def built(kind, name):
        return lambda **settings: registry.resolve({"block": {f"@{kind}": name, **settings}})[
            "block"
        ]

    targets = []
    for name, (kind, function) in list(REGISTERED.items())[part::4]:
        targets.append(target(name, function, given_to(function, BLOCKS)))
        targets[-1].call = built(kind, name)
    try_all(counted, targets)


def test_settings_of_pipes(counted):
    two_encoders = spacy.blank("xx")
    targets = []
    for name in ("sbert", "other"):
        two_encoders.add_pipe("sbert", name=name)

    def made(factory):
        return lambda **config: two_encoders.create_pipe(factory, config=config)

    for name in [name for name, (kind, _) in ENTRY_POINTS.items() if kind == "factories"]:
        targets.append(target(name, ENTRY_POINTS[name][1], {}, ("nlp", "name")))
        targets[-1].call = made(name)
    # Which spaCy itself cannot put into a config
    try_all(counted, targets, but="half a character")


# Arguments of functions that people call

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
}
DATA |= {
    "sbert",
    "teacher",
    "get_examples",
    "pipe",
    "source",
    "estimator",
    "text",
    "columns",
    "labels",
    "index",
}
DATA |= {
    "results",
    "cross_encoder",
    "encoder",
    "read",
    "first",
    "second",
    "jupyter",
    "target",
    "pairs",
    "device",
    "activation_fn",
}
# Settings of corpora, which are tried as registered functions
DATA |= {"train", "dev"}
# By the argument's name, with the reason; what flags are, what may be None and defaults go without
# saying
RIGHT = {
    # No more than there are
    **dict.fromkeys(("batch_size", "window", "k", "limit"), MANY),
    # As much memory as it takes
    **dict.fromkeys(("block_bytes", "max_batch_items"), MANY),
    # None
    "gpu_ids": {"list"},
    # Zero for all
    "max_tokens": {"zero", *MANY},
    # Any text may be one
    **{key: {"empty text", *LATER} for key in ("prompt", "title")},
    # Regularisation of any strength
    "tau": {"zero", "one and a half", *MANY},
    # A loss that is not finite is refused
    "learn_rate": {"one and a half", *MANY},
    "threshold": {"zero"},
    "min_score": {"zero", "minus one"},
    # No group is as large
    "min_size": MANY,
    "low": {"zero", "minus one"},
    "high": {"one and a half", *MANY},
    # Of a package, as spaCy takes it
    "version": {"empty text", *LATER},
    "seed": {"zero", "billion"},
    "hidden_layers": {"zero"},
}
# Of vectors: at most as many as there are
NO_MORE = {"k": set(), "rescore": {"zero", *MANY}}
BELOW_ZERO = {"min_score": {"zero", "minus one"}, **NO_MORE}
# A .txt file has none
NO_COLUMNS = {"column": {"empty text", *LATER}}
TABLE = {
    "min_score": {"zero"},
    "max_score": set(),
    "members": {"none", "list"},
    "missing": {"none", "list"},
}
# In place of RIGHT, and of defaults and flags, by names of validated_functions
ALSO_RIGHT = {
    # Of one output
    "PairScoring.score_pairs": {"apply_softmax": {"false"}},
    "PairScoring.rank": {"k": {"none"}, "top_k": {"none", *MANY}},
    **dict.fromkeys(
        ("nearest", "most_similar_pairs", "Int8Vectors.search", "BinaryVectors.search"), NO_MORE
    ),
    **dict.fromkeys(("pairs_above", "similar_groups"), BELOW_ZERO),
    "communities": {"threshold": {"zero", "minus one"}},
    # Exactly one is given
    "hierarchical_clusters": {"n_clusters": set(), "threshold": {"none"}},
    "VectorIndex.search": {"k": set(), "rescore": MANY},
    **dict.fromkeys(("search_texts", "mine_texts", "group_texts", "cluster_texts"), NO_COLUMNS),
    # An array has none
    "encode_file": {**NO_COLUMNS, "with_text": set()},
    "encode_dataset": {"large": MANY},
    "convert": TABLE,
    # Of any reranker; at least as many texts as ranks
    "mine_hard_negatives": {
        **dict.fromkeys(("max_score", "min_score"), NUMBERS),
        **dict.fromkeys(("absolute_margin", "relative_margin"), RIGHT_FACTORS | {"none"}),
        "num_negatives": set(),
        "range_max": {"none", *MANY},
    },
    "BM25.build": {"k1": RIGHT_FACTORS, "b": {"zero"}},
    "reciprocal_rank_fusion": {"k": set(), "constant": RIGHT_FACTORS - {"zero"}},
    # Any cosine
    "add_texts": {"skip_duplicates": {"none", "zero", "minus one"}},
    "example_doc": {"spans_key": LATER},
    # See the losses
    "pair_doc": {"spans_key": LATER, "score": NUMBERS},
    "import_folder": {"name": LATER},
    "render": {"options": {"none", "dict"}},
    "distill_static": {"words": {"zero", *MANY}},
    "quickstart_config": {"count": MANY, "epochs": {"none", *MANY}},
}


@pytest.fixture(scope="module")
def folder(make_nlp, tmp_path_factory):
    made = tmp_path_factory.mktemp("arguments")
    alone = make_nlp()
    alone.to_disk(made / "nlp")
    hub.export_folder(alone, made / "exported")
    (made / "texts").mkdir()
    (made / "texts" / "one.txt").write_text("One.\n")
    (made / "corpus.txt").write_text(
        "\n".join(["A man is eating.", "The dog ran fast.", "He cannot go."] * 2)
    )
    (made / "pairs.csv").write_text(
        "".join(f"a\tb\tc\td\t{i}.0\tOne {i}.\tTwo {i}.\n" for i in range(4))
    )
    return made


@pytest.fixture
def nlp(make_nlp, tiny_bert):
    made = make_nlp(unit="doc+sent")
    model = made.get_pipe_config("sbert")["model"]
    made.add_pipe("sbert", name="other", config={"model": model}, before="sbert")
    made.add_pipe("sbert_meta", config={"set_hooks": False})
    made.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert), "n_outputs": 1}})
    made.initialize()
    return made


def calls(nlp, folder):
    """What is called, with what it must have, by names of validated_functions."""
    sbert, reranker, combined = (
        nlp.get_pipe(name) for name in ("sbert", "sbert_reranker", "sbert_meta")
    )
    doc = nlp(TEXT)
    corpus = folder / "corpus.txt"
    texts = ["a man", "the dog"]
    index = search.VectorIndex.build(ROWS)
    binary = search.BinaryVectors.of(ROWS)
    int8 = search.Int8Vectors.fit(ROWS).apply(ROWS)
    tables = {name: {"path": str(folder / "pairs.csv")} for name in ("train", "dev")}
    of_file = {"pipe": sbert, "corpus": corpus}
    rows = {"vectors": ROWS}
    written = {
        "input_path": corpus,
        "output_path": folder / "out.npy",
        "overwrite": True,
        "restart": True,
    }
    dataset = {
        "source": folder / "texts",
        "target": folder / "vectors",
        "pipeline": folder / "nlp",
        "restart": True,
    }
    return {
        "TextEncoding.encode": (sbert.encode, {"texts": texts}),
        "SentenceBert.pipe": (sbert.pipe, {"stream": [doc]}),
        "TextEncoding._settings": (sbert.predict, {"docs": [doc]}),
        "SentenceMeta.encode": (combined.encode, {"texts": texts}),
        "SentenceMeta.pipe": (combined.pipe, {"stream": [doc]}),
        "SentenceReranker.pipe": (reranker.pipe, {"stream": [doc]}),
        "PairScoring.score_pairs": (reranker.score_pairs, {"pairs": [("a man", "the dog")]}),
        "PairScoring.rank": (reranker.rank, {"query": "a man", "texts": ["the dog"]}),
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
        "search_texts": (corpus_search.search_texts, {**of_file, "queries": ["a"]}),
        "mine_texts": (corpus_search.mine_texts, of_file),
        "group_texts": (corpus_search.group_texts, {**of_file, "min_score": 0.5}),
        "cluster_texts": (corpus_search.cluster_texts, of_file),
        "encode_file": (bulk.encode_file, {"sbert": sbert, **written}),
        "encode_dataset": (bulk.encode_dataset, dataset),
        "GCCA.__init__": (meta.GCCA, {}),
        "MetaEmbedding.__init__": (meta.SVD, {}),
        "CrossViewAutoencoder.__init__": (meta.CrossViewAutoencoder, {}),
        "convert": (
            readers.convert,
            {"input_path": folder / "pairs.csv", "output_path": folder / "out.spacy"},
        ),
        "example_doc": (readers.example_doc, {"nlp": nlp, "members": ["a", "b"]}),
        "pair_doc": (readers.pair_doc, {"nlp": nlp, "first": "a", "second": "b", "score": 0.5}),
        "export_folder": (hub.export_folder, {"nlp": nlp, "path": folder / "none"}),
        "import_folder": (hub.import_folder, {"source": str(folder / "exported")}),
        "render": (visual.render, {"docs": doc, "jupyter": False}),
        "heatmap": (visual.heatmap.heatmap, {"docs": doc}),
        "scatter": (visual.scatter.scatter, {"docs": doc, "labels": [0, 1, 1]}),
        "tokens": (visual.heatmap.tokens, {"docs": [doc, doc]}),
        "distill_static": (hub.distill_static, {"teacher": nlp, "texts": [TEXT] * 6, "size": 2}),
        "quickstart_config": (quickstart_config, {**tables, "kind": "graded", "count": 4}),
        "BM25.build": (search.BM25.build, {"texts": texts}),
        "reciprocal_rank_fusion": (
            search.reciprocal_rank_fusion,
            {"results": [search.nearest(ROWS, ROWS, k=2)], "k": 2},
        ),
        "rank_by_max_sim": (search.rank_by_max_sim, {"query": doc, "texts": [doc]}),
        "add_texts": (
            corpus_search.add_texts,
            {"pipe": sbert, "folder": folder / "grown", "corpus": read_corpus(corpus)},
        ),
        "mine_hard_negatives": (
            mine_hard_negatives,
            {"pipe": sbert, "pairs": [("a man", "he runs")], "corpus": ["the dog", "a cat", "it"]},
        ),
    }


# Tried as registered functions, by the commands, and by test_given; the last ones have only paths
ELSEWHERE = {
    "SentenceChunker.__init__",
    *("SentenceBert.__init__", "SentenceMeta.__init__", "SentenceReranker.__init__"),
    *(
        "build_ivfpq",
        "SentenceBert.classify",
        "TrainingStep.initialize",
        "SentenceReranker.initialize",
    ),
    *(
        "SentenceTextCategorizer.__init__",
        "SentenceTextCategorizer.initialize",
        "SentenceTextCategorizer.set_coefficients",
    ),
    *(
        "SentenceMeta.initialize",
        "VectorIndex.save",
        "VectorIndex.load",
        "BinaryVectors.save",
        "BinaryVectors.load",
    ),
    *("Int8Vectors.save", "Int8Vectors.load"),
}


@pytest.mark.spacy_transformers
def test_none_is_forgotten(nlp, folder):
    registered = [made for _, made in ENTRY_POINTS.values()]
    known = {
        id(vars(made).get("__init__", made)) if inspect.isclass(made) else id(made)
        for made in registered
    }
    validated = {
        name for name, function in validated_functions().items() if id(function) not in known
    }
    assert validated == calls(nlp, folder).keys() | ELSEWHERE


@pytest.mark.parametrize("part", parts(22))
def test_functions(counted, nlp, folder, part):
    with counted(PROMISE) as cases:
        for name, (call, given) in list(calls(nlp, folder).items())[part::22]:
            but = tuple(
                DATA
                | {
                    key
                    for key in given
                    if key.endswith("path") or key in ("corpus", "folder", "method")
                }
            )
            target(name, call, given, but).judge_all(cases, RIGHT, ALSO_RIGHT.get(name, {}))
