"""The `sbert_reranker` component: score pairs of texts and rank."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, Literal, TypeGuard, TypeVar, Unpack, cast, overload

import numpy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.util import load_model, minibatch
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate, torch2xp, xp2torch
from thinc.types import Floats1d, Floats2d, Ints1d
from thinc.util import get_array_module, to_numpy

from ..errors import DivergedError, Warnings, WarnOnce, missing_packages
from ..files.serialization import ChecksummedPipe
from ..losses._common import cross_entropy, label_indices, mean_square, softmax
from ..models.encoded_docs import TruncationCounter
from ..models.encoder_language import warn_of_language
from ..models.heads import sigmoid
from ..models.resolve import warn_if_missing
from ..models.spans import SPANS_KEY, members
from ..models.surroundings import undisturbed
from ..pipeline import doc_vectors
from ..pipeline.call_options import ScoreCall, ScoreOptions, check_device
from ..pipeline.components import InPipeline, find_in
from ..progress import progress_bar
from ..training.batch_loss import LOSS_NOT_FINITE, SINGLE_CLASS, Scores, score_examples
from ..training.examples import attribute, labels_of, scores_of
from ..training.step import members_on_reference, whole_update
from ..validation import (
    NOT_SEVERAL,
    SCORE_RANGE,
    Name,
    Positive,
    SpansKey,
    Text,
    check_docs,
    check_text,
    dataframe_columns,
    one_column,
    short_repr,
    validated,
    with_fields_of,
)
from .cross_encoder import SCORE_ACTIVATIONS, SOFTMAX_OF_ONE, CrossEncoder, Pair, PairLogits

# Pairs that are tokenised and sorted together
WINDOW = 4096
TextPair = tuple[Text, Text]
TextPairs = Iterable[TextPair] | numpy.ndarray
Activation = Callable[[torch.Tensor], torch.Tensor]
Objective = Literal["regression", "squared_error", "classification"]
TextT = TypeVar("TextT", bound=Text)


class _PairOptions(ScoreOptions, total=False):
    activation_fn: Activation | None
    apply_softmax: bool
    prompt_name: str | None
    prompt: str | None


class _PairTruncation(TruncationCounter):
    """Counts the pairs that were longer than a cross-encoder's limit, for one warning for many."""

    @property
    def message(self) -> str:
        return Warnings.RERANKER_TRUNCATED.format(
            count=self.count, total=self.total, limit=self.limit
        )


@dataclass(frozen=True)
class Ranked(Generic[TextT]):
    """One of the texts that were ranked.

    text: as it was given. score: that of its pair with the query. index: its place among those
        given.
    """

    text: TextT
    score: float
    index: int


class SentenceReranker(ChecksummedPipe):
    """Scores pairs of texts, by reading both at once.

    That is slower than to compare two vectors, and more precise.

    model (Model): a cross-encoder, spacy-sbert.CrossEncoder.v1.
    name (str): the pipe's name, under which it stores scores and labels.
    objective (str): what it is trained on: "regression", by binary cross-entropy, or
        "squared_error", by the mean squared error of the score, on scores from 0 to 1;
        "classification", by softmax cross-entropy, on labels.
    vocab, scorer, spans_key, nlp: see SentenceBert.
    RAISES (ValueError): if model is not a cross-encoder.
    SOURCE: Reimers and Gurevych 2019, sections 4.2 and 4.3 (BERT-STSb and BERT-AFS).
    """

    # In training, for reporting speed
    examples_seen = 0
    # The sum of the loss
    loss_seen = 0.0

    @validated
    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "sbert_reranker",
        *,
        objective: Objective = "regression",
        scorer: Callable[..., Scores] | None = None,
        spans_key: SpansKey = SPANS_KEY,
        nlp: Language | None = None,
    ):
        if not isinstance(model, CrossEncoder):
            raise ValueError(
                f"The model of '{name}' is not a cross-encoder: expected the architecture "
                "spacy-sbert.CrossEncoder.v1."
            )
        if nlp is not None:
            warn_if_missing(nlp, name, model.shim.name)
            warn_of_language(nlp, name, model.shim.name)
        self.vocab = vocab
        self.model: CrossEncoder = model
        self.name = name
        self.objective = objective
        self.scorer = scorer
        self.spans_key = spans_key
        self.cfg: dict[str, object] = {}
        self._notices = WarnOnce(_PairTruncation)
        self._in_pipeline = InPipeline(nlp)
        _install_extension(name)

    def __repr__(self) -> str:
        shim = self.model.shim
        state = (
            f"{shim.precision} on {shim.device}"
            if shim.is_loaded
            else f"{shim.precision}, not loaded yet"
        )
        return f"SentenceReranker('{self.name}': {shim.name}, {self.objective}, {state})"

    def load(self) -> None:
        """Load the cross-encoder now.

        RAISES (OSError, ValueError): if it is not found, or damaged.
        """
        self.model.shim.load()

    def __call__(self, doc: Doc) -> Doc:
        """Score the pair that a Doc holds; leave other Docs as they are."""
        # Which spaCy would report without the remedy
        self._check_docs([doc])
        with self._notices.one_for_cuts():
            return super().__call__(doc)

    @validated
    def pipe(self, stream: Iterable[Doc], *, batch_size: Positive = 128) -> Iterator[Doc]:
        """Score the pairs in a stream of Docs, batch by batch; they come out in order."""
        with self._notices.one_for_cuts():
            yield from super().pipe(stream, batch_size=batch_size)

    def predict(self, docs: Iterable[Doc]) -> list[numpy.ndarray | None]:
        """Score the Docs that have two members, without changing them.

        RETURNS (list): float32 (outputs,) for each, None for a Doc that is not a pair.
        RAISES (TypeError): for pairs of texts, which score_pairs takes.
        """
        docs = list(docs)
        self._check_docs(docs)
        pairs = [self._pair(doc) for doc in docs]
        known = list(filter(None, pairs))
        # Else the weights need not be loaded
        scores = iter(self._score_window(known) if known else [])
        return [next(scores) if pair else None for pair in pairs]

    def _check_docs(self, docs: list[Doc]) -> None:
        hint = f'To score pairs of texts call find_reranker(nlp, "{self.name}").score_pairs(pairs).'
        check_docs(docs, self.name, hint)

    def set_annotations(self, docs: Iterable[Doc], scores: list[numpy.ndarray | None]) -> None:
        """Store the scores of pairs in doc.spans[spans_key].attrs.

        Of several scores, store also the label of the highest.

        The keys of the pipe "sbert_reranker" are "sbert_reranker_score", a float or a list of
        several, and "sbert_reranker_label".
        """
        # The pipe may have got another name since it was made
        _install_extension(self.name)
        for doc, of_doc in zip(docs, scores, strict=True):
            if of_doc is None:
                continue
            attrs = doc.spans[self.spans_key].attrs
            attrs[f"{self.name}_score"] = float(of_doc[0]) if len(of_doc) == 1 else of_doc.tolist()
            if labels := self.labels:
                attrs[f"{self.name}_label"] = labels[int(of_doc.argmax())]

    def _pair(self, doc: Doc) -> Pair | None:
        pair = members(doc, self.spans_key)
        return (pair[0].text, pair[1].text) if len(pair) == 2 else None

    @overload
    def score_pairs(
        self, pairs: TextPair, *, convert_to_tensor: bool = ..., **options: Unpack[_PairOptions]
    ) -> Any: ...

    @overload
    def score_pairs(
        self, pairs: TextPairs, *, convert_to_tensor: Literal[True], **options: Unpack[_PairOptions]
    ) -> torch.Tensor: ...

    @overload
    def score_pairs(
        self,
        pairs: TextPairs,
        *,
        convert_to_tensor: Literal[False] = ...,
        **options: Unpack[_PairOptions],
    ) -> numpy.ndarray: ...

    @validated
    @with_fields_of(ScoreCall, "call")
    def score_pairs(
        self,
        pairs: TextPairs | TextPair,
        *,
        activation_fn: Activation | None = None,
        apply_softmax: bool = False,
        prompt_name: str | None = None,
        prompt: str | None = None,
        call: ScoreCall,
    ) -> Any:
        """Return the scores of pairs of texts, such as query and passage.

        pairs (Iterable[tuple]): n pairs of str, Doc or Span; an array of shape (n, 2), or a table
            of two columns; or a single pair. Iterators are read window by window.
        progress (bool): whether to show a progress bar.
        show_progress_bar, activation_fn, apply_softmax, prompt_name, prompt, batch_size,
            convert_to_tensor, convert_to_numpy, device: as in `CrossEncoder.predict` of
                sentence-transformers. A prompt is put before the
            first text of each pair; by default that of the folder, "" is none. activation_fn takes
            logits, float32 (n, outputs), and replaces the activation of the cross-encoder;
            batch_size is the most pairs that are scored together, the fewer the more slowly; device
            must be the device of the pipeline.
        RETURNS (float32 (n,), or (n, outputs) of several): on the CPU, in the order of the pairs.
            Of a single pair its score, a scalar or (outputs,).
        RAISES (TypeError): if one is not a pair of texts. (ValueError): if a score is not finite,
            activation_fn gives another shape, or softmax of a single output is asked for.
        """
        call.check(self.model.ops)
        if prompt_name is not None:
            if prompt is not None:
                raise ValueError(
                    f"Got both prompt_name = {prompt_name!r} and prompt = {prompt!r}: give one of "
                    "them."
                )
            prompt = self.model.prompt(prompt_name)
        is_single = _is_pair(pairs)
        given = [pairs] if is_single else _several_pairs(pairs)
        parts = []
        total = len(given) if isinstance(given, Sized) else None
        stream = (_texts_of(pair, number) for number, pair in enumerate(given))
        bar = progress_bar(total, shown=call.shows_progress, unit="pairs")
        with self._notices.one_for_cuts(), bar as shown:
            for window in minibatch(stream, call.n_together(WINDOW)):
                parts.append(
                    self._score_window(
                        window, activation_fn, apply_softmax=apply_softmax, prompt=prompt
                    )
                )
                shown.update(len(window))
        scores = numpy.concatenate(
            parts or [self._score_window([], activation_fn, apply_softmax=apply_softmax)]
        )
        if scores.shape[1] == 1:
            scores = scores[:, 0]
        return call.returned(scores, is_single=is_single)

    @validated
    def rank(
        self,
        query: Text,
        texts: Iterable[TextT],
        k: int | None = None,
        *,
        progress: bool = False,
        show_progress_bar: bool | None = None,
        activation_fn: Activation | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        top_k: Positive | None = None,
        batch_size: Positive | None = None,
        return_documents: Literal[True] = True,
        device: str | torch.device | None = None,
    ) -> list[Ranked[TextT]]:
        """Order texts by how well they answer a query.

        query (str, Doc or Span): the first text of every pair.
        texts (Iterable): str, Docs or Spans, such as those that a search found, or a column, see
            SentenceBert.encode.
        k (int): how many to return, by default all. progress (bool): as of score_pairs.
        show_progress_bar, activation_fn, prompt_name, prompt, top_k, batch_size, return_documents,
            device: as in `CrossEncoder.rank` of sentence-transformers. Of fewer than top_k texts
                all are returned; each result has
            its text.
        RETURNS (list[Ranked]): the best first, the earlier first of equal ones.
        RAISES (TypeError): if a single text is given. (ValueError): if there are fewer than k
            texts, both k and top_k are given, or the cross-encoder has several outputs.
        """
        check_device(device, self.model.ops)
        if k is not None and top_k is not None:
            raise ValueError(
                f"Cannot rank with k = {k} and top_k = {top_k}: expected one of them. Leave one "
                "out."
            )
        texts = list(one_column(texts))
        if k is not None and not 1 <= k <= len(texts):
            raise ValueError(
                f"Cannot rank with k = {k}: expected at least 1 and at most {len(texts)}, the "
                "texts."
            )
        self.model.shim.load()
        if (n_outputs := self.model.shim.n_logits) > 1:
            raise ValueError(
                f"Cannot rank with '{self.name}', it gives {n_outputs} numbers a pair: expected "
                "one. See score_pairs."
            )
        scores = self.score_pairs(
            [(query, text) for text in texts],
            progress=progress or bool(show_progress_bar),
            activation_fn=activation_fn,
            prompt_name=prompt_name,
            prompt=prompt,
            batch_size=batch_size,
        )
        order = numpy.argsort(-scores, kind="stable")[: k or top_k].tolist()
        return [Ranked(texts[i], float(scores[i]), i) for i in order]

    @undisturbed()
    def _score_window(
        self,
        pairs: list[Pair],
        activation_fn: Activation | None = None,
        *,
        apply_softmax: bool = False,
        prompt: str | None = None,
    ) -> numpy.ndarray:
        """Return the scores, float32 (n, outputs); prompt (str): None for the default one."""
        predicted = self.model.predict(self.model.prompted(pairs, prompt))
        if pairs and self.model.shim.has_new_head:
            self._notices.once(Warnings.RERANKER_NEW_HEAD.format(name=self.name))
        self._notices.cuts.add_rows(len(pairs), predicted.n_cut, self._limit)
        finite = numpy.isfinite(to_numpy(predicted.logits)).all(axis=1)
        if not finite.all():
            first, second = (text[:50] for text in pairs[int(finite.argmin())])
            raise ValueError(
                f"The score that '{self.name}' gives to the pair ('{first}', '{second}') is not "
                "finite. Train again."
            )
        logits = predicted.logits
        scores = (
            self.model.scores(logits) if activation_fn is None else _apply(activation_fn, logits)
        )
        if apply_softmax and scores.shape[1] == 1:
            raise ValueError(SOFTMAX_OF_ONE)
        return to_numpy(softmax(scores) if apply_softmax else scores)

    @property
    def _limit(self) -> int | None:
        return self.model.pair_tokenizer.limit if self.model.shim.is_loaded else None

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the labels of the outputs, if there are several.

        None before the weights are loaded.
        """
        return self.model.shim.labels if self.model.shim.is_loaded else ()

    @property
    def label_data(self) -> list[str]:
        """Return the labels as `initialize` takes them, for `spacy init labels`."""
        return list(self.labels)

    @validated
    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Sequence[Name] | None = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        """Load the weights, and make a head if there is none that fits.

        A head that was trained for the objective and the same labels stays.

        nlp (Language): whose training.seed decides the weights of a new head.
        labels (list[str]): of the classification objective; by default those of the examples.
            Without labels and pairs a head that was trained stays, whatever the objective.
        checkpoint (str or Path): a trained pipeline whose reranker of the same name training goes
            on from, whatever its objective: network and tokenizer are its, and the name in the
            config of the model is not looked for.
        RAISES (OSError, ValueError): if encoder or checkpoint are not found, the checkpoint has no
            such reranker, or there is but one label, or n_outputs in the config of the model does
            not fit the objective.
        """
        validate_get_examples(get_examples, "SentenceReranker.initialize")
        shim = self.model.shim
        classifies = self.objective == "classification"
        if checkpoint is not None:
            self._start_from(checkpoint)
        self.model.initialize()
        pairs = (example for example in get_examples() if self._pair(example.predicted) is not None)
        # Reading all of them is left to an objective that needs their labels
        first = next(pairs, None)
        if labels and not classifies:
            raise ValueError(
                f'The labels do not fit: the objective "{self.objective}" learns scores. Leave '
                "them out."
            )
        if labels is None and classifies and first is not None:
            labels = sorted(set(labels_of([first, *pairs], self.spans_key)))
        labels = labels or ()
        if len(labels) == 1:
            raise ValueError(SINGLE_CLASS.format(loss=self.objective, given=labels[0]))
        if labels:
            n_outputs = len(labels)
        elif first is not None and not classifies:
            n_outputs = 1
        else:
            n_outputs = shim.n_logits
        if shim.n_outputs not in (0, n_outputs):
            raise ValueError(
                f'The objective "{self.objective}" needs {n_outputs} outputs with these examples, '
                f"the config of the cross-encoder says n_outputs = {shim.n_outputs}. Set it to 0, "
                "which follows the objective."
            )
        has_new_labels = bool(set(labels) - set(shim.labels))
        if shim.has_new_head or n_outputs != shim.n_logits or has_new_labels:
            shim.make_head(n_outputs, labels, _seed_of(nlp))

    def _start_from(self, checkpoint: str | Path) -> None:
        """Take network, head and tokenizer from the reranker of this name in another pipeline."""
        with missing_packages():
            nlp = load_model(checkpoint)
        model = getattr(nlp.get_pipe(self.name), "model", None) if nlp.has_pipe(self.name) else None
        if not isinstance(model, CrossEncoder):
            raise ValueError(
                f"Cannot start '{self.name}' from '{checkpoint}', which has no reranker of that "
                f"name: its pipes are {', '.join(nlp.pipe_names) or 'none'}. Name a pipeline that "
                "was trained with one."
            )
        self.model.shim.from_bytes(model.shim.to_bytes())

    @undisturbed()
    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch of examples whose Docs have two members; others are left out.

        losses (dict): gets the loss under the pipe's name.
        RAISES (ValueError): if a pair has no gold value, or the loss is not finite.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "SentenceReranker.update")
        self.examples_seen += len(examples)
        learning = self._pairs_among(examples)
        if not learning:
            where = members_on_reference(examples, self.spans_key)
            message = Warnings.RERANKER_NOTHING_TO_LEARN
            self._notices.once(message.format(name=self.name, key=self.spans_key, found=where))
            return losses
        set_dropout_rate(self.model, drop)
        pairs = [cast(Pair, self._pair(example.predicted)) for example in learning]
        predicted, backprop = self.model.begin_update(self.model.prompted(pairs))
        if predicted.n_cut:
            self._notices.once(
                Warnings.RERANKER_TRAINING_CUT.format(name=self.name, limit=self._limit)
            )
        loss, d_logits = self.get_loss(learning, predicted)
        with whole_update(self.model):
            backprop(cast(PairLogits, d_logits))
        if sgd not in (None, False):
            self.finish_update(sgd)
        losses[self.name] += loss
        self.loss_seen += loss
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Update the weights."""
        with whole_update(self.model):
            super().finish_update(sgd)

    def get_loss(self, examples: Iterable[Example], scores: PairLogits) -> tuple[float, Floats2d]:
        """Return the loss of a batch, and its gradient by the logits of each pair.

        examples (Iterable[Example]): n pairs; gold values are on the reference.
        scores (PairLogits): the output of the cross-encoder for them.
        RETURNS (float, float32 (n, outputs)): of a part of a batch, its share in them.
        RAISES (ValueError): if a pair has no gold value, or the loss is not finite.
        """
        examples = list(examples)
        logits, classifies = scores.logits, self.objective == "classification"
        if (logits.shape[1] == 1) == classifies:
            raise ValueError(
                f"The cross-encoder has {logits.shape[1]} outputs, which do not fit the objective "
                f'"{self.objective}". '
                "Call nlp.initialize before training, or set n_outputs."
            )
        if classifies:
            gold_labels, known = labels_of(examples, self.spans_key), self.model.shim.labels
            targets = label_indices(self.model.ops, gold_labels, known, "the reranker")
            loss, d_logits = _label_cross_entropy(logits, targets)
        else:
            gold = scores_of(examples, self.model.ops, self.spans_key, SCORE_RANGE)
            if self.objective == "regression":
                loss, d_logits = _binary_cross_entropy(logits, gold)
            else:
                loss, d_logits = _mean_squared_error(logits, gold, self.model.activation)
        if not math.isfinite(loss):
            text = examples[0].reference.text[:50]
            raise DivergedError(LOSS_NOT_FINITE.format(loss=self.objective, text=text))
        size = attribute(examples[0].reference, "batch_size", self.spans_key) or len(examples)
        share = len(examples) / cast(int, size)
        return loss * share, d_logits * share

    def score(self, examples: Iterable[Example], **kwargs: object) -> Scores:
        """Return the scores of the pairs among examples.

        Under the pipe's name if another pipe answers `doc.vector`.
        """
        pairs = self._pairs_among(list(examples))
        is_default = not any(doc_vectors.find(example.predicted) for example in pairs)
        return score_examples(self, pairs, is_default=is_default, **kwargs)

    def _pairs_among(self, examples: list[Example]) -> list[Example]:
        return [example for example in examples if self._pair(example.predicted) is not None]


def find_reranker(nlp: Language, name: str | None = None) -> SentenceReranker:
    """Return the `sbert_reranker` of a pipeline: the one of this name, or the last.

    RAISES (ValueError): if none.
    """
    return find_in(nlp, SentenceReranker, "sbert_reranker", name)


def _install_extension(name: str) -> None:
    """Register `doc._.sbert_reranker_score`, which reads the stored score.

    None on a Doc that is not a pair.
    """
    key = f"{name}_score"
    if not Doc.has_extension(key):
        Doc.set_extension(key, getter=partial(_get_score, key))


def _get_score(key: str, doc: Doc) -> float | list[float] | None:
    return next((group.attrs[key] for group in doc.spans.values() if key in group.attrs), None)


def _is_pair(given: object) -> TypeGuard[Sequence[Text]]:
    """Return whether this is a pair of texts, or an array of two."""
    if isinstance(given, numpy.ndarray):
        given = given.tolist()
    return (
        isinstance(given, tuple | list)
        and len(given) == 2
        and all(isinstance(text, Text) for text in given)
    )


def _seed_of(nlp: Language | None) -> int:
    """Return the seed of a pipeline's training, 0 if there is none."""
    if nlp is None:
        return 0
    return nlp.config.interpolate()["training"]["seed"] or 0


def _several_pairs(pairs: Any) -> Iterable[object]:
    """Return the rows of a table of two columns or of an array as a list.

    Other iterables are returned as they are.
    """
    names = dataframe_columns(pairs)
    if names is not None:
        if len(names) != 2:
            raise TypeError(
                f"Cannot score a table of {len(names)} columns {short_repr(tuple(names))}: "
                "expected the two columns of "
                'the texts. Choose them by their names, such as df[["query", "passage"]].'
            )
        return list(zip(*(one_column(pairs[name]) for name in names), strict=True))
    if isinstance(pairs, numpy.ndarray) and pairs.ndim:
        return pairs.tolist()
    if not isinstance(pairs, Iterable) or isinstance(pairs, (numpy.ndarray, *NOT_SEVERAL)):
        raise TypeError(
            f"Cannot score {short_repr(pairs)}: expected pairs in an order, such as [(query, "
            "passage)]."
        )
    return pairs


def _texts_of(pair: object, number: int) -> Pair:
    if not _is_pair(pair):
        raise TypeError(
            f"Cannot score pair number {number}, {repr(pair)[:100]}: expected two texts (str, Doc "
            "or Span), such as (query, passage)."
        )
    first, second = (text if isinstance(text, str) else text.text for text in pair)
    for text in (first, second):
        check_text(text, f"a text of pair number {number}")
    return first, second


def _apply(activation_fn: Activation, logits: Floats2d) -> Floats2d:
    """Return the scores that a function of PyTorch makes of logits.

    RAISES (ValueError): if their shape is another.
    """
    with torch.no_grad():
        scores = activation_fn(xp2torch(logits))
    shape = tuple(scores.shape) if torch.is_tensor(scores) else type(scores).__name__
    if shape != logits.shape:
        raise ValueError(
            f"activation_fn made {shape} of logits of shape {logits.shape}: expected a tensor of "
            "the same shape."
        )
    return cast(Floats2d, torch2xp(scores.float()))


def _binary_cross_entropy(logits: Floats2d, gold: Floats1d) -> tuple[float, Floats2d]:
    """Return the binary cross-entropy of the one output's sigmoid, and its derivative by s.

    The derivative is float (n, 1).

    loss = -1/n sum_i (y_i log sigmoid(s_i) + (1 - y_i) log(1 - sigmoid(s_i)))

    logits (float (n, 1)): s. gold (float (n,)): y, from 0 to 1.
    """
    xp = get_array_module(logits)
    scores = xp.asarray(logits)[:, 0]
    losses = xp.logaddexp(xp.zeros_like(scores), scores) - gold * scores
    return float(losses.mean()), ((sigmoid(scores) - gold) / len(gold))[:, None]


def _mean_squared_error(
    logits: Floats2d, gold: Floats1d, activation: str = "identity"
) -> tuple[float, Floats2d]:
    """Return the mean squared error of the one output's score, and its derivative by s.

    The derivative is float (n, 1).

    loss = 1/n sum_i (f(s_i) - y_i)^2

    logits (float (n, 1)): s. gold (float (n,)): y, from 0 to 1.
    activation (str): f: "identity", the linear output, or "sigmoid", whose derivative is f(s) (1 -
        f(s)).
    SOURCE: Devlin et al. 2019, section 4.1, on the STS benchmark (identity); Reimers and Gurevych
        2019, section 3, regression by mean squared error.
    """
    scores = SCORE_ACTIVATIONS[activation](logits)[:, 0]
    errors = scores - gold
    slopes = scores * (1 - scores) if activation == "sigmoid" else 1.0
    return mean_square(errors), (2 * errors * slopes / len(gold))[:, None]


def _label_cross_entropy(logits: Floats2d, targets: Ints1d) -> tuple[float, Floats2d]:
    """Return the mean of cross_entropy over the pairs, and its derivative by the logits.

    The derivative is float (n, labels).
    """
    losses, d_logits = cross_entropy(logits, targets)
    return float(losses.mean()), d_logits / len(targets)
