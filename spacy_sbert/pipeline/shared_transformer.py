"""The `sbert_transformer` component: one transformer for the components that listen to it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate
from thinc.types import Floats2d

from ..errors import WarnOnce
from ..files.serialization import ChecksummedPipe
from ..models.doc_states import split_by_doc, store_states
from ..models.encoded_docs import TruncationCounter
from ..models.heads import Tok2VecModel
from ..models.listener import SentenceListener, TransformerListener
from ..models.private_attributes import is_a, is_curated, upstream_name
from ..models.resolve import check_default_prompt, warn_if_missing
from ..models.shared_transformer import TransformerTok2Vec
from ..models.span_batch import Array, Backprop, EncodedSpans
from ..models.surroundings import undisturbed
from ..models.token_vectors import is_same_pooling, pool_tokens
from ..models.transformer import is_transformer_tok2vec
from ..validation import GetExamples
from .components import InPipeline


class TransformerPrediction(NamedTuple):
    """What the transformer gives for a batch of Docs.

    tokens: float32 (tokens, width) of each Doc. batch: their rows, with the states of all
        wordpieces.
    """

    tokens: list[Floats2d]
    batch: EncodedSpans


class SharedTransformer(ChecksummedPipe, Tok2Vec):
    """A transformer whose output several components share, and train together.

    It sets `doc.tensor` to the vectors of the tokens, for spacy.Tok2VecListener.v1 and
    spacy-sbert.TransformerListener.v1, and hands the states of the wordpieces to each `sbert` pipe
    that listens. In training, the gradients of all that listen are added up, and go back through
    the transformer once.

    vocab (Vocab): the pipeline's.
    model (Model): spacy-sbert.TransformerTok2Vec.v1.
    name (str): the pipe's name.
    nlp (Language): the pipeline that the pipe is made for; warns if it cannot find the encoder.
    RAISES (ValueError): if model is another.
    """

    model: TransformerTok2Vec

    def __init__(
        self,
        vocab: Vocab,
        model: Tok2VecModel,
        name: str = "transformer",
        *,
        nlp: Language | None = None,
    ):
        if not is_transformer_tok2vec(model):
            raise ValueError(
                f"The model of the 'sbert_transformer' pipe '{name}' is the Thinc model "
                f"'{model.name}': expected spacy-sbert.TransformerTok2Vec.v1."
            )
        self._in_pipeline = InPipeline(nlp)
        super().__init__(vocab, model, name)
        if nlp is not None:
            shim_name = self.model.transformer.shim.name
            check_default_prompt(nlp, name, shim_name, self.model.transformer.prompts)
            warn_if_missing(nlp, name, shim_name)
        self._notices = WarnOnce(TruncationCounter)
        self._step: _TrainingStep | None = None

    # Components that listen

    def find_listeners(self, component: Pipe) -> None:
        """Register the layers of a component that listen to this one.

        RAISES (ValueError): if it listens for vectors of another width, for those of a component
            whose `doc.tensor` this one replaces or the other way round, or only to the transformer
            of another package.
        """
        nlp = self._in_pipeline.nlp
        if nlp is not None and all(pipe is not component for _, pipe in nlp.pipeline):
            # sourced, so that it is in a pipeline that it does not know
            self._in_pipeline = InPipeline()
        self._register(component, getattr(component, "name", ""))

    def _register(self, component: Pipe, name: str) -> None:
        between = self._between(component)
        sets_tensor = not any(isinstance(pipe, Tok2Vec) for pipe in between)
        is_nearest = not any(isinstance(pipe, SharedTransformer) for pipe in between)
        own_names = {self.name, "*"} if is_nearest else {self.name}
        model = getattr(component, "model", None)
        nodes = model.walk() if isinstance(model, Model) else ()
        for node in nodes:
            if isinstance(node, Tok2VecListener):
                self._register_tok2vec(node, name, sets_tensor)
            elif upstream_name(node) in own_names:
                self._register_listener(node, name, sets_tensor)

    def _register_listener(self, node: Model, name: str, sets_tensor: bool) -> None:
        """Register a layer that listens to this component, unless it is of another package."""
        if not isinstance(node, TransformerListener | SentenceListener):
            self._check_other_package(node, name)
            return
        node.upstream = self.model
        if isinstance(node, TransformerListener):
            reads_tensor = sets_tensor and is_same_pooling(node.pooling, self.model.pooling)
            node.needs_states = not reads_tensor
        self.add_listener(node, name)

    def _between(self, component: Pipe) -> list[Any]:
        """Return the components between this one and another; none if the pipeline is not known."""
        nlp = self._in_pipeline.nlp
        if nlp is None:
            return []
        pipes: list[Any] = [pipe for _, pipe in nlp.components]
        if self not in pipes or component not in pipes:
            return []
        return pipes[pipes.index(self) + 1 : pipes.index(component)]

    def _register_tok2vec(self, node: Tok2VecListener, name: str, sets_tensor: bool) -> None:
        """Register a spacy.Tok2VecListener.v1, which in use reads `doc.tensor` whoever set it."""
        is_own = node.upstream_name == self.name
        if is_own != sets_tensor and node.upstream_name != "*":
            setter = f"'{self.name}'" if sets_tensor else "another component"
            raise ValueError(
                f"The component '{name}' listens to '{node.upstream_name}', whose doc.tensor is "
                f"replaced by {setter}. Use spacy-sbert.TransformerListener.v1, or put '{name}' "
                "between the two."
            )
        if sets_tensor:
            self.add_listener(node, name)

    def _check_other_package(self, node: Model, component_name: str) -> None:
        """Check that there is a transformer of the listener's package.

        Else the listener makes up vectors of zeros.
        """
        nlp = self._in_pipeline.nlp
        if nlp is None:
            return
        for _, pipe in nlp.components:
            if is_a(pipe, "Transformer") or is_curated(getattr(pipe, "model", None)):
                return
        raise ValueError(
            f"The component '{component_name}' has the listener '{node.name}' of another package, "
            f"which cannot listen to '{self.name}', an 'sbert_transformer'. Use "
            "spacy-sbert.TransformerListener.v1 in its config."
        )

    def add_listener(self, listener: Model, component_name: str) -> None:
        """Register a layer that listens, and tell it the width of the vectors, if that is known."""
        super().add_listener(listener, component_name)  # type: ignore[arg-type]  # of a class of this package
        self._check_width(listener, component_name)

    def _check_width(self, listener: Model, component_name: str) -> None:
        if not self.model.has_dim("nO"):
            return
        width = self.model.get_dim("nO")
        if isinstance(listener, TransformerListener):
            listener.set_dim("nO", width, force=True)
        elif isinstance(listener, Tok2VecListener) and listener.get_dim("nO") != width:
            raise ValueError(
                f"The component '{component_name}' listens for vectors of {listener.get_dim('nO')} "
                f"numbers, and '{self.name}' makes {width}. Set width = {width}, or use "
                "spacy-sbert.TransformerListener.v1."
            )

    def _enabled_listeners(self) -> list[Any]:
        """Return the layers that listen to this component now.

        spaCy leaves out those of components that are disabled while it links the pipeline.
        """
        nlp = self._in_pipeline.nlp
        if nlp is None:
            return self.listeners
        pipes = [pipe for _, pipe in nlp.components]
        if self not in pipes:
            return self.listeners
        self.listener_map = {}
        for name, pipe in nlp.components[pipes.index(self) + 1 :]:
            self._register(cast(Pipe, pipe), name)
        enabled: list[Any] = []
        for name, nodes in self.listener_map.items():
            if name not in nlp.disabled:
                enabled += nodes
        return enabled

    # In use

    def __call__(self, doc: Doc) -> Doc:
        """Encode one Doc."""
        with self._notices.one_for_cuts():
            return super().__call__(doc)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Encode a stream of Docs, batch by batch, and yield them in order."""
        with self._notices.one_for_cuts():
            yield from super().pipe(stream, batch_size=batch_size)

    def predict(self, docs: Iterable[Doc]) -> TransformerPrediction:
        """Encode Docs without changing them."""
        docs = list(docs)
        with undisturbed():
            batch = self.model.encode(docs, is_train=False)
            tokens, _ = pool_tokens(
                self.model.pooling, docs, batch, self.model.width, is_train=False
            )
        return TransformerPrediction(tokens, batch)

    def set_annotations(self, docs: Sequence[Doc], tokvecses: TransformerPrediction) -> None:
        """Set `doc.tensor`, and hand the states of wordpieces to the components that need them."""
        for doc, vectors in zip(docs, tokvecses.tokens, strict=True):
            # A view would keep the vectors of the whole batch
            doc.tensor = cast(Any, vectors.copy())
        enabled = self._enabled_listeners()
        # Not of a Tok2VecListener
        need_states = [node for node in enabled if getattr(node, "needs_states", False)]
        warns_itself = any(isinstance(node, SentenceListener) for node in enabled)
        for doc, states in zip(docs, split_by_doc(tokvecses.batch), strict=True):
            if need_states and len(doc):
                store_states(doc, states, self.model.transformer, need_states)
            if not warns_itself:
                self._notices.cuts.add(doc, states)

    # In training

    def initialize(self, get_examples: GetExamples, *, nlp: Language | None = None) -> None:
        """Load the weights, and tell the layers that listen how wide the vectors are.

        It needs no examples.
        """
        self.model.initialize()
        if nlp is not None:
            self._in_pipeline = InPipeline(nlp)
            self._enabled_listeners()

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Encode a batch for the components that listen.

        The gradient of the last one goes back with those before.

        losses (dict): gets the sum of the squared gradients under the pipe's name, as that of a
            Tok2Vec.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "SharedTransformer.update")
        self._end_step()
        docs = [example.predicted for example in examples]
        set_dropout_rate(self.model, drop)
        with undisturbed():
            self._step = self._begin_step(docs, losses)
        if sgd not in (None, False):
            self.finish_update(sgd)
        return losses

    def _begin_step(self, docs: list[Doc], losses: dict[str, float]) -> "_TrainingStep":
        """Encode a batch, and hand it to all that listen, with the callback for its gradient."""
        listeners = self._enabled_listeners()
        needs_tokens = any(not isinstance(node, SentenceListener) for node in listeners)
        batch = self.model.encode(docs, is_train=True, with_pieces=needs_tokens)
        step = _TrainingStep(self.name, batch.backprop, self._last_component(listeners), losses)
        batch_id = Tok2VecListener.get_batch_id(docs)
        for listener in listeners:
            if isinstance(listener, SentenceListener):
                listener.receive(batch_id, batch, partial(step.add, listener))
                continue
            pooling = self.model.pooling
            if isinstance(listener, TransformerListener):
                pooling = listener.pooling
            vectors, backprop = pool_tokens(pooling, docs, batch, self.model.width, is_train=True)
            listener.receive(batch_id, vectors, partial(step.add_tokens, listener, backprop))
        return step

    def _last_component(self, listeners: list[Any]) -> list[Any]:
        """Return the layers of the last component that listens now."""
        for nodes in self.listener_map.values():
            if listeners and listeners[-1] in nodes:
                return nodes
        return []

    def finish_update(self, sgd: Optimizer) -> None:
        """Update the weights, with the gradients of the components that gave one."""
        self._end_step()
        super().finish_update(sgd)

    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        """Use other weights until the next step of the iterator, see TrainablePipe.use_params."""
        self._end_step()
        yield from super().use_params(params)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the state of the pipe."""
        self._end_step()
        return super().to_bytes(exclude=exclude)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the state of the pipe to a folder.

        RAISES (OSError): naming it, if it cannot be written.
        """
        self._end_step()
        super().to_disk(path, exclude=exclude)

    def _end_step(self) -> None:
        """Begin the backward pass, if it waits for components that had nothing to learn."""
        if self._step is not None and self._step.d_states is not None:
            self._step.finish()

    def get_loss(self, examples: Iterable[Example], scores: object) -> None:
        """Do nothing: the loss is that of the components that listen."""


class _TrainingStep:
    """The gradients of a batch from those that listen, added up.

    That of the last one begins the backward pass.

    last (Iterable[Model]): the layers of the last component. Others may have nothing to learn from
        the batch.
    """

    def __init__(
        self, name: str, backprop: Backprop, last: Iterable[Model], losses: dict[str, float]
    ):
        self.name = name
        self.losses = losses
        self.d_states: list[Array] | None = None
        self._backprop: Backprop | None = backprop
        self._waiting = {listener.id for listener in last}
        self._squares: Any = 0.0

    def add(self, listener: Model, d_states: list[Array]) -> None:
        """Add the gradient of the states of each part of the batch.

        RAISES (ValueError): if the step has ended, as the gradient would be lost.
        """
        if self._backprop is None:
            raise ValueError(
                f"A component returned its gradient to '{self.name}' after the step had ended. "
                f"Update the components in the order of the pipeline, '{self.name}' first."
            )
        self._squares += sum((d_part**2).sum() for d_part in d_states)
        if self.d_states is None:
            self.d_states = d_states
        else:
            for total, d_part in zip(self.d_states, d_states, strict=True):
                total += d_part
        self._waiting.discard(listener.id)
        if not self._waiting:
            self.finish()

    def add_tokens(
        self,
        listener: Model,
        backprop: Callable[[list[Floats2d]], list[Array]],
        d_vectors: list[Floats2d],
    ) -> None:
        """Add the gradient of the vectors of each Doc's tokens.

        backprop: takes it to the states.
        """
        self.add(listener, backprop(d_vectors))

    def finish(self) -> None:
        """Take the gradients to the transformer, and forget the batch."""
        backprop = self._backprop
        d_states = self.d_states
        self._backprop = None
        self.d_states = None
        if backprop is not None and d_states is not None:
            backprop(d_states)
            # last: it waits for a GPU
            self.losses[self.name] += float(self._squares)
