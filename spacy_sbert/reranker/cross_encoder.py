"""Cross-encoder: a layer from pairs of texts to logits, and the architecture that configs name."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import Field
from spacy.util import SimpleFrozenDict
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats2d

from ..files.serialization import ChecksummedModel
from ..models.encoder_checks import embedding_rows, position_limit
from ..models.engine.concurrency import LOADING, prepare_forks
from ..models.prompts import Prompts
from ..models.surroundings import undisturbed
from ..validation import (
    MAX_OUTPUTS,
    ConfiguredModel,
    Name,
    NonNegative,
    NonNegativeFloat,
    validated,
)
from .classifier import SCORE_ACTIVATIONS, ClassifierShim
from .pair_tokenizer import Pair, PairTokenizer

SOFTMAX_OF_ONE = (
    "Softmax of a single output is always 1. Leave apply_softmax or activation out, or raise "
    "n_outputs."
)
# Up to four special tokens, and some text of both
_MIN_LENGTH = 8
_NO_SETTINGS: dict[str, object] = SimpleFrozenDict()
# Pairs are not rounded, nor batched as "reference"
_Precision = Literal["float32", "bfloat16", "float16", "auto"]


class PairLogits(NamedTuple):
    """Output of a cross-encoder for n pairs.

    logits: float32 (n, outputs), before the activation. n_cut: how many pairs were cut at the
        limit.
    """

    logits: Floats2d
    n_cut: int


class CrossEncoder(
    ConfiguredModel[list[Pair], PairLogits], ChecksummedModel[list[Pair], PairLogits]
):
    """Read pairs of texts with a sequence classifier that is loaded on first use.

    For the arguments see cross_encoder and ClassifierShim.
    """

    def __init__(self, name: str, *, activation: str, max_length: int, **shim_config: Any):
        prepare_forks()
        self._activation = activation
        self._max_length = max_length
        self._pair_tokenizer: PairTokenizer | None = None
        super().__init__(
            "cross_encoder", _forward, init=_init, shims=[ClassifierShim(name, **shim_config)]
        )

    @property
    def shim(self) -> ClassifierShim:
        return cast(ClassifierShim, self.shims[0])

    @property
    def activation(self) -> str:
        """Return the name of the activation: that of the config, or that of the folder.

        RAISES (ValueError): if the folder names another one, or softmax was asked for of one
            output.
        """
        self.shim.load()
        activation = self.shim.activation if self._activation == "auto" else self._activation
        if activation == "softmax" and self.shim.n_logits == 1:
            raise ValueError(SOFTMAX_OF_ONE)
        return activation

    def scores(self, logits: Floats2d) -> Floats2d:
        """Return the logits after the activation."""
        return SCORE_ACTIVATIONS[self.activation](logits)

    def prompt(self, name: str | None = None) -> str:
        """Return the folder's prompt of a name, None for the default one; "" if there is none.

        RAISES (ValueError): if there is none of that name.
        """
        return Prompts().find(self.shim.load(), name)

    def prompted(self, pairs: list[Pair], prompt: str | None = None) -> list[Pair]:
        """Return pairs with a prompt before the first text of each.

        None for the default one, if there is one.
        """
        if prompt is None and pairs:
            prompt = self.prompt()
        if not prompt:
            return pairs
        return [(prompt + first, second) for first, second in pairs]

    @property
    def pair_tokenizer(self) -> PairTokenizer:
        """Return the classifier's tokenizer, for whole batches.

        RAISES (ValueError): if it cannot have the limit.
        """
        self.shim.load()
        pair_tokenizer = self._pair_tokenizer
        if pair_tokenizer is None or not pair_tokenizer.is_made_of(self.shim.tokenizer):
            pair_tokenizer = self._make_pair_tokenizer()
            self._pair_tokenizer = pair_tokenizer
        return pair_tokenizer

    def _make_pair_tokenizer(self) -> PairTokenizer:
        settings = self.shim.load()
        limit = self._max_length or settings.max_length
        most = position_limit(self.shim.network)
        if limit is not None and (limit < _MIN_LENGTH or (most is not None and limit > most)):
            expected = f"{_MIN_LENGTH} to {most}" if most else f"{_MIN_LENGTH} or more"
            raise ValueError(
                f"Cannot read pairs of max_length = {limit} wordpieces: expected {expected}."
            )
        n_embeddings = embedding_rows(self.shim.weights)
        # The check calls Hugging Face's tokenizer, which is not made for several threads
        with LOADING:
            made = PairTokenizer(self.shim.tokenizer, settings, limit, n_embeddings=n_embeddings)
            made.check()
        return made

    def to_dict(self) -> dict:
        """Return the model's state; loads the weights first."""
        self.shim.load()
        return super().to_dict()


@validated
def cross_encoder(
    name: Name = "sentence-transformers/all-MiniLM-L6-v2",
    n_outputs: Annotated[int, Field(ge=0, le=MAX_OUTPUTS)] = 0,
    activation: Literal["auto", "sigmoid", "identity", "softmax"] = "auto",
    max_length: NonNegative = 0,
    max_batch_items: NonNegative = 0,
    tokenizer_config: dict[str, object] = _NO_SETTINGS,
    transformer_config: dict[str, object] = _NO_SETTINGS,
    trust_remote_code: bool = False,
    precision: _Precision = "float32",
    gradient_checkpointing: bool = False,
    frozen: Sequence[str] = (),
    max_grad_norm: NonNegativeFloat = 0.0,
) -> CrossEncoder:
    """Build a cross-encoder, which reads both texts of a pair at once.

    It reads [CLS] first [SEP] second [SEP].

    name (str): any Hugging Face sequence classifier, or a plain encoder, which gets a new head: a
        folder, or a name that is looked for in the hub's cache, in installed packages and on the
        hub.
    n_outputs (int): how many numbers a pair gets; 0 for as many as the folder's head gives, or 1.
        Another number makes a new head.
    activation (str): what makes scores of them: "sigmoid", "identity" or "softmax"; "auto" as the
        folder says, or else sigmoid of one and identity of more, as sentence-transformers does.
    max_length (int): the most wordpieces of a pair, special tokens included; 0 as the folder says.
        Of longer pairs the longer text is cut.
    max_batch_items, tokenizer_config, transformer_config, trust_remote_code, precision,
        gradient_checkpointing, frozen, max_grad_norm: see spacy-sbert.SentenceEncoder.v1. The names
            in frozen are those of the whole classifier.
    RETURNS (Model): from pairs of texts to PairLogits. The weights are loaded on first use.
    RAISES (ValueError): for an unknown activation, or a number that is negative or too large.
    SOURCE: Reimers and Gurevych 2019, section 2 (cross-encoder); Devlin et al. 2019, section 4.1.
    """
    return CrossEncoder(
        name,
        n_outputs=n_outputs,
        activation=activation,
        max_length=max_length,
        max_batch_items=max_batch_items,
        tokenizer_config=tokenizer_config,
        transformer_config=transformer_config,
        trust_remote_code=trust_remote_code,
        precision=precision,
        gradient_checkpointing=gradient_checkpointing,
        frozen=frozen,
        max_grad_norm=max_grad_norm,
    )


def _init(model: Model, X: None = None, Y: None = None) -> None:
    cast(CrossEncoder, model).shim.load()


@undisturbed()
def _forward(
    model: Model, pairs: list[Pair], is_train: bool
) -> tuple[PairLogits, Callable[[Floats2d], list[Pair]]]:
    encoder = cast(CrossEncoder, model)
    shim = encoder.shim
    shim.load()
    if not pairs:
        return PairLogits(model.ops.alloc2f(0, shim.n_logits), 0), lambda d_logits: pairs
    wordpieces = encoder.pair_tokenizer.tokenize_pairs(pairs)
    n_cut = int((wordpieces.n_cut > 0).sum())
    if not is_train:
        predicted = cast(Floats2d, torch2xp(shim.logits(wordpieces)))
        return PairLogits(predicted, n_cut), lambda d_logits: pairs
    logits, backward = shim.begin_logits(wordpieces)

    def backprop(d_logits: Floats2d) -> list[Pair]:
        backward(xp2torch(d_logits, device=shim.device))
        # Texts have no gradient
        return pairs

    return PairLogits(cast(Floats2d, torch2xp(logits)), n_cut), backprop
