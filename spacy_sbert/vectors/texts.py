"""Many texts to one array of vectors: window by window, in this process or in several."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice

import numpy
import torch
from spacy.util import minibatch
from thinc.util import to_numpy

from ..encoder.concurrency import map_ahead
from ..encoder.engine.packed_bert import is_packable
from ..encoder.options import INT8
from ..encoder.rows import RowStates, rows_of_texts
from ..encoder.states import States
from ..encoder.transformer import RowTransformer, load
from ..encoder.wordpieces import Wordpieces
from ..errors.checks import Positive, Processes, check
from ..errors.progress import progress_bar
from ..errors.texts import Text, checked_texts
from .call import AS_CONFIGURED, Call
from .cuts import CutCounter
from .errors import Errors
from .identity import encoder_digest
from .processes import encode_in_processes
from .sentence_pooling import SentencePooling, pool_rows
from .texts_encoder import Encoded, Moved, TextsEncoder, unmoved


@dataclass
class TextEncoder:
    """From texts to vectors by a transformer.

    transformer: the encoder. pooling: what makes a vector of its states. call: what is not as the config says.
    """

    transformer: RowTransformer
    pooling: SentencePooling
    call: Call = AS_CONFIGURED

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
            raise ValueError(Errors.NO_CALIBRATION_TEXTS)
        self.transformer.shim.calibrate(self.tokenize(given))

    def check_calibrated(self) -> None:
        """RAISES (ValueError): if "int8" would take its ranges from whichever texts come first."""
        shim = load(self.transformer)
        if shim.precision == INT8 and shim.calibration is None and is_packable(shim.network):
            raise ValueError(Errors.NOT_CALIBRATED)

    def to_gpu(self, gpu_id: int) -> None:
        """Work on a GPU."""
        self.transformer.to_gpu(gpu_id)
        self.pooling.to_gpu(gpu_id)

    def tokenize(self, texts: list[str]) -> Wordpieces:
        """The wordpieces of texts."""
        prompt = self.transformer.prompt(self.call.prompt)
        return self.transformer.wordpiece_tokenizer(texts, offsets=False, prompt=prompt)

    def encode(self, wordpieces: Wordpieces, moved: Moved = unmoved) -> Encoded:
        """The vectors of texts, on the CPU, and how many were longer than the encoder's limit."""
        rows = rows_of_texts(wordpieces, self.transformer.shim.load())
        batch = RowStates(rows, [], wordpieces.lengths, n_lead=wordpieces.n_lead)
        with self.transformer.states(wordpieces, False) as (states, batch.backprop):
            batch.states = _counted(states, rows.row_of, moved)
            (vectors, _), _ = pool_rows(self.pooling, batch, False, call=self.call)
            return to_numpy(vectors), int((rows.n_cut > 0).sum())


def _counted(passes: Iterable[States], row_of: numpy.ndarray, moved: Moved) -> Iterator[States]:
    """The states of each pass; behind it, the texts whose first windows are in it count as done.

    row_of (int64 (windows,)): the text of each window, ascending.
    """
    is_first = numpy.diff(row_of, prepend=-1) > 0
    for states in passes:
        yield states
        moved(int(is_first[states.windows].sum()))


def encode_all(
    encoder: TextsEncoder,
    texts: Iterable[Text],
    *,
    window: int,
    progress: bool,
    n_process: int,
    gpu_ids: Sequence[int],
    cuts: CutCounter,
) -> numpy.ndarray:
    """The vectors of texts, float32 (n, width).

    cuts (CutCounter): is told of texts that were cut.
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
            raise ValueError(Errors.BULK_NO_GPU.format(given=gpu_id, count=count))


def encode_windows(
    encoder: TextsEncoder,
    texts: Iterable[Text],
    *,
    window: int,
    n_process: int,
    gpu_ids: Sequence[int],
    moved: Moved = unmoved,
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


def _encode(encoder: TextsEncoder, windows: Iterable[list[str]], moved: Moved) -> Iterator[Encoded]:
    """Window by window, while the next one is being tokenised; for one alone no thread is started."""
    windows = iter(windows)
    ahead = list(islice(windows, 2))
    if len(ahead) < 2:
        yield from (encoder.encode(encoder.tokenize(window), moved) for window in ahead)
        return
    with ThreadPoolExecutor(1) as tokenizing:
        for units in map_ahead(tokenizing, encoder.tokenize, chain(ahead, windows), 1):
            yield encoder.encode(units, moved)
