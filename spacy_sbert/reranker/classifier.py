"""The network of a cross-encoder: a sequence classifier, its head and its activation."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import numpy
import torch
from thinc.api import Optimizer
from thinc.types import Floats2d
from transformers import PretrainedConfig, PreTrainedModel

from ..errors import Errors
from ..losses._common import softmax
from ..models.encoder_state import SETTINGS_FILE
from ..models.engine.backend import GPU_BUDGET
from ..models.engine.huggingface import call
from ..models.engine.packing import CPU_BUDGET, padded_batches
from ..models.engine.training import autocast
from ..models.folder_files import check_keys, read_keys, read_object, unexpected
from ..models.folder_keys import ACTIVATION_KEYS, CROSS_ENCODER, MODEL_KEYS, TEXT
from ..models.folder_modules import MODULES_FILE
from ..models.heads import sigmoid
from ..models.load_weights import load_weights, prepare_training
from ..models.loading import Network, Source
from ..models.sbert_config import MODEL_FILE, TransformerConfig
from ..models.shim import TransformerShim
from ..models.surroundings import check_data, check_draws
from ..models.tokenization import TokenizedBatch

# Wordpieces in a part of a batch; more would be padding
CPU_TRAINING_BUDGET = 512
# The indices of the pairs in a forward pass, int64 (k,), and their logits (k, outputs)
_Pass = tuple[torch.Tensor, torch.Tensor]


def _identity(logits: Floats2d) -> Floats2d:
    return logits


# From logits to scores, float (n, k) each; softmax is over the k.
SCORE_ACTIVATIONS: dict[str, Callable[[Floats2d], Floats2d]] = {
    "sigmoid": sigmoid,
    "identity": _identity,
    "softmax": softmax,
}
# The names of their classes in PyTorch. Others, such as Hugging Face's or a user's own, would run
# code of the folder.
_TORCH_NAMES = {
    f"torch.nn.{module}{name.title()}": name
    for module in ("", "modules.activation.", "modules.linear.")
    for name in SCORE_ACTIVATIONS
}
# In config.json, where versions 4 and later save it
_BLOCK = "sentence_transformers"
# In config.json, of sentence-transformers before version 4
_OLD_KEY = "sbert_ce_default_activation_function"


class ClassifierShim(TransformerShim):
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
        if len(names) < 2:
            return ()
        return tuple(names[i] for i in range(len(names)))

    @property
    def activation(self) -> str:
        """Return the name of the activation that the folder asks for.

        By default sigmoid of a single output and identity of several, as in sentence-transformers.

        RAISES (ValueError): if it asks for an unknown one.
        """
        saved = (getattr(self.config, _BLOCK, None) or {}).get("activation_fn")
        if not saved:
            return "sigmoid" if self.n_logits == 1 else "identity"
        if saved not in _TORCH_NAMES:
            raise ValueError(
                f"The folder names activation_fn = '{saved}', which is not supported: set "
                f"activation in the config of the model, one of {', '.join(SCORE_ACTIVATIONS)}."
            )
        return _TORCH_NAMES[saved]

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
        default = CPU_BUDGET if self.device.type == "cpu" else GPU_BUDGET
        with (
            self._using() as model,
            torch.no_grad(),
            autocast(self.device, self._autocast_precision),
        ):
            passes = self._passes(
                model, wordpieces, self.max_batch_items or default, pads=self.backends.pads
            )
            return self._gathered(wordpieces, passes)

    def begin_logits(
        self, wordpieces: TokenizedBatch
    ) -> tuple[torch.Tensor, Callable[[torch.Tensor], None]]:
        """Return logits with dropout, and what takes their gradient to the parameters.

        RAISES (ValueError): if `frozen` names all of these.
        """
        parameters = self.network.parameters()
        if self.options.frozen and not any(each.requires_grad for each in parameters):
            raise ValueError(Errors.ALL_FROZEN.format(name=self.name))
        budget = CPU_TRAINING_BUDGET if self.device.type == "cpu" else GPU_BUDGET
        with self._begin_step() as step, autocast(self.device, self.precision):
            passes = self._passes(self.network, wordpieces, budget)

        def backward(gradients: list[torch.Tensor]) -> None:
            (d_logits,) = gradients
            # None if no parameter requires a gradient
            outputs = [logits for _, logits in passes if logits.requires_grad]
            if outputs:
                torch.autograd.backward(outputs, [d_logits[indices] for indices, _ in passes])

        def backprop(d_logits: torch.Tensor) -> None:
            self._end_step(step, backward, [d_logits])

        return self._gathered(wordpieces, passes), backprop

    def _passes(
        self, model: PreTrainedModel, wordpieces: TokenizedBatch, budget: int, *, pads: bool = True
    ) -> list[_Pass]:
        """Return the logits of each forward pass.

        pads (bool): whether pairs may be padded, see loading.ignores_padding.
        """
        every = numpy.arange(len(wordpieces.lengths))
        passes = []
        for batch in padded_batches(wordpieces.lengths, every, budget, of_equal_length=not pads):
            indices = torch.from_numpy(batch.windows).to(self.device)
            passes.append((indices, call(model, wordpieces, batch).logits.float()))
        return passes

    def _gathered(self, wordpieces: TokenizedBatch, passes: list[_Pass]) -> torch.Tensor:
        """Return the logits in the order of the pairs."""
        gathered = torch.empty(len(wordpieces.lengths), self.n_logits, device=self.device)
        for indices, logits in passes:
            gathered[indices] = logits.detach()
        return gathered

    def _update(self, optimizer: Optimizer) -> None:
        super()._update(optimizer)
        self.config.has_new_head = False

    def _read_weights(self, source: Source, config: PretrainedConfig) -> PreTrainedModel:
        has_head = _has_head(config)
        if not has_head:
            # Else Hugging Face makes it 2
            config.num_labels = self.n_outputs or 1
        activation = _read_activation(source.folder)
        if activation is not None:
            # Saved with the model
            config.sentence_transformers = {"activation_fn": activation}
        head_fits = self.n_outputs in (0, config.num_labels)
        model = _load_classifier(source, config, keeps_head=has_head and head_fits)
        # A saved pipeline keeps its trained head, whatever n_outputs is
        is_saved = (source.folder / SETTINGS_FILE).is_file()
        if is_saved or head_fits:
            return model
        return _with_new_head(model, self.n_outputs, (), 0)


def _has_head(config: PretrainedConfig) -> bool:
    names = [str(name) for name in config.architectures or ()]
    return any(name.endswith("ForSequenceClassification") for name in names)


def _load_classifier(
    source: Source, config: PretrainedConfig, *, keeps_head: bool
) -> PreTrainedModel:
    """Load a classifier; what its folder lacks is drawn with seed 0."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
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
    return model


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


def _read_activation(folder: Path) -> str | None:
    """Return the activation that the folder of a cross-encoder names, with its module.

    None if it names none.
    """
    config_file = folder / "config.json"
    config = read_object(config_file)
    block = config.get(_BLOCK) or {}
    if not isinstance(block, dict):
        raise unexpected(config_file, _BLOCK, block, "an object")
    check_keys(config_file, block, ACTIVATION_KEYS)
    activation = block.get("activation_fn") or config.get(_OLD_KEY)
    activation = _activation_of_modules(folder) or activation
    if activation is not None and not isinstance(activation, str):
        raise unexpected(config_file, "activation_fn", activation, TEXT)
    return activation


def _activation_of_modules(folder: Path) -> str | None:
    """Return the activation of a cross-encoder that was saved as modules; None if there is none."""
    file = folder / MODEL_FILE
    is_cross_encoder = read_object(file).get("model_type") == CROSS_ENCODER
    # Without modules.json that file is not read
    if not is_cross_encoder or not (folder / MODULES_FILE).is_file():
        return None
    return read_keys(file, MODEL_KEYS[CROSS_ENCODER]).activation_fn
