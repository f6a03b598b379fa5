"""Convert pipelines with the `transformer` of spacy-transformers to an `sbert_transformer`."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

import spacy
import srsly
import torch
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.util import registry, replace_model_node
from thinc.api import Model

from ..errors import missing_packages
from ..files.atomic import atomic_folder
from ..models.listener import TransformerListener
from ..models.private_attributes import is_a, is_installed
from ..models.sbert_config import TransformerConfig
from ..models.shared_transformer import TransformerTok2Vec
from ..models.shim import TransformerShim
from ..models.transformer import SpanTransformer, is_transformer
from ..pipeline.sbert import SentenceBert
from .annotations import annotate, compare

_STOCK = "spacy-transformers."
_LISTENER = f"{_STOCK}TransformerListener.v1"
_STOCK_MODELS = [
    *(f"{_STOCK}TransformerModel.v{n}" for n in (1, 2, 3)),
    *(f"{_STOCK}Tok2VecTransformer.v{n}" for n in (1, 2, 3)),
]
_OWN_MODELS = ["spacy-sbert.TransformerModel.v1", "spacy-sbert.Tok2VecTransformer.v1"]
_SENTENCE_SPANS = "spacy-sbert.sentence_spans.v1"
# Span getters of spacy-transformers, and the settings of ours that give the same spans
_GETTERS = {
    f"{_STOCK}doc_spans.v1": {"@span_getters": _SENTENCE_SPANS, "unit": "doc"},
    f"{_STOCK}sent_spans.v1": {"@span_getters": _SENTENCE_SPANS, "unit": "sent"},
    f"{_STOCK}strided_spans.v1": {"@span_getters": "spacy-sbert.strided_spans.v1"},
}
_NO_ANNOTATIONS = f"{_STOCK}null_annotation_setter.v1"
_ONLY_IN_TRF_DATA = ("return_dict", "output_attentions", "output_hidden_states")


def convert_transformer(pipeline: str | Path, path: str | Path) -> None:
    """Save a pipeline of spacy-transformers as one with an `sbert_transformer`.

    Components keep their names and weights, and spacy-transformers is no longer needed. Before the
    folder gets its name, the pipeline in it is loaded, and must annotate a few texts as the old one
    does.

    pipeline (str): a folder or an installed package.
    path (Path): of the new pipeline, which must not exist yet; it is written whole or not at all.
    RAISES (ImportError): without spacy-transformers. (ValueError): naming what cannot be converted,
        or what differs. (FileExistsError): if something stands at the path. (OSError): if it cannot
        be read or written.

    Example:
        convert_transformer("en_core_web_trf", "converted")
        spacy.load("converted")

    """
    if not is_installed():
        raise ImportError(
            "Reading the pipeline needs the package spacy-transformers, which is not installed. "
            'Install it: pip install "spacy-sbert[transformers]". The converted pipeline loads '
            "without it."
        )
    with missing_packages():
        nlp = spacy.load(pipeline)
    with atomic_folder(path) as folder:
        _check_initialized(nlp)
        expected = annotate(nlp)
        _convert(nlp)
        nlp.to_disk(folder)
        compare(expected, annotate(spacy.load(folder)))


def _nodes(pipe: object) -> list[Model]:
    """Return the layers of a component; none of one without a model."""
    model = getattr(pipe, "model", None)
    if not isinstance(model, Model):
        return []
    return list(model.walk())


def _check_initialized(nlp: Language) -> None:
    """Check that the transformers of spacy-transformers have weights.

    Ours load theirs when they are needed.
    """
    for name, pipe in nlp.components:
        for node in _nodes(pipe):
            is_stock = is_a(node, "TransformerModel") and not isinstance(node, SpanTransformer)
            if is_stock and cast(Any, node).transformer is None:
                raise ValueError(
                    f"The transformer of the component '{name}' has no weights. Call "
                    "nlp.initialize() or train the pipeline, and save it again."
                )


def _convert(nlp: Language) -> None:
    """Convert a pipeline in place. RAISES (ValueError): naming what cannot be converted."""
    transformers = [name for name, pipe in nlp.components if is_a(pipe, "Transformer")]
    for name in transformers:
        _check_doc_tensor(nlp, name)
    normalize = _normalizes(nlp)
    blocks = nlp.config.interpolate()["components"]
    is_converted = False
    for name, pipe in nlp.components:
        layers: list[dict[str, Any]] = []
        blocks[name] = _convert_block(blocks[name], layers)
        is_converted = is_converted or bool(layers)
        if name in transformers:
            _drop_annotation_setter(name, blocks[name])
        elif isinstance(model := getattr(pipe, "model", None), Model):
            _convert_layers(name, model, layers, normalize=normalize)
            _set_config(nlp, name, blocks[name])
        _check_functions(name, blocks[name])
    if not is_converted:
        raise ValueError(
            "The pipeline has no transformer of spacy-transformers: its components are "
            f"{', '.join(nlp.component_names) or 'none'}. Give one that has."
        )
    for name in transformers:
        _replace_transformer(nlp, name, blocks[name]["model"], normalize=normalize)
    _drop_requirement(nlp)


def _set_config(nlp: Language, name: str, block: dict[str, Any]) -> None:
    """Set the settings of a component to those of a block."""
    settings = {key: value for key, value in block.items() if key != "factory"}
    nlp.get_pipe_config(name).update(settings)


def _drop_requirement(nlp: Language) -> None:
    """Leave spacy-transformers out of what an installed package of the pipeline needs."""
    requirements = nlp.meta.get("requirements", [])
    nlp.meta["requirements"] = [
        one for one in requirements if not one.startswith("spacy-transformers")
    ]


def _refused(name: str, what: str) -> ValueError:
    return ValueError(
        f"Cannot convert {what} of the component '{name}': an 'sbert_transformer' has nothing like "
        "it. Keep the pipeline as it is, with spacy-transformers, or remove it there first."
    )


def _check_doc_tensor(nlp: Language, first: str) -> None:
    """Check that no component behind a transformer reads or sets `doc.tensor`, as ours does."""
    behind = nlp.component_names[nlp.component_names.index(first) + 1 :]
    for name in behind:
        pipe = nlp.get_pipe(name)
        listens = any(isinstance(node, Tok2VecListener) for node in _nodes(pipe))
        if listens or isinstance(pipe, Tok2Vec):
            raise ValueError(
                f"The component '{name}' behind '{first}' reads or sets doc.tensor, which an "
                "'sbert_transformer' sets, too. Move it, and the tok2vec that it listens to, "
                "before the transformer."
            )


def _normalizes(nlp: Language) -> bool:
    """Return whether an `sbert` pipe with normalize = "auto" has vectors of unit length."""
    for _, pipe in nlp.components:
        if isinstance(pipe, SentenceBert):
            pooling = pipe.model.pooling
            if pooling.normalize is None and pooling.attrs["upstream_normalize"]:
                return True
    return False


# Configs


def _convert_block(block: Any, layers: list[dict[str, Any]]) -> Any:
    """Return a block of a config with the functions of this package.

    layers: the converted blocks of listeners and transformers are appended.
    """
    if not isinstance(block, Mapping):
        return block
    block = {key: _convert_block(value, layers) for key, value in block.items()}
    architecture = block.get("@architectures")
    if architecture == _LISTENER:
        block["@architectures"] = "spacy-sbert.TransformerListener.v1"
        layers.append(block)
    elif architecture in (*_STOCK_MODELS, *_OWN_MODELS):
        block["@architectures"] = "spacy-sbert.TransformerTok2Vec.v1"
        block["default_prompt_name"] = ""
        if architecture in _STOCK_MODELS:
            settings = block.get("transformer_config", {})
            kept = {key: value for key, value in settings.items() if key not in _ONLY_IN_TRF_DATA}
            block["transformer_config"] = kept
            block["overflow"] = "cut"
        layers.append(block)
    return block | _GETTERS.get(block.get("@span_getters", ""), {})


def _drop_annotation_setter(name: str, block: dict[str, Any]) -> None:
    """Remove a setting that an `sbert_transformer` does not have.

    RAISES (ValueError): if it annotates Docs.
    """
    setter = block.pop("set_extra_annotations")["@annotation_setters"]
    if setter != _NO_ANNOTATIONS:
        raise _refused(name, f"set_extra_annotations = '{setter}'")


def _check_functions(name: str, block: dict[str, Any]) -> None:
    """Raise ValueError if functions of spacy-transformers are left in a component's config."""
    for function in _functions(block):
        if function.startswith(_STOCK):
            raise _refused(name, function)


def _functions(block: Any) -> Iterator[str]:
    """Yield the names of the registered functions in a block of a config."""
    if not isinstance(block, Mapping):
        return
    for key, value in block.items():
        if key.startswith("@"):
            yield str(value)
        yield from _functions(value)


# Models


def _replace_transformer(
    nlp: Language, name: str, block: dict[str, Any], *, normalize: bool
) -> None:
    """Replace a `transformer` by an `sbert_transformer` with its weights.

    block: the config of its model.
    """
    state = _state_of(name, cast(Any, nlp.get_pipe(name)).model, block, normalize=normalize)
    is_disabled = name in nlp.disabled
    pipe: Any = nlp.replace_pipe(name, "sbert_transformer", config={"model": block})
    pipe.model.transformer.shim.from_bytes(state)
    pipe.initialize(list, nlp=nlp)
    if is_disabled:
        nlp.disable_pipe(name)


def _convert_layers(
    name: str, model: Model, blocks: list[dict[str, Any]], *, normalize: bool
) -> None:
    """Replace the listeners in the model of a component, and a copy of the transformer.

    A copy takes the place of a listener where a component was made independent.

    blocks (list[dict]): the configs of the new layers. RAISES (ValueError): if the model has other
        layers than these.
    """
    n_chains = 0
    chain = _find_chain(model)
    while chain is not None and chain is not model:
        replace_model_node(model, chain, _convert_chain(name, chain, blocks, normalize=normalize))
        n_chains += 1
        chain = _find_chain(model)
    if chain is not None or n_chains != len(blocks):
        raise _refused(name, "layers that read the transformer, and are not in the config,")


def _find_chain(model: Model) -> Model | None:
    """Return the first layer that reads a transformer by classes of spacy-transformers.

    None if there is none.
    """
    ends = ("trfs2arrays", "split-trf-batch")
    for node in model.walk():
        if node.layers and node.layers[-1].name in ends and _source_of(node) is not None:
            return node
    return None


def _source_of(chain: Model) -> Model | None:
    """Return the listener or the transformer that a chain begins with."""
    for node in chain.walk():
        if node.name == "transformer-listener" or is_transformer(node):
            return node
    return None


def _convert_chain(
    name: str, chain: Model, blocks: list[dict[str, Any]], *, normalize: bool
) -> Model:
    """Return the layer of this package that takes the place of a chain.

    blocks: see _convert_layers.
    """
    source: Any = _source_of(chain)
    end = chain.layers[-1]
    if is_transformer(source):
        return _convert_copy(name, source, end, blocks, normalize=normalize)
    listener = TransformerListener(source.upstream_name, end.layers[0], end.attrs["grad_factor"])
    if source.has_dim("nO"):
        listener.set_dim("nO", source.get_dim("nO"))
    return listener


def _convert_copy(
    name: str, source: Model, end: Model, blocks: list[dict[str, Any]], *, normalize: bool
) -> TransformerTok2Vec:
    """Return the layer that takes the place of a transformer and of the end of its chain."""
    copies = [block for block in blocks if "name" in block]
    if len(copies) != 1:
        raise _refused(name, f"{len(copies)} copies of a transformer (expected one)")
    tok2vec: TransformerTok2Vec = registry.resolve({"model": copies[0]})["model"]
    tok2vec.transformer.shim.from_bytes(_state_of(name, source, copies[0], normalize=normalize))
    if end.layers:
        tok2vec.layers[1] = end.layers[0]
        tok2vec.grad_factor = end.attrs["grad_factor"]
    tok2vec.initialize()
    return tok2vec


def _state_of(name: str, model: Model, block: dict[str, Any], *, normalize: bool) -> bytes:
    """Return the weights, tokenizer and settings of a transformer, as this package saves them.

    name (str): of the component. block (dict): the new config of the model.
    """
    if isinstance(model, SpanTransformer):
        return model.shim.to_bytes()
    stock: Any = model
    network = stock.transformer
    if network.dtype != torch.float32:
        raise _refused(name, f"the precision of the weights ({network.dtype})")
    if stock.tokenizer.padding_side == "left":
        raise _refused(name, 'padding_side = "left", by which vectors depend on the batch,')
    shim_state = srsly.msgpack_loads(stock.layers[0].shims[0].to_bytes())
    files = shim_state["tokenizer"]
    del files["kwargs"]
    names = {field.name for field in fields(TransformerConfig)}
    options = {key: value for key, value in block.items() if key in names}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        network.save_pretrained(folder, safe_serialization=True)
        for file, content in files.items():
            (Path(folder) / file).write_bytes(content)
        shim = TransformerShim(folder, TransformerConfig(**options))
        shim.settings = replace(shim.load(), name=block["name"], normalize=normalize)
        return shim.to_bytes()
