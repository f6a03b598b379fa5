"""The examples of classes: which texts have which labels."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy
from spacy.tokens import Doc
from thinc.api import Config, ConfigValidationError

from ..errors import Warnings, warn
from ..models.spans import members
from ..training.examples import attribute
from ..validation import GetExamples, check_text

# In place of a label, of texts that have none
NONE = ""


class ClassExamples:
    """Texts by their labels, in the order in which they came.

    by_label (dict): from a label to its texts; those of none stand under "". A label without texts
        stands for itself: its name is its example.
    multi_label (bool): whether a text may have several labels.
    """

    def __init__(self, *, multi_label: bool):
        self.multi_label = multi_label
        self.by_label: dict[str, list[str]] = {}
        self._label_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self.by_label)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, without that of texts that have none."""
        return tuple(label for label in self.by_label if label != NONE)

    def add_label(self, label: str) -> None:
        """Add a label that has no examples yet.

        RAISES (ValueError): if there is one of this name.
        """
        _check_label(label)
        if label == NONE or label in self.by_label:
            raise ValueError(f"The label {label!r} is given twice, or empty. Name each label once.")
        self.by_label[label] = []

    def add(self, label: str, texts: Iterable[str]) -> None:
        """Add texts of a label, "" for texts that have none.

        RAISES (TypeError, ValueError): if there are none, one is empty or no text, or has another
            label already that excludes this one.
        """
        _check_label(label)
        given = _checked_texts(label, texts)
        known = self.by_label.get(label, [])
        new = [text for text in dict.fromkeys(given) if text not in set(known)]
        for text in new:
            other = self._label_of.get(text)
            if other is not None and (not self.multi_label or NONE in (label, other)):
                raise ValueError(
                    f"The example {text[:50]!r} has the labels '{other}' and '{label}': expected "
                    "one. Remove it from one of them, or set multi_label = true."
                )
        for text in new:
            self._label_of[text] = label
        self.by_label[label] = [*known, *new]

    def texts_and_targets(self) -> tuple[list[str], numpy.ndarray]:
        """Return the distinct texts, and which labels each has, bool (texts, labels).

        A label without texts has its own name as its text. Texts are in the order of the alphabet:
        rounding, and so weights that have not quite converged, depends on the order.
        """
        texts_of = {label: given or [label] for label, given in self.by_label.items()}
        texts = sorted(set(chain.from_iterable(texts_of.values())))
        rows = {text: row for row, text in enumerate(texts)}
        targets = numpy.zeros((len(texts), len(self.labels)), dtype=bool)
        for column, label in enumerate(self.labels):
            targets[[rows[text] for text in texts_of[label]], column] = True
        return texts, targets

    def to_json(self) -> dict[str, Any]:
        """Return what from_json reads."""
        return {"multi_label": self.multi_label, "texts": self.by_label}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> "ClassExamples":
        """Return the examples that to_json returned."""
        examples = cls(multi_label=saved["multi_label"])
        for label, texts in saved["texts"].items():
            if texts:
                examples.add(label, texts)
            else:
                examples.add_label(label)
        return examples


def check_in_config(examples: Mapping[str, Sequence[str]], texts: Sequence[str]) -> None:
    """Check that a config can hold examples: spaCy saves it, and reads it again.

    RAISES (ValueError): naming the label or text that would come back as another.
    """
    for label, given in examples.items():
        for text in (*given, *texts):
            if "$" in text:
                raise ValueError(
                    f"The example {text[:50]!r} cannot stand in a config, where spaCy doubles '$'. "
                    "Give it with add(label, texts)."
                )
        try:
            read = Config().from_str(Config({"examples": {label: []}}).to_str())
        except ConfigValidationError:
            read = Config()
        if label not in read.get("examples", {}):
            raise ValueError(
                f"The label {label!r} cannot stand in a config as a name. Give its examples with "
                "add(label, texts)."
            )


def _check_label(label: object) -> None:
    if not isinstance(label, str):
        raise TypeError(f"The label {label!r} is a {type(label).__name__}: expected text.")
    check_text(label, "A label")


def _checked_texts(label: str, texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise TypeError(f"The examples of '{label}' are one text: expected a list of texts.")
    given = list(texts)
    if not given:
        raise ValueError(
            f"The label '{label}' has no examples. Add some, or name it in labels to use its own "
            "name as its example."
        )
    for text in given:
        if not isinstance(text, str):
            raise TypeError(
                f"An example of '{label}' is a {type(text).__name__}: expected text, got {text!r}."
            )
        if not text.strip():
            raise ValueError(f"An example of '{label}' is empty. Remove it.")
        check_text(text, f"An example of '{label}'")
    return given


def examples_of_gold(
    get_examples: GetExamples,
    *,
    multi_label: bool,
    spans_key: str,
) -> ClassExamples:
    """Return the examples of classes in training examples.

    The labels of a text are those with 1 in `doc.cats`, as in spaCy's textcat; or, of an example of
    a single member, its label. Of a text with labels that exclude each other in several examples,
    the first counts, with a warning.

    RAISES (ValueError): if an example has several labels that exclude each other.
    """
    pairs: list[tuple[str, str]] = []
    for example in get_examples():
        pairs += _labelled(example.reference, spans_key, multi_label=multi_label)
    examples = ClassExamples(multi_label=multi_label)
    found: dict[str, list[str]] = {}
    for label, text in pairs if multi_label else _with_one_label(pairs):
        found.setdefault(label, []).append(text)
    for label, texts in found.items():
        examples.add(label, texts)
    return examples


def _with_one_label(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return each text with its first label; warn of texts that had another one later."""
    label_of: dict[str, str] = {}
    contradicting = [text for label, text in pairs if label_of.setdefault(text, label) != label]
    if contradicting:
        text = contradicting[0][:50]
        warn(Warnings.CLASSES_CONTRADICT.format(count=len(contradicting), text=text))
    return [(label, text) for text, label in label_of.items()]


def gold_labels(reference: Doc, spans_key: str) -> list[str] | None:
    """Return the labels of the reference of an example; None if it has no gold of classes."""
    if reference.cats:
        return [label for label, value in reference.cats.items() if value >= 0.5]
    label = attribute(reference, "label", spans_key)
    if isinstance(label, str) and len(members(reference, spans_key)) == 1:
        return [label]
    return None


def _labelled(reference: Doc, spans_key: str, *, multi_label: bool) -> list[tuple[str, str]]:
    """Return the labels of an example, "" for none, each with its text; nothing without gold."""
    labels = gold_labels(reference, spans_key)
    # Of an example of one member, behind which a space may be
    text = reference.text.strip()
    if labels is None or not text:
        return []
    if len(labels) > 1 and not multi_label:
        raise ValueError(
            f"The example {text[:50]!r} has the labels {', '.join(labels)}: expected one. Correct "
            "doc.cats, or set multi_label = true."
        )
    return [(label, text) for label in labels or [NONE]]


def unknown_label(label: str, text: str, labels: Sequence[str]) -> ValueError:
    """Return the error of an example with a label that the classes do not have."""
    return ValueError(
        f"The example {text[:50]!r} has the label '{label}', which the classes do not have: "
        f"{', '.join(labels)}. Initialize again, or add it with add(label, texts)."
    )
