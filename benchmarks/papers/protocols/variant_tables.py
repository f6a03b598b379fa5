"""Tables of the variants of the vectors that tasks score, for the report of `benchmark`."""

from collections import Counter
from collections.abc import Iterator, Mapping

from spacy_sbert.evaluation.results import ABSENT, Json, by_suite
from spacy_sbert.evaluation.tables import CLASSIFIERS, figure_cell
from spacy_sbert.render.document import Cell, Table, TableRow

_COLUMNS = ("Normalisation", "Size")
_TUNED = "tuned in each fold"


def variant_tables(results: Json) -> Iterator[Table]:
    """Yield the primary figures of the tasks of each suite by variant, where they are several."""
    several = {name: task for name, task in results["tasks"].items() if len(task["variants"]) > 1}
    for suite, tasks in by_suite(several).items():
        entries = {name: _entries(task) for name, task in tasks.items()}
        variants: dict[tuple[str, str], None] = {}
        for of_task in entries.values():
            variants |= dict.fromkeys(of_task)
        rows: list[TableRow] = []
        for variant in variants:
            row: list[Cell | str] = [*variant]
            for name, task in tasks.items():
                entry = entries[name].get(variant)
                path = task["primary"].split(".")
                row.append(ABSENT if entry is None else figure_cell(task, path, entry))
            rows.append(tuple(row))
        caption = _caption(tasks, results["settings"])
        yield Table(f"Variants of the input: {suite}", (*_COLUMNS, *tasks), rows, caption, texts=2)


def _caption(tasks: Mapping[str, Json], settings: Json) -> str:
    primary = "; ".join(f"{name}: {task['primary']}" for name, task in tasks.items())
    caption = f"x 100. {primary}."
    for name, task in tasks.items():
        if task.get("tuned"):
            caption += _tuning(name, task["tuned"])
    first = f"{settings['normalizations'][0]}, {settings['sizes'][0]}"
    return f"{caption} Other tables show the variant '{first}', unless they say otherwise."


def _entries(task: Json) -> dict[tuple[str, str], Json]:
    """Return the scores of a task by normalization and size, also those that were tuned."""
    entries = {(entry["normalization"], entry["size"]): entry for entry in task["variants"]}
    if task.get("tuned"):
        entries[_TUNED, task["variants"][0]["size"]] = task["tuned"]
    return entries


def _tuning(name: str, tuned: Json) -> str:
    """Return which normalization was chosen in how many folds, for a caption."""
    caption = ""
    for key, chosen in tuned.get("by_classifier", {"": tuned["normalization"]}).items():
        counts = ", ".join(f"{each} {n}" for each, n in sorted(Counter(chosen).items()))
        what = f"{name}, {CLASSIFIERS[key]}" if key in CLASSIFIERS else name
        caption += f" {_TUNED} for {what}: {counts}."
    return caption
