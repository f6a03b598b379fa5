"""STS12 to STS16, the STS benchmark, and SICK."""

from dataclasses import dataclass
from pathlib import Path

import numpy

from ...errors import Errors
from ...files.text_lines import read_lines
from ...readers.datasets import STS_MAX_SCORE, STS_SENTENCES, sick_rows, sts_rows
from ...readers.examples import check_members, check_score
from ..task import DataFile, Run, Task, check_count, filled
from .graded import TRAINED, GradedPairs, GradedSet, GradedTask, PairsTask

_SOURCE = "http://ixa2.si.ehu.eus/stswiki"
# Pairs with a gold score.
SUBSETS = {
    12: {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
    13: {"FNWN": 189, "headlines": 750, "OnWN": 561},
    14: {"OnWN": 750, "deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "tweet-news": 750},
    15: {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    16: {"answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209},
}
_OPTIONAL = {13: {"SMT": 750}}  # taken where they are there: the LDC licenses the texts
_WITHOUT = "Without the sub-set {name} of {count} pairs, which is not there: its texts are licensed by the LDC."
_WITH = "With the sub-set {name}, which SentEval leaves out: figures without it are of other pairs."
# What the official archives unpack to.
_UNPACKED = {
    12: "test-gold",
    13: "test-gs",
    14: "sts-en-test-gs-2014",
    15: "test_evaluation_task2a",
    16: "sts2016-english-with-gs-v1.0",
}
_COUNTS = {"train": 5749, "dev": 1500, "test": 1379}  # of the STS benchmark, chosen from STS12 to STS17
_TRAINED_ON = ("sts", "glue")
_OVERLAP = (
    "STS benchmark train was drawn from STS12 to STS17: if the encoder was trained on it, this score is not zero-shot."
)


@dataclass(frozen=True)
class _YearTask(PairsTask):
    """The STS task of one year, English, test: each sub-set is in two files."""

    name: str
    year: int
    suite: str = "sts"

    @property
    def place(self) -> DataFile:
        """Return the folder of the year."""
        return DataFile((f"STS{self.year}-en-test", _UNPACKED[self.year]), _SOURCE)

    def find(self, root: Path) -> list[Path]:
        folder = self.place.find(root)
        pairs = [_files(folder, self.year, subset) for subset in self.subsets(folder)]
        for pair in pairs:
            missing = [file for file in pair if not file.is_file()]
            if len(missing) == len(pair):
                self.place.refuse(pair[0], root)
            if missing:
                (there,) = {*pair} - {*missing}
                raise ValueError(
                    f"{missing[0]} is missing, while {there} is there: sentences and scores belong together."
                )
        return [file for pair in pairs for file in pair]

    def subsets(self, folder: Path) -> dict[str, int]:
        """Return the sub-sets with their numbers of pairs; an optional one counts if one of its files is there."""
        optional = _OPTIONAL.get(self.year, {}).items()
        found = {name: n for name, n in optional if any(file.is_file() for file in _files(folder, self.year, name))}
        return SUBSETS[self.year] | found

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        folder = self.place.find(run.root)
        rows, subsets = [], self.subsets(folder)
        optional = _OPTIONAL.get(self.year, {}).items()
        notes = [(_WITH if name in subsets else _WITHOUT).format(name=name, count=n) for name, n in optional]
        for subset, official in subsets.items():
            sentences, gold = _files(folder, self.year, subset)
            scored = filled(_read_subset(sentences, gold), gold)
            notes += check_count(len(scored), official, gold, run.settings.any_count)
            rows += [(*row, subset.removeprefix("surprise.")) for row in scored]
        first, second, scores, names = zip(*rows, strict=True)
        pairs = GradedPairs(first, second, numpy.array(scores), names)
        return pairs, [*notes, *(run.settings.touched(TRAINED, *_TRAINED_ON) or [_OVERLAP])]


def _benchmark_place(split: str) -> DataFile:
    file = f"sts-{split}.csv"
    return DataFile((f"STSBenchmark/{file}", f"stsbenchmark/{file}", file), f"{_SOURCE}/index.php/STSbenchmark")


BENCHMARK = GradedSet(
    {split: _benchmark_place(split) for split in _COUNTS},
    _COUNTS,
    sts_rows,
    low=0.0,
    high=STS_MAX_SCORE,
    trained=_TRAINED_ON,
)
_SICK_FILES = {"train": "SICK_train.txt", "trial": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}


def _sick_place(file: str) -> DataFile:
    plain = file.replace("_annotated", "")
    names = (f"sick/{file}", f"SICK/{file}", file, f"sick/{plain}", f"SICK/{plain}", plain)
    return DataFile(names, "https://zenodo.org/records/2787612")


SICK = GradedSet(
    {split: _sick_place(file) for split, file in _SICK_FILES.items()},
    {"train": 4500, "trial": 500, "test": 4927},
    sick_rows,
    low=1.0,
    high=5.0,
    trained=("sick",),
)
TASKS: tuple[Task, ...] = (
    *(_YearTask(f"STS{year}", year) for year in SUBSETS),
    *(GradedTask(f"STSb-{split}", "sts", BENCHMARK, split, (_OVERLAP,)) for split in ("dev", "test")),
    *(GradedTask(f"SICK-R-{split}", "sick", SICK, split) for split in ("trial", "test")),
)


def _read_subset(sentences_file: Path, gold: Path) -> list[tuple[str, str, float]]:
    """Read the pairs of one sub-set that have a gold score.

    sentences_file (Path): two sentences a line, a tab between them; further columns are passed over.
    gold (Path): a score from 0 to 5 a line, blank for a pair that does not count.
    RETURNS (list of (str, str, float)): the sentences without white space around them, and the score.
    RAISES (ValueError): if the files differ in length, or a line is not what it should be.
    """
    sentences, scores = list(read_lines(sentences_file)), list(read_lines(gold))
    if len(sentences) != len(scores):
        shorter = gold if len(scores) < len(sentences) else sentences_file
        line = min(len(sentences), len(scores)) + 1
        raise ValueError(
            f"{shorter}, line {line}: the file ends before this line, but the other one goes on. {sentences_file} has "
            f"{len(sentences)} lines, {gold} has {len(scores)}: expected one score, or a blank line, for each pair."
        )
    pairs = []
    for (line, text), (_, score) in zip(sentences, scores, strict=True):
        if not score.strip():
            continue
        columns = text.rstrip("\r\n").split("\t")
        if len(columns) < len(STS_SENTENCES):
            raise ValueError(
                Errors.SHORT_LINE.format(path=sentences_file, line=line, column=STS_SENTENCES[1], given=len(columns))
            )
        first, second = check_members(columns[:2], STS_SENTENCES, sentences_file, line)
        pairs.append(
            (first, second, STS_MAX_SCORE * check_score(score.strip(), 0.0, STS_MAX_SCORE, gold, line, "score"))
        )
    return pairs


def _files(folder: Path, year: int, subset: str) -> tuple[Path, Path]:
    """Return the files of sentences and of scores; STS16's own names begin with the year."""
    official = folder / f"STS20{year}.input.{subset}.txt"
    prefix = f"STS20{year}" if official.is_file() else "STS"
    return folder / f"{prefix}.input.{subset}.txt", folder / f"{prefix}.gs.{subset}.txt"
