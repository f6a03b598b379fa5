"""Folders of sentence-transformers, read and written without that library; static encoders, made from others."""

from .distillation import distill_static
from .exporting import export_folder
from .importing import REFERENCE, import_folder

__all__ = ["REFERENCE", "distill_static", "export_folder", "import_folder"]
