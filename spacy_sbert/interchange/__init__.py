"""Folders of sentence-transformers, read and written without that library."""

from .exporting import export_folder
from .importing import import_folder

__all__ = ["export_folder", "import_folder"]
