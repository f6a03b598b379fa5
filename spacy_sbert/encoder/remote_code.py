"""Whether Python code that comes with an encoder may run: only if who loads it says so."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import Errors
from .settings import read_object

TRUST = "SPACY_SBERT_TRUST_REMOTE_CODE"
FILES = ("config.json", "tokenizer_config.json")  # in which Transformers looks for classes of the folder's own


def may_run(folder: Path, settings: Mapping[str, Any], *, name: str, asked: bool, is_saved: bool) -> bool:
    """Whether Transformers is to run code that a folder brings, or names; False if there is none.

    A config's trust_remote_code = true is its author's word. Whose machine it is says so by the environment variable.

    folder (Path): with config.json. settings (dict): the transformer_config.
    name (str): what the encoder was asked for by. asked (bool): trust_remote_code.
    is_saved (bool): whether a pipeline was saved with the encoder in the folder; its weights are those of Transformers'
        own class if no code was saved with them.
    RAISES (ValueError): if there is code that may not run. Transformers' own class of that name is not taken instead.
    """
    naming = [file for file in FILES if read_object(folder / file).get("auto_map")]
    if "/" in str(settings.get("attn_implementation")):  # a compiled kernel to be fetched from the hub
        naming.append("transformer_config")
    is_stock = is_saved and not asked and not any(folder.glob("*.py"))
    if not naming or (is_stock and "transformer_config" not in naming):
        return False
    if asked and os.environ.get(TRUST) == "1":
        return True
    raise ValueError(Errors.REMOTE_CODE.format(name=name, files=" and ".join(naming), asked=str(asked).lower()))
