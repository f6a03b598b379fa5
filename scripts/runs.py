"""What the scripts share that train often: runs that are saved at once and not made again, and how to train."""

import argparse
import hashlib
import json
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import spacy
from spacy.cli.train import train
from spacy.language import Language
from spacy.util import load_config, load_model_from_config

from spacy_sbert.files.environment import device, versions
from spacy_sbert.files.whole import write_text

RERANKER = "sbert_reranker"
ACTIVATIONS = {"squared_error": "identity", "regression": "sigmoid"}  # of a cross-encoder, by its objective
Scores = dict[str, Any]
Settings = dict[str, Any]
Overrides = dict[str, Any]
Table = Callable[[dict[tuple[str, ...], Scores]], str]


def add_options(
    parser: argparse.ArgumentParser, *, output: str, config: str, seeds: Sequence[int], epochs: int
) -> None:
    """The options that such scripts have in common, with what they are by default."""
    parser.add_argument("--config", type=Path, default=Path(config), help="how to train")
    parser.add_argument("--encoder", help="the encoder to start from, by default that of the config")
    parser.add_argument("--precision", help="of the encoder, such as bfloat16; by default that of the config")
    parser.add_argument("--output", type=Path, default=Path(output), help="folder for scores and table")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(seeds))
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--steps", type=int, default=0, help="batches, in place of epochs; 0 for epochs")
    parser.add_argument("--limit", type=int, default=0, help="the most training pairs, 0 for all")
    parser.add_argument("--learn-rate", type=float, help="the highest, by default that of the config")
    parser.add_argument("--gpu-id", type=int, default=-1)


def add_cross_options(parser: argparse.ArgumentParser) -> None:
    """The options of scripts that also train a cross-encoder."""
    parser.add_argument("--cross-config", type=Path, default=Path("configs/reranker.cfg"))
    parser.add_argument("--cross-objective", choices=list(ACTIVATIONS), default="squared_error")


def use_device(args: argparse.Namespace) -> None:
    """Take the GPU that was asked for, or none."""
    if args.gpu_id >= 0:
        spacy.require_gpu(args.gpu_id)


class Runs:
    """The scores of the runs of a script, by name: each is saved as soon as it is made, and not made again.

    folder (Path): gets runs/, a file for each; table.md and scores.json, of all that there are yet.
    settings (dict): what was asked for, for scores.json. table (Callable): from scores by name to Markdown.
    """

    def __init__(self, folder: Path, settings: Settings, table: Table):
        self.folder, self.settings, self.table = folder, named(settings), table
        self.found: dict[tuple[str, ...], Scores] = {}
        self._records: dict[str, Any] = {}

    def file(self, *name: str) -> Path:
        """Where a run is saved. name (str): what tells it from others, such as its row and seed."""
        return self.folder / "runs" / (re.sub(r"\W+", "-", "-".join(name)) + ".json")

    def __call__(self, *name: str, settings: Settings, make: Callable[[], Scores]) -> Scores:
        """What was saved of a run, or what it gives, which is saved; table and scores.json then hold it, too.

        settings (dict): what its scores depend on. make (Callable): makes them.
        """
        file, settings = self.file(*name), named(settings, identified)
        if not file.exists():
            start = time.perf_counter()
            scores = make()
            seconds = round(time.perf_counter() - start, 1)
            made = {"scores": scores, "settings": settings, "seconds": seconds}
            write_json(file, {**made, "device": device(), "versions": versions()})
        record = read_same(file, settings)
        self.found[name] = record["scores"]
        self._records[file.stem] = record
        write_text(self.folder / "table.md", self.table(self.found))
        write_json(self.folder / "scores.json", {"settings": self.settings, "runs": self._records})
        return record["scores"]


def named(value: Any, describe: Callable[[Path], str] = lambda path: path.name) -> Any:
    """Settings with the names of files and folders, and not where they lie; describe: what to say of each."""
    if isinstance(value, dict):
        return {key: named(one, describe) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [named(one, describe) for one in value]
    is_path = isinstance(value, Path) or (isinstance(value, str) and Path(value).exists())
    return describe(Path(value)) if is_path else value


@cache
def identified(path: Path) -> str:
    """The name of a file or folder and what it holds: another one of the same name is another setting."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return f"{path.name} {digest(*files)}"


def write_json(file: Path, content: Any) -> None:
    """The whole file, or nothing."""
    write_text(file, json.dumps(content, indent=1, default=str) + "\n")


def read_same(file: Path, settings: Settings) -> dict[str, Any]:
    """What was saved with the same settings. RAISES (SystemExit): if it was with others."""
    saved = json.loads(file.read_text(encoding="utf8"))
    if saved["settings"] != json.loads(json.dumps(settings, default=str)):
        raise SystemExit(f"{file} was made with {saved['settings']}, not {settings}: choose another --output")
    return saved


def digest(*paths: Path) -> str:
    """What files hold, for the settings of a run: a changed file is another run."""
    each = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    return hashlib.sha256(" ".join(each).encode()).hexdigest()[:16]


def settings_of(args: argparse.Namespace, *names: str) -> Settings:
    """What the weights of every training depend on that can be asked for, and these other options."""
    common = ("encoder", "precision", "limit", "learn_rate")
    return {name: getattr(args, name) for name in (*common, *names)}


def length(epochs: int, steps: int) -> Overrides:
    """How long to train: so many steps if there are any, or epochs."""
    return {"training.max_epochs": 0 if steps else epochs, "training.max_steps": steps}


def trained(folder: Path, settings: Settings, config: Path, args: argparse.Namespace, overrides: Overrides) -> float:
    """Train, if that has not been done, and keep the last weights, which nothing was selected by.

    folder (Path): gets the pipeline. settings (dict): what its weights depend on. overrides (dict): of the config.
    RETURNS (float): the seconds that training took.
    """
    note = folder / "training.json"
    if not folder.exists():
        start = time.perf_counter()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
            made = Path(beside) / "model-last"
            train(config, made.parent, use_gpu=args.gpu_id, overrides={**common_overrides(config, args), **overrides})
            seconds = round(time.perf_counter() - start, 1)
            write_json(made / note.name, {"settings": settings, "seconds": seconds})
            made.rename(folder)
    return read_same(note, settings)["seconds"]


def common_overrides(config: Path, args: argparse.Namespace) -> Overrides:
    """Return the settings of every training: the last weights are kept, so no score has a weight."""
    weights = load_config(config)["training"]["score_weights"]
    given: Overrides = {
        **model_overrides(config, args),
        "corpora.train.limit": args.limit,
        "corpora.dev.limit": 1,  # spaCy wants to score something; nothing is selected by it
        **{f"training.score_weights.{name}": None for name in weights},
        "training.eval_frequency": 1_000_000,
        "training.logger.progress_bar": False,
    }
    return (
        given if args.learn_rate is None else {**given, "training.optimizer.learn_rate.initial_rate": args.learn_rate}
    )


def cross_overrides(args: argparse.Namespace) -> Overrides:
    """How a cross-encoder learns scores."""
    pipe = f"components.{RERANKER}"
    return {f"{pipe}.objective": args.cross_objective, f"{pipe}.model.activation": ACTIVATIONS[args.cross_objective]}


def model_overrides(config: Path, args: argparse.Namespace) -> Overrides:
    """The encoder and the precision asked for; what goes on from a trained encoder has its name from there, and, if the
    whole pipe is sourced, its precision, too."""
    read = load_config(config)
    pipe = next(name for name in (RERANKER, "transformer", "sbert") if name in read["components"])
    if "source" in read["components"][pipe]:
        return {}
    starts = read.get("initialize", {}).get("components", {}).get(pipe, {})
    given = {"name": None if "checkpoint" in starts else args.encoder, "precision": args.precision}
    return {f"components.{pipe}.model.{name}": value for name, value in given.items() if value}


def load(folder: Path) -> Language:
    """A trained pipeline, whose `sbert` pipe keeps no more than the vectors of rows."""
    return without_tokens(spacy.load(folder))


def untrained(config: Path, args: argparse.Namespace) -> Language:
    """The pipeline of a config before any training."""
    overrides = model_overrides(config, args)
    return without_tokens(load_model_from_config(load_config(config, overrides=overrides), auto_fill=True))


def without_tokens(nlp: Language) -> Language:
    if nlp.has_pipe("sbert"):
        nlp.get_pipe("sbert").token_vectors = False  # type: ignore[attr-defined]
    return nlp
