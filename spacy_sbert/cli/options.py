"""Options that belong together, as dataclasses: a command takes one object in place of a parameter for each of them."""

import csv
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from typer import Argument, BadParameter, Option

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from ..evaluation import Settings

FORMATS = "auto, sts, nli, sick, wikisection, quora, text or table"  # to import the readers would take too long
AUTO = "auto"
TEXTS = "The file of texts: .txt, .jsonl, .csv, .tsv (all also .gz) or .parquet."
CODE = "A Python file that registers functions of your own."
GPU = "The GPU to work on, or -1 for the CPU."
HEADER = "Read the first row of .csv and .tsv as data, and name the columns 0, 1, and so on."

Pipeline = Annotated[str, Argument(help="The pipeline: a folder or an installed package, or the name of an encoder.")]
Code = Annotated[Path | None, Option("--code", help=CODE, exists=True, dir_okay=False)]
IdColumn = Annotated[str | None, Option("--id-column", help="A column to copy into the output, as id.")]
Pipe = Annotated[str | None, Option("--pipe", help="The name of the pipe to use; by default the last of its kind.")]
Output = Annotated[Path | None, Option("--output", "-o", help="The JSON file to write the results to.", dir_okay=False)]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace the output if it is there already.")]
Gpu = Annotated[int, Option("--gpu-id", "-g", help=GPU, min=-1)]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Show no progress bar.")]
Lang = Annotated[str, Option("--lang", "-l", help="The language whose tokenizer makes the Docs.")]
COLUMN = "text"  # by default
Column = Annotated[
    str | None, Option("--column", "-c", help="The column or JSON field of the texts.", show_default=COLUMN)
]
Header = Annotated[bool, Option(" /--no-header", help=HEADER, show_default=False)]
Precision = Annotated[
    str | None,
    Option("--precision", help="The precision to compute in: float32, bfloat16, float16, int8, auto or reference."),
]
VECTORS = "Vectors that `encode` wrote of the same texts, so that they are not encoded again."
Vectors = Annotated[Path | None, Option("--vectors", help=VECTORS, exists=True)]
Limit = Annotated[int, Option("--limit", help="Read at most this many examples, or 0 for all.", min=0)]
Seed = Annotated[int | None, Option("--seed", help="The seed of what is drawn at random.")]
Members = Annotated[
    str | None, Option("--members", "-m", help="The columns of a table's texts, with commas between: first,second.")
]
Score = Annotated[str | None, Option("--score", help="The column of a table's scores.")]
Label = Annotated[str | None, Option("--label", help="The column of a table's labels.")]
MIN_SCORE = Option("--min-score", help="The score in a table that becomes 0.")
MAX_SCORE = Option("--max-score", help="The score in a table that becomes 1.")


@dataclass(frozen=True)
class Layout:
    """How a file of examples is read."""

    format: Annotated[str, Option("--format", "-f", help=f"The layout of the file: {FORMATS}.")] = AUTO
    members: Members = None
    score: Score = None
    label: Label = None
    min_score: Annotated[float | None, MIN_SCORE] = None
    max_score: Annotated[float | None, MAX_SCORE] = None
    header: Header = True

    def reading(self) -> dict[str, Any]:
        """The options that were given, as PairCorpus takes them; an empty name is none."""
        said = {name: value for name, value in set_options(self).items() if value != ""}
        return said | ({"members": listed_columns(self.members)} if self.members else {})

    def known(self) -> dict[str, Any]:
        """The same as find_table takes them."""
        return {name: value for name, value in self.reading().items() if name != "format"}


@dataclass(frozen=True)
class Benchmark:
    """Which standard tasks are run, on what, and how."""

    suite: Annotated[
        str,
        Option(
            "--suite",
            "-s",
            help="The tasks: any of sts, sick, triplets, nli, arguments, learned, transfer, probing and speed, with "
            "commas between.",
        ),
    ] = "sts"
    normalization: Annotated[
        str, Option("--normalization", help="How vectors are normalized: any of none, zscore, unit and zscore_unit.")
    ] = "none"
    size: Annotated[str, Option("--size", help="The widths to compare, such as own,pca-128,up-1024.")] = "own"
    classifier: Annotated[
        str, Option("--classifier", help="The classifiers of transfer and probing: lr, mlp or both.")
    ] = "lr,mlp"
    seeds: Annotated[
        int, Option("--seeds", help="With how many seeds to repeat what is drawn at random.", min=1, max=1000)
    ] = 10
    bootstrap: Annotated[
        int, Option("--bootstrap", help="The number of resamples of the 95 % intervals, or 0 for none.", min=0)
    ] = 1000
    trained_on: Annotated[
        str, Option("--trained-on", help="The data sets that the encoder was trained on, such as stsb,snli.")
    ] = ""
    any_count: Annotated[bool, Option("--any-count", help="Take data sets that are not whole, too.")] = False
    cache: Annotated[
        Path | None,
        Option("--cache", help="The folder that keeps vectors and finished tasks; by default beside --output."),
    ] = None
    baseline: Annotated[
        str | None,
        Option(
            "--baseline",
            help="Score a baseline in place of the pipeline: static, sif, power-means, tf-idf, untuned-mean, "
            "untuned-cls or random-projection.",
        ),
    ] = None
    counts: Annotated[
        Path | None, Option("--counts", help="The file of words and counts that the baseline sif needs.")
    ] = None
    encoder: Annotated[
        str | None, Option("--encoder", help="The transformer of the baselines untuned-*; by default BERT base.")
    ] = None

    def settings(self) -> "Settings":
        """How to evaluate. RAISES (ValueError): for an unknown value."""
        from ..evaluation import Settings

        return Settings(
            normalizations=listed(self.normalization),
            sizes=listed(self.size),
            classifiers=listed(self.classifier),
            seeds=tuple(range(1, self.seeds + 1)),
            bootstrap=self.bootstrap,
            trained_on=listed(self.trained_on),
            any_count=self.any_count,
        )


def listed(given: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(name.strip() for name in given.split(",") if name.strip())


def listed_columns(given: str) -> tuple[str, ...]:
    """The names of columns in a list with commas; a name that has one is in quotes. RAISES (BadParameter)."""
    try:
        names = next(csv.reader([given], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise BadParameter(
            f"Cannot read --members {given} ({error}): expected names with commas between. Put a name that has "
            "a comma in quotes: --members '\"q,r\",text2'."
        ) from error
    return tuple(name.strip() for name in names if name.strip())


def set_options(options: "DataclassInstance") -> dict[str, Any]:
    """The options that were given, by name: those that are not None."""
    return {name: value for name, value in asdict(options).items() if value is not None}


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: Typer sees an option for each field of a parameter whose type is a dataclass."""
    seen = signature(command)
    groups: dict[str, Any] = {
        name: kind for name, one in seen.parameters.items() if is_dataclass(kind := _kind(one.annotation))
    }

    @wraps(command)
    def called(**given: object) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    parameters = [one for parameter in seen.parameters.values() for one in _flat(parameter)]
    called.__signature__ = seen.replace(parameters=parameters)  # type: ignore[attr-defined]
    return called


def _kind(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _flat(parameter: Parameter) -> Iterator[Parameter]:
    """The parameter, or those for the fields of the dataclass that it is."""
    kind = _kind(parameter.annotation)
    if not is_dataclass(kind):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)
        return
    for field in fields(kind):
        inner, option = get_args(field.type)
        annotation: Any = Annotated[inner, option]
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=annotation)
