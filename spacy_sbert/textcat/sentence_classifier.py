"""The model of spaCy's own `textcat` and `textcat_multilabel` over sentence vectors."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy
from spacy.ml.models.textcat import NEG_VALUE, resize_and_set_ref
from spacy.tokens import Doc
from thinc.api import (
    Dropout,
    LayerNorm,
    Linear,
    Logistic,
    Model,
    Softmax_v2,
    chain,
    resizable,
)
from thinc.layers.resizable import resize_linear_weighted
from thinc.types import Floats2d

from ..architectures import SENTENCE_LISTENER, shared_sentence_encoder
from ..errors import WarnOnce, warn
from ..files.serialization import ChecksummedModel
from ..models.encoded_docs import EncodedDoc, EncodeSettings, TruncationCounter
from ..models.encoder import STATES, listens_for
from ..models.heads import Array, VectorLayer
from ..models.pooling import SentencePooling
from ..models.private_attributes import is_a
from ..models.ragged import borders_of
from ..models.sentence_encoder import SentenceEncoder
from ..models.span_batch import in_places, no_gradient
from ..models.spans import SPANS_KEY, members
from ..models.surroundings import undisturbed
from ..models.transformer import is_transformer_tok2vec
from ..validation import ConfiguredModel, Name, validated

# The states of wordpieces are not copied
_VECTORS_ALONE = EncodeSettings(token_vectors=False)


@validated
def textcat_sentence_vectors(
    exclusive_classes: bool,
    pooling: str = "mean",
    tok2vec: Model = SENTENCE_LISTENER,  # type: ignore[assignment]
    spans_key: Name = SPANS_KEY,
) -> Model[list[Doc], Floats2d]:
    """Return a classifier of sentence vectors, for spaCy's `textcat` or `textcat_multilabel`.

    y = softmax(W LayerNorm(x) + b), or the logistic function in place of softmax

    LayerNorm brings vectors of any length to a scale on which W and b learn as fast as the encoder,
    so that it does not matter whether they are normalised. Dropout follows it, as [training] sets
    it.

    exclusive_classes (bool): whether a text has one label (softmax), as `textcat` expects it, or
        any number of them (logistic function), as `textcat_multilabel` does.
    pooling (str): from the states of wordpieces to x, see spacy-sbert.SentenceEncoder.v1.
    tok2vec (Model): the listener to a transformer, spacy-sbert.SentenceListener.v1; or a
        transformer of its own, spacy-sbert.TransformerTok2Vec.v1, whose own pooling is of tokens.
    spans_key (str): a Doc with several members in doc.spans[spans_key], such as the pair of a
        training example, is no text to classify.
    RETURNS (Model): from Docs to the probabilities y, float32 (n, labels), of the vector x of each
        whole Doc; of a Doc without text, or with several members, zeros, and no gradient.
    RAISES (ValueError): if tok2vec is another model; in use, if the transformer does not read a
        Doc as a whole.
    """
    is_transformer = is_transformer_tok2vec(tok2vec) or is_a(tok2vec, "TransformerModel")
    if not is_transformer and listens_for(tok2vec) != STATES:
        raise ValueError(
            "The tok2vec of spacy-sbert.TextCatSentenceVectors.v1 is the Thinc model "
            f"'{tok2vec.name}', which has no wordpieces: expected spacy-sbert.SentenceListener.v1 "
            "or spacy-sbert.TransformerTok2Vec.v1."
        )
    encoder = shared_sentence_encoder(pooling, normalize=False, tok2vec=tok2vec)
    return SentenceClassifier(encoder, spans_key, exclusive_classes=exclusive_classes)


class SentenceClassifier(
    ConfiguredModel[list[Doc], Floats2d], ChecksummedModel[list[Doc], Floats2d]
):
    """Classify Docs by the sentence vectors of an encoder, see textcat_sentence_vectors."""

    def __init__(self, encoder: SentenceEncoder, spans_key: str, *, exclusive_classes: bool):
        output: Model = Softmax_v2()
        activations: list[Model] = []
        # Of labels that are added to trained ones, as spaCy's own architectures fill them in
        added = {"W": 0, "b": NEG_VALUE}
        if not exclusive_classes:
            output = Linear()
            activations = [Logistic()]
            added = {"W": 0, "b": 0}
        resizing: Model = resizable(output, partial(resize_linear_weighted, fill_defaults=added))
        super().__init__(
            "sentence_classifier",
            _forward,
            init=_init,
            dims={"nO": None},
            layers=[encoder, LayerNorm(), Dropout(), resizing, *activations],
            refs={"output_layer": output},
            attrs={"multi_label": not exclusive_classes, "resize_output": _resize},
        )
        self.spans_key = spans_key
        self._notices = WarnOnce(TruncationCounter)

    @property
    def encoder(self) -> SentenceEncoder:
        return cast(SentenceEncoder, self.layers[0])

    def encode(self, docs: list[Doc], is_train: bool) -> tuple[list[EncodedDoc], Callable]:
        """Return the rows of Docs and their vectors, and the backprop of the vectors."""
        if is_train:
            encoded, backprop = self.encoder(docs, is_train)
        else:
            encoded = self.encoder.encode(docs, _VECTORS_ALONE)
            backprop = no_gradient
        cuts = TruncationCounter()
        for doc, of_doc in zip(docs, encoded, strict=True):
            cuts.add(doc, of_doc)
        # In this batch, and maybe in later ones
        if cuts.count and self._notices.is_new("cuts"):
            warn(cuts.message)
        return encoded, backprop

    def has_several_members(self, doc: Doc) -> bool:
        """Return whether a Doc is several texts, such as a pair of a training example."""
        return len(members(doc, self.spans_key)) > 1

    def row_of(self, doc: Doc, encoded: EncodedDoc) -> int | None:
        """Return the row that is a whole Doc; None of a Doc without text, or of several members.

        RAISES (ValueError): if no row is.
        """
        rows = encoded.rows
        if not len(rows.spans) or self.has_several_members(doc):
            return None
        found = numpy.flatnonzero((rows.spans == (0, len(doc))).all(axis=1))
        if not len(found):
            raise ValueError(
                f"The transformer of a text classifier did not read the Doc '{doc.text[:50]}' as a "
                f"whole, but {len(rows.spans)} parts of it. Set its get_spans to "
                'spacy-sbert.sentence_spans.v1 with unit = "doc" or "doc+sent".'
            )
        row = int(found[0])
        return row if rows.has_text[row] else None


def _init(model: SentenceClassifier, X: list[Doc] | None = None, Y: Any = None) -> None:
    encoder = model.encoder
    encoder.initialize(X=X)
    states = encoder.source.width
    if states is None:
        raise ValueError(
            "A text classifier listens to an 'sbert_transformer' or 'transformer', and none before "
            "it is initialized. Add one before it, or give it one of its own: tok2vec = "
            "spacy-sbert.TransformerTok2Vec.v1."
        )
    width = cast(SentencePooling, encoder.get_ref("pooling")).pooled_width(states)
    layer_norm = model.layers[1]
    output = model.get_ref("output_layer")
    for layer in (layer_norm, output):
        layer.set_dim("nI", width)
    if Y is not None:
        model.set_dim("nO", Y.shape[1])
        output.set_dim("nO", Y.shape[1])
    layer_norm.initialize()
    output.initialize()


def _resize(model: SentenceClassifier, nO: int) -> SentenceClassifier:
    return resize_and_set_ref(model, nO, model.layers[3])


@undisturbed()
def _forward(
    model: SentenceClassifier, docs: list[Doc], is_train: bool
) -> tuple[Floats2d, Callable[[Array], object]]:
    encoded, backprop_docs = model.encode(docs, is_train)
    xp = model.ops.xp
    borders = borders_of(len(of_doc.vectors) for of_doc in encoded)
    # The zeros behind all rows stand for what has no vector
    zeros = model.ops.alloc2f(1, model.layers[1].get_dim("nI"))
    rows = [of_doc.vectors for of_doc in encoded]
    _check_width(model, rows)
    places = numpy.full(len(docs), borders[-1])
    for number, (doc, of_doc) in enumerate(zip(docs, encoded, strict=True)):
        row = model.row_of(doc, of_doc)
        if row is not None:
            places[number] = borders[number] + row
    has_vector = xp.asarray(places < borders[-1])[:, None]
    vectors, backprop_vectors = in_places(xp.concatenate([*rows, zeros]), places)
    classify: VectorLayer = chain(*model.layers[1:])
    scores, backprop_scores = classify(vectors, is_train)

    def backprop(d_scores: Array) -> object:
        _check_members(model, docs, d_scores)
        d_rows = backprop_vectors(backprop_scores(d_scores * has_vector))
        return backprop_docs(xp.split(d_rows[:-1], borders[1:-1]))

    return scores * has_vector, backprop


def _check_width(model: SentenceClassifier, rows: list[Floats2d]) -> None:
    expected = model.layers[1].get_dim("nI")
    if rows[0].shape[1] != expected:
        raise ValueError(
            f"The text classifier was initialized for vectors of {expected} numbers, and its "
            f"encoder makes {rows[0].shape[1]}. Restore the encoder, or initialize again."
        )


def _check_members(model: SentenceClassifier, docs: list[Doc], d_scores: Array) -> None:
    """Check that nothing would be learned of Docs of several members, which have no vector."""
    for number, doc in enumerate(docs):
        if model.has_several_members(doc) and d_scores[number].any():
            raise ValueError(
                f"The training example '{doc.text[:50]}' has doc.cats and several members, so that "
                "there is no vector of the whole. Remove its cats, or its members in "
                f"doc.spans['{model.spans_key}']."
            )
