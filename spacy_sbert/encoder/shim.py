"""The Hugging Face model and tokenizer inside a Thinc model: loaded on first use, saved as their folder's files."""

import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import srsly
import torch
from safetensors import SafetensorError
from spacy_transformers.data_classes import HFObjects
from spacy_transformers.layers.hf_shim import HFShim
from thinc.api import Optimizer, get_torch_default_device, xp2torch
from thinc.shims.shim import Shim
from thinc.types import ArgsKwargs
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.file_utils import ModelOutput

from ..errors import Errors
from ..types import EncoderSettings
from .forward import Forward, autocast, cached_forward, plain_forward
from .fused_adam import can_fuse, update_fused
from .inference import REFERENCE, InferenceCache, resolve_precision
from .resolve import resolve
from .settings import read_settings, transformer_folder

SETTINGS_FILE = "spacy_sbert.json"
LOADING = threading.Lock()  # Hugging Face's from_pretrained is not made for several threads at a time
PRECISIONS = ("float32", "bfloat16", "float16", "auto", REFERENCE)
NO_LIMIT = 1_000_000  # tokenizers that know no limit say 1e30


class EncoderShim(HFShim):
    """A transformer that is looked for and loaded when it is first needed.

    name (str): a folder or a name, see resolve.
    tokenizer_config, transformer_config (dict): keyword arguments of the tokenizer and of the transformer's config.
    trust_remote_code (bool): whether Python code that comes with the encoder may run. Off unless asked for.
    precision (str): "float32", "bfloat16" or "float16" (GPU, with loss scaling) for the arithmetic, "auto" for what
        the device is quick at; weights and output are float32. "reference" is float32 through the Hugging Face model in
        the batches of sentence-transformers, where other precisions pack and sort rows.
    gradient_checkpointing (bool): whether training keeps the input of each layer alone, and computes it again.
    mini_batch_size (int): the most rows that training keeps activations of, see cached_forward; 0 for no limit.
    frozen (list[str]): parameters that are not trained, or the modules that hold them, such as "embeddings".
    max_grad_norm (float): the norm that the gradient of all parameters together is scaled down to; 0 for no limit.
    mixed_precision, grad_scaler_config: as in spacy-transformers.
    RAISES (ValueError): for an unknown precision, or a negative mini_batch_size or max_grad_norm.
    """

    def __init__(
        self,
        name: str,
        *,
        tokenizer_config: dict[str, Any],
        transformer_config: dict[str, Any],
        trust_remote_code: bool,
        precision: str = "float32",
        gradient_checkpointing: bool = False,
        mini_batch_size: int = 0,
        frozen: Sequence[str] = (),
        max_grad_norm: float = 0.0,
        mixed_precision: bool,
        grad_scaler_config: dict[str, Any],
    ):
        for setting, given in (("mini_batch_size", mini_batch_size), ("max_grad_norm", max_grad_norm)):
            if given < 0:
                raise ValueError(Errors.NEGATIVE.format(name=setting, given=given))
        if precision not in PRECISIONS:
            raise ValueError(Errors.UNKNOWN_PRECISION.format(given=precision, expected=", ".join(PRECISIONS)))
        self.name = name
        self.trust_remote_code = trust_remote_code
        on_device = resolve_precision(precision, get_torch_default_device().type)
        self.precision = "float16" if mixed_precision and torch.cuda.is_available() else on_device
        self.gradient_checkpointing = gradient_checkpointing
        self.mini_batch_size = mini_batch_size
        self.frozen = list(frozen)
        self.max_grad_norm = max_grad_norm
        self.settings: EncoderSettings | None = None
        self._inference = InferenceCache()
        objects = HFObjects(None, None, None, dict(tokenizer_config), dict(transformer_config))
        scaled = self.precision == "float16"
        super().__init__(objects, mixed_precision=scaled, grad_scaler_config=dict(grad_scaler_config))

    @property
    def is_loaded(self) -> bool:
        return self._hfmodel.transformer is not None

    def load(self) -> EncoderSettings:
        """Load tokenizer and weights, unless they are, and say what is known of them.

        RAISES (OSError, ValueError): if the encoder is not found, see resolve.
        """
        if self.settings is None:
            with LOADING:
                if self.settings is None:
                    folder = resolve(self.name)
                    self._load_folder(transformer_folder(folder), read_settings(folder, self.name))
        return cast(EncoderSettings, self.settings)

    def inference_encoder(self) -> Any:
        """What encodes without a graph, for run, in the precision asked for; see InferenceCache."""
        self._model.eval()
        precision = REFERENCE if self.precision == REFERENCE else self._inference_precision
        return self._inference.encoder_of(self._model, precision)

    @property
    def arithmetic(self) -> str:
        """That of training: "float32", "bfloat16" or "float16"."""
        return "float32" if self.precision == REFERENCE else self.precision

    @property
    def _inference_precision(self) -> str:
        """What was made for float16 runs on a CPU in float32."""
        return "float32" if self.precision == "float16" and self.device.type == "cpu" else self.arithmetic

    def predict(self, inputs: ArgsKwargs) -> ModelOutput:
        """Encode wordpieces without dropout and without a graph."""
        self._model.eval()  # and it stays so: another thread may be encoding
        with torch.no_grad(), autocast(self.device, self._inference_precision):
            output = self._model(**inputs.kwargs)
        half = {key: value for key, value in output.items() if torch.is_tensor(value) and value.is_floating_point()}
        for key, value in half.items():
            output[key] = value.float()
        return output

    def begin_update(self, inputs: ArgsKwargs) -> tuple[ModelOutput, Callable[[ArgsKwargs], ArgsKwargs]]:
        """Encode wordpieces with dropout; the callback takes the gradient of their states to the parameters."""
        self._model.train()
        n_rows = len(inputs.kwargs["input_ids"])
        cached = 0 < self.mini_batch_size < n_rows
        forward: Forward = partial(cached_forward, mini_batch_size=self.mini_batch_size) if cached else plain_forward
        output, backward = forward(self._model, inputs.kwargs, precision=self.arithmetic)

        def backprop(grads: ArgsKwargs) -> ArgsKwargs:
            self._backward_scaled(backward, next(iter(grads.kwargs["grad_tensors"])))
            return inputs  # wordpieces have no gradient

        return output, backprop

    def _backward_scaled(self, backward: Callable[[torch.Tensor], None], d_output: torch.Tensor) -> None:
        scaled = cast(list, self._grad_scaler.scale([d_output], inplace=True))[0]
        # What earlier parts of an accumulated batch left is unscaled already, and will be once more.
        self._grad_scaler.scale(self._gradients(), inplace=True)
        backward(scaled)
        self._grad_scaler.unscale(self._gradients())

    def _gradients(self) -> list[torch.Tensor]:
        return [parameter.grad for parameter in self._model.parameters() if parameter.grad is not None]

    def to_bytes(self) -> bytes:
        """The files of the encoder's folder: config, weights as safetensors, tokenizer and settings; no pickle."""
        settings = self.load()
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(Path(folder))
            (Path(folder) / SETTINGS_FILE).write_text(json.dumps(asdict(settings)), encoding="utf8")
            files = {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir()) if file.is_file()}
        return srsly.msgpack_dumps({"files": files})

    def save_pretrained(self, folder: Path) -> None:
        """Write config, weights as safetensors and tokenizer to a folder, as Hugging Face lays them out."""
        self.load()
        try:
            self._hfmodel.transformer.save_pretrained(folder, safe_serialization=True, max_shard_size="2GB")
            self._save_tokenizer(folder)
        except Exception as error:  # of a full disk; tokenizers know no other kind
            names_no_file = isinstance(error, OSError) and error.filename is None
            if names_no_file or isinstance(error, SafetensorError) or type(error) is Exception:
                raise OSError(Errors.CANNOT_WRITE.format(path=folder, reason=error)) from error
            raise

    def from_bytes(self, bytes_data: bytes) -> "EncoderShim":
        """Load an encoder that to_bytes wrote.

        RAISES (ValueError): if the bytes are no such encoder, or a file's name leads out of its folder.
        """
        files = srsly.msgpack_loads(bytes_data).get("files", {})
        if SETTINGS_FILE not in files:
            raise ValueError(Errors.BAD_STATE.format(reason=f"{SETTINGS_FILE} is missing"))
        # Windows keeps a file of weights open a while after it was read.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for name, content in files.items():
                if name in ("", ".", "..") or Path(name).name != name:
                    raise ValueError(Errors.BAD_STATE.format(reason=f"it names the file '{name}'"))
                (Path(folder) / name).write_bytes(content)
            saved = json.loads(files[SETTINGS_FILE])
            saved["unknown_modules"] = tuple(saved["unknown_modules"])
            self._load_folder(Path(folder), EncoderSettings(**saved))
        return self

    def copy(self) -> "EncoderShim":
        """A copy with weights of its own and an id of its own, by which optimizers tell parameters apart."""
        copied = super().copy()
        with Shim.global_id_lock:
            Shim.global_id += 1
            copied.id = Shim.global_id
        return copied

    def finish_update(self, optimizer: Optimizer) -> None:
        if not self.is_loaded:
            return
        try:
            self._update(optimizer)
        finally:
            self._inference.drop()

    def _update(self, optimizer: Optimizer) -> None:
        overflow = self._grad_scaler.found_inf  # is no update at all
        if self.max_grad_norm and not overflow:
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), self.max_grad_norm)
        parameters = {(self.id, name): p for name, p in self._model.named_parameters() if p.grad is not None}
        if overflow or not can_fuse(optimizer, parameters):
            super().finish_update(optimizer)
            return
        update_fused(optimizer, parameters)
        self._model.zero_grad(set_to_none=False)
        self._grad_scaler.update()

    @contextmanager
    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        if not self.is_loaded:
            yield
            return
        others = {}
        for name in self._model.state_dict():
            for key in ((self.id, name), f"pytorch_{self.id}_{name}"):  # of Thinc's optimizers, and of its shims
                if key in params:
                    others[name] = params[key]
        kept = {name: weight.clone() for name, weight in self._model.state_dict().items() if name in others}
        try:
            self._load_weights({name: xp2torch(other).view_as(kept[name]) for name, other in others.items()})
            yield
        finally:
            self._load_weights(kept)

    def _load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        self._model.load_state_dict(weights, strict=False)
        self._inference.drop()

    def to_device(self, device_type: str, device_id: int) -> None:
        if self.is_loaded:
            self._inference.drop()
            super().to_device(device_type, device_id)

    def _load_folder(self, folder: Path, settings: EncoderSettings) -> None:
        objects = self._hfmodel
        trust = {"trust_remote_code": self.trust_remote_code}
        tokenizer = AutoTokenizer.from_pretrained(str(folder), **trust, **objects._init_tokenizer_config)
        config = AutoConfig.from_pretrained(
            str(folder), **trust, **{**objects._init_transformer_config, "return_dict": True}
        )
        if config.is_encoder_decoder:
            raise ValueError(Errors.ENCODER_DECODER.format(name=settings.name, kind=config.model_type))
        transformer = self._load_transformer(folder, config)
        transformer.config._name_or_path = tokenizer.name_or_path = settings.name
        objects.vocab_file_contents = _vocab_file_contents(tokenizer)
        objects.tokenizer, objects.transformer = tokenizer, transformer
        self._model = transformer.to(get_torch_default_device())
        self._inference.drop()
        self._prepare_training()
        limits = [settings.max_length, position_limit(transformer), tokenizer.model_max_length]
        known = [int(limit) for limit in limits if limit and 0 < limit < NO_LIMIT]
        self.settings = replace(settings, max_length=min(known, default=None))  # last: now it is loaded

    def _load_transformer(self, folder: Path, config: Any) -> Any:
        return AutoModel.from_pretrained(str(folder), config=config, trust_remote_code=self.trust_remote_code)

    def _prepare_training(self) -> None:
        if self.gradient_checkpointing:
            self._model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        for prefix in self.frozen:
            named = [(name, p) for name, p in self._model.named_parameters() if f"{name}.".startswith(f"{prefix}.")]
            if not named:
                modules = sorted({name.rsplit(".", 1)[0] for name, _ in self._model.named_parameters()})
                raise ValueError(Errors.NOTHING_FROZEN.format(given=prefix, expected=", ".join(modules)))
            for _, parameter in named:
                parameter.requires_grad_(False)

    def _save_tokenizer(self, folder: Path) -> None:
        tokenizer, vocab = self._hfmodel.tokenizer, self._hfmodel.vocab_file_contents
        if vocab is not None:  # slow tokenizers copy this file, and where they were loaded from may be gone
            tokenizer.vocab_file = str(folder / tokenizer.vocab_files_names["vocab_file"])
            Path(tokenizer.vocab_file).write_bytes(vocab)
        tokenizer.save_pretrained(str(folder))


def _vocab_file_contents(tokenizer: Any) -> bytes | None:
    file = getattr(tokenizer, "vocab_file", None)
    return Path(file).read_bytes() if file and Path(file).is_file() else None


def position_limit(transformer: Any) -> int | None:
    """How many positions the encoder has; RoBERTa and its like count theirs from padding_idx + 1 on."""
    encoder = getattr(transformer, "base_model", transformer)  # without the head of a classifier
    positions = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    if positions is not None and hasattr(positions, "num_embeddings"):
        skipped = 0 if positions.padding_idx is None else positions.padding_idx + 1
        return positions.num_embeddings - skipped
    return getattr(transformer.config, "max_position_embeddings", None)
