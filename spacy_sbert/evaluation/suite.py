"""Runs the tasks of suites, keeps what is finished, and says exactly what was measured and how."""

import hashlib
import json
import platform
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..errors import Errors
from . import arguments, learned_similarity, nli, probing, sick, speed, sts, transfer, triplets
from .datasets import MissingData, digests
from .settings import Settings
from .sources import Source
from .store import VectorStore
from .task import Progress, Run, Task

FORMAT = "spacy-sbert evaluation 1"
SUITES: dict[str, Sequence[Task]] = {
    "sts": sts.TASKS,
    "sick": sick.TASKS,
    "triplets": triplets.TASKS,
    "nli": nli.TASKS,
    "arguments": arguments.TASKS,
    "learned": learned_similarity.TASKS,
    "transfer": transfer.TASKS,
    "probing": probing.TASKS,
    "speed": speed.TASKS,
}
PACKAGES = ["spacy-sbert", "spacy", "spacy-transformers", "thinc", "torch", "transformers", "numpy", "scipy"]
PACKAGES += ["scikit-learn"]
Save = Callable[[dict[str, Any]], None]


def evaluate_suites(
    source: Source,
    root: Path,
    suites: Iterable[str] = ("sts",),
    *,
    settings: Settings | None = None,
    cache: Path | None = None,
    save: Save | None = None,
    progress_bar: bool = True,
) -> dict[str, Any]:
    """Measure vectors on every task of the suites whose data are there.

    source (Source): gives the vectors, such as PipelineSource(nlp).
    root (Path): the folder of the data sets, in their official layouts.
    suites (iterable of str): names of SUITES.
    settings (Settings): how to evaluate.
    cache (Path): a folder for vectors and for the results of tasks, which are reused while model, data, settings and
        versions are the same.
    save (Callable): is given the results after each task, so that an interruption loses none.
    progress_bar (bool): whether to show bars, on a terminal.
    RETURNS (dict): the results, JSON: format, model (name, digest, width of its vectors, number of texts encoded),
        versions, settings, tasks (results by name, see Task.run, with their suite, data digests and whether they were
        reused), skipped (reasons by name), failed (messages by name).
    RAISES (ValueError): for an unknown suite, or if the data of no task are there.
    """
    settings = settings or Settings()
    tasks = [task for name in suites for task in tasks_of(name)]
    progress = _bar(progress_bar)
    results: dict[str, Any] = {
        "format": FORMAT,
        "model": {"name": source.name, "digest": source.digest},
        "versions": versions(),
        "settings": settings.to_json(),
        "tasks": {},
        "skipped": {},
        "failed": {},
    }
    found = []
    for task in tasks:
        try:
            found.append((task, task.find(root)))
        except MissingData as missing:
            results["skipped"][task.name] = str(missing)
    if not found:
        missing_data = "\n".join(results["skipped"].values())
        raise ValueError(Errors.NO_DATA.format(root=root, missing=missing_data))
    store = VectorStore(source, cache, progress)
    run = Run(root, store, settings, progress, source.nlp)
    for task, paths in progress(found, "tasks"):
        try:
            results["tasks"][task.name] = _run_or_reuse(task, paths, run, results, cache)
        except MissingData as missing:
            results["skipped"][task.name] = str(missing)
        except (ImportError, OSError, ValueError) as error:  # the other tasks still run
            results["failed"][task.name] = str(error)
        results["model"].update(width=store.width, encoded=store.encoded)
        if save is not None:
            save(results)
    return results


def tasks_of(suite: str) -> Sequence[Task]:
    """The tasks of a suite.

    RAISES (ValueError): if there is no such suite.
    """
    if suite not in SUITES:
        raise ValueError(Errors.UNKNOWN_SUITE.format(given=suite, expected=", ".join(SUITES)))
    return SUITES[suite]


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that scores may depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _run_or_reuse(
    task: Task, paths: list[Path], run: Run, results: dict[str, Any], cache: Path | None
) -> dict[str, Any]:
    data = digests(paths, run.root)
    depends_on = {
        "format": FORMAT,
        "model": results["model"]["digest"],
        "versions": results["versions"],
        "task": task.name,
        "settings": {name: results["settings"][name] for name in sorted(task.depends_on)},
        "data": data,
    }
    key = hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode("utf8")).hexdigest()
    file = None if cache is None else cache / f"{task.name}-{key[:32]}.json"
    if file is not None and file.is_file():
        return {**json.loads(file.read_text(encoding="utf8")), "reused": True}
    result = {"suite": task.suite, "data": data, **task.run(run), "reused": False}
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(".tmp")
        temporary.write_text(json.dumps(result, allow_nan=False), encoding="utf8")
        temporary.replace(file)
    return result


def _bar(shown: bool) -> Progress:
    # disable=None: no bar where the output is no terminal
    return lambda items, name: tqdm(items, desc=name, disable=None if shown else True, leave=False)
