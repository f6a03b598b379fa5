"""Evaluation of sentence vectors as the literature does it, with the settings in the result."""

from .encoders import PipelineSource
from .scoring import evaluate
from .suite import evaluate_suites, register_tasks
from .task import Settings

__all__ = ["PipelineSource", "Settings", "evaluate", "evaluate_suites", "register_tasks"]
