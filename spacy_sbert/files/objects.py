"""Files of JSON objects: one a line, or those of an array."""

import json
from collections.abc import Iterator
from pathlib import Path

from .errors import Errors
from .lines import MAX_LINE, inner_suffix, read_chunks, read_lines

Object = dict[str, object]
ARRAY_HINT = "; a file of one JSON array needs a name that ends in .json"
SPACE = " \t\r\n"


class RepeatedField(ValueError):
    """An object has two fields of one name."""


def _fields(pairs: list[tuple[str, object]]) -> Object:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise RepeatedField(f"the field '{repeated}' twice")
    return found


DECODER = json.JSONDecoder(object_pairs_hook=_fields)


def read_objects(path: Path, *, keep_blank: bool = False) -> Iterator[tuple[int, Object]]:
    """Read a JSON object a line, or of .json the objects of one array.

    keep_blank (bool): see tables.read_table.
    YIELDS (int, dict): the number of the line where an object starts, and the object.
    RAISES (ValueError): for a line that is not one, or an object with two fields of one name.
    """
    if inner_suffix(path) == ".json" and _starts_array(path):
        yield from _read_array(path)
        return
    blank: tuple[int, str] | None = None  # the first blank line, which is none at the end of the file
    for number, found in read_lines(path):
        if not found.strip():
            blank = blank or (number, found)
            continue
        line, text = blank if keep_blank and blank else (number, found)
        try:
            record = DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            hint = ARRAY_HINT if text.lstrip().startswith("[") else ""
            raise ValueError(Errors.BAD_JSON.format(path=path, line=line, reason=error, hint=hint)) from error
        yield line, _object(record, path, line)


def get_field(record: Object, name: str, path: Path, line: int) -> object:
    """A field of an object. RAISES (ValueError): if there is none of that name."""
    if name not in record:
        said = {"column": name, "given": ", ".join(record), "hint": ""}
        raise ValueError(Errors.NO_COLUMN.format(path=path, line=line, **said))
    return record[name]


def _object(value: object, path: Path, line: int) -> Object:
    if not isinstance(value, dict):
        hint = ARRAY_HINT if isinstance(value, list) else ""
        reason = f"a {type(value).__name__}"
        raise ValueError(Errors.BAD_JSON.format(path=path, line=line, reason=reason, hint=hint))
    return value


def _starts_array(path: Path) -> bool:
    return next((text.lstrip()[0] for text in read_chunks(path) if text.strip()), "") == "["


def _read_array(path: Path) -> Iterator[tuple[int, Object]]:
    """Yield the objects of an array, of which one is in memory at a time."""
    chunks = read_chunks(path)
    text, line = "", 1

    def skip(expected: str) -> str:
        """Go to the next character that is not white space, and behind it if it is expected."""
        nonlocal text, line
        while True:
            rest = text.lstrip(SPACE)
            line += text[: len(text) - len(rest)].count("\n")
            text = rest
            if text or not (more := next(chunks, "")):
                break
            text = more
        found = text[:1]
        if found and found in expected:
            text = text[1:]
        return found

    def take() -> Object:
        nonlocal text, line
        while True:
            try:
                value, end = DECODER.raw_decode(text)
                break
            except (ValueError, RecursionError) as error:
                more = "".join(chunk for _, chunk in zip(range(1 + len(text) // 2**16), chunks, strict=False))
                if isinstance(error, RepeatedField) or not more or len(text) > MAX_LINE:
                    reason = error.msg if isinstance(error, json.JSONDecodeError) else error
                    raise ValueError(Errors.BAD_JSON.format(path=path, line=line, reason=reason, hint="")) from error
                text += more
        found = _object(value, path, line)
        line += text[:end].count("\n")
        text = text[end:]
        return found

    skip("[")
    is_first = True
    while (found := skip("]" if is_first else ",]")) != "]":
        if not is_first:
            if found != ",":
                reason = repr(found) if found else "the end of the file"
                raise ValueError(Errors.BAD_JSON.format(path=path, line=line, reason=f"{reason} in an array", hint=""))
            skip("")
        start = line
        yield start, take()
        is_first = False
    if rest := skip(""):
        raise ValueError(Errors.BAD_JSON.format(path=path, line=line, reason=f"{rest!r} behind an array", hint=""))
