"""Hash embeddings of words and of the character n-grams in them, added up."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Annotated, Any, cast

import numpy
from pydantic import Field
from spacy.attrs import LOWER
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import HashEmbed, Model
from thinc.types import Floats2d

from ..errors.checks import Positive, Seed, Width, check_weights, validated
from .errors import Errors

Tok2Vec = Model[list[Doc], list[Floats2d]]
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
        raise ValueError(Errors.NOTHING_EMBEDDED)
    check_weights("rows", rows, rows, width)
    layers: list[Model] = [HashEmbed(width, rows, seed=seed + i) for i in range(bool(words) + bool(ngram_size))]
    settings = partial(forward, words=words, ngram_size=ngram_size)
    return Model("ngram_hash_embed", settings, init=init, layers=layers, dims={"nO": width})


def forward(
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
        found = [ngram_keys(token.lower_, ngram_size) for doc in docs for token in doc]
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


def init(model: Tok2Vec, X: object = None, Y: object = None) -> None:
    for layer in model.layers:
        layer.initialize()


@lru_cache(maxsize=100_000)
def ngram_keys(word: str, size: int) -> numpy.ndarray:
    """uint64 (n,): the hash of each n-gram of a word between blanks; of the whole if it is shorter."""
    padded = f" {word} "
    ngrams = [padded[i : i + size] for i in range(max(1, len(padded) - size + 1))]
    return numpy.array([get_string_id(ngram) for ngram in ngrams], dtype="uint64")
