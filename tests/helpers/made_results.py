"""Results of evaluations made by hand, small enough to compute every figure of a report."""

import copy
from typing import Any

from spacy_sbert.evaluation.suite import FORMAT

OWN = {"normalization": "none", "size": "own"}
SETTINGS = {"normalizations": ["none"], "sizes": ["own"], "seeds": [1, 2], "bootstrap": 100}
SETTINGS |= {"classifiers": ["lr", "mlp"], "trained_on": [], "any_count": False}
GOLD = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def graded(
    pooled: float | None,
    *,
    subsets: dict[str, float | None] | None = None,
    suite: str = "sts",
    **more: Any,
) -> dict[str, Any]:
    """A task on graded pairs; every similarity has the same figures."""
    spearman: dict[str, Any] = {"pooled": pooled}
    counts = {"all": 6}
    if subsets:
        values = list(subsets.values())
        means = None if None in values else sum(values) / len(values)
        spearman |= {"subsets": subsets, "mean": means, "weighted_mean": means}
        counts = {**dict.fromkeys(subsets, 6 // len(subsets)), "all": 6}
    scores = {
        name: copy.deepcopy({"spearman": spearman, "pearson": spearman})
        for name in ("cosine", "manhattan", "euclidean", "dot")
    }
    names = list(subsets or ["all"])
    task = {
        "data": {"sts/file.txt": "d1"},
        "counts": counts,
        "primary": "cosine.spearman.pooled",
        "variants": [{**OWN, "scores": scores}],
        "intervals": {
            "cosine.spearman.pooled": None if pooled is None else [pooled - 0.1, pooled + 0.05]
        },
        "predictions": {
            "predicted": [value / 5 for value in GOLD],
            "gold": GOLD,
            "subset": [names[place * len(names) // 6] for place in range(6)],
        },
    }
    return {"suite": suite, **task, "notes": [], "reused": False, **more}


def classified(
    lr: float | None, mlp: float | None = 0.5, suite: str = "transfer", **more: Any
) -> dict[str, Any]:
    """A task with both classifiers."""
    task = {
        "data": {"file.txt": "d2"},
        "counts": {"test": 4},
        "primary": "lr.accuracy",
        "variants": [{**OWN, "scores": {"lr": {"accuracy": lr}, "mlp": {"accuracy": mlp}}}],
        "intervals": {},
        "predictions": {"right": "0111"},
    }
    return {"suite": suite, **task, "notes": [], "reused": False, **more}


def results(
    tasks: dict[str, Any], name: str = "en_model", digest: str = "abc", **settings: Any
) -> dict[str, Any]:
    """The results of a model."""
    return {
        "format": FORMAT,
        "model": {"name": name, "digest": digest, "encoded": 12},
        "versions": {"python": "3.11.7", "spacy": "3.8.18"},
        "settings": {**SETTINGS, **settings},
        "tasks": tasks,
        "skipped": {},
        "failed": {},
    }
