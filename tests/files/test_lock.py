"""One process at a time."""

import os
import sys

import pytest

from spacy_sbert.files import atomic as lock


def test_lock_of_a_dead_process(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from spacy_sbert.files.atomic import Lock\n"
        f"kept = Lock(Path({str(tmp_path / 'lock')!r})); os._exit(9)"
    )
    if sys.platform == "win32":
        pytest.skip("no fork")
    pid = os.fork()
    if not pid:
        exec(code)
    os.waitpid(pid, 0)
    assert (tmp_path / "lock").is_file()
    held = lock.Lock(tmp_path / "lock")
    with pytest.raises(RuntimeError, match="Another process writes the same output"):
        lock.Lock(tmp_path / "lock")
    held.release(remove=True)
    assert not (tmp_path / "lock").exists()
