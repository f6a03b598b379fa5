"""Static encoders, both ways: the vectors of sentence-transformers, and what is refused."""

import shutil

import numpy
import pytest
import spacy
import torch
from helpers.pipelines import ROOT, change_json, no_warnings, one_pipe, write_modules
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Dropout,
    Normalize,
    StaticEmbedding,
)
from thinc.api import fix_random_seed
from tokenizers import Tokenizer

from spacy_sbert.hub import export_folder, import_folder
from spacy_sbert.pipeline.sentence_model import find_static_embedding

ASSETS = ROOT / "assets"
SHARED = "config_sentence_transformers.json"
WIDTH = 16
STATIC = "spacy-sbert.StaticSentenceEncoder.v1"
DENSE = {"@layers": "spacy-sbert.Dense.v1", "nI": WIDTH, "nO": 8, "activation": "tanh"}
IDENTITY = {**DENSE, "nI": 8, "nO": 6, "activation": "identity", "bias": False}
EXPORTS = {
    "plain": {},
    "all": {
        "dense": {"@layers": "chain.v1", "*": {"a": DENSE, "b": IDENTITY}},
        "normalize": True,
        "truncate_dim": 5,
    },
}
IMPORTS = {
    "plain": lambda: [],
    "Normalize": lambda: [Normalize()],
    "Dense": lambda: [Dense(WIDTH, 8)],
    "all": lambda: [Dense(WIDTH, 8), Dropout(0.9), Dense(8, 6), Normalize(), Dropout()],
}


def texts():
    """Sentences, and texts that are long, have characters that are unknown, special tokens, or
    nothing to pool.
    """
    lines = (ASSETS / "texts-train.txt").read_text(encoding="utf8").splitlines()[::10]
    strange = [
        "the \u1234 cat \N{SNOWMAN}",
        "\u1234",
        "[UNK] the [CLS] [SEP] [PAD]",
        "CAT",
        "  a man  ",
        "a\u200bman",
    ]
    return [*lines, " ".join(lines[:20]), *strange, "E\u0301 \u4e2d", "", " ", "\n\t"]


def make_nlp(source, is_drawn=True, **model):
    """A pipeline with a random table, and random biases in its dense layers."""
    nlp = one_pipe(source, **{"@architectures": STATIC, "width": WIDTH, **model})
    if not is_drawn:
        return nlp
    fix_random_seed(0)
    nlp.initialize()
    for number, node in enumerate(nlp.get_pipe("sbert").model.walk()):
        if node.name == "dense" and node.has_param("b"):
            node.set_param(
                "b",
                numpy.random.default_rng(number).normal(size=node.get_dim("nO")).astype("float32"),
            )
    return nlp


def make_folder(source, path, case="plain", dtype=torch.float32, **settings):
    """A folder as sentence-transformers saves it, with the tokenizer of another."""
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer.no_truncation()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        table = torch.randn(tokenizer.get_vocab_size(), WIDTH) / 10
        modules = [StaticEmbedding(tokenizer, embedding_weights=table), *IMPORTS[case]()]
    SentenceTransformer(modules=modules, device="cpu", **settings).to(dtype).save(str(path))
    return path


def make_model2vec(source, path):
    """A folder as model2vec saves it, whose tokenizer cuts at 128 wordpieces."""
    make_folder(source, path, "Normalize", torch.float16)
    table = load_file(path / "model.safetensors")["embedding.weight"]
    save_file({"embeddings": table}, path / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding(length=128)
    tokenizer.save(str(path / "tokenizer.json"))
    (path / "config.json").write_text('{"model_type": "model2vec", "normalize": true}')
    write_modules(path, ("StaticEmbedding", "."), ("Normalize", "1_Normalize"))
    return path


def encode(path, given):
    """The vectors of sentence-transformers, in float32 whatever the weights are saved in."""
    return SentenceTransformer(str(path), device="cpu").float().encode(given)


def largest_difference(ours, theirs):
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype == numpy.float32
    return float(numpy.abs(ours - theirs).max())


def vectors(nlp, given):
    """Of the pipe's encode, which those of Docs equal."""
    encoded = nlp.get_pipe("sbert").encode(given)
    assert largest_difference(numpy.stack([doc.vector for doc in nlp.pipe(given)]), encoded) < 1e-6
    return encoded


def is_empty(nlp, given):
    tokenizer = Tokenizer.from_str(
        find_static_embedding(nlp.get_pipe("sbert").model).attrs["tokenizer"]
    )
    return numpy.array([not tokenizer.encode(text, add_special_tokens=False).ids for text in given])


@pytest.mark.parametrize("case", EXPORTS)
def test_out_and_in_again(case, tiny_bert, tmp_path):
    given = texts()
    nlp = make_nlp(tiny_bert, **EXPORTS[case])
    ours = vectors(nlp, given)
    empty = is_empty(nlp, given)
    assert 3 <= empty.sum() < 6 < len(given)
    assert not ours[empty].any()
    assert ours[~empty].any(axis=1).all()
    export_folder(nlp, tmp_path / "out")
    theirs = encode(tmp_path / "out", given)
    assert largest_difference(ours[~empty], theirs[~empty]) < 1e-6
    # A text without wordpieces has no vector here; there a dense layer makes one of its bias.
    assert theirs[empty].any() == ("dense" in EXPORTS[case])
    again = import_folder(str(tmp_path / "out"))
    assert numpy.array_equal(vectors(again, given), ours)
    export_folder(again, tmp_path / "again")
    files = [
        file.relative_to(tmp_path / "out")
        for file in (tmp_path / "out").rglob("*.*")
        if file.name != "README.md"
    ]
    assert len(files) == 4 + 2 * str(EXPORTS[case]).count("Dense.v1")
    assert all(
        (tmp_path / "out" / file).read_bytes() == (tmp_path / "again" / file).read_bytes()
        for file in files
    )


@pytest.mark.parametrize(
    ("case", "dtype"),
    [("plain", torch.bfloat16), ("all", torch.float32), ("Normalize", torch.float16)],
    ids=str,
)
def test_in(case, dtype, tiny_bert, tmp_path):
    given = texts()
    folder = make_folder(tiny_bert, tmp_path / "in", case, dtype)
    theirs = encode(folder, given)
    name = str(dtype).removeprefix("torch.")
    is_half = dtype is not torch.float32
    half = pytest.warns(UserWarning, match=rf"\[sbert-static-half-precision\] .* {name}")
    with half if is_half else no_warnings():
        nlp = import_folder(str(folder))
    empty = is_empty(nlp, given)
    assert largest_difference(vectors(nlp, given)[~empty], theirs[~empty]) < 1e-6
    nlp.to_disk(tmp_path / "nlp")
    shutil.rmtree(folder)
    assert numpy.array_equal(vectors(spacy.load(tmp_path / "nlp"), given), vectors(nlp, given))


def test_the_layout_of_model2vec(tiny_bert, tmp_path):
    folder = make_model2vec(tiny_bert, tmp_path / "in")
    with pytest.warns(UserWarning, match=r"\[sbert-import-static-uncut\] .* 128 wordpieces"):
        nlp = import_folder(str(folder))
    short = ["a man is eating food", "the cat sat \u1234", "", "cat " * 128]
    assert largest_difference(vectors(nlp, short), encode(folder, short)) < 1e-6
    long = ["the " * 120 + "cat sat on the mat " * 10]
    assert largest_difference(vectors(nlp, long), encode(folder, long)) > 1e-3
    uncut = SentenceTransformer(str(folder), device="cpu").float()
    uncut[0].tokenizer.no_truncation()
    assert largest_difference(vectors(nlp, long), uncut.encode(long)) < 1e-6


def test_rounding_of_long_texts(tiny_bert, tmp_path):
    """Of 12,000 wordpieces four are seen again and again: their float32 sums drift, ours less."""
    nlp = make_nlp(tiny_bert)
    text = "the cat sat fast " * 3000
    table = find_static_embedding(nlp.get_pipe("sbert").model)
    ids = Tokenizer.from_str(table.attrs["tokenizer"]).encode(text).ids
    exact = table.get_param("E")[ids].mean(axis=0, dtype="float64")
    export_folder(nlp, tmp_path / "out")
    ours, theirs = (
        abs(found[0] - exact).max()
        for found in (vectors(nlp, [text]), encode(tmp_path / "out", [text]))
    )
    assert ours < 1e-6 < 1e-5 > theirs > ours


@pytest.mark.parametrize(
    ("pooling", "is_drawn", "expected"),
    [
        (
            "max",
            True,
            r"pooling = 'max', and StaticEmbedding .* always the mean: train .* pooling = \"mean\"",
        ),
        ("mean+max", True, r"pooling = 'mean\+max', and StaticEmbedding .* always the mean"),
        ("mean", False, r"no table yet: .* nlp\.initialize\(\)"),
    ],
)
def test_refused_exports(pooling, is_drawn, expected, tiny_bert, tmp_path):
    nlp = make_nlp(tiny_bert, pooling=pooling, is_drawn=is_drawn)
    with pytest.raises(ValueError, match=expected):
        export_folder(nlp, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


PROMPTS = {"query": "the dog: ", "document": "", "passage": "a cat: "}


@pytest.mark.parametrize(("default", "given"), [("query", "the dog: "), ("other", "other")])
def test_a_default_prompt_is_not_lost(default, given, tiny_bert, tmp_path):
    """It is part of each vector; sentence-transformers refuses one without a text."""
    folder = make_folder(tiny_bert, tmp_path / "in", prompts=PROMPTS)
    change_json(folder / SHARED, default_prompt_name=default)
    with pytest.raises(
        ValueError,
        match=f"'{given}' .* default_prompt_name",
    ):
        import_folder(str(folder))
    nlp = make_nlp(folder, is_drawn=False)
    with pytest.raises(ValueError, match=f"the prompt '{given}' before every text"):
        nlp("the cat")


def to_pickle(folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def quantise(folder):
    table = torch.randn(100, WIDTH)
    tensors = {"embeddings": table, "weights": table[:, 0].clone(), "mapping": torch.arange(100)}
    save_file(tensors, folder / "model.safetensors")


# Beside those of models/test_static_embedding.py, which reads tables
DAMAGES = {
    "pickled": (
        to_pickle,
        r"has no model\.safetensors: download it again, or save it with safetensors",
    ),
    "quantised": (quantise, "quantized by its vocabulary must be made without that"),
    "Normalize first": (
        lambda folder: write_modules(
            folder, ("StaticEmbedding", ""), ("Normalize", "1_Normalize"), ("Dense", "1_Dense")
        ),
        "modules StaticEmbedding, Normalize, Dense: expected",
    ),
    "Dense of another width": (
        lambda folder: (
            change_json(folder / "1_Dense" / "config.json", in_features=9, bias=False),
            save_file(
                {"linear.weight": torch.zeros(8, 9)}, folder / "1_Dense" / "model.safetensors"
            ),
        ),
        "takes vectors of 9 numbers, and those before it have 16",
    ),
}


@pytest.fixture(scope="module")
def whole(tiny_bert, tmp_path_factory):
    return make_folder(tiny_bert, tmp_path_factory.mktemp("whole") / "in", "Dense")


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_folders(damage, whole, tmp_path):
    change, message = DAMAGES[damage]
    change(shutil.copytree(whole, tmp_path / "in"))
    with pytest.raises(ValueError, match=message):
        import_folder(str(tmp_path / "in"))
