"""Files of texts to files of vectors: streamed, and resumed after an interruption."""

from .dataset_encoding import DatasetReport, encode_dataset
from .embeddings_file import FileVectors
from .file_encoding import BulkReport, encode_file
from .loading import load_pipe
from .sharded_embeddings import PartVectors
from .stored_vectors import StoredVectors

__all__ = [
    "BulkReport",
    "DatasetReport",
    "FileVectors",
    "PartVectors",
    "StoredVectors",
    "encode_dataset",
    "encode_file",
    "load_pipe",
]
