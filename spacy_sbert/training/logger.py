"""The logger of training."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from spacy.language import Language
<<<<<<< HEAD
from spacy.util import registry, resolve_dot_names
from tqdm import tqdm
from wasabi import Printer

from ..errors import Warnings
from ..files.atomic import rewrite_os_errors, write_text
from .batch_loss import needs_labels
from .errors import Notes
from .examples import MEASURES, GoldFacts, listed_labels
from .schedules import epoch_steps

Line = Mapping[str, object]


def append_to_log(path: Path, line: Line) -> None:
    """Add an evaluation to a log.

    path (Path): a table if it ends in .csv, whose columns are named like `losses.sbert`, else lines of JSON. Where an
        evaluation has something new, such as the loss of another objective, the table gets a column for it.
    line (Mapping): names and values; values may be mappings themselves.
    """
    with rewrite_os_errors(path):
        if path.suffix != ".csv":
            with path.open("a", encoding="utf8") as file:
                file.write(srsly.json_dumps(dict(line)) + "\n")
        else:
            _append_row(path, dict(_flat(line)))


def _append_row(path: Path, row: dict[str, object]) -> None:
    rows: list[dict[str, object]] = []
    if path.is_file():
        with path.open(encoding="utf8", newline="") as file:
            rows = [dict(known) for known in csv.DictReader(file)]
    names = list(rows[0]) if rows else []
    if rows and row.keys() <= set(names):
        with path.open("a", encoding="utf8", newline="") as file:
            csv.DictWriter(file, names, lineterminator="\n").writerow(row)
        return
    write_text(path, _table([*rows, row]))


def _flat(line: Line, before: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for name, value in line.items():
        found += _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else [(before + name, value)]
    return found


def _table(rows: list[dict[str, object]]) -> str:
    out = StringIO(newline="")
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


OWN = "spacy-sbert."  # the beginning of the names of readers that are looked at


def check_weighted_scores(nlp: Language) -> None:
    """Refuse a training whose scores would be 0 at each evaluation, so that the first weights were kept as the best.

    The dev corpus is read if it is one of this package, and if no other component is scored or there are labels.

    nlp (Language): initialised, with the config of the training.
    RAISES (ValueError): if no score that has a weight is defined, with the reason for each; if a classifier knows none
        of the labels of the dev corpus; what the reader raises.
    WARNS: if it knows some of them.
    """
    config = nlp.config.interpolate()
    training = config["training"]
    weighted = {name: _measure(name) for name, weight in training["score_weights"].items() if weight}
    has_measures = bool(weighted) and None not in weighted.values()
    heads = [(known, pipe) for _, pipe in nlp.pipeline if (known := _labels_of(pipe))]
    if not (has_measures or heads) or not _is_own(config, training["dev_corpus"]):
        return
    (corpus,) = resolve_dot_names(config, [training["dev_corpus"]])
    facts = {pipe.spans_key: GoldFacts() for _, pipe in nlp.pipeline if hasattr(pipe, "spans_key")}
    for example in corpus(nlp):
        for key, gold in facts.items():
            gold.add(example.reference, key)
    for known, pipe in heads:
        _check_labels(known, facts[cast(Any, pipe).spans_key], training["dev_corpus"])
    if has_measures:
        _check_measures(nlp, weighted, facts.values(), training["dev_corpus"])


def _check_measures(
    nlp: Language, weighted: Mapping[str, str | None], facts: Iterable[GoldFacts], dev_corpus: str
) -> None:
    """RAISES (ValueError): if no score that has a weight is defined for any of the facts."""
    reasons: dict[str, str] = {}
    for gold in facts:
        undefined = gold.undefined()
        if gold.pair_labels and not any(_labels_pairs(pipe) for _, pipe in nlp.pipeline):
            undefined["nli_acc"] = "no pipe learns labels of pairs"
        if not all(measure in undefined for measure in weighted.values()):
            return
        reasons |= {name: undefined[measure] for name, measure in weighted.items() if measure is not None}
    if reasons:
        said = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise ValueError(
            f"Training could not tell better weights from worse: on [{dev_corpus}] no score of "
            f"[training.score_weights] is defined. {said}. Give weight to another score, or another dev corpus."
        )


def _check_labels(heads: Mapping[str, Sequence[str]], gold: GoldFacts, dev_corpus: str) -> None:
    """Compare the labels of the dev corpus, of each objective, with those that its classifier learned."""
    for objective, labels in gold.objective_labels.items():
        known = heads.get(objective) or heads.get("") or []
        unknown = [label for label in labels if label not in known] if known else []
        if not unknown:
            continue
        given = {"corpus": dev_corpus, "given": listed_labels(unknown), "known": listed_labels(known)}
        if len(unknown) == len(labels):
            raise ValueError(
                (
                    "[{corpus}] has the labels {given}, and the training examples have none of them: {known}. "
                    "Spell them alike, or give another dev corpus."
                ).format(**given)
            )
        count = sum(labels[label] for label in unknown)
        warnings.warn(Warnings.UNKNOWN_DEV_LABELS.format(count=count, **given), stacklevel=3)


def _labels_of(pipe: object) -> dict[str, Sequence[str]]:
    """The labels that the classifiers of a pipe for pairs learned, by their objectives, "" for the only one."""
    found = getattr(pipe, "label_data", None) if hasattr(pipe, "spans_key") else None
    if not found:
        return {}
    return dict(found) if isinstance(found, Mapping) else {"": list(found)}


def check_scored(weights: Mapping[str, float | None], scores: Mapping[str, Any]) -> None:
    """Refuse to go on after an evaluation without any score that has a weight.

    weights (dict): of [training.score_weights]. scores (dict): what the pipeline returned.
    RAISES (ValueError): naming both.
    """
    weighted = [name for name, weight in weights.items() if weight]
    if weighted and not any(name in scores for name in weighted):
        known = ", ".join(name for name, score in scores.items() if score is None or isinstance(score, int | float))
        raise ValueError(
            "Training could not tell better weights from worse: no score of [training.score_weights] "
            f"({', '.join(weighted)}) is among those of the pipeline: {known or 'none'}. Give weight to one of "
            "these."
        )


def _measure(name: str) -> str | None:
    """The measure that a score is, alone or of one of several objectives or pipes; None for other scores."""
    return next((measure for measure in MEASURES if f"_{measure}_" in f"_{name}_"), None)


def _is_own(config: Mapping[str, Any], name: str) -> bool:
    block: Any = config
    for part in name.split("."):
        block = block.get(part, {})
    return str(block.get("@readers", "")).startswith(OWN)


def _labels_pairs(pipe: object) -> bool:
    """Whether a pipe may give labels to pairs: one that has a loss is asked, others are believed."""
    model: Any = getattr(pipe, "model", None)
    if not hasattr(pipe, "spans_key") or not hasattr(model, "maybe_get_ref"):
        return False
    loss = model.maybe_get_ref("loss")
    return needs_labels(loss) if loss is not None else not hasattr(pipe, "loss_weight")


class Info(TypedDict):
    """What spaCy's training loop tells of an evaluation, as far as it is logged."""

    epoch: int
    step: int
    score: float
    other_scores: dict[str, float]
    losses: dict[str, float]


Row = dict[str, float | str]
LogStep = Callable[[Info | None], None]
Setup = Callable[[Language, IO, IO], tuple[LogStep, Callable[[], None]]]
WIDTH = 12  # of a column
SECONDS = 30.0  # between two lines in a log file
UNKNOWN = "-"  # of one step alone, most of whose time an evaluation took, no speed can be told
=======
from spacy.util import registry
>>>>>>> b3


@registry.loggers("spacy-sbert.ProgressLogger.v1")
def progress_logger(progress_bar: bool = True, output_file: str | Path | None = None) -> Callable:
    """Log as spaCy's ConsoleLogger does, with the loss of each objective and the speed of training.

    progress_bar (bool): whether to show the steps, the examples a second and the time left between evaluations: in a
        bar on a terminal, else in a line every 30 seconds; and the time left in each row.
    output_file (str or Path): a file that gets a line for each evaluation: a row of a table if it ends in .csv, else
        JSON; an existing one is continued.
    RETURNS (Callable): for `training.logger`. It raises ValueError before the first step if no weighted score is
        defined for the dev corpus, see check_weighted_scores.
    """

    def setup(
        nlp: Language, stdout: IO = sys.stdout, stderr: IO = sys.stderr
    ) -> tuple[Callable[[dict[str, Any] | None], None], Callable[[], None]]:
        from .training_log import TrainingLog  # noqa: PLC0415 (spaCy imports all loggers with the first pipe)

        log = TrainingLog(nlp, stdout, stderr, progress_bar, None if output_file is None else Path(output_file))
        return log.step, log.close

    return setup
<<<<<<< HEAD


class TrainingLog:
    """Writes one row for each evaluation, and a progress bar or lines between them; see progress_logger."""

    def __init__(self, nlp: Language, stdout: IO, stderr: IO, progress_bar: bool, output_file: Path | None):
        training = nlp.config.interpolate()["training"]
        check_weighted_scores(nlp)
        trained = [(name, pipe) for name, pipe in nlp.pipeline if getattr(pipe, "is_trainable", False)]
        # What a shared encoder reports as its loss is the size of the gradient that it got.
        self.sources = {name for name, pipe in trained if hasattr(pipe, "listener_map")}
        self.pipes = [name for name, _ in trained if name not in self.sources]
        pipes: list[object] = [pipe for _, pipe in nlp.pipeline]
        self.counters = [pipe for pipe in pipes if hasattr(pipe, "examples_seen")]
        self.score_weights = training["score_weights"]
        self.weights = [name for name, weight in self.score_weights.items() if weight is not None]
        self.stdout, self.stderr = stdout, stderr
        self.columns: list[str] = []
        self.output_file = output_file
        if output_file is not None:
            with rewrite_os_errors(output_file.parent):
                output_file.parent.mkdir(parents=True, exist_ok=True)
        self.seen = self._examples_seen()
        self.started = perf_counter()
        self.taken = 0  # steps since then
        self.done: int | None = None  # steps in all, which the first evaluation tells
        self.unscored = 0  # steps since the last evaluation
        self.total = _count_steps(nlp) if progress_bar else None
        # disable=None: no bar where the output is not a terminal
        disable = None if progress_bar else True
        self.bar = tqdm(total=self.total, disable=disable, leave=False, file=stderr, unit="step")
        self.has_lines = progress_bar and self.bar.disable
        self._note_line()

    def step(self, info: Info | None) -> None:
        """Count a step; with the result of an evaluation, write it.

        info (dict): as spaCy's training loop makes it, None between evaluations.
        """
        self.taken += 1
        if self.bar.total is None or self.bar.n < self.bar.total:  # spaCy counts from 0, and so takes one more
            self.bar.update(1)
        if info is not None and self.bar.n <= info["step"]:  # gone on with, from a checkpoint
            self.bar.update(min(info["step"] + 1, self.bar.total or sys.maxsize) - self.bar.n)
        if not self.bar.disable:
            self.bar.set_postfix_str(f"{self._rate():.1f} examples/s")
        self.unscored = self.unscored + 1 if info is None else 0
        if info is None:
            self.done = None if self.done is None else self.done + 1
            if self.has_lines and perf_counter() - self.line_at >= SECONDS:
                self._write_line()
            return
        check_scored(self.score_weights, info["other_scores"])
        self.done = info["step"] + 1
        losses = {name: float(info["losses"].get(name, 0.0)) for name in self.pipes}
        more = (key for key in info["losses"] if key not in losses and key not in self.sources)
        losses |= {key: float(info["losses"][key]) for key in more}
        scores = {name: 100 * float(info["other_scores"].get(name, 0.0)) for name in self.weights}
        row: Row = {"E": info["epoch"], "#": info["step"], "ex/s": self._rate() if self.taken > 1 else UNKNOWN}
        if self.total is not None:
            row["left"] = self._left(self.total - info["step"]) if self.taken > 1 else UNKNOWN
        row.update({f"loss {name}": value for name, value in losses.items()})
        row.update({**scores, "score": 100 * float(info["score"])})
        self._write(row)
        if self.output_file is not None:
            line: dict[str, object] = {"epoch": info["epoch"], "step": info["step"]}
            line |= {"examples_per_second": round(self._rate(), 2), "losses": losses, "scores": scores}
            line["score"] = row["score"]
            append_to_log(self.output_file, line)

    def close(self) -> None:
        """End the bar, and say if the last weights were not evaluated."""
        self.bar.close()
        if self.unscored:
            self.stdout.write(Printer(no_print=True).info(Notes.NOT_EVALUATED.format(steps=self.unscored)) + "\n")

    def _write(self, row: Row) -> None:
        printer = Printer(no_print=True)
        lines = []
        widths = [max(len(name), WIDTH if " " in name else 6) for name in row]
        if list(row) != self.columns:  # an objective that is new has a new column
            self.columns = list(row)
            lines += [printer.row(self.columns, widths=widths), printer.row(["-" * width for width in widths])]
        cells = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()]
        lines.append(printer.row(cells, widths=widths, aligns=["r"] * len(cells)))
        with self.bar.external_write_mode(file=self.stdout):
            self.stdout.write("\n".join(lines) + "\n")
            self.stdout.flush()
        self._note_line()

    def _write_line(self) -> None:
        """Write how far the training is, and the mean loss of a step since the last line."""
        steps = f"Step {self.done}" if self.done is not None else f"{self.taken} steps since the checkpoint"
        parts = [f"{steps} of {self.total}" if self.done is not None and self.total is not None else steps]
        for pipe in [pipe for pipe in self.counters if pipe.name in self.pipes]:
            loss = (pipe.loss_seen - self.loss_at[pipe.name]) / (self.taken - self.taken_at)
            parts.append(f"loss {pipe.name} {loss:.4g}")
        parts.append(f"{self._rate():.1f} examples/s")
        if self.done is not None and self.total is not None:
            parts.append(f"{self._left(self.total - self.done)} left")
        self.stderr.write(", ".join(parts) + "\n")
        self.stderr.flush()
        self._note_line()

    def _note_line(self) -> None:
        self.line_at, self.taken_at = perf_counter(), self.taken
        self.loss_at = {pipe.name: pipe.loss_seen for pipe in self.counters}

    def _rate(self) -> float:
        """Examples a second since the start, evaluations included."""
        return (self._examples_seen() - self.seen) / max(perf_counter() - self.started, 1e-9)

    def _left(self, steps: int) -> str:
        """The time that so many steps will take, evaluations included."""
        return tqdm.format_interval(max(0, steps) * (perf_counter() - self.started) / self.taken)

    def _examples_seen(self) -> int:
        return max((pipe.examples_seen for pipe in self.counters), default=0)


def _count_steps(nlp: Language) -> int | None:
    """How many steps are to be taken; None where no end is set."""
    config = nlp.config.interpolate()
    training = config["training"]
    limit = training["max_steps"] or None
    if training["max_epochs"] < 1:
        return limit
    batcher = registry.resolve({"batcher": training["batcher"]})["batcher"]
    (corpus,) = resolve_dot_names(config, [training["train_corpus"]])
    steps = training["max_epochs"] * epoch_steps(corpus, batcher)
    return steps if limit is None else min(steps, limit)
=======
>>>>>>> b3
