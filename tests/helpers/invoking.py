"""The commands of `spacy sbert`, in this process."""

from typer.testing import CliRunner

from spacy_sbert.cli import app


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
