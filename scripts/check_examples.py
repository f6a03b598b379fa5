"""Read a file of examples as `spacy sbert evaluate` does, so that what is wrong in it is said
before training.
"""

from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.util import load_config
from wasabi import msg

from spacy_sbert.cli._util import exit_on_error, flattened
from spacy_sbert.cli.examples import reading_of
from spacy_sbert.cli.options import Layout
from spacy_sbert.readers import PairCorpus


def main(
    path: Annotated[Path, typer.Argument(help="The file")],
    config: Annotated[
        Path, typer.Argument(help="The config of the training, which may know the columns")
    ],
    layout: Layout,
) -> None:
    """Read a file of examples, and count them."""
    with exit_on_error(f"Cannot read the config {config}"):
        scored_as = load_config(config).get("corpora", {}).get("dev")
    with exit_on_error(f"Cannot score a pipeline on {path}"):
        reading = reading_of(path, layout.settings(), scored_as, shown=True)
        count = sum(1 for _ in PairCorpus(path, **reading)(spacy.blank("en")))
    msg.good(f"{path} holds {count} examples to score a pipeline on")


if __name__ == "__main__":
    typer.run(flattened(main))
