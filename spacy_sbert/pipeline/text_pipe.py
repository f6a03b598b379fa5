"""Encoding of Docs and texts, shared by the components."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Literal, Unpack, cast, overload

import numpy
import torch
from spacy.tokens import Doc, Span, Token
from spacy.util import minibatch
from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import to_numpy

from ..errors import Errors
from ..files.serialization import ChecksummedPipe
from ..losses._common import objectives_of
from ..losses.softmax import label_probabilities
from ..models.curated_listener import upstream_name
from ..models.encode_arguments import EncodeOptions, check_device, check_form, unit_vectors
from ..models.encoded_docs import EncodedDoc, EncodeSettings, TruncationCounter
from ..models.engine.concurrency import TrainedElsewhereError
from ..models.fingerprint import Tokenizer
from ..models.hub import check_name
from ..models.options import INT8
from ..models.sentence_encoder import SentenceEncoder, predict
from ..models.sentence_pooling import SentencePooling, TextEncoder
from ..models.spans import members, row_order
from ..models.text_encoders import StaticTextEncoder, Tok2VecTextEncoder, TransformerTextEncoder, encode_all
from ..models.transformer import SpanTransformer
from ..similarity import Similarities
from ..training.examples import attribute, predicted_label
from ..validation import NonNegative, Positive, Processes, Text, Width, validated
from . import doc_vectors, extensions, user_hooks
from .doc_record import PipeFingerprint, PipeNotices, make_record, on_cpu
from .doc_vectors import InPipeline
from .listeners import (
    encodes_whole_docs,
    find_docs_reader,
    find_listeners,
    find_static_embedding,
    find_token_encoder,
    find_transformer,
    missing_boundaries_warning,
)

THREAD = "sbert-ahead"
Predict = Callable[[list[Doc]], list[EncodedDoc]]
Predicted = tuple[list[Doc], Callable[[], list[EncodedDoc]]]


def prefetch(predict: Predict, batches: Iterable[list[Doc]], *, is_possible: Callable[[], bool]) -> Iterator[Predicted]:
    """Batches of Docs, each with what gives its vectors, or raises what encoding it did.

    predict: encodes a batch. batches: are taken one ahead of who takes the results.
    is_possible (Callable): whether another thread may encode; asked after each batch, until it may.
    """
    batches = iter(batches)
    while not is_possible():
        docs = next(batches, None)
        if docs is None:
            return
        yield docs, partial(predict, docs)
    yield from _one_ahead(predict, batches)


def _one_ahead(predict: Predict, batches: Iterator[list[Doc]]) -> Iterator[Predicted]:
    last: Predicted | None = None
    failed: Exception | None = None
    with ThreadPoolExecutor(1, thread_name_prefix=THREAD) as encoding:
        while True:
            try:
                docs = next(batches, None)
            except Exception as error:  # is raised behind the batch before, which is whole
                docs, failed = None, error
            prediction = None if docs is None else encoding.submit(copy_context().run, predict, docs)
            if last is not None:
                yield last
            if docs is None or prediction is None:
                break
            last = docs, partial(_result, prediction, predict, docs)
    if failed is not None:
        raise failed


def _result(prediction: Future[list[EncodedDoc]], predict: Predict, docs: list[Doc]) -> list[EncodedDoc]:
    """Take a batch's vectors, or encode it here if this thread trained the encoder at that time."""
    try:
        return prediction.result()
    except TrainedElsewhereError:
        return predict(docs)


def describe_encoder(model: Model) -> str:
    """Encoder, pooling, width, precision and device, such as "all-MiniLM-L6-v2, mean pooling, 384 numbers, float32 on
    cpu", or what is known of them.
    """
    pooling = cast(SentencePooling, model.get_ref("pooling"))
    heard = [listener.transformer for listener in find_listeners(model)]
    transformer = next((node for node in heard or model.walk() if isinstance(node, SpanTransformer)), None)
    said = [_source(model, transformer), f"{pooling.pooling_name} pooling"]
    if transformer is None:
        return ", ".join(said)
    shim = transformer.shim
    if not shim.is_loaded:
        return ", ".join([*said, shim.precision, "not loaded yet"])
    width = pooling.width(shim.network.config.hidden_size, shim.settings)
    return ", ".join([*said, f"{width} numbers", f"{shim.precision} on {shim.device}"])


def rounding_of(transformer: SpanTransformer) -> str:
    """What `precision = "int8"` rounds by, of a loaded encoder; empty for other precisions."""
    if transformer.options.precision != INT8:
        return ""
    found = transformer.shim.calibration
    said = "int8 where a CPU is quicker with it, calibrated on"
    if found is None:
        return f"{said} the first texts encoded"
    n_rounded, n_products = int(found.is_rounded.sum()), found.is_rounded.numel()
    return (
        f"{said} {found.n_wordpieces:,} wordpieces: {n_rounded} of {n_products} products in 8 bits, lowest cosine of a "
        f"text {found.lowest_cosine:.3f}"
    )


def _source(model: Model, transformer: SpanTransformer | None) -> str:
    upstream = next((name for node in model.walk() if (name := upstream_name(node)) is not None), None)
    if transformer is not None:
        shared = "" if upstream is None else " (shared)"
        return f"{transformer.shim.name}{shared}"
    if upstream is not None:
        return f"hears {'any component' if upstream == '*' else upstream}"
    table = find_static_embedding(model)
    if table is not None:
        return f"table of wordpieces of {table.source}"
    encoder = find_token_encoder(model)
    return "no encoder" if encoder is None else f"tokens, {encoder.name}"


def find_heads(model: Model) -> dict[str, Model]:
    """The trained heads in the model tree of a pipe by the names of their objectives, "" where there is but one.

    Of the heads of a Matryoshka loss that for the widest vectors.
    """
    loss = model.maybe_get_ref("loss")
    heads = {}
    for name, layer in {} if loss is None else objectives_of(loss).items():
        trained = [node for node in layer.walk() if node.attrs.get("labels")]
        if trained:
            heads[name] = max(trained, key=lambda node: node.get_dim("nI"))
    return heads


def probabilities_of(head: Model, u: Floats2d, v: Floats2d) -> Floats2d:
    """The probability of each label, float (n, labels), for pairs of vectors, float (n, width) each."""
    width = head.get_dim("nI") // len(head.attrs["concatenation"])  # a Matryoshka head may see less than all
    return label_probabilities(head, u[:, :width], v[:, :width])


def label_pairs(
    heads: Mapping[str, Model], docs: Iterable[Doc], scores: Sequence[EncodedDoc], spans_key: str, name: str
) -> None:
    """Note the likeliest label of each pair beside its members, for the pipe "sbert" in
    doc.spans[spans_key].attrs["sbert_label"]: not under the name of the gold label, which a copied reference would
    bring along.

    Of several heads that of the pair's objective labels it; a pair without objective then gets no label.
    """
    if not heads:
        return
    groups: dict[str, list[tuple[Doc, Floats2d]]] = {}
    for doc, encoded in zip(docs, scores, strict=True):
        pair = members(doc, spans_key)
        objective = attribute(doc, "objective", spans_key) or ("" if len(heads) > 1 else next(iter(heads)))
        chosen = cast(str, objective) if objective in heads else ""  # a head without a name is for all
        if chosen in heads and len(pair) == len(encoded.vectors) == 2:
            groups.setdefault(chosen, []).append((doc, encoded.vectors[row_order(pair)]))
    for objective, labelled in groups.items():
        head = heads[objective]
        stack = head.ops.xp.stack
        u, v = (stack([vectors[member] for _, vectors in labelled]) for member in (0, 1))
        for (doc, _), best in zip(labelled, to_numpy(probabilities_of(head, u, v)).argmax(axis=1), strict=True):
            doc.spans[spans_key].attrs[predicted_label(name)] = head.attrs["labels"][int(best)]


AHEAD_FROM = 128  # Docs


class _EncodeOptions(EncodeOptions, total=False):
    n_process: int
    gpu_ids: Sequence[int]
    prompt_name: str | None
    prompt: str | None
    truncate_dim: int | None


class TextPipe(Similarities, ChecksummedPipe):
    """The use of a sentence encoder; see SentenceBert, which trains it, for what it is made of."""

    model: Model[list[Doc], list[EncodedDoc]]
    set_hooks: bool
    token_vectors: bool
    spans_key: str
    _notices: PipeNotices
    _in_pipeline: InPipeline
    _fingerprint: PipeFingerprint

    def __call__(
        self, doc: Doc, *, prompt_name: str | None = None, prompt: str | None = None, truncate_dim: int | None = None
    ) -> Doc:
        """Set the vectors of one Doc; for the settings see predict."""
        call = self._call(prompt_name, prompt, truncate_dim)
        with self._notices.one_for_cuts():
            self._annotate([doc], partial(self._predict, [doc], call))
        return doc

    @validated
    def pipe(
        self,
        stream: Iterable[Doc],
        *,
        batch_size: Positive = 128,
        prompt_name: str | None = None,
        prompt: str | None = None,
        truncate_dim: int | None = None,
    ) -> Iterator[Doc]:
        """Set the vectors of a stream of Docs, batch by batch; they come out in order.

        On a CPU, an encoder on packed rows goes on with the next batch, of 128 Docs or more, while the last is used.

        stream (Iterable[Doc]): Docs, from wherever. batch_size (int): how many are encoded together.
        The others: see predict.
        """
        call = self._call(prompt_name, prompt, truncate_dim)
        predict, batches = partial(self._predict, call=call), minibatch(stream, batch_size)
        with self._notices.one_for_cuts():
            is_possible = partial(self._encodes_beside, batch_size)
            for docs, prediction in prefetch(predict, batches, is_possible=is_possible):
                if self._annotate(docs, prediction):
                    yield from docs

    def _encodes_beside(self, batch_size: int) -> bool:
        """Whether another thread encodes while this one runs Python; streams in small batches may wait for results."""
        if batch_size < AHEAD_FROM or torch.get_num_threads() == 1:
            return False
        return any(isinstance(node, SpanTransformer) and node.in_parallel for node in self.model.walk())

    def predict(
        self,
        docs: Iterable[Doc],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        truncate_dim: int | None = None,
    ) -> list[EncodedDoc]:
        """Encode Docs without changing them.

        The settings reach it through `nlp(text, component_cfg={"sbert": {"prompt_name": "query"}})` and the like.

        prompt_name (str): which of the encoder's prompts is put before each row; by default the one of the config.
        prompt (str): the prompt itself, in place of a name.
        truncate_dim (int): how many dimensions of the vectors are kept; by default as many as the config says.
        RETURNS (list[EncodedDoc]): one for each Doc.
        RAISES (ValueError): if there is no such prompt, the transformer is shared and so takes none, or the vectors
            have fewer dimensions than are to be kept.
        """
        return self._predict(list(docs), self._call(prompt_name, prompt, truncate_dim))

    def _annotate(self, docs: list[Doc], prediction: Callable[[], list[EncodedDoc]]) -> bool:
        """Set the vectors of a batch; False if the pipe's error handler was given it instead, and did not raise."""
        try:
            self.set_annotations(docs, prediction())
        except Exception as error:  # as every pipe of spaCy does
            self.get_error_handler()(self.name, self, docs, error)
            return False
        return True

    def _predict(self, docs: list[Doc], call: EncodeSettings) -> list[EncodedDoc]:
        return predict(cast(SentenceEncoder, self.model.get_ref("encoder")), docs, call)

    @validated
    def _call(self, prompt_name: str | None, prompt: str | None, truncate_dim: Width | None) -> EncodeSettings:
        if prompt_name is not None and prompt is not None:
            raise ValueError(f"Got both prompt_name = {prompt_name!r} and prompt = {prompt!r}: give one of them.")
        given = prompt_name or prompt
        if given and (encodes_whole_docs(self.model) or find_static_embedding(self.model) is not None):
            raise ValueError(Errors.TOKEN_PROMPT.format(prompt=given))
        if prompt_name is not None:
            encoder = find_transformer(self.name, self.model)
            prompt = encoder.prompts.find(encoder.shim.load(), prompt_name)
        return EncodeSettings(prompt, truncate_dim, self.token_vectors)

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self.name}': {describe_encoder(self.model)})"

    def notify(self, message: str) -> None:
        """Warn of something about the vectors of the pipe, once."""
        self._notices.once(message)

    def vector(self, obj: Doc | Span | Token) -> numpy.ndarray:
        """The vector of a Doc, Span or Token that the pipe has processed.

        As `obj.vector`, and also that of any Span and Token where the encoder has a dense layer, which no Doc carries.

        RETURNS (float32 array of shape (width,)): zeros where there is no text.
        RAISES (ValueError): if the Doc carries no vectors of this pipe, or none for this Span.
        """
        return doc_vectors.vector(obj, self.name, None if self._dense is None else self._through_dense)

    @property
    def _dense(self) -> Model[Floats2d, Floats2d] | None:
        return cast(Any, self.model.get_ref("pooling")).dense

    def _through_dense(self, pooled: numpy.ndarray) -> numpy.ndarray:
        dense = cast(Model[Floats2d, Floats2d], self._dense)
        return to_numpy(dense.predict(dense.ops.asarray2f(cast(Any, pooled[None]))))[0]

    def set_annotations(self, docs: Iterable[Doc], scores: list[EncodedDoc]) -> None:
        """Store the vectors on the Docs, as NumPy arrays whatever the device, and set hooks.

        A pair that a trained classification head is for gets its label, too, see label_pairs.
        """
        docs = list(docs)
        extensions.install(self.name)  # the pipe may have got another name since it was made
        shared = bool(find_listeners(self.model))
        fingerprint = self._fingerprint.of_batch(self, docs, scores)
        for doc, encoded in zip(docs, on_cpu(scores), strict=True):
            self._notices.of_vectors(doc, encoded, shared=shared)
            record = make_record(doc, encoded, set_hooks=self.set_hooks, fingerprint=fingerprint)
            doc_vectors.store(doc, self.name, record)
            if self.set_hooks:
                user_hooks.install(doc, self)
        nlp = self._in_pipeline.nlp
        late = None if nlp is None else missing_boundaries_warning(nlp, self.name, self.model, docs, self.spans_key)
        if late is not None:
            self._notices.once(late)
        label_pairs(find_heads(self.model), docs, scores, self.spans_key, self.name)

    def fingerprint(self, *, load: bool = True) -> str:
        """Return a short fingerprint of the encoder: 12 hexadecimal digits, as records carry it.

        load (bool): whether to load the encoder, if it is not; without it there is none: "".
        """
        return self._fingerprint.of_pipe(self, load=load)

    @overload
    def encode(
        self, texts: Iterable[Text], *, convert_to_tensor: Literal[True], **options: Unpack[_EncodeOptions]
    ) -> torch.Tensor: ...

    @overload
    def encode(
        self, texts: Iterable[Text], *, convert_to_tensor: Literal[False] = ..., **options: Unpack[_EncodeOptions]
    ) -> numpy.ndarray: ...

    @validated
    def encode(
        self,
        texts: Iterable[Text],
        *,
        window: Positive = 4096,
        progress: bool = False,
        n_process: Processes = 1,
        gpu_ids: Sequence[NonNegative] = (),
        prompt_name: str | None = None,
        prompt: str | None = None,
        truncate_dim: int | None = None,
        batch_size: Positive | None = None,
        show_progress_bar: bool | None = None,
        normalize_embeddings: bool = False,
        convert_to_tensor: bool = False,
        convert_to_numpy: bool = True,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
        precision: Literal["float32"] = "float32",
        device: str | torch.device | None = None,
    ) -> Any:
        """Return the vectors of texts without making Docs, for bulk work. The vector of a text is `nlp(text).vector` if
        the row is the whole Doc.

        texts (Iterable): n texts, Docs or Spans; a column of pandas, polars, pyarrow or NumPy, or a table of one. Of a
            Doc or Span its text is encoded, without context. Iterators are read window by window.
        window (int): texts that are sorted, packed and encoded together.
        progress (bool): whether to show a progress bar.
        n_process (int): processes to work in; each loads the encoder. As with all that spawns, the main module must be
            guarded by `if __name__ == "__main__"`.
        gpu_ids (Sequence[int]): GPUs to work on, a process for each.
        prompt_name, prompt (str), truncate_dim (int): see predict.
        batch_size, show_progress_bar, normalize_embeddings, convert_to_tensor, convert_to_numpy, output_value,
            precision, device: as in sentence-transformers. batch_size is the most texts that are encoded together, the
            fewer the more slowly; a tensor is on the CPU; device must be the device of the pipeline.
        RETURNS (float32 (n, width)): on the CPU, in the order of the texts; zeros for a text without wordpieces.
        RAISES (TypeError, ValueError): if a text is not text, or the transformer is not of this package.
        """
        check_device(device, self.model.ops)
        check_form(convert_to_numpy=convert_to_numpy, convert_to_tensor=convert_to_tensor)
        encoder = self.text_encoder(prompt_name=prompt_name, prompt=prompt, truncate_dim=truncate_dim)
        cuts = TruncationCounter()
        vectors = encode_all(
            encoder,
            texts,
            window=min(window, batch_size or window),
            progress=progress or bool(show_progress_bar),
            n_process=n_process,
            gpu_ids=gpu_ids,
            cuts=cuts,
        )
        if cuts.count:
            warnings.warn(cuts.message, stacklevel=3)  # at the caller, past the frame of @validated
        if normalize_embeddings:
            vectors = unit_vectors(vectors)
        return torch.from_numpy(vectors) if convert_to_tensor else vectors

    def calibrate(self, texts: Iterable[Text]) -> None:
        """Find the ranges by which `precision = "int8"` rounds what linear layers are given, and which of them bear it;
        they are saved with the pipeline, until training changes the weights.

        Those that add the most noise are left in floating point, until the mean states of every text keep a cosine of
        at least 0.99 to those that are not rounded. Without a call, the first texts with 2048 wordpieces that are
        encoded at once are taken, and until then nothing is rounded.

        texts (Iterable): some hundred, like those that will be encoded.
        RAISES (TypeError, ValueError): if what is given is not text, or no text, or the encoder is not one that is
            rounded: BERT, RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA, DistilBERT and MPNet are.
        """
        find_transformer(self.name, self.model)  # or says why there is none
        cast(TransformerTextEncoder, self.text_encoder()).calibrate(texts)

    def load(self) -> None:
        """Load the encoder, which is otherwise loaded with the first text.

        RAISES (OSError, ValueError): if it is not found, or damaged.
        """
        self.text_encoder().load()

    @property
    def width(self) -> int:
        """The number of dimensions of the vectors; loads the encoder."""
        return self._loaded.width

    @property
    def max_length(self) -> int | None:
        """The most wordpieces of a text, special tokens included, None for no limit; loads the encoder."""
        return self._loaded.max_length

    @property
    def _loaded(self) -> TextEncoder:
        encoder = self.text_encoder()
        encoder.load()
        return encoder

    def text_encoder(
        self, *, prompt_name: str | None = None, prompt: str | None = None, truncate_dim: int | None = None
    ) -> TextEncoder:
        """Return the encoder of texts without Docs, for encode_windows and the like; for the settings see predict.

        It is loaded with the first text, or by its `load`.

        RAISES (ValueError): as encode. (OSError): if the name of the encoder can be found nowhere.
        """
        call = self._call(prompt_name, prompt, truncate_dim)
        pooling, table = cast(SentencePooling, self.model.get_ref("pooling")), find_static_embedding(self.model)
        if table is not None:
            if not table.attrs["tokenizer"]:
                check_name(table.source)
            return StaticTextEncoder(table, pooling, call)
        if not encodes_whole_docs(self.model):
            transformer = find_transformer(self.name, self.model)
            if not transformer.shim.is_loaded:
                check_name(transformer.shim.name)
            return TransformerTextEncoder(transformer, pooling, call)
        nlp = self._in_pipeline.nlp
        if nlp is None:
            raise ValueError(
                f"Cannot encode texts without Docs: the 'sbert' pipe '{self.name}' is in no pipeline, whose "
                f"tokenizer its encoder needs. Use the pipe of a pipeline (nlp.get_pipe('{self.name}')), or "
                "nlp.pipe(texts)."
            )
        encoder, heard = find_docs_reader(nlp, self.name, self.model)
        return Tok2VecTextEncoder(encoder, pooling, call, cast(Tokenizer, nlp.tokenizer), heard)
