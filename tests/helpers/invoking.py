"""The commands of `spacy sbert`, in this process."""

import typer
from typer.testing import CliRunner

from spacy_sbert.cli import app


def all_commands():
    """Every command by its words, such as "index build"."""
    commands = {}
    for name, made in typer.main.get_command(app).commands.items():
        own = getattr(made, "commands", None)
        if own is None:
            commands[name] = made
        else:
            commands |= {f"{name} {of_group}": one for of_group, one in own.items()}
    return commands


def invoke(*arguments, code=0, piped=None, **settings):
    """Run a command that ends with this code, and return what it left; settings: of CliRunner."""
    done = CliRunner(**settings).invoke(app, list(map(str, arguments)), input=piped)
    assert done.exit_code == code and isinstance(done.exception, SystemExit | None), (
        done.output,
        done.exception,
    )
    return done


def said(*arguments, **settings):
    """Run a command, and return what it said, without line breaks and frames."""
    return " ".join(invoke(*arguments, **settings).output.replace("│", " ").split())
