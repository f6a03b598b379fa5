"""The Python blocks of README and docs run as they stand, from top to bottom."""

import re
from pathlib import Path

import pytest
from thinc.api import Config

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf8"), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore:.*W109")
def test_python_blocks(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert blocks(page, "python")
    namespace: dict = {}
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_config_blocks_are_configs(page):
    for block in blocks(page, "ini"):
        parents = {f"[{name}]" for line in block.splitlines() if line.startswith("[") for name in above(line[1:-1])}
        missing = sorted(parents - set(block.splitlines()), key=lambda name: name.count("."))
        Config().from_str("\n".join([*missing, block]))


def above(section):
    parts = section.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))]


def test_files_that_the_docs_name_are_there():
    for page in PAGES:
        named = set(re.findall(r"\b(?:configs|scripts|benchmarks|docs|tests)/[\w/]+\.(?:cfg|py|md)", page.read_text()))
        assert [name for name in named if not (ROOT / name).is_file()] == [], page


def test_first_example_says_what_it_prints():
    namespace: dict = {}
    first = blocks(ROOT / "README.md", "python")[0]
    exec(first.rsplit("\n", 2)[0], namespace)
    line = first.strip().splitlines()[-1]
    expression, comment = line.split("  # ")
    assert f"{eval(expression, namespace):.4f}" == comment.strip()
