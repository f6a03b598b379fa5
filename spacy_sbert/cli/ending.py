"""How commands end when they cannot continue."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from typer import BadParameter, Exit
from wasabi import msg

from .errors import Errors

NO_FUNCTION, NAMES = "[E893]", "Available names"  # of spaCy


def fail(title: str, text: str = "") -> NoReturn:
    """Say what is wrong, and end the command.

    title, text (str): names of files in them need not be UTF-8, and a terminal could not print them.
    """
    msg.fail(_printable(title), _printable(text))
    raise Exit(1)


@contextmanager
def or_fail(title: str, *also: type[Exception]) -> Iterator[None]:
    """End the command where the work inside says what is wrong: under the title, with the message of the error.

    also: kinds of errors beside ImportError, OSError and ValueError.
    """
    kinds: tuple[type[Exception], ...] = (ImportError, OSError, ValueError, *also)
    try:
        yield
    except kinds as error:
        text = str(error)
        if NO_FUNCTION in text:  # and then all names that there are
            text = f"{text.partition(NAMES)[0].strip()} Give the file of a function of your own with --code."
        fail(title, text)


def check_new(path: Path | None, *, overwrite: bool) -> None:
    """End the command, before any work, where it would replace a file, or fill a folder that holds some, unasked."""
    if path is None or overwrite or not os.path.lexists(path):
        return
    if not path.is_dir() or any(path.iterdir()):
        fail(Errors.OUTPUT_EXISTS.format(path=path))


def check_corpus(path: Path) -> Path:
    """Refuse a file of vectors in the place of texts. RAISES (BadParameter): as Typer says it of an argument."""
    from ..files.lines import check_texts

    try:
        check_texts(path)
    except ValueError as error:
        raise BadParameter(str(error)) from error
    return path


def check_columns(path: Path, column: str | None, *, header: bool) -> None:
    """End the command where columns are named of a file with a text a line. column (str): None if it was not given."""
    from ..files.lines import format_suffix

    options = {"--column": column is not None, "--no-header": not header}
    asked = [option for option, is_given in options.items() if is_given]
    if asked and format_suffix(path) == ".txt":
        fail(Errors.NO_COLUMNS_IN_TEXT.format(path=path, options=" and ".join(asked)))


def _printable(text: str) -> str:
    return text.encode("utf8", "backslashreplace").decode("utf8")


def use_gpu(gpu_id: int, *, silent: bool = False) -> None:
    """Work on a GPU, or with -1 on the CPU; a GPU that cannot be used ends the command."""
    from spacy.cli._util import setup_gpu

    with or_fail(f"Cannot use --gpu-id {gpu_id}: expected a GPU that is there, or -1 for the CPU", RuntimeError):
        setup_gpu(gpu_id, silent=silent or None)
