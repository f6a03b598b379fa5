"""Results laid out as the tables and figures of papers."""

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from ..render.document import Cell, Notes, Row, Table
from ..render.plots import UNDEFINED, Bar, Box, Plot, bars, boxes, curves, scatter
from .results import ABSENT, MSE, Figure, by_suite, figure, mean
from .vector_transforms import OWN, parse_size

RATES = ("speed",)  # suites whose figures are not shares, and are printed as they are
ResultsByName = Mapping[str, Any]  # JSON: what evaluate_suites gives, or a part of it


def percent(value: Figure) -> str:
    """Return a figure x 100 with two decimals, or words where it is not defined or not measured."""
    if value is None:
        return UNDEFINED
    return value if isinstance(value, str) else f"{round(100 * value, 2) + 0.0:.2f}"  # + 0.0: no -0.00


def rate(value: Figure) -> str:
    """Return a figure as it is, such as sentences a second, with two decimals; see RATES."""
    return f"{value:,.2f}" if isinstance(value, int | float) else percent(value)


def _squared(value: Figure) -> str:
    """Return a mean squared error as it is, with four decimals."""
    return f"{value:.4f}" if isinstance(value, int | float) else percent(value)


def interval_text(task: ResultsByName, path: str) -> str:
    """Return the 95 % interval of a figure, x 100."""
    if path not in task["intervals"]:
        return ABSENT
    ends = task["intervals"][path]
    return UNDEFINED if ends is None else f"{percent(ends[0])} to {percent(ends[1])}"


def score_text(entry: ResultsByName, path: Sequence[str]) -> str:
    """Return the figure of a variant x 100, a mean squared error as it is.

    Its standard deviation over the seeds follows where there is one.
    """
    deviation, show = figure(entry.get("deviation", {}), path), _squared if path[-1] == MSE else percent
    text = show(figure(entry["scores"], path))
    return text if deviation is None or isinstance(deviation, str) else f"{text} ± {show(deviation)}"


def first(task: ResultsByName) -> ResultsByName:
    """Return the variant that tables show."""
    return task["variants"][0]


def score_cell(task: ResultsByName, path: Sequence[str], notes: Notes) -> Cell:
    """Return the figure of a task's first variant, with the notes on the task."""
    text = score_text(first(task), path)
    return Cell(text) if text == ABSENT else Cell(text, notes.marks(task["notes"]))


def _average(cells: Iterable[Cell], values: Iterable[Figure]) -> Cell:
    """Return the mean of figures, with the notes on all of them."""
    text = percent(mean(values))
    return Cell(text) if text == ABSENT else Cell(text, tuple(sorted({mark for cell in cells for mark in cell.marks})))


def count(task: ResultsByName) -> str:
    """Return how many examples a task has: all of them, or by split."""
    counts = task["counts"]
    if "all" in counts:
        return str(counts["all"])
    if len(counts) == 1:
        return str(*counts.values())
    return ", ".join(f"{name} {number}" for name, number in counts.items()) or ABSENT


def splits(task: ResultsByName) -> str:
    """Return how many examples each part of a task has."""
    parts = [f"{name} {number}" for name, number in task["counts"].items() if name != "all"]
    return ", ".join(parts) or count(task)


def variant_name(entry: ResultsByName) -> str:
    """Return the name of a variant."""
    return f"{entry['normalization']}, {entry['size']}"


_Model = tuple[str, ResultsByName]  # what to call it, and its results

_STS = {f"STS{year}": f"STS{year}" for year in range(12, 17)} | {"STSb": "STSb-test", "SICK-R": "SICK-R-test"}
AGGREGATIONS = {
    "pooled": "all pairs pooled",
    "mean": "mean of the sub-sets",
    "weighted_mean": "size-weighted mean of the sub-sets",
}
_TRANSFER: dict[str, tuple[str, ...]] = {name: (name,) for name in ("MR", "CR", "SUBJ", "MPQA")}
_TRANSFER |= {"SST": ("SST", "SST-2", "SST2"), "TREC": ("TREC",), "MRPC": ("MRPC",)}
CLASSIFIERS = {"lr": "logistic regression", "mlp": "MLP"}
_DISTANCES = {"euclidean": "Euclidean", "cosine": "cosine", "manhattan": "Manhattan"}
_WAYS = {"naive": "padded, as they come", "smart": "padded, sorted (smart batching)", "own": "own way"}
_COSINE = "cosine"
_LEARNED = {"svr": "support vector regression", "learned": "ridge regression"}


def paper_tables(models: Sequence[_Model], notes: Notes) -> list[Table]:
    """Return the tables of the paper, without rows where no model has figures."""
    makers = (_sts_table, _benchmark_table, _argument_table, _triplet_table, _transfer_table, _speed_table)
    return [maker(models, notes) for maker in makers]


def _sts_table(models: Sequence[_Model], notes: Notes) -> Table:
    """Table 1: STS without training for it, once for each way to put sub-sets together."""
    rows: list[Row] = []
    for label, results in models:
        if not any(name in results["tasks"] for name in _STS.values()):
            continue
        for aggregation, words in AGGREGATIONS.items():
            paths = [(task, _aggregated(task, aggregation)) for task in map(results["tasks"].get, _STS.values())]
            rows.append((label, words, *_cells(paths, notes)))
    caption = (
        "Spearman's correlation of the cosine similarity with the gold scores, x 100. STSb and SICK-R are the test "
        "splits and have no sub-sets: their figure is the same in every row. Rows do not compare with one another: "
        "the paper pools all pairs, SentEval reports the means. The average is over all seven sets, or is not given."
    )
    return Table("STS (laid out as Table 1)", ("Model", "Sub-sets", *_STS, "Avg."), rows, caption, texts=2)


def _benchmark_table(models: Sequence[_Model], notes: Notes) -> Table:
    """Table 2: the STS benchmark, with what the encoder was trained on."""
    rows: list[Row] = []
    for label, results in models:
        trained = ", ".join(results["settings"]["trained_on"]) or "nothing named"
        for split in ("dev", "test"):
            task = results["tasks"].get(f"STSb-{split}")
            for similarity in graded_similarities(task) if task else ():
                correlations = [score_cell(task, (similarity, name, "pooled"), notes) for name in CORRELATIONS]
                interval = interval_text(task, f"{similarity}.spearman.pooled")
                rows.append((label, trained, split, similarity, count(task), *correlations, interval))
    columns = ("Model", "Trained on", "Split", "Similarity", "Pairs", *CORRELATIONS.values(), "95 % of Spearman")
    return Table("STS benchmark (laid out as Table 2)", columns, rows, "Correlations x 100.", texts=4)


def _argument_table(models: Sequence[_Model], notes: Notes) -> Table:
    """Table 3: similarity of arguments, learned from others or not."""
    rows: list[Row] = []
    for label, results in models:
        for name, task in results["tasks"].items():
            if task["suite"] not in ("arguments", "learned"):
                continue
            for similarity in (key for key in graded_similarities(task) if key in (_COSINE, *_LEARNED)):
                for aggregation in ("pooled", "mean"):
                    paths = [(similarity, correlation, aggregation) for correlation in ("pearson", "spearman")]
                    cells = [score_cell(task, path, notes) for path in paths]
                    if any(cell.text != ABSENT for cell in cells):
                        words = AGGREGATIONS[aggregation].replace("sub-sets", "folds" if "folds" in name else "topics")
                        rows.append((label, name, _LEARNED.get(similarity, similarity), words, count(task), *cells))
    columns = ("Model", "Task", "Similarity", "Pairs of", "Pairs", "Pearson r", "Spearman rho")
    return Table("Arguments (laid out as Table 3)", columns, rows, "Correlations x 100.", texts=4)


def _triplet_table(models: Sequence[_Model], notes: Notes) -> Table:
    """Table 4: how often the anchor is nearer to the positive than to the negative."""
    rows: list[Row] = []
    for label, results in models:
        for name, task in results["tasks"].items():
            if task["suite"] == "triplets":
                cells: list[Cell | str] = [score_cell(task, (distance, "accuracy"), notes) for distance in _DISTANCES]
                cells.insert(1, interval_text(task, "euclidean.accuracy"))
                rows.append((label, name, count(task), *cells))
    columns = ("Model", "Task", "Triplets", "Euclidean", "95 % of Euclidean", "cosine", "Manhattan")
    caption = "Accuracy x 100; a tie is an error. The paper compares by Euclidean distance."
    return Table("Triplets (laid out as Table 4)", columns, rows, caption, texts=2)


def _transfer_table(models: Sequence[_Model], notes: Notes) -> Table:
    """Table 5: transfer, once for each classifier on top of the vectors."""
    rows: list[Row] = []
    for label, results in models:
        tasks = results["tasks"]
        measured = [next((tasks[name] for name in names if name in tasks), None) for names in _TRANSFER.values()]
        for classifier, words in CLASSIFIERS.items():
            cells = _cells([(task, (classifier, "accuracy")) for task in measured], notes)
            if any(cell.text != ABSENT for cell in cells):
                rows.append((label, words, *cells))
    caption = (
        "Accuracy x 100. SST is the binary task. The average is over all seven tasks, or is not given. The paper "
        "trains logistic regression."
    )
    return Table("Transfer (laid out as Table 5)", ("Model", "Classifier", *_TRANSFER, "Avg."), rows, caption, texts=2)


def _speed_table(models: Sequence[_Model], notes: Notes) -> Table:
    """Table 7: sentences a second, by how batches are made."""
    rows: list[Row] = []
    for label, results in models:
        for task in results["tasks"].values():
            values = [figure(first(task)["scores"], (way, "sentences_per_second")) for way in _WAYS]
            if task["suite"] == "speed" and any(value != ABSENT for value in values):
                device = str(task.get("conditions", {}).get("device", ABSENT))
                marks, texts = notes.marks(task["notes"]), str(task["counts"].get("sentences", ABSENT))
                cells = [Cell(ABSENT) if value == ABSENT else Cell(rate(value), marks) for value in values]
                rows.append((label, device, texts, *cells))
    caption = "Sentences a second, from text to vector. The own way of most transformers is packed: without padding."
    columns = ("Model", "Device", "Sentences", *_WAYS.values())
    return Table("Speed (laid out as Table 7)", columns, rows, caption, texts=2)


CORRELATIONS = {"spearman": "Spearman", "pearson": "Pearson"}


def graded_similarities(task: ResultsByName) -> list[str]:
    """Return the similarities whose correlation with gold scores a task reports, of all pairs and of sub-sets."""
    scores = first(task)["scores"]
    return [name for name in scores if figure(scores, (name, "spearman", "pooled")) != ABSENT]


def subsets(task: ResultsByName, similarity: str = _COSINE, correlation: str = "spearman") -> list[str]:
    """Return the sub-sets that a task reports correlations of."""
    scores = first(task)["scores"]
    return [name for name in task["counts"] if figure(scores, (similarity, correlation, "subsets", name)) != ABSENT]


def _cells(paths: Sequence[tuple[ResultsByName | None, Sequence[str]]], notes: Notes) -> list[Cell]:
    """Return the figures at paths of tasks, None for a task that was not measured, and their average."""
    cells = [Cell(ABSENT) if task is None else score_cell(task, path, notes) for task, path in paths]
    values = [ABSENT if task is None else figure(first(task)["scores"], path) for task, path in paths]
    return [*cells, _average(cells, values)]


def _aggregated(task: ResultsByName | None, aggregation: str) -> tuple[str, ...]:
    """Return the path of Spearman's correlation; a set without sub-sets has only one."""
    path = (_COSINE, "spearman", aggregation)
    is_reported = task is None or figure(first(task)["scores"], path) != ABSENT
    return path if is_reported else (_COSINE, "spearman", "pooled")


_MOST = 1500  # points of a scatter plot
_SEED = 0
_BINS = 5
_FEW = 8  # distinct gold scores that have a box each
_PERCENTILES = (5, 25, 50, 75, 95)


def figures(results: ResultsByName) -> Iterator[Plot]:
    """Yield the plots of a report.

    results (dict): see evaluate_suites.
    """
    for name, task in results["tasks"].items():
        if task["predictions"].get("predicted"):
            yield _scatter(name, task)
            yield _boxes(name, task)
            if subsets(task):
                yield _subset_bars(name, task)
    for suite, tasks in by_suite(results["tasks"]).items():
        if any(set(CLASSIFIERS) & set(first(task)["scores"]) for task in tasks.values()):
            yield from _classifier_bars(suite, tasks)
    for name, task in results["tasks"].items():
        yield from _curve(name, task)


def _scatter(name: str, task: ResultsByName) -> Plot:
    gold, predicted = task["predictions"]["gold"], task["predictions"]["predicted"]
    chosen = sorted(random.Random(_SEED).sample(range(len(gold)), min(_MOST, len(gold))))
    path, similarity = task["primary"], _similarity(task)
    correlation = percent(figure(first(task)["scores"], path.split(".")))
    title = f"{name}: {similarity} against gold score, Spearman x 100: {correlation}"
    description = f"{len(chosen)} of {len(gold)} pairs"
    if len(chosen) < len(gold):
        description += f", drawn at random with seed {_SEED}"
    description += f"; 95 % interval of the correlation, of all of them: {interval_text(task, path)}"
    description += ", points of the first seed" if "deviation" in first(task) else ""
    x, y = ([side[place] for place in chosen] for side in (gold, predicted))
    return scatter(x, y, ("gold score", similarity), title, description)


def _boxes(name: str, task: ResultsByName) -> Plot:
    gold, predicted = (numpy.array(task["predictions"][key], dtype="float64") for key in ("gold", "predicted"))
    groups = [
        Box(words, int(at.sum()), numpy.percentile(predicted[at], _PERCENTILES).tolist())
        for words, at in _bins(gold)
        if at.any()
    ]
    similarity = _similarity(task)
    title = f"{name}: {similarity} by gold score"
    description = "Boxes hold the middle half around the median, whiskers the middle 90 %; n: pairs"
    return boxes(groups, ("gold score", similarity), title, description)


def _similarity(task: ResultsByName) -> str:
    return f"{task['primary'].split('.')[0]} similarity"


def _bins(gold: numpy.ndarray) -> Iterator[tuple[str, numpy.ndarray]]:
    """Yield groups by gold score: one for each score if there are few, else of equal width."""
    distinct = numpy.unique(gold)
    if len(distinct) <= _FEW:
        yield from ((f"{value:g}", gold == value) for value in distinct)
        return
    edges = numpy.linspace(distinct[0], distinct[-1], _BINS + 1)
    for place, (low, high) in enumerate(itertools.pairwise(edges)):
        last = place == _BINS - 1
        yield f"{low:.3g} to {high:.3g}", (gold >= low) & ((gold <= high) if last else (gold < high))


def _subset_bars(name: str, task: ResultsByName) -> Plot:
    paths: list[tuple[str, tuple[str, ...]]] = [(subset, ("subsets", subset)) for subset in subsets(task)]
    paths += [("all pairs pooled", ("pooled",)), ("mean", ("mean",))]
    rows = [bar for words, path in paths for bar in _bars(words, task, (_COSINE, "spearman", *path))]
    title = f"{name}: Spearman's correlation of every sub-set"
    description = f"Cosine similarity, x 100, with 95 % intervals; {count(task)} pairs"
    return bars(rows, "Spearman x 100", title, description)


def _bars(words: str, task: ResultsByName, path: Sequence[str]) -> list[Bar]:
    """Return a bar for a figure, or none if it was not measured."""
    value = figure(first(task)["scores"], path)
    return [] if isinstance(value, str) else [Bar(words, value, task["intervals"].get(".".join(path)))]


def _classifier_bars(suite: str, tasks: Mapping[str, ResultsByName]) -> Iterator[Plot]:
    for classifier, words in CLASSIFIERS.items():
        rows = [bar for name, task in tasks.items() for bar in _bars(name, task, (classifier, "accuracy"))]
        if rows:
            description = "x 100, with 95 % intervals where they were taken"
            yield bars(rows, "Accuracy x 100", f"{suite}: accuracy of {words}", description)


def _curve(name: str, task: ResultsByName) -> Iterator[Plot]:
    """Yield a plot of score against size.

    Results do not say how wide vectors are at their own size, so those are drawn as levels.
    """
    lines: dict[str, list[tuple[float, float]]] = {}
    levels: dict[str, float] = {}
    for entry in task["variants"]:
        value = figure(entry["scores"], task["primary"].split("."))
        kind, width = parse_size(entry["size"])
        if value is None or isinstance(value, str):
            continue
        if kind == OWN:
            levels[f"own size, {entry['normalization']}"] = 100 * value
        else:
            lines.setdefault(f"{kind}, {entry['normalization']}", []).append((width, 100 * value))
    if sum(map(len, lines.values())) > 1:
        ordered = {words: sorted(points) for words, points in lines.items()}
        title = f"{name}: score against size"
        description = f"{task['primary']} x 100; pca: principal components, up: random up-projection"
        yield curves(ordered, levels, ("size of the vectors", "score x 100"), title, description)
