"""Search by cosine similarity of vectors, exact or through an index, and by words; clusters."""

from .bm25 import BM25
from .clustering import hierarchical_clusters, kmeans_clusters
from .exact import nearest, nearest_stored, recall
from .fusion import reciprocal_rank_fusion
from .identity import EncoderIdentity, identify
from .index import VectorIndex
from .ivfpq import build_ivfpq
from .max_sim import rank_by_max_sim
from .pairs import communities, most_similar_pairs, pairs_above, similar_groups
from .passages import passages
from .quantization import BinaryVectors, Int8Vectors
from .spans import SpanSearch, collect_spans

__all__ = [
    "BM25",
    "BinaryVectors",
    "EncoderIdentity",
    "Int8Vectors",
    "SpanSearch",
    "VectorIndex",
    "build_ivfpq",
    "collect_spans",
    "communities",
    "hierarchical_clusters",
    "identify",
    "kmeans_clusters",
    "most_similar_pairs",
    "nearest",
    "nearest_stored",
    "pairs_above",
    "passages",
    "rank_by_max_sim",
    "recall",
    "reciprocal_rank_fusion",
    "similar_groups",
]
