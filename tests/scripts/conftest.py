"""The scripts of the repository, in this process."""

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from helpers.pipelines import ROOT


@pytest.fixture(scope="module")
def load() -> Iterator[Callable[[str], ModuleType]]:
    """Import a script by its name, with the root of the repository as the working directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        patch.chdir(ROOT)
        yield importlib.import_module


@pytest.fixture(scope="module")
def run_script(load: Callable[[str], ModuleType]) -> Callable[..., None]:
    """Run a script with arguments."""

    def run(name: str, *arguments: object) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
            load(name).main()

    return run
