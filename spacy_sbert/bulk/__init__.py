"""Files of texts to files of vectors: streamed, and resumed after an interruption without losing or repeating a row."""

from .dataset import DatasetReport, encode_dataset
from .file_vectors import FileVectors
from .part_vectors import PartVectors, StoredRow
from .pipe import load_pipe
from .run import BulkReport, encode_file

__all__ = [
    "BulkReport",
    "DatasetReport",
    "FileVectors",
    "PartVectors",
    "StoredRow",
    "encode_dataset",
    "encode_file",
    "load_pipe",
]
