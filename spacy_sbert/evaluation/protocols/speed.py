"""Speed: how fast a pipeline or a baseline makes vectors of the sentences of the STS benchmark."""

import platform
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from thinc.api import CupyOps, Model, get_current_ops

from ..encoders import PipelineSource, Source
from ..results import Measured
from ..task import MissingData, Run, Task
from .sts import BENCHMARK

_SENTENCES = 2000  # spread evenly over those that are there
_REPETITIONS = 3
_BATCH_SIZE = 32  # sentence-transformers' default, and of the batches of precision = "reference"
_REFERENCE = "reference"  # the precision that has the Hugging Face model encode padded batches
_NAIVE, _SMART, _OWN = "naive", "smart", "own"
_UNCOUNTED = "Wordpieces cannot be counted: no pipe has an encoder of spacy-sbert that reads them."
_WAYS = (
    "naive: padded batches in the order of the files, through the Hugging Face model in float32; smart: the same, "
    "sorted by length; own: in the order of the files, as the pipeline encodes."
)
_FITTED = "What the baseline learns of the corpus is learned of these sentences, and in the time."


@dataclass(frozen=True)
class _SpeedTask(Task):
    """Sentences and wordpieces a second, from text to vector, tokenising included; the median of several runs.

    "own": as the pipeline or the baseline works, in the order of the files. Where the pipeline has a transformer of
    this package also "naive", padded batches in that order through the Hugging Face model, and "smart", batches of
    sentences of like length, the longest first. A first batch of each, which is not timed, comes before.

    SOURCE: Reimers and Gurevych 2019, section 7 (Table 7, with and without smart batching).
    """

    name = "speed"
    suite = "speed"
    depends_on = None
    sentences: int = _SENTENCES
    repetitions: int = _REPETITIONS

    def find(self, root: Path) -> list[Path]:
        places = list(BENCHMARK.places.values())
        return list(filter(None, (place.found(root) for place in places))) or [places[-1].find(root)]

    def run(self, run: Run) -> Measured:
        rows = (row for path in self.find(run.root) for row in BENCHMARK.read(path))
        sentences = _spread([text for row in rows for text in row.members], self.sentences)
        source = _timed_source(run)
        nlp: Language | None = getattr(source, "pipeline", None)
        wordpieces = None if nlp is None else _count_wordpieces(nlp, sentences)
        by_length = sorted(sentences, key=len, reverse=True)
        orders = {_NAIVE: sentences, _SMART: by_length, _OWN: sentences}
        ways = (_NAIVE, _SMART, _OWN) if nlp is not None and _transformers_of(nlp) else (_OWN,)
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for way in ways:
            _time(source, sentences[:_BATCH_SIZE], way)
        # in turn, so that whatever else the machine does falls on all
        for way in run.progress(ways * self.repetitions, "speed"):
            seconds[way].append(_time(source, orders[way], way))
        counts = {"sentences": len(sentences), "wordpieces": wordpieces}

        def speeds(time: float) -> dict[str, float | None]:
            return {f"{what}_per_second": None if n is None else n / time for what, n in counts.items()}

        conditions = machine()
        where = ", ".join(f"{key} {value}" for key, value in conditions.items())
        notes = [f"Median of {self.repetitions} runs in batches of {_BATCH_SIZE} on: {where}."]
        notes += [_WAYS] if len(ways) > 1 else []
        notes += [_FITTED] if source.learns else []
        scores = {way: speeds(median(times)) for way, times in seconds.items()}
        return {
            "counts": {what: n for what, n in counts.items() if n is not None},
            "primary": f"{_OWN}.sentences_per_second",
            "variants": [{"normalization": "none", "size": "own", "scores": scores}],
            "intervals": {},
            "predictions": {},
            "conditions": {**conditions, "batch_size": _BATCH_SIZE, "seconds": seconds},
            "notes": notes if wordpieces is not None else [*notes, _UNCOUNTED],
        }


TASKS: tuple[Task, ...] = (_SpeedTask(),)


def _spread(texts: Sequence[str], n: int) -> list[str]:
    """Return n of the texts at equal distances, in their order; all of them if there are fewer."""
    if len(texts) <= n:
        return list(texts)
    return [texts[i] for i in numpy.linspace(0, len(texts) - 1, n).astype(int)]


def _timed_source(run: Run) -> Source:
    """Return what is timed: the source of the vectors, with batches of _BATCH_SIZE where it is a pipeline."""
    nlp = run.nlp if run.source is None else getattr(run.source, "pipeline", None)
    if nlp is not None:
        return PipelineSource(nlp, batch_size=_BATCH_SIZE)
    if run.source is None:
        raise MissingData("There is no source of vectors to time: give the task a pipeline (nlp) or a source.")
    return run.source


def _encoders_of(nlp: Language) -> list[Any]:
    """Return the encoders of this package in a pipeline that read wordpieces; one that pipes share counts once."""
    models = (getattr(pipe, "model", None) for _, pipe in nlp.pipeline)
    nodes = (node for model in models if isinstance(model, Model) for node in model.walk())
    return [node for node in nodes if hasattr(node, "wordpiece_tokenizer")]


def _transformers_of(nlp: Language) -> list[Any]:
    """Return the transformers among them."""
    return [encoder for encoder in _encoders_of(nlp) if hasattr(encoder, "shim")]


def _count_wordpieces(nlp: Language, texts: Iterable[str], batch_size: int = _BATCH_SIZE) -> int | None:
    """Count the wordpieces that the pipeline's encoders read of texts, without special tokens and what is cut.

    RETURNS (int): None if no pipe has an encoder of this package that reads them; pipes that share one count once.
    """

    def count(encoder: Any, docs: list[Doc]) -> int:  # noqa: ANN401 (of several classes)
        texts = [span.text for spans in encoder.attrs["get_spans"](docs) for span in spans]
        return int(encoder.wordpiece_tokenizer(texts, offsets=False).n_text.sum()) if texts else 0

    encoders = _encoders_of(nlp)
    if not encoders:
        return None
    batches = minibatch(nlp.pipe(texts, batch_size=batch_size), batch_size)
    return sum(count(encoder, docs) for docs in batches for encoder in encoders)


@contextmanager
def _padded(nlp: Language) -> Iterator[None]:
    """Have the transformers of a pipeline encode as sentence-transformers does.

    Meanwhile the Hugging Face model encodes the texts of a batch, padded to the longest of them; of _BATCH_SIZE Docs at
    a time, each one text.
    """
    before = [(encoder.shim, encoder.shim.precision) for encoder in _transformers_of(nlp)]
    try:
        for shim, _ in before:
            shim.precision = _REFERENCE
        yield
    finally:
        for shim, precision in before:
            shim.precision = precision


def machine() -> dict[str, str | int | None]:
    """Return what a speed depends on beside the pipeline: device, processor, and threads where PyTorch is in use."""
    torch = sys.modules.get("torch")
    on_gpu = isinstance(get_current_ops(), CupyOps)
    device = torch.cuda.get_device_name() if on_gpu and torch is not None else "GPU" if on_gpu else "CPU"
    return {"device": device, "cpu": _processor(), "threads": None if torch is None else torch.get_num_threads()}


def _processor() -> str:
    """Return the model of the processor, which Python alone does not know on Linux."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf8").splitlines() if file.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _time(source: Source, texts: Sequence[str], way: str) -> float:
    """Return the seconds from texts to vectors."""
    pipeline = getattr(source, "pipeline", None)
    with nullcontext() if way == _OWN or pipeline is None else _padded(pipeline):
        start = time.perf_counter()
        source.encode(texts, texts)
        return time.perf_counter() - start
