"""The training of an `sbert` pipe: weights and heads, loss, gradient, and update."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, PyTorchShim, set_dropout_rate
from thinc.types import Floats2d

from ..errors import Errors, Warnings, WarnOnce, warn
from ..losses._common import objectives_of
from ..models.encoded_docs import EncodedDoc, TruncationCounter
from ..models.fingerprint import Fingerprint
from ..models.shim import TransformerShim
from ..models.spans import members
from ..models.surroundings import undisturbed
from ..validation import GetExamples, Name, validated

if TYPE_CHECKING:
    from .batch_loss import BatchLoss

# Enough to see whether there are pairs, and a teacher
_N_INITIAL_EXAMPLES = 100


@contextmanager
def whole_update(model: Model) -> Iterator[None]:
    """Drop the gradients of an update that ends in an error or by Ctrl-C.

    A part of them would join the next one.
    """
    try:
        yield
    except BaseException:
        for node in model.walk():
            _clear_gradients(node)
        raise


def _clear_gradients(node: Model) -> None:
    for name in filter(node.has_grad, node.param_names):
        node.get_grad(name).fill(0)
    for shim in node.shims:
        if isinstance(shim, PyTorchShim) and shim._model is not None:  # noqa: SLF001 (Thinc has no public name)
            shim._model.zero_grad()  # noqa: SLF001


def members_on_reference(examples: Iterable[Example], spans_key: str) -> str:
    """Return a remedy for warnings if the members are on the references only."""
    if any(members(example.reference, spans_key) for example in examples):
        return " (example.reference has them: make the predicted Doc by reference.copy())"
    return ""


class TrainingStep:
    """Part of an `sbert` pipe that learns from a batch of examples.

    The pipe has the settings that it names.
    """

    # Settings of the pipe, whose model is a SentenceModel
    model: Any
    vocab: Vocab
    name: str
    spans_key: str
    loss_weight: float
    # Other processes may have a part of a batch
    takes_peers = True
    # The TorchDistributed of those processes, in training
    peers: Any = None
    # In training, for reporting speed
    examples_seen = 0
    # The sum of the loss
    loss_seen = 0.0
    # Whether an example with members was seen, and whether spaCy splits batches
    _expects_pairs: bool
    _accumulates: bool
    # Ids of layers of losses that got a gradient since the last update
    _learned: set[int]
    _notices: WarnOnce
    _fingerprint: Fingerprint

    @validated
    def initialize(
        self,
        get_examples: GetExamples,
        *,
        nlp: Language | None = None,
        labels: list[Name] | dict[str, list[Name]] | None = None,
    ) -> None:
        """Load the weights of an own encoder, check a shared one, and make the heads.

        labels: of the classification objective, or of each by its name; by default those of the
            examples.
        RAISES (OSError, ValueError): if the encoder is not found, cannot be shared, or there is but
            one label.
        """
        from .batch_loss import initialize_objectives, needs_width  # noqa: PLC0415 (training)

        examples = self._initial_examples(get_examples)
        self._expects_pairs = any(map(self.learns_from, examples))
        if nlp is not None:
            self._accumulates = nlp.config["training"]["accumulate_gradient"] != 1
            self.model.validate_upstream(nlp, self.name, examples, self.spans_key)
            self._save_loss_by_name(nlp)
        docs = [example.predicted for example in examples[:_N_INITIAL_EXAMPLES]]
        not_empty = [doc for doc in docs if len(doc)]
        self.model.initialize(X=not_empty or [Doc(self.vocab, words=["text"])])
        loss = self.model.loss
        if loss is not None and needs_width(loss):
            width = self.model.vector_width(nlp, self.name)
            initialize_objectives(loss, self.model.ops, width, examples, self.spans_key, labels)

    def _initial_examples(self, get_examples: GetExamples) -> list[Example]:
        """Return all examples if an objective needs their labels, else the first ones.

        spaCy would read them all, and a teacher encode them.
        """
        from .batch_loss import needs_labels  # noqa: PLC0415 (training)

        needs_all = self.model.loss is not None and needs_labels(self.model.loss)
        n_examples = None if needs_all else _N_INITIAL_EXAMPLES

        def sample() -> Iterable[Example]:
            return islice(get_examples(), n_examples)

        # What is no function is refused by its name
        checked = sample if callable(get_examples) else get_examples
        validate_get_examples(checked, "SentenceBert.initialize")
        return list(sample())

    def _save_loss_by_name(self, nlp: Language) -> None:
        """Let the config name the loss, so that a loss of the user's own is not needed to load."""
        from ..losses.wrappers import saved_by_name  # noqa: PLC0415 (training)

        for name, pipe in nlp.components:
            if pipe is self:
                config = nlp.get_pipe_config(name)
                block = nlp.config.interpolate()["components"][name]
                config["loss"] = saved_by_name(config["loss"], block["loss"])

    def learns_from(self, example: Example) -> bool:
        """Return whether an example has members."""
        return bool(members(example.predicted, self.spans_key))

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch of examples whose Docs have members; the others get a zero gradient.

        losses (dict): gets the loss under the pipe's name, and that of each of several objectives
            under both names.
        RAISES (ValueError): if the pipe has no loss, or the encoder's rows are not the members.
            (RuntimeError): if PyTorch's gradients are off, and an encoder of PyTorch is trained.
        """
        self.model.check_surroundings(self.name, is_train=True)
        return self._learn(list(examples), drop, sgd, {} if losses is None else losses)

    @undisturbed()
    def _learn(
        self, examples: list[Example], drop: float, sgd: Optimizer | None, losses: dict[str, float]
    ) -> dict[str, float]:
        losses.setdefault(self.name, 0.0)
        validate_examples(examples, "SentenceBert.update")
        self.examples_seen += len(examples)
        if not any(len(example.predicted) for example in examples):
            # A shared transformer hands out nothing either
            return losses
        learning = list(filter(self.learns_from, examples))
        self._check_members(examples, learning)
        # A shared component has encoded the others, too, and waits for their gradient
        encodes = examples if self.model.is_shared else learning
        if not encodes:
            return losses
        set_dropout_rate(self.model, drop)
        encoded, backprop = self.model.begin_update([example.predicted for example in encodes])
        self._warn_of_cuts(encodes, encoded)
        result = self._batch_loss(encodes, encoded)
        with whole_update(self.model):
            # In every case: the last listener's call trains the shared transformer.
            backprop(cast(Any, result.gradients))
        self._check_not_all_frozen()
        if sgd not in (None, False):
            self.finish_update(cast(Optimizer, sgd))
        self._add_losses(result, losses)
        return losses

    def _check_not_all_frozen(self) -> None:
        """Raise ValueError if no weights got a gradient, as `frozen` names all."""
        frozen = [shim for shim in self._own_shims() if shim.options.frozen]
        if not frozen or any(node.param_names for node in self.model.walk()):
            return
        parameters = [parameter for shim in frozen for parameter in shim.weights.parameters()]
        if all(parameter.grad is None for parameter in parameters):
            raise ValueError(Errors.ALL_FROZEN.format(name=self.name))

    def _check_members(self, examples: list[Example], learning: list[Example]) -> None:
        """Warn if no example had members so far, in `initialize` or in training.

        RAISES (ValueError): if the gold values of one are those of another text.
        """
        from .examples import check_one_text, lost_members_warning  # noqa: PLC0415 (training)

        check_one_text(learning, self.spans_key)
        self._expects_pairs = self._expects_pairs or bool(learning)
        if not self._expects_pairs and self.model.loss is not None:
            where = members_on_reference(examples, self.spans_key)
            self._notices.once(
                Warnings.NOTHING_TO_LEARN.format(name=self.name, key=self.spans_key, found=where)
            )
            return
        message = lost_members_warning(examples, self.spans_key)
        if message and self.model.loss is not None and self._notices.is_new(Warnings.MEMBERS_LOST):
            warn(message)

    def _warn_of_cuts(self, examples: Sequence[Example], encoded: Sequence[EncodedDoc]) -> None:
        cuts = TruncationCounter()
        for example, encoded_doc in zip(examples, encoded, strict=True):
            cuts.add(example.predicted, encoded_doc)
        if cuts.count and self._notices.is_new("cuts"):
            warn(Warnings.TRAINING_CUT.format(name=self.name) + cuts.message)

    def _add_losses(self, result: "BatchLoss", losses: dict[str, float]) -> None:
        """Add the losses of a batch to those of the step, and to what the pipe has seen."""
        for objective, value in result.by_objective.items():
            losses[self.name] += value
            self.loss_seen += value
            if objective:
                key = f"{self.name}_{objective}"
                losses[key] = losses.get(key, 0.0) + value

    def get_loss(
        self, examples: Iterable[Example], scores: list[EncodedDoc]
    ) -> tuple[float, list[Floats2d]]:
        """Return the loss of a batch, 0.0 without pairs, and its gradient by each Doc's vectors."""
        result = self._batch_loss(list(examples), scores)
        return sum(result.by_objective.values()), result.gradients

    def _batch_loss(self, examples: list[Example], scores: list[EncodedDoc]) -> "BatchLoss":
        from .batch_loss import BatchLoss, batch_loss  # noqa: PLC0415 (not needed for a first vector)

        ops = self.model.ops
        if not any(map(self.learns_from, examples)):
            zeros = [ops.alloc2f(*encoded.vectors.shape) for encoded in scores]
            return BatchLoss({}, zeros, [], True)
        loss = self.model.loss
        if loss is None:
            raise ValueError(
                f"The 'sbert' pipe '{self.name}' was built without a loss (loss = null). To train "
                "it set "
                f'[components.{self.name}.loss] @layers = "spacy-sbert.CosineSimilarityLoss.v1".'
            )
        result = batch_loss(
            loss, ops, examples, scores, self.spans_key, self.loss_weight, self.peers
        )
        objectives = objectives_of(loss)
        for name in result.by_objective:
            self._learned.update(node.id for node in objectives[name].walk())
        self._warn_of_loss(result)
        return result

    def _warn_of_loss(self, result: "BatchLoss") -> None:
        """Warn, once each, of what a loss cannot take into account."""
        # Of one pair, not of each
        if result.unlike is not None and self._notices.is_new(Warnings.SCORES_IGNORED):
            name, text, score = result.unlike
            self._notices.once(Warnings.SCORES_IGNORED.format(loss=name, text=text, score=score))
        for name in result.is_part:
            self._notices.once(Warnings.PART_OF_BATCH.format(loss=name))
        if self._accumulates and not result.knows_batch:
            self._notices.once(Warnings.UNKNOWN_BATCH.format(name=self.name))

    @undisturbed()
    def finish_update(self, sgd: Optimizer) -> None:
        """Update encoder and heads.

        A head's learn_rate_factor is a factor on the optimizer's learning rate.
        """
        with whole_update(self.model):
            # Another thread encodes before or after, with all layers or none updated
            with ExitStack() as locks:
                for shim in self._own_shims():
                    locks.enter_context(shim.use.changing())
                self.model.encoder.finish_update(sgd)
            self._update_heads(sgd)
        self._learned.clear()
        self._fingerprint.forget()

    def _own_shims(self) -> list[TransformerShim]:
        """Return the shims of the transformers in the pipe's own encoder.

        Not those of another package, which are there after `nlp.replace_listeners`.
        """
        shims = [shim for node in self.model.encoder.walk() for shim in node.shims]
        return [shim for shim in shims if isinstance(shim, TransformerShim)]

    def _update_heads(self, sgd: Optimizer) -> None:
        loss = self.model.loss
        if loss is None:
            return
        for node in loss.walk():
            factor = getattr(node, "learn_rate_factor", 1.0)
            for name in filter(node.has_grad, node.param_names):
                gradient = node.get_grad(name)
                if self._has_learned(node, gradient):
                    weights = node.get_param(name)
                    updated, _ = sgd((node.id, name), weights, gradient, lr_scale=factor)
                    node.set_param(name, updated)

    def _has_learned(self, node: Model, gradient: Any) -> bool:
        """Return whether a layer of the loss got a gradient in this step.

        Thinc keeps a gradient of zeros, with which Adam's momentum would still move a head without
        examples.
        """
        if self.peers is None:
            return node.id in self._learned
        # Another process may have given it. That waits for a GPU.
        return bool(gradient.any())
