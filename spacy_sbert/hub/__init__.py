"""Folders of sentence-transformers, read and written without that library.

Static encoders, made from others.
"""

from ..models.sbert_config import REFERENCE
from .distillation import distill_static
from .sentence_transformers import export_folder, import_folder

__all__ = ["REFERENCE", "distill_static", "export_folder", "import_folder"]
