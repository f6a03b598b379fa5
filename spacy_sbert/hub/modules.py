"""Modules of a sentence-transformers folder: names, dense layers, static embeddings."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
from pydantic import BaseModel, Field
from safetensors.numpy import save_file
from safetensors.torch import load_file

from ..errors import Errors, Warnings
from ..models.hub import check_safetensors
from ..models.sbert_config import PACKAGE, TEXT, SentenceTransformersConfig, read_file, read_object
from ..models.static_embedding import TABLE_NAMES, TOKENIZER_FILE, WEIGHTS_FILE, StaticEmbedding, read_static

ACTIVATIONS = {  # of Dense, in its config.json, and here
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
}
# In the layout that every version and every server reads, not only the latest.
SHARED_FILE = "config_sentence_transformers.json"
LIMITS_FILE = "sentence_bert_config.json"


def module_type(name: str) -> str:
    """Return the type of a module, as modules.json names it."""
    return f"{PACKAGE}.models.{name}"


Table = tuple[str, numpy.ndarray]  # the JSON of its tokenizer, and float32 (wordpieces, width)


def write_table(folder: Path, table: StaticEmbedding, *, pooling: str, name: str) -> None:
    """Write a StaticEmbedding module: its tokenizer and its table.

    pooling (str): of the pipe. name (str): of the pipe.
    RAISES (ValueError): if vectors are not pooled by mean, as the module does, or there is no table yet.
    """
    if pooling != "mean":
        raise ValueError(
            f"The pipe '{name}' pools its table of wordpieces with pooling = '{pooling}', and StaticEmbedding "
            'of sentence-transformers is always the mean: train the pipe with pooling = "mean" to export it.'
        )
    vectors = numpy.ascontiguousarray(table.ops.to_numpy(table.table()))
    (folder / TOKENIZER_FILE).write_text(table.attrs["tokenizer"], encoding="utf8")
    save_file({TABLE_NAMES[0]: vectors}, folder / WEIGHTS_FILE)


def read_table(module: Path, settings: SentenceTransformersConfig) -> Table:
    """Read a StaticEmbedding module, and warn of the settings that are not imported; see read_static."""
    tokenizer, table = read_static(module, settings)
    prompts = [name for name, prompt in settings.prompts.items() if prompt]
    if prompts:
        warnings.warn(Warnings.IMPORT_STATIC_PROMPTS.format(name=settings.name, given=", ".join(prompts)), stacklevel=4)
    cut = read_object(module / TOKENIZER_FILE).get("truncation")
    if cut:
        warnings.warn(Warnings.IMPORT_STATIC_UNCUT.format(name=settings.name, limit=cut["max_length"]), stacklevel=4)
    return tokenizer, table


def table_config(table: Table, precision: str | None) -> dict[str, object]:
    """Return the settings of spacy-sbert.StaticSentenceEncoder.v1 for a table.

    RAISES (ValueError): if a precision is asked for, which only a transformer has.
    """
    if precision is not None:
        raise ValueError(
            f"precision = '{precision}' is for transformers, and the folder holds a static encoder, whose "
            "table is float32: leave it out."
        )
    return {"@architectures": "spacy-sbert.StaticSentenceEncoder.v1", "width": table[1].shape[1]}


@dataclass
class DenseFile:
    """A dense layer: y = a(x W^T + b).

    activation: a, as spacy-sbert.Dense.v1 calls it. W: float32 (nO, nI). b: float32 (nO,), None for none.
    """

    activation: str
    W: numpy.ndarray
    b: numpy.ndarray | None

    @property
    def settings(self) -> dict[str, int | str | bool]:
        """The arguments of spacy-sbert.Dense.v1."""
        nO, nI = self.W.shape
        return {"nI": nI, "nO": nO, "activation": self.activation, "bias": self.b is not None}


class _DenseConfig(BaseModel):
    """config.json of a Dense module."""

    activation_function: str | None = Field("torch.nn.modules.activation.Tanh", description=TEXT)


def read_dense(folder: Path) -> DenseFile:
    """Read a Dense module.

    folder (Path): of the module.
    RAISES (ValueError): if a file is missing or damaged, or spacy-sbert.Dense.v1 cannot be such a layer.
    """
    if not (folder / "config.json").is_file():
        raise _refused(folder, "it has no config.json")
    config = read_object(folder / "config.json")
    named = read_file(folder / "config.json", _DenseConfig).activation_function
    if named not in ACTIVATIONS:
        raise _refused(folder, f"its activation {named} is none of {', '.join(ACTIVATIONS)}")
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, "sentence_embedding"):
            raise _refused(folder, f"its {key} is {config[key]}, not sentence_embedding")
    weights = _read_weights(folder)
    W, b = weights.get("linear.weight"), weights.get("linear.bias")
    shape = (config.get("out_features"), config.get("in_features"))
    if W is None or W.shape != shape or (b is not None and b.shape != shape[:1]):
        given = {key: value.shape for key, value in weights.items()}
        raise _refused(folder, f"its weights are {given}, its config says linear.weight of {shape}")
    return DenseFile(ACTIVATIONS[named], W, b)


def check_widths(dense: dict[Path, DenseFile], width: int) -> None:
    """Check that each Dense module takes vectors of the width that the layer before it gives.

    dense: the modules by folder. width (int): of pooled vectors.
    RAISES (ValueError): if the widths differ.
    """
    for folder, layer in dense.items():
        nO, nI = layer.W.shape
        if nI != width:
            raise _refused(folder, f"it takes vectors of {nI} numbers, and those before it have {width}")
        width = nO


def write_dense(folder: Path, dense: DenseFile) -> None:
    """Write a Dense module: config.json and model.safetensors."""
    folder.mkdir()
    names = {ours: theirs for theirs, ours in ACTIVATIONS.items()}
    (nO, nI), bias = dense.W.shape, dense.b is not None
    config = {"in_features": nI, "out_features": nO, "bias": bias, "activation_function": names[dense.activation]}
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf8")
    weights = {"linear.weight": dense.W, **({} if dense.b is None else {"linear.bias": dense.b})}
    save_file({key: numpy.ascontiguousarray(value) for key, value in weights.items()}, folder / "model.safetensors")


def _read_weights(folder: Path) -> dict[str, numpy.ndarray]:
    file = folder / "model.safetensors"
    if file.is_file():
        check_safetensors(file)
        return {key: tensor.float().numpy() for key, tensor in load_file(file).items()}  # NumPy has no bfloat16
    file = folder / "pytorch_model.bin"
    if not file.is_file():
        raise _refused(folder, "it has neither model.safetensors nor pytorch_model.bin")
    try:
        tensors = torch.load(file, map_location="cpu", weights_only=True)  # reads tensors, and runs no pickled code
        return {key: tensor.float().numpy() for key, tensor in tensors.items()}
    except Exception as error:  # of any type, depending on the bytes
        raise ValueError(Errors.BAD_WEIGHTS.format(file=file, reason=error)) from error


def _refused(folder: Path, reason: str) -> ValueError:
    return ValueError(f"The Dense module {folder} cannot be imported: {reason}.")
