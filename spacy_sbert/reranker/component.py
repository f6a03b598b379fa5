"""The `sbert_reranker` pipe: nothing but spaCy's protocol around a cross-encoder."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import cast

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate
from thinc.types import Floats2d

from ..encoder.resolve import warn_if_missing
from ..errors.checks import Name, Positive, shown, validated
from ..errors.notices import Notices
from ..files.sealed_states import SealedPipe
from ..hooks import doc_vectors
from ..hooks.in_pipeline import InPipeline
from ..spans import SPANS_KEY, members
from ..training.members import batch_size_of
from ..training.pipe import PairPipe, Scores
from .annotations import install_extension, note
from .checkpoint import state_of
from .cross_encoder import CrossEncoder, PairLogits
from .cuts import PairCuts
from .errors import Errors, Warnings
from .objectives import OBJECTIVES
from .ranking import Ranking
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
def make_sbert_reranker(
    nlp: Language, name: str, model: Model, objective: str, scorer: Callable[..., Scores] | None, spans_key: Name
) -> "SentenceReranker":
    """Build the `sbert_reranker` pipe, see SentenceReranker."""
    if isinstance(model, CrossEncoder):
        warn_if_missing(nlp, name, model.shim.name)
    pipe = SentenceReranker(nlp.vocab, model, name, objective=objective, scorer=scorer, spans_key=spans_key)
    pipe._in_pipeline.nlp = nlp
    return pipe


class SentenceReranker(Ranking, PairPipe, SealedPipe):
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
        self._in_pipeline = InPipeline()
        install_extension(name)

    def __repr__(self) -> str:
        shim = self.model.shim
        state = f"{shim.precision} on {shim.device}" if shim.is_loaded else f"{shim.precision}, not loaded yet"
        return f"SentenceReranker('{self.name}': {shim.name}, {self.objective.name}, {state})"

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
        RAISES (TypeError): for pairs of texts, which score_pairs takes.
        """
        docs = list(docs)
        if others := [one for one in docs if not isinstance(one, Doc)]:
            raise TypeError(Errors.RERANKER_PREDICT.format(name=self.name, given=shown(others[0])))
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
        labels (list[str]): of the classification objective; by default those of the examples. Without labels and pairs
            a head that was trained stays, whatever the objective.
        checkpoint (str or Path): a trained pipeline whose reranker of the same name training goes on from, whatever
            its objective: network and tokenizer are its, and the name in the config of the model is not looked for.
        RAISES (OSError, ValueError): if encoder or checkpoint are not found, the checkpoint has no such reranker, or
            there is but one label, or n_outputs in the config of the model does not fit the objective.
        """
        validate_get_examples(get_examples, "SentenceReranker.initialize")
        shim = self.model.shim
        if checkpoint is not None:
            shim.from_bytes(state_of(checkpoint, self.name))
        self.model.initialize()
        n_outputs = shim.config.num_labels  # without labels and pairs
        pairs = (example for example in get_examples() if self._pair(example.predicted) is not None)
        first = next(pairs, None)
        if labels is None:
            labels = [] if first is None else self.objective.labels_of(chain([first], pairs), self.spans_key)
        if labels or first is not None:
            n_outputs = self.objective.n_outputs(labels, n_outputs)
        if shim.n_outputs not in (0, n_outputs):
            told = {"objective": self.objective.name, "given": shim.n_outputs, "expected": n_outputs}
            raise ValueError(Errors.RERANKER_OTHER_OUTPUTS.format(**told))
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
            elsewhere = self._found_members(examples)
            told = {"name": self.name, "key": self.spans_key, "found": elsewhere}
            self._notices.once(Warnings.RERANKER_NOTHING_TO_LEARN.format(**told))
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
        self.loss_seen += loss
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
        return not any(doc_vectors.find(example.predicted) for example in examples)
