"""What vectors depend on, beside texts and arithmetic: the one digest of an encoder, and that of a pipeline.

It changes when training or a setting changes vectors, not with use, saving or another place on the disk.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from importlib.metadata import packages_distributions, version
from typing import Any, Protocol

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.util import to_numpy

from ..encoder.listener import SentenceListener
from ..encoder.options import INT8
from ..encoder.transformer import RowTransformer, load
from ..files.digests import digest_of_stream
from .sentence_pooling import SentencePooling

# Of a transformer's configuration: what saving, a new version or training changes, and vectors do not depend on.
IGNORED = {"_name_or_path", "architectures", "transformers_version", "dtype", "torch_dtype", "use_cache", "return_dict"}
IGNORED |= {"id2label", "label2id", "problem_type", "initializer_range", "gradient_checkpointing", "output_attentions"}
IGNORED |= {"output_hidden_states", "_attn_implementation", "_attn_implementation_autoset"}
# What a slow tokenizer does to it tells how it normalises and splits: it has no one text that says so.
PROBE = "The Quick brown Fox's ÉCOLE Ångström ﬁne ½ 中文かな\tIt is 3,141.59 (e.g.) don't\u200b \u00a0_[MASK] <mask> İ"


class Tokenizer(Protocol):
    """The tokenizer of a pipeline."""

    vocab: Vocab

    def __call__(self, text: str) -> Doc: ...

    def to_bytes(self, *, exclude: list[str]) -> bytes: ...


def encoder_digest(encoder: RowTransformer, pooling: SentencePooling) -> str:
    """The SHA-256 of all that the vectors of an encoder depend on but texts and arithmetic: weights, tokenizer,
    configuration, and how states are pooled, cut and normalised.

    encoder (RowTransformer): it is loaded. pooling (SentencePooling): what makes vectors of its states.
    """
    load(encoder)
    found = hashlib.sha256(json.dumps(encoder_state(encoder, pooling), sort_keys=True).encode("utf8"))
    for name, weight in sorted(encoder.shim.network.state_dict().items()):
        weight = weight.detach().cpu()
        _add(found.update, name, (weight.float() if weight.is_floating_point() else weight).numpy())
    for number, node in enumerate(pooling.walk()):
        for name in node.param_names:
            if node.has_param(name):
                _add(found.update, f"{number} {name}", to_numpy(node.get_param(name)))
    return found.hexdigest()


def layers_digest(
    models: list[Model], hidden: int, pooling: SentencePooling, tokenizer: Tokenizer | None = None
) -> str:
    """The same of an encoder that is no transformer.

    models (list[Model]): what encodes, and what it hears. hidden (int): the width of their states.
    pooling: what makes vectors of these.
    tokenizer (Tokenizer): of the pipeline, with whose vocab tokens have norms and static vectors; None if the units are
        looked up by themselves.
    """
    width = pooling.width(hidden)
    found = hashlib.sha256(json.dumps([pooling_state(pooling), pooling.normalize, width]).encode())
    layers = [] if pooling.dense is None else [pooling.dense]
    for part in (*_token_parts(tokenizer), *(model.to_bytes() for model in (*models, *layers))):
        found.update(hashlib.sha256(part).digest())
    return found.hexdigest()


def _token_parts(tokenizer: Tokenizer | None) -> Iterator[bytes]:
    if tokenizer is not None:
        vocab = tokenizer.vocab
        yield tokenizer.to_bytes(exclude=["vocab"])
        yield vocab.lookups.to_bytes()
        if vocab.vectors.size:
            yield vocab.vectors.to_bytes(exclude=["strings"])


def pipeline_digest(nlp: Language) -> str:
    """The SHA-256 of all that the vectors of a pipeline's Docs depend on but texts and arithmetic: its tokenizer,
    static vectors and enabled components, with their settings, precisions and the versions of their packages."""
    return digest_of_stream(_pipeline_parts(nlp))


def _pipeline_parts(nlp: Language) -> Iterator[str | bytes]:
    settings = {name: nlp.config["components"].get(name) for name in nlp.pipe_names}
    yield json.dumps([nlp.lang, settings], sort_keys=True, default=str)
    yield nlp.tokenizer.to_bytes(exclude=["vocab"])  # type: ignore[union-attr]
    if nlp.vocab.vectors.size:
        yield nlp.vocab.vectors.to_bytes(exclude=["strings"])
    for name, pipe in nlp.pipeline:
        yield name
        yield from _pipe_parts(getattr(pipe, "model", None), pipe)
    yield "".join([*_versions(nlp), *_precisions(nlp)])


def _pipe_parts(model: object, pipe: object) -> Iterator[str | bytes]:
    if isinstance(model, Model):
        nodes = [node.transformer if isinstance(node, SentenceListener) else node for node in model.walk()]
        encoders = [node for node in nodes if isinstance(node, RowTransformer)]
        for encoder in encoders:
            load(encoder)  # or its state and precision would change with use
        pooling = model.maybe_get_ref("pooling")
        if encoders and isinstance(pooling, SentencePooling):  # heads of the training do not change vectors
            yield encoder_digest(encoders[0], pooling)
            return
    if hasattr(pipe, "to_bytes"):
        yield pipe.to_bytes(exclude=["vocab"])


def _precisions(nlp: Language) -> list[str]:
    """The precisions that encoders work in, where that is not float32: "auto" in the config does not tell."""
    models = [(name, getattr(pipe, "model", None)) for name, pipe in nlp.pipeline]
    nodes = [(name, node) for name, model in models if isinstance(model, Model) for node in model.walk()]
    found = [(name, precision_of(shim)) for name, node in nodes for shim in node.shims]
    return [f"{name} {precision};" for name, precision in found if precision != "float32"]


def precision_of(shim: Any) -> str:
    """The precision that an encoder works in, and the digest of the ranges that "int8" rounds by, if there are any."""
    precision = getattr(shim, "precision", "float32")
    ranges = shim.calibration if precision == INT8 and shim.is_loaded else None
    return precision if ranges is None else f"{precision} by the ranges {ranges.digest()}"


def _versions(nlp: Language) -> list[str]:
    """The versions of the packages that the components come from, such as those of plugins."""
    names = {type(pipe).__module__.partition(".")[0] for _, pipe in nlp.pipeline}
    packages = packages_distributions()
    found = {name for module in names for name in packages.get(module, [])}
    return sorted(f"{name} {version(name)};" for name in found)


def encoder_state(encoder: RowTransformer, pooling: SentencePooling) -> dict[str, object]:
    """All that the vectors of an encoder depend on beside weights, texts and arithmetic, as JSON holds it.

    encoder (RowTransformer): it is loaded. pooling (SentencePooling): what makes vectors of its states.
    """
    settings = encoder.shim.load()
    return {
        "tokenizer": tokenizer_state(encoder.shim.tokenizer),
        "lowercase": settings.lowercase,
        "max_length": settings.max_length,
        "overflow": encoder.overflow,
        "prompt": encoder.prompt(),
        "include_prompt": encoder.prompts.include,
        "config": config_state(encoder.shim.network.config),
        "pooling": pooling_state(pooling),
        "normalize": pooling.normalizes(settings),
        "width": pooling.width(encoder.get_dim("nO"), settings),
    }


def _add(update: Callable[[bytes | memoryview], object], name: str, array: numpy.ndarray) -> None:
    update(f"{name} {array.dtype.str} {array.shape};".encode())
    update(numpy.ascontiguousarray(array).data)


def tokenizer_state(tokenizer: Any) -> object:
    """What wordpieces depend on: vocabulary, normaliser, splitting and special tokens, but not how rows are cut."""
    if tokenizer.is_fast:
        said = json.loads(tokenizer.backend_tokenizer.to_str())
        return {key: value for key, value in said.items() if key not in ("truncation", "padding")}
    ids = [tokenizer.encode(text, verbose=False) for text in (PROBE, PROBE.lower(), PROBE.upper(), "")]
    return [type(tokenizer).__name__, sorted(tokenizer.get_vocab().items()), ids]


def config_state(config: Any) -> dict[str, object]:
    """What of a transformer's configuration is not as always, without what vectors do not depend on."""
    said = json.loads(config.to_json_string(use_diff=True))
    return {key: value for key, value in said.items() if key not in IGNORED and "drop" not in key}


def pooling_state(pooling: SentencePooling) -> list[object]:
    """The layers that pool and finish vectors, with what each was made with."""
    kept: list[object] = [pooling.pooling_name]  # the attrs of the pooling itself change with use
    for layer in pooling.layers:
        for node in layer.walk():
            made_with = {**getattr(node._func, "keywords", {}), **node.attrs}
            kept.append([node.name, {key: value for key, value in sorted(made_with.items()) if _is_plain(value)}])
    return kept


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)
