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
from ..models.engine.backends import GPU_BUDGET
from ..models.engine.packing import CPU_BUDGET, Batch, padded_batches, padded_inputs
from ..models.engine.training import autocast
from ..models.heads import sigmoid
from ..models.hub_loading import Source, check_architecture, check_weights, load_weights
from ..models.sbert_config import TEXT, SentenceTransformersConfig, TransformerConfig, read_file
from ..models.shim import SETTINGS_FILE, TransformerShim
from ..models.tokenization import BatchTokenizer, TokenizedBatch, flat, lower_case

Pair = tuple[str, str]
_Row = tuple[list[int], list[int], int]  # ids, type ids, and how many wordpieces were cut


class PairTokenizer(BatchTokenizer):
    """The tokenizer of a cross-encoder, for many pairs at a time.

    tokenizer: of Hugging Face. settings (SentenceTransformersConfig): of the encoder.
    limit (int): the most wordpieces of a pair, special tokens included; None for no limit.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, settings: SentenceTransformersConfig, limit: int | None):
        super().__init__(tokenizer, replace(settings, max_length=None), "truncate")
        self.limit = limit

    def tokenize_pairs(self, pairs: Sequence[Pair]) -> TokenizedBatch:
        """Tokenise one pair or more; a window a pair."""
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
            special=numpy.zeros(int(lengths.sum()), dtype=bool),  # not used
            offsets=None,
            n_cut=numpy.array([n_cut for _, _, n_cut in rows]),
        )

    def _fast_row(self, encoding: Encoding) -> _Row:
        """Cut a tokenised pair: the tokenizer would make windows of all combinations of two long texts."""
        if self.limit is None or len(encoding) <= self.limit:
            return encoding.ids, encoding.type_ids, 0
        owners = numpy.array([-1 if owner is None else owner for owner in encoding.sequence_ids])
        first, second, special = (int((owners == owner).sum()) for owner in (0, 1, -1))
        kept = owners < 0
        for member, most in enumerate(_lengths_after_truncation(first, second, self.limit - special)):
            kept[numpy.flatnonzero(owners == member)[:most]] = True
        ids, types = (numpy.array(values)[kept].tolist() for values in (encoding.ids, encoding.type_ids))
        return ids, types, len(encoding) - len(ids)

    def _slow_row(self, pair: Pair) -> _Row:
        first, second = (self._slow.encode(text, add_special_tokens=False, verbose=False) for text in pair)
        n_special = self._slow.num_special_tokens_to_add(pair=True)
        room = None if self.limit is None else self.limit - n_special
        firsts, seconds = (
            (len(first), len(second)) if room is None else _lengths_after_truncation(len(first), len(second), room)
        )
        window = self._slow.prepare_for_model(first[:firsts], second[:seconds])
        ids = window["input_ids"]
        return ids, window.get("token_type_ids", [0] * len(ids)), len(first) + len(second) - firsts - seconds


def _lengths_after_truncation(first: int, second: int, room: int) -> tuple[int, int]:
    """Return how many wordpieces of each text fit, as transformers' "longest_first": the longer text is cut.

    Both are cut to half of the room if the shorter one is longer than that.

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
# From logits to scores, float (n, k) each; softmax is over the k.
ACTIVATIONS: dict[str, Callable[[Floats2d], Floats2d]] = {
    "sigmoid": sigmoid,
    "identity": lambda logits: logits,
    "softmax": softmax,
}
_CONFIG_FILE = "config_sentence_transformers.json"
_OLD_KEY = "sbert_ce_default_activation_function"


def resolve_activation(activation: str, config: PretrainedConfig) -> str:
    """Resolve "auto": the activation of the folder, else sigmoid for one output and identity for more.

    activation (str): of the config. config: of the Hugging Face model, see _keep_activation.
    RETURNS (str): one of ACTIVATIONS.
    RAISES (ValueError): if the folder names another one, or softmax was asked for of one output.
    """
    saved = _saved_activation(config)
    if activation != "auto":
        resolved = activation
    elif saved is None:
        resolved = "sigmoid" if config.num_labels == 1 else "identity"
    else:
        resolved = saved.rsplit(".", 1)[-1].lower()
    if resolved not in ACTIVATIONS:
        raise ValueError(
            f"The folder of the cross-encoder names the activation '{saved}', which is not supported: expected "
            f"one of {', '.join(ACTIVATIONS)}. Set activation to one of them in the config of the model."
        )
    if resolved == "softmax" and config.num_labels == 1:
        raise ValueError(Errors.RERANKER_SOFTMAX_OF_ONE)
    return resolved


class _ActivationConfig(BaseModel):
    """Contents of config_sentence_transformers.json."""

    activation_fn: str | None = Field(None, description=TEXT)


def _keep_activation(config: PretrainedConfig, folder: Path) -> None:
    """Copy the activation from config_sentence_transformers.json to the config of a model, which is saved with it."""
    file = folder / _CONFIG_FILE
    saved = read_file(file, _ActivationConfig).activation_fn
    if saved is not None and _saved_activation(config) is None:
        config.sentence_transformers = {"activation_fn": saved}


def _drop_activation(config: PretrainedConfig) -> None:
    """Remove the activation from the config of a model."""
    for key in ("sentence_transformers", _OLD_KEY):
        if hasattr(config, key):
            delattr(config, key)


def _saved_activation(config: PretrainedConfig) -> str | None:
    """Return the activation in a config of sentence-transformers, of version 4 and later or before."""
    newer = getattr(config, "sentence_transformers", None) or {}
    found = (newer.get("activation_fn") if isinstance(newer, dict) else newer) or getattr(config, _OLD_KEY, None)
    return None if found is None else str(found)


def apply_activation(activation_fn: Activation, logits: Floats2d) -> Floats2d:
    """Return the scores that a function of PyTorch makes of logits. RAISES (ValueError): if their shape is another."""
    with torch.no_grad():
        scores = activation_fn(xp2torch(logits))
    shape = tuple(scores.shape) if torch.is_tensor(scores) else type(scores).__name__
    if shape != logits.shape:
        raise ValueError(
            f"activation_fn made {shape} of logits of shape {logits.shape}: expected a tensor of the same "
            "shape, such as torch.nn.Identity() gives."
        )
    return cast(Floats2d, torch2xp(scores.float()))


CPU_TRAINING_BUDGET = 512  # wordpieces in a part of a batch; more would be padding


class ClassifierShim(TransformerShim):
    """A sequence classifier that is looked for and loaded when it is first needed.

    A plain encoder, or a folder whose head has another number of outputs, gets a new head, of seed 0 until
    make_head draws it anew.

    n_outputs (int): of the head, 0 for as many as the folder's has, or 1.
    max_batch_items (int): the most wordpieces in a forward pass in use, padding included; 0 for what suits the device.
    For the others see TransformerShim.
    """

    def __init__(self, name: str, *, n_outputs: int, max_batch_items: int, **config: Any):  # noqa: ANN401 (fields of TransformerConfig)
        super().__init__(name, TransformerConfig(**config), max_batch_items=max_batch_items)
        self.n_outputs = n_outputs

    _trial = ("a", "a")

    @property
    def config(self) -> PretrainedConfig:
        """Return the config of the loaded Hugging Face model, in which labels and activation are saved."""
        return self.network.config

    @property
    def has_new_head(self) -> bool:
        """True if the head has not been trained."""
        return getattr(self.config, "has_new_head", False)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the label of each output; none of a single one."""
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
        """Return the logits of pairs without dropout, float32 (n, outputs)."""
        budget = self.max_batch_items or (CPU_BUDGET if self.device.type == "cpu" else GPU_BUDGET)
        with self._using() as model, torch.no_grad(), autocast(self.device, self._inference_precision):
            parts = [(rows, self._logits_of(model, wordpieces, rows)) for rows in _passes(wordpieces, budget)]
        return self._gathered(wordpieces, parts)

    def begin_logits(self, wordpieces: TokenizedBatch) -> tuple[torch.Tensor, Callable[[torch.Tensor], None]]:
        """Return logits with dropout, and a callback that backpropagates their gradient to the parameters."""
        budget = CPU_TRAINING_BUDGET if self.device.type == "cpu" else GPU_BUDGET
        with self._begin_step() as step, autocast(self.device, self.precision):
            parts = [(rows, self._logits_of(self.network, wordpieces, rows)) for rows in _passes(wordpieces, budget)]

        def backward(gradients: list[torch.Tensor]) -> None:
            (d_logits,) = gradients
            outputs = [logits for _, logits in parts if logits.requires_grad]  # none if every parameter is frozen
            if outputs:
                torch.autograd.backward(outputs, [d_logits[self._indices(rows)] for rows, _ in parts])

        return self._gathered(wordpieces, parts), lambda d_logits: self._end_step(step, backward, [d_logits])

    def _logits_of(self, model: PreTrainedModel, wordpieces: TokenizedBatch, rows: Batch) -> torch.Tensor:
        return model(**padded_inputs(model, wordpieces, self.device, rows)).logits.float()

    def _gathered(self, wordpieces: TokenizedBatch, parts: list[tuple[Batch, torch.Tensor]]) -> torch.Tensor:
        """Return the logits in the order of the pairs."""
        logits = torch.empty(len(wordpieces.lengths), self.config.num_labels, device=self.device)
        for rows, part in parts:
            logits[self._indices(rows)] = part.detach()
        return logits

    def _indices(self, rows: Batch) -> torch.Tensor:
        """Return the indices of the pairs of a pass, int64 (k,)."""
        return torch.from_numpy(rows.windows).to(self.device)

    def _update(self, optimizer: Optimizer) -> None:
        super()._update(optimizer)
        self.config.has_new_head = False

    def _load_transformer(self, source: Source, config: PretrainedConfig) -> PreTrainedModel:
        folder = source.folder
        has_head = any(str(name).endswith("ForSequenceClassification") for name in config.architectures or ())
        if not has_head:
            config.num_labels = self.n_outputs or 1  # else Hugging Face makes it 2
        _keep_activation(config, folder)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model, loading = load_weights(source, AutoModelForSequenceClassification, config)
        if not source.trust:
            check_architecture(model, config, folder)
        keeps_head = has_head and self.n_outputs in (0, config.num_labels)
        check_weights(model, loading, folder, head=keeps_head, cut=source.cuts_layers)
        for weight in model.parameters():
            weight.data = weight.data.clone()  # alignment in the file changes the last bit of products
        if loading["missing_keys"]:
            model.config.has_new_head = True
        is_saved = (folder / SETTINGS_FILE).is_file()  # with its trained head, whatever n_outputs is
        if is_saved or self.n_outputs in (0, config.num_labels):
            return model
        return _with_new_head(model, self.n_outputs, (), 0)


def _passes(wordpieces: TokenizedBatch, budget: int) -> list[Batch]:
    return padded_batches(wordpieces.lengths, numpy.arange(len(wordpieces.lengths)), budget)


def _with_new_head(model: PreTrainedModel, n_outputs: int, labels: Sequence[str], seed: int) -> PreTrainedModel:
    """Return the same encoder with a new head."""
    config = deepcopy(model.config)
    config.num_labels = n_outputs
    if labels:
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: i for i, label in enumerate(labels)}
    _drop_activation(config)  # of the old head
    config.has_new_head = True
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model_with_head = type(model)(config)
    model_with_head.base_model.load_state_dict(model.base_model.state_dict())
    return model_with_head
