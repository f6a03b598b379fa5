"""Results as a notebook shows them."""

from typing import cast

from ..render.html import framed
from .results import Results, TaskResult, figure


class ShownResults(dict[str, object]):
    """The results of an evaluation, see evaluate_suites: a dict that prints as one line, in a notebook as a report."""

    def __repr__(self) -> str:
        if not {"model", "tasks", "skipped", "failed"} <= self.keys():  # somebody took a part away
            return super().__repr__()
        results = cast(Results, self)
        scores = [f"{name} {_score(task)}" for name, task in results["tasks"].items()]
        others = [f"{len(results[kind])} {kind}" for kind in ("skipped", "failed") if results[kind]]
        return f"Results({results['model']['name']}: {', '.join([*scores, *others]) or 'nothing measured yet'})"

    def _repr_html_(self) -> str:
        from .report import html  # plots take a while to import

        return framed(html(cast(Results, self)))


def shown(results: Results) -> Results:
    """The same, which a notebook shows as a report."""
    return cast(Results, ShownResults(results))


def _score(task: TaskResult) -> str:
    """The primary figure: x 100 where it is a share or a correlation, as reports have it."""
    found = figure(task["variants"][0]["scores"], task["primary"].split("."))
    if not isinstance(found, int | float):
        return "undefined"
    return f"{found:.1f} sentences/s" if task["suite"] == "speed" else f"{100 * found:.2f}"
