"""Model cards: what a pipeline's sentence vectors are, for its package, the Hugging Face hub and other libraries."""

from .card import PipelineFacts, describe, of_pipe
from .card_text import hub_card, hub_metadata, package_card, sentence_transformers_card, update_hub, write_readme

__all__ = [
    "PipelineFacts",
    "describe",
    "hub_card",
    "hub_metadata",
    "of_pipe",
    "package_card",
    "sentence_transformers_card",
    "update_hub",
    "write_readme",
]
