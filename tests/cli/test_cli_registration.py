"""Commands: where they are registered."""

import sys

import pytest
from helpers.invoking import said

from spacy_sbert import cli

COMMAND = '''
from ._util import command
from .options import ColumnOptions, Quiet


@command("own-command")
def own_command(name: str, columns: ColumnOptions, quiet: Quiet = False) -> None:
    """Print its arguments."""
    print(name, columns.column, columns.header, quiet)
'''


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A file with a command, beside those of the package."""
    (tmp_path / "own.py").write_text(COMMAND)
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    commands = list(cli.app.registered_commands)
    yield
    cli.app.registered_commands[:] = commands
    sys.modules.pop("spacy_sbert.cli.own", None)


def test_file_is_all_that_a_command_needs(own_module):
    cli.import_commands()
    assert said("own-command", "a", "--column", "b", "--no-header") == "a b False False"
