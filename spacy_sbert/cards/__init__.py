"""Model cards: what a pipeline's sentence vectors are, for its package, the Hugging Face hub and other libraries."""

from .facts import PipelineFacts, describe
from .hub import hub_card, hub_metadata, update_hub
from .readme import package_card, write_readme
from .scores import of_pipe
from .sentence_transformers import sentence_transformers_card

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
