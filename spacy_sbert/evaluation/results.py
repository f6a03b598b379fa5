"""Reads saved results of evaluations, and makes sure that they are what a report and a comparison need."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ..files.regular import check_input
from ..files.sealed_json import unsealed
from .errors import Errors
from .variants import parse_size

FORMAT = "spacy-sbert evaluation 1"
MAX_BYTES = 2**28  # a whole evaluation with all predictions has a few million
SHOWN = 60  # characters of a wrong value
LARGEST = 1e300  # JSON has integers that no float holds
PAIR = 2
SIZES = "own, pca-D or up-D"
ABSENT: Literal["-"] = "-"  # a score that was not measured; one that is not defined is None
Figure = float | Literal["-"] | None

# A shape is a type, a dict with the keys that must be there, or one of these around a shape.
EACH, LIST, MAYBE = "each value of", "each item of", "None or"
Shape = Any
TEXTS = (EACH, str)
VARIANT = {"normalization": str, "size": str, "scores": dict}
TUNED = {"normalization": (LIST, str), "scores": dict}
TASK = {
    "suite": str,
    "data": TEXTS,
    "counts": (EACH, int),
    "primary": str,
    "variants": (LIST, VARIANT),
    "intervals": (EACH, (MAYBE, (LIST, float))),
    "predictions": dict,
    "notes": (LIST, str),
}
PREDICTIONS = {"predicted": (LIST, float), "gold": (LIST, float), "subset": (LIST, str)}
SETTINGS = {
    "normalizations": (LIST, str),
    "sizes": (LIST, str),
    "seeds": (LIST, int),
    "bootstrap": int,
    "trained_on": (LIST, str),
}
RESULTS = {
    "format": str,
    "model": {"name": str, "digest": str},
    "versions": TEXTS,
    "settings": SETTINGS,
    "tasks": (EACH, TASK),
    "skipped": TEXTS,
    "failed": TEXTS,
}


def read_results(path: str | Path) -> dict[str, Any]:
    """Read the results of an evaluation that were saved as JSON.

    path (str or Path): the file.
    RETURNS (dict): see evaluate_suites.
    RAISES (ValueError): if it is no such file; the message names it. (OSError): if it cannot be read.
    """
    path = Path(path)
    check_input(path)
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise ValueError(Errors.LARGE_RESULTS.format(path=path, given=size, limit=MAX_BYTES))
    try:
        found = json.loads(path.read_text(encoding="utf8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(Errors.UNREADABLE_RESULTS.format(path=path, reason=error)) from error
    check_results(found, str(path))
    try:
        return unsealed(found)
    except ValueError as error:
        raise ValueError(Errors.UNREADABLE_RESULTS.format(path=path, reason=error)) from error


def figure(scores: Mapping[str, Any], path: Sequence[str]) -> Figure:
    """The figure at a path of keys, such as ("cosine", "spearman", "pooled"); ABSENT if there is none."""
    found: Any = scores
    for key in path:
        if not isinstance(found, Mapping) or key not in found:
            return ABSENT
        found = found[key]
    return ABSENT if isinstance(found, Mapping) else found


def mean(values: Iterable[Figure]) -> Figure:
    """The mean of figures; ABSENT if one is, None if one is not defined."""
    values = list(values)
    numbers = [value for value in values if isinstance(value, int | float)]
    if ABSENT in values or not values:
        return ABSENT
    return sum(numbers) / len(numbers) if len(numbers) == len(values) else None


def check_results(results: Any, name: str) -> None:
    """Make sure that something is the result of an evaluation.

    results: what is checked. name (str): what to call it in errors, such as its file.
    RAISES (ValueError): if a part is missing or of another type, or the format is another one.
    """
    if isinstance(results, dict) and results.get("format") != FORMAT:
        message = Errors.OTHER_FORMAT.format(path=name, given=_short(results.get("format")), expected=FORMAT)
        raise ValueError(message)
    _check(results, RESULTS, "", name)
    for key in ("normalizations", "sizes", "seeds"):
        _expect(bool(results["settings"][key]), f"settings.{key}", [], "at least one", name)
    for title, task in results["tasks"].items():
        check_task(title, task, name)


def check_task(title: str, task: Any, name: str) -> None:
    """Make sure that something is the result of a task, see check_results.

    title (str): of the task. name (str): of the file.
    """
    place = f"tasks.{title}"
    _check(task, TASK, place, name)
    _expect(bool(task["variants"]), f"{place}.variants", [], "at least one", name)
    entries = {f"variants[{at}]": entry for at, entry in enumerate(task["variants"])}
    for number, entry in entries.items():
        _check_size(entry["size"], f"{place}.{number}.size", name)
    if "tuned" in task:
        _check(task["tuned"], TUNED, f"{place}.tuned", name)
        entries["tuned"] = task["tuned"]
    _check(task.get("protocol", {}), (EACH, object), f"{place}.protocol", name)
    for number, entry in entries.items():
        for part in ("scores", "deviation"):
            _check_scores(entry.get(part, {}), f"{place}.{number}.{part}", name)
    found = figure(task["variants"][0]["scores"], task["primary"].split("."))
    _expect(found != ABSENT, f"{place}.primary", task["primary"], "the path of a figure", name)
    for path, ends in task["intervals"].items():
        _expect(ends is None or len(ends) == PAIR, f"{place}.intervals.{path}", ends, "two ends", name)
    _check_predictions(task["predictions"], f"{place}.predictions", name)


def _check_size(size: str, place: str, name: str) -> None:
    try:
        parse_size(size)
    except ValueError as error:
        raise ValueError(
            Errors.BAD_RESULTS.format(path=name, place=place, given=_short(size), expected=SIZES)
        ) from error


def _check_predictions(predictions: dict[str, Any], place: str, name: str) -> None:
    if "right" in predictions:
        right = predictions["right"]
        fits = isinstance(right, str) and set(right) <= set("01")
        _expect(fits, f"{place}.right", right, "a text of 0 and 1", name)
    if "predicted" in predictions:
        _check(predictions, PREDICTIONS, place, name)
        lengths = [len(predictions[key]) for key in PREDICTIONS]
        _expect(len(set(lengths)) == 1, place, lengths, "lists of equal length", name)


def _check(value: Any, shape: Shape, place: str, name: str) -> None:
    """Compare a value with a shape, part by part."""
    kind = shape[0] if isinstance(shape, tuple) else None
    if kind == MAYBE:
        if value is not None:
            _check(value, shape[1], place, name)
    elif kind == LIST:
        _expect(isinstance(value, list), place, value, "a list", name)
        for number, item in enumerate(value):
            _check(item, shape[1], f"{place}[{number}]", name)
    elif kind == EACH or isinstance(shape, dict):
        _expect(isinstance(value, dict), place, value, "an object", name)
        shapes = dict.fromkeys(value, shape[1]) if kind == EACH else shape
        for key, inner in shapes.items():
            _expect(key in value, _join(place, key), "missing", "to be there", name)
            _check(value[key], inner, _join(place, key), name)
    elif shape is float:
        _expect(_is_number(value), place, value, "a finite number", name)
    else:
        fits = isinstance(value, shape) and not (shape is int and isinstance(value, bool))
        _expect(fits, place, value, shape.__name__, name)


def _check_scores(scores: Any, place: str, name: str) -> None:
    """A nest of finite numbers, and None where a score is not defined."""
    if isinstance(scores, dict):
        for key, value in scores.items():
            _check_scores(value, _join(place, key), name)
    else:
        _expect(scores is None or _is_number(scores), place, scores, "a finite number or null", name)


def _expect(fits: bool, place: str, given: Any, expected: str, name: str) -> None:
    if not fits:
        place = place or "the whole file"
        raise ValueError(Errors.BAD_RESULTS.format(path=name, place=place, given=_short(given), expected=expected))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST


def _join(place: str, key: Any) -> str:
    return f"{place}.{key}" if place else str(key)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + " ..."


def _refuse(constant: str) -> Any:
    raise ValueError(constant)  # NaN and Infinity are no JSON
