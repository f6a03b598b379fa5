"""Runs of an experiment in one JSON file, by name.

A run is saved as it ends, and not made again.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = dict[str, Any]


def read_runs(file: Path) -> dict[str, Run]:
    """Return the runs of a file by name, none if there is no file."""
    return json.loads(file.read_text(encoding="utf8")) if file.exists() else {}


def run_once(file: Path, name: str, make: Callable[[], Run]) -> Run:
    """Return the run of this name from the file, or make it and add it to the file."""
    runs = read_runs(file)
    if name not in runs:
        made = make()
        # Read again: another process may have added runs
        runs = {**read_runs(file), name: made}
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{file.name}.{os.getpid()}")
        partial.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf8")
        partial.replace(file)
        print(name, flush=True)
    # As it is read from the file
    return json.loads(json.dumps(runs[name]))
