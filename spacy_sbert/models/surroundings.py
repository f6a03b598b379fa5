"""PyTorch's and NumPy's defaults, by which encoders work whatever the program has set."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy
import torch

from ..arrays import NUMPY_DEFAULTS
from ..errors import Errors
from .private_attributes import is_in_torch_func, outside_of_torch_func

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., Any])
# For which autocast may be on
_DEVICE_TYPES = ("cpu", "cuda")

# An error of these kinds is no fault of the files that are read, nor one of a class that their
# readers do not know.
_FROM_AROUND = (Warning, MemoryError, RecursionError, FloatingPointError, TimeoutError, ImportError)
_READERS = {
    *("builtins", "json", "pickle", "zipfile", "struct", "zlib", "pydantic_core", "pyo3_runtime"),
    *(
        "torch",
        "transformers",
        "transformers_modules",
        "tokenizers",
        "safetensors",
        "huggingface_hub",
        "spacy_sbert",
    ),
}


class _Setting(NamedTuple):
    read: Callable[[], Any]
    write: Callable[[Any], object]
    default: Any


class _ProcessSettings:
    """PyTorch's settings for all threads: set by the first that needs them, reset by the last."""

    SETTINGS = (
        _Setting(torch.get_default_dtype, torch.set_default_dtype, torch.float32),
        # attention takes the kernel of all inputs where none of those that the program allows takes
        # ours
        _Setting(torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp, True),
        # an LSTM, which has weak references to its parameters, cannot swap them
        _Setting(
            torch.__future__.get_swap_module_params_on_conversion,
            torch.__future__.set_swap_module_params_on_conversion,
            False,
        ),
    )

    def __init__(self) -> None:
        self.lock, self.n_users = threading.Lock(), 0
        self._before: list[Any] = []

    def are_defaults(self) -> bool:
        return all(setting.read() == setting.default for setting in self.SETTINGS)

    def __enter__(self) -> None:
        with self.lock:
            if not self.n_users:
                self._before = [setting.read() for setting in self.SETTINGS]
                for setting in self.SETTINGS:
                    setting.write(setting.default)
            self.n_users += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.n_users -= 1
            if not self.n_users:
                self._restore()

    def release_in_child(self) -> None:
        """Set them back in a forked process, which has none of the threads."""
        if self.n_users:
            self._restore()
        self.n_users = 0
        self.lock = threading.Lock()

    def _restore(self) -> None:
        for setting, value in zip(self.SETTINGS, self._before, strict=True):
            setting.write(value)


PROCESS_SETTINGS = _ProcessSettings()


def _makes_plain_tensors() -> bool:
    """Return whether tensors are made as by default.

    One of none shows it, also in inference mode and other modes.
    """
    made = torch.empty(0)
    is_plain = type(made) is torch.Tensor and made.dtype is torch.float32 and made.is_cpu
    return is_plain and not made.is_inference()


def _has_defaults() -> bool:
    with PROCESS_SETTINGS.lock:
        if (
            PROCESS_SETTINGS.n_users
            or not PROCESS_SETTINGS.are_defaults()
            or not _makes_plain_tensors()
        ):
            return False
    return not is_autocast() and not is_in_torch_func() and numpy.geterr() == NUMPY_DEFAULTS


def is_autocast() -> bool:
    """Return whether PyTorch computes in lower precision where it deems it safe."""
    return any(map(torch.is_autocast_enabled, _DEVICE_TYPES))


class undisturbed:
    """Load or compute in a with block, or a function, as if the program around had set nothing.

    Inference mode, autocast, a default dtype or device of PyTorch, a function of torch.func that
    runs this, and what `numpy.seterr` says do not count in it.
    Gradients stay off if they are, see check_gradients. Where only NumPy computes, numpy_defaults
    is quicker.

    RAISES (RuntimeError): if another mode of PyTorch changes the tensors that are made, such as a
        FakeTensorMode.
    """

    def __call__(self, function: _FunctionT) -> _FunctionT:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            # A program's torch.compile would trace this, and all that it calls
            if torch.compiler.is_compiling():
                return torch.compiler.disable(_run)(function, args, kwargs)
            if _has_defaults():
                return function(*args, **kwargs)
            with _defaults():
                return function(*args, **kwargs)

        return cast(_FunctionT, run)

    def __enter__(self) -> None:
        self._defaults: AbstractContextManager[None] = (
            nullcontext() if _has_defaults() else _defaults()
        )
        self._defaults.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._defaults.__exit__(*error)


def _run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with undisturbed():
        return function(*args, **kwargs)


@contextmanager
def _defaults() -> Iterator[None]:
    is_grad_enabled = torch.is_grad_enabled()
    with ExitStack() as stack:
        stack.enter_context(outside_of_torch_func())
        stack.enter_context(torch.inference_mode(False))
        # Leaving inference mode enables them
        stack.enter_context(torch.set_grad_enabled(is_grad_enabled))
        for device_type in _DEVICE_TYPES:
            stack.enter_context(torch.autocast(device_type, enabled=False))
        stack.enter_context(torch.device("cpu"))
        stack.enter_context(numpy.errstate(**NUMPY_DEFAULTS))
        stack.enter_context(PROCESS_SETTINGS)
        if not _makes_plain_tensors():
            made = torch.empty(0)
            raise RuntimeError(
                Errors.ACTIVE_MODE.format(
                    given=f"{type(made).__name__}, {made.dtype}, {made.device}"
                )
            )
        yield


def check_gradients(what: str) -> None:
    """Check that PyTorch records gradients.

    RAISES (RuntimeError): if the program has turned them off.

    what (str): would be trained, for the message.
    """
    if not torch.is_grad_enabled():
        raise RuntimeError(Errors.NO_GRADIENTS.format(what=what))


def check_data(module: torch.nn.Module, what: str) -> None:
    """Check that the parameters of a module hold numbers.

    RAISES (RuntimeError): if they were made without.

    what (str): they are of, for the message.
    """
    if any(parameter.is_meta for parameter in module.parameters()):
        raise RuntimeError(Errors.NO_DATA.format(what=what))


def check_draws(what: str) -> None:
    """Check that PyTorch draws the weights of new layers.

    RAISES (RuntimeError): if it leaves memory as it is.

    what (str): the layers are of, for the message.
    """
    weight = torch.zeros(1)
    torch.nn.init.constant_(weight, 1.0)
    if not weight.any():
        raise RuntimeError(Errors.NOT_DRAWN.format(what=what))


def unshare(module: torch.nn.Module) -> None:
    """Give a module weights of its own, which are about to change.

    PyTorch puts weights in shared memory when they are pickled for another process: it would learn,
    too.
    """
    first = next(module.parameters(), None)
    # The others were pickled with it
    if first is None or not first.is_cpu or not first.is_shared():
        return
    for parameter in module.parameters():
        parameter.data = parameter.data.clone()


def is_from_around(error: BaseException) -> bool:
    """Return whether an error is no fault of the files, such as a full memory or an alarm."""
    return (
        isinstance(error, _FROM_AROUND)
        or type(error).__module__.lstrip("_").partition(".")[0] not in _READERS
    )


def unmasked(error: BaseException) -> BaseException:
    """Return the error that the ImportError of a missing package hides; other errors as they are.

    Transformers 4 misses protobuf whenever a tokenizer fails for any reason, as it looks up the
    error to catch there.
    """
    while (
        isinstance(error, ImportError) and error.__cause__ is None and error.__context__ is not None
    ):
        error = error.__context__
    return error
