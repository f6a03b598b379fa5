"""Encode texts into a matrix without Docs."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy
import torch
from spacy.tokens import Doc, Span
from spacy.util import minibatch
from thinc.api import CupyOps, Model
from thinc.util import to_numpy

from ..errors import Errors
from ..progress import progress_bar
from ..validation import Positive, Processes, Text, check, checked_texts
from .curated_listener import annotate, read_pieces
from .digests import PipelineTokenizer, encoder_digest, layers_digest
from .encoded_docs import DEFAULT_SETTINGS, Encoded, EncodeSettings, ProgressCallback, TruncationCounter
from .engine.backends import resolve_precision, warn_of_slow
from .engine.concurrency import map_ahead
from .engine.packed_bert import is_packable
from .engine.runner import CPU_BUDGET, GPU_BUDGET
from .options import INT8, REFERENCE
from .sentence_encoder import is_token_encoder
from .sentence_pooling import SentencePooling, pool_rows
from .span_batch import EncodedSpans, TokenEmbeddings, batch_texts
from .tokenization import TokenizedBatch
from .transformer import SpanTransformer, load

if TYPE_CHECKING:
    from .static_embedding import StaticEmbedding


def _no_progress(_: int) -> None:
    """Show no progress."""


class TextEncoder:
    """From texts to vectors: tokenize, in any thread, then encode.

    model (Model): the encoder. pooling (SentencePooling): makes a vector of its states.
    settings (EncodeSettings): in place of those of the config.
    """

    max_length: int | None = None  # the most wordpieces of a text; None for no limit

    def __init__(self, model: Any, pooling: SentencePooling, settings: EncodeSettings = DEFAULT_SETTINGS):  # noqa: ANN401 (a Model of any kind)
        self.model = model
        self.pooling = pooling
        self.settings = settings

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self.model.name}')"

    @property
    def name(self) -> str:
        """The name of the encoder, for messages."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """The number of dimensions of the vectors."""
        return self.pooling.width(self.model.get_dim("nO"), truncate_dim=self.settings.truncate_dim)

    def digest(self) -> str:
        """Return a SHA-256 of everything that the vectors depend on, see encoder_digest."""
        raise NotImplementedError

    def load(self) -> None:
        """Load the weights, unless they are loaded."""

    def tokenize(self, texts: list[str]) -> Any:  # noqa: ANN401 (a TokenizedBatch, or Docs)
        """Return the wordpieces of texts, or their tokens."""
        raise NotImplementedError

    def encode(self, units: Any, moved: ProgressCallback = _no_progress) -> Encoded:  # noqa: ANN401 (see tokenize)
        """Return the vectors of texts, on the CPU, and how many were longer than the limit.

        moved (Callable): is told of all texts by the end, and of some on the way where it takes long.
        """
        raise NotImplementedError

    def check_calibrated(self) -> None:
        """Check that vectors do not depend on which texts come first. RAISES (ValueError): if they do."""

    def to_gpu(self, gpu_id: int) -> None:
        """Move the encoder to a GPU."""
        self.model.to_gpu(gpu_id)
        self.pooling.to_gpu(gpu_id)


class TransformerTextEncoder(TextEncoder):
    """From texts to vectors by a transformer of this package."""

    model: SpanTransformer

    @property
    def name(self) -> str:
        """The name of the encoder, for messages."""
        return self.model.shim.load().name

    @property
    def width(self) -> int:
        """The number of dimensions of the vectors; loads the encoder."""
        folder = load(self.model).settings
        return self.pooling.width(self.model.get_dim("nO"), folder, truncate_dim=self.settings.truncate_dim)

    @property
    def max_length(self) -> int | None:  # type: ignore[override]
        """The most wordpieces of a text; loads the encoder."""
        folder = load(self.model).settings
        return folder.max_length if folder else None

    def digest(self) -> str:
        """Return a SHA-256 of everything that the vectors depend on."""
        return encoder_digest(self.model, self.pooling)

    def load(self) -> None:
        """Load the weights, unless they are loaded."""
        load(self.model)

    def calibrate(self, texts: Iterable[Text]) -> None:
        """Find the ranges by which "int8" rounds, see SentenceBert.calibrate."""
        checked = list(checked_texts(texts))
        if not checked:
            raise ValueError("There are no texts to calibrate on. Give some hundred like those that will be encoded.")
        self.model.shim.calibrate(self.tokenize(checked))

    def check_calibrated(self) -> None:
        """Check that "int8" would not take its ranges from the first texts. RAISES (ValueError): if it would."""
        shim = load(self.model)
        if shim.precision == INT8 and shim.calibration is None and is_packable(shim.network):
            raise ValueError(
                "precision = 'int8' rounds by ranges that were not found yet, and vectors would depend on "
                "which texts come first. Find them beforehand, on some hundred texts, with "
                "sbert.calibrate(texts) and nlp.to_disk, or choose another precision."
            )

    def tokenize(self, texts: list[str]) -> TokenizedBatch:
        """Return the wordpieces of texts."""
        prompt = self.model.prompt(self.settings.prompt)
        return self.model.wordpiece_tokenizer(texts, offsets=False, prompt=prompt)

    def encode(self, units: TokenizedBatch, moved: ProgressCallback = _no_progress) -> Encoded:
        """Return the vectors of texts, on the CPU, and how many were longer than the encoder's limit."""
        rows = batch_texts(units, self.model.shim.load())
        batch = EncodedSpans(rows, [], units.lengths, n_lead=units.n_lead)
        with self.model.states(units, False) as (states, batch.backprop):
            batch.states = _counted(states, rows.row_of, moved)
            (vectors, _), _ = pool_rows(self.pooling, batch, False, settings=self.settings)
            return to_numpy(vectors), int((rows.n_cut > 0).sum())


def _counted(
    passes: Iterable[TokenEmbeddings], row_of: numpy.ndarray, moved: ProgressCallback
) -> Iterator[TokenEmbeddings]:
    """Yield the states of each pass; afterwards, the texts whose first windows are in it count as done.

    row_of (int64 (windows,)): the text of each window, ascending.
    """
    is_first = numpy.diff(row_of, prepend=-1) > 0
    for states in passes:
        yield states
        moved(int(is_first[states.windows].sum()))


class StaticTextEncoder(TextEncoder):
    """From texts to vectors by a table of wordpieces, which cuts no text."""

    model: "StaticEmbedding"

    @property
    def name(self) -> str:
        """The name of the encoder, for messages."""
        return self.model.name

    def digest(self) -> str:
        """Return a SHA-256 of everything that the vectors depend on."""
        self.load()
        return layers_digest([self.model], self.model.get_dim("nO"), self.pooling)

    def load(self) -> None:
        """Read the table, unless it is there."""
        self.model.load()

    def tokenize(self, texts: list[str]) -> TokenizedBatch:
        """Return the wordpieces of texts."""
        return self.model.wordpiece_tokenizer(texts, offsets=False)

    def encode(self, units: TokenizedBatch, moved: ProgressCallback = _no_progress) -> Encoded:
        """Return the vectors of texts, on the CPU, and how many were cut: none."""
        rows = batch_texts(units, self.model.wordpiece_tokenizer.settings)
        batch = EncodedSpans(rows, [], units.lengths)
        batch.states, batch.backprop = self.model.states(units, False)
        (vectors, _), _ = pool_rows(self.pooling, batch, False, settings=self.settings)
        moved(len(vectors))
        return to_numpy(vectors), 0


class Tok2VecTextEncoder(TextEncoder):
    """From texts to vectors by a model of tokens, or of the wordpieces of a curated transformer, which cuts no text.

    tokenizer: of the pipeline. upstream: the model of the component that the encoder listens to; None if to none.
    """

    model: Model

    def __init__(
        self,
        model: Model,
        pooling: SentencePooling,
        settings: EncodeSettings,
        tokenizer: PipelineTokenizer,
        upstream: Model | None,
    ):
        super().__init__(model, pooling, settings)
        self.tokenizer = tokenizer
        self.upstream = upstream

    @property
    def name(self) -> str:
        """The name of the encoder, for messages."""
        return next(node.name for node in (*self.model.layers, self.upstream) if node is not None)

    @property
    def width(self) -> int:
        """The number of dimensions of the vectors."""
        return self.pooling.width(self._hidden, truncate_dim=self.settings.truncate_dim)

    @property
    def _hidden(self) -> int:
        """The width of states: a listener may not know it, nor what was built around one."""
        nodes = [node for node in (self.upstream, self.model, *self.model.layers) if node is not None]
        return next(node.get_dim("nO") for node in nodes if node.has_dim("nO"))

    def digest(self) -> str:
        """Return a SHA-256 of everything that the vectors depend on."""
        models = [model for model in (self.model, self.upstream) if model is not None]
        return layers_digest(models, self._hidden, self.pooling, self.tokenizer)

    def tokenize(self, texts: list[str]) -> list[Doc]:
        """Return the tokens of texts."""
        return [self.tokenizer(text) for text in texts]

    def encode(self, units: list[Doc], moved: ProgressCallback = _no_progress) -> Encoded:
        """Return the vectors of texts, on the CPU, and how many were cut: none."""
        vectors = numpy.zeros((len(units), self.width), dtype="float32")
        with_tokens = [number for number, doc in enumerate(units) if len(doc)]
        with_tokens.sort(key=lambda number: len(units[number]))  # a curated transformer pads batches
        if with_tokens:
            docs = [units[number] for number in with_tokens]
            if self.upstream is not None:
                annotate(self.upstream, docs)
            batch = self._read(docs, [[doc[:]] for doc in docs])
            (pooled, _), _ = pool_rows(self.pooling, batch, False, settings=self.settings)
            vectors[with_tokens] = to_numpy(pooled)
        moved(len(units))
        return vectors, 0

    def _read(self, docs: list[Doc], spans: list[list[Span]]) -> EncodedSpans:
        if is_token_encoder(self.model):
            return self.model.read_spans(docs, spans, with_pieces=False, is_train=False)
        outputs, backprop = self.model(docs, False)
        return read_pieces(docs, spans, outputs, backprop, with_pieces=False)

    def to_gpu(self, gpu_id: int) -> None:
        """Move the encoder to a GPU, with the component that it listens to."""
        super().to_gpu(gpu_id)
        if self.upstream is not None:
            self.upstream.to_gpu(gpu_id)


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
    """Return the vectors of texts, float32 (n, width).

    cuts (TruncationCounter): counts texts that were cut. The other arguments, and errors: see SentenceBert.encode.
    """
    checked = checked_texts(texts)
    total = len(texts) if isinstance(texts, Sized) else None
    parts = [numpy.zeros((0, encoder.width), dtype="float32")]
    with progress_bar(total, shown=progress, unit="texts") as bar:
        for vectors, n_cut in encode_windows(
            encoder, checked, window=window, n_process=n_process, gpu_ids=gpu_ids, moved=bar.update
        ):
            parts.append(vectors)
            cuts.add_rows(len(vectors), n_cut, encoder.max_length)
    return numpy.concatenate(parts)


def check_gpus(gpu_ids: Sequence[int]) -> None:
    """Check that there are these GPUs. RAISES (ValueError): if one is missing."""
    count = torch.cuda.device_count()
    for gpu_id in gpu_ids:
        if not 0 <= gpu_id < count:
            raise ValueError(
                f"There is no GPU {gpu_id}: {count} were found. Correct --gpu-ids, or leave it out to use the CPU."
            )


def encode_windows(
    encoder: TextEncoder,
    texts: Iterable[Text],
    *,
    window: int,
    n_process: int,
    gpu_ids: Sequence[int],
    moved: ProgressCallback = _no_progress,
) -> Iterator[Encoded]:
    """Return an iterator over the vectors of texts, window by window, in order.

    moved (Callable): is told how many more texts are done, pass by pass; of other processes, window by window.
    The other arguments, and errors: see SentenceBert.encode.
    """
    texts = checked_texts(texts)
    check("window", window, Positive)
    check("n_process", n_process, Processes)
    check_gpus(gpu_ids)
    encoder.load()
    windows = minibatch(texts, window)
    n_workers = max(n_process, len(gpu_ids))
    if n_workers == 1 and not gpu_ids:
        return _encode(encoder, windows, moved)
    from .multi_process import encode_in_processes  # noqa: PLC0415 (with several processes only)

    return encode_in_processes(encoder, windows, n_workers, gpu_ids, moved)


def _encode(encoder: TextEncoder, windows: Iterable[list[str]], moved: ProgressCallback) -> Iterator[Encoded]:
    """Encode window by window, while a thread tokenizes the next one; for a single window no thread is started."""
    windows = iter(windows)
    ahead = list(islice(windows, 2))
    if len(ahead) < 2:
        yield from (encoder.encode(encoder.tokenize(window), moved) for window in ahead)
        return
    with ThreadPoolExecutor(1) as tokenizing:
        for units in map_ahead(tokenizing, encoder.tokenize, chain(ahead, windows), 1):
            yield encoder.encode(units, moved)


def set_precision(encoder: TextEncoder, precision: str, gpu_ids: Sequence[int]) -> None:
    """Set the precision of an encoder; gpu_ids (Sequence[int]): GPUs it will work on, for "auto".

    RAISES (ValueError): for a tok2vec and another precision than its own.
    """
    if not isinstance(encoder, TransformerTextEncoder):
        if precision not in ("float32", "auto"):
            raise ValueError(
                f"Cannot encode in precision = '{precision}' with a token-to-vector model, a table of "
                "wordpieces or a curated_transformer: it works in float32. Leave precision out."
            )
        return
    shim = load(encoder.model)
    device = "cuda" if gpu_ids else shim.device.type
    resolved = resolve_precision(precision, device)
    if resolved != shim.precision:
        warn_of_slow(resolved, device)
    shim.precision = resolved


def _budget_of(transformer: SpanTransformer, given: int, gpu_ids: Sequence[int]) -> int:
    """Return the most wordpieces in a forward pass, whatever the number of threads: passes must hold the same texts.

    given (int): as the user set it; 0 for the setting of the encoder, or a number that suits the device.
    RAISES (ValueError): for a number beside precision = "reference", whose batches are counted in texts.
    """
    asked = given or transformer.max_batch_items
    if asked and load(transformer).precision == REFERENCE:
        raise ValueError(Errors.REFERENCE_BATCH.format(given=asked))
    on_gpu = bool(gpu_ids) or load(transformer).device.type != "cpu"
    return asked or (GPU_BUDGET if on_gpu else CPU_BUDGET)


def texts_budget(encoder: TextEncoder, given: int, gpu_ids: Sequence[int]) -> int:
    """Return the budget of any encoder; 0 for a tok2vec, which takes a window of texts at once.

    RAISES (ValueError): as _budget_of, and for a number beside a tok2vec.
    """
    if isinstance(encoder, TransformerTextEncoder):
        return _budget_of(encoder.model, given, gpu_ids)
    if given:
        raise ValueError(
            f"max_batch_items = {given} has no meaning for a token-to-vector model, a table of wordpieces or a "
            "curated_transformer, which takes a window of texts at once: leave it out, or set window."
        )
    return 0


def device_name(encoder: TextEncoder, gpu_ids: Sequence[int]) -> str:
    """Return the name of the GPU that computes, or the capability of the CPU."""
    if isinstance(encoder, TransformerTextEncoder):
        device = load(encoder.model).device
    else:
        device = torch.device("cuda" if isinstance(encoder.pooling.ops, CupyOps) else "cpu")
    if not gpu_ids and device.type == "cpu":
        return f"CPU, {torch.backends.cpu.get_cpu_capability()}"
    return torch.cuda.get_device_name(gpu_ids[0] if gpu_ids else device)
