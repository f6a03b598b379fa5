"""Cross-encoder architecture."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field
from spacy.util import SimpleFrozenDict, load_model, registry
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats2d

from ..errors import Errors
from ..files.serialization import ChecksummedModel
from ..models.engine.concurrency import prepare_forks
from ..models.hub_loading import position_limit
from ..validation import MAX_OUTPUTS, ConfiguredModel, Name, NonNegative, NonNegativeFloat, validated
from .shim import ACTIVATIONS, ClassifierShim, Pair, PairTokenizer, resolve_activation

_NO_SETTINGS: dict[str, object] = SimpleFrozenDict()
_Precision = Literal["float32", "bfloat16", "float16", "auto"]  # pairs are not rounded, nor batched as "reference"
_MIN_LENGTH = 8  # up to four special tokens, and some text of both


@dataclass(frozen=True)
class PairLogits:
    """Output of a cross-encoder for n pairs.

    logits: float32 (n, outputs), before the activation. n_cut: how many pairs were cut at the limit.
    """

    logits: Floats2d
    n_cut: int


class CrossEncoder(ConfiguredModel[list[Pair], PairLogits], ChecksummedModel[list[Pair], PairLogits]):
    """Read pairs of texts with a sequence classifier that is loaded on first use.

    For the arguments see cross_encoder and ClassifierShim.
    """

    def __init__(self, name: str, *, activation: str, max_length: int, **shim_config: Any):  # noqa: ANN401 (arguments of ClassifierShim)
        if activation not in (*ACTIVATIONS, "auto"):
            expected = ", ".join((*ACTIVATIONS, "auto"))
            raise ValueError(f"Unknown activation '{activation}' of a cross-encoder: expected one of {expected}.")
        if 0 < max_length < _MIN_LENGTH:
            raise ValueError(Errors.RERANKER_MAX_LENGTH.format(given=max_length, expected=f"{_MIN_LENGTH} or more"))
        prepare_forks()
        self._activation = activation
        self._max_length = max_length
        self._tokenizer: tuple[object, PairTokenizer] | None = None
        super().__init__("cross_encoder", _forward, init=_init, shims=[ClassifierShim(name, **shim_config)])

    @property
    def shim(self) -> ClassifierShim:
        return cast(ClassifierShim, self.shims[0])

    @property
    def activation(self) -> str:
        """Return "sigmoid", "identity" or "softmax"."""
        self.shim.load()
        return resolve_activation(self._activation, self.shim.config)

    @property
    def pair_tokenizer(self) -> PairTokenizer:
        """Return the classifier's tokenizer, for whole batches."""
        settings, tokenizer = self.shim.load(), self.shim.tokenizer
        if self._tokenizer is None or self._tokenizer[0] is not tokenizer:
            self._tokenizer = tokenizer, PairTokenizer(tokenizer, settings, self._limit(settings.max_length))
        return self._tokenizer[1]

    def scores(self, logits: Floats2d) -> Floats2d:
        """Return the logits after the activation."""
        return ACTIVATIONS[self.activation](logits)

    def _limit(self, of_folder: int | None) -> int | None:
        most = position_limit(self.shim.network)
        limit = self._max_length or of_folder
        if limit is not None and (limit < _MIN_LENGTH or (most is not None and limit > most)):
            expected = f"{_MIN_LENGTH} to {most}" if most else f"{_MIN_LENGTH} or more"
            raise ValueError(Errors.RERANKER_MAX_LENGTH.format(given=limit, expected=expected))
        return limit

    def to_dict(self) -> dict:
        """Return the model's state; loads the weights first."""
        self.shim.load()
        return super().to_dict()


@registry.architectures("spacy-sbert.CrossEncoder.v1")
@validated
def cross_encoder(
    name: Name = "sentence-transformers/all-MiniLM-L6-v2",
    n_outputs: Annotated[int, Field(ge=0, le=MAX_OUTPUTS)] = 0,
    activation: str = "auto",
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
    """Build a cross-encoder, which reads both texts of a pair at once: [CLS] first [SEP] second [SEP].

    name (str): any Hugging Face sequence classifier, or a plain encoder, which gets a new head: a folder, or a name
        that is looked for in the hub's cache, in installed packages and on the hub.
    n_outputs (int): how many numbers a pair gets; 0 for as many as the folder's head gives, or 1. Another number makes
        a new head.
    activation (str): what makes scores of them: "sigmoid", "identity" or "softmax"; "auto" as the folder says, or else
        sigmoid of one and identity of more, as sentence-transformers does.
    max_length (int): the most wordpieces of a pair, special tokens included; 0 as the folder says. Of longer pairs the
        longer text is cut.
    max_batch_items, tokenizer_config, transformer_config, trust_remote_code, precision, gradient_checkpointing, frozen,
        max_grad_norm: see spacy-sbert.SentenceEncoder.v1. The names in frozen are those of the whole classifier.
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


def _forward(model: Model, pairs: list[Pair], is_train: bool) -> tuple[PairLogits, Callable[[Floats2d], list[Pair]]]:
    encoder = cast(CrossEncoder, model)
    encoder.shim.load()
    if not pairs:
        empty = model.ops.alloc2f(0, encoder.shim.config.num_labels)
        return PairLogits(empty, 0), lambda d_logits: pairs
    wordpieces = encoder.pair_tokenizer.tokenize_pairs(pairs)
    n_cut = int((wordpieces.n_cut > 0).sum())
    if not is_train:
        return PairLogits(cast(Floats2d, torch2xp(encoder.shim.logits(wordpieces))), n_cut), lambda d_logits: pairs
    logits, backward = encoder.shim.begin_logits(wordpieces)

    def backprop(d_logits: Floats2d) -> list[Pair]:
        backward(xp2torch(d_logits, device=encoder.shim.device))
        return pairs  # texts have no gradient

    return PairLogits(cast(Floats2d, torch2xp(logits)), n_cut), backprop


def network_bytes(checkpoint: str | Path, name: str) -> bytes:
    """Return the network of a trained reranker, its head and its tokenizer, as bytes.

    checkpoint (str or Path): the folder or the name of a pipeline. name (str): of the pipe in it.
    RETURNS (bytes): see ClassifierShim.from_bytes.
    RAISES (OSError): if there is no such pipeline. (ValueError): if it has no cross-encoder under the name.
    """
    nlp = load_model(checkpoint)
    model = getattr(nlp.get_pipe(name), "model", None) if nlp.has_pipe(name) else None
    if not isinstance(model, CrossEncoder):
        pipes = ", ".join(nlp.pipe_names) or "none"
        raise ValueError(
            f"Cannot start '{name}' from the pipeline '{checkpoint}': it has no 'sbert_reranker' of that name, "
            f"its pipes are {pipes}. Name a pipeline that was trained with one, such as with "
            f"configs/reranker_nli.cfg, in [initialize.components.{name}] checkpoint."
        )
    return model.shim.to_bytes()
