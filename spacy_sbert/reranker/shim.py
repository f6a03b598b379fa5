"""Sequence classifier over pairs: tokenization, weights and activation."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy
import torch
from pydantic import BaseModel, Field
from thinc.api import Optimizer, torch2xp, xp2torch
from thinc.types import Floats2d
from tokenizers import Encoding
from transformers import AutoModelForSequenceClassification, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from ..errors import Errors, Warnings
from ..losses._common import softmax
from ..models.engine.packing import Batch, padded_batches, padded_inputs
from ..models.engine.runner import CPU_BUDGET, GPU_BUDGET
from ..models.engine.training import autocast
from ..models.heads import sigmoid
from ..models.hub_loading import Source, check_architecture, check_weights, load_weights
from ..models.options import TransformerConfig
from ..models.sbert_config import TEXT, SentenceTransformersConfig, read_file
from ..models.shim import SETTINGS_FILE, TransformerShim
from ..models.tokenization import BatchTokenizer, TokenizedBatch, flat, lower_case

Pair = tuple[str, str]
Row = tuple[list[int], list[int], int]  # ids, type ids, and how many wordpieces were cut


class PairTokenizer(BatchTokenizer):
    """The tokenizer of a cross-encoder, for many pairs at a time.

    tokenizer: of Hugging Face. settings (SentenceTransformersConfig): of the encoder.
    limit (int): the most wordpieces of a pair, special tokens included; None for no limit.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, settings: SentenceTransformersConfig, limit: int | None):
        super().__init__(tokenizer, replace(settings, max_length=None), "truncate")
        self.limit = limit

    def tokenize_pairs(self, pairs: Sequence[Pair]) -> TokenizedBatch:
        """Tokenise pairs, not none; a window a pair."""
        if self.settings.lowercase:
            pairs = [(lower_case(first), lower_case(second)) for first, second in pairs]
        if self._slow is not None:
            rows = list(map(self._slow_row, pairs))
        else:
            rows = list(map(self._fast_row, self._fast.encode_batch_fast(list(pairs))))
        lengths = numpy.array([len(ids) for ids, _, _ in rows])
        type_ids = flat(types for _, types, _ in rows)
        return TokenizedBatch(
            text_of=numpy.arange(len(rows)),
            lengths=lengths,
            ids=flat(ids for ids, _, _ in rows),
            type_ids=type_ids if self.has_type_ids and type_ids.any() else None,
            special=numpy.zeros(int(lengths.sum()), dtype=bool),  # nobody asks
            offsets=None,
            n_cut=numpy.array([n_cut for _, _, n_cut in rows]),
        )

    def _fast_row(self, encoding: Encoding) -> Row:
        """Whole pairs are tokenised and then cut: the tokenizer's own truncation makes as many windows of two long
        texts as the product of theirs.
        """
        if self.limit is None or len(encoding) <= self.limit:
            return encoding.ids, encoding.type_ids, 0
        owners = numpy.array([-1 if owner is None else owner for owner in encoding.sequence_ids])
        first, second, special = (int((owners == owner).sum()) for owner in (0, 1, -1))
        kept = owners < 0
        for member, most in enumerate(shares(first, second, self.limit - special)):
            kept[numpy.flatnonzero(owners == member)[:most]] = True
        ids, types = (numpy.array(values)[kept].tolist() for values in (encoding.ids, encoding.type_ids))
        return ids, types, len(encoding) - len(ids)

    def _slow_row(self, pair: Pair) -> Row:
        first, second = (self._slow.encode(text, add_special_tokens=False, verbose=False) for text in pair)
        n_special = self._slow.num_special_tokens_to_add(pair=True)
        room = None if self.limit is None else self.limit - n_special
        firsts, seconds = (len(first), len(second)) if room is None else shares(len(first), len(second), room)
        window = self._slow.prepare_for_model(first[:firsts], second[:seconds])
        ids = window["input_ids"]
        return ids, window.get("token_type_ids", [0] * len(ids)), len(first) + len(second) - firsts - seconds


def shares(first: int, second: int, room: int) -> tuple[int, int]:
    """How many wordpieces of each text fit: the longer one is cut, both to half of the room if the shorter one is
    longer than that, as transformers' "longest_first".

    first, second: wordpieces of each text, without special tokens. room: the most of both.
    """
    shorter = min(first, second)
    if first + second <= room:
        return first, second
    kept = shorter if 2 * shorter <= room else room // 2
    return (room - kept, kept) if first > second else (kept, room - kept)


@dataclass
class PairTruncation:
    """Counts the pairs that were longer than a cross-encoder's limit, for one warning for many."""

    count: int = 0
    total: int = 0
    limit: int | None = None

    @property
    def message(self) -> str:
        return Warnings.RERANKER_TRUNCATED.format(count=self.count, total=self.total, limit=self.limit)


Activation = Callable[[torch.Tensor], torch.Tensor]
# What makes the scores of n pairs of their k logits, float (n, k) each; softmax is over the k.
ACTIVATIONS: dict[str, Callable[[Floats2d], Floats2d]] = {
    "sigmoid": sigmoid,
    "identity": lambda logits: logits,
    "softmax": softmax,
}
CONFIG_FILE = "config_sentence_transformers.json"
OLD_KEY = "sbert_ce_default_activation_function"


def resolve_activation(activation: str, config: PretrainedConfig) -> str:
    """What "auto" stands for: what the folder says, else sigmoid for one output and identity for more.

    activation (str): what was asked for. config: of the Hugging Face model, see note_activation.
    RETURNS (str): one of ACTIVATIONS.
    RAISES (ValueError): if the folder names another one, or softmax was asked for of one output.
    """
    saved = activation_noted(config)
    if activation != "auto":
        found = activation
    elif saved is None:
        found = "sigmoid" if config.num_labels == 1 else "identity"
    else:
        found = saved.rsplit(".", 1)[-1].lower()
    if found not in ACTIVATIONS:
        raise ValueError(
            f"The folder of the cross-encoder names the activation '{saved}', which is not supported: expected "
            f"one of {', '.join(ACTIVATIONS)}. Set activation to one of them in the config of the model."
        )
    if found == "softmax" and config.num_labels == 1:
        raise ValueError(Errors.RERANKER_SOFTMAX_OF_ONE)
    return found


class ActivationConfig(BaseModel):
    """The file beside a classifier that says its activation."""

    activation_fn: str | None = Field(None, description=TEXT)


def note_activation(config: PretrainedConfig, folder: Path) -> None:
    """Have the config of a model say what a file beside it says of its activation, so that it is saved with it."""
    file = folder / CONFIG_FILE
    saved = read_file(file, ActivationConfig).activation_fn
    if saved is not None and activation_noted(config) is None:
        config.sentence_transformers = {"activation_fn": saved}


def forget_activation(config: PretrainedConfig) -> None:
    """Take out of the config of a model what it says of its activation."""
    for key in ("sentence_transformers", OLD_KEY):
        if hasattr(config, key):
            delattr(config, key)


def activation_noted(config: PretrainedConfig) -> str | None:
    """The activation in the config of a cross-encoder of sentence-transformers, since version 4 and before."""
    newer = getattr(config, "sentence_transformers", None) or {}
    found = (newer.get("activation_fn") if isinstance(newer, dict) else newer) or getattr(config, OLD_KEY, None)
    return None if found is None else str(found)


def apply_activation(activation_fn: Activation, logits: Floats2d) -> Floats2d:
    """Return the scores that a function of PyTorch makes of logits. RAISES (ValueError): if their shape is another."""
    with torch.no_grad():
        found = activation_fn(xp2torch(logits))
    shape = tuple(found.shape) if torch.is_tensor(found) else type(found).__name__
    if shape != logits.shape:
        raise ValueError(
            f"activation_fn made {shape} of logits of shape {logits.shape}: expected a tensor of the same "
            "shape, such as torch.nn.Identity() gives."
        )
    return cast(Floats2d, torch2xp(found.float()))


CPU_TRAINING_BUDGET = 512  # wordpieces in a part of a batch; more would be padding


class ClassifierShim(TransformerShim):
    """A sequence classifier that is looked for and loaded when it is first needed.

    A plain encoder, or a folder whose head has another number of outputs, gets a new head, of seed 0 until
    make_head draws it anew.

    n_outputs (int): of the head, 0 for as many as the folder's has, or 1.
    max_batch_items (int): the most wordpieces in a forward pass in use, padding included; 0 for what suits the device.
    For the others see TransformerShim.
    """

    def __init__(self, name: str, *, n_outputs: int, max_batch_items: int, **config: Any):
        super().__init__(name, TransformerConfig(**config), max_batch_items=max_batch_items)
        self.n_outputs = n_outputs

    _trial = ("a", "a")

    @property
    def config(self) -> PretrainedConfig:
        """That of the loaded Hugging Face model, in which labels and activation are saved."""
        return self.network.config

    @property
    def has_new_head(self) -> bool:
        """Whether the head is one that has not been trained."""
        return getattr(self.config, "has_new_head", False)

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each output; none of a single one."""
        names = self.config.id2label
        return tuple(names[i] for i in range(len(names))) if len(names) > 1 else ()

    def make_head(self, n_outputs: int, labels: Sequence[str], seed: int) -> None:
        """Put a new head on the encoder, of so many outputs with these labels, or none; seed (int): of its weights."""
        self.load()
        model = _with_new_head(self.network, n_outputs, labels, seed)
        with self.use.changing():
            self._hfmodel.transformer = self._model = model.to(self.device)
            self._inference.drop()
            self._prepare_training()

    def logits(self, wordpieces: TokenizedBatch) -> torch.Tensor:
        """What the head gives for pairs, without dropout: float32 (n, outputs)."""
        budget = self.max_batch_items or (CPU_BUDGET if self.device.type == "cpu" else GPU_BUDGET)
        with self._using() as model, torch.no_grad(), autocast(self.device, self._inference_precision):
            parts = [(rows, self._logits_of(model, wordpieces, rows)) for rows in _passes(wordpieces, budget)]
        return self._gathered(wordpieces, parts)

    def begin_logits(self, wordpieces: TokenizedBatch) -> tuple[torch.Tensor, Callable[[torch.Tensor], None]]:
        """The same with dropout; the callback takes the gradient of them to the parameters."""
        budget = CPU_TRAINING_BUDGET if self.device.type == "cpu" else GPU_BUDGET
        with self._begin_step() as step, autocast(self.device, self.precision):
            parts = [(rows, self._logits_of(self.network, wordpieces, rows)) for rows in _passes(wordpieces, budget)]

        def backward(gradients: list[torch.Tensor]) -> None:
            (d_logits,) = gradients
            found = [logits for _, logits in parts if logits.requires_grad]  # not if every parameter is frozen
            if found:
                torch.autograd.backward(found, [d_logits[self._places(rows)] for rows, _ in parts])

        return self._gathered(wordpieces, parts), lambda d_logits: self._end_step(step, backward, [d_logits])

    def _logits_of(self, model: PreTrainedModel, wordpieces: TokenizedBatch, rows: Batch) -> torch.Tensor:
        return model(**padded_inputs(model, wordpieces, self.device, rows)).logits.float()

    def _gathered(self, wordpieces: TokenizedBatch, parts: list[tuple[Batch, torch.Tensor]]) -> torch.Tensor:
        """In the order of the pairs."""
        logits = torch.empty(len(wordpieces.lengths), self.config.num_labels, device=self.device)
        for rows, found in parts:
            logits[self._places(rows)] = found.detach()
        return logits

    def _places(self, rows: Batch) -> torch.Tensor:
        """Of the pairs of a pass among all: int64 (k,)."""
        return torch.from_numpy(rows.windows).to(self.device)

    def _update(self, optimizer: Optimizer) -> None:
        super()._update(optimizer)
        self.config.has_new_head = False

    def _load_transformer(self, source: Source, config: PretrainedConfig) -> PreTrainedModel:
        folder = source.folder
        has_head = any(str(name).endswith("ForSequenceClassification") for name in config.architectures or ())
        if not has_head:
            config.num_labels = self.n_outputs or 1  # else Hugging Face makes it 2
        note_activation(config, folder)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model, loading = load_weights(source, AutoModelForSequenceClassification, config)
        if not source.trust:
            check_architecture(model, config, folder)
        keeps_head = has_head and self.n_outputs in (0, config.num_labels)
        check_weights(model, loading, folder, head=keeps_head, cut=source.cuts_layers)
        for weight in model.parameters():
            weight.data = weight.data.clone()  # where it lies in a file decides the last bit of its products
        if loading["missing_keys"]:
            model.config.has_new_head = True
        is_saved = (folder / SETTINGS_FILE).is_file()  # with the head that was trained, whatever n_outputs says
        if is_saved or self.n_outputs in (0, config.num_labels):
            return model
        return _with_new_head(model, self.n_outputs, (), 0)


def _passes(wordpieces: TokenizedBatch, budget: int) -> list[Batch]:
    return padded_batches(wordpieces.lengths, numpy.arange(len(wordpieces.lengths)), budget)


def _with_new_head(model: PreTrainedModel, n_outputs: int, labels: Sequence[str], seed: int) -> PreTrainedModel:
    """The same encoder under a new head, which is all that a classifier has beside its encoder."""
    config = deepcopy(model.config)
    config.num_labels = n_outputs
    if labels:
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: i for i, label in enumerate(labels)}
    forget_activation(config)  # it was the old head's
    config.has_new_head = True
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = type(model)(config)
    made.base_model.load_state_dict(model.base_model.state_dict())
    return made
