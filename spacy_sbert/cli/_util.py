"""Helpers of commands: the app, errors, and what is checked before any work."""

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

from spacy.cli._util import setup_gpu
from typer import BadParameter, Exit, Typer
from wasabi import msg

from ..errors import Errors
from ..files.atomic import check_apart
from ..files.text_lines import check_texts
from ..validation import check

app = Typer(
    name="sbert", help="Sentence-BERT: sentence vectors, from data to index.", no_args_is_help=True
)


@app.callback()
def _begin() -> None:
    """Print question marks for characters that the console's encoding lacks.

    Python would end the command at the first one.
    """
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def group(name: str, help_text: str) -> Typer:
    """Return a group of commands: `spacy sbert NAME COMMAND`."""
    made = Typer(name=name, help=help_text, no_args_is_help=True)
    app.add_typer(made)
    return made


def command(
    name: str, *, of: Typer = app, **settings: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command. Each field of a parameter that is a dataclass is an option of its own.

    of (Typer): the group that it belongs to.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        return of.command(name, **settings)(flattened(function))

    return register


def flattened(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function for Typer: the fields of dataclasses are parameters of their own.

    Typer knows single options only; a group of them, such as Columns, is one parameter here.
    """
    groups: dict[str, type] = {}
    parameters: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            parameters |= inspect.signature(parameter.annotation).parameters
        else:
            parameters[name] = parameter

    @wraps(function)
    def flat(**given: object) -> None:
        for name, group in groups.items():
            own = {field.name: given.pop(field.name) for field in fields(group)}
            given[name] = group(**own)
        function(**given)

    keywords = [one.replace(kind=one.KEYWORD_ONLY) for one in parameters.values()]
    flat.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    flat.__annotations__ = {one.name: one.annotation for one in keywords}
    return flat


def fail(title: str, text: str = "") -> NoReturn:
    """Print an error and end the command. Names of files in it need not be UTF-8."""
    msg.fail(_printable(title), _printable(text))
    raise Exit(1)


def _printable(text: str) -> str:
    return text.encode("utf8", "backslashreplace").decode("utf8")


@contextmanager
def exit_on_error(title: str, *also: type[Exception]) -> Iterator[None]:
    """End the command if the block raises an error that explains itself.

    Its message is printed below the title.

    also: kinds of errors beside ImportError, OSError and ValueError.
    """
    kinds: tuple[type[Exception], ...] = (ImportError, OSError, ValueError, *also)
    try:
        yield
    except kinds as error:
        text = str(error)
        if "[E893]" in text:
            # spaCy lists every registered function
            unknown = text.partition("Available names")[0].strip()
            text = f"{unknown} Give the file of your own function with --code."
        fail(title, text)


def check_new(path: Path | None, *inputs: Path | None, overwrite: bool) -> None:
    """End the command, before any work, if the output would replace something.

    That is a file, a folder with files in it, or one of the inputs, even with `overwrite`.
    """
    if path is None:
        return
    for source in inputs:
        if source is not None:
            with exit_on_error(f"Cannot write {path}"):
                check_apart(source, path)
    if overwrite or not os.path.lexists(path):
        return
    if not path.is_dir() or any(path.iterdir()):
        fail(
            f"{path} is there already. Give the output another name, or replace it with "
            "--overwrite."
        )


def named_output(value: str) -> Path:
    """Return the path of a file or folder to write. RAISES (BadParameter): if it has no name."""
    try:
        check("the output", value, str | Path)
    except ValueError as error:
        raise BadParameter(str(error)) from error
    return Path(value)


def named_file(value: str) -> Path:
    """Return the path of a file to write.

    RAISES (BadParameter): if it has no name, or is a folder.
    """
    path = named_output(value)
    if path.is_dir():
        raise BadParameter(Errors.NOT_TO_WRITE.format(path=path, kind="a folder"))
    return path


def check_corpus(path: Path) -> Path:
    """Check that a file is one of texts, not of vectors.

    RAISES (BadParameter): if it is not, which Typer prints as it does for any argument.
    """
    try:
        check_texts(path)
    except ValueError as error:
        raise BadParameter(str(error)) from error
    return path


def use_gpu(gpu_id: int, *, silent: bool = False) -> None:
    """Use a GPU, or the CPU with -1. End the command if the GPU cannot be used."""
    failed = f"Cannot use --gpu-id {gpu_id}: expected a GPU that is there, or -1 for the CPU"
    with exit_on_error(failed, RuntimeError):
        setup_gpu(gpu_id, silent=silent or None)
