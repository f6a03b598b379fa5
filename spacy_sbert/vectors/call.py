"""What one call asks for in place of what the config says."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Call:
    """The settings of a call.

    prompt: what is put before each text, "" for nothing; None for the config's.
    truncate_dim: how many dimensions of the vectors are kept; None for the config's.
    token_vectors: whether to return what other Spans and Tokens need to have vectors.
    """

    prompt: str | None = None
    truncate_dim: int | None = None
    token_vectors: bool = True


AS_CONFIGURED = Call()
