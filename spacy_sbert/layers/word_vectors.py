"""Static vectors as the states of tokens: as they are, or as a table that learns."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d

from .errors import Errors

Tok2Vec = Model[list[Doc], list[Floats2d]]
FLORET = "floret"  # the mode of vectors that are made of those of subwords


@registry.architectures("spacy-sbert.WordVectors.v1")
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
    return Model("word_vectors", partial(forward, trainable=trainable), init=init, dims={"nO": None}, params=params)


def forward(
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


def init(model: Tok2Vec, X: list[Doc] | None = None, Y: object = None) -> None:
    """Learn of the vocab's vectors, unless they are loaded."""
    if X is None:
        return
    vectors = X[0].vocab.vectors
    if not vectors.size:
        raise ValueError(Errors.NO_WORD_VECTORS)
    if "E" in model.param_names and vectors.mode == FLORET:
        raise ValueError(Errors.FLORET_TRAINABLE)
    model.set_dim("nO", X[0].vocab.vectors_length)
    if "E" in model.param_names and not model.has_param("E"):
        model.set_param("E", model.ops.asarray2f(vectors.data, dtype="float32").copy())  # optimizers write in place


def _rows(doc: Doc, width: int) -> numpy.ndarray:
    """int64 (tokens,): the row of each token's vector, -1 where it has none; on the host, where spaCy's own look-up
    leaves them on the device."""
    _check(doc.vocab, width)
    row_of = doc.vocab.vectors.key2row
    return numpy.array([row_of.get(token.orth, -1) for token in doc], dtype="int64")


def _vectors(model: Tok2Vec, doc: Doc) -> Floats2d:
    vectors, width = doc.vocab.vectors, model.get_dim("nO")
    rows = None if vectors.mode == FLORET else _rows(doc, width)
    if rows is not None:
        return _known(model.ops.asarray(vectors.data), rows)
    _check(doc.vocab, width)
    if not len(doc):
        return model.ops.alloc2f(0, width)
    return model.ops.asarray2f(vectors.get_batch([token.text for token in doc]))


def _known(table: Any, rows: numpy.ndarray) -> Floats2d:
    found = table[rows]
    found[numpy.flatnonzero(rows < 0)] = 0
    return found


def _check(vocab: Vocab, width: int) -> None:
    given = vocab.vectors_length
    if given != width:
        raise ValueError(Errors.OTHER_WORD_VECTORS.format(given=given or "no", expected=width))
