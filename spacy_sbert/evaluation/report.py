"""Reports of results as HTML and Markdown."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import cast

from ..render.document import Cell, Document, Notes, Row, Table, framed
from ..render.document import html as render_html
from ..render.document import markdown as render_markdown
from ..render.document import terminal as render_terminal
from .paper_report import (
    AGGREGATIONS,
    CLASSIFIERS,
    CORRELATIONS,
    RATES,
    ResultsByName,
    count,
    figures,
    first,
    graded_similarities,
    interval_text,
    paper_tables,
    rate,
    score_cell,
    score_text,
    splits,
    subsets,
    variant_name,
)
from .results import ABSENT, Results, TaskResult, by_suite, figure

_TUNED = "tuned in each fold"
_TRAINED = {"transfer": "Transfer, every task", "probing": "Probing", "learned": "Learned similarity beside the cosine"}


def _settings_table(results: ResultsByName) -> Table:
    """List the model, the settings that had an effect, and versions."""
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


def _which_apply(results: ResultsByName) -> dict[str, bool]:
    """Return for the settings that only some tasks use whether there is such a task."""
    suites = {task["suite"] for task in results["tasks"].values()}
    return {
        "seeds": _has_deviations(results) or bool(suites & _TRAINED.keys()),
        "bootstrap": any(task["intervals"] for task in results["tasks"].values()),
        "classifiers": bool(suites & {"transfer", "probing"}),
        "any_count": bool(results["settings"].get("any_count")),
    }


def _has_deviations(results: ResultsByName) -> bool:
    """Return whether a score depends on the seeds."""
    return any(entry.get("deviation") for task in results["tasks"].values() for entry in task["variants"])


def _graded_tables(results: ResultsByName, notes: Notes) -> list[Table]:
    """Return both correlations of every sub-set, by every similarity."""
    return [table for name in CORRELATIONS if (table := _graded_table(results, name, notes)).rows]


def _trained_tables(results: ResultsByName, notes: Notes) -> list[Table]:
    """Return the figures of tasks that train something on the vectors, a table for each suite.

    Those with sub-sets are in _graded_tables.
    """
    suites = by_suite({name: task for name, task in results["tasks"].items() if not graded_similarities(task)}).items()
    return [_trained_table(_TRAINED[suite], tasks, notes) for suite, tasks in suites if suite in _TRAINED]


def _classifiers_table(results: ResultsByName) -> Table:
    """Describe how what is trained on the vectors was trained."""
    protocols: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, task in results["tasks"].items():
        protocol = tuple((key, str(value)) for key, value in task.get("protocol", {}).items())
        protocols.setdefault(protocol, []).append(name)
    rows = [(", ".join(names), part, words) for protocol, names in protocols.items() for part, words in protocol]
    return Table("How classifiers were trained", ("Tasks", "Part", "How"), rows, texts=3)


def _other_table(results: ResultsByName, notes: Notes) -> Table:
    """Return tasks that no other table shows, such as speed and the labels of a head."""
    rows: list[Row] = []
    for name, task in results["tasks"].items():
        if graded_similarities(task) or task["suite"] in (*_TRAINED, "triplets"):
            continue
        for path in _leaves(first(task)["scores"]):
            cell = score_cell(task, path, notes)
            if task["suite"] in RATES:
                cell = Cell(rate(figure(first(task)["scores"], path)), cell.marks)
            words, interval = " ".join(path).replace("_", " "), interval_text(task, ".".join(path))
            rows.append((name, words, count(task), cell, interval))
    caption = f"x 100, but for the suite {', '.join(RATES)}, whose figures stand as they are."
    return Table("Other tasks", ("Task", "Figure", "Examples", "Score", "95 %"), rows, caption, texts=2)


def _variant_tables(results: ResultsByName, notes: Notes) -> list[Table]:
    """Return the primary figure of each task by variant, a table for each suite with several variants."""
    several = {name: task for name, task in results["tasks"].items() if len(task["variants"]) > 1}
    return [_variant_table(suite, tasks, notes) for suite, tasks in by_suite(several).items()]


def _data_table(results: ResultsByName) -> Table:
    """Return the files that were read, by task."""
    rows: list[Row] = []
    for name, task in results["tasks"].items():
        facts = (name, task["suite"], count(task), "reused" if task.get("reused") else "measured")
        for number, file in enumerate(task["data"].items()):
            rows.append((*(facts if not number else [""] * len(facts)), *file))
    columns = ("Task", "Suite", "Examples", "This run", "File", "SHA-256")
    return Table("Data", columns, rows, "Reused results are of the same model, data, settings and versions.", texts=6)


def _missing_tables(results: ResultsByName) -> list[Table]:
    """Return tables of what was asked for and not measured."""
    titles = {"skipped": "Skipped", "failed": "Failed"}
    return [Table(title, ("Task", "Reason"), [*results[key].items()], texts=2) for key, title in titles.items()]


def _leaves(scores: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all figures."""
    if not isinstance(scores, Mapping):
        yield path
        return
    for key, inner in scores.items():
        yield from _leaves(inner, (*path, key))


def _graded_table(results: ResultsByName, correlation: str, notes: Notes) -> Table:
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


def _parts(task: ResultsByName, names: list[str]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    for name in names:
        yield ("subsets", name), name, str(task["counts"][name])
    for aggregation, words in AGGREGATIONS.items():
        if names or aggregation == "pooled":
            yield (aggregation,), words if names else "all", count(task)


def _trained_table(title: str, tasks: Mapping[str, ResultsByName], notes: Notes) -> Table:
    paths = dict.fromkeys(path for task in tasks.values() for path in _leaves(first(task)["scores"]))
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


def _variant_table(suite: str, tasks: Mapping[str, ResultsByName], notes: Notes) -> Table:
    entries_of = {
        name: {(entry["normalization"], entry["size"]): entry for entry in _variants(task)}
        for name, task in tasks.items()
    }
    rows: list[Row] = []
    for variant in dict.fromkeys(chain(*entries_of.values())):
        cells = [_variant_cell(tasks[name], entries.get(variant), notes) for name, entries in entries_of.items()]
        rows.append((*variant, *cells))
    primary = {task["primary"] for task in tasks.values()}
    figures = sorted(primary) if len(primary) == 1 else [f"{name}: {task['primary']}" for name, task in tasks.items()]
    caption = f"x 100. {'; '.join(figures)}."
    for name, task in tasks.items():
        for words, chosen in _chosen(task).items():
            caption += f" {_TUNED} for {name}{words}: {', '.join(f'{key} {n}' for key, n in sorted(chosen.items()))}."
    return Table(f"Variants of the input: {suite}", ("Normalisation", "Size", *tasks), rows, caption, texts=2)


def _chosen(task: ResultsByName) -> dict[str, Counter[str]]:
    """Count how often each normalisation was best in tuning; by classifier where results say so."""
    tuned = task.get("tuned", {})
    each = {f", {CLASSIFIERS[name]}": names for name, names in tuned.get("by_classifier", {}).items()}
    each = each or {"": tuned.get("normalization", ())}
    return {words: Counter(names) for words, names in each.items() if names}


def _variants(task: ResultsByName) -> list[ResultsByName]:
    tuned = [{**task["tuned"], "normalization": _TUNED, "size": first(task)["size"]}] if "tuned" in task else []
    return [*task["variants"], *tuned]


def _variant_cell(task: ResultsByName, entry: ResultsByName | None, notes: Notes) -> Cell | str:
    if entry is None:
        return ABSENT
    return Cell(score_text(entry, task["primary"].split(".")), notes.marks(task["notes"]))


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) or "none named" if isinstance(value, list) else str(value)


class _ShownResults(dict[str, object]):
    """The results of an evaluation, see evaluate_suites: a dict that prints as one line, in a notebook as a report."""

    def __repr__(self) -> str:
        if not {"model", "tasks", "skipped", "failed"} <= self.keys():  # somebody took a part away
            return super().__repr__()
        results = cast(Results, self)
        scores = [f"{name} {_score(task)}" for name, task in results["tasks"].items()]
        others = [f"{len(results[kind])} {kind}" for kind in ("skipped", "failed") if results[kind]]
        return f"Results({results['model']['name']}: {', '.join([*scores, *others]) or 'nothing measured yet'})"

    def _repr_html_(self) -> str:
        return framed(html(cast(Results, self)))


def results_repr(results: Results) -> Results:
    """Return the same results, which a notebook shows as a report."""
    return cast(Results, _ShownResults(results))


def _score(task: TaskResult) -> str:
    """Return the primary figure: x 100 where it is a share or a correlation, as reports have it."""
    value = figure(task["variants"][0]["scores"], task["primary"].split("."))
    if not isinstance(value, int | float):
        return "undefined"
    return f"{value:.1f} sentences/s" if task["suite"] == "speed" else f"{100 * value:.2f}"


def markdown(results: ResultsByName) -> str:
    """Report on one model in Markdown, its tables laid out as the Sentence-BERT paper's.

    results (dict): see evaluate_suites.
    RETURNS (str): the same for the same results. Scores are x 100; one that is not defined is "undefined".
    """
    return render_markdown(_contents(results))


def terminal(results: ResultsByName, width: int) -> str:
    """Report on one model in plain tables, without how it was measured; see markdown.

    width (int): the columns of the terminal.
    """
    return render_terminal(_contents(results), width)


def html(results: ResultsByName) -> str:
    """Report on one model in HTML, with the tables of the Markdown report, and plots.

    results (dict): see evaluate_suites.
    RETURNS (str): a whole page, the same for the same results.
    """
    return render_html(_contents(results), figures(results))


def _contents(results: ResultsByName) -> Document:
    """Return the contents of the report on one model.

    results (dict): see evaluate_suites.
    RETURNS (Document): the paper's tables, every figure, what is missing; then how it was measured.
    """
    notes, name = Notes(), results["model"]["name"]
    tables = [
        *paper_tables([(name, results)], notes),
        *_graded_tables(results, notes),
        *_trained_tables(results, notes),
        _other_table(results, notes),
        *_variant_tables(results, notes),
        *_missing_tables(results),
    ]
    how = [_classifiers_table(results), _settings_table(results), _data_table(results)]
    tables, how = ([table for table in part if table.rows] for part in (tables, how))
    title, notes_of = f"Evaluation of {name}", list(notes.numbers)
    return Document(title, [_summary(results)], tables, notes_of, _remarks(results), how)


def _summary(results: ResultsByName) -> str:
    settings = results["settings"]
    reused = sum(bool(task.get("reused")) for task in results["tasks"].values())
    counts = {"of them earlier": reused, "skipped": len(results["skipped"]), "failed": len(results["failed"])}
    parts = [f"{len(results['tasks'])} tasks measured", *(f"{n} {words}" for words, n in counts.items() if n)]
    summary = ", ".join(parts) + ". Scores are x 100."
    if len(settings["normalizations"]) + len(settings["sizes"]) > 2:
        entry = {"normalization": settings["normalizations"][0], "size": settings["sizes"][0]}
        summary += f" Tables show the variant '{variant_name(entry)}' (normalisation, size), unless they say otherwise."
    return summary


def _remarks(results: ResultsByName) -> list[str]:
    settings, tasks = results["settings"], results["tasks"].values()
    remarks = [
        "undefined: the score is not defined, such as a correlation with predictions that are all alike. -: not "
        "measured. Numbers in brackets are notes. Layouts, and the paper they speak of: Reimers and Gurevych 2019, "
        "Sentence-BERT."
    ]
    if _has_deviations(results):
        seeds = ", ".join(map(str, settings["seeds"]))
        remarks.append(
            f"± is the standard deviation over the seeds {seeds}, where a score depends on them; intervals are of the "
            "first seed."
        )
    if any(task["intervals"] for task in tasks):
        remarks.append(
            f"Intervals hold 95 % of the scores of {settings['bootstrap']} bootstrap resamples of the examples, with "
            "predictions as they are: they do not cover what another training of the model would change."
        )
    return remarks
