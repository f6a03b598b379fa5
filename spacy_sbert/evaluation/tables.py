"""Tables and plots of results, as those of papers and in full, and how they were measured."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from ..render.document import Cell, Table, TableRow
from ..render.plots import UNDEFINED, Bar, Plot, bars, scatter_plot
from .results import ABSENT, MSE, Figure, Json, by_suite, figure, mean

# What to call each, and its results
_Models = Sequence[tuple[str, Json]]
_CLASSIFIERS = {"lr": "logistic regression", "mlp": "MLP"}


def figure_text(value: Figure, name: str = "") -> str:
    """Return a figure as tables have it: x 100 with two decimals, or why there is none.

    name (str): of the figure; a mean squared error and what is "per_second" are not multiplied.
    """
    if not isinstance(value, int | float):
        return value or UNDEFINED
    if name == MSE:
        return f"{value:.4f}"
    # No -0.00
    return f"{value:,.2f}" if name.endswith("per_second") else f"{round(100 * value, 2) + 0.0:.2f}"


def _cell(task: Json | None, path: Sequence[str], entry: Json | None = None) -> Cell:
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
    return UNDEFINED if ends is None else f"{figure_text(ends[0])} to {figure_text(ends[1])}"


def _count(task: Json) -> str:
    counts = task["counts"]
    return (
        str(counts["all"])
        if "all" in counts
        else ", ".join(f"{n} {name}" for name, n in counts.items()) or ABSENT
    )


def paper_tables(models: _Models) -> list[Table]:
    """Return Tables 1 and 5 of the Sentence-BERT paper, without models that have no figures."""
    return [_sts_table(models), _transfer_table(models)]


def _with_average(paths: Sequence[tuple[Json | None, Sequence[str]]]) -> list[Cell]:
    """Return the figures at paths of tasks, and their average with all notes.

    None stands for a task that was not measured.
    """
    cells = [_cell(task, path) for task, path in paths]
    values = (
        ABSENT if task is None else figure(task["variants"][0]["scores"], path)
        for task, path in paths
    )
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
                is_there = task is None or figure(task["variants"][0]["scores"], path) != ABSENT
                paths.append((task, path if is_there else ("cosine", "spearman", "pooled")))
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
        for classifier, words in _CLASSIFIERS.items():
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
    """Return the tables of the report on one model: all figures and what is missing.

    How it was measured.
    """
    missing = (
        Table(key.title(), ("Task", "Reason"), [*results[key].items()], texts=2)
        for key in ("skipped", "failed")
    )
    paper = paper_tables([(results["model"]["name"], results)])
    return [*paper, *_figures_tables(results), *_variant_tables(results), *missing], _how_tables(
        results
    )


def _figures_tables(results: Json) -> Iterator[Table]:
    """Yield every figure of each suite, its similarities or classifiers side by side."""
    for suite, tasks in by_suite(results["tasks"]).items():
        heads = list(
            dict.fromkeys(head for task in tasks.values() for head in task["variants"][0]["scores"])
        )
        rows: list[TableRow] = []
        for name, task in tasks.items():
            for path in dict.fromkeys(leaf[1:] for leaf in _leaves(task["variants"][0]["scores"])):
                words = " ".join(part.replace("_", " ") for part in path if part != "subsets")
                number = (
                    str(task["counts"].get(path[-1], ABSENT)) if "subsets" in path else _count(task)
                )
                cells: list[Cell | str] = []
                for head in heads:
                    cells += [_cell(task, (head, *path)), _interval(task, (head, *path))]
                rows.append((name, words, number, *cells))
        columns = chain(*((_CLASSIFIERS.get(head, head), "95 %") for head in heads))
        caption = (
            "x 100, but for mean squared errors (mse) and speeds. Distances are negated: the "
            "nearer, the higher."
        )
        title = f"Every figure: {suite}"
        yield Table(
            title, ("Task", "Figure", "Examples", *columns), rows, caption, texts=3
        ).trimmed(ABSENT)


def _leaves(scores: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all figures."""
    if not isinstance(scores, Mapping):
        yield path
        return
    for key, inner in scores.items():
        yield from _leaves(inner, (*path, key))


def _tuning(name: str, tuned: Json) -> str:
    """Return which normalization was chosen in how many folds, for a caption."""
    caption = ""
    for key, chosen in tuned.get("by_classifier", {"": tuned["normalization"]}).items():
        counts = ", ".join(f"{each} {n}" for each, n in sorted(Counter(chosen).items()))
        classifier = _CLASSIFIERS.get(key)
        what = f"{name}, {classifier}" if classifier else name
        caption += f" tuned in each fold for {what}: {counts}."
    return caption


def _variant_tables(results: Json) -> Iterator[Table]:
    """Yield the primary figures of the tasks of each suite by variant, where they are several."""
    several = {name: task for name, task in results["tasks"].items() if len(task["variants"]) > 1}
    for suite, tasks in by_suite(several).items():
        entries: dict[str, dict[tuple[str, str], Json]] = {}
        primary = "; ".join(f"{name}: {task['primary']}" for name, task in tasks.items())
        caption = f"x 100. {primary}."
        for name, task in tasks.items():
            entries[name] = {}
            for entry in task["variants"]:
                entries[name][entry["normalization"], entry["size"]] = entry
            tuned = task.get("tuned")
            if tuned:
                entries[name]["tuned in each fold", task["variants"][0]["size"]] = tuned
                caption += _tuning(name, tuned)
        rows: list[TableRow] = []
        for variant in dict.fromkeys(chain(*entries.values())):
            row: list[Cell | str] = [*variant]
            for name, task in tasks.items():
                entry = entries[name].get(variant)
                cell = _cell(task, task["primary"].split("."), entry) if entry else ABSENT
                row.append(cell)
            rows.append(tuple(row))
        yield Table(
            f"Variants of the input: {suite}",
            ("Normalisation", "Size", *tasks),
            rows,
            caption,
            texts=2,
        )


def _how_tables(results: Json) -> list[Table]:
    """Return how classifiers were trained, the model, settings, versions and files."""
    model = results["model"]
    tasks = results["tasks"]
    protocols: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, task in tasks.items():
        protocols.setdefault(tuple(task.get("protocol", {}).items()), []).append(name)
    trained = [
        (", ".join(names), part, words)
        for protocol, names in protocols.items()
        for part, words in protocol
    ]
    facts = {
        "name": "model",
        "digest": "SHA-256 of the model",
        "device": "device",
        "width": "width of the vectors",
    }
    facts["encoded"] = "texts encoded in this run; others were kept from an earlier one"
    how = [(words, str(model[key])) for key, words in facts.items() if model.get(key) is not None]
    for name, value in results["settings"].items():
        text = ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
        how.append((name.replace("_", " "), text))
    how.append(
        ("versions", ", ".join(f"{name} {value}" for name, value in results["versions"].items()))
    )
    data: list[TableRow] = []
    for name, task in tasks.items():
        reused = "reused" if task.get("reused") else "measured"
        data += [
            (name, task["suite"], _count(task), reused, *file) for file in task["data"].items()
        ]
    caption = "Reused results are of the same model, data, settings and versions."
    return [
        Table("How classifiers were trained", ("Tasks", "Part", "How"), trained, texts=3),
        Table("How it was measured", ("What", "Value"), how, texts=2),
        Table(
            "Data",
            ("Task", "Suite", "Examples", "This run", "File", "SHA-256"),
            data,
            caption,
            texts=6,
        ),
    ]


# Of a scatter plot
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
            value = figure(task["variants"][0]["scores"], task["primary"].split("."))
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
    value = figure_text(figure(task["variants"][0]["scores"], path))
    title = f"{name}: {similarity} against gold score, Spearman x 100: {value}"
    drawn = f", drawn at random with seed {_SEED}" if len(chosen) < len(gold) else ""
    description = f"{len(chosen)} of {len(gold)} pairs{drawn}"
    description += f"; 95 % interval of the correlation, of all of them: {_interval(task, path)}"
    description += ", points of the first seed" if "deviation" in task["variants"][0] else ""
    x, y = ([side[place] for place in chosen] for side in (gold, predicted))
    return scatter_plot(x, y, ("gold score", similarity), title, description)
