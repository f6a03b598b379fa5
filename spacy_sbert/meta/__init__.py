"""Sentence meta-embeddings: several sentence encoders combined into one vector. After Poerner et al. 2020."""

from .methods import (
    GCCA,
    METHODS,
    SVD,
    Average,
    Concatenation,
    CrossViewAutoencoder,
    MetaEmbedding,
    Moments,
    estimator_from_bytes,
    make_estimator,
)

__all__ = [
    "GCCA",
    "METHODS",
    "SVD",
    "Average",
    "Concatenation",
    "CrossViewAutoencoder",
    "MetaEmbedding",
    "Moments",
    "estimator_from_bytes",
    "make_estimator",
]
