"""SentEval's transfer tasks: classification on top of sentence embeddings."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy

from ...errors import Errors
from ...files.delimited import by_name, pick, read_tabs
from ...files.text_lines import read_lines
from ...losses.pair_features import SYMMETRIC, concatenated
from ...readers.examples import Row, check_members
from ..bootstrap import intervals_of, mean_of
from ..results import Measured, Network, Scores, Summary, Tuned, digits
from ..task import (
    DataFile,
    Encode,
    Run,
    Settings,
    Task,
    check_count,
    deviation,
    filled,
    indices_by_name,
    mean,
    over_seeds,
)
from ..vector_transforms import OWN, Transform, Variant
from .classifiers import ALL, DEV, TEST, TRAIN, Fold, make_folds, predict_lr, predict_mlp, protocol, sklearn_module
from .sick import SICK

LR, MLP = "lr", "mlp"
MLP_SEEDS = 3  # of the settings' seeds: more cost minutes and move a mean little
MLP_ROWS = 120_000  # with more to train on, in all folds together, one seed: each takes minutes
DEPENDS_ON = ("normalizations", "sizes", "seeds", "bootstrap", "classifiers", "trained_on", "any_count")
TRAINED = "The encoder was trained on {names}, which holds sentences of this set."


@dataclass(frozen=True)
class Examples:
    """Labelled sentences or pairs.

    texts (n tuples of one or two strings), labels (str (n,)), splits (n strings): "all", or "train", "dev" and "test".
    positive (str): the label whose F1 is reported, if any.
    """

    texts: tuple[tuple[str, ...], ...]
    labels: numpy.ndarray
    splits: tuple[str, ...]
    positive: str | None = None

    @property
    def places(self) -> dict[str, numpy.ndarray]:
        """The indices of the examples of each split."""
        return indices_by_name(self.splits)


@dataclass(eq=False)  # found again by identity
class Outcome:
    """What was predicted in one variant, by classifier and seed: labels of all examples, and the accuracy in tuning of
    each fold; of each fold, with the first seed, C and what was chosen for the MLP."""

    predicted: dict[tuple[str, int], numpy.ndarray] = field(default_factory=dict)
    tuning: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    c: list[float] = field(default_factory=list)
    networks: list[Network] = field(default_factory=list)

    def accuracy(self, classifier: str, fold: int) -> float:
        """The mean accuracy of a classifier in the tuning of a fold, over the seeds."""
        return mean([each[fold] for (name, _), each in self.tuning.items() if name == classifier])


def classify(examples: Examples, run: Run, task: str, notes: Sequence[str] = ()) -> Measured:
    """Train classifiers on vectors and count what they get right.

    The features of a sentence are its vector u, those of a pair |u - v| and u * v. Moments and components of a variant
    are taken of the vectors of each fold's training examples.
    RETURNS (dict): see Task.run. Scores by classifier: accuracy, over all examples tested, and f1 where a label is
        the positive one. Those of the MLP are means over the first 3 seeds, with their deviation, or of the first
        alone where more than 120,000 examples are trained on. Beside them: c and networks, what was chosen in each
        fold, with the first seed; protocol, how it was done; tuned, where more than one normalisation is given, the one
        with which each classifier is best in its tuning in each fold, and its scores with them.
    RAISES (ValueError): if there are too few examples or classes.
    RAISES (ImportError): if scikit-learn is not installed.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3; Eger et al. 2019, sections 3.2 and 3.3 (both classifiers,
        normalisation).
    """
    sklearn_module("sklearn", task)
    folds = make_folds(examples.places, examples.labels, task)
    settings, unfit = run.settings.that_fit(*_smallest(examples, folds, run))
    trial = Trial(examples, folds, replace(run, settings=settings), task)
    outcomes = trial.outcomes()
    gold, primary = examples.labels[trial.tested], primary_of(settings)
    right = {name: labels == gold for name, labels in trial.tests(outcomes[0]).items()}  # bool (seeds, tests)
    accuracies = {f"{name}.accuracy": mean_of(values.mean(axis=0)) for name, values in right.items()}
    result: Measured = {
        "counts": {**{name: len(at) for name, at in examples.places.items()}, ALL: len(examples.labels)},
        "primary": f"{primary}.accuracy",
        "variants": [
            {"normalization": variant.normalization, "size": variant.size, **trial.summary(outcome)}
            for variant, outcome in zip(settings.variants, outcomes, strict=True)
        ],
        "intervals": intervals_of(accuracies, len(trial.tested), settings.bootstrap, settings.seeds[0]),
        "predictions": {"right": digits(right[primary][0])},
        "protocol": protocol(examples.places, settings.classifiers, trial.mlp_seeds),
        "notes": [*notes, *unfit, *trial.fewer_seeds(), *_touched(task, settings.trained_on)],
    }
    if trial.compares:
        result["tuned"] = trial.tuned(outcomes[: len(settings.normalizations)])
    return result


@dataclass(frozen=True)
class Trial:
    """Examples, the folds they are trained and tested in, how, and the name of the task."""

    examples: Examples
    folds: list[Fold]
    run: Run
    task: str

    @property
    def compares(self) -> bool:
        """Whether there is a normalisation to choose."""
        return len(self.run.settings.normalizations) > 1

    @property
    def tested(self) -> numpy.ndarray:
        """The indices of the examples that are tested, in order."""
        return numpy.sort(numpy.concatenate([fold.test for fold in self.folds]))

    @property
    def mlp_seeds(self) -> tuple[int, ...]:
        """The seeds of the MLP, if one is trained."""
        is_small = sum(len(fold.train) for fold in self.folds) <= MLP_ROWS
        return self.run.settings.seeds[: MLP_SEEDS if is_small else 1]

    def fewer_seeds(self) -> list[str]:
        """A note, where the MLP is trained with fewer seeds than there are."""
        settings, n = self.run.settings, len(self.mlp_seeds)
        note = f"The MLP was trained with {n} of the {len(settings.seeds)} seeds, to save time."
        return [note] if MLP in settings.classifiers and n < len(settings.seeds) else []

    def outcomes(self) -> list[Outcome]:
        """What is predicted in each variant."""
        variants = self.run.settings.variants
        outcomes = [Outcome() for _ in variants]
        for fold in self.run.progress(self.folds, self.task):
            vectors = _vectors(self.examples, fold, self.run.encode)
            seen = vectors[:, fold.train].reshape(-1, vectors.shape[2])
            for variant, outcome in zip(variants, outcomes, strict=True):
                for seed, networks in self._seeds(variant):
                    self._predict(outcome, fold, _features(vectors, variant.fit(seen, seed)), seed, networks)
        return outcomes

    def _seeds(self, variant: Variant) -> list[tuple[int, tuple[int, ...]]]:
        """The seeds of a variant, each with those of the MLPs trained on it."""
        settings = self.run.settings
        networks = self.mlp_seeds if MLP in settings.classifiers else ()
        if not variant.is_random:
            return [(settings.seeds[0], networks)]
        return [(seed, (seed,) if seed in networks else ()) for seed in settings.seeds]

    def _predict(self, outcome: Outcome, fold: Fold, rows: numpy.ndarray, seed: int, networks: tuple[int, ...]) -> None:
        settings, labels = self.run.settings, self.examples.labels
        if LR in settings.classifiers:
            predicted, c, accuracy = predict_lr(rows, labels, fold, compare=self.compares)
            self._keep(outcome, LR, seed, predicted, fold)
            outcome.tuning[LR, seed].append(accuracy)
            if seed == settings.seeds[0]:
                outcome.c.append(c)
        for mlp_seed in networks:
            predicted, best = predict_mlp(rows, labels, fold, mlp_seed)
            self._keep(outcome, MLP, mlp_seed, predicted, fold)
            outcome.tuning[MLP, mlp_seed].append(best.accuracy)
            if mlp_seed == settings.seeds[0]:
                l2, dropout = best.setting
                outcome.networks.append({"l2": l2, "dropout": dropout, "passes": best.passes})

    def _keep(self, outcome: Outcome, classifier: str, seed: int, predicted: numpy.ndarray, fold: Fold) -> None:
        labels = outcome.predicted.setdefault((classifier, seed), numpy.empty_like(self.examples.labels))
        labels[fold.test] = predicted

    def summary(self, outcome: Outcome) -> Summary:
        """Scores by classifier, means over seeds, with their deviation where seeds are several."""
        gold, positive = self.examples.labels[self.tested], self.examples.positive
        each = {
            name: [_scores(labels, gold, positive) for labels in found] for name, found in self.tests(outcome).items()
        }
        entry: Summary = {"scores": {name: over_seeds(scores, mean) for name, scores in each.items()}}
        if any(len(scores) > 1 for scores in each.values()):
            entry["deviation"] = {name: over_seeds(scores, deviation) for name, scores in each.items()}
        if outcome.c:
            entry["c"] = outcome.c
        if outcome.networks:
            entry["networks"] = outcome.networks
        return entry

    def tests(self, outcome: Outcome) -> dict[str, numpy.ndarray]:
        """What each classifier predicted, with each seed, of what was tested: labels (seeds, tests)."""
        found, tested = defaultdict(list), self.tested
        for (classifier, _), labels in outcome.predicted.items():
            found[classifier].append(labels[tested])
        return {classifier: numpy.stack(each) for classifier, each in found.items()}

    def tuned(self, outcomes: list[Outcome]) -> Tuned:
        """The normalisation with which each classifier is best in the tuning of each fold, and its scores with them."""
        settings, merged = self.run.settings, Outcome()
        chosen: dict[str, list[str]] = {classifier: [] for classifier in settings.classifiers}
        for number, fold in enumerate(self.folds):
            for classifier, names in chosen.items():
                best = max(outcomes, key=lambda outcome: outcome.accuracy(classifier, number))
                names.append(settings.normalizations[outcomes.index(best)])
                for (name, seed), predicted in best.predicted.items():
                    if name == classifier:
                        self._keep(merged, name, seed, predicted[fold.test], fold)
        return {"normalization": chosen[primary_of(settings)], "by_classifier": chosen, **self.summary(merged)}


def primary_of(settings: Settings) -> str:
    """The classifier whose accuracy stands for a task: logistic regression, if it is trained."""
    return LR if LR in settings.classifiers else MLP


def _smallest(examples: Examples, folds: list[Fold], run: Run) -> tuple[int, int]:
    """How many vectors a variant is fitted to, at least, and their width."""
    fold = min(folds, key=lambda fold: len(fold.train))
    if run.settings.sizes == (OWN,):
        return len(fold.train), 1  # any will do
    members, _, width = _vectors(examples, fold, run.encode).shape
    return members * len(fold.train), width


def _vectors(examples: Examples, fold: Fold, encode: Encode) -> numpy.ndarray:
    members = list(zip(*examples.texts, strict=True))
    seen = [text for i in fold.train for text in examples.texts[i]]
    rows = encode([text for member in members for text in member], fit_on=seen)
    return rows.reshape(len(members), len(examples.texts), -1)


def _features(vectors: numpy.ndarray, transform: Transform) -> numpy.ndarray:
    """float (members, n, width) -> float32 (n, features): half the memory and time, and as encoders give them."""
    members = [transform(rows) for rows in vectors]
    return (members[0] if len(members) == 1 else concatenated(*members, parts=SYMMETRIC)).astype("float32")


def _scores(predicted: numpy.ndarray, gold: numpy.ndarray, positive: str | None) -> Scores:
    """accuracy = right / n; F1 = 2 tp / (2 tp + fp + fn), not defined where the label is neither gold nor predicted."""
    found: Scores = {"accuracy": float((predicted == gold).mean())}
    if positive is not None:
        is_gold, is_predicted = gold == positive, predicted == positive
        both = int(is_gold.sum() + is_predicted.sum())
        found["f1"] = 2 * int((is_gold & is_predicted).sum()) / both if both else None
    return found


def _touched(task: str, trained_on: tuple[str, ...]) -> list[str]:
    names = [name for name in trained_on if name.lower().partition("-")[0] == task.lower().partition("-")[0]]
    return [TRAINED.format(names=", ".join(names))] if names else []


SENTENCE = "sentence"
TREC_LABELS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
MRPC_COLUMNS = ("Quality", "#1 String", "#2 String")
SPLITS = ("tr", "va", "te")


def polarity_rows(path: Path, label: str) -> Iterator[Row]:
    """Read MR, CR, SUBJ or MPQA: a sentence a line, all of one label.

    YIELDS (Row): one member and the label. A blank line is a row with the empty text: CR has some, and its official
        count of sentences includes them.
    RAISES (ValueError): for a line that is not UTF-8.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3.1; data/downstream/{MR,CR,SUBJ,MPQA}.
    """
    for line, text in read_lines(path):
        yield Row(check_members((text,), (SENTENCE,), path, line) if text.strip() else ("",), line, label=label)


def treebank_rows(path: Path, labels: tuple[str, ...]) -> Iterator[Row]:
    """Read a split of the Stanford Sentiment Treebank.

    path (Path): "sentence TAB label" a line, as SST/binary has it, or "label SPACE sentence", as SST/fine has it.
    labels (tuple of str): those of the task, such as ("0", "1").
    YIELDS (Row): one member and the label.
    RAISES (ValueError): for a missing or an unknown label, or an empty sentence.
    SOURCE: Socher et al. 2013; SentEval's data/downstream/SST.
    """
    for line, text in read_lines(path):
        if "\t" in text:
            sentence, _, label = text.rstrip("\r\n").rpartition("\t")
        else:
            label, _, sentence = text.strip().partition(" ")
        yield _labelled(sentence, label.strip(), labels, path, line)


def question_rows(path: Path) -> Iterator[Row]:
    """Read TREC questions: "COARSE:fine question" a line, in ISO 8859-1.

    YIELDS (Row): one member and the coarse label, one of six.
    RAISES (ValueError): for a missing or an unknown label, or an empty question.
    SOURCE: Li and Roth 2002, Learning Question Classifiers.
    """
    for line, text in read_lines(path, "latin-1"):
        label, _, question = text.strip().partition(" ")
        yield _labelled(question, label.partition(":")[0], TREC_LABELS, path, line)


def paraphrase_rows(path: Path) -> Iterator[Row]:
    """Read the Microsoft Research Paraphrase Corpus: tab-separated without quoting, with a header.

    YIELDS (Row): two members and the label, "1" for a paraphrase and "0" for none.
    RAISES (ValueError): for a missing column, an unknown label or an empty sentence.
    SOURCE: Dolan et al. 2004; columns Quality, #1 ID, #2 ID, #1 String, #2 String.
    """
    for line, (label, *texts) in by_name(read_tabs(path), MRPC_COLUMNS, path):
        check_known(label.strip(), ("0", "1"), path, line)
        yield Row(check_members(texts, MRPC_COLUMNS[1:], path, line), line, label=label.strip())


def probing_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Read a probing task in SentEval's layout: "split TAB label TAB sentence" a line, all splits in one file.

    YIELDS (str, Row): the split, "tr", "va" or "te", and a row with one member and a label.
    RAISES (ValueError): for an unknown split, a missing label or an empty sentence.
    SOURCE: Conneau et al. 2018, What you can cram into a single vector; SentEval's data/probing.
    """
    for line, record in read_tabs(path):
        split, label, sentence = pick(record, (0, 1, 2), ("split", "label", SENTENCE), path, line)
        check_known(split, SPLITS, path, line)
        yield split, _labelled(record[-1] if len(record) > 3 else sentence, label.strip(), None, path, line)


def x_probe_rows(path: Path) -> Iterator[Row]:
    """Read a split of a probing task in X-Probe's layout: "sentence TAB label" a line.

    YIELDS (Row): one member and a label.
    RAISES (ValueError): for a missing label or an empty sentence.
    SOURCE: Ravishankar et al. 2019, Probing Multilingual Sentence Representations With X-Probe.
    """
    for line, record in read_tabs(path):
        sentence, label = pick(record, (0, 1), (SENTENCE, "label"), path, line)
        yield _labelled(sentence, label.strip(), None, path, line)


def check_known(given: str, expected: tuple[str, ...], path: Path, line: int) -> None:
    """Refuse a value that is not expected. RAISES (ValueError): naming file, line and the values."""
    if given not in expected:
        known = ", ".join(expected)
        raise ValueError(Errors.UNKNOWN_LABEL.format(path=path, line=line, given=given, expected=known))


def _labelled(sentence: str, label: str, labels: tuple[str, ...] | None, path: Path, line: int) -> Row:
    if labels is not None:
        check_known(label, labels, path, line)
    members = check_members((sentence, label), (SENTENCE, "label"), path, line)
    return Row(members[:1], line, label=members[1])


SOURCE = "https://github.com/facebookresearch/SentEval"
TREEBANK = {"binary": {TRAIN: 67349, DEV: 872, TEST: 1821}, "fine": {TRAIN: 8544, DEV: 1101, TEST: 2210}}
SICK_SPLITS = {"train": TRAIN, "trial": DEV, "test": TEST}
BLANK = "{count} blank lines are left out; the official number of sentences includes them."


@dataclass(frozen=True)
class File:
    """One file of a data set: its split, where it lies, and how it is read."""

    split: str
    place: DataFile
    read: Callable[[Path], Iterable[Row]]


@dataclass(frozen=True)
class TransferTask:
    """Accuracy of classifiers that are trained on vectors, as SentEval trains them.

    files: all files of all splits. official: examples by split, blank lines included. positive: see Examples.
    """

    name: str
    files: tuple[File, ...]
    official: Mapping[str, int]
    positive: str | None = None
    suite: str = "transfer"
    depends_on: tuple[str, ...] = DEPENDS_ON

    def find(self, root: Path) -> list[Path]:
        return [file.place.find(root) for file in self.files]

    def run(self, run: Run) -> Measured:
        rows: dict[str, list[Row]] = {}
        for file in self.files:
            path = file.place.find(run.root)
            rows.setdefault(file.split, []).extend(filled(file.read(path), path))
        notes: list[str] = []
        for split, official in self.official.items():
            paths = [file.place.find(run.root) for file in self.files if file.split == split]
            path = paths[0] if len(paths) == 1 else paths[0].parent
            notes += check_count(len(rows[split]), official, path, run.settings.any_count)
        found = [(split, row) for split, each in rows.items() for row in each if all(row.members)]
        blank = sum(map(len, rows.values())) - len(found)
        notes += [BLANK.format(count=blank)] if blank else []
        return classify(as_examples(found, self.positive), run, self.name, notes)


def as_examples(rows: Iterable[tuple[str, Row]], positive: str | None = None) -> Examples:
    """Rows with the split of each as what is classified."""
    splits, found = zip(*rows, strict=True)
    labels = numpy.array([row.label for row in found])
    return Examples(tuple(row.members for row in found), labels, splits, positive)


def _place(file: str) -> DataFile:
    return DataFile((file,), SOURCE)


def _polarity(name: str, official: int, **files: str) -> TransferTask:
    readers = {file: partial(polarity_rows, label=label) for label, file in files.items()}
    each = tuple(File(ALL, _place(f"{name}/{file}"), read) for file, read in readers.items())
    return TransferTask(name, each, {ALL: official})


def _treebank(name: str, folder: str, labels: tuple[str, ...]) -> TransferTask:
    read, splits = partial(treebank_rows, labels=labels), TREEBANK[folder]
    files = tuple(File(split, _place(f"SST/{folder}/sentiment-{split}"), read) for split in splits)
    return TransferTask(name, files, splits)


TREC = (
    File(TRAIN, _place("TREC/train_5500.label"), question_rows),
    File(TEST, _place("TREC/TREC_10.label"), question_rows),
)
MRPC = tuple(File(split, _place(f"MRPC/msr_paraphrase_{split}.txt"), paraphrase_rows) for split in (TRAIN, TEST))
SICK_E = tuple(File(ours, SICK.places[theirs], SICK.read) for theirs, ours in SICK_SPLITS.items())
TASKS: tuple[Task, ...] = (
    _polarity("MR", 10_662, positive="rt-polarity.pos", negative="rt-polarity.neg"),
    _polarity("CR", 3775, positive="custrev.pos", negative="custrev.neg"),
    _polarity("SUBJ", 10_000, subjective="subj.subjective", objective="subj.objective"),
    _polarity("MPQA", 10_606, positive="mpqa.pos", negative="mpqa.neg"),
    _treebank("SST-2", "binary", ("0", "1")),
    _treebank("SST-5", "fine", ("0", "1", "2", "3", "4")),
    TransferTask("TREC", TREC, {TRAIN: 5452, TEST: 500}),
    TransferTask("MRPC", MRPC, {TRAIN: 4076, TEST: 1725}, positive="1"),
    TransferTask("SICK-E", SICK_E, {ours: SICK.counts[theirs] for theirs, ours in SICK_SPLITS.items()}),
)
