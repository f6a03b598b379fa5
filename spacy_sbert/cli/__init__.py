"""`python -m spacy sbert ...`: thin commands over plain functions.

Each module in this folder that has a function with @command adds a command; nothing else needs to
name it. Imported by every spaCy command, so kept light.
"""

from importlib import import_module
from pkgutil import iter_modules

from spacy.cli._util import app as spacy_app

from ._util import app


def import_commands() -> None:
    """Import the modules of this folder, in the order of their names: @command registers theirs."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")


import_commands()
spacy_app.add_typer(app)
