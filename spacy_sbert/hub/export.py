"""From a pipeline to a folder of sentence-transformers with the same vectors."""

import json
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, cast

from spacy.language import Language
from thinc.api import Model

from ..errors import Errors, Warnings
from ..files.atomic import atomic_folder
from ..models.heads import activation_of
from ..models.sbert_config import MODULES_FILE, POOLING_FLAGS, POOLING_MODES, SentenceTransformersConfig
from ..models.tokenization import Prompts
from ..models.transformer import SpanTransformer, load
from ..pipeline.listeners import find_static_embedding, find_transformer
from ..pipeline.sbert import find_sbert
from ..validation import validated
from .cards import sentence_transformers_card
from .modules import LIMITS_FILE, SHARED_FILE, DenseFile, module_type, write_dense, write_table

Modules = list[tuple[str, str]]  # kind and path of each


class Pooling(Protocol):
    """What is exported of a pooling layer."""

    pooling_name: str
    truncate_dim: int
    dense: Model | None

    def normalizes(self, settings: SentenceTransformersConfig | None) -> bool: ...


@validated
def export_folder(nlp: Language, path: Path | str, *, name: str | None = None) -> None:
    """Write the encoder of an `sbert` pipe as a folder that `SentenceTransformer(path)` loads, with the same vectors.

    It holds safetensors, the tokenizer and a model card with scores, in the classic layout that every version and every
    server reads. The vectors are those of single rows: of a text as a whole, not the mean over its sentences.

    nlp (Language): the pipeline.
    path (Path): of the folder, which must not exist yet; it is written whole or not at all.
    name (str): of the pipe; by default the last.
    RAISES (ValueError): if there is no such pipe, or its encoder is neither a transformer of this package nor a table
        whose wordpieces are pooled by mean; (FileExistsError): if something stands at the path; (OSError): if it cannot
        be written.
    """
    pipe = find_sbert(nlp, name)
    name, table = pipe.name, find_static_embedding(pipe.model)
    pooling = cast(Pooling, pipe.model.get_ref("pooling"))
    with atomic_folder(path) as folder:
        if table is not None:
            modules, settings, prompts = [("StaticEmbedding", "")], SentenceTransformersConfig(), Prompts()
            write_table(folder, table, pooling=pooling.pooling_name, name=name)
        else:
            encoder = find_transformer(name, pipe.model)
            settings, prompts = load(encoder).load(), encoder.prompts
            modules = _write_transformer(folder, encoder, pooling, settings, name)
        for layer in _dense_layers(pooling, name):
            modules.append(("Dense", f"{len(modules)}_Dense"))
            write_dense(folder / modules[-1][1], _dense_file(layer))
        if pooling.normalizes(settings):
            modules.append(("Normalize", f"{len(modules)}_Normalize"))
        _write(folder / MODULES_FILE, [_module(idx, *module) for idx, module in enumerate(modules)])
        _write(folder / SHARED_FILE, _shared_config(prompts, pooling, settings))
        card = sentence_transformers_card(nlp, name, folder=Path(path).name)
        (folder / "README.md").write_text(card, encoding="utf8")


def _write_transformer(
    folder: Path, encoder: SpanTransformer, pooling: Pooling, settings: SentenceTransformersConfig, name: str
) -> Modules:
    if encoder.overflow == "windows":
        warnings.warn(Warnings.EXPORT_WINDOWS.format(name=name, limit=settings.max_length), stacklevel=3)
    encoder.shim.save_pretrained(folder)
    _write(folder / LIMITS_FILE, {"max_seq_length": settings.max_length, "do_lower_case": settings.lowercase})
    _write(folder / "1_Pooling" / "config.json", _pooling_config(pooling, encoder))
    return [("Transformer", ""), ("Pooling", "1_Pooling")]


def _module(idx: int, kind: str, path: str) -> dict[str, object]:
    return {"idx": idx, "name": str(idx), "path": path, "type": module_type(kind)}


def _pooling_config(pooling: Pooling, encoder: SpanTransformer) -> dict[str, object]:
    modes = pooling.pooling_name.split("+")
    width, include = encoder.get_dim("nO"), encoder.prompts.include
    if modes != [mode for mode in POOLING_FLAGS.values() if mode in modes]:
        names = {ours: theirs for theirs, ours in POOLING_MODES.items()}
        listed = [names[mode] for mode in modes]  # flags have a fixed order; only recent versions read a list
        return {"embedding_dimension": width, "pooling_mode": listed, "include_prompt": include}
    flags = {flag: mode in modes for flag, mode in POOLING_FLAGS.items()}
    return {"word_embedding_dimension": width, **flags, "include_prompt": include}


def _dense_layers(pooling: Pooling, name: str) -> list[Model]:
    layers = [node for node in pooling.dense.walk() if not node.layers] if pooling.dense else []
    for layer in layers:
        if layer.name != "dense":
            raise ValueError(
                f"The dense layer of the pipe '{name}' has the layer '{layer.name}', which "
                "sentence-transformers has no module for: expected spacy-sbert.Dense.v1, or several in "
                "chain.v1."
            )
    return layers


def _dense_file(layer: Model) -> DenseFile:
    if not layer.has_param("W"):
        raise ValueError(Errors.DENSE_NOT_INITIALIZED)
    b = layer.ops.to_numpy(layer.get_param("b")) if layer.has_param("b") else None
    return DenseFile(activation_of(layer), layer.ops.to_numpy(layer.get_param("W")), b)


def _shared_config(prompts: Prompts, pooling: Pooling, settings: SentenceTransformersConfig) -> dict[str, object]:
    default = prompts.default_name
    config: dict[str, object] = {
        "__version__": {"spacy_sbert": version("spacy-sbert")},
        "prompts": {**settings.prompts, **prompts.own},
        "default_prompt_name": (settings.default_prompt_name if default is None else default) or None,
        "similarity_fn_name": "cosine",
    }
    width = pooling.truncate_dim or settings.truncate_dim
    return {**config, "truncate_dim": width} if width else config


def _write(file: Path, content: object) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content, indent=2), encoding="utf8")
