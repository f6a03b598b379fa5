"""Texts to vectors where the units are tokens: each text becomes a Doc that is one row."""

from dataclasses import dataclass

import numpy
from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.util import to_numpy

from ..encoder.curated import annotate, read_pieces
from ..encoder.rows import RowStates
from ..encoder.token_encoder import TokenEncoder
from .call import Call
from .identity import Tokenizer, layers_digest
from .sentence_pooling import SentencePooling, pool_rows
from .texts_encoder import Encoded, Moved, unmoved


@dataclass
class TokenTextEncoder:
    """From texts to vectors, see TextEncoder.

    encoder: what encodes tokens, or gives the wordpieces of a curated transformer. pooling: what makes a vector of
    their states. call: what is not as the config says. tokenizer: of the pipeline. upstream: the model of the component
    that the encoder hears; None if it hears none.
    """

    encoder: Model
    pooling: SentencePooling
    call: Call
    tokenizer: Tokenizer
    upstream: Model | None

    max_length = None  # of texts: none is cut

    @property
    def width(self) -> int:
        """Of the vectors."""
        return self.pooling.width(self._hidden, truncate_dim=self.call.truncate_dim)

    @property
    def _hidden(self) -> int:
        """The width of states: a listener may not know it, nor what was built around one."""
        nodes = [node for node in (self.upstream, self.encoder, *self.encoder.layers) if node is not None]
        return next(node.get_dim("nO") for node in nodes if node.has_dim("nO"))

    @property
    def name(self) -> str:
        """Of the encoder."""
        return next(node.name for node in (*self.encoder.layers, self.upstream) if node is not None)

    def digest(self) -> str:
        """Of what vectors depend on."""
        models = [model for model in (self.encoder, self.upstream) if model is not None]
        return layers_digest(models, self._hidden, self.pooling, self.tokenizer)

    def load(self) -> None:
        """There is nothing to load."""

    def tokenize(self, texts: list[str]) -> list[Doc]:
        """The tokens of texts."""
        return [self.tokenizer(text) for text in texts]

    def encode(self, docs: list[Doc], moved: Moved = unmoved) -> Encoded:
        """The vectors of texts, on the CPU, and how many were cut: none."""
        found = numpy.zeros((len(docs), self.width), dtype="float32")
        held = [number for number, doc in enumerate(docs) if len(doc)]
        held.sort(key=lambda number: len(docs[number]))  # a curated transformer pads batches
        if held:
            own = [docs[number] for number in held]
            if self.upstream is not None:
                annotate(self.upstream, own)
            batch = self._read(own, [[doc[:]] for doc in own])
            (vectors, _), _ = pool_rows(self.pooling, batch, False, call=self.call)
            found[held] = to_numpy(vectors)
        moved(len(docs))
        return found, 0

    def _read(self, docs: list[Doc], spans: list[list[Span]]) -> RowStates:
        if isinstance(self.encoder, TokenEncoder):
            return self.encoder.read_spans(docs, spans, with_pieces=False, is_train=False)
        heard, backprop = self.encoder(docs, False)
        return read_pieces(docs, spans, heard, backprop, with_pieces=False)

    def check_calibrated(self) -> None:
        """Nothing is rounded."""

    def to_gpu(self, gpu_id: int) -> None:
        """Work on a GPU."""
        for model in (self.encoder, self.pooling, self.upstream):
            if model is not None:
                model.to_gpu(gpu_id)
