"""The fingerprint of the encoder of an `sbert` pipe, which each record carries."""

from collections.abc import Iterable
from typing import Any, Protocol, cast

from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Model

from ..encoder.transformer import is_transformer
from ..encoder.wordpiece_table import WordpieceTable
from ..hooks.in_pipeline import InPipeline
from ..vectors.encoded import EncodedDoc
from ..vectors.fingerprint import Fingerprint
from ..vectors.sentence_pooling import SentencePooling
from .upstream import encoding_models, follow_replaced


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
    tables = [node for node in nodes if isinstance(node, WordpieceTable)]
    transformers = [node for node in nodes if is_transformer(node)]
    return all(table.attrs["tokenizer"] for table in tables) and all(
        transformer.layers[0].shims[0]._model is not None for transformer in transformers
    )
