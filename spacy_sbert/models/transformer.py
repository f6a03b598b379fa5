"""A transformer over rows of Docs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from spacy.tokens import Doc
from thinc.api import Model

from ..files.serialization import ChecksummedModel
from ..validation import ConfiguredModel
from .encoded_docs import EncodeSettings
from .encoder import Encoder, InPipe
from .encoder_checks import embedding_rows
from .engine.backend import encode_windows
from .engine.concurrency import LOADING, prepare_forks
from .loading import Tokenizer
from .overflow import OVERFLOW
from .pooling import SentencePooling
from .private_attributes import is_a
from .prompts import Prompts
from .resolve import check_name
from .sbert_config import SentenceTransformersConfig, TransformerConfig
from .shim import TransformerShim
from .span_batch import Backprop, EncodedSpans, TokenEmbeddings, encode_spans, no_gradient
from .spans import SpanGetter
from .tokenization import BatchTokenizer, TokenizedBatch

_PROMPT_IN_WINDOWS = (
    'include_prompt = false and overflow = "{overflow}" do not go together: not every window of a '
    'long text begins with the prompt. Set overflow = "truncate".'
)


class SpanTransformer(ConfiguredModel, ChecksummedModel, Encoder, Model):
    """Encode the rows of Docs with a Hugging Face encoder that is loaded on first use.

    name (str): a folder or a name, see resolve. get_spans (Callable): from Docs to the Spans that
        are its rows.
    options (TransformerConfig): how it is loaded, encodes and is trained.
    max_batch_items (int): the most wordpieces in a forward pass in use, see encode_windows; 0 for
        what suits the device.
    prompts (Prompts): what may be put before texts; None where that cannot be set, as in the
        component of spacy-transformers.
    """

    def __init__(
        self,
        name: str,
        get_spans: SpanGetter,
        options: TransformerConfig,
        *,
        max_batch_items: int = 0,
        prompts: Prompts | None = None,
    ):
        prepare_forks()
        self.options = options
        self.has_prompts = prompts is not None
        self.prompts = prompts or Prompts(default_name="")
        if self.prompts.include is False:
            self._check_prompt_is_kept()
        self._tokenizer: tuple[Tokenizer, BatchTokenizer] | None = None
        # The names and places are those of spacy-transformers, and of saved pipelines.
        shim = TransformerShim(name, options, max_batch_items=max_batch_items)
        holder: Model = Model("hf-pytorch", _refuse, shims=[shim], dims={"nI": None, "nO": None})
        attrs = {"get_spans": get_spans, "name": name, "has_transformer": False}
        Model.__init__(
            self,
            "transformer",
            _refuse,
            init=_init,
            layers=[holder],
            dims={"nO": None},
            attrs=attrs,
        )

    @property
    def shim(self) -> TransformerShim:
        return self.layers[0].shims[0]  # type: ignore[return-value]

    # The interface of Encoder

    kind = "a transformer"
    takes_prompts = True

    @property
    def is_loaded(self) -> bool:
        return self.shim.is_loaded

    def load(self) -> TransformerShim:
        """Load the weights, unless they are loaded, and return the shim."""
        return load(self)

    @property
    def folder(self) -> SentenceTransformersConfig | None:
        return self.shim.settings

    @property
    def source_name(self) -> str:
        return self.shim.name

    @property
    def span_transformer(self) -> SpanTransformer:
        return self

    def after_loading(self) -> None:
        if self.is_loaded:
            self.prompt()

    def text_encoder(
        self, pooling: SentencePooling, settings: EncodeSettings, pipe: InPipe | None
    ) -> Any:
        from .text_encoders import TransformerTextEncoder  # noqa: PLC0415 (not needed for Docs)

        if not self.is_loaded:
            check_name(self.source_name, self.shim.base)
        return TransformerTextEncoder(self, pooling, settings)

    def digest_settings(self, pooling: SentencePooling) -> object:
        shim = self.load()
        settings = shim.load()
        found: list[object] = [
            self.options.overflow,
            self.prompt(),
            self.prompts.includes(settings),
            settings.max_length,
            pooling.normalizes(settings),
        ]
        if shim.tokenizer.truncation_side != "right":
            # Where it is the usual one, digests stay as they were before it was one of the settings
            found.append(f"truncation_side = {shim.tokenizer.truncation_side}")
        return found

    # Encoding

    @property
    def in_parallel(self) -> bool:
        """True if it is loaded, and several threads may encode with it on the CPU at a time."""
        shim = self.shim
        return shim.is_loaded and shim.device.type == "cpu" and not shim.encodes_alone

    @property
    def wordpiece_tokenizer(self) -> BatchTokenizer:
        """The encoder's tokenizer, for whole batches.

        RAISES (ValueError): if its class is not supported.
        """
        settings = self.shim.load()
        tokenizer = self.shim.tokenizer
        made = self._tokenizer
        if made is not None and made[0] is tokenizer:
            return made[1]
        # The check calls Hugging Face's tokenizer, which is not made for several threads
        with LOADING:
            batched = BatchTokenizer(
                tokenizer,
                settings,
                self.options.overflow,
                include_prompt=self.prompts.includes(settings),
                n_embeddings=embedding_rows(self.shim.weights),
            )
            batched.check()
        self._tokenizer = (tokenizer, batched)
        return batched

    def prompt(self, prompt: str | None = None) -> str:
        """Return the prompt of a call, or else the default one of the config or the folder.

        RAISES (ValueError): if there is no prompt of the default name, or windows cannot leave a
            prompt out.
        """
        settings = self.shim.load()
        if prompt is None:
            prompt = self.prompts.find(settings)
        if prompt and not self.prompts.includes(settings):
            self._check_prompt_is_kept()
        return prompt

    def _check_prompt_is_kept(self) -> None:
        overflow = self.options.overflow
        if not OVERFLOW[overflow].keeps_prompt:
            raise ValueError(_PROMPT_IN_WINDOWS.format(overflow=overflow))

    @contextmanager
    def states(
        self, wordpieces: TokenizedBatch, is_train: bool
    ) -> Iterator[tuple[Iterable[TokenEmbeddings], Backprop]]:
        """Yield the states of windows, and what takes their gradients to the parameters.

        Meanwhile the weights stay.
        """
        shim = load(self)
        if is_train:
            yield shim.begin_update(wordpieces)
            return
        with shim.encoding(wordpieces) as backend:
            yield encode_windows(backend, wordpieces, budget=shim.max_batch_items), no_gradient

    @contextmanager
    def read(
        self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool
    ) -> Iterator[EncodedSpans]:
        """Yield the rows of Docs and their states, see `states`.

        For the arguments see encode_spans.
        """
        spans = self.attrs["get_spans"](docs)
        if not any(spans):
            yield EncodedSpans.empty(len(docs))
            return
        prompt = self.prompt(prompt)
        wordpieces, batch = encode_spans(
            self.wordpiece_tokenizer, spans, prompt=prompt, with_pieces=with_pieces
        )
        with self.states(wordpieces, is_train) as (batch.states, batch.backprop):
            yield batch

    def from_bytes(self, bytes_data: bytes) -> SpanTransformer:
        """Load what to_bytes returned.

        RAISES (ValueError): if the encoder has another name, or see `prompt`.
        """
        super().from_bytes(bytes_data)
        saved = self.attrs["name"]
        name = self.shim.name
        # spaCy reads each "$" doubled
        if re.sub(r"\$+", "$", saved) != re.sub(r"\$+", "$", name):
            raise ValueError(
                f"The saved transformer is '{saved}', and its config names '{name}', which would "
                "be ignored. Leave the name as it was saved; to use another encoder, make a new "
                "pipe with nlp.add_pipe."
            )
        self.after_loading()
        return self

    def to_dict(self) -> dict:
        """Return the model's state.

        Loads the weights first, so that its width is saved with them.
        """
        load(self)
        return super().to_dict()


def is_transformer(node: Model) -> bool:
    """Return whether a layer is a transformer, of this package or of spacy-transformers."""
    return isinstance(node, SpanTransformer) or is_a(node, "TransformerModel")


def is_transformer_tok2vec(model: object) -> bool:
    """Return whether a model is that of an `sbert_transformer`, or a copy of it."""
    return getattr(model, "name", None) == "transformer_tok2vec"


def encoder_of(model: Model) -> Model:
    """Return the transformer inside the model of an `sbert_transformer`, another model as it is."""
    if is_transformer_tok2vec(model):
        return model.layers[0]
    return model


def is_token_listener(node: Model) -> bool:
    """Return whether a layer listens to an `sbert_transformer` for the vectors of tokens."""
    return node.name == "sbert-transformer-listener"


def _refuse(model: Model, X: object, is_train: bool) -> tuple[object, Callable]:
    raise NotImplementedError(
        "Call SpanTransformer.read, or the sentence encoder that the transformer is part of."
    )


def _init(model: Model, X: object = None, Y: object = None) -> None:
    load(model)


def load(model: Model) -> TransformerShim:
    """Load the weights of a transformer, unless they are loaded, and return its shim."""
    shim = cast(TransformerShim, model.layers[0].shims[0])
    shim.load()
    if isinstance(model, SpanTransformer) and not model.has_dim("nO"):
        model.prompt()
    if not model.has_dim("nO"):
        model.set_dim("nO", shim.config.hidden_size)
    model.attrs["has_transformer"] = True
    return shim
