"""How fast a pipeline makes vectors of the sentences of the STS benchmark."""

import platform
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from thinc.api import CupyOps, Model, get_current_ops

from .datasets import MissingData
from .errors import Errors
from .results import Measured
from .sources import PipelineSource
from .sts import BENCHMARK
from .task import Run, Task

SENTENCES = 2000  # spread evenly over those that are there
REPETITIONS = 3
BATCH_SIZE = 64
ORDERS = ("sorted", "unsorted")
UNCOUNTED = "Wordpieces cannot be counted: no pipe has a transformer of spacy-sbert."


@dataclass(frozen=True)
class SpeedTask:
    """Sentences and wordpieces a second, from text to vector, tokenising included; the median of several runs.

    "sorted": batches of sentences of like length, the longest first; "unsorted": in the order of the files. A pass over
    all sentences, which is not timed, comes before.

    SOURCE: Reimers and Gurevych 2019, section 7 (Table 7, with and without smart batching).
    """

    name: str = "speed"
    suite: str = "speed"
    depends_on: tuple[str, ...] | None = None
    sentences: int = SENTENCES
    repetitions: int = REPETITIONS
    batch_size: int = BATCH_SIZE

    def find(self, root: Path) -> list[Path]:
        places = list(BENCHMARK.places.values())
        return list(filter(None, (place.found(root) for place in places))) or [places[-1].find(root)]

    def run(self, run: Run) -> Measured:
        if run.nlp is None:
            raise MissingData(Errors.NO_PIPELINE_TO_TIME)
        rows = (row for path in self.find(run.root) for row in BENCHMARK.read(path))
        sentences = spread([text for row in rows for text in row.members], self.sentences)
        wordpieces = count_wordpieces(run.nlp, sentences, self.batch_size)
        orders = {"sorted": sorted(sentences, key=len, reverse=True), "unsorted": sentences}
        source = PipelineSource(run.nlp, batch_size=self.batch_size)
        seconds: dict[str, list[float]] = {order: [] for order in ORDERS}
        # in turn, so that whatever else the machine does falls on both
        for order in run.progress(ORDERS * self.repetitions, "speed"):
            seconds[order].append(_time(source, orders[order]))
        counts = {"sentences": len(sentences), "wordpieces": wordpieces}

        def speeds(time: float) -> dict[str, float | None]:
            return {f"{what}_per_second": None if n is None else n / time for what, n in counts.items()}

        conditions = machine()
        where = ", ".join(f"{key} {value}" for key, value in conditions.items())
        notes = [f"Median of {self.repetitions} runs in batches of {self.batch_size} on: {where}."]
        return {
            "counts": {what: n for what, n in counts.items() if n is not None},
            "primary": "sorted.sentences_per_second",
            "variants": [
                {
                    "normalization": "none",
                    "size": "own",
                    "scores": {order: speeds(median(seconds[order])) for order in ORDERS},
                }
            ],
            "intervals": {},
            "predictions": {},
            "conditions": {**conditions, "batch_size": self.batch_size, "seconds": seconds},
            "notes": notes if wordpieces is not None else [*notes, UNCOUNTED],
        }


TASKS: tuple[Task, ...] = (SpeedTask(),)


def spread(texts: Sequence[str], n: int) -> list[str]:
    """n of the texts at equal distances, in their order; all of them if there are fewer."""
    if len(texts) <= n:
        return list(texts)
    return [texts[i] for i in numpy.linspace(0, len(texts) - 1, n).astype(int)]


def count_wordpieces(nlp: Language, texts: Iterable[str], batch_size: int = BATCH_SIZE) -> int | None:
    """How many wordpieces the pipeline's transformers read of texts, without special tokens and what is cut.

    RETURNS (int): None if no pipe has a transformer of this package; pipes that share one count once.
    """

    def count(encoder: Any, docs: list[Doc]) -> int:
        texts = [span.text for spans in encoder.attrs["get_spans"](docs) for span in spans]
        return int(encoder.wordpiece_tokenizer(texts, offsets=False).n_text.sum()) if texts else 0

    models = (getattr(pipe, "model", None) for _, pipe in nlp.pipeline)
    nodes = (node for model in models if isinstance(model, Model) for node in model.walk())
    encoders = [node for node in nodes if hasattr(node, "wordpiece_tokenizer")]
    batches = minibatch(nlp.pipe(texts, batch_size=batch_size), batch_size)
    counts = [sum(count(encoder, docs) for encoder in encoders) for docs in batches]
    return sum(counts) if encoders else None


def machine() -> dict[str, str | int | None]:
    """What a speed depends on beside the pipeline: device, processor, and threads where PyTorch is in use."""
    torch = sys.modules.get("torch")
    on_gpu = isinstance(get_current_ops(), CupyOps)
    device = torch.cuda.get_device_name() if on_gpu and torch is not None else "GPU" if on_gpu else "CPU"
    return {"device": device, "cpu": _processor(), "threads": None if torch is None else torch.get_num_threads()}


def _processor() -> str:
    """The model of the processor, which Python alone does not know on Linux."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf8").splitlines() if file.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _time(source: PipelineSource, texts: Sequence[str]) -> float:
    start = time.perf_counter()
    source.encode(texts)
    return time.perf_counter() - start
