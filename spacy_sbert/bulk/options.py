"""What the output of encode_file depends on beside the texts: options, encoder, device and versions."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..files.serialization import versions
from ..models.digests import precision_of
from ..models.text_encoders import TextEncoder, TransformerTextEncoder, device_name, texts_budget
from ..pipeline.sbert import SentenceBert
from ..validation import NonNegative, Positive, Width, check_fields
from .checkpoint import Values

DTYPES = ("float32", "float16")
WEIGHTS = "weights (SHA-256)"
_PACKAGES = ("spacy-sbert", "thinc", "torch", "transformers", "tokenizers", "numpy")


@dataclass(frozen=True)
class Encoding:
    """The options of encode_file that its output depends on, with their defaults.

    RAISES (ValueError): for an option of another type or range, or an unknown dtype.
    """

    column: str = "text"
    header: bool = True
    id_column: str | None = None
    with_text: bool = False
    dtype: str = "float32"
    window: Positive = 4096
    max_batch_items: NonNegative = 0
    prompt_name: str | None = None
    prompt: str | None = None
    truncate_dim: Width | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.dtype not in DTYPES:
            raise ValueError(f"Unknown dtype '{self.dtype}' of the output: expected one of {', '.join(DTYPES)}.")

    @property
    def with_columns(self) -> bool:
        """Whether the output has columns beside the vectors."""
        return self.with_text or self.id_column is not None

    def encoder(self, sbert: SentenceBert) -> TextEncoder:
        """Return the encoder of a pipe with these options."""
        return sbert.text_encoder(prompt_name=self.prompt_name, prompt=self.prompt, truncate_dim=self.truncate_dim)

    def made_of(self, encoder: TextEncoder, gpu_ids: Sequence[int], suffix: str) -> Values:
        """Return what the bytes of an output depend on, by what messages call it. suffix (str): of the output."""
        return {
            "column": self.column,
            "header": self.header,
            "id_column": self.id_column,
            "with_text": self.with_text,
            "output": suffix,
            "dtype": self.dtype,
            "window": self.window,
            **describe(encoder, texts_budget(encoder, self.max_batch_items, gpu_ids), gpu_ids),
        }


def describe(encoder: TextEncoder, budget: int, gpu_ids: Sequence[int]) -> dict[str, str | int]:
    """Describe an encoder: its name, weights and settings, the device, and the versions of what computes.

    encoder (TextEncoder): it is loaded. budget (int): wordpieces in a forward pass, see budget_of.
    gpu_ids (Sequence[int]): GPUs it will work on.
    RETURNS (dict): strings and numbers, by what messages call them.
    RAISES (ValueError): if it is to round by ranges that were not found yet.
    """
    encoder.check_calibrated()
    packages: tuple[str, ...] = _PACKAGES
    settings: dict[str, str | int]
    if isinstance(encoder, TransformerTextEncoder):
        transformer = encoder.model
        settings = {
            "encoder": transformer.shim.name,
            "normalize": encoder.pooling.normalizes(transformer.shim.load()),
            "prompt": transformer.prompt(encoder.settings.prompt),
            "include_prompt": transformer.prompts.include,
            "overflow": transformer.overflow,
            "precision": precision_of(transformer.shim),
            "max_batch_items": budget,
        }
    else:
        settings = {"normalize": bool(encoder.pooling.normalize)}
        packages = (*_PACKAGES, "spacy")
    return {
        "encoder": encoder.name,
        WEIGHTS: encoder.digest(),
        "pooling": encoder.pooling.pooling_name,
        "width": encoder.width,
        **settings,
        "device": device_name(encoder, gpu_ids),
        **{package: version for package, version in versions().items() if package in packages},
    }
