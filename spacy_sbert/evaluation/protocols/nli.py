"""Labels of pairs, such as entailment, by the head of a pipeline: SNLI, MultiNLI, SICK-E."""

from dataclasses import dataclass

import numpy
from spacy.language import Language

from ..encoders import VectorSource
from ..results import Json, mean_of
from ..scoring import evaluate
from ..task import DataFile, MissingData, Run, Settings, Task, as_they_are, check_official_count
from .sts import SICK


@dataclass(frozen=True)
class _LabelTask(Task):
    """Accuracy of the head of an `sbert` pipe on the labels of pairs.

    Pairs without consensus do not count.
    """

    name: str
    place: DataFile
    format: str
    official: int
    suite: str = "nli"

    def check(self, settings: Settings) -> None:
        """Follow any settings: the head has the vectors that it was trained on."""

    def run(self, run: Run) -> Json:
        nlp = _with_head(run.source)
        path = self.place.find(run.root)
        settings = run.settings
        scores = evaluate(nlp, path, format=self.format)
        n = scores["pairs"]
        accuracy = scores["nli_acc"]
        notes = check_official_count(n, path, self.official, any_count=settings.any_count)
        if accuracy is None:
            raise MissingData(f"The pipeline's head knows none of the labels of {path.name}.")
        about = self.name.lower().partition("-")[0]
        notes += settings.touched("The head or the encoder was trained on {}.", about, "allnli")
        # The order of the pairs does not matter
        right = numpy.arange(n) < round(accuracy * n)
        return {
            "counts": {"all": n},
            "primary": "accuracy",
            "variants": as_they_are({"accuracy": accuracy}),
            "intervals": settings.intervals({"accuracy": mean_of(right)}, n),
            "predictions": {},
            "notes": [*notes, "By the pipeline's own head, on the vectors as they are."],
        }


def _with_head(source: VectorSource | None) -> Language:
    """Return the pipeline of a source. RAISES (MissingData): if it has no trained head."""
    if source is not None and source.nlp is not None:
        for _, pipe in source.nlp.pipeline:
            if hasattr(pipe, "classify") and getattr(pipe, "labels", False):
                return source.nlp
    raise MissingData(
        "The pipeline has no trained classification head: to label pairs, train an 'sbert' pipe "
        "with spacy-sbert.SoftmaxLoss.v1 (configs/nli.cfg)."
    )


def _nli_task(name: str, corpus: str, split: str, official: int) -> _LabelTask:
    source = {
        "snli": "https://nlp.stanford.edu/projects/snli/",
        "multinli": "https://cims.nyu.edu/~sbowman/multinli/",
    }
    names = (
        f"{corpus}_1.0/{corpus}_1.0_{split}.jsonl",
        f"{corpus}_1.0_{split}.jsonl",
        f"{corpus}_{split}.jsonl",
    )
    return _LabelTask(name, DataFile(names, source[corpus]), "nli", official)


TASKS: tuple[Task, ...] = (
    _nli_task("SNLI-dev", "snli", "dev", 9842),
    _nli_task("SNLI-test", "snli", "test", 9824),
    _nli_task("MultiNLI-dev-matched", "multinli", "dev_matched", 9815),
    _nli_task("MultiNLI-dev-mismatched", "multinli", "dev_mismatched", 9832),
    # Both in one file
    _nli_task("MultiNLI-dev", "multinli", "dev", 9815 + 9832),
    *(
        _LabelTask(f"SICK-E-{split}", SICK[split].place, "sick", SICK[split].official)
        for split in ("trial", "test")
    ),
)
