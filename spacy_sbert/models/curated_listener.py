"""What a `curated_transformer` hands out and leaves on Docs, read without its package, which need not be there."""

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from typing import Protocol, TypeGuard, cast

import numpy
from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.types import Ragged
from thinc.util import get_array_module, to_numpy

from .engine.packing import ragged_arange
from .span_batch import Array, EncodedSpans, TokenAlignment, TokenEmbeddings, borders_of, in_places, read_tokens

# The attrs by which its ListenerStateUtils knows a listener, and speaks to it.
SENTINEL = "_TRANSFORMER_LISTENER"
UPSTREAM_NAME = "_upstream_name"
STATE = "_state"
READS_DOCS = "_USE_DOC_ANNOTATIONS_FOR_PREDICTION"
ALL_LAYERS = "_REQUIRES_ALL_LAYER_OUTPUTS"

PiecesBackprop = Callable[[list[Ragged]], object]  # takes the gradient of the wordpieces of each Doc


class _Outputs(Protocol):
    """What it hands out of a batch: for each Doc float (wordpieces, width), in stretches of a token."""

    last_hidden_layer_states: list[Ragged]


class ListenerState:
    """Where it leaves its output for a listener in training; a copy has nothing yet, and nothing is saved."""

    batch_id: int | None = None
    outputs: _Outputs | None = None
    backprop: Callable[..., object] | None = None

    def backprop_last_layer(self, d_pieces: list[Ragged]) -> object:
        """Hand back the gradient of the last layer.

        RAISES (RuntimeError): if spacy-curated-transformers cannot train with the installed NumPy: version 0.3.1 makes
            a float of an array of shape (1,), which NumPy 2.4 and later refuse.
        """
        backprop = cast(Callable[..., object], self.backprop)
        try:
            return backprop([[d_doc] for d_doc in d_pieces], outputs_to_backprop=(-1,))
        except TypeError as error:
            if "converted to Python scalars" not in str(error):
                raise
            installed = version("spacy-curated-transformers")
            raise RuntimeError(
                f"spacy-curated-transformers {installed} cannot train with NumPy {numpy.__version__}. Install "
                'an older one: pip install "numpy<2.4".'
            ) from error

    def __reduce__(self) -> tuple[type, tuple]:
        return ListenerState, ()


def listener_attrs(upstream_name: str) -> dict[str, object]:
    """Return what makes a layer one that it speaks to."""
    attrs: dict[str, object] = {SENTINEL: True, UPSTREAM_NAME: upstream_name, STATE: ListenerState()}
    return attrs | {READS_DOCS: True, ALL_LAYERS: False}


def is_curated(model: object) -> TypeGuard[Model]:
    """Whether a model is that of a `curated_transformer`, or a copy: it says how a listener to it is replaced."""
    replacing = model.attrs.get("replace_listener") if isinstance(model, Model) else None
    return getattr(replacing, "__module__", "").startswith("spacy_curated_transformers.")


def upstream_name(layer: Model) -> str | None:
    """Return the component that a layer of whatever package hears, "*" for any; None if it hears none (any more)."""
    if UPSTREAM_NAME in layer.attrs:
        return layer.attrs[UPSTREAM_NAME] if SENTINEL in layer.attrs else None
    return getattr(layer, "upstream_name", None)


def _is_replaced(layer: Model) -> bool:
    """Whether a layer holds a copy of a curated transformer in place of a listener to it."""
    return any(UPSTREAM_NAME in node.attrs and SENTINEL not in node.attrs for node in layer.walk())


def initialize(layer: Model, docs: list[Doc] | None) -> None:
    """Initialise what encodes; a copy in place of a listener has its weights, and cannot be initialised."""
    if not _is_replaced(layer):
        layer.initialize(X=docs)


def output_of(doc: Doc) -> object:
    """Return what a transformer left on a Doc. RAISES (ValueError): if there is none."""
    data = doc._.get("trf_data") if doc.has_extension("trf_data") else None
    if data is None:
        raise ValueError(
            f"The shared transformer has not processed this Doc ('{doc.text[:50]}'), so there is nothing to "
            "pool: it is disabled, excluded, or stands after the 'sbert' pipe. Enable it "
            '(nlp.enable_pipe("transformer")), put it first, and while training with a frozen transformer list '
            "it in [training.annotating_components]."
        )
    return data


def pieces_of(doc: Doc) -> Ragged:
    """Return the wordpieces of a Doc from the last layer, float (wordpieces, width), grouped by token.

    RAISES (ValueError): if there are none.
    """
    data = output_of(doc)
    pieces = getattr(data, "last_hidden_layer_state", None)
    if pieces is None:
        raise ValueError(
            f"The transformer left {type(data).__name__} on the Doc '{doc.text[:50]}' (doc._.trf_data), which "
            "the sentence encoder cannot read: expected the output of the 'transformer' or "
            "'curated_transformer' that it listens to. Let no other component stand between them that leaves "
            "something there."
        )
    return pieces


def annotate(model: Model, docs: list[Doc]) -> None:
    """Leave on Docs what the component of this model, a `tok2vec` or a `curated_transformer`, does."""
    if not is_curated(model):
        for doc, states in zip(docs, model.predict(docs), strict=True):
            doc.tensor = states
        return
    from spacy_curated_transformers.models.output import DocTransformerOutput  # noqa: PLC0415 (an optional extra)

    if not Doc.has_extension("trf_data"):  # in a process that has no such component
        Doc.set_extension("trf_data", default=None)
    given = model.predict(docs)
    for doc, outputs in zip(docs, given.all_outputs, strict=True):
        doc._.trf_data = DocTransformerOutput(all_outputs=outputs, last_layer_only=given.last_layer_only)


def read_pieces(
    docs: list[Doc], spans: list[list[Span]], heard: list[Ragged], backprop: PiecesBackprop, *, with_pieces: bool
) -> EncodedSpans:
    """Return the rows of Docs in wordpieces that were encoded in the context of the whole Doc.

    There are no special tokens among them, nor any of white space.

    spans: the rows of each Doc, in the order of the text. heard: the wordpieces of each Doc. backprop: takes their
        gradient. with_pieces (bool): whether to say where wordpieces stand: a wordpiece where its token does.
    """
    xp = get_array_module(heard[0].data)
    values = xp.concatenate([of_doc.dataXd for of_doc in heard])

    def backprop_values(d_values: Array) -> object:
        borders = borders_of(len(of_doc.dataXd) for of_doc in heard)[1:-1]
        parts = zip(xp.split(d_values, borders), heard, strict=True)
        return backprop([Ragged(d_part, of_doc.lengths) for d_part, of_doc in parts])

    if not any(spans):  # it waits for a gradient all the same
        return EncodedSpans.none(len(docs), lambda d_states: backprop_values(xp.zeros(values.shape, dtype="f")))
    of_docs: list[Array] = [of_doc.lengths for of_doc in heard]
    counts = to_numpy(get_array_module(of_docs[0]).concatenate(of_docs)).astype("int64")  # from a GPU at once
    places, batch = _rows_of_pieces(docs, spans, counts, with_pieces=with_pieces)
    windows = numpy.flatnonzero(batch.lengths)  # a row of white space alone has no states
    # Half precision is for the transformer: sums over wordpieces would lose too much in it.
    states, backprop_states = in_places(values.astype("f") if values.dtype == xp.float16 else values, places)
    batch.states = [TokenEmbeddings(windows, batch.lengths[windows], states)]
    batch.backprop = lambda d_states: backprop_values(backprop_states(d_states[0]))
    return batch


def _rows_of_pieces(
    docs: list[Doc], spans: list[list[Span]], counts: numpy.ndarray, *, with_pieces: bool
) -> tuple[numpy.ndarray, EncodedSpans]:
    """Where the wordpieces of rows stand among those of all Docs, and the rows.

    counts: int64 (tokens,), the wordpieces of each token of all Docs.
    """
    _, token_places, of_tokens = read_tokens(docs, spans, with_pieces=with_pieces)
    own = counts[token_places]
    places = ragged_arange((numpy.cumsum(counts) - counts)[token_places], own)
    row_of = numpy.repeat(numpy.arange(len(of_tokens.lengths)), of_tokens.lengths)
    lengths = numpy.bincount(row_of, weights=own, minlength=len(of_tokens.lengths)).astype("int64")
    rows = replace(of_tokens.rows, window_weights=lengths, has_text=lengths > 0)
    batch = EncodedSpans(rows, of_tokens.borders, lengths)
    if of_tokens.pieces is not None:
        characters = numpy.repeat(of_tokens.pieces.characters, own, axis=0)
        batch.pieces = TokenAlignment.of_rows(
            rows, batch.borders, lengths, numpy.ones(len(characters), bool), characters
        )
    return places, batch
