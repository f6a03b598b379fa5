"""The `sbert_reranker` pipe: nothing but spaCy's protocol around a cross-encoder, and ranking."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import cast

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate
from thinc.types import Floats2d
from thinc.util import to_numpy

from ..errors.checks import Name, Positive, validated
from ..errors.notices import Notices
from ..errors.progress import progress_bar
from ..files.sealed_states import SealedPipe
from ..hooks import records
from ..spans import SPANS_KEY, members
from ..training.members import batch_size_of
from ..training.pipe import PairPipe, Scores
from .annotations import install_extension, note
from .checkpoint import state_of
from .cross_encoder import CrossEncoder, PairLogits
from .cuts import PairCuts
from .errors import Errors, Warnings
from .objectives import OBJECTIVES
from .texts import Ranked, Text, TextT, read_windows
from .tokenizer import Pair

DEFAULT_CONFIG = {
    "model": {
        "@architectures": "spacy-sbert.CrossEncoder.v1",
        "name": "sentence-transformers/all-MiniLM-L6-v2",
        "n_outputs": 0,
        "activation": "auto",
        "max_length": 0,
    },
    "objective": "regression",
    "scorer": {"@scorers": "spacy-sbert.pair_scorer.v1"},
    "spans_key": SPANS_KEY,
}


@Language.factory(
    "sbert_reranker",
    assigns=["doc._.sbert_reranker_score"],
    default_config=DEFAULT_CONFIG,
    default_score_weights={"sts_spearman": 1.0, "sts_pearson": 0.0},
)
@validated
def make_sbert_reranker(
    nlp: Language, name: str, model: Model, objective: str, scorer: Callable[..., Scores] | None, spans_key: Name
) -> "SentenceReranker":
    """Build the `sbert_reranker` pipe, see SentenceReranker."""
    return SentenceReranker(nlp.vocab, model, name, objective=objective, scorer=scorer, spans_key=spans_key)


class SentenceReranker(PairPipe, SealedPipe):
    """Scores pairs of texts, by reading both at once: slower than to compare two vectors, and more precise.

    vocab (Vocab): the pipeline's. model (Model): a cross-encoder, spacy-sbert.CrossEncoder.v1.
    name (str): the pipe's name, under which it notes scores and labels.
    objective (str): what it is trained on: "regression", by binary cross-entropy, or "squared_error", by the mean
        squared error of the score, on scores from 0 to 1; "classification", by softmax cross-entropy, on labels.
    scorer (Callable): what to report of pairs.
    spans_key (str): where the members of a pair stand, doc.spans[spans_key].
    RAISES (ValueError): if model is not a cross-encoder, or for an unknown objective.
    SOURCE: Reimers and Gurevych 2019, sections 4.2 and 4.3 (BERT-STSb and BERT-AFS).
    """

    @validated
    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "sbert_reranker",
        *,
        objective: str = "regression",
        scorer: Callable[..., Scores] | None = None,
        spans_key: Name = SPANS_KEY,
    ):
        if not isinstance(model, CrossEncoder):
            raise ValueError(Errors.RERANKER_NO_MODEL.format(name=name, given=model.name))
        if objective not in OBJECTIVES:
            expected = ", ".join(OBJECTIVES)
            raise ValueError(Errors.RERANKER_UNKNOWN_OBJECTIVE.format(given=objective, expected=expected))
        self.vocab = vocab
        self.model: CrossEncoder = model
        self.name = name
        self.objective = OBJECTIVES[objective]
        self.scorer = scorer
        self.spans_key = spans_key
        self.cfg: dict[str, object] = {}
        self._notices = Notices(PairCuts)
        install_extension(name)

    def __repr__(self) -> str:
        shim = self.model.shim
        state = f"{shim.precision} on {shim.device}" if shim.is_loaded else f"{shim.precision}, not loaded yet"
        return f"SentenceReranker('{self.name}': {shim.name}, {self.objective.name}, {state})"

    # Pairs and ranks

    def score_pairs(
        self, pairs: Iterable[tuple[Text, Text]], *, progress: bool = False, show_progress_bar: bool | None = None
    ) -> numpy.ndarray:
        """The scores of pairs of texts, such as query and passage.

        pairs (Iterable[tuple]): n pairs of str, Doc or Span, from wherever; they are read window by window.
        progress (bool): whether to show a progress bar; show_progress_bar is what sentence-transformers calls it.
        RETURNS (float32 (n,), or (n, outputs) of several): on the CPU, in the order of the pairs.
        RAISES (TypeError): if one is not a pair of texts. (ValueError): if a score is not finite.
        """
        total, shown = len(pairs) if isinstance(pairs, Sized) else None, progress or bool(show_progress_bar)
        found = []
        with self._notices.one_for_cuts(), progress_bar(total, shown=shown, unit="pairs") as bar:
            for window in read_windows(pairs):
                found.append(self._score_window(window))
                bar.update(len(window))
        scores = numpy.concatenate(found) if found else self._score_window([])
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def rank(
        self,
        query: Text,
        texts: Iterable[TextT],
        k: int | None = None,
        *,
        progress: bool = False,
        show_progress_bar: bool | None = None,
    ) -> list[Ranked[TextT]]:
        """Order texts by how well they answer a query.

        query (str, Doc or Span): stands first in every pair.
        texts (Iterable): str, Docs or Spans, such as those that a search found.
        k (int): how many to return, by default all. progress, show_progress_bar (bool): as of score_pairs.
        RETURNS (list[Ranked]): the best first, the earlier first of equal ones.
        RAISES (TypeError): if a single text is given. (ValueError): if there are fewer than k texts, or the
            cross-encoder has several outputs.
        """
        if isinstance(texts, (str, bytes, Mapping, Doc, Span)) or not isinstance(texts, Iterable):
            raise TypeError(Errors.RERANKER_ONE_TEXT.format(given=repr(texts)[:100]))
        texts = list(texts)
        if k is not None and not (isinstance(k, int | numpy.integer) and 1 <= k <= len(texts) and k is not True):
            raise ValueError(Errors.RERANKER_COUNT.format(given=k, most=len(texts)))
        self.model.shim.load()
        if (given := self.model.shim.config.num_labels) > 1:
            raise ValueError(Errors.RERANKER_SEVERAL_OUTPUTS.format(name=self.name, given=given))
        pairs = [(query, text) for text in texts]
        scores = self.score_pairs(pairs, progress=progress, show_progress_bar=show_progress_bar)
        order = numpy.argsort(-scores, kind="stable")[:k].tolist()
        return [Ranked(texts[i], float(scores[i]), i) for i in order]

    def _score_window(self, pairs: list[Pair]) -> numpy.ndarray:
        """The scores, float32 (n, outputs)."""
        found = self.model.predict(pairs)
        if pairs and self.model.shim.has_new_head:
            self._notices.once(Warnings.RERANKER_NEW_HEAD.format(name=self.name), stacklevel=4)
        cuts = self._notices.cuts
        cuts.count, cuts.total, cuts.limit = cuts.count + found.n_cut, cuts.total + len(pairs), self._limit
        bad = numpy.flatnonzero(~numpy.isfinite(to_numpy(found.logits)).all(axis=1))
        if len(bad):
            first, second = (text[:50] for text in pairs[int(bad[0])])
            raise ValueError(Errors.RERANKER_NOT_FINITE.format(name=self.name, first=first, second=second))
        return to_numpy(self.model.scores(found.logits))

    # Docs

    def __call__(self, doc: Doc) -> Doc:
        """Score the pair that a Doc holds; leave other Docs as they are."""
        with self._notices.one_for_cuts():
            return super().__call__(doc)

    @validated
    def pipe(self, stream: Iterable[Doc], *, batch_size: Positive = 128) -> Iterator[Doc]:
        """Score the pairs in a stream of Docs, batch by batch; they come out in order."""
        with self._notices.one_for_cuts():
            yield from super().pipe(stream, batch_size=batch_size)

    def predict(self, docs: Iterable[Doc]) -> list[numpy.ndarray | None]:
        """Score the Docs that have two members, without changing them.

        RETURNS (list): float32 (outputs,) for each, None for a Doc that is not a pair.
        """
        docs = list(docs)
        pairs = [self._pair(doc) for doc in docs]
        known = [pair for pair in pairs if pair is not None]
        scores = iter(self._score_window(known) if known else [])  # no weights are loaded for nothing
        return [None if pair is None else next(scores) for pair in pairs]

    def set_annotations(self, docs: Iterable[Doc], scores: list[numpy.ndarray | None]) -> None:
        """Note scores and labels beside the members of pairs, see note."""
        install_extension(self.name)  # the pipe may have got another name since it was made
        for doc, of_doc in zip(docs, scores, strict=True):
            if of_doc is not None:
                note(doc, self.name, self.spans_key, of_doc, self.labels)

    def _pair(self, doc: Doc) -> Pair | None:
        pair = members(doc, self.spans_key)
        return (pair[0].text, pair[1].text) if len(pair) == 2 else None

    # Training

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the outputs, if there are several; none before the weights are loaded, as spaCy asks often."""
        return self.model.shim.labels if self.model.shim.is_loaded else ()

    @property
    def label_data(self) -> list[str]:
        """The labels as `initialize` takes them, for `spacy init labels`."""
        return list(self.labels)

    @validated
    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Sequence[Name] | None = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        """Load the weights, and make a head if there is none that fits. A head that was trained for the objective, and
        the same labels, stays.

        nlp (Language): whose training.seed decides the weights of a new head.
        labels (list[str]): of the classification objective; by default those of the examples.
        checkpoint (str or Path): a trained pipeline whose reranker of the same name training goes on from, whatever
            its objective: network and tokenizer are its, and the name in the config of the model is not looked for.
        RAISES (OSError, ValueError): if encoder or checkpoint are not found, the checkpoint has no such reranker, or
            there is but one label.
        """
        validate_get_examples(get_examples, "SentenceReranker.initialize")
        shim = self.model.shim
        if checkpoint is not None:
            shim.from_bytes(state_of(checkpoint, self.name))
        self.model.initialize()
        if labels is None:
            pairs = (example for example in get_examples() if self._pair(example.predicted) is not None)
            labels = self.objective.labels_of(pairs, self.spans_key)
        n_outputs = self.objective.n_outputs(labels, shim.config.num_labels)
        if shim.has_new_head or n_outputs != shim.config.num_labels or set(labels) - set(shim.labels):
            seed = 0 if nlp is None else nlp.config.interpolate()["training"]["seed"]
            shim.make_head(n_outputs, labels, seed or 0)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch of examples whose Docs have two members; others are left out.

        losses (dict): gets the loss under the pipe's name.
        RAISES (ValueError): if a pair has no gold value, or the loss is not finite.
        """
        examples, losses = self._received(examples, losses)
        learning = self._scored(examples)
        if not learning:
            self._notices.once(Warnings.RERANKER_NOTHING_TO_LEARN.format(name=self.name, key=self.spans_key))
            return losses
        set_dropout_rate(self.model, drop)
        pairs = [cast(Pair, self._pair(example.predicted)) for example in learning]
        found, backprop = self.model.begin_update(pairs)
        if found.n_cut:
            self._notices.once(Warnings.RERANKER_TRAINING_CUT.format(name=self.name, limit=self._limit))
        loss, d_logits = self.get_loss(learning, found)
        backprop(cast(PairLogits, d_logits))
        if sgd not in (None, False):
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def get_loss(self, examples: Iterable[Example], scores: PairLogits) -> tuple[float, Floats2d]:
        """The loss of a batch, and its gradient by the logits of each pair.

        examples (Iterable[Example]): n pairs; gold values stand on the reference.
        scores (PairLogits): what the cross-encoder gave for them.
        RETURNS (float, float32 (n, outputs)): of a part of a batch, its share in them.
        RAISES (ValueError): if a pair has no gold value, or the loss is not finite.
        """
        examples = list(examples)
        loss, d_logits = self.objective.loss(self.model, scores.logits, examples, self.spans_key)
        if not math.isfinite(loss):
            text = examples[0].reference.text[:50]
            raise ValueError(Errors.LOSS_NOT_FINITE.format(loss=self.objective.name, text=text))
        share = len(examples) / batch_size_of(examples[0], self.spans_key, default=len(examples))
        return loss * share, d_logits * share

    def _scored(self, examples: list[Example]) -> list[Example]:
        return [example for example in examples if self._pair(example.predicted) is not None]

    def _answers(self, examples: list[Example]) -> bool:
        return not any(records.find(example.predicted) for example in examples)

    @property
    def _limit(self) -> int | None:
        return self.model.pair_tokenizer.limit if self.model.shim.is_loaded else None
