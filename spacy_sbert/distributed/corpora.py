"""Corpora of a training: their examples, batches and digests."""

import random
from collections.abc import Iterable, Iterator
from typing import Any

from spacy.language import Language
from spacy.training import Example
from spacy.util import resolve_dot_names
from thinc.api import Config

from ..errors import warn
from ..readers.table_checks import odd_corpora
from ..training.batchers import AnyBatcher
from ..training.examples import Reader
from ..training.gold import check_dev_corpus
from .checkpoint import digest_of_examples

# The number of the epoch, and a batch
Batches = Iterator[tuple[int, list[Example]]]


class TrainingCorpora:
    """What a pipeline is trained and scored on.

    The training examples are in memory, unless training.max_epochs is -1 for a stream.

    nlp (Language): initialized. config (Config): its config, interpolated. training (dict): its
        section [training], resolved.
    dev (Callable): the reader of what is scored.
    RAISES (ValueError): if there is no example to train on, or the dev corpus cannot be scored.
    """

    def __init__(self, nlp: Language, config: Config, training: dict[str, Any]):
        self._nlp = nlp
        self._batcher: AnyBatcher = training["batcher"]
        self._max_epochs = training["max_epochs"]
        # The logger of this package checks by itself
        if config["training"]["logger"].get("@loggers") != "spacy-sbert.ProgressLogger.v1":
            check_dev_corpus(nlp)
        names = [training["train_corpus"], training["dev_corpus"]]
        readers: tuple[Reader, Reader] = resolve_dot_names(config, names)
        self._train, self.dev = readers
        self._in_memory: list[Example] | None = None
        if self._max_epochs >= 0:
            self._in_memory = list(self._train(nlp))
            if not self._in_memory:
                raise ValueError(
                    "The training corpus has no examples. Check [paths] and training.train_corpus."
                )

    def warn_of_odd_rows(self) -> None:
        """Warn of rows that contradict or repeat others, if they are more than a few."""
        if self._in_memory is None:
            return
        for finding in odd_corpora(self._train, self.dev):
            if not finding.is_rare:
                warn(finding.message)

    def digests(self) -> dict[str, str]:
        """Return digests of the corpora by their names in messages; a stream has none."""
        # A reader that shuffles must not change the order of the training
        state = random.getstate()
        digests = {"the dev corpus": digest_of_examples(self.dev(self._nlp))}
        random.setstate(state)
        if self._in_memory is not None:
            digests["the training corpus"] = digest_of_examples(self._in_memory)
        return digests

    def batches(self) -> Batches:
        """Yield the number of the epoch, and a batch, as spaCy's create_train_batches does.

        The order of a corpus in memory, which is shuffled, only depends on the seed, so that the
        batches before a checkpoint can be skipped.
        """
        order = random.Random()
        order.setstate(random.getstate())
        epoch = 0
        while self._max_epochs < 1 or epoch < self._max_epochs:
            examples: Iterable[Example]
            if self._in_memory is None:
                examples = self._train(self._nlp)
            else:
                order.shuffle(self._in_memory)
                examples = self._in_memory
            for batch in self._batcher(examples):
                yield epoch, batch
            epoch += 1
