"""The data that passes between the rooms of the package."""

from collections.abc import Callable
from dataclasses import dataclass, field

from spacy.tokens import Doc, Span

SpanGetter = Callable[[list[Doc]], list[list[Span]]]
SCORE_RANGE = (0.0, 1.0)  # of gold scores, as readers give them


@dataclass(frozen=True)
class EncoderSettings:
    """What the folder of an encoder says beyond its weights, and what therefore travels with them.

    name: the name the encoder was asked for by.
    max_length: the most wordpieces a row may have, special tokens included; None where there is no limit.
    normalize: whether its authors scale vectors to unit length.
    pooling: the pooling its authors use, such as "mean" or "cls+mean", None where the folder does not say.
    lowercase: whether texts are lower-cased before the tokenizer sees them.
    unknown_modules: types of the folder's modules that are neither Transformer, Pooling nor Normalize.
    prompts: what is put before a text, by name, such as {"query": "query: "}.
    default_prompt_name: the one that is used if nobody asks for another, "" for none.
    truncate_dim: how many dimensions of a vector its authors keep, 0 for all.
    """

    name: str
    max_length: int | None = None
    normalize: bool = False
    pooling: str | None = None
    lowercase: bool = False
    unknown_modules: tuple[str, ...] = ()
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt_name: str = ""
    truncate_dim: int = 0
