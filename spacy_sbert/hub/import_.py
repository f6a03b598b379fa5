"""From a folder of sentence-transformers to a pipeline with the same vectors."""

import re
from pathlib import Path

import spacy
from spacy.language import Language
from thinc.api import Model

from ..models.hub import resolve
from ..models.pooling import POOLING
from ..models.sbert_config import (
    REFERENCE,
    PoolingSettings,
    Precision,
    SentenceTransformersConfig,
    foreign_module,
    inside,
    module_kind,
    read_modules,
    read_pooling,
    read_settings,
    static_module,
)
from ..models.static_embedding import StaticEmbedding
from ..models.transformer import SpanTransformer, load
from ..pipeline.listeners import find_static_embedding, find_transformer
from ..pipeline.sbert import find_sbert
from ..validation import Name, validated
from .modules import DenseFile, Table, check_widths, read_dense, read_table, table_config

KINDS = ("Transformer", "StaticEmbedding", "Pooling", "Dense", "Dropout", "Normalize")
ORDER = re.compile(r"Transformer|(Transformer Pooling|StaticEmbedding)( Dense| Dropout)*( Normalize)?( Dropout)*")


@validated
def import_folder(
    source: str, *, lang: Name = "en", name: Name = "sbert", precision: Precision | None = None
) -> Language:
    """Make a pipeline that gives the vectors of a sentence encoder.

    No code of the folder is run. Its transformer or table, pooling, dense layers, normalisation, limit, lower-casing,
    prompts and truncation become the settings of an `sbert` pipe; a folder without modules is a transformer with mean
    pooling, as in sentence-transformers.

    source (str): a folder, or a name that is looked for as any encoder's is, see resolve.
    lang (str): the language whose tokenizer makes the Docs. name (str): of the pipe.
    precision (str): of its encoder, see spacy-sbert.SentenceEncoder.v1. By default "float32" where vectors are pooled
        states of unit length: rounding is far below 1e-6 there; else "reference". A static encoder has none.
    RETURNS (Language): with the weights loaded.
    RAISES (OSError): if it is not found; (ValueError): if a module is unknown, or a file damaged.
    """
    folder = resolve(source)
    modules = read_modules(folder)
    _check_modules(folder, modules)
    settings, static = read_settings(folder, source), static_module(folder)
    parts = [inside(folder, module["path"]) for module in modules if module_kind(module["type"]) == "Dense"]
    dense, table = {part: read_dense(part) for part in parts}, None
    if static is None:
        config = _transformer_config(settings, _pooling_of(folder, modules))
        by_default = "float32" if settings.normalize and not dense else REFERENCE
        config["precision"] = by_default if precision is None else precision
    else:
        table = read_table(static, settings)
        config = table_config(table, precision)
    config |= {"name": source, "normalize": settings.normalize, "truncate_dim": settings.truncate_dim}
    if dense:
        config["dense"] = _dense_config(list(dense.values()))
    nlp = spacy.blank(lang)
    nlp.add_pipe("sbert", name=name, config={"model": config})
    _load(name, find_sbert(nlp, name).model, table, dense)
    return nlp


def _check_modules(folder: Path, modules: list[dict[str, str]]) -> None:
    kinds = []
    for module in modules:
        kinds.append(module_kind(module["type"]))
        if kinds[-1] not in KINDS:
            unknown = (
                f"The folder {folder} has the module {module['type']}, which is unknown here: expected "
                "Transformer and Pooling, or StaticEmbedding, any number of Dense, and optionally Normalize, "
                "in this order, all of sentence_transformers. Code in a folder is never run."
            )
            raise foreign_module(folder, module["type"]) or ValueError(unknown)
    if kinds and not ORDER.fullmatch(" ".join(kinds)):
        raise ValueError(
            f"The folder {folder} has the modules {', '.join(kinds)}: expected Transformer and Pooling, or "
            "StaticEmbedding, any number of Dense, and optionally Normalize, in this order."
        )


def _pooling_of(folder: Path, modules: list[dict[str, str]]) -> PoolingSettings:
    for module in modules:
        if module["type"].endswith(".Pooling"):
            found = read_pooling(folder, module["path"])
            if found is None or found.name is None:
                file = inside(folder, module["path"]) / "config.json"
                raise ValueError(
                    f"The Pooling module of {folder} asks for something unknown here, in {file}: expected some "
                    f"of {', '.join(POOLING)}."
                )
            return found
    return PoolingSettings("mean")


def _transformer_config(settings: SentenceTransformersConfig, pooling: PoolingSettings) -> dict[str, object]:
    return {
        "pooling": pooling.name,
        "prompts": settings.prompts,
        "default_prompt_name": settings.default_prompt_name,
        "include_prompt": pooling.include_prompt,
    }


def _dense_config(dense: list[DenseFile]) -> dict[str, object]:
    layers: list[dict[str, object]] = [{"@layers": "spacy-sbert.Dense.v1", **found.settings} for found in dense]
    if len(layers) == 1:
        return layers[0]
    return {"@layers": "chain.v1", "*": {f"dense{number}": layer for number, layer in enumerate(layers, start=1)}}


def _load(name: str, model: Model, table: Table | None, dense: dict[Path, DenseFile]) -> None:
    encoder: StaticEmbedding | SpanTransformer | None = find_static_embedding(model)
    if isinstance(encoder, StaticEmbedding) and table is not None:
        encoder.set_table(*table)
    else:
        encoder = find_transformer(name, model)
        load(encoder)
    check_widths(dense, model.get_ref("pooling").pooled_width(encoder.get_dim("nO")))  # type: ignore[attr-defined]
    for layer, found in zip((node for node in model.walk() if node.name == "dense"), dense.values(), strict=True):
        layer.set_param("W", layer.ops.asarray2f(found.W))  # type: ignore[arg-type]
        if found.b is not None:
            layer.set_param("b", layer.ops.asarray1f(found.b))  # type: ignore[arg-type]
