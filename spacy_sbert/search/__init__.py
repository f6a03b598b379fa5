"""Search among sentence vectors by cosine similarity: exact in bounded memory, or through a saved index; clusters."""

from .clustering import hierarchical_clusters
from .communities import communities
from .encoder import EncoderIdentity, identify
from .index import VectorIndex
from .ivfpq import build_ivfpq
from .kmeans import kmeans_clusters
from .nearest import nearest
from .quantization import BinaryVectors, Int8Vectors
from .recall import first_found, recall
from .similar_groups import similar_groups
from .similar_pairs import most_similar_pairs, pairs_above
from .spans import SpanSearch, collect_spans
from .stored import StoredVectors, nearest_stored

__all__ = [
    "BinaryVectors",
    "EncoderIdentity",
    "Int8Vectors",
    "SpanSearch",
    "StoredVectors",
    "VectorIndex",
    "build_ivfpq",
    "collect_spans",
    "communities",
    "first_found",
    "hierarchical_clusters",
    "identify",
    "kmeans_clusters",
    "most_similar_pairs",
    "nearest",
    "nearest_stored",
    "pairs_above",
    "recall",
    "similar_groups",
]
