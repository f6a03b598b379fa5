"""The interface of encoders, which give the states that a sentence encoder pools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, cast

from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model

from .encoded_docs import EncodeSettings
from .pooling import SentencePooling
from .private_attributes import SENTINEL, upstream_name
from .sbert_config import SentenceTransformersConfig
from .span_batch import EncodedSpans

# What a listener of this package, in its attribute `listens_for`, reads of a component
STATES = "states"
TOKENS = "tokens"
# A function from a layer that listens to the model of the component that it listens to
FindUpstream = Callable[[Model], Model | None]


class InPipe(NamedTuple):
    """What the pipeline gives an encoder that needs tokens to encode texts.

    tokenizer (Callable): nlp.tokenizer.
    find_upstream (Callable): from a layer that listens to the model of the component upstream;
        raises ValueError if there is none that fits.
    """

    tokenizer: Callable[[str], Doc]
    find_upstream: Callable[[Model], Model]


class Encoder:
    """What turns the rows of Docs into the states of their wordpieces or tokens.

    An encoder is a Thinc layer that has this class as a base, too, and is given to
    `SentenceEncoder` by a registered architecture: no other place needs to know it. `read` must be
    written, and a width known (the layer's dimension nO); the rest has defaults.

    Example:
        class Lengths(Encoder, Model):
            def read(self, docs, *, prompt, with_pieces, is_train):
                ...

        @registry.architectures("my.Lengths.v1")
        def lengths():
            return SentenceEncoder(Lengths("lengths", forward), SentencePooling("mean", None))

    """

    # In messages: "The encoder of the 'sbert' pipe is {kind}"; "" if that is not known
    kind = "of another kind"
    # Whether a prompt may be put before each text, of Docs or without them
    takes_prompts = False
    # Whether it reads the tokens of whole Docs, where others read texts
    reads_tokens = False

    # Encoding

    def read(
        self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool
    ) -> AbstractContextManager[EncodedSpans]:
        """Yield the rows of Docs and their states; the encoder does not change meanwhile.

        prompt (str): put before each row, in place of the default one; None for the default one.
        with_pieces (bool): whether to record the characters of the wordpieces in their Docs, as
            token vectors need them.
        RAISES (ValueError): if a prompt is given, and the encoder takes none.
        """
        raise NotImplementedError

    def text_encoder(
        self, pooling: SentencePooling, settings: EncodeSettings, pipe: InPipe | None
    ) -> Any:
        """Return the TextEncoder of texts without Docs; None if only Docs can be encoded.

        pipe (InPipe): None if the component is in no pipeline.
        """
        return None

    # Loading

    @property
    def is_loaded(self) -> bool:
        """Whether the weights are there."""
        return True

    def load(self) -> object:
        """Load the weights, unless they are loaded."""

    @property
    def width(self) -> int | None:
        """The width of the states, None if it is not known yet; loads the encoder."""
        self.load()
        return cast(Model, self).maybe_get_dim("nO")

    @property
    def folder(self) -> SentenceTransformersConfig | None:
        """What the encoder's folder specifies; None if it is not loaded, or has no folder."""
        return None

    @property
    def source_name(self) -> str:
        """The name or folder of the weights that are a part of the model; "" if they have none."""
        return ""

    def before_saving(self) -> None:
        """Load what is not saved by a shim, which loads itself."""

    def after_loading(self) -> None:
        """Check what was loaded. RAISES (ValueError): if it does not fit the settings."""

    # What it reads of other components

    @property
    def nodes(self) -> Iterable[Model]:
        """The layers that the encoder consists of."""
        return cast(Model, self).walk()

    @property
    def listeners(self) -> list[Model]:
        """The layers that listen to a component of the pipeline; none in an encoder of its own."""
        return [node for node in self.nodes if upstream_name(node) is not None]

    @property
    def span_transformer(self) -> Any:
        """The SpanTransformer whose states these are, own or upstream; None if there is none."""
        for node in self.nodes:
            if isinstance(node, Encoder) and node is not self:
                transformer = node.span_transformer
                if transformer is not None:
                    return transformer
        return None

    def models(self, find_upstream: FindUpstream, settings: object) -> list[Model]:
        """Return the models that make the states, own and upstream; none if that is not known.

        settings: those that the states came with, None if they are not known.
        """
        listeners = self.listeners
        if not listeners:
            return [cast(Model, self)]
        upstream = find_upstream(listeners[0])
        if upstream is None:
            return []
        return [cast(Model, self), upstream]

    # For messages and digests

    def describe(self) -> str:
        """Return what the states are of, for messages."""
        transformer = self.span_transformer
        if transformer is None:
            return "tokens of another component" if self.listeners else "tokens"
        name = transformer.source_name
        return f"{name} (shared)" if self.listeners else name

    def digest_settings(self, pooling: SentencePooling) -> object:
        """Return the settings beside weights that vectors depend on, as JSON has them."""
        return pooling.normalize


def listens_for(layer: Model) -> str | None:
    """Return what a listener of any package reads of a component, STATES or TOKENS.

    None for other layers.
    """
    own = getattr(layer, "listens_for", None)
    if own is not None:
        return own
    is_of_another = isinstance(layer, Tok2VecListener) or SENTINEL in layer.attrs
    return TOKENS if is_of_another else None
