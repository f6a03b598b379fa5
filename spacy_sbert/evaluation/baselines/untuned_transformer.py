"""A transformer as it was pre-trained, without training on sentences."""

from collections.abc import Sequence

import numpy
import spacy
from spacy.language import Language

from ..named import Named
from ..sources import PipelineSource

BERT = "google-bert/bert-base-uncased"  # the paper's


class UntunedTransformer(Named):
    """The mean of the states of a transformer's last layer, or the state of its CLS token; not scaled.

    SOURCE: Reimers and Gurevych 2019, section 4.1 (average of BERT embeddings, BERT CLS-vector).
    """

    learns = False
    nlp: Language | None = None

    def __init__(self, name: str = BERT, pooling: str = "mean", batch_size: int = 64):
        """name (str): any encoder: a folder, or a name as spacy-sbert.SentenceEncoder.v1 takes it. pooling (str):
        "mean", "cls" or "max". batch_size (int): texts in a batch.

        RAISES (OSError): if the encoder is not found. RAISES (ValueError): for an unknown pooling.
        """
        self.pipeline = spacy.blank("en")
        model = {"name": name, "pooling": pooling, "normalize": False}
        self.pipeline.add_pipe("sbert", config={"model": model, "token_vectors": False})
        self.name = f"untuned-{pooling} ({name})"
        self.source = PipelineSource(self.pipeline, name=self.name, batch_size=batch_size)
        self.digest = self.source.digest

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """texts (n strings); fit_on is not looked at. RETURNS (float32 (n, width))."""
        return self.source.encode(texts)
