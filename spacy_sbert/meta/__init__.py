"""Sentence meta-embeddings: several sentence encoders combined into one vector.

After Poerner et al. 2020.
"""

from .methods import GCCA, SVD, Average, Concatenation, CrossViewAutoencoder, MetaEmbedding, Moments

__all__ = [
    "GCCA",
    "SVD",
    "Average",
    "Concatenation",
    "CrossViewAutoencoder",
    "MetaEmbedding",
    "Moments",
]
