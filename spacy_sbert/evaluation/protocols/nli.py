"""The accuracy of a pipeline's classification head on labelled pairs: SNLI, MultiNLI and SICK-E."""

from dataclasses import dataclass
from pathlib import Path

import numpy
from spacy.language import Language

from ...errors import Errors
from ..bootstrap import intervals_of, mean_of
from ..results import Measured
from ..scoring import evaluate
from ..task import DataFile, MissingData, Run, Task, check_count
from .sts import SICK


@dataclass(frozen=True)
class _LabelTask(Task):
    """Accuracy of the head of an `sbert` pipe on the labels of pairs; pairs without consensus do not count."""

    name: str
    place: DataFile
    format: str
    official: int
    suite: str = "nli"
    depends_on = ("bootstrap", "seeds", "trained_on", "any_count")

    def find(self, root: Path) -> list[Path]:
        return [self.place.find(root)]

    def run(self, run: Run) -> Measured:
        if run.nlp is None or not _has_head(run.nlp):
            raise MissingData(Errors.NOT_CLASSIFYING)
        path = self.place.find(run.root)
        scores = evaluate(run.nlp, path, format=self.format)
        notes = check_count(scores["pairs"], self.official, path, run.settings.any_count)
        if scores["nli_acc"] is None:
            raise MissingData(Errors.NOT_CLASSIFYING)
        settings, n, accuracy = run.settings, scores["pairs"], scores["nli_acc"]
        about = self.name.lower().partition("-")[0]
        notes += settings.touched("The head or the encoder was trained on {}.", about, "allnli")
        right = numpy.arange(n) < round(accuracy * n)  # the order of the pairs does not matter
        return {
            "counts": {"all": n},
            "primary": "accuracy",
            "variants": [{"normalization": "none", "size": "own", "scores": {"accuracy": accuracy}}],
            "intervals": intervals_of({"accuracy": mean_of(right)}, n, settings.bootstrap, settings.seeds[0]),
            "predictions": {},
            "notes": [*notes, "By the pipeline's own head, on the vectors as they are."],
        }


def _has_head(nlp: Language) -> bool:
    """Return whether a pipe of the pipeline classifies pairs, and was trained to."""
    return any(hasattr(pipe, "classify") and getattr(pipe, "labels", ()) for _, pipe in nlp.pipeline)


_SOURCES = {"snli": "https://nlp.stanford.edu/projects/snli/", "multinli": "https://cims.nyu.edu/~sbowman/multinli/"}


def _place(corpus: str, split: str) -> DataFile:
    file = f"{corpus}_1.0_{split}.jsonl"
    return DataFile((f"{corpus}_1.0/{file}", file, f"{corpus}_{split}.jsonl"), _SOURCES[corpus])


TASKS: tuple[Task, ...] = (
    _LabelTask("SNLI-dev", _place("snli", "dev"), "nli", 9842),
    _LabelTask("SNLI-test", _place("snli", "test"), "nli", 9824),
    _LabelTask("MultiNLI-dev-matched", _place("multinli", "dev_matched"), "nli", 9815),
    _LabelTask("MultiNLI-dev-mismatched", _place("multinli", "dev_mismatched"), "nli", 9832),
    _LabelTask("MultiNLI-dev", _place("multinli", "dev"), "nli", 9815 + 9832),  # both in one file
    *(_LabelTask(f"SICK-E-{split}", SICK.places[split], "sick", SICK.counts[split]) for split in ("trial", "test")),
)
