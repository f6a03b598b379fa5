"""Results as a notebook shows them."""

from typing import cast

from ..render.html import framed
from .results import Results


class ShownResults(dict[str, object]):
    """The results of an evaluation, see evaluate_suites: a dict in every way, and in a notebook its report."""

    def _repr_html_(self) -> str:
        from .report import html  # plots take a while to import

        return framed(html(cast(Results, self)))


def shown(results: Results) -> Results:
    """The same, which a notebook shows as a report."""
    return cast(Results, ShownResults(results))
