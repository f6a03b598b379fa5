"""Helpers of commands: the app, errors, loading and output."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from typer import BadParameter, Exit, Typer, echo
from wasabi import msg

from ..errors import Errors

if TYPE_CHECKING:
    from spacy.language import Language

_NO_FUNCTION, _NAMES = "[E893]", "Available names"  # of spaCy


def fail(title: str, text: str = "") -> NoReturn:
    """Print what is wrong, and end the command.

    title, text (str): names of files in them need not be UTF-8, and a terminal could not print them.
    """
    msg.fail(_printable(title), _printable(text))
    raise Exit(1)


@contextmanager
def exit_on_error(title: str, *also: type[Exception]) -> Iterator[None]:
    """End the command where the work inside says what is wrong: under the title, with the message of the error.

    also: kinds of errors beside ImportError, OSError and ValueError.
    """
    kinds: tuple[type[Exception], ...] = (ImportError, OSError, ValueError, *also)
    try:
        yield
    except kinds as error:
        text = str(error)
        if _NO_FUNCTION in text:  # and then all names that there are
            text = f"{text.partition(_NAMES)[0].strip()} Give the file of a function of your own with --code."
        fail(title, text)


def check_new(path: Path | None, *, overwrite: bool) -> None:
    """End the command, before any work, where it would replace a file, or fill a folder that holds some, unasked."""
    if path is None or overwrite or not os.path.lexists(path):
        return
    if not path.is_dir() or any(path.iterdir()):
        fail(f"{path} is there already. Give the output another name, or replace it with --overwrite.")


def check_corpus(path: Path) -> Path:
    """Check that a file is one of texts, not of vectors.

    RAISES (BadParameter): if it is not, which Typer prints as it does for any argument.
    """
    from ..files.text_lines import check_texts

    try:
        check_texts(path)
    except ValueError as error:
        raise BadParameter(str(error)) from error
    return path


def check_columns(path: Path, column: str | None, *, header: bool) -> None:
    """End the command where columns are named of a file with a text a line. column (str): None if it was not given."""
    from ..files.text_lines import format_suffix

    options = {"--column": column is not None, "--no-header": not header}
    asked = [option for option, is_given in options.items() if is_given]
    if asked and format_suffix(path) == ".txt":
        fail(
            f"{path} has a text a line, and no columns: leave {' and '.join(asked)} out. If it is a table, "
            "give it a name that ends in .csv or .tsv."
        )


def _printable(text: str) -> str:
    return text.encode("utf8", "backslashreplace").decode("utf8")


def use_gpu(gpu_id: int, *, silent: bool = False) -> None:
    """Use a GPU, or with -1 on the CPU; a GPU that cannot be used ends the command."""
    from spacy.cli._util import setup_gpu

    with exit_on_error(f"Cannot use --gpu-id {gpu_id}: expected a GPU that is there, or -1 for the CPU", RuntimeError):
        setup_gpu(gpu_id, silent=silent or None)


app = Typer(name="sbert", help="Sentence-BERT: sentence vectors, from data to index.", no_args_is_help=True)


@app.callback()
def _begin() -> None:
    """Print characters that the console's encoding lacks as question marks, where Python would end the command."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


PACKAGED = ("all-MiniLM-L6-v2",)  # encoders that packages carry


def load(pipeline: str, pipe: str | None, code: Path | None, *, quiet: bool, gpu_id: int | None = None) -> "Language":
    """Load a folder, an installed package or an encoder by its name; errors end the command.

    pipe (str): that is used. code (Path): to import first. gpu_id (int): to choose first, for commands that encode.
    """
    from spacy.cli._util import import_code

    from ..progress import ticking

    if gpu_id is not None:
        use_gpu(gpu_id)
    import_code(code)
    with exit_on_error(f"Cannot load {pipeline}", RuntimeError), ticking("Loading", shown=not quiet):
        from ..bulk.loading import load_pipeline

        return load_pipeline(pipeline, pipe)


def load_answering(
    pipeline: str, pipe: str | None, code: Path | None, *, quiet: bool, gpu_id: int, also_scores: bool = False
) -> "Language":
    """Load a pipeline whose Docs answer with the vectors of one pipe, see answer_with."""
    nlp = load(pipeline, pipe, code, quiet=quiet, gpu_id=gpu_id)
    if pipe is not None:
        from ..bulk.loading import answer_with

        with exit_on_error(f"Cannot use {pipeline}"):
            answer_with(nlp, pipe, also_scores=also_scores)
    return nlp


def check_pipeline(pipeline: str) -> None:
    """End the command, before anything heavy is imported, if no pipeline or encoder has a name like this."""
    from spacy import errors
    from spacy.util import get_installed_models, is_package

    if pipeline.startswith("blank:") or is_package(pipeline) or Path(pipeline).exists():
        return
    from huggingface_hub.constants import HF_HUB_CACHE

    cached = [folder.name.rpartition("--")[2] for folder in Path(HF_HUB_CACHE).glob("models--*")]
    names = [name.lower() for name in (*PACKAGED, *cached, *get_installed_models())]
    if not get_close_matches(Path(pipeline).name.lower(), names, n=1, cutoff=0.7):  # else load_pipeline finds out
        reason = errors.Errors.E050.format(name=pipeline)
        fail(f"Cannot load {pipeline}", Errors.BULK_NO_PIPELINE.format(given=pipeline, near="", reason=reason))


_REPORTS = (".md", ".html")


def show(markdown: str, terminal: Callable[[int], str]) -> None:
    """Print a report: plain tables in a terminal, Markdown into a file or another program.

    terminal (Callable): makes the tables, for a terminal of so many columns.
    """
    echo(terminal(shutil.get_terminal_size().columns) if sys.stdout.isatty() else markdown)


def check_output(output: Path | None, *, overwrite: bool, renewed: bool = False) -> None:
    """End the command, before hours of work, if the name of its output does not end in .json, or it is there already.

    renewed (bool): whether results of `benchmark` that are there may be brought up to date.
    """
    if output is None:
        return
    if output.suffix != ".json":
        fail(f"Cannot save to {output}: expected a name that ends in .json; reports are written beside it")
    if renewed and output.is_file():
        if not overwrite and not _has_results(output):
            fail(
                f"{output} is there already, and holds no results of `benchmark`, which could be brought up to "
                "date. Give the output another name, or replace it with --overwrite."
            )
        return
    for path in (output, *(output.with_suffix(suffix) for suffix in _REPORTS)):
        check_new(path, overwrite=overwrite)


def _has_results(path: Path) -> bool:
    import srsly

    from ..evaluation.results import FORMAT

    try:
        found = srsly.read_json(path)
    except ValueError:  # of UnicodeDecodeError, too
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def write_reports(output: Path, markdown: str, html: str, what: str) -> None:
    """Write the reports beside the JSON. what (str): the JSON holds."""
    from ..files.atomic import write_text

    with exit_on_error(f"Cannot write the reports beside {output}"):
        write_text(output.with_suffix(".md"), markdown)
        write_text(output.with_suffix(".html"), html)
    msg.good(f"Saved the {what} to {output}, reports to {output.with_suffix('.md')} and .html")
