"""The tables of supervised_sts.py: scores of files, paired tests, and scores of suites."""

from collections.abc import Collection, Sequence

from runs import Scores
from tables import DIFFERENCE, in_one, markdown, mean_and_deviation, mean_of, paired_difference

MEASURES = ("spearman", "pearson")
AGGREGATES = {"pooled": "all pairs", "mean": "mean of sub-sets"}
OVERLAP = "What was trained on STS has seen pairs of STS12 to STS17, of which the STS benchmark was made.\n"
Found = dict[str, dict[str, Scores]]  # by row and seed


def sts_table(found: Found, compared: Sequence[tuple[str, str]], learned: Collection[str]) -> str:
    """Markdown: correlations with each file, paired tests, and suites.

    found (dict): the scores by title and seed. compared (list): titles of rows, and of those that they are compared
        with. learned (list): titles of what was trained on graded pairs.
    """
    suites = _suites(found)
    note = f"\n{OVERLAP}" if suites and any(title in found for title in learned) else ""
    return "\n".join(part for part in (_files(found), _differences(found, compared), suites + note) if part)


def _files(found: Found) -> str:
    rows = []
    for title, runs in found.items():
        each = list(runs.values())
        took = mean_of([sum(run["seconds"].values()) for run in each if run["seconds"]])
        for file in each[0]["files"]:
            columns = [mean_and_deviation([run["files"][file][measure] for run in each]) for measure in MEASURES]
            cells = [part for column in columns for part in column]
            rows.append([title, file, *cells, "-" if took is None else f"{took:.0f}", len(each)])
    deviation = "standard deviation"
    scored = ["Spearman x 100", deviation, "Pearson x 100", deviation]
    return markdown(["trained on", "file", *scored, "seconds of training, all steps", "seeds"], rows)


def _differences(found: Found, compared: Sequence[tuple[str, str]]) -> str:
    """Paired t-tests of Spearman's correlation, over the seeds that two rows have in common; empty without any."""
    rows = []
    for one, other in compared:
        seeds = [seed for seed in found.get(one, {}) if seed in found.get(other, {})]
        for file in found[one][seeds[0]]["files"] if seeds else []:
            values, others = ([found[row][seed]["files"][file]["spearman"] for seed in seeds] for row in (one, other))
            rows.append([f"{one}, less {other}", file, *paired_difference(values, others), len(seeds)])
    return markdown(["compared", "file", *DIFFERENCE, "seeds"], rows) if rows else ""


def _suites(found: Found) -> str:
    """Spearman x 100 of each data set, of all its pairs and as the mean of its sub-sets; empty without any."""
    tasks = list(dict.fromkeys(task for runs in found.values() for one in runs.values() for task in one["suites"]))
    rows = []
    for title, runs in found.items():
        each = [one["suites"] for one in runs.values() if one["suites"]]
        for key, scored_by in AGGREGATES.items() if each else []:
            columns = [[suites[task][key] for suites in each] for task in tasks]
            means = [mean_of(of_seed) for of_seed in zip(*columns, strict=True)]
            rows.append([title, scored_by, *map(in_one, [*columns, means]), len(each)])
    return markdown(["trained on", "scored by", *tasks, "mean", "seeds"], rows) if rows else ""
