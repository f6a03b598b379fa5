"""Training examples: members, gold and objectives of a Doc."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Protocol, cast, runtime_checkable

import numpy
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Ops
from thinc.types import Floats1d, Floats2d, Ints1d

from ..errors import Errors
from ..models.encoded_docs import EncodedDoc
from ..models.spans import members, row_order
from ..validation import is_text

MIDDLE = 0.5  # of scores, which readers give from 0 to 1
Gold = Floats1d | Floats2d | list[str] | list[list[str]] | None


def predicted_label(name: str) -> str:
    """Under which name a pipe notes the label that it gives to a pair, beside its members; "sbert_label"."""
    return f"{name}_label"


def predicted_score(name: str) -> str:
    """Under which name a reranker notes the score of a pair, beside its members; "sbert_reranker_score"."""
    return f"{name}_score"


def member_rows(doc: Doc, encoded: EncodedDoc, spans_key: str) -> list[int]:
    """The row of each member of an example, in the order of the members; empty if the Doc is not an example.

    RAISES (ValueError): if the rows are not the members, or a member has no text.
    """
    spans = members(doc, spans_key)
    if not spans:
        return []
    text = doc.text[:50]
    for number, span in enumerate(spans, start=1):
        if not span.text.strip():
            raise ValueError(Errors.EMPTY_MEMBER.format(text=text, number=number, key=spans_key))
    rows = encoded.rows
    given = [(start, end) for start, end in rows.spans.tolist()]
    check_rows("windows that overlap" if rows.foreign else given, doc, spans_key)
    order = row_order(spans)
    for number, row in enumerate(order, start=1):
        if not rows.has_text[row]:
            raise ValueError(Errors.EMPTY_MEMBER.format(text=text, number=number, key=spans_key))
    return order


def check_rows(given: list[tuple[int, int]] | str, doc: Doc, spans_key: str) -> None:
    """Refuse rows that are not the members of an example.

    given: start and end token of each row, in the order of the text, or a word for what are not rows at all.
    RAISES (ValueError): if they are not.
    """
    expected = sorted((span.start, span.end) for span in members(doc, spans_key))
    if given != expected:
        raise ValueError(Errors.WRONG_ROWS.format(text=doc.text[:50], given=given, expected=expected, key=spans_key))


def gold_values(
    examples: Sequence[Example],
    kind: str | None,
    ops: Ops,
    spans_key: str,
    *,
    score_range: tuple[float, float] | None = None,
) -> Gold:
    """What a loss learns from beside the vectors of its members.

    examples (Sequence[Example]): with as many members each.
    kind (str): "score", "label", "vector" or "text"; None for a loss that needs nothing.
    score_range: see scores_of.
    RETURNS: scores, float32 (n,); labels, a list of n; vectors of a teacher, float32 (n, width); or the texts, a list
        of n for each member.
    RAISES (ValueError): if a value is missing or not what it should be.
    """
    if kind == "score":
        return scores_of(examples, ops, spans_key, score_range)
    if kind == "label":
        return labels_of(examples, spans_key)
    if kind == "vector":
        return ops.asarray2f(cast(Floats2d, numpy.stack([_vector_of(example, spans_key) for example in examples])))
    if kind == "text":
        texts = [[span.text for span in members(example.predicted, spans_key)] for example in examples]
        return [list(of_member) for of_member in zip(*texts, strict=True)]
    return None


def low_scored_pair(examples: Sequence[Example], kind: str | None, spans_key: str) -> tuple[str, float] | None:
    """The texts and score of a pair whose score is below the middle, for a loss that reads none: it takes every pair as
    one that belongs together. None if there is no such pair, or the loss reads scores, labels or vectors.

    kind (str): see gold_values.
    """
    if kind not in ("text", None):
        return None
    for example in examples:
        score = attribute(example.reference, "score", spans_key)
        is_pair = len(members(example.predicted, spans_key)) == 2
        if is_pair and isinstance(score, int | float | numpy.number) and score < MIDDLE:
            return " / ".join(span.text[:50] for span in members(example.predicted, spans_key)), float(score)
    return None


def scores_of(
    examples: Sequence[Example], ops: Ops, spans_key: str, score_range: tuple[float, float] | None
) -> Floats1d:
    """The gold scores, float32 (n,), from example.reference.spans[spans_key].attrs["score"].

    score_range: the least and the greatest score there may be; None for any.
    RAISES (ValueError): if one is missing, not a finite number, or out of range.
    """
    scores = [gold_value(example, "score", spans_key) for example in examples]
    low, high = score_range or (-math.inf, math.inf)
    for example, score in zip(examples, scores, strict=True):
        if not low <= score <= high:
            text = example.reference.text[:50]
            message = (
                f"The example '{text}' has the gold score {score}: expected one from {low:g} to {high:g} in "
                f"example.reference.spans['{spans_key}'].attrs['score']. Scale it, as "
                "spacy-sbert.PairCorpus.v1 does by min_score and max_score: scores from 0 to 5 are divided by "
                "5."
            )
            raise ValueError(message)
    return ops.asarray1f(scores)


def gold_value(example: Example, gold: str, spans_key: str) -> float:
    """The gold value of an example: the number in example.reference.spans[spans_key].attrs[gold].

    RAISES (ValueError): if it is missing or not a finite number.
    """
    value = attribute(example.reference, gold, spans_key)
    if not isinstance(value, (int, float, numpy.number)) or not math.isfinite(value):
        text = example.reference.text[:50]
        raise ValueError(Errors.NO_GOLD.format(text=text, gold=gold, kind="a finite number", key=spans_key))
    return float(value)


def labels_of(examples: Sequence[Example], spans_key: str) -> list[str]:
    """The gold labels, from example.reference.spans[spans_key].attrs["label"].

    RAISES (ValueError): if one is missing or not a text.
    """
    labels = []
    for example in examples:
        label = attribute(example.reference, "label", spans_key)
        if not is_text(label) or not label:
            text = example.reference.text[:50]
            raise ValueError(Errors.NO_GOLD.format(text=text, gold="label", kind="a label", key=spans_key))
        labels.append(cast(str, label))
    return labels


def objective_of(example: Example, spans_key: str) -> str:
    """The name of the objective that an example is for; empty if it has none."""
    return cast(str, attribute(example.reference, "objective", spans_key) or "")


def batch_size_of(example: Example, spans_key: str, *, default: int) -> int:
    """How many examples of the same objective its whole batch has, as the batcher noted it."""
    return cast(int, attribute(example.reference, "batch_size", spans_key) or default)


def attribute(doc: Doc, name: str, spans_key: str) -> object:
    """What is noted under a name beside the members of an example; None if nothing is."""
    group = doc.spans.get(spans_key)
    return None if group is None else group.attrs.get(name)


def _vector_of(example: Example, spans_key: str) -> numpy.ndarray:
    vector = attribute(example.reference, "vector", spans_key)
    found = numpy.asarray([] if vector is None else vector, dtype="float32")
    if found.ndim != 1 or not found.size or not numpy.isfinite(found).all():
        text = example.reference.text[:50]
        raise ValueError(Errors.NO_GOLD.format(text=text, gold="vector", kind="a teacher's vector", key=spans_key))
    return found


OBJECTIVE = "objective"  # in the attrs of members: which data set an example comes from
Reader = Callable[[Language], Iterable[Example]]
Counts = Counter[str | None]  # examples of each objective, by kind_of


@runtime_checkable
class Counting(Protocol):
    """A reader that can count its examples without making all of their Docs."""

    def counts(self, spans_key: str) -> Counts:
        """How many examples of each objective, see count_objectives."""


def kind_of(doc: Doc, spans_key: str) -> str | None:
    """The objective of an example, "" where it is the only one; None for a Doc without members."""
    group = doc.spans.get(spans_key)
    return None if group is None else cast(str, group.attrs.get(OBJECTIVE, ""))


def count_objectives(corpus: Reader, spans_key: str, nlp: Language | None = None) -> Counts:
    """How many examples of each objective a reader has.

    corpus (Callable): the reader; one that cannot count is read.
    spans_key (str): where the members stand.
    nlp (Language): the pipeline to read in, None for reading_pipeline().
    RETURNS (Counter): how many, by kind_of.
    RAISES (ValueError): what the reader raises.
    """
    if isinstance(corpus, Counting):
        return corpus.counts(spans_key)
    return Counter(kind_of(example.reference, spans_key) for example in corpus(nlp or reading_pipeline()))


def reading_pipeline() -> Language:
    """A pipeline to count examples in: spaCy's own readers have as many in any language."""
    return spacy.blank("xx")


class DistributedContext:
    """This process alone: its examples are the whole batch. Another kind is spacy_sbert.training.Ranks."""

    def batch(self, own: Sequence[Example]) -> Sequence[Example]:
        """All examples of the batch that these are the part of."""
        return own

    def gather(self, vectors: Floats2d, counts: Sequence[int]) -> Floats2d:
        """The vectors of all examples of a batch.

        vectors (Floats2d): of the own ones, float32 (rows, width). counts: how many rows each example of the batch has.
        RETURNS (Floats2d): float32 (all rows, width), example by example.
        """
        return vectors

    def own(self, d_vectors: Floats2d, counts: Sequence[int]) -> Floats2d:
        """The rows that belong to the own examples, of those of all; what gather is for vectors, backwards."""
        return d_vectors


SINGLE_PROCESS = DistributedContext()


MEASURES = ("sts_spearman", "sts_pearson", "pair_ap", "nli_acc", "triplet_acc", "knn_acc")
FEW = 3  # different scores that need be known
SHOWN = 10  # labels that a message names
NO_PAIRS = "there are no pairs with scores"


@dataclass
class GoldFacts:
    """What the gold of some examples is.

    count: number of examples. triplets: those of three members. scores: of pairs, how often each of the first few
    comes. objective_labels: how often each label of pairs comes, by the objective of the pairs, "" where none is noted.
    text_labels: how often each label of single texts comes.
    """

    count: int = 0
    triplets: int = 0
    scores: Counter[float] = field(default_factory=Counter)
    objective_labels: dict[str, Counter[str]] = field(default_factory=dict)
    text_labels: Counter[str] = field(default_factory=Counter)

    def add(self, reference: Doc, spans_key: str) -> None:
        """Look at the reference of an example; a Doc without members only counts."""
        self.count += 1
        group = reference.spans.get(spans_key)
        if group is None:
            return
        n_members, score, label = len(group), group.attrs.get("score"), group.attrs.get("label")
        self.triplets += n_members == 3
        if n_members == 2 and score is not None and (score in self.scores or len(self.scores) < FEW):
            self.scores[score] += 1
        if label is not None and n_members < 3:
            objective = group.attrs.get(OBJECTIVE) or ""
            of_pairs = n_members == 2
            labels = self.objective_labels.setdefault(objective, Counter()) if of_pairs else self.text_labels
            labels[label] += 1

    @property
    def pair_labels(self) -> Counter[str]:
        """How often each label of pairs comes."""
        return sum(self.objective_labels.values(), Counter())

    def undefined(self) -> dict[str, str]:
        """Return the measures that this gold does not allow, each with the reason."""
        found: dict[str, str] = {}
        of_pairs = self._undefined_correlation()
        if of_pairs:
            found |= {"sts_spearman": of_pairs, "sts_pearson": of_pairs}
        if self.scores.keys() != {0.0, 1.0}:
            other = "the scores are not 0 and 1 alone" if len(self.scores) > 1 else of_pairs
            found["pair_ap"] = other or NO_PAIRS
        if not self.pair_labels:
            found["nli_acc"] = "there are no pairs with labels"
        if not self.triplets:
            found["triplet_acc"] = "there are no triplets"
        if len(self.text_labels) < 2 or max(self.text_labels.values()) < 2:
            found["knn_acc"] = self._undefined_neighbours()
        return found

    def relevant(self, reasons: Mapping[str, str]) -> list[str]:
        """Return those of some reasons, by measure, that are of gold which is there, without repetition."""
        there = {"nli_acc": self.pair_labels, "knn_acc": self.text_labels, "triplet_acc": self.triplets}
        kept = [reason for name, reason in reasons.items() if there.get(name, name != "pair_ap" and self.scores)]
        return list(dict.fromkeys(kept))

    def _undefined_correlation(self) -> str | None:
        if len(self.scores) > 1:
            return None
        if not self.scores:
            return NO_PAIRS
        ((score, n),) = self.scores.items()
        if n == 1:
            return "there is one pair with a score"
        return f"all gold scores are {score:g} (of 0 to 1, as they are scaled)"

    def _undefined_neighbours(self) -> str:
        if not self.text_labels:
            return "there are no single texts with labels"
        if len(self.text_labels) == 1:
            return f"all labels of texts are '{next(iter(self.text_labels))}'"
        return "no label of the texts comes twice"


def listed_labels(labels: Iterable[str]) -> str:
    """Return the first labels as messages show them."""
    listed = list(labels)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(f"'{label}'" for label in listed[:SHOWN]) + more


class MemberVectors:
    """The members of all examples of a batch, of which this process has encoded its own.

    batch (Sequence[Example]): all of it. vectors: of all members, float32 (members of the batch, width), example by
        example. gradient: of the same shape, zeros to begin with.
    RAISES (ValueError): if the rows of an own example are not its members.
    """

    def __init__(
        self,
        ops: Ops,
        examples: Sequence[Example],
        scores: Sequence[EncodedDoc],
        spans_key: str,
        peers: DistributedContext,
    ):
        rows = [member_rows(eg.predicted, enc, spans_key) for eg, enc in zip(examples, scores, strict=True)]
        self._ops, self._peers = ops, peers
        self._borders = [0, *accumulate(len(encoded.vectors) for encoded in scores)]
        flat = ops.xp.concatenate([encoded.vectors for encoded in scores])  # (rows of the own Docs, width)
        starts = zip(self._borders, rows, strict=False)
        self._own = ops.asarray1i([start + row for start, of_doc in starts for row in of_doc])
        self.batch = peers.batch(examples)
        self._counts = [len(members(example.predicted, spans_key)) for example in self.batch]
        self._starts = [0, *accumulate(self._counts)]
        self.vectors = peers.gather(flat[self._own], self._counts)
        self.gradient = ops.alloc2f(*self.vectors.shape)

    def places(self, chosen: Sequence[int], member: int) -> Ints1d:
        """Where a member of some examples stands. chosen: their places in the batch. member (int): its number."""
        return self._ops.asarray1i([self._starts[i] + member for i in chosen])

    def of_docs(self) -> list[Floats2d]:
        """The gradient by the rows of each own Doc, zeros where a row is no member."""
        d_flat = self._ops.alloc2f(self._borders[-1], self.vectors.shape[1])
        d_flat[self._own] = self._peers.own(self.gradient, self._counts)
        return [d_flat[start:end] for start, end in pairwise(self._borders)]
