"""The log of a training: a row for each evaluation, and progress between them."""

import csv
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import IO, Any

import srsly
from spacy.language import Language
from spacy.util import registry, resolve_dot_names
from tqdm import tqdm
from wasabi import Printer

from ..files.atomic import rewrite_os_errors, write_text
from .gold import check_dev_corpus, check_scored, untrained_warning
from .schedules import epoch_steps
from .settings import check_training

# Between two lines in a log file
_LINE_SECONDS = 30


class TrainingLog:
    """Writes one row for each evaluation, and a progress bar or lines between them.

    See progress_logger.
    """

    def __init__(
        self, nlp: Language, stdout: IO, stderr: IO, progress_bar: bool, output_file: Path | None
    ):
        config = nlp.config.interpolate()
        check_training(config)
        check_dev_corpus(nlp)
        components = dict(nlp.pipeline)
        trained = [name for name in components if getattr(components[name], "is_trainable", False)]
        # The loss that a shared encoder reports is the size of the gradient that it received
        self.sources = {name for name in trained if hasattr(components[name], "listener_map")}
        self.pipes = [name for name in trained if name not in self.sources]
        self.counters: list[Any] = [
            pipe for pipe in components.values() if hasattr(pipe, "examples_seen")
        ]
        self.score_weights = config["training"]["score_weights"]
        self.stdout = stdout
        self.stderr = stderr
        self.output_file = output_file
        if output_file is not None:
            with rewrite_os_errors(output_file.parent):
                output_file.parent.mkdir(parents=True, exist_ok=True)
        self.columns: list[str] = []
        # The score and the step of each evaluation
        self.results: list[tuple[float, int]] = []
        # Whether the best of them is reported at the end, as `spacy sbert train` does
        self.is_summarized = False
        self.seen_before = self._examples_seen()
        self.started = perf_counter()
        # Steps since then
        self.taken = 0
        # Steps since the last evaluation
        self.unscored = 0
        # All steps; of a training that resumes, only known from the first evaluation on
        self.done = 0
        self.total = _total_steps(nlp) if progress_bar else None
        # disable=None: no bar if the output is not a terminal
        self.bar = tqdm(
            total=self.total,
            disable=None if progress_bar else True,
            leave=False,
            file=stderr,
            unit="step",
        )
        self.has_lines = progress_bar and self.bar.disable
        self._reset_line()

    def step(self, info: dict[str, Any] | None) -> None:
        """Count a step.

        With the info of an evaluation, as spaCy's training loop gives it, write that.
        """
        self.taken += 1
        if info is None:
            self.done += 1
            self.unscored += 1
        else:
            self.done = info["step"] + 1
            self.unscored = 0
        # spaCy takes one more than max_steps
        self.bar.update(min(self.done, self.total or self.done) - self.bar.n)
        if not self.bar.disable:
            self.bar.set_postfix_str(f"{self._rate():.1f} examples/s")
        if info is not None:
            self.results = info.get("checkpoints", [])
            self.is_summarized = info.get("is_summarized", False)
            self._write_evaluation(info)
        elif self.has_lines and perf_counter() - self.line_time >= _LINE_SECONDS:
            self._write_line()

    def close(self) -> None:
        """Close the bar, and report if the last weights were not evaluated."""
        self.bar.close()
        warning = untrained_warning(self.results)
        if warning is not None and not self.is_summarized:
            print(Printer(no_print=True).warn(warning), file=self.stdout)
        if self.unscored:
            message = (
                f"Steps after the last evaluation: {self.unscored}. model-last has their weights, "
                "model-best has not. 'spacy sbert train' takes the same config, and always "
                "evaluates the last step."
            )
            print(Printer(no_print=True).info(message), file=self.stdout)

    def _write_evaluation(self, info: dict[str, Any]) -> None:
        check_scored(self.score_weights, info["other_scores"])
        rate = self._rate()
        line = {
            "epoch": info["epoch"],
            "step": info["step"],
            "examples_per_second": round(rate, 2),
            "losses": self._losses(info),
            "scores": self._scores(info),
            "score": 100 * float(info["score"]),
        }
        self._write_row(self._row(line, rate))
        self._reset_line()
        if self.output_file is not None:
            _append(self.output_file, line)

    def _losses(self, info: dict[str, Any]) -> dict[str, float]:
        """Return the losses of the pipes that have one, and of their objectives."""
        losses = dict.fromkeys(self.pipes, 0.0)
        for name, loss in info["losses"].items():
            if name not in self.sources:
                losses[name] = float(loss)
        return losses

    def _scores(self, info: dict[str, Any]) -> dict[str, float]:
        """Return the scores that are not turned off, x 100."""
        scores = {}
        for name, weight in self.score_weights.items():
            if weight is not None:
                scores[name] = 100 * float(info["other_scores"].get(name, 0.0))
        return scores

    def _row(self, line: dict[str, Any], rate: float) -> dict[str, float | str]:
        """Return the cells of an evaluation by the names of their columns."""
        row: dict[str, Any] = {"E": line["epoch"], "#": line["step"], "ex/s": rate}
        if self.total is not None:
            row["left"] = self._left(self.total - line["step"])
        if self.taken == 1:
            # Most of the time of a single step was the evaluation
            for name in row.keys() & {"ex/s", "left"}:
                row[name] = "-"
        row |= {f"loss {name}": loss for name, loss in line["losses"].items()}
        row |= line["scores"]
        row["score"] = line["score"]
        return row

    def _write_row(self, row: dict[str, float | str]) -> None:
        """Write a row, below a header if the columns are new: a new objective has a column."""
        printer = Printer(no_print=True)
        # Names of two words are those of losses
        widths = [max(len(name), 12 if " " in name else 6) for name in row]
        lines = []
        if list(row) != self.columns:
            self.columns = list(row)
            lines.append(printer.row(self.columns, widths=widths))
            lines.append(printer.row(["-" * width for width in widths]))
        cells = [_cell(value) for value in row.values()]
        lines.append(printer.row(cells, widths=widths, aligns=["r"] * len(cells)))
        with self.bar.external_write_mode(file=self.stdout):
            print(*lines, sep="\n", file=self.stdout, flush=True)

    def _write_line(self) -> None:
        """Write the steps, the mean loss since the last line, the speed and the time left."""
        parts = [f"Step {self.done}"]
        if self.total is not None:
            parts = [f"Step {self.done} of {self.total}"]
        for pipe in self.counters:
            if pipe.name in self.pipes:
                loss = pipe.loss_seen - self.line_losses[pipe.name]
                parts.append(f"loss {pipe.name} {loss / (self.taken - self.line_step):.4g}")
        parts.append(f"{self._rate():.1f} examples/s")
        if self.total is not None:
            parts.append(f"{self._left(self.total - self.done)} left")
        print(*parts, sep=", ", file=self.stderr, flush=True)
        self._reset_line()

    def _reset_line(self) -> None:
        self.line_time = perf_counter()
        self.line_step = self.taken
        self.line_losses = {pipe.name: pipe.loss_seen for pipe in self.counters}

    def _examples_seen(self) -> int:
        return max((pipe.examples_seen for pipe in self.counters), default=0)

    def _rate(self) -> float:
        """Return the examples a second since the start, evaluations included."""
        seconds = max(perf_counter() - self.started, 1e-9)
        return (self._examples_seen() - self.seen_before) / seconds

    def _left(self, steps: int) -> str:
        """Return the time that so many steps will take, evaluations included."""
        return tqdm.format_interval(max(0, steps) * (perf_counter() - self.started) / self.taken)


def _cell(value: float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _total_steps(nlp: Language) -> int | None:
    """Return the steps of a training, None if it has neither epochs nor max_steps."""
    config = nlp.config.interpolate()
    training = config["training"]
    if training["max_epochs"] < 1:
        return training["max_steps"] or None
    batcher = registry.resolve({"batcher": training["batcher"]})["batcher"]
    (corpus,) = resolve_dot_names(config, [training["train_corpus"]])
    steps = training["max_epochs"] * epoch_steps(corpus, batcher)
    return min(steps, training["max_steps"] or steps)


def _append(path: Path, line: dict[str, Any]) -> None:
    """Add an evaluation to a log: a row of a table if its name ends in .csv, else JSON."""
    with rewrite_os_errors(path):
        if path.suffix == ".csv":
            _append_row(path, line)
            return
        with path.open("a", encoding="utf8") as file:
            file.write(srsly.json_dumps(line) + "\n")


def _append_row(path: Path, line: dict[str, Any]) -> None:
    """Write a table again with one more row, whose columns may be new."""
    row: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    for key, value in line.items():
        if isinstance(value, dict):
            inner |= {f"{key}.{name}": number for name, number in value.items()}
        else:
            row[key] = value
    row |= inner
    rows: list[dict[str, Any]] = []
    if path.is_file():
        with path.open(encoding="utf8", newline="") as file:
            rows = list(csv.DictReader(file))
    columns = list(rows[0]) if rows else []
    table = StringIO(newline="")
    writer = csv.DictWriter(table, list(dict.fromkeys([*columns, *row])), lineterminator="\n")
    writer.writeheader()
    writer.writerows([*rows, row])
    write_text(path, table.getvalue())
