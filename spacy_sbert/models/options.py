"""The settings of a transformer, which several architectures take alike."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_type_hints

from spacy.util import SimpleFrozenDict
from thinc.api import PyTorchGradScaler

from ..validation import NonNegative, NonNegativeFloat, check, check_fields, invalid_value_message

REFERENCE = "reference"  # precision, or rather batching, see engine.inference.Reference
INT8 = "int8"  # of products in use; see engine.int8_linear
Precision = Literal["float32", "bfloat16", "float16", "int8", "auto", "reference"]
Overflow = Literal["truncate", "windows"]


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
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
    overflow: Overflow = "truncate"
    precision: Precision = "float32"
    gradient_checkpointing: bool = False
    mini_batch_size: NonNegative = 0
    frozen: Sequence[str] = ()
    max_grad_norm: NonNegativeFloat = 0.0
    mixed_precision: bool = False
    grad_scaler_config: dict[str, Any] = field(default_factory=SimpleFrozenDict)

    def __post_init__(self) -> None:
        check_fields(self)
        known = {key: kind for key, kind in get_type_hints(PyTorchGradScaler.__init__).items() if key != "return"}
        for key, value in self.grad_scaler_config.items():
            if key not in known:
                raise ValueError(invalid_value_message("grad_scaler_config", key, f"some of {', '.join(known)}"))
            check(f"grad_scaler_config.{key}", value, known[key])
