"""The Hugging Face model and tokenizer inside a Thinc model: loaded on first use, saved as their folder's files."""

import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import srsly
import torch
from safetensors import SafetensorError
from thinc.api import Optimizer, PyTorchGradScaler, get_torch_default_device, xp2torch
from thinc.shims.shim import Shim
from thinc.types import Floats2d
from transformers import AutoModel, PretrainedConfig
from transformers.utils import ModelOutput

from ..errors import Errors
from ..validation import NonNegative, check
from . import hub_loading
from .deferred_updates import DeferringShim
from .engine.backends import BackendCache, HFBackend, resolve_precision, warn_of_slow
from .engine.concurrency import LOADING, EncoderUse
from .engine.runner import Backend
from .hub import resolve
from .hub_loading import check_architecture, check_weights, freeze, may_run
from .options import INT8, REFERENCE, TransformerConfig
from .private import forget_configs
from .sbert_config import SentenceTransformersConfig, read_file, read_settings, transformer_folder
from .span_batch import Backprop, TokenEmbeddings
from .tokenization import TokenizedBatch
from .versions import Network, Tokenizer, TransformersObjects, recompute_states, without_bars

if TYPE_CHECKING:
    from .engine.int8 import Calibration

SETTINGS_FILE = "spacy_sbert.json"
CALIBRATION_FILE = "int8_calibration.safetensors"


def _write_state(folder: Path, settings: SentenceTransformersConfig) -> bytes:
    """Return the files in a folder, and the settings as one of them."""
    (folder / SETTINGS_FILE).write_text(json.dumps(asdict(settings)), encoding="utf8")
    files = {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return srsly.msgpack_dumps({"files": files, "sha256": digests})


def _read_state(data: bytes, folder: Path) -> SentenceTransformersConfig:
    """Write the files that _write_state was given to a folder again.

    data (bytes): of _write_state. folder (Path): an empty one.
    RAISES (ValueError): if they are others, a file is not what was written, or its name leads out of its folder.
    """
    try:
        state = srsly.msgpack_loads(data)
    except Exception as error:  # whatever the bytes lead the parser to
        raise _damaged(f"it ends early, or is not a saved encoder ({error or type(error).__name__})") from error
    files = state.get("files") if isinstance(state, dict) else None
    if not isinstance(files, dict) or SETTINGS_FILE not in files:
        raise _damaged(f"{SETTINGS_FILE} is missing")
    for name, content in files.items():
        if not isinstance(name, str) or name in ("", ".", "..") or Path(name).name != name or "\0" in name:
            raise _damaged(f"it names the file '{name}'")
        if not isinstance(content, bytes):
            raise _damaged(f"the file '{name}' holds no bytes")
    _check_digests(files, state.get("sha256"))
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return read_file(folder / SETTINGS_FILE, SentenceTransformersConfig)


@contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    """Report a failure to write in the same way for all libraries.

    RAISES (OSError): if files cannot be written to the folder.
    """
    try:
        yield
    except Exception as error:  # of a full disk; tokenizers know no other kind
        names_no_file = isinstance(error, OSError) and error.filename is None
        if names_no_file or isinstance(error, SafetensorError) or type(error) is Exception:
            raise OSError(Errors.CANNOT_WRITE.format(path=folder, reason=error)) from error
        raise


def _save_tokenizer(tokenizer: Tokenizer, vocab: bytes | None, folder: Path) -> None:
    """Write a tokenizer's files; vocab (bytes): the file of a slow one's, None for others."""
    if vocab is not None:  # slow tokenizers copy this file, and where they were loaded from may be gone
        tokenizer.vocab_file = str(folder / tokenizer.vocab_files_names["vocab_file"])
        Path(tokenizer.vocab_file).write_bytes(vocab)
    tokenizer.save_pretrained(str(folder))


def _check_digests(files: dict[str, bytes], digests: object) -> None:
    if not isinstance(digests, dict) or digests.keys() != files.keys():
        raise _damaged("its files are not those that were written")
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != digests[name]:
            raise _damaged(f"the SHA-256 of its file '{name}' is not the one that was written with it")


def _damaged(reason: str) -> ValueError:
    return ValueError(Errors.BAD_STATE.format(reason=reason))


class TransformerShim(DeferringShim):
    """A transformer that is looked for and loaded when it is first needed.

    name (str): a folder or a name, see resolve.
    options (TransformerConfig): how it is loaded, encodes and is trained.
    max_batch_items (int): the most wordpieces in a forward pass in use, see run; 0 for what suits the device.
    RAISES (ValueError): if max_batch_items is negative, or given beside precision = "reference".
    """

    def __init__(self, name: str, options: TransformerConfig, *, max_batch_items: int = 0):
        check("max_batch_items", max_batch_items, NonNegative)
        if max_batch_items and options.precision == REFERENCE:
            raise ValueError(Errors.REFERENCE_BATCH.format(given=max_batch_items))
        self.name, self.options = name, options
        on_device = resolve_precision(options.precision, get_torch_default_device().type)
        self.precision = "float16" if options.mixed_precision and torch.cuda.is_available() else on_device
        self.mini_batch_size = options.mini_batch_size
        self.max_batch_items = max_batch_items
        self.settings: SentenceTransformersConfig | None = None
        self._inference, self.use = BackendCache(), EncoderUse()
        self._deferred, self._encodes_alone = [], False
        configs = dict(options.tokenizer_config), dict(options.transformer_config)
        self._hfmodel = TransformersObjects(None, None, None, *configs)
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

    def load(self) -> SentenceTransformersConfig:
        """Load tokenizer and weights, unless they are, and say what is known of them.

        RAISES (OSError, ValueError): if the encoder is not found, see resolve.
        """
        if self.settings is None:
            with LOADING:
                if self.settings is None:
                    folder = resolve(self.name)
                    self._load_folder(transformer_folder(folder), read_settings(folder, self.name))
        return cast(SentenceTransformersConfig, self.settings)

    @contextmanager
    def encoding(self, wordpieces: TokenizedBatch) -> Iterator[Backend]:
        """Yield what encodes windows without a graph in the precision asked for; meanwhile the weights stay.

        RAISES (RuntimeError): if another thread trains the encoder.
        """
        with ExitStack() as use:
            alone = self._encodes_alone  # as the last time
            use.enter_context(self.use.encoding(alone=alone))
            engine = self.inference_engine(wordpieces)
            self._encodes_alone = isinstance(engine, HFBackend)
            if isinstance(engine, HFBackend) and not alone:  # Hugging Face's modules keep things of a pass
                use.close()
                use.enter_context(self.use.encoding(alone=True))
                engine = self.inference_engine(wordpieces)
            if isinstance(engine, HFBackend):
                engine.model.eval()
            yield engine

    def inference_engine(self, wordpieces: TokenizedBatch | None = None) -> Backend:
        """Return what encoding makes of the weights as they are; see BackendCache."""
        precision = self.precision if self.precision in (REFERENCE, INT8) else self._inference_precision
        return self._inference.engine_of(self.network, precision, wordpieces)

    def calibrate(self, wordpieces: TokenizedBatch) -> None:
        """Find the ranges by which "int8" rounds; the weights' next change forgets them. See BackendCache."""
        self.load()
        with self.use.encoding():
            self._inference.calibrate(self.network, wordpieces)

    @property
    def calibration(self) -> "Calibration | None":
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
        from .engine.training import autocast  # noqa: PLC0415 (not needed for the encoder of a single pipe)

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

    def begin_update(self, wordpieces: TokenizedBatch) -> tuple[list[TokenEmbeddings], Backprop]:  # type: ignore[override]
        """Encode windows with dropout; the callback takes the gradients of their states to the parameters."""
        from .engine.training import cached_forward, plain_forward  # noqa: PLC0415 (only training needs it)

        size, network, precision = self.mini_batch_size, self.network, self.arithmetic
        with self._begin_step() as step:
            if 0 < size < len(wordpieces.lengths):
                states, backward = cached_forward(network, wordpieces, precision=precision, mini_batch_size=size)
            else:
                states, backward = plain_forward(network, wordpieces, precision=precision)

        def backprop(d_values: list[Floats2d]) -> None:
            given = [xp2torch(d_own, device=self.device) for d_own in d_values]  # a thread may not know of the GPU
            self._end_step(step, backward, given)

        return states, backprop

    def to_bytes(self) -> bytes:
        """Return the files of the encoder's folder: config, weights as safetensors, tokenizer and settings."""
        settings = self.load()
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(Path(folder))
            if self.calibration is not None:
                (Path(folder) / CALIBRATION_FILE).write_bytes(self.calibration.to_bytes())
            return _write_state(Path(folder), settings)

    def save_pretrained(self, folder: Path) -> None:
        """Write config, weights as safetensors and tokenizer to a folder, as Hugging Face lays them out."""
        self.load()
        self._make_updates()
        with _writing_to(folder), self.use.encoding(), without_bars():
            self._hfmodel.transformer.save_pretrained(folder, safe_serialization=True, max_shard_size="2GB")
            _save_tokenizer(self._hfmodel.tokenizer, self._hfmodel.vocab_file_contents, folder)

    def from_bytes(self, bytes_data: bytes) -> "TransformerShim":
        """Load an encoder that to_bytes wrote.

        RAISES (ValueError): if the bytes are not those of such an encoder, or not as they were written.
        """
        # Windows keeps a file of weights open a while after it was read.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            try:
                with self.use.changing(), LOADING:
                    self._load_folder(Path(folder), _read_state(bytes_data, Path(folder)), is_saved=True)
            except ValueError as error:  # nobody knows the folder by that name
                raise ValueError(str(error).replace(folder, "<the saved encoder>")) from error
        forget_configs(self._hfmodel)
        return self

    def copy(self) -> "TransformerShim":
        """Return a copy with weights of its own and an id of its own, by which optimizers tell parameters apart."""
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
        from .engine.training import can_fuse, update_fused  # noqa: PLC0415 (only training needs it)

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

    def _load_folder(self, folder: Path, settings: SentenceTransformersConfig, *, is_saved: bool = False) -> None:
        of_tokenizer, of_transformer = dict(self.options.tokenizer_config), dict(self.options.transformer_config)
        trust = may_run(
            folder, of_transformer, name=settings.name, asked=self.options.trust_remote_code, is_saved=is_saved
        )
        source = hub_loading.Source(folder, settings.name, of_tokenizer, of_transformer, trust)
        config = hub_loading.load_config(source)  # which version 5 reads with the tokenizer, too
        tokenizer = hub_loading.load_tokenizer(source)
        transformer = self._load_transformer(source, config)
        hub_loading.check_vocabulary(source, tokenizer, transformer)
        hub_loading.try_once(source, transformer, tokenizer, self._trial)
        limits = [settings.max_length, hub_loading.position_limit(transformer), hub_loading.model_max_length(tokenizer)]
        limit = hub_loading.room_for_text(source, tokenizer, min(filter(None, limits), default=None))
        transformer.config.name_or_path = tokenizer.name_or_path = settings.name
        self._hfmodel.tokenizer, self._hfmodel.transformer = tokenizer, transformer
        file = getattr(tokenizer, "vocab_file", None)
        self._hfmodel.vocab_file_contents = Path(file).read_bytes() if file and Path(file).is_file() else None
        self._model = transformer.to(get_torch_default_device())
        self._inference.drop(self._saved_calibration(folder, transformer) if is_saved else None)
        self._deferred = []
        self._prepare_training()
        warn_of_slow(self.precision, self.device.type)
        self.settings = replace(settings, max_length=limit)  # last: now it is loaded

    @staticmethod
    def _saved_calibration(folder: Path, transformer: Network) -> "Calibration | None":
        if not (folder / CALIBRATION_FILE).is_file():
            return None
        from .engine.int8 import read_calibration  # noqa: PLC0415 (only int8 needs it)

        return read_calibration(folder / CALIBRATION_FILE, transformer)

    def _load_transformer(self, source: hub_loading.Source, config: PretrainedConfig) -> Network:
        transformer, told = hub_loading.load_weights(source, AutoModel, config)
        if not source.trust:
            check_architecture(transformer, config, source.folder)
        check_weights(transformer, told, source.folder, head=False, cut=source.cuts_layers)
        return transformer

    def _prepare_training(self) -> None:
        if self.options.gradient_checkpointing:
            recompute_states(self._model)
        freeze(self._model, self.options.frozen)
