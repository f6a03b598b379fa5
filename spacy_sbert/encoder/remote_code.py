"""Whether Python code that comes with an encoder may run: only if who loads it says so."""

import os
from pathlib import Path
from typing import Any

from ..errors import Errors
from .settings import read_object

TRUST = "SPACY_SBERT_TRUST_REMOTE_CODE"
FILES = ("config.json", "tokenizer_config.json")  # in which Transformers looks for classes of the folder's own
KERNELS = ("attn_implementation", "_attn_implementation")


def may_run(folder: Path, *, name: str, asked: bool, is_saved: bool) -> bool:
    """Whether Transformers is to run code that a folder brings, or names; False if there is none.

    A config's trust_remote_code = true is its author's word. Whose machine it is says so by the environment variable.

    folder (Path): with config.json. name (str): what the encoder was asked for by.
    asked (bool): trust_remote_code.
    is_saved (bool): whether a pipeline was saved with the encoder in the folder; its weights are those of Transformers'
        own class if no code was saved with them.
    RAISES (ValueError): if there is code that may not run. Transformers' own class of that name is not taken instead.
    """
    naming = [file for file in FILES if _names_code(read_object(folder / file))]
    if not naming or (is_saved and not asked and not any(folder.glob("*.py"))):
        return False
    if asked and os.environ.get(TRUST) == "1":
        return True
    raise ValueError(Errors.REMOTE_CODE.format(name=name, files=" and ".join(naming), asked=str(asked).lower()))


def _names_code(config: dict[str, Any]) -> bool:
    """Classes in a module of the folder or of another one, or a compiled kernel to be fetched."""
    return bool(config.get("auto_map")) or any("/" in str(config.get(key)) for key in KERNELS)
