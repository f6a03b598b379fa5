"""How models change ranks between settings, and how transfer and probing tasks rank them: after
Eger et al. 2019.

    python benchmarks/papers/rankings.py a.json b.json c.json --output rankings.json

Results are those of `spacy sbert benchmark --output`; a report is written beside the JSON and
shown. Ranks are compared between sizes and normalizations, between both classifiers, and between
the cosine and a learned similarity. From five models on, there are rank correlations of transfer
and probing tasks.
"""

import argparse
import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from scipy import stats

from spacy_sbert.evaluation.compare import VariantKey, aligned, common_variants, compare, variant_of
from spacy_sbert.evaluation.report import LEGEND
from spacy_sbert.evaluation.results import Figure, Json, by_suite, figure, mean, read_results
from spacy_sbert.evaluation.suite import write_json
from spacy_sbert.evaluation.tables import figure_text
from spacy_sbert.files.atomic import write_text
from spacy_sbert.render.document import Document, Table, TableRow
from spacy_sbert.similarity import spearman

_MIN_MODELS = 5
# Of the suite, but not of the seven transfer tasks of Reimers and Gurevych 2019
_OTHERS = ("SST-5", "SICK-E")
_METHOD = (
    "95 % interval by Fisher's z, its variance 1.06 / (models - 3); undefined for a correlation of "
    "1 or -1"
)
_PAIRS = {"classifiers": ("lr", "mlp"), "similarities": ("cosine", "learned")}
_KINDS = {
    "variants": "normalisation and size",
    "classifiers": "logistic regression and MLP",
    "similarities": "cosine and learned similarity",
}


def rank_changes(results: Sequence[Json], shared: Sequence[str]) -> dict[str, Json]:
    """Find out how models change ranks between variants, classifiers, and cosine and learned
    similarity.

    Beside each shared task, the mean of a suite's tasks is ranked. For each of _KINDS: compared,
    how many pairs of rankings; changes, those that differ: task, from, to, before and after, the
    ranks of the models.
    SOURCE: Eger et al. 2019, Pitfalls in the Evaluation of Sentence Embeddings, section 3.
    """
    changes: dict[str, Json] = {kind: {"compared": 0, "changes": []} for kind in _KINDS}
    groups = {name: [name] for name in shared}
    for suite, names in _by_suite(results, shared).items():
        if len(names) > 1:
            groups[f"mean of {suite}"] = names
    for task, tasks in groups.items():
        first, *others = common_variants(results, tasks) or [("", "")]
        for variant in others:
            before = _figures(results, tasks, first)
            after = _figures(results, tasks, variant)
            compared = [", ".join(first), ", ".join(variant)]
            _note_change(changes["variants"], task, compared, before, after)
        for kind, (one, other) in _PAIRS.items():
            before = _figures(results, tasks, beside=one)
            after = _figures(results, tasks, beside=other)
            _note_change(changes[kind], task, [one, other], before, after)
    return changes


def _by_suite(results: Sequence[Json], shared: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of the shared tasks by suite."""
    suites = by_suite({name: results[0]["tasks"][name] for name in shared})
    return {suite: list(tasks) for suite, tasks in suites.items()}


def _note_change(
    found: Json,
    task: str,
    names: Sequence[str],
    before: Sequence[Figure],
    after: Sequence[Figure],
) -> None:
    """Note how the models change their ranks between two settings, if all have figures."""
    old = ranks(before)
    new = ranks(after)
    if old is None or new is None:
        return
    found["compared"] += 1
    if old != new:
        change = {"task": task, "from": names[0], "to": names[1], "before": old, "after": new}
        found["changes"].append(change)


def ranks(values: Sequence[Figure]) -> list[int] | None:
    """Return the ranks of figures, the highest first, equal ones sharing the best; None if one is
    missing.
    """
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values):
        return None
    return [int(rank) for rank in stats.rankdata([-value for value in numbers], method="min")]


def transfer_probing(results: Sequence[Json], shared: Sequence[str]) -> Json:
    """Correlate how models do on probing tasks with how they do on transfer tasks.

    Spearman's rank correlation over models: each of the seven transfer tasks, and their mean, with
    each probing task, and theirs. Its 95 % interval is tanh(artanh(rho) -+ 1.96 sqrt(1.06 / (n -
    3))), n models.

    results (Sequence of dict): of the models. shared (Sequence of str): tasks that all have.
    RETURNS (dict): models, how many; correlations, by transfer task and probing task, None if not
        defined; intervals, in the same shape, None too for 1 and -1, of which the formula would be
        sure; interval, how they are made; left_out, tasks of the suite that are not among the
        seven. Or reason, why there are none.
    SOURCE: Eger et al. 2019, Pitfalls in the Evaluation of Sentence Embeddings, section 3; Fieller,
        Hartley and Pearson 1957, Tests for rank correlation coefficients I.
    """
    n = len(results)
    if n < _MIN_MODELS:
        return {"reason": f"needs at least {_MIN_MODELS} models"}
    suites = _by_suite(results, shared)
    names = [name for name in suites.get("transfer", ()) if name not in _OTHERS]
    if not names or "probing" not in suites:
        return {"reason": "needs transfer and probing tasks that all models share"}
    transfer = _columns(results, names)
    probing = _columns(results, suites["probing"])
    correlations: dict[str, dict[str, float | None]] = {row: {} for row in transfer}
    intervals: dict[str, dict[str, list[float] | None]] = {row: {} for row in transfer}
    for (row, ours), (column, theirs) in product(transfer.items(), probing.items()):
        rho = _correlation(ours, theirs)
        correlations[row][column] = rho
        intervals[row][column] = _fisher_interval(rho, n)
    return {
        "models": n,
        "correlations": correlations,
        "intervals": intervals,
        "interval": _METHOD,
        "left_out": [name for name in suites["transfer"] if name in _OTHERS],
    }


def _correlation(x: Sequence[Figure], y: Sequence[Figure]) -> float | None:
    """Return Spearman's correlation of figures; None if one is not a number."""
    if all(isinstance(value, int | float) for value in (*x, *y)):
        return spearman(x, y)
    return None


def _fisher_interval(correlation: float | None, n: int) -> list[float] | None:
    # 1 up to rounding
    if correlation is None or abs(correlation) > 1 - 1e-9:
        return None
    z = math.atanh(correlation)
    half = stats.norm.ppf(0.975) * math.sqrt(1.06 / (n - 3))
    return [math.tanh(z - half), math.tanh(z + half)]


def _columns(results: Sequence[Json], names: list[str]) -> dict[str, list[Figure]]:
    """Return the figures of the models by task, and their means if tasks are several."""
    groups = {name: [name] for name in names}
    if len(names) > 1:
        groups["mean"] = names
    return {name: _figures(results, group) for name, group in groups.items()}


def _figures(
    results: Sequence[Json],
    names: Sequence[str],
    variant: VariantKey | None = None,
    beside: str | None = None,
) -> list[Figure]:
    """Return the primary figure of each model, the mean if tasks are several.

    variant: by default a model's first. beside (str): another classifier or similarity than the
        primary figure's.
    """

    def primary(task: Json) -> Figure:
        entry = next(entry for entry in task["variants"] if variant in (None, variant_of(entry)))
        first, *rest = task["primary"].split(".")
        return figure(entry["scores"], [beside or first, *rest])

    return [mean(primary(model["tasks"][name]) for name in names) for model in results]


def _rank_table(names: Sequence[str], comparison: Json) -> Table:
    rows: list[TableRow] = []
    for kind in _KINDS:
        for change in comparison["rank_changes"][kind]["changes"]:
            pairs = zip(change["before"], change["after"], strict=True)
            ranks = (str(old) if old == new else f"{old} to {new}" for old, new in pairs)
            rows.append((change["task"], change["from"], change["to"], *ranks))
    caption = (
        "Rank 1 is the best; models with equal figures share a rank. Rankings that stay the same "
        "are not listed."
    )
    return Table("Rank changes", ("Task", "From", "To", *names), rows, caption, texts=3)


def _correlation_table(found: Json) -> Table:
    if "reason" in found:
        return Table("Transfer and probing", ("Transfer",), [])
    rows: list[TableRow] = []
    for name, each in found["correlations"].items():
        cells = []
        for column, value in each.items():
            ends = found["intervals"][name][column]
            text = figure_text(value)
            if ends:
                text += f" ({figure_text(ends[0])} to {figure_text(ends[1])})"
            cells.append(text)
        rows.append((name, *cells))
    caption = (
        f"Spearman's rank correlation x 100 over {found['models']} models: transfer tasks down, "
        f"probing across. In brackets: {found['interval']}."
    )
    if found["left_out"]:
        caption += f" Left out: {', '.join(found['left_out'])}."
    probing = next(iter(found["correlations"].values()))
    return Table("Transfer and probing", ("Transfer", *probing), rows, caption)


def rankings(results: Sequence[Json], files: Sequence[str]) -> Json:
    """Compare how models are ranked.

    results (Sequence of dict): two or more. files (Sequence of str): what tells models of one name
        apart.
    RETURNS (dict): JSON: models, their names; rank_changes and transfer_probing, see there.
    """
    found = compare(results, resamples=1, files=files)
    together = aligned(results)
    shared = list(found["tasks"])
    return {
        "models": [model["name"] for model in found["models"]],
        "rank_changes": rank_changes(together, shared),
        "transfer_probing": transfer_probing(together, shared),
    }


def report(found: Json) -> Document:
    """The tables of rankings."""
    paragraphs = []
    for kind, words in _KINDS.items():
        changes = found["rank_changes"][kind]
        if changes["compared"]:
            changed = f"{len(changes['changes'])} of {changes['compared']}"
            paragraphs.append(f"Between {words}, {changed} rankings of the models change.")
    reason = found["transfer_probing"].get("reason")
    if reason:
        paragraphs.append(f"Rank correlation of transfer and probing results: {reason}.")
    tables = [_rank_table(found["models"], found), _correlation_table(found["transfer_probing"])]
    title = f"Rankings of {', '.join(found['models'])}"
    return Document(title, paragraphs, [table for table in tables if table.rows], [LEGEND])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    found = rankings(
        [read_results(path) for path in args.results], [str(path) for path in args.results]
    )
    text = report(found).markdown()
    write_json(args.output, found)
    write_text(args.output.with_suffix(".md"), text)
    print(text)


if __name__ == "__main__":
    main()
