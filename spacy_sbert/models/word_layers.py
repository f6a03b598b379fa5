"""Token-to-vector layers: word vectors, hashed n-grams, BiLSTM, smooth inverse frequency (SIF)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, cast

import numpy
import torch
from pydantic import Field
from spacy.attrs import LOWER
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab
from thinc.api import ArgsKwargs, HashEmbed, Model, Optimizer, PyTorchShim, torch2xp, xp2torch
from thinc.types import Floats2d
from thinc.util import to_numpy
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from ..validation import (
    Positive,
    PositiveFloat,
    Seed,
    Width,
    check,
    check_weights,
    invalid_value_message,
    validated,
)
from .heads import Tok2VecModel
from .surroundings import check_data, check_draws, check_gradients, undisturbed, unshare

_Backprop = Callable[[list[Floats2d]], object]
# The mode of vectors that are made of those of subwords
_FLORET = "floret"


@validated
def word_vectors(trainable: bool = False) -> Tok2VecModel:
    """Look up the static vectors of tokens, without the projection of spacy.StaticVectors.v2.

    y_t = V[w_t], and 0 for a token without a vector

    trainable (bool): whether V is a copy of the vocab's vectors that learns, and is saved with the
        encoder; otherwise it is the vocab's own.
    Input: Docs. Output: y, float (tokens, width) each.
    RAISES (ValueError): if the vocab has no vectors, or others than it had; for floret vectors if
        trainable.
    """
    params: dict[str, Any] = {"E": None} if trainable else {}
    return Model(
        "word_vectors", _word_vectors, init=_init_word_vectors, dims={"nO": None}, params=params
    )


def _word_vectors(
    model: Tok2VecModel, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], _Backprop]:
    ops = model.ops
    width = model.get_dim("nO")
    learned: Any = model.get_param("E") if "E" in model.param_names else None
    vectors: list[Any] = []
    rows = []
    for doc in docs:
        _check_width_of_vectors(doc.vocab, width)
        static = doc.vocab.vectors
        if static.mode == _FLORET:
            vectors.append(ops.asarray2f(_floret_vectors(doc)))
            continue
        # On the host, unlike spaCy's own
        own_rows = numpy.array([static.key2row.get(token.orth, -1) for token in doc], "int64")
        table: Any = ops.asarray2f(static.data) if learned is None else learned
        own_vectors = table[own_rows]
        own_vectors[numpy.flatnonzero(own_rows < 0)] = 0
        vectors.append(own_vectors)
        rows.append(own_rows)

    def backprop(d_tokens: list[Floats2d]) -> list[Doc]:
        if learned is not None:
            d_table: Any = ops.alloc2f(*learned.shape, dtype=learned.dtype)
            for own_rows, d_doc in zip(rows, d_tokens, strict=True):
                known = numpy.flatnonzero(own_rows >= 0)
                ops.scatter_add(d_table, ops.xp.asarray(own_rows[known]), cast(Any, d_doc)[known])
            model.inc_grad("E", d_table)
        return docs

    return vectors, backprop


def _check_width_of_vectors(vocab: Vocab, expected: int) -> None:
    width = vocab.vectors_length
    if width != expected:
        raise ValueError(
            f"The pipeline's vocab has static vectors of {width or 'no'} numbers, and the encoder "
            f"was made with vectors of {expected}. Load the pipeline with the vectors that it was "
            "saved with."
        )


def _floret_vectors(doc: Doc) -> Any:
    """Return the vectors of tokens that are made of those of subwords, float (tokens, width)."""
    if not len(doc):
        return numpy.zeros((0, doc.vocab.vectors_length), "f")
    return doc.vocab.vectors.get_batch([token.text for token in doc])


def _init_word_vectors(model: Tok2VecModel, X: list[Doc] | None = None, Y: object = None) -> None:
    """Set the width, and copy the vocab's vectors, unless there is a table."""
    if X is None:
        return
    vectors = X[0].vocab.vectors
    if not vectors.size:
        raise ValueError(
            "spacy-sbert.WordVectors.v1 looks up static vectors, and the pipeline's vocab has "
            "none. Set vectors of [initialize] to a pipeline that has them (en_core_web_md, or one "
            "of python -m spacy init vectors), or embed hashes: spacy-sbert.NgramHashEmbed.v1."
        )
    if "E" in model.param_names and vectors.mode == _FLORET:
        raise ValueError(
            "trainable = true of spacy-sbert.WordVectors.v1 needs a vector for each word, and "
            "floret vectors are made of those of subwords. Set trainable = false."
        )
    model.set_dim("nO", X[0].vocab.vectors_length)
    if "E" in model.param_names and not model.has_param("E"):
        # Optimizers write in place
        model.set_param("E", model.ops.asarray2f(vectors.data, dtype="float32").copy())


@validated
def ngram_hash_embed(
    width: Width = 300,
    rows: Positive = 20000,
    words: bool = True,
    ngram_size: Annotated[int, Field(ge=0, le=20)] = 3,
    seed: Seed = 0,
) -> Tok2VecModel:
    """Embed lower-cased words, the character n-grams of words, or both, without a table of words.

    y_t = E(w_t) + 1/|G(w_t)| sum_(g in G(w_t)) F(g),   G(w): the n-grams of " w "

    width (int): of y.
    rows (int): of E, and as many of F; each key has four rows in it, added up (Svenstrup et al.
        2017).
    words (bool): whether there is E. ngram_size (int): n, at most 20; 0 for no F.
    seed (int): of the hashes.
    Input: Docs. Output: y, float (tokens, width) each.
    RAISES (ValueError): if there is neither E nor F, or one takes more than 1 GB.
    SOURCE: Wieting and Gimpel 2018 (ParaNMT-50M), section 4, WORD, TRIGRAM and their sum.
    """
    if not words and not ngram_size:
        raise ValueError(
            "spacy-sbert.NgramHashEmbed.v1 with words = false and ngram_size = 0 embeds nothing: "
            "set one of them."
        )
    check_weights("rows", rows, rows, width)
    n_tables = 2 if words and ngram_size else 1
    layers: list[Model] = [HashEmbed(width, rows, seed=seed + i) for i in range(n_tables)]
    forward = partial(_ngram_hash_embed, words=words, ngram_size=ngram_size)
    return Model("ngram_hash_embed", forward, init=_init_layers, layers=layers, dims={"nO": width})


def _ngram_hash_embed(
    model: Tok2VecModel, docs: list[Doc], is_train: bool, *, words: bool, ngram_size: int
) -> tuple[list[Floats2d], _Backprop]:
    xp = model.ops.xp
    counts = [len(doc) for doc in docs]
    states: Any = model.ops.alloc2f(sum(counts), model.get_dim("nO"))
    if not len(states):
        return [states for _ in docs], lambda d_tokens: docs
    callbacks: list[Callable[[Floats2d], object]] = []
    if words:
        keys = numpy.concatenate([doc.to_array([LOWER]).reshape(-1) for doc in docs if len(doc)])
        states, backprop_words = model.layers[0](xp.asarray(keys), is_train)
        callbacks.append(backprop_words)
    if ngram_size:
        means, backprop_ngrams = _embed_ngrams(model.layers[-1], docs, ngram_size, is_train)
        states = states + means
        callbacks.append(backprop_ngrams)

    def backprop(d_tokens: list[Floats2d]) -> list[Doc]:
        d_states = xp.concatenate(d_tokens)
        for callback in callbacks:
            callback(d_states)
        return docs

    return xp.split(states, numpy.cumsum(counts)[:-1].tolist()), backprop


def _embed_ngrams(
    embed: Model, docs: list[Doc], size: int, is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], object]]:
    """Return the mean of the vectors of each token's n-grams, float (tokens, width)."""
    ops = embed.ops
    keys = [_ngram_keys(token.lower_, size) for doc in docs for token in doc]
    lengths = ops.asarray1i(cast(Any, [len(own) for own in keys]))
    vectors, backprop_embed = embed(ops.xp.asarray(numpy.concatenate(keys)), is_train)

    def backprop(d_means: Floats2d) -> object:
        return backprop_embed(ops.backprop_reduce_mean(d_means, lengths))

    return ops.reduce_mean(vectors, lengths), backprop


def _init_layers(model: Tok2VecModel, X: object = None, Y: object = None) -> None:
    for layer in model.layers:
        layer.initialize()


@lru_cache(maxsize=100_000)
def _ngram_keys(word: str, size: int) -> numpy.ndarray:
    """Return the hash of each n-gram of a word between blanks: uint64 (n,).

    Of a shorter word, return that of the whole.
    """
    padded = f" {word} "
    ngrams = [padded[i : i + size] for i in range(max(1, len(padded) - size + 1))]
    return numpy.array([get_string_id(ngram) for ngram in ngrams], dtype="uint64")


_Encode = Model[list[Floats2d], list[Floats2d]]


@validated
def bilstm_encoder(width: Width = 256, depth: Annotated[int, Field(ge=1, le=20)] = 1) -> _Encode:
    """Read the tokens of each Doc from both ends, and no padding.

    y_t = [LSTM(x_1 .. x_t); LSTM(x_n .. x_t)]

    The backward half of spacy.TorchBiLSTMEncoder.v1 begins in padding: its states depend on the
    Docs beside a Doc.

    width (int): of x and of y, half of it for each direction. depth (int): how many such layers, at
        most 20.
    Input: x, float (tokens, width) of each Doc. Output: y, the same.
    RAISES (ValueError): for an odd width, or one that takes more than 1 GB.
    SOURCE: Graves and Schmidhuber 2005; Conneau et al. 2017 (InferSent), section 3.2.1.
    """
    if width % 2:
        raise ValueError(
            invalid_value_message("width", width, "an even number, half of it for each direction")
        )
    check_weights("width", width, 4 * width, width)
    with undisturbed():
        check_draws("a BiLSTM")
        lstm = _PackedLSTM(width, width // 2, depth, bidirectional=True)
        check_data(lstm, "a BiLSTM")
        shim = _LSTMShim(lstm)
    return Model("bilstm_encoder", _bilstm, dims={"nI": width, "nO": width}, shims=[shim])


class _LSTMShim(PyTorchShim):
    """Thinc's shim, safe to copy, save and change.

    What the program around has set in PyTorch does not matter.
    """

    copy = undisturbed()(PyTorchShim.copy)
    to_device = undisturbed()(PyTorchShim.to_device)
    to_bytes = undisturbed()(PyTorchShim.to_bytes)
    from_bytes = undisturbed()(PyTorchShim.from_bytes)

    @undisturbed()
    def finish_update(self, optimizer: Optimizer) -> None:
        unshare(self._model)
        super().finish_update(optimizer)

    @contextmanager
    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        """Compute with averaged weights in a with block.

        Its own weights come back, also after an error.
        """
        averages = super().use_params(params)
        with undisturbed():
            averages.__enter__()
        try:
            yield
        finally:
            with undisturbed():
                averages.__exit__(None, None, None)


class _PackedLSTM(torch.nn.LSTM):
    """An LSTM over sequences one after another.

    It takes tokens, float (tokens, width), and the length of each sequence.
    """

    def forward(self, tokens: torch.Tensor, lengths: list[int]) -> torch.Tensor:  # type: ignore[override]
        states, _ = super().forward(pack_sequence(tokens.split(lengths), enforce_sorted=False))
        return torch.cat(unpack_sequence(states))


@undisturbed()
def _bilstm(
    model: _Encode, inputs: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], _Backprop]:
    xp = model.ops.xp
    lengths = [len(tokens) for tokens in inputs]
    if not any(lengths):
        return inputs, lambda d_states: d_states
    if is_train:
        check_gradients("a BiLSTM")
    borders = numpy.cumsum(lengths)[:-1].tolist()
    shim = cast(PyTorchShim, model.shims[0])
    tokens = xp2torch(xp.concatenate(inputs), requires_grad=is_train, device=shim.device)
    # An empty sequence cannot be packed
    packed_lengths = [length for length in lengths if length]
    states, backprop = shim(ArgsKwargs((tokens, packed_lengths), {}), is_train)

    def backprop_tokens(d_states: list[Floats2d]) -> list[Floats2d]:
        gradient = xp2torch(xp.concatenate(d_states), device=shim.device)
        d_tokens = backprop(ArgsKwargs((states,), {"grad_tensors": gradient})).args[0]
        return xp.split(torch2xp(d_tokens), borders)

    return xp.split(torch2xp(states), borders), backprop_tokens


# a, of Arora et al. 2017
SMOOTHING = 1e-3


@validated
def smooth_inverse_frequency_tok2vec(
    tok2vec: Model, counts: str | Path | None = None, a: PositiveFloat = SMOOTHING
) -> Tok2VecModel:
    """Weigh tokens by smooth inverse frequency (SIF).

    y_t = a / (a + p(w_t)) x_t, p(w): the share of the lower-cased word w in all counts, 0 for one
    that is not counted

    tok2vec (Model): what makes x, from Docs to float (tokens, width) each.
    counts (str): a file of words and counts in a large corpus, see read_counts. It is read by
        `nlp.initialize`, and the weights are saved with the encoder.
    a (float): the smoothing.
    Output: y, float (tokens, width) each. Pooled by "mean" it is the average of the paper; its
        common component stays.
    RAISES (ValueError): on initialization, if the file is missing or counts none of the words of
        the examples.
    SOURCE: Arora et al. 2017, A Simple but Tough-to-Beat Baseline for Sentence Embeddings,
        algorithm 1.
    """
    init = partial(_init_sif, counts=counts, a=a)
    return Model(
        "smooth_inverse_frequency",
        _weigh,
        init=init,
        layers=[tok2vec],
        dims={"nO": None},
        attrs={"weights": {}},
    )


def _weigh(
    model: Tok2VecModel, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], _Backprop]:
    known: dict[str, float] = model.attrs["weights"]
    if not known:
        raise ValueError(
            "spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 has no weights of words yet: call "
            "nlp.initialize(), which reads the file of counts, or load a pipeline that has them."
        )
    states, backprop = model.layers[0](docs, is_train)
    # (tokens, 1) of each Doc: words that are not counted weigh 1
    columns = []
    for doc, of_doc in zip(docs, states, strict=True):
        weights = numpy.array([known.get(token.lower_, 1.0) for token in doc], dtype=of_doc.dtype)
        columns.append(model.ops.xp.asarray(weights)[:, None])

    def weigh(of_tokens: list[Floats2d]) -> list[Floats2d]:
        return [of_doc * column for of_doc, column in zip(of_tokens, columns, strict=True)]

    return weigh(states), lambda d_tokens: backprop(weigh(d_tokens))


def _init_sif(
    model: Tok2VecModel,
    X: list[Doc] | None = None,
    Y: object = None,
    *,
    counts: str | Path | None,
    a: float,
) -> None:
    tok2vec = model.layers[0]
    tok2vec.initialize(X=X)
    if tok2vec.has_dim("nO"):
        model.set_dim("nO", tok2vec.get_dim("nO"))
    if counts is None:
        if not model.attrs["weights"]:
            raise ValueError(
                "spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 needs counts of words: set counts to "
                "a file with a word and its count on each line, such as enwiki_vocab_min200.txt of "
                "https://github.com/PrincetonML/SIF."
            )
        return
    from ..files.text_lines import read_counts  # noqa: PLC0415 (not needed to load a pipeline)

    counted = read_counts(Path(counts))
    if X and not any(token.lower_ in counted for doc in X for token in doc):
        raise ValueError(
            f"counts = '{counts}' of spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 counts none of "
            f"the words of the examples, such as '{X[0].text[:50]}': is it of another language? "
            "Give a file of lower-cased words."
        )
    model.attrs["weights"] = sif_weights(counted, a)


def static_vectors(span: Doc | Span) -> tuple[list[str], numpy.ndarray]:
    """Return the lower-cased tokens that have a static vector, and the vectors.

    Those are float32 (n, width), of a Doc or Span.
    """
    vocab = span.vocab
    kept = [token for token in span if vocab.has_vector(token.orth) and not token.is_space]
    if not kept:
        return [], numpy.zeros((0, vocab.vectors_length), dtype="float32")
    vectors = numpy.stack([to_numpy(vocab.get_vector(token.orth)) for token in kept])
    return [token.lower_ for token in kept], vectors.astype("float32", copy=False)


def sif_weights(counts: Mapping[str, int], a: float = SMOOTHING) -> dict[str, float]:
    """Return a / (a + p(w)) of each lower-cased word, p being its share of all counts.

    SOURCE: Arora et al. 2017, A Simple but Tough-to-Beat Baseline for Sentence Embeddings,
        algorithm 1.
    """
    check("a", a, PositiveFloat)
    total = sum(counts.values())
    return {word: a / (a + count / total) for word, count in counts.items()}


def weighted_mean(span: Doc | Span, weights: Mapping[str, float]) -> numpy.ndarray:
    """Return the weighted mean of the tokens of s that have a vector: float64 (width,).

    1 / |s| sum_{w in s} weight(w) v_w, 0 if none has one.

    weights (Mapping): by lower-cased word; others weigh 1.
    """
    words, vectors = static_vectors(span)
    if not words:
        return numpy.zeros(vectors.shape[1])
    return numpy.array([weights.get(word, 1.0) for word in words]) @ vectors / len(words)


def first_component(squares: numpy.ndarray) -> numpy.ndarray:
    """Return the first right singular vector of rows X, by their squares X' X.

    squares (float64 (width, width)): X' X. 0 of zeros.
    """
    if not squares.any():
        return numpy.zeros(len(squares))
    _, vectors = numpy.linalg.eigh(squares)
    return vectors[:, -1]
