"""Reports on the results of one model, and of several side by side: Markdown, HTML with plots, terminal."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from ..render import document as rendering
from ..render.document import Cell, Document, Notes, Row, Table
from ..render.plots import Bar, Plot, bars
from .compare import RANK_KINDS, aligned, compare
from .results import ABSENT, Json, by_suite, figure
from .tables import (
    AGGREGATIONS,
    CLASSIFIERS,
    CORRELATIONS,
    RATES,
    count,
    first,
    graded_similarities,
    interval_text,
    paper_tables,
    percent,
    plots,
    rate,
    score_cell,
    score_text,
    subsets,
)

_TUNED = "tuned in each fold"
_TRAINED = {"transfer": "Transfer, every task", "probing": "Probing", "learned": "Learned similarity beside the cosine"}


def markdown(results: Json) -> str:
    """Report on one model in Markdown, its tables laid out as the Sentence-BERT paper's.

    results (dict): see evaluate_suites.
    RETURNS (str): the same for the same results. Scores are x 100; one that is not defined is "undefined".
    """
    return rendering.markdown(_contents(results))


def terminal(results: Json, width: int) -> str:
    """Report on one model in plain tables, without how it was measured; width (int): the columns of the terminal."""
    return rendering.terminal(_contents(results), width)


def html(results: Json) -> str:
    """Report on one model as a self-contained page with plots; see markdown."""
    return rendering.html(_contents(results), plots(results))


def compare_markdown(results: Sequence[Json], comparison: Json | None = None) -> str:
    """Report on models side by side, in Markdown.

    results (Sequence of dict): see compare. comparison (dict): what compare made of them, by default it is made.
    RETURNS (str): the same for the same results.
    """
    return rendering.markdown(_compared(results, comparison or compare(results)))


def compare_terminal(results: Sequence[Json], comparison: Json, width: int) -> str:
    """Report on models in plain tables; width (int): the columns of the terminal. See compare_markdown."""
    return rendering.terminal(_compared(results, comparison), width)


def compare_html(results: Sequence[Json], comparison: Json | None = None) -> str:
    """Report on models side by side, as a self-contained page with plots; see compare_markdown."""
    comparison = comparison or compare(results)
    return rendering.html(_compared(results, comparison), _differences(comparison))


class _ShownResults(Json):
    """The results of an evaluation, see evaluate_suites: a dict that prints as one line, in a notebook as a report."""

    def __repr__(self) -> str:
        if not {"model", "tasks", "skipped", "failed"} <= self.keys():  # a part was removed
            return super().__repr__()
        parts = [f"{name} {_score(task)}" for name, task in self["tasks"].items()]
        counts = {"skipped": len(self["skipped"]), "failed": len(self["failed"])}
        parts += [f"{n} {words}" for words, n in counts.items() if n]
        return f"Results({self['model']['name']}: {', '.join(parts) or 'nothing measured yet'})"

    def _repr_html_(self) -> str:
        return rendering.framed(html(self))


def results_repr(results: Json) -> Json:
    """Return the same results, which a notebook shows as a report."""
    return _ShownResults(results)


def _score(task: Json) -> str:
    value = figure(task["variants"][0]["scores"], task["primary"].split("."))
    if not isinstance(value, int | float):
        return "undefined"
    return f"{value:.1f} sentences/s" if task["suite"] in RATES else f"{100 * value:.2f}"


def _contents(results: Json) -> Document:
    """Return the report on one model: the paper's tables, every figure, what is missing; then how it was measured."""
    notes, name, tasks = Notes(), results["model"]["name"], results["tasks"]
    several = {key: task for key, task in tasks.items() if len(task["variants"]) > 1}
    trained = by_suite({key: task for key, task in tasks.items() if not graded_similarities(task)})
    tables = [
        *paper_tables([(name, results)], notes),
        *(_graded_table(tasks, correlation, notes) for correlation in CORRELATIONS),
        *(_trained_table(_TRAINED[suite], each, notes) for suite, each in trained.items() if suite in _TRAINED),
        _other_table(tasks, notes),
        *(_variant_table(suite, each, notes) for suite, each in by_suite(several).items()),
        *(Table(key.title(), ("Task", "Reason"), [*results[key].items()], texts=2) for key in ("skipped", "failed")),
    ]
    how = [_classifiers_table(tasks), _settings_table(results), _data_table(tasks)]
    tables, how = ([table for table in part if table.rows] for part in (tables, how))
    title = f"Evaluation of {name}"
    return Document(title, [_summary(results)], tables, list(notes.numbers), _remarks(results), how)


def _summary(results: Json) -> str:
    settings = results["settings"]
    reused = sum(bool(task.get("reused")) for task in results["tasks"].values())
    counts = {"of them earlier": reused, "skipped": len(results["skipped"]), "failed": len(results["failed"])}
    parts = [f"{len(results['tasks'])} tasks measured", *(f"{n} {words}" for words, n in counts.items() if n)]
    summary = ", ".join(parts) + ". Scores are x 100."
    if len(settings["normalizations"]) + len(settings["sizes"]) > 2:
        variant = f"{settings['normalizations'][0]}, {settings['sizes'][0]}"
        summary += f" Tables show the variant '{variant}' (normalisation, size), unless they say otherwise."
    return summary


def _remarks(results: Json) -> list[str]:
    remarks = [
        "undefined: the score is not defined, such as a correlation with predictions that are all alike. -: not "
        "measured. Numbers in brackets are notes. Layouts, and the paper they speak of: Reimers and Gurevych 2019, "
        "Sentence-BERT."
    ]
    if _has_deviations(results):
        seeds = ", ".join(map(str, results["settings"]["seeds"]))
        remarks.append(
            f"± is the standard deviation over the seeds {seeds}, where a score depends on them; intervals are of the "
            "first seed."
        )
    if any(task["intervals"] for task in results["tasks"].values()):
        remarks.append(
            f"Intervals hold 95 % of the scores of {results['settings']['bootstrap']} bootstrap resamples of the "
            "examples, with predictions as they are: they do not cover what another training of the model would change."
        )
    return remarks


def _has_deviations(results: Json) -> bool:
    return any(entry.get("deviation") for task in results["tasks"].values() for entry in task["variants"])


def _graded_table(tasks: Json, correlation: str, notes: Notes) -> Table:
    """Return a correlation of every sub-set, by every similarity."""
    tasks = {name: task for name, task in tasks.items() if graded_similarities(task)}
    similarities = list(dict.fromkeys(key for task in tasks.values() for key in graded_similarities(task)))
    rows: list[Row] = []
    for name, task in tasks.items():
        names = subsets(task, similarities[0], correlation)
        parts: list[tuple[tuple[str, ...], str, str]] = [
            (("subsets", subset), subset, str(task["counts"][subset])) for subset in names
        ]
        for key, words in AGGREGATIONS.items() if names else [("pooled", "all")]:
            parts.append(((key,), words, count(task)))
        for path, words, number in parts:
            cells: list[Cell | str] = [score_cell(task, (key, correlation, *path), notes) for key in similarities]
            cells.insert(1, interval_text(task, (similarities[0], correlation, *path)))
            rows.append((name, words, number, *cells))
    columns = ("Task", "Pairs of", "Pairs", *similarities[:1], "95 %", *similarities[1:])
    title = f"Every sub-set: {CORRELATIONS[correlation]}'s correlation by similarity"
    return Table(title, columns, rows, "x 100. Distances are negated: the nearer, the higher.", texts=2).trimmed(ABSENT)


def _trained_table(title: str, tasks: Json, notes: Notes) -> Table:
    """Return the figures of the tasks of a suite that trains something on the vectors."""
    paths = dict.fromkeys(path for task in tasks.values() for path in _leaves(first(task)["scores"]))
    rows: list[Row] = []
    for name, task in tasks.items():
        parts = [f"{part} {number}" for part, number in task["counts"].items() if part != "all"]
        cells: list[Cell | str] = []
        for path in paths:
            cells += [score_cell(task, path, notes), interval_text(task, path)]
        rows.append((name, ", ".join(parts) or count(task), *cells))
    columns = ["Task", "Examples"]
    for classifier, *rest in paths:
        columns += [f"{CLASSIFIERS.get(classifier, classifier)}, {' '.join(rest)}", "95 %"]
    caption = "x 100, but for mean squared errors (mse), which are of the scores of the data set. "
    caption += "± is the standard deviation over the seeds."
    return Table(title, columns, rows, caption, texts=2).trimmed(ABSENT)


def _other_table(tasks: Json, notes: Notes) -> Table:
    """Return tasks that no other table shows, such as speed and the labels of a head."""
    rows: list[Row] = []
    for name, task in tasks.items():
        if graded_similarities(task) or task["suite"] in (*_TRAINED, "triplets"):
            continue
        for path in _leaves(first(task)["scores"]):
            cell = score_cell(task, path, notes)
            if task["suite"] in RATES:
                cell = Cell(rate(figure(first(task)["scores"], path)), cell.marks)
            rows.append((name, " ".join(path).replace("_", " "), count(task), cell, interval_text(task, path)))
    caption = f"x 100, but for the suite {', '.join(RATES)}, whose figures stand as they are."
    return Table("Other tasks", ("Task", "Figure", "Examples", "Score", "95 %"), rows, caption, texts=2)


def _leaves(scores: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all figures."""
    if not isinstance(scores, Mapping):
        yield path
        return
    for key, inner in scores.items():
        yield from _leaves(inner, (*path, key))


def _variant_table(suite: str, tasks: Json, notes: Notes) -> Table:
    """Return the primary figure of each task of a suite by variant."""
    entries: dict[str, dict[tuple[str, str], Json]] = {}
    for name, task in tasks.items():
        entries[name] = {(entry["normalization"], entry["size"]): entry for entry in task["variants"]}
        if "tuned" in task:
            entries[name][_TUNED, first(task)["size"]] = task["tuned"]
    rows: list[Row] = []
    for variant in dict.fromkeys(chain(*entries.values())):
        cells: list[Cell | str] = []
        for name, task in tasks.items():
            entry = entries[name].get(variant)
            path = task["primary"].split(".")
            cells.append(Cell(score_text(entry, path), notes.marks(task["notes"])) if entry else ABSENT)
        rows.append((*variant, *cells))
    primary = {task["primary"] for task in tasks.values()}
    figures = sorted(primary) if len(primary) == 1 else [f"{name}: {task['primary']}" for name, task in tasks.items()]
    caption = f"x 100. {'; '.join(figures)}."
    for name, task in tasks.items():
        tuned = task.get("tuned", {})
        each = {f", {CLASSIFIERS[key]}": names for key, names in tuned.get("by_classifier", {}).items()}
        for words, names in (each or {"": tuned.get("normalization", ())}).items():
            if names:
                chosen = ", ".join(f"{key} {n}" for key, n in sorted(Counter(names).items()))
                caption += f" {_TUNED} for {name}{words}: {chosen}."
    return Table(f"Variants of the input: {suite}", ("Normalisation", "Size", *tasks), rows, caption, texts=2)


def _classifiers_table(tasks: Json) -> Table:
    protocols: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, task in tasks.items():
        protocol = tuple((key, str(value)) for key, value in task.get("protocol", {}).items())
        protocols.setdefault(protocol, []).append(name)
    rows = [(", ".join(names), part, words) for protocol, names in protocols.items() for part, words in protocol]
    return Table("How classifiers were trained", ("Tasks", "Part", "How"), rows, texts=3)


def _settings_table(results: Json) -> Table:
    """List the model, the settings that had an effect, and versions."""
    model, suites = results["model"], {task["suite"] for task in results["tasks"].values()}
    facts = {"device": "device", "width": "width of the vectors"}
    facts["encoded"] = "texts encoded in this run; others were kept from an earlier one"
    rows: list[Row] = [("model", model["name"]), ("SHA-256 of the model", model["digest"])]
    rows += [(words, str(model[key])) for key, words in facts.items() if model.get(key) is not None]
    applies = {
        "seeds": _has_deviations(results) or bool(suites & _TRAINED.keys()),
        "bootstrap": any(task["intervals"] for task in results["tasks"].values()),
        "classifiers": bool(suites & {"transfer", "probing"}),
        "any_count": bool(results["settings"].get("any_count")),
    }
    for name, value in results["settings"].items():
        if applies.get(name, True):
            listed = ", ".join(map(str, value)) or "none named" if isinstance(value, list) else str(value)
            rows.append((name.replace("_", " "), "yes" if value is True else listed))
    rows.append(("versions", ", ".join(f"{name} {value}" for name, value in results["versions"].items())))
    return Table("How it was measured", ("What", "Value"), rows, texts=2)


def _data_table(tasks: Json) -> Table:
    """Return the files that were read, by task."""
    rows: list[Row] = []
    for name, task in tasks.items():
        facts = [name, task["suite"], count(task), "reused" if task.get("reused") else "measured"]
        for file in task["data"].items():
            rows.append((*facts, *file))
            facts = [""] * len(facts)
    columns = ("Task", "Suite", "Examples", "This run", "File", "SHA-256")
    return Table("Data", columns, rows, "Reused results are of the same model, data, settings and versions.", texts=6)


def _compared(results: Sequence[Json], comparison: Json) -> Document:
    """Return the report on several models: the paper's tables, tests, ranks, correlations of tasks."""
    results = aligned(results)
    notes, names = Notes(), [model["name"] for model in comparison["models"]]
    not_shared = [(task, ", ".join(having)) for task, having in comparison["not_shared"].items()]
    tables = [
        *paper_tables(list(zip(names, results, strict=True)), notes),
        *_primary_tables(names, results, comparison, notes),
        _test_table(names, comparison),
        _rank_table(names, comparison),
        _correlation_table(names, comparison),
        Table("Not shared by all models", ("Task", "Models that have it"), not_shared, texts=2),
    ]
    paragraphs = [f"Warning: {warning}" for warning in comparison["warnings"]]
    for kind, words in RANK_KINDS.items():
        changes = comparison["rank_changes"][kind]
        if changes["compared"]:
            changed = f"{len(changes['changes'])} of {changes['compared']}"
            paragraphs.append(f"Between {words}, {changed} rankings of the models change.")
    if reason := comparison["transfer_probing"].get("reason"):
        paragraphs.append(f"Rank correlation of transfer and probing results: {reason}.")
    trained = [", ".join(result["settings"]["trained_on"]) or "none named" for result in results]
    digests = [model["digest"] for model in comparison["models"]]
    models = list(zip(names, trained, digests, strict=True))
    how = [Table("Models", ("Model", "Trained on", "SHA-256"), models, texts=3)]
    remarks = ["undefined: the score is not defined. -: not measured. Numbers in brackets are notes."]
    tables = [table for table in tables if table.rows]
    return Document("Comparison of " + ", ".join(names), paragraphs, tables, list(notes.numbers), remarks, how)


def _differences(comparison: Json) -> Iterator[Plot]:
    """Yield a plot for each model but the first, of its differences from the first."""
    first_name, *others = [model["name"] for model in comparison["models"]]
    for place, name in enumerate(others):
        tests = ((task, compared["tests"][place]) for task, compared in comparison["tasks"].items())
        rows = [
            Bar(task, test["difference"], (test["low"], test["high"])) for task, test in tests if "difference" in test
        ]
        if rows:
            description = "Difference of the figure that stands for each task, x 100, with 95 % intervals"
            yield bars(rows, "Difference x 100", f"{name} less {first_name}", description, (0.0, 0.0))


def _primary_tables(names: Sequence[str], results: Sequence[Json], comparison: Json, notes: Notes) -> Iterator[Table]:
    """Yield the primary figure of each shared task; a table for each suite."""
    for suite, tasks in by_suite(comparison["tasks"]).items():
        rows: list[Row] = []
        for place, model in enumerate(names):
            cells = []
            for name, task in tasks.items():
                text = (rate if suite in RATES else percent)(task["figures"][place])
                noted = results[place]["tasks"][name]["notes"] if text != ABSENT else ()
                cells.append(Cell(text, notes.marks(noted)))
            rows.append((model, *cells))
        caption = "; ".join(f"{name}: {task['primary']}" for name, task in tasks.items())
        yield Table(f"Shared tasks: {suite}", ("Model", *tasks), rows, f"{caption}.")


def _test_table(names: Sequence[str], comparison: Json) -> Table:
    def signed(value: float) -> str:
        return f"{round(100 * value, 2) + 0.0:+.2f}"

    rows: list[Row] = []
    for task, compared in comparison["tasks"].items():
        for name, test in zip(names[1:], compared["tests"], strict=True):
            if "reason" in test:
                rows.append((task, name, f"no test: {test['reason']}", ABSENT, ABSENT, ABSENT))
                continue
            ends = f"{signed(test['low'])} to {signed(test['high'])}"
            rows.append((task, name, compared["primary"], signed(test["difference"]), ends, f"{test['p']:.3f}"))
    caption = (
        f"Difference x 100: the model less {names[0]}, on the same examples; p: two-sided, by the paired bootstrap "
        f"with {comparison['resamples']} resamples, seed {comparison['seed']}, of the predictions that were kept: "
        "those of the first variant and, where it is random, the first seed. p is not corrected for the number of "
        "tests."
    )
    columns = ("Task", "Model", "Figure", "Difference", "95 %", "p")
    return Table(f"Every model against {names[0]}", columns, rows, caption, texts=3)


def _rank_table(names: Sequence[str], comparison: Json) -> Table:
    rows: list[Row] = []
    for kind in RANK_KINDS:
        for change in comparison["rank_changes"][kind]["changes"]:
            pairs = zip(change["before"], change["after"], strict=True)
            ranks = (str(old) if old == new else f"{old} to {new}" for old, new in pairs)
            rows.append((change["task"], change["from"], change["to"], *ranks))
    caption = "Rank 1 is the best; models with equal figures share a rank. Rankings that stay the same are not listed."
    return Table("Rank changes", ("Task", "From", "To", *names), rows, caption, texts=3)


def _correlation_table(names: Sequence[str], comparison: Json) -> Table:
    result = comparison["transfer_probing"]
    rows: list[Row] = []
    for name, each in result.get("correlations", {}).items():
        cells = []
        for column, value in each.items():
            ends = result["intervals"][name][column]
            cells.append(percent(value) + (f" ({percent(ends[0])} to {percent(ends[1])})" if ends else ""))
        rows.append((name, *cells))
    columns = list(next(iter(result.get("correlations", {}).values()), {}))
    caption = (
        f"Spearman's rank correlation x 100 over {len(names)} models: transfer tasks down, probing across. In "
        f"brackets: {result.get('interval', 'not given')}."
    )
    caption += f" Left out: {', '.join(result['left_out'])}." if result.get("left_out") else ""
    return Table("Transfer and probing", ("Transfer", *columns), rows, caption)
