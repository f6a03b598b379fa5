"""The Hugging Face model and tokenizer inside a Thinc model: loaded on first use, saved as their folder's files."""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import srsly
import torch
from safetensors import SafetensorError
from thinc.api import Optimizer, PyTorchGradScaler, PyTorchShim, get_torch_default_device, xp2torch
from thinc.shims.shim import Shim
from thinc.types import Floats2d
from transformers import PretrainedConfig
from transformers.utils import ModelOutput

from ..errors import DivergedError, Errors, Warnings, warn
from . import loading
from .engine.backends import Backend, BackendCache, HFBackend, resolve_precision, warn_of_slow
from .engine.bert_families import BertParameters, is_packable, load_parameters
from .engine.concurrency import LOADING, EncoderUse
from .engine.packed_bert import PackedBert
from .finite_weights import tensors_not_finite
from .folder_keys import SENTENCE_TRANSFORMER
from .loading import Network, Tokenizer, takes_token_types
from .resolve import current_folder, resolve
from .sbert_config import (
    INT8,
    MODULES_FILE,
    REFERENCE,
    SentenceTransformersConfig,
    TransformerConfig,
    read_file,
    read_settings,
    transformer_folder,
)
from .span_batch import Backprop, TokenEmbeddings
from .surroundings import check_data, check_gradients, undisturbed, unshare
from .tokenization import TokenizedBatch

if TYPE_CHECKING:
    from .engine.int8 import Calibration

SETTINGS_FILE = "spacy_sbert.json"
CALIBRATION_FILE = "int8_calibration.safetensors"


def _read_state(data: bytes, folder: Path) -> SentenceTransformersConfig:
    """Write the files in the bytes of a shim to an empty folder, and return the settings among them."""
    try:
        state = srsly.msgpack_loads(data)
    except Exception as error:
        # Whatever the bytes lead the parser to
        raise _damaged(
            f"it ends early, or is not a saved encoder ({error or type(error).__name__})"
        ) from error
    files = state.get("files") if isinstance(state, dict) else None
    if not isinstance(files, dict) or SETTINGS_FILE not in files:
        raise _damaged(f"{SETTINGS_FILE} is missing")
    for name, content in files.items():
        if (
            not isinstance(name, str)
            or name in ("", ".", "..")
            or Path(name).name != name
            or "\0" in name
        ):
            raise _damaged(f"it names the file '{name}'")
        if not isinstance(content, bytes):
            raise _damaged(f"the file '{name}' holds no bytes")
    if state.get("sha256") != _digests(files):
        raise _damaged("the SHA-256 of a file is not the one that was written with it")
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return read_file(folder / SETTINGS_FILE, SentenceTransformersConfig)


def _digests(files: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def _damaged(reason: str) -> ValueError:
    return ValueError(Errors.BAD_STATE.format(reason=reason))


@contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    """Raise an OSError for every failure to write to a folder, whatever a library makes of it."""
    try:
        yield
    except Exception as error:
        # Of a full disk; tokenizers know no other kind
        names_no_file = isinstance(error, OSError) and error.filename is None
        if names_no_file or isinstance(error, SafetensorError) or type(error) is Exception:
            raise OSError(Errors.CANNOT_WRITE.format(path=folder, reason=error)) from error
        raise


def _states(
    weights: Network | BertParameters, inference: BackendCache, inputs: Mapping[str, torch.Tensor]
) -> torch.Tensor:
    """Return the states of a row (1, wordpieces); the logits of a classifier."""
    if not isinstance(weights, BertParameters):
        taken = {
            key: value
            for key, value in inputs.items()
            if key != "token_type_ids" or takes_token_types(weights)
        }
        mask = loading.attention_mask(
            weights, taken.pop("attention_mask", torch.ones_like(taken["input_ids"]))
        )
        output = weights(**taken, **mask)
        is_classifier = "logits" in output
        return output.logits if is_classifier else output.last_hidden_state
    # Kept for use
    engine = cast(PackedBert, inference.engine_of(weights, "float32"))
    ids, types = inputs["input_ids"], inputs.get("token_type_ids")
    return engine(ids, torch.arange(ids.shape[1])[None], types, torch.zeros_like(ids))


@torch.no_grad()
def _counts_padding(
    weights: Network | BertParameters, tokenizer: Tokenizer, texts: tuple[str, ...]
) -> bool:
    """Return whether the states of a text are others where padding comes before it, as of absolute positions."""
    if isinstance(weights, BertParameters):
        return getattr(weights.embeddings, "padding_idx", None) is None
    if tokenizer.pad_token_id is None:
        return False
    alone = tokenizer(*texts, return_tensors="pt")
    length = alone["input_ids"].shape[1]
    padded = tokenizer(*texts, return_tensors="pt", padding="max_length", max_length=length + 2)
    states, behind = (
        weights(input_ids=each["input_ids"], attention_mask=each["attention_mask"])[0]
        for each in (alone, padded)
    )
    # Else logits
    if states.dim() == 3:
        behind = behind[:, -length:]
    return not torch.allclose(states, behind, atol=1e-4)


class TransformerShim(PyTorchShim):
    """A transformer that is looked for and loaded when it is first needed.

    For the arguments see SpanTransformer.

    `nlp.update(examples, sgd=optimizer)` has a shared transformer finish its update before the last
    of its listeners has returned the gradient. Such an update waits for the gradient, at most until
    the next forward pass.
    """

    # A text that is encoded once it is loaded
    _trial: tuple[str, ...] = ("a",)
    # Whose files of the folder are read
    _model_type = SENTENCE_TRANSFORMER
    # None until they are loaded; of BertParameters `network` makes the model
    weights: Network | BertParameters

    @undisturbed()
    def __init__(self, name: str, options: TransformerConfig, *, max_batch_items: int = 0):
        if max_batch_items and options.precision == REFERENCE:
            raise ValueError(Errors.REFERENCE_BATCH.format(given=max_batch_items))
        self.name, self.options = name, options
        # In which a relative name is looked for, wherever the program is when it is loaded
        self.base = current_folder()
        self.max_batch_items, self.mini_batch_size = max_batch_items, options.mini_batch_size
        on_device = resolve_precision(options.precision, get_torch_default_device().type)
        self.precision = (
            "float16" if options.mixed_precision and torch.cuda.is_available() else on_device
        )
        self.settings: SentenceTransformersConfig | None = None
        self._inference, self.use = BackendCache(), EncoderUse()
        self._deferred: list[Optimizer] = []
        self._is_packable = self._is_saved = False
        self.tokenizer: Tokenizer = None
        # Which slow tokenizers copy when they are saved
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
                    calibration, device = self.calibration, self.device
                    network = loading.build_network(self.config, self.weights.state_dict())
                    check_data(network, f"the encoder '{self.name}'")
                    self.weights = network.to(device)
                    self._inference.drop(calibration)
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
        return (
            next(self.weights.parameters()).device if self.is_loaded else get_torch_default_device()
        )

    @property
    def is_loaded(self) -> bool:
        return self.weights is not None

    def load(self) -> SentenceTransformersConfig:
        """Load tokenizer and weights, unless they are loaded, and return the settings of the folder; see resolve."""
        if self.settings is None:
            with LOADING, undisturbed():
                if self.settings is None:
                    folder = resolve(self.name, self.base)
                    is_plain = not (folder / MODULES_FILE).is_file()
                    settings = read_settings(folder, self.name, self._model_type)
                    self._load_folder(transformer_folder(folder), settings, is_plain=is_plain)
        return cast(SentenceTransformersConfig, self.settings)

    # In use

    @contextmanager
    def encoding(self, wordpieces: TokenizedBatch) -> Iterator[Backend]:
        """Yield what encodes windows without a graph in the precision asked for.

        Meanwhile the weights stay.
        """
        # Hugging Face's modules may keep things of a pass, which another thread would change.
        with self.use.encoding(alone=self.precision == REFERENCE or not self._is_packable):
            engine = self.inference_engine(wordpieces)
            if isinstance(engine, HFBackend):
                engine.model.eval()
            yield engine

    def inference_engine(self, wordpieces: TokenizedBatch | None = None) -> Backend:
        """Return what encodes with the weights as they are; see BackendCache."""
        precision = (
            self.precision if self.precision in (REFERENCE, INT8) else self._inference_precision
        )
        weights = self.network if precision == REFERENCE else self.weights
        return self._inference.engine_of(weights, precision, wordpieces)

    def calibrate(self, wordpieces: TokenizedBatch) -> None:
        """Find the ranges by which "int8" rounds; the next change of the weights drops them.

        See BackendCache.
        """
        self.load()
        with self.use.encoding():
            self._inference.calibrate(self.weights, wordpieces)

    @property
    def calibration(self) -> "Calibration | None":
        """These ranges, None until they are found; the encoder is loaded."""
        return self._inference.calibration(self.weights)

    def generation(self, *, refresh: bool = False) -> object:
        """Return an object that is replaced when the weights change.

        refresh: whether to look at them now.
        """
        if refresh:
            self.inference_engine()
        return self._inference.generation(self.weights)

    @property
    def arithmetic(self) -> str:
        """The precision of training: "float32", "bfloat16" or "float16"."""
        known = {REFERENCE: "float32", INT8: resolve_precision("auto", self.device.type)}
        return known.get(self.precision, self.precision)

    @property
    def _inference_precision(self) -> str:
        """The same in use: float16 runs on a CPU in float32."""
        return (
            "float32"
            if self.precision == "float16" and self.device.type == "cpu"
            else self.arithmetic
        )

    def whole_output(self, inputs: dict[str, torch.Tensor]) -> ModelOutput:
        """Return all that the Hugging Face model makes of a padded batch, input_ids and the like, in float32."""
        from .engine.training import autocast  # noqa: PLC0415 (not needed for the encoder of a single pipe)

        with (
            self._using() as model,
            torch.no_grad(),
            autocast(self.device, self._inference_precision),
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

        size, network, precision = self.mini_batch_size, self.network, self.arithmetic
        with self._begin_step() as step:
            if 0 < size < len(wordpieces.lengths):
                states, backward = cached_forward(
                    network, wordpieces, precision=precision, mini_batch_size=size
                )
            else:
                states, backward = plain_forward(network, wordpieces, precision=precision)

        def backprop(d_values: list[Floats2d]) -> None:
            # In a thread that may not know of the GPU.
            self._end_step(
                step, backward, [xp2torch(d_part, device=self.device) for d_part in d_values]
            )

        return states, backprop

    @contextmanager
    def _begin_step(self) -> Iterator[object]:
        """Run a forward pass of training in a with block; what it yields is for _end_step."""
        check_gradients(f"the encoder '{self.name}'")
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
            # Gradients of earlier parts of an accumulated batch are unscaled already, and will be
            # once more.
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
        from .engine.training import can_fuse, update_fused  # noqa: PLC0415 (only training needs it)

        unshare(self._model)
        # Then nothing is updated
        overflow = self._grad_scaler.found_inf
        if self.options.max_grad_norm and not overflow:
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), self.options.max_grad_norm)
        parameters = {
            (self.id, name): p for name, p in self._model.named_parameters() if p.grad is not None
        }
        try:
            if overflow or not can_fuse(optimizer, parameters):
                super().finish_update(optimizer)
                return
            update_fused(optimizer, parameters)
            self._model.zero_grad(set_to_none=False)
            self._grad_scaler.update()
        finally:
            self._inference.drop()

    @contextmanager
    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        if not self.is_loaded:
            yield
            return
        self.use.check_trainer()
        self._make_updates()
        keys = {
            name: ((self.id, name), f"pytorch_{self.id}_{name}")
            for name in self._model.state_dict()
        }
        others = {name: params[key] for name, both in keys.items() for key in both if key in params}
        with self.use.encoding():
            kept = {
                name: weight.clone()
                for name, weight in self._model.state_dict().items()
                if name in others
            }
        # An update that another thread makes meanwhile would be lost
        step = self.use.begin_step()
        try:
            self._load_weights(
                {name: xp2torch(other).view_as(kept[name]) for name, other in others.items()}
            )
            yield
        finally:
            self._load_weights(kept)
            self.use.end_step(step)

    def _load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        # Else the backend stays, too
        if weights:
            with self.use.changing():
                unshare(self._model)
                self._model.load_state_dict(weights, strict=False)
                self._inference.drop()

    # Loading, saving, copying

    def to_device(self, device_type: str, device_id: int) -> None:
        if self.is_loaded:
            with self.use.changing():
                calibration = self.calibration
                super().to_device(device_type, device_id)
                self._inference.drop(calibration)

    def copy(self) -> "TransformerShim":
        """Return a copy with weights of its own and an id of its own, by which optimizers tell parameters apart."""
        self._make_updates()
        with self.use.encoding():
            copied = super().copy()
        with Shim.global_id_lock:
            Shim.global_id += 1
            copied.id = Shim.global_id
        return copied

    def to_bytes(self) -> bytes:
        """Return the files of the encoder's folder: config, weights as safetensors, tokenizer and settings."""
        settings = self.load()
        if weight := tensors_not_finite(self.weights.state_dict().items()):
            warn(Warnings.DIVERGED.format(name=weight))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.save_pretrained(folder)
            if self.calibration is not None:
                (folder / CALIBRATION_FILE).write_bytes(self.calibration.to_bytes())
            (folder / SETTINGS_FILE).write_text(json.dumps(asdict(settings)), encoding="utf8")
            files = {
                file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()
            }
        return srsly.msgpack_dumps({"files": files, "sha256": _digests(files)})

    def save_pretrained(self, folder: Path) -> None:
        """Write config, weights as safetensors and tokenizer to a folder, as Hugging Face lays them out."""
        self.load()
        self._make_updates()
        with _writing_to(folder), self.use.encoding(), loading.without_bars():
            self.network.save_pretrained(folder, safe_serialization=True, max_shard_size="2GB")
            # The file itself may be gone
            if self._vocab_file is not None:
                self.tokenizer.vocab_file = str(
                    folder / self.tokenizer.vocab_files_names["vocab_file"]
                )
                Path(self.tokenizer.vocab_file).write_bytes(self._vocab_file)
            self.tokenizer.save_pretrained(str(folder))

    def from_bytes(self, bytes_data: bytes) -> "TransformerShim":
        """Load an encoder that to_bytes wrote.

        RAISES (ValueError): if the bytes are not those of such an encoder.
        """
        # Windows keeps a file of weights open a while after it was read.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            try:
                with self.use.changing(), LOADING:
                    self._load_folder(
                        Path(folder), _read_state(bytes_data, Path(folder)), is_saved=True
                    )
            except DivergedError:
                raise
            except ValueError as error:
                # Users do not know the folder by that name
                raise ValueError(str(error).replace(folder, "<the saved encoder>")) from error
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
        source = loading.Source.of(folder, settings.name, self.options, is_saved=is_saved)
        # Which version 5 reads with the tokenizer, too
        config = loading.load_config(source)
        tokenizer = loading.load_tokenizer(source)
        if "attention_mask" not in tokenizer.model_input_names:
            self._warn_of_padding(
                settings.name, f"model_input_names = {tokenizer.model_input_names}"
            )
        if is_plain and tokenizer.chat_template:
            raise ValueError(Errors.CHAT_TEMPLATE.format(folder=folder))
        weights = self._load_transformer(source, config)
        check_data(weights, f"the encoder '{self.name}'")
        if is_saved and (name := tensors_not_finite(weights.state_dict().items())):
            raise DivergedError(Errors.DIVERGED_WEIGHTS.format(reason=f"{name} is not finite"))
        calibration = None
        if is_saved and (folder / CALIBRATION_FILE).is_file():
            from .engine.int8 import read_calibration  # noqa: PLC0415 (only int8 needs it)

            calibration = read_calibration(folder / CALIBRATION_FILE, weights)
        inference = BackendCache(calibration)
        encode = partial(_states, weights, inference)
        limit = loading.check_encoder(
            source, tokenizer, weights, encode, self._trial, settings.max_length
        )
        self._is_packable = is_packable(weights)
        if not self._is_packable:
            inference.pads = self._may_pad(settings.name, tokenizer, weights, limit)
        pads_left = tokenizer.padding_side == "left" and self.precision != REFERENCE
        if pads_left and _counts_padding(weights, tokenizer, self._trial):
            self._warn_of_padding(settings.name, "padding_side = left", has_reference=True)
        in_half = loading.half_precision(config)
        if in_half and not is_saved:
            warn(Warnings.HALF_PRECISION.format(name=settings.name, dtype=in_half))
        weights.config.name_or_path = tokenizer.name_or_path = settings.name
        file = getattr(tokenizer, "vocab_file", None)
        self._vocab_file = Path(file).read_bytes() if file and Path(file).is_file() else None
        self.tokenizer, self.weights, self._inference = (
            tokenizer,
            weights.to(get_torch_default_device()),
            inference,
        )
        self._is_saved = is_saved
        self._deferred = []
        loading.prepare_training(self.weights, self.options)
        warn_of_slow(self.precision, self.device.type)
        # last: now it is loaded
        self.settings = replace(settings, max_length=limit)

    def _may_pad(
        self, name: str, tokenizer: Tokenizer, network: Network, limit: int | None
    ) -> bool:
        """Return whether rows may be padded.

        warn if not: sentence-transformers pads them, and vectors differ.
        """
        has_mask, kind = "attention_mask" in tokenizer.model_input_names, network.config.model_type
        if getattr(network.config, "attention_type", None) == loading.SPARSE:
            warn(Warnings.SPARSE_ATTENTION.format(name=name))
            return self.precision == REFERENCE and has_mask
        rope = loading.rope_by_length(network, limit)
        if rope and not (self.precision == REFERENCE and has_mask):
            self._warn_of_padding(name, f"rope_type = {rope}", has_reference=has_mask)
            network.register_forward_pre_hook(loading.reset_rope)
            return False
        if (self.precision == REFERENCE and has_mask) or loading.ignores_padding(
            network, tokenizer, limit
        ):
            return True
        # Else there is a warning already
        if has_mask:
            self._warn_of_padding(name, kind, has_reference=True)
        return False

    def _warn_of_padding(self, name: str, cause: str, *, has_reference: bool = False) -> None:
        """Warn that the padding of a batch changes the vectors of sentence-transformers.

        has_reference (bool): whether precision = "reference" gives the same.
        """
        has_reference = has_reference and self._model_type == SENTENCE_TRANSFORMER
        remedy = '; for its batches set precision = "reference"' if has_reference else ""
        warn(Warnings.PADDING.format(name=name, cause=cause, remedy=remedy))

    def _load_transformer(
        self, source: loading.Source, config: PretrainedConfig
    ) -> Network | BertParameters:
        """Return the weights: without the Hugging Face model, whose import takes seconds, if that is all it needs."""
        needs_network = (
            self.options.frozen
            or self.options.gradient_checkpointing
            or self.precision == REFERENCE
        )
        parameters = None if needs_network else load_parameters(source, config)
        return parameters or loading.load_weights(source, "AutoModel", config)[0]
