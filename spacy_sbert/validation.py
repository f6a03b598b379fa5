"""Checks of settings and of texts."""

import inspect
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache, partial, wraps
from pathlib import Path
from reprlib import Repr
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Model
from thinc.shims import Shim

# Larger numbers become infinite in the arithmetic of an encoder
FLOAT32_MAX = 3.4028234663852886e38
# Of a vector: five times the widest encoder there is, so that several may be concatenated
MAX_DIMENSIONS = 2**16
# Of a layer: 1 GB in float32, and as many as BERT large has in all
MAX_WEIGHTS = 2**28
# Of a classifier: scores of 4096 pairs, which are computed together, take 256 MB
MAX_OUTPUTS = 2**14
# More wait for one another, and each holds an encoder
MAX_PROCESSES = 4 * (os.cpu_count() or 1)
# Of NumPy's and scikit-learn's generators
MAX_SEED = 2**32 - 1
# Of gold scores, as readers give them
SCORE_RANGE = (0.0, 1.0)
_STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True, allow_inf_nan=False)
_SIMPLE = {int, float, bool, str, Path, NoneType, Any, object}
_CONTAINERS = {Union, UnionType, list, tuple, dict, Sequence, Mapping}
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
P = ParamSpec("P")
T = TypeVar("T")


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError("text that is not empty")
    return text


def _without_sign(text: str) -> str:
    if not text or "$" in text:
        raise ValueError(
            "text that is not empty, without '$', which spaCy doubles in a saved config"
        )
    return text


Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
# As spaCy counts them: 0 for no limit, -1 for a stream without limit
Epochs = Annotated[int, Field(ge=-1)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
Width = Annotated[int, Field(ge=1, le=MAX_DIMENSIONS)]
WidthOrOff = Annotated[int, Field(ge=0, le=MAX_DIMENSIONS)]
Processes = Annotated[int, Field(ge=1, le=MAX_PROCESSES)]
PositiveFloat = Annotated[float, Field(gt=0)]
NonNegativeFloat = Annotated[float, Field(ge=0)]
Cosine = Annotated[float, Field(ge=-1, le=1)]
Name = Annotated[str, AfterValidator(_not_empty)]
SpansKey = Annotated[str, AfterValidator(_without_sign)]


def validated(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that it refuses settings that do not match their annotations.

    It raises a ValueError that names the setting. Settings are numbers, flags, strings, paths,
    functions and Models, and lists and dicts of these. Docs and arrays are not checked. Unlike with
    pydantic.validate_call, arguments are passed on as they are, and the function is called from
    Python, so that warnings name the line of the caller.
    """
    signature = inspect.signature(function)
    annotations: dict[str, Any] = {}

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            # Raises the TypeError of Python
            return function(*args, **kwargs)
        # Resolved at the first call, when all names that they use are defined
        if not annotations:
            annotations.update(_checked_annotations(function, signature))
        for name in given.keys() & annotations.keys():
            check(name, given[name], annotations[name])
        return function(*args, **kwargs)

    checked.__signature__ = signature  # type: ignore[attr-defined] # spaCy looks at factories without unwrapping
    return checked


def _checked_annotations(function: Callable, signature: inspect.Signature) -> dict[str, Any]:
    """Return the annotations of the arguments that are settings, without *args and **kwargs."""
    lists = {name for name, one in signature.parameters.items() if one.kind in _VARIABLE}
    hints = get_type_hints(function, include_extras=True)
    return {name: hint for name, hint in hints.items() if name not in lists and _is_setting(hint)}


def with_fields_of(
    settings: Any, name: str, *, missing: object = None
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Decorate a function to take the fields of a dataclass as keyword arguments.

    settings (type): the dataclass. name (str): of the function's argument that takes it.
    missing (object): shown as the default of a field that has a factory for it.

    Example:
        @with_fields_of(EncodeCall, "call")
        def encode(self, texts, *, window=4096, call):
            ...

        encode(texts, batch_size=8)

    """
    types = get_type_hints(settings, include_extras=True)

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @wraps(function)
        def build(*args: Any, **given: Any) -> T:
            own = {key: given.pop(key) for key in types if key in given}
            return function(*args, **given, **{name: settings(**own)})

        signature = inspect.signature(function)
        parameters = [one for key, one in signature.parameters.items() if key != name]
        for field in fields(settings):
            default = missing if field.default is MISSING else field.default
            parameters.append(
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=types[field.name],
                )
            )
        build.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # confection reads it
        build.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return build

    return decorate


def check(name: str, value: object, annotation: object) -> None:
    """Raise ValueError if the value of a setting does not match an annotation."""
    if isinstance(value, numpy.generic):
        value = value.item()
    try:
        _adapter(annotation).validate_python(value)
    except ValidationError as error:
        raise ValueError(invalid_value_message(name, value, _expected(error))) from None


def check_fields(settings: Any) -> None:
    """Raise ValueError if a field of a dataclass does not match its annotation."""
    annotations = get_type_hints(type(settings), include_extras=True)
    for field in fields(settings):
        check(field.name, getattr(settings, field.name), annotations[field.name])


def check_weights(name: str, given: int, *widths: int) -> None:
    """Raise ValueError if a setting asks for a layer of these widths that has too many weights."""
    if math.prod(widths) > MAX_WEIGHTS:
        expected = f"at most {MAX_WEIGHTS} weights in a layer, not {' x '.join(map(str, widths))}"
        raise ValueError(invalid_value_message(name, given, expected))


def invalid_value_message(name: str, given: object, expected: str) -> str:
    """Return the message for a setting that cannot be used."""
    return f"Cannot use {name} = {short_repr(given)}: expected {expected}."


def short_repr(value: object) -> str:
    """Return a value as messages show it: short, and printable whatever it is."""
    short = Repr()
    short.maxstring = 80
    short.maxother = 80
    short.maxlong = 80
    try:
        return short.repr(value)
    except Exception:
        # Of somebody's __repr__, or a number of too many digits
        return f"a {type(value).__name__}"


def find_lone_surrogate(text: str) -> int | None:
    """Return where a text has half a character, U+D800 to U+DFFF, which UTF-8 cannot encode.

    None if it has none.
    """
    if text.isascii():
        return None
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        return error.start
    return None


def check_text(text: str, what: str) -> None:
    """Raise ValueError if a text has a lone surrogate, which no tokenizer can read.

    what (str): what to call it.
    """
    place = find_lone_surrogate(text)
    if place is not None:
        raise ValueError(
            f"Cannot encode {what}, {short_repr(text)}: it has half a character (a lone surrogate, "
            f"U+D800 to U+DFFF) at position {place}. Decode the bytes it comes from as UTF-8, or "
            "replace it: text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')."
        )


def _is_setting(annotation: object) -> bool:
    """Return whether values of a type are short and can be checked: no texts, arrays or Docs."""
    origin = get_origin(annotation) or annotation
    args = get_args(annotation)
    if origin in _CONTAINERS:
        return all(_is_setting(arg) for arg in args if arg is not Ellipsis)
    if origin in (Annotated, Literal, Callable) or origin in _SIMPLE:
        return True
    return isinstance(origin, type) and issubclass(origin, Model)


@cache
def _adapter(annotation: Any) -> TypeAdapter:
    is_path = Path in (annotation, *get_args(annotation))
    return TypeAdapter(
        Annotated[annotation, AfterValidator(partial(_usable, is_path=is_path))], config=_STRICT
    )


def _usable(value: object, is_path: bool) -> object:
    """Refuse what pydantic accepts, and what cannot be used.

    That is a lone surrogate, a number that overflows in computations, and an impossible path.
    """
    if is_path and isinstance(value, str | Path):
        _check_path(value)
    elif isinstance(value, Mapping):
        for item in (*value.keys(), *value.values()):
            _usable(item, is_path)
    elif isinstance(value, list | tuple):
        for item in value:
            _usable(item, is_path)
    else:
        _check_atom(value)
    return value


def _check_atom(value: object) -> None:
    if isinstance(value, str) and find_lone_surrogate(value) is not None:
        raise ValueError("text without lone surrogates, which are half characters")
    if isinstance(value, int) and abs(value) > sys.maxsize:
        raise ValueError("a whole number of 64 bits")
    if isinstance(value, float) and abs(value) > FLOAT32_MAX:
        raise ValueError("a finite number, also in float32")


def _check_path(path: str | Path) -> None:
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        encoded = b""
    if not encoded.strip() or b"\0" in encoded:
        raise ValueError("a path")
    if Path(path).parts[:1] == ("~",):
        raise ValueError(
            "a path without '~', which only a shell replaces; Path.expanduser() does, too"
        )


def _expected(error: ValidationError) -> str:
    """Return pydantic's messages in words that follow "expected"."""
    messages = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        message = detail["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
        messages.append("a list" if detail["type"] == "sequence_str" else message)
    return " or ".join(dict.fromkeys(messages))


InT = TypeVar("InT")
OutT = TypeVar("OutT")


class ConfiguredModel(Model[InT, OutT]):
    """A Model whose settings and constants are plain attributes, which its copies have, too.

    Model.attrs are saved, and replace those of the config when they are loaded. So they are for
    what was learned.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def copy(self) -> Self:
        # Whatever another base, such as the stock transformer, does
        return self._copy()

    def _copy(self, seen: dict[int, Model | Shim] | None = None) -> Self:
        # Thinc builds a Model, whatever the class
        plain = super()._copy(seen)
        copied = type(self).__new__(type(self))
        for slot in Model.__slots__:
            setattr(copied, slot, getattr(plain, slot))
        vars(copied).update(vars(self))
        return copied


Text = str | Doc | Span
TextOrTexts = Text | Iterable[Text]
# As `initialize` of a pipe takes it
GetExamples = Callable[[], Iterable[Example]]
# Or in no order
NOT_SEVERAL = (str, bytes, bytearray, Mapping, set, frozenset, Doc, Span)


def several_texts(texts: TextOrTexts) -> tuple[Iterable[Text], bool]:
    """Return texts as a collection, and whether a single one was given.

    That may be in an array without a dimension.
    """
    if isinstance(texts, numpy.ndarray) and texts.shape == ():
        item = texts.item()
        if not isinstance(item, Text):
            _check_is_column(texts.shape)
        return [item], True
    if isinstance(texts, Text):
        return [texts], True
    return texts, False


def checked_texts(texts: Iterable[Text]) -> Iterable[str]:
    """Return the texts as strings, of a Doc or Span its text.

    texts (Iterable): str, Docs or Spans; a column or a table of one column. Lists and columns are
        checked at once, other iterables item by item as they are read.
    RAISES (TypeError): if this is no collection of texts, or one is missing or no text.
        (ValueError): see check_text.
    """
    column = one_column(texts)
    checked = _checked(column)
    return list(checked) if isinstance(column, list | tuple) else checked


def _checked(texts: Iterable[Any]) -> Iterator[str]:
    for number, item in enumerate(texts, start=1):
        if not isinstance(item, Text):
            raise TypeError(
                f"Cannot encode text number {number}, {short_repr(item)}: expected str, got "
                f"{type(item).__name__}. {_remedy(item)}"
            )
        # spaCy takes no class derived from str, such as numpy.str_, and str(member) of an Enum is
        # its name
        text = str.__str__(item) if isinstance(item, str) else item.text
        check_text(text, f"text number {number}")
        yield text


def _remedy(item: object) -> str:
    """Return what to do with an item that is no text."""
    if isinstance(item, list | tuple | Mapping | numpy.ndarray):
        return (
            "Give one flat list of texts; pairs of texts are read by score_pairs of an "
            "'sbert_reranker'."
        )
    if isinstance(item, bytes | bytearray):
        return 'Decode it: item.decode("utf8").'
    return 'Leave out missing texts, or fill them: df["text"].fillna("") of pandas.'


def check_docs(docs: Iterable[object], name: str, hint: str) -> None:
    """Check that what a pipe is given are Docs.

    name (str): of the pipe.
    hint (str): what to do with texts, for the message.
    RAISES (TypeError): if one is no Doc.
    """
    for doc in docs:
        if not isinstance(doc, Doc):
            raise TypeError(f"The pipe '{name}' takes Docs, not {short_repr(doc)}. {hint}")


def one_column(texts: Iterable[Any]) -> Iterable[Any]:
    """Return the items of a column as a list, and other iterables in an order as they are.

    RAISES (TypeError): for anything else.
    """
    is_sequence = isinstance(texts, Iterable) or hasattr(texts, "__getitem__")
    if isinstance(texts, NOT_SEVERAL) or not is_sequence:
        raise TypeError(
            f"Cannot encode {short_repr(texts)}: expected several texts in an order, such as a "
            "list of str. Put a single text into a list; of a dict give list(texts.values())."
        )
    names = dataframe_columns(texts)
    if names is not None:
        if len(names) != 1:
            raise TypeError(
                f"Cannot encode a table of {len(names)} columns {short_repr(tuple(names))}: "
                'expected one. Choose it by its name, such as df["text"].'
            )
        return one_column(texts[names[0]])  # type: ignore[index]
    shape = getattr(texts, "shape", None)
    if isinstance(shape, tuple):
        _check_is_column(shape)
        if len(shape) == 2:
            return list(texts[:, 0])  # type: ignore[index]
    # Of pyarrow, whose items are no str
    if hasattr(texts, "to_pylist"):
        return texts.to_pylist()
    return texts if shape is None else list(texts)


def _check_is_column(shape: tuple[int, ...]) -> None:
    """Raise TypeError for an array that is not of shape (n,) or (n, 1)."""
    if not shape or shape[1:] not in ((), (1,)):
        raise TypeError(
            f"Cannot encode an array of shape {shape}: expected shape (n,) or (n, 1). Choose one "
            'column of texts, such as array[:, 0], or df["text"] of a table.'
        )


def dataframe_columns(texts: object) -> Sequence[Any] | None:
    """Return the names of the columns of a table in memory; None if this is no table."""
    for attribute in ("column_names", "columns"):
        names = getattr(texts, attribute, None)
        if names is not None and not callable(names) and isinstance(names, Iterable):
            return list(names)
    return None
