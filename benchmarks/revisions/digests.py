"""SHA-256 digests of arrays and bytes by name, and the reasons why some have none."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy
from spacy.language import Language
from thinc.util import to_numpy


def digest(value: numpy.ndarray | bytes) -> str:
    """Return the SHA-256 of bytes, or of the type, shape and bytes of an array."""
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    head = f"{value.dtype} {value.shape} ".encode()
    return hashlib.sha256(head + numpy.ascontiguousarray(value).tobytes()).hexdigest()


def parameters_digest(nlp: Language) -> str:
    """Return the digest of all parameters of a pipeline, of Thinc and of PyTorch.

    It does not depend on names and nesting of layers, which may differ between revisions: the
    digests of the parameters of each component are sorted.
    """
    lines = []
    for name, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        if model is not None:
            lines += sorted(f"{name} {digest(parameter)}" for parameter in parameters(model))
    return digest("\n".join(lines).encode())


def parameters(model: Any) -> list[numpy.ndarray]:
    """Return the parameters of all nodes of a model, and of the PyTorch models in its shims."""
    found = []
    for node in model.walk():
        names = [name for name in node.param_names if node.has_param(name)]
        found += [to_numpy(node.get_param(name)) for name in names]
        for shim in node.shims:
            found += [to_numpy(array) for array in torch_parameters(shim)]
    return found


def torch_parameters(shim: Any) -> list[numpy.ndarray]:
    """Return the parameters of the PyTorch model in a shim."""
    return [parameter.detach().cpu().numpy() for parameter in shim._model.parameters()]


@dataclass
class Digests:
    """What a revision makes of fixed texts and examples.

    found (dict): a SHA-256 for each name. left_out (dict): a reason for each name without one.
    """

    found: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, make: Callable[[], numpy.ndarray | bytes]) -> None:
        """Keep the digest of what a function makes, or the error that it raises."""
        self.add_several(name, lambda: {"": make()})

    def add_several(self, name: str, make: Callable[[], dict[str, Any]]) -> None:
        """Keep the digest of each thing that a function makes, or the error that it raises.

        make (Callable): returns arrays, or bytes, by the end of their names.
        """
        try:
            found = {f"{name}{end}": digest(value) for end, value in make().items()}
        except Exception as error:
            self.leave_out(name, error)
        else:
            self.found |= found
            print(name, flush=True)

    def leave_out(self, name: str, error: Exception) -> None:
        """Keep the first line of an error as the reason why there is no digest."""
        lines = str(error).splitlines() or [""]
        self.left_out[name] = f"{type(error).__name__}: {lines[0]}"
        print(f"{name}: left out, {self.left_out[name]}", flush=True)

    def save(self, path: Path) -> None:
        """Write the digests as JSON."""
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf8")

    @classmethod
    def load(cls, path: Path) -> "Digests":
        """Read what `save` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf8")))
