"""Evaluation on suites of tasks, whose finished results are kept."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spacy.language import Language

from ..errors import Warnings, warn
from ..files.atomic import check_input, write_text
from ..files.checksum import checksummed_json, digest_of_parts, verify_json
from ..files.serialization import device, versions
from ..pipeline.digest import pipeline_digest, unseen_by_digest
from ..progress import progress_of
from ..reranker.component import find_reranker
from .encoders import VectorSource, VectorStore, sklearn_module
from .protocols import nli, retrieval, senteval, speed, sts, triplets
from .report import Results
from .results import FORMAT, Json
from .task import MissingData, Run, Settings, Task

_SUITES = (sts, triplets, nli, senteval, speed, retrieval)
_TASKS = {task.name: task for module in _SUITES for task in module.TASKS}


def register_tasks(*tasks: Task) -> None:
    """Add tasks of your own, which run when their suite is asked for.

    One replaces the task of its name.

    tasks (Task): see there. The command `benchmark` imports the file that registers them with
        --code.
    """
    _TASKS.update({task.name: task for task in tasks})


def evaluate_suites(
    source: VectorSource,
    root: Path,
    suites: Iterable[str] = ("sts",),
    *,
    settings: Settings | None = None,
    reranker: Language | None = None,
    cache: Path | None = None,
    save: Callable[[Json], None] | None = None,
    progress_bar: bool | None = None,
) -> Json:
    """Measure vectors on every task of the suites whose data are there.

    source (Source): gives the vectors, such as PipelineSource(nlp).
    root (Path): the folder of the data sets, in their official layouts.
    suites (iterable of str): sts, sick, triplets, nli, transfer, speed, retrieval, and those of
        registered tasks.
    settings (Settings): how to evaluate.
    reranker (Language): a pipeline with an `sbert_reranker`, for the suite retrieval; the digest of
        the model in the results is of both then.
    cache (Path): a folder for vectors and for the results of tasks, which are reused while model,
        data, settings and versions are the same.
    save (Callable): takes the results after each task, so that an interruption loses none.
    progress_bar (bool): whether to show bars; None for bars only on a terminal.
    RETURNS (dict): the results, JSON: format, model (name, digest, device, width of its vectors,
        number of texts encoded), versions, settings, tasks (results by name, see Task.run, with
        their suite, data digests and whether they were reused), skipped (reasons by name), failed
        (messages by name).
    RAISES (ValueError): for an unknown suite, settings that its tasks do not follow, or if no task
        can be run; (ImportError): if a suite needs scikit-learn, which is not installed.

    Example:
        results = evaluate_suites(PipelineSource(nlp), Path("data"), ["sts"])
        results["tasks"]["STSb-dev"]["variants"][0]["scores"]["cosine"]["spearman"]["pooled"]

    """

    def progress(items: Sequence[Any], name: str) -> Iterable[Any]:
        return progress_of(items, desc=name, shown=progress_bar, leave=False)

    _warn_of_own_code(source, cache)
    settings = settings or Settings()
    tasks: list[Task] = []
    for suite in list(suites) or [""]:
        check_suite(suite, settings)
        tasks += tasks_of(suite)
        if suite == "retrieval":
            tasks += retrieval.beir_tasks(root)
    model = {"name": source.name, "digest": source.digest, "device": device()}
    pipe = None
    if reranker is not None:
        pipe = find_reranker(reranker)
        model["reranker"] = "{lang}_{name}".format(**reranker.meta)
        model["digest"] = digest_of_parts(source.digest, pipeline_digest(reranker))
    results = Results(
        format=FORMAT,
        model=model,
        versions=versions(),
        settings=settings.to_json(),
        tasks={},
        skipped={},
        failed={},
    )
    runnable = [task for task in tasks if _has_data(task, root, results)]
    store = VectorStore(source, cache, progress)
    run = Run(root, store, settings, progress, source, pipe)
    for task in progress(runnable, "tasks"):
        with _noting_errors(task, results):
            results["tasks"][task.name] = _run_or_reuse(task, run, results, cache)
        results["model"].update({"width": store.width, "encoded": store.encoded})
        if save is not None:
            save(results)
    _check_not_empty(results, root)
    # Every file that is there is broken
    if save is not None and not runnable:
        save(results)
    return results


def _has_data(task: Task, root: Path, results: Json) -> bool:
    """Return whether the data of a task are there; if not, note it in the results."""
    with _noting_errors(task, results):
        task.find(root)
        return True
    return False


def _check_not_empty(results: Json, root: Path) -> None:
    """Raise ValueError if every task was skipped."""
    if not results["tasks"] and not results["failed"]:
        reasons = "\n".join(dict.fromkeys(results["skipped"].values()))
        raise ValueError(f"None of the data sets asked for is below {root}:\n{reasons}")


@contextmanager
def _noting_errors(task: Task, results: Json) -> Iterator[None]:
    """Note in the results why a task is skipped or fails: the other tasks still run."""
    try:
        yield
    except MissingData as missing:
        results["skipped"][task.name] = str(missing)
    except (ImportError, MemoryError, OSError, RuntimeError, ValueError) as error:
        results["failed"][task.name] = str(error) or type(error).__name__


def check_suite(suite: str, settings: Settings) -> None:
    """Check, before anything is encoded, that the tasks of a suite can run.

    RAISES (ValueError): if there is no such suite, or its tasks do not follow the settings;
        (ImportError): if it needs scikit-learn, which is not installed.
    """
    for task in tasks_of(suite):
        task.check(settings)
        if task.needs_sklearn:
            sklearn_module("sklearn", f"The suite '{suite}'")


def tasks_of(suite: str) -> list[Task]:
    """Return the tasks of a suite. RAISES (ValueError): if there is no such suite."""
    tasks = [task for task in _TASKS.values() if task.suite == suite]
    if not tasks:
        known = ", ".join(dict.fromkeys(task.suite for task in _TASKS.values()))
        raise ValueError(
            f"Unknown suite '{suite}': expected some of {known}. Register further ones with "
            "--code: benchmarks/papers/paper_tasks.py has those of the papers."
        )
    return tasks


def _warn_of_own_code(source: VectorSource, cache: Path | None) -> None:
    """Warn if what is kept may be used again although code of the pipeline has changed."""
    if cache is None or not cache.exists() or source.nlp is None:
        return
    names = unseen_by_digest(source.nlp)
    if names:
        warn(Warnings.KEPT_OF_OWN_CODE.format(names=", ".join(names), cache=cache))


def _run_or_reuse(task: Task, run: Run, results: Json, cache: Path | None) -> Json:
    """Return the result of a task, maybe that of an earlier run, which is in the cache."""
    data = task.digests(run.root)
    if cache is None or not task.is_kept:
        return _run(task, run, data)
    model = {"digest": results["model"]["digest"], "device": results["model"]["device"]}
    key = digest_of_parts(FORMAT, model, results["versions"], task.name, results["settings"], data)
    file = cache / f"{task.name}-{key[:32]}.json"
    # There is none, or it is damaged
    with suppress(AttributeError, OSError, RecursionError, ValueError):
        check_input(file)
        return {**verify_json(json.loads(file.read_text(encoding="utf8"))), "reused": True}
    result = _run(task, run, data)
    write_json(file, checksummed_json(result))
    return result


def _run(task: Task, run: Run, data: Mapping[str, str]) -> Json:
    return {"suite": task.suite, "data": data, **task.run(run), "reused": False}


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write JSON, the whole of it or nothing, to a folder that is made if need be."""
    write_text(file, json.dumps(content, allow_nan=False, indent=1) + "\n")
