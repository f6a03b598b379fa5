"""The `sbert_textcat` component: classes of texts, by logistic regression on sentence vectors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, cast

import numpy
from numpy.typing import ArrayLike
from pydantic import Field
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import logger
from spacy.vocab import Vocab
from thinc.api import Model, Sigmoid, Softmax_v2

from ..arrays import checked
from ..files.serialization import ChecksummedModel, ChecksummedPipe
from ..models.spans import SPANS_KEY
from ..pipeline import doc_vectors
from ..pipeline.components import InPipeline, find_encoding_pipe, find_in
from ..validation import GetExamples, Name, SpansKey, check_docs, validated
from .examples import NONE, ClassExamples, examples_of_gold, gold_labels, unknown_label
from .logistic_regression import fit

Probability = Annotated[float, Field(ge=0, le=1)]
Threshold = Probability | Literal["auto"] | None
_DOC = "doc"
# Where the spans of other units are; any other unit is a key of doc.spans
_ATTRIBUTES = {"sent": "sents", "ents": "ents", "noun_chunks": "noun_chunks"}


class SentenceTextCategorizer(ChecksummedPipe):
    """Classes of texts from a few examples, by logistic regression on the vectors of a pipe.

    Writes the probability of each label to `doc.cats`, and the best label, "" if its probability is
    below the threshold, to `doc._.sbert_label`. Of spans they are in `span._.sbert_cats` and
    `span.label_` of doc.spans[spans_key], which has those with a label.

    The weights depend on the examples and on the encoder alone: once either has changed, they are
    fitted again with the next text.

    vocab (Vocab): the pipeline's.
    name (str): the pipe's name.
    examples (dict): from a label to texts of it.
    none_examples (list[str]): texts that have no label.
    labels (list[str]): labels without examples, whose names are their examples (zero-shot).
    multi_label (bool): whether a text may have several labels, or none.
    threshold (float or "auto"): the probability below which a label is not meant; "auto" for the
        one that cross-validation fits; None for 0.5 with multi_label, else "auto" if there are
        none_examples, and 0 if there are none.
    unit (str): what is classified: "doc", "sent", "ents", "noun_chunks", or a key of doc.spans.
    spans_key (str): where labelled spans are stored.
    upstream (str): the pipe whose vectors are classified; "*" for the nearest before this one.
    scorer (Callable): see score_classes.
    nlp (Language): the pipeline that the pipe is made for.
    RAISES (TypeError, ValueError): if a setting or an example is not what it should be.

    Example:
        nlp.add_pipe("sbert")
        examples = {"cards": ["My card was stolen."], "parcels": ["Where is my parcel?"]}
        nlp.add_pipe("sbert_textcat", config={"examples": examples})
        nlp("I lost my card.")._.sbert_label

    """

    model: Model

    @validated
    def __init__(
        self,
        vocab: Vocab,
        name: str = "sbert_textcat",
        *,
        examples: Mapping[Name, Sequence[str]] = MappingProxyType({}),
        none_examples: Sequence[str] = (),
        labels: Sequence[Name] = (),
        multi_label: bool = False,
        threshold: Threshold = None,
        unit: Name = _DOC,
        spans_key: SpansKey = "sbert_textcat",
        upstream: Name = "*",
        scorer: Callable | None = None,
        nlp: Language | None = None,
    ):
        self.vocab = vocab
        self.name = name
        self.model = _class_model(multi_label=multi_label)
        self.multi_label = multi_label
        self.unit = unit
        self.spans_key = spans_key
        self.upstream = upstream
        self.scorer = scorer
        if threshold == "auto" and multi_label:
            raise ValueError(
                'threshold = "auto" is for classes of which a text has one. With multi_label set a '
                "number, such as one that spacy find-threshold finds."
            )
        self._in_pipeline = InPipeline(nlp)
        self.examples = ClassExamples(multi_label=multi_label)
        for label, texts in examples.items():
            self.examples.add(label, texts)
        for label in labels:
            self.examples.add_label(label)
        if none_examples:
            self.examples.add(NONE, none_examples)
        self._threshold_setting = threshold
        self.cfg: dict[str, Any] = {"threshold": threshold, "without_examples": False}
        self._set_threshold()
        self._install_extensions()

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of `doc.cats`."""
        return self.examples.labels

    @property
    def is_trainable(self) -> bool:
        """False: the weights are fitted to the examples, and take no gradient."""
        return False

    @property
    def threshold(self) -> float:
        """The probability below which a label is not meant; fits the classes if need be."""
        self._refresh()
        return self.cfg["threshold"]

    @property
    def cross_validation(self) -> dict[str, float]:
        """The scores on examples that were left out, by name, see logistic_regression.fit."""
        self._refresh()
        return dict(self.cfg["cross_validation"])

    # Examples

    def fit(self, texts: Iterable[str], labels: Iterable[str]) -> "SentenceTextCategorizer":
        """Replace the examples by texts with a label each, "" for none, and fit the classes.

        RAISES (TypeError, ValueError): if a text or label is not what it should be, or they are not
            as many.

        Example:
            nlp.get_pipe("sbert_textcat").fit(texts, labels)

        """
        texts = list(texts)
        labels = list(labels)
        if len(texts) != len(labels):
            raise ValueError(f"Got {len(texts)} texts and {len(labels)} labels: give one of each.")
        by_label: dict[str, list[str]] = {}
        for text, label in zip(texts, labels, strict=True):
            by_label.setdefault(label, []).append(text)
        examples = ClassExamples(multi_label=self.multi_label)
        for label, given in by_label.items():
            examples.add(label, given)
        self._check_labels(examples)
        self._set_examples(examples)
        self._refresh()
        return self

    def add(self, label: str, texts: Iterable[str]) -> None:
        """Add examples of a label, "" for none; the classes are fitted with the next text.

        RAISES (TypeError, ValueError): see ClassExamples.add.

        Example:
            nlp.get_pipe("sbert_textcat").add("cards", ["My card is blocked."])

        """
        if self.cfg["without_examples"]:
            raise self._no_examples("so new ones cannot be added to them")
        self.examples.add(label, texts)
        self._forget_fit()

    @validated
    def set_coefficients(self, labels: Sequence[Name], weights: ArrayLike, bias: ArrayLike) -> None:
        """Take weights without examples, fitted elsewhere on vectors of the encoder as it is now.

        P(label | x) = softmax(W x + b), or with multi_label sigmoid(W x + b) of each label. Without
        examples nothing can be fitted again: add, and an encoder that has changed, are refused,
        until fit replaces the weights.

        labels (list[str]): of the rows, in the order of `doc.cats`.
        weights (float (labels, width)): W. bias (float (labels,)): b.
        RAISES (ValueError): if a label is given twice, a shape is another, a number is not finite,
            or threshold = "auto", which needs examples.

        Example:
            nlp.get_pipe("sbert_textcat").set_coefficients(labels, head.coef_, head.intercept_)

        """
        if self._threshold_setting == "auto":
            raise self._no_examples('which threshold = "auto" needs')
        examples = ClassExamples(multi_label=self.multi_label)
        for label in labels:
            examples.add_label(label)
        pipe = self._pipe()
        w = checked(weights, "weights", "float64")
        b = checked(numpy.array([bias], "float64"), "bias", "float64")[0]
        expected = (len(labels), pipe.encode([""]).shape[1])
        if w.shape != expected or b.shape != expected[:1]:
            raise ValueError(
                f"The weights are {w.shape} and the bias is {b.shape}: expected {expected} by the "
                f"labels and the vectors of '{pipe.name}', and {expected[:1]}."
            )
        self._set_examples(examples)
        self._set_weights(w, b)
        self.cfg["without_examples"] = True
        self.cfg["cross_validation"] = {}
        self.cfg["encoder"] = pipe.fingerprint()

    def _no_examples(self, consequence: str) -> ValueError:
        return ValueError(
            f"The classes of '{self.name}' have weights without examples, {consequence}. Give all "
            "examples with fit(texts, labels), which replaces the weights."
        )

    @validated
    def initialize(
        self,
        get_examples: GetExamples,
        *,
        nlp: Language | None = None,
    ) -> None:
        """Take the classes of training examples, see examples_of_gold.

        Without gold of classes among them, the examples of the config stay.

        RAISES (ValueError): see examples_of_gold.
        """
        found = examples_of_gold(get_examples, multi_label=self.multi_label, spans_key=SPANS_KEY)
        if len(found):
            self._set_examples(found)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: object = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Check the labels of examples; the classes are fitted with the next text, not updated.

        RAISES (ValueError): if an example has a label that the classes do not have.
        """
        for example in examples:
            for label in gold_labels(example.reference, SPANS_KEY) or ():
                if label not in self.labels:
                    raise unknown_label(label, example.reference.text, self.labels)
        return {} if losses is None else losses

    def _set_examples(self, examples: ClassExamples) -> None:
        self.examples = examples
        self.cfg["without_examples"] = False
        self._forget_fit()

    def _forget_fit(self) -> None:
        self.cfg.pop("encoder", None)

    def _refresh(self) -> None:
        """Fit the classes if the examples or the encoder have changed since they were fitted."""
        fitted_on = self.cfg.get("encoder")
        if fitted_on is not None and self._in_pipeline.nlp is None:
            return
        pipe = self._pipe()
        encoder = pipe.fingerprint()
        if fitted_on == encoder:
            return
        if self.cfg["without_examples"]:
            raise self._no_examples(
                f"fitted on the encoder {fitted_on}; it is {encoder} now, and nothing can be "
                "fitted again"
            )
        if fitted_on is not None:
            logger.debug("Fitting the classes of '%s' again: the encoder changed.", self.name)
        self._fit(pipe, encoder)

    @property
    def _fits_threshold(self) -> bool:
        has_none = bool(self.examples.by_label.get(NONE))
        is_default = self._threshold_setting is None and not self.multi_label
        return self._threshold_setting == "auto" or (is_default and has_none)

    def _set_threshold(self) -> None:
        """Take the threshold of the config; one that is to be fitted is not known yet."""
        threshold = self._threshold_setting
        if self._fits_threshold:
            threshold = None
        elif threshold is None:
            threshold = 0.5 if self.multi_label else 0.0
        self.cfg["threshold"] = threshold

    def _check_labels(self, examples: ClassExamples) -> None:
        """Check that examples have as many labels as it takes to tell them apart."""
        labels = examples.labels
        if len(labels) < (1 if self.multi_label else 2):
            given = f"the label '{labels[0]}' alone" if labels else "no label"
            raise ValueError(
                f"The pipe '{self.name}' has {given}: expected examples of several labels. Give it "
                "examples in its config, or with fit(texts, labels) or add(label, texts)."
            )

    def _fit(self, pipe: Any, encoder: str) -> None:
        self._check_labels(self.examples)
        texts, targets = self.examples.texts_and_targets()
        if self.multi_label:
            self._check_both(targets)
        fitted = fit(
            pipe.encode(texts),
            targets,
            multi_label=self.multi_label,
            with_threshold=self._fits_threshold,
        )
        self._set_weights(fitted.weights, fitted.bias)
        self._set_threshold()
        if fitted.threshold is not None:
            self.cfg["threshold"] = fitted.threshold
        self.cfg["strength"] = fitted.strength
        self.cfg["scale"] = fitted.scale
        self.cfg["cross_validation"] = fitted.scores
        self.cfg["encoder"] = encoder

    def _check_both(self, targets: numpy.ndarray) -> None:
        """Check that each of several labels has texts, and that other texts are without it."""
        for label, has_label in zip(self.labels, targets.T, strict=True):
            if has_label.all():
                raise ValueError(
                    f"All examples have the label '{label}', so nothing tells it apart. Add "
                    "examples without it, as those of '' if they have no label."
                )

    def _set_weights(self, weights: numpy.ndarray, bias: numpy.ndarray) -> None:
        # Thinc does not change the sizes of a layer
        model = _class_model(multi_label=self.multi_label)
        layer = model.layers[0]
        n_labels, width = weights.shape
        layer.set_dim("nO", n_labels)
        layer.set_dim("nI", width)
        layer.set_param("W", layer.ops.asarray2f(cast(Any, weights.astype("float32"))))
        layer.set_param("b", layer.ops.asarray1f(cast(Any, bias.astype("float32"))))
        self.model = model

    def _pipe(self) -> Any:
        """Return the pipe before this one whose vectors are classified.

        RAISES (ValueError): if there is none.
        """
        return find_encoding_pipe(self._in_pipeline.nlp, self, self.upstream)

    def _name_of_pipe(self) -> str:
        """Return the name of this pipe; a copy, which is in no pipeline, has it from fitting."""
        if self._in_pipeline.nlp is not None:
            self.cfg["pipe"] = self._pipe().name
        return self.cfg["pipe"]

    # Docs

    def predict(self, docs: Iterable[Doc]) -> list[tuple[list[Any], numpy.ndarray]]:
        """Return what is classified of each Doc, with its probabilities, float32 (n, labels)."""
        docs = list(docs)
        check_docs(docs, self.name, "Of a text, nlp(text) is a Doc.")
        if not docs:
            return []
        self._refresh()
        units = [self._units(doc) for doc in docs]
        name = self._name_of_pipe()
        rows = [self._vector(unit, name) for of_doc in units for unit in of_doc]
        width = self.model.layers[0].get_dim("nI")
        vectors = numpy.array(rows, dtype="float32").reshape(-1, width)
        ops = self.model.ops
        probabilities = ops.to_numpy(self.model.predict(ops.asarray2f(cast(Any, vectors))))
        # What has no text has no class either
        probabilities[~vectors.any(axis=1)] = 0.0
        ends = numpy.cumsum([len(of_doc) for of_doc in units])[:-1]
        return list(zip(units, numpy.split(probabilities, ends), strict=True))

    def set_annotations(
        self, docs: Iterable[Doc], scores: list[tuple[list[Any], numpy.ndarray]]
    ) -> None:
        """Store the probabilities and labels of Docs, or of spans of them."""
        self._install_extensions()
        labels = self.labels
        threshold = self.cfg["threshold"] or 0.0
        for doc, (units, probabilities) in zip(docs, scores, strict=True):
            found = []
            for unit, values in zip(units, probabilities.tolist(), strict=True):
                cats = dict(zip(labels, values, strict=True))
                label = _best(cats, threshold)
                if isinstance(unit, Doc):
                    doc.cats.update(cats)
                    doc._.sbert_label = label
                elif label != NONE:
                    span = Span(doc, unit.start, unit.end, label=label)
                    span._.sbert_cats = cats
                    found.append(span)
            if self.unit != _DOC:
                doc.spans[self.spans_key] = found

    def _units(self, doc: Doc) -> list[Any]:
        if self.unit == _DOC:
            return [doc]
        if self.unit in _ATTRIBUTES:
            return list(getattr(doc, _ATTRIBUTES[self.unit]))
        if self.unit not in doc.spans:
            raise ValueError(
                f"The pipe '{self.name}' classifies the spans of doc.spans['{self.unit}'], which a "
                "Doc does not have. Put a pipe that sets them before it, or correct unit."
            )
        return list(doc.spans[self.unit])

    def _vector(self, unit: Doc | Span, name: str) -> numpy.ndarray:
        """Return the vector that a pipe gave a Doc or Span, float32 (width,).

        RAISES (ValueError): if it gave none, or another encoder did.
        """
        expected = self.cfg["encoder"]
        encoders = dict(doc_vectors.encoders_of_vector(unit, name))
        encoders.pop(expected, None)
        if encoders:
            given = ", ".join(f"{label} {fingerprint}" for fingerprint, label in encoders.items())
            raise ValueError(
                f"The classes of '{self.name}' were fitted on vectors of the encoder {expected}, "
                f"and a Doc has {given.strip()}. Process its text with this pipeline."
            )
        return doc_vectors.vector(unit, name)

    def _install_extensions(self) -> None:
        """Register doc._.sbert_label and span._.sbert_cats."""
        if not Doc.has_extension("sbert_label"):
            Doc.set_extension("sbert_label", default=NONE)
        if not Span.has_extension("sbert_cats"):
            Span.set_extension("sbert_cats", default=None)

    # Scores

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Return the scores of the pipe's scorer, see score_classes."""
        if self.scorer is None:
            return {}
        self._refresh()
        return self.scorer(
            examples,
            labels=self.labels,
            multi_label=self.multi_label,
            threshold=self.cfg["threshold"],
            **kwargs,
        )

    # Saving

    def __reduce__(self) -> Any:
        """Return what a copy is made of: it is in no pipeline, and cannot be fitted."""
        if len(self.examples) and self._in_pipeline.nlp is not None:
            self._refresh()
            self._name_of_pipe()
        return super().__reduce__()

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the examples, and the classes that were fitted to them."""
        self._before_saving()
        return super().to_bytes(exclude=exclude)

    def to_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> None:
        """Write the examples, and the classes that were fitted to them, to a folder."""
        self._before_saving()
        super().to_disk(path, exclude=exclude)

    def from_bytes(
        self, bytes_data: bytes, *, exclude: Iterable[str] = ()
    ) -> "SentenceTextCategorizer":
        """Load what to_bytes returned."""
        self.model = _class_model(multi_label=self.multi_label)
        super().from_bytes(bytes_data, exclude=exclude)
        return self._after_loading()

    def from_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> "SentenceTextCategorizer":
        """Load what to_disk wrote."""
        self.model = _class_model(multi_label=self.multi_label)
        super().from_disk(path, exclude=exclude)
        return self._after_loading()

    def _before_saving(self) -> None:
        if len(self.examples):
            self._refresh()
        self.cfg["classes"] = self.examples.to_json()
        self.cfg["fits_threshold"] = self._fits_threshold

    def _after_loading(self) -> "SentenceTextCategorizer":
        saved = self.cfg.pop("classes")
        if saved["multi_label"] != self.multi_label:
            raise ValueError(
                f"The pipe '{self.name}' was saved with multi_label = {saved['multi_label']}, the "
                f"config says {self.multi_label}. Leave the setting as it is, or make a new pipe."
            )
        self.examples = ClassExamples.from_json(saved)
        if not self._fits_threshold:
            # The config may have another one now
            self._set_threshold()
        elif not self.cfg["fits_threshold"]:
            self._forget_fit()
        return self


def _class_model(*, multi_label: bool) -> Model:
    """Return the model from vectors (n, width) to probabilities (n, labels)."""
    layer = Sigmoid() if multi_label else Softmax_v2()
    return ChecksummedModel("sbert_textcat", _forward, layers=[cast(Model, layer)])


def _forward(model: Model, vectors: Any, is_train: bool) -> tuple[Any, Callable]:
    return model.layers[0](vectors, is_train)


def score_classes(
    examples: Iterable[Example],
    *,
    labels: Sequence[str],
    multi_label: bool,
    threshold: float,
    **kwargs: Any,
) -> dict[str, Any]:
    """Return the scores of classes: those of spaCy's textcat, and the accuracy with none.

    "cats_acc" is the share of texts whose label, or whose having none, is right. The label is that
    with the highest probability, if this is the threshold or more. With multi_label it is the share
    of texts whose labels are all right.

    See spacy.scorer.Scorer.score_cats for the others. Of exclusive labels they count the texts that
    have one.
    """
    examples = list(examples)
    right = []
    labelled = []
    for example in examples:
        gold = gold_labels(example.reference, SPANS_KEY)
        if gold is None:
            continue
        if gold or multi_label:
            labelled.append(example)
        right.append(_meant(example.predicted.cats, multi_label, threshold) == set(gold))
    if not right:
        return {"cats_score": None, "cats_acc": None}
    scores = Scorer.score_cats(
        labelled,
        "cats",
        getter=_cats,
        labels=labels,
        multi_label=multi_label,
        threshold=threshold,
    )
    return {**scores, "cats_acc": sum(right) / len(right)}


def _cats(doc: Doc, _: str) -> dict[str, float]:
    """Return doc.cats; of the reference of an example with a single member its label."""
    return doc.cats or dict.fromkeys(gold_labels(doc, SPANS_KEY) or (), 1.0)


def _meant(cats: Mapping[str, float], multi_label: bool, threshold: float) -> set[str]:
    if multi_label:
        return {label for label, value in cats.items() if value >= threshold}
    return {_best(cats, threshold)} - {NONE}


def _best(cats: Mapping[str, float], threshold: float) -> str:
    """Return the label with the highest probability; "" if it is below the threshold, or 0."""
    label = max(cats, key=cats.__getitem__)
    return label if cats[label] >= threshold and cats[label] > 0 else NONE


def find_textcat(nlp: Language, name: str | None = None) -> SentenceTextCategorizer:
    """Return the `sbert_textcat` pipe of a pipeline, of this name or the last.

    RAISES (ValueError): if there is none.
    """
    return find_in(nlp, SentenceTextCategorizer, "sbert_textcat", name)
