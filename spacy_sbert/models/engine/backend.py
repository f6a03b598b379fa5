"""Backends: what turns wordpieces into states on a device, and the table of their names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

import numpy
import torch
from thinc.api import torch2xp
from thinc.types import Floats2d

from ...validation import invalid_value_message
from ..loading import Network
from ..private_attributes import versions_of
from ..ragged import ragged_arange
from ..sbert_config import TransformerConfig
from ..span_batch import TokenEmbeddings
from ..tokenization import TokenizedBatch
from .concurrency import LOADING, parallel_map
from .packing import CPU_BUDGET, Batch

if TYPE_CHECKING:
    from .int8 import Calibration

# What `backend` in a config may name, and the subclass of BackendCache that makes it, or the module
# of it, which is imported once a config names the backend. This is the one place of registration.
BACKENDS: dict[str, str | type[BackendCache]] = {
    "torch": "spacy_sbert.models.engine.torch_backend:TorchBackendCache",
    "onnx": "spacy_sbert.models.engine.onnx_backend:ONNXBackendCache",
}
GPU_BUDGET = 32768
# A batch of fewer wordpieces takes longer than its share of the time
_SMALLEST_BUDGET = 512


class Backend(Protocol):
    """Turn wordpieces into states on a device, with the weights that the backend was made of.

    merges_equal: whether equal windows are encoded once.
    in_parallel: whether batches are encoded side by side on a CPU, each on one thread.
    """

    merges_equal: bool
    in_parallel: bool

    @property
    def device(self) -> torch.device: ...

    def batches(
        self, wordpieces: TokenizedBatch, windows: numpy.ndarray, budget: int
    ) -> list[Batch]:
        """Return the batches that encode some windows.

        windows (int64 (k,)): the numbers of the windows. budget (int): the most wordpieces in a
            batch, padding included.
        """

    def encode(self, wordpieces: TokenizedBatch, batch: Batch) -> torch.Tensor:
        """Return the states of a batch, (rows * width, hidden); those of padding mean nothing."""


def encode_windows(
    backend: Backend, wordpieces: TokenizedBatch, *, budget: int = 0
) -> Iterator[TokenEmbeddings]:
    """Encode windows, each once, in whatever order is quick.

    budget (int): the most wordpieces in a batch, padding included; 0 for what suits the device. It
        has no effect on "reference", which has batches of its own.
    """
    if len(wordpieces.lengths) == 1:
        yield _encode_only_window(backend, wordpieces)
        return
    on_cpu = backend.device.type == "cpu"
    if not budget:
        budget = _default_budget(len(wordpieces.ids), on_cpu=on_cpu)
    if backend.merges_equal:
        equal = _equal_windows(wordpieces)
    else:
        equal = {window: [window] for window in range(len(wordpieces.lengths))}
    batches = backend.batches(wordpieces, numpy.fromiter(equal, dtype="int64"), budget)
    encode = partial(backend.encode, wordpieces)
    if backend.in_parallel and on_cpu and len(batches) > 1:
        encoded = parallel_map(encode, batches)
    else:
        encoded = map(encode, batches)
    for batch, states in zip(batches, encoded, strict=True):
        same = [equal[window] for window in batch.windows.tolist()]
        windows = numpy.concatenate(same)
        lengths = wordpieces.lengths[windows]
        starts = numpy.repeat(batch.starts, [len(each) for each in same])
        places = torch.from_numpy(ragged_arange(starts, lengths)).to(backend.device)
        yield TokenEmbeddings(windows, lengths, _to_array(states[places]))


def _encode_only_window(backend: Backend, wordpieces: TokenizedBatch) -> TokenEmbeddings:
    """Encode the window of a single text: nothing is merged, packed or encoded side by side."""
    n_wordpieces = len(wordpieces.ids)
    (batch,) = backend.batches(wordpieces, numpy.zeros(1, dtype="int64"), n_wordpieces)
    states = backend.encode(wordpieces, batch)
    start = int(batch.starts[0])
    values = _to_array(states[start : start + n_wordpieces])
    return TokenEmbeddings(batch.windows, wordpieces.lengths, values)


def _to_array(states: torch.Tensor) -> Floats2d:
    """Return states as float32, NumPy or CuPy."""
    return cast(Floats2d, torch2xp(states.float()))


def _default_budget(n_wordpieces: int, *, on_cpu: bool) -> int:
    """Return the most wordpieces in a batch: on a CPU so that each thread has one."""
    if not on_cpu:
        return GPU_BUDGET
    share = math.ceil(n_wordpieces / torch.get_num_threads())
    return min(CPU_BUDGET, max(_SMALLEST_BUDGET, share))


def _equal_windows(wordpieces: TokenizedBatch) -> dict[int, list[int]]:
    """Return for the first of equal windows all that are equal to it."""
    ids = wordpieces.ids
    if wordpieces.type_ids is not None:
        ids = numpy.column_stack([ids, wordpieces.type_ids])
    starts = wordpieces.starts.tolist()
    equal: dict[bytes, list[int]] = {}
    for window, (start, length) in enumerate(zip(starts, wordpieces.lengths.tolist(), strict=True)):
        equal.setdefault(ids[start : start + length].tobytes(), []).append(window)
    return {same[0]: same for same in equal.values()}


class BackendCache:
    """The backend of an encoder, made of its weights when it is needed and kept until they change.

    A subclass makes the backends of one name in BACKENDS. It must override `make`; the defaults of
    all other methods are right for a backend without files, ranges or precisions of its own.

    Updates and loading drop what was made; changes of the weights in place are noticed where
    PyTorch counts them. What was found out about the weights, or read with them, such as the ranges
    of "int8", is of no use either once they change; a copy has it, too.

    found: what was found out about the weights that the encoder is about to have.
    pads (bool): whether rows of a batch may be padded, see loading.ignores_padding.
    settings (dict): the `backend_config`.
    """

    # Whether gradients are taken back to the weights; training refuses other backends
    trains: ClassVar[bool] = True
    # What `backend_config` may set
    known_settings: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        found: Any = None,
        *,
        pads: bool = True,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.pads = pads
        self.settings = dict(settings)
        self._made: tuple[Any, Backend] | None = None
        self._generation = object()
        self._seen: list[int] | None = None
        # Versions of the weights, None for those that they have when it is asked for next
        self._found: tuple[list[int] | None, Any] = (None, found)

    def __reduce__(self) -> tuple[Callable, tuple[Any]]:
        return partial(type(self), pads=self.pads, settings=self.settings), (self._found[1],)

    def anew(self) -> BackendCache:
        """Return one with the same settings that has made and found nothing."""
        return type(self)(settings=self.settings)

    # What a subclass says; it must override the first

    def make(self, weights: Network, precision: str) -> Backend:
        """Return a backend of the weights as they are.

        weights: a Hugging Face model or BertParameters. precision (str): as resolve_precision
            returned it.
        """
        raise NotImplementedError

    def settings_of(self, precision: str) -> object:
        """Return all but the weights that a backend depends on: if it changes, another is made."""
        return precision

    def resolve_precision(self, precision: str, device: str) -> str:
        """Return the precision that a config's stands for on a device, "cpu" or "cuda".

        RAISES (ValueError): for one that the backend does not have.
        """
        return precision

    def describe(self, weights: Network | None, precision: str) -> str:
        """Return the precision, and what else rounding depends on, for digests of what encodes.

        weights: None if they are not loaded yet.
        """
        return precision

    def warn_of_slow(self, precision: str, device: str) -> None:
        """Warn if a precision takes longer than float32 on this device."""

    def needs_network(self, precision: str) -> bool:
        """Return whether it is made of the Hugging Face model, not of BertParameters."""
        return False

    def encodes_alone(self, weights: Network, precision: str) -> bool:
        """Return whether no two threads may encode with it at the same time."""
        return False

    def load_files(self, folder: Path, weights: Network, *, is_saved: bool) -> None:
        """Read what the folder of an encoder holds for this backend beside its weights.

        is_saved (bool): whether a pipeline was saved with the folder.
        RAISES (ValueError): if it does not fit the weights.
        """

    def files(self, weights: Network) -> dict[str, bytes]:
        """Return what to_bytes saves with the weights for load_files, by the names of files."""
        return {}

    # Ranges of int8, which only PyTorch's backends look for

    def needs_calibration(self, weights: Network, precision: str) -> bool:
        """Return whether it rounds by ranges that have not been found yet."""
        return False

    def calibration(self, weights: Network) -> Calibration | None:
        """Return the ranges that were found with the weights as they are; None without."""
        return None

    def calibrate(self, weights: Network, wordpieces: TokenizedBatch) -> None:
        """Find the ranges, and keep them until the weights change.

        RAISES (ValueError): if the backend uses none.
        """
        raise ValueError(
            "This backend finds the ranges of int8 anew for each batch, so there is nothing to "
            "calibrate. Leave calibrate out, or set backend = 'torch'."
        )

    # What was made and found, and for which weights

    def backend_of(
        self, weights: Network, precision: str, wordpieces: TokenizedBatch | None = None
    ) -> Backend:
        """Return the backend of the weights as they are.

        wordpieces (TokenizedBatch): what is about to be encoded, None for nothing yet.
        """
        parameters = list(weights.parameters())
        addresses = [weight.data_ptr() for weight in parameters]
        key = (id(weights), self.settings_of(precision), addresses, versions_of(parameters))
        # Another thread may drop it
        made = self._made
        if made is None or made[0] != key:
            with LOADING:
                made = self._made
                if made is None or made[0] != key:
                    with torch.no_grad():
                        made = (key, self.make(weights, precision))
                    self._made = made
                    self._generation = object()
        return made[1]

    def generation(self, weights: Network) -> object:
        """Return an object that is replaced when the weights change, to compare by `is`."""
        # The backend, once it is made, is replaced with it
        if self._made is None:
            versions = _versions(weights)
            if versions != self._seen:
                self._seen = versions
                self._generation = object()
        return self._generation

    def found(self, weights: Network) -> Any:
        """Return what was found out about the weights as they are; None if nothing was."""
        versions, found = self._found
        if versions is None and found is not None:
            # Loaded or copied with them
            self._found = (_versions(weights), found)
        elif versions != _versions(weights):
            return None
        return found

    def keep(self, weights: Network, found: Any) -> None:
        """Keep what was found out about the weights, until they change."""
        self._found = (_versions(weights), found)

    def drop(self, found: Any = None) -> None:
        """Drop what was made: the weights are about to change, or did.

        found: what is known of the new ones, such as of the same ones elsewhere.
        """
        self._made = None
        self._found = (None, found)
        self._generation = object()


def _versions(weights: Network) -> list[int]:
    return versions_of(list(weights.parameters()))


def backend_cache(options: TransformerConfig) -> BackendCache:
    """Return what makes the backend that a config names.

    RAISES (ValueError): if there is none of that name; (ImportError): if its package is missing.
    """
    if options.backend not in BACKENDS:
        expected = f"one of {', '.join(BACKENDS)}"
        raise ValueError(invalid_value_message("backend", options.backend, expected))
    cache = BACKENDS[options.backend]
    if isinstance(cache, str):
        module, _, name = cache.partition(":")
        cache = cast(type[BackendCache], getattr(import_module(module), name))
    unknown = sorted(set(options.backend_config) - set(cache.known_settings))
    if unknown:
        expected = ", ".join(cache.known_settings) or f"no settings of '{options.backend}'"
        raise ValueError(invalid_value_message("backend_config", unknown[0], expected))
    return cache(settings=options.backend_config)
