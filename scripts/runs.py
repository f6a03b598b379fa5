"""What the scripts share that train often: runs saved at once and not made again, and tables of their scores."""

import argparse
import hashlib
import json
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import spacy
from spacy.cli.train import train
from spacy.language import Language
from spacy.util import load_config, load_model_from_config

RERANKER = "sbert_reranker"
BATCH = 16  # pairs, as in Reimers and Gurevych 2019, section 3.1
Scores = dict[str, Any]


def add_options(parser: argparse.ArgumentParser, output: str) -> None:
    """The options that such scripts have in common."""
    parser.add_argument("--config", type=Path, default=Path("configs/sts.cfg"), help="how to train on graded pairs")
    parser.add_argument("--encoder", help="the encoder to start from, by default that of the config")
    parser.add_argument("--output", type=Path, default=Path(output), help="folder for scores and table")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(1, 11)))
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=0, help=f"of {BATCH} pairs, in place of epochs; 0 for epochs")
    parser.add_argument("--limit", type=int, default=0, help="the most training pairs, 0 for all")
    parser.add_argument("--learn-rate", type=float, default=2e-5)
    parser.add_argument("--gpu-id", type=int, default=-1)


def run_once(file: Path, settings: dict[str, Any], make: Callable[[], Scores]) -> Scores:
    """What was saved of a run, or what it gives, which is saved."""
    if file.exists():
        saved = json.loads(file.read_text(encoding="utf8"))
        if saved["settings"] != settings:
            raise SystemExit(f"{file} was made with {saved['settings']}, not {settings}: choose another --output")
        return saved["scores"]
    scores = make()
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps({"scores": scores, "settings": settings}) + "\n", encoding="utf8")
    temporary.replace(file)
    return scores


def digest(*paths: Path) -> str:
    """What files hold, for the settings of a run: a changed file is another run."""
    each = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    return hashlib.sha256(" ".join(each).encode()).hexdigest()[:16]


def count_steps(pairs: int, epochs: int, limit: int) -> int:
    """The steps of so many epochs on at most so many pairs."""
    return epochs * math.ceil(min(pairs, limit or pairs) / BATCH)


def fit(config: Path, folder: Path, args: argparse.Namespace, encoder: str | None = None, **overrides: Any) -> Language:
    """Train; the pipeline with the last weights, which nothing was selected by.

    encoder (str): in place of the config's. overrides: of the config, with "__" for the dots.
    """
    given: dict[str, Any] = {
        "corpora.dev.limit": 1,  # spaCy wants to score something; nothing is selected by it
        "training.batcher.size": BATCH,
        "training.optimizer.learn_rate.initial_rate": args.learn_rate,
        "training.eval_frequency": 1_000_000,
        "training.logger.progress_bar": False,
    }
    overrides.update(encoder_override(config, encoder))
    given.update({name.replace("__", "."): value for name, value in overrides.items()})
    train(config, folder, use_gpu=args.gpu_id, overrides=given)
    return without_tokens(spacy.load(folder / "model-last"))


def without_tokens(nlp: Language) -> Language:
    """The same pipeline, whose `sbert` pipe keeps no more than the vectors of rows."""
    if nlp.has_pipe("sbert"):
        nlp.get_pipe("sbert").token_vectors = False  # type: ignore[attr-defined]
    return nlp


def encoder_override(config: Path, encoder: str | None) -> dict[str, Any]:
    """The override of a config that sets its encoder: that of the shared transformer, or of the cross-encoder."""
    if not encoder:
        return {}
    pipe = RERANKER if RERANKER in load_config(config)["components"] else "transformer"
    return {f"components__{pipe}__model__name": encoder}


def untrained(config: Path, args: argparse.Namespace) -> Language:
    """The pipeline of a config before any training."""
    if args.gpu_id >= 0:
        spacy.require_gpu(args.gpu_id)
    overrides = {name.replace("__", "."): value for name, value in encoder_override(config, args.encoder).items()}
    return without_tokens(load_model_from_config(load_config(config, overrides=overrides), auto_fill=True))


def mean_and_deviation(values: Sequence[float | None]) -> tuple[str, str]:
    """Both x 100, as tables have them; "-" where there is none, or a value is not defined."""
    defined = [100 * value for value in values if value is not None]
    if not defined or len(defined) < len(values):
        return "-", "-"
    return f"{statistics.mean(defined):.2f}", f"{statistics.stdev(defined):.2f}" if len(defined) > 1 else "-"


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
