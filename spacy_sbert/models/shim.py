"""The Hugging Face model and tokenizer inside a Thinc model: forward, backward, updates."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import torch
from thinc.api import Optimizer, PyTorchGradScaler, PyTorchShim, get_torch_default_device, xp2torch
from thinc.shims.shim import Shim
from thinc.types import Floats2d
from transformers import PretrainedConfig
from transformers.utils import ModelOutput

from ..errors import Errors, Warnings, warn
from .engine.backend import Backend, backend_cache
from .engine.bert_families import BertParameters
from .engine.concurrency import LOADING, EncoderUse
from .engine.torch_backend import resolve_precision
from .finite_weights import tensors_not_finite
from .folder_keys import SENTENCE_TRANSFORMER
from .folder_modules import MODULES_FILE, transformer_folder
from .load_encoder import load_encoder, parameters_or_network
from .load_weights import build_network, prepare_training
from .loading import Network, Source, Tokenizer
from .resolve import current_folder, resolve, settings_folder
from .sbert_config import (
    INT8,
    REFERENCE,
    SentenceTransformersConfig,
    TransformerConfig,
    read_settings,
)
from .span_batch import Backprop, TokenEmbeddings
from .surroundings import check_data, check_gradients, undisturbed, unshare
from .tokenization import TokenizedBatch

if TYPE_CHECKING:
    from .engine.int8 import Calibration


class TransformerShim(PyTorchShim):
    """A transformer that is looked for and loaded when it is first needed.

    For the arguments see SpanTransformer.

    `nlp.update(examples, sgd=optimizer)` has a shared transformer finish its update before the last
    of its listeners has returned the gradient. Such an update waits for the gradient, at most until
    the next forward pass.
    """

    # A text that is encoded once it is loaded
    _trial: tuple[str, ...] = ("a",)
    # The class of sentence-transformers whose settings of the folder are read
    _model_type = SENTENCE_TRANSFORMER
    # None until they are loaded; `network` makes the Hugging Face model of BertParameters
    weights: Network | BertParameters

    @undisturbed()
    def __init__(self, name: str, options: TransformerConfig, *, max_batch_items: int = 0):
        if max_batch_items and options.precision == REFERENCE:
            raise ValueError(Errors.REFERENCE_BATCH.format(given=max_batch_items))
        self.name = name
        # A relative name begins here, wherever the program is when the encoder is loaded
        self.base = current_folder()
        self.options = options
        self.max_batch_items = max_batch_items
        self.mini_batch_size = options.mini_batch_size
        self.backends = backend_cache(options)
        device = get_torch_default_device().type
        self.precision = self.backends.resolve_precision(options.precision, device)
        if options.mixed_precision and torch.cuda.is_available():
            self.precision = "float16"
        self.settings: SentenceTransformersConfig | None = None
        self.use = EncoderUse()
        # Optimizers whose update waits for the gradient
        self._deferred: list[Optimizer] = []
        self._is_saved = False
        self.tokenizer: Tokenizer = None
        # What a slow tokenizer copies when it is saved
        self._vocab_file: bytes | None = None
        in_half = self.precision == "float16"
        scaler = PyTorchGradScaler(**{"enabled": in_half, **options.grad_scaler_config})
        super().__init__(None, mixed_precision=in_half, grad_scaler=scaler)

    def __repr__(self) -> str:
        state = f"on {self.device}" if self.is_loaded else "not loaded yet"
        return f"{type(self).__name__}({self.name}, {self.precision}, {state})"

    @property
    def network(self) -> Network:
        """The Hugging Face model; None until the encoder is loaded."""
        if isinstance(self.weights, BertParameters):
            with LOADING, undisturbed():
                if isinstance(self.weights, BertParameters):
                    found = self.backends.found(self.weights)
                    device = self.device
                    network = build_network(self.config, self.weights.state_dict())
                    check_data(network, f"the encoder '{self.name}'")
                    self.weights = network.to(device)
                    self.backends.drop(found)
        return self.weights

    @property
    def _model(self) -> Network:
        """The name by which Thinc reads and sets it."""
        return self.network

    @_model.setter
    def _model(self, network: Network) -> None:
        self.weights = network

    @property
    def _hfmodel(self) -> SimpleNamespace:
        """The names by which spacy-transformers reads it."""
        # What a saved encoder was made with is in it
        given = TransformerConfig() if self._is_saved else self.options
        return SimpleNamespace(
            tokenizer=self.tokenizer,
            transformer=self.network,
            _init_tokenizer_config=given.tokenizer_config,
            _init_transformer_config=given.transformer_config,
        )

    @property
    def config(self) -> PretrainedConfig:
        """The config of the Hugging Face model of a loaded encoder."""
        return self.weights.config

    @property
    def device(self) -> torch.device:
        if not self.is_loaded:
            return get_torch_default_device()
        return next(self.weights.parameters()).device

    @property
    def is_loaded(self) -> bool:
        return self.weights is not None

    def load(self) -> SentenceTransformersConfig:
        """Load tokenizer and weights on first use, and return the settings of the folder."""
        if self.settings is None:
            with LOADING, undisturbed():
                if self.settings is None:
                    folder = resolve(self.name, self.base)
                    described = settings_folder(folder)
                    is_plain = not (described / MODULES_FILE).is_file()
                    settings = read_settings(described, self.name, self._model_type)
                    self._load_folder(transformer_folder(folder), settings, is_plain=is_plain)
        return cast(SentenceTransformersConfig, self.settings)

    # In use

    @contextmanager
    def encoding(self, wordpieces: TokenizedBatch) -> Iterator[Backend]:
        """Yield what encodes windows without a graph in the precision asked for.

        Meanwhile the weights stay.
        """
        with self.use.encoding(alone=self.encodes_alone):
            yield self.backend(wordpieces)

    def backend(self, wordpieces: TokenizedBatch | None = None) -> Backend:
        """Return what encodes with the weights as they are; see BackendCache."""
        precision = self._inference_precision
        weights = self.network if self.backends.needs_network(precision) else self.weights
        return self.backends.backend_of(weights, precision, wordpieces)

    @property
    def encodes_alone(self) -> bool:
        """Whether no two threads may encode at the same time; the encoder is loaded."""
        return self.backends.encodes_alone(self.weights, self.precision)

    def set_precision(self, precision: str, device: str) -> None:
        """Encode in another precision from now on, on a device, "cpu" or "cuda"."""
        resolved = self.backends.resolve_precision(precision, device)
        if resolved != self.precision:
            self.backends.warn_of_slow(resolved, device)
        self.precision = resolved

    def describe_precision(self) -> str:
        """Return the precision, and what else rounding depends on: backend, ranges, graph."""
        weights = self.weights if self.is_loaded else None
        return self.backends.describe(weights, self.precision)

    def calibrate(self, wordpieces: TokenizedBatch) -> None:
        """Find the ranges by which "int8" rounds; the next change of the weights drops them.

        See BackendCache.
        """
        self.load()
        with self.use.encoding():
            self.backends.calibrate(self.weights, wordpieces)

    @property
    def calibration(self) -> Calibration | None:
        """These ranges, None until they are found; the encoder is loaded."""
        return self.backends.calibration(self.weights)

    def generation(self, *, refresh: bool = False) -> object:
        """Return an object that is replaced when the weights change.

        refresh: whether to look at them now.
        """
        if refresh:
            self.backend()
        return self.backends.generation(self.weights)

    @property
    def arithmetic(self) -> str:
        """The precision of training: "float32", "bfloat16" or "float16"."""
        if self.precision == REFERENCE:
            return "float32"
        if self.precision == INT8:
            return resolve_precision("auto", self.device.type)
        return self.precision

    @property
    def _inference_precision(self) -> str:
        """The precision of use: float16 runs on a CPU in float32."""
        if self.precision == "float16" and self.device.type == "cpu":
            return "float32"
        return self.precision

    @property
    def _autocast_precision(self) -> str:
        """The precision in which Hugging Face's model is autocast in use."""
        precision = self._inference_precision
        return self.arithmetic if precision in (REFERENCE, INT8) else precision

    def whole_output(self, inputs: dict[str, torch.Tensor]) -> ModelOutput:
        """Return all outputs of the Hugging Face model for a padded batch, in float32."""
        from .engine.training import autocast  # noqa: PLC0415 (not needed for the encoder of a single pipe)

        with (
            self._using() as model,
            torch.no_grad(),
            autocast(self.device, self._autocast_precision),
        ):
            output = model(**inputs)
        for key, value in list(output.items()):
            if torch.is_tensor(value) and value.is_floating_point():
                output[key] = value.float()
        return output

    @contextmanager
    def _using(self) -> Iterator[Network]:
        """Yield the Hugging Face model for a pass without dropout."""
        with self.use.encoding(alone=True):
            yield self.network.eval()

    # In training

    def begin_update(self, wordpieces: TokenizedBatch) -> tuple[list[TokenEmbeddings], Backprop]:  # type: ignore[override]
        """Encode windows with dropout.

        The callback takes the gradients of their states to the parameters.
        """
        from .engine.training import cached_forward, plain_forward  # noqa: PLC0415 (only training needs it)

        if not self.backends.trains:
            raise ValueError(Errors.BACKEND_IN_USE_ONLY.format(backend=self.options.backend))
        network = self.network
        precision = self.arithmetic
        size = self.mini_batch_size
        with self._begin_step() as step:
            if 0 < size < len(wordpieces.lengths):
                states, backward = cached_forward(
                    network, wordpieces, precision=precision, mini_batch_size=size
                )
            else:
                states, backward = plain_forward(network, wordpieces, precision=precision)

        def backprop(d_values: list[Floats2d]) -> None:
            # The thread may not know of the GPU
            d_states = [xp2torch(d_part, device=self.device) for d_part in d_values]
            self._end_step(step, backward, d_states)

        return states, backprop

    @contextmanager
    def _begin_step(self) -> Iterator[object]:
        """Run a forward pass of training in a with block; what it yields is for _end_step."""
        check_gradients(f"the encoder '{self.name}'")
        learns = any(parameter.requires_grad for parameter in self._model.parameters())
        if not learns and not self.options.frozen:
            warn(Warnings.NO_GRADIENTS.format(name=self.name))
        step = self.use.begin_step()
        with self.use.changing():
            self._make_updates()
            self._model.train()
            yield step

    def _end_step(
        self,
        step: object,
        backward: Callable[[list[torch.Tensor]], None],
        d_outputs: list[torch.Tensor],
    ) -> None:
        """Take gradients back to the parameters, and make the updates that waited for them."""
        with self.use.changing(), torch.enable_grad():
            # Activations may be computed again, and it may have encoded meanwhile
            self._model.train()
            scaled = cast(list[torch.Tensor], self._grad_scaler.scale(d_outputs, inplace=True))
            # Those of earlier parts of an accumulated batch are unscaled already, and are once more
            self._grad_scaler.scale(self._gradients(), inplace=True)
            backward(scaled)
            self._grad_scaler.unscale(self._gradients())
        self.use.end_step(step)
        if self.use.step is None:
            self._make_updates()

    def _gradients(self) -> list[torch.Tensor]:
        return [
            parameter.grad for parameter in self._model.parameters() if parameter.grad is not None
        ]

    def finish_update(self, optimizer: Optimizer) -> None:
        """Update the weights: now, or when the gradient of the last forward pass has come."""
        if not self.is_loaded:
            return
        self.use.check_trainer()
        self._deferred.append(optimizer)
        if self.use.step is None:
            self._make_updates()

    def _make_updates(self) -> None:
        """Make the updates that waited, unless another thread still does what they wait for."""
        while self._deferred and not self.use.is_trained_elsewhere:
            with self.use.changing():
                self._update(self._deferred.pop(0))

    def _update(self, optimizer: Optimizer) -> None:
        from .engine.fused_adam import can_fuse, clear_gradients, clip_gradients, update_fused  # noqa: PLC0415 (only training needs it)

        model = self._model
        unshare(model)
        # An update is skipped if a gradient overflowed
        overflow = self._grad_scaler.found_inf
        if self.options.max_grad_norm and not overflow:
            clip_gradients(model, self.options.max_grad_norm)
        parameters = {
            (self.id, name): parameter
            for name, parameter in model.named_parameters()
            if parameter.grad is not None
        }
        try:
            if overflow or not can_fuse(optimizer, parameters):
                super().finish_update(optimizer)
            else:
                update_fused(optimizer, parameters)
                clear_gradients(model)
                self._grad_scaler.update()
        finally:
            self.backends.drop()

    @contextmanager
    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        if not self.is_loaded:
            yield
            return
        self.use.check_trainer()
        self._make_updates()
        kept: dict[str, torch.Tensor] = {}
        others: dict[str, torch.Tensor] = {}
        with self.use.encoding():
            for name, weight in self._model.state_dict().items():
                # The keys of optimizers, and those of Thinc's shims
                for key in ((self.id, name), f"pytorch_{self.id}_{name}"):
                    if key in params:
                        kept[name] = weight.clone()
                        others[name] = xp2torch(params[key]).view_as(weight)
        # An update that another thread makes meanwhile would be lost
        step = self.use.begin_step()
        try:
            self._set_weights(others)
            yield
        finally:
            self._set_weights(kept)
            self.use.end_step(step)

    def _set_weights(self, weights: dict[str, torch.Tensor]) -> None:
        """Give some parameters other values; without any, the backend stays, too."""
        if not weights:
            return
        with self.use.changing():
            unshare(self._model)
            self._model.load_state_dict(weights, strict=False)
            self.backends.drop()

    # Loading, saving, copying

    def to_device(self, device_type: str, device_id: int) -> None:
        if not self.is_loaded:
            return
        with self.use.changing():
            found = self.backends.found(self.weights)
            super().to_device(device_type, device_id)
            self.backends.drop(found)

    def copy(self) -> TransformerShim:
        """Return a copy with weights and an id of its own, by which optimizers know parameters."""
        self._make_updates()
        with self.use.encoding():
            copied = super().copy()
        with Shim.global_id_lock:
            Shim.global_id += 1
            copied.id = Shim.global_id
        return copied

    def to_bytes(self) -> bytes:
        """Return the files of the encoder's folder: config, weights, tokenizer and settings."""
        from .encoder_state import read_files, write_state  # noqa: PLC0415 (only saving needs it)

        settings = self.load()
        weight = tensors_not_finite(self.weights.state_dict().items())
        if weight is not None:
            warn(Warnings.DIVERGED.format(name=weight))
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(Path(folder))
            files = read_files(Path(folder))
        return write_state({**files, **self.backends.files(self.weights)}, settings)

    def save_pretrained(self, folder: Path) -> None:
        """Write config, weights as safetensors and tokenizer to a folder of Hugging Face."""
        from .encoder_state import save_encoder  # noqa: PLC0415 (only saving needs it)

        self.load()
        self._make_updates()
        with self.use.encoding():
            save_encoder(folder, self.network, self.tokenizer, self._vocab_file)

    def from_bytes(self, bytes_data: bytes) -> TransformerShim:
        """Load an encoder that to_bytes wrote.

        RAISES (ValueError): if the bytes are not those of such an encoder.
        """
        from .encoder_state import read_state  # noqa: PLC0415 (only saving needs it)

        with read_state(bytes_data) as (folder, settings), self.use.changing(), LOADING:
            self._load_folder(folder, settings, is_saved=True)
        return self

    def _load_folder(
        self,
        folder: Path,
        settings: SentenceTransformersConfig,
        *,
        is_saved: bool = False,
        is_plain: bool = False,
    ) -> None:
        """Load what a folder holds.

        is_saved (bool): whether a pipeline was saved with it. is_plain (bool): whether no
            modules.json lists its parts.
        """
        encoder = load_encoder(
            Source.of(folder, settings.name, self.options, is_saved=is_saved),
            settings,
            self.backends.anew(),
            self._read_weights,
            precision=self.precision,
            model_type=self._model_type,
            texts=self._trial,
            is_plain=is_plain,
        )
        self.tokenizer = encoder.tokenizer
        self.weights = encoder.weights.to(get_torch_default_device())
        self.backends = encoder.backends
        self._vocab_file = encoder.vocab_file
        self._is_saved = is_saved
        self._deferred = []
        prepare_training(self.weights, self.options)
        self.backends.warn_of_slow(self.precision, self.device.type)
        # It counts as loaded from here on
        self.settings = encoder.settings

    def _read_weights(self, source: Source, config: PretrainedConfig) -> Network | BertParameters:
        """Return the weights in a folder; a subclass may read a model of another kind."""
        needs_network = self.backends.needs_network(self.precision)
        return parameters_or_network(source, config, self.options, needs_network=needs_network)
