"""Wrong values for settings, and the settings that there are: from signatures, so that a new one is tried, too."""

import inspect
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from pkgutil import walk_packages
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from counting import Cases

import spacy_sbert

PROMISE = "a wrong setting is refused with an error that names it"
ROOT = Path(__file__).parent.parent
BILLION, TRILLIONS = 10**9, 10**18


class Thing:
    """What is no setting at all."""


VALUES: dict[str, Any] = {
    "none": None,
    "true": True,
    "minus one": -1,
    "zero": 0,
    "one and a half": 1.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "billion": BILLION,
    "10**18": TRILLIONS,
    "1e39": 1e39,  # infinite in float32
    "empty text": "",
    "number as text": "3",
    "unknown": "no such thing",
    "half a character": "\ud800",
    "bytes": b"mean",
    "list": [],
    "list of things": [Thing()],
    "dict": {},
    "dict of things": {"a": Thing()},
    "object": Thing(),
}
MANY = {"billion", "10**18"}
NUMBERS = {"minus one", "zero", "one and a half", *MANY}
ALIASES = {
    "query_prompt": "prompt_name",
    "options": "option",
    "name": "baseline",
    "column": "table",
    "label": "table",
}  # what messages call a setting
TEXTS = {"empty text", "number as text", "unknown"}
REFUSALS = (ValueError, TypeError, OSError, ImportError)


@dataclass
class Target:
    """Something with settings.

    name: in failures. call: takes settings. settings: those to try. given: what it needs besides.
    natural: values by setting that its annotation and default make right.
    paths: settings that an error may name by the path that was given.
    """

    name: str
    call: Callable[..., Any]
    settings: list[str]
    given: dict[str, Any] = field(default_factory=dict)
    natural: dict[str, set[str]] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)

    def cases(self, but: str = "") -> Iterator[tuple[str, str]]:
        """Every setting with every value, but one."""
        return ((setting, label) for setting in self.settings for label in VALUES if label != but)

    def judge(self, cases: Cases, setting: str, label: str, allowed: set[str]) -> None:
        """Try one value: refused with an error that names the setting, or one that is allowed."""
        what = f"{self.name}, {setting} = {label}"
        try:
            made = self.call(**{**self.given, setting: VALUES[label]})
            if inspect.isgenerator(made):
                list(islice(made, 2))
        except REFUSALS as error:
            if label in allowed:
                cases.wrong(f"{what}: is right, but {type(error).__name__}: {str(error)[:200]}")
            elif not self._names(error, setting, label):
                cases.wrong(f"{what}: not named by {type(error).__name__}: {str(error)[:200]}")
            else:
                cases.refused()
        except Exception as error:  # the case is judged, not the test ended
            cases.wrong(f"{what}: {type(error).__name__}: {str(error)[:200]}")
        else:
            cases.check(label in allowed, f"{what}: accepted")

    def _names(self, error: Exception, setting: str, label: str) -> bool:
        """Whether the message has the name of the setting, in whatever case and with whatever dashes."""
        message = str(error).replace("-", "_").lower()
        by_path = setting in self.paths and str(VALUES[label]) in str(error)
        return by_path or any(name.lower() in message for name in (setting, ALIASES.get(setting, setting)))


def entry_points() -> dict[str, tuple[str, Any]]:
    """What setup.cfg registers: by name the registry, such as "layers", and what is registered."""
    parser = ConfigParser()
    parser.optionxform = str  # type: ignore[method-assign, assignment]
    parser.read(ROOT / "setup.cfg", encoding="utf8")
    found = {}
    for group, lines in parser["options.entry_points"].items():
        for line in lines.strip().splitlines() if group != "spacy_cli" else []:
            name, place = (part.strip() for part in line.split("="))
            module, attribute = place.split(":")
            found[name] = group.split("_", 1)[1], getattr(import_module(module), attribute)
    return found


def target(name: str, function: Callable[..., Any], given: dict[str, Any], but: tuple[str, ...] = ()) -> Target:
    """A function whose settings are all its parameters but some."""
    lazy = dict.fromkeys(("SentenceBert", "SentenceMeta", "SentenceReranker"), object)  # for type checkers alone
    annotated = function.__init__ if inspect.isclass(function) else function
    hints = get_type_hints(annotated, localns=lazy, include_extras=True)
    parameters = inspect.signature(function).parameters
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    settings = [key for key, parameter in parameters.items() if parameter.kind not in variable and key not in but]
    natural = {key: _natural(hints.get(key, Any), parameters[key].default) for key in settings}
    paths = {key for key in settings if Path in _kinds(hints.get(key, Any))}
    return Target(name, function, settings, given, natural, paths)


def _natural(annotation: Any, default: Any) -> set[str]:
    """Values that are right by what an annotation says itself: a flag is true, what may be missing is None."""
    kinds = set(_kinds(annotation))
    found = {"true"} if bool in kinds else set()
    if NoneType in kinds:
        found.add("none")
    return found | {label for label, value in VALUES.items() if type(value) is type(default) and value == default}


def _kinds(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        yield from _kinds(get_args(annotation)[0])
    elif NoneType in get_args(annotation) or "Union" in str(get_origin(annotation)):
        for branch in get_args(annotation):
            yield from _kinds(branch)
    else:
        yield annotation


def validated_functions() -> dict[str, Callable[..., Any]]:
    """Every function and method of the package that checks its arguments, by its name: those that people call."""
    found = {}
    for module in walk_packages(spacy_sbert.__path__, "spacy_sbert."):
        for _, one in inspect.getmembers(import_module(module.name)):
            for inner in [one, *(vars(one).values() if inspect.isclass(one) else ())]:
                function = getattr(inner, "__func__", inner)
                if not inspect.isfunction(function) or not hasattr(function, "__signature__"):
                    continue
                if not function.__module__.startswith("spacy_sbert.cli"):  # typer checks a command's options
                    found[function.__qualname__] = function
    return found
