"""Reports on the results of one model, and of several side by side, as documents."""

from collections.abc import Iterator, Sequence

from ..render.document import Cell, Document, Table, TableRow
from ..render.plots import Bar, Plot, bars
from .compare import aligned
from .results import ABSENT, Json, by_suite, figure
from .tables import figure_text, model_tables, paper_tables, plots

LEGEND = "undefined: the score is not defined. -: not measured. Numbers in brackets are notes."


class Results(Json):
    """Results of an evaluation, see evaluate_suites: a dict that a notebook shows as a report.

    It prints as one line.
    """

    def __repr__(self) -> str:
        parts = []
        for name, task in self["tasks"].items():
            path = task["primary"].split(".")
            text = figure_text(figure(task["variants"][0]["scores"], path), path[-1])
            if task["suite"] == "speed":
                text += " sentences/s"
            parts.append(f"{name} {text}")
        for key in ("skipped", "failed"):
            if self[key]:
                parts.append(f"{len(self[key])} {key}")
        return f"Results({self['model']['name']}: {', '.join(parts) or 'nothing measured yet'})"

    def _repr_html_(self) -> str:
        return evaluation_report(self)._repr_html_()


def evaluation_report(results: Json) -> Document:
    """Report on one model: the paper's tables, every figure, what is missing, how it was measured.

    results (dict): see evaluate_suites.
    RETURNS (Document): the same for the same results. Scores are x 100; one that is not defined is
        "undefined".
    """
    name = results["model"]["name"]
    settings = results["settings"]
    tasks = results["tasks"]
    summary = f"{len(tasks)} tasks measured"
    counts = {
        "of them earlier": sum(bool(task.get("reused")) for task in tasks.values()),
        "skipped": len(results["skipped"]),
        "failed": len(results["failed"]),
    }
    for words, n in counts.items():
        if n:
            summary += f", {n} {words}"
    summary += ". Scores are x 100."
    seeds = ", ".join(map(str, settings["seeds"]))
    remarks = [
        f"{LEGEND} Layouts, and the paper they speak of: Reimers and Gurevych 2019, Sentence-BERT.",
        f"± is the standard deviation over the seeds {seeds}, where a score depends on them; "
        "intervals are of the first seed.",
    ]
    if settings["bootstrap"]:
        remarks.append(
            f"Intervals hold 95 % of the scores of {settings['bootstrap']} bootstrap resamples of "
            "the examples, with predictions as they are: they do not cover what another training "
            "of the model would change."
        )
    tables, details = model_tables(results)
    return Document(
        f"Evaluation of {name}",
        [summary],
        _filled(tables),
        remarks,
        _filled(details),
        list(plots(results)),
    )


def _filled(tables: Sequence[Table]) -> list[Table]:
    """Return the tables that have rows."""
    return [table for table in tables if table.rows]


def comparison_report(results: Sequence[Json], comparison: Json) -> Document:
    """Report on several models: the paper's tables, and tests.

    results (Sequence of dict): see compare. comparison (dict): what compare made of them.
    RETURNS (Document): the same for the same results.
    """
    results = aligned(results)
    names = [model["name"] for model in comparison["models"]]
    not_shared = [(task, ", ".join(having)) for task, having in comparison["not_shared"].items()]
    tables = [
        *paper_tables(list(zip(names, results, strict=True))),
        *_primary_tables(names, results, comparison),
        _test_table(names, comparison),
        Table("Not shared by all models", ("Task", "Models that have it"), not_shared, texts=2),
    ]
    paragraphs = [f"Warning: {warning}" for warning in comparison["warnings"]]
    trained = [", ".join(result["settings"]["trained_on"]) or "none named" for result in results]
    digests = [model["digest"] for model in comparison["models"]]
    rows = list(zip(names, trained, digests, strict=True))
    models = Table("Models", ("Model", "Trained on", "SHA-256"), rows, texts=3)
    title = f"Comparison of {', '.join(names)}"
    plots_of_differences = list(_differences(names, comparison))
    return Document(title, paragraphs, _filled(tables), [LEGEND], [models], plots_of_differences)


def _differences(names: Sequence[str], comparison: Json) -> Iterator[Plot]:
    """Yield a plot for each model but the first, of its differences from the first."""
    for place, name in enumerate(names[1:]):
        rows = []
        for task, compared in comparison["tasks"].items():
            test = compared["tests"][place]
            if "difference" in test:
                rows.append(Bar(task, test["difference"], (test["low"], test["high"])))
        if rows:
            description = (
                "Difference of the figure that stands for each task, x 100, with 95 % intervals"
            )
            yield bars(rows, "Difference x 100", f"{name} less {names[0]}", description, (0.0, 0.0))


def _primary_tables(
    names: Sequence[str], results: Sequence[Json], comparison: Json
) -> Iterator[Table]:
    """Yield the primary figure of each shared task; a table for each suite."""
    for suite, tasks in by_suite(comparison["tasks"]).items():
        rows: list[TableRow] = []
        for place, model in enumerate(names):
            cells = []
            for name, task in tasks.items():
                text = figure_text(task["figures"][place], task["primary"].split(".")[-1])
                notes = () if text == ABSENT else results[place]["tasks"][name]["notes"]
                cells.append(Cell(text, notes))
            rows.append((model, *cells))
        caption = "; ".join(f"{name}: {task['primary']}" for name, task in tasks.items())
        yield Table(f"Shared tasks: {suite}", ("Model", *tasks), rows, f"{caption}.")


def _test_table(names: Sequence[str], comparison: Json) -> Table:
    def signed(value: float) -> str:
        return f"{round(100 * value, 2) + 0.0:+.2f}"

    rows: list[TableRow] = []
    for task, compared in comparison["tasks"].items():
        for name, test in zip(names[1:], compared["tests"], strict=True):
            if "reason" in test:
                rows.append((task, name, f"no test: {test['reason']}", ABSENT, ABSENT, ABSENT))
                continue
            ends = f"{signed(test['low'])} to {signed(test['high'])}"
            rows.append(
                (
                    task,
                    name,
                    compared["primary"],
                    signed(test["difference"]),
                    ends,
                    f"{test['p']:.3f}",
                )
            )
    caption = (
        f"Difference x 100: the model less {names[0]}, on the same examples; p: two-sided, by the "
        f"paired bootstrap with {comparison['resamples']} resamples, seed {comparison['seed']}, of "
        "the predictions that were kept: those of the first variant and, where it is random, the "
        "first seed. p is not corrected for the number of tests."
    )
    columns = ("Task", "Model", "Figure", "Difference", "95 %", "p")
    return Table(f"Every model against {names[0]}", columns, rows, caption, texts=3)
