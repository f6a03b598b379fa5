"""Folders of sentence-transformers, both ways: the same vectors, and what is refused."""

import json
import os
import shutil

import numpy
import pytest
import spacy
import torch
from helpers.invoking import said
from helpers.pipelines import MINILM, ROOT, change_json, make_example, one_pipe, write_modules
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Normalize,
    Pooling,
    Transformer,
)
from tokenizers import Regex, Tokenizer, normalizers
from transformers import BertConfig, BertModel, BertTokenizerFast, DistilBertConfig, DistilBertModel

from spacy_sbert.hub import export_folder, import_folder
from spacy_sbert.models.resolve import resolve

ASSETS = ROOT / "assets"
CASES = {
    "mean": ("mean", [], False),
    "max": ("max", [], False),
    "cls": ("cls", [], False),
    "mean_sqrt_len": ("mean_sqrt_len_tokens", [], False),
    "weightedmean": ("weightedmean", [], False),
    "lasttoken": ("lasttoken", [], False),
    "cls+max+mean": (["cls", "max", "mean"], [], False),
    # Not in the order of the flags
    "mean+cls": (["mean", "cls"], [], False),
    "Dense": ("mean", [8], False),
    "Normalize": ("mean", [], True),
    "all": (["cls", "mean"], [24, 8], True),
}


@pytest.fixture(scope="module")
def base(tiny_bert, tmp_path_factory):
    """A BERT with the tiny one's words, but with the width and small weights of real ones: rounding
    stays small.
    """
    folder = tmp_path_factory.mktemp("base") / "bert"
    shutil.copytree(tiny_bert, folder)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        config = BertConfig.from_pretrained(
            tiny_bert, hidden_size=64, intermediate_size=64, initializer_range=0.1
        )
        BertModel(config).save_pretrained(folder)
    return folder


def sentences():
    lines = [
        line
        for file in ("texts-train.txt", "texts-dev.txt")
        for line in (ASSETS / file).read_text().splitlines()
    ]
    pairs = (ASSETS / "pairs-train.csv").read_text().splitlines()
    return list(dict.fromkeys([*lines, *(line.split("\t")[5] for line in pairs)]))[::5][:100]


def make(base, path, case="mean", **settings):
    """A folder as sentence-transformers saves it."""
    modes, widths, normalize = CASES[case]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformer = Transformer(str(base))
        width = transformer.get_embedding_dimension()
        modules = [
            transformer,
            Pooling(width, modes, include_prompt=settings.pop("include_prompt", True)),
        ]
        width *= len(modes) if isinstance(modes, list) else 1
        for given, wanted in zip([width, *widths], widths, strict=False):
            modules.append(
                Dense(given, wanted, activation_function=torch.nn.Tanh() if wanted == 8 else None)
            )
        modules += [Normalize()] if normalize else []
    SentenceTransformer(modules=modules, device="cpu", **settings).save(str(path))
    return path


@pytest.fixture(scope="module")
def made(base, tmp_path_factory):
    """Folders by their case, each made once: copy one to change it."""
    return {
        case: make(base, tmp_path_factory.mktemp("made") / case, case)
        for case in ("mean", "Dense", "all")
    }


def encode(path, texts, **settings):
    return SentenceTransformer(str(path), device="cpu").encode(texts, **settings)


def largest_difference(ours, theirs):
    assert ours.shape == theirs.shape
    return float(numpy.abs(ours - theirs).max())


# All of them with the real model
@pytest.mark.parametrize("case", ["cls", "mean+cls", "all"])
def test_both_ways(case, base, tmp_path):
    texts = sentences()
    theirs = encode(make(base, tmp_path / "in", case), texts)
    nlp = import_folder(str(tmp_path / "in"))
    assert largest_difference(nlp.get_pipe("sbert").encode(texts), theirs) < 1e-6
    nlp.to_disk(tmp_path / "nlp")
    shutil.rmtree(tmp_path / "in")
    loaded = spacy.load(tmp_path / "nlp")
    docs = list(loaded.pipe(texts))
    assert largest_difference(numpy.stack([doc.vector for doc in docs]), theirs) < 1e-6
    export_folder(loaded, tmp_path / "out")
    assert largest_difference(encode(tmp_path / "out", texts), theirs) < 1e-6


def test_token_types_that_an_encoder_does_not_read_are_not_exported(base, tmp_path):
    """With Transformers 4 sentence-transformers hands them to the encoder, which fails."""
    tokenizer = BertTokenizerFast(str(base / "vocab.txt"), model_max_length=24)
    sizes = {"dim": 16, "hidden_dim": 24, "n_layers": 1, "n_heads": 2, "vocab_size": len(tokenizer)}
    tokenizer.save_pretrained(tmp_path / "in")
    DistilBertModel(DistilBertConfig(**sizes, max_position_embeddings=24)).save_pretrained(
        tmp_path / "in"
    )
    nlp = import_folder(str(tmp_path / "in"))
    export_folder(nlp, tmp_path / "out")
    texts = ["the cat", "a man ran"]
    assert (
        largest_difference(encode(tmp_path / "out", texts), nlp.get_pipe("sbert").encode(texts))
        < 1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_both_ways_with_the_real_model(case, tmp_path):
    texts = sentences()
    theirs = encode(make(resolve(MINILM), tmp_path / "in", case), texts)
    nlp = import_folder(str(tmp_path / "in"))
    ours = numpy.stack([doc.vector for doc in nlp.pipe(texts)])
    assert largest_difference(ours, theirs) < 1e-6
    # Nothing is added up after the encoder
    if case in ("max", "cls", "lasttoken"):
        assert numpy.array_equal(ours, theirs)
    assert largest_difference(nlp(texts[0]).vector, encode(tmp_path / "in", texts[0])) < 1e-6
    export_folder(nlp, tmp_path / "out")
    assert largest_difference(encode(tmp_path / "out", texts), theirs) < 1e-6


def test_the_precision_of_an_import(base, made, tmp_path):
    """ "all" makes 8 numbers of 128, and scales them."""

    def precision(folder, **settings):
        return import_folder(str(folder), **settings).config["components"]["sbert"]["model"][
            "precision"
        ]

    assert precision(make(base, tmp_path / "Normalize", "Normalize")) == "float32"
    assert precision(made["mean"]) == precision(made["all"]) == "reference"
    assert precision(made["mean"], precision="bfloat16") == "bfloat16"


def test_prompts_and_truncation_travel(base, tmp_path):
    texts = ["a man is eating food", "the cat sat on the mat"]
    prompts = {"query": "a cat: ", "passage": "the dog: "}
    make(base, tmp_path / "in", "all", prompts=prompts, default_prompt_name="query", truncate_dim=5)
    nlp = import_folder(str(tmp_path / "in"))
    export_folder(nlp, tmp_path / "out")
    ours = nlp.get_pipe("sbert")
    for folder in ("in", "out"):
        theirs = SentenceTransformer(str(tmp_path / folder), device="cpu")
        assert largest_difference(ours.encode(texts), theirs.encode(texts)) < 1e-6
        for settings in (
            {"prompt_name": "passage"},
            {"prompt": ""},
            {"prompt": "he: ", "truncate_dim": 3},
        ):
            expected = theirs.encode(texts, **settings)
            assert largest_difference(ours.encode(texts, **settings), expected) < 1e-6
            docs = list(nlp.pipe(texts, component_cfg={"sbert": settings}))
            assert largest_difference(numpy.stack([doc.vector for doc in docs]), expected) < 1e-6
    assert not numpy.allclose(ours.encode(texts), ours.encode(texts, prompt=""), atol=1e-3)


@pytest.mark.parametrize("case", ["mean", "lasttoken", "weightedmean", "cls+max+mean"])
def test_prompts_that_are_not_pooled(case, base, made, tmp_path):
    texts = ["a man is eating food", "cat"]
    make(base, tmp_path / "in", case, include_prompt=False, prompts={"query": "the dog: "})
    nlp = import_folder(str(tmp_path / "in"))
    # The folder decides what is pooled
    by_name = one_pipe(tmp_path / "in", pooling=case).get_pipe("sbert")
    expected = nlp.get_pipe("sbert").encode(texts, prompt_name="query")
    assert largest_difference(by_name.encode(texts, prompt_name="query"), expected) < 1e-5
    export_folder(nlp, tmp_path / "out")
    given = nlp.get_pipe("sbert").encode(texts, prompt_name="query")
    for folder in ("in", "out"):
        assert (
            largest_difference(
                given, encode(tmp_path / folder, texts, prompt_name="query", batch_size=1)
            )
            < 1e-6
        )
    if case == "mean":
        pooled = (
            import_folder(str(made["mean"])).get_pipe("sbert").encode(texts, prompt="the dog: ")
        )
        assert not numpy.allclose(given, pooled, atol=1e-4)


def test_limits_of_older_folders(base, tmp_path):
    """max_seq_length and do_lower_case in sentence_bert_config.json, flags of Pooling, the encoder
    in its own part.
    """
    folder = tmp_path / "old"
    shutil.copytree(base, folder / "0_BERT")
    (folder / "0_BERT" / "sentence_bert_config.json").write_text(
        '{"max_seq_length": 7, "do_lower_case": true}'
    )
    (folder / "1_Pooling").mkdir()
    flags = {
        "word_embedding_dimension": 64,
        "pooling_mode_cls_token": True,
        "pooling_mode_mean_sqrt_len_tokens": True,
    }
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(flags))
    write_modules(folder, ("Transformer", "0_BERT"), ("Pooling", "1_Pooling"))
    nlp = import_folder(str(folder))
    assert nlp.config["components"]["sbert"]["model"]["pooling"] == "cls+mean_sqrt_len"
    text = "A man is EATING food on the mat and the dog ran fast"
    with pytest.warns(UserWarning, match="limit of 7"):
        given = nlp(text).vector
    assert largest_difference(given, nlp(text.lower()[:18]).vector) > 0
    # Five words and two special tokens
    assert numpy.allclose(given, nlp("a man is eating food").vector, atol=1e-6)
    export_folder(nlp, tmp_path / "out")
    limits = json.loads((tmp_path / "out" / "sentence_bert_config.json").read_text())
    assert limits == {"max_seq_length": 7, "do_lower_case": True}
    assert largest_difference(encode(tmp_path / "out", [text])[0], given) < 1e-6


ORDERS = [
    ("Transformer", "Pooling", "Normalize", "Normalize"),
    ("Transformer", "Normalize", "Pooling"),
    ("Transformer", "Pooling", "Pooling"),
    ("Transformer", "Transformer", "Pooling"),
]


@pytest.mark.parametrize("kinds", ORDERS)
def test_an_order_that_is_not_followed(kinds, made, tmp_path):
    shutil.copytree(made["mean"], tmp_path / "in")
    paths = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    write_modules(tmp_path / "in", *((kind, paths[kind]) for kind in kinds))
    for use in (import_folder, lambda folder: one_pipe(folder)("a man")):
        with pytest.raises(ValueError, match=f"has the modules {', '.join(kinds)}: expected"):
            use(str(tmp_path / "in"))


def test_modules_of_one_name(made, tmp_path):
    """Of which sentence-transformers keeps the last."""
    file = shutil.copytree(made["all"], tmp_path / "in") / "modules.json"
    listed = json.loads(file.read_text())
    listed[2]["name"] = listed[1]["name"]
    file.write_text(json.dumps(listed))
    with pytest.raises(ValueError, match="name = '1'"):
        import_folder(str(tmp_path / "in"))


def test_without_modules_other_files_are_not_read(base, tmp_path):
    texts = ["a man is EATING food on the mat", "the cat"]
    folder = shutil.copytree(base, tmp_path / "plain")
    change_json(folder / "sentence_bert_config.json", max_seq_length=4)
    change_json(
        folder / "config_sentence_transformers.json",
        prompts={"query": "he "},
        default_prompt_name="query",
    )
    expected = encode(folder, texts)
    assert largest_difference(one_pipe(folder).get_pipe("sbert").encode(texts), expected) < 1e-5
    assert (
        largest_difference(import_folder(str(folder)).get_pipe("sbert").encode(texts), expected)
        < 1e-5
    )


def test_the_first_file_of_limits_is_read(made, tmp_path):
    """In the order of sentence-transformers, which passes over empty files and other names."""
    texts = ["a man is EATING food on the mat", "the cat"]
    folder = shutil.copytree(made["mean"], tmp_path / "in")
    (folder / "sentence_bert_config.json").write_text("{}")
    limits = {"albert": 5, "roberta": 8, "foo": 4}
    for kind, limit in limits.items():
        change_json(folder / f"sentence_{kind}_config.json", max_seq_length=limit)
    given = import_folder(str(folder)).get_pipe("sbert").encode(texts)
    assert largest_difference(given, encode(folder, texts)) < 1e-5


def test_lower_casing_leaves_special_tokens(base, tmp_path):
    """And lengthens what gets longer, as the tokenizer's own Lowercase does."""
    texts = ["A Man [SEP] is EATING", "\u0130 Cat"]
    folder = shutil.copytree(base, tmp_path / "cased")
    BertTokenizerFast(
        str(folder / "vocab.txt"), model_max_length=24, do_lower_case=False
    ).save_pretrained(folder)
    write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"))
    change_json(folder / "1_Pooling" / "config.json", embedding_dimension=64, pooling_mode="mean")
    cased = encode(folder, texts)
    change_json(folder / "sentence_bert_config.json", do_lower_case=True)
    expected = encode(folder, texts)
    assert largest_difference(cased, expected) > 1e-3
    nlp = import_folder(str(folder))
    assert largest_difference(nlp.get_pipe("sbert").encode(texts), expected) < 1e-5
    assert [token.has_vector for token in nlp("A Man ran")] == [True] * 3
    export_folder(nlp, tmp_path / "out")
    assert largest_difference(encode(tmp_path / "out", texts), expected) < 1e-5


def test_lower_casing_of_a_tokenizer_that_has_it(base, tmp_path):
    """It has no second one before its other steps, some of which may see capitals."""
    texts = ["A Man is EATING", "the CAT"]
    folder = shutil.copytree(base, tmp_path / "lowering")
    write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"))
    change_json(folder / "1_Pooling" / "config.json", embedding_dimension=64, pooling_mode="mean")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    a_dog = normalizers.Replace(Regex("CAT|EATING"), "dog")
    tokenizer.normalizer = normalizers.Sequence([a_dog, normalizers.Lowercase()])
    tokenizer.save(str(folder / "tokenizer.json"))
    change_json(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    change_json(folder / "sentence_bert_config.json", do_lower_case=True)
    sbert = import_folder(str(folder)).get_pipe("sbert")
    assert largest_difference(sbert.encode(texts), encode(folder, texts)) < 1e-5
    assert largest_difference(sbert.encode(["the CAT"]), sbert.encode(["the dog"])) < 1e-6


SETTINGS = [
    {"pooling": "max+cls", "normalize": True, "truncate_dim": 5},
    {"prompts": {"query": "the dog ran "}, "default_prompt_name": "query", "include_prompt": False},
    {
        "prompts": {"query": "he "},
        "default_prompt_name": "query",
        "include_prompt": False,
        "pooling": "cls+weightedmean",
    },
    {"tokenizer_config": {"model_max_length": 8}},
    {"tokenizer_config": {"do_lower_case": False}},
    {"transformer_config": {"num_hidden_layers": 1, "hidden_act": "relu"}},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_an_exported_folder_has_the_vectors_of_every_setting(settings, make_nlp, tmp_path):
    nlp = make_nlp(model=settings)
    texts = ["A man is eating food on the mat and the dog ran", "the CAT"]
    export_folder(nlp, tmp_path / "out")
    assert (
        largest_difference(nlp.get_pipe("sbert").encode(texts), encode(tmp_path / "out", texts))
        < 1e-5
    )


def test_commands(made, tmp_path):
    output = said("import", made["all"], tmp_path / "nlp", "--lang", "de", "--pipe", "vectors")
    assert "--precision float32" in output
    nlp = spacy.load(tmp_path / "nlp")
    assert nlp.pipe_names == ["vectors"]
    assert nlp.lang == "de"
    said("export", tmp_path / "nlp", tmp_path / "out")
    texts = ["a man is eating food", "the cat sat"]
    assert largest_difference(encode(tmp_path / "out", texts), encode(made["all"], texts)) < 1e-6
    for arguments in (
        ("export", tmp_path / "nlp", tmp_path / "out"),
        ("import", made["all"], tmp_path / "out"),
    ):
        assert "There is something at" in said(*arguments, code=1)
    said("import", tmp_path / "nowhere", tmp_path / "new", code=1)
    assert not (tmp_path / "new").exists()
    assert "--precision" not in said(
        "import", made["mean"], tmp_path / "fast", "--precision", "float32"
    )
    assert (
        spacy.load(tmp_path / "fast").config["components"]["sbert"]["model"]["precision"]
        == "float32"
    )


def test_dense_layers_are_used_trained_and_saved(made, tmp_path):
    nlp = import_folder(str(made["all"]))
    pipe = nlp.get_pipe("sbert")
    doc = nlp("the man ran fast")
    with pytest.raises(ValueError, match=r"nlp\.get_pipe\('sbert'\)\.vector\(span\)"):
        _ = doc[1:3].vector
    assert numpy.array_equal(pipe.vector(doc), doc.vector)
    assert pipe.vector(doc[1:3]).shape == (8,)
    assert numpy.linalg.norm(pipe.vector(doc[1:3])) == pytest.approx(1, abs=1e-6)
    assert not numpy.allclose(pipe.vector(doc[1:3]), pipe.vector(doc[2]))
    layers = [node for node in nlp.get_pipe("sbert").model.walk() if node.name == "dense"]
    before = [layer.get_param("W").copy() for layer in layers]
    examples = [
        make_example(nlp, "a man is eating", "he ran", 0.1),
        make_example(nlp, "the cat sat", "the cat", 0.9),
    ]
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 0.01
    losses = [nlp.update(examples, sgd=optimizer)["sbert"] for _ in range(8)]
    assert losses[-1] < 0.5 * losses[0]
    assert len(layers) == 2
    assert all(
        (layer.get_param("W") != kept).any() for layer, kept in zip(layers, before, strict=True)
    )
    nlp.to_disk(tmp_path / "nlp")
    text = "the man ran"
    assert numpy.array_equal(spacy.load(tmp_path / "nlp")(text).vector, nlp(text).vector)


def test_links_of_the_cache_are_followed(made, tmp_path):
    """huggingface_hub's cache has links to blobs/ as files; a link as a module's folder is
    named.
    """
    blobs = tmp_path / "blobs"
    folder = tmp_path / "snapshots" / "0123"
    shutil.copytree(made["all"], folder)
    blobs.mkdir()
    files = [path for path in folder.rglob("*") if path.is_file()]
    for number, path in enumerate(files):
        target = blobs / str(number)
        path.rename(target)
        path.symlink_to(os.path.relpath(target, path.parent))
    text = "the man ran"
    assert numpy.array_equal(
        import_folder(str(folder))(text).vector, import_folder(str(made["all"]))(text).vector
    )
    shutil.move(folder / "1_Pooling", tmp_path / "elsewhere")
    (folder / "1_Pooling").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"/1_Pooling is a link to .*/elsewhere"):
        import_folder(str(folder))


LINEAR = "2_Dense/config.json"
# File, place in it (None for all of it), value, and message
WRONG = [
    pytest.param(
        "modules.json",
        (4, "type"),
        "custom_module.Normalize",
        "custom_module.Normalize, which is unknown",
        id="unknown module",
    ),
    pytest.param(
        "modules.json",
        (1, "type"),
        "sentence_transformers.models.Normalize",
        "in this order",
        id="order",
    ),
    pytest.param("modules.json", (1, "path"), "../elsewhere", "outside of its folder", id="path"),
    pytest.param("modules.json", None, "[{", "modules.json", id="cut"),
    pytest.param(
        "1_Pooling/config.json",
        ("pooling_mode",),
        "median",
        "1_Pooling.* pooling_mode = 'median'",
        id="pooling",
    ),
    pytest.param(
        LINEAR, ("activation_function",), "os.system", "os.system is none of", id="activation"
    ),
    pytest.param(LINEAR, None, "[1]", r"2_Dense/config\.json.*found list", id="a list"),
    pytest.param(LINEAR, ("out_features",), 99, r"linear.weight of \(99, 128\)", id="width"),
]


@pytest.mark.parametrize(("name", "place", "value", "message"), WRONG)
def test_wrong_folders(made, tmp_path, name, place, value, message):
    file = shutil.copytree(made["all"], tmp_path / "in") / name
    if place is None:
        file.write_text(value)
    else:
        content = json.loads(file.read_text())
        *outer, key = place
        inner = content
        for part in outer:
            inner = inner[part]
        inner[key] = value
        file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        import_folder(str(tmp_path / "in"))


@pytest.mark.parametrize("file", ["model.safetensors", "2_Dense/model.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "header", "zeros"])
def test_damaged_weights(file, damage, made, tmp_path):
    weights = shutil.copytree(made["Dense"], tmp_path / "in") / file
    whole = weights.read_bytes()
    damaged = {"cut": whole[:-10], "header": b"\xff" * 8 + whole[8:], "zeros": b"\x00" * 100}
    weights.write_bytes(damaged[damage])
    with pytest.raises(ValueError, match="damaged or not whole"):
        import_folder(str(tmp_path / "in"))


def test_pickled_code_in_dense_weights_is_not_run(made, tmp_path):
    class Evil:
        def __reduce__(self):
            return open, (str(tmp_path / "ran"), "w")

    folder = shutil.copytree(made["Dense"], tmp_path / "in") / "2_Dense"
    weights = {"linear.weight": torch.zeros(8, 64), "linear.bias": torch.zeros(8)}
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    # tanh(0)
    assert not import_folder(str(tmp_path / "in"))("a man").vector.any()
    torch.save({**weights, "evil": Evil()}, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="damaged or not whole"):
        import_folder(str(tmp_path / "in"))
    assert not (tmp_path / "ran").exists()


def test_dense_weights_that_are_not_read_are_refused(made, tmp_path):
    folder = shutil.copytree(made["Dense"], tmp_path / "in") / "2_Dense"
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "norm.weight": torch.ones(8)}, folder / "model.safetensors")
    with pytest.raises(ValueError, match=r"its weights have norm\.weight, which a dense layer has"):
        import_folder(str(tmp_path / "in"))


def test_wrong_exports(make_nlp, tmp_path):
    nlp = make_nlp()
    nlp.add_pipe("sentencizer")
    with pytest.raises(ValueError, match=r"named 'sentencizer': .* sbert"):
        export_folder(nlp, tmp_path / "out", name="sentencizer")
    with pytest.raises(ValueError, match="no 'sbert' pipe named 'other'"):
        export_folder(nlp, tmp_path / "out", name="other")
    with pytest.warns(UserWarning, match="averages over windows"):
        export_folder(make_nlp(model={"overflow": "windows"}), tmp_path / "out")
    with pytest.warns(UserWarning, match='precision = "bfloat16"'):
        export_folder(make_nlp(model={"precision": "bfloat16"}), tmp_path / "half")
    dense = {"@layers": "Linear.v1", "nO": 4, "nI": 16}
    linear = make_nlp(model={"dense": dense})
    linear.initialize()
    with pytest.raises(ValueError, match="has the layer 'linear'"):
        export_folder(linear, tmp_path / "linear")


def test_a_shared_transformer_is_exported(make_nlp, tmp_path):
    nlp = make_nlp("shared", model={"pooling": "max", "normalize": True})
    export_folder(nlp, tmp_path / "out")
    assert largest_difference(encode(tmp_path / "out", ["a man"])[0], nlp("a man").vector) < 1e-6
    assert "pipeline_tag: sentence-similarity" in (tmp_path / "out" / "README.md").read_text()
