"""Wrong values for settings, and the settings that there are: from signatures, so that a new one is
tried, too.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from pkgutil import walk_packages
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from helpers.counted_cases import Cases

import spacy_sbert

PROMISE = "a wrong setting is refused with an error that names it"


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
    "billion": 10**9,
    "10**18": 10**18,
    # Infinite in float32
    "1e39": 1e39,
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
# A name that only use can find to be unknown
LATER = {"number as text", "unknown"}
# What messages call a setting
ALIASES = {
    "query_prompt": "prompt_name",
    "options": "option",
    "name": "baseline",
    "column": "table",
    "label": "table",
}
REFUSALS = (ValueError, TypeError, OSError, ImportError)


@dataclass
class Target:
    """Something with settings.

    name: in failures. call: takes settings. given: what it needs besides. natural: the settings to
        try, each with the
    values that its annotation and default make right. paths: those that an error may name by the
    path that was given.
    """

    name: str
    call: Callable[..., Any]
    given: dict[str, Any]
    natural: dict[str, set[str]]
    paths: set[str]

    def judge_all(
        self, cases: Cases, right: dict[str, set[str]], alone: dict[str, set[str]], but: str = ""
    ) -> None:
        """Try every setting with every value but one. right: values beside the natural ones; alone:
        in their place.
        """
        for setting, natural in self.natural.items():
            allowed = alone.get(setting, right.get(setting, set()) | natural)
            for label in VALUES:
                if label != but:
                    self._judge(cases, setting, label, allowed)

    def _judge(self, cases: Cases, setting: str, label: str, allowed: set[str]) -> None:
        """Try one value: refused with an error that names the setting, or one that is allowed."""
        what = f"{self.name}, {setting} = {label}"
        try:
            made = self.call(**{**self.given, setting: VALUES[label]})
            if inspect.isgenerator(made):
                list(islice(made, 2))
        except REFUSALS as error:
            if label in allowed:
                cases.wrong(f"{what}: is right, but {type(error).__name__}: {str(error)[:200]}")
            elif setting in self.paths and str(VALUES[label]) in str(error):
                cases.refused()
            else:
                # The name of the setting stands in it in whatever case and with whatever dashes
                message = str(error).replace("-", "_").lower()
                named = any(
                    name.lower() in message for name in (setting, ALIASES.get(setting, setting))
                )
                cases.check_message(error, what, *([] if named else [setting]))
        except Exception as error:
            # The case is judged, not the test ended
            cases.wrong(f"{what}: {type(error).__name__}: {str(error)[:200]}")
        else:
            cases.check(label in allowed, f"{what}: accepted")


def target(
    name: str, function: Callable[..., Any], given: dict[str, Any], but: tuple[str, ...] = ()
) -> Target:
    """A function whose settings are all its parameters but some."""
    # For type checkers alone
    lazy = dict.fromkeys(("SentenceBert", "SentenceMeta", "SentenceReranker"), object)
    annotated = function.__init__ if inspect.isclass(function) else function
    hints = get_type_hints(annotated, localns=lazy, include_extras=True)
    natural = {}
    paths = set()
    for key, parameter in inspect.signature(function).parameters.items():
        if (
            parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            and key not in but
        ):
            kinds = _kinds(hints.get(key, Any))
            natural[key] = {
                label for kind, label in ((bool, "true"), (NoneType, "none")) if kind in kinds
            }
            default = parameter.default
            natural[key] |= {
                of
                for of, value in VALUES.items()
                if type(value) is type(default) and value == default
            }
            paths |= {key} if Path in kinds else set()
    return Target(name, function, given, natural, paths)


def _kinds(annotation: Any) -> set[Any]:
    """The types in a union."""
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return set().union(*map(_kinds, get_args(annotation)))
    return {annotation if isinstance(annotation, type) else object}


def validated_functions() -> dict[str, Callable[..., Any]]:
    """Every function and method of the package that checks its arguments, by its name: those that
    people call.
    """
    found = {}
    for module in walk_packages(spacy_sbert.__path__, "spacy_sbert."):
        for _, one in inspect.getmembers(import_module(module.name)):
            for inner in [one, *(vars(one).values() if inspect.isclass(one) else ())]:
                function = getattr(inner, "__func__", inner)
                if not inspect.isfunction(function) or not hasattr(function, "__signature__"):
                    continue
                # Typer checks a command's options
                if not function.__module__.startswith("spacy_sbert.cli"):
                    found[function.__qualname__] = function
    return found
