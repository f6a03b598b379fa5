"""Search among sentence vectors by cosine similarity, exact and in bounded memory."""

from .clustering import hierarchical_clusters
from .nearest import nearest
from .similar_pairs import most_similar_pairs

__all__ = ["hierarchical_clusters", "most_similar_pairs", "nearest"]
