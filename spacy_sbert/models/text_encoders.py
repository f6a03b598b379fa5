"""Encode texts into a matrix without Docs."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice

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
from .encoded_docs import DEFAULT_SETTINGS, EncodeSettings, TruncationCounter
from .engine.backends import resolve_precision, warn_of_slow
from .engine.concurrency import map_ahead
from .engine.packed_bert import is_packable
from .engine.runner import CPU_BUDGET, GPU_BUDGET
from .fingerprint import Tokenizer, encoder_digest, layers_digest
from .multi_process import encode_in_processes
from .options import INT8, REFERENCE, Precision
from .sentence_pooling import Encoded, ProgressCallback, SentencePooling, TextEncoder, no_progress, pool_rows
from .span_batch import EncodedSpans, TokenEmbeddings, batch_texts
from .static_embedding import StaticEmbedding
from .tok2vec_encoder import Tok2VecEncoder
from .tokenization import TokenizedBatch
from .transformer import SpanTransformer, load


@dataclass
class TransformerTextEncoder:
    """From texts to vectors by a transformer.

    transformer: the encoder. pooling: what makes a vector of its states. call: what is not as the config says.
    """

    transformer: SpanTransformer
    pooling: SentencePooling
    call: EncodeSettings = DEFAULT_SETTINGS

    @property
    def width(self) -> int:
        """Of the vectors."""
        settings = load(self.transformer).settings
        hidden = self.transformer.get_dim("nO")
        return self.pooling.width(hidden, settings, truncate_dim=self.call.truncate_dim)

    @property
    def name(self) -> str:
        """Of the encoder."""
        return self.transformer.shim.load().name

    def digest(self) -> str:
        """Of what vectors depend on."""
        return encoder_digest(self.transformer, self.pooling)

    @property
    def max_length(self) -> int | None:
        """The most wordpieces of a text."""
        settings = load(self.transformer).settings
        return settings.max_length if settings else None

    def load(self) -> None:
        """Load the weights, unless they are."""
        load(self.transformer)

    def calibrate(self, texts: Iterable[Text]) -> None:
        """Find the ranges by which "int8" rounds, see SentenceBert.calibrate."""
        given = list(checked_texts(texts))
        if not given:
            raise ValueError("There are no texts to calibrate on. Give some hundred like those that will be encoded.")
        self.transformer.shim.calibrate(self.tokenize(given))

    def check_calibrated(self) -> None:
        """RAISES (ValueError): if "int8" would take its ranges from whichever texts come first."""
        shim = load(self.transformer)
        if shim.precision == INT8 and shim.calibration is None and is_packable(shim.network):
            raise ValueError(
                "precision = 'int8' rounds by ranges that were not found yet, and vectors would depend on "
                "which texts come first. Find them beforehand, on some hundred texts, with "
                "sbert.calibrate(texts) and nlp.to_disk, or choose another precision."
            )

    def to_gpu(self, gpu_id: int) -> None:
        """Work on a GPU."""
        self.transformer.to_gpu(gpu_id)
        self.pooling.to_gpu(gpu_id)

    def tokenize(self, texts: list[str]) -> TokenizedBatch:
        """The wordpieces of texts."""
        prompt = self.transformer.prompt(self.call.prompt)
        return self.transformer.wordpiece_tokenizer(texts, offsets=False, prompt=prompt)

    def encode(self, wordpieces: TokenizedBatch, moved: ProgressCallback = no_progress) -> Encoded:
        """The vectors of texts, on the CPU, and how many were longer than the encoder's limit."""
        rows = batch_texts(wordpieces, self.transformer.shim.load())
        batch = EncodedSpans(rows, [], wordpieces.lengths, n_lead=wordpieces.n_lead)
        with self.transformer.states(wordpieces, False) as (states, batch.backprop):
            batch.states = _counted(states, rows.row_of, moved)
            (vectors, _), _ = pool_rows(self.pooling, batch, False, call=self.call)
            return to_numpy(vectors), int((rows.n_cut > 0).sum())


def _counted(
    passes: Iterable[TokenEmbeddings], row_of: numpy.ndarray, moved: ProgressCallback
) -> Iterator[TokenEmbeddings]:
    """The states of each pass; behind it, the texts whose first windows are in it count as done.

    row_of (int64 (windows,)): the text of each window, ascending.
    """
    is_first = numpy.diff(row_of, prepend=-1) > 0
    for states in passes:
        yield states
        moved(int(is_first[states.windows].sum()))


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
    """The vectors of texts, float32 (n, width).

    cuts (TruncationCounter): is told of texts that were cut.
    The others, and what it raises: see SentenceBert.encode.
    """
    given, texts = texts, checked_texts(texts)
    total = len(given) if isinstance(given, Sized) else None
    parts = [numpy.zeros((0, encoder.width), dtype="float32")]
    with progress_bar(total, shown=progress, unit="texts") as bar:
        for vectors, n_cut in encode_windows(
            encoder, texts, window=window, n_process=n_process, gpu_ids=gpu_ids, moved=bar.update
        ):
            parts.append(vectors)
            cuts.add_rows(len(vectors), n_cut, encoder.max_length)
    return numpy.concatenate(parts)


def check_gpus(gpu_ids: Sequence[int]) -> None:
    """RAISES (ValueError): if there is no such GPU."""
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
    moved: ProgressCallback = no_progress,
) -> Iterator[Encoded]:
    """The vectors of texts, window by window, in order.

    moved (Callable): is told how many more texts are done, pass by pass; of other processes, window by window.
    For the other arguments, and what it raises, see SentenceBert.encode.
    """
    texts = checked_texts(texts)
    check("window", window, Positive)
    check("n_process", n_process, Processes)
    check_gpus(gpu_ids)
    encoder.load()
    windows = minibatch(texts, window)
    n_workers = max(n_process, len(gpu_ids))
    in_turn = n_workers == 1 and not gpu_ids
    if in_turn:
        return _encode(encoder, windows, moved)
    return encode_in_processes(encoder, windows, n_workers, gpu_ids, moved)


def _encode(encoder: TextEncoder, windows: Iterable[list[str]], moved: ProgressCallback) -> Iterator[Encoded]:
    """Window by window, while the next one is being tokenised; for one alone no thread is started."""
    windows = iter(windows)
    ahead = list(islice(windows, 2))
    if len(ahead) < 2:
        yield from (encoder.encode(encoder.tokenize(window), moved) for window in ahead)
        return
    with ThreadPoolExecutor(1) as tokenizing:
        for units in map_ahead(tokenizing, encoder.tokenize, chain(ahead, windows), 1):
            yield encoder.encode(units, moved)


@dataclass
class StaticTextEncoder:
    """From texts to vectors, see TextEncoder.

    table: what wordpieces are looked up in. pooling: what makes a vector of theirs.
    call: what is not as the config says.
    """

    table: StaticEmbedding
    pooling: SentencePooling
    call: EncodeSettings

    max_length = None  # of texts: none is cut

    @property
    def width(self) -> int:
        """Of the vectors."""
        return self.pooling.width(self.table.get_dim("nO"), truncate_dim=self.call.truncate_dim)

    @property
    def name(self) -> str:
        """Of the encoder."""
        return self.table.name

    def digest(self) -> str:
        """Of what vectors depend on."""
        self.load()
        return layers_digest([self.table], self.table.get_dim("nO"), self.pooling)

    def load(self) -> None:
        """Read the table, unless it is there."""
        self.table.load()

    def tokenize(self, texts: list[str]) -> TokenizedBatch:
        """The wordpieces of texts."""
        return self.table.wordpiece_tokenizer(texts, offsets=False)

    def encode(self, wordpieces: TokenizedBatch, moved: ProgressCallback = no_progress) -> Encoded:
        """The vectors of texts, on the CPU, and how many were cut: none."""
        rows = batch_texts(wordpieces, self.table.wordpiece_tokenizer.settings)
        batch = EncodedSpans(rows, [], wordpieces.lengths)
        batch.states, batch.backprop = self.table.states(wordpieces, False)
        (vectors, _), _ = pool_rows(self.pooling, batch, False, call=self.call)
        moved(len(vectors))
        return to_numpy(vectors), 0

    def check_calibrated(self) -> None:
        """Nothing is rounded."""

    def to_gpu(self, gpu_id: int) -> None:
        """Work on a GPU."""
        self.table.to_gpu(gpu_id)
        self.pooling.to_gpu(gpu_id)


@dataclass
class Tok2VecTextEncoder:
    """From texts to vectors, see TextEncoder.

    encoder: what encodes tokens, or gives the wordpieces of a curated transformer. pooling: what makes a vector of
    their states. call: what is not as the config says. tokenizer: of the pipeline. upstream: the model of the component
    that the encoder hears; None if it hears none.
    """

    encoder: Model
    pooling: SentencePooling
    call: EncodeSettings
    tokenizer: Tokenizer
    upstream: Model | None

    max_length = None  # of texts: none is cut

    @property
    def width(self) -> int:
        """Of the vectors."""
        return self.pooling.width(self._hidden, truncate_dim=self.call.truncate_dim)

    @property
    def _hidden(self) -> int:
        """The width of states: a listener may not know it, nor what was built around one."""
        nodes = [node for node in (self.upstream, self.encoder, *self.encoder.layers) if node is not None]
        return next(node.get_dim("nO") for node in nodes if node.has_dim("nO"))

    @property
    def name(self) -> str:
        """Of the encoder."""
        return next(node.name for node in (*self.encoder.layers, self.upstream) if node is not None)

    def digest(self) -> str:
        """Of what vectors depend on."""
        models = [model for model in (self.encoder, self.upstream) if model is not None]
        return layers_digest(models, self._hidden, self.pooling, self.tokenizer)

    def load(self) -> None:
        """There is nothing to load."""

    def tokenize(self, texts: list[str]) -> list[Doc]:
        """The tokens of texts."""
        return [self.tokenizer(text) for text in texts]

    def encode(self, docs: list[Doc], moved: ProgressCallback = no_progress) -> Encoded:
        """The vectors of texts, on the CPU, and how many were cut: none."""
        found = numpy.zeros((len(docs), self.width), dtype="float32")
        held = [number for number, doc in enumerate(docs) if len(doc)]
        held.sort(key=lambda number: len(docs[number]))  # a curated transformer pads batches
        if held:
            own = [docs[number] for number in held]
            if self.upstream is not None:
                annotate(self.upstream, own)
            batch = self._read(own, [[doc[:]] for doc in own])
            (vectors, _), _ = pool_rows(self.pooling, batch, False, call=self.call)
            found[held] = to_numpy(vectors)
        moved(len(docs))
        return found, 0

    def _read(self, docs: list[Doc], spans: list[list[Span]]) -> EncodedSpans:
        if isinstance(self.encoder, Tok2VecEncoder):
            return self.encoder.read_spans(docs, spans, with_pieces=False, is_train=False)
        heard, backprop = self.encoder(docs, False)
        return read_pieces(docs, spans, heard, backprop, with_pieces=False)

    def check_calibrated(self) -> None:
        """Nothing is rounded."""

    def to_gpu(self, gpu_id: int) -> None:
        """Work on a GPU."""
        for model in (self.encoder, self.pooling, self.upstream):
            if model is not None:
                model.to_gpu(gpu_id)


__all__ = ["Precision", "budget_of", "device_name", "set_precision", "texts_budget"]


def set_precision(encoder: TextEncoder, precision: str, gpu_ids: Sequence[int]) -> None:
    """Have an encoder work in a precision; gpu_ids (Sequence[int]): GPUs it will work on, for "auto".

    RAISES (ValueError): for a tok2vec and another precision than its own.
    """
    if not isinstance(encoder, TransformerTextEncoder):
        if precision not in ("float32", "auto"):
            raise ValueError(
                f"Cannot encode in precision = '{precision}' with a token-to-vector model, a table of "
                "wordpieces or a curated_transformer: it works in float32. Leave precision out."
            )
        return
    shim = load(encoder.transformer)
    device = "cuda" if gpu_ids else shim.device.type
    resolved = resolve_precision(precision, device)
    if resolved != shim.precision:
        warn_of_slow(resolved, device)
    shim.precision = resolved


def budget_of(transformer: SpanTransformer, given: int, gpu_ids: Sequence[int]) -> int:
    """The most wordpieces in a forward pass, whatever the number of threads: passes must hold the same texts.

    given (int): what was asked for; 0 for what the encoder was made with, or what suits the device.
    RAISES (ValueError): for a number beside precision = "reference", whose batches are counted in texts.
    """
    asked = given or transformer.max_batch_items
    if asked and load(transformer).precision == REFERENCE:
        raise ValueError(Errors.REFERENCE_BATCH.format(given=asked))
    on_gpu = bool(gpu_ids) or load(transformer).device.type != "cpu"
    return asked or (GPU_BUDGET if on_gpu else CPU_BUDGET)


def texts_budget(encoder: TextEncoder, given: int, gpu_ids: Sequence[int]) -> int:
    """The same of any encoder; 0 for a tok2vec, which takes a window of texts at once.

    RAISES (ValueError): as budget_of, and for a number beside a tok2vec.
    """
    if isinstance(encoder, TransformerTextEncoder):
        return budget_of(encoder.transformer, given, gpu_ids)
    if given:
        raise ValueError(
            f"max_batch_items = {given} has no meaning for a token-to-vector model, a table of wordpieces or a "
            "curated_transformer, which takes a window of texts at once: leave it out, or set window."
        )
    return 0


def device_name(encoder: TextEncoder, gpu_ids: Sequence[int]) -> str:
    """The processor that computes: the GPU by its name, the CPU by what it can do."""
    if isinstance(encoder, TransformerTextEncoder):
        device = load(encoder.transformer).device
    else:
        device = torch.device("cuda" if isinstance(encoder.pooling.ops, CupyOps) else "cpu")
    if not gpu_ids and device.type == "cpu":
        return f"CPU, {torch.backends.cpu.get_cpu_capability()}"
    return torch.cuda.get_device_name(gpu_ids[0] if gpu_ids else device)
