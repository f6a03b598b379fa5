"""The model of `sbert_transformer`, and what several components read of it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast
from weakref import WeakSet

import numpy
from spacy.attrs import IDX
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from spacy.util import minibatch
from thinc.api import Model
from thinc.types import Floats2d, Ragged
from thinc.util import get_array_module

from ..errors import Errors
from ..files.serialization import ChecksummedModel
from ..validation import ConfiguredModel
from .encoded_docs import EncodeSettings
from .encoder import TOKENS, Encoder, FindUpstream, InPipe
from .engine.packing import ragged_arange
from .pooling import SentencePooling
from .sbert_config import SentenceTransformersConfig
from .span_batch import (
    Array,
    EncodedSpans,
    SpanBatch,
    TokenEmbeddings,
    align_characters,
    borders_of,
    in_places,
    no_gradient,
    row_characters,
)
from .spans import getter_settings
from .surroundings import undisturbed
from .transformer import SpanTransformer, load

# From the states of each token's wordpieces to a vector
TokenPooling = Model[Ragged, Floats2d]
# Docs whose states are copied at a time: they stay in the cache
_CHUNK = 32
# Among the hooks of a Doc, which its bytes do not have
_STATES = "spacy_sbert.states_{id}"


class TransformerTok2Vec(
    ConfiguredModel, ChecksummedModel[list[Doc], list[Floats2d]], Encoder, Model
):
    """Encode Docs with a transformer, and pool the wordpieces of each token.

    The vector of a token is that of its wordpieces in all rows that it is in; zeros if it has none.

    transformer (SpanTransformer): encodes the rows of Docs.
    pooling (Model): from the wordpieces of each token to its vector.
    grad_factor (float): factor on the gradient that goes to the transformer.
    """

    def __init__(
        self, transformer: SpanTransformer, pooling: TokenPooling, grad_factor: float = 1.0
    ):
        super().__init__(
            "transformer_tok2vec",
            _forward,
            init=_init,
            layers=[transformer, pooling],
            dims={"nO": None},
            attrs={
                "replace_listener": _replace_listener,
                "replace_listener_cfg": _replace_listener_cfg,
            },
        )
        self.grad_factor = grad_factor

    @property
    def transformer(self) -> SpanTransformer:
        return cast(SpanTransformer, self.layers[0])

    @property
    def pooling(self) -> TokenPooling:
        return self.layers[1]

    # As an Encoder, in place of a listener to it, after nlp.replace_listeners

    kind = SpanTransformer.kind
    takes_prompts = True

    @property
    def is_loaded(self) -> bool:
        return self.transformer.is_loaded

    @property
    def folder(self) -> SentenceTransformersConfig | None:
        return self.transformer.folder

    @property
    def listeners(self) -> list[Model]:
        return []

    def models(self, find_upstream: FindUpstream, settings: object) -> list[Model]:
        return [self.transformer]

    def text_encoder(
        self, pooling: SentencePooling, settings: EncodeSettings, pipe: InPipe | None
    ) -> Any:
        return self.transformer.text_encoder(pooling, settings, pipe)

    def digest_settings(self, pooling: SentencePooling) -> object:
        return self.transformer.digest_settings(pooling)

    @contextmanager
    def read(
        self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool
    ) -> Iterator[EncodedSpans]:
        """Yield the rows of Docs and their states, see SpanTransformer.read.

        Windows that overlap as one row.
        """
        may_overlap = not is_train and not getter_settings(self.transformer.attrs["get_spans"])
        pieces_needed = with_pieces or may_overlap
        with self.transformer.read(
            docs, prompt=prompt, with_pieces=pieces_needed, is_train=is_train
        ) as batch:
            if may_overlap:
                batch.states = list(batch.states)
                batch = join_rows(docs, split_states(batch))
            yield batch

    def encode(self, docs: list[Doc], *, is_train: bool, with_pieces: bool = True) -> EncodedSpans:
        """Return the rows of Docs, and the states of all their wordpieces.

        with_pieces: see encode_spans.
        """
        with self.transformer.read(
            docs, prompt=None, with_pieces=with_pieces, is_train=is_train
        ) as batch:
            batch.states = list(batch.states)
        return batch

    @property
    def width(self) -> int:
        """The width of the vectors; loads the weights."""
        if not self.has_dim("nO"):
            load(self.transformer)
            self.set_dim("nO", self.transformer.get_dim("nO"))
        return self.get_dim("nO")

    def to_dict(self) -> dict:
        """Return the model's state.

        Loads the weights first, so that its width is saved with them.
        """
        load(self.transformer)
        self.set_dim("nO", self.transformer.get_dim("nO"))
        return super().to_dict()


def _init(model: Model, X: object = None, Y: object = None) -> None:
    tok2vec = cast(TransformerTok2Vec, model)
    _init_pooling(tok2vec.pooling, tok2vec.width)


def _init_pooling(pooling: TokenPooling, width: int) -> None:
    """Initialize the weights of a pooling, if it has any."""
    pooling.initialize(X=Ragged(pooling.ops.alloc2f(1, width), pooling.ops.asarray1i([1])))


def is_same_pooling(first: TokenPooling, second: TokenPooling) -> bool:
    """Return whether two poolings make the same vectors: of one name, and without weights."""
    has_weights = any(node.param_names for pooling in (first, second) for node in pooling.walk())
    return first.name == second.name and not has_weights


@undisturbed()
def _forward(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    tok2vec = cast(TransformerTok2Vec, model)
    batch = tok2vec.encode(docs, is_train=is_train)
    vectors, backprop_tokens = pool_tokens(
        tok2vec.pooling, docs, batch, tok2vec.width, is_train=is_train
    )

    def backprop(d_vectors: list[Floats2d]) -> list[Doc]:
        batch.backprop([d_part * tok2vec.grad_factor for d_part in backprop_tokens(d_vectors)])
        return docs

    return vectors, backprop


def _replace_listener(copied: TransformerTok2Vec, listener: Model, component: object) -> Model:
    """Return what takes a listener's place: a copy of the model, with the listener's settings."""
    if isinstance(listener, TransformerListener):
        copied.layers[1] = listener.pooling.copy()
    copied.grad_factor = getattr(listener, "grad_factor", copied.grad_factor)
    return copied


def _replace_listener_cfg(
    transformer_cfg: dict[str, Any], listener_cfg: dict[str, Any]
) -> dict[str, Any]:
    config = dict(transformer_cfg)
    for name in ("pooling", "grad_factor"):
        if name in listener_cfg:
            config[name] = listener_cfg[name]
    return config


# Vectors of tokens


def pool_tokens(
    pooling: TokenPooling, docs: list[Doc], batch: EncodedSpans, width: int, *, is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Array]]]:
    """Return the vectors of the tokens of Docs, and their backprop to the states.

    batch (EncodedSpans): of the Docs, with the characters of its wordpieces. width (int): of a
        vector.
    RETURNS (list[Floats2d], Callable): float (tokens, width) for each Doc; zeros for a token
        without wordpieces.
    """
    if not len(batch.lengths):
        return [pooling.ops.alloc2f(len(doc), width) for doc in docs], lambda d_vectors: []
    pieces, backprop_pieces = _token_pieces(docs, batch)
    xp = get_array_module(pieces.dataXd)
    counts = numpy.asarray(pieces.lengths)
    vectors = xp.zeros((len(counts), width), dtype=pieces.dataXd.dtype)
    of_docs = [vectors[start:end] for start, end in pairwise(borders_of(map(len, docs)))]
    # Nothing but white space
    if not counts.any():
        return of_docs, lambda d_vectors: backprop_pieces(pieces.dataXd)
    # A pooling need not know what to do with nothing
    held = xp.asarray(numpy.flatnonzero(counts))
    lengths = pooling.ops.asarray1i(counts[counts > 0].tolist())
    pooled, backprop_pooling = pooling(Ragged(pieces.data, lengths), is_train)
    vectors[held] = pooled

    def backprop(d_vectors: list[Floats2d]) -> list[Array]:
        return backprop_pieces(backprop_pooling(xp.concatenate(d_vectors)[held]).dataXd)

    return of_docs, backprop


def _token_pieces(
    docs: list[Doc], batch: EncodedSpans
) -> tuple[Ragged, Callable[[Array], list[Array]]]:
    """Return the states of the wordpieces of each token of Docs, and their backprop."""
    parts = cast(Sequence[TokenEmbeddings], batch.states)
    xp = get_array_module(parts[0].values)
    align = _align_tokens(docs, batch)
    values = parts[0].values if len(parts) == 1 else xp.concatenate([part.values for part in parts])
    pieces, backprop_places = in_places(values, _places(batch)[align.dataXd])
    borders = borders_of(len(part.values) for part in parts)[1:-1]
    return Ragged(pieces, align.lengths), lambda d_pieces: xp.split(
        backprop_places(d_pieces), borders
    )


def _align_tokens(docs: list[Doc], batch: EncodedSpans) -> Ragged:
    """Return the ascending indices of the wordpieces of each token of Docs.

    They are those that share a character with it.
    """
    # Docs are laid end to end on one line of characters
    starts = borders_of(len(doc.text) + 1 for doc in docs)
    line = numpy.concatenate(
        [
            doc.to_array(IDX).astype("int64") + start
            for doc, start in zip(docs, starts, strict=False)
        ]
    )
    of_windows = numpy.repeat(starts[:-1], numpy.diff(batch.window_borders))
    places = (
        cast(numpy.ndarray, batch.characters) + numpy.repeat(of_windows, batch.lengths)[:, None]
    )
    is_text = cast(numpy.ndarray, batch.of_text)
    return align_characters(line, places[:, 0], numpy.where(is_text, places[:, 1], 0))


def _places(batch: EncodedSpans) -> numpy.ndarray:
    """Return where the state of each wordpiece is among those of all parts, int64 (N,)."""
    starts = numpy.cumsum(batch.lengths) - batch.lengths
    order = numpy.concatenate(
        [ragged_arange(starts[part.windows], part.lengths) for part in batch.states]
    )
    places = numpy.empty(len(order), dtype="int64")
    places[order] = numpy.arange(len(order))
    return places


class _DocsOfInitialize(WeakSet[Doc]):
    """Docs that a component is initialized with, which no transformer has processed.

    A copy is empty.
    """

    def __reduce__(self) -> tuple[type, tuple]:
        return _DocsOfInitialize, ()


class TransformerListener(ConfiguredModel, Model):
    """Listen for the vectors of tokens of the `sbert_transformer` before its component.

    upstream_name (str): of the component, "*" for any.
    pooling (Model): from the wordpieces of each token to its vector.
    grad_factor (float): factor on the gradient that goes to the transformer.
    """

    name = "sbert-transformer-listener"
    listens_for = TOKENS

    def __init__(self, upstream_name: str, pooling: TokenPooling, grad_factor: float = 1.0):
        Model.__init__(
            self, self.name, _listen, init=_init_listener, layers=[pooling], dims={"nO": None}
        )
        self.upstream_name = upstream_name
        self.grad_factor = grad_factor
        self.upstream: TransformerTok2Vec | None = (
            # The model of the component, once the pipeline is known
            None
        )
        self.needs_states = (
            # Whether `doc.tensor` will not do, as it pools in another way than the component
            False
        )
        self.initialized_with = _DocsOfInitialize()
        self.receive(None, None, None)

    @property
    def pooling(self) -> TokenPooling:
        return self.layers[0]

    def receive(
        self, batch_id: int | None, outputs: list[Floats2d] | None, backprop: Callable | None
    ) -> None:
        """Take the vectors of a batch in training, and the callback for their gradient."""
        self._batch_id = batch_id
        self._outputs = outputs
        self._backprop = backprop

    def received(self, docs: list[Doc]) -> tuple[list[Floats2d], Callable] | None:
        """Return the vectors of a batch in training, and the callback.

        None if there are none that were not used.
        """
        if self._outputs is None or self._backprop is None:
            return None
        if self._batch_id != Tok2VecListener.get_batch_id(docs):
            raise ValueError(Errors.OTHER_BATCH.format(upstream=self.upstream_name))
        return self._outputs, self._backprop


def _init_listener(model: Model, X: list[Doc] | None = None, Y: object = None) -> None:
    listener = cast(TransformerListener, model)
    listener.initialized_with = _DocsOfInitialize(X or [])
    if listener.upstream is not None:
        listener.set_dim("nO", listener.upstream.width, force=True)
        _init_pooling(listener.pooling, listener.upstream.width)


def _listen(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    listener = cast(TransformerListener, model)
    received = listener.received(docs) if is_train else None
    # In use, or the transformer is frozen
    if received is None:
        return _vectors_on_docs(listener, docs, is_train)
    vectors, upstream = received

    def backprop(d_vectors: list[Floats2d]) -> list[Doc]:
        listener.receive(None, None, None)
        upstream([d_doc * listener.grad_factor for d_doc in d_vectors])
        # TextCatEnsemble adds it to that of another layer
        return docs

    return vectors, backprop


def _vectors_on_docs(
    listener: TransformerListener, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], object]]:
    """Return the vectors of tokens that a transformer left on Docs, and the pooling's backprop."""
    tok2vec = listener.upstream
    if tok2vec is None:
        raise ValueError(
            "A component listens to an 'sbert_transformer' (upstream = "
            f"'{listener.upstream_name}'), and none stands before it. Add one before it, or "
            "correct upstream."
        )
    width = tok2vec.width
    is_processed = any(doc.tensor.size for doc in docs)
    if not is_processed and listener.initialized_with.issuperset(docs):
        return [listener.ops.alloc2f(len(doc), width) for doc in docs], no_gradient
    if listener.needs_states:
        batch = join_states(take_states(docs, tok2vec.transformer, listener))
        return pool_tokens(listener.pooling, docs, batch, width, is_train=is_train)
    for doc in docs:
        if len(doc) and doc.tensor.shape != (len(doc), width):
            raise ValueError(Errors.NOT_ENCODED.format(text=doc.text[:50]))
    empty = listener.ops.alloc2f(0, width)
    return [
        listener.ops.asarray2f(cast(Any, doc.tensor)) if len(doc) else empty for doc in docs
    ], no_gradient


# States on Docs, which components batch in their own way


@dataclass
class DocStates:
    """The rows of one Doc, and the states of their wordpieces, N in all."""

    rows: SpanBatch
    # int64 (windows,), the wordpieces of each window
    lengths: numpy.ndarray
    # Of each window, float (wordpieces, width)
    values: list[Array]
    # int32 (N, 2), of each wordpiece in the Doc
    characters: numpy.ndarray
    # Bool (N,), all but special tokens and those of a prompt
    of_text: numpy.ndarray
    n_lead: int = 0
    # Of the first row
    text: str | None = None

    @classmethod
    def empty(cls) -> "DocStates":
        """Return those of a Doc without text."""
        nothing = numpy.zeros(0, dtype="int64")
        return cls(
            SpanBatch.empty(), nothing, [], numpy.zeros((0, 2), "int32"), numpy.zeros(0, bool)
        )


_EMPTY = DocStates.empty()


class _StoredStates:
    """The states of a Doc for those that listen: each takes them once, then they go.

    A copy is empty.
    """

    def __init__(self, states: DocStates | None = None, listeners: Iterable[Model] = ()):
        self.states = states
        self.waiting = {listener.id for listener in listeners}

    def __call__(self) -> DocStates | None:
        return self.states

    def __reduce__(self) -> tuple[type, tuple]:
        return _StoredStates, ()


def split_states(batch: EncodedSpans) -> list[DocStates]:
    """Return the states of a batch by Doc."""
    if not len(batch.lengths):
        return [DocStates.empty() for _ in batch.borders[1:]]
    values: list[Array] = [None] * len(batch.lengths)
    for part in batch.states:
        borders = pairwise(borders_of(part.lengths.tolist()))
        for window, (start, end) in zip(part.windows.tolist(), borders, strict=True):
            values[window] = part.values[start:end]
    pieces = borders_of(batch.lengths.tolist())
    texts: Sequence[str | None] = batch.texts or [None] * len(batch.rows.spans)
    docs = []
    for (start, end), (first, last) in zip(
        pairwise(batch.borders), pairwise(batch.window_borders), strict=True
    ):
        own = slice(pieces[first], pieces[last])
        docs.append(
            DocStates(
                batch.rows.part(slice(start, end), slice(first, last)),
                batch.lengths[first:last],
                values[first:last],
                cast(numpy.ndarray, batch.characters)[own],
                cast(numpy.ndarray, batch.of_text)[own],
                batch.n_lead,
                texts[start] if start < end else None,
            )
        )
    return docs


def join_states(docs: Sequence[DocStates]) -> EncodedSpans:
    """Return the states of several Docs as one batch."""
    held = [doc for doc in docs if len(doc.lengths)]
    if not held:
        return EncodedSpans.empty(len(docs))
    rows = SpanBatch.join([doc.rows for doc in held])
    borders = borders_of(len(doc.rows.spans) for doc in docs)
    lengths = numpy.concatenate([doc.lengths for doc in held])
    batch = EncodedSpans(rows, borders, lengths, n_lead=held[0].n_lead)
    firsts = borders_of(len(doc.lengths) for doc in held)
    parts = []
    for numbers in part_numbers(held):
        values = [window for i in numbers for window in held[i].values]
        windows = numpy.concatenate([numpy.arange(firsts[i], firsts[i + 1]) for i in numbers])
        joined = get_array_module(values[0]).concatenate(values)
        parts.append(
            TokenEmbeddings(windows, lengths[windows], joined, held[numbers[0]].rows.foreign)
        )
    batch.states = parts
    characters = numpy.concatenate([doc.characters for doc in held])
    batch.keep_pieces(characters, numpy.concatenate([doc.of_text for doc in held]))
    if len(rows.spans) == len(held):
        batch.texts = cast(Any, [doc.text for doc in held])
    return batch


def join_rows(docs: Sequence[Doc], states: Sequence[DocStates]) -> EncodedSpans:
    """Return the states of several Docs as one batch.

    Overlapping windows become one row each.
    """
    pairs = zip(docs, states, strict=True)
    return join_states([as_stretch(own, doc)[0] if own.rows.overlap else own for doc, own in pairs])


def part_numbers(docs: Sequence[DocStates]) -> list[list[int]]:
    """Return which Docs each part of a joined batch is made of.

    They are of one kind, and few enough to stay in the cache.
    """
    kinds = [
        [i for i, doc in enumerate(docs) if doc.rows.foreign == is_stretch]
        for is_stretch in (False, True)
    ]
    return [numbers for kind in kinds for numbers in minibatch(kind, _CHUNK)]


def as_stretch(states: DocStates, doc: Doc) -> tuple[DocStates, numpy.ndarray]:
    """Return overlapping windows of a Doc as one row, and which of their wordpieces are in it.

    Of each token these are the wordpieces in the first window that it is in.
    """
    ends = numpy.where(states.of_text, states.characters[:, 1], 0)
    align = align_characters(doc.to_array(IDX).astype("int64"), states.characters[:, 0], ends)
    chosen = numpy.unique(_in_first_windows(align, states.lengths))
    n_text = len(chosen)
    if not n_text:
        # A special token stands for no text
        chosen = numpy.zeros(1, dtype="int64")
    xp = get_array_module(states.values[0])
    rows = SpanBatch(
        numpy.array([[0, states.rows.spans[:, 1].max()]]),
        row_of=numpy.zeros(1, dtype="int64"),
        window_weights=numpy.array([n_text]),
        n_cut=numpy.array([states.rows.n_cut.sum()]),
        settings=states.rows.settings,
        characters=row_characters([doc[:]], [doc.text]),
        is_stretch=numpy.array([True]),
    )
    values = [xp.concatenate(states.values)[chosen]]
    own = DocStates(
        rows, numpy.array([len(chosen)]), values, states.characters[chosen], states.of_text[chosen]
    )
    return own, chosen


def _in_first_windows(align: Ragged, lengths: numpy.ndarray) -> numpy.ndarray:
    """Return the indices of the wordpieces of each token in the first window that it is in."""
    pieces = numpy.asarray(align.dataXd)
    counts = numpy.asarray(align.lengths)
    windows = numpy.repeat(numpy.arange(len(lengths)), lengths)[pieces]
    firsts = numpy.cumsum(counts) - counts
    return pieces[windows == windows[numpy.repeat(firsts, counts)]]


def store_states(
    doc: Doc, states: DocStates, transformer: SpanTransformer, listeners: list[Model]
) -> None:
    """Leave states on a Doc for listeners."""
    doc.user_hooks[_STATES.format(id=transformer.id)] = cast(Any, _StoredStates(states, listeners))


def take_states(docs: list[Doc], transformer: SpanTransformer, listener: Model) -> list[DocStates]:
    """Return the states that a transformer left on Docs. The last listener removes them.

    RAISES (ValueError): if it left none on a Doc that has text.
    """
    name = _STATES.format(id=transformer.id)
    found = []
    for doc in docs:
        stored = doc.user_hooks.get(name)
        states = stored.states if isinstance(stored, _StoredStates) else None
        if states is None and len(doc):
            raise ValueError(Errors.NOT_ENCODED.format(text=doc.text[:50]))
        found.append(_EMPTY if states is None else states)
    # One may be there twice
    for doc in docs:
        stored = doc.user_hooks.get(name)
        if isinstance(stored, _StoredStates):
            stored.waiting.discard(listener.id)
            if not stored.waiting:
                del doc.user_hooks[name]
    return found
