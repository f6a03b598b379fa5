"""Register the tasks of the papers: `python -m spacy sbert benchmark ... --code benchmarks/papers/tasks.py`."""

import sys
from pathlib import Path

from spacy_sbert.evaluation import register_tasks

sys.path.append(str(Path(__file__).parent))  # `--code` imports this file alone

from protocols import arguments, learned_similarity

register_tasks(*learned_similarity.TASKS, *arguments.TASKS)
