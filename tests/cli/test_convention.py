"""Every command takes a pipeline in the same way, and uses the pipe and the code that it is given."""

import json
import re
import shutil
from pathlib import Path

import catalogue
import numpy
import pytest
import spacy
import typer
from invoking import said

from spacy_sbert.cli import app

COMMANDS = typer.main.get_command(app).commands
LOADING = {"benchmark", "card", "cluster", "distill-static", "encode", "evaluate", "export", "fit-meta", "hub-card"}
LOADING |= {"mine", "search", "visualize"}
NOT_COMPUTING = {"card", "export", "hub-card"}
TEXTS = ["the cat sat on the mat", "a dog ran", "the dog ran", "food for the man", "the cat sat on a mat"]
RUNS = {  # arguments after PIPELINE, and the output
    "benchmark": ("data -o {out}.json --any-count --bootstrap 0", "{out}.json"),
    "card": ("--overwrite", "{pipeline}/README.md"),
    "cluster": ("texts.txt {out}.jsonl --method hierarchical --n-clusters 3", "{out}.jsonl"),
    "distill-static": ("{out} -v texts.txt --size 2 --words 3", "{out}"),
    "encode": ("texts.txt {out}.npy", "{out}.npy"),
    "evaluate": ("pairs.csv -o {out}.json", "{out}.json"),
    "export": ("{out}", "{out}"),
    "fit-meta": ("texts.txt {out} --method conc", "{out}"),
    "mine": ("texts.txt {out}.jsonl", "{out}.jsonl"),
    "search": ("texts.txt dog -o {out}.jsonl", "{out}.jsonl"),
    "visualize": ("texts.txt {out}.html --order given", "{out}.html"),
}
CODE = """
import spacy
from spacy_sbert.models.spans import sentence_spans

spacy.registry.span_getters("own.spans.v1")(sentence_spans)
"""


@pytest.mark.parametrize("command", sorted(LOADING))
def test_options_of_commands_that_load_a_pipeline(command):
    options = {option for one in COMMANDS[command].params for option in one.opts}
    assert {"--pipe", "--code", "--quiet"} | (set() if command in NOT_COMPUTING else {"--gpu-id"}) <= options
    assert ("--id-column" in options) == (command in {"cluster", "encode", "mine", "search"})  # which keep rows
    assert command in RUNS or command == "hub-card"  # which needs the hub


@pytest.fixture(scope="module")
def folder(tiny_bert, tmp_path_factory):
    """A pipeline of two pipes that needs code, the encoder of the first in the hub's cache, and texts."""
    at = tmp_path_factory.mktemp("convention")
    nlp = spacy.blank("en")
    for name, pooling in (("first", "mean"), ("second", "max")):
        nlp.add_pipe("sbert", name=name, config={"model": {"name": str(tiny_bert), "pooling": pooling}})
    nlp.to_disk(at / "own")
    config = (at / "own" / "config.cfg").read_text(encoding="utf8")
    assert config.count("spacy-sbert.sentence_spans.v1") == 2
    (at / "own" / "config.cfg").write_text(config.replace("spacy-sbert.sentence_spans.v1", "own.spans.v1"))
    (at / "code.py").write_text(CODE)
    cached = at / "hub" / "models--org--tiny-encoder"
    shutil.copytree(tiny_bert, cached / "snapshots" / ("0" * 40))
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("0" * 40)
    (at / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    pairs = [(a, b) for a in TEXTS for b in TEXTS if a < b]
    rows = [f"{a},{b},{i % 3}" for i, (a, b) in enumerate(pairs)]
    (at / "pairs.csv").write_text("\n".join(["first,second,score", *rows]) + "\n")
    (at / "data" / "STSBenchmark").mkdir(parents=True)
    rows = [f"g\tf\ty\t{i}\t{i % 6}\t{a}\t{b}\n" for i, (a, b) in enumerate(pairs)]
    (at / "data" / "STSBenchmark" / "sts-dev.csv").write_text("".join(rows))
    return at


@pytest.fixture
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder / "hub"))
    yield folder
    catalogue.REGISTRY.pop((*spacy.registry.span_getters.namespace, "own.spans.v1"), None)


def run(command, pipeline, out, *options, code=0):
    arguments, output = (text.format(out=f"{command}-{out}", pipeline=pipeline) for text in RUNS[command])
    done = said(command, pipeline, *arguments.split(), "--quiet", *options, code=code)
    return result(command, output) if code == 0 else done


def result(command, output):
    """Return what an output says of the vectors."""
    if command == "encode":
        return numpy.load(output).round(4).tolist()
    if command == "distill-static":
        return spacy.load(output)(TEXTS[0]).vector.round(4).tolist()
    if command == "fit-meta":
        return spacy.load(output).pipe_names
    text = Path(output, "1_Pooling/config.json" if command == "export" else "").read_text(encoding="utf8")
    if command == "card":
        return re.findall(r"Pooling .*", text), re.findall(r"print\(doc\S*vector", text)
    if command == "benchmark":
        return json.loads(text)["tasks"]["STSb-dev"]["variants"]
    return [round(float(number), 3) for number in re.findall(r"-?\d\.\d\d+", text)] or text


LONG = ("benchmark", "cluster", "distill-static", "fit-meta", "mine", "visualize")


@pytest.mark.parametrize(
    "command", [pytest.param(c, marks=pytest.mark.slow if c in LONG else ()) for c in sorted(RUNS)]
)
def test_code_pipe_and_name(inside, command):
    """Code is imported before loading; the results of a pipe are those of its encoder, given by its name."""
    if command in ("card", "evaluate", "search"):  # all load by one function
        assert "own.spans.v1" in run(command, "own", "without", code=1)
    options = () if command == "fit-meta" else ("--pipe", "first")
    found = run(command, "own", "with", "--code", "code.py", *options)
    if command == "fit-meta":
        assert found == ["first", "second", "sbert_meta"]
    elif command == "card":
        (row,), uses = found
        assert "mean" in row and "max" not in row and uses == ["print(doc._.first_vector"]
    else:
        assert found == run(command, "org/tiny-encoder", "named")


def test_missing_pipe(inside):
    for command in ("card", "evaluate", "search"):
        assert "third" in run(command, "own", "none", "--code", "code.py", "--pipe", "third", code=1)


def test_encoder_name_where_a_pipeline_is_needed(inside):
    assert "two members" in run("fit-meta", "org/tiny-encoder", "new", code=1)
    for command in ("card", "hub-card"):
        repo = ["org/repo"] if command == "hub-card" else []
        assert "does not exist" in said(command, *repo, "org/tiny-encoder", code=2)
