"""The `sbert` component: encode Docs, train, and answer for vectors and similarity."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import islice
from typing import Any, cast

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate
from thinc.types import Floats2d
from thinc.util import to_numpy

from ..errors import Warnings
from ..files.serialization import ChecksummedModel
from ..losses._common import LossLayer
from ..losses.by_name import saved_by_name
from ..models.encoded_docs import EncodedDoc
from ..models.hub import warn_if_missing
from ..models.shim import TransformerShim
from ..models.spans import SPANS_KEY
from ..models.static_embedding import StaticEmbedding
from ..training.batch_loss import (
    BatchLoss,
    Labels,
    PairPipe,
    batch_loss,
    initialize_objectives,
    needs_labels,
    needs_width,
)
from ..validation import Name, NonNegativeFloat, validated
from . import doc_vectors, extensions, listeners
from .doc_record import PipeFingerprint, PipeNotices
from .doc_vectors import InPipeline, find_in
from .text_pipe import TextPipe, describe_encoder, find_heads, probabilities_of


class SentenceModel(ChecksummedModel[list[Doc], list[EncodedDoc]]):
    """The tree, whose table, which is no shim, is read before it is saved, whether it was used or not."""

    def __repr__(self) -> str:
        return f"SentenceModel({describe_encoder(self)})"

    def to_bytes(self) -> bytes:
        for node in self.walk():
            if isinstance(node, StaticEmbedding):
                node.load()
        return super().to_bytes()


def with_loss(encoder: Model[list[Doc], list[EncodedDoc]], loss: Model | None) -> Model[list[Doc], list[EncodedDoc]]:
    """Encode Docs with the encoder; the loss stands beside it, so that its head belongs to the same tree.

    encoder (Model): from Docs to one EncodedDoc each.
    loss (Model): a loss layer, None for an encoder that is not trained. Heads are initialised by the component, which
        knows their labels.
    """
    layers = [encoder] if loss is None else [encoder, loss]
    refs = {"encoder": encoder, "loss": loss, "pooling": encoder.get_ref("pooling")}
    return SentenceModel("sbert", forward, init=init, layers=layers, refs=refs)


def forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[EncodedDoc], Callable]:
    return model.layers[0](docs, is_train)


def init(model: Model, X: Any = None, Y: Any = None) -> None:
    model.get_ref("encoder").initialize(X=X)


def finish_update(model: Model, optimizer: Optimizer) -> None:
    """Update encoder and heads; a head's learn_rate_factor is a factor on the optimizer's learning rate."""
    encoder = model.get_ref("encoder")
    with ExitStack() as alone:  # another thread encodes before or after, with all layers or none as they were
        for node in encoder.walk():
            for shim in node.shims:
                if isinstance(shim, TransformerShim):  # it may be a stock one, after replace_listeners
                    alone.enter_context(shim.use.changing())
        encoder.finish_update(optimizer)
    loss = model.maybe_get_ref("loss")
    for node in [] if loss is None else loss.walk():
        factor = getattr(node, "learn_rate_factor", 1.0)
        for name in node.param_names:
            # Thinc keeps a gradient of zeros: Adam's momentum would move a head without examples all the same.
            if node.has_grad(name) and node.get_grad(name).any():
                key = (node.id, name)
                param, _ = optimizer(key, node.get_param(name), node.get_grad(name), lr_scale=factor)
                node.set_param(name, param)


def save_loss_by_name(nlp: Language, pipe: object) -> None:
    """Replace a loss of the user's own by LossByName in the config of a pipe.

    The saved pipeline can then be loaded in a process that does not import the code of the loss.
    """
    for name, found in nlp.components:
        if found is pipe:
            blocks = nlp.config.interpolate()["components"][name]
            config = nlp.get_pipe_config(name)
            config["loss"] = saved_by_name(config["loss"], blocks["loss"])


DEFAULT_CONFIG = {
    "model": {
        "@architectures": "spacy-sbert.SentenceEncoder.v1",
        "name": "sentence-transformers/all-MiniLM-L6-v2",
        "pooling": "mean",
        "normalize": "auto",
        "overflow": "truncate",
        "get_spans": {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc+sent", "spans_key": SPANS_KEY},
    },
    "loss": {"@layers": "spacy-sbert.CosineSimilarityLoss.v1"},
    "loss_weight": 1.0,
    "scorer": {"@scorers": "spacy-sbert.pair_scorer.v1"},
    "set_hooks": True,
    "token_vectors": True,
    "spans_key": SPANS_KEY,
}
N_INITIAL_EXAMPLES = 100  # enough to see whether there are pairs, and a teacher


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
    loss: object,  # checked below, with a message of its own
    loss_weight: NonNegativeFloat,
    scorer: Callable | None,
    set_hooks: bool,
    token_vectors: bool,
    spans_key: Name,
) -> "SentenceBert":
    """Build the `sbert` pipe, see SentenceBert."""
    for encoder in listeners.names_of_encoders(model):
        warn_if_missing(nlp, name, encoder)
    loss = _checked_loss(name, loss)
    listeners.link_upstream(nlp, model, loss)
    pipe = SentenceBert(
        nlp.vocab,
        model,
        name,
        loss=loss,
        loss_weight=loss_weight,
        scorer=scorer,
        set_hooks=set_hooks,
        token_vectors=token_vectors,
        spans_key=spans_key,
    )
    pipe._in_pipeline.nlp = nlp
    return pipe


class SentenceBert(PairPipe, TextPipe):
    """Sentence vectors for Docs, Spans and Tokens, and the training of the encoder that makes them.

    vocab (Vocab): the pipeline's.
    model (Model): a sentence encoder, from Docs to one EncodedDoc each.
    name (str): the pipe's name, under which its vectors are stored.
    loss (LossLayer): the training objective, None for a pipe that is not trained.
    loss_weight (float): factor on the loss and its gradient, to balance them with those of other components.
    scorer (Callable): what to report of pairs.
    set_hooks (bool): whether `doc.vector` and `similarity` answer with this pipe's vectors. Of several pipes the last
        that sets hooks answers.
    token_vectors (bool): whether to keep what Spans other than rows, and Tokens, need to have vectors.
    spans_key (str): where the members of a pair stand, doc.spans[spans_key].
    RAISES (ValueError): if model is not a sentence encoder, its span getter has another spans_key, or loss is not
        a loss layer.
    SOURCE: Reimers and Gurevych 2019.
    """

    @validated
    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[EncodedDoc]],
        name: str = "sbert",
        *,
        loss: object = None,
        loss_weight: NonNegativeFloat = 1.0,
        scorer: Callable | None = None,
        set_hooks: bool = True,
        token_vectors: bool = True,
        spans_key: Name = SPANS_KEY,
    ):
        if not model.has_ref("pooling"):
            raise ValueError(
                f"The model of the 'sbert' pipe '{name}' is not a sentence encoder: expected an architecture "
                "such as spacy-sbert.SentenceEncoder.v1 or spacy-sbert.SharedSentenceEncoder.v1, got the Thinc "
                f"model '{model.name}'."
            )
        loss = _checked_loss(name, loss)
        listeners.check_spans_key(name, model, spans_key)
        self.vocab = vocab
        self.model = with_loss(model, loss)
        self.name = name
        self.scorer = scorer
        self.set_hooks = set_hooks
        self.token_vectors = token_vectors
        self.spans_key = spans_key
        self.cfg: dict[str, Any] = {}
        self.loss_weight = loss_weight
        self._expects_pairs = self._accumulates = False
        self._notices = PipeNotices(name)
        self._in_pipeline = InPipeline()
        self._fingerprint = PipeFingerprint()
        listeners.cache_transformers(self.model, loss)
        extensions.install(name)

    takes_peers = True

    # From pairs to gradient

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Labels | None = None,
    ) -> None:
        """Load the weights of an own encoder, check that a shared one fits the examples, and make the heads.

        labels: of the classification objective, or of each by its name; by default those of the examples.
        RAISES (OSError, ValueError): if the encoder is not found, no transformer can be shared, or there is but one
            label.
        """
        loss = self.model.maybe_get_ref("loss")
        needed = None if loss is not None and needs_labels(loss) else N_INITIAL_EXAMPLES
        # Of no more examples than are needed: spaCy would read them all, and a teacher encode them.
        sample = (lambda: islice(get_examples(), needed)) if callable(get_examples) else get_examples
        validate_get_examples(sample, "SentenceBert.initialize")
        examples = list(sample())
        self._expects_pairs = any(map(self.learns_from, examples))
        if nlp is not None:
            self._accumulates = nlp.config["training"]["accumulate_gradient"] != 1
            listeners.validate_upstream(nlp, self.name, self.model, examples, self.spans_key)
            save_loss_by_name(nlp, self)
        self.model.initialize(X=self._sample(examples))
        if loss is not None and needs_width(loss):
            width = listeners.vector_width(nlp, self.name, self.model)
            initialize_objectives(loss, self.model.ops, width, examples, self.spans_key, labels)

    def _sample(self, examples: Iterable[Example]) -> list[Doc]:
        """Docs with text, by which layers find out their widths."""
        docs = [example.predicted for example in islice(examples, N_INITIAL_EXAMPLES) if len(example.predicted)]
        return docs or [Doc(self.vocab, words=["text"])]

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch of examples whose Docs have members; the others get a zero gradient.

        losses (dict): gets the loss under the pipe's name, and that of each of several objectives under the pipe's
            and its own name.
        RAISES (ValueError): if the pipe has no loss, or the encoder's rows are not the members.
        """
        examples, losses = self._received(examples, losses)
        if not any(len(example.predicted) for example in examples):
            return losses  # a shared transformer returns before it hands out its output, too
        learning = [example for example in examples if self.learns_from(example)]
        self._expects_pairs = self._expects_pairs or bool(learning)
        if not self._expects_pairs and self.model.maybe_get_ref("loss") is not None:
            elsewhere = self._found_members(examples)
            self._notices.once(Warnings.NOTHING_TO_LEARN.format(name=self.name, key=self.spans_key, found=elsewhere))
        # What is heard has encoded the others, too, and waits for their gradient.
        if not listeners.shares_encoder(self.model):
            examples = learning
            if not examples:
                return losses
        docs = [example.predicted for example in examples]
        set_dropout_rate(self.model, drop)
        encoded, backprop = self.model.begin_update(docs)
        self._notices.of_training_cuts(docs, encoded)
        found = self._batch_loss(examples, encoded)
        backprop(cast(Any, found.gradients))  # in every case: the last listener's call trains the shared transformer
        if sgd not in (None, False):
            self.finish_update(sgd)
        for objective, value in found.by_objective.items():
            losses[self.name] += value
            self.loss_seen += value
            if objective:
                key = f"{self.name}_{objective}"
                losses[key] = losses.get(key, 0.0) + value
        return losses

    def get_loss(self, examples: Iterable[Example], scores: list[EncodedDoc]) -> tuple[float, list[Floats2d]]:
        """The loss of a batch, and its gradient by the vectors of each Doc.

        examples (Iterable[Example]): the batch; gold values stand on the reference.
        scores (list[EncodedDoc]): what the encoder made of the predicted Docs.
        RETURNS (float, list[Floats2d]): the loss, 0.0 without pairs, and a gradient of the shape of each vectors.
        RAISES (ValueError): if the pipe has no loss, or a pair is not what the loss takes.
        """
        found = self._batch_loss(list(examples), scores)
        return sum(found.by_objective.values()), found.gradients

    def _batch_loss(self, examples: list[Example], scores: list[EncodedDoc]) -> BatchLoss:
        if not any(map(self.learns_from, examples)):
            return BatchLoss({}, [self.model.ops.alloc2f(*encoded.vectors.shape) for encoded in scores], [], True)
        loss = self.model.maybe_get_ref("loss")
        if loss is None:
            raise ValueError(
                f"The 'sbert' pipe '{self.name}' was built without a loss (loss = null) and cannot be trained. "
                f"Set one in its config: [components.{self.name}.loss] @layers = "
                '"spacy-sbert.CosineSimilarityLoss.v1".'
            )
        found = batch_loss(loss, self.model.ops, examples, scores, self.spans_key, self.loss_weight, self.peers)
        if found.unlike is not None and self._notices.is_new(Warnings.SCORES_IGNORED):  # of one pair, not of each
            name, text, score = found.unlike
            self._notices.once(Warnings.SCORES_IGNORED.format(loss=name, text=text, score=score))
        for name in found.is_part:
            self._notices.once(Warnings.PART_OF_BATCH.format(loss=name))
        if self._accumulates and not found.knows_batch:
            self._notices.once(Warnings.UNKNOWN_BATCH.format(name=self.name))
        return found

    def finish_update(self, sgd: Optimizer) -> None:
        """Update the weights; a head may have a learning rate of its own."""
        finish_update(self.model, sgd)
        self._fingerprint.forget()

    def _answers(self, examples: list[Example]) -> bool:
        found = (record.name for example in examples for record in doc_vectors.find(example.predicted))
        return next(found, self.name) == self.name

    # From pairs to labels

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the classification heads."""
        return tuple(dict.fromkeys(label for head in find_heads(self.model).values() for label in head.attrs["labels"]))

    @property
    def label_data(self) -> Labels:
        """The labels as `initialize` takes them, for `spacy init labels`."""
        found = {name: list(head.attrs["labels"]) for name, head in find_heads(self.model).items()}
        return found.get("", found)

    def classify(self, first: Doc | Span, second: Doc | Span, *, objective: str = "") -> dict[str, float]:
        """The probability of each label for a pair of texts.

        first, second (Doc or Span): processed by the pipeline, such as premise and hypothesis.
        objective (str): which of several classification objectives.
        RETURNS (dict): from label to probability.
        RAISES (ValueError): if the pipe has no trained classification head, or a text no vector of this pipe.
        """
        heads = find_heads(self.model)
        if objective and heads and objective not in heads:
            names = ", ".join(f"'{known}'" for known in heads)
            raise ValueError(
                f"Cannot classify with the 'sbert' pipe '{self.name}' for the objective {objective!r}: it has "
                f"trained heads for {names}."
            )
        if objective not in heads and len(heads) != 1:
            raise ValueError(
                f"Cannot classify with the 'sbert' pipe '{self.name}': it has {len(heads)} trained "
                "classification heads. Expected one; train with spacy-sbert.SoftmaxLoss.v1, or name the "
                f"objective of several: {', '.join(heads)}."
            )
        head = heads[objective] if objective in heads else next(iter(heads.values()))
        vectors = [
            self.model.ops.asarray2f(cast(Any, doc_vectors.vector(text, self.name)[None])) for text in (first, second)
        ]
        probabilities = to_numpy(probabilities_of(head, *vectors))[0]
        return dict(zip(head.attrs["labels"], probabilities.tolist(), strict=True))


def _checked_loss(name: str, loss: object) -> LossLayer | None:
    """RAISES (ValueError): if a loss is not a loss layer."""
    if loss is not None and not isinstance(loss, LossLayer):
        given = f"the Thinc model '{loss.name}'" if isinstance(loss, Model) else repr(loss)
        raise ValueError(
            f"The loss of the 'sbert' pipe '{name}' is not a loss layer: expected a registered layer such as "
            f"spacy-sbert.CosineSimilarityLoss.v1, got {given}. A loss of your own is a registered function "
            "that returns a spacy_sbert.losses.LossLayer: see docs/own-loss.md."
        )
    return loss


def find_sbert(nlp: Language, name: str | None = None) -> SentenceBert:
    """The `sbert` pipe of a pipeline: the one of this name, or the last.

    RAISES (ValueError): if there is none.
    """
    return find_in(nlp, SentenceBert, "sbert", name)
