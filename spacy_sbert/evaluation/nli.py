"""The accuracy of a pipeline's classification head on labelled pairs: SNLI, MultiNLI and SICK-E."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from spacy.language import Language
from thinc.api import Model

from ..component.heads import find_heads
from .datasets import MissingData, Place, check_count
from .errors import Errors
from .examples import evaluate
from .intervals import interval, mean_of, resample
from .settings import Settings
from .sick import COUNTS, sick_place
from .task import Run, Task


@dataclass(frozen=True)
class LabelTask:
    """How often the head of an `sbert` pipe gives a pair its gold label; pairs without consensus do not count."""

    name: str
    place: Place
    format: str
    official: int
    suite: str = "nli"
    depends_on: tuple[str, ...] = ("bootstrap", "seeds", "trained_on", "any_count")

    def find(self, root: Path) -> list[Path]:
        return [self.place.find(root)]

    def _touched(self, settings: Settings) -> list[str]:
        own = self.name.lower().partition("-")[0]
        names = [name for name in settings.trained_on if name.lower().startswith((own, "allnli"))]
        return [f"The head or the encoder was trained on {', '.join(names)}."] if names else []

    def run(self, run: Run) -> dict[str, Any]:
        if run.nlp is None or not has_head(run.nlp):
            raise MissingData(Errors.NOT_CLASSIFYING)
        path = self.place.find(run.root)
        scores = evaluate(run.nlp, path, format=self.format)
        notes = check_count(scores["pairs"], self.official, path, run.settings.any_count)
        if scores["nli_acc"] is None:
            raise MissingData(Errors.NOT_CLASSIFYING)
        return {
            "counts": {"all": scores["pairs"]},
            "primary": "accuracy",
            "variants": [{"normalization": "none", "size": "own", "scores": {"accuracy": scores["nli_acc"]}}],
            "intervals": _interval(scores["nli_acc"], scores["pairs"], run.settings),
            "predictions": {},
            "notes": [*notes, *self._touched(run.settings), "By the pipeline's own head, on the vectors as they are."],
        }


def _interval(accuracy: float, n: int, settings: Settings) -> dict[str, Any]:
    if not settings.bootstrap:
        return {}
    right = numpy.arange(n) < round(accuracy * n)  # the order of the pairs is no matter
    return {"accuracy": interval(resample(mean_of(right), n, settings.bootstrap, settings.seeds[0]))}


def has_head(nlp: Language) -> bool:
    """Whether a pipe of the pipeline has a trained classification head."""
    models = [getattr(pipe, "model", None) for _, pipe in nlp.pipeline]
    return any(find_heads(model) for model in models if isinstance(model, Model))


SNLI = "https://nlp.stanford.edu/projects/snli/"
MULTINLI = "https://cims.nyu.edu/~sbowman/multinli/"


def _snli(split: str) -> Place:
    file = f"snli_1.0_{split}.jsonl"
    return Place((f"snli_1.0/{file}", file, f"snli_{split}.jsonl"), SNLI)


def _multinli(name: str) -> Place:
    file = f"multinli_1.0_{name}.jsonl"
    return Place((f"multinli_1.0/{file}", file, f"multinli_{name}.jsonl"), MULTINLI)


TASKS: tuple[Task, ...] = (
    LabelTask("SNLI-dev", _snli("dev"), "nli", 9842),
    LabelTask("SNLI-test", _snli("test"), "nli", 9824),
    LabelTask("MultiNLI-dev-matched", _multinli("dev_matched"), "nli", 9815),
    LabelTask("MultiNLI-dev-mismatched", _multinli("dev_mismatched"), "nli", 9832),
    LabelTask("MultiNLI-dev", _multinli("dev"), "nli", 9815 + 9832),  # both in one file
    LabelTask("SICK-E-trial", sick_place("trial"), "sick", COUNTS["trial"]),
    LabelTask("SICK-E-test", sick_place("test"), "sick", COUNTS["test"]),
)
