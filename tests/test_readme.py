"""The blocks of README and docs: Python runs from top to bottom, configs parse, shell lines name real commands."""

import re
import shlex
from pathlib import Path

import pytest
import srsly
from keyword_packages import stand_in_for_missing
from thinc.api import Config
from typer.main import get_command

from spacy_sbert.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHARED = ("meta", "sharing")  # whose pipelines share a transformer
PYTHON_PAGES = [
    pytest.param(page, id=page.stem, marks=[pytest.mark.spacy_transformers] if page.stem in SHARED else [])
    for page in PAGES
]
PRINTING = {"README": 3, "faq": None}  # pages whose first blocks print what their comments say
PRINT = re.compile(r"^\s*print\(.*?\)(?:  # (.*))?$", re.MULTILINE)
VALUE = re.compile(r"[\d(\[]|True|False")  # and no prose
OURS = ["python", "-m", "spacy", "sbert"]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf8"), re.DOTALL)


@pytest.mark.parametrize("page", PYTHON_PAGES)
@pytest.mark.filterwarnings("ignore:.*W109")
@pytest.mark.usefixtures("en_core_web_sm")
def test_python_blocks(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    stand_in_for_missing(monkeypatch)  # of what no extra installs
    assert blocks(page, "python")
    namespace, found = {}, []
    for number, block in enumerate(blocks(page, "python")):
        exec(compile(block, page.name, "exec"), namespace)
        printed = capsys.readouterr().out.splitlines()
        if page.stem in PRINTING and number < (PRINTING[page.stem] or 100):
            found += zip(printed, PRINT.findall(block), strict=True)
    values = [(line, text) for line, text in found if page.stem == "README" or VALUE.match(text)]
    assert [(line, text) for line, text in values if line not in (text, text.split(":")[0])] == []
    assert len(values) >= {"README": 3, "faq": 10}.get(page.stem, 0)


def test_config_blocks_are_configs():
    for page in PAGES:
        for block in blocks(page, "ini"):
            parents = {f"[{name}]" for line in block.splitlines() if line.startswith("[") for name in above(line[1:-1])}
            missing = sorted(parents - set(block.splitlines()), key=lambda name: name.count("."))
            Config().from_str("\n".join([*missing, block]))


def above(section):
    parts = section.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))]


def test_files_in_the_docs_exist():
    for page in PAGES:
        text = page.read_text(encoding="utf8")
        named = set(re.findall(r"\b(?:configs|scripts|benchmarks|docs|tests)/[\w/]+\.(?:cfg|py|md)", text))
        assert [name for name in named if not (ROOT / name).is_file()] == [], page


def parse(words):
    """Return the command of ours that a line names, its parameters' values, and what is left; nothing runs."""
    group = get_command(app)
    name, command, rest = group.resolve_command(group.context_class(group), words)
    values, left, _ = command.make_parser(command.context_class(command, info_name=name)).parse_args(rest)
    return command, values, left


def shell_lines(page):
    """Yield the commands in the blocks of a page, continued lines joined, as words."""
    text = "\n".join(blocks(page, "bash")).replace("\\\n", " ")
    for line in text.splitlines():
        yield from (shlex.split(part, comments=True) for part in line.split(" && "))


def test_shell_lines_name_real_commands_and_options():
    for page in PAGES:
        for words in shell_lines(page):
            if words[:4] == OURS:
                command, values, left = parse(words[4:])
                needed = [p.name for p in command.params if p.param_type_name == "argument" and p.required]
                assert not left and all(values.get(name) is not None for name in needed), words
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf8"), flags=re.DOTALL)
        for line in re.findall(r"`([^`]*)`", text):  # between backticks a command may lack its arguments
            words = shlex.split(line.replace("\n", " ")) if line.startswith("python -m spacy sbert ") else []
            if words and "..." not in words:
                parse(words[4:])


def test_projects_and_targets_that_the_docs_name_are_there():
    known = {}
    for folder in (".", "benchmarks/papers"):
        project = srsly.read_yaml(ROOT / folder / "project.yml")
        known[folder] = {command["name"] for command in project["commands"]} | set(project["workflows"])
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf8"), re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf8")
        for name, folder in re.findall(r"spacy\s+project\s+run\s+([\w-]+)(?:\s+(benchmarks/papers)\b)?", text):
            assert name in known[folder or "."], page
        assert set(re.findall(r"^make (\w+)", "\n".join(blocks(page, "bash")), re.MULTILINE)) <= targets, page


@pytest.mark.parametrize(
    ("line", "message"),
    [("nonsense PIPELINE", "No such command"), ("card PIPELINE --nonsense", "No such option")],
)
def test_the_check_of_commands_can_fail(line, message):
    with pytest.raises(Exception, match=message):
        parse(shlex.split(line))
