"""Accuracy of `sbert_textcat` after training the encoder, on the draws of run.py.

python benchmarks/few_shot/trained.py DATA --output trained.jsonl

The config is that of `spacy sbert init-config TEXTS TEXTS`, for a table of the drawn texts and
their classes: with a few texts of each class there is no dev table, so the training table is given
instead. spaCy's own loop trains by it, and the pipeline is tested as it is at the end. Settings of
the config may be given, as for `spacy train`: --training.max_epochs 8.
"""

import io
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from draws import Draw, write_table
from runs import Run, Trained, make_parser, run_all
from spacy.cli._util import parse_config_overrides
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as train_by_spacy
from thinc.api import Config

from spacy_sbert.training.quickstart_config import quickstart_config

PACKAGES = ("spacy-sbert", "spacy", "torch", "transformers", "scikit-learn", "numpy")
# How the table is read, as init-config finds it out
_READING: dict[str, Any] = {"members": ["text"], "label": "label"}
_QUIET = {"training.logger.progress_bar": False}


def make_config(table: Path, n_texts: int, seed: int, overrides: Run) -> Config:
    """Return the config that init-config writes, with settings of the command line."""
    settings = {"path": str(table), **_READING}
    written = quickstart_config(settings, settings, kind="classes", count=n_texts)
    given = {"system.seed": seed, **_QUIET, **overrides}
    return Config().from_str(written.to_str(interpolate=False), overrides=given, interpolate=False)


def train(draw: Draw, seed: int, *, overrides: Run) -> Trained:
    """Train the encoder on the texts of a draw, and fit the classes on its vectors."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "texts.csv"
        write_table(draw.learn, table)
        config = make_config(table, len(draw.learn), seed, overrides)
        nlp = init_nlp(config)
        unseen = io.StringIO()
        train_by_spacy(nlp, None, stdout=unseen, stderr=unseen)
        # The classes are fitted with the first text
        nlp(draw.learn[0][0])

    def predict(tested: Sequence[str]) -> list[str]:
        return [doc._.sbert_label for doc in nlp.pipe(tested)]

    return Trained(predict, {"overrides": overrides} if overrides else {})


def main() -> None:
    parser = make_parser(__doc__)
    given, words = parser.parse_known_args()
    run_all(given, "trained", partial(train, overrides=parse_config_overrides(words)), PACKAGES)


if __name__ == "__main__":
    main()
