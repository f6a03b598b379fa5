"""What a pipeline annotates a few texts with, to compare it with another pipeline."""

import warnings
from typing import Any, NamedTuple, Self, cast

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import reduce_mean
from thinc.util import to_numpy

from ..arrays import Arrays
from ..models.tokenization import PROBES
from ..pipeline.sbert import SentenceBert

_TEXTS = (
    *PROBES,
    "Angela Merkel met Tim Cook in Berlin on Monday.",
    # Ends with a space
    "He left. She stayed, and bought 3 apples for $5. ",
    # Longer than most encoders' limit
    "one two three. " * 250 + "four",
)
# Share of the largest number by which others may differ: other kernels add up in another order
_TOLERANCE = 1e-5


class Annotations(NamedTuple):
    """What a pipeline annotated a Doc with: labels must be equal, numbers up to rounding."""

    labels: dict[str, Any]
    numbers: Arrays

    @classmethod
    def of(cls, nlp: Language, doc: Doc) -> Self:
        """Return the annotations of a Doc that a pipeline processed."""
        labels = doc.to_json()
        cats = labels.pop("cats", {})
        labels["names of categories"] = list(cats)
        numbers = {
            "vectors of tokens": _token_vectors(doc),
            "categories": numpy.array(list(cats.values())),
        }
        for key, group in doc.spans.items():
            numbers[f"scores in doc.spans['{key}']"] = numpy.asarray(group.attrs.get("scores", ()))
        for name, pipe in nlp.pipeline:
            if isinstance(pipe, SentenceBert):
                numbers[f"vectors of '{name}'"] = pipe.vector(doc)
        return cls(labels, numbers)

    def difference(self, other: Self | None) -> str | None:
        """Return the name of what is different in others; None if nothing is."""
        if other is None:
            return "annotations"
        for name, numbers in self.numbers.items():
            others = other.numbers.get(name)
            if others is None or others.shape != numbers.shape:
                return name
            tolerance = _TOLERANCE * numpy.abs(numbers).max(initial=0)
            if not numpy.allclose(others, numbers, rtol=0, atol=tolerance):
                return name
        for name, value in self.labels.items():
            if other.labels.get(name) != value:
                return name
        return None


def annotate(nlp: Language) -> dict[str, Annotations]:
    """Return what a pipeline annotates texts with, by text.

    Texts that make it fail are left out: some layers take no white space.
    """
    found = {}
    for text in _TEXTS:
        try:
            # The texts are not the user's
            with warnings.catch_warnings(action="ignore"):
                doc = nlp(text)
        except Exception as error:
            # Components may raise anything
            failure = error
        else:
            found[text] = Annotations.of(nlp, doc)
    if not found:
        raise ValueError(
            f"The pipeline annotates no text ({type(failure).__name__}: {failure})."
        ) from failure
    return found


def compare(expected: dict[str, Annotations], found: dict[str, Annotations]) -> None:
    """Raise ValueError if a text has other annotations than expected."""
    for text, annotations in expected.items():
        difference = annotations.difference(found.get(text))
        if difference is not None:
            raise ValueError(
                f"The converted pipeline gives other {difference} for the text {text[:50]!r}. "
                "Nothing was saved; keep the pipeline as it is, with spacy-transformers."
            )


def _token_vectors(doc: Doc) -> numpy.ndarray:
    """Return the mean of each token's wordpieces, of a transformer of either package."""
    if not doc.has_extension("trf_data") or doc._.get("trf_data") is None:
        return cast(numpy.ndarray, to_numpy(doc.tensor))
    from spacy_transformers.layers import trfs2arrays  # noqa: PLC0415 (need not be installed)

    means = trfs2arrays(reduce_mean(), 1.0).predict([doc._.trf_data])
    return cast(numpy.ndarray, to_numpy(means[0]))
