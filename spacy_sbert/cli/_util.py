"""Helpers of commands: the app, errors, loading and output."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from typer import BadParameter, Exit, Typer, echo
from wasabi import msg

from ..errors import Errors
from .options import Code, Gpu, Pipe, Quiet

if TYPE_CHECKING:
    from spacy.language import Language

NO_FUNCTION, NAMES = "[E893]", "Available names"  # of spaCy


def fail(title: str, text: str = "") -> NoReturn:
    """Say what is wrong, and end the command.

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
        if NO_FUNCTION in text:  # and then all names that there are
            text = f"{text.partition(NAMES)[0].strip()} Give the file of a function of your own with --code."
        fail(title, text)


def check_new(path: Path | None, *, overwrite: bool) -> None:
    """End the command, before any work, where it would replace a file, or fill a folder that holds some, unasked."""
    if path is None or overwrite or not os.path.lexists(path):
        return
    if not path.is_dir() or any(path.iterdir()):
        fail(f"{path} is there already. Give the output another name, or replace it with --overwrite.")


def check_corpus(path: Path) -> Path:
    """Refuse a file of vectors in the place of texts. RAISES (BadParameter): as Typer says it of an argument."""
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
    """Work on a GPU, or with -1 on the CPU; a GPU that cannot be used ends the command."""
    from spacy.cli._util import setup_gpu

    with exit_on_error(f"Cannot use --gpu-id {gpu_id}: expected a GPU that is there, or -1 for the CPU", RuntimeError):
        setup_gpu(gpu_id, silent=silent or None)


app = Typer(name="sbert", help="Sentence-BERT: sentence vectors, from data to index.", no_args_is_help=True)


@app.callback()
def begin() -> None:
    """Print characters that the console's encoding lacks as question marks, where Python would end the command."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


PACKAGED = ("all-MiniLM-L6-v2",)  # encoders that packages carry


@dataclass(frozen=True)
class Loading:
    """Which pipe of the pipeline a command uses, and the code it needs."""

    pipe: Pipe = None
    code: Code = None
    quiet: Quiet = False

    @property
    def shown(self) -> bool:
        """Whether to show progress bars."""
        return not self.quiet

    def import_code(self) -> None:
        """Import the code that a pipeline needs."""
        from spacy.cli._util import import_code

        import_code(self.code)

    def prepare(self) -> None:
        """Do what has to be done before the pipeline is loaded."""
        self.import_code()

    def load(self, pipeline: str) -> "Language":
        """Load a folder, an installed package or an encoder by its name; errors end the command."""
        from ..progress import ticking

        self.prepare()
        with exit_on_error(f"Cannot load {pipeline}", RuntimeError), ticking("Loading", shown=self.shown):
            from ..bulk.loading import load_pipeline

            return load_pipeline(pipeline, self.pipe)

    def load_answering(self, pipeline: str, *, also_scores: bool = False) -> "Language":
        """Load a pipeline whose Docs answer with the vectors of --pipe, see answer_with."""
        nlp = self.load(pipeline)
        if self.pipe is not None:
            from ..bulk.loading import answer_with

            with exit_on_error(f"Cannot use {pipeline}"):
                answer_with(nlp, self.pipe, also_scores=also_scores)
        return nlp


@dataclass(frozen=True)
class Computing(Loading):
    """The same for a command that encodes texts."""

    gpu_id: Gpu = -1

    def prepare(self) -> None:
        """Do what has to be done before the pipeline is loaded: choose the GPU, too."""
        use_gpu(self.gpu_id)
        super().prepare()


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


REPORTS = (".md", ".html")


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
    for path in (output, *(output.with_suffix(suffix) for suffix in REPORTS)):
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
