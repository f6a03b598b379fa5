"""Speed: how fast a pipeline or a baseline makes vectors of the sentences of the STS benchmark."""

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy
import torch
from spacy.language import Language
from spacy.util import minibatch
from thinc.api import CupyOps, Model, get_current_ops

from ...readers.datasets import sts_rows
from ..encoders import PipelineSource, Source
from ..results import Json
from ..task import MissingData, Run, Settings, Task, as_they_are
from .sts import BENCHMARK

# sentence-transformers' default, and of the batches of precision = "reference"
_BATCH_SIZE = 32
_NAIVE, _SMART, _OWN = "naive", "smart", "own"
_WAYS = (
    "naive: padded batches in the order of the files, float32; smart: sorted by length, too; own: "
    "as it encodes."
)


@dataclass(frozen=True)
class _SpeedTask(Task):
    """Sentences and wordpieces a second, from text to vector, tokenization included.

    The median of several runs.

    See _WAYS. A first batch of each way is not timed. Without a transformer of this package there
    is only the own way.
    sentences: spread evenly over those that are there.
    SOURCE: Reimers and Gurevych 2019, section 7 (Table 7, with and without smart batching).
    """

    name = "speed"
    suite = "speed"
    is_kept = False
    sentences: int = 2000
    repetitions: int = 3

    def check(self, settings: Settings) -> None:
        """Follow any settings: they change nothing of how vectors are made."""

    def find(self, root: Path) -> list[Path]:
        places = [split.place for split in BENCHMARK.values()]
        return list(filter(None, (place.found(root) for place in places))) or [
            places[-1].find(root)
        ]

    def run(self, run: Run) -> Json:
        texts = [
            text for path in self.find(run.root) for row in sts_rows(path) for text in row.members
        ]
        if len(texts) > self.sentences:
            texts = [
                texts[i] for i in numpy.linspace(0, len(texts) - 1, self.sentences).astype(int)
            ]
        source = run.source
        if source is None:
            raise MissingData("There is no source of vectors to time: give the task a source.")
        encoders: list[Any] = []
        counts = {"sentences": len(texts)}
        if isinstance(source, PipelineSource):
            source = PipelineSource(source.pipeline, batch_size=_BATCH_SIZE)
            encoders = _encoders_of(source.pipeline)
            if encoders:
                counts["wordpieces"] = _count_wordpieces(source.pipeline, texts)
        is_padded = any(hasattr(encoder, "shim") for encoder in encoders)
        orders = {_NAIVE: texts, _SMART: sorted(texts, key=len, reverse=True)} if is_padded else {}
        orders[_OWN] = texts
        for way in orders:
            _time(source, texts[:_BATCH_SIZE], way)
        seconds: dict[str, list[float]] = {way: [] for way in orders}
        # in turn, so that whatever else the machine does falls on all
        for way in run.progress([*orders] * self.repetitions, "speed"):
            seconds[way].append(_time(source, orders[way], way))
        conditions = machine()
        where = ", ".join(f"{key} {value}" for key, value in conditions.items())
        notes = [f"Median of {self.repetitions} runs in batches of {_BATCH_SIZE} on: {where}."]
        notes += [_WAYS] if is_padded else []
        notes += (
            ["What it learns of the corpus is learned of these sentences, in the time."]
            if source.learns
            else []
        )
        notes += (
            []
            if encoders
            else ["Wordpieces cannot be counted: no pipe has an encoder of spacy-sbert with them."]
        )
        scores: Json = {way: {} for way in orders}
        for way, times in seconds.items():
            for what in ("sentences", "wordpieces"):
                scores[way][f"{what}_per_second"] = (
                    counts[what] / median(times) if what in counts else None
                )
        return {
            "counts": counts,
            "primary": f"{_OWN}.sentences_per_second",
            "variants": as_they_are(scores),
            "intervals": {},
            "predictions": {},
            "conditions": {**conditions, "batch_size": _BATCH_SIZE, "seconds": seconds},
            "notes": notes,
        }


TASKS: tuple[Task, ...] = (_SpeedTask(),)


def _encoders_of(nlp: Language) -> list[Any]:
    """Return the encoders of this package in a pipeline that read wordpieces.

    One that pipes share counts once.
    """
    models = (getattr(pipe, "model", None) for _, pipe in nlp.pipeline)
    nodes = (node for model in models if isinstance(model, Model) for node in model.walk())
    return [node for node in nodes if hasattr(node, "wordpiece_tokenizer")]


def _count_wordpieces(nlp: Language, texts: Sequence[str]) -> int:
    """Count the wordpieces that the pipeline's encoders read of texts, without special tokens and what is cut."""
    n = 0
    for docs in minibatch(nlp.pipe(texts, batch_size=_BATCH_SIZE), _BATCH_SIZE):
        for encoder in _encoders_of(nlp):
            rows = [span.text for spans in encoder.attrs["get_spans"](docs) for span in spans]
            n += int(encoder.wordpiece_tokenizer(rows, offsets=False).n_text.sum()) if rows else 0
    return n


def machine() -> dict[str, str | int | None]:
    """Return what a speed depends on beside the pipeline: device, processor, and threads of PyTorch."""
    on_gpu = isinstance(get_current_ops(), CupyOps)
    # Python alone does not know the model of the processor on Linux
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf8").splitlines() if file.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    cpu = next(named, "") or platform.processor() or platform.machine()
    device = torch.cuda.get_device_name() if on_gpu else "CPU"
    return {"device": device, "cpu": cpu, "threads": torch.get_num_threads()}


def _time(source: Source, texts: Sequence[str], way: str) -> float:
    """Return the seconds from texts to vectors.

    Other ways than the own have padded batches, precision "reference".
    """
    nlp = source.pipeline if way != _OWN and isinstance(source, PipelineSource) else None
    shims = (
        [] if nlp is None else [node.shim for node in _encoders_of(nlp) if hasattr(node, "shim")]
    )
    before = [shim.precision for shim in shims]
    try:
        for shim in shims:
            shim.precision = "reference"
        start = time.perf_counter()
        source.encode(texts, texts)
        return time.perf_counter() - start
    finally:
        for shim, precision in zip(shims, before, strict=True):
            shim.precision = precision
