"""The `sbert` component: encode Docs and texts, and store sentence vectors on Docs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast, overload

import numpy
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_get_examples
from spacy.util import logger, minibatch
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import to_numpy

from ..errors import Errors, Warnings, WarnOnce, warn
from ..files.serialization import ChecksummedPipe
from ..models.encoded_docs import (
    EncodedDoc,
    EncodeSettings,
    TruncationCounter,
)
from ..models.encoder_language import warn_of_language
from ..models.fingerprint import Fingerprint
from ..models.resolve import check_default_prompt, warn_if_missing
from ..models.sbert_config import SentenceTransformersConfig
from ..models.sentence_encoder import SentenceEncoder
from ..models.spans import SPANS_KEY
from ..models.transformer import SpanTransformer
from ..similarity import cos_sim, pairwise_cos_sim
from ..training.step import TrainingStep
from ..validation import (
    Name,
    NonNegative,
    NonNegativeFloat,
    Positive,
    Processes,
    SpansKey,
    Text,
    TextOrTexts,
    Width,
    check_docs,
    several_texts,
    validated,
    with_fields_of,
)
from . import doc_vectors, listeners
from ._common import ExtensionNames, InPipeline, PredictOptions, find_in
from .call_options import EncodeCall, EncodeOptions
from .records import make_records

if TYPE_CHECKING:
    from ..models.text_encoders import TextEncoder
    from ..training.batch_loss import Labels
    from .scorer import Scores

# Enough to see whether there are pairs, and a teacher
_N_INITIAL_EXAMPLES = 100


class _EncodeOptions(EncodeOptions, PredictOptions, total=False):
    n_process: int
    gpu_ids: Sequence[int]


class SentenceBert(TrainingStep, ChecksummedPipe):
    """Sentence vectors for Docs, Spans and Tokens, and the training of the encoder that makes them.

    vocab (Vocab): the pipeline's. model (Model): a sentence encoder, from Docs to one EncodedDoc
        each.
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
    """

    model: listeners.SentenceModel
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
        self.model = listeners.SentenceModel(name, model, loss)
        if nlp is not None:
            for node in model.walk():
                if isinstance(node, SpanTransformer):
                    check_default_prompt(nlp, name, node.shim.name, node.prompts)
            self.model.link_upstream(nlp, name)
            for encoder in self.model.own_encoders:
                warn_if_missing(nlp, name, encoder)
            for encoder in (*self.model.own_encoders, *self.model.shared_encoders):
                warn_of_language(nlp, name, encoder)
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

    @validated
    def _settings(
        self,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        truncate_dim: Width | None = None,
    ) -> EncodeSettings:
        if prompt_name is not None and prompt is not None:
            raise ValueError(
                f"Got both prompt_name = {prompt_name!r} and prompt = {prompt!r}: give one of them."
            )
        text = prompt_name or prompt
        if text and not self.model.source.takes_prompts:
            raise ValueError(Errors.TOKEN_PROMPT.format(prompt=text))
        if prompt_name is not None:
            encoder = listeners.find_transformer(self.name, self.model)
            prompt = encoder.prompts.find(encoder.shim.load(), prompt_name)
        return EncodeSettings(prompt, truncate_dim, self.token_vectors)

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
        docs, nlp = list(docs), self._in_pipeline.nlp
        self.model.check_surroundings(self.name)
        # The pipe may have been renamed
        self._extensions.install(self.name)
        fingerprint = ""
        first = next((encoded for encoded in scores if len(encoded.rows.spans)), None)
        if first is not None:
            models = self.model.encoding_models(nlp, self.name, first.rows.settings)
            fingerprint = self._fingerprint_of(models, docs[0].vocab, docs)
        encoder = next(iter([*self.model.own_encoders, *self.model.shared_encoders]), "")
        records = make_records(
            docs, scores, set_hooks=self.set_hooks, fingerprint=fingerprint, encoder=encoder
        )
        for doc, encoded, record in zip(docs, scores, records, strict=True):
            self._warn_of_rows(doc, encoded)
            doc_vectors.store(doc, self.name, record, self)
        if nlp is not None and (
            message := self.model.boundaries_warning(nlp, self.name, docs, self.spans_key)
        ):
            self._notices.once(message)
        if self.labels:
            from .scorer import label_pairs  # noqa: PLC0415 (if there are labels)

            label_pairs(listeners.find_heads(self.model), docs, scores, self.spans_key, self.name)

    def _warn_of_rows(self, doc: Doc, encoded: EncodedDoc) -> None:
        """Count rows that were cut, and warn of vectors that differ from the published ones."""
        self._notices.cuts.add(doc, encoded)
        if encoded.rows.has_merged:
            self._notices.once(Warnings.FOREIGN_ROWS)
        self._warn_of_folder(encoded.rows.settings)

    def _warn_of_folder(
        self, settings: SentenceTransformersConfig | None, *, has_prompt: bool = False
    ) -> None:
        """Warn if the encoder's folder asks for another pooling, or for a missing prompt.

        has_prompt (bool): whether a prompt was given with the call.
        """
        if settings is None:
            return
        given = self.model.pooling.pooling_name
        prompt = settings.prompts.get(settings.default_prompt_name or "", "")
        if prompt and not has_prompt and self.model.sentence_listeners:
            self._notices.once(
                Warnings.SHARED_DEFAULT_PROMPT.format(name=settings.name, prompt=prompt)
            )
        if settings.pooling not in (None, given) and self._notices.is_new("pooling"):
            logger.warning(
                Warnings.OTHER_POOLING.format(
                    name=settings.name, expected=settings.pooling, given=given
                )
            )

    def notify(self, message: str) -> None:
        """Warn of something about the vectors of the pipe, once."""
        self._notices.once(message)

    def vector(self, obj: doc_vectors.Piece) -> numpy.ndarray:
        """Return the vector of a Doc, Span or Token, float32 (width,).

        A dense layer is applied if there is one.
        """
        dense = self.model.pooling.dense
        return doc_vectors.vector(
            obj, self.name, None if dense is None else partial(_through, dense)
        )

    # Fingerprint

    def fingerprint(self, *, load: bool = True) -> str:
        """Return 12 hexadecimal digits of the encoder, as in records.

        load: load it first, else "" if it is not.
        """
        nlp = self._in_pipeline.nlp
        if nlp is not None:
            self.model.link_upstream(nlp, self.name)
        models = self.model.encoding_models(nlp, self.name)
        if not listeners.are_loaded(models):
            if not load:
                return ""
            self.load()
        return self._fingerprint_of(models, self.vocab if nlp is None else nlp.vocab, refresh=True)

    def _fingerprint_of(
        self, models: list[Model], vocab: Vocab, docs: Sequence[Doc] = (), *, refresh: bool = False
    ) -> str:
        """Return the fingerprint of what encodes; "" if that is not known."""
        own = set(map(id, self.model.walk()))
        upstream = [model for model in models if id(model) not in own]
        pooling = self.model.pooling
        if not models:
            return ""
        return self._fingerprint.of(
            models, pooling, vocab, upstream=upstream, docs=docs, refresh=refresh
        )

    # Texts

    @overload
    def encode(
        self,
        texts: TextOrTexts,
        *,
        convert_to_tensor: Literal[True],
        **options: Unpack[_EncodeOptions],
    ) -> torch.Tensor: ...

    @overload
    def encode(
        self,
        texts: TextOrTexts,
        *,
        convert_to_tensor: Literal[False] = ...,
        **options: Unpack[_EncodeOptions],
    ) -> numpy.ndarray: ...

    @validated
    @with_fields_of(EncodeCall, "call")
    def encode(
        self,
        texts: TextOrTexts,
        *,
        window: Positive = 4096,
        n_process: Processes = 1,
        gpu_ids: Sequence[NonNegative] = (),
        prompt_name: str | None = None,
        prompt: str | None = None,
        truncate_dim: int | None = None,
        call: EncodeCall,
    ) -> Any:
        """Return the vectors of texts without making Docs, for bulk work.

        The vector of a text is `nlp(text).vector` if the row is the whole Doc.

        texts (Iterable): n texts, Docs or Spans; a column of pandas, polars, pyarrow or NumPy, or a
            table of one. Of a Doc or Span its text is encoded, without context. Iterators are read
            window by window. Or a single text.
        window (int): texts that are sorted, packed and encoded together.
        progress (bool): whether to show a progress bar.
        n_process (int): processes to work in; each loads the encoder. As with all that spawns, the
            main module must be guarded by `if __name__ == "__main__"`.
        gpu_ids (Sequence[int]): GPUs to work on, a process for each.
        prompt_name, prompt (str), truncate_dim (int): see PredictOptions.
        batch_size, show_progress_bar, normalize_embeddings, convert_to_tensor, convert_to_numpy,
            output_value, precision, device: as in sentence-transformers, see EncodeCall. The fewer
            texts are encoded together, the more slowly; a tensor is on the CPU.
        RETURNS (float32 (n, width)): on the CPU, in the order of the texts; zeros for a text
            without wordpieces. Of a single text its vector, (width,).
        RAISES (TypeError, ValueError): if a text is not text, or the transformer is not of this
            package.
        """
        from ..models.text_encoders import encode_all  # noqa: PLC0415 (not needed for Docs)

        call.check(self.model.ops)
        texts, is_single = several_texts(texts)
        cuts = TruncationCounter()
        encoder = self.text_encoder(
            prompt_name=prompt_name, prompt=prompt, truncate_dim=truncate_dim
        )
        vectors = encode_all(
            encoder,
            texts,
            window=call.n_together(window),
            progress=call.shows_progress,
            n_process=n_process,
            gpu_ids=gpu_ids,
            cuts=cuts,
        )
        self._warn_of_folder(encoder.folder, has_prompt=encoder.settings.prompt is not None)
        if cuts.count:
            warn(cuts.message)
        return call.returned(vectors, is_single=is_single)

    def calibrate(self, texts: Iterable[Text]) -> None:
        """Find the ranges by which `precision = "int8"` rounds, and which layers bear it.

        The inputs of linear layers are rounded.

        They are saved with the pipeline, until training changes the weights. The layers that add
        the most noise stay in floating point, until the mean states of every text keep a cosine of
        at least 0.99 to those without rounding. Without a call, the first 2048 wordpieces that are
        encoded at once are taken; until then nothing is rounded.

        texts (Iterable): a few hundred, like those that will be encoded.
        RAISES (TypeError, ValueError): if `texts` has no text, or the encoder is of a family that
            is not rounded.
        """
        # Or its error
        listeners.find_transformer(self.name, self.model)
        cast(Any, self.text_encoder()).calibrate(texts)

    def load(self) -> None:
        """Load the encoder, else loaded with the first text.

        RAISES (OSError, ValueError): if missing or damaged.
        """
        encoder = self.text_encoder()
        encoder.load()
        self._warn_of_folder(encoder.folder)

    @property
    def width(self) -> int:
        """The number of dimensions of the vectors; loads the encoder."""
        self.load()
        return self.text_encoder().width

    @property
    def max_length(self) -> int | None:
        """The most wordpieces of a text, special tokens included, None for no limit.

        Loads the encoder.
        """
        self.load()
        return self.text_encoder().max_length

    def text_encoder(self, **options: Unpack[PredictOptions]) -> "TextEncoder":
        """Return the encoder of texts without Docs, loaded with the first text.

        For the options see PredictOptions.
        """
        return self.model.text_encoder(self._in_pipeline.nlp, self.name, self._settings(**options))

    # Training

    @validated
    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: list[Name] | dict[str, list[Name]] | None = None,
    ) -> None:
        """Load the weights of an own encoder, check a shared one, and make the heads.

        labels: of the classification objective, or of each by its name; by default those of the
            examples.
        RAISES (OSError, ValueError): if the encoder is not found, cannot be shared, or there is but
            one label.
        """
        from ..losses.wrappers import saved_by_name  # noqa: PLC0415 (training)
        from ..training.batch_loss import initialize_objectives, needs_labels, needs_width  # noqa: PLC0415 (training)

        loss = self.model.loss
        n_needed = None if loss is not None and needs_labels(loss) else _N_INITIAL_EXAMPLES
        # No more examples than are needed: spaCy would read them all, and a teacher encode them.
        sample = (
            (lambda: islice(get_examples(), n_needed)) if callable(get_examples) else get_examples
        )
        validate_get_examples(sample, "SentenceBert.initialize")
        examples = list(sample())
        self._expects_pairs = any(map(self.learns_from, examples))
        if nlp is not None:
            self._accumulates = nlp.config["training"]["accumulate_gradient"] != 1
            self.model.validate_upstream(nlp, self.name, examples, self.spans_key)
            name = next((name for name, pipe in nlp.components if pipe is self), None)
            # So that a loss of the user's own is not needed to load the pipeline
            if name is not None:
                config, block = (
                    nlp.get_pipe_config(name),
                    nlp.config.interpolate()["components"][name],
                )
                config["loss"] = saved_by_name(config["loss"], block["loss"])
        docs = [
            example.predicted
            for example in islice(examples, _N_INITIAL_EXAMPLES)
            if len(example.predicted)
        ]
        self.model.initialize(X=docs or [Doc(self.vocab, words=["text"])])
        if loss is not None and needs_width(loss):
            width = self.model.vector_width(nlp, self.name)
            initialize_objectives(loss, self.model.ops, width, examples, self.spans_key, labels)

    def score(self, examples: Iterable[Example], **kwargs: object) -> "Scores":
        """Return the scores of the pipe's scorer.

        Under the pipe's name if another pipe answers `doc.vector`.
        """
        from ..training.batch_loss import score_examples  # noqa: PLC0415 (not needed for a first vector)

        examples = list(examples)
        records = (
            record.name for example in examples for record in doc_vectors.find(example.predicted)
        )
        return score_examples(
            self, examples, is_default=next(records, self.name) == self.name, **kwargs
        )

    # Labels of pairs

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the classification heads."""
        heads = listeners.find_heads(self.model).values()
        return tuple(dict.fromkeys(label for head in heads for label in head.attrs["labels"]))

    @property
    def label_data(self) -> "Labels":
        """The labels as `initialize` takes them, for `spacy init labels`."""
        labels = {
            name: list(head.attrs["labels"])
            for name, head in listeners.find_heads(self.model).items()
        }
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

        vectors = [
            self.model.ops.asarray2f(cast(Any, self.vector(text)[None])) for text in (first, second)
        ]
        doc_vectors.check_one_encoder(
            *(doc_vectors.encoders_of_vector(text, self.name) for text in (first, second))
        )
        return classify(listeners.find_heads(self.model), objective, self.name, *vectors)


def _through(dense: Model[Floats2d, Floats2d], pooled: numpy.ndarray) -> numpy.ndarray:
    """Return the vector that a dense layer makes of a pooled one."""
    return to_numpy(dense.predict(dense.ops.asarray2f(cast(Any, pooled[None]))))[0]


def find_sbert(nlp: Language, name: str | None = None) -> SentenceBert:
    """Return the `sbert` pipe of a pipeline, of this name or the last.

    RAISES (ValueError): if there is none.
    """
    return find_in(nlp, SentenceBert, "sbert", name)
