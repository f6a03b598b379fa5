"""Token-to-vector layers: word vectors, hashed n-grams, BiLSTM, smooth inverse frequency."""

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias, cast

import numpy
import torch
from pydantic import Field
from spacy.attrs import LOWER
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import ArgsKwargs, HashEmbed, Model, PyTorchShim, torch2xp, xp2torch
from thinc.types import Floats2d
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from ..validation import Positive, PositiveFloat, Seed, Width, check_weights, invalid_value_message, validated
from .static_vectors import SMOOTHING, sif_weights

Tok2Vec = Model[list[Doc], list[Floats2d]]
Array: TypeAlias = Any  # of NumPy or CuPy
FLORET = "floret"  # the mode of vectors that are made of those of subwords


@registry.architectures("spacy-sbert.WordVectors.v1")
@validated
def word_vectors(trainable: bool = False) -> Tok2Vec:
    """Look up the static vectors of tokens, without the projection that spacy.StaticVectors.v2 learns.

    y_t = V[w_t], and 0 for a token without a vector

    trainable (bool): whether V is a copy of the vocab's vectors that learns, and is saved with the encoder; otherwise
        it is the vocab's own.
    Input: Docs. Output: y, float (tokens, width) each.
    RAISES (ValueError): on initialisation, if the vocab has no vectors; if trainable, for floret vectors, which have no
        rows by words; in use, if it has others than it was initialised with.
    """
    params: dict[str, Any] = {"E": None} if trainable else {}
    return Model(
        "word_vectors",
        partial(_word_vectors, trainable=trainable),
        init=_init_word_vectors,
        dims={"nO": None},
        params=params,
    )


def _word_vectors(
    model: Tok2Vec, docs: list[Doc], is_train: bool, *, trainable: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    if not trainable:
        return [_vectors(model, doc) for doc in docs], lambda d_tokens: docs
    rows = [_rows(doc, model.get_dim("nO")) for doc in docs]
    table: Any = model.get_param("E")

    def backprop(d_tokens: list[Floats2d]) -> list[Doc]:
        d_table: Any = model.ops.alloc2f(*table.shape, dtype=table.dtype)
        for own, d_doc in zip(rows, d_tokens, strict=True):
            has = numpy.flatnonzero(own >= 0)
            model.ops.scatter_add(d_table, model.ops.xp.asarray(own[has]), cast(Any, d_doc)[has])
        model.inc_grad("E", d_table)
        return docs

    return [_known(table, own) for own in rows], backprop


def _init_word_vectors(model: Tok2Vec, X: list[Doc] | None = None, Y: object = None) -> None:
    """Learn of the vocab's vectors, unless they are loaded."""
    if X is None:
        return
    vectors = X[0].vocab.vectors
    if not vectors.size:
        raise ValueError(
            "spacy-sbert.WordVectors.v1 looks up static vectors, and the pipeline's vocab has none. Set "
            "vectors of [initialize] to a pipeline that has them (en_core_web_md, or what python -m spacy init "
            "vectors writes), or embed hashes: spacy-sbert.NgramHashEmbed.v1."
        )
    if "E" in model.param_names and vectors.mode == FLORET:
        raise ValueError(
            "trainable = true of spacy-sbert.WordVectors.v1 needs a vector for each word, and floret vectors "
            "are made of those of subwords. Set trainable = false."
        )
    model.set_dim("nO", X[0].vocab.vectors_length)
    if "E" in model.param_names and not model.has_param("E"):
        model.set_param("E", model.ops.asarray2f(vectors.data, dtype="float32").copy())  # optimizers write in place


def _rows(doc: Doc, width: int) -> numpy.ndarray:
    """Return the row of each token's vector, int64 (tokens,), -1 if it has none.

    It is on the host; spaCy's own look-up leaves it on the device.
    """
    _check(doc.vocab, width)
    row_of = doc.vocab.vectors.key2row
    return numpy.array([row_of.get(token.orth, -1) for token in doc], dtype="int64")


def _vectors(model: Tok2Vec, doc: Doc) -> Floats2d:
    vectors, width = doc.vocab.vectors, model.get_dim("nO")
    rows = None if vectors.mode == FLORET else _rows(doc, width)
    if rows is not None:
        return _known(model.ops.asarray2f(vectors.data), rows)
    _check(doc.vocab, width)
    if not len(doc):
        return model.ops.alloc2f(0, width)
    return model.ops.asarray2f(vectors.get_batch([token.text for token in doc]))


def _known(table: Array, rows: numpy.ndarray) -> Floats2d:
    found = table[rows]
    found[numpy.flatnonzero(rows < 0)] = 0
    return found


def _check(vocab: Vocab, width: int) -> None:
    given = vocab.vectors_length
    if given != width:
        raise ValueError(
            f"The pipeline's vocab has static vectors of {given or 'no'} numbers, and the encoder was made "
            f"with vectors of {width}. Load the pipeline with the vectors that it was saved with."
        )


NgramSize = Annotated[int, Field(ge=0, le=20)]


@registry.architectures("spacy-sbert.NgramHashEmbed.v1")
@validated
def ngram_hash_embed(
    width: Width = 300, rows: Positive = 20000, words: bool = True, ngram_size: NgramSize = 3, seed: Seed = 0
) -> Tok2Vec:
    """Embed lower-cased words, the character n-grams of words, or both, without a table of words.

    y_t = E(w_t) + 1/|G(w_t)| sum_(g in G(w_t)) F(g),   G(w): the n-grams of " w "

    width (int): of y.
    rows (int): of E, and as many of F; each key has four rows in it, added up (Svenstrup et al. 2017).
    words (bool): whether there is E. ngram_size (int): n, at most 20; 0 for no F.
    seed (int): of the hashes.
    Input: Docs. Output: y, float (tokens, width) each.
    RAISES (ValueError): if there is neither E nor F, or one takes more than 1 GB.
    SOURCE: Wieting and Gimpel 2018 (ParaNMT-50M), section 4, WORD, TRIGRAM and their sum.
    """
    if not words and not ngram_size:
        raise ValueError(
            "spacy-sbert.NgramHashEmbed.v1 with words = false and ngram_size = 0 embeds nothing: set one of them."
        )
    check_weights("rows", rows, rows, width)
    layers: list[Model] = [HashEmbed(width, rows, seed=seed + i) for i in range(bool(words) + bool(ngram_size))]
    settings = partial(_ngram_hash_embed, words=words, ngram_size=ngram_size)
    return Model("ngram_hash_embed", settings, init=_init_ngram_hash_embed, layers=layers, dims={"nO": width})


def _ngram_hash_embed(
    model: Tok2Vec, docs: list[Doc], is_train: bool, *, words: bool, ngram_size: int
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    counts = [len(doc) for doc in docs]
    states: Any = model.ops.alloc2f(sum(counts), model.get_dim("nO"))
    if not len(states):
        return [states for _ in docs], lambda d_tokens: docs
    callbacks: list[Callable[[Floats2d], object]] = []
    if words:
        keys = numpy.concatenate([doc.to_array([LOWER]).reshape(-1) for doc in docs if len(doc)])
        of_words, backprop_words = model.layers[0](model.ops.xp.asarray(keys), is_train)
        states = of_words
        callbacks.append(backprop_words)
    if ngram_size:
        found = [_ngram_keys(token.lower_, ngram_size) for doc in docs for token in doc]
        lengths = model.ops.asarray1i(cast(Any, [len(own) for own in found]))
        of_ngrams, backprop_ngrams = model.layers[-1](model.ops.xp.asarray(numpy.concatenate(found)), is_train)
        states = states + model.ops.reduce_mean(of_ngrams, lengths)
        callbacks.append(lambda d_states: backprop_ngrams(model.ops.backprop_reduce_mean(d_states, lengths)))

    def backprop(d_tokens: list[Floats2d]) -> list[Doc]:
        d_states = model.ops.xp.concatenate(d_tokens)
        for callback in callbacks:
            callback(d_states)
        return docs

    return model.ops.xp.split(states, numpy.cumsum(counts)[:-1].tolist()), backprop


def _init_ngram_hash_embed(model: Tok2Vec, X: object = None, Y: object = None) -> None:
    for layer in model.layers:
        layer.initialize()


@lru_cache(maxsize=100_000)
def _ngram_keys(word: str, size: int) -> numpy.ndarray:
    """uint64 (n,): the hash of each n-gram of a word between blanks; of the whole if it is shorter."""
    padded = f" {word} "
    ngrams = [padded[i : i + size] for i in range(max(1, len(padded) - size + 1))]
    return numpy.array([get_string_id(ngram) for ngram in ngrams], dtype="uint64")


Encode = Model[list[Floats2d], list[Floats2d]]
Depth = Annotated[int, Field(ge=1, le=20)]


@registry.architectures("spacy-sbert.BiLSTMEncoder.v1")
@validated
def bilstm_encoder(width: Width = 256, depth: Depth = 1) -> Encode:
    """Read the tokens of each Doc from both ends, and no padding.

    y_t = [LSTM(x_1 .. x_t); LSTM(x_n .. x_t)]

    spacy.TorchBiLSTMEncoder.v1 pads Docs to the longest of a batch, and its backward half begins in that padding: there
    the states of a Doc depend on the Docs beside it.

    width (int): of x and of y, half of it for each direction. depth (int): how many such layers, at most 20.
    Input: x, float (tokens, width) of each Doc. Output: y, the same.
    RAISES (ValueError): for an odd width, or one that takes more than 1 GB.
    SOURCE: Graves and Schmidhuber 2005; Conneau et al. 2017 (InferSent), section 3.2.1.
    """
    if width % 2:
        raise ValueError(invalid_value_message("width", width, "an even number, half of it for each direction"))
    check_weights("width", width, 4 * width, width)
    lstm = _PackedLSTM(width, width // 2, depth, bidirectional=True)
    return Model("bilstm_encoder", _bilstm, dims={"nI": width, "nO": width}, shims=[PyTorchShim(lstm)])


class _PackedLSTM(torch.nn.LSTM):
    """An LSTM over sequences that stand one after another: tokens, float (tokens, width), and the length of each."""

    def forward(self, tokens: torch.Tensor, lengths: list[int]) -> torch.Tensor:  # type: ignore[override]
        states, _ = super().forward(pack_sequence(tokens.split(lengths), enforce_sorted=False))
        return torch.cat(unpack_sequence(states))


def _bilstm(
    model: Encode, inputs: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats2d]]]:
    xp, lengths = model.ops.xp, [len(tokens) for tokens in inputs]
    if not any(lengths):
        return inputs, lambda d_states: d_states
    borders = numpy.cumsum(lengths)[:-1].tolist()
    shim = cast(PyTorchShim, model.shims[0])
    tokens = xp2torch(xp.concatenate(inputs), requires_grad=is_train, device=shim.device)
    given = ArgsKwargs((tokens, [length for length in lengths if length]), {})  # an empty sequence cannot be packed
    states, backprop = shim(given, is_train)

    def backprop_tokens(d_states: list[Floats2d]) -> list[Floats2d]:
        gradient = xp2torch(xp.concatenate(d_states), device=shim.device)
        d_given = backprop(ArgsKwargs((states,), {"grad_tensors": gradient}))
        return xp.split(torch2xp(d_given.args[0]), borders)

    return xp.split(torch2xp(states), borders), backprop_tokens


@registry.architectures("spacy-sbert.SmoothInverseFrequencyTok2Vec.v1")
@validated
def smooth_inverse_frequency(tok2vec: Model, counts: str | Path | None = None, a: PositiveFloat = SMOOTHING) -> Tok2Vec:
    """Weigh tokens by smooth inverse frequency (SIF).

    y_t = a / (a + p(w_t)) x_t,   p(w): the share of the lower-cased word w in all counts, 0 for one that is not counted

    tok2vec (Model): what makes x, from Docs to float (tokens, width) each.
    counts (str): a file of words and counts in a large corpus, see read_counts. It is read by `nlp.initialize`, and the
        weights are saved with the encoder.
    a (float): the smoothing.
    Output: y, float (tokens, width) each. Pooled by "mean" it is the average of the paper; its common component stays.
    RAISES (ValueError): on initialisation, if there is no file of counts, it is not what it should be, or it counts
        none of the words of the examples; in use, before that.
    SOURCE: Arora et al. 2017, A Simple but Tough-to-Beat Baseline for Sentence Embeddings, algorithm 1.
    """
    dims: dict[str, int | None] = {"nO": None}
    settings = partial(_init_sif, counts=counts, a=a)
    return Model(
        "smooth_inverse_frequency", _weighted_by_sif, init=settings, layers=[tok2vec], dims=dims, attrs={"weights": {}}
    )


def _weighted_by_sif(model: Tok2Vec, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    known: dict[str, float] = model.attrs["weights"]
    if not known:
        raise ValueError(
            "spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 has no weights of words yet: call nlp.initialize(), "
            "which reads the file of counts, or load a pipeline that has them."
        )
    states, backprop = model.layers[0](docs, is_train)
    weights = [_column(model, known, doc, of_doc) for doc, of_doc in zip(docs, states, strict=True)]

    def backprop_states(d_tokens: list[Floats2d]) -> object:
        return backprop([d_doc * of_doc for d_doc, of_doc in zip(d_tokens, weights, strict=True)])

    return [of_doc * own for of_doc, own in zip(states, weights, strict=True)], backprop_states


def _init_sif(
    model: Tok2Vec,
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
                "spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 needs counts of words: set counts to a file with "
                "a word and its count on each line, such as enwiki_vocab_min200.txt of "
                "https://github.com/PrincetonML/SIF."
            )
        return
    from ..files.text_lines import read_counts  # noqa: PLC0415 (not needed to load a pipeline)

    counted = read_counts(Path(counts))
    if X and not any(token.lower_ in counted for doc in X for token in doc):
        raise ValueError(
            f"counts = '{counts}' of spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 counts none of the words of "
            f"the examples, such as '{X[0].text[:50]}': is it of another language? Give a file of lower-cased "
            "words of theirs."
        )
    model.attrs["weights"] = sif_weights(counted, a)


def _column(model: Tok2Vec, known: dict[str, float], doc: Doc, states: Floats2d) -> Floats2d:
    """(tokens, 1): the weight of each token; words that are not counted weigh 1."""
    found = numpy.array([known.get(token.lower_, 1.0) for token in doc], dtype=states.dtype)
    return model.ops.xp.asarray(found)[:, None]
