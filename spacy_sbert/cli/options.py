"""Arguments and options that several commands share, as annotated types, and groups of them."""

import csv
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from spacy.cli._util import import_code
from spacy.language import Language
from typer import Argument, BadParameter, Option
from wasabi import msg

from ..errors import Warnings
from ..files.tables import COLUMN, TABLES, column_names
from ..files.text_lines import format_suffix
from ..progress import ticking
from ..validation import Name, check
from ._util import check_corpus, exit_on_error, fail, named_file, use_gpu

# An unknown name lists all of them; to import the readers would take too long
_FORMAT = "The layout of the file: auto, table, text, or a data set's, such as sts or nli."
AUTO_FORMAT = "auto"
TEXTS = "The file of texts: .txt, .jsonl, .csv, .tsv (all also .gz) or .parquet."
CODE = "A Python file that registers functions of your own."
GPU = "The GPU to work on, or -1 for the CPU."
VECTORS = "Vectors that `encode` wrote of the same texts, so that they are not encoded again."
# The most examples or epochs that can be asked for
MOST = 10**9
# Rows that show whether other columns hold texts
_FIRST_ROWS = 1000
_HEADER = "Read the first row of .csv and .tsv as data, and name the columns 0, 1, and so on."
_MEMBERS = "The columns of a table's texts, with commas between: first,second."


def not_empty(value: str | None) -> str | None:
    """Check the name that an option gives.

    RAISES (BadParameter): if it is empty, or holds half a character.
    """
    try:
        check("name", value, Name | None)
    except ValueError as error:
        raise BadParameter(str(error)) from error
    return value


Pipeline = Annotated[
    str, Argument(help="The pipeline: a folder or an installed package, or the name of an encoder.")
]
CorpusPath = Annotated[
    Path, Argument(help=TEXTS, exists=True, dir_okay=False, callback=check_corpus)
]
Code = Annotated[Path | None, Option("--code", help=CODE, exists=True, dir_okay=False)]
_RESULTS = "The JSON file to write the results to."
_PIPE = "The name of the pipe to use; by default the last of its kind."
Pipe = Annotated[str | None, Option("--pipe", help=_PIPE, callback=not_empty)]
Output = Annotated[Path | None, Option("--output", "-o", help=_RESULTS, parser=named_file)]
Overwrite = Annotated[
    bool, Option("--overwrite", help="Replace the output if it is there already.")
]
Gpu = Annotated[int, Option("--gpu-id", "-g", help=GPU, min=-1)]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Show no progress bar.")]
Lang = Annotated[str, Option("--lang", "-l", help="The language whose tokenizer makes the Docs.")]
TextColumn = Annotated[
    str | None, Option("--column", "-c", help="The column or JSON field of the texts.")
]
_PRECISION = "The precision to compute in: float32, bfloat16, float16, int8, auto or reference."
PrecisionOption = Annotated[str | None, Option("--precision", help=_PRECISION)]
Vectors = Annotated[Path | None, Option("--vectors", help=VECTORS, exists=True)]
HasHeader = Annotated[bool, Option(" /--no-header", help=_HEADER, show_default=False)]
Limit = Annotated[
    int, Option("--limit", help="Read at most this many examples, or 0 for all.", min=0, max=MOST)
]
SeedOption = Annotated[
    int | None, Option("--seed", help="The seed of what is drawn at random.", min=0)
]


@dataclass
class Loading:
    """How a pipeline is loaded."""

    pipe: Pipe = None
    code: Code = None
    quiet: Quiet = False

    @property
    def shown(self) -> bool:
        """Whether progress is shown."""
        return not self.quiet

    def load(
        self, pipeline: str, *, answering: bool = False, also_scores: bool = False
    ) -> Language:
        """Load a folder, an installed package or an encoder by its name; errors end the command.

        answering (bool): whether Docs answer with the vectors of the pipe. also_scores (bool): see
            answer_with.
        """
        if isinstance(self, LoadingOnGpu):
            use_gpu(self.gpu_id)
        import_code(self.code)
        with (
            exit_on_error(f"Cannot load {pipeline}", RuntimeError),
            ticking("Loading", shown=self.shown),
        ):
            from ..bulk.loading import answer_with, load_pipeline

            nlp = load_pipeline(pipeline, self.pipe)
        if answering and self.pipe is not None:
            with exit_on_error(f"Cannot use {pipeline}"):
                answer_with(nlp, self.pipe, also_scores=also_scores)
        return nlp


@dataclass
class LoadingOnGpu(Loading):
    """How a pipeline is loaded that computes vectors."""

    gpu_id: Gpu = -1


@dataclass
class ColumnOptions:
    """The columns of a file of texts whose rows are kept."""

    column: Annotated[
        str | None, Option("--column", "-c", help="The column of the texts.", show_default=COLUMN)
    ] = None
    id_column: Annotated[
        str | None, Option("--id-column", help="A column to copy into the output, as id.")
    ] = None
    header: HasHeader = True

    def check(self, path: Path) -> None:
        """End the command if columns of a file with one text a line are named."""
        options = []
        if self.column is not None:
            options.append("--column")
        if not self.header:
            options.append("--no-header")
        if options and format_suffix(path) == ".txt":
            fail(
                f"{path} has a text a line, and no columns: leave {' and '.join(options)} out, or "
                "rename it .csv."
            )
        if self.column is None:
            warn_of_unread_texts(path)


def warn_of_unread_texts(path: Path) -> None:
    """Warn if a table has other columns of texts, in its first rows, than "text", which is read."""
    if format_suffix(path) not in TABLES:
        return

    from ..readers.text_cells import find_nameless_texts, find_texts

    unread: list[str] = []
    # The command itself reports a file that cannot be read
    with suppress(ValueError, OSError, ImportError):
        names = column_names(path)
        if COLUMN in names:
            others = [name for name in names if name.strip() and name != COLUMN]
            unread += find_texts(path, others, limit=_FIRST_ROWS)
            unread += find_nameless_texts(path, limit=_FIRST_ROWS)
    if unread:
        msg.warn(Warnings.UNREAD_TEXTS.format(path=path, names=", ".join(unread), column=COLUMN))


@dataclass
class TableLayout:
    """The columns of a table of examples."""

    members: Annotated[str | None, Option("--members", "-m", help=_MEMBERS)] = None
    score: Annotated[str | None, Option("--score", help="The column of a table's scores.")] = None
    label: Annotated[str | None, Option("--label", help="The column of a table's labels.")] = None
    min_score: Annotated[float | None, Option(help="The score in a table that becomes 0.")] = None
    max_score: Annotated[float | None, Option(help="The score in a table that becomes 1.")] = None
    header: HasHeader = True

    def settings(self) -> dict[str, Any]:
        """Return the options that have a value, as PairCorpus takes them; an empty name is none.

        RAISES (BadParameter): if the members have quotes that are not closed.
        """
        given = {name: value for name, value in vars(self).items() if value not in (None, "")}
        if self.members:
            given["members"] = _split_members(self.members)
        return given


def _split_members(text: str) -> tuple[str, ...]:
    """Return the names of columns with commas between; a name with a comma is in quotes."""
    try:
        names = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise BadParameter(
            f"Cannot read --members {text} ({error}): expected names such as '\"q,r\",text2'."
        ) from error
    return tuple(name.strip() for name in names if name.strip())


@dataclass
class Layout(TableLayout):
    """The layout of a file of examples."""

    format: Annotated[str, Option("--format", "-f", help=_FORMAT)] = AUTO_FORMAT


def without_none(**options: object) -> dict[str, Any]:
    """Return the options that have a value."""
    return {name: value for name, value in options.items() if value is not None}
