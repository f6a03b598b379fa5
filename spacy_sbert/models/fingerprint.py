"""The fingerprint of an encoder: a few hexadecimal digits, of samples of its weights, that records on Docs carry.

Vectors with another fingerprint cannot be compared. The full digest is in models/digests.py.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy
import torch
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.util import get_array_module, to_numpy

from .pooling import SentencePooling
from .private_attributes import upstream_name, version_of
from .shim import TransformerShim
from .span_batch import Array
from .tokenization import lower_case
from .transformer import SpanTransformer, is_transformer

# Settings of a transformer that saving, a new version or training changes, and that vectors do not depend on.
_IGNORED = {
    *("_name_or_path", "architectures", "transformers_version", "dtype", "torch_dtype", "use_cache", "return_dict"),
    *("id2label", "label2id", "problem_type", "initializer_range", "gradient_checkpointing", "output_attentions"),
    *("output_hidden_states", "_attn_implementation", "_attn_implementation_autoset"),
}
# Its wordpieces show how a tokenizer normalizes and splits.
TOKENIZER_PROBE = (
    "The Quick brown Fox's ÉCOLE Ångström ﬁne ½ 中文かな\tIt is 3,141.59 (e.g.) don't\u200b \u00a0_[MASK] <mask> İ"
)
_LENGTH = 12  # hexadecimal digits
_N_READ = 2**13  # numbers of a tensor of PyTorch, at most
_N_TOKENS = 512  # of a vocabulary
_N_WATCHED = 8  # parameters of another package's network, at most
_STATIC_VECTORS = ("static_vectors", "word_vectors")  # layers that read those of the vocab


def config_state(config: Any) -> dict[str, object]:  # noqa: ANN401 (of Hugging Face)
    """Return the settings of a transformer that differ from its defaults, and that vectors depend on."""
    state = json.loads(config.to_json_string(use_diff=True))
    return {key: value for key, value in state.items() if key not in _IGNORED and "drop" not in key}


def layer_settings(node: Model) -> dict[str, Any]:
    """Return the attributes of a layer, and the keyword arguments that were bound to its forward function."""
    return {**getattr(node._func, "keywords", {}), **node.attrs}  # noqa: SLF001 (Thinc has no public name for it)


def combined(*parts: str | bytes) -> str:
    """Return the fingerprint of what several parts make together."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part.encode("utf8") if isinstance(part, str) else part).digest())
    return digest.hexdigest()[:_LENGTH]


class Fingerprint:
    """The fingerprint of one encoder, computed again when its weights have changed. A copy starts without it."""

    def __init__(self) -> None:
        self._known: tuple[list[object], list[object], str] | None = None  # see _watched

    def __reduce__(self) -> tuple[type, tuple]:
        return type(self), ()

    def of(
        self,
        models: Sequence[Model],
        pooling: SentencePooling,
        vocab: Vocab,
        *,
        upstream: Sequence[Model] = (),
        refresh: bool = False,
    ) -> str:
        """Return the fingerprint of an encoder whose weights are loaded.

        models (Sequence[Model]): what makes the states: the encoder, and the component that it listens to.
        pooling (SentencePooling): what makes vectors of them. vocab (Vocab): of the Docs, for its static vectors.
        upstream (Sequence[Model]): those of the models that other components train. Call forget when the others are
            trained: on a GPU their weights are not read.
        refresh (bool): whether a transformer must look for changes of its weights now; after encoding it has.
        """
        for shim in _row_shims(models) if refresh else ():
            shim.generation(refresh=True)
        objects, numbers = _watched([*models, *([] if pooling.dense is None else [pooling.dense])], upstream, vocab)
        known = self._known
        if known is None or numbers != known[1] or [*map(id, objects)] != [*map(id, known[0])]:
            known = self._known = objects, numbers, _digest(models, pooling, vocab)
        return known[2]

    def forget(self) -> None:
        """Compute it again when it is asked for next: weights have changed."""
        self._known = None


def _watched(parts: list[Model], upstream: Sequence[Model], vocab: Vocab) -> tuple[list[object], list[object]]:
    """Return the objects that are others, and the numbers that differ, when the weights of models have changed.

    An optimizer of Thinc changes arrays in place. Of a GPU only upstream weights are read: that waits for the device.
    """
    objects: list[object] = [*parts]
    read: list[Array] = []
    for part in parts:
        for node in part.walk():
            weights = [node.get_param(name) for name in node.param_names if node.has_param(name)]
            for shim in node.shims:
                if isinstance(shim, TransformerShim):
                    objects.append(shim.generation())
                else:
                    parameters = list(shim._model.parameters())  # noqa: SLF001 (Thinc has no public name for it)
                    weights += parameters[:: len(parameters) // _N_WATCHED + 1]
            objects += weights
            read += [array for array in weights if any(part is each for each in upstream) or not _on_gpu(array)]
    if _reads_static(parts):
        objects.append(vocab.vectors.data)
        read.append(vocab.vectors.data)
    return objects, _samples(read)


def _on_gpu(array: Array) -> bool:
    return array.device.type != "cpu" if isinstance(array, torch.Tensor) else not isinstance(array, numpy.ndarray)


def _samples(arrays: list[Array]) -> list[object]:
    """Return one number of each array, those of a GPU together; of tensors also where they are, and a version."""
    samples: list[object] = []
    groups: dict[tuple[type, str], list[Any]] = {}
    for array in arrays:
        if isinstance(array, torch.Tensor):
            samples.append((array.data_ptr(), version_of(array)))
            array = array.detach().float()
        flat = array.reshape(-1)
        middle = len(flat) // 2
        groups.setdefault((type(flat), str(flat.device)), []).append(flat[middle : middle + 1])
    for (kind, _), numbers in groups.items():
        if issubclass(kind, torch.Tensor):
            samples += torch.cat(numbers).tolist()
        else:
            samples += to_numpy(get_array_module(numbers[0]).concatenate(numbers)).tolist()
    return samples


def _row_shims(models: Iterable[Model]) -> list[TransformerShim]:
    return [node.shim for model in models for node in model.walk() if isinstance(node, SpanTransformer)]


def _reads_static(models: Iterable[Model]) -> bool:
    return any(node.name in _STATIC_VECTORS for model in models for node in model.walk())


def _digest(models: Sequence[Model], pooling: SentencePooling, vocab: Vocab) -> str:
    parts = [json.dumps([pooling.pooling_name, _width(models, pooling)]).encode(), *_model_parts(models)]
    parts += _layer_parts([] if pooling.dense is None else [pooling.dense])
    parts += [_sums([("vectors", vocab.vectors.data)])] if _reads_static(models) else []
    return combined(*parts)


def _width(models: Sequence[Model], pooling: SentencePooling) -> int:
    """Return the width of the vectors, or to which they are truncated if that of the states is not known."""
    settings = next((shim.settings for shim in _row_shims(models)), None)
    nodes = [node for model in models for node in (model, *model.layers)]
    hidden = next((node.get_dim("nO") for node in nodes if node.has_dim("nO")), None)
    return pooling.truncate_dim if hidden is None else pooling.width(hidden, settings)


def _model_parts(models: Sequence[Model]) -> Iterator[bytes]:
    transformers = [node for model in models for node in model.walk() if is_transformer(node)]
    if not transformers:
        yield from _layer_parts(models)
        return
    shim: Any = transformers[0].layers[0].shims[0]
    network, tokenizer = shim._model, shim._hfmodel.tokenizer  # noqa: SLF001 (of a stock shim, too)
    lowercase = isinstance(transformers[0], SpanTransformer) and bool(shim.settings and shim.settings.lowercase)
    yield json.dumps(config_state(network.config), sort_keys=True).encode()
    yield json.dumps(_tokenizer_probe(tokenizer, getattr(network.config, "vocab_size", 0), lowercase)).encode()
    yield _sums(_tensors(network))


def _tokenizer_probe(tokenizer: Any, n_ids: int, lowercase: bool) -> object:  # noqa: ANN401 (of Hugging Face)
    """Return the wordpieces of a few words, and evenly spaced tokens of the vocabulary."""
    words = [word for text in (TOKENIZER_PROBE, TOKENIZER_PROBE.upper()) for word in text.split()]
    words = [lower_case(word) if lowercase else word for word in words]
    if tokenizer.is_fast:  # by itself: that of Hugging Face would change how it cuts and pads
        encodings = [tokenizer.backend_tokenizer.encode(word) for word in words]
        ids = [[i for i, mask in zip(e.ids, e.attention_mask, strict=True) if mask] for e in encodings]
    else:
        ids = [tokenizer.encode(word, verbose=False) for word in words]
        n_ids = min(n_ids, len(tokenizer))
    return [tokenizer.convert_ids_to_tokens(list(range(0, n_ids, n_ids // _N_TOKENS + 1))), ids]


def _tensors(network: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the weights that states depend on. A pooler is left out: folders without one draw it at random."""
    tensors = dict([*network.named_parameters(), *network.named_buffers()])
    for name, tensor in sorted(tensors.items()):
        if not name.startswith("pooler.") and tensor.is_floating_point():
            yield name, tensor


def _layer_parts(models: Iterable[Model]) -> Iterator[bytes]:
    """Yield the settings and weights of layers; those around others, and listeners, compute nothing themselves."""
    for node in (node for model in models for node in model.walk()):
        settings = layer_settings(node)
        kept = [(key, value) for key, value in sorted(settings.items()) if _is_plain(value) and "drop" not in key]
        if upstream_name(node) is not None or (node.layers and not (node.param_names or node.shims or kept)):
            continue
        yield repr([node.name, kept]).encode()
        yield _sums([(name, node.get_param(name)) for name in node.param_names if node.has_param(name)])
        for shim in node.shims:
            yield _sums(_tensors(shim._model))  # noqa: SLF001 (Thinc has no public name for it)


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple | dict):
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, str | int | float)


def _sums(arrays: Iterable[tuple[str, Any]]) -> bytes:
    """Return the names and shapes of arrays, and the sum of the bits of each column, which does not depend on order."""
    names, sums = [], [b""]
    for name, array in arrays:
        names.append(f"{name} {tuple(array.shape)};")
        if 0 in array.shape:
            continue
        rows = _sampled(array)
        bits = rows.view("int64" if rows.shape[1] % 2 == 0 else "int32")
        sums.append(bits.sum(axis=0, dtype="int64").tobytes())
    return "".join(names).encode() + b"".join(sums)


def _sampled(array: Array) -> numpy.ndarray:
    """Return evenly spaced rows of a PyTorch tensor, or all of a NumPy or CuPy array: float32 (n, width)."""
    rows = array.reshape(len(array), -1) if array.ndim > 1 else array.reshape(1, -1)
    if isinstance(rows, torch.Tensor):
        rows = rows[:: rows.shape[0] * rows.shape[1] // _N_READ + 1].detach().float().cpu().numpy()
    return numpy.ascontiguousarray(to_numpy(rows).astype("float32", copy=False))
