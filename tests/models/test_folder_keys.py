"""Each key of a sentence-transformers folder, with the values that it may have: equal vectors, or
the key is named.
"""

import inspect
import json
import logging
import shutil
import tempfile
import warnings
from functools import partial

import numpy
import pytest
import torch
from helpers.pipelines import SHARING, change_json, one_pipe
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Dropout,
    Normalize,
    Pooling,
    Transformer,
)
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from spacy_sbert import find_reranker, find_sbert
from spacy_sbert.hub import export_folder, import_folder
from spacy_sbert.models.folder_keys import (
    ACTIVATION_KEYS,
    CROSS_ENCODER,
    LISTED_KEYS,
    MODEL_KEYS,
    MODULE_KEYS,
    OTHER_KEYS,
    POOLING_FLAGS,
    SENTENCE_TRANSFORMER,
    TRANSFORMER_KEYS,
)

WIDTH = 16
TEXTS = ["A man is EATING food on the mat and the dog ran fast. [SEP] cannot", "the cat sat"]
PAIRS = [("A man is eating", "the CAT sat on the mat"), ("cat", "dog ran fast")]
PROMPTS = {"query": "the dog ran: ", "passage": "he is "}
ARGUMENTS = [
    None,
    {},
    {"trust_remote_code": True},
    {"revision": "main", "token": "x", "cache_dir": "x"},
]
CALLS = [
    {},
    {"padding": True, "truncation": True, "add_special_tokens": True},
    {"padding": "max_length"},
    {"truncation": "only_first"},
    {"max_length": 6},
    {"add_special_tokens": False},
    {"return_token_type_ids": False},
]
FORWARD = {"method": "forward", "method_output_name": "last_hidden_state"}
POOLER = {"method": "forward", "method_output_name": "pooler_output"}
TRANSFORMER_VALUES = {
    "max_seq_length": [None, 6, 24],
    "do_lower_case": [None, False, True],
    "transformer_task": ["feature-extraction", "fill-mask", "sequence-classification"],
    "modality_config": [
        {"text": FORWARD},
        {"text": {**FORWARD, "method_output_name": ["last_hidden_state"]}},
        {"text": POOLER},
        {"text": {**FORWARD, "method_output_name": ["hidden_states", 0]}},
        {"text": {"method": "get_text_features", "method_output_name": None}},
        {"text": FORWARD, "image": POOLER, "image+text": POOLER},
        {"text": FORWARD, "message": {**FORWARD, "format": "flat"}},
    ],
    "module_output_name": [None, "token_embeddings", "sentence_embedding"],
    "processing_kwargs": [
        *({part: call} for part in ("text", "common") for call in CALLS),
        {"image": {"size": 3}, "audio": {"padding": False}, "video": {}, "chat_template": {"x": 1}},
        {"unknown": {"x": 1}},
    ],
    "unpad_inputs": [None, True, False],
    "query_length": [None, 5],
    "document_length": [None, 5],
    "query_expansion": [None, {"strategy": "fixed", "length": 8}],
    **{
        name: [
            *ARGUMENTS,
            {"torch_dtype": "float16"},
            {"torch_dtype": "float32"},
            {"attn_implementation": "eager"},
        ]
        for name in ("model_args", "model_kwargs")
    },
    **{
        name: [
            *ARGUMENTS,
            {"model_max_length": 6},
            {"truncation_side": "left"},
            {"do_lower_case": False},
        ]
        for name in ("tokenizer_args", "processor_kwargs")
    },
    **{
        name: [*ARGUMENTS, {"num_hidden_layers": 1}, {"use_cache": False}]
        for name in ("config_args", "config_kwargs")
    },
    "tokenizer_name_or_path": [None, "elsewhere"],
    "backend": ["torch", "onnx"],
}
MODEL_VALUES = {
    "__version__": [{}, {"sentence_transformers": "99.0"}],
    "model_type": ["SentenceTransformer", "CrossEncoder", "SparseEncoder"],
    "prompts": [{}, PROMPTS, {"query": None}],
    "default_prompt_name": [None, "query", "document", "nowhere"],
    "similarity_fn_name": [None, "cosine", "dot", "euclidean"],
    "keep_in_fp32_modules": [None, ["x"]],
    "truncate_dim": [None, 5, 0],
    "activation_fn": ["torch.nn.modules.activation.Sigmoid"],
}
SENTENCES = {
    "module_input_name": ["sentence_embedding", "token_embeddings"],
    "module_output_name": [None, "sentence_embedding", "other"],
}
MODULE_VALUES = {
    "Pooling": {
        **{key: [WIDTH] for key in ("embedding_dimension", "word_embedding_dimension")},
        **{key: [None, True, False] for key in POOLING_FLAGS},
        "pooling_mode": [
            "mean",
            "cls",
            "median",
            ["mean"],
            ["cls", "mean_sqrt_len_tokens"],
            ["mean", "mean"],
        ],
        "include_prompt": [True, False],
    },
    "Dense": {
        "in_features": [WIDTH, 7],
        "out_features": [4, 7],
        "activation_function": [
            "torch.nn.modules.activation.Tanh",
            "torch.nn.modules.linear.Identity",
            "torch.nn.modules.activation.ReLU",
            "torch.nn.modules.activation.GELU",
            "x.Tanh",
        ],
        "bias": [True, False],
        **SENTENCES,
        "use_residual": [False, True],
    },
    "Normalize": SENTENCES,
    "Dropout": {"dropout": [0.0, 0.9]},
}
LISTED_VALUES = {
    "idx": [0, 9],
    "name": ["2", "x"],
    "path": ["1_Pooling"],
    "type": [
        "sentence_transformers.models.Pooling",
        "sentence_transformers.sentence_transformer.modules.Pooling",
    ],
    "kwargs": [[], ["x"]],
}
SHARED = "config_sentence_transformers.json"
LIMITS = "sentence_bert_config.json"
MODULES = "modules.json"
# In the folder of an encoder with the modules of MODULE_KEYS, except Dense, which comes with an
# import alone.
FILES = {
    MODULES: (LISTED_KEYS, LISTED_VALUES),
    SHARED: (MODEL_KEYS[SENTENCE_TRANSFORMER], MODEL_VALUES),
    LIMITS: (TRANSFORMER_KEYS[SENTENCE_TRANSFORMER], TRANSFORMER_VALUES),
    "1_Pooling/config.json": (MODULE_KEYS["Pooling"], MODULE_VALUES["Pooling"]),
    "2_Dropout/config.json": (MODULE_KEYS["Dropout"], MODULE_VALUES["Dropout"]),
    "3_Normalize/config.json": (MODULE_KEYS["Normalize"], MODULE_VALUES["Normalize"]),
    "2_Dense/config.json": (MODULE_KEYS["Dense"], MODULE_VALUES["Dense"]),
}
KEYS = [(file, key) for file, (_, values) in FILES.items() for key in (*values, "unknown_key")]


def seeded(make):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make()


@pytest.fixture(scope="module")
def folders(tiny_bert, tmp_path_factory):
    """Folders with and without Dense: copy one to change it. Their prompts are not pooled."""

    def make():
        start = [Transformer(str(tiny_bert)), Pooling(WIDTH, include_prompt=False)]
        parts = {"dense": [Dense(WIDTH, 4)], "plain": [Dropout(), Normalize()]}
        return {
            name: SentenceTransformer(modules=[*start, *end], device="cpu")
            for name, end in parts.items()
        }

    saved = tmp_path_factory.mktemp("keys")
    for name, model in seeded(make).items():
        model.save(str(saved / name))
        change_json(saved / name / LIMITS, modality_config=..., module_output_name=...)
        change_json(saved / name / SHARED, prompts=PROMPTS, default_prompt_name="passage")
    return saved


def change(folder, file, key, value):
    """Change a key; in modules.json that of the second module."""
    if file != MODULES:
        extra = {"module_output_name": "token_embeddings"} if key == "modality_config" else {}
        extra = (
            {"modality_config": {"text": FORWARD}}
            if file == LIMITS and key == "module_output_name"
            else extra
        )
        change_json(folder / file, **extra, **{key: value})
        return
    listed = json.loads((folder / file).read_text())
    listed[1][key] = value
    (folder / file).write_text(json.dumps(listed))


def theirs(folder):
    """The vectors of sentence-transformers; None if it refuses the folder, too."""
    try:
        return SentenceTransformer(str(folder), device="cpu").encode(TEXTS, show_progress_bar=False)
    except Exception:
        # Of any type
        return None


def judge(way, folder, expected, key, caplog):
    """Return "equal", "named" or "silent"; "refused" if sentence-transformers refuses the
    folder.
    """
    if expected is None:
        return "refused"
    caplog.clear()
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.WARNING):
        warnings.simplefilter("always")
        try:
            given = way(folder)
            said = " ".join(str(one.message) for one in caught) + caplog.text
        except Exception as error:
            # Of any type
            given = None
            said = str(error)
    if (
        given is not None
        and given.shape == expected.shape
        and numpy.abs(given - expected).max() < 1e-5
    ):
        return "equal" if key != "unknown_key" or key in said else "silent"
    names = {key, "pooling"} if key in POOLING_FLAGS or key == "pooling_mode" else {key}
    return "named" if any(name in said for name in names) else "silent"


def by_name(folder):
    return find_sbert(one_pipe(folder)).encode(TEXTS)


def imported(folder):
    return find_sbert(import_folder(str(folder))).encode(TEXTS)


def exported(folder):
    """The vectors of sentence-transformers, of what is exported again."""
    with tempfile.TemporaryDirectory() as path:
        export_folder(import_folder(str(folder)), f"{path}/out")
        return SentenceTransformer(f"{path}/out", device="cpu").encode(
            TEXTS, show_progress_bar=False
        )


def shared(folder, encoder="shared"):
    factory, architecture = SHARING[encoder]
    nlp = one_pipe(folder, factory, **{"@architectures": architecture})
    nlp.add_pipe(
        "sbert", config={"model": {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}}
    )
    nlp.initialize()
    return numpy.stack([doc.vector for doc in nlp.pipe(TEXTS)])


@pytest.mark.parametrize(("file", "key"), KEYS)
def test_a_key_is_followed_or_named(file, key, folders, tmp_path, caplog):
    values = FILES[file][1].get(key, [1])
    is_dense = "Dense" in file
    ways = (imported, exported) if is_dense else (by_name, imported, exported)
    for value in values:
        folder = shutil.copytree(folders / ("dense" if is_dense else "plain"), tmp_path / "in")
        change(folder, file, key, value)
        # A new version of the library may know a key that this one refuses.
        expected = (
            by_name(folders / "plain") if key == "unknown_key" and not is_dense else theirs(folder)
        )
        found = [judge(way, folder, expected, key, caplog) for way in ways]
        assert "silent" not in found, (value, found)
        shutil.rmtree(folder)


@pytest.mark.parametrize("encoder", SHARING)
@pytest.mark.parametrize(("file", "key"), [each for each in KEYS if "Dense" not in each[0]])
def test_a_key_of_a_shared_encoder(file, key, folders, tmp_path, caplog, encoder):
    """Without a prompt, which a shared transformer takes only for texts."""
    encode = partial(shared, encoder=encoder)
    for value in FILES[file][1].get(key, [1]):
        folder = shutil.copytree(folders / "plain", tmp_path / "in")
        change_json(folder / SHARED, default_prompt_name=None)
        change(folder, file, key, value)
        expected = encode(folders / "plain") if key == "unknown_key" else theirs(folder)
        names = {"prompts": "prompt", "default_prompt_name": "prompt"}
        assert judge(encode, folder, expected, names.get(key, key), caplog) != "silent", value
        shutil.rmtree(folder)


def test_every_key_is_walked():
    for file, (keys, values) in FILES.items():
        assert keys.keys() - {OTHER_KEYS} == values.keys(), file


def parameters(kind):
    return set(inspect.signature(kind.__init__).parameters) - {
        "self",
        "args",
        "kwargs",
        "init_weight",
        "init_bias",
    }


def test_the_keys_of_the_installed_version(folders, tmp_path):
    """So that a key of a new version is found here."""
    for kind in (Pooling, Dense, Normalize, Dropout):
        assert {*getattr(kind, "config_keys", ())} | parameters(kind) <= MODULE_KEYS[
            kind.__name__
        ].keys()
    known = TRANSFORMER_KEYS[SENTENCE_TRANSFORMER]
    assert {*Transformer.config_keys} | parameters(Transformer) - {
        "model_name_or_path"
    } <= known.keys()
    assert known["processing_kwargs"].keys.keys() == Transformer._VALID_PROCESSING_KWARGS_KEYS
    model = SentenceTransformer(str(folders / "plain"), device="cpu", truncate_dim=3)
    model.save(str(tmp_path / "out"))
    assert (
        json.loads((tmp_path / "out" / SHARED).read_text()).keys()
        <= MODEL_KEYS[SENTENCE_TRANSFORMER].keys()
    )
    for entry in json.loads((tmp_path / "out" / MODULES).read_text()):
        assert entry.keys() <= LISTED_KEYS.keys()


# Cross-encoders


IDENTITY = "torch.nn.modules.linear.Identity"
SCORE_VALUES = {
    SHARED: {
        **MODEL_VALUES,
        "model_type": ["CrossEncoder"],
        "activation_fn": [None, IDENTITY, "torch.nn.modules.activation.Tanh", "x.Identity"],
    },
    LIMITS: {
        **TRANSFORMER_VALUES,
        "max_seq_length": [None, 10, 24],
        "transformer_task": ["sequence-classification", "feature-extraction"],
        "modality_config": [
            {"text": {"method": "forward", "method_output_name": "logits"}},
            {"text": {"method": "forward", "method_output_name": "hidden_states"}},
        ],
        "module_output_name": [None, "scores", "other"],
        "config_kwargs": [{}, {"num_labels": 1}, {"num_hidden_layers": 1}],
    },
    "config.json": {
        "sentence_transformers": [None, {"activation_fn": IDENTITY, "version": "4.1"}, {"x": 1}]
    },
}
SCORE_KEYS = [(file, key) for file, values in SCORE_VALUES.items() for key in values]


@pytest.fixture(scope="module")
def cross_encoder(tiny_bert, tmp_path_factory):
    saved = tmp_path_factory.mktemp("pairs")
    config = AutoConfig.from_pretrained(tiny_bert, num_labels=1, initializer_range=0.5)
    seeded(lambda: AutoModelForSequenceClassification.from_config(config)).save_pretrained(
        saved / "plain"
    )
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(saved / "plain")
    CrossEncoder(str(saved / "plain"), device="cpu").save_pretrained(str(saved / "whole"))
    change_json(saved / "whole" / LIMITS, modality_config=..., module_output_name=...)
    change_json(saved / "whole" / SHARED, prompts=PROMPTS, default_prompt_name="query")
    return saved / "whole"


def scores(folder):
    return find_reranker(one_pipe(folder, "sbert_reranker")).score_pairs(PAIRS)


@pytest.mark.parametrize(("file", "key"), SCORE_KEYS)
def test_a_key_of_a_cross_encoder(file, key, cross_encoder, tmp_path, caplog):
    for value in SCORE_VALUES[file][key]:
        folder = shutil.copytree(cross_encoder, tmp_path / "in")
        extra = {"modality_config": {"text": {"method": "forward", "method_output_name": "logits"}}}
        extra = extra if key == "module_output_name" else {}
        extra = {"module_output_name": "scores"} if key == "modality_config" else extra
        if file == "config.json":
            change_json(folder / SHARED, activation_fn=...)
        change_json(folder / file, **extra, **{key: value})
        try:
            expected = CrossEncoder(str(folder), device="cpu").predict(
                PAIRS, show_progress_bar=False
            )
        except Exception:
            # Of any type
            expected = None
        assert judge(scores, folder, expected, key, caplog) != "silent", value
        shutil.rmtree(folder)


def test_every_key_of_a_cross_encoder_is_walked(cross_encoder):
    assert MODEL_KEYS[CROSS_ENCODER].keys() == SCORE_VALUES[SHARED].keys()
    assert TRANSFORMER_KEYS[CROSS_ENCODER].keys() == SCORE_VALUES[LIMITS].keys()
    assert (
        json.loads((cross_encoder / SHARED).read_text()).keys() <= MODEL_KEYS[CROSS_ENCODER].keys()
    )
    assert ACTIVATION_KEYS.keys() == {"activation_fn", "version"}
