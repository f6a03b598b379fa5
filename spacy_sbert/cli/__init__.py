"""`python -m spacy sbert ...`: thin commands over plain functions. Imported by every spaCy command, so kept light."""

from spacy.cli._util import app as spacy_app
from typer import Typer

app = Typer(name="sbert", help="Sentence-BERT: sentence vectors, from data to index", no_args_is_help=True)

from . import (  # noqa: E402  they register their commands on app
    card,  # noqa: F401
    convert,  # noqa: F401
    encode,  # noqa: F401
    evaluate,  # noqa: F401
    export_folder,  # noqa: F401
    fit_meta,  # noqa: F401
    import_folder,  # noqa: F401
    search,  # noqa: F401
    visualize,  # noqa: F401
)

spacy_app.add_typer(app)
