"""Print the table of the comparisons from results/objectives.json: means over seeds, their spread,
and the difference.

Usage: python report.py
"""

import statistics

import numpy
from tasks import RESULTS, read_runs

MEASURES = {
    "regression": {"sts_spearman": "STSb dev Spearman"},
    "classification": {"accuracy": "SNLI dev accuracy", "sts_spearman": "STSb dev Spearman"},
    "classification_equal_head": {
        "accuracy": "SNLI dev accuracy",
        "sts_spearman": "STSb dev Spearman",
    },
    "triplet": {"accuracy": "test accuracy"},
    "ranking": {"ap": "qqp_dev average precision"},
}
SEEDS = (1, 2, 3)


def results(task: str, side: str) -> list[dict]:
    """What the seeds reached, those that were run."""
    runs = read_runs(RESULTS)
    return [runs[name] for seed in SEEDS if (name := f"{task}-{side}-{seed}") in runs]


def written(values: list[float]) -> str:
    seeds = ", ".join(f"{value:.2f}" for value in values)
    return f"{statistics.mean(values):.2f} ({seeds})"


def interval(
    ours: list[dict], theirs: list[dict], n_samples: int = 10_000
) -> tuple[float, float, float]:
    """Difference of accuracies x 100 and its 95 % interval by a paired bootstrap over the test
    triplets.

    For each triplet the fraction of a side's seeds that have it right is one observation.
    """
    right = [
        numpy.mean([[int(c) for c in result["right"]] for result in side], axis=0)
        for side in (ours, theirs)
    ]
    # (triplets,)
    difference = 100 * (right[0] - right[1])
    drawn = numpy.random.default_rng(0).integers(len(difference), size=(n_samples, len(difference)))
    low, high = numpy.quantile(difference[drawn].mean(axis=1), [0.025, 0.975])
    return float(difference.mean()), float(low), float(high)


def main() -> None:
    print(
        "| objective, measure x 100 | spacy-sbert | sentence-transformers | difference "
        "|\n|---|---|---|---|"
    )
    for task, measures in MEASURES.items():
        ours, theirs = results(task, "spacy-sbert"), results(task, "sentence-transformers")
        if not ours or not theirs:
            continue
        for key, label in measures.items():
            u, v = [result[key] for result in ours], [result[key] for result in theirs]
            difference = statistics.mean(u) - statistics.mean(v)
            print(f"| {task}, {label} | {written(u)} | {written(v)} | {difference:+.2f} |")
    ours, theirs = results("triplet", "spacy-sbert"), results("triplet", "sentence-transformers")
    start = read_runs(RESULTS)["triplet-sentence-transformers-0"]
    print(
        "\nDifference in the accuracy of triplets, 95 % interval of a paired bootstrap over the "
        "test triplets:"
    )
    print(
        "against sentence-transformers: {:+.2f} ({:+.2f} to {:+.2f})".format(
            *interval(ours, theirs)
        )
    )
    print("against no training ({:.2f}): ".format(start["accuracy"]), end="")
    print("{:+.2f} ({:+.2f} to {:+.2f})".format(*interval(ours, [start])))


if __name__ == "__main__":
    main()
