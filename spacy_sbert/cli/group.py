"""The command `sbert` of spaCy's command line, to which each file here adds its own."""

import sys

from typer import Typer

app = Typer(name="sbert", help="Sentence-BERT: sentence vectors, from data to index.", no_args_is_help=True)


@app.callback()
def begin() -> None:
    """Print characters that the console's encoding lacks as question marks, where Python would end the command."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
