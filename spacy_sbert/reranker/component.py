"""The `sbert_reranker` component: pairs of texts on Docs, and the training of a cross-encoder."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, cast

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.util import load_model
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate
from thinc.types import Floats2d

from ..errors import DivergedError, Warnings, WarnOnce, missing_packages, warn
from ..files.serialization import ChecksummedPipe
from ..losses._common import label_indices
from ..models.encoder_language import warn_of_language
from ..models.resolve import warn_if_missing
from ..models.spans import SPANS_KEY, members
from ..models.surroundings import undisturbed
from ..pipeline import doc_vectors
from ..pipeline.components import InPipeline, find_in
from ..training.batch_loss import LOSS_NOT_FINITE, SINGLE_CLASS, Scores, score_examples
from ..training.examples import (
    attribute,
    check_one_text,
    labels_of,
    lost_members_warning,
    scores_of,
)
from ..training.step import members_on_reference, whole_update
from ..validation import (
    SCORE_RANGE,
    GetExamples,
    Name,
    Positive,
    SpansKey,
    check_docs,
    validated,
)
from .cross_encoder import CrossEncoder, PairLogits
from .objectives import binary_cross_entropy, label_cross_entropy, mean_squared_error
from .pair_scoring import PairScoring, PairTruncation
from .pair_tokenizer import Pair

Objective = Literal["regression", "squared_error", "classification"]


class SentenceReranker(PairScoring, ChecksummedPipe):
    """Scores pairs of texts, by reading both at once.

    That is slower than to compare two vectors, and more precise.

    model (Model): a cross-encoder, spacy-sbert.CrossEncoder.v1.
    name (str): the pipe's name, under which it stores scores and labels.
    objective (str): what it is trained on: "regression", by binary cross-entropy, or
        "squared_error", by the mean squared error of the score, on scores from 0 to 1;
        "classification", by softmax cross-entropy, on labels.
    vocab, scorer, spans_key, nlp: see SentenceBert.
    RAISES (ValueError): if model is not a cross-encoder.
    SOURCE: Reimers and Gurevych 2019, sections 4.2 and 4.3 (BERT-STSb and BERT-AFS).
    """

    # In training, for reporting speed
    examples_seen = 0
    # The sum of the loss
    loss_seen = 0.0

    @validated
    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "sbert_reranker",
        *,
        objective: Objective = "regression",
        scorer: Callable[..., Scores] | None = None,
        spans_key: SpansKey = SPANS_KEY,
        nlp: Language | None = None,
    ):
        if not isinstance(model, CrossEncoder):
            raise ValueError(
                f"The model of '{name}' is not a cross-encoder: expected the architecture "
                "spacy-sbert.CrossEncoder.v1."
            )
        if nlp is not None:
            warn_if_missing(nlp, name, model.shim.name)
            warn_of_language(nlp, name, model.shim.name)
        self.vocab = vocab
        self.model: CrossEncoder = model
        self.name = name
        self.objective = objective
        self.scorer = scorer
        self.spans_key = spans_key
        self.cfg: dict[str, object] = {}
        self._notices = WarnOnce(PairTruncation)
        self._in_pipeline = InPipeline(nlp)
        _install_extension(name)

    def __repr__(self) -> str:
        shim = self.model.shim
        state = f"{shim.precision}, not loaded yet"
        if shim.is_loaded:
            state = f"{shim.precision} on {shim.device}"
        return f"SentenceReranker('{self.name}': {shim.name}, {self.objective}, {state})"

    def load(self) -> None:
        """Load the cross-encoder now.

        RAISES (OSError, ValueError): if it is not found, or damaged.
        """
        self.model.shim.load()

    def __call__(self, doc: Doc) -> Doc:
        """Score the pair that a Doc holds; leave other Docs as they are."""
        # Which spaCy would report without the remedy
        self._check_docs([doc])
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
        RAISES (TypeError): for pairs of texts, which score_pairs takes.
        """
        docs = list(docs)
        self._check_docs(docs)
        pairs = [self._pair(doc) for doc in docs]
        known = [pair for pair in pairs if pair is not None]
        if not known:
            # The weights need not be loaded
            return [None] * len(docs)
        scores = iter(self._score(known))
        return [None if pair is None else next(scores) for pair in pairs]

    def _check_docs(self, docs: list[Doc]) -> None:
        hint = f'To score pairs of texts call find_reranker(nlp, "{self.name}").score_pairs(pairs).'
        check_docs(docs, self.name, hint)

    def set_annotations(self, docs: Iterable[Doc], scores: list[numpy.ndarray | None]) -> None:
        """Store the scores of pairs in doc.spans[spans_key].attrs.

        Of several scores, store also the label of the highest.

        The keys of the pipe "sbert_reranker" are "sbert_reranker_score", a float or a list of
        several, and "sbert_reranker_label".
        """
        # The pipe may have got another name since it was made
        _install_extension(self.name)
        for doc, outputs in zip(docs, scores, strict=True):
            if outputs is None:
                continue
            score = outputs.tolist()
            attrs = doc.spans[self.spans_key].attrs
            attrs[f"{self.name}_score"] = score[0] if len(score) == 1 else score
            if self.labels:
                attrs[f"{self.name}_label"] = self.labels[int(outputs.argmax())]

    def _pair(self, doc: Doc) -> Pair | None:
        texts = [member.text for member in members(doc, self.spans_key)]
        if len(texts) != 2:
            return None
        return texts[0], texts[1]

    @property
    def label_data(self) -> list[str]:
        """Return the labels as `initialize` takes them, for `spacy init labels`."""
        return list(self.labels)

    @validated
    def initialize(
        self,
        get_examples: GetExamples,
        *,
        nlp: Language | None = None,
        labels: Sequence[Name] | None = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        """Load the weights, and make a head if there is none that fits.

        A head that was trained for the objective and the same labels stays.

        nlp (Language): whose training.seed decides the weights of a new head.
        labels (list[str]): of the classification objective; by default those of the examples.
            Without labels and pairs a head that was trained stays, whatever the objective.
        checkpoint (str or Path): a trained pipeline whose reranker of the same name training goes
            on from, whatever its objective: network and tokenizer are its, and the name in the
            config of the model is not looked for.
        RAISES (OSError, ValueError): if encoder or checkpoint are not found, the checkpoint has no
            such reranker, or there is but one label, or n_outputs in the config of the model does
            not fit the objective.
        """
        validate_get_examples(get_examples, "SentenceReranker.initialize")
        if checkpoint is not None:
            self._start_from(checkpoint)
        self.model.initialize()
        shim = self.model.shim
        pairs = (example for example in get_examples() if self._pair(example.predicted) is not None)
        # Reading all of them is left to an objective that needs their labels
        first = next(pairs, None)
        n_outputs = shim.n_logits
        if self.objective != "classification":
            if labels:
                raise ValueError(
                    f'The labels do not fit: the objective "{self.objective}" learns scores. '
                    "Leave them out."
                )
            if first is not None:
                n_outputs = 1
        elif labels is None and first is not None:
            labels = sorted(set(labels_of([first, *pairs], self.spans_key)))
        if labels:
            n_outputs = len(labels)
        self._fit_head(n_outputs, labels or (), nlp)

    def _fit_head(self, n_outputs: int, labels: Sequence[str], nlp: Language | None) -> None:
        """Make a new head if the classifier's was not trained for these outputs and labels."""
        shim = self.model.shim
        if len(labels) == 1:
            raise ValueError(SINGLE_CLASS.format(loss=self.objective, given=labels[0]))
        if shim.n_outputs not in (0, n_outputs):
            raise ValueError(
                f'The objective "{self.objective}" needs {n_outputs} outputs with these examples, '
                f"the config of the cross-encoder says n_outputs = {shim.n_outputs}. Set it to 0, "
                "which follows the objective."
            )
        has_new_labels = not set(labels) <= set(shim.labels)
        if shim.has_new_head or n_outputs != shim.n_logits or has_new_labels:
            shim.make_head(n_outputs, labels, _seed_of(nlp))

    def _start_from(self, checkpoint: str | Path) -> None:
        """Take network, head and tokenizer from the reranker of this name in another pipeline."""
        with missing_packages():
            nlp = load_model(checkpoint)
        model = None
        if nlp.has_pipe(self.name):
            model = getattr(nlp.get_pipe(self.name), "model", None)
        if not isinstance(model, CrossEncoder):
            raise ValueError(
                f"Cannot start '{self.name}' from '{checkpoint}', which has no reranker of that "
                f"name: its pipes are {', '.join(nlp.pipe_names) or 'none'}. Name a pipeline that "
                "was trained with one."
            )
        self.model.shim.from_bytes(model.shim.to_bytes())

    @undisturbed()
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
        if losses is None:
            losses = {}
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "SentenceReranker.update")
        self.examples_seen += len(examples)
        learning = self._pairs_among(examples)
        check_one_text(learning, self.spans_key)
        if not learning:
            found = members_on_reference(examples, self.spans_key)
            message = Warnings.RERANKER_NOTHING_TO_LEARN
            self._notices.once(message.format(name=self.name, key=self.spans_key, found=found))
            return losses
        lost = lost_members_warning(examples, self.spans_key)
        if lost and self._notices.is_new(Warnings.MEMBERS_LOST):
            warn(lost)
        set_dropout_rate(self.model, drop)
        pairs = [cast(Pair, self._pair(example.predicted)) for example in learning]
        predicted, backprop = self.model.begin_update(self.model.prompted(pairs))
        if predicted.n_cut:
            message = Warnings.RERANKER_TRAINING_CUT
            self._notices.once(message.format(name=self.name, limit=self._limit))
        loss, d_logits = self.get_loss(learning, predicted)
        with whole_update(self.model):
            backprop(cast(PairLogits, d_logits))
        if sgd not in (None, False):
            self.finish_update(sgd)
        losses[self.name] += loss
        self.loss_seen += loss
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Update the weights."""
        with whole_update(self.model):
            super().finish_update(sgd)

    def get_loss(self, examples: Iterable[Example], scores: PairLogits) -> tuple[float, Floats2d]:
        """Return the loss of a batch, and its gradient by the logits of each pair.

        examples (Iterable[Example]): n pairs; gold values are on the reference.
        scores (PairLogits): the output of the cross-encoder for them.
        RETURNS (float, float32 (n, outputs)): of a part of a batch, its share in them.
        RAISES (ValueError): if a pair has no gold value, or the loss is not finite.
        """
        examples = list(examples)
        logits = scores.logits
        n_outputs = logits.shape[1]
        classifies = self.objective == "classification"
        if (n_outputs == 1) == classifies:
            raise ValueError(
                f"The cross-encoder has {n_outputs} outputs, which do not fit the objective "
                f'"{self.objective}". Call nlp.initialize before training, or set n_outputs.'
            )
        if classifies:
            ops = self.model.ops
            gold_labels = labels_of(examples, self.spans_key)
            targets = label_indices(ops, gold_labels, self.model.shim.labels, "the reranker")
            loss, d_logits = label_cross_entropy(logits, targets)
        else:
            gold = scores_of(examples, self.model.ops, self.spans_key, SCORE_RANGE)
            if self.objective == "regression":
                loss, d_logits = binary_cross_entropy(logits, gold)
            else:
                loss, d_logits = mean_squared_error(logits, gold, self.model.activation)
        if not math.isfinite(loss):
            text = examples[0].reference.text[:50]
            raise DivergedError(LOSS_NOT_FINITE.format(loss=self.objective, text=text))
        size = attribute(examples[0].reference, "batch_size", self.spans_key) or len(examples)
        share = len(examples) / cast(int, size)
        return loss * share, d_logits * share

    def score(self, examples: Iterable[Example], **kwargs: object) -> Scores:
        """Return the scores of the pairs among examples.

        Under the pipe's name if another pipe answers `doc.vector`.
        """
        pairs = self._pairs_among(list(examples))
        is_default = not any(doc_vectors.find(example.predicted) for example in pairs)
        return score_examples(self, pairs, is_default=is_default, **kwargs)

    def _pairs_among(self, examples: list[Example]) -> list[Example]:
        return [example for example in examples if self._pair(example.predicted) is not None]


def find_reranker(nlp: Language, name: str | None = None) -> SentenceReranker:
    """Return the `sbert_reranker` of a pipeline: the one of this name, or the last.

    RAISES (ValueError): if none.
    """
    return find_in(nlp, SentenceReranker, "sbert_reranker", name)


def _install_extension(name: str) -> None:
    """Register `doc._.sbert_reranker_score`, which reads the stored score.

    None on a Doc that is not a pair.
    """
    key = f"{name}_score"
    if not Doc.has_extension(key):
        Doc.set_extension(key, getter=partial(_get_score, key))


def _get_score(key: str, doc: Doc) -> float | list[float] | None:
    for group in doc.spans.values():
        if key in group.attrs:
            return group.attrs[key]
    return None


def _seed_of(nlp: Language | None) -> int:
    """Return the seed of a pipeline's training, 0 if there is none."""
    if nlp is None:
        return 0
    return nlp.config.interpolate()["training"]["seed"] or 0
