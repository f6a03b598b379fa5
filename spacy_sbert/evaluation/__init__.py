"""Evaluation of sentence vectors as the literature does it, with the settings in the result."""

from .examples import evaluate
from .settings import Settings
from .sources import PipelineSource
from .suite import evaluate_suites

__all__ = ["PipelineSource", "Settings", "evaluate", "evaluate_suites"]
