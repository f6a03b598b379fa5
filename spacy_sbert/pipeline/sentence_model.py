"""The model tree of an `sbert` pipe: its encoder, and its loss with the heads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

import torch
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model

from ..errors import Errors
from ..files.serialization import ChecksummedModel
from ..losses._common import LossLayer, objectives_of
from ..models.encoded_docs import EncodedDoc, EncodeSettings
from ..models.encoder import STATES, TOKENS, Encoder, InPipe, listens_for
from ..models.pooling import SentencePooling
from ..models.private_attributes import is_curated
from ..models.resolve import find_local
from ..models.sbert_config import INT8, read_settings
from ..models.sentence_encoder import GET_SPANS, SentenceEncoder
from ..models.spans import SpanGetter, getter_settings, members
from ..models.surroundings import check_gradients, is_autocast
from ..models.transformer import (
    SpanTransformer,
    encoder_of,
    is_transformer,
)
from .upstream import find_upstream, nearest_upstream

# These load what only their own architectures need
if TYPE_CHECKING:
    from ..models.listener import SentenceListener
    from ..models.static_embedding import StaticEmbedding
    from ..models.text_encoders import TextEncoder


class SentenceModel(ChecksummedModel[list[Doc], list[EncodedDoc]]):
    """Model tree of the pipe `name`: the sentence encoder, and the loss with its heads or None."""

    def __init__(self, name: str, encoder: Model[list[Doc], list[EncodedDoc]], loss: object):
        if not encoder.has_ref("pooling"):
            raise ValueError(
                f"The model of the 'sbert' pipe '{name}' is not a sentence encoder: expected an "
                "architecture such as spacy-sbert.SentenceEncoder.v1, got the Thinc model "
                f"'{encoder.name}'."
            )
        if loss is not None and not isinstance(loss, LossLayer):
            value = f"the Thinc model '{loss.name}'" if isinstance(loss, Model) else repr(loss)
            raise ValueError(
                f"The loss of the 'sbert' pipe '{name}' is not a loss layer: expected a registered "
                f"layer such as spacy-sbert.CosineSimilarityLoss.v1, got {value}. A loss of your "
                "own is a registered function that returns a spacy_sbert.losses.LossLayer: see "
                "docs/own-loss.md."
            )
        layers: list[Model] = [encoder] if loss is None else [encoder, loss]
        refs = {"encoder": encoder, "loss": loss, "pooling": encoder.get_ref("pooling")}
        super().__init__("sbert", _forward, init=_init, layers=layers, refs=refs)
        _cache_transformers(self, loss)

    def __repr__(self) -> str:
        return f"SentenceModel({self.describe()})"

    def to_bytes(self) -> bytes:
        self.source.before_saving()
        return super().to_bytes()

    def from_bytes(self, bytes_data: bytes) -> SentenceModel:
        """Load what to_bytes returned.

        RAISES (ValueError): if the encoder has no prompt of the default name.
        """
        super().from_bytes(bytes_data)
        # Thinc loads them without their from_bytes
        for encoder in self._encoders:
            encoder.after_loading()
        return self

    @property
    def encoder(self) -> Model[list[Doc], list[EncodedDoc]]:
        return self.get_ref("encoder")

    @property
    def pooling(self) -> SentencePooling:
        return cast(SentencePooling, self.get_ref("pooling"))

    @property
    def loss(self) -> Model | None:
        return self.maybe_get_ref("loss")

    @property
    def heads(self) -> dict[str, Model]:
        """The trained heads by the names of their objectives, "" of a single one.

        Of the heads of a Matryoshka loss it is the one for the widest vectors.
        """
        if self.loss is None:
            return {}
        heads = {}
        for name, layer in objectives_of(self.loss).items():
            trained = [node for node in layer.walk() if node.attrs.get("labels")]
            if trained:
                heads[name] = max(trained, key=lambda node: node.get_dim("nI"))
        return heads

    @property
    def source(self) -> Encoder:
        """The encoder whose states are pooled."""
        return cast(SentenceEncoder, self.encoder).source

    @property
    def _encoders(self) -> list[Encoder]:
        """The encoders that are a part of the model, also those inside another one."""
        return [node for node in self.encoder.walk() if isinstance(node, Encoder)]

    @property
    def is_shared(self) -> bool:
        """Whether the encoder listens to a component.

        That waits for the gradient of every Doc.
        """
        return bool(self.source.listeners)

    @property
    def own_encoders(self) -> list[str]:
        """The names or folders of the encoders that are a part of the model: one at most."""
        return [encoder.source_name for encoder in self._encoders if encoder.source_name]

    @property
    def shared_encoders(self) -> list[str]:
        """The names or folders of the transformers that the model listens to, once it is linked."""
        return [str(model.attrs["name"]) for model in self.shared_models if "name" in model.attrs]

    @property
    def encoder_names(self) -> list[str]:
        """The names or folders of all encoders whose states are pooled, own and shared."""
        return [*self.own_encoders, *self.shared_encoders]

    @property
    def sentence_listeners(self) -> list[SentenceListener]:
        """The listeners to a transformer.

        None if the encoder is its own, or reads the vectors of tokens.
        """
        listeners = self.source.listeners
        return [cast(Any, layer) for layer in listeners if listens_for(layer) == STATES]

    @property
    def shared_models(self) -> list[Model]:
        """The transformers that the model listens to, as far as they are known."""
        upstream = [listener.transformer for listener in self.sentence_listeners]
        return [model for model in upstream if model is not None]

    def describe(self) -> str:
        """Return what is known of the encoder.

        For example "all-MiniLM-L6-v2, mean pooling, 384 numbers, float32 on cpu".
        """
        text = f"{self.source.describe()}, {self.pooling.pooling_name} pooling"
        transformer = self.source.span_transformer
        if transformer is None:
            return text
        shim = transformer.shim
        if not shim.is_loaded:
            return f"{text}, {shim.precision}, not loaded yet"
        width = self.pooling.width(shim.config.hidden_size, shim.settings)
        return f"{text}, {width} numbers, {shim.precision} on {shim.device}"

    @property
    def transformer_name(self) -> str:
        """The name or folder of the transformer, own or shared, of whatever package."""
        nodes = [*self.shared_models, *self.walk()]
        return next(str(node.attrs["name"]) for node in nodes if is_transformer(node))

    def validate_upstream(
        self, nlp: Language, name: str, examples: Iterable[Example], spans_key: str
    ) -> None:
        """Check that there is a component upstream, and that its rows will be the members."""
        from ..training.examples import check_rows  # noqa: PLC0415 (training)

        for layer in self.source.listeners:
            if listens_for(layer) == TOKENS:
                find_upstream(nlp, name, layer)
        docs = (example.predicted for example in examples)
        pair = next((doc for doc in docs if members(doc, spans_key)), None)
        for listener in self.sentence_listeners:
            self._connect(nlp, listener, find_upstream(nlp, name, listener))
            self.check_spans_key(name, spans_key)
            if pair is not None:
                given = cast(Model, listener.transformer).attrs.get("get_spans")
                get_spans = cast(SpanGetter, given or self.encoder.attrs[GET_SPANS])
                rows = get_spans([pair])[0]
                check_rows([(row.start, row.end) for row in rows], pair, spans_key)

    def link_upstream(self, nlp: Language, name: str) -> None:
        """Connect the listeners to the transformer that is in the pipeline now.

        It may have been replaced.
        """
        for listener in self.sentence_listeners:
            pipe = nearest_upstream(nlp, name, listener)
            if pipe is not None and pipe.model is not listener.upstream:
                self._connect(nlp, listener, pipe)

    def check_surroundings(self, name: str, *, is_train: bool = False) -> None:
        """Check that another package's transformer computed as it does by default.

        Ours always do.

        RAISES (RuntimeError): within autocast, and in training without gradients.
        """
        is_usual = not is_autocast() and (torch.is_grad_enabled() or not is_train)
        if is_usual or all(isinstance(model, SpanTransformer) for model in self.shared_models):
            return
        if is_train:
            check_gradients(f"the transformer upstream of '{name}'")
        if is_autocast():
            raise RuntimeError(Errors.AUTOCAST.format(name=name))

    def _connect(self, nlp: Language, listener: SentenceListener, upstream: TrainablePipe) -> None:
        """Connect a listener to a transformer.

        If that is of another package, note whether its folder normalizes: ours says so with its
        output.
        """
        listener.upstream = upstream.model
        _cache_transformers(upstream.model, self.loss)
        if is_curated(upstream.model):
            listener.set_dim("nO", upstream.model.get_dim("nO"), force=True)
        name = _encoder_name(nlp, upstream)
        if isinstance(listener.transformer, SpanTransformer) or not name:
            return
        folder = find_local(name)
        # If it is not here, what was found out before, maybe on another machine, stays
        if folder is not None:
            normalizes = self.pooling.normalizes(read_settings(folder, name))
            self.pooling.attrs["upstream_normalize"] = normalizes

    def check_spans_key(self, name: str, spans_key: str) -> None:
        """Check that the pipe and its span getters take members from the same spans_key."""
        for getter in self._span_getters:
            given = getter_settings(getter).get("spans_key")
            if given not in (None, spans_key):
                raise ValueError(
                    f"The 'sbert' pipe '{name}' has spans_key = '{spans_key}', but the span getter "
                    f"of its encoder takes members from doc.spans['{given}']. Set spans_key = "
                    f"'{spans_key}' in get_spans, too ([components.transformer.model.get_spans] "
                    f"when the transformer is shared), or '{given}' in the pipe."
                )

    def text_encoder(
        self, nlp: Language | None, name: str, settings: EncodeSettings
    ) -> TextEncoder:
        """Return the encoder of texts without Docs, see SentenceBert.text_encoder."""
        pipe = None
        if nlp is not None:
            pipe = InPipe(nlp.tokenizer, lambda layer: find_upstream(nlp, name, layer).model)
        encoder = self.source.text_encoder(self.pooling, settings, pipe)
        if encoder is None:
            raise _no_text_encoder(name)
        return encoder

    def encoding_models(
        self, nlp: Language | None, name: str, settings: object = None
    ) -> list[Model]:
        """Return the models that make the states, own or upstream.

        settings: those that the states came with.
        """

        def upstream_encoder(listener: Model) -> Model | None:
            if nlp is None:
                return None
            pipe = nearest_upstream(nlp, name, listener)
            return None if pipe is None else encoder_of(pipe.model)

        return self.source.models(upstream_encoder, settings)

    def vector_width(self, nlp: Language | None, name: str) -> int:
        """Return the width of the vectors of an initialized encoder, own or shared."""
        if nlp is not None:
            for listener in self.sentence_listeners:
                upstream = encoder_of(find_upstream(nlp, name, listener).model)
                # frozen: spaCy leaves it out when it initializes a pipeline
                if not upstream.has_dim("nO"):
                    upstream.initialize()
        return self.pooling.width(cast(int, self.source.width), self.source.folder)

    @property
    def encodes_sentences(self) -> bool:
        """Whether a span getter of this package gives sentences of the Docs."""
        units = {getter_settings(getter).get("unit", "doc") for getter in self._span_getters}
        return any(unit != "doc" for unit in units)

    @property
    def _span_getters(self) -> list[object]:
        """The span getters of the encoder, and of a known shared one; None for other layers."""
        nodes = [*self.shared_models, *self.walk()]
        getters = [node.attrs.get("get_spans") for node in nodes]
        if self.source.reads_tokens and GET_SPANS in self.encoder.attrs:
            getters.append(self.encoder.attrs[GET_SPANS])
        return getters


def _encoder_name(nlp: Language, upstream: TrainablePipe) -> str:
    """Return the name or folder of the encoder of a transformer; "" if it is not known."""
    if not is_curated(upstream.model):
        return str(upstream.model.attrs.get("name", ""))
    block = nlp.config.interpolate()["initialize"]["components"].get(upstream.name, {})
    loader = block.get("encoder_loader") or {}
    return str(loader.get("name", ""))


def _forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[EncodedDoc], Callable]:
    return model.layers[0](docs, is_train)


def _init(model: Model, X: object = None, Y: object = None) -> None:
    """Initialize the encoder; the component initializes the heads, whose labels it knows."""
    model.get_ref("encoder").initialize(X=X)


def _cache_transformers(model: Model, loss: object) -> None:
    """Let the encoders in a model tree train in mini-batches, if the loss is of a cached kind."""
    size = getattr(loss, "mini_batch_size", None)
    if not size:
        return
    for node in model.walk():
        if isinstance(node, SpanTransformer):
            node.shim.mini_batch_size = min(size, node.shim.mini_batch_size or size)


# The encoder in the tree


def find_static_embedding(model: SentenceModel) -> StaticEmbedding | None:
    """Return the table of wordpieces of a pipe; None if its encoder is of another kind."""
    from ..models.static_embedding import StaticEmbedding  # noqa: PLC0415 (seldom needed)

    source = model.source
    return source if isinstance(source, StaticEmbedding) else None


def find_transformer(name: str, model: SentenceModel) -> SpanTransformer:
    """Return the transformer of the pipe `name`, its own or the one it shares.

    RAISES (ValueError): if its encoder is of another kind.
    """
    source = model.source
    if source.span_transformer is not None:
        return source.span_transformer
    if not source.kind:
        raise _no_text_encoder(name)
    raise ValueError(
        f"The encoder of the 'sbert' pipe '{name}' is {source.kind}, and this works with "
        "transformers of this package alone. To pass the pipeline on, save it or make a package of "
        "it: python -m spacy package."
    )


def _no_text_encoder(name: str) -> ValueError:
    return ValueError(
        f"Cannot encode texts without Docs: the 'sbert' pipe '{name}' is in no pipeline, as one of "
        f"a copied one, or listens to a transformer that is not of this package. Take it with "
        f"find_sbert(nlp, '{name}'), give that transformer spacy-sbert.TransformerModel.v1, or use "
        "nlp.pipe(texts)."
    )


def describe_int8(transformer: SpanTransformer) -> str:
    """Return what `precision = "int8"` rounds by, of a loaded encoder.

    Empty for other precisions.
    """
    if transformer.options.precision != INT8:
        return ""
    backend = transformer.options.backend
    if backend != "torch":
        return f"int8 by backend = '{backend}', which rounds each text by itself"
    calibration = transformer.shim.calibration
    text = "int8 where a CPU is quicker with it, calibrated on"
    if calibration is None:
        return f"{text} the first texts encoded"
    n_rounded = int(calibration.is_rounded.sum())
    n_products = calibration.is_rounded.numel()
    return (
        f"{text} {calibration.n_wordpieces:,} wordpieces: {n_rounded} of {n_products} products in "
        f"8 bits, lowest cosine of a text {calibration.lowest_cosine:.3f}"
    )


def are_loaded(models: Iterable[Model]) -> bool:
    """Return whether the encoders in these models are loaded."""
    return all(_is_loaded(node) for model in models for node in model.walk())


def _is_loaded(layer: Model) -> bool:
    if isinstance(layer, Encoder):
        return layer.is_loaded
    if not is_transformer(layer):
        return True
    # Of spacy-transformers
    return layer.layers[0].shims[0]._model is not None  # noqa: SLF001 (it has no public name)
