"""Files of texts to files of vectors: streamed, and resumed after an interruption without losing or repeating a row."""

from .pipe import load_pipe
from .run import BulkReport, encode_file

__all__ = ["BulkReport", "encode_file", "load_pipe"]
