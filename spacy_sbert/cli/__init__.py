"""`python -m spacy sbert ...`: thin commands over plain functions. Imported by every spaCy command, so kept light."""

from spacy.cli._util import app as spacy_app
from typer import Typer

app = Typer(
    name="sbert", help="Sentence-BERT: convert pairs, evaluate sentence vectors, combine encoders", no_args_is_help=True
)

from . import convert, encode, evaluate, fit_meta  # noqa: E402, F401  they register their commands on app

spacy_app.add_typer(app)
