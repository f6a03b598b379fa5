"""Several data sets in one run of training."""

import math
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import cast

from spacy.language import Language
from spacy.training import Example
from spacy.util import registry

from ..errors.checks import Name, validated
from ..spans import SPANS_KEY
from ..spans.objectives import OBJECTIVE, Counts, Reader, count_objectives, kind_of, reading_pipeline
from .errors import Errors

SAMPLING = ("proportional", "round_robin")


@registry.readers("spacy-sbert.MultiCorpus.v1")
class MultiCorpus:
    """Mix several corpora; each example says in attrs["objective"], on both Docs, which corpus it is from.

    The order is for streams (max_epochs = -1). Where spaCy holds a corpus in memory it shuffles it, and every batcher
    samples the data sets by their sizes, but for spacy-sbert.batch_in_turn.v1; sampling is to be "proportional" then.

    corpora (dict[str, Callable]): readers by name, spaCy's own among them if you like: examples without members are
        passed on as they are.
    sampling (str): "proportional" for every example of every corpus once, the next from a corpus drawn by how many
        it has left; "round_robin" for one of each in turn until the shortest ends.
    weights (dict[str, float]): with "proportional", draw by these in place of how many are left; a corpus that is
        used up drops out.
    seed (int): of the drawing, which differs from call to call of the reader but not from run to run.
    spans_key (str): where the members stand.
    RAISES (ValueError): for no corpora or one that is not a reader, an unknown sampling, or weights that do not fit the
        corpora; on reading, for a corpus without examples.
    """

    @validated
    def __init__(
        self,
        corpora: dict[str, object],  # of Reader: confection checks a nested block before it has built the readers
        sampling: str = "proportional",
        weights: dict[str, float] | None = None,
        seed: int = 0,
        spans_key: Name = SPANS_KEY,
    ):
        if not corpora:
            raise ValueError(Errors.NO_CORPORA)
        for name, corpus in corpora.items():
            if not callable(corpus):
                raise ValueError(Errors.NOT_A_READER.format(name=name, given=corpus))
        if sampling not in SAMPLING:
            raise ValueError(Errors.UNKNOWN_SAMPLING.format(given=sampling, expected=", ".join(SAMPLING)))
        if weights is not None:
            _check_weights(weights, list(corpora), sampling)
        self.corpora = cast(dict[str, Reader], dict(corpora))
        self.sampling = sampling
        self.weights = weights
        self.seed = seed
        self.spans_key = spans_key
        self.epoch = 0
        self._counted: dict[str, int] | None = None

    def __repr__(self) -> str:
        return f"MultiCorpus({self.sampling}: {', '.join(self.corpora)})"

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield the Examples of all corpora, mixed."""
        random = Random(self.seed + self.epoch)
        self.epoch += 1
        return self._read(nlp, random)

    def counts(self, spans_key: str) -> Counts:
        """How many examples of each objective there are in all, read only where a corpus cannot count them itself.

        spans_key (str): where the members stand.
        RETURNS (Counter): by the names of the corpora; None for examples without members. With "round_robin" as many
            as come until the shortest ends.
        """
        found = [count_objectives(corpus, spans_key) for corpus in self.corpora.values()]
        if spans_key == self.spans_key:
            found = [_named(counts, name) for name, counts in zip(self.corpora, found, strict=True)]
        if self.sampling == "round_robin":
            if any(len(counts) > 1 for counts in found):  # which of them come before the end, reading alone tells
                examples = self._read(reading_pipeline(), Random())
                return Counter(kind_of(example.reference, spans_key) for example in examples)
            shortest = min(counts.total() for counts in found)
            found = [Counter(dict.fromkeys(counts, shortest)) for counts in found]
        return sum(found, Counter())

    def _read(self, nlp: Language, random: Random) -> Iterator[Example]:
        drawn = self._in_turn(nlp) if self.sampling == "round_robin" else self._by_weight(nlp, random)
        for name, example in drawn:
            for doc in (example.predicted, example.reference):
                if self.spans_key in doc.spans:
                    doc.spans[self.spans_key].attrs[OBJECTIVE] = name
            yield example

    def _in_turn(self, nlp: Language) -> Iterator[tuple[str, Example]]:
        streams = [iter(corpus(nlp)) for corpus in self.corpora.values()]
        empty = True
        for examples in zip(*streams, strict=False):
            empty = False
            yield from zip(self.corpora, examples, strict=True)
        if empty:
            raise ValueError(Errors.EMPTY_CORPUS.format(name=" or ".join(self.corpora)))

    def _by_weight(self, nlp: Language, random: Random) -> Iterator[tuple[str, Example]]:
        weights = dict(self._sizes(nlp) if self.weights is None else self.weights)
        streams = {name: iter(corpus(nlp)) for name, corpus in self.corpora.items()}
        ahead = {name: next(stream, None) for name, stream in streams.items()}
        for name, example in ahead.items():
            if example is None:
                raise ValueError(Errors.EMPTY_CORPUS.format(name=name))
        while streams:
            names = list(streams)
            (name,) = random.choices(names, [weights[name] for name in names])
            example, ahead[name] = ahead[name], next(streams[name], None)
            if self.weights is None:
                weights[name] = max(weights[name] - 1, 1)  # a file may have grown since it was counted
            if ahead[name] is None:
                del streams[name]
            if example is not None:
                yield name, example

    def _sizes(self, nlp: Language) -> dict[str, int]:
        if self._counted is None:
            totals = {name: count_objectives(reader, self.spans_key, nlp) for name, reader in self.corpora.items()}
            self._counted = {name: max(counts.total(), 1) for name, counts in totals.items()}
        return self._counted


def _named(counts: Counts, name: str) -> Counts:
    """The counts of a corpus, whose examples with members get its name."""
    without = counts[None]
    return Counter({kind: n for kind, n in ((name, counts.total() - without), (None, without)) if n})


def _check_weights(weights: dict[str, float], names: list[str], sampling: str) -> None:
    if sampling != "proportional":
        raise ValueError(Errors.UNUSED_WEIGHTS.format(sampling=sampling))
    if weights.keys() != set(names):
        given, expected = ", ".join(weights) or "none", ", ".join(names)
        raise ValueError(Errors.OTHER_WEIGHTS.format(given=given, expected=expected))
    for name, weight in weights.items():
        if not (math.isfinite(weight) and weight > 0):
            raise ValueError(Errors.BAD_WEIGHT.format(name=name, given=weight))
