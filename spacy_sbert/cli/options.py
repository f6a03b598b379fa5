"""Options that belong together, as dataclasses: a command takes one object in place of a parameter for each of them."""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from typer import Option

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from ..evaluation import Settings

FORMATS = "auto, sts, nli, sick, wikisection, quora, text or table"  # to import the readers would take too long
AUTO = "auto"
HIDDEN = "hidden"  # Annotated[Options, HIDDEN]: the command takes the options, and its help does not list them
Output = Annotated[Path | None, Option("--output", "-o", help="JSON file for the results", dir_okay=False)]
Gpu = Annotated[int, Option("--gpu-id", "-g", help="GPU to use, -1 for the CPU", min=-1)]


@dataclass(frozen=True)
class Layout:
    """How a file of examples is read."""

    format: Annotated[str, Option("--format", "-f", help=f"Layout of the file: {FORMATS}")] = AUTO
    members: Annotated[str | None, Option("--members", "-m", help="Columns of a table's texts: q1,q2")] = None
    score: Annotated[str | None, Option("--score", help="Column of a table's score")] = None
    label: Annotated[str | None, Option("--label", help="Column of a table's label")] = None
    min_score: Annotated[float | None, Option("--min-score", help="Score of a table that becomes 0")] = None
    max_score: Annotated[float | None, Option("--max-score", help="Score of a table that becomes 1")] = None
    header: Annotated[bool, Option(" /--no-header", help="A table's columns are named 0, 1, ...")] = True

    def reading(self) -> dict[str, Any]:
        """The options that were given, as PairCorpus takes them; an empty name is none."""
        said = {name: value for name, value in given(self).items() if value != ""}
        return said | ({"members": listed(self.members)} if self.members else {})

    def known(self) -> dict[str, Any]:
        """The same as find_table takes them."""
        return {name: value for name, value in self.reading().items() if name != "format"}


@dataclass(frozen=True)
class Benchmark:
    """Which standard tasks are run, on what, and how."""

    suite: Annotated[
        str, Option("--suite", "-s", help="Any of sts,sick,triplets,nli,arguments,learned,transfer,probing,speed")
    ] = "sts"
    normalization: Annotated[str, Option("--normalization", help="Any of none,zscore,unit,zscore_unit")] = "none"
    size: Annotated[str, Option("--size", help="Widths compared: own,pca-128,up-1024")] = "own"
    classifier: Annotated[str, Option("--classifier", help="Of transfer and probing: lr,mlp")] = "lr,mlp"
    seeds: Annotated[int, Option("--seeds", help="Seeds of whatever is random", min=1, max=1000)] = 10
    bootstrap: Annotated[int, Option("--bootstrap", help="Resamples of the 95 % intervals, 0 for none", min=0)] = 1000
    trained_on: Annotated[str, Option("--trained-on", help="What the encoder was trained on: stsb,snli")] = ""
    any_count: Annotated[bool, Option("--any-count", help="Take data sets that are not whole")] = False
    cache: Annotated[Path | None, Option("--cache", help="For vectors and results; by default beside --output")] = None
    baseline: Annotated[
        str | None,
        Option("--baseline", help="static, sif, power-means, tf-idf, untuned-mean, untuned-cls or random-projection"),
    ] = None
    counts: Annotated[Path | None, Option("--counts", help="Needed by sif: a file of words and counts")] = None
    encoder: Annotated[str | None, Option("--encoder", help="Of untuned-*: a transformer, by default BERT base")] = None

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


def given(options: "DataclassInstance") -> dict[str, Any]:
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
    is_hidden = HIDDEN in get_args(parameter.annotation)
    for field in fields(kind):
        inner, option = get_args(field.type)
        if is_hidden:
            option = copy(option)
            option.hidden = True
        annotation: Any = Annotated[inner, option]
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=annotation)
