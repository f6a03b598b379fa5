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

PACKAGED = ("all-MiniLM-L6-v2",)  # encoders that packages carry
app = Typer(name="sbert", help="Sentence-BERT: sentence vectors, from data to index.", no_args_is_help=True)


@app.callback()
def _begin() -> None:
    """Print characters that the console's encoding lacks as question marks, where Python would end the command."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def fail(title: str, text: str = "") -> NoReturn:
    """Print an error and end the command. Names of files in it need not be UTF-8."""
    title, text = (part.encode("utf8", "backslashreplace").decode("utf8") for part in (title, text))
    msg.fail(title, text)
    raise Exit(1)


@contextmanager
def exit_on_error(title: str, *also: type[Exception]) -> Iterator[None]:
    """End the command if the block raises an error that explains itself; its message is printed below the title.

    also: kinds of errors beside ImportError, OSError and ValueError.
    """
    kinds: tuple[type[Exception], ...] = (ImportError, OSError, ValueError, *also)
    try:
        yield
    except kinds as error:
        text = str(error)
        if "[E893]" in text:  # of spaCy, which lists every registered function
            text = f"{text.partition('Available names')[0].strip()} Give the file of your own function with --code."
        fail(title, text)


def check_new(path: Path | None, *, overwrite: bool) -> None:
    """End the command, before any work, if the output is a file, or a folder with files in it."""
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
    """End the command if columns of a file with one text a line are named. column (str): None if not given."""
    from ..files.text_lines import format_suffix

    options = [*(["--column"] if column is not None else []), *([] if header else ["--no-header"])]
    if options and format_suffix(path) == ".txt":
        fail(
            f"{path} has a text a line, and no columns: leave {' and '.join(options)} out. If it is a table, "
            "give it a name that ends in .csv or .tsv."
        )


def use_gpu(gpu_id: int, *, silent: bool = False) -> None:
    """Use a GPU, or the CPU with -1. End the command if the GPU cannot be used."""
    from spacy.cli._util import setup_gpu

    with exit_on_error(f"Cannot use --gpu-id {gpu_id}: expected a GPU that is there, or -1 for the CPU", RuntimeError):
        setup_gpu(gpu_id, silent=silent or None)


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
    """End the command, before torch is imported, if no pipeline or encoder has a name like this."""
    from spacy import errors
    from spacy.util import get_installed_models, is_package

    if pipeline.startswith("blank:") or is_package(pipeline) or Path(pipeline).exists():
        return
    from huggingface_hub.constants import HF_HUB_CACHE

    cached = [folder.name.rpartition("--")[2] for folder in Path(HF_HUB_CACHE).glob("models--*")]
    names = [name.lower() for name in (*PACKAGED, *cached, *get_installed_models())]
    if not get_close_matches(Path(pipeline).name.lower(), names, n=1, cutoff=0.7):  # else load_pipeline decides
        reason = errors.Errors.E050.format(name=pipeline)
        fail(f"Cannot load {pipeline}", Errors.BULK_NO_PIPELINE.format(given=pipeline, near="", reason=reason))


def show(markdown: str, terminal: Callable[[int], str]) -> None:
    """Print a report: plain tables in a terminal, Markdown into a file or another program.

    terminal (Callable): makes the tables for a terminal of a number of columns.
    """
    echo(terminal(shutil.get_terminal_size().columns) if sys.stdout.isatty() else markdown)


def check_output(output: Path | None, *, overwrite: bool, renewed: bool = False) -> None:
    """End the command, before hours of work, if the name of its output does not end in .json, or it exists already.

    renewed (bool): whether existing results of `benchmark` may be brought up to date.
    """
    if output is None:
        return
    if output.suffix != ".json":
        fail(f"Cannot save to {output}: expected a name that ends in .json; reports are written beside it")
    if not (renewed and output.is_file()):
        for path in (output, output.with_suffix(".md"), output.with_suffix(".html")):
            check_new(path, overwrite=overwrite)
    elif not overwrite and not _has_results(output):
        fail(
            f"{output} is there already, and holds no results of `benchmark`, which could be brought up to date. Give "
            "the output another name, or replace it with --overwrite."
        )


def _has_results(path: Path) -> bool:
    import srsly

    from ..evaluation.results import FORMAT

    try:
        content = srsly.read_json(path)
    except ValueError:  # includes UnicodeDecodeError
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT


def write_reports(output: Path, markdown: str, html: str, what: str) -> None:
    """Write the reports beside the JSON. what (str): the content of the JSON."""
    from ..files.atomic import write_text

    with exit_on_error(f"Cannot write the reports beside {output}"):
        write_text(output.with_suffix(".md"), markdown)
        write_text(output.with_suffix(".html"), html)
    msg.good(f"Saved the {what} to {output}, reports to {output.with_suffix('.md')} and .html")
