"""What the scripts write of their scores: means, deviations, differences of paired runs, and tables of them."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

from scipy import stats

CONFIDENCE = 0.95
DIFFERENCE = ["difference x 100", "95 % interval", "t", "p"]  # the columns of paired_difference


def mean_and_deviation(values: Sequence[float | None]) -> tuple[str, str]:
    """Both x 100, as tables have them; "-" where there is none, or a value is not defined."""
    defined = [100 * value for value in values if value is not None]
    if not defined or len(defined) < len(values):
        return "-", "-"
    return f"{statistics.mean(defined):.2f}", f"{statistics.stdev(defined):.2f}" if len(defined) > 1 else "-"


def in_one(values: Sequence[float | None]) -> str:
    """Mean and standard deviation of seeds in one cell."""
    mean, deviation = mean_and_deviation(values)
    return mean if deviation == "-" else f"{mean} ± {deviation}"


def paired_difference(values: Sequence[float | None], others: Sequence[float | None]) -> list[str]:
    """Student's t-test of paired runs: by how much the first are higher than the second of the same seeds.

    t = mean(d) / (stdev(d) / sqrt(n)), d_i = values_i - others_i, with n - 1 degrees of freedom; two-sided.

    RETURNS (list): the cells of DIFFERENCE; "-" where there are not two pairs that differ by different amounts.
    """
    pairs = [(100 * a, 100 * b) for a, b in zip(values, others, strict=True) if a is not None and b is not None]
    if not pairs or len(pairs) < len(values):
        return ["-"] * len(DIFFERENCE)
    differences = [a - b for a, b in pairs]
    mean = f"{statistics.mean(differences):+.2f}"
    if len(set(differences)) < 2:
        return [mean, "-", "-", "-"]
    found = stats.ttest_rel(*zip(*pairs, strict=True))
    low, high = found.confidence_interval(CONFIDENCE)
    return [mean, f"{low:+.2f} to {high:+.2f}", f"{found.statistic:.2f}", f"{found.pvalue:.2g}"]


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean; None without values, or where one is not defined."""
    defined = [value for value in values if value is not None and math.isfinite(value)]
    return statistics.mean(defined) if defined and len(defined) == len(values) else None


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
