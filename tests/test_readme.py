"""The README's Python blocks run as they stand, from top to bottom."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf8"), re.DOTALL)


@pytest.mark.filterwarnings("ignore:.*W109")
def test_python_blocks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS) >= 5
    namespace: dict = {}
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), namespace)


def test_first_example_says_what_it_prints():
    namespace: dict = {}
    exec(BLOCKS[0].rsplit("\n", 2)[0], namespace)
    line = BLOCKS[0].strip().splitlines()[-1]
    expression, comment = line.split("  # ")
    assert f"{eval(expression, namespace):.4f}" == comment.strip()
