"""What the table of a static encoder begins with: a tokenizer, and what a folder may have of vectors."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy
from safetensors.torch import load_file
from tokenizers import Tokenizer

from .errors import Errors
from .loading import Source, load_tokenizer
from .resolve import check_safetensors, resolve
from .settings import FolderSettings, read_settings, static_module, transformer_folder

TOKENIZER_FILE, WEIGHTS_FILE = "tokenizer.json", "model.safetensors"
TABLE_NAMES = ("embedding.weight", "embeddings")  # of sentence-transformers and of model2vec


@dataclass(frozen=True)
class TableSource:
    """tokenizer: the JSON of the tokenizers library. table: float32 (wordpieces, width); None where there is none."""

    tokenizer: str
    table: numpy.ndarray | None


def read_table_source(name: str) -> TableSource:
    """Read a static encoder, or the tokenizer of a transformer.

    name (str): see resolve; a folder with a StaticEmbedding module of sentence-transformers, as model2vec writes it,
        too, or a transformer.
    RAISES (OSError): if it is not found; (ValueError): if a file is damaged, the tokenizer is a slow one, or a prompt
        is put before every text.
    """
    folder = resolve(name)
    module = static_module(folder)
    if module is not None:
        return TableSource(*read_static(module, read_settings(folder, name)))
    tokenizer = load_tokenizer(Source(transformer_folder(folder), name, {}, {}, False))
    if not tokenizer.is_fast:
        raise ValueError(Errors.SLOW_TOKENIZER.format(name=name))
    settings = read_settings(folder, name)
    return TableSource(without_special_tokens(tokenizer.backend_tokenizer.to_str(), lowercase=settings.lowercase), None)


def read_static(folder: Path, settings: FolderSettings) -> tuple[str, numpy.ndarray]:
    """Read a StaticEmbedding module.

    folder (Path): of the module. settings (FolderSettings): of the encoder.
    RETURNS (str, float32 (wordpieces, width)): the JSON of the tokenizer, which adds nothing and does not cut, and the
        table.
    RAISES (ValueError): if a file is missing or damaged, or has more in it than a table, or the encoder puts a prompt
        before every text.
    """
    default = settings.default_prompt_name
    if settings.prompts.get(default, default):
        given = {"name": settings.name, "given": settings.prompts.get(default, default)}
        raise ValueError(Errors.STATIC_PROMPT.format(**given))
    files = {name: folder / name for name in (TOKENIZER_FILE, WEIGHTS_FILE)}
    for name, file in files.items():
        if not file.is_file():
            raise ValueError(Errors.NO_STATIC_FILE.format(folder=folder, missing=name))
    check_safetensors(files[WEIGHTS_FILE])
    arrays = {
        key: tensor.float().numpy() for key, tensor in load_file(files[WEIGHTS_FILE]).items()
    }  # NumPy has no bfloat16
    table = next((arrays[name] for name in TABLE_NAMES if name in arrays), None)
    try:
        tokenizer = Tokenizer.from_file(str(files[TOKENIZER_FILE]))
    except Exception as error:  # the library raises no other type
        raise ValueError(Errors.BAD_TOKENIZER.format(folder=folder, reason=error)) from error
    n_ids = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=0) + 1
    if table is None or len(arrays) > 1 or table.ndim != 2 or len(table) < n_ids or not numpy.isfinite(table).all():
        shapes = {name: array.shape for name, array in arrays.items()}
        raise ValueError(Errors.BAD_TABLE.format(folder=folder, given=shapes, expected=f"({n_ids}, width)"))
    return without_special_tokens(tokenizer.to_str()), table


def without_special_tokens(tokenizer: str, *, lowercase: bool = False) -> str:
    """The JSON of a tokenizer that adds no special tokens, does not cut and does not pad.

    lowercase (bool): whether it lower-cases first of all.
    """
    said = json.loads(tokenizer)
    said.update(truncation=None, padding=None, post_processor=None)
    if lowercase:
        steps = [{"type": "Lowercase"}, *([said["normalizer"]] if said["normalizer"] else [])]
        said["normalizer"] = {"type": "Sequence", "normalizers": steps}
    return json.dumps(said, ensure_ascii=False)
