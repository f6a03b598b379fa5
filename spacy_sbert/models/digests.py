"""SHA-256 digests of all that the vectors of an encoder or a pipeline depend on, for resumed runs and caches.

The fingerprint of models/fingerprint.py is the quick one, of samples of the weights.
"""

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions, version
from typing import Any

import numpy
from spacy.language import Language
from thinc.api import Model
from thinc.util import to_numpy

from ..files.serialization import digest_of_stream
from .fingerprint import TOKENIZER_PROBE, config_state, layer_settings
from .pooling import SentencePooling
from .sbert_config import INT8
from .sentence_encoder import is_listener
from .transformer import SpanTransformer, load

_distributions = cache(packages_distributions)  # it reads the metadata of all packages: a second or more


def encoder_digest(encoder: SpanTransformer, pooling: SentencePooling) -> str:
    """Return the SHA-256 of all that the vectors of an encoder depend on, except texts and arithmetic.

    That is weights, tokenizer, configuration, and how states are pooled, truncated and normalized.

    encoder (SpanTransformer): it is loaded. pooling (SentencePooling): what makes vectors of its states.
    """
    load(encoder)
    digest = hashlib.sha256(json.dumps(_encoder_state(encoder, pooling), sort_keys=True).encode("utf8"))
    for name, weight in sorted(encoder.shim.network.state_dict().items()):
        weight = weight.detach().cpu()
        _add(digest, name, (weight.float() if weight.is_floating_point() else weight).numpy())
    for number, node in enumerate(pooling.walk()):
        for name in node.param_names:
            if node.has_param(name):
                _add(digest, f"{number} {name}", to_numpy(node.get_param(name)))
    return digest.hexdigest()


def layers_digest(models: list[Model], hidden: int, pooling: SentencePooling, tokenizer: Any = None) -> str:  # noqa: ANN401 (of spaCy)
    """Return the digest of an encoder that is not a transformer, see encoder_digest.

    models (list[Model]): the encoder, and the component that it listens to. hidden (int): the width of their states.
    tokenizer (Callable): nlp.tokenizer, if tokens are encoded; its vocab has their norms and static vectors.
    """
    digest = hashlib.sha256(json.dumps([_pooling_state(pooling), pooling.normalize, pooling.width(hidden)]).encode())
    parts = [] if tokenizer is None else [tokenizer.to_bytes(exclude=["vocab"]), tokenizer.vocab.lookups.to_bytes()]
    if tokenizer is not None and tokenizer.vocab.vectors.size:
        parts.append(tokenizer.vocab.vectors.to_bytes(exclude=["strings"]))
    layers = [] if pooling.dense is None else [pooling.dense]
    for part in (*parts, *(model.to_bytes() for model in (*models, *layers))):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def pipeline_digest(nlp: Language) -> str:
    """Return the SHA-256 of all that the vectors of a pipeline's Docs depend on, except texts and arithmetic.

    That is its tokenizer, static vectors and enabled components, with their settings, precisions and the versions of
    their packages.
    """
    return digest_of_stream(_pipeline_parts(nlp))


def _pipeline_parts(nlp: Language) -> Iterator[str | bytes]:
    settings = {name: nlp.config["components"].get(name) for name in nlp.pipe_names}
    yield json.dumps([nlp.lang, settings], sort_keys=True, default=str)
    yield nlp.tokenizer.to_bytes(exclude=["vocab"])  # type: ignore[union-attr]
    if nlp.vocab.vectors.size:
        yield nlp.vocab.vectors.to_bytes(exclude=["strings"])
    for name, pipe in nlp.pipeline:
        yield name
        yield from _pipe_parts(pipe)
    yield "".join([*_versions(nlp), *_precisions(nlp)])


def _pipe_parts(pipe: Any) -> Iterator[str | bytes]:  # noqa: ANN401 (a component of any class)
    model = getattr(pipe, "model", None)
    if isinstance(model, Model):
        nodes = [node.transformer if is_listener(node) else node for node in model.walk()]
        encoders = [node for node in nodes if isinstance(node, SpanTransformer)]
        for encoder in encoders:
            load(encoder)  # or its state and precision would change with use
        pooling = model.maybe_get_ref("pooling")
        if encoders and isinstance(pooling, SentencePooling):  # heads of the training do not change vectors
            yield encoder_digest(encoders[0], pooling)
            return
    if hasattr(pipe, "to_bytes"):
        yield pipe.to_bytes(exclude=["vocab"])


def _precisions(nlp: Language) -> list[str]:
    """Return the precisions of encoders other than float32: "auto" in the config does not tell."""
    models = [(name, getattr(pipe, "model", None)) for name, pipe in nlp.pipeline]
    nodes = [(name, node) for name, model in models if isinstance(model, Model) for node in model.walk()]
    precisions = [(name, precision_of(shim)) for name, node in nodes for shim in node.shims]
    return [f"{name} {precision};" for name, precision in precisions if precision != "float32"]


def precision_of(shim: Any) -> str:  # noqa: ANN401 (a shim of any class)
    """Return the precision of an encoder, and the digest of the ranges that "int8" rounds by, if there are any."""
    precision = getattr(shim, "precision", "float32")
    ranges = shim.calibration if precision == INT8 and shim.is_loaded else None
    return precision if ranges is None else f"{precision} by the ranges {ranges.digest()}"


def _versions(nlp: Language) -> list[str]:
    """Return the versions of the packages that the components come from, such as those of plugins."""
    modules = {type(pipe).__module__.partition(".")[0] for _, pipe in nlp.pipeline}
    packages = _distributions()
    names = {name for module in modules for name in packages.get(module, [])}
    return sorted(f"{name} {version(name)};" for name in names)


def _encoder_state(encoder: SpanTransformer, pooling: SentencePooling) -> dict[str, object]:
    """Return all that the vectors depend on beside weights, texts and arithmetic, for JSON."""
    settings = encoder.shim.load()
    return {
        "tokenizer": _tokenizer_state(encoder.shim.tokenizer),
        "lowercase": settings.lowercase,
        "max_length": settings.max_length,
        "overflow": encoder.overflow,
        "prompt": encoder.prompt(),
        "include_prompt": encoder.prompts.include,
        "config": config_state(encoder.shim.network.config),
        "pooling": _pooling_state(pooling),
        "normalize": pooling.normalizes(settings),
        "width": pooling.width(encoder.get_dim("nO"), settings),
    }


def _add(digest: Any, name: str, array: numpy.ndarray) -> None:  # noqa: ANN401 (of hashlib)
    digest.update(f"{name} {array.dtype.str} {array.shape};".encode())
    digest.update(numpy.ascontiguousarray(array).data)


def _tokenizer_state(tokenizer: Any) -> object:  # noqa: ANN401 (of Hugging Face)
    """Return what wordpieces depend on: vocabulary, normalizer, splitting and special tokens, but not truncation."""
    if tokenizer.is_fast:
        state = json.loads(tokenizer.backend_tokenizer.to_str())
        return {key: value for key, value in state.items() if key not in ("truncation", "padding")}
    texts = (TOKENIZER_PROBE, TOKENIZER_PROBE.lower(), TOKENIZER_PROBE.upper(), "")
    ids = [tokenizer.encode(text, verbose=False) for text in texts]
    return [type(tokenizer).__name__, sorted(tokenizer.get_vocab().items()), ids]


def _pooling_state(pooling: SentencePooling) -> list[object]:
    """Return the layers that pool and finish vectors, with their settings; the attrs of the pooling change with use."""
    state: list[object] = [pooling.pooling_name]
    for node in (node for layer in pooling.layers for node in layer.walk()):
        settings = sorted(layer_settings(node).items())
        state.append([node.name, {key: v for key, v in settings if v is None or isinstance(v, str | int | float)}])
    return state
