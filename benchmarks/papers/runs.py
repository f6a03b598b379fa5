"""Shared by the scripts that train many times: runs that are saved as they end, training, and
tables of scores.
"""

import argparse
import hashlib
import json
import math
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import spacy
from scipy import stats
from spacy.cli.train import train
from spacy.language import Language
from spacy.util import load_config, load_model_from_config

from spacy_sbert.files.atomic import write_text
from spacy_sbert.files.serialization import device, versions

ROOT = Path(__file__).parent.parent.parent
CONFIGS = ROOT / "configs"
ASSETS = ROOT / "assets"
RERANKER = "sbert_reranker"
# Of a cross-encoder, by its objective
ACTIVATIONS = {
    "squared_error": "identity",
    "regression": "sigmoid",
}
CONFIDENCE = 0.95
# The columns of paired_difference
DIFFERENCE = ["difference x 100", "95 % interval", "t", "p"]
Scores = dict[str, Any]
Settings = dict[str, Any]
Overrides = dict[str, Any]
Table = Callable[[dict[tuple[str, ...], Scores]], str]


def add_options(
    parser: argparse.ArgumentParser, *, output: str, config: str, seeds: Sequence[int], epochs: int
) -> None:
    """The options that such scripts have in common, with what they are by default."""
    parser.add_argument("--config", type=Path, default=CONFIGS / config, help="how to train")
    parser.add_argument(
        "--encoder", help="the encoder to start from, by default that of the config"
    )
    parser.add_argument(
        "--precision", help="of the encoder, such as bfloat16; by default that of the config"
    )
    parser.add_argument(
        "--output", type=Path, default=Path(output), help="folder for scores and table"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=list(seeds))
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument(
        "--steps", type=int, default=0, help="batches, in place of epochs; 0 for epochs"
    )
    parser.add_argument("--limit", type=int, default=0, help="the most training pairs, 0 for all")
    parser.add_argument(
        "--learn-rate", type=float, help="the highest, by default that of the config"
    )
    parser.add_argument("--gpu-id", type=int, default=-1)


def add_cross_options(parser: argparse.ArgumentParser) -> None:
    """The options of scripts that also train a cross-encoder."""
    parser.add_argument("--cross-config", type=Path, default=CONFIGS / "reranker.cfg")
    parser.add_argument("--cross-objective", choices=list(ACTIVATIONS), default="squared_error")


def use_device(args: argparse.Namespace) -> None:
    """Take the GPU that was asked for, or none."""
    if args.gpu_id >= 0:
        spacy.require_gpu(args.gpu_id)


class Runs:
    """The scores of a script's runs by name. Each run is saved as soon as it ends, and not made
    again.

    folder (Path): gets scores.json with every run ever made there, and table.md of the runs of this
        call.
    settings (dict): the options of the script, for scores.json. table (Callable): makes Markdown of
        scores by name.
    """

    def __init__(self, folder: Path, settings: Settings, table: Table):
        self.folder = folder
        self.settings = named(settings)
        self.table = table
        self.found: dict[tuple[str, ...], Scores] = {}

    def __call__(self, *name: str, settings: Settings, make: Callable[[], Scores]) -> Scores:
        """Return the saved scores of a run, or make and save them, and write the table.

        name (str): tells the run from others, such as its row and seed. settings (dict): what its
            scores depend on.
        """
        settings = named(settings, identified)
        key = re.sub(r"\W+", "-", "-".join(name))
        saved = self._saved()
        if key in saved:
            same_settings(f"{key} in {self.folder / 'scores.json'}", saved[key], settings)
        else:
            start = time.perf_counter()
            scores = make()
            seconds = round(time.perf_counter() - start, 1)
            made = {"scores": scores, "settings": settings, "seconds": seconds}
            made |= {"device": device(), "versions": versions()}
            # Read again: another process may have added runs
            saved = {**self._saved(), key: made}
        write_json(self.folder / "scores.json", {"settings": self.settings, "runs": saved})
        self.found[name] = self._saved()[key]["scores"]
        write_text(self.folder / "table.md", self.table(self.found))
        return self.found[name]

    def _saved(self) -> dict[str, Any]:
        file = self.folder / "scores.json"
        if not file.exists():
            return {}
        return json.loads(file.read_text(encoding="utf8"))["runs"]


def named(value: Any, describe: Callable[[Path], str] = lambda path: path.name) -> Any:
    """Settings with the names of files and folders, and not where they lie; describe: what to say
    of each.
    """
    if isinstance(value, dict):
        return {key: named(one, describe) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [named(one, describe) for one in value]
    if isinstance(value, Path) or (isinstance(value, str) and Path(value).exists()):
        return describe(Path(value))
    return value


@cache
def identified(path: Path) -> str:
    """The name of a file or folder and what it holds: another one of the same name is another
    setting.
    """
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
    return f"{path.name} {digest(*files)}"


def write_json(file: Path, content: Any) -> None:
    """The whole file, or nothing."""
    write_text(file, json.dumps(content, indent=1, default=str) + "\n")


def read_same(file: Path, settings: Settings) -> dict[str, Any]:
    """What was saved with the same settings. RAISES (SystemExit): if it was with others."""
    saved = json.loads(file.read_text(encoding="utf8"))
    same_settings(str(file), saved, settings)
    return saved


def same_settings(where: str, saved: Settings, settings: Settings) -> None:
    """RAISES (SystemExit): if something saved was made with other settings."""
    if saved["settings"] != json.loads(json.dumps(settings, default=str)):
        raise SystemExit(
            f"{where} was made with {saved['settings']}, not {settings}: choose another --output"
        )


def digest(*paths: Path) -> str:
    """What files hold, for the settings of a run: a changed file is another run."""
    each = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    return hashlib.sha256(" ".join(each).encode()).hexdigest()[:16]


def settings_of(args: argparse.Namespace, *names: str) -> Settings:
    """What the weights of every training depend on, and these other options."""
    common = ("encoder", "precision", "limit", "learn_rate")
    return {name: getattr(args, name) for name in (*common, *names)}


def length(epochs: int, steps: int) -> Overrides:
    """How long to train: so many steps if there are any, or epochs."""
    return {"training.max_epochs": 0 if steps else epochs, "training.max_steps": steps}


def trained(
    folder: Path, settings: Settings, config: Path, args: argparse.Namespace, overrides: Overrides
) -> float:
    """Train, if that has not been done, and keep the last weights, which nothing was selected by.

    folder (Path): gets the pipeline. settings (dict): what its weights depend on. overrides (dict):
        of the config.
    RETURNS (float): the seconds that training took.
    """
    note = folder / "training.json"
    if not folder.exists():
        start = time.perf_counter()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
            made = Path(beside) / "model-last"
            train(
                config,
                made.parent,
                use_gpu=args.gpu_id,
                overrides={**common_overrides(config, args), **overrides},
            )
            seconds = round(time.perf_counter() - start, 1)
            write_json(made / note.name, {"settings": settings, "seconds": seconds})
            made.rename(folder)
    return read_same(note, settings)["seconds"]


def common_overrides(config: Path, args: argparse.Namespace) -> Overrides:
    """Return the settings of every training.

    The last weights are kept, so no score has a weight.
    """
    weights = load_config(config)["training"]["score_weights"]
    given: Overrides = {
        **sample_paths(config),
        **model_overrides(config, args),
        "corpora.train.limit": args.limit,
        # spaCy wants to score something; nothing is selected by it
        "corpora.dev.limit": 1,
        **{f"training.score_weights.{name}": None for name in weights},
        "training.eval_frequency": 1_000_000,
        "training.logger.progress_bar": False,
    }
    if args.learn_rate is not None:
        given["training.optimizer.learn_rate.initial_rate"] = args.learn_rate
    return given


def sample_paths(config: Path) -> Overrides:
    """Return overrides by which a config reads the shipped sample wherever the script is run."""
    paths = load_config(config).get("paths", {})
    return {
        f"paths.{name}": str(ROOT / path)
        for name, path in paths.items()
        if path and (ROOT / path).exists()
    }


def cross_overrides(args: argparse.Namespace) -> Overrides:
    """How a cross-encoder learns scores."""
    pipe = f"components.{RERANKER}"
    return {
        f"{pipe}.objective": args.cross_objective,
        f"{pipe}.model.activation": ACTIVATIONS[args.cross_objective],
    }


def model_overrides(config: Path, args: argparse.Namespace) -> Overrides:
    """The encoder and the precision asked for. What goes on from a trained encoder has its name
    from there, and, if the whole pipe is sourced, its precision, too.
    """
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
    return without_tokens(
        load_model_from_config(load_config(config, overrides=overrides), auto_fill=True)
    )


def without_tokens(nlp: Language) -> Language:
    if nlp.has_pipe("sbert"):
        nlp.get_pipe("sbert").token_vectors = False  # type: ignore[attr-defined]
    return nlp


def mean_and_deviation(values: Sequence[float | None]) -> tuple[str, str]:
    """Both x 100, as tables have them; "-" where there is none, or a value is not defined."""
    defined = [100 * value for value in values if value is not None]
    if not defined or len(defined) < len(values):
        return "-", "-"
    deviation = "-"
    if len(defined) > 1:
        deviation = f"{statistics.stdev(defined):.2f}"
    return f"{statistics.mean(defined):.2f}", deviation


def in_one(values: Sequence[float | None]) -> str:
    """Mean and standard deviation of seeds in one cell."""
    mean, deviation = mean_and_deviation(values)
    if deviation == "-":
        return mean
    return f"{mean} ± {deviation}"


def paired_difference(values: Sequence[float | None], others: Sequence[float | None]) -> list[str]:
    """Student's t-test of paired runs: by how much the first are higher than the second of the same
    seeds.

    t = mean(d) / (stdev(d) / sqrt(n)), d_i = values_i - others_i, with n - 1 degrees of freedom;
    two-sided.

    RETURNS (list): the cells of DIFFERENCE; "-" where there are not two pairs that differ by
        different amounts.
    """
    pairs = [
        (100 * a, 100 * b)
        for a, b in zip(values, others, strict=True)
        if a is not None and b is not None
    ]
    if not pairs or len(pairs) < len(values):
        return ["-"] * len(DIFFERENCE)
    differences = [a - b for a, b in pairs]
    mean = f"{statistics.mean(differences):+.2f}"
    if len(set(differences)) < 2:
        return [mean, "-", "-", "-"]
    found = stats.ttest_rel(*zip(*pairs, strict=True))
    low, high = found.confidence_interval(CONFIDENCE)
    return [mean, f"{low:+.2f} to {high:+.2f}", f"{found.statistic:.2f}", f"{found.pvalue:.2g}"]


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean; None without values, or where one is not defined."""
    defined = [value for value in values if value is not None and math.isfinite(value)]
    if not defined or len(defined) < len(values):
        return None
    return statistics.mean(defined)


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
