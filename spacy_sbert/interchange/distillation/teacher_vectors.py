"""What a teacher says of single wordpieces and words."""

from collections.abc import Sequence

import numpy

from ...encoder.wordpieces import Wordpieces
from ...errors.progress import progress_bar
from ...vectors.cuts import CutCounter
from ...vectors.texts import TextEncoder, encode_all

BATCH = 4096  # wordpieces that are encoded at once


class Vocabulary:
    """The vectors that a transformer has for what is in its vocabulary, before they are normalised: what says much has
    a long vector.

    encoder (TextEncoder): of the transformer. progress (bool): whether to show progress bars.
    """

    def __init__(self, encoder: TextEncoder, *, progress: bool):
        pooling = encoder.pooling.copy()
        pooling.normalize = False
        self._encoder = TextEncoder(encoder.transformer, pooling, encoder.call)
        self._progress = progress

    def wordpieces(self) -> numpy.ndarray:
        """Each read alone between the special tokens: float32 (wordpieces, width)."""
        count, found = len(self._encoder.transformer.wordpiece_tokenizer.strings), []
        with progress_bar(count, shown=self._progress, unit="wordpieces") as bar:
            for ids in numpy.array_split(numpy.arange(count), -(-count // BATCH)):
                found.append(self._encoder.encode(self._alone(ids))[0])
                bar.update(len(ids))
        return numpy.concatenate(found)

    def words(self, words: Sequence[str]) -> numpy.ndarray:
        """Each read as a text: float32 (n, width)."""
        progress, cuts = self._progress, CutCounter()
        return encode_all(self._encoder, words, window=BATCH, progress=progress, n_process=1, gpu_ids=(), cuts=cuts)

    def _alone(self, ids: numpy.ndarray) -> Wordpieces:
        """A window for each wordpiece, with the special tokens, and the prompt, that stand before and behind a text."""
        template = self._encoder.tokenize(["a"])
        of_text = numpy.flatnonzero(~template.special)
        before, behind = template.ids[: of_text[0]], template.ids[of_text[-1] + 1 :]
        windows = numpy.stack([numpy.concatenate([before, [one], behind]) for one in ids])
        return Wordpieces(
            text_of=numpy.arange(len(ids)),
            lengths=numpy.full(len(ids), windows.shape[1]),
            ids=windows.reshape(-1),
            type_ids=None,
            special=numpy.tile(numpy.arange(windows.shape[1]) != len(before), len(ids)),
            offsets=None,
            n_cut=numpy.zeros(len(ids), dtype="int64"),
            n_lead=template.n_lead,
        )
