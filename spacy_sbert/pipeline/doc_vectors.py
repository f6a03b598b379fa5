"""Sentence vectors of Docs, Spans and Tokens: everything that `doc.vector` and `doc.similarity` depend on.

A pipe stores a record of vectors in doc.user_data (`store`, see records.py), and sets hooks (`install_hooks`). The
hooks are plain functions of this module that read the record at each call (`vector`, `has_vector`, `similarity`): a
pickled Doc carries their names alone. Where spaCy drops hooks, `restore` sets them again, and `doc._.sbert_vector`
works without them (`_common.py`).
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar, cast, overload
from weakref import ref

import numpy
from spacy.errors import Warnings as SpacyWarnings
from spacy.language import Language
from spacy.lexeme import Lexeme
from spacy.tokens import Doc, Span, Token
from thinc.types import Floats2d, Ints1d, Ragged
from thinc.util import to_numpy

from ..errors import Errors, Warnings, warn
from ..models.pooling import Pooling, stretch_pooling
from ..models.spans import trimmed
from ..similarity import cosine, lengths, unit_length
from .records import PREFIX, Encoders, PlacedRecord, Record, encoders_of, find, names, parts_of, record_of, text_of

SPACY = "spaCy's own vectors"
Piece = Doc | Span | Token
Dense = Callable[[numpy.ndarray], numpy.ndarray]  # the dense layer of a pipe, for one pooled vector
ContextT = TypeVar("ContextT")
_warned: set[object] = set()  # in this process: of lost hooks, and of each pair of encoders


def store(doc: Doc, name: str, data: Record) -> None:
    """Put a pipe's record on a Doc, last of all, and remove the one of an earlier run.

    The key is that of an extension attribute of a Span: `Doc.from_docs` and `Span.as_doc` then shift it with the text.
    """
    user_data = cast(dict[Any, Any], doc.user_data)
    for record in find(doc, name):
        del user_data["._.", PREFIX + name, record.start, record.end]
    if "text" not in data:
        data["text"] = doc.text
    user_data["._.", PREFIX + name, 0, len(data["text"])] = data


# Look-up


def doc_of(obj: Piece) -> Doc:
    """Return the Doc that a Doc, Span or Token is of. RAISES (TypeError): if it is none of them."""
    if isinstance(obj, Doc):
        return obj
    if not isinstance(obj, Span | Token):
        raise TypeError(
            f"There is no vector of {repr(obj)[:50]}: expected a Doc, Span or Token that the pipeline has processed."
        )
    return obj.doc


def vector(obj: Piece, name: str | None = None, dense: Dense | None = None) -> numpy.ndarray:
    """Return the stored vector of a Doc, Span or Token.

    A Doc's is its pooled row, or the mean of its rows; a Span's its row if it is one, otherwise, as a Token's, the
    same pooling over its wordpieces in context.

    obj (Doc, Span or Token): what to look up.
    name (str): the pipe whose vector is wanted; by default that of the pipe that answers `doc.vector`.
    dense (Callable): the dense layer of the pipe, if it has one: Spans and Tokens that are not rows need it.
    RETURNS (float32 array of shape (width,)): the vector; zeros where there is no text.
    RAISES (ValueError): if the Doc carries no stored vectors, or none for this Span.
    """
    records = find(doc_of(obj), name)
    if isinstance(obj, Doc) and not records and name in (None, "sbert") and _is_detached(obj):
        return cast(numpy.ndarray, obj._vector)  # type: ignore[attr-defined]  # noqa: SLF001 (what Span.as_doc sets)
    if not records:
        raise no_vectors(obj, name)
    if isinstance(obj, Doc):
        return doc_vector(obj, records, dense)
    if isinstance(obj, Span):
        return span_vector(obj, records, dense)
    return _stretch_vector(obj, obj.idx, obj.idx + len(obj), records, dense)


def has_vector(obj: Piece) -> bool:
    """Return whether a Doc, Span or Token has any wordpiece to make a vector of; False for empty and white text."""
    doc = doc_of(obj)
    records = find(doc)
    if not records and not (isinstance(obj, Doc) and _is_detached(obj)):
        return False
    if vector(obj).any():
        return True
    if isinstance(obj, Doc) or (isinstance(obj, Span) and len(obj) == len(doc)):  # zeros, of words that are unknown
        return any(record.data["has_text"].any() for record in records)
    start, end = trimmed(obj.text, obj.idx if isinstance(obj, Token) else obj.start_char)
    in_context = [record for record in records if "states" in record.data and record.row_at(start, end) is None]
    return any(_covered(record, start, end).any() for record in in_context)


def _covered(record: PlacedRecord, start: int, end: int) -> numpy.ndarray:
    """Return the wordpieces in the characters [start, end), bool (wordpieces,).

    A wordpiece may reach over tokens ("cannot" is one, and two tokens): it counts in both.
    """
    places = record.data["characters"] + record.start
    return (places[:, 0] < end) & (places[:, 1] > start)


def vector_norm(obj: Doc | Token) -> float:
    """Return the Euclidean norm of the vector of a Doc or Token."""
    return float(lengths(vector(obj)[None].astype("float64"))[0])


def _is_detached(doc: Doc) -> bool:
    """Return whether a Doc comes from `Span.as_doc`, which hands on hooks and the Span's vector, but no user data."""
    return doc.user_hooks.get("vector") is vector and doc._vector is not None  # type: ignore[attr-defined]  # noqa: SLF001 (what Span.as_doc sets)


def no_vectors(obj: object, name: str | None = None) -> ValueError:
    """Return the error for an object whose Doc carries no vectors of a pipe."""
    which = "" if name is None else f" of a pipe named '{name}'"
    return ValueError(
        f"This {type(obj).__name__} carries no sentence vectors{which}: its Doc was not processed by an 'sbert' pipe, "
        "or its user data did not travel with it. Process the text with the pipeline (nlp or nlp.pipe), or transport "
        "the Doc with its user data (DocBin(store_user_data=True), Span.as_doc(copy_user_data=True))."
    )


def doc_vector(doc: Doc, records: Sequence[PlacedRecord], dense: Dense | None = None) -> numpy.ndarray:
    """Return the vector of a Doc: its row, or the mean of its rows; zeros without text.

    RAISES (ValueError): if it was joined from others, and a part has no vector, or they are of unequal kind.
    """
    text = text_of(doc)
    parts, is_cut = parts_of(records, text)
    if is_cut:
        return _stretch_vector(doc[:], *trimmed(text, 0), parts, dense)  # as the Span that it was
    parts = [record for record in parts if len(record.vectors)]
    kinds = sorted({_kind(record.data) for record in parts})
    if len(kinds) > 1:
        raise ValueError(
            f"This Doc was joined from others whose vectors are of several kinds ({kinds[0]}; {kinds[-1]}), "
            "which have no mean. Process all of them with the same pipeline."
        )
    check_one_encoder(encoders_of(parts))
    rows = [row for record in parts for row in record.vectors]
    if not rows:
        return numpy.zeros((max(record.data["width"] for record in records),), dtype="float32")
    return rows[0] if len(rows) == 1 else numpy.stack(rows).mean(axis=0)


def _kind(data: Record) -> str:
    how = f"pooling {data['pooling']}, {'' if data['normalize'] else 'not '}normalized" if "pooling" in data else ""
    return f"{how or 'combined by ' + repr(data['combined_by'])}, {data['width']} numbers"


def span_vector(span: Span, records: Sequence[PlacedRecord], dense: Dense | None = None) -> numpy.ndarray:
    """Return the vector of a Span: its row, or its wordpieces pooled in context.

    A Span that was a Doc before `Doc.from_docs` has the vector of that Doc.
    """
    if span.start == 0 and span.end == len(span.doc):
        return doc_vector(span.doc, records, dense)
    ends = span.end_char, span.start_char + len(span.text_with_ws)
    for record in records:  # one even in a joined Doc, if the other parts have none
        if record.start == span.start_char and record.end in ends and record.place_in(text_of(span.doc)):
            if len(record.vectors):
                return record.vectors.mean(axis=0)
            break
    return _stretch_vector(span, *trimmed(span.text, span.start_char), records, dense)


def _stretch_vector(
    piece: Span | Token, start: int, end: int, records: Sequence[PlacedRecord], dense: Dense | None
) -> numpy.ndarray:
    """Return the vector of the characters [start, end) of a Doc, without white space at the ends."""
    zeros = numpy.zeros((records[0].data["width"],), dtype="float32")
    text = text_of(piece.doc)[start:end]
    if not text.strip():
        return zeros
    record = record_of(piece.doc, records, start, end)
    data, row = record.data, record.row_at(start, end)
    if row is not None:
        return row
    _check_states(record, text, dense)
    states = data["states"][_covered(record, start, end)]
    last = start + len(text.rstrip()) - 1
    if data["truncated"] and not _covered(record, last, last + 1).any():
        _notify(piece.doc, record.name, Warnings.BEHIND_LIMIT)
    elif isinstance(piece, Span) and len(states):
        _notify(piece.doc, record.name, Warnings.POOLED_IN_CONTEXT)
    if not len(states):
        return zeros
    stretch = Ragged(
        cast(Floats2d, numpy.ascontiguousarray(states)), cast(Ints1d, numpy.array([len(states)], dtype="int32"))
    )
    pooled = cast(numpy.ndarray, _pooling_on_cpu(data["pooling"]).predict(stretch))[0]
    if dense is not None:
        pooled = dense(pooled)
    if data["normalize"]:
        pooled = unit_length(pooled[None])[0]
    return pooled[: data["width"]]


def _check_states(record: PlacedRecord, text: str, dense: Dense | None) -> None:
    """Refuse a stretch of text that is not a row, where its wordpieces are not known."""
    span = f"The span '{text[:50]}' is not a row (a whole Doc, a sentence, or a member of a pair), and "
    data, pipe = record.data, record.data.get("combined_by", record.name)
    ask = f"Ask the pipe: nlp.get_pipe('{pipe}').vector(span)."
    if "combined_by" in data:
        raise ValueError(f"{span}the meta-embedding '{pipe}' stores vectors of rows alone. {ask}")
    if "states" not in data:
        raise ValueError(
            f"{span}its Doc was processed with token_vectors = false, so its vector is not known. Set "
            "token_vectors = true in the config of the 'sbert' pipe to have vectors for any Span and Token."
        )
    if data.get("dense") and dense is None:
        raise ValueError(f"{span}its vector needs the dense layer of the pipe '{pipe}'. {ask}")


@cache
def _pooling_on_cpu(name: str) -> Pooling:
    layer = stretch_pooling(name)
    layer.to_cpu()  # the vectors on a Doc are there
    return layer


def rows_of(doc: Doc, records: Sequence[PlacedRecord]) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return the rows of a Doc, in the order of its text, and which of them have text.

    RETURNS (int32 (rows, 2), bool (rows,)): the characters of each; a Doc that was cut out of a longer one is one row.
    RAISES (ValueError): if a part of the Doc has no vector.
    """
    text = text_of(doc)
    parts, is_cut = parts_of(records, text)
    if is_cut:
        start, end = trimmed(text, 0)
        n_rows = int(start < end)
        return numpy.array([[start, end]] * n_rows, dtype="int32").reshape(-1, 2), numpy.ones((n_rows,), dtype=bool)
    return numpy.concatenate([record.rows for record in parts]), numpy.concatenate([r.data["has_text"] for r in parts])


# Hooks


class _PipeRef:
    """A weak reference to the pipe that set the hooks of a Doc, one of the hooks itself; a pickled one is empty.

    pipe (object): an `sbert` or `sbert_meta` pipe.
    """

    def __init__(self, pipe: object = None):
        self._ref = None if pipe is None else ref(pipe)

    def __call__(self) -> Any:  # noqa: ANN401 (a component of any class)
        """Return the pipe; None if it is gone, or the Doc was pickled."""
        return None if self._ref is None else self._ref()

    def __reduce__(self) -> tuple[type, tuple]:
        return _PipeRef, ()


def install_hooks(doc: Doc, name: str = "", pipe: object = None) -> None:
    """Let a Doc, its Spans and its Tokens answer from the stored vectors.

    There is no Span hook named vector_norm: spaCy would return the vector for it.

    name (str), pipe (object): the `sbert` or `sbert_meta` pipe that answers, which encodes queries that are str; None
        if it is not known.
    """
    doc.user_hooks.update(vector=vector, has_vector=has_vector, vector_norm=vector_norm, similarity=similarity)
    doc.user_span_hooks.update(vector=vector, has_vector=has_vector, similarity=similarity)
    doc.user_token_hooks.update(vector=vector, has_vector=has_vector, vector_norm=vector_norm, similarity=similarity)
    if pipe is not None:
        doc.user_hooks[PREFIX + name] = cast(Any, _PipeRef(pipe))


def pipe_of(doc: Doc, name: str) -> Any:  # noqa: ANN401 (a component of any class)
    """Return the pipe of this name that set the hooks of a Doc; None if it is gone."""
    hook = doc.user_hooks.get(PREFIX + name)
    return hook() if isinstance(hook, _PipeRef) else None


def _notify(doc: Doc, name: str, message: str) -> None:
    """Warn once for each pipe; of vectors whose pipe is gone, as often as the filters of warnings say."""
    pipe = pipe_of(doc, name)
    if pipe is None:
        warn(message.format(name=name))
    else:
        pipe.notify(message.format(name=name))


@overload
def restore(doc: Doc, nlp: Language | None = None) -> Doc: ...
@overload
def restore(doc: Collection[Doc], nlp: Language | None = None) -> list[Doc]: ...  # type: ignore[overload-overlap]  # a list is no stream
@overload
def restore(doc: Iterable[Doc], nlp: Language | None = None) -> Iterator[Doc]: ...
@overload
def restore(doc: Iterable[tuple[Doc, ContextT]], nlp: Language | None = None) -> Iterator[tuple[Doc, ContextT]]: ...
def restore(doc: Any, nlp: Language | None = None) -> Any:
    """Set the hooks of Docs again that spaCy has dropped, so that `vector`, `has_vector` and `similarity` answer.

    Needed after `Doc.to_bytes`, `DocBin`, `nlp.pipe(n_process=2)` and `Doc.from_docs`; does no harm elsewhere.

    doc (Doc, Collection[Doc] or Iterable[Doc]): Docs that carry stored vectors. One Doc, and a collection such as a
        list, are restored at once; a stream such as `nlp.pipe(texts, n_process=2)` while it is read. In place of a Doc
        there may be a Doc and its context, as in `nlp.pipe(..., as_tuples=True)`.
    nlp (Language): the pipeline that made the vectors, which then encodes queries that are str.
    RETURNS (Doc, list[Doc] or Iterator[Doc]): the same Docs, with their contexts. A stream that is never read warns
        when it is deleted.
    RAISES (ValueError): if a Doc carries no stored vectors. (TypeError): if something is not a Doc.
    """
    if isinstance(doc, Doc):
        return _restored(doc, nlp)
    if isinstance(doc, Span) or not isinstance(doc, Iterable):
        raise _not_docs(doc)
    if not isinstance(doc, Collection):
        return _RestoredStream(iter(doc), nlp)
    return [_restored(item, nlp) for item in doc]


class _RestoredStream(Iterator[Any]):
    """Docs of a stream, each restored when it is read."""

    def __init__(self, docs: Iterator[Any], nlp: Language | None):
        self._docs, self._nlp = docs, nlp
        self._is_read = False

    def __next__(self) -> Any:  # noqa: ANN401 (a Doc, or a Doc and its context)
        self._is_read = True
        return _restored(next(self._docs), self._nlp)

    def __del__(self) -> None:
        if not self._is_read:
            warnings.warn(Warnings.RESTORE_UNUSED, stacklevel=2)  # the statement whose result was dropped


def _restored(item: Any, nlp: Language | None) -> Any:  # noqa: ANN401 (a Doc, or a Doc and its context)
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Doc):
        return _restored(item[0], nlp), item[1]
    if not isinstance(item, Doc):
        raise _not_docs(item)
    if not find(item):
        raise no_vectors(item)
    install_hooks(item)
    for name, pipe in [] if nlp is None else nlp.components:
        if name in names(item):
            item.user_hooks[PREFIX + name] = cast(Any, _PipeRef(pipe))
    return item


def _not_docs(value: object) -> TypeError:
    return TypeError(
        f"Cannot restore {repr(value)[:50]}: expected a Doc, a list of Docs, or a stream of them such as "
        "nlp.pipe(texts, n_process=2) or doc_bin.get_docs(nlp.vocab). With as_tuples=True each Doc has its context."
    )


def warn_of_lost_hooks(doc: Doc) -> None:
    """Warn, once in a process, of a Doc that carries vectors for `doc.vector`, but whose hooks spaCy has dropped."""
    is_lost = "vector" not in doc.user_hooks and any(record.data["set_hooks"] for record in find(doc))
    if is_lost and Warnings.ARRIVED not in _warned:
        _warned.add(Warnings.ARRIVED)
        warn(Warnings.ARRIVED)


# Similarity


def similarity(first: Piece, second: object) -> float:
    """Return the cosine similarity of a Doc, Span or Token to another one, or to a Lexeme.

    cos(u, v) = (u / ||u||) . (v / ||v||), and 0.0 where either has no text.

    A Lexeme has a static vector: one of another width is compared with the static vector of the other side, as spaCy
    does without hooks. Vectors of two encoders are compared with a warning.

    RETURNS (float): the similarity, from -1 to 1.
    RAISES (ValueError): if either side has no vectors, or the two have unequal width.
    """
    if isinstance(second, Lexeme) and second.has_vector:
        records = find(doc_of(first))
        width = records[0].data["width"] if records else len(vector(first))
        if width != len(second.vector):
            return _static_similarity(first, second, width)
    return _similarity(first, second, None)


def sentence_similarity(first: Piece, second: Piece, name: str | None = None) -> float:
    """Return the cosine similarity of the sentence vectors of two Docs, Spans or Tokens, whatever answers `similarity`.

    name (str): the pipe whose vectors are compared; by default the one that answers `doc.vector`.
    RAISES (TypeError): if the other side is something else. (ValueError): if either side has no sentence vector, or the
        two have unequal width.
    """
    if not isinstance(second, Piece):
        raise TypeError(
            f"A {type(second).__name__} has no sentence vector: expected a Doc, Span or Token that an 'sbert' "
            "pipe has processed, such as nlp(text)."
        )
    doc = doc_of(second)
    if not names(doc) and not _is_detached(doc):
        raise no_vectors(second)
    return _similarity(first, second, name)


def _similarity(first: Piece, second: object, name: str | None) -> float:
    for obj in (first, second):
        if isinstance(obj, Piece):
            warn_of_lost_hooks(doc_of(obj))
    u = vector(first, name)
    encoders = encoders_of_vector(first, name)
    v, others = comparable_vector(second, name, encoders)
    if not u.any() or not v.any():
        return 0.0
    if u.shape != v.shape:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=u.shape[0], theirs=v.shape[0]))
    check_one_encoder(encoders, others)
    return float(numpy.clip(float(cosine(u[None], v[None])[0]), -1.0, 1.0))  # rounding may go beyond


def _static_similarity(obj: Piece, lexeme: Lexeme, width: int) -> float:
    """Return what spaCy does without hooks: the cosine of the mean static vector of the tokens and that of a Lexeme.

    RAISES (ValueError): if the vocab of the tokens has no such vectors.
    """
    vocab, lexeme_vector, kind = doc_of(obj).vocab, to_numpy(lexeme.vector), type(obj).__name__
    if vocab.vectors_length != len(lexeme_vector):
        raise ValueError(
            f"Cannot compare a {kind} of {width} numbers with a Lexeme's static vector of {len(lexeme_vector)}: "
            f"the vocab of the {kind} has no such vectors. With set_hooks = false in the config of the 'sbert' pipe, "
            "spaCy compares static vectors, and doc._.sbert_similarity sentence vectors."
        )
    tokens = [obj] if isinstance(obj, Token) else list(obj)
    vectors = numpy.array([to_numpy(vocab.get_vector(token.orth)) for token in tokens], dtype="float32")
    if not vectors.any() or not lexeme_vector.any():
        warn(SpacyWarnings.W008.format(obj=kind))
        return 0.0
    return float(cosine(vectors.mean(axis=0)[None], lexeme_vector[None])[0])


# Which encoder made a vector


def encoders_of_vector(obj: Piece, name: str | None = None) -> Encoders:
    """Return the encoders that made the vector of a Doc, Span or Token: none if they are not known.

    RAISES (ValueError): if a Span or Token of a Doc that was joined has no vector.
    """
    records = find(doc_of(obj), name)
    if not records:
        return {} if _is_detached(doc_of(obj)) else {SPACY: ""}
    if isinstance(obj, Doc) or (isinstance(obj, Span) and len(obj) == len(obj.doc)):
        return encoders_of(records)
    start, end = trimmed(obj.text, obj.idx if isinstance(obj, Token) else obj.start_char)
    return encoders_of([record_of(obj.doc, records, start, end)] if start < end else [])


def comparable_vector(
    obj: object, name: str | None = None, encoders: Encoders | None = None
) -> tuple[numpy.ndarray, Encoders]:
    """Return the vector of a Doc, Span, Token or Lexeme to compare with vectors of the pipe `name`, and its encoders.

    It is the one that a pipe of this name stored, or one with the same encoder, or spaCy's own.

    encoders (dict): of the vectors to compare with.
    RAISES (ValueError): if it has none.
    """
    if not isinstance(obj, Piece):
        if not getattr(obj, "has_vector", False):
            raise ValueError(
                f"Cannot compare with a {type(obj).__name__} without a vector: expected a Doc, Span, Token or Lexeme "
                "that has a vector. Process the other text with the same pipeline."
            )
        return to_numpy(cast(Lexeme, obj).vector), {SPACY: ""}
    doc = doc_of(obj)
    if name is not None and encoders is not None and not find(doc, name):
        same = [other for other in names(doc) if encoders_of_vector(obj, other).keys() & encoders.keys()]
        name = same[-1] if same else None if name == "sbert" else name
    if not find(doc, name) and not _is_detached(doc):
        if not obj.has_vector or (name is not None and names(doc)):
            raise no_vectors(obj, name)
        return to_numpy(cast(Lexeme, obj).vector), {SPACY: ""}
    return vector(obj, name), encoders_of_vector(obj, name)


def check_one_encoder(*sides: Encoders) -> None:
    """Warn, once for each pair, if vectors that are compared or averaged are of several encoders."""
    pipes = {fingerprint: name for side in sides for fingerprint, name in side.items()}
    first, *others = sorted(pipes) or [""]
    labels = {key: f"'{name}' {key}" if name else key for key, name in pipes.items()}
    for other in others:
        pair = frozenset((first, other))
        if pair not in _warned:
            _warned.add(pair)
            warn(Warnings.OTHER_ENCODER.format(ours=labels[first], theirs=labels[other]))
