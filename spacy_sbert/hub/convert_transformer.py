"""Convert pipelines with the `transformer` of spacy-transformers to an `sbert_transformer`."""

import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy
import spacy
import srsly
import torch
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from spacy.util import registry, replace_model_node
from thinc.api import Model, reduce_mean
from thinc.util import to_numpy

from ..errors import missing_packages
from ..files.atomic import atomic_folder
from ..models.listener import TransformerListener
from ..models.pooling import SentencePooling
from ..models.private_attributes import is_a, is_installed
from ..models.sbert_config import TransformerConfig
from ..models.shared_transformer import TransformerTok2Vec
from ..models.shim import TransformerShim
from ..models.tokenization import PROBES
from ..models.transformer import SpanTransformer, is_transformer
from ..pipeline.sbert import SentenceBert

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
_TEXTS = (
    *PROBES,
    "Angela Merkel met Tim Cook in Berlin on Monday.",
    # Ends with a space
    "He left. She stayed, and bought 3 apples for $5. ",
    # Longer than most encoders' limit
    "one two three. " * 250 + "four",
)
# Share of the largest number by which others may differ: other kernels add up in another order
_TOLERANCE = 1e-5


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
        expected = _annotate(nlp)
        _convert(nlp)
        nlp.to_disk(folder)
        _compare(expected, _annotate(spacy.load(folder)))


def _nodes(pipe: object) -> list[Model]:
    """Return the layers of a component; none of one without a model."""
    model = getattr(pipe, "model", None)
    return list(model.walk()) if isinstance(model, Model) else []


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
    names = [name for name, pipe in nlp.components if is_a(pipe, "Transformer")]
    for name in names:
        _check_doc_tensor(nlp, name)
    blocks = nlp.config.interpolate()["components"]
    normalize = _normalizes(nlp)
    n_converted = 0
    for name, pipe in nlp.components:
        layers: list[dict[str, Any]] = []
        block = _convert_block(blocks[name], layers)
        blocks[name] = block
        n_converted += len(layers)
        if name in names:
            setter = block.pop("set_extra_annotations")["@annotation_setters"]
            if setter != _NO_ANNOTATIONS:
                raise _refused(name, f"set_extra_annotations = '{setter}'")
        elif isinstance(model := getattr(pipe, "model", None), Model):
            _convert_layers(name, model, layers, normalize=normalize)
            settings = {key: value for key, value in block.items() if key != "factory"}
            nlp.get_pipe_config(name).update(settings)
        for function in _functions(block):
            if function.startswith(_STOCK):
                raise _refused(name, function)
    if not n_converted:
        raise ValueError(
            "The pipeline has no transformer of spacy-transformers: its components are "
            f"{', '.join(nlp.component_names) or 'none'}. Give one that has."
        )
    for name in names:
        _replace_transformer(nlp, name, blocks[name]["model"], normalize=normalize)
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
            pooling = cast(SentencePooling, pipe.model.get_ref("pooling"))
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


def _functions(block: Any) -> Iterator[str]:
    """Yield the names of the registered functions in a block of a config."""
    for key, value in block.items() if isinstance(block, Mapping) else ():
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
    chains = []
    while (chain := _find_chain(model)) is not None and chain is not model:
        replace_model_node(model, chain, _convert_chain(name, chain, blocks, normalize=normalize))
        chains.append(chain)
    if chain is not None or len(chains) != len(blocks):
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
    if not is_transformer(source):
        listener = TransformerListener(
            source.upstream_name, end.layers[0], end.attrs["grad_factor"]
        )
        if source.has_dim("nO"):
            listener.set_dim("nO", source.get_dim("nO"))
        return listener
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
    files = srsly.msgpack_loads(stock.layers[0].shims[0].to_bytes())["tokenizer"]
    del files["kwargs"]
    options = {
        field.name: block[field.name] for field in fields(TransformerConfig) if field.name in block
    }
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        network.save_pretrained(folder, safe_serialization=True)
        for file, content in files.items():
            (Path(folder) / file).write_bytes(content)
        shim = TransformerShim(folder, TransformerConfig(**options))
        shim.settings = replace(shim.load(), name=block["name"], normalize=normalize)
        return shim.to_bytes()


# Comparing


def _annotate(nlp: Language) -> "dict[str, _Annotations]":
    """Return what a pipeline annotates texts with, by text.

    Texts that make it fail are left out: some layers take no white space.
    """
    found = {}
    for text in _TEXTS:
        try:
            # The texts are not the user's
            with warnings.catch_warnings(action="ignore"):
                doc = nlp(text)
        except Exception as error:
            # Components may raise anything
            failure = error
        else:
            found[text] = _Annotations.of(nlp, doc)
    if not found:
        raise ValueError(
            f"The pipeline annotates no text ({type(failure).__name__}: {failure})."
        ) from failure
    return found


def _compare(expected: "dict[str, _Annotations]", found: "dict[str, _Annotations]") -> None:
    """Raise ValueError if a text has other annotations than expected."""
    for text, annotations in expected.items():
        difference: str | None = "annotations"
        if text in found:
            difference = annotations.difference(found[text])
        if difference is not None:
            raise ValueError(
                f"The converted pipeline gives other {difference} for the text {text[:50]!r}. "
                "Nothing was saved; keep the pipeline as it is, with spacy-transformers."
            )


class _Annotations(NamedTuple):
    """What a pipeline annotated a Doc with: labels must be equal, numbers up to rounding."""

    labels: dict[str, Any]
    numbers: dict[str, numpy.ndarray]

    @classmethod
    def of(cls, nlp: Language, doc: Doc) -> "_Annotations":
        """Return the annotations of a Doc that a pipeline processed."""
        labels = doc.to_json()
        cats = labels.pop("cats", {})
        labels["names of categories"] = list(cats)
        numbers = {
            "vectors of tokens": _token_vectors(doc),
            "categories": numpy.array(list(cats.values())),
        }
        for key, group in doc.spans.items():
            numbers[f"scores in doc.spans['{key}']"] = numpy.asarray(group.attrs.get("scores", ()))
        for name, pipe in nlp.pipeline:
            if isinstance(pipe, SentenceBert):
                numbers[f"vectors of '{name}'"] = pipe.vector(doc)
        return cls(labels, numbers)

    def difference(self, other: "_Annotations") -> str | None:
        """Return the name of what is different in others; None if nothing is."""
        for name, numbers in self.numbers.items():
            others = other.numbers.get(name)
            if others is None or others.shape != numbers.shape:
                return name
            tolerance = _TOLERANCE * numpy.abs(numbers).max(initial=0)
            if not numpy.allclose(others, numbers, rtol=0, atol=tolerance):
                return name
        for name, value in self.labels.items():
            if other.labels.get(name) != value:
                return name
        return None


def _token_vectors(doc: Doc) -> numpy.ndarray:
    """Return the mean of each token's wordpieces, of a transformer of either package."""
    data = doc._.get("trf_data") if doc.has_extension("trf_data") else None
    if data is None:
        return cast(numpy.ndarray, to_numpy(doc.tensor))
    from spacy_transformers.layers import trfs2arrays  # noqa: PLC0415 (need not be installed)

    return cast(numpy.ndarray, to_numpy(trfs2arrays(reduce_mean(), 1.0).predict([data])[0]))
