"""The settings of a transformer, which several architectures take alike."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Annotated, Any, Literal, get_type_hints

from spacy.util import SimpleFrozenDict
from thinc.api import PyTorchGradScaler

from ..errors.checks import Named, NonNegative, NonNegativeFloat, check_fields, check_keywords, names_of
from .errors import Errors
from .wordpieces import OVERFLOWS

REFERENCE = "reference"  # precision, or rather batching, see engine.inference.Reference
INT8 = "int8"  # of products in use; see engine.int8_linear
Precision = Annotated[Literal["float32", "bfloat16", "float16", "int8", "auto", "reference"], Named()]
PRECISIONS = names_of(Precision)


@dataclass(frozen=True, kw_only=True)
class TransformerOptions:
    """How a transformer is loaded, how it encodes, and how it is trained.

    tokenizer_config, transformer_config (dict): keyword arguments of the tokenizer and of the transformer's config.
    trust_remote_code (bool): whether Python code that comes with the encoder may run, see may_run.
    overflow (str): "truncate" or "windows", for rows longer than the limit.
    precision (str): "float32", "bfloat16" or "float16" (GPU, with loss scaling) for the arithmetic, "auto" for what
        the device is quick at; weights and output are float32. "int8" rounds the inputs and weights of linear layers in
        use to 8 bits, by ranges that are found on texts (see calibrate), on CPUs that are quicker with it (AVX-512
        VNNI, no AMX), and is "auto" elsewhere and in training. "reference" is float32 through the Hugging Face model in
        the batches of sentence-transformers, where other precisions pack and sort rows.

    Only training reads these:

    gradient_checkpointing (bool): whether it keeps the input of each layer alone, and computes it again.
    mini_batch_size (int): the most rows that it keeps activations of, see cached_forward; 0 for no limit.
    frozen (list[str]): parameters that are not trained, or the modules that hold them, such as "embeddings".
    max_grad_norm (float): the norm that the gradient of all parameters together is scaled down to; 0 for no limit.
    mixed_precision, grad_scaler_config: as in spacy-transformers.
    RAISES (ValueError): for an unknown precision or overflow, or a setting of another type or out of its range.
    """

    tokenizer_config: dict[str, Any] = field(default_factory=SimpleFrozenDict)
    transformer_config: dict[str, Any] = field(default_factory=SimpleFrozenDict)
    trust_remote_code: bool = False
    overflow: str = "truncate"
    precision: str = "float32"
    gradient_checkpointing: bool = False
    mini_batch_size: NonNegative = 0
    frozen: Sequence[str] = ()
    max_grad_norm: NonNegativeFloat = 0.0
    mixed_precision: bool = False
    grad_scaler_config: dict[str, Any] = field(default_factory=SimpleFrozenDict)

    def __post_init__(self) -> None:
        check_fields(self)
        check_keywords("grad_scaler_config", self.grad_scaler_config, PyTorchGradScaler.__init__)
        if self.overflow not in OVERFLOWS:
            raise ValueError(Errors.UNKNOWN_OVERFLOW.format(given=self.overflow, expected=", ".join(OVERFLOWS)))
        if self.precision not in PRECISIONS:
            raise ValueError(Errors.UNKNOWN_PRECISION.format(given=self.precision, expected=", ".join(PRECISIONS)))


def takes_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function that has a parameter `options` each of TransformerOptions as a keyword argument in its place, as
    a config names them."""
    signature, hints = inspect.signature(function), get_type_hints(TransformerOptions, include_extras=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "options"]
    as_default = TransformerOptions()
    names = [each.name for each in fields(TransformerOptions)]
    kind = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(name, kind, default=getattr(as_default, name), annotation=hints[name]) for name in names]

    @wraps(function)
    def taking(*args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(name) for name in names if name in kwargs}
        return function(*args, **kwargs, options=TransformerOptions(**given))

    taking.__signature__ = signature.replace(parameters=own + added)  # type: ignore[attr-defined]
    taking.__annotations__ = {**function.__annotations__, **hints}
    return taking
