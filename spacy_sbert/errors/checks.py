"""Settings, checked by their annotations: what a function was given, before anything is loaded, allocated or begun.

A setting of a wrong type, a number that is not finite, or one out of its range is refused with an error that names it,
wherever it comes from: a config, the command line or Python.
"""

import inspect
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, fields
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from reprlib import Repr
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy
from spacy.util import SimpleFrozenDict
from thinc.api import Model
from typing_extensions import ParamSpec

from . import Errors

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FLOAT32_MAX = 3.4028234663852886e38  # what is more becomes infinite in the arithmetic of an encoder
MOST_DIMENSIONS = 2**16  # of a vector: five times the widest encoder there is, so that several may be concatenated
MOST_WEIGHTS = 2**28  # of a layer: 1 GB in float32, and as many as BERT large has in all
MOST_OUTPUTS = 2**14  # of a classifier: scores of 4096 pairs, which are computed together, take 256 MB
MOST_PROCESSES = 4 * (os.cpu_count() or 1)  # more wait for one another, and each holds an encoder
MOST_SEED = 2**32 - 1  # of NumPy's and scikit-learn's generators
SCORE_RANGE = (0.0, 1.0)  # of gold scores, as readers give them
P = ParamSpec("P")
T = TypeVar("T")
Fits = Callable[[object], bool]  # whether a value is what is expected


@dataclass(frozen=True)
class Range:
    """From low to high, both included; above: low itself is not. below: nor is high."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"more than {self.low:g}" if self.above else f"{self.low:g} or more"
        low, high = (f"{edge:.0f}" if edge == int(edge) else f"{edge:g}" for edge in (self.low, self.high))
        return f"{'more than ' if self.above else ''}{low} to {'less than ' if self.below else ''}{high}"

    def limit(self, words: str) -> str:
        return f"{self}, as {words}"

    def allows(self, value: Any) -> bool:
        is_low = value <= self.low if self.above else value < self.low
        is_high = value >= self.high if self.below else value > self.high
        return not (is_low or is_high)


@dataclass(frozen=True)
class NotEmpty:
    """A text or a list with something in it."""

    def limit(self, words: str) -> str:
        return f"{words} that is not empty"

    def allows(self, value: Sized) -> bool:
        return len(value) > 0


@dataclass(frozen=True)
class Named:
    """One of the names of a Literal, for type checkers: at work any text fits, for who looks a name up refuses another
    one by itself, with a message of its own."""


Positive = Annotated[int, Range(1)]
NonNegative = Annotated[int, Range(0)]
Epochs = Annotated[int, Range(-1)]  # as spaCy counts them: 0 for no limit, -1 for a stream without limit
Seed = Annotated[int, Range(0, MOST_SEED)]
Width = Annotated[int, Range(1, MOST_DIMENSIONS)]
WidthOrOff = Annotated[int, Range(0, MOST_DIMENSIONS)]
Processes = Annotated[int, Range(1, MOST_PROCESSES)]
PositiveFloat = Annotated[float, Range(0, above=True)]
NonNegativeFloat = Annotated[float, Range(0)]
Cosine = Annotated[float, Range(-1, 1)]
Name = Annotated[str, NotEmpty()]


def validated(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that it refuses arguments that are not what its annotations say.

    Checked are numbers, which must be finite and in the Range of their annotation, and of which a bool is none; flags;
    texts, which must have no half characters; paths; literals; Models; functions; and lists and dicts of these. Any
    other annotation is left to the function, and so are defaults.

    RAISES (ValueError): that names the argument, when the function is called.
    """
    signature = inspect.signature(function)
    expected: dict[str, tuple[str, Fits]] = {}

    @wraps(function)
    def checking(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return function(*args, **kwargs)  # which says what is missing or unknown
        if not expected:  # not before all names that annotations use are there; at once, for threads
            expected.update(_expected_of(function, signature))
        for name, value in given.items():
            _check(name, value, *expected[name])
        return function(*args, **kwargs)

    checking.__signature__ = signature  # type: ignore[attr-defined] # spaCy looks at factories without unwrapping
    return checking


def _expected_of(function: Callable, signature: inspect.Signature) -> dict[str, tuple[str, Fits]]:
    """What each parameter expects; nothing of those that take any number of arguments."""
    hints = get_type_hints(function, include_extras=True)
    variable = {one.name for one in signature.parameters.values() if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}
    return {name: _expected(Any if name in variable else hints.get(name, Any)) for name in signature.parameters}


def check_fields(settings: "DataclassInstance") -> None:
    """Check a dataclass as `validated` does arguments.

    RAISES (ValueError): that names the field.
    """
    annotations = get_type_hints(type(settings), include_extras=True)
    for field in fields(settings):
        check(field.name, getattr(settings, field.name), annotations[field.name])


def check(name: str, value: object, annotation: object) -> None:
    """RAISES (ValueError): if the value of a setting is not what an annotation says."""
    _check(name, value, *_expected(annotation))


def _check(name: str, value: object, words: str, fits: Fits) -> None:
    if not fits(value):
        raise ValueError(bad_setting(name, value, words + _hint(value)))


def _hint(value: object) -> str:
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


def check_keywords(name: str, given: Mapping[str, object], function: Callable[..., Any]) -> None:
    """Check a setting that holds keyword arguments of a function.

    RAISES (ValueError): if it takes no such argument, or not of this type.
    """
    known = {key: kind for key, kind in get_type_hints(function, include_extras=True).items() if key != "return"}
    for key, value in given.items():
        if key not in known:
            raise ValueError(bad_setting(name, dict(given), f"some of {', '.join(known)}"))
        check(f"{name}.{key}", value, known[key])


def bad_setting(name: str, given: object, expected: str) -> str:
    """The message for a setting that cannot be used."""
    return Errors.WRONG_SETTING.format(name=name, given=shown(given), expected=expected)


def shown(value: object) -> str:
    """What was given, as messages show it: short, and printable whatever it is."""
    short = Repr()
    short.maxstring = short.maxother = short.maxlong = 80
    try:
        return short.repr(value)
    except Exception:  # of somebody's __repr__, or a number of too many digits
        return f"a {type(value).__name__}"


def is_text(value: object) -> bool:
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


def names_of(annotation: object) -> tuple[str, ...]:
    """Those of an Annotated[Literal[...], Named()]."""
    return get_args(get_args(annotation)[0])


def describe(annotation: object) -> str:
    """What an annotation expects, in words."""
    return _expected(annotation)[0]


def _expected(annotation: Any) -> tuple[str, Fits]:
    """What an annotation expects, in words, and whether a value is that."""
    origin, args = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Annotated and isinstance(args[1], Named):
        return KINDS[str]
    if origin is Annotated:
        (words, fits), limit = _expected(args[0]), args[1]
        return limit.limit(words), lambda given: fits(given) and limit.allows(given)
    if origin in (Union, UnionType):
        return _one_of(sorted(args, key=lambda arg: arg is NoneType))
    if origin is Literal:
        return " or ".join(f'"{arg}"' for arg in args), lambda given: any(_is_same(given, arg) for arg in args)
    if origin in (list, tuple, Sequence):
        words, fits = _expected(args[0] if args else Any)
        return f"a list{words and ' of '}{words}", lambda given: _is_list(given) and all(map(fits, given))
    if origin in (dict, Mapping):
        (_, is_key), (words, fits) = map(_expected, args or (Any, Any))
        return (
            f"a dict{words and ' of '}{words}",
            lambda given: isinstance(given, Mapping) and all(map(is_key, given)) and all(map(fits, given.values())),
        )
    if isinstance(origin, type) and issubclass(origin, Model):
        return "a Thinc model", lambda given: isinstance(given, Model)
    if isinstance(origin, type) and issubclass(origin, tuple) and hasattr(origin, "_fields"):  # a NamedTuple
        return f"a {origin.__name__}", lambda given: isinstance(given, origin)
    name = "" if annotation is Any else f"a {getattr(origin, '__name__', origin)}"
    return KINDS.get(origin, (name, lambda given: True))  # what is not known is left to the function


def _one_of(kinds: Sequence[object]) -> tuple[str, Fits]:
    words, fits = zip(*map(_expected, kinds), strict=True)
    if Path in kinds:  # a str is a path, too
        fits = tuple(_is_text_of_path if kind is str else one for kind, one in zip(kinds, fits, strict=True))
    return " or ".join(dict.fromkeys(words)), lambda given: any(one(given) for one in fits)


def _is_same(given: object, literal: object) -> bool:
    return given is literal or (type(given) is type(literal) and given == literal)


def _is_list(given: object) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, (str, bytes))


def _is_number(given: Any) -> bool:
    is_real = isinstance(given, Real) and not isinstance(given, (bool, numpy.bool_))
    return is_real and bool(abs(given) <= FLOAT32_MAX)  # nan is not


def _is_path(given: Any) -> bool:
    try:
        return given != "" and b"\0" not in os.fsencode(given)
    except (TypeError, UnicodeEncodeError):
        return False


def _is_text_of_path(given: object) -> bool:
    return isinstance(given, str) and _is_path(given)


KINDS: dict[object, tuple[str, Fits]] = {
    bool: ("true or false", lambda given: isinstance(given, (bool, numpy.bool_))),
    int: (
        "a whole number",
        lambda given: isinstance(given, Integral) and not isinstance(given, bool) and abs(int(given)) <= sys.maxsize,
    ),
    float: ("a finite number", _is_number),
    str: ("text", is_text),
    Path: ("a path", lambda given: isinstance(given, Path) and _is_path(given)),
    NoneType: ("none", lambda given: given is None),
    Callable: ("a function", lambda given: callable(given) or isinstance(given, SimpleFrozenDict)),  # of a default
}
