"""The model tree of an `sbert` pipe: find its encoder, and check and link the component that it listens to."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

import torch
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model

from ..errors import Errors, Warnings
from ..files.serialization import ChecksummedModel
from ..losses._common import LossLayer, objectives_of
from ..models.encoded_docs import EncodedDoc, EncodeSettings
from ..models.pooling import SentencePooling
from ..models.private_attributes import ALL_LAYERS, SENTINEL, is_a, is_curated, upstream_name
from ..models.resolve import check_name, find_local
from ..models.sbert_config import INT8, read_settings
from ..models.sentence_encoder import GET_SPANS, is_listener, is_static_embedding, is_token_encoder
from ..models.spans import getter_settings, members
from ..models.surroundings import check_gradients, is_autocast
from ..models.transformer import (
    SpanTransformer,
    encoder_of,
    is_token_listener,
    is_transformer,
    is_transformer_tok2vec,
)

# These load what only their own architectures need
if TYPE_CHECKING:
    from ..models.listener import SentenceListener, Tok2VecEncoder
    from ..models.static_embedding import StaticEmbedding
    from ..models.text_encoders import TextEncoder

# Which components declare to assign
_BOUNDARIES = {"doc.sents", "token.is_sent_start"}


class SentenceModel(ChecksummedModel[list[Doc], list[EncodedDoc]]):
    """The model tree of the pipe `name`: the sentence encoder, and beside it the loss with its heads, or None."""

    def __init__(self, name: str, encoder: Model[list[Doc], list[EncodedDoc]], loss: object):
        if not encoder.has_ref("pooling"):
            raise ValueError(
                f"The model of the 'sbert' pipe '{name}' is not a sentence encoder: expected an "
                "architecture such as "
                f"spacy-sbert.SentenceEncoder.v1, got the Thinc model '{encoder.name}'."
            )
        if loss is not None and not isinstance(loss, LossLayer):
            value = f"the Thinc model '{loss.name}'" if isinstance(loss, Model) else repr(loss)
            raise ValueError(
                f"The loss of the 'sbert' pipe '{name}' is not a loss layer: expected a "
                "registered layer such as "
                f"spacy-sbert.CosineSimilarityLoss.v1, got {value}. A loss of your own is a "
                "registered function "
                "that returns a spacy_sbert.losses.LossLayer: see docs/own-loss.md."
            )
        layers: list[Model] = [encoder] if loss is None else [encoder, loss]
        refs = {"encoder": encoder, "loss": loss, "pooling": encoder.get_ref("pooling")}
        super().__init__("sbert", _forward, init=_init, layers=layers, refs=refs)
        _cache_transformers(self, loss)

    def __repr__(self) -> str:
        return f"SentenceModel({self.describe()})"

    def to_bytes(self) -> bytes:
        table = find_static_embedding(self)
        if table is not None:
            # It is no shim, which would load itself
            table.load()
        return super().to_bytes()

    def from_bytes(self, bytes_data: bytes) -> "SentenceModel":
        """Load what to_bytes returned.

        RAISES (ValueError): if the encoder has no prompt of the default name.
        """
        super().from_bytes(bytes_data)
        # Thinc loads them without their from_bytes
        for node in self.walk():
            if isinstance(node, SpanTransformer) and node.shim.is_loaded:
                node.prompt()
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
    def is_shared(self) -> bool:
        """Whether the encoder listens to another component, which waits for the gradient of every Doc."""
        return any(upstream_name(node) is not None for node in self.walk())

    @property
    def own_encoders(self) -> list[str]:
        """The names or folders of the encoders that are a part of the model: one at most."""
        transformers = [node.shim.name for node in self.walk() if isinstance(node, SpanTransformer)]
        return transformers + [node.source for node in self.walk() if is_static_embedding(node)]

    @property
    def shared_encoders(self) -> list[str]:
        """The names or folders of the transformers that the model listens to, once it is linked to them."""
        upstream = [listener.transformer for listener in find_listeners(self)]
        return [
            str(model.attrs["name"])
            for model in upstream
            if model is not None and "name" in model.attrs
        ]

    def describe(self) -> str:
        """Return what is known of the encoder: "all-MiniLM-L6-v2, mean pooling, 384 numbers, float32 on cpu"."""
        transformer, table = _span_transformer(self), find_static_embedding(self)
        pooling = f"{self.pooling.pooling_name} pooling"
        if transformer is not None:
            shim = transformer.shim
            source = (
                f"{shim.name} (shared), {pooling}" if self.is_shared else f"{shim.name}, {pooling}"
            )
            if not shim.is_loaded:
                return f"{source}, {shim.precision}, not loaded yet"
            width = self.pooling.width(shim.config.hidden_size, shim.settings)
            return f"{source}, {width} numbers, {shim.precision} on {shim.device}"
        if table is not None:
            return f"table of wordpieces of {table.source}, {pooling}"
        return f"{'tokens of another component' if self.is_shared else 'tokens'}, {pooling}"

    def validate_upstream(
        self, nlp: Language, name: str, examples: Iterable[Example], spans_key: str
    ) -> None:
        """Check that there is a component upstream, and that its rows will be the members of pairs."""
        for node in filter(_listens_to_tokens, self.walk()):
            find_upstream(nlp, name, node)
        for listener in find_listeners(self):
            upstream = find_upstream(nlp, name, listener)
            self._connect(nlp, listener, upstream)
            self.check_spans_key(name, spans_key)
            pair = next((eg.predicted for eg in examples if members(eg.predicted, spans_key)), None)
            if pair is not None:
                from ..training.examples import check_rows  # noqa: PLC0415 (training)

                given = cast(Model, listener.transformer).attrs.get("get_spans")
                getter = cast(Callable, given or _own_getter(self))
                check_rows([(row.start, row.end) for row in getter([pair])[0]], pair, spans_key)

    def link_upstream(self, nlp: Language, name: str) -> None:
        """Connect the listeners to the transformer that is in the pipeline now: it may have been replaced."""
        for listener in find_listeners(self):
            pipe = _nearest_upstream(nlp, name, listener)
            if pipe is not None and pipe.model is not listener.upstream:
                self._connect(nlp, listener, pipe)

    def check_surroundings(self, name: str, *, is_train: bool = False) -> None:
        """Check that what another package's transformer computed is what it computes by default, as ours always do.

        RAISES (RuntimeError): within autocast, and in training without gradients.
        """
        if not is_autocast() and (torch.is_grad_enabled() or not is_train):
            return
        upstream = [listener.transformer for listener in find_listeners(self)]
        if any(model is not None and not isinstance(model, SpanTransformer) for model in upstream):
            if is_train:
                check_gradients(f"the transformer upstream of '{name}'")
            if is_autocast():
                raise RuntimeError(Errors.AUTOCAST.format(name=name))

    def _connect(
        self, nlp: Language, listener: "SentenceListener", upstream: TrainablePipe
    ) -> None:
        """Connect a listener to a transformer, and note whether the folder of a foreign transformer normalizes."""
        listener.upstream = upstream.model
        _cache_transformers(upstream.model, self.loss)
        source = str(upstream.model.attrs.get("name", ""))
        if is_curated(upstream.model):
            listener.set_dim("nO", upstream.model.get_dim("nO"), force=True)
            block = nlp.config.interpolate()["initialize"]["components"].get(upstream.name, {})
            source = str((block.get("encoder_loader") or {}).get("name", ""))
        if isinstance(listener.transformer, SpanTransformer) or not source:
            # Ours says so with its output
            return
        folder = find_local(source)
        # Else what was found out before, maybe on another machine, stays
        if folder is not None:
            self.pooling.attrs["upstream_normalize"] = self.pooling.normalizes(
                read_settings(folder, source)
            )

    def check_spans_key(self, name: str, spans_key: str) -> None:
        """Check that the pipe and the span getters of its encoder take members from the same spans_key."""
        for getter in _span_getters(self):
            given = getter_settings(getter).get("spans_key")
            if given not in (None, spans_key):
                raise ValueError(
                    f"The 'sbert' pipe '{name}' has spans_key = '{spans_key}', but the span "
                    "getter of its encoder "
                    f"takes members from doc.spans['{given}']. Set spans_key = '{spans_key}' in "
                    "get_spans, too "
                    "([components.transformer.model.get_spans] when the transformer is shared), "
                    f"or '{given}' in "
                    "the pipe."
                )

    def text_encoder(
        self, nlp: Language | None, name: str, settings: EncodeSettings
    ) -> "TextEncoder":
        """Return the encoder of texts without Docs, see SentenceBert.text_encoder."""
        from ..models import text_encoders  # noqa: PLC0415 (not needed for Docs)

        table = find_static_embedding(self)
        if table is not None:
            if not table.attrs["tokenizer"]:
                check_name(table.source)
            return text_encoders.StaticTextEncoder(table, self.pooling, settings)
        if not encodes_whole_docs(self):
            transformer = find_transformer(name, self)
            if not transformer.shim.is_loaded:
                check_name(transformer.shim.name)
            return text_encoders.TransformerTextEncoder(transformer, self.pooling, settings)
        encoder = _find_token_encoder(self)
        listener = next(iter(find_listeners(self)), None) if encoder is None else encoder.listener
        if nlp is None or (
            encoder is not None and listener is not None and not _listens_to_tokens(listener)
        ):
            raise _no_text_encoder(name)
        own = self.encoder.layers[0] if encoder is None else encoder
        upstream = None if listener is None else find_upstream(nlp, name, listener).model
        return text_encoders.Tok2VecTextEncoder(
            own, self.pooling, settings, tokenizer=nlp.tokenizer, upstream=upstream
        )

    def encoding_models(
        self, nlp: Language | None, name: str, settings: object = None
    ) -> list[Model]:
        """Return the models that make the states, own or upstream.

        settings: those that the states came with.
        """
        own = (
            self.encoder.get_ref("reader")
            if self.encoder.has_ref("reader")
            else self.encoder.layers[0]
        )
        listener = own.listener if is_token_encoder(own) else own
        if listener is None or upstream_name(listener) is None:
            return [encoder_of(own)]
        pipe = None if nlp is None else _nearest_upstream(nlp, name, listener)
        if own is not listener:
            return [] if pipe is None else [own, encoder_of(pipe.model)]
        # The class of a listener depends on its package
        linked = cast(Any, listener).transformer
        nearest = None if pipe is None else encoder_of(pipe.model)
        candidates = [model for model in (nearest, linked) if model is not None]
        if settings is not None:
            transformers = [model for model in candidates if isinstance(model, SpanTransformer)]
            candidates = [model for model in transformers if model.shim.settings is settings]
        return candidates[:1]

    def vector_width(self, nlp: Language | None, name: str) -> int:
        """Return the width of the vectors of an initialized encoder, own or shared."""
        listeners = find_listeners(self)
        if nlp is not None and listeners:
            encoder: Model = encoder_of(find_upstream(nlp, name, listeners[0]).model)
            # frozen: spaCy leaves it out when it initializes a pipeline
            if not encoder.has_dim("nO"):
                encoder.initialize()
        else:
            kinds = (is_token_encoder, is_static_embedding, is_transformer, is_curated)
            encoder = next(node for node in self.walk() if any(is_kind(node) for is_kind in kinds))
        settings = encoder.shim.settings if isinstance(encoder, SpanTransformer) else None
        return self.pooling.width(encoder.get_dim("nO"), settings)

    def boundaries_warning(
        self, nlp: Language, name: str, docs: Iterable[Doc], spans_key: str
    ) -> str | None:
        """Return a warning if the boundaries of sentences are set too late for the encoder, or by a disabled pipe."""
        order, enabled = nlp.component_names, nlp.pipe_names
        units = [getter_settings(getter).get("unit", "doc") for getter in _span_getters(self)]
        if name not in enabled or set(units) <= {"doc"}:
            return None
        upstream = [
            node.upstream
            for node in find_listeners(self)
            if isinstance(node.transformer, SpanTransformer)
        ]
        encoder = next(
            (given for given, pipe in nlp.pipeline if getattr(pipe, "model", None) in upstream),
            name,
        )
        setters = [given for given in order if _BOUNDARIES & set(nlp.get_pipe_meta(given).assigns)]
        in_time = [given for given in setters if order.index(given) < order.index(encoder)]
        late = [given for given in setters if given in enabled]
        if set(in_time) & set(late) or not (in_time or late):
            return None
        # Too late for the encoder
        is_between = bool(late) and order.index(late[0]) < order.index(name)
        for doc in docs:
            has_boundaries = doc.has_annotation("SENT_START") and not is_between
            if len(doc) > 1 and not has_boundaries and not members(doc, spans_key):
                message, setter = (
                    (Warnings.LATE_SENTENCES, late[0])
                    if late
                    else (Warnings.NO_SENTENCES, in_time[0])
                )
                return message.format(name=name, encoder=encoder, setter=setter)
        return None


def _forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[EncodedDoc], Callable]:
    return model.layers[0](docs, is_train)


def _init(model: Model, X: object = None, Y: object = None) -> None:
    """Initialize the encoder; the component initializes the heads, whose labels it knows."""
    model.get_ref("encoder").initialize(X=X)


def _cache_transformers(model: Model, loss: object) -> None:
    """Let the encoders in a model tree train in mini-batches, if the loss is of a cached kind."""
    size = getattr(loss, "mini_batch_size", None)
    for node in model.walk():
        if size and isinstance(node, SpanTransformer):
            node.shim.mini_batch_size = min(size, node.shim.mini_batch_size or size)


# The encoder in the tree


def find_listeners(model: Model) -> "list[SentenceListener]":
    """Return the listeners to a transformer in the model tree of a pipe.

    None if its encoder is its own.
    """
    return [node for node in model.walk() if is_listener(node) and upstream_name(node) is not None]


def _find_token_encoder(model: Model) -> "Tok2VecEncoder | None":
    return next((node for node in model.walk() if is_token_encoder(node)), None)


def find_static_embedding(model: Model) -> "StaticEmbedding | None":
    """Return the table of wordpieces of a pipe; None if its encoder is of another kind."""
    return next((node for node in model.walk() if is_static_embedding(node)), None)


def _shared_models(model: Model) -> list[Model]:
    """Return the models of the transformers that a pipe listens to, as far as they are known."""
    return [
        listener.transformer
        for listener in find_listeners(model)
        if listener.transformer is not None
    ]


def find_transformer(name: str, model: Model) -> SpanTransformer:
    """Return the transformer of a pipe, its own or the one it shares.

    RAISES (ValueError): if it is of another kind.
    """
    transformer = _span_transformer(model)
    if transformer is not None:
        return transformer
    if find_static_embedding(model) is not None:
        kind = "a table of wordpieces"
    elif encodes_whole_docs(model):
        is_tok2vec = _find_token_encoder(model) is not None
        kind = "a token-to-vector model of spaCy" if is_tok2vec else "a curated_transformer"
    else:
        raise _no_text_encoder(name)
    raise ValueError(
        f"The encoder of the 'sbert' pipe '{name}' is {kind}, and this works with transformers of "
        "this package alone. "
        "To pass the pipeline on, save it or make a package of it: python -m spacy package."
    )


def _span_transformer(model: Model) -> SpanTransformer | None:
    nodes = _shared_models(model) if find_listeners(model) else model.walk()
    return next((node for node in nodes if isinstance(node, SpanTransformer)), None)


def _no_text_encoder(name: str) -> ValueError:
    return ValueError(
        f"Cannot encode texts without Docs: the 'sbert' pipe '{name}' is in no pipeline, or "
        "listens to a transformer "
        "that is not of this package. Give that spacy-sbert.TransformerModel.v1, or use "
        "nlp.pipe(texts)."
    )


def encodes_whole_docs(model: Model) -> bool:
    """Return whether the encoder of a pipe reads the tokens of Docs, not texts: token-to-vector, or curated."""
    return _find_token_encoder(model) is not None or any(
        map(is_curated, [*_shared_models(model), *model.walk()])
    )


def transformer_name(model: Model) -> str:
    """Return the name of the transformer of a pipe, its own or the one it shares, of whatever package."""
    return str(
        next(node for node in _shared_models(model) or model.walk() if is_transformer(node)).attrs[
            "name"
        ]
    )


def describe_int8(transformer: SpanTransformer) -> str:
    """Return what `precision = "int8"` rounds by, of a loaded encoder.

    Empty for other precisions.
    """
    if transformer.options.precision != INT8:
        return ""
    if transformer.options.backend != "torch":
        return f"int8 by backend = '{transformer.options.backend}', which rounds each text by itself"
    calibration = transformer.shim.calibration
    text = "int8 where a CPU is quicker with it, calibrated on"
    if calibration is None:
        return f"{text} the first texts encoded"
    n_rounded, n_products = int(calibration.is_rounded.sum()), calibration.is_rounded.numel()
    return (
        f"{text} {calibration.n_wordpieces:,} wordpieces: {n_rounded} of {n_products} products in "
        "8 bits, lowest "
        f"cosine of a text {calibration.lowest_cosine:.3f}"
    )


def are_loaded(models: Iterable[Model]) -> bool:
    """Return whether the transformers and tables in these models are loaded."""
    for node in (node for model in models for node in model.walk()):
        if is_transformer(node) and node.layers[0].shims[0]._model is None:  # noqa: SLF001 (of a stock shim, too)
            return False
        if is_static_embedding(node) and not node.attrs["tokenizer"]:
            return False
    return True


def _own_getter(model: Model) -> object:
    """Return the span getter of an encoder that listens to a transformer which encodes whole Docs."""
    return next(node.attrs[GET_SPANS] for node in model.walk() if GET_SPANS in node.attrs)


def _span_getters(model: Model) -> list[object]:
    """Return the span getters of an encoder, and of a shared one that is known.

    None for other layers.
    """
    nodes = [*_shared_models(model), *model.walk()]
    getters = [node.attrs.get("get_spans") for node in nodes]
    if any(map(is_curated, nodes)) and _find_token_encoder(model) is None:
        getters.append(_own_getter(model))
    return getters


def find_heads(model: Model) -> dict[str, Model]:
    """Return the trained heads of a pipe by the names of their objectives, "" of a single one.

    Of the heads of a Matryoshka loss it is the one for the widest vectors.
    """
    loss = model.maybe_get_ref("loss")
    heads = {}
    for name, layer in {} if loss is None else objectives_of(loss).items():
        trained = [node for node in layer.walk() if node.attrs.get("labels")]
        if trained:
            heads[name] = max(trained, key=lambda node: node.get_dim("nI"))
    return heads


# The component upstream


def _listens_to_tokens(node: Model) -> bool:
    is_curated_listener = SENTINEL in node.attrs and not is_listener(node)
    return isinstance(node, Tok2VecListener) or is_token_listener(node) or is_curated_listener


def _accepts(listener: Model, pipe: object) -> bool:
    """Return whether a component is of the kind that a listener listens to."""
    if isinstance(listener, Tok2VecListener):
        return isinstance(pipe, Tok2Vec)
    if is_transformer_tok2vec(getattr(pipe, "model", None)):
        return is_listener(listener) or is_token_listener(listener)
    return is_curated(getattr(pipe, "model", None)) or (
        is_listener(listener) and is_a(pipe, "Transformer")
    )


def _nearest_upstream(nlp: Language, name: str, listener: Model) -> TrainablePipe | None:
    """Return the last component before the pipe `name` that its listener may listen to, also a disabled one."""
    names = nlp.component_names
    for pipe_name in reversed(names[: names.index(name)] if name in names else names):
        pipe = nlp.get_pipe(pipe_name)
        if _accepts(listener, pipe) and upstream_name(listener) in ("*", pipe_name):
            return cast(TrainablePipe, pipe)
    return None


def find_upstream(nlp: Language, name: str, listener: Model) -> TrainablePipe:
    """Return the component that a listener listens to.

    RAISES (ValueError): if there is none, or it does not fit.
    """
    pipe = _nearest_upstream(nlp, name, listener)
    if pipe is None:
        upstream = f'(upstream = "{upstream_name(listener)}")'
        kind = "tok2vec" if isinstance(listener, Tok2VecListener) else "curated_transformer"
        missing = f"a '{kind}' component {upstream}, and none"
        if is_listener(listener):
            missing = (
                f"a transformer {upstream}, and no 'sbert_transformer', 'transformer' or '{kind}'"
            )
        raise ValueError(
            f"The 'sbert' pipe '{name}' listens to {missing} stands before it; the pipeline is "
            f"{nlp.component_names}. "
            "Add one before it, correct upstream, or use an encoder of its own: "
            "spacy-sbert.SentenceEncoder.v1."
        )
    if not is_listener(listener):
        _check_tokens(name, listener, pipe)
    return pipe


def _check_tokens(name: str, listener: Model, pipe: TrainablePipe) -> None:
    """Check that a component makes the vectors of tokens that a listener to it expects."""
    width, expected = listener.get_dim("nO"), pipe.model.maybe_get_dim("nO")
    if expected not in (None, width):
        raise ValueError(
            f"The 'sbert' pipe '{name}' listens for vectors of {width} numbers, and the component "
            f"'{pipe.name}' makes {expected}: set width = {expected} in its "
            f"[components.{name}.model.tok2vec]."
        )
    if listener.attrs.get(ALL_LAYERS) and not getattr(pipe, "all_layer_outputs", True):
        raise ValueError(
            f"The 'sbert' pipe '{name}' listens to all layers of the component '{pipe.name}', "
            "which gives the last one "
            f"alone: set all_layer_outputs = true in [components.{pipe.name}]."
        )


def is_encoder(name: str) -> bool:
    """Return whether there is an encoder of this name, or in this folder, on this machine."""
    try:
        return find_local(name) is not None
    except OSError:
        # A folder of something else
        return False
