"""Texts to vectors where the units are tokens: each text becomes a Doc that is one row."""

from dataclasses import dataclass

import numpy
from spacy.tokens import Doc
from thinc.api import Model

from ..encoder.token_encoder import TokenEncoder
from ..similarity import as_numpy
from .call import Call
from .identity import Tokenizer, layers_digest
from .sentence_pooling import SentencePooling, pool_rows


@dataclass
class TokenTextEncoder:
    """From texts to vectors, see TextEncoder.

    encoder: what encodes tokens. pooling: what makes a vector of their states. call: what is not as the config says.
    tokenizer: of the pipeline. upstream: the model of the component that the encoder hears; None if it hears none.
    """

    encoder: TokenEncoder
    pooling: SentencePooling
    call: Call
    tokenizer: Tokenizer
    upstream: Model | None

    max_length = None  # of texts: none is cut

    @property
    def width(self) -> int:
        """Of the vectors."""
        return self.pooling.width(self.encoder.get_dim("nO"), truncate_dim=self.call.truncate_dim)

    @property
    def name(self) -> str:
        """Of the encoder."""
        return self.encoder.layers[0].name

    def digests(self) -> tuple[str, str]:
        """Of what vectors depend on; there is no former one."""
        models = [model for model in (self.encoder, self.upstream) if model is not None]
        return layers_digest(models, self.pooling, self.tokenizer), ""

    def load(self) -> None:
        """There is nothing to load."""

    def tokenize(self, texts: list[str]) -> list[Doc]:
        """The tokens of texts."""
        return [self.tokenizer(text) for text in texts]

    def encode(self, docs: list[Doc]) -> tuple[numpy.ndarray, int]:
        """The vectors of texts, on the CPU, and how many were cut: none."""
        found = numpy.zeros((len(docs), self.width), dtype="float32")
        held = [number for number, doc in enumerate(docs) if len(doc)]
        if held:
            own = [docs[number] for number in held]
            if self.upstream is not None:
                for doc, states in zip(own, self.upstream.predict(own), strict=True):
                    doc.tensor = states
            spans = [[doc[:]] for doc in own]
            batch = self.encoder.read_spans(own, spans, with_pieces=False, is_train=False)
            (vectors, _), _ = pool_rows(self.pooling, batch, False, call=self.call)
            found[held] = as_numpy(vectors)
        return found, 0

    def to_gpu(self, gpu_id: int) -> None:
        """Work on a GPU."""
        for model in (self.encoder, self.pooling, self.upstream):
            if model is not None:
                model.to_gpu(gpu_id)
