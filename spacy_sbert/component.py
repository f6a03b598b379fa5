"""The `sbert` pipe: nothing but spaCy's protocol around a sentence encoder and a loss."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, cast

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.util import logger
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate
from thinc.types import Floats2d

from . import hooks, records
from .annotations import CutCounter, make_record
from .errors import Errors, Warnings
from .layers.encoded import EncodedDoc
from .layers.with_loss import with_loss
from .pairs import gold_value, member_rows
from .spans import SPANS_KEY, members
from .upstream import find_listeners, follow_upstream, prepare_upstream

DEFAULT_CONFIG = {
    "model": {
        "@architectures": "spacy-sbert.SentenceEncoder.v1",
        "name": "sentence-transformers/all-MiniLM-L6-v2",
        "pooling": "mean",
        "normalize": "auto",
        "overflow": "truncate",
        "get_spans": {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc", "spans_key": SPANS_KEY},
    },
    "loss": {"@layers": "spacy-sbert.CosineSimilarityLoss.v1"},
    "scorer": {"@scorers": "spacy-sbert.sts_scorer.v1"},
    "set_hooks": True,
    "token_vectors": True,
    "spans_key": SPANS_KEY,
}
N_INITIAL_EXAMPLES = 100  # enough to see whether there are pairs


@Language.factory(
    "sbert",
    assigns=[
        "doc.vector",
        "doc._.sbert_vector",
        "doc._.sbert_truncated",
        "span._.sbert_vector",
        "token._.sbert_vector",
    ],
    default_config=DEFAULT_CONFIG,
    default_score_weights={"sts_spearman": 1.0, "sts_pearson": 0.0},
)
def make_sbert(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[EncodedDoc]],
    loss: Model | None,
    scorer: Callable | None,
    set_hooks: bool,
    token_vectors: bool,
    spans_key: str,
) -> "SentenceBert":
    """Build the `sbert` pipe, see SentenceBert."""
    follow_upstream(nlp, model)
    return SentenceBert(
        nlp.vocab,
        model,
        name,
        loss=loss,
        scorer=scorer,
        set_hooks=set_hooks,
        token_vectors=token_vectors,
        spans_key=spans_key,
    )


class SentenceBert(TrainablePipe):
    """Sentence vectors for Docs, Spans and Tokens, and the training of the encoder that makes them.

    vocab (Vocab): the pipeline's.
    model (Model): a sentence encoder, from Docs to one EncodedDoc each.
    name (str): the pipe's name, under which its vectors are stored.
    loss (Model): the training objective, None for a pipe that is not trained.
    scorer (Callable): what to report of pairs.
    set_hooks (bool): whether `doc.vector` and `similarity` answer with this pipe's vectors. Of several pipes the last
        that sets hooks answers.
    token_vectors (bool): whether to keep what Spans other than rows, and Tokens, need to have vectors.
    spans_key (str): where the members of a pair stand, doc.spans[spans_key].
    RAISES (ValueError): if model is no sentence encoder or loss no loss layer.
    SOURCE: Reimers and Gurevych 2019.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[EncodedDoc]],
        name: str = "sbert",
        *,
        loss: Model | None = None,
        scorer: Callable | None = None,
        set_hooks: bool = True,
        token_vectors: bool = True,
        spans_key: str = SPANS_KEY,
    ):
        if not model.has_ref("pooling"):
            raise ValueError(Errors.NOT_AN_ENCODER.format(name=name, given=model.name))
        if loss is not None and "n_members" not in loss.attrs:
            raise ValueError(Errors.BAD_LOSS.format(name=name, given=loss.name))
        self.vocab = vocab
        self.model = with_loss(model, loss)
        self.name = name
        self.scorer = scorer
        self.set_hooks = set_hooks
        self.token_vectors = token_vectors
        self.spans_key = spans_key
        self.cfg: dict[str, Any] = {}
        self._said: set[str] = set()
        self._cuts = CutCounter()
        hooks.install_extensions(name)

    # From text to vector

    def __call__(self, doc: Doc) -> Doc:
        """Set the vectors of one Doc."""
        with self._one_warning_for_cuts():
            return super().__call__(doc)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Set the vectors of a stream of Docs, batch by batch; they come out in order."""
        with self._one_warning_for_cuts():
            yield from super().pipe(stream, batch_size=batch_size)

    def predict(self, docs: Iterable[Doc]) -> list[EncodedDoc]:
        """Encode Docs without changing them.

        RETURNS (list[EncodedDoc]): one for each Doc.
        """
        self.model.get_ref("pooling").attrs["token_vectors"] = self.token_vectors
        return self.model.predict(list(docs))

    def set_annotations(self, docs: Iterable[Doc], scores: list[EncodedDoc]) -> None:
        """Store the vectors on the Docs, as NumPy arrays whatever the device, and set hooks."""
        hooks.install_extensions(self.name)  # the pipe may have got another name since it was made
        for doc, encoded in zip(docs, scores, strict=True):
            self._tell(encoded)
            self._cuts.add(doc, encoded)
            record = make_record(doc, encoded, width=self._width(encoded), set_hooks=self.set_hooks)
            records.store(doc, self.name, record)
            if self.set_hooks:
                hooks.install(doc)

    # From pairs to gradient

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Load the weights of an own encoder, and check that a shared one fits the examples.

        RAISES (OSError, ValueError): if the encoder is not found, or no transformer can be shared.
        """
        validate_get_examples(get_examples, "SentenceBert.initialize")
        if nlp is not None:
            examples = list(islice(get_examples(), N_INITIAL_EXAMPLES))
            prepare_upstream(nlp, self.name, self.model, examples, self.spans_key)
        self.model.initialize()

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch of examples whose Docs have members; the others get a zero gradient.

        RAISES (ValueError): if the pipe has no loss, or the encoder's rows are not the members.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "SentenceBert.update")
        docs = [example.predicted for example in examples]
        if not any(len(doc) for doc in docs):
            return losses  # a shared transformer returns before it hands out its output, too
        has_pairs = any(members(doc, self.spans_key) for doc in docs)
        if not has_pairs:
            self._once(Warnings.NOTHING_TO_LEARN.format(name=self.name, key=self.spans_key))
            if not find_listeners(self.model):
                return losses
        set_dropout_rate(self.model, drop)
        encoded, backprop = self.model.begin_update(docs)
        self._tell_training_cuts(docs, encoded)
        loss, d_vectors = self.get_loss(examples, encoded)
        backprop(cast(Any, d_vectors))  # in every case: the last listener's call is what trains the shared transformer
        if sgd not in (None, False):
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def get_loss(self, examples: Iterable[Example], scores: list[EncodedDoc]) -> tuple[float, list[Floats2d]]:
        """The loss of a batch, and its gradient by the vectors of each Doc.

        examples (Iterable[Example]): the batch; gold values stand on the reference.
        scores (list[EncodedDoc]): what the encoder made of the predicted Docs.
        RETURNS (float, list[Floats2d]): the loss, 0.0 without pairs, and a gradient of the shape of each vectors.
        RAISES (ValueError): if the pipe has no loss, or a pair is not what the loss takes.
        """
        examples = list(examples)
        gradients = [self.model.ops.alloc2f(*encoded.vectors.shape) for encoded in scores]
        rows = [member_rows(eg.predicted, enc.rows, self.spans_key) for eg, enc in zip(examples, scores, strict=True)]
        paired = [i for i, found in enumerate(rows) if found]
        if not paired:
            return 0.0, gradients
        loss = self._loss_layer()
        self._check_members([examples[i].predicted for i in paired], loss)
        stack = self.model.ops.xp.stack
        n_members = loss.attrs["n_members"]
        inputs = [stack([scores[i].vectors[rows[i][member]] for i in paired]) for member in range(n_members)]
        key = loss.attrs["gold"]
        gold = self.model.ops.asarray1f([gold_value(examples[i], key, self.spans_key) for i in paired]) if key else None
        value, backprop = loss((inputs, gold), True)
        for member, d_member in enumerate(backprop(1.0)):
            for i, d_vector in zip(paired, d_member, strict=True):
                gradients[i][rows[i][member]] = d_vector
        return value, gradients

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Score the pairs among the examples with the pipe's scorer.

        RETURNS (dict): the scores; under the pipe's name if another pipe answers `doc.vector`.
        """
        if self.scorer is None:
            return {}
        examples = list(examples)
        scores = self.scorer(examples, name=self.name, spans_key=self.spans_key, **kwargs)
        answering = next((record.name for eg in examples for record in records.find(eg.predicted)), self.name)
        return scores if answering == self.name else {f"{self.name}_{key}": value for key, value in scores.items()}

    def _loss_layer(self) -> Model:
        loss = self.model.maybe_get_ref("loss")
        if loss is None:
            raise ValueError(Errors.NO_LOSS.format(name=self.name))
        return loss

    def _check_members(self, docs: list[Doc], loss: Model) -> None:
        for doc in docs:
            given, expected = len(members(doc, self.spans_key)), loss.attrs["n_members"]
            if given != expected:
                message = Errors.WRONG_MEMBER_COUNT.format(
                    text=doc.text[:50], given=given, expected=expected, key=self.spans_key, loss=loss.name
                )
                raise ValueError(message)

    # What is kept, and what is said

    def _width(self, encoded: EncodedDoc) -> int:
        """Width of the vectors; 0 if the first Doc of all is empty and a shared transformer has yet to be loaded."""
        if encoded.vectors.shape[1]:
            return encoded.vectors.shape[1]
        nodes = self.model.get_ref("encoder").walk()
        return next((node.get_dim("nO") for node in nodes if node.has_dim("nO")), 0)

    def _tell(self, encoded: EncodedDoc) -> None:
        if encoded.rows.foreign:
            self._once(Warnings.FOREIGN_ROWS)
        settings = encoded.rows.settings
        if settings and settings.pooling not in (None, encoded.pooling) and "pooling" not in self._said:
            self._said.add("pooling")
            logger.warning(
                Warnings.OTHER_POOLING.format(name=settings.name, expected=settings.pooling, given=encoded.pooling)
            )

    def _tell_training_cuts(self, docs: list[Doc], scores: list[EncodedDoc]) -> None:
        cuts = CutCounter()
        for doc, encoded in zip(docs, scores, strict=True):
            cuts.add(doc, encoded)
        if cuts.count and "cuts" not in self._said:
            self._said.add("cuts")
            warnings.warn(Warnings.TRAINING_CUT.format(name=self.name) + cuts.message, stacklevel=3)

    def _once(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            warnings.warn(message, stacklevel=3)

    @contextmanager
    def _one_warning_for_cuts(self) -> Iterator[None]:
        try:
            yield
        finally:
            cuts, self._cuts = self._cuts, CutCounter()
            if cuts.count:
                warnings.warn(cuts.message, stacklevel=4)
