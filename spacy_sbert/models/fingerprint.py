"""Fingerprints and digests of encoders.

Vectors of two encoders with the same fingerprint, which records on Docs carry, can be compared. It
reads samples of the weights. Digests, for resumed runs and caches, are of all that vectors depend
on except texts and arithmetic.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from operator import is_, itemgetter
from typing import Any

import numpy
import torch
from spacy.attrs import ORTH
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Model, Shim
from thinc.util import get_array_module, to_numpy

from ..files.checksum import digest_of_stream
from .encoder import Encoder
from .pooling import SentencePooling
from .private_attributes import forward_settings, upstream_name, version_of
from .shim import TransformerShim
from .span_batch import Array
from .surroundings import undisturbed

# Hexadecimal digits of a fingerprint
LENGTH = 12
# Settings of a transformer that saving, a new version or training changes, and that vectors do not
# depend on.
_IGNORED = {
    "_name_or_path",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "architectures",
    "dtype",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "label2id",
    "output_attentions",
    "output_hidden_states",
    "problem_type",
    "return_dict",
    "torch_dtype",
    "transformers_version",
    "use_cache",
}
# Its wordpieces show how a slow tokenizer normalizes and splits.
_PROBE = (
    "The Quick brown Fox's ÉCOLE Ångström ﬁne ½ 中文かな\tIt is 3,141.59 (e.g.) don't\u200b "
    "\u00a0_[MASK] <mask> İ"
)
# Numbers of a tensor of PyTorch, at most
_N_READ = 2**13
# Parameters of another package's network, at most
_N_WATCHED = 8
# The mode of vectors that are made of those of subwords
_FLORET = "floret"
# Numbers of an array, to notice changes
_N_SAMPLED = 2**8
# Layers that read those of the vocab
_STATIC_VECTORS = ("static_vectors", "word_vectors")


class StaticVectorsWatch:
    """Notices that the static vectors of a vocab have changed since the last time.

    A copy starts without a last time.

    A table is too large to read all of it for each Doc. It must be the same object, with the same
    sample of numbers and the same vectors of the words that were in Docs before.
    """

    def __init__(self) -> None:
        self._objects: list[object] = []
        self._sample = b""
        # Of the bits of a word's vector, by the word
        self._sums: dict[int, int] = {}

    def __reduce__(self) -> tuple[type, tuple]:
        return type(self), ()

    def has_changed(self, vocab: Vocab, docs: Sequence[Doc] = ()) -> bool:
        """Return whether they have changed, and remember the vectors of the words in some Docs."""
        vectors = vocab.vectors
        objects = [vectors, vectors.data]
        sample = sample_of(vectors.data)
        sums = _word_sums(vocab, docs) if docs else {}
        is_same_table = are_same(objects, self._objects) and sample == self._sample
        are_same_words = all(self._sums.get(word, total) == total for word, total in sums.items())
        if is_same_table and are_same_words:
            self._sums.update(sums)
            return False
        self._objects = objects
        self._sample = sample
        self._sums = sums
        return True


def are_same(objects: list[object], others: list[object]) -> bool:
    """Return whether two lists hold the same objects, by identity."""
    return len(objects) == len(others) and all(map(is_, objects, others))


def sample_of(array: Array) -> bytes:
    """Return some of the numbers of an array of NumPy or CuPy, to notice changes in place."""
    numbers = array.reshape(-1)
    return to_numpy(numbers[:: len(numbers) // _N_SAMPLED + 1]).tobytes()


def _word_sums(vocab: Vocab, docs: Sequence[Doc]) -> dict[int, int]:
    """Return the sum of the bits of the static vector of each word in some Docs.

    0 if it has none.
    """
    vectors = vocab.vectors
    words = numpy.unique(numpy.concatenate([doc.to_array(ORTH) for doc in docs])).tolist()
    if not words or not vectors.size:
        return {}
    if vectors.mode == _FLORET:
        rows = to_numpy(vectors.get_batch([vocab.strings[word] for word in words]))
        places = numpy.zeros(len(words), dtype="int64")
    else:
        places = numpy.array([vectors.key2row.get(word, -1) for word in words])
        rows = to_numpy(vectors.data[places])
    sums = numpy.ascontiguousarray(rows, dtype="float32").view("int32").sum(axis=1, dtype="int64")
    sums[places < 0] = 0
    return dict(zip(words, sums.tolist(), strict=True))


class Fingerprint:
    """The fingerprint of one encoder, computed again when its weights have changed.

    A copy starts without it.
    """

    def __init__(self) -> None:
        # What _watched returned, and the fingerprint
        self._known: tuple[list[object], list[object], str] | None = None
        self._static = StaticVectorsWatch()

    def __reduce__(self) -> tuple[type, tuple]:
        return type(self), ()

    @undisturbed()
    def of(
        self,
        models: Sequence[Model],
        pooling: SentencePooling,
        vocab: Vocab,
        *,
        upstream: Sequence[Model] = (),
        docs: Sequence[Doc] = (),
        refresh: bool = False,
    ) -> str:
        """Return the fingerprint of an encoder whose weights are loaded.

        models (Sequence[Model]): the encoder, and the component that it listens to. vocab (Vocab):
            of the Docs.
        upstream (Sequence[Model]): those of the models that other components train. Call forget
            when the others are trained: on a GPU their weights are not read.
        docs (Sequence[Doc]): that were encoded: the static vectors of their words are compared with
            those of before.
        refresh (bool): whether a transformer must look for changes of its weights now; after
            encoding it has.
        """
        if refresh:
            for shim in _transformer_shims(models):
                shim.generation(refresh=True)
        parts = list(models)
        if pooling.dense is not None:
            parts.append(pooling.dense)
        objects, numbers = _watched(parts, upstream)
        reads_static = _reads_static(models)
        is_other_table = reads_static and self._static.has_changed(vocab, docs)
        if self._known is not None and not is_other_table:
            known_objects, known_numbers, fingerprint = self._known
            if numbers == known_numbers and are_same(objects, known_objects):
                return fingerprint
        static = [vectors_digest(vocab)] if reads_static else []
        fingerprint = _digest(models, pooling, static)[:LENGTH]
        self._known = (objects, numbers, fingerprint)
        return fingerprint

    def forget(self) -> None:
        """Compute it again when it is asked for next: weights have changed."""
        self._known = None


def _watched(parts: list[Model], upstream: Sequence[Model]) -> tuple[list[object], list[object]]:
    """Return objects and numbers that differ when the weights of models have changed."""
    objects: list[object] = [*parts]
    read: list[Array] = []
    for part in parts:
        is_upstream = any(part is each for each in upstream)
        for node in part.walk():
            weights = [node.get_param(name) for name in node.param_names if node.has_param(name)]
            for shim in node.shims:
                if isinstance(shim, TransformerShim):
                    objects.append(shim.generation())
                else:
                    parameters = list(shim._model.parameters())  # noqa: SLF001 (Thinc has no public name for it)
                    weights += parameters[:: len(parameters) // _N_WATCHED + 1]
            objects += weights
            # An optimizer of Thinc changes arrays in place; to read those of a GPU waits for it.
            read += [array for array in weights if is_upstream or not _on_gpu(array)]
    return objects, _samples(read)


def _on_gpu(array: Array) -> bool:
    if isinstance(array, torch.Tensor):
        return array.device.type != "cpu"
    return not isinstance(array, numpy.ndarray)


def _samples(arrays: list[Array]) -> list[object]:
    """Return one number of each array, those of a GPU together.

    Of tensors also where they are, and a version.
    """
    samples: list[object] = []
    groups: dict[tuple[bool, str], list[Array]] = {}
    for array in arrays:
        is_tensor = isinstance(array, torch.Tensor)
        if is_tensor:
            samples.append((array.data_ptr(), version_of(array)))
            array = array.detach().float()
        flat = array.reshape(-1)
        middle = flat[len(flat) // 2 :][:1]
        groups.setdefault((is_tensor, str(flat.device)), []).append(middle)
    for (is_tensor, _), numbers in groups.items():
        if is_tensor:
            joined = torch.cat(numbers)
        else:
            joined = to_numpy(get_array_module(numbers[0]).concatenate(numbers))
        samples += joined.tolist()
    return samples


def _reads_static(models: Iterable[Model]) -> bool:
    return any(node.name in _STATIC_VECTORS for model in models for node in model.walk())


@undisturbed()
def _digest(
    models: Sequence[Model],
    pooling: SentencePooling,
    others: Iterable[bytes | str],
    *,
    exact: bool = False,
) -> str:
    """Return the SHA-256 of an encoder, its pooling and other parts.

    exact (bool): of all weights, not samples.
    """
    shim = next(filter(_holds_transformer, _shims(models)), None)
    parts = [json.dumps([pooling.pooling_name, _width(models, pooling)]), *others]
    if shim is None:
        parts += _layer_parts((node for model in models for node in model.walk()), exact)
    else:
        parts += _transformer_parts(shim, exact)
    if pooling.dense is not None:
        parts += _layer_parts(pooling.dense.walk(), exact)
    return digest_of_stream(parts)


def _shims(models: Iterable[Model]) -> Iterator[Shim]:
    return (shim for model in models for node in model.walk() for shim in node.shims)


def _transformer_shims(models: Iterable[Model]) -> Iterator[TransformerShim]:
    return (shim for shim in _shims(models) if isinstance(shim, TransformerShim))


def _holds_transformer(shim: Shim) -> bool:
    """Return whether a shim is that of a transformer, of this package or of spacy-transformers."""
    return isinstance(shim, TransformerShim) or hasattr(shim, "_hfmodel")


def _width(models: Sequence[Model], pooling: SentencePooling) -> int:
    """Return the width of the vectors.

    That to which they are truncated, if the width of the states is not known.
    """
    shim = next(_transformer_shims(models), None)
    outer = [node for model in models for node in (model, *model.layers)]
    hidden = next((node.get_dim("nO") for node in outer if node.has_dim("nO")), None)
    if hidden is None and shim is not None:
        # Saved and loaded before the first text, a layer does not know its width yet
        hidden = shim.config.hidden_size
    if hidden is None:
        return pooling.truncate_dim
    return pooling.width(hidden, None if shim is None else shim.settings)


def _transformer_parts(shim: Any, exact: bool) -> Iterator[bytes]:
    """Yield the config, tokenizer and weights of a transformer.

    It is of this package or of spacy-transformers.
    """
    if isinstance(shim, TransformerShim):
        network = shim.weights
        tokenizer = shim.tokenizer
        lowercase = bool(shim.settings and shim.settings.lowercase)
    else:
        network = shim._model  # noqa: SLF001 (spacy-transformers has no other)
        tokenizer = shim._hfmodel.tokenizer  # noqa: SLF001
        lowercase = False
    # What differs from the defaults
    config = json.loads(network.config.to_json_string(use_diff=True))
    kept = {
        key: value for key, value in config.items() if key not in _IGNORED and "drop" not in key
    }
    yield json.dumps([kept, _tokenizer_state(tokenizer), lowercase], sort_keys=True).encode()
    yield _of_arrays(_tensors(network), exact)


def _tokenizer_state(tokenizer: Any) -> object:
    """Return what wordpieces depend on, without truncation.

    That is the vocabulary, normalizer, splitting and special tokens.
    """
    # JSON: version, truncation and padding stand before the added tokens
    if tokenizer.is_fast:
        rules = tokenizer.backend_tokenizer.to_str().partition('"added_tokens"')[2]
        return [rules, "split_special_tokens"] if tokenizer.split_special_tokens else rules
    probes = (_PROBE, _PROBE.lower(), _PROBE.upper(), "")
    ids = [tokenizer.encode(probe, verbose=False) for probe in probes]
    return [type(tokenizer).__name__, sorted(tokenizer.get_vocab().items()), ids]


def _tensors(network: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the weights that states depend on, apart from the graph of gradients.

    A pooler is left out: folders without one draw it at random.
    """
    named = [*network.named_parameters(), *network.named_buffers()]
    for name, tensor in sorted(named, key=itemgetter(0)):
        if not name.startswith("pooler.") and tensor.is_floating_point():
            # A view of a parameter waits for Python's lock with PyTorch's own lock held, and a step
            # of training in another thread the other way round
            yield name, tensor.detach()


def _layer_parts(nodes: Iterable[Model], exact: bool) -> Iterator[bytes]:
    """Yield the settings and weights of layers.

    Those around others, and listeners, compute nothing themselves.
    """
    for node in nodes:
        settings = _plain_settings(node)
        computes = bool(node.param_names or node.shims or settings or not node.layers)
        if upstream_name(node) is not None or not computes:
            continue
        yield repr([node.name, settings]).encode()
        names = [name for name in node.param_names if node.has_param(name)]
        yield _of_arrays([(name, node.get_param(name)) for name in names], exact)
        for shim in node.shims:
            yield _of_arrays(_tensors(shim._model), exact)  # noqa: SLF001 (Thinc has no public name for it)


def _plain_settings(node: Model) -> list[tuple[str, object]]:
    """Return the settings of a layer that are numbers or texts, without its dropout."""
    settings = {**forward_settings(node), **node.attrs}
    return [
        (key, value)
        for key, value in sorted(settings.items())
        if _is_plain(value) and "drop" not in key
    ]


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


def _of_arrays(arrays: Iterable[tuple[str, Array]], exact: bool = False) -> bytes:
    """Return names and shapes of arrays, and the sum of the bits of each column.

    A hash of all if it is exact.
    """
    found = []
    for name, array in arrays:
        found.append(f"{name} {tuple(array.shape)};".encode())
        if 0 in array.shape:
            continue
        n_rows = len(array) if array.ndim > 1 else 1
        rows = array.reshape(n_rows, -1)
        if isinstance(rows, torch.Tensor):
            if not exact:
                rows = rows[:: rows.numel() // _N_READ + 1]
            rows = rows.detach().float().cpu().numpy()
        rows = numpy.ascontiguousarray(to_numpy(rows).astype("float32", copy=False))
        if exact:
            found.append(hashlib.sha256(rows.data).digest())
            continue
        # Two numbers at a time, if they are pairs
        dtype = "int64" if rows.shape[1] % 2 == 0 else "int32"
        bits = rows.view(dtype)
        found.append(bits.sum(axis=0, dtype="int64").tobytes())
    return b"".join(found)


def encoding_settings(model: Model) -> str:
    """Return the settings of an `sbert` model that its fingerprint is without.

    They say how texts are read, and how vectors are scaled.
    """
    encoders = (node for node in model.walk() if isinstance(node, Encoder))
    transformer = next((node for node in encoders if node.span_transformer is node), None)
    pooling = model.maybe_get_ref("pooling")
    if transformer is None or not isinstance(pooling, SentencePooling):
        return json.dumps(getattr(pooling, "normalize", None))
    return json.dumps(transformer.digest_settings(pooling))


def vectors_digest(vocab: Vocab) -> str:
    """Return a digest of the static vectors of a vocab, and of the words that have them."""
    vectors = vocab.vectors
    rows = vectors.key2row
    words = numpy.array(sorted(rows), dtype="uint64")
    places = numpy.array([rows[word] for word in words.tolist()], dtype="int64")
    arrays = [
        words.tobytes(),
        places.tobytes(),
        _of_arrays([("vectors", vectors.data)], exact=True),
    ]
    return digest_of_stream([vectors.mode, *arrays])


def encoder_digest(
    model: Model,
    pooling: SentencePooling,
    *,
    upstream: Model | None = None,
    tokenizer: Any = None,
) -> str:
    """Return the SHA-256 of an encoder: of all that its vectors depend on.

    Texts and arithmetic are left out.

    model (Model): the encoder; the weights of a transformer are loaded. pooling (SentencePooling):
        of its states.
    upstream (Model): the component that it listens to, None for none.
    tokenizer (Callable): nlp.tokenizer, if tokens are encoded; its vocab has their norms and static
        vectors.
    """
    settings = model.digest_settings(pooling) if isinstance(model, Encoder) else pooling.normalize
    others: list[bytes | str] = [json.dumps(settings)]
    if tokenizer is not None:
        vocab = tokenizer.vocab
        others += [tokenizer.to_bytes(exclude=["vocab"]), vocab.lookups.to_bytes()]
        if vocab.vectors.size:
            others.append(vocab.vectors.to_bytes(exclude=["strings"]))
    models = [model] if upstream is None else [model, upstream]
    return _digest(models, pooling, others, exact=True)


def precision_of(shim: Any) -> str:
    """Return the precision of an encoder, and what else rounding depends on."""
    return shim.describe_precision() if isinstance(shim, TransformerShim) else "float32"
