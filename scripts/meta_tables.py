"""The tables of meta-embeddings as Markdown, each with what it shows below it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tables import markdown

Scores = Mapping[str, Any]
Table = tuple[Sequence[str], list[list[str]], Sequence[str]]  # header, lines, notes

RAW = {"gcca", "ae"}  # methods to which the paper gives the members' vectors as they are
CORRELATION = "Pearson / Spearman x 100 of cosine."
PAPER = "(paper): the members' vectors are as Poerner et al. 2020 give them to the method, for gcca and ae as they are."
TUNED = "(tuned): the hyper-parameters are those that did best on it; no mean has it."
NONE = "-: no score; scores.json says why."


def cell(scores: Scores | None) -> str:
    """Pearson / Spearman; "-" where there are none."""
    if scores is None or None in (scores["pearson"], scores["spearman"]):
        return "-"
    return f"{scores['pearson']:.2f} / {scores['spearman']:.2f}"


def mark_of(settings: Scores) -> str:
    """What stands behind a method that gets the members' vectors as in the paper."""
    return " (paper)" if settings.get("normalize", True) != (settings["method"] in RAW) else ""


def write_tables(folder: Path, found: Scores) -> None:
    """Write table1.md to table4.md.

    found: what scores.json holds.
    """
    for number, (header, rows, notes) in enumerate(
        (_grid(found), _methods(found), _left_out(found), _subsets(found)), 1
    ):
        text = markdown(header, rows) + "\n" + "".join(f"{note}\n" for note in (*notes, NONE))
        (folder / f"table{number}.md").write_text(text, encoding="utf8")


def _grid(found: Scores) -> Table:
    rows = [[key + mark_of(json.loads(key)), cell(one["dev"]), _seconds(one)] for key, one in found["table1"].items()]
    said = f"Autoencoders on {found['grid_sentences']} of {found['sentences']} sentences."
    return ["settings", "STS benchmark dev", "fit, s"], rows, [CORRELATION, PAPER, said]


def _methods(found: Scores) -> Table:
    rows, tuned_on = found["table2"], found["tuned_on"]
    tasks = _tasks(rows)
    lines = [
        [name, *(cell(row["tasks"].get(task)) for task in tasks), cell(row["mean"]), _difference(row), _seconds(row)]
        for name, row in rows.items()
    ]
    better = (
        f"better: by how much the method's mean of Spearman is above that of the best member ({found['best_member']}), "
        f"and the 95 % interval of {found['resamples']} paired resamples of the pairs within each sub-set."
    )
    up = f"projected up: at random to {found['projected_to']} numbers, the mean of 10 seeds; members that are narrower."
    heads = [f"{task} (tuned)" if task in tuned_on else task for task in tasks]
    return ["", *heads, "mean", "better", "fit, s"], lines, [CORRELATION, PAPER, TUNED, up, better]


def _left_out(found: Scores) -> Table:
    methods = list(found["settings"])
    rows = [
        [left_out, *(cell(each[method][of]) for method in methods for of in ("dev", "mean"))]
        for left_out, each in found["table3"].items()
    ]
    heads = [f"{method}, {of}" for method in methods for of in ("dev (tuned)", "mean")]
    return ["left out", *heads], rows, [CORRELATION, PAPER, f"dev: STS benchmark dev. {TUNED}"]


def _subsets(found: Scores) -> Table:
    rows = found["table2"]
    full: Scores = next((row["tasks"] for row in rows.values() if row["tasks"]), {})
    places = [(task, subset) for task, scores in full.items() for subset in scores["subsets"]]
    lines = [
        [
            f"{task} {subset}",
            *(cell(row["tasks"].get(task, {"subsets": {}})["subsets"].get(subset)) for row in rows.values()),
        ]
        for task, subset in places
    ]
    return ["sub-set", *rows], lines, [CORRELATION, PAPER]


def _tasks(rows: Scores) -> list[str]:
    return list(dict.fromkeys(task for row in rows.values() for task in row["tasks"]))


def _difference(row: Scores) -> str:
    found = row.get("difference")
    return "-" if found is None else "{difference:+.2f} [{low:+.2f}, {high:+.2f}]".format(**found)


def _seconds(row: Scores) -> str:
    return f"{row['seconds']:.1f}" if "seconds" in row else "-"
