"""The convention of the command line, which docs/using.md states: of all commands, and of those
that load a pipe.
"""

import json
import re
import shutil
from collections import defaultdict
from pathlib import Path

import catalogue
import numpy
import pytest
import spacy
from helpers.invoking import all_commands, invoke, said

from spacy_sbert.search import VectorIndex

COMMANDS = all_commands()
# Letters with another meaning in one command
SHORT = {
    ("encode", "-g"): "--gpu-ids",
    ("train", "-c"): "--code",
    ("cluster", "-n"): "--n-clusters",
    **{(command, "-n"): "--name" for command in ("card", "hub-card")},
    **{(command, "-v"): "--version" for command in ("card", "hub-card")},
    ("fit-meta", "-o"): "--option",
    **{(command, "-m"): "--method" for command in ("fit-meta", "cluster")},
    ("visualize", "-l"): "--labels",
    ("visualize", "-t"): "--title",
    ("visualize", "-s"): "--style",
    ("benchmark", "-s"): "--suite",
}


def parameters():
    return [
        (name, one)
        for name, command in COMMANDS.items()
        for one in command.params
        if one.name != "help"
    ]


def with_option(option):
    return {name for name, one in parameters() if option in one.opts}


def test_every_parameter_has_help_and_is_listed():
    assert [
        (name, one.name)
        for name, one in parameters()
        if not one.help or getattr(one, "hidden", False)
    ] == []
    for name in COMMANDS:
        assert "--help" in invoke(*name.split(), "--help").output


def test_letter_means_one_option():
    letters = defaultdict(set)
    for name, one in parameters():
        for letter in one.opts:
            if letter.startswith("-") and not letter.startswith("--"):
                long = next(option for option in one.opts if option.startswith("--"))
                assert SHORT.get((name, letter), long) == long
                letters[letter].update({long} if (name, letter) not in SHORT else ())
    assert {letter: options for letter, options in letters.items() if len(options) > 1} == {}


def test_options_that_all_commands_share():
    # It has a log
    assert set(COMMANDS) - with_option("--quiet") == {"train"}
    assert set(COMMANDS) - with_option("--pipe") == {
        *("compare", "convert", "convert-transformer", "init-config", "train"),
        *("index build", "index delete"),
    }
    # most of these write new folders; an index grows; hub-card and train have other ways
    folders = {
        "convert-transformer",
        "distill-static",
        "export",
        "import",
        "hub-card",
        "index add",
        "index build",
        "index delete",
        "train",
    }
    assert set(COMMANDS) - with_option("--overwrite") == folders
    # Which makes a pipe
    loading = with_option("--pipe") - {"import"}
    assert loading <= with_option("--code")
    assert loading - {
        "card",
        "export",
        "hub-card",
    } <= with_option("--gpu-id")
    # Which keep rows
    assert with_option("--id-column") == {"cluster", "encode", "index add", "mine", "search"}
    assert with_option("--name") == {"card", "hub-card"}
    assert with_option("--pipeline") == {"encode"}


def test_pipeline_is_the_first_argument():
    for name, command in COMMANDS.items():
        arguments = [
            (one.metavar or one.name).lower()
            for one in command.params
            if one.param_type_name == "argument"
        ]
        # Which begins with the repository
        if "pipeline" in arguments and name != "hub-card":
            assert arguments[0] == "pipeline", name


# Arguments after PIPELINE, and the output
RUNS = {
    "benchmark": ("data -o {out}.json --any-count --bootstrap 0", "{out}.json"),
    "card": ("--overwrite", "{pipeline}/README.md"),
    "cluster": ("texts.txt {out}.jsonl --method hierarchical --n-clusters 3", "{out}.jsonl"),
    "distill-static": ("{out} -v texts.txt --size 2 --words 3", "{out}"),
    "encode": ("texts.txt {out}.npy", "{out}.npy"),
    "evaluate": ("pairs.csv -o {out}.json", "{out}.json"),
    "export": ("{out}", "{out}"),
    "fit-meta": ("texts.txt {out} --method conc", "{out}"),
    "index add": ("{out} texts.txt --kind flat", "{out}"),
    "mine": ("texts.txt {out}.jsonl", "{out}.jsonl"),
    "mine-negatives": (
        "positives.csv {out}.jsonl --corpus texts.txt --num-negatives 1",
        "{out}.jsonl",
    ),
    "search": ("texts.txt dog -o {out}.jsonl", "{out}.jsonl"),
    "visualize": ("texts.txt {out}.html --order given", "{out}.html"),
}
CODE = """
import spacy
from spacy_sbert.models.spans import sentence_spans

spacy.registry.span_getters("own.spans.v1")(sentence_spans)
"""


@pytest.fixture(scope="module")
def folder(tiny_bert, tables, tmp_path_factory):
    """A pipeline of two pipes that needs code, the encoder of the first in the hub's cache, and
    texts.
    """
    at = shutil.copytree(tables, tmp_path_factory.mktemp("convention") / "at")
    nlp = spacy.blank("en")
    for name, pooling in (("first", "mean"), ("second", "max")):
        nlp.add_pipe(
            "sbert", name=name, config={"model": {"name": str(tiny_bert), "pooling": pooling}}
        )
    nlp.to_disk(at / "own")
    config = (at / "own" / "config.cfg").read_text(encoding="utf8")
    assert config.count("spacy-sbert.sentence_spans.v1") == 2
    (at / "own" / "config.cfg").write_text(
        config.replace("spacy-sbert.sentence_spans.v1", "own.spans.v1")
    )
    (at / "code.py").write_text(CODE)
    cached = at / "hub" / "models--org--tiny-encoder"
    shutil.copytree(tiny_bert, cached / "snapshots" / ("0" * 40))
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("0" * 40)
    return at


@pytest.fixture
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder / "hub"))
    yield folder
    catalogue.REGISTRY.pop((*spacy.registry.span_getters.namespace, "own.spans.v1"), None)


def run(command, pipeline, out, *options, code=0):
    arguments, output = (
        text.format(out=f"{command.replace(' ', '-')}-{out}", pipeline=pipeline)
        for text in RUNS[command]
    )
    done = said(*command.split(), pipeline, *arguments.split(), "--quiet", *options, code=code)
    return result(command, output) if code == 0 else done


def result(command, output):
    """Return what an output says of the vectors."""
    if command == "encode":
        return numpy.load(output).round(4).tolist()
    if command == "index add":
        index = VectorIndex.load(output)
        return index.index.reconstruct_n(0, len(index)).round(4).tolist()
    if command == "distill-static":
        return spacy.load(output)("the cat sat on the mat").vector.round(4).tolist()
    if command == "fit-meta":
        return spacy.load(output).pipe_names
    text = Path(output, "1_Pooling/config.json" if command == "export" else "").read_text(
        encoding="utf8"
    )
    if command == "card":
        return re.findall(r"Pooling .*", text), re.findall(r"print\(doc\S*vector", text)
    if command == "benchmark":
        return json.loads(text)["tasks"]["STSb-dev"]["variants"]
    return [round(float(number), 3) for number in re.findall(r"-?\d\.\d\d+", text)] or text


LONG = (
    *("benchmark", "cluster", "distill-static", "fit-meta", "mine", "mine-negatives", "visualize"),
)
# Which needs the hub, and which makes a pipe
LOADING = sorted(with_option("--pipe") - {"hub-card", "import"})


@pytest.mark.parametrize(
    "command", [pytest.param(c, marks=[pytest.mark.slow] * (c in LONG)) for c in LOADING]
)
def test_code_pipe_and_name(inside, command):
    """Code is imported before loading; the results of a pipe are those of its encoder, given by its
    name.
    """
    # All load by one function
    if command in ("card", "evaluate", "search"):
        assert "own.spans.v1" in run(command, "own", "without", code=1)
    options = () if command == "fit-meta" else ("--pipe", "first")
    found = run(command, "own", "with", "--code", "code.py", *options)
    if command == "fit-meta":
        assert found == ["first", "second", "sbert_meta"]
    elif command == "card":
        (row,), uses = found
        assert "mean" in row
        assert "max" not in row
        assert uses == ["print(doc._.first_vector"]
    else:
        assert found == run(command, "org/tiny-encoder", "named")


def test_missing_pipe_and_encoder_names(inside):
    for command in ("card", "evaluate", "search"):
        assert "third" in run(
            command, "own", "none", "--code", "code.py", "--pipe", "third", code=1
        )
    assert "two members" in run("fit-meta", "org/tiny-encoder", "new", code=1)
    for command in (["card"], ["hub-card", "org/repo"]):
        assert "does not exist" in said(*command, "org/tiny-encoder", code=2)
