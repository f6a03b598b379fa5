"""Parameters that are not trained."""

from collections.abc import Sequence

from .errors import Errors
from .hugging_face import Network


def freeze(network: Network, names: Sequence[str]) -> None:
    """Take parameters out of training.

    names (Sequence[str]): of them, or of the modules that hold them, such as "embeddings".
    RAISES (ValueError): if there are none of that name.
    """
    for prefix in names:
        named = [(name, p) for name, p in network.named_parameters() if f"{name}.".startswith(f"{prefix}.")]
        if not named:
            modules = sorted({name.rsplit(".", 1)[0] for name, _ in network.named_parameters()})
            raise ValueError(Errors.NOTHING_FROZEN.format(given=prefix, expected=", ".join(modules)))
        for _, parameter in named:
            parameter.requires_grad_(False)
