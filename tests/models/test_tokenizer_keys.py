"""Keys of a tokenizer's files and of tokenizer_config: followed as in sentence-transformers, or
named.
"""

import copy
import inspect
import json
import pickle
import re
import shutil
import warnings
from importlib import import_module
from pathlib import Path

import numpy
import pytest
import transformers
from helpers.pipelines import change_json, one_pipe, slow
from helpers.small_tokenizers import KINDS, TEXTS, make_folder
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import PreTrainedTokenizerBase

from spacy_sbert import find_sbert
from spacy_sbert.hub.sentence_transformers import export_folder, import_folder
from spacy_sbert.models.private_attributes import is_installed
from spacy_sbert.models.sbert_config import SentenceTransformersConfig
from spacy_sbert.models.tokenization import BatchTokenizer
from spacy_sbert.models.tokenizer_keys import FOLLOWED, REFUSED, WITHOUT_EFFECT

# Key -> values, in tokenizer_config.json and as a setting.
VALUES = {
    "truncation_side": ["left", "right", "middle"],
    "padding_side": ["left", "right"],
    "split_special_tokens": [True, False],
    "model_max_length": [6, 100],
    "max_len": [6],
    "model_input_names": [["input_ids"], ["input_ids", "token_type_ids", "attention_mask"]],
    "do_lower_case": [True, False],
    "strip_accents": [True, False],
    "tokenize_chinese_chars": [True, False],
    "do_basic_tokenize": [True, False],
    "never_split": [["MAN"]],
    "add_prefix_space": [True, False],
    "trim_offsets": [True, False],
    "errors": ["ignore"],
    "add_bos_token": [True, False],
    "add_eos_token": [True, False],
    "legacy": [True, False],
    "sp_model_kwargs": [{"enable_sampling": False}],
    "keep_accents": [False],
    "clean_up_tokenization_spaces": [True, False],
    "additional_special_tokens": [["cat"], []],
    "extra_special_tokens": [{"own_token": "cat"}, {}],
    "cls_token": ["a"],
    "sep_token": ["a"],
    "unk_token": ["a"],
    "pad_token": ["a"],
    "mask_token": ["a"],
    "bos_token": ["a"],
    "eos_token": ["a"],
    "extra_ids": [0, 3],
    "from_slow": [True, False],
    "use_fast": [True, False],
    "tokenizer_type": ["bert"],
    "chat_template": ["{% for m in messages %}{{ m['content'] }}{% endfor %}"],
    "max_length": [5],
    "stride": [2],
    "truncation": [True],
    "truncation_strategy": ["only_first"],
    "padding": ["max_length"],
    "pad_to_multiple_of": [8],
    "add_special_tokens": [False],
    "subfolder": ["inner"],
    "src_lang": ["a"],
    "own_key": [1],
}
TRUNCATION = {"direction": "Left", "max_length": 6, "strategy": "OnlyFirst", "stride": 2}
PADDING = {"strategy": {"Fixed": 12}, "direction": "Left", "pad_to_multiple_of": 8}
PADDING |= {"pad_id": 1, "pad_type_id": 0, "pad_token": "<pad>"}


def theirs(folder, **settings):
    """Their vectors, or the error."""
    try:
        model = SentenceTransformer(str(folder), device="cpu", processor_kwargs=settings)
        return model.encode(TEXTS, show_progress_bar=False)
    except Exception as error:
        return error


def own(folder, **settings):
    nlp = one_pipe(folder, pooling="mean", tokenizer_config=settings)
    return numpy.concatenate(
        [find_sbert(nlp).encode(TEXTS[:3]), [doc.vector for doc in nlp.pipe(TEXTS[3:])]]
    )


def imported(folder, **settings):
    return find_sbert(import_folder(str(folder))).encode(TEXTS)


def exported(folder, **settings):
    out = folder.parent / f"{folder.name}-out"
    shutil.rmtree(out, ignore_errors=True)
    export_folder(import_folder(str(folder)), out)
    result = theirs(out)
    if isinstance(result, Exception):
        raise result
    return result


def reloaded(folder, **settings):
    nlp = one_pipe(folder, pooling="mean", tokenizer_config=settings)
    find_sbert(nlp).encode(TEXTS[:1])
    again = one_pipe(folder, pooling="mean", tokenizer_config=settings).from_bytes(nlp.to_bytes())
    return find_sbert(again).encode(TEXTS)


def shared(folder, **settings):
    model = {"@architectures": "spacy-sbert.TransformerModel.v1", "tokenizer_config": settings}
    nlp = one_pipe(folder, "transformer", **model)
    nlp.add_pipe(
        "sbert", config={"model": {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}}
    )
    return numpy.stack([doc.vector for doc in nlp.pipe(TEXTS)])


SHARED = {"shared": shared} if is_installed() else {}
OF_FOLDER = {"imported": imported, "own": own, "exported": exported, **SHARED}
AS_SETTING = {"own": own, "reloaded": reloaded, **SHARED}


def outcome(way, folder, expected, key, **settings):
    """What becomes of a key: "equal", "named" in an error or a warning, or "silent"."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            vectors = way(folder, **settings)
        except Exception as error:
            message = str(error)
            if isinstance(expected, Exception) or key in message:
                return "named"
            return f"raises {type(error).__name__}: {message[:300]}"
    if isinstance(expected, Exception):
        # What they cannot
        return "equal"
    if vectors.shape == expected.shape and numpy.abs(vectors - expected).max() < 1e-5:
        return "equal"
    named = any(re.search(rf"\[sbert-(?!truncated).*{key}", str(each.message)) for each in caught)
    return "named" if named else f"silent, {numpy.abs(vectors - expected).max():.2g}"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("kinds")
    return {kind: make_folder(root / str(i), kind) for i, kind in enumerate(KINDS)}


def check(found):
    wrong = {case: value for case, value in found.items() if value not in ("equal", "named")}
    assert not wrong, json.dumps({str(case): value for case, value in wrong.items()}, indent=1)


@pytest.fixture(scope="module")
def plain(folders):
    """Their vectors of each kind before anything is changed."""
    return {kind: theirs(folder) for kind, folder in folders.items()}


def ways(expected, plain, every):
    """All ways for what changes vectors; one is enough for what does not, or what they refuse."""
    is_changed = not isinstance(expected, Exception) and numpy.abs(expected - plain).max() > 1e-5
    return every if is_changed else dict([next(iter(every.items()))])


WALKED = [next(iter(KINDS)), *slow(*list(KINDS)[1:])]


@pytest.mark.parametrize("kind", WALKED)
def test_keys_of_a_folder(folders, plain, kind, tmp_path):
    found = {}
    for key, values in VALUES.items():
        for value in values:
            folder = shutil.copytree(folders[kind], tmp_path / f"{key}-{values.index(value)}")
            change_json(folder / "tokenizer_config.json", **{key: value})
            expected = theirs(folder)
            for name, way in ways(expected, plain[kind], OF_FOLDER).items():
                found[key, str(value), name] = outcome(way, folder, expected, key)
    check(found)


@pytest.mark.parametrize("kind", WALKED)
def test_settings(folders, plain, kind):
    found = {}
    for key, values in VALUES.items():
        for value in values:
            expected = theirs(folders[kind], **{key: value})
            for name, way in ways(expected, plain[kind], AS_SETTING).items():
                found[key, str(value), name] = outcome(
                    way, folders[kind], expected, key, **{key: value}
                )
    check(found)


def test_truncation_and_padding_of_tokenizer_json(folders, tmp_path):
    """Only the side of truncation is read: of "stride", "strategy" and lengths a call is made with
    its own.
    """
    folder = shutil.copytree(folders["unigram"], tmp_path / "encoder")
    change_json(folder / "tokenizer.json", truncation=TRUNCATION, padding=PADDING)
    expected = theirs(folder)
    assert not isinstance(expected, Exception)
    found = {
        name: outcome(way, folder, expected, "padding_side") for name, way in OF_FOLDER.items()
    }
    check(found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_lower_case_and_prompts(folders, kind, side, tmp_path):
    folder = shutil.copytree(folders[kind], tmp_path / "encoder")
    change_json(folder / "tokenizer_config.json", truncation_side=side)
    change_json(folder / "sentence_bert_config.json", do_lower_case=True, max_seq_length=20)
    model = SentenceTransformer(str(folder), device="cpu")
    ours = find_sbert(import_folder(str(folder)))
    for prompt in ("", "A CAT: "):
        given, expected = (
            each.encode([*TEXTS, "İSTANBUL"], prompt=prompt) for each in (ours, model)
        )
        assert numpy.abs(given - expected).max() < 1e-5
    change_json(folder / "1_Pooling" / "config.json", include_prompt=False)
    model = SentenceTransformer(str(folder), device="cpu")
    ours = find_sbert(import_folder(str(folder)))
    for text in TEXTS[:3]:
        given, expected = (each.encode([text], prompt="a cat: ") for each in (ours, model))
        assert numpy.abs(given - expected).max() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_pairs(folders, kind, side, tmp_path):
    """With lengths at which the two kinds of tokenizers cut otherwise."""
    folder = shutil.copytree(folders[kind], tmp_path / "encoder")
    for name in ("modules.json", "sentence_bert_config.json"):
        (folder / name).unlink()
    change_json(folder / "tokenizer_config.json", truncation_side=side)
    network = transformers.BertForSequenceClassification.from_pretrained(folder, num_labels=1)
    network.save_pretrained(folder)
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    pairs = [
        (" ".join(words[:first]), " ".join(words[:second]))
        for first in (1, 4, 5, 8)
        for second in (1, 4, 5, 8)
    ]
    for limit in (10, 11):
        expected = CrossEncoder(str(folder), device="cpu", max_length=limit).predict(
            pairs, show_progress_bar=False
        )
        nlp = one_pipe(folder, "sbert_reranker", max_length=limit)
        scores = nlp.get_pipe("sbert_reranker").score_pairs(pairs)
        assert numpy.abs(numpy.asarray(scores).ravel() - expected.ravel()).max() < 1e-5


@pytest.mark.parametrize("kind", ["wordpiece", "slow wordpiece", "slow bytes"])
def test_docs_of_which_the_beginning_is_cut(folders, kind):
    """Tokens in front have no vectors, those at the end have theirs; windows hold all
    wordpieces.
    """
    text = TEXTS[0]
    settings = {"truncation_side": "left", "model_max_length": 10}
    nlp = one_pipe(folders[kind], pooling="mean", tokenizer_config=settings)
    with pytest.warns(UserWarning, match="were cut"):
        doc = nlp(text)
    assert doc._.sbert_truncated
    assert doc[-1].has_vector
    with pytest.warns(UserWarning, match="sbert-behind-limit"):
        assert not doc[0].vector.any()
    windows = one_pipe(
        folders[kind], pooling="mean", tokenizer_config=settings, overflow="windows"
    )(text)
    assert not windows._.sbert_truncated
    assert all(token.has_vector for token in windows)


def test_a_chat_template_of_a_plain_folder(folders, tmp_path):
    """Sentence-transformers puts texts into it if no modules.json says that they are texts."""
    folder = shutil.copytree(folders["wordpiece"], tmp_path / "encoder")
    template = "{% for m in messages %}cat {{ m['content'] }}{% endfor %}"
    change_json(folder / "tokenizer_config.json", chat_template=template)
    for name in ("modules.json", "sentence_bert_config.json"):
        (folder / name).unlink()
    for way in (imported, own):
        with pytest.raises(ValueError, match="chat_template"):
            way(folder)
    with pytest.raises(ValueError, match="chat_template"):
        one_pipe(folder, "sbert_reranker").get_pipe("sbert_reranker").score_pairs([("a", "cat")])
    expected = theirs(folder, chat_template=None)
    assert numpy.abs(reloaded(folder, chat_template=None) - expected).max() < 1e-5


# Encoders that add an embedding of token type 0, and others that read or drop it.
TYPED = {
    "xlm": {"emb_dim": 16, "n_layers": 2, "n_heads": 2},
    "flaubert": {"emb_dim": 16, "n_layers": 2, "n_heads": 2},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "openai-gpt": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "ctrl": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "dff": 24},
    "xlnet": {
        "d_model": 16,
        "n_layer": 2,
        "n_head": 2,
        "d_inner": 24,
        "max_position_embeddings": ...,
    },
    "electra": {"embedding_size": 16},
    "distilbert": {"dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 2},
    "deberta-v2": {"type_vocab_size": 2},
}


@pytest.mark.parametrize("model", TYPED)
def test_token_types_of_zeros(model, tmp_path):
    folder = make_folder(tmp_path / "encoder", "wordpiece", model, **TYPED[model])
    names = ["input_ids", "attention_mask"]
    for given in (names, [*names, "token_type_ids"]):
        change_json(folder / "tokenizer_config.json", model_input_names=given)
        expected = theirs(folder)
        if isinstance(expected, Exception):
            assert "token_type_ids" in str(expected), "of those that read none"
            continue
        for way in (imported, own, reloaded, *SHARED.values()):
            assert outcome(way, folder, expected, "model_input_names") == "equal", way


def test_a_wordpiece_without_an_embedding(folders, tmp_path):
    folder = shutil.copytree(folders["wordpiece"], tmp_path / "encoder")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["zebrafish", "axolotl"])
    tokenizer.save_pretrained(folder)
    expected = theirs(folder)
    for way in (imported, own, *SHARED.values()):
        with pytest.warns(
            UserWarning,
            match=r"\[sbert-tokens-without-embedding\].*\(zebrafish, axolotl\)",
        ):
            assert numpy.abs(way(folder) - expected).max() < 1e-5
    nlp = one_pipe(folder, pooling="mean")
    reranker = one_pipe(folder, "sbert_reranker").get_pipe("sbert_reranker")
    with pytest.warns(UserWarning, match="sbert-tokens-without-embedding"):
        nlp("a cat")
        reranker.score_pairs([("a", "cat")])
    uses = [lambda: nlp("a zebrafish"), lambda: find_sbert(nlp).encode(["a zebrafish"])]
    uses += [lambda: reranker.score_pairs([("a cat", "a zebrafish")])]
    for use in uses:
        with pytest.raises(ValueError, match=r"wordpiece 'zebrafish' \(id \d+\)"):
            use()


def test_a_special_token_without_an_embedding(folders, tmp_path):
    folder = shutil.copytree(folders["unigram"], tmp_path / "encoder")
    content = json.loads((folder / "tokenizer.json").read_text())
    content["post_processor"]["special_tokens"]["</s>"]["ids"] = [100_000]
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="has the id 100000, and the encoder has"):
        own(folder)


def test_a_text_that_ends_with_the_token_of_its_end(folders):
    """Slow tokenizers of ByT5 add no second one."""
    folder = folders["slow bytes"]
    texts = ["a</s>", "</s>", "a"]
    given = find_sbert(one_pipe(folder, pooling="mean")).encode(texts)
    expected = SentenceTransformer(str(folder), device="cpu").encode(texts, batch_size=1)
    assert numpy.abs(given - expected).max() < 1e-5


@pytest.mark.parametrize(("model", "number"), [("bert", -1), ("gpt2", 100_000)])
def test_padding_that_the_encoder_has_no_embedding_of(model, number, tmp_path):
    folder = make_folder(tmp_path / "encoder", "wordpiece", model, **TYPED.get(model, {}))
    change_json(folder / "config.json", pad_token_id=number)
    given = find_sbert(one_pipe(folder, pooling="mean", precision="reference")).encode(TEXTS)
    assert numpy.abs(given - theirs(folder)).max() < 1e-5


def test_split_special_tokens_survive_a_pickle(folders):
    """As to a worker process."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        folders["wordpiece"], split_special_tokens=True
    )
    given = BatchTokenizer(tokenizer, SentenceTransformersConfig("x", 10), "truncate")
    ids = given([TEXTS[2]], offsets=False).ids.tolist()
    assert ids == tokenizer(TEXTS[2], truncation=True, max_length=10)["input_ids"]
    for each in (pickle.loads(pickle.dumps(given)), copy.deepcopy(given)):
        assert each([TEXTS[2]], offsets=False).ids.tolist() == ids


def test_encoders_that_split_special_tokens_are_others(folders):
    pipes = [
        one_pipe(folders["wordpiece"], tokenizer_config={"split_special_tokens": given})
        for given in (True, False)
    ]
    with pytest.warns(UserWarning, match="sbert-other-encoder"):
        pipes[0]("a cat").similarity(pipes[1]("a cat"))


def test_unknown_keys_are_named(folders, tmp_path):
    folder = shutil.copytree(folders["unigram"], tmp_path / "encoder")
    change_json(folder / "tokenizer_config.json", truncation_sid="left")
    files = {"tokenizer_config.json": "truncation_sid"}
    # Which makes a special token of each key of that file
    if transformers.__version__ < "5":
        change_json(folder / "special_tokens_map.json", own_token="a")
        files["special_tokens_map.json"] = "own_token"
    with pytest.warns(UserWarning, match=r"\[sbert-unknown-tokenizer-keys\]") as caught:
        own(folder)
    named = [str(each.message) for each in caught if "unknown-tokenizer-keys" in str(each.message)]
    for message, (file, key) in zip(named, files.items(), strict=True):
        assert file in message
        assert key in message


def test_what_a_class_does_beyond_its_rules_is_refused(folders, monkeypatch):
    """As a class that splits words by itself before it calls the tokenizers library."""
    kind = type(transformers.AutoTokenizer.from_pretrained(folders["unigram"]))
    plain_call = kind.__call__
    monkeypatch.setattr(
        kind,
        "__call__",
        lambda self, text, *args, **given: plain_call(self, _twice(text), *args, **given),
    )
    with pytest.raises(ValueError, match=f"The tokenizer {kind.__name__} .* not supported"):
        own(folders["unigram"])


def _twice(text):
    return f"{text} {text}" if isinstance(text, str) else [f"{each} {each}" for each in text]


def classes():
    """All classes of tokenizers of the installed version that can be imported."""
    root = Path(transformers.__file__).parent / "models"
    found = set()
    for file in sorted(root.glob("*/tokenization_*.py")):
        try:
            module = import_module(f"transformers.models.{file.parent.name}.{file.stem}")
        except (ImportError, NameError):
            # Of a package that is not installed
            continue
        kinds = [each for each in vars(module).values() if inspect.isclass(each)]
        found |= {each for each in kinds if issubclass(each, PreTrainedTokenizerBase)}
    return sorted(found, key=lambda kind: kind.__name__)


def test_every_argument_of_every_class_is_listed():
    kinds = classes()
    assert len(kinds) > 80
    arguments = set()
    for kind in kinds:
        makers = [vars(base)["__init__"] for base in kind.__mro__[:-1] if "__init__" in vars(base)]
        named = [each for make in makers for each in inspect.signature(make).parameters.values()]
        arguments |= {
            each.name for each in named if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
        }
    arguments |= set(PreTrainedTokenizerBase.SPECIAL_TOKENS_ATTRIBUTES) - {"self"}
    assert sorted(arguments - {"self"} - FOLLOWED - WITHOUT_EFFECT.keys()) == []
    assert not FOLLOWED & WITHOUT_EFFECT.keys()
    assert not (FOLLOWED | WITHOUT_EFFECT.keys()) & REFUSED.keys()


def test_wordpieces_that_are_drawn_are_refused(tmp_path):
    """However rarely: a check of some texts does not find it."""
    folder = make_folder(tmp_path / "encoder", "byte-level BPE", "roberta")
    # That of RoBERTa is built anew in version 5 of transformers, without dropout
    change_json(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    state = json.loads((folder / "tokenizer.json").read_text(encoding="utf8"))
    state["model"]["dropout"] = 1e-4
    (folder / "tokenizer.json").write_text(json.dumps(state), encoding="utf8")
    for read in (lambda: one_pipe(folder)("a man"), lambda: import_folder(str(folder))("a man")):
        with pytest.raises(ValueError, match=r"at random: .* dropout = 0.0001"):
            read()
    state["model"]["dropout"] = 0.0
    (folder / "tokenizer.json").write_text(json.dumps(state), encoding="utf8")
    assert one_pipe(folder)("a man").vector.any()
