"""Saved pipelines and encoders' folders, damaged: refused by name, or the same vectors; nothing
runs, nothing hangs.
"""

import json
import random
import shutil
from functools import cache, partial

import numpy
import pytest
import spacy
import srsly
from helpers.counted_cases import damages, judge, parts
from helpers.pipelines import INSTALLED, one_pipe, shim_of, write_modules

from spacy_sbert.files.checksum import MARK

TEXT = "A man is eating food. He cannot go."
PAIR = ("the cat sat", "the dog ran fast")
KINDS = [
    kind for kind in ("own", "shared", "meta", "reranker") if kind != "shared" or kind in INSTALLED
]


def same(expected):
    """Whether vectors are those expected; of None any are."""
    return lambda found: (
        expected is None
        or (found.shape == expected.shape and numpy.allclose(found, expected, atol=1e-5))
    )


def answer(nlp):
    """The vector of a text, or the scores of pairs."""
    if "sbert_reranker" in nlp.pipe_names:
        return nlp.get_pipe("sbert_reranker").score_pairs([PAIR, PAIR[::-1]])
    return nlp(TEXT).vector


def build(kind, make_nlp, model):
    if kind == "reranker":
        nlp = one_pipe(factory="sbert_reranker", **model)
    elif kind == "meta":
        nlp = make_nlp("own")
        nlp.add_pipe("sbert", name="sbert_max", config={"model": {**model, "pooling": "max"}})
        nlp.add_pipe("sbert_meta", config={"method": "svd", "size": 5})
        pipe = nlp.get_pipe("sbert_meta")
        views = [
            numpy.random.default_rng(i).normal(size=(40, 16)).astype("float32") for i in range(2)
        ]
        pipe.estimator.fit(views, [member.name for member in pipe.members])
    else:
        nlp = make_nlp(
            kind, model={"dense": {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 6}}
        )
        (layer,) = (node for node in nlp.get_pipe("sbert").model.walk() if node.name == "dense")
        for key, shape in (("W", (6, 16)), ("b", (6,))):
            layer.set_param(key, numpy.random.default_rng(3).normal(size=shape).astype("float32"))
    return nlp


@pytest.fixture(scope="module")
def saved(make_nlp, tiny_bert, tmp_path_factory):
    """From a kind to a pipeline that was saved: its folder, and what it answers."""

    @cache
    def save(kind):
        nlp = build(kind, make_nlp, {"name": str(tiny_bert)})
        folder = tmp_path_factory.mktemp(kind)
        expected = answer(nlp)
        nlp.to_disk(folder)
        return folder, expected

    return save


@pytest.fixture
def make(saved, tmp_path):
    """The same, in a folder to damage."""
    return lambda kind: (shutil.copytree(saved(kind)[0], tmp_path / "model-last"), saved(kind)[1])


def ours(folder):
    """The files of our components in a saved pipeline; the cfg of a transformer is written by
    spacy-transformers.
    """
    return [
        file
        for file in sorted(folder.glob("*/*"))
        if file.parent.name.startswith(("sbert", "transformer"))
        if file.is_file() and not (file.parent.name == "transformer" and file.name == "cfg")
    ]


# In a saved model: each begins a class of bytes
LANDMARKS = (
    *(
        b"nodes",
        b"attrs",
        b"shims",
        b"params",
        b"files",
        b"sha256",
        b"config.json",
        b"model.safetensors",
    ),
    *(
        b"F32",
        b"spacy_sbert.json",
        b"special_tokens_map.json",
        b"tokenizer.json",
        b"tokenizer_config.json",
    ),
    *(b"vocab.txt", b"max_length", b"method", b"widths", MARK),
)
damaged_at_marks = partial(damages, landmarks=LANDMARKS)


@pytest.mark.parametrize("part", parts(80))
def test_flips_and_cuts_on_disk(part, make, counted):
    kind = KINDS[part % len(KINDS)]
    folder, expected = make(kind)
    rng = random.Random(f"{kind} {part}")
    nlp = spacy.load(folder)
    with counted(
        "a saved pipeline, damaged anywhere in what is ours, has the same vectors or names the file"
    ) as cases:
        for file in ours(folder):
            whole = file.read_bytes()
            pipe = nlp.get_pipe(file.parent.name)
            # spacy-transformers reads its file without saying which to the model, whose message
            # says where it lies
            is_theirs = type(pipe).__module__.startswith("spacy_transformers")
            named = "'model' in the folder of its component" if is_theirs else str(file)

            def use(pipe=pipe, place=file.parent):
                pipe.from_disk(place, exclude=["vocab"])
                return answer(nlp)

            for what, damaged in damaged_at_marks(whole, rng, 6 if file.name != "cfg" else 1):
                file.write_bytes(damaged)
                judge(cases, f"{kind} {file.name}: {what}", use, same(expected), named)
            judge(
                cases,
                f"{kind} {file.name}",
                lambda: answer(spacy.load(folder)),
                same(expected),
                named,
            )
            file.write_bytes(whole)
            use()


@pytest.mark.parametrize("part", parts(60))
def test_flips_and_cuts_in_bytes(part, saved, counted):
    kind = KINDS[part % len(KINDS)]
    folder, expected = saved(kind)
    rng = random.Random(f"bytes {kind} {part}")
    with counted(
        "bytes of a pipe, damaged anywhere, give the same vectors or an error that says so"
    ) as cases:
        for name in [
            file.parent.name for file in ours(folder) if file.name in ("model", "estimator")
        ]:
            if name == "transformer":
                # A pipe of spacy-transformers
                continue
            nlp = spacy.load(folder)
            for what, damaged in damaged_at_marks(
                nlp.get_pipe(name).to_bytes(exclude=["vocab"]), rng, 10
            ):

                def use(nlp=nlp, name=name, damaged=damaged):
                    nlp.get_pipe(name).from_bytes(damaged, exclude=["vocab"])
                    return answer(nlp)

                judge(cases, f"{kind} {name}: {what}", use, same(expected), "damaged")


@pytest.mark.parametrize("part", parts(10))
def test_encoder_in_another_pipe(part, make_nlp, counted):
    """What stands in a tagger after replace_listeners, or was saved in any Thinc model."""
    nlp = make_nlp()
    expected = answer(nlp)
    rng = random.Random(part)
    shim = shim_of(nlp)
    with counted(
        "an encoder in the bytes of any pipe, damaged anywhere, has the same vectors or says so"
    ) as cases:
        for what, damaged in damaged_at_marks(shim.to_bytes(), rng, 30):
            use = lambda damaged=damaged: (shim.from_bytes(damaged), answer(nlp))[1]  # noqa: E731
            judge(cases, what, use, same(expected), "encoder")


@pytest.mark.parametrize("part", parts(24))
def test_incomplete_pipelines(part, make, counted):
    """What `kill -9` leaves: every file before the one that is being written is whole, those behind
    are not there.
    """
    kind = KINDS[(part + 1) % len(KINDS)]
    folder, _ = make(kind)
    rng = random.Random(f"stopped {part}")
    shutil.copytree(folder, folder.with_name("model-best"))
    shutil.rmtree(folder / "vocab")
    with counted(
        "half a pipeline, as a killed training leaves it, names the file and the folder to try"
    ) as cases:
        for file in ours(folder):
            if file.name == "cfg":
                continue
            whole = file.read_bytes()
            for length in (rng.choice((None, 0, 1, len(whole) - 1)), rng.randrange(2, len(whole))):
                file.unlink() if length is None else file.write_bytes(whole[:length])
                named = (
                    (str(file), "model-best") if file.parent.name != "transformer" else ("model",)
                )
                judge(
                    cases,
                    f"{kind} {file}: {length}",
                    lambda: answer(spacy.load(folder)),
                    lambda _: False,
                    *named,
                )
            file.write_bytes(whole)


# Folders that are loaded by their names have no digests: what their files say is judged by its
# type.

VALUES = (None, -1, "x", [], {}, 10**9, True)
# One in the config wins, so their errors may name them alone
SETTINGS = (
    "default_prompt_name",
    "truncate_dim",
)
FILES = [
    "config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "modules.json",
]
FILES += ["sentence_bert_config.json", "config_sentence_transformers.json", "1_Pooling/config.json"]


@pytest.fixture
def folder(tiny_bert, tmp_path):
    """An encoder's folder as sentence-transformers writes it."""
    folder = shutil.copytree(tiny_bert, tmp_path / "encoder")
    write_modules(
        folder, ("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")
    )
    srsly.write_json(
        folder / "sentence_bert_config.json", {"max_seq_length": 20, "do_lower_case": False}
    )
    shared = {"prompts": {"query": "go "}, "default_prompt_name": None, "truncate_dim": None}
    srsly.write_json(folder / "config_sentence_transformers.json", shared)
    (folder / "1_Pooling").mkdir()
    flags = {
        "pooling_mode_cls_token": False,
        "pooling_mode_mean_tokens": True,
        "include_prompt": True,
    }
    srsly.write_json(
        folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 16, **flags}
    )
    return folder


def encode(folder):
    return one_pipe(folder)(TEXT).vector


def places(content, at=()):
    """The path to every value in JSON, of long objects and lists to some."""
    if at:
        yield at
    items = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    for key, value in list(items)[:12]:
        yield from places(value, (*at, key))


def json_type(value):
    return (
        "number"
        if isinstance(value, int | float) and not isinstance(value, bool)
        else type(value).__name__
    )


def files_of(folder):
    """Return those of FILES that are there: transformers 5 writes no special_tokens_map.json."""
    return [name for name in FILES if (folder / name).exists()]


@pytest.mark.parametrize("part", parts(160))
def test_values_of_other_types(part, folder, counted):
    expected = encode(folder)
    with counted(
        "a value of another type in an encoder's folder is refused by name, or changes no vector"
    ) as cases:
        every = [
            (name, at)
            for name in files_of(folder)
            for at in places(json.loads((folder / name).read_text()))
        ]
        for name, (*above, key) in every[part::160]:
            whole = (folder / name).read_text()
            for value in VALUES:
                inner = json.loads(whole)
                content = inner
                for step in above:
                    inner = inner[step]
                before, inner[key] = inner[key], value
                (folder / name).write_text(json.dumps(content))
                # That is its author's word, and so is a step of the tokenizer that is left out.
                is_same_type = json_type(before) == json_type(value) or (
                    value is None and name == "tokenizer.json"
                )
                case = f"{name}: {above} {key} = {value!r}, was {str(before)[:40]}"
                named = str(key) if key in SETTINGS else str(folder)
                judge(
                    cases,
                    case,
                    lambda: encode(folder),
                    same(None if is_same_type else expected),
                    named,
                )
            (folder / name).write_text(whole)


@pytest.mark.parametrize("part", parts(32))
def test_cut_files_of_a_folder(part, folder, counted):
    expected = encode(folder)
    rng = random.Random(part)
    with counted(
        "a cut or empty file in an encoder's folder is refused by name, or changes no vector"
    ) as cases:
        for name in [*files_of(folder), "model.safetensors", "vocab.txt"][part % 2 :: 2]:
            whole = (folder / name).read_bytes()
            length = rng.choice((0, 1, rng.randrange(2, len(whole) - 1), len(whole) - 2))
            (folder / name).write_bytes(whole[:length])
            judge(
                cases,
                f"{name}: {length}",
                lambda: encode(folder),
                same(expected),
                str(folder / name),
            )
            (folder / name).write_bytes(whole)


@pytest.mark.parametrize("part", parts(40))
def test_flips_in_the_header_of_weights(part, folder, counted):
    expected = encode(folder)
    rng = random.Random(part)
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    promise = (
        "a flipped bit in the header of an encoder's weights is refused by name, or changes no "
        "vector"
    )
    with counted(promise) as cases:
        for _ in range(6):
            at = rng.randrange(header)
            bit = rng.randrange(8)
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            file.write_bytes(damaged)
            judge(
                cases,
                f"bit {bit} of byte {at}",
                lambda: encode(folder),
                same(expected),
                str(folder),
            )
