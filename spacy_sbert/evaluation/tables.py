"""Figures of results as texts, laid out as the tables of papers, and their plots."""

import itertools
import random
from collections.abc import Iterator, Sequence

import numpy

from ..render.document import Cell, Notes, Row, Table
from ..render.plots import UNDEFINED, Bar, Box, Plot, bars, boxes, curves, scatter
from .results import ABSENT, MSE, Figure, Json, by_suite, figure, mean
from .task import OWN, parse_size

RATES = ("speed",)  # suites whose figures are not shares, and are printed as they are
AGGREGATIONS = {
    "pooled": "all pairs pooled",
    "mean": "mean of the sub-sets",
    "weighted_mean": "size-weighted mean of the sub-sets",
}
CLASSIFIERS = {"lr": "logistic regression", "mlp": "MLP"}
CORRELATIONS = {"spearman": "Spearman", "pearson": "Pearson"}


def percent(value: Figure) -> str:
    """Return a figure x 100 with two decimals, or words if it is not defined or not measured."""
    if value is None:
        return UNDEFINED
    return value if isinstance(value, str) else f"{round(100 * value, 2) + 0.0:.2f}"  # + 0.0: no -0.00


def rate(value: Figure) -> str:
    """Return a figure as it is, such as sentences a second, with two decimals; see RATES."""
    return f"{value:,.2f}" if isinstance(value, int | float) else percent(value)


def _squared(value: Figure) -> str:
    return f"{value:.4f}" if isinstance(value, int | float) else percent(value)


def interval_text(task: Json, path: Sequence[str]) -> str:
    """Return the 95 % interval of the figure at a path, x 100."""
    ends = task["intervals"].get(".".join(path), ABSENT)
    if ends == ABSENT:
        return ABSENT
    return UNDEFINED if ends is None else f"{percent(ends[0])} to {percent(ends[1])}"


def score_text(entry: Json, path: Sequence[str]) -> str:
    """Return the figure of a variant x 100, a mean squared error as it is, with its deviation over the seeds if any."""
    deviation, show = figure(entry.get("deviation", {}), path), _squared if path[-1] == MSE else percent
    text = show(figure(entry["scores"], path))
    return text if deviation is None or isinstance(deviation, str) else f"{text} ± {show(deviation)}"


def first(task: Json) -> Json:
    """Return the variant that tables show."""
    return task["variants"][0]


def score_cell(task: Json, path: Sequence[str], notes: Notes) -> Cell:
    """Return the figure of a task's first variant, with the notes on the task."""
    text = score_text(first(task), path)
    return Cell(text) if text == ABSENT else Cell(text, notes.marks(task["notes"]))


def count(task: Json) -> str:
    """Return how many examples a task has: all of them, or by split."""
    counts = task["counts"]
    if "all" in counts:
        return str(counts["all"])
    if len(counts) == 1:
        return str(*counts.values())
    return ", ".join(f"{name} {number}" for name, number in counts.items()) or ABSENT


def graded_similarities(task: Json) -> list[str]:
    """Return the similarities whose correlation with gold scores a task reports, of all pairs and of sub-sets."""
    scores = first(task)["scores"]
    return [name for name in scores if figure(scores, (name, "spearman", "pooled")) != ABSENT]


def subsets(task: Json, similarity: str = "cosine", correlation: str = "spearman") -> list[str]:
    """Return the sub-sets that a task reports correlations of."""
    scores = first(task)["scores"]
    return [name for name in task["counts"] if figure(scores, (similarity, correlation, "subsets", name)) != ABSENT]


_Model = tuple[str, Json]  # what to call it, and its results

_STS = {f"STS{year}": f"STS{year}" for year in range(12, 17)} | {"STSb": "STSb-test", "SICK-R": "SICK-R-test"}
_TRANSFER: dict[str, tuple[str, ...]] = {name: (name,) for name in ("MR", "CR", "SUBJ", "MPQA")}
_TRANSFER |= {"SST": ("SST", "SST-2", "SST2"), "TREC": ("TREC",), "MRPC": ("MRPC",)}
_WAYS = {"naive": "padded, as they come", "smart": "padded, sorted (smart batching)", "own": "own way"}
_ARGUMENTS = {"cosine": "cosine", "svr": "support vector regression", "learned": "ridge regression"}


def paper_tables(models: Sequence[_Model], notes: Notes) -> list[Table]:
    """Return the tables of the Sentence-BERT paper, without rows for models that have no figures."""
    makers = (_sts_table, _benchmark_table, _argument_table, _triplet_table, _transfer_table, _speed_table)
    return [maker(models, notes) for maker in makers]


def _tasks(models: Sequence[_Model], *suites: str) -> Iterator[tuple[str, str, Json]]:
    for label, results in models:
        yield from ((label, name, task) for name, task in results["tasks"].items() if task["suite"] in suites)


def _sts_table(models: Sequence[_Model], notes: Notes) -> Table:
    """Table 1: STS without training for it, once for each way to put sub-sets together."""
    rows: list[Row] = []
    for label, results in models:
        tasks = [results["tasks"].get(name) for name in _STS.values()]
        for aggregation, words in AGGREGATIONS.items() if any(tasks) else ():
            paths: list[tuple[Json | None, Sequence[str]]] = []
            for task in tasks:
                path = ("cosine", "spearman", aggregation)
                has_subsets = task is None or figure(first(task)["scores"], path) != ABSENT
                paths.append((task, path if has_subsets else ("cosine", "spearman", "pooled")))
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
                interval = interval_text(task, (similarity, "spearman", "pooled"))
                rows.append((label, trained, split, similarity, count(task), *correlations, interval))
    columns = ("Model", "Trained on", "Split", "Similarity", "Pairs", *CORRELATIONS.values(), "95 % of Spearman")
    return Table("STS benchmark (laid out as Table 2)", columns, rows, "Correlations x 100.", texts=4)


def _argument_table(models: Sequence[_Model], notes: Notes) -> Table:
    """Table 3: similarity of arguments, learned from others or not."""
    rows: list[Row] = []
    for label, name, task in _tasks(models, "arguments", "learned"):
        similarities = [key for key in graded_similarities(task) if key in _ARGUMENTS]
        for similarity, aggregation in itertools.product(similarities, ("pooled", "mean")):
            cells = [score_cell(task, (similarity, key, aggregation), notes) for key in ("pearson", "spearman")]
            if any(cell.text != ABSENT for cell in cells):
                words = AGGREGATIONS[aggregation].replace("sub-sets", "folds" if "folds" in name else "topics")
                rows.append((label, name, _ARGUMENTS[similarity], words, count(task), *cells))
    columns = ("Model", "Task", "Similarity", "Pairs of", "Pairs", "Pearson r", "Spearman rho")
    return Table("Arguments (laid out as Table 3)", columns, rows, "Correlations x 100.", texts=4)


def _triplet_table(models: Sequence[_Model], notes: Notes) -> Table:
    """Table 4: how often the anchor is nearer to the positive than to the negative."""
    rows: list[Row] = []
    for label, name, task in _tasks(models, "triplets"):
        cells = [score_cell(task, (key, "accuracy"), notes) for key in ("euclidean", "cosine", "manhattan")]
        rows.append((label, name, count(task), cells[0], interval_text(task, ("euclidean", "accuracy")), *cells[1:]))
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
    for label, _, task in _tasks(models, *RATES):
        values = [figure(first(task)["scores"], (way, "sentences_per_second")) for way in _WAYS]
        if any(value != ABSENT for value in values):
            device = str(task.get("conditions", {}).get("device", ABSENT))
            marks, texts = notes.marks(task["notes"]), str(task["counts"].get("sentences", ABSENT))
            cells = [Cell(ABSENT) if value == ABSENT else Cell(rate(value), marks) for value in values]
            rows.append((label, device, texts, *cells))
    caption = "Sentences a second, from text to vector. The own way of most transformers is packed: without padding."
    columns = ("Model", "Device", "Sentences", *_WAYS.values())
    return Table("Speed (laid out as Table 7)", columns, rows, caption, texts=2)


def _cells(paths: Sequence[tuple[Json | None, Sequence[str]]], notes: Notes) -> list[Cell]:
    """Return the figures at paths of tasks, None for a task that was not measured, and their average with all notes."""
    cells = [Cell(ABSENT) if task is None else score_cell(task, path, notes) for task, path in paths]
    text = percent(mean(ABSENT if task is None else figure(first(task)["scores"], path) for task, path in paths))
    marks = () if text == ABSENT else tuple(sorted({mark for cell in cells for mark in cell.marks}))
    return [*cells, Cell(text, marks)]


_POINTS = 1500  # of a scatter plot
_SEED = 0
_BINS = 5
_FEW = 8  # distinct gold scores that have a box each
_PERCENTILES = (5, 25, 50, 75, 95)


def plots(results: Json) -> Iterator[Plot]:
    """Yield the plots of the report on one model; results (dict): see evaluate_suites."""
    for name, task in results["tasks"].items():
        if task["predictions"].get("predicted"):
            yield _scatter(name, task)
            yield _boxes(name, task)
            if subsets(task):
                yield _subset_bars(name, task)
    for suite, tasks in by_suite(results["tasks"]).items():
        for classifier, words in CLASSIFIERS.items():
            rows = [bar for name, task in tasks.items() for bar in _bars(name, task, (classifier, "accuracy"))]
            if rows:
                description = "x 100, with 95 % intervals where they were taken"
                yield bars(rows, "Accuracy x 100", f"{suite}: accuracy of {words}", description)
    for name, task in results["tasks"].items():
        yield from _curve(name, task)


def _similarity(task: Json) -> str:
    return f"{task['primary'].split('.')[0]} similarity"


def _scatter(name: str, task: Json) -> Plot:
    gold, predicted = task["predictions"]["gold"], task["predictions"]["predicted"]
    chosen = sorted(random.Random(_SEED).sample(range(len(gold)), min(_POINTS, len(gold))))
    path, similarity = task["primary"].split("."), _similarity(task)
    title = f"{name}: {similarity} against gold score, Spearman x 100: {percent(figure(first(task)['scores'], path))}"
    drawn = f", drawn at random with seed {_SEED}" if len(chosen) < len(gold) else ""
    description = f"{len(chosen)} of {len(gold)} pairs{drawn}"
    description += f"; 95 % interval of the correlation, of all of them: {interval_text(task, path)}"
    description += ", points of the first seed" if "deviation" in first(task) else ""
    x, y = ([side[place] for place in chosen] for side in (gold, predicted))
    return scatter(x, y, ("gold score", similarity), title, description)


def _boxes(name: str, task: Json) -> Plot:
    """Draw the similarities by gold score: a box for each score if there are few, else for ranges of equal width."""
    gold, predicted = (numpy.array(task["predictions"][key], dtype="float64") for key in ("gold", "predicted"))
    distinct = numpy.unique(gold)
    if len(distinct) <= _FEW:
        bins = [(f"{value:g}", gold == value) for value in distinct]
    else:
        edges = numpy.linspace(distinct[0], distinct[-1], _BINS + 1)
        ends = [*edges[1:-1], numpy.inf]  # the last bin holds its upper end
        bins = [
            (f"{low:.3g} to {high:.3g}", (gold >= low) & (gold < end))
            for (low, high), end in zip(itertools.pairwise(edges), ends, strict=True)
        ]
    groups = [
        Box(words, int(at.sum()), numpy.percentile(predicted[at], _PERCENTILES).tolist())
        for words, at in bins
        if at.any()
    ]
    similarity = _similarity(task)
    description = "Boxes hold the middle half around the median, whiskers the middle 90 %; n: pairs"
    return boxes(groups, ("gold score", similarity), f"{name}: {similarity} by gold score", description)


def _subset_bars(name: str, task: Json) -> Plot:
    paths: list[tuple[str, tuple[str, ...]]] = [(subset, ("subsets", subset)) for subset in subsets(task)]
    paths += [("all pairs pooled", ("pooled",)), ("mean", ("mean",))]
    rows = [bar for words, path in paths for bar in _bars(words, task, ("cosine", "spearman", *path))]
    description = f"Cosine similarity, x 100, with 95 % intervals; {count(task)} pairs"
    return bars(rows, "Spearman x 100", f"{name}: Spearman's correlation of every sub-set", description)


def _bars(words: str, task: Json, path: Sequence[str]) -> list[Bar]:
    value = figure(first(task)["scores"], path)
    return [] if isinstance(value, str) else [Bar(words, value, task["intervals"].get(".".join(path)))]


def _curve(name: str, task: Json) -> Iterator[Plot]:
    """Yield a plot of score against size; results do not tell the own width of vectors, so it is drawn as a level."""
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
        description = f"{task['primary']} x 100; pca: principal components, up: random up-projection"
        axes = ("size of the vectors", "score x 100")
        yield curves(ordered, levels, axes, f"{name}: score against size", description)
