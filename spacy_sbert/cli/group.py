"""The command `sbert` of spaCy's command line, to which each file here adds its own."""

from typer import Typer

app = Typer(name="sbert", help="Sentence-BERT: sentence vectors, from data to index.", no_args_is_help=True)
