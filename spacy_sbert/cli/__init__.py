"""`python -m spacy sbert ...`: thin commands over plain functions.

Imported by every spaCy command, so kept light.
"""

from spacy.cli._util import app as spacy_app

from . import benchmark, encode, examples, fit_meta, hub, init_config, search, train, visualize  # noqa: F401 (commands)
from ._util import app

spacy_app.add_typer(app)
