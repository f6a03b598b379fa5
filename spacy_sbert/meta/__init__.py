"""Sentence meta-embeddings: several sentence encoders combined into one vector.

After Poerner et al. 2020.
"""

from .autoencoder import CrossViewAutoencoder
from .estimator import Average, Concatenation, MetaEmbedding
from .linear import GCCA, SVD, Moments

__all__ = [
    "GCCA",
    "SVD",
    "Average",
    "Concatenation",
    "CrossViewAutoencoder",
    "MetaEmbedding",
    "Moments",
]
