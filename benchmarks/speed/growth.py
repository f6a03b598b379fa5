"""How the cost grows: with the number of sentences, with their length, and with the budget of a
batch.

Usage: python benchmarks/speed/growth.py --data FOLDER --output FILE.json [--rounds 3] [--gpu-id -1]
    [--sentences 1000 3000 10000 30000 100000] [--wordpieces 5 10 25 50 100 175 250] [--budgets 512
    ... 8192]
Ours in float32 and bfloat16, `nlp.pipe` with Docs and hooks. Beside the JSON file it writes a plot
of each, FILE-*.svg.
"""

import re
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from markupsafe import Markup
from measure import Encode, alternate, arguments, prepare, save, timing
from texts import questions, sts_sentences, texts_of
from variants import pipe

from spacy_sbert.render import plots
from spacy_sbert.render.document import render_template

PRECISIONS = ("float32", "bfloat16")
# Texts at most
WARM_UP = 1000
Points = dict[str, dict[int, dict[str, Any]]]


@dataclass(frozen=True)
class Plot:
    """How a growth is shown: title, names of the axes, and from the value and its timing to a
    place.
    """

    title: str
    names: tuple[str, str]
    place: Callable[[int, Mapping[str, Any]], tuple[float, float]]


PLOTS = {
    "sentences": Plot(
        "Cost of a sentence",
        ("thousand sentences", "ms a sentence"),
        lambda n, found: (n / 1000, 1000 * found["median"] / found["items"]),
    ),
    "wordpieces": Plot(
        "Cost of a wordpiece",
        ("wordpieces of a text", "µs a wordpiece"),
        lambda n, found: (n, 1e6 * found["median"] / (n * found["items"])),
    ),
    "budgets": Plot(
        "Speed by the budget of a batch",
        ("max_batch_items", "sentences a second"),
        lambda n, found: (n, found["per_second"]),
    ),
}


def grow(
    encoders: Mapping[str, Mapping[int, Encode]], texts: Mapping[int, list[str]], rounds: int
) -> Points:
    """The timing of each encoder at each value, in turn, after some texts that are not timed.

    encoders: by name and value. texts: by value.
    RETURNS (Points): by name and value.
    """
    for one in encoders.values():
        for value, encode in one.items():
            encode(texts[value][:WARM_UP])
    places = [(name, value) for value in texts for name in encoders]
    works = {
        f"{name} {value}": partial(encoders[name][value], texts[value]) for name, value in places
    }
    seconds = alternate(works, rounds)
    return {
        name: {value: timing(seconds[f"{name} {value}"], len(texts[value])) for value in texts}
        for name in encoders
    }


# Pixels between numbers below an axis
_APART = 30
# Of curves, in plots.css
_COLORS = 6


def curves(
    lines: Mapping[str, list[tuple[float, float]]], names: tuple[str, str], title: str, about: str
) -> Markup:
    """Lines through points over a logarithmic axis, and a legend. names: of both axes. about: for
    screen readers.
    """
    sizes = sorted({x for points in lines.values() for x, _ in points})
    values = [y for points in lines.values() for _, y in points]
    left, right = plots._LEFT, plots._RIGHT
    across = plots.Axis(sizes[0], sizes[-1], left + 14, right - 14, log=True)
    up = plots.Axis.spanning(min(values), max(values), plots._BASE, plots._TOP, wanted=5)
    # The sizes whose numbers do not overlap an earlier number
    apart: list[float] = []
    for size in sizes:
        if not apart or across(size) - across(apart[-1]) >= _APART:
            apart.append(size)
    below = replace(across, marks=apart).below(plots._TOP, plots._BASE, names[0])
    parts = [up.left_of(left, right, names[1]), below]
    for place, (name, points) in enumerate(lines.items()):
        color, y = f"c{place % _COLORS}", plots._HEIGHT + 6 + 16 * place
        places = [(across(x), up(y)) for x, y in points]
        dots = "".join(f"M{plots.number(x)} {plots.number(y)}h0" for x, y in places)
        parts += [plots._line(places, f"line {color}"), plots.shape(dots, f"dot {color}")]
        parts += [
            plots._line([(left, y), (left + 24, y)], f"line {color}"),
            plots._text(left + 32, y + 4, name),
        ]
    return plots._plot(title, about, plots._HEIGHT + 6 + 16 * len(lines), parts).svg


def draw(plot: Plot, points: Points) -> str:
    """A plot that stands alone, in light and dark."""
    lines = {
        name: [plot.place(value, found) for value, found in line.items()]
        for name, line in points.items()
    }
    drawn = curves(lines, plot.names, plot.title, f"{plot.names[1]} over {plot.names[0]}")
    width, height = re.findall(r'viewBox="0 0 (\S+) (\S+)"', drawn)[0]
    rules = f"svg {{ width: {width}px; height: {height}px; }} .page {{ fill: var(--page); }}"
    head = (
        f'<style>{render_template("render/plots.css")}{rules}</style><rect class="page" '
        'width="100%" '
        'height="100%"/>'
    )
    start, body = drawn.split(">", 1)
    return f'{start} class="spacy-sbert" xmlns="http://www.w3.org/2000/svg">{head}{body}\n'


def by_sentences(args: Namespace) -> Points:
    """The first sentences of the same."""
    texts = questions(args.data, max(args.sentences))
    return grow(_at_all(args.sentences), {n: texts[:n] for n in args.sentences}, args.rounds)


def by_wordpieces(args: Namespace) -> Points:
    """Texts of equal length, as many as have the same number of wordpieces together."""
    sentences = sts_sentences(args.data)
    texts = {n: texts_of([n] * max(args.total // n, 1), sentences) for n in args.wordpieces}
    return grow(_at_all(args.wordpieces), texts, args.rounds)


def by_budgets(args: Namespace) -> Points:
    """The same sentences in batches of other budgets."""
    encoders = {
        name: {n: pipe(name, max_batch_items=n) for n in args.budgets} for name in PRECISIONS
    }
    return grow(
        encoders, dict.fromkeys(args.budgets, sts_sentences(args.data)[: args.n]), args.rounds
    )


def _at_all(values: list[int]) -> dict[str, dict[int, Encode]]:
    """One encoder of each precision for all values."""
    return {name: dict.fromkeys(values, pipe(name)) for name in PRECISIONS}


def main() -> None:
    parser = arguments(__doc__, rounds=3)
    parser.add_argument(
        "--sentences", nargs="*", type=int, default=[1000, 3000, 10_000, 30_000, 100_000]
    )
    parser.add_argument("--wordpieces", nargs="*", type=int, default=[5, 10, 25, 50, 100, 175, 250])
    parser.add_argument("--budgets", nargs="*", type=int, default=[512, 1024, 2048, 4096, 8192])
    parser.add_argument(
        "--total", type=int, default=40_000, help="wordpieces of all texts of a length"
    )
    parser.add_argument("--n", type=int, default=4000, help="sentences for each budget")
    args = parser.parse_args()
    start = prepare(args)
    sweeps = {"sentences": by_sentences, "wordpieces": by_wordpieces, "budgets": by_budgets}
    found = {name: sweep(args) for name, sweep in sweeps.items() if getattr(args, name)}
    save(
        args.output,
        start,
        {"rounds": args.rounds, "wordpieces_of_a_length": args.total, "n": args.n},
        {"growth": found},
    )
    for name, points in found.items():
        file = args.output.with_name(f"{args.output.stem}-{name}.svg")
        file.write_text(draw(PLOTS[name], points), encoding="utf8")


if __name__ == "__main__":
    main()
