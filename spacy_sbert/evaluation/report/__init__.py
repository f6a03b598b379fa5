"""Reports on results of evaluations: Markdown, and HTML with plots."""

from .html import html
from .markdown import markdown

__all__ = ["html", "markdown"]
