"""Tokens weighted by how rare they are, before they are pooled."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d

from ..errors.checks import PositiveFloat, validated
from ..files.word_counts import read_counts
from ..similarity.static_vectors import SMOOTHING, sif_weights
from .errors import Errors

Tok2Vec = Model[list[Doc], list[Floats2d]]


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
    settings = partial(init, counts=counts, a=a)
    return Model("smooth_inverse_frequency", forward, init=settings, layers=[tok2vec], dims=dims, attrs={"weights": {}})


def forward(model: Tok2Vec, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    known: dict[str, float] = model.attrs["weights"]
    if not known:
        raise ValueError(Errors.NO_SIF_WEIGHTS)
    states, backprop = model.layers[0](docs, is_train)
    weights = [_column(model, known, doc, of_doc) for doc, of_doc in zip(docs, states, strict=True)]

    def backprop_states(d_tokens: list[Floats2d]) -> object:
        return backprop([d_doc * of_doc for d_doc, of_doc in zip(d_tokens, weights, strict=True)])

    return [of_doc * own for of_doc, own in zip(states, weights, strict=True)], backprop_states


def init(
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
            raise ValueError(Errors.NO_SIF_COUNTS)
        return
    counted = read_counts(Path(counts))
    if X and not any(token.lower_ in counted for doc in X for token in doc):
        raise ValueError(Errors.OTHER_SIF_COUNTS.format(path=counts, text=X[0].text[:50]))
    model.attrs["weights"] = sif_weights(counted, a)


def _column(model: Tok2Vec, known: dict[str, float], doc: Doc, states: Floats2d) -> Floats2d:
    """(tokens, 1): the weight of each token; words that are not counted weigh 1."""
    found = numpy.array([known.get(token.lower_, 1.0) for token in doc], dtype=states.dtype)
    return model.ops.xp.asarray(found)[:, None]
