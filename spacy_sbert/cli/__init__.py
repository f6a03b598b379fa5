"""`python -m spacy sbert ...`: thin commands over plain functions. Imported by every spaCy command, so kept light."""

from spacy.cli._util import app as spacy_app

from . import (  # noqa: F401 (each registers its command)
    benchmark,
    cluster,
    compare,
    convert,
    encode,
    evaluate,
    fit_meta,
    hub,
    index,
    init_config,
    mine,
    search,
    train,
    visualize,
)
from ._util import app

spacy_app.add_typer(app)
