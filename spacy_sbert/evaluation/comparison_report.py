"""Contents of the report that compares models."""

from collections.abc import Iterator, Sequence

from ..render.document import Cell, Document, Notes, Row, Table
from ..render.plots import Bar, Plot, bars
from .paper_report import RATES, ResultsByName, paper_tables, percent, rate
from .rank_stability import RANK_KINDS
from .results import ABSENT, by_suite


def contents(results: Sequence[ResultsByName], comparison: ResultsByName) -> Document:
    """Return the contents of the report on several models.

    results (Sequence of dict): see evaluate_suites. comparison (dict): see compare.
    RETURNS (Document): the paper's tables with a row for each model, tests, ranks, correlations of tasks.
    """
    notes, names = Notes(), _names(comparison)
    models = list(zip(names, results, strict=True))
    tables = [*paper_tables(models, notes), *_primary_tables(results, comparison, notes)]
    tables += [_tests(comparison), _ranks(comparison), _correlations(comparison), _not_shared(comparison)]
    remarks = ["undefined: the score is not defined. -: not measured. Numbers in brackets are notes."]
    paragraphs = [*(f"Warning: {warning}" for warning in comparison["warnings"]), *_summary(comparison)]
    tables = [table for table in tables if table.rows]
    title, how = "Comparison of " + ", ".join(names), [_models(results, comparison)]
    return Document(title, paragraphs, tables, list(notes.numbers), remarks, how)


def plots(comparison: ResultsByName) -> Iterator[Plot]:
    """Return a plot for each model but the first, of its differences from the first."""
    first, *others = _names(comparison)
    for place, name in enumerate(others):
        tests = ((task, compared["tests"][place]) for task, compared in comparison["tasks"].items())
        done = [(task, test) for task, test in tests if "difference" in test]
        rows = [Bar(task, test["difference"], (test["low"], test["high"])) for task, test in done]
        if rows:
            title = f"{name} less {first}"
            description = "Difference of the figure that stands for each task, x 100, with 95 % intervals"
            yield bars(rows, "Difference x 100", title, description, (0.0, 0.0))


def _names(comparison: ResultsByName) -> list[str]:
    return [model["name"] for model in comparison["models"]]


def _models(results: Sequence[ResultsByName], comparison: ResultsByName) -> Table:
    trained = [", ".join(one["settings"]["trained_on"]) or "none named" for one in results]
    rows = [(one["name"], data, one["digest"]) for one, data in zip(comparison["models"], trained, strict=True)]
    return Table("Models", ("Model", "Trained on", "SHA-256"), rows, texts=3)


def _primary_tables(results: Sequence[ResultsByName], comparison: ResultsByName, notes: Notes) -> list[Table]:
    """Return the primary figure of each shared task; a table for each suite."""
    tables = []
    for suite, tasks in by_suite(comparison["tasks"]).items():
        text_of = rate if suite in RATES else percent
        rows: list[Row] = []
        for place, model in enumerate(_names(comparison)):
            texts = {name: text_of(task["figures"][place]) for name, task in tasks.items()}
            noted = {name: results[place]["tasks"][name]["notes"] for name, text in texts.items() if text != ABSENT}
            rows.append((model, *(Cell(text, notes.marks(noted.get(name, ()))) for name, text in texts.items())))
        named = "; ".join(f"{name}: {task['primary']}" for name, task in tasks.items())
        tables.append(Table(f"Shared tasks: {suite}", ("Model", *tasks), rows, f"{named}."))
    return tables


def _tests(comparison: ResultsByName) -> Table:
    first, *others = _names(comparison)
    rows: list[Row] = []
    for task, compared in comparison["tasks"].items():
        for name, test in zip(others, compared["tests"], strict=True):
            if "reason" in test:
                rows.append((task, name, f"no test: {test['reason']}", ABSENT, ABSENT, ABSENT))
                continue
            ends = f"{_signed(test['low'])} to {_signed(test['high'])}"
            rows.append((task, name, compared["primary"], _signed(test["difference"]), ends, f"{test['p']:.3f}"))
    caption = (
        f"Difference x 100: the model less {first}, on the same examples; p: two-sided, by the paired bootstrap with "
        f"{comparison['resamples']} resamples, seed {comparison['seed']}, of the predictions that were kept: those of "
        "the first variant and, where it is random, the first seed. p is not corrected for the number of tests."
    )
    columns = ("Task", "Model", "Figure", "Difference", "95 %", "p")
    return Table(f"Every model against {first}", columns, rows, caption, texts=3)


def _ranks(comparison: ResultsByName) -> Table:
    rows: list[Row] = []
    for kind in RANK_KINDS:
        for change in comparison["rank_changes"][kind]["changes"]:
            pairs = zip(change["before"], change["after"], strict=True)
            ranks = (str(old) if old == new else f"{old} to {new}" for old, new in pairs)
            rows.append((change["task"], change["from"], change["to"], *ranks))
    caption = "Rank 1 is the best; models with equal figures share a rank. Rankings that stay the same are not listed."
    return Table("Rank changes", ("Task", "From", "To", *_names(comparison)), rows, caption, texts=3)


def _correlations(comparison: ResultsByName) -> Table:
    result = comparison["transfer_probing"]
    correlations, intervals = result.get("correlations", {}), result.get("intervals", {})
    columns = list(next(iter(correlations.values()), {}))

    def cell(name: str, column: str) -> str:
        text = percent(correlations[name][column])
        ends = intervals.get(name, {}).get(column)
        return text if ends is None else f"{text} ({percent(ends[0])} to {percent(ends[1])})"

    rows = [(name, *(cell(name, column) for column in columns)) for name in correlations]
    caption = (
        f"Spearman's rank correlation x 100 over {len(_names(comparison))} models: transfer tasks down, probing "
        f"across. In brackets: {result.get('interval', 'not given')}."
    )
    caption += f" Left out: {', '.join(result['left_out'])}." if result.get("left_out") else ""
    return Table("Transfer and probing", ("Transfer", *columns), rows, caption)


def _not_shared(comparison: ResultsByName) -> Table:
    rows = [(task, ", ".join(names)) for task, names in comparison["not_shared"].items()]
    return Table("Not shared by all models", ("Task", "Models that have it"), rows, texts=2)


def _summary(comparison: ResultsByName) -> list[str]:
    lines = []
    for kind, words in RANK_KINDS.items():
        changes = comparison["rank_changes"][kind]
        if changes["compared"]:
            changed = len(changes["changes"])
            lines.append(f"Between {words}, {changed} of {changes['compared']} rankings of the models change.")
    if "reason" in comparison["transfer_probing"]:
        lines.append(f"Rank correlation of transfer and probing results: {comparison['transfer_probing']['reason']}.")
    return lines


def _signed(value: float) -> str:
    return f"{round(100 * value, 2) + 0.0:+.2f}"
