"""The Hugging Face model and tokenizer inside a Thinc model: loaded on first use, saved as their folder's files."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from spacy.util import SimpleFrozenDict
from thinc.api import Optimizer, PyTorchGradScaler, get_torch_default_device, xp2torch
from thinc.shims.shim import Shim
from thinc.types import Floats2d
from transformers import AutoModel
from transformers.utils import ModelOutput

from ..errors.checks import NonNegative, check
from . import loading
from .concurrency import LOADING, EncoderUse
from .deferred_updates import DeferringShim
from .engine.calibration import CALIBRATION_FILE, Calibration, read_calibration
from .engine.forward import Forward, autocast, cached_forward, plain_forward
from .engine.fused_adam import can_fuse, update_fused
from .engine.inference import InferenceCache, Padded, resolve_precision, warn_of_slow
from .engine.runner import Engine
from .errors import Errors
from .freezing import freeze
from .hugging_face import HuggingFaceObjects, Network, Tokenizer
from .options import INT8, REFERENCE, TransformerOptions
from .remote_code import may_run
from .resolve import resolve
from .saved import read_state, save_tokenizer, write_state, writing_to
from .settings import FolderSettings, read_settings, transformer_folder
from .states import Backprop, States
from .versions import recompute_states, without_bars
from .weights import check_architecture, check_weights
from .wordpieces import Wordpieces


class TransformerShim(DeferringShim):
    """A transformer that is looked for and loaded when it is first needed.

    name (str): a folder or a name, see resolve.
    options (TransformerOptions): how it is loaded, encodes and is trained.
    max_batch_items (int): the most wordpieces in a forward pass in use, see run; 0 for what suits the device.
    RAISES (ValueError): if max_batch_items is negative, or given beside precision = "reference".
    """

    def __init__(self, name: str, options: TransformerOptions, *, max_batch_items: int = 0):
        check("max_batch_items", max_batch_items, NonNegative)
        if max_batch_items and options.precision == REFERENCE:
            raise ValueError(Errors.REFERENCE_BATCH.format(given=max_batch_items))
        self.name, self.options = name, options
        on_device = resolve_precision(options.precision, get_torch_default_device().type)
        self.precision = "float16" if options.mixed_precision and torch.cuda.is_available() else on_device
        self.mini_batch_size = options.mini_batch_size
        self.max_batch_items = max_batch_items
        self.settings: FolderSettings | None = None
        self._inference, self.use = InferenceCache(), EncoderUse()
        self._deferred, self._encodes_alone = [], False
        configs = dict(options.tokenizer_config), dict(options.transformer_config)
        self._hfmodel = HuggingFaceObjects(None, None, None, *configs)
        in_half = self.precision == "float16"
        scaler = PyTorchGradScaler(**{"enabled": in_half, **options.grad_scaler_config})
        super().__init__(None, mixed_precision=in_half, grad_scaler=scaler)

    def __repr__(self) -> str:
        state = f"on {self.device}" if self.is_loaded else "not loaded yet"
        return f"{type(self).__name__}({self.name}, {self.precision}, {state})"

    _trial: tuple[str, ...] = ("a",)  # a text to see whether the encoder works

    @property
    def network(self) -> Network:
        """The Hugging Face model; it is loaded."""
        return self._model

    @property
    def tokenizer(self) -> Tokenizer:
        """Its tokenizer."""
        return self._hfmodel.tokenizer

    @property
    def is_loaded(self) -> bool:
        return self._hfmodel.transformer is not None

    def load(self) -> FolderSettings:
        """Load tokenizer and weights, unless they are, and say what is known of them.

        RAISES (OSError, ValueError): if the encoder is not found, see resolve.
        """
        if self.settings is None:
            with LOADING:
                if self.settings is None:
                    folder = resolve(self.name)
                    self._load_folder(transformer_folder(folder), read_settings(folder, self.name))
        return cast(FolderSettings, self.settings)

    @contextmanager
    def encoding(self, wordpieces: Wordpieces) -> Iterator[Engine]:
        """Yield what encodes windows without a graph in the precision asked for; meanwhile the weights stay.

        RAISES (RuntimeError): if another thread trains the encoder.
        """
        with ExitStack() as use:
            alone = self._encodes_alone  # as the last time
            use.enter_context(self.use.encoding(alone=alone))
            engine = self.inference_engine(wordpieces)
            self._encodes_alone = isinstance(engine, Padded)
            if isinstance(engine, Padded) and not alone:  # Hugging Face's modules keep things of a pass
                use.close()
                use.enter_context(self.use.encoding(alone=True))
                engine = self.inference_engine(wordpieces)
            if isinstance(engine, Padded):
                engine.model.eval()
            yield engine

    def inference_engine(self, wordpieces: Wordpieces | None = None) -> Engine:
        """What encoding makes of the weights as they are; see InferenceCache."""
        precision = self.precision if self.precision in (REFERENCE, INT8) else self._inference_precision
        return self._inference.engine_of(self.network, precision, wordpieces)

    def calibrate(self, wordpieces: Wordpieces) -> None:
        """Find the ranges by which "int8" rounds; the weights' next change forgets them. See InferenceCache."""
        self.load()
        with self.use.encoding():
            self._inference.calibrate(self.network, wordpieces)

    @property
    def calibration(self) -> Calibration | None:
        """These ranges, None until they are found; the encoder is loaded."""
        return self._inference.calibration(self.network)

    def generation(self, *, refresh: bool = False) -> object:
        """Return an object that is replaced when the weights change.

        refresh (bool): whether to look at the weights now; without it, as they were when they last encoded.
        """
        if refresh:
            self.inference_engine()
        return self._inference.generation(self.network)

    @property
    def arithmetic(self) -> str:
        """That of training: "float32", "bfloat16" or "float16"."""
        known = {REFERENCE: "float32", INT8: resolve_precision("auto", self.device.type)}
        return known.get(self.precision, self.precision)

    @property
    def _inference_precision(self) -> str:
        """What was made for float16 runs on a CPU in float32."""
        return "float32" if self.precision == "float16" and self.device.type == "cpu" else self.arithmetic

    def whole_output(self, inputs: dict[str, torch.Tensor]) -> ModelOutput:
        """All that the Hugging Face model returns for a padded batch, float32: states, and what it makes beside them.

        inputs (dict): input_ids, attention_mask and the like, (rows, wordpieces).
        """
        with self._using() as model, torch.no_grad(), autocast(self.device, self._inference_precision):
            output = model(**inputs)
        floats = {key: value for key, value in output.items() if torch.is_tensor(value) and value.is_floating_point()}
        for key, value in floats.items():
            output[key] = value.float()
        return output

    @contextmanager
    def _using(self) -> Iterator[Network]:
        """Yield the Hugging Face model for a pass without dropout."""
        with self.use.encoding(alone=True):
            yield self.network.eval()

    def begin_update(self, wordpieces: Wordpieces) -> tuple[list[States], Backprop]:  # type: ignore[override]
        """Encode windows with dropout; the callback takes the gradients of their states to the parameters."""
        cached = 0 < self.mini_batch_size < len(wordpieces.lengths)
        forward: Forward = partial(cached_forward, mini_batch_size=self.mini_batch_size) if cached else plain_forward
        with self._begin_step() as step:
            states, backward = forward(self.network, wordpieces, precision=self.arithmetic)

        def backprop(d_values: list[Floats2d]) -> None:
            given = [xp2torch(d_own, device=self.device) for d_own in d_values]  # a thread may not know of the GPU
            self._end_step(step, backward, given)

        return states, backprop

    def to_bytes(self) -> bytes:
        """The files of the encoder's folder: config, weights as safetensors, tokenizer and settings; no pickle."""
        settings = self.load()
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(Path(folder))
            if self.calibration is not None:
                (Path(folder) / CALIBRATION_FILE).write_bytes(self.calibration.to_bytes())
            return write_state(Path(folder), settings)

    def save_pretrained(self, folder: Path) -> None:
        """Write config, weights as safetensors and tokenizer to a folder, as Hugging Face lays them out."""
        self.load()
        self._make_updates()
        with writing_to(folder), self.use.encoding(), without_bars():
            self._hfmodel.transformer.save_pretrained(folder, safe_serialization=True, max_shard_size="2GB")
            save_tokenizer(self._hfmodel.tokenizer, self._hfmodel.vocab_file_contents, folder)

    def from_bytes(self, bytes_data: bytes) -> "TransformerShim":
        """Load an encoder that to_bytes wrote.

        RAISES (ValueError): if the bytes are not those of such an encoder, or not as they were written.
        """
        # Windows keeps a file of weights open a while after it was read.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            try:
                with self.use.changing(), LOADING:
                    self._load_folder(Path(folder), read_state(bytes_data, Path(folder)), is_saved=True)
            except ValueError as error:  # nobody knows the folder by that name
                raise ValueError(str(error).replace(folder, "<the saved encoder>")) from error
        self._hfmodel._init_tokenizer_config = SimpleFrozenDict()  # as in spacy-transformers: these are done with
        self._hfmodel._init_transformer_config = SimpleFrozenDict()
        return self

    def copy(self) -> "TransformerShim":
        """A copy with weights of its own and an id of its own, by which optimizers tell parameters apart."""
        self._make_updates()
        with self.use.encoding():
            copied = super().copy()
        with Shim.global_id_lock:
            Shim.global_id += 1
            copied.id = Shim.global_id
        return copied

    def _update(self, optimizer: Optimizer) -> None:
        try:
            self._apply(optimizer)
        finally:
            self._inference.drop()

    def _apply(self, optimizer: Optimizer) -> None:
        overflow = self._grad_scaler.found_inf  # then nothing is updated
        if self.options.max_grad_norm and not overflow:
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), self.options.max_grad_norm)
        parameters = {(self.id, name): p for name, p in self._model.named_parameters() if p.grad is not None}
        if overflow or not can_fuse(optimizer, parameters):
            super()._update(optimizer)
            return
        update_fused(optimizer, parameters)
        self._model.zero_grad(set_to_none=False)
        self._grad_scaler.update()

    @contextmanager
    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        if not self.is_loaded:
            yield
            return
        self.use.check_trainer()
        self._make_updates()
        keys = {name: ((self.id, name), f"pytorch_{self.id}_{name}") for name in self._model.state_dict()}
        others = {name: params[key] for name, both in keys.items() for key in both if key in params}
        kept = {name: weight.clone() for name, weight in self._model.state_dict().items() if name in others}
        step = self.use.begin_step()  # an update that another thread makes meanwhile would be lost
        try:
            self._load_weights({name: xp2torch(other).view_as(kept[name]) for name, other in others.items()})
            yield
        finally:
            self._load_weights(kept)
            self.use.end_step(step)

    def _load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        if not weights:  # those that are there go on, with what was made of them
            return
        with self.use.changing():
            self._model.load_state_dict(weights, strict=False)
            self._inference.drop()

    def to_device(self, device_type: str, device_id: int) -> None:
        if self.is_loaded:
            with self.use.changing():
                calibration = self.calibration
                super().to_device(device_type, device_id)
                self._inference.drop(calibration)

    def _load_folder(self, folder: Path, settings: FolderSettings, *, is_saved: bool = False) -> None:
        of_tokenizer, of_transformer = dict(self.options.tokenizer_config), dict(self.options.transformer_config)
        trust = may_run(
            folder, of_transformer, name=settings.name, asked=self.options.trust_remote_code, is_saved=is_saved
        )
        source = loading.Source(folder, settings.name, of_tokenizer, of_transformer, trust)
        config = loading.load_config(source)  # which version 5 reads with the tokenizer, too
        tokenizer = loading.load_tokenizer(source)
        transformer = self._load_transformer(source, config)
        loading.check_vocabulary(source, tokenizer, transformer)
        loading.try_once(source, transformer, tokenizer, self._trial)
        limits = [settings.max_length, loading.position_limit(transformer), loading.model_max_length(tokenizer)]
        limit = loading.room_for_text(source, tokenizer, min(filter(None, limits), default=None))
        transformer.config.name_or_path = tokenizer.name_or_path = settings.name
        self._hfmodel.tokenizer, self._hfmodel.transformer = tokenizer, transformer
        file = getattr(tokenizer, "vocab_file", None)
        self._hfmodel.vocab_file_contents = Path(file).read_bytes() if file and Path(file).is_file() else None
        self._model = transformer.to(get_torch_default_device())
        self._inference.drop(read_calibration(folder, transformer) if is_saved else None)
        self._deferred = []
        self._prepare_training()
        warn_of_slow(self.precision, self.device.type)
        self.settings = replace(settings, max_length=limit)  # last: now it is loaded

    def _load_transformer(self, source: loading.Source, config: Any) -> Network:
        transformer, told = loading.load_weights(source, AutoModel, config)
        if not source.trust:
            check_architecture(transformer, config, source.folder)
        check_weights(transformer, told, source.folder, head=False, cut=source.cuts_layers)
        return transformer

    def _prepare_training(self) -> None:
        if self.options.gradient_checkpointing:
            recompute_states(self._model)
        freeze(self._model, self.options.frozen)
