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
from ..encoders import PipelineSource, VectorSource
from ..results import Json
from ..task import MissingData, Run, Settings, Task, as_they_are
from .sts import BENCHMARK

# sentence-transformers' default, and of the batches of precision = "reference"
_BATCH_SIZE = 32
_NAIVE = "naive"
_SMART = "smart"
_OWN = "own"
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
        found = [path for place in places if (path := place.found(root)) is not None]
        return found or [places[-1].find(root)]

    def run(self, run: Run) -> Json:
        source = run.source
        if source is None:
            raise MissingData("There is no source of vectors to time: give the task a source.")
        texts = self._texts(run.root)
        counts = {"sentences": len(texts)}
        encoders: list[Any] = []
        if isinstance(source, PipelineSource):
            source = PipelineSource(source.pipeline, batch_size=_BATCH_SIZE)
            encoders = _encoders_of(source.pipeline)
            if encoders:
                counts["wordpieces"] = _count_wordpieces(source.pipeline, texts)
        orders = {_OWN: texts}
        is_padded = any(hasattr(encoder, "shim") for encoder in encoders)
        if is_padded:
            by_length = sorted(texts, key=len, reverse=True)
            orders = {_NAIVE: texts, _SMART: by_length, _OWN: texts}
        seconds = self._seconds(source, orders, run)
        conditions = machine()
        where = ", ".join(f"{key} {value}" for key, value in conditions.items())
        notes = [f"Median of {self.repetitions} runs in batches of {_BATCH_SIZE} on: {where}."]
        if is_padded:
            notes.append(_WAYS)
        if source.learns:
            notes.append("What it learns of the corpus is learned of these sentences, in the time.")
        if not encoders:
            notes.append(
                "Wordpieces cannot be counted: no pipe has an encoder of spacy-sbert with them."
            )
        return {
            "counts": counts,
            "primary": f"{_OWN}.sentences_per_second",
            "variants": as_they_are(_rates(counts, seconds)),
            "intervals": {},
            "predictions": {},
            "conditions": {**conditions, "batch_size": _BATCH_SIZE, "seconds": seconds},
            "notes": notes,
        }

    def _texts(self, root: Path) -> list[str]:
        texts: list[str] = []
        for path in self.find(root):
            for row in sts_rows(path):
                texts += row.members
        if len(texts) <= self.sentences:
            return texts
        chosen = numpy.linspace(0, len(texts) - 1, self.sentences).astype(int)
        return [texts[i] for i in chosen]

    def _seconds(
        self, source: VectorSource, orders: dict[str, list[str]], run: Run
    ) -> dict[str, list[float]]:
        """Return the seconds of each repetition of each way."""
        for way, texts in orders.items():
            _time(source, texts[:_BATCH_SIZE], way)
        seconds: dict[str, list[float]] = {way: [] for way in orders}
        # In turn, so that whatever else the machine does falls on all
        for way in run.progress([*orders] * self.repetitions, "speed"):
            seconds[way].append(_time(source, orders[way], way))
        return seconds


def _rates(counts: dict[str, int], seconds: dict[str, list[float]]) -> Json:
    """Return sentences and wordpieces a second of each way; None of what is not counted."""
    rates: Json = {}
    for way, times in seconds.items():
        rates[way] = {}
        for what in ("sentences", "wordpieces"):
            rate = counts[what] / median(times) if what in counts else None
            rates[way][f"{what}_per_second"] = rate
    return rates


TASKS: tuple[Task, ...] = (_SpeedTask(),)


def _encoders_of(nlp: Language) -> list[Any]:
    """Return the encoders of this package in a pipeline that read wordpieces.

    One that pipes share counts once.
    """
    encoders: list[Any] = []
    for _, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        if isinstance(model, Model):
            encoders += [node for node in model.walk() if hasattr(node, "wordpiece_tokenizer")]
    return encoders


def _count_wordpieces(nlp: Language, texts: Sequence[str]) -> int:
    """Count the wordpieces that the encoders read, without special tokens and what is cut."""
    n_wordpieces = 0
    for docs in minibatch(nlp.pipe(texts, batch_size=_BATCH_SIZE), _BATCH_SIZE):
        for encoder in _encoders_of(nlp):
            spans = [span.text for of_doc in encoder.attrs["get_spans"](docs) for span in of_doc]
            if spans:
                n_text = encoder.wordpiece_tokenizer(spans, offsets=False).n_text
                n_wordpieces += int(n_text.sum())
    return n_wordpieces


def machine() -> dict[str, str | int | None]:
    """Return what a speed depends on besides the pipeline: device, processor, PyTorch's threads."""
    on_gpu = isinstance(get_current_ops(), CupyOps)
    # Python alone does not know the model of the processor on Linux
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf8").splitlines() if file.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    cpu = next(named, "") or platform.processor() or platform.machine()
    device = torch.cuda.get_device_name() if on_gpu else "CPU"
    return {"device": device, "cpu": cpu, "threads": torch.get_num_threads()}


def _time(source: VectorSource, texts: Sequence[str], way: str) -> float:
    """Return the seconds from texts to vectors.

    Other ways than the own have padded batches, precision "reference".
    """
    shims = []
    if way != _OWN and isinstance(source, PipelineSource):
        encoders = _encoders_of(source.pipeline)
        shims = [encoder.shim for encoder in encoders if hasattr(encoder, "shim")]
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
