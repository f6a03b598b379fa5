"""The site is built from the pages without a warning, links and anchors included, and fetches
nothing.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of the site, built strictly, and what mkdocs wrote to standard error; its own
    notices are off.
    """
    pytest.importorskip("material", reason="the site needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder, done.stderr


def test_strict_build_has_no_warning(built: tuple[Path, str]):
    assert [line for line in built[1].splitlines() if line and not line.startswith("INFO")] == []


def test_nothing_is_fetched_from_elsewhere(built: tuple[Path, str]):
    pages = [path.read_text(encoding="utf8") for path in built[0].rglob("*.html")]
    assert len(pages) > 30
    for page in pages:
        assert not re.search(
            r"<(?:link|script|img|source)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//", page
        )
        assert not re.search(r"googleapis|gstatic|unpkg|jsdelivr", page)
    for sheet in built[0].rglob("*.css"):
        assert not re.search(
            r"(@import|url\()\s*[\"']?(https?:)?//", sheet.read_text(encoding="utf8")
        ), sheet


def test_search_needs_no_server(built: tuple[Path, str]):
    assert (
        (built[0] / "search" / "search_index.js")
        .read_text(encoding="utf8")
        .startswith("var __index = {")
    )
