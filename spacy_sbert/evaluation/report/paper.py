"""Tables laid out as those of Reimers and Gurevych 2019, Sentence-BERT; each for one model or several."""

from collections.abc import Sequence

from ...render.document import Cell, Notes, Row, Table
from ..results import ABSENT, figure
from .cells import Results, average, count, first, interval_text, rate, score_cell

Model = tuple[str, Results]  # what to call it, and its results

STS = {f"STS{year}": f"STS{year}" for year in range(12, 17)} | {"STSb": "STSb-test", "SICK-R": "SICK-R-test"}
AGGREGATIONS = {
    "pooled": "all pairs pooled",
    "mean": "mean of the sub-sets",
    "weighted_mean": "size-weighted mean of the sub-sets",
}
TRANSFER: dict[str, tuple[str, ...]] = {name: (name,) for name in ("MR", "CR", "SUBJ", "MPQA")}
TRANSFER |= {"SST": ("SST", "SST-2", "SST2"), "TREC": ("TREC",), "MRPC": ("MRPC",)}
CLASSIFIERS = {"lr": "logistic regression", "mlp": "MLP"}
DISTANCES = {"euclidean": "Euclidean", "cosine": "cosine", "manhattan": "Manhattan"}
WAYS = {"naive": "padded, as they come", "smart": "padded, sorted (smart batching)", "own": "own way"}
COSINE = "cosine"
LEARNED = {"svr": "support vector regression", "learned": "ridge regression"}


def paper_tables(models: Sequence[Model], notes: Notes) -> list[Table]:
    """The tables of the paper, without rows where no model has figures."""
    makers = (sts_table, benchmark_table, argument_table, triplet_table, transfer_table, speed_table)
    return [maker(models, notes) for maker in makers]


def sts_table(models: Sequence[Model], notes: Notes) -> Table:
    """Table 1: STS without training for it, once for each way to put sub-sets together."""
    rows: list[Row] = []
    for label, results in models:
        if not any(name in results["tasks"] for name in STS.values()):
            continue
        for aggregation, words in AGGREGATIONS.items():
            found = [(task, _aggregated(task, aggregation)) for task in map(results["tasks"].get, STS.values())]
            rows.append((label, words, *_cells(found, notes)))
    caption = (
        "Spearman's correlation of the cosine similarity with the gold scores, x 100. STSb and SICK-R are the test "
        "splits and have no sub-sets: their figure is the same in every row. Rows do not compare with one another: "
        "the paper pools all pairs, SentEval reports the means. The average is over all seven sets, or is not given."
    )
    return Table("STS (laid out as Table 1)", ("Model", "Sub-sets", *STS, "Avg."), rows, caption, texts=2)


def benchmark_table(models: Sequence[Model], notes: Notes) -> Table:
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


def argument_table(models: Sequence[Model], notes: Notes) -> Table:
    """Table 3: similarity of arguments, learned from others or not."""
    rows: list[Row] = []
    for label, results in models:
        for name, task in results["tasks"].items():
            if task["suite"] not in ("arguments", "learned"):
                continue
            for similarity in (key for key in graded_similarities(task) if key in (COSINE, *LEARNED)):
                for aggregation in ("pooled", "mean"):
                    paths = [(similarity, correlation, aggregation) for correlation in ("pearson", "spearman")]
                    cells = [score_cell(task, path, notes) for path in paths]
                    if any(cell.text != ABSENT for cell in cells):
                        words = AGGREGATIONS[aggregation].replace("sub-sets", "folds" if "folds" in name else "topics")
                        rows.append((label, name, LEARNED.get(similarity, similarity), words, count(task), *cells))
    columns = ("Model", "Task", "Similarity", "Pairs of", "Pairs", "Pearson r", "Spearman rho")
    return Table("Arguments (laid out as Table 3)", columns, rows, "Correlations x 100.", texts=4)


def triplet_table(models: Sequence[Model], notes: Notes) -> Table:
    """Table 4: how often the anchor is nearer to the positive than to the negative."""
    rows: list[Row] = []
    for label, results in models:
        for name, task in results["tasks"].items():
            if task["suite"] == "triplets":
                cells: list[Cell | str] = [score_cell(task, (distance, "accuracy"), notes) for distance in DISTANCES]
                cells.insert(1, interval_text(task, "euclidean.accuracy"))
                rows.append((label, name, count(task), *cells))
    columns = ("Model", "Task", "Triplets", "Euclidean", "95 % of Euclidean", "cosine", "Manhattan")
    caption = "Accuracy x 100; a tie is an error. The paper compares by Euclidean distance."
    return Table("Triplets (laid out as Table 4)", columns, rows, caption, texts=2)


def transfer_table(models: Sequence[Model], notes: Notes) -> Table:
    """Table 5: transfer, once for each classifier on top of the vectors."""
    rows: list[Row] = []
    for label, results in models:
        tasks = results["tasks"]
        found = [next((tasks[name] for name in names if name in tasks), None) for names in TRANSFER.values()]
        for classifier, words in CLASSIFIERS.items():
            cells = _cells([(task, (classifier, "accuracy")) for task in found], notes)
            if any(cell.text != ABSENT for cell in cells):
                rows.append((label, words, *cells))
    caption = (
        "Accuracy x 100. SST is the binary task. The average is over all seven tasks, or is not given. The paper "
        "trains logistic regression."
    )
    return Table("Transfer (laid out as Table 5)", ("Model", "Classifier", *TRANSFER, "Avg."), rows, caption, texts=2)


def speed_table(models: Sequence[Model], notes: Notes) -> Table:
    """Table 7: sentences a second, by how batches are made."""
    rows: list[Row] = []
    for label, results in models:
        for task in results["tasks"].values():
            found = [figure(first(task)["scores"], (way, "sentences_per_second")) for way in WAYS]
            if task["suite"] == "speed" and any(value != ABSENT for value in found):
                device = str(task.get("conditions", {}).get("device", ABSENT))
                marks, texts = notes.marks(task["notes"]), str(task["counts"].get("sentences", ABSENT))
                cells = [Cell(ABSENT) if value == ABSENT else Cell(rate(value), marks) for value in found]
                rows.append((label, device, texts, *cells))
    caption = "Sentences a second, from text to vector. The own way of most transformers is packed: without padding."
    columns = ("Model", "Device", "Sentences", *WAYS.values())
    return Table("Speed (laid out as Table 7)", columns, rows, caption, texts=2)


CORRELATIONS = {"spearman": "Spearman", "pearson": "Pearson"}


def graded_similarities(task: Results) -> list[str]:
    """The similarities whose correlation with gold scores a task reports, of all pairs and of sub-sets."""
    scores = first(task)["scores"]
    return [name for name in scores if figure(scores, (name, "spearman", "pooled")) != ABSENT]


def subsets(task: Results, similarity: str = COSINE, correlation: str = "spearman") -> list[str]:
    """The sub-sets that a task reports correlations of."""
    scores = first(task)["scores"]
    return [name for name in task["counts"] if figure(scores, (similarity, correlation, "subsets", name)) != ABSENT]


def _cells(found: Sequence[tuple[Results | None, Sequence[str]]], notes: Notes) -> list[Cell]:
    """The figures at paths of tasks, None for a task that was not measured, and their average."""
    cells = [Cell(ABSENT) if task is None else score_cell(task, path, notes) for task, path in found]
    values = [ABSENT if task is None else figure(first(task)["scores"], path) for task, path in found]
    return [*cells, average(cells, values)]


def _aggregated(task: Results | None, aggregation: str) -> tuple[str, ...]:
    """The path of Spearman's correlation; a set without sub-sets has only one."""
    path = (COSINE, "spearman", aggregation)
    there = task is None or figure(first(task)["scores"], path) != ABSENT
    return path if there else (COSINE, "spearman", "pooled")
