"""A transformer over rows of Docs."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import cast

from spacy.tokens import Doc
from thinc.api import Model

from ..files.serialization import ChecksummedModel
from ..validation import ConfiguredModel
from .engine.concurrency import prepare_forks
from .engine.packed_bert import is_packable
from .engine.runner import run
from .options import REFERENCE, TransformerConfig
from .shim import TransformerShim
from .spacy_transformers import is_a
from .span_batch import Backprop, EncodedSpans, TokenEmbeddings, encode_spans, no_gradient
from .spans import SpanGetter
from .tokenization import BatchTokenizer, Prompts, TokenizedBatch
from .versions import Network, Tokenizer


class SpanTransformer(ConfiguredModel, ChecksummedModel, Model):
    """Encode the rows of Docs with a Hugging Face encoder that is loaded on first use.

    It looks a name up in installed packages too, knows the length limit that the encoder was trained for, and cuts a
    row that is too long so that it keeps its final special token.

    name (str): a folder or a name, see resolve.
    get_spans (Callable): from Docs to the Spans that are its rows.
    options (TransformerConfig): how it is loaded, encodes and is trained.
    max_batch_items (int): the most wordpieces in a forward pass in use, see run; 0 for what suits the device.
    prompts (Prompts): what may be put before texts; None where other components read the states, too.
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
        self.prompts = prompts or Prompts(default_name="")
        if options.overflow == "windows" and not self.prompts.include:
            raise ValueError(
                'include_prompt = false and overflow = "windows" do not go together: only the first window of '
                'a text begins with the prompt. Set overflow = "truncate".'
            )
        self._tokenizer: tuple[Tokenizer, BatchTokenizer] | None = None
        # Of the name and in the place that spacy-transformers gives it, as saved pipelines have it.
        shim = TransformerShim(name, options, max_batch_items=max_batch_items)
        holder: Model = Model("hf-pytorch", _is_held, shims=[shim], dims={"nI": None, "nO": None})
        Model.__init__(
            self,
            "transformer",
            _is_held,
            init=_init,
            layers=[holder],
            dims={"nO": None},
            attrs={
                "get_spans": get_spans,
                "name": name,
                "has_transformer": False,
            },
        )

    @property
    def shim(self) -> TransformerShim:
        return self.layers[0].shims[0]  # type: ignore[return-value]

    @property
    def tokenizer(self) -> Tokenizer:
        """The Hugging Face tokenizer, None until it is loaded."""
        return self.shim.tokenizer

    @property
    def transformer(self) -> Network:
        """The Hugging Face model, None until it is loaded."""
        return self.shim.network

    @contextmanager
    def states(
        self, wordpieces: TokenizedBatch, is_train: bool
    ) -> Iterator[tuple[Iterable[TokenEmbeddings], Backprop]]:
        """Return the states of windows, and what takes their gradients to the parameters.

        Within the block the weights stay as they are, in use: another thread that changes them waits.
        """
        shim = load(self)
        if is_train:
            yield shim.begin_update(wordpieces)
            return
        with shim.encoding(wordpieces) as engine:
            yield run(engine, wordpieces, budget=self.max_batch_items), no_gradient

    @contextmanager
    def read(self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool) -> Iterator[EncodedSpans]:
        """Return the rows of Docs, and their states, see `states`; for the arguments see read_spans."""
        spans = self.attrs["get_spans"](docs)
        if not any(spans):
            yield EncodedSpans.none(len(docs))
            return
        prompt = self.prompt(prompt)
        wordpieces, batch = encode_spans(self.wordpiece_tokenizer, spans, prompt=prompt, with_pieces=with_pieces)
        with self.states(wordpieces, is_train) as (batch.states, batch.backprop):
            yield batch

    @property
    def overflow(self) -> str:
        """What happens to rows longer than the limit."""
        return self.options.overflow

    @property
    def max_batch_items(self) -> int:
        """The most wordpieces in a forward pass in use; 0 for what suits the device."""
        return self.shim.max_batch_items

    @max_batch_items.setter
    def max_batch_items(self, given: int) -> None:
        self.shim.max_batch_items = given

    @property
    def in_parallel(self) -> bool:
        """Whether it is loaded, and several threads may encode with it on the CPU at a time: on packed rows."""
        shim = self.shim
        if not shim.is_loaded or shim.device.type != "cpu" or shim.precision == REFERENCE:
            return False
        return is_packable(shim.network)

    @property
    def wordpiece_tokenizer(self) -> BatchTokenizer:
        """The encoder's tokenizer, for whole batches."""
        settings, tokenizer = self.shim.load(), self.shim.tokenizer
        if self._tokenizer is None or self._tokenizer[0] is not tokenizer:
            include = self.prompts.include
            own = BatchTokenizer(tokenizer, settings, self.overflow, include_prompt=include)
            self._tokenizer = tokenizer, own
        return self._tokenizer[1]

    def prompt(self, prompt: str | None = None) -> str:
        """Return the prompt that is given, or else the default one of the config or the folder."""
        return self.prompts.find(self.shim.load()) if prompt is None else prompt

    def from_bytes(self, bytes_data: bytes) -> "SpanTransformer":
        """Load what to_bytes gave, in a pipe that has no other model. RAISES (ValueError): if the name is another's."""
        super().from_bytes(bytes_data)
        saved, given = self.attrs["name"], self.shim.name
        if re.sub(r"\$+", "$", saved) != re.sub(r"\$+", "$", given):  # spaCy reads each "$" doubled
            raise ValueError(
                f"The saved transformer is '{saved}', and its config names '{given}', which would be ignored. "
                "Leave the name as it was saved; to use another encoder, make a new pipe with nlp.add_pipe."
            )
        return self

    def to_dict(self) -> dict:
        """Return the model's state; loads the weights first, so that its width is saved with them."""
        load(self)
        return super().to_dict()


def is_transformer(node: Model) -> bool:
    """Return whether a layer is a transformer, of this package or of spacy-transformers."""
    return isinstance(node, SpanTransformer) or is_a(node, "TransformerModel")


def _is_held(model: Model, X: object, is_train: bool) -> tuple[object, Callable]:
    """Return the encoder is asked itself, see SpanTransformer.read."""
    raise NotImplementedError(
        "The node 'hf-pytorch' holds the weights of a transformer. Call the transformer, which it is part of."
    )


def _init(model: Model, X: object = None, Y: object = None) -> None:
    load(model)


def load(model: Model) -> TransformerShim:
    """Load the weights, unless they are."""
    shim = cast(TransformerShim, model.layers[0].shims[0])
    shim.load()
    if not model.has_dim("nO"):
        model.set_dim("nO", shim.network.config.hidden_size)
    model.attrs["has_transformer"] = True
    return shim
