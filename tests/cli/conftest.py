"""The shipped sample as a folder of data sets, laid out once."""

import runpy
import shutil
import sys
from pathlib import Path

import pytest
from pipelines import ROOT


@pytest.fixture(scope="session")
def sample_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["evaluation_sample.py", str(folder), "--assets", str(ROOT / "assets")])
        runpy.run_path(str(ROOT / "scripts" / "evaluation_sample.py"), run_name="__main__")
    return folder


@pytest.fixture(scope="session")
def saved_nlp(make_nlp, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a saved pipeline."""
    folder = tmp_path_factory.mktemp("saved") / "nlp"
    make_nlp().to_disk(folder)
    return folder


@pytest.fixture
def nlp_folder(saved_nlp: Path, tmp_path: Path) -> Path:
    """A folder with that pipeline as `nlp`."""
    shutil.copytree(saved_nlp, tmp_path / "nlp")
    return tmp_path
