"""Folders of sentence-transformers, read and written without that library."""

from .exporting import export_folder
from .importing import REFERENCE, import_folder

__all__ = ["REFERENCE", "export_folder", "import_folder"]
