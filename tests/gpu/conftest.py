"""The GPU of these tests. What they compare with is made on the CPU before; where there is no GPU
they end there.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from thinc.api import get_current_ops, require_gpu, set_current_ops

# What spaCy, Thinc and this package say where there is none.
MISSING = r"Cannot use GPU, [^\n]+|No (CUDA )?GPU devices detected|There is no GPU \d+"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """A missing GPU skips a test; any other error fails it."""
    try:
        return (yield)
    except (AssertionError, ValueError) as error:
        missing = re.search(MISSING, str(error))
        if missing is None:
            raise
        return pytest.skip(f"no GPU: {missing[0]}")


@pytest.fixture
def gpu_id(request: pytest.FixtureRequest) -> int:
    """For what is told by its number: -1 for the CPU."""
    return request.config.getoption("--gpu-id")


@pytest.fixture
def use_gpu(gpu_id: int) -> Iterator[Callable[[], None]]:
    """Have what is made from now on work on the GPU, until the test ends."""
    ops = get_current_ops()

    def use() -> None:
        if gpu_id >= 0:
            require_gpu(gpu_id)

    yield use
    set_current_ops(ops)


@pytest.fixture
def spacy_command() -> Callable[..., str]:
    """What `python -m spacy ...` says. In a process that is not forked: CUDA does not survive a
    fork.
    """

    def run(*arguments: object, folder: Path) -> str:
        command = [sys.executable, "-m", "spacy", *map(str, arguments)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        return said

    return run
