"""Data to score."""

import pytest
from helpers.pipelines import ROOT


@pytest.fixture(scope="module")
def dev(tmp_path_factory):
    """The first pairs of the sample that is scored."""
    path = tmp_path_factory.mktemp("dev") / "dev.csv"
    lines = (ROOT / "assets" / "pairs-dev.csv").read_text(encoding="utf8").splitlines(keepends=True)
    path.write_text("".join(lines[:40]), encoding="utf8")
    return path
