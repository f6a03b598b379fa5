"""Modules of sentence-transformers without a counterpart here: each is refused by name, with what
to do instead.
"""

import json
import re
import shutil

import numpy
import pytest
import sentence_transformers.sentence_transformer.modules as sentence_modules
import sentence_transformers.sparse_encoder.modules as sparse_modules
import torch
from helpers.pipelines import one_pipe
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Dropout,
    Normalize,
    Pooling,
    Transformer,
)
from tokenizers import Tokenizer

from spacy_sbert import find_sbert
from spacy_sbert.hub import import_folder
from spacy_sbert.models.folder_modules import FOREIGN, OLD_TRANSFORMERS
from spacy_sbert.models.resolve import resolve

WIDTH = 16
WORDS = ["a", "cat", "sat", "man", "dog"]


def encoder(folder, *, width=WIDTH):
    return [Transformer(str(folder)), Pooling(width)]


def static(folder):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return sentence_modules.StaticEmbedding(
        tokenizer, embedding_weights=torch.randn(tokenizer.get_vocab_size(), WIDTH)
    )


MODULES = {
    "CNN": lambda folder: [
        Transformer(str(folder)),
        sentence_modules.CNN(WIDTH, 4, [1, 3]),
        Pooling(8),
    ],
    "LayerNorm": lambda folder: [*encoder(folder), sentence_modules.LayerNorm(WIDTH)],
    "static LayerNorm": lambda folder: [static(folder), sentence_modules.LayerNorm(WIDTH)],
    "BoW": lambda folder: [sentence_modules.BoW(WORDS)],
}


def save(modules, path):
    SentenceTransformer(modules=modules, device="cpu").save(str(path))
    return path


def rename(folder, place, name):
    modules = json.loads((folder / "modules.json").read_text())
    modules[place]["type"] = name
    (folder / "modules.json").write_text(json.dumps(modules))


@pytest.mark.parametrize("case", MODULES)
def test_import_refuses_by_name(case, tiny_bert, tmp_path):
    folder = save(MODULES[case](tiny_bert), tmp_path / "in")
    assert numpy.isfinite(
        SentenceTransformer(str(folder), device="cpu").encode(["a cat sat"])
    ).all()
    named = case.split()[-1]
    kind, remedy = FOREIGN[named]
    types = [module["type"] for module in json.loads((folder / "modules.json").read_text())]
    (given,) = (type for type in types if type.endswith(f".{named}"))
    with pytest.raises(ValueError, match=r"The\ folder") as raised:
        import_folder(str(folder))
    assert str(raised.value).endswith(
        f"The folder {folder} has the module {given}, which is unknown here: it is {kind}. {remedy}"
    )
    # Behind a Transformer, whose config.json would do without it
    if case in ("CNN", "LayerNorm"):
        with pytest.raises(ValueError, match=f"sentence encoder with {case}, and normalize = "):
            vector(folder)
        assert numpy.allclose(
            vector(folder, normalize=False), vector(tiny_bert, normalize=False), atol=1e-6
        )


@pytest.mark.parametrize("place", range(3))
def test_each_name_is_refused_wherever_it_stands(place, tiny_bert, tmp_path):
    """Old names and new ones; of parts that are packages of their own too."""
    folder = save([*encoder(tiny_bert), Normalize()], tmp_path / "in")
    for number, name in enumerate(FOREIGN):
        package = ("models", "sentence_transformer.modules.any", "sparse_encoder.models")[
            number % 3
        ]
        rename(folder, place, f"sentence_transformers.{package}.{name}")
        with pytest.raises(
            ValueError, match=rf"{package}\.{name}, which is unknown here: it is "
        ) as raised:
            import_folder(str(folder))
        assert FOREIGN[name][1] in str(raised.value)


def test_every_module_of_the_library_is_known():
    """So that a new version's new module is found here."""
    known = {
        "Transformer",
        "Pooling",
        "Dense",
        "Normalize",
        "Dropout",
        "StaticEmbedding",
        "Module",
        "InputModule",
    }
    assert {*sentence_modules.__all__, *sparse_modules.__all__} - known == set(FOREIGN) - {
        "LogitScore",
        *OLD_TRANSFORMERS,
    }


def test_config_of_a_part_is_ignored(tiny_bert, tmp_path):
    """A folder whose texts no Transformer reads, with a whole encoder beside its modules.json."""
    folder = save(MODULES["BoW"](tiny_bert), tmp_path / "in")
    for use in (
        lambda: resolve(str(folder)),
        lambda: vector(folder),
        lambda: vector(folder, normalize=False),
    ):
        with pytest.raises(ValueError, match=r"\.BoW, which is unknown here"):
            use()
    shutil.copytree(tiny_bert, folder, dirs_exist_ok=True)
    with pytest.raises(ValueError, match=r"\.BoW, which is unknown here"):
        vector(folder, normalize=False)


def vector(folder, **model):
    return one_pipe(folder, **model)("a cat sat").vector


@pytest.mark.parametrize("given", ["custom_st.Router", "custom_st.modules.StaticEmbedding"])
def test_foreign_module_with_a_known_name(given, tiny_bert, tmp_path):
    folder = save(encoder(tiny_bert), tmp_path / "in")
    rename(folder, 0, given)
    with pytest.raises(
        ValueError,
        match=rf"names the module {given}: expected sentence_transformers\.models\.Transf",
    ):
        import_folder(str(folder))
    with pytest.raises(
        ValueError, match=rf"names the module {given}: expected sentence_transformers"
    ):
        vector(folder, normalize=False)


@pytest.mark.parametrize("places", [(3,), (2, 4)])
def test_dropout_does_nothing_in_use(places, tiny_bert, tmp_path):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        modules = [*encoder(tiny_bert), Dense(WIDTH, 8), Normalize()]
    for place in places:
        modules.insert(place, Dropout(0.9))
    folder = save(modules, tmp_path / "in")
    theirs = SentenceTransformer(str(folder), device="cpu").encode(["a cat sat"])
    assert numpy.abs(import_folder(str(folder))("a cat sat").vector - theirs[0]).max() < 1e-6
    plain = save([*encoder(tiny_bert), Dropout(0.9), Normalize()], tmp_path / "plain")
    assert numpy.linalg.norm(vector(plain)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("is_first", [True, False])
def test_the_remedy_for_a_router_gives_a_folder_that_loads(tiny_bert, tmp_path, is_first):
    transformer = Transformer(str(tiny_bert))
    routes = {"query": [Pooling(WIDTH, "cls")], "document": [Pooling(WIDTH, "mean")]}
    modules = [transformer, sentence_modules.Router(routes, default_route="document")]
    if is_first:
        modules = [sentence_modules.Router({name: [transformer, *routes[name]] for name in routes})]
    model = SentenceTransformer(modules=modules, device="cpu")
    model.save(str(tmp_path / "router"))
    with pytest.raises(ValueError, match="Save one route") as raised:
        import_folder(str(tmp_path / "router"))
    expression = re.search(r"modules = (\[.*\]), then", str(raised.value))[1]
    route = SentenceTransformer(modules=eval(expression, {"model": model}), device="cpu")
    route.save(str(tmp_path / "query"))
    vectors = find_sbert(import_folder(str(tmp_path / "query"))).encode(["a dog"])
    assert numpy.allclose(vectors, model.encode_query(["a dog"]), atol=1e-6)
