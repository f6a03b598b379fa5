"""Vectors of a teacher as gold, for distillation."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy
import spacy
from spacy.language import Language
from spacy.training import Example
from spacy.util import registry
from thinc.util import to_numpy

from ..errors.checks import Name, Positive, validated
from ..spans import SPANS_KEY
from ..spans.objectives import Counts, Reader, count_objectives
from .errors import Errors


@registry.readers("spacy-sbert.TeacherCorpus.v1")
class TeacherCorpus:
    """Give the examples of another reader the vector that a teacher has for their first member.

    corpus (Callable): the reader; examples without members are passed on as they are.
    teacher (str): a pipeline, a folder or an installed package, loaded when the first example is read.
    batch_size (int): how many texts the teacher gets at once.
    spans_key (str): where the members stand. The vector stands in attrs["vector"] of the reference, a float32 array.
    RAISES (ValueError): for a batch_size below 1; on reading, if the teacher has no vector for a text.
    SOURCE: Reimers and Gurevych 2020, Making Monolingual Sentence Embeddings Multilingual.
    """

    @validated
    def __init__(self, corpus: Reader, teacher: str | Path, batch_size: Positive = 128, spans_key: Name = SPANS_KEY):
        self.corpus = corpus
        self.teacher = teacher
        self.batch_size = batch_size
        self.spans_key = spans_key
        self._nlp: Language | None = None

    def __repr__(self) -> str:
        corpus = getattr(self.corpus, "__name__", type(self.corpus).__name__)
        return f"TeacherCorpus({corpus}, taught by {self.teacher})"

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield the Examples of the corpus, the teacher's vectors on their references."""
        return self._read(iter(self.corpus(nlp)))

    def count(self) -> int:
        """The number of examples, for which the teacher is not asked."""
        return self.counts(self.spans_key).total()

    def counts(self, spans_key: str) -> Counts:
        """How many examples of each objective, see count_objectives."""
        return count_objectives(self.corpus, spans_key)

    def _read(self, examples: Iterator[Example]) -> Iterator[Example]:
        if self._nlp is None:
            self._nlp = spacy.load(self.teacher)
        while batch := list(islice(examples, self.batch_size)):
            groups = [example.reference.spans.get(self.spans_key) for example in batch]
            taught = [group for group in groups if group is not None and len(group)]
            texts = [group[0].text for group in taught]
            for group, vector in zip(taught, self._vectors(self._nlp, texts), strict=True):
                group.attrs["vector"] = vector
            yield from batch

    def _vectors(self, nlp: Language, texts: Iterable[str]) -> Iterator[numpy.ndarray]:
        for doc in nlp.pipe(texts, batch_size=self.batch_size):
            # A copy, which the teacher's Doc does not keep alive; nothing where there is no vector.
            vector = numpy.array(to_numpy(doc.vector) if doc.has_vector else (), dtype="float32")
            if not vector.any() or not numpy.isfinite(vector).all():
                raise ValueError(Errors.NO_TEACHER_VECTOR.format(teacher=self.teacher, text=doc.text[:50]))
            yield vector
