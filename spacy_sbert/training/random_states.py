"""The states of all that draws random numbers in training, as arrays."""

import random
from collections.abc import Mapping

import numpy
import torch

PYTHON, NUMPY, TORCH, CUDA = "python", "numpy", "torch", "cuda"
Arrays = dict[str, numpy.ndarray]


def random_states() -> Arrays:
    """Those of Python, NumPy and PyTorch, on a GPU also of its own; CuPy's, of which Thinc's dropout layers draw there,
    cannot be told."""
    _, words, place, has_gauss, gauss = numpy.random.get_state(legacy=True)
    found: Arrays = {
        NUMPY: numpy.asarray(words),
        f"{NUMPY}.place": numpy.array([place, has_gauss, gauss], dtype="float64"),
    }
    found |= {TORCH: torch.get_rng_state().numpy(), **python_arrays(PYTHON, random.getstate())}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found[CUDA] = torch.cuda.get_rng_state().numpy()
    return found


def set_random_states(states: Mapping[str, numpy.ndarray]) -> None:
    """Go on drawing as where random_states was called."""
    place, has_gauss, gauss = states[f"{NUMPY}.place"].tolist()
    numpy.random.set_state(("MT19937", states[NUMPY], int(place), int(has_gauss), gauss))
    torch.set_rng_state(torch.from_numpy(states[TORCH].copy()))
    if CUDA in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(torch.from_numpy(states[CUDA].copy()))
    random.setstate(python_state(PYTHON, states))


def python_arrays(name: str, state: tuple) -> Arrays:
    """A state of Python's random as arrays under a name."""
    _, words, gauss = state
    return {name: numpy.array(words, dtype="uint32"), f"{name}.gauss": numpy.array([gauss], dtype="float64")}


def python_state(name: str, arrays: Mapping[str, numpy.ndarray]) -> tuple:
    """What python_arrays was given."""
    gauss = float(arrays[f"{name}.gauss"][0])
    return 3, tuple(arrays[name].tolist()), None if numpy.isnan(gauss) else gauss
