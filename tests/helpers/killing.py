"""Commands in processes of their own, some killed at some moment: forked of one that has imported
everything.
"""

import os
import runpy
import signal
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from multiprocessing import get_context, set_start_method
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from typing import Any

import numpy

# What changes files: an event of each is a moment to be killed before.
EVENTS = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "os.link"}
PRELOADED = [
    "helpers.killing",
    "spacy.cli",
    "spacy_sbert",
    "spacy_sbert.cli.encode",
    "spacy_sbert.bulk",
    "faiss",
]
PRELOADED += [
    "spacy_sbert.evaluation.suite",
    "spacy_sbert.evaluation.report",
    "spacy_sbert.meta.component",
]
PRELOADED += [
    "spacy_sbert.search",
    "spacy_sbert.architectures",
    "spacy.training.loop",
    "transformers.models.bert",
]
# For one run; what hangs ends
SECONDS = 300


@cache
def _context() -> ForkServerContext:
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def command(*argv: Any) -> None:
    """What `python -m spacy ...` does; other exits than 0 are an error."""
    from spacy.cli import app

    app([str(argument) for argument in argv], standalone_mode=False)


def save_index(folder: Path, n: int) -> None:
    """Build and save an index of n vectors, the same whenever it is called."""
    from spacy_sbert.search import VectorIndex

    vectors = numpy.random.default_rng(n).normal(size=(n, 32))
    VectorIndex.build(vectors, kind="hnsw", texts=[f"text {i}" for i in range(n)]).save(folder)


# Calls that may be killed; work (Callable): can be pickled, for it goes to another process


def start(work: Callable[[], Any]) -> BaseProcess:
    process = _context().Process(target=_quiet, args=(work,))
    process.start()
    return process


def _ended(work: Callable[[], Any], seconds: float = SECONDS) -> int | None:
    """The exit code of a process that works; after some seconds it is killed."""
    process = start(work)
    process.join(seconds)
    process.kill()
    process.join()
    return process.exitcode


def run(work: Callable[[], Any]) -> None:
    """Work to its end. RAISES (ChildProcessError): if it fails or hangs."""
    if (code := _ended(work)) != 0:
        raise ChildProcessError(f"the process ended with {code}")


def killed(work: Callable[[], Any], after: float) -> bool:
    """Kill a process some seconds after it began. RETURNS (bool): whether it was not done
    before.
    """
    return _ended(work, after) == -signal.SIGKILL


def killed_at(work: Callable[[], Any], folder: Path, event: int) -> bool:
    """Have a process kill itself before it changes a file in a folder for the n-th time (from 0).

    RETURNS (bool): whether it came so far.
    """
    return _ended(partial(_killing_itself, work, folder, event)) == -signal.SIGKILL


def count_events(work: Callable[[], Any], folder: Path, counted: Path) -> int:
    """How often a process that nothing kills changes a file in a folder. counted (Path): a file to
    note it in.
    """
    run(partial(_counting, work, folder, counted))
    return int(counted.read_text())


def _quiet(work: Callable[[], Any]) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    work()


def watch(folder: Path, see: Callable[[str, str], None]) -> None:
    """Call `see` with the event and the path before this process changes a file in a folder, from
    now on.
    """
    inside = str(folder) + os.sep

    def hook(event: str, arguments: Sequence[Any]) -> None:
        if event == "open" and not (
            isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        ):
            return
        if (event == "open" or event in EVENTS) and any(
            str(given).startswith(inside) for given in arguments[:2]
        ):
            see(event, str(arguments[0]))

    sys.addaudithook(hook)


def _killing_itself(work: Callable[[], Any], folder: Path, event: int) -> None:
    left = [event]

    def see(event: str, path: str) -> None:
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    watch(folder, see)
    work()


def _counting(work: Callable[[], Any], folder: Path, counted: Path) -> None:
    seen: list[str] = []
    watch(folder, lambda event, path: seen.append(event))
    work()
    counted.write_text(str(len(seen)))


# Commands and what they say


def typed(*arguments: object, folder: Path | None = None) -> CompletedProcess[str]:
    """What `python -m spacy ...` does and says."""
    return python("-m", "spacy", *arguments, folder=folder)


def scripted(code: str, *arguments: object) -> CompletedProcess[str]:
    """What a script does and says."""
    with TemporaryDirectory() as place:
        script = Path(place) / "script.py"
        script.write_text(code, encoding="utf8")
        return python(script, *arguments)


def python(*arguments: object, folder: Path | None = None) -> CompletedProcess[str]:
    """What `python ...` does and says in a folder: in a process of its own, which imports nothing
    again.
    """
    with TemporaryDirectory() as place:
        paths = [Path(place) / name for name in ("stdout", "stderr")]
        words = list(map(str, arguments))
        process = _context().Process(target=_saying, args=(paths, folder or Path.cwd(), words))
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            raise ChildProcessError(f"the command did not end within {SECONDS} s")
        said = [path.read_text(encoding="utf8") for path in paths]
    return CompletedProcess(words, process.exitcode, *said)


def _saying(paths: Sequence[Path], folder: Path, arguments: list[str]) -> None:
    from weasel.cli import run

    for number, path in enumerate(paths, 1):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND), number)
    os.chdir(folder)
    # Python's own choice, as in a process that nobody forked
    set_start_method("fork", force=True)
    run.run_command = _run_forked
    _python(arguments)


def _run_forked(command: list[str], *, capture: bool) -> None:
    if command[0] != sys.executable or capture:
        raise ValueError(command)
    process = get_context("fork").Process(target=_python, args=(command[1:],))
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(process.exitcode)


def _python(arguments: list[str]) -> None:
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = arguments, os.path.dirname(arguments[0])
        runpy.run_path(arguments[0], run_name="__main__")
