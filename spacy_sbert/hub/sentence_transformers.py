"""Folders of sentence-transformers, read and written without that library."""

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import cast

import numpy
import spacy
from safetensors.numpy import save_file
from spacy.language import Language

from ..errors import Warnings, warn
from ..files.atomic import atomic_folder
from ..models import folder_files, folder_modules, sbert_config
from ..models.encoder_checks import takes_token_types
from ..models.folder_keys import POOLING_FLAGS
from ..models.overflow import OVERFLOW
from ..models.poolings import POOLING
from ..models.prompts import Prompts
from ..models.resolve import resolve, settings_folder
from ..models.sbert_config import REFERENCE, Precision, SentenceTransformersConfig
from ..models.static_embedding import (
    TABLE_NAMES,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    StaticEmbedding,
    read_static,
)
from ..models.transformer import SpanTransformer, load
from ..pipeline.sbert import find_sbert
from ..pipeline.sentence_model import SentenceModel, find_static_embedding, find_transformer
from ..textcat import find_textcat
from ..validation import Name, validated
from .cards import sentence_transformers_card
from .dense import dense_block, dense_layers, load_dense, read_dense, write_dense, write_json
from .setfit import read_setfit

# Modules of a folder: the kind of each, and its path
_Modules = list[tuple[str, str]]


@validated
def export_folder(nlp: Language, path: Path | str, *, name: str | None = None) -> None:
    """Write the encoder of an `sbert` pipe as a folder of sentence-transformers.

    `SentenceTransformer(path)` gives the same vectors. The folder holds safetensors, the tokenizer
    and a model card with scores, in the classic layout that every version and every server reads.
    The vectors are those of whole texts, not means over their sentences.

    nlp (Language): the pipeline.
    path (Path): of the folder, which must not exist yet; it is written whole or not at all.
    name (str): of the pipe; by default the last.
    RAISES (ValueError): if there is no such pipe, or its encoder is neither a transformer of this
        package nor a table whose wordpieces are pooled by mean; (FileExistsError): if something
        stands at the path; (OSError): if it cannot be written.

    Example:
        export_folder(nlp, "exported")
        SentenceTransformer("exported").encode(["A man eats."])

    """
    pipe = find_sbert(nlp, name)
    pooling = pipe.model.pooling
    table = find_static_embedding(pipe.model)
    with atomic_folder(path) as folder:
        if table is not None:
            settings: SentenceTransformersConfig = table.settings
            prompts = Prompts()
            modules = _write_table(folder, table, pooling=pooling.pooling_name, name=pipe.name)
        else:
            encoder = find_transformer(pipe.name, pipe.model)
            settings = load(encoder).load()
            prompts = encoder.prompts
            _warn_of_losses(encoder, pipe.name, settings.max_length)
            modules = _write_transformer(folder, encoder, pooling.pooling_name)
        for layer in dense_layers(pooling, pipe.name):
            part = f"{len(modules)}_Dense"
            write_dense(folder / part, layer)
            modules.append(("Dense", part))
        if pooling.normalizes(settings):
            modules.append(("Normalize", f"{len(modules)}_Normalize"))
        _write_modules(folder, modules)
        width = pooling.truncate_dim or settings.truncate_dim
        _write_common_config(folder, settings, prompts, width)
        card = sentence_transformers_card(nlp, pipe.name, folder=Path(path).name)
        (folder / "README.md").write_text(card, encoding="utf8")


def _warn_of_losses(encoder: SpanTransformer, name: str, limit: int | None) -> None:
    """Warn of settings that a folder of sentence-transformers cannot hold."""
    message = OVERFLOW[encoder.options.overflow].export_warning
    if message:
        warn(message.format(name=name, limit=limit))
    precision = encoder.shim.precision
    if precision not in ("float32", REFERENCE):
        warn(Warnings.EXPORT_PRECISION.format(name=name, precision=precision))


def _write_transformer(folder: Path, encoder: SpanTransformer, pooling: str) -> _Modules:
    """Write the modules Transformer and Pooling."""
    settings = load(encoder).load()
    encoder.shim.save_pretrained(folder)
    _write_inputs(folder, encoder)
    limits = {"max_seq_length": settings.max_length, "do_lower_case": settings.lowercase}
    write_json(folder / "sentence_bert_config.json", limits)
    write_json(folder / "1_Pooling" / "config.json", _pooling_config(pooling, encoder))
    return [("Transformer", ""), ("Pooling", "1_Pooling")]


def _write_modules(folder: Path, modules: _Modules) -> None:
    """Write modules.json, which lists the modules in their order."""
    listed = [
        {
            "idx": number,
            "name": str(number),
            "path": part,
            "type": f"{folder_modules.PACKAGE}.models.{kind}",
        }
        for number, (kind, part) in enumerate(modules)
    ]
    write_json(folder / folder_modules.MODULES_FILE, listed)


def _write_common_config(
    folder: Path, settings: SentenceTransformersConfig, prompts: Prompts, width: int | None
) -> None:
    """Write what no module holds: prompts, the similarity and the truncated width."""
    default = prompts.default_name
    if default is None:
        default = settings.default_prompt_name
    content: dict[str, object] = {
        "__version__": {"spacy_sbert": version("spacy-sbert")},
        "prompts": {**settings.prompts, **prompts.own},
        "default_prompt_name": default or None,
        "similarity_fn_name": "cosine",
    }
    if width:
        content["truncate_dim"] = width
    write_json(folder / "config_sentence_transformers.json", content)


def _write_inputs(folder: Path, encoder: SpanTransformer) -> None:
    """Leave token types out of the tokenizer's output if the encoder would fail with them."""
    shim = encoder.shim
    names = list(shim.tokenizer.model_input_names)
    if "token_type_ids" in names and not takes_token_types(shim.network):
        names.remove("token_type_ids")
        file = folder / "tokenizer_config.json"
        write_json(file, {**folder_files.read_object(file), "model_input_names": names})


def _pooling_config(name: str, encoder: SpanTransformer) -> dict[str, object]:
    """Return the config.json of a Pooling module.

    RAISES (ValueError): if sentence-transformers has no such pooling.
    """
    modes = name.split("+")
    width = encoder.get_dim("nO")
    include = encoder.prompts.includes(load(encoder).load())
    if unknown := [mode for mode in modes if not POOLING[mode].mode]:
        raise ValueError(
            f"Cannot export pooling = '{name}': sentence-transformers has no '{unknown[0]}'. "
            f"Expected some of {', '.join(POOLING_FLAGS.values())}."
        )
    if modes == [mode for mode in POOLING_FLAGS.values() if mode in modes]:
        flags = {flag: mode in modes for flag, mode in POOLING_FLAGS.items()}
        return {"word_embedding_dimension": width, **flags, "include_prompt": include}
    # Flags have a fixed order; only recent versions read a list
    listed = [POOLING[mode].mode for mode in modes]
    return {"embedding_dimension": width, "pooling_mode": listed, "include_prompt": include}


def _write_table(folder: Path, table: StaticEmbedding, *, pooling: str, name: str) -> _Modules:
    """Write a module StaticEmbedding: its tokenizer and its table."""
    if pooling != "mean":
        raise ValueError(
            f"'{name}' pools its table with pooling = '{pooling}', and StaticEmbedding of "
            'sentence-transformers is always the mean: train with pooling = "mean".'
        )
    vectors = numpy.ascontiguousarray(table.ops.to_numpy(table.table()))
    (folder / TOKENIZER_FILE).write_text(table.attrs["tokenizer"], encoding="utf8")
    save_file({TABLE_NAMES[0]: vectors}, folder / WEIGHTS_FILE)
    return [("StaticEmbedding", "")]


@validated
def import_folder(
    source: str,
    *,
    lang: Name = "en",
    name: Name = "sbert",
    precision: Precision | None = None,
    encoder_only: bool = False,
) -> Language:
    """Make a pipeline that gives the vectors of a sentence encoder.

    No code of the folder is run. Its transformer or table, pooling, dense layers, normalisation,
    limit, lower-casing, prompts and truncation become the settings of an `sbert` pipe; a folder
    without modules is a transformer with mean pooling, as in sentence-transformers. The classifier
    of a SetFit folder becomes an `sbert_textcat` pipe, see read_setfit.

    source (str): a folder, or a name that is looked for as any encoder's is, see resolve.
    lang (str): the language whose tokenizer makes the Docs. name (str): of the pipe.
    precision (str): of its encoder, see spacy-sbert.SentenceEncoder.v1. By default "float32" where
        vectors are pooled states of unit length, without a classifier: rounding is far below 1e-6
        there; else "reference". A static encoder has none.
    encoder_only (bool): whether the classifier of a SetFit folder is left out. The vectors are then
        those of sentence-transformers, without SetFit's normalize_embeddings.
    RETURNS (Language): with the weights loaded.
    RAISES (OSError): if it is not found; (ValueError): if a module is unknown, or a file damaged.

    Example:
        nlp = import_folder("sentence-transformers/all-MiniLM-L6-v2")
        nlp("A man eats.").vector

    """
    folder = settings_folder(resolve(source))
    modules = _read_modules(folder)
    settings = sbert_config.read_settings(folder, source)
    head = None if encoder_only else read_setfit(folder)
    if head is not None and head.normalize:
        if settings.truncate_dim:
            raise ValueError(
                f"SetFit normalizes the vectors of {source} (normalize_embeddings) after they are "
                f"truncated (truncate_dim = {settings.truncate_dim}), which is not supported. "
                "Import the encoder alone, with --encoder-only."
            )
        settings = replace(settings, normalize=True)
    static = folder_modules.static_module(folder)
    dense = [read_dense(module.folder) for module in modules if module.kind == "Dense"]
    config: dict[str, object] = {
        "name": source,
        "normalize": settings.normalize,
        "truncate_dim": settings.truncate_dim,
    }
    table = None
    if static is None:
        has_layers = bool(dense) or head is not None
        config |= _transformer_block(settings, precision, has_layers=has_layers)
    else:
        table = _read_table(static, settings, precision)
        _, vectors = table
        config["@architectures"] = "spacy-sbert.StaticSentenceEncoder.v1"
        config["width"] = vectors.shape[1]
    if dense:
        config["dense"] = dense_block(dense)
    nlp = spacy.blank(lang)
    nlp.add_pipe("sbert", name=name, config={"model": config})
    model = find_sbert(nlp, name).model
    width = _load_encoder(name, model, table)
    load_dense(model, dense, model.pooling.pooled_width(width))
    if head is not None:
        nlp.add_pipe("sbert_textcat", config={"multi_label": head.multi_label})
        find_textcat(nlp).set_coefficients(head.labels, head.weights, head.bias)
    return nlp


def _transformer_block(
    settings: SentenceTransformersConfig, precision: str | None, *, has_layers: bool
) -> dict[str, object]:
    """Return the settings of an encoder for the modules Transformer and Pooling.

    has_layers: whether layers behind the pooling, dense or of SetFit, enlarge rounding.
    """
    if precision is None:
        precision = REFERENCE
        if settings.normalize and not has_layers:
            precision = "float32"
    return {
        "pooling": settings.pooling or "mean",
        "prompts": settings.prompts,
        "default_prompt_name": settings.default_prompt_name,
        "include_prompt": settings.include_prompt,
        "precision": precision,
    }


def _load_encoder(name: str, model: SentenceModel, table: tuple[str, numpy.ndarray] | None) -> int:
    """Load the weights of an encoder, or set its table, and return the width of its states.

    table: a tokenizer and its vectors; None if the encoder is a transformer.
    """
    if table is None:
        transformer = find_transformer(name, model)
        load(transformer)
        return transformer.get_dim("nO")
    static = cast(StaticEmbedding, find_static_embedding(model))
    static.set_table(*table)
    return static.get_dim("nO")


def _read_modules(folder: Path) -> list[folder_modules.Module]:
    """Return the modules of a folder. RAISES (ValueError): if one is unknown."""
    modules = folder_modules.read_modules(folder)
    for module in modules:
        if module.kind not in (*folder_modules.KNOWN_MODULES, "Dense"):
            refusal = folder_modules.foreign_module(folder, module)
            if refusal is not None:
                raise refusal
            raise ValueError(
                f"The folder {folder} has the module {module.type}, which is unknown here: "
                f"{folder_modules.EXPECTED_MODULES}, all of sentence_transformers. Code in a "
                "folder is never run."
            )
    return modules


def _read_table(
    module: Path, settings: SentenceTransformersConfig, precision: str | None
) -> tuple[str, numpy.ndarray]:
    """Read a StaticEmbedding module, see read_static.

    RAISES (ValueError): if a precision is given.
    """
    if precision is not None:
        raise ValueError(
            f"precision = '{precision}' is for transformers, and the folder holds a static "
            "encoder. Leave it out."
        )
    return read_static(module, settings)
