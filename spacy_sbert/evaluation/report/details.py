"""Tables that are not in the paper: how it was measured, every sub-set, probing, variants, what is missing."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain

from ...render.document import Cell, Notes, Row, Table
from ..results import ABSENT, by_suite, figure
from .cells import RATES, Results, count, first, interval_text, rate, score_cell, score_text, splits
from .paper import AGGREGATIONS, CLASSIFIERS, CORRELATIONS, graded_similarities, subsets

TUNED = "tuned in each fold"
TRAINED = {"transfer": "Transfer, every task", "probing": "Probing", "learned": "Learned similarity beside the cosine"}


def settings_table(results: Results) -> Table:
    """Model, the settings that had an effect, and versions."""
    model = results["model"]
    rows: list[Row] = [("model", model["name"]), ("SHA-256 of the model", model["digest"])]
    for key, words in (("device", "device"), ("width", "width of the vectors")):
        if model.get(key) is not None:
            rows.append((words, str(model[key])))
    if "encoded" in model:
        rows.append(("texts encoded in this run; others were kept from an earlier one", str(model["encoded"])))
    applies = _which_apply(results)
    rows += [
        (name.replace("_", " "), _setting(value))
        for name, value in results["settings"].items()
        if applies.get(name, True)
    ]
    rows.append(("versions", ", ".join(f"{name} {value}" for name, value in results["versions"].items())))
    return Table("How it was measured", ("What", "Value"), rows, texts=2)


def _which_apply(results: Results) -> dict[str, bool]:
    """Of the settings that some tasks alone look at whether there is such a task."""
    suites = {task["suite"] for task in results["tasks"].values()}
    return {
        "seeds": has_deviations(results) or bool(suites & TRAINED.keys()),
        "bootstrap": any(task["intervals"] for task in results["tasks"].values()),
        "classifiers": bool(suites & {"transfer", "probing"}),
        "any_count": bool(results["settings"].get("any_count")),
    }


def has_deviations(results: Results) -> bool:
    """Whether a score depends on the seeds."""
    return any(entry.get("deviation") for task in results["tasks"].values() for entry in task["variants"])


def graded_tables(results: Results, notes: Notes) -> list[Table]:
    """Both correlations of every sub-set, by every similarity."""
    return [table for name in CORRELATIONS if (table := _graded_table(results, name, notes)).rows]


def trained_tables(results: Results, notes: Notes) -> list[Table]:
    """Figures of tasks that train something on the vectors, a table for each suite; those with sub-sets stand in
    graded_tables."""
    suites = by_suite({name: task for name, task in results["tasks"].items() if not graded_similarities(task)}).items()
    return [_trained_table(TRAINED[suite], tasks, notes) for suite, tasks in suites if suite in TRAINED]


def classifiers_table(results: Results) -> Table:
    """How what is trained on the vectors was trained."""
    protocols: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, task in results["tasks"].items():
        protocol = tuple((key, str(value)) for key, value in task.get("protocol", {}).items())
        protocols.setdefault(protocol, []).append(name)
    rows = [(", ".join(names), part, words) for protocol, names in protocols.items() for part, words in protocol]
    return Table("How classifiers were trained", ("Tasks", "Part", "How"), rows, texts=3)


def other_table(results: Results, notes: Notes) -> Table:
    """Tasks that no other table shows, such as speed and the labels of a head."""
    rows: list[Row] = []
    for name, task in results["tasks"].items():
        if graded_similarities(task) or task["suite"] in (*TRAINED, "triplets"):
            continue
        for path in leaves(first(task)["scores"]):
            cell = score_cell(task, path, notes)
            if task["suite"] in RATES:
                cell = Cell(rate(figure(first(task)["scores"], path)), cell.marks)
            words, interval = " ".join(path).replace("_", " "), interval_text(task, ".".join(path))
            rows.append((name, words, count(task), cell, interval))
    caption = f"x 100, but for the suite {', '.join(RATES)}, whose figures stand as they are."
    return Table("Other tasks", ("Task", "Figure", "Examples", "Score", "95 %"), rows, caption, texts=2)


def variant_tables(results: Results, notes: Notes) -> list[Table]:
    """The primary figure of each task by normalisation and size; a table for each suite with several variants."""
    several = {name: task for name, task in results["tasks"].items() if len(task["variants"]) > 1}
    return [_variant_table(suite, tasks, notes) for suite, tasks in by_suite(several).items()]


def data_table(results: Results) -> Table:
    """The files that were read, by task."""
    rows: list[Row] = []
    for name, task in results["tasks"].items():
        facts = (name, task["suite"], count(task), "reused" if task.get("reused") else "measured")
        for number, file in enumerate(task["data"].items()):
            rows.append((*(facts if not number else [""] * len(facts)), *file))
    columns = ("Task", "Suite", "Examples", "This run", "File", "SHA-256")
    return Table("Data", columns, rows, "Reused results are of the same model, data, settings and versions.", texts=6)


def missing_tables(results: Results) -> list[Table]:
    """What was asked for and not measured."""
    titles = {"skipped": "Skipped", "failed": "Failed"}
    return [Table(title, ("Task", "Reason"), [*results[key].items()], texts=2) for key, title in titles.items()]


def leaves(scores: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all figures."""
    if not isinstance(scores, Mapping):
        yield path
        return
    for key, inner in scores.items():
        yield from leaves(inner, (*path, key))


def _graded_table(results: Results, correlation: str, notes: Notes) -> Table:
    tasks = {name: task for name, task in results["tasks"].items() if graded_similarities(task)}
    similarities = list(dict.fromkeys(key for task in tasks.values() for key in graded_similarities(task)))
    rows: list[Row] = []
    for name, task in tasks.items():
        for path, words, number in _parts(task, subsets(task, similarities[0], correlation)):
            cells: list[Cell | str] = [score_cell(task, (key, correlation, *path), notes) for key in similarities]
            cells.insert(1, interval_text(task, ".".join((similarities[0], correlation, *path))))
            rows.append((name, words, number, *cells))
    columns = ("Task", "Pairs of", "Pairs", similarities[0] if similarities else "", "95 %", *similarities[1:])
    title = f"Every sub-set: {CORRELATIONS[correlation]}'s correlation by similarity"
    return Table(title, columns, rows, "x 100. Distances are negated: the nearer, the higher.", texts=2).trimmed(ABSENT)


def _parts(task: Results, names: list[str]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    for name in names:
        yield ("subsets", name), name, str(task["counts"][name])
    for aggregation, words in AGGREGATIONS.items():
        if names or aggregation == "pooled":
            yield (aggregation,), words if names else "all", count(task)


def _trained_table(title: str, tasks: Mapping[str, Results], notes: Notes) -> Table:
    paths = dict.fromkeys(path for task in tasks.values() for path in leaves(first(task)["scores"]))
    rows: list[Row] = []
    for name, task in tasks.items():
        cells: list[Cell | str] = []
        for path in paths:
            cells += [score_cell(task, path, notes), interval_text(task, ".".join(path))]
        rows.append((name, splits(task), *cells))
    columns = ["Task", "Examples"]
    for classifier, *rest in paths:
        columns += [f"{CLASSIFIERS.get(classifier, classifier)}, {' '.join(rest)}", "95 %"]
    caption = "x 100, but for mean squared errors (mse), which are of the scores of the data set. "
    caption += "± is the standard deviation over the seeds."
    return Table(title, columns, rows, caption, texts=2).trimmed(ABSENT)


def _variant_table(suite: str, tasks: Mapping[str, Results], notes: Notes) -> Table:
    found = {
        name: {(entry["normalization"], entry["size"]): entry for entry in _variants(task)}
        for name, task in tasks.items()
    }
    rows: list[Row] = []
    for variant in dict.fromkeys(chain(*found.values())):
        cells = [_variant_cell(tasks[name], entries.get(variant), notes) for name, entries in found.items()]
        rows.append((*variant, *cells))
    primary = {task["primary"] for task in tasks.values()}
    figures = sorted(primary) if len(primary) == 1 else [f"{name}: {task['primary']}" for name, task in tasks.items()]
    caption = f"x 100. {'; '.join(figures)}."
    for name, task in tasks.items():
        for words, chosen in _chosen(task).items():
            caption += f" {TUNED} for {name}{words}: {', '.join(f'{key} {n}' for key, n in sorted(chosen.items()))}."
    return Table(f"Variants of the input: {suite}", ("Normalisation", "Size", *tasks), rows, caption, texts=2)


def _chosen(task: Results) -> dict[str, Counter[str]]:
    """How often each normalisation was best in tuning; by classifier where results say so."""
    tuned = task.get("tuned", {})
    each = {f", {CLASSIFIERS[name]}": names for name, names in tuned.get("by_classifier", {}).items()}
    each = each or {"": tuned.get("normalization", ())}
    return {words: Counter(names) for words, names in each.items() if names}


def _variants(task: Results) -> list[Results]:
    tuned = [{**task["tuned"], "normalization": TUNED, "size": first(task)["size"]}] if "tuned" in task else []
    return [*task["variants"], *tuned]


def _variant_cell(task: Results, entry: Results | None, notes: Notes) -> Cell | str:
    if entry is None:
        return ABSENT
    return Cell(score_text(entry, task["primary"].split(".")), notes.marks(task["notes"]))


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) or "none named" if isinstance(value, list) else str(value)
