"""The blocks of README and docs: Python runs from top to bottom, configs parse, shell lines name
real commands.
"""

import re
import shlex
import shutil
from functools import partial

import pytest
import spacy
import srsly
import torch
from helpers.pipelines import ROOT, blocks
from helpers.stand_ins import stand_in_for_missing
from thinc.api import Config
from transformers import BertConfig, BertModel
from typer.main import get_command

from spacy_sbert.cli import app

PAGES = {
    page: page.read_text(encoding="utf8")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
# Pages of which so many blocks print what their comments say
PRINTING = {"README": 3, "faq": 100}
# Which test_recipes.py runs on a tiny encoder; a component registers once
RECIPES = ("data-frames", "few-shot")
WITHOUT_PYTHON = ("limits", "registered-names")
NEED_SPACY_TRANSFORMERS = ("spacy-transformers",)
PRINT = re.compile(r"^\s*print\(.*?\)(?:  # (.*))?$", re.MULTILINE)
GROUP = get_command(app)
# And no prose
VALUE = re.compile(r"[\d(\[]|True|False")


@pytest.fixture(scope="session")
def small_encoders(tiny_bert, tmp_path_factory):
    """A folder with a random encoder in the place of MiniLM, as wide and of one layer."""
    folder = shutil.copytree(tiny_bert, tmp_path_factory.mktemp("small") / "all-MiniLM-L6-v2")
    sizes = {
        "hidden_size": 384,
        "num_hidden_layers": 1,
        "num_attention_heads": 12,
        "initializer_range": 0.05,
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(BertConfig.from_pretrained(tiny_bert, **sizes)).save_pretrained(folder)
    return folder.parent


def load_or_make(load, name, **kwargs):
    """Load a pipeline; in the place of one of spaCy that is not installed, make one that finds
    sentences.
    """
    if name != "en_core_web_sm":
        return load(name, **kwargs)
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer", "parser")
    return nlp


def python_pages():
    for page in PAGES:
        if page.stem in WITHOUT_PYTHON:
            continue
        marks = [pytest.mark.spacy_transformers] if page.stem in NEED_SPACY_TRANSFORMERS else []
        if page.stem not in (*PRINTING, *RECIPES):
            yield pytest.param(page, True, id=page.stem, marks=marks)
        marks = marks if page.stem in PRINTING else [*marks, pytest.mark.slow]
        yield pytest.param(page, False, id=f"{page.stem}-MiniLM", marks=marks)


@pytest.mark.parametrize(("page", "is_small"), list(python_pages()))
@pytest.mark.filterwarnings("ignore:.*W109")
def test_python_blocks(page, is_small, small_encoders, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # Folders are found before packages
    if is_small:
        (tmp_path / "sentence-transformers").symlink_to(small_encoders)
        (tmp_path / "all-MiniLM-L6-v2").symlink_to(small_encoders / "all-MiniLM-L6-v2")
    # Of what no extra installs
    stand_in_for_missing(monkeypatch)
    monkeypatch.setattr(spacy, "load", partial(load_or_make, spacy.load))
    assert blocks(PAGES[page], "python")
    namespace = {}
    found = []
    for number, block in enumerate(blocks(PAGES[page], "python")):
        exec(compile(block, page.name, "exec"), namespace)
        printed = capsys.readouterr().out.splitlines()
        if number < PRINTING.get(page.stem, 0):
            found += zip(printed, PRINT.findall(block), strict=True)
    values = [(line, text) for line, text in found if page.stem == "README" or VALUE.match(text)]
    assert [(line, text) for line, text in values if line not in (text, text.split(":")[0])] == []
    assert len(values) >= {"README": 3, "faq": 10}.get(page.stem, 0)


def test_config_blocks_are_configs():
    for page in PAGES:
        for block in blocks(PAGES[page], "ini"):
            sections = [
                line[1:-1].split(".") for line in block.splitlines() if line.startswith("[")
            ]
            parents = {
                f"[{'.'.join(parts[:i])}]" for parts in sections for i in range(1, len(parts))
            }
            missing = sorted(parents - set(block.splitlines()), key=lambda name: name.count("."))
            Config().from_str("\n".join([*missing, block]))


def test_files_in_the_docs_exist():
    for page, text in PAGES.items():
        named = set(
            re.findall(r"\b(?:configs|scripts|benchmarks|docs|tests)/[\w/]+\.(?:cfg|py|md)", text)
        )
        assert [name for name in named if not (ROOT / name).is_file()] == [], page


def parse(words):
    """Return the command of ours that a line names, its parameters' values, and what is left;
    nothing runs.
    """
    name, command, rest = GROUP.resolve_command(GROUP.context_class(GROUP), words)
    # Of a group, such as index
    if hasattr(command, "commands"):
        name, command, rest = command.resolve_command(command.context_class(command), rest)
    values, left, _ = command.make_parser(
        command.context_class(command, info_name=name)
    ).parse_args(rest)
    return command, values, left


def test_shell_lines_name_real_commands_and_options():
    for page, text in PAGES.items():
        lines = (
            "\n".join(blocks(PAGES[page], "bash"))
            .replace("\\\n", " ")
            .replace(" && ", "\n")
            .splitlines()
        )
        for words in (shlex.split(line, comments=True) for line in lines):
            if words[:4] == ["python", "-m", "spacy", "sbert"]:
                command, values, left = parse(words[4:])
                needed = [
                    p.name for p in command.params if p.param_type_name == "argument" and p.required
                ]
                assert not left and all(values.get(name) is not None for name in needed), words
        for line in re.findall(r"`([^`]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            words = (
                shlex.split(line.replace("\n", " "))
                if line.startswith("python -m spacy sbert ")
                else []
            )
            # Between backticks a command may lack its arguments
            if words and "..." not in words:
                parse(words[4:])
    for line, message in (
        ("nonsense PIPELINE", "No such command"),
        ("card PIPELINE --nonsense", "No such option"),
    ):
        with pytest.raises(Exception, match=message):
            parse(shlex.split(line))


def test_projects_and_targets_that_the_docs_name_are_there():
    known = {}
    for folder in ("", "benchmarks/papers"):
        project = srsly.read_yaml(ROOT / folder / "project.yml")
        known[folder] = {command["name"] for command in project["commands"]} | set(
            project["workflows"]
        )
    targets = set(
        re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf8"), re.MULTILINE)
    )
    for page, text in PAGES.items():
        for name, folder in re.findall(
            r"spacy\s+project\s+run\s+([\w-]+)(?:\s+(benchmarks/papers)\b)?", text
        ):
            assert name in known[folder], page
        assert (
            set(re.findall(r"^make (\w+)", "\n".join(blocks(PAGES[page], "bash")), re.MULTILINE))
            <= targets
        ), page
