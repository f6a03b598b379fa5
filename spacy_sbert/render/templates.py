"""The templates of the package, which escape every text."""

from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from .markup import clean

JSON = {"allow_nan": False, "separators": (",", ":")}  # of the filter tojson, which escapes what could end an element


def render(template: str, /, **values: object) -> str:
    """Fill in a template. Every text in it is cleaned and escaped, unless it is Markup.

    template (str): its path in the package, such as "render/page.html". It may include and extend others.
    values: what it speaks of.
    RETURNS (str): HTML or CSS, plain text and not Markup, so that callers may cut and join it.
    """
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        finalize=_finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = JSON
    return environment


def _read(path: str) -> str:
    """A file of the package, which may be in a zip archive."""
    return files(__package__.rpartition(".")[0]).joinpath(path).read_text(encoding="utf8")


def _finalized(value: object) -> object:
    return value if isinstance(value, Markup) else clean(value)
