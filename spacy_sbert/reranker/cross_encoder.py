"""Cross-encoder: the tokenizer of pairs, the sequence classifier, and the architecture."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast

import numpy
import torch
from pydantic import Field
from spacy.util import SimpleFrozenDict
from thinc.api import Model, Optimizer, torch2xp, xp2torch
from thinc.types import Floats2d
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from ..files.serialization import ChecksummedModel
from ..losses._common import softmax
from ..models.encoder_checks import embedding_rows, position_limit
from ..models.encoder_state import SETTINGS_FILE
from ..models.engine.backend import GPU_BUDGET
from ..models.engine.concurrency import LOADING, prepare_forks
from ..models.engine.huggingface import call
from ..models.engine.packing import CPU_BUDGET, padded_batches
from ..models.engine.training import autocast
from ..models.folder_files import check_keys, read_keys, read_object, unexpected
from ..models.folder_keys import ACTIVATION_KEYS, CROSS_ENCODER, MODEL_KEYS, TEXT
from ..models.folder_modules import MODULES_FILE
from ..models.heads import sigmoid
from ..models.load_weights import load_weights, prepare_training
from ..models.loading import Network, Source
from ..models.prompts import Prompts
from ..models.sbert_config import MODEL_FILE, SentenceTransformersConfig, TransformerConfig
from ..models.shim import TransformerShim
from ..models.surroundings import check_data, check_draws, undisturbed
from ..models.tokenization import PROBED_LENGTH, BatchTokenizer, TokenizedBatch, flat
from ..models.tokenizer_kinds import SlowTokenizer
from ..validation import (
    MAX_OUTPUTS,
    ConfiguredModel,
    Name,
    NonNegative,
    NonNegativeFloat,
    validated,
)

SOFTMAX_OF_ONE = (
    "Softmax of a single output is always 1. Leave apply_softmax or activation out, or raise "
    "n_outputs."
)

Pair = tuple[str, str]
# The indices of the pairs in it, int64 (k,), and their logits (k, outputs)
_Pass = tuple[torch.Tensor, torch.Tensor]
# Wordpieces in a part of a batch; more would be padding
CPU_TRAINING_BUDGET = 512
# Up to four special tokens, and some text of both
_MIN_LENGTH = 8
_NO_SETTINGS: dict[str, object] = SimpleFrozenDict()
# Pairs are not rounded, nor batched as "reference"
_Precision = Literal["float32", "bfloat16", "float16", "auto"]
# From logits to scores, float (n, k) each; softmax is over the k.
SCORE_ACTIVATIONS: dict[str, Callable[[Floats2d], Floats2d]] = {
    "sigmoid": sigmoid,
    "identity": lambda logits: logits,
    "softmax": softmax,
}
# The names of their classes in PyTorch. Others, such as Hugging Face's or a user's own, would run
# code of the folder.
_ACTIVATION_NAMES = {
    f"torch.nn.{module}{name.title()}": name
    for module in ("", "modules.activation.", "modules.linear.")
    for name in SCORE_ACTIVATIONS
}
# In config.json, where versions 4 and later save it
_BLOCK = "sentence_transformers"
# In config.json, of sentence-transformers before version 4
_OLD_KEY = "sbert_ce_default_activation_function"


class _PairTokenizer(BatchTokenizer):
    """The tokenizer of a cross-encoder.

    limit: the most wordpieces of a pair, special tokens included.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        settings: SentenceTransformersConfig,
        limit: int | None,
        *,
        n_embeddings: int | None = None,
    ):
        super().__init__(
            tokenizer, replace(settings, max_length=None), "truncate", n_embeddings=n_embeddings
        )
        self.limit = limit

    def check(self) -> None:
        super().check()
        called = self._tokenizer.huggingface
        texts = self._probes()
        pairs = list(zip(texts, texts[::-1], strict=True))
        for limit in (called.num_special_tokens_to_add(pair=True) + PROBED_LENGTH, None):
            given = self._pairs(pairs, limit)
            expected = called(
                texts, texts[::-1], truncation=limit is not None, max_length=limit, verbose=False
            )
            self._compare(pairs, given, expected)

    def tokenize_pairs(self, pairs: Sequence[Pair]) -> TokenizedBatch:
        """Tokenise one pair or more; a window a pair."""
        wordpieces = self._pairs(pairs, self.limit)
        self._check_ids(wordpieces.ids)
        return wordpieces

    def _pairs(self, pairs: Sequence[Pair], limit: int | None) -> TokenizedBatch:
        if isinstance(self._tokenizer, SlowTokenizer):
            rows = [self._slow_row(self._tokenizer, pair, limit) for pair in pairs]
        else:
            encodings = self._tokenizer.library.encode_batch_fast(list(pairs))
            rows = [self._fast_row(encoding, limit) for encoding in encodings]
        ids, types, n_cut = zip(*rows, strict=True)
        lengths = numpy.array([len(row) for row in ids])
        return TokenizedBatch(
            text_of=numpy.arange(len(ids)),
            lengths=lengths,
            ids=flat(ids),
            type_ids=self._types(types),
            # Not used
            special=numpy.zeros(int(lengths.sum()), dtype=bool),
            offsets=None,
            n_cut=numpy.array(n_cut),
            has_type_ids=self.has_type_ids,
        )

    def _fast_row(self, encoding: Any, limit: int | None) -> tuple[list[int], list[int], int]:
        """Return the ids and type ids of a pair, and how many wordpieces were cut."""
        if limit is None or len(encoding) <= limit:
            return encoding.ids, encoding.type_ids, 0
        owners = numpy.array([-1 if owner is None else owner for owner in encoding.sequence_ids])
        members = [numpy.flatnonzero(owners == member) for member in (0, 1)]
        first, second = map(len, members)
        kept = owners < 0
        lengths = _truncated_lengths(first, second, limit - int(kept.sum()))
        for places, length in zip(members, lengths, strict=True):
            kept[places[self._part(len(places), length)]] = True
        ids, types = (
            numpy.array(values)[kept].tolist() for values in (encoding.ids, encoding.type_ids)
        )
        return ids, types, len(encoding) - len(ids)

    def _slow_row(
        self, tokenizer: SlowTokenizer, pair: Pair, limit: int | None
    ) -> tuple[list[int], list[int], int]:
        first, second = map(tokenizer.encode_text, pair)
        lengths = len(first), len(second)
        if limit is not None:
            room = limit - tokenizer.huggingface.num_special_tokens_to_add(pair=True)
            lengths = _truncated_lengths(*lengths, room, odd_to_first=True)
        kept_first = first[self._part(len(first), lengths[0])]
        kept_second = second[self._part(len(second), lengths[1])]
        window = tokenizer.huggingface.prepare_for_model(kept_first, kept_second)
        ids = window["input_ids"]
        return (
            ids,
            window.get("token_type_ids", [0] * len(ids)),
            len(first) + len(second) - sum(lengths),
        )

    def _part(self, n_pieces: int, n_kept: int) -> slice:
        """Return which wordpieces of a text are kept, its beginning or its end.

        The end, if the tokenizer cuts on the left.
        """
        return slice(n_pieces - n_kept, n_pieces) if self.cuts_left else slice(n_kept)


def _truncated_lengths(
    first: int, second: int, room: int, *, odd_to_first: bool = False
) -> tuple[int, int]:
    """Return how many wordpieces of each text fit, as by "longest_first".

    The longer is cut, or both to half.

    odd_to_first (bool): whether the first of two halves is the larger one, as in slow tokenizers;
        else the longer text.
    """
    if first + second <= room:
        return first, second
    half = room // 2
    if odd_to_first and half < min(first, second):
        return room - half, half
    kept = min(first, second, half)
    return (room - kept, kept) if first > second else (kept, room - kept)


def _read_activation(folder: Path) -> str | None:
    """Return the activation that the folder of a cross-encoder names, with its module.

    None if it names none.
    """
    config_file, model_file = folder / "config.json", folder / MODEL_FILE
    config = read_object(config_file)
    block = config.get(_BLOCK) or {}
    if not isinstance(block, dict):
        raise unexpected(config_file, _BLOCK, block, "an object")
    check_keys(config_file, block, ACTIVATION_KEYS)
    found = block.get("activation_fn") or config.get(_OLD_KEY)
    is_cross_encoder = read_object(model_file).get("model_type") == CROSS_ENCODER
    # Without modules.json that file is not read
    if is_cross_encoder and (folder / MODULES_FILE).is_file():
        found = read_keys(model_file, MODEL_KEYS[CROSS_ENCODER]).activation_fn or found
    if found is not None and not isinstance(found, str):
        raise unexpected(config_file, "activation_fn", found, TEXT)
    return found


def _saved_activation(config: PretrainedConfig) -> str | None:
    """Return the activation in the config of a loaded model, see _read_activation."""
    return (getattr(config, _BLOCK, None) or {}).get("activation_fn")


class _ClassifierShim(TransformerShim):
    """A sequence classifier that is looked for and loaded when it is first needed.

    See cross_encoder.

    A plain encoder, or one with another number of outputs, gets a new head, of seed 0 until
    make_head draws it again.
    """

    _trial = ("a", "a")
    _model_type = CROSS_ENCODER

    def __init__(self, name: str, *, n_outputs: int, max_batch_items: int, **config: Any):
        super().__init__(name, TransformerConfig(**config), max_batch_items=max_batch_items)
        self.n_outputs = n_outputs

    @property
    def has_new_head(self) -> bool:
        """Return whether the head has not been trained."""
        return getattr(self.config, "has_new_head", False)

    @property
    def n_logits(self) -> int:
        """Return how many numbers it gives for a pair."""
        return cast(int, self.config.num_labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the label of each output; none of a single one."""
        names = cast(dict[int, str], self.config.id2label)
        return tuple(names[i] for i in range(len(names))) if len(names) > 1 else ()

    def make_head(self, n_outputs: int, labels: Sequence[str], seed: int) -> None:
        """Put a new head on the encoder, of so many outputs with these labels, or none.

        seed (int): of its weights.
        """
        self.load()
        with self.use.changing():
            self.weights = _with_new_head(self.network, n_outputs, labels, seed).to(self.device)
            self.backends.drop()
            prepare_training(self._model, self.options)

    def logits(self, wordpieces: TokenizedBatch) -> torch.Tensor:
        """Return the logits of pairs without dropout, float32 (n, outputs)."""
        budget = self.max_batch_items or (CPU_BUDGET if self.device.type == "cpu" else GPU_BUDGET)
        with (
            self._using() as model,
            torch.no_grad(),
            autocast(self.device, self._autocast_precision),
        ):
            parts = self._passes(model, wordpieces, budget, pads=self.backends.pads)
            return self._gathered(wordpieces, parts)

    def begin_logits(
        self, wordpieces: TokenizedBatch
    ) -> tuple[torch.Tensor, Callable[[torch.Tensor], None]]:
        """Return logits with dropout, and what takes their gradient to the parameters."""
        budget = CPU_TRAINING_BUDGET if self.device.type == "cpu" else GPU_BUDGET
        with self._begin_step() as step, autocast(self.device, self.precision):
            parts = self._passes(self.network, wordpieces, budget)

        def backward(gradients: list[torch.Tensor]) -> None:
            (d_logits,) = gradients
            # None if every parameter is frozen
            outputs = [logits for _, logits in parts if logits.requires_grad]
            if outputs:
                torch.autograd.backward(outputs, [d_logits[indices] for indices, _ in parts])

        return self._gathered(wordpieces, parts), lambda d_logits: self._end_step(
            step, backward, [d_logits]
        )

    def _passes(
        self, model: PreTrainedModel, wordpieces: TokenizedBatch, budget: int, *, pads: bool = True
    ) -> list[_Pass]:
        """Return the logits of passes.

        pads (bool): whether rows may be padded, see loading.ignores_padding.
        """
        every = numpy.arange(len(wordpieces.lengths))
        batches = padded_batches(wordpieces.lengths, every, budget, of_equal_length=not pads)
        return [
            (
                torch.from_numpy(batch.windows).to(self.device),
                call(model, wordpieces, batch).logits.float(),
            )
            for batch in batches
        ]

    def _gathered(self, wordpieces: TokenizedBatch, parts: list[_Pass]) -> torch.Tensor:
        """Return the logits in the order of the pairs."""
        logits = torch.empty(len(wordpieces.lengths), self.n_logits, device=self.device)
        for indices, part in parts:
            logits[indices] = part.detach()
        return logits

    def _update(self, optimizer: Optimizer) -> None:
        super()._update(optimizer)
        self.config.has_new_head = False

    def _read_weights(self, source: Source, config: PretrainedConfig) -> PreTrainedModel:
        folder = source.folder
        has_head = any(
            str(name).endswith("ForSequenceClassification") for name in config.architectures or ()
        )
        if not has_head:
            # Else Hugging Face makes it 2
            config.num_labels = self.n_outputs or 1
        activation = _read_activation(folder)
        if activation is not None:
            # Saved with the model
            config.sentence_transformers = {"activation_fn": activation}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            keeps_head = has_head and self.n_outputs in (0, config.num_labels)
            if not keeps_head:
                check_draws("a new head")
            model, missing = load_weights(
                source, "AutoModelForSequenceClassification", config, keeps_head=keeps_head
            )
        for weight in model.parameters():
            # Alignment in the file changes the last bit of products
            weight.data = weight.data.clone()
        if missing:
            model.config.has_new_head = True
        # With its trained head, whatever n_outputs is
        is_saved = (folder / SETTINGS_FILE).is_file()
        if is_saved or self.n_outputs in (0, config.num_labels):
            return model
        return _with_new_head(model, self.n_outputs, (), 0)


def _with_new_head(
    model: PreTrainedModel, n_outputs: int, labels: Sequence[str], seed: int
) -> Network:
    """Return the same encoder with a new head, and without the activation of the old one."""
    config = deepcopy(model.config)
    config.num_labels = n_outputs
    if labels:
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: i for i, label in enumerate(labels)}
    for key in (_BLOCK, _OLD_KEY):
        if hasattr(config, key):
            delattr(config, key)
    config.has_new_head = True
    check_draws("a new head")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model_with_head = type(model)(config)
    check_data(model_with_head, "a new head")
    model_with_head.base_model.load_state_dict(model.base_model.state_dict())
    return model_with_head


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

    For the arguments see cross_encoder and _ClassifierShim.
    """

    def __init__(self, name: str, *, activation: str, max_length: int, **shim_config: Any):
        prepare_forks()
        self._activation = activation
        self._max_length = max_length
        self._tokenizer: tuple[object, _PairTokenizer] | None = None
        super().__init__(
            "cross_encoder", _forward, init=_init, shims=[_ClassifierShim(name, **shim_config)]
        )

    @property
    def shim(self) -> _ClassifierShim:
        return cast(_ClassifierShim, self.shims[0])

    @property
    def activation(self) -> str:
        """Return the name of the activation: that of the config, or that of the folder.

        RAISES (ValueError): if the folder names another one, or softmax was asked for of one
            output.
        """
        self.shim.load()
        config = self.shim.config
        saved = (
            _saved_activation(config)
            or f"torch.nn.{'Sigmoid' if config.num_labels == 1 else 'Identity'}"
        )
        activation = (
            _ACTIVATION_NAMES.get(saved) if self._activation == "auto" else self._activation
        )
        if activation is None:
            raise ValueError(
                f"The folder names activation_fn = '{saved}', which is not supported: set "
                f"activation in the config of the model, one of {', '.join(SCORE_ACTIVATIONS)}."
            )
        if activation == "softmax" and config.num_labels == 1:
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
        text = self.prompt() if prompt is None and pairs else prompt
        return [(text + first, second) for first, second in pairs] if text else pairs

    @property
    def pair_tokenizer(self) -> _PairTokenizer:
        """Return the classifier's tokenizer, for whole batches.

        RAISES (ValueError): if it cannot have the limit.
        """
        settings, tokenizer = self.shim.load(), self.shim.tokenizer
        made = self._tokenizer
        if made is None or made[0] is not tokenizer:
            most, limit = position_limit(self.shim.network), self._max_length or settings.max_length
            if limit is not None and (limit < _MIN_LENGTH or (most is not None and limit > most)):
                expected = f"{_MIN_LENGTH} to {most}" if most else f"{_MIN_LENGTH} or more"
                raise ValueError(
                    f"Cannot read pairs of max_length = {limit} wordpieces: expected {expected}."
                )
            rows = embedding_rows(self.shim.weights)
            # The check calls Hugging Face's tokenizer, which is not made for several threads
            with LOADING:
                pair_tokenizer = _PairTokenizer(tokenizer, settings, limit, n_embeddings=rows)
                pair_tokenizer.check()
            made = self._tokenizer = tokenizer, pair_tokenizer
        return made[1]

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
        return PairLogits(
            cast(Floats2d, torch2xp(shim.logits(wordpieces))), n_cut
        ), lambda d_logits: pairs
    logits, backward = shim.begin_logits(wordpieces)

    def backprop(d_logits: Floats2d) -> list[Pair]:
        backward(xp2torch(d_logits, device=shim.device))
        # Texts have no gradient
        return pairs

    return PairLogits(cast(Floats2d, torch2xp(logits)), n_cut), backprop
