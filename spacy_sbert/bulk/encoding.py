"""How the texts of a file become vectors, and what the bytes of those depend on beside the file."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..component.sbert import SentenceBert
from ..errors.checks import NonNegative, Positive, Width, check_fields
from ..vectors.computing import texts_budget
from ..vectors.texts_encoder import TextsEncoder
from .errors import Errors
from .identity import describe
from .vectors import DTYPES
from .work_folder import Values


@dataclass(frozen=True)
class Encoding:
    """The options of encode_file that its output depends on, with what they are by default.

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
            raise ValueError(Errors.BULK_UNKNOWN_DTYPE.format(given=self.dtype, expected=", ".join(DTYPES)))

    @property
    def with_columns(self) -> bool:
        """Whether the output has columns beside the vectors."""
        return self.with_text or self.id_column is not None

    def encoder(self, sbert: SentenceBert) -> TextsEncoder:
        """What encodes."""
        return sbert.text_encoder(prompt_name=self.prompt_name, prompt=self.prompt, truncate_dim=self.truncate_dim)

    def budget(self, encoder: TextsEncoder, gpu_ids: Sequence[int]) -> int:
        """The most wordpieces in a forward pass."""
        return texts_budget(encoder, self.max_batch_items, gpu_ids)

    def made_of(self, encoder: TextsEncoder, budget: int, gpu_ids: Sequence[int], suffix: str) -> Values:
        """What the bytes depend on, by what messages call it. suffix (str): of the output."""
        return {
            "column": self.column,
            "header": self.header,
            "id_column": self.id_column,
            "with_text": self.with_text,
            "output": suffix,
            "dtype": self.dtype,
            "window": self.window,
            **describe(encoder, budget, gpu_ids),
        }
