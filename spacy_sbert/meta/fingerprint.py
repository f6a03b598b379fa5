"""What the vectors of a meta-embedding depend on, beside the encoders of its members."""

from collections.abc import Sequence

import srsly
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..files.checksum import digest_of_stream
from ..models.fingerprint import StaticVectorsWatch, are_same, vectors_digest
from .estimator import MetaEmbedding
from .members import FunctionMember


class OwnDigest:
    """Digest of an estimator, and of the functions among the members.

    It is computed when it is first needed, and again when one of them has learned since.
    """

    def __init__(self) -> None:
        self._static = StaticVectorsWatch()
        # What it was computed of, see FunctionMember.learned; "" if it must be computed again
        self._objects: list[object] = []
        self._numbers: list[object] = []
        self._digest = ""

    def look_at_static_vectors(self, vocab: Vocab, docs: Sequence[Doc] = ()) -> None:
        """Compute the digest again if static vectors, which functions read, have changed.

        Call it once a batch.
        """
        if self._static.has_changed(vocab, docs):
            self._digest = ""

    def of(
        self, estimator: MetaEmbedding, functions: Sequence[FunctionMember], vocab: Vocab
    ) -> str:
        """Return the digest of an estimator, of functions, and of the vectors that these read."""
        # The widths are other objects after each fit
        objects: list[object] = [estimator, estimator.widths_]
        if functions:
            objects.append(vocab.vectors)
        numbers: list[object] = []
        for member in functions:
            held, glance = member.learned()
            objects += held
            numbers += glance
        is_same = are_same(objects, self._objects)
        if not self._digest or not is_same or numbers != self._numbers:
            self._objects = objects
            self._numbers = numbers
            self._digest = _digest(estimator, functions, vocab)
        return self._digest


def _digest(estimator: MetaEmbedding, functions: Sequence[FunctionMember], vocab: Vocab) -> str:
    state = {
        "method": estimator.method,
        "settings": estimator.settings,
        "arrays": estimator.arrays,
    }
    parts: list[str | bytes] = [srsly.msgpack_dumps(state)]
    for member in functions:
        parts += member.identity()
    if functions:
        parts.append(vectors_digest(vocab))
    return digest_of_stream(parts)
