"""Settings, checked by their annotations: what a function was given, before anything is loaded, allocated or begun.

A setting of a wrong type, a number that is not finite, or one out of its range is refused with an error that names it,
wherever it comes from: a config, the command line or Python.
"""

import inspect
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from reprlib import Repr
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy
from spacy.util import SimpleFrozenDict
from thinc.api import Model

from . import Errors

FLOAT32_MAX = 3.4028234663852886e38  # what is more becomes infinite in the arithmetic of an encoder
MOST_DIMENSIONS = 2**16  # of a vector: five times the widest encoder there is, so that several may be concatenated
MOST_WEIGHTS = 2**28  # of a layer: 1 GB in float32, and as many as BERT large has in all
MOST_OUTPUTS = 2**14  # of a classifier: scores of 4096 pairs, which are computed together, take 256 MB
MOST_PROCESSES = 4 * (os.cpu_count() or 1)  # more wait for one another, and each holds an encoder
MOST_SEED = 2**32 - 1  # of NumPy's and scikit-learn's generators
SCORE_RANGE = (0.0, 1.0)  # of gold scores, as readers give them
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


@dataclass(frozen=True)
class Range:
    """From low to high, both included; above: low itself is not. below: nor is high."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False

    def __contains__(self, value: Any) -> bool:
        is_low: bool = value <= self.low if self.above else value < self.low
        is_high = value >= self.high if self.below else value > self.high
        return not (is_low or is_high)

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"more than {self.low:g}" if self.above else f"{self.low:g} or more"
        low, high = (f"{edge:.0f}" if edge == int(edge) else f"{edge:g}" for edge in (self.low, self.high))
        return f"{'more than ' if self.above else ''}{low} to {'less than ' if self.below else ''}{high}"


@dataclass(frozen=True)
class NotEmpty:
    """A text or a list with something in it."""


Positive = Annotated[int, Range(1)]
NonNegative = Annotated[int, Range(0)]
Seed = Annotated[int, Range(0, MOST_SEED)]
Width = Annotated[int, Range(1, MOST_DIMENSIONS)]
WidthOrOff = Annotated[int, Range(0, MOST_DIMENSIONS)]
Processes = Annotated[int, Range(1, MOST_PROCESSES)]
PositiveFloat = Annotated[float, Range(0, above=True)]
NonNegativeFloat = Annotated[float, Range(0)]
Cosine = Annotated[float, Range(-1, 1)]
Name = Annotated[str, NotEmpty()]


def validated(function: FunctionT) -> FunctionT:
    """Decorate a function so that it refuses arguments that are not what its annotations say.

    Checked are numbers, which must be finite and in the Range of their annotation, and of which a bool is none; flags;
    texts, which must have no half characters; paths; literals; Models; functions; and lists and dicts of these. Any
    other annotation is left to the function, and so are defaults.

    RAISES (ValueError): that names the argument, when the function is called.
    """
    signature = inspect.signature(function)
    annotations: dict[str, Any] = {}

    @wraps(function)
    def checking(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return function(*args, **kwargs)  # which says what is missing or unknown
        if not annotations:  # not before all names that annotations use are there
            annotations.update(get_type_hints(function, include_extras=True))
        for name, value in given.items():
            if name in annotations and signature.parameters[name].kind not in VARIABLE:
                check(name, value, annotations[name])
        return function(*args, **kwargs)

    cast(Any, checking).__signature__ = signature  # spaCy looks at factories without following what is wrapped
    return cast(FunctionT, checking)


VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def check_fields(settings: Any) -> None:
    """Check a dataclass as `validated` does arguments.

    RAISES (ValueError): that names the field.
    """
    annotations = get_type_hints(type(settings), include_extras=True)
    for field in fields(settings):
        check(field.name, getattr(settings, field.name), annotations[field.name])


def check(name: str, value: Any, annotation: Any) -> None:
    """RAISES (ValueError): if the value of a setting is not what an annotation says."""
    if not _fits(value, annotation):
        raise ValueError(bad_setting(name, value, describe(annotation) + _hint(value)))


def _hint(value: Any) -> str:
    """What the type of a value does not tell."""
    each = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if any(isinstance(one, str) and half_character(one) is not None for one in each):
        return " (without lone surrogates, which are half characters)"
    return " (of 64 bits)" if any(isinstance(one, int) and abs(one) > sys.maxsize for one in each) else ""


def check_weights(name: str, given: int, *widths: int) -> None:
    """RAISES (ValueError): if a layer of these widths, which a setting asks for, has too many weights."""
    if math.prod(widths) > MOST_WEIGHTS:
        expected = f"at most {MOST_WEIGHTS} weights in a layer, not {' x '.join(map(str, widths))}"
        raise ValueError(bad_setting(name, given, expected))


def check_keywords(name: str, given: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Check a setting that holds keyword arguments of a function.

    RAISES (ValueError): if it takes no such argument, or not of this type.
    """
    known = {key: kind for key, kind in get_type_hints(function, include_extras=True).items() if key != "return"}
    for key, value in given.items():
        if key not in known:
            raise ValueError(bad_setting(name, dict(given), f"some of {', '.join(known)}"))
        check(f"{name}.{key}", value, known[key])


def bad_setting(name: str, given: Any, expected: str) -> str:
    """The message for a setting that cannot be used."""
    return Errors.WRONG_SETTING.format(name=name, given=shown(given), expected=expected)


def shown(value: Any) -> str:
    """What was given, as messages show it: short, and printable whatever it is."""
    short = Repr()
    short.maxstring = short.maxother = short.maxlong = 80
    try:
        return short.repr(value)
    except Exception:  # of somebody's __repr__, or a number of too many digits
        return f"a {type(value).__name__}"


def is_text(value: Any) -> bool:
    """Whether something is a text that can be encoded: a str without lone surrogates, which are half characters."""
    return isinstance(value, str) and half_character(value) is None


def check_text(text: str, what: str) -> None:
    """Refuse a text that no tokenizer can read.

    what (str): what to call it, such as "text number 2".
    RAISES (ValueError): if it has half a character.
    """
    position = half_character(text)
    if position is not None:
        raise ValueError(Errors.HALF_CHARACTER.format(what=what, given=shown(text), position=position))


def half_character(text: str) -> int | None:
    """Where the first lone surrogate of a text stands; None if there is none, as it should be."""
    if text.isascii():
        return None
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        return error.start
    return None


def describe(annotation: Any) -> str:
    """What an annotation expects, in words."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        ranges = "".join(f"{one}, as " for one in args[1:] if isinstance(one, Range))
        empty = " that is not empty" if any(isinstance(one, NotEmpty) for one in args[1:]) else ""
        return f"{ranges}{describe(args[0])}{empty}"
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(describe, sorted(args, key=lambda arg: arg is NoneType))))
    if origin is Literal:
        return " or ".join(f'"{arg}"' for arg in args)
    kind = _kind(annotation)
    inner = "" if kind not in (Sequence, Mapping) or not args or args[-1] in (Any, ...) else f" of {describe(args[-1])}"
    if kind is Sequence and args and args[-1] is ...:
        inner = f" of {describe(args[0])}"
    return WORDS.get(kind, f"a {getattr(kind, '__name__', kind)}") + inner


WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
    str: "text",
    Path: "a path",
    NoneType: "none",
    Sequence: "a list",
    Mapping: "a dict",
    Callable: "a function",
    Model: "a Thinc model",
}


def _kind(annotation: Any) -> Any:
    """What is checked of an annotation without metadata; None for what is left to the function."""
    origin = get_origin(annotation) or annotation
    if origin in (list, tuple, Sequence):
        return Sequence
    if origin in (dict, Mapping):
        return Mapping
    if origin in WORDS:
        return origin
    return Model if isinstance(origin, type) and issubclass(origin, Model) else None


def _fits(value: Any, annotation: Any) -> bool:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _fits(value, args[0]) and all(_allows(one, value) for one in args[1:])
    if origin in (Union, UnionType):
        if Path in args and str in args and isinstance(value, str):
            return _is_path(value)
        return any(_fits(value, arg) for arg in args)
    if origin is Literal:
        return any(value is arg or (type(value) is type(arg) and value == arg) for arg in args)
    kind = _kind(annotation)
    if kind is Sequence:
        each = args[0] if args else Any
        return (
            isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and all(_fits(v, each) for v in value)
        )
    if kind is Mapping:
        inner = args or (Any, Any)
        return isinstance(value, Mapping) and all(_fits(k, inner[0]) and _fits(v, inner[1]) for k, v in value.items())
    return kind is None or FITS[kind](value)


def _allows(metadata: Any, value: Any) -> bool:
    if isinstance(metadata, NotEmpty):
        return len(value) > 0
    return not isinstance(metadata, Range) or not isinstance(value, Real) or value in metadata


def _is_number(value: Any) -> bool:
    if not isinstance(value, Real) or isinstance(value, (bool, numpy.bool_)):
        return False
    return bool(abs(cast(Any, value)) <= FLOAT32_MAX)  # nan is not


def _is_path(value: Any) -> bool:
    try:
        return value != "" and b"\0" not in os.fsencode(value)
    except (TypeError, UnicodeEncodeError):
        return False


FITS: dict[Any, Callable[[Any], bool]] = {
    bool: lambda value: isinstance(value, (bool, numpy.bool_)),
    int: lambda value: isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) <= sys.maxsize,
    float: _is_number,
    str: is_text,
    Path: lambda value: isinstance(value, Path) and _is_path(value),
    NoneType: lambda value: value is None,
    Callable: lambda value: callable(value) or isinstance(value, SimpleFrozenDict),  # a default, not resolved yet
    Model: lambda value: isinstance(value, Model),
}
