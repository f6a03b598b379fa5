"""Tables and plots of results, as those of papers and in full, and how they were measured."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from ..render.document import Cell, Table, TableRow
from ..render.plots import UNDEFINED, Bar, Plot, bars, scatter_plot
from .results import ABSENT, MSE, Figure, Json, by_suite, figure, mean, shown

# The label of each model, and its results
_Models = Sequence[tuple[str, Json]]
CLASSIFIERS = {"lr": "logistic regression", "mlp": "MLP"}
_further_tables: list[Callable[[Json], Iterable[Table]]] = []


def register_tables(make_tables: Callable[[Json], Iterable[Table]]) -> None:
    """Add tables to the report on one model, such as those of tasks of your own.

    make_tables (Callable): from results, see evaluate_suites, to tables.
    """
    if make_tables not in _further_tables:
        _further_tables.append(make_tables)


def figure_text(value: Figure, name: str = "") -> str:
    """Return a figure as tables have it: x 100 with two decimals, or why there is none.

    name (str): of the figure; a mean squared error and what is "per_second" are not multiplied.
    """
    if not isinstance(value, int | float):
        return value or UNDEFINED
    if name == MSE:
        return f"{value:.4f}"
    if name.endswith("per_second"):
        return f"{value:,.2f}"
    # No -0.00
    return f"{round(100 * value, 2) + 0.0:.2f}"


def figure_cell(task: Json | None, path: Sequence[str], entry: Json | None = None) -> Cell:
    """Return a figure of a variant, by default the first, with its deviation and notes.

    The deviation is over the seeds, if any.
    """
    if task is None:
        return Cell(ABSENT)
    entry = entry or task["variants"][0]
    text = figure_text(figure(entry["scores"], path), path[-1])
    deviation = figure(entry.get("deviation", {}), path)
    if isinstance(deviation, int | float):
        text += f" ± {figure_text(deviation, path[-1])}"
    return Cell(text, () if text == ABSENT else task["notes"])


def _interval(task: Json, path: Sequence[str]) -> str:
    ends = task["intervals"].get(".".join(path), ABSENT)
    if ends == ABSENT:
        return ABSENT
    if ends is None:
        return UNDEFINED
    return f"{figure_text(ends[0])} to {figure_text(ends[1])}"


def _count(task: Json) -> str:
    """Return how many examples a task has, by split if there is no sum."""
    counts = task["counts"]
    if "all" in counts:
        return str(counts["all"])
    return ", ".join(f"{n} {name}" for name, n in counts.items()) or ABSENT


def paper_tables(models: _Models) -> list[Table]:
    """Return Tables 1 and 5 of the Sentence-BERT paper, without models that have no figures."""
    return [_sts_table(models), _transfer_table(models)]


def _with_average(paths: Sequence[tuple[Json | None, Sequence[str]]]) -> list[Cell]:
    """Return the figures at paths of tasks, and their average with all notes.

    None stands for a task that was not measured.
    """
    cells = [figure_cell(task, path) for task, path in paths]
    values: list[Figure] = []
    for task, path in paths:
        values.append(ABSENT if task is None else figure(_scores(task), path))
    text = figure_text(mean(values))
    if text == ABSENT:
        return [*cells, Cell(text)]
    notes = dict.fromkeys(note for cell in cells for note in cell.notes)
    return [*cells, Cell(text, list(notes))]


def _sts_table(models: _Models) -> Table:
    """Table 1: STS without training for it, once for each way to put sub-sets together."""
    names = {f"STS{year}": f"STS{year}" for year in range(12, 17)}
    names |= {"STSb": "STSb-test", "SICK-R": "SICK-R-test"}
    ways = {
        "pooled": "all pairs pooled",
        "mean": "mean of the sub-sets",
        "weighted_mean": "size-weighted mean of the sub-sets",
    }
    rows: list[TableRow] = []
    for label, results in models:
        tasks = [results["tasks"].get(name) for name in names.values()]
        if not any(tasks):
            continue
        for way, words in ways.items():
            paths: list[tuple[Json | None, Sequence[str]]] = []
            for task in tasks:
                path = ("cosine", "spearman", way)
                # Without sub-sets all ways are one
                if task is not None and figure(_scores(task), path) == ABSENT:
                    path = ("cosine", "spearman", "pooled")
                paths.append((task, path))
            rows.append((label, words, *_with_average(paths)))
    caption = (
        "Spearman's correlation of the cosine similarity with the gold scores, x 100. STSb and "
        "SICK-R are the test splits and have no sub-sets: their figure is the same in every row. "
        "Rows do not compare with one another: the paper pools all pairs, SentEval reports the "
        "means. The average is over all seven sets, or is not given."
    )
    return Table(
        "STS (laid out as Table 1)", ("Model", "Sub-sets", *names, "Avg."), rows, caption, texts=2
    )


def _transfer_table(models: _Models) -> Table:
    """Table 5: transfer, once for each classifier on top of the vectors."""
    names = ("MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC")
    rows: list[TableRow] = []
    for label, results in models:
        for classifier, words in CLASSIFIERS.items():
            cells = _with_average(
                [(results["tasks"].get(name), (classifier, "accuracy")) for name in names]
            )
            if any(cell.text != ABSENT for cell in cells):
                rows.append((label, words, *cells))
    caption = (
        "Accuracy x 100. The average is over all seven tasks, or is not given. The paper trains "
        "logistic regression."
    )
    return Table(
        "Transfer (laid out as Table 5)",
        ("Model", "Classifier", *names, "Avg."),
        rows,
        caption,
        texts=2,
    )


def model_tables(results: Json) -> tuple[list[Table], list[Table]]:
    """Return the tables of the report on one model: its figures, and how they were measured."""
    tables = paper_tables([(results["model"]["name"], results)])
    tables += _figures_tables(results)
    for make_tables in _further_tables:
        tables += make_tables(results)
    for key in ("skipped", "failed"):
        tables.append(Table(key.title(), ("Task", "Reason"), [*results[key].items()], texts=2))
    return tables, [_protocol_table(results), _conditions_table(results), _data_table(results)]


def _figures_tables(results: Json) -> Iterator[Table]:
    """Yield every figure of each suite, its similarities or classifiers side by side."""
    for suite, tasks in by_suite(results["tasks"]).items():
        heads = list(dict.fromkeys(chain(*map(_scores, tasks.values()))))
        rows: list[TableRow] = []
        for name, task in tasks.items():
            for path in dict.fromkeys(leaf[1:] for leaf in _leaves(_scores(task))):
                words = " ".join(part.replace("_", " ") for part in path if part != "subsets")
                number = _count(task)
                if "subsets" in path:
                    number = str(task["counts"].get(path[-1], ABSENT))
                cells: list[Cell | str] = []
                for head in heads:
                    cells += [figure_cell(task, (head, *path)), _interval(task, (head, *path))]
                rows.append((name, words, number, *cells))
        columns = ["Task", "Figure", "Examples"]
        for head in heads:
            columns += [CLASSIFIERS.get(head, head), "95 %"]
        caption = (
            "x 100, but for mean squared errors (mse) and speeds. Distances are negated: the "
            "nearer, the higher."
        )
        table = Table(f"Every figure: {suite}", columns, rows, caption, texts=3)
        yield table.trimmed(ABSENT)


def _scores(task: Json) -> Json:
    """Return the scores that tables show: those of the first variant."""
    return task["variants"][0]["scores"]


def _leaves(scores: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all figures."""
    if not isinstance(scores, Mapping):
        yield path
        return
    for key, inner in scores.items():
        yield from _leaves(inner, (*path, key))


def _protocol_table(results: Json) -> Table:
    """Return how classifiers were trained, a row for each step of a protocol that tasks share."""
    names: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, task in results["tasks"].items():
        names.setdefault(tuple(task.get("protocol", {}).items()), []).append(name)
    rows: list[TableRow] = []
    for protocol, tasks in names.items():
        rows += [(", ".join(tasks), part, words) for part, words in protocol]
    return Table("How classifiers were trained", ("Tasks", "Part", "How"), rows, texts=3)


def _conditions_table(results: Json) -> Table:
    """Return the model, the settings, and the versions."""
    words = {
        "name": "model",
        "digest": "SHA-256 of the model",
        "device": "device",
        "reranker": "reranker",
        "width": "width of the vectors",
        "encoded": "texts encoded in this run; others were kept from an earlier one",
    }
    model = results["model"]
    rows: list[TableRow] = []
    for key, what in words.items():
        if model.get(key) is not None:
            rows.append((what, str(model[key])))
    for name, value in results["settings"].items():
        rows.append((name.replace("_", " "), shown(value)))
    versions = [f"{name} {value}" for name, value in results["versions"].items()]
    rows.append(("versions", ", ".join(versions)))
    return Table("How it was measured", ("What", "Value"), rows, texts=2)


def _data_table(results: Json) -> Table:
    """Return the files of each task, and whether its result is that of an earlier run."""
    rows: list[TableRow] = []
    for name, task in results["tasks"].items():
        reused = "reused" if task.get("reused") else "measured"
        about = (name, task["suite"], _count(task), reused)
        rows += [(*about, file, digest) for file, digest in task["data"].items()]
    columns = ("Task", "Suite", "Examples", "This run", "File", "SHA-256")
    caption = "Reused results are of the same model, data, settings and versions."
    return Table("Data", columns, rows, caption, texts=6)


# The most points of a scatter plot, and the seed that draws them from more
_POINTS = 1500
_SEED = 0


def plots(results: Json) -> Iterator[Plot]:
    """Yield the plots of the report on one model; results (dict): see evaluate_suites."""
    for name, task in results["tasks"].items():
        if task["predictions"].get("predicted"):
            yield _scatter(name, task)
    for suite, tasks in by_suite(results["tasks"]).items():
        rows = []
        for name, task in tasks.items():
            value = figure(_scores(task), task["primary"].split("."))
            if not isinstance(value, str) and not task["primary"].endswith("per_second"):
                rows.append(Bar(name, value, task["intervals"].get(task["primary"])))
        if rows:
            description = (
                "The figure that stands for each task, x 100, with 95 % intervals where they were "
                "taken"
            )
            yield bars(rows, "Score x 100", suite, description)


def _scatter(name: str, task: Json) -> Plot:
    gold = task["predictions"]["gold"]
    predicted = task["predictions"]["predicted"]
    chosen = sorted(random.Random(_SEED).sample(range(len(gold)), min(_POINTS, len(gold))))
    path = task["primary"].split(".")
    similarity = f"{path[0]} similarity"
    value = figure_text(figure(_scores(task), path))
    title = f"{name}: {similarity} against gold score, Spearman x 100: {value}"
    description = f"{len(chosen)} of {len(gold)} pairs"
    if len(chosen) < len(gold):
        description += f", drawn at random with seed {_SEED}"
    description += f"; 95 % interval of the correlation, of all of them: {_interval(task, path)}"
    if "deviation" in task["variants"][0]:
        description += ", points of the first seed"
    x = [gold[place] for place in chosen]
    y = [predicted[place] for place in chosen]
    return scatter_plot(x, y, ("gold score", similarity), title, description)
