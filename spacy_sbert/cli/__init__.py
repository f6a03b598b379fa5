"""`python -m spacy sbert ...`: thin commands over plain functions. Imported by every spaCy command, so kept light."""

from spacy.cli._util import app as spacy_app

from . import (
    benchmark,  # noqa: F401  they register their commands on app
    card,  # noqa: F401
    cluster,  # noqa: F401
    compare,  # noqa: F401
    convert,  # noqa: F401
    distill_static,  # noqa: F401
    encode,  # noqa: F401
    evaluate,  # noqa: F401
    export_folder,  # noqa: F401
    fit_meta,  # noqa: F401
    import_folder,  # noqa: F401
    index,  # noqa: F401
    init_config,  # noqa: F401
    mine,  # noqa: F401
    search,  # noqa: F401
    train,  # noqa: F401
    visualize,  # noqa: F401
)
from .group import app

spacy_app.add_typer(app)
