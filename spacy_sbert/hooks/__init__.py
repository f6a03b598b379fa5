"""What stands on a Doc and answers for it. Pickled Docs name the functions here that their hooks are."""

from .hooks import has_vector, similarity, vector, vector_norm
from .restoring import restore

__all__ = ["has_vector", "restore", "similarity", "vector", "vector_norm"]
