"""What a short name of an encoder stands for, and which one was probably meant by an unknown name."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

import huggingface_hub

ORGANIZATION = "sentence-transformers"
CACHED = "models--"  # how the folder of an encoder in the hub's cache begins


def full_names(name: str) -> tuple[str, ...]:
    """The names on the hub that a name may stand for, of which the first that is found is meant: itself, and of one
    without an organization that of sentence-transformers."""
    return (name, f"{ORGANIZATION}/{name}") if name and "/" not in name else (name,)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like one that was not found, None if none is. Capitals are alike, and a name without
    an organization is compared without."""
    names = {(one if "/" in name else one.rpartition("/")[2]).lower(): one for one in known}
    return next((names[found] for found in get_close_matches(name.lower(), names, n=1, cutoff=0.75)), None)


def cached_names() -> list[str]:
    """Those in the hub's cache."""
    folders = sorted(Path(huggingface_hub.constants.HF_HUB_CACHE).glob(f"{CACHED}*"))
    return [folder.name.removeprefix(CACHED).replace("--", "/", 1) for folder in folders]
