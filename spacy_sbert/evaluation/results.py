"""Results of evaluations: their types, how saved ones are read and checked, and how figures are looked up."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, NotRequired, TypeVar, cast

import numpy
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ..errors import Errors
from ..files.atomic import check_input
from ..files.serialization import KEY, unsealed
from ..validation import short_repr
from .vector_transforms import parse_size

FORMAT = "spacy-sbert evaluation 1"
_MAX_BYTES = 2**28  # a whole evaluation with all predictions has a few million
_LARGEST = 1e300  # JSON has integers that no float holds
ABSENT: Literal["-"] = "-"  # a score that was not measured; one that is not defined is None
MSE = "mse"  # the mean squared error, the one score that is not a share
Figure = float | Literal["-"] | None
_ItemT = TypeVar("_ItemT")
_TaskT = TypeVar("_TaskT", bound=Mapping[str, object])

_Number = Annotated[float, Field(gt=-_LARGEST, lt=_LARGEST, allow_inf_nan=False)]
_Some = Annotated[list[_ItemT], Field(min_length=1)]
_Interval = Annotated[list[_Number], Field(min_length=2, max_length=2)] | None
Scores = dict[str, Any]  # of one variant; nested, leaves are numbers, and None where a score is not defined


def _size(size: str) -> str:
    parse_size(size)
    return size


class Network(TypedDict):
    """The settings that were chosen for an MLP, see best_perceptron."""

    l2: _Number
    dropout: _Number
    passes: int


class Summary(TypedDict):
    """Scores of a variant.

    deviation: their standard deviation over seeds. c, networks: of logistic regression and of the MLP, by fold.
    """

    scores: Scores
    deviation: NotRequired[Scores]
    c: NotRequired[list[_Number]]
    networks: NotRequired[list[Network]]


class Entry(Summary):
    """The scores of a variant."""

    normalization: str
    size: Annotated[str, AfterValidator(_size)]


class Tuned(Summary):
    """The scores with the normalisations that were best in tuning: of the main classifier, and of each by its name."""

    normalization: list[str]
    by_classifier: NotRequired[dict[str, list[str]]]


class Predictions(TypedDict, total=False):
    """Predictions of the first variant for each example: right, of classifiers, or predicted, gold and subset."""

    right: Annotated[str, Field(pattern="^[01]*$")]
    predicted: list[_Number]
    gold: list[_Number]
    subset: list[str]


class Measured(TypedDict):
    """The result of Task.run."""

    counts: dict[str, int]
    primary: str
    variants: _Some[Entry]
    intervals: dict[str, _Interval]
    predictions: Predictions
    notes: list[str]
    tuned: NotRequired[Tuned]
    protocol: NotRequired[dict[str, object]]
    splits: NotRequired[dict[str, str]]
    conditions: NotRequired[dict[str, object]]


class TaskResult(Measured):
    """The result of a task as saved; data, the digests of its files; reused, whether it was measured before."""

    suite: str
    data: dict[str, str]
    reused: NotRequired[bool]


class _ModelFacts(TypedDict):
    """The model that was measured, and the device."""

    name: str
    digest: str
    device: NotRequired[str]
    width: NotRequired[int | None]
    encoded: NotRequired[int]


class SettingsFacts(TypedDict):
    """The settings, see Settings."""

    normalizations: _Some[str]
    sizes: _Some[str]
    seeds: _Some[int]
    bootstrap: int
    trained_on: list[str]
    classifiers: NotRequired[list[str]]
    any_count: NotRequired[bool]


class Results(TypedDict):
    """The results of an evaluation, see evaluate_suites."""

    format: str
    model: _ModelFacts
    versions: dict[str, str]
    settings: SettingsFacts
    tasks: dict[str, TaskResult]
    skipped: dict[str, str]
    failed: dict[str, str]


_EXPECTED = {
    "missing": "to be there",
    "dict_type": "an object",
    "list_type": "a list",
    "string_type": "str",
    "int_type": "int",
    "bool_type": "bool",
    **dict.fromkeys(("float_type", "finite_number", "greater_than", "less_than"), "a finite number"),
    "too_short": "at least one",
    "string_pattern_mismatch": "a text of 0 and 1",
    "value_error": "own, pca-D or up-D",
}  # by pydantic's names of what may be wrong


def read_results(path: str | Path) -> Results:
    """Read the results of an evaluation that were saved as JSON.

    path (str or Path): the file.
    RETURNS (dict): see evaluate_suites.
    RAISES (ValueError): if it is not such a file; the message names it. (OSError): if it cannot be read.
    """
    path = Path(path)
    check_input(path)
    if (size := path.stat().st_size) > _MAX_BYTES:
        raise ValueError(
            f"{path} has {size} bytes, more than any results of an evaluation ({_MAX_BYTES}). Expected the JSON "
            "file that 'python -m spacy sbert benchmark --output' saves."
        )
    try:
        results = json.loads(path.read_text(encoding="utf8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(Errors.UNREADABLE_RESULTS.format(path=path, reason=error)) from error
    check_results(results, str(path))
    try:  # results that were written with json.dump, not by `benchmark`, have no checksum
        return cast(Results, unsealed(results) if KEY in results else results)
    except ValueError as error:
        raise ValueError(Errors.UNREADABLE_RESULTS.format(path=path, reason=error)) from error


def figure(scores: Mapping[str, Any], path: Sequence[str]) -> Figure:
    """Return the figure at a path of keys, such as ("cosine", "spearman", "pooled"); ABSENT if there is none."""
    value: Any = scores
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return ABSENT
        value = value[key]
    return ABSENT if isinstance(value, Mapping) else value


def by_suite(tasks: Mapping[str, _TaskT]) -> dict[str, dict[str, _TaskT]]:
    """Return tasks by suite, and by name within it, in their order."""
    suites: dict[str, dict[str, _TaskT]] = {}
    for name, task in tasks.items():
        suites.setdefault(str(task["suite"]), {})[name] = task
    return suites


def digits(right: numpy.ndarray) -> str:
    """Return what is right as results hold it: a 1 for each example that is, and a 0 for each other one."""
    return "".join("01"[int(value)] for value in right)


def mean(values: Iterable[Figure]) -> Figure:
    """Return the mean of figures; ABSENT if one is, None if one is not defined."""
    values = list(values)
    numbers = [value for value in values if isinstance(value, int | float)]
    if ABSENT in values or not values:
        return ABSENT
    return sum(numbers) / len(numbers) if len(numbers) == len(values) else None


def check_results(results: object, name: str) -> None:
    """Make sure that something is the result of an evaluation.

    results: what is checked. name (str): what to call it in errors, such as its file.
    RAISES (ValueError): if a part is missing or of another type, or the format is another one.
    """
    if isinstance(results, dict) and results.get("format") != FORMAT:
        raise ValueError(
            f"{name} has the format {short_repr(results.get('format'))}, expected '{FORMAT}': it is not the result of "
            "an evaluation, or comes from another version of this package. Evaluate the model again."
        )
    for title, task in _validate(Results, results, (), name)["tasks"].items():
        _check_figures(task, f"tasks.{title}", name)


def check_task(title: str, task: object, name: str) -> None:
    """Make sure that something is the result of a task, see check_results.

    title (str): of the task. name (str): of the file.
    """
    _check_figures(_validate(TaskResult, task, ("tasks", title), name), f"tasks.{title}", name)


def _validate(kind: type, value: object, place: tuple[str | int, ...], name: str) -> Any:  # noqa: ANN401 (of kind)
    try:
        return _adapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in (*place, *first["loc"]))
        input_ = "missing" if first["type"] == "missing" else first["input"]
        is_interval = first.get("ctx", {}).get("min_length" if first["type"] == "too_short" else "max_length") == 2
        expected = "two ends" if is_interval else _EXPECTED.get(first["type"], first["msg"])
        _fail(where.lstrip("."), input_, expected, name)


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _check_figures(task: TaskResult, place: str, name: str) -> None:
    """Check what types do not tell: scores are nests of finite numbers, and what belongs together is."""
    entries: dict[str, Summary] = {f"variants[{at}]": entry for at, entry in enumerate(task["variants"])}
    entries |= {"tuned": task["tuned"]} if "tuned" in task else {}
    for number, entry in entries.items():
        for part in ("scores", "deviation"):
            _check_scores(entry.get(part, {}), f"{place}.{number}.{part}", name)
    if figure(task["variants"][0]["scores"], task["primary"].split(".")) == ABSENT:
        _fail(f"{place}.primary", task["primary"], "the path of a figure", name)
    predictions = task["predictions"]
    if "predicted" in predictions:
        lengths = [len(predictions[key]) if key in predictions else 0 for key in ("predicted", "gold", "subset")]
        if len(set(lengths)) > 1:
            _fail(f"{place}.predictions", lengths, "lists of equal length", name)


def _check_scores(scores: object, place: str, name: str) -> None:
    if isinstance(scores, dict):
        for key, value in scores.items():
            _check_scores(value, f"{place}.{key}", name)
    elif scores is not None and (
        not isinstance(scores, int | float) or isinstance(scores, bool) or not abs(scores) < _LARGEST
    ):
        _fail(place, scores, "a finite number or null", name)


def _fail(place: str, value: object, expected: str, name: str) -> NoReturn:
    place = place or "the whole file"
    raise ValueError(
        f"{name} is not the result of an evaluation: {place} is {short_repr(value)}, expected {expected}. Evaluate "
        "the model again."
    )


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # JSON does not have NaN and Infinity
