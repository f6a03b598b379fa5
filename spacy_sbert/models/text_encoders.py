"""Encode texts into a matrix without Docs, in this process or in several."""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain, cycle, islice
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Protocol

import numpy
import torch
from spacy.tokens import Doc
from spacy.util import minibatch
from srsly import cloudpickle
from thinc.api import CupyOps, Model, require_gpu
from thinc.util import to_numpy

from ..errors import Errors
from ..progress import progress_bar
from ..validation import Text, checked_texts
from .encoded_docs import (
    DEFAULT_SETTINGS,
    Encoded,
    EncodeSettings,
    ProgressCallback,
    TruncationCounter,
)
from .engine.backend import GPU_BUDGET
from .engine.concurrency import map_ahead
from .engine.packing import CPU_BUDGET
from .fingerprint import encoder_digest
from .pooling import SentencePooling
from .private_attributes import is_curated
from .sbert_config import REFERENCE, SentenceTransformersConfig
from .shim import TransformerShim
from .span_batch import EncodedSpans, SpanBatch, TokenEmbeddings
from .spans import SpansByDoc
from .surroundings import undisturbed
from .tokenization import TokenizedBatch


def _no_progress(_: int) -> None:
    """Show no progress."""


class TextEncoder:
    """From texts to vectors: tokenize, in any thread, then encode.

    settings: in place of those of the config.
    """

    # The most wordpieces of a text; None for no limit
    max_length: int | None = None

    def __init__(
        self, model: Any, pooling: SentencePooling, settings: EncodeSettings = DEFAULT_SETTINGS
    ):
        self.model = model
        self.pooling = pooling
        self.settings = settings

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def name(self) -> str:
        """The name of the encoder, for messages."""
        return self.model.name

    @property
    def folder(self) -> SentenceTransformersConfig | None:
        """What the encoder's folder specifies; None if it is not loaded, or has no folder."""
        return None

    @property
    def width(self) -> int:
        """The number of dimensions of the vectors; loads the encoder."""
        self.load()
        return self.pooling.width(
            self.model.width, self.model.folder, truncate_dim=self.settings.truncate_dim
        )

    def digest(self) -> str:
        """Return a SHA-256 of everything that the vectors depend on, see encoder_digest."""
        self.load()
        return encoder_digest(self.model, self.pooling)

    def load(self) -> None:
        """Load the weights, unless they are loaded."""
        self.model.load()

    def tokenize(self, texts: list[str]) -> TokenizedBatch | list[Doc]:
        """Return the wordpieces of texts; Docs if tokens are encoded, as by a `tok2vec`."""
        raise NotImplementedError

    def encode(self, units: Any, moved: ProgressCallback = _no_progress) -> Encoded:
        """Return the vectors of texts, on the CPU, and how many were cut.

        moved: takes how many more texts are done.
        """
        raise NotImplementedError

    def check_calibrated(self) -> None:
        """Check that vectors do not depend on which texts come first.

        RAISES (ValueError): if they do.
        """

    def set_precision(self, precision: str, gpu_ids: Sequence[int]) -> None:
        """Set the precision; gpu_ids (Sequence[int]): GPUs it will work on, for "auto"."""
        if precision not in ("float32", "auto"):
            raise ValueError(
                f"Cannot encode in precision = '{precision}' with a token-to-vector model, a table "
                "of wordpieces or a curated_transformer: it works in float32. Leave precision out."
            )

    def budget(self, given: int, gpu_ids: Sequence[int]) -> int:
        """Return the most wordpieces in a pass, whatever the number of threads.

        0 for a window of texts at once.

        given (int): as the user set it; 0 for the setting of the encoder, or a number that suits
            the device.
        """
        if given:
            raise ValueError(
                f"max_batch_items = {given} has no meaning for a token-to-vector model, a table of "
                "wordpieces or a curated_transformer, which takes a window of texts at once: leave "
                "it out, or set window."
            )
        return 0

    def device_name(self, gpu_ids: Sequence[int]) -> str:
        """Return the name of the GPU that computes, or the capability of the CPU."""
        if gpu_ids:
            return torch.cuda.get_device_name(gpu_ids[0])
        if isinstance(self.pooling.ops, CupyOps):
            return torch.cuda.get_device_name("cuda")
        return f"CPU, {torch.backends.cpu.get_cpu_capability()}"

    def to_gpu(self, gpu_id: int) -> None:
        """Move the encoder to a GPU."""
        self.model.to_gpu(gpu_id)
        self.pooling.to_gpu(gpu_id)

    def _pooled(self, batch: EncodedSpans) -> numpy.ndarray:
        vectors, _ = self.pooling.pool_rows(batch, False, self.settings)
        return to_numpy(vectors)


class TransformerTextEncoder(TextEncoder):
    """From texts to vectors by a SpanTransformer, `model`."""

    @property
    def shim(self) -> TransformerShim:
        """The shim of the transformer, whose weights are loaded."""
        return self.model.load()

    @property
    def name(self) -> str:
        return self.model.shim.load().name

    @property
    def folder(self) -> SentenceTransformersConfig | None:
        return self.model.folder

    @property
    def max_length(self) -> int | None:  # type: ignore[override]
        return self.shim.load().max_length

    def calibrate(self, texts: Iterable[Text]) -> None:
        """Find the ranges by which "int8" rounds, see SentenceBert.calibrate."""
        checked = list(checked_texts(texts))
        if not checked:
            raise ValueError(
                "There are no texts to calibrate on. Give a few hundred representative texts."
            )
        self.model.shim.calibrate(self.tokenize(checked))

    def check_calibrated(self) -> None:
        shim = self.shim
        if shim.backends.needs_calibration(shim.weights, shim.precision):
            raise ValueError(
                "precision = 'int8' rounds by ranges that were not found yet, and vectors would "
                "depend on which texts come first. Find them beforehand, on a few hundred texts, "
                "with sbert.calibrate(texts) and nlp.to_disk, or choose another precision."
            )

    def set_precision(self, precision: str, gpu_ids: Sequence[int]) -> None:
        shim = self.shim
        device = "cuda" if gpu_ids else shim.device.type
        shim.set_precision(precision, device)

    def budget(self, given: int, gpu_ids: Sequence[int]) -> int:
        shim = self.shim
        asked = given or shim.max_batch_items
        if asked and shim.precision == REFERENCE:
            raise ValueError(Errors.REFERENCE_BATCH.format(given=asked))
        if asked:
            return asked
        if gpu_ids or shim.device.type != "cpu":
            return GPU_BUDGET
        return CPU_BUDGET

    def device_name(self, gpu_ids: Sequence[int]) -> str:
        device = self.shim.device
        if gpu_ids or device.type == "cpu":
            return super().device_name(gpu_ids)
        return torch.cuda.get_device_name(device)

    def tokenize(self, texts: list[str]) -> TokenizedBatch:
        prompt = self.model.prompt(self.settings.prompt)
        return self.model.wordpiece_tokenizer(texts, offsets=False, prompt=prompt)

    @undisturbed()
    def encode(self, units: TokenizedBatch, moved: ProgressCallback = _no_progress) -> Encoded:
        rows = SpanBatch.of_texts(units, self.model.shim.load())
        batch = EncodedSpans(rows, [], units.lengths, n_lead=units.n_lead)
        with self.model.states(units, False) as (states, batch.backprop):
            batch.states = states
            if moved is not _no_progress:
                batch.states = _counted(states, rows, moved)
            return self._pooled(batch), int((rows.n_cut > 0).sum())


def _counted(
    passes: Iterable[TokenEmbeddings], rows: SpanBatch, moved: ProgressCallback
) -> Iterator[TokenEmbeddings]:
    """Yield the passes, and tell how many more texts each of them is the first of."""
    is_first = numpy.diff(rows.row_of, prepend=-1) > 0
    for states in passes:
        yield states
        moved(int(is_first[states.windows].sum()))


class StaticTextEncoder(TextEncoder):
    """From texts to vectors by a StaticEmbedding, `model`, which cuts no text."""

    def tokenize(self, texts: list[str]) -> TokenizedBatch:
        return self.model.wordpiece_tokenizer(texts, offsets=False)

    @undisturbed()
    def encode(self, units: TokenizedBatch, moved: ProgressCallback = _no_progress) -> Encoded:
        batch = EncodedSpans(SpanBatch.of_texts(units, self.model.settings), [], units.lengths)
        batch.states, batch.backprop = self.model.states(units, False)
        vectors = self._pooled(batch)
        moved(len(vectors))
        return vectors, 0


class _ReadsSpans(Protocol):
    """An encoder of tokens that reads given rows."""

    def read_spans(self, docs: list[Doc], spans: SpansByDoc) -> EncodedSpans: ...


class Tok2VecTextEncoder(TextEncoder):
    """From texts to vectors by a model of tokens, or of wordpieces of whole Docs.

    It cuts no text.

    model (Model): the layer that encodes Docs. encoder: reads the rows of its output.
    tokenizer (Callable): nlp.tokenizer. upstream (Model): of the component that it listens to.
    """

    def __init__(
        self,
        model: Model,
        pooling: SentencePooling,
        settings: EncodeSettings,
        encoder: _ReadsSpans,
        *,
        tokenizer: Callable[[str], Doc],
        upstream: Model | None,
    ):
        super().__init__(model, pooling, settings)
        self.encoder = encoder
        self.tokenizer = tokenizer
        self.upstream = upstream

    @property
    def name(self) -> str:
        return next(node.name for node in (*self.model.layers, self.upstream) if node is not None)

    @property
    def width(self) -> int:
        # A listener may not know the width of states, nor what was built around one.
        nodes = [self.model, *self.model.layers]
        if self.upstream is not None:
            nodes.insert(0, self.upstream)
        hidden = next(node.get_dim("nO") for node in nodes if node.has_dim("nO"))
        return self.pooling.width(hidden, truncate_dim=self.settings.truncate_dim)

    def load(self) -> None:
        """Do nothing: these models are loaded with the pipeline."""

    def digest(self) -> str:
        return encoder_digest(
            self.model, self.pooling, upstream=self.upstream, tokenizer=self.tokenizer
        )

    def tokenize(self, texts: list[str]) -> list[Doc]:
        return [self.tokenizer(text) for text in texts]

    @undisturbed()
    def encode(self, units: list[Doc], moved: ProgressCallback = _no_progress) -> Encoded:
        vectors = numpy.zeros((len(units), self.width), dtype="float32")
        with_tokens = [number for number, doc in enumerate(units) if len(doc)]
        # A curated transformer pads batches
        with_tokens.sort(key=lambda number: len(units[number]))
        if with_tokens:
            docs = [units[number] for number in with_tokens]
            if self.upstream is not None:
                _annotate(self.upstream, docs)
            batch = self.encoder.read_spans(docs, [[doc[:]] for doc in docs])
            vectors[with_tokens] = self._pooled(batch)
        moved(len(units))
        return vectors, 0

    def to_gpu(self, gpu_id: int) -> None:
        super().to_gpu(gpu_id)
        if self.upstream is not None:
            self.upstream.to_gpu(gpu_id)


def _annotate(model: Model, docs: list[Doc]) -> None:
    """Leave on Docs what a `tok2vec` or `curated_transformer` of this model does."""
    if not is_curated(model):
        for doc, states in zip(docs, model.predict(docs), strict=True):
            doc.tensor = states
        return
    from spacy_curated_transformers.models.output import DocTransformerOutput  # noqa: PLC0415 (an optional extra)

    # In a process that has no such component
    if not Doc.has_extension("trf_data"):
        Doc.set_extension("trf_data", default=None)
    predicted = model.predict(docs)
    for doc, outputs in zip(docs, predicted.all_outputs, strict=True):
        doc._.trf_data = DocTransformerOutput(
            all_outputs=outputs, last_layer_only=predicted.last_layer_only
        )


def encode_all(
    encoder: TextEncoder,
    texts: Iterable[Text],
    *,
    window: int,
    progress: bool,
    n_process: int,
    gpu_ids: Sequence[int],
    cuts: TruncationCounter,
) -> numpy.ndarray:
    """Return the vectors of texts, float32 (n, width); cuts: counts those that were cut.

    See SentenceBert.encode.
    """
    total = len(texts) if isinstance(texts, Sized) else None
    parts = []
    with ExitStack() as stack:
        moved: ProgressCallback = _no_progress
        if progress:
            bar = stack.enter_context(progress_bar(total, shown=True, unit="texts"))
            moved = bar.update
        for vectors, n_cut in encode_chunks(
            encoder, texts, window=window, n_process=n_process, gpu_ids=gpu_ids, moved=moved
        ):
            parts.append(vectors)
            cuts.add_rows(len(vectors), n_cut, encoder.max_length)
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return numpy.zeros((0, encoder.width), dtype="float32")
    return numpy.concatenate(parts)


def check_gpus(gpu_ids: Sequence[int]) -> None:
    """Check that there are these GPUs. RAISES (ValueError): if one is missing."""
    count = torch.cuda.device_count()
    for gpu_id in gpu_ids:
        if not 0 <= gpu_id < count:
            raise ValueError(
                f"There is no GPU {gpu_id}: {count} were found. Correct --gpu-ids, or leave it out "
                "to use the CPU."
            )


def encode_chunks(
    encoder: TextEncoder,
    texts: Iterable[Text],
    *,
    window: int,
    n_process: int,
    gpu_ids: Sequence[int],
    moved: ProgressCallback = _no_progress,
) -> Iterator[Encoded]:
    """Return an iterator over the vectors of texts, window by window, in order.

    See SentenceBert.encode.

    moved (Callable): takes how many more texts are done, pass by pass; of other processes, window
        by window.
    """
    windows = minibatch(checked_texts(texts), window)
    check_gpus(gpu_ids)
    encoder.load()
    n_workers = max(n_process, len(gpu_ids))
    if n_workers == 1 and not gpu_ids:
        return _encode(encoder, windows, moved)
    return _encode_in_processes(encoder, windows, n_workers, gpu_ids, moved)


def _encode(
    encoder: TextEncoder, windows: Iterable[list[str]], moved: ProgressCallback
) -> Iterator[Encoded]:
    """Encode window by window, while a thread tokenizes the next one."""
    windows = iter(windows)
    first = list(islice(windows, 2))
    if len(first) < 2:
        # There is no next window to tokenize meanwhile
        for window in first:
            yield encoder.encode(encoder.tokenize(window), moved)
        return
    with ThreadPoolExecutor(1) as tokenizing:
        for units in map_ahead(tokenizing, encoder.tokenize, chain(first, windows), 1):
            yield encoder.encode(units, moved)


def _encode_in_processes(
    encoder: TextEncoder,
    windows: Iterable[list[str]],
    n_workers: int,
    gpu_ids: Sequence[int],
    moved: ProgressCallback,
) -> Iterator[Encoded]:
    """Encode windows in worker processes, a few ahead of the reader of the vectors."""
    # Cannot be imported once the main thread has ended
    from concurrent.futures.process import (  # noqa: PLC0415
        BrokenProcessPool,
        ProcessPoolExecutor,
    )

    encoder.check_calibrated()
    # PyTorch's threads and CUDA do not survive a fork
    context = multiprocessing.get_context("spawn")
    devices = context.SimpleQueue()
    for _, device in zip(range(n_workers), cycle(gpu_ids or [None]), strict=False):
        devices.put(device)
    with TemporaryDirectory() as folder:
        # In a file: a pipe to a process that ends before it has read everything would block for
        # ever.
        file = Path(folder) / "encoder"
        file.write_bytes(cloudpickle.dumps(encoder))
        settings = (file, devices, max(1, torch.get_num_threads() // n_workers))
        with ProcessPoolExecutor(
            n_workers, mp_context=context, initializer=_start, initargs=settings
        ) as pool:
            try:
                for vectors, n_cut in map_ahead(pool, _encode_window, windows, 2 * n_workers):
                    moved(len(vectors))
                    yield vectors, n_cut
            except BrokenProcessPool as error:
                raise RuntimeError(
                    f"One of {n_workers} processes that encode ended by itself: see its output "
                    "above. The main module "
                    'must be a file or a notebook, guarded by if __name__ == "__main__". If '
                    "memory ran out, take fewer processes or a smaller window."
                ) from error


# The TextEncoder of a worker process
_worker: Any


def _start(encoder: Path, devices: "SimpleQueue[int | None]", n_threads: int) -> None:
    global _worker
    Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(n_threads)
    in_parallel = "true" if n_threads > 1 else "false"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", in_parallel)
    _worker = cloudpickle.loads(encoder.read_bytes())
    gpu_id = devices.get()
    if gpu_id is not None:
        require_gpu(gpu_id)
        _worker.to_gpu(gpu_id)


def _end_with_parent() -> None:
    """End this worker when its parent is killed, which cannot end it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _encode_window(texts: list[str]) -> Encoded:
    return _worker.encode(_worker.tokenize(texts))
