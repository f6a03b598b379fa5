"""The model of `sbert_transformer`: the vectors of tokens, and the states that others read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..files.serialization import ChecksummedModel
from ..validation import ConfiguredModel
from .doc_states import join_merged, split_by_doc
from .encoded_docs import EncodeSettings
from .encoder import Encoder, FindUpstream, InPipe
from .pooling import SentencePooling
from .sbert_config import SentenceTransformersConfig
from .span_batch import EncodedSpans
from .spans import getter_settings
from .surroundings import undisturbed
from .token_vectors import TokenPooling, init_pooling, pool_tokens
from .transformer import SpanTransformer, is_token_listener, load


class TransformerTok2Vec(
    ConfiguredModel, ChecksummedModel[list[Doc], list[Floats2d]], Encoder, Model
):
    """Encode Docs with a transformer, and pool the wordpieces of each token.

    The vector of a token is that of its wordpieces in all rows that it is in; zeros if it has none.

    transformer (SpanTransformer): encodes the rows of Docs.
    pooling (Model): from the wordpieces of each token to its vector.
    grad_factor (float): factor on the gradient that goes to the transformer.
    """

    def __init__(
        self, transformer: SpanTransformer, pooling: TokenPooling, grad_factor: float = 1.0
    ):
        super().__init__(
            "transformer_tok2vec",
            _forward,
            init=_init,
            layers=[transformer, pooling],
            dims={"nO": None},
            attrs={
                "replace_listener": _replace_listener,
                "replace_listener_cfg": _replace_listener_cfg,
            },
        )
        self.grad_factor = grad_factor

    @property
    def transformer(self) -> SpanTransformer:
        return cast(SpanTransformer, self.layers[0])

    @property
    def pooling(self) -> TokenPooling:
        return self.layers[1]

    # As an Encoder, in place of a listener to it, after nlp.replace_listeners

    kind = SpanTransformer.kind
    takes_prompts = True

    @property
    def is_loaded(self) -> bool:
        return self.transformer.is_loaded

    @property
    def folder(self) -> SentenceTransformersConfig | None:
        return self.transformer.folder

    def models(self, find_upstream: FindUpstream, settings: object) -> list[Model]:
        return [self.transformer]

    def text_encoder(
        self, pooling: SentencePooling, settings: EncodeSettings, pipe: InPipe | None
    ) -> Any:
        return self.transformer.text_encoder(pooling, settings, pipe)

    def digest_settings(self, pooling: SentencePooling) -> object:
        return self.transformer.digest_settings(pooling)

    @contextmanager
    def read(
        self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool
    ) -> Iterator[EncodedSpans]:
        """Yield the rows of Docs and their states, see SpanTransformer.read.

        Windows that overlap as one row.
        """
        may_overlap = not is_train and not getter_settings(self.transformer.attrs["get_spans"])
        pieces_needed = with_pieces or may_overlap
        with self.transformer.read(
            docs, prompt=prompt, with_pieces=pieces_needed, is_train=is_train
        ) as batch:
            if may_overlap:
                batch = join_merged(docs, split_by_doc(batch))
            yield batch

    def encode(self, docs: list[Doc], *, is_train: bool, with_pieces: bool = True) -> EncodedSpans:
        """Return the rows of Docs, and the states of all their wordpieces.

        with_pieces: see encode_spans.
        """
        with self.transformer.read(
            docs, prompt=None, with_pieces=with_pieces, is_train=is_train
        ) as batch:
            batch.list_states()
        return batch

    @property
    def width(self) -> int:
        """The width of the vectors; loads the weights."""
        if not self.has_dim("nO"):
            load(self.transformer)
            self.set_dim("nO", self.transformer.get_dim("nO"))
        return self.get_dim("nO")

    def to_dict(self) -> dict:
        """Return the model's state.

        Loads the weights first, so that its width is saved with them.
        """
        load(self.transformer)
        self.set_dim("nO", self.transformer.get_dim("nO"))
        return super().to_dict()


def _init(model: Model, X: object = None, Y: object = None) -> None:
    tok2vec = cast(TransformerTok2Vec, model)
    init_pooling(tok2vec.pooling, tok2vec.width)


@undisturbed()
def _forward(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    tok2vec = cast(TransformerTok2Vec, model)
    batch = tok2vec.encode(docs, is_train=is_train)
    vectors, backprop_tokens = pool_tokens(
        tok2vec.pooling, docs, batch, tok2vec.width, is_train=is_train
    )

    def backprop(d_vectors: list[Floats2d]) -> list[Doc]:
        batch.backprop([d_part * tok2vec.grad_factor for d_part in backprop_tokens(d_vectors)])
        return docs

    return vectors, backprop


def _replace_listener(copied: TransformerTok2Vec, listener: Model, component: object) -> Model:
    """Return what takes a listener's place: a copy of the model, with the listener's settings."""
    if is_token_listener(listener):
        copied.layers[1] = listener.layers[0].copy()
    copied.grad_factor = getattr(listener, "grad_factor", copied.grad_factor)
    return copied


def _replace_listener_cfg(
    transformer_cfg: dict[str, Any], listener_cfg: dict[str, Any]
) -> dict[str, Any]:
    config = dict(transformer_cfg)
    for name in ("pooling", "grad_factor"):
        if name in listener_cfg:
            config[name] = listener_cfg[name]
    return config
