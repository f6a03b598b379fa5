"""The `sbert` component: encode Docs and texts, and store sentence vectors on Docs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import minibatch
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import to_numpy

from ..errors import Warnings, WarnOnce
from ..files.serialization import ChecksummedPipe
from ..models.encoded_docs import (
    EncodedDoc,
    EncodeSettings,
    TruncationCounter,
)
from ..models.encoder_language import warn_of_language
from ..models.fingerprint import Fingerprint
from ..models.heads import VectorLayer
from ..models.resolve import check_default_prompt, warn_if_missing
from ..models.sentence_encoder import SentenceEncoder
from ..models.spans import SPANS_KEY
from ..models.transformer import SpanTransformer
from ..similarity import cos_sim, pairwise_cos_sim
from ..training.step import TrainingStep
from ..validation import (
    NonNegativeFloat,
    Positive,
    SpansKey,
    check_docs,
    validated,
)
from . import doc_vectors
from .call_options import PredictOptions
from .components import InPipeline, find_in
from .extensions import DocSpanOrToken, ExtensionNames
from .records import make_records
from .sentence_boundaries import boundaries_warning
from .sentence_model import SentenceModel
from .text_encoding import TextEncoding

if TYPE_CHECKING:
    from ..training.batch_loss import Labels
    from .scorer import Scores


class SentenceBert(TextEncoding, TrainingStep, ChecksummedPipe):
    """Sentence vectors for Docs, Spans and Tokens, and the training of the encoder that makes them.

    vocab (Vocab): the pipeline's.
    model (Model): a sentence encoder, from Docs to one EncodedDoc each.
    name (str): the pipe's name, under which its vectors are stored.
    loss (LossLayer): the training objective, None for a pipe that is not trained.
    loss_weight (float): factor on the loss and its gradient, to balance them with those of other
        components.
    scorer (Callable): what to report of pairs.
    set_hooks (bool): whether `doc.vector` and `similarity` answer with this pipe's vectors. Of
        several pipes the last that sets hooks answers.
    token_vectors (bool): whether to keep what Spans other than rows, and Tokens, need to have
        vectors.
    spans_key (str): where the members of a pair are, doc.spans[spans_key].
    nlp (Language): the pipeline that the pipe is made for; warns if it cannot find the encoder.
    RAISES (ValueError): if model is no sentence encoder, has another spans_key, or loss is no loss
        layer.
    SOURCE: Reimers and Gurevych 2019.

    Example:
        nlp = spacy.blank("en")
        nlp.add_pipe("sbert")
        nlp("A man is eating.").similarity(nlp("Somebody has a meal."))

    """

    model: SentenceModel
    similarity = staticmethod(cos_sim)
    similarity_pairwise = staticmethod(pairwise_cos_sim)

    @validated
    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[EncodedDoc]],
        name: str = "sbert",
        *,
        loss: object = None,
        loss_weight: NonNegativeFloat = 1.0,
        scorer: Callable | None = None,
        set_hooks: bool = True,
        token_vectors: bool = True,
        spans_key: SpansKey = SPANS_KEY,
        nlp: Language | None = None,
    ):
        self.vocab = vocab
        self.model = SentenceModel(name, model, loss)
        if nlp is not None:
            self._check_encoder(nlp, name)
        self.model.check_spans_key(name, spans_key)
        self.name = name
        self.scorer = scorer
        self.set_hooks = set_hooks
        self.token_vectors = token_vectors
        self.spans_key = spans_key
        self.cfg: dict[str, Any] = {}
        self.loss_weight = loss_weight
        self._expects_pairs = False
        self._accumulates = False
        self._notices = WarnOnce(TruncationCounter)
        self._in_pipeline = InPipeline(nlp)
        # Layers of losses that got a gradient since the last update
        self._learned: set[int] = set()
        self._fingerprint = Fingerprint()
        self._extensions = ExtensionNames()
        self._extensions.install(name)

    def _check_encoder(self, nlp: Language, name: str) -> None:
        """Check the default prompt, and warn of an encoder that is missing or of other texts."""
        for node in self.model.encoder.walk():
            if isinstance(node, SpanTransformer):
                check_default_prompt(nlp, name, node.shim.name, node.prompts)
        self.model.link_upstream(nlp, name)
        for encoder in self.model.own_encoders:
            warn_if_missing(nlp, name, encoder)
        for encoder in self.model.encoder_names:
            warn_of_language(nlp, name, encoder)

    @property
    def depends_on_pipeline(self) -> bool:
        """Whether vectors of texts depend on the pipeline: its tokenizer, or a shared encoder."""
        return self.model.source.reads_tokens or self.model.is_shared

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self.name}': {self.model.describe()})"

    # Docs

    def __call__(self, doc: Doc, **options: Unpack[PredictOptions]) -> Doc:
        """Set the vectors of one Doc; for the options see PredictOptions."""
        settings = self._settings(**options)
        with self._notices.one_for_cuts():
            self._annotate([doc], partial(self._predict, [doc], settings))
        return doc

    @validated
    def pipe(
        self,
        stream: Iterable[Doc],
        *,
        batch_size: Positive = 128,
        **options: Unpack[PredictOptions],
    ) -> Iterator[Doc]:
        """Set the vectors of a stream of Docs, batch by batch, and yield them in order.

        batch_size (int): Docs encoded together; of 128 and more, the next batch is encoded while
            the last is used.
        options: see PredictOptions.
        """
        from .prefetch import can_prefetch, prefetch  # noqa: PLC0415 (not needed for a first vector)

        predict_batch = partial(self._predict, settings=self._settings(**options))
        is_possible = partial(can_prefetch, self.model, batch_size)
        with self._notices.one_for_cuts():
            for docs, prediction in prefetch(
                predict_batch, minibatch(stream, batch_size), is_possible=is_possible
            ):
                if self._annotate(docs, prediction):
                    yield from docs

    def predict(self, docs: Iterable[Doc], **options: Unpack[PredictOptions]) -> list[EncodedDoc]:
        """Encode Docs without changing them, each as an EncodedDoc.

        For the options see PredictOptions.
        """
        return self._predict(list(docs), self._settings(**options))

    def _predict(self, docs: list[Doc], settings: EncodeSettings) -> list[EncodedDoc]:
        hint = (
            f'Of a text, nlp(text) is a Doc, and find_sbert(nlp, "{self.name}").encode(text) a '
            "vector."
        )
        check_docs(docs, self.name, hint)
        return cast(SentenceEncoder, self.model.encoder).encode(docs, settings)

    def _annotate(self, docs: list[Doc], prediction: Callable[[], list[EncodedDoc]]) -> bool:
        """Set the vectors of a batch.

        Return False if the pipe's error handler took an error and did not raise.
        """
        try:
            self.set_annotations(docs, prediction())
        except Exception as error:
            # As every pipe of spaCy does
            self.get_error_handler()(self.name, self, docs, error)
            return False
        return True

    def set_annotations(self, docs: Iterable[Doc], scores: list[EncodedDoc]) -> None:
        """Store the vectors on the Docs, and set hooks; label pairs if a head is trained."""
        docs = list(docs)
        self.model.check_surroundings(self.name)
        # The pipe may have been renamed
        self._extensions.install(self.name)
        nlp = self._in_pipeline.nlp
        is_sourced = nlp is not None and any(doc.vocab is not nlp.vocab for doc in docs)
        if is_sourced and self.model.source.reads_tokens:
            self._notices.once(Warnings.OTHER_TOKENIZER.format(name=self.name))
        # Static vectors, which an encoder may read, are those of a vocab
        for _, group in groupby(zip(docs, scores, strict=True), key=_vocab_of):
            self._store(list(group))
        self._warn_of_boundaries(docs)
        if self.labels:
            from .scorer import label_pairs  # noqa: PLC0415 (if there are labels)

            label_pairs(self.model.heads, docs, scores, self.spans_key, self.name)

    def _store(self, encoded_docs: Sequence[tuple[Doc, EncodedDoc]]) -> None:
        """Store the vectors of Docs of one vocab on them."""
        docs = [doc for doc, _ in encoded_docs]
        scores = [encoded for _, encoded in encoded_docs]
        records = make_records(
            docs,
            scores,
            set_hooks=self.set_hooks,
            fingerprint=self._fingerprint_of_vectors(docs, scores),
            encoder=next(iter(self.model.encoder_names), ""),
        )
        for doc, encoded, record in zip(docs, scores, records, strict=True):
            self._warn_of_rows(doc, encoded)
            doc_vectors.store(doc, self.name, record, self)

    def _fingerprint_of_vectors(self, docs: Sequence[Doc], scores: Sequence[EncodedDoc]) -> str:
        """Return the fingerprint of the encoder that made vectors; "" if there are none."""
        for encoded in scores:
            if len(encoded.rows.spans):
                nlp = self._in_pipeline.nlp
                models = self.model.encoding_models(nlp, self.name, encoded.rows.settings)
                return self._fingerprint_of(models, docs[0].vocab, docs)
        return ""

    def _warn_of_rows(self, doc: Doc, encoded: EncodedDoc) -> None:
        """Count rows that were cut, and warn of vectors that differ from the published ones."""
        self._notices.cuts.add(doc, encoded)
        if encoded.rows.has_merged:
            self._notices.once(Warnings.FOREIGN_ROWS)
        self._warn_of_folder(encoded.rows.settings)

    def _warn_of_boundaries(self, docs: Sequence[Doc]) -> None:
        """Warn if Docs got their boundaries of sentences after they were encoded."""
        nlp = self._in_pipeline.nlp
        if nlp is not None:
            message = boundaries_warning(self.model, nlp, self.name, docs, self.spans_key)
            if message is not None:
                self._notices.once(message)

    def notify(self, message: str) -> None:
        """Warn of something about the vectors of the pipe, once."""
        self._notices.once(message)

    def vector(self, obj: DocSpanOrToken, *, context: bool = False) -> numpy.ndarray:
        """Return the vector of a Doc, Span or Token, float32 (width,).

        A dense layer is applied if there is one.

        context (bool): whether a Span is pooled in the context of its Doc also if it was encoded on
            its own (late chunking), see doc_vectors.vector.
        """
        layer = self.model.pooling.dense
        dense = None if layer is None else partial(_through, layer)
        return doc_vectors.vector(obj, self.name, dense, context=context)

    # Scores and labels of pairs

    def score(self, examples: Iterable[Example], **kwargs: object) -> "Scores":
        """Return the scores of the pipe's scorer.

        Under the pipe's name if another pipe answers `doc.vector`.
        """
        from ..training.batch_loss import score_examples  # noqa: PLC0415 (not needed for a first vector)

        examples = list(examples)
        docs = (example.predicted for example in examples)
        names = (record.name for doc in docs for record in doc_vectors.find(doc))
        is_default = next(names, self.name) == self.name
        return score_examples(self, examples, is_default=is_default, **kwargs)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the classification heads."""
        heads = self.model.heads.values()
        return tuple(dict.fromkeys(label for head in heads for label in head.attrs["labels"]))

    @property
    def label_data(self) -> "Labels":
        """The labels as `initialize` takes them, for `spacy init labels`."""
        heads = self.model.heads
        labels = {name: list(head.attrs["labels"]) for name, head in heads.items()}
        return labels.get("", labels)

    @validated
    def classify(
        self, first: Doc | Span, second: Doc | Span, *, objective: str = ""
    ) -> dict[str, float]:
        """Return the probability of each label for a pair of texts.

        first, second (Doc or Span): processed by the pipeline, such as premise and hypothesis.
        objective (str): which of several classification objectives.
        RAISES (ValueError): if the pipe has no trained classification head, or a text no vector of
            this pipe.
        """
        from .scorer import classify  # noqa: PLC0415 (if there are labels)

        u = self._row(first)
        v = self._row(second)
        encoders = doc_vectors.encoders_of_vector
        doc_vectors.check_one_encoder(encoders(first, self.name), encoders(second, self.name))
        return classify(self.model.heads, objective, self.name, u, v)

    def _row(self, text: Doc | Span) -> Floats2d:
        """Return the vector of a text on the model's device, float32 (1, width)."""
        return self.model.ops.asarray2f(cast(Any, self.vector(text)[None]))


def _vocab_of(encoded_doc: tuple[Doc, EncodedDoc]) -> int:
    """Return what tells the vocab of a Doc from others."""
    return id(encoded_doc[0].vocab)


def _through(dense: VectorLayer, pooled: numpy.ndarray) -> numpy.ndarray:
    """Return the vector that a dense layer makes of a pooled one."""
    return to_numpy(dense.predict(dense.ops.asarray2f(cast(Any, pooled[None]))))[0]


def find_sbert(nlp: Language, name: str | None = None) -> SentenceBert:
    """Return the `sbert` pipe of a pipeline, of this name or the last.

    RAISES (ValueError): if there is none.
    """
    return find_in(nlp, SentenceBert, "sbert", name)
