"""The digest of a pipeline: of all that the vectors of its Docs depend on."""

import json
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions, version

from spacy.language import Language
from thinc.api import Model

from ..files.checksum import digest_of_stream
from ..models.fingerprint import encoder_digest, precision_of
from ..models.transformer import SpanTransformer
from .sentence_model import SentenceModel

# Settings that came later, and the values that change nothing: older digests still hold
_NO_EFFECT = {"backend": "torch", "backend_config": {}}
# It reads the metadata of all packages: a second or more
_distributions = cache(packages_distributions)


def pipeline_digest(nlp: Language) -> str:
    """Return the SHA-256 of a pipeline: of all that the vectors of its Docs depend on.

    Texts and arithmetic are left out.

    Example:
        assert pipeline_digest(nlp) == pipeline_digest(spacy.load(folder))

    """
    return digest_of_stream(_pipeline_parts(nlp))


def _pipeline_parts(nlp: Language) -> Iterator[str | bytes]:
    components = nlp.config["components"]
    settings = {name: _effective(components.get(name)) for name in nlp.pipe_names}
    yield json.dumps([nlp.lang, settings], sort_keys=True, default=str)
    yield nlp.tokenizer.to_bytes(exclude=["vocab"])  # type: ignore[union-attr]
    if nlp.vocab.vectors.size:
        yield nlp.vocab.vectors.to_bytes(exclude=["strings"])
    for name, pipe in nlp.pipeline:
        yield name
        yield from _component_parts(pipe)
    yield from _package_versions(nlp)


def _effective(block: object) -> object:
    """Return the block of a config without the settings that change nothing."""
    if not isinstance(block, dict):
        return block
    return {
        key: _effective(value)
        for key, value in block.items()
        if key not in _NO_EFFECT or value != _NO_EFFECT[key]
    }


def _component_parts(pipe: object) -> Iterator[str | bytes]:
    model = getattr(pipe, "model", None)
    nodes = list(model.walk()) if isinstance(model, Model) else []
    for node in nodes:
        # Or its state and precision would change with use
        if isinstance(node, SpanTransformer):
            node.load()
    if isinstance(model, SentenceModel) and model.source.span_transformer is not None:
        transformer = model.source.span_transformer
        transformer.load()
        # Heads of the training do not change vectors
        yield encoder_digest(transformer, model.pooling)
    elif hasattr(pipe, "to_bytes"):
        yield pipe.to_bytes(exclude=["vocab"])
    # "auto" in the config does not tell the precision
    precisions = [precision_of(shim) for node in nodes for shim in node.shims]
    yield from (precision for precision in precisions if precision != "float32")


def _package_versions(nlp: Language) -> Iterator[str]:
    """Yield the packages whose code runs in the pipeline, with their versions."""
    modules = {type(pipe).__module__.partition(".")[0] for _, pipe in nlp.pipeline}
    packages = {package for module in modules for package in _distributions().get(module, [])}
    for package in sorted(packages):
        yield f"{package} {version(package)}"
