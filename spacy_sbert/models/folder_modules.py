"""The modules of a sentence encoder, which its modules.json lists."""

import json
import re
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from ..errors import Errors
from .folder_files import check_keys, read_keys, unexpected
from .folder_keys import CROSS_ENCODER, LISTED_KEYS, MODULE_KEYS

MODULES_FILE = "modules.json"
# The package of the known modules
PACKAGE = "sentence_transformers"
_SPARSE = ("a part of a sparse encoder", "Use an encoder of dense vectors.")
_ROUTES = (
    "several encoders, one for each kind of text",
    "Save one route as a folder of its own, and use that: modules = [module for part in model for "
    "module in getattr(part, 'sub_modules', {'query': [part]})['query']], then "
    "SentenceTransformer(modules=modules).save(...).",
)
OLD_TRANSFORMERS = (
    "ALBERT",
    "BERT",
    "CamemBERT",
    "DistilBERT",
    "RoBERTa",
    "T5",
    "XLMRoBERTa",
    "XLNet",
)
_OLD = (
    "a transformer, as sentence-transformers wrote it before 0.3",
    "Name it sentence_transformers.models.Transformer in modules.json, which reads the same files.",
)
_ALONE = "To train without it, use spacy-sbert.SentenceEncoder.v1 with normalize = true or false."
# Modules of sentence-transformers that are unknown here: what each is, and what to do.
FOREIGN = {
    "BoW": ("a count of words", "Use an encoder with a Transformer or StaticEmbedding."),
    "WordEmbeddings": (
        "a table of word vectors",
        "Use spacy-sbert.WordVectors.v1 in a Tok2VecSentenceEncoder.",
    ),
    "WordWeights": (
        "weights of words",
        "Use spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 in a Tok2VecSentenceEncoder.",
    ),
    "CNN": ("convolutions over words", "Train spacy.HashEmbedCNN.v2 in a Tok2VecSentenceEncoder."),
    "LSTM": (
        "a recurrent network",
        "Train spacy-sbert.BiLSTMEncoder.v1 in a Tok2VecSentenceEncoder.",
    ),
    "WeightedLayerPooling": ("a mean over all layers of the transformer", _ALONE),
    "LayerNorm": ("a layer that centres and scales vectors", _ALONE),
    "Router": _ROUTES,
    "Asym": _ROUTES,
    "CLIPModel": ("an encoder of pictures and texts", "Use an encoder of texts only."),
    "MLMTransformer": _SPARSE,
    "SpladePooling": _SPARSE,
    "SparseAutoEncoder": _SPARSE,
    "SparseStaticEmbedding": _SPARSE,
    "LogitScore": (
        "a score by the next word that a cross-encoder would write",
        "Use a cross-encoder with a head for sequence classification, or for vectors an encoder of "
        "single texts.",
    ),
    **dict.fromkeys(OLD_TRANSFORMERS, _OLD),
}

_STATIC = "StaticEmbedding"
# Dropout does nothing in use
KNOWN_MODULES = ("Transformer", _STATIC, "Pooling", "Normalize", "Dropout")
_ORDER = re.compile(
    r"Transformer|(Transformer Pooling|StaticEmbedding)( Dense| Dropout)*( Normalize)?( Dropout)*"
)
EXPECTED_MODULES = (
    "expected Transformer and Pooling, or StaticEmbedding, any number of Dense, and optionally "
    "Normalize, in this order"
)


class Module(NamedTuple):
    """A module of a sentence encoder."""

    # Its class; with its package if that is not sentence_transformers
    kind: str
    folder: Path
    # The class as modules.json names it
    type: str


class _ListedModule(BaseModel):
    type: str
    path: str


_LIST = TypeAdapter(Annotated[list[_ListedModule], Field(min_length=1)])


def read_modules(folder: Path) -> list[Module]:
    """Return the modules of a sentence encoder; none for a plain one.

    RAISES (ValueError): if the list is damaged.
    """
    file = folder / MODULES_FILE
    if not file.exists():
        return []
    try:
        listed = _LIST.validate_json(file.read_bytes(), strict=True)
    except ValidationError as error:
        reason = "expected a list of objects with 'type' and 'path', one at least"
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=reason)) from error
    return [_module(folder, entry) for entry in listed]


def _module(folder: Path, entry: _ListedModule) -> Module:
    """Return a module. RAISES (ValueError): if it lies outside of the encoder's folder."""
    inner = (folder / entry.path).resolve()
    if not inner.is_relative_to(folder.resolve()):
        raise _outside(folder, entry.path, inner)
    package, _, kind = entry.type.rpartition(".")
    if package.split(".")[0] != PACKAGE:
        kind = f"{package or 'unknown'}.{kind}"
    return Module(kind, inner, entry.type)


def _outside(folder: Path, path: str, inner: Path) -> ValueError:
    """Return the error for a module that lies outside of the encoder's folder."""
    link = _first_link(folder, path)
    if link is None:
        how = "which lies outside of its folder. Use an encoder that you trust."
    else:
        how = (
            f"and {link} is a link to {inner}, outside. Copy that folder to the place of the link."
        )
    return ValueError(f"The file {folder / MODULES_FILE} names '{path}', {how}")


def _first_link(folder: Path, path: str) -> Path | None:
    """Return the first symbolic link on a path below a folder; None if there is none."""
    below = folder
    for part in Path(path).parts:
        below = below / part
        if below.is_symlink():
            return below
    return None


def foreign_module(folder: Path, module: Module) -> ValueError | None:
    """Return the error for a module of sentence-transformers that is unknown here.

    None for others.
    """
    if module.kind not in FOREIGN:
        return None
    kind, remedy = FOREIGN[module.kind]
    return ValueError(
        f"The folder {folder} has the module {module.type}, which is unknown here: it is {kind}. "
        f"{remedy}"
    )


def transformer_folder(folder: Path) -> Path:
    """Return where config.json and the weights are.

    RAISES (ValueError): if the first module is no Transformer.
    """
    for module in read_modules(folder)[:1]:
        if module.kind == _STATIC:
            raise ValueError(
                f"The folder {folder} holds a static encoder, a table without a transformer. Use "
                f"spacy-sbert.StaticSentenceEncoder.v1, or python -m spacy sbert import {folder} "
                "OUT."
            )
        if module.kind != "Transformer":
            raise foreign_module(folder, module) or ValueError(
                f"The file {folder / MODULES_FILE} names the module {module.type}: expected "
                "sentence_transformers.models.Transformer. Use another encoder."
            )
        return module.folder
    return folder


def static_module(folder: Path) -> Path | None:
    """Return the folder of the table of a static encoder; None for another encoder."""
    for module in read_modules(folder):
        if module.kind == _STATIC:
            return module.folder
    return None


def check_modules(folder: Path, modules: list[Module], model_type: str) -> None:
    """Check that the modules of a folder, except unknown ones, can be followed.

    model_type (str): "SentenceTransformer" or "CrossEncoder".
    RAISES (ValueError): if not.
    """
    _check_entries(folder / MODULES_FILE)
    kinds = [module.kind for module in modules]
    if model_type == CROSS_ENCODER and kinds != ["Transformer"]:
        raise _not_a_cross_encoder(folder, modules)
    known = [kind for kind in kinds if kind in (*KNOWN_MODULES, "Dense")]
    if not _ORDER.fullmatch(" ".join(known)):
        raise ValueError(
            f"The folder {folder} has the modules {', '.join(kinds)}: {EXPECTED_MODULES}."
        )
    for module in modules:
        if module.kind in KNOWN_MODULES and module.kind in MODULE_KEYS:
            read_keys(module.folder / "config.json", MODULE_KEYS[module.kind])


def _check_entries(file: Path) -> None:
    """Check the keys of the entries of modules.json, and that each has a name of its own."""
    names: list[object] = []
    for entry in json.loads(file.read_text(encoding="utf8")):
        check_keys(file, entry, LISTED_KEYS)
        if "name" not in entry:
            continue
        if entry["name"] in names:
            expected = "a name of its own for each module"
            raise unexpected(file, "name", entry["name"], expected)
        names.append(entry["name"])


def _not_a_cross_encoder(folder: Path, modules: list[Module]) -> ValueError:
    """Return the error of a folder that is a CrossEncoder with other modules than a Transformer."""
    for module in modules:
        foreign = foreign_module(folder, module)
        if foreign is not None:
            return foreign
    kinds = ", ".join(module.kind for module in modules)
    return ValueError(
        f"The folder {folder} is a CrossEncoder with the modules {kinds}: expected one "
        "Transformer, with a head for sequence classification. Use another cross-encoder."
    )
