"""A Hugging Face sequence classifier inside a Thinc model."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy
import torch
from thinc.api import Optimizer
from transformers import AutoModelForSequenceClassification, PretrainedConfig, PreTrainedModel

from ..encoder.engine.forward import autocast
from ..encoder.engine.layout import padded_inputs
from ..encoder.engine.passes import Pass, padded_passes
from ..encoder.engine.runner import CPU_BUDGET, GPU_BUDGET
from ..encoder.loading import Source, load_weights
from ..encoder.options import TransformerOptions
from ..encoder.saved import SETTINGS_FILE
from ..encoder.shim import TransformerShim
from ..encoder.weights import check_architecture, check_weights
from ..encoder.wordpieces import Wordpieces
from .activation import forget_activation, note_activation

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
        super().__init__(name, TransformerOptions(**config), max_batch_items=max_batch_items)
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

    def logits(self, wordpieces: Wordpieces) -> torch.Tensor:
        """What the head gives for pairs, without dropout: float32 (n, outputs)."""
        budget = self.max_batch_items or (CPU_BUDGET if self.device.type == "cpu" else GPU_BUDGET)
        with self._using() as model, torch.no_grad(), autocast(self.device, self._inference_precision):
            parts = [(rows, self._logits_of(model, wordpieces, rows)) for rows in _passes(wordpieces, budget)]
        return self._gathered(wordpieces, parts)

    def begin_logits(self, wordpieces: Wordpieces) -> tuple[torch.Tensor, Callable[[torch.Tensor], None]]:
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

    def _logits_of(self, model: PreTrainedModel, wordpieces: Wordpieces, rows: Pass) -> torch.Tensor:
        return model(**padded_inputs(model, wordpieces, self.device, rows)).logits.float()

    def _gathered(self, wordpieces: Wordpieces, parts: list[tuple[Pass, torch.Tensor]]) -> torch.Tensor:
        """In the order of the pairs."""
        logits = torch.empty(len(wordpieces.lengths), self.config.num_labels, device=self.device)
        for rows, found in parts:
            logits[self._places(rows)] = found.detach()
        return logits

    def _places(self, rows: Pass) -> torch.Tensor:
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


def _passes(wordpieces: Wordpieces, budget: int) -> list[Pass]:
    return padded_passes(wordpieces.lengths, numpy.arange(len(wordpieces.lengths)), budget)


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
