"""The batches of a training, epoch by epoch, which can be gone on with at any of them."""

import hashlib
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import numpy
from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.training import Example

from .batchers import AnyBatcher
from .errors import Errors

Corpus = Callable[[Language], Iterable[Example]]


class Epochs:
    """Makes batches as spaCy does: a corpus in memory is shuffled anew for each epoch, a stream is read anew.

    nlp (Language), corpus, batcher, max_epochs: of spaCy's create_train_batches.
    epoch, taken (int): which epoch it is, and how many of its batches were made.
    order (int64 (examples,)): of the examples in this epoch, by their places in the corpus; of a stream, none.
    begun (tuple): Python's random state as this epoch's batches began.
    content (str): the SHA-256 of texts, scores and labels of a corpus in memory, once it was read; "" of a stream.
    SOURCE: spacy.training.loop.create_train_batches, whose batches these are.
    """

    def __init__(self, nlp: Language, corpus: Corpus, batcher: AnyBatcher, max_epochs: int):
        self._nlp, self._corpus, self._batcher, self._max_epochs = nlp, corpus, batcher, max_epochs
        self.epoch = self.taken = 0
        self.order = numpy.zeros(0, dtype="int64")
        self.begun = random.getstate()
        self.content = ""
        self._skipped: Callable[[], None] | None = None

    def go_on(self, epoch: int, taken: int, order: numpy.ndarray, begun: tuple, skipped: Callable[[], None]) -> None:
        """Have the next batch be the one after these, as another process made them.

        skipped (Callable): called when the batches before were passed over, to give what is random its state.
        """
        self.epoch, self.taken, self.order, self.begun = epoch, taken, order, begun
        self._skipped = skipped

    def __iter__(self) -> Iterator[tuple[int, list[Example]]]:
        """The number of the epoch, and a batch.

        RAISES (ValueError): if a corpus that is held has no examples, or others than before.
        """
        held = self._held() if self._max_epochs >= 0 else None
        while self._max_epochs < 1 or self.epoch < self._max_epochs:
            yield from ((self.epoch, batch) for batch in self._batches(held))
            self.epoch += 1

    def _held(self) -> list[Example]:
        held = list(self._corpus(self._nlp))
        if not held:
            raise ValueError(SpacyErrors.E986)
        content = hashlib.sha256()
        for example in held:
            doc = example.reference
            gold = [doc.cats, *(group.attrs for group in doc.spans.values())]
            content.update(f"{doc.text}\0{gold}\0".encode("utf8", "surrogatepass"))
        if self._skipped is not None and (self.content, len(self.order)) != (content.hexdigest(), len(held)):
            raise ValueError(Errors.CHECKPOINT_OF_OTHER_EXAMPLES.format(given=len(held), expected=len(self.order)))
        self.content = content.hexdigest()
        if self._skipped is None:
            self.order = numpy.arange(len(held))
        return held

    def _batches(self, held: list[Example] | None) -> Iterator[list[Example]]:
        passed, skipped, self._skipped = self.taken, self._skipped, None
        if skipped is None:
            passed = 0
            if held is not None:
                self.order = _shuffled(self.order)
            self.begun = random.getstate()
        elif held is None:
            for _ in range(self.epoch):  # readers that shuffle count how often they were read
                deque(self._corpus(self._nlp), maxlen=0)
        random.setstate(self.begun)
        examples = self._corpus(self._nlp) if held is None else [held[place] for place in self.order]
        self.taken = 0
        for batch in self._batcher(examples):
            self.taken += 1
            if self.taken > passed:
                yield batch
            elif self.taken == passed and skipped is not None:
                skipped()
        if self.taken < passed:
            raise ValueError(Errors.CHECKPOINT_OF_OTHER_BATCHES.format(given=self.taken, expected=passed))


def _shuffled(order: numpy.ndarray) -> numpy.ndarray:
    """As random.shuffle leaves a list that was in this order."""
    places = order.tolist()
    random.shuffle(places)
    return numpy.array(places, dtype="int64")
