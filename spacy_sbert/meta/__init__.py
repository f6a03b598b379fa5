"""Sentence meta-embeddings: several sentence encoders combined into one vector. After Poerner et al. 2020."""

from .autoencoder import CrossViewAutoencoder
from .average import Average
from .concatenation import Concatenation
from .estimator import MetaEmbedding
from .gcca import GCCA
from .methods import METHODS, estimator_from_bytes, make_estimator
from .moments import Moments
from .svd import SVD

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
