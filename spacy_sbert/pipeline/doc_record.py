"""The record of vectors that a component stores on a Doc, and the digest of its encoder."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol, cast

from spacy.tokens import Doc
from spacy.util import logger
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.util import get_array_module, is_cupy_array, to_numpy

from .. import errors
from ..errors import Warnings
from ..models.encoded_docs import EncodedDoc, TruncationCounter, n_rows_cut
from ..models.fingerprint import Fingerprint
from ..models.sentence_pooling import SentencePooling
from ..models.span_batch import borders_of, row_characters
from ..models.static_embedding import StaticEmbedding
from ..models.transformer import is_transformer
from .doc_vectors import InPipeline, Record
from .listeners import encoding_models, follow_replaced


def on_cpu(scores: Sequence[EncodedDoc]) -> Sequence[EncodedDoc]:
    """What the encoder returned for a batch of Docs, with vectors in NumPy's arrays: those of a GPU come at once."""
    given: list[Any] = [encoded.vectors for encoded in scores]
    if not any(map(is_cupy_array, given)):
        return scores
    vectors, borders = to_numpy(get_array_module(given[0]).concatenate(given)), borders_of(map(len, given))
    parts = zip(scores, pairwise(borders), strict=True)
    return [replace(encoded, vectors=vectors[start:end]) for encoded, (start, end) in parts]


def make_record(doc: Doc, encoded: EncodedDoc, *, set_hooks: bool, fingerprint: str = "") -> Record:
    """The record of a Doc: NumPy arrays and scalars, places in characters, see doc_vectors.

    doc (Doc): the Doc that was encoded.
    encoded (EncodedDoc): its rows, on whatever device.
    set_hooks (bool): whether the pipe answers `doc.vector`.
    fingerprint (str): of the encoder; "" if it is not known.
    RETURNS (dict): rows int32 (rows, 2), vectors float32 (rows, width), has_text bool (rows,), width, pooling,
        normalize, set_hooks, truncated; text, if it is known; with token vectors also states float32 (wordpieces,
        width), special tokens left out, and characters int32 (wordpieces, 2); with a dense layer dense, which is True;
        fingerprint, if it is known and there are rows.
    """
    rows, places = encoded.rows, encoded.rows.characters
    if places is None:  # of a model that was asked without the pipe
        places = row_characters(spans := [doc[slice(*span)] for span in rows.spans], [span.text for span in spans])
    record: Record = {
        "rows": places.astype("int32"),
        "vectors": to_numpy(encoded.vectors),
        "has_text": rows.has_text,
        "width": encoded.vectors.shape[1],
        "pooling": encoded.pooling,
        "normalize": encoded.normalize,
        "set_hooks": set_hooks,
        "truncated": n_rows_cut(doc, rows) > 0,
    }
    if encoded.text is not None and rows.spans[0].tolist() == [0, len(doc)]:
        record["text"] = encoded.text  # a Doc puts it together anew each time
    if fingerprint and len(rows.spans):
        record["fingerprint"] = fingerprint
    if encoded.dense:
        record["dense"] = True
    if encoded.wordpieces is not None:
        record["states"], record["characters"] = encoded.wordpieces.states, encoded.wordpieces.characters
    return record


class EncodingPipe(Protocol):
    """What is read of a pipe."""

    name: str
    vocab: Vocab
    model: Model[list[Doc], list[EncodedDoc]]
    _in_pipeline: InPipeline

    def text_encoder(self) -> Any: ...


class PipeFingerprint(Fingerprint):
    """The fingerprint of the encoder of one pipe, own or shared."""

    def of_batch(self, pipe: EncodingPipe, docs: list[Doc], scores: list[EncodedDoc]) -> str:
        """Return the fingerprint of what encoded a batch of Docs; "" if that is not known."""
        first = next((i for i, encoded in enumerate(scores) if len(encoded.rows.spans)), None)
        if first is None:
            return ""
        models = encoding_models(pipe._in_pipeline.nlp, pipe.name, pipe.model, scores[first].rows.settings)
        return self._of(pipe, models, docs[first].vocab)

    def of_pipe(self, pipe: EncodingPipe, *, load: bool) -> str:
        """Return the fingerprint of what encodes texts; "" if it is not known, or not loaded and not to be."""
        nlp = pipe._in_pipeline.nlp
        if nlp is not None:
            follow_replaced(nlp, pipe.name, pipe.model)
        models = encoding_models(nlp, pipe.name, pipe.model)
        if not _are_loaded(models):
            if not load:
                return ""
            pipe.text_encoder().load()
        return self._of(pipe, models, pipe.vocab if nlp is None else nlp.vocab, refresh=True)

    def _of(self, pipe: EncodingPipe, models: list[Model], vocab: Vocab, *, refresh: bool = False) -> str:
        pooling = cast(SentencePooling, pipe.model.get_ref("pooling"))
        own = list(pipe.model.walk())
        upstream = [model for model in models if not any(model is node for node in own)]
        return self.of(models, pooling, vocab, upstream=upstream, refresh=refresh) if models else ""


def _are_loaded(models: Iterable[Model]) -> bool:
    nodes = [node for model in models for node in model.walk()]
    tables = [node for node in nodes if isinstance(node, StaticEmbedding)]
    transformers = [node for node in nodes if is_transformer(node)]
    return all(table.attrs["tokenizer"] for table in tables) and all(
        transformer.layers[0].shims[0]._model is not None for transformer in transformers
    )


class PipeNotices(errors.WarnOnce[TruncationCounter]):
    """Warnings and log lines of one pipe.

    name (str): the pipe's name.
    """

    def __init__(self, name: str):
        super().__init__(TruncationCounter)
        self.name = name

    def of_vectors(self, doc: Doc, encoded: EncodedDoc, *, shared: bool) -> None:
        """Say what is unusual about the rows of a Doc; shared (bool): whether others read the transformer's output."""
        self.cuts.add(doc, encoded)
        if encoded.rows.foreign:
            self.once(Warnings.FOREIGN_ROWS)
        settings = encoded.rows.settings
        if shared and settings and settings.default_prompt_name:
            prompt = settings.prompts.get(settings.default_prompt_name, "")
            if prompt:
                self.once(Warnings.SHARED_DEFAULT_PROMPT.format(name=settings.name, prompt=prompt))
        if settings and settings.pooling not in (None, encoded.pooling) and self.is_new("pooling"):
            logger.warning(
                Warnings.OTHER_POOLING.format(name=settings.name, expected=settings.pooling, given=encoded.pooling)
            )

    def of_training_cuts(self, docs: Sequence[Doc], scores: Sequence[EncodedDoc]) -> None:
        """Say that training examples were cut."""
        cuts = TruncationCounter()
        for doc, encoded in zip(docs, scores, strict=True):
            cuts.add(doc, encoded)
        if cuts.count and self.is_new("cuts"):
            warnings.warn(Warnings.TRAINING_CUT.format(name=self.name) + cuts.message, stacklevel=4)
