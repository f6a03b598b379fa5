"""Register the tasks that only docs/papers.md has, and those of the package for more settings.

    python -m spacy sbert benchmark PIPELINE DATA --suite arguments --code
    benchmarks/papers/paper_tasks.py

Suites: arguments, learned, probing. Settings of sts, sick, triplets and transfer: normalizations,
    sizes, the MLP.
"""

import sys
from pathlib import Path

from spacy_sbert.evaluation import register_tasks
from spacy_sbert.evaluation.tables import register_tables

# `--code` imports this file alone
sys.path.append(str(Path(__file__).parent))

from protocols import arguments, classification, learned_similarity, probing, variants
from protocols.variant_tables import variant_tables

for module in (variants, learned_similarity, arguments, classification, probing):
    register_tasks(*module.TASKS)
register_tables(variant_tables)
