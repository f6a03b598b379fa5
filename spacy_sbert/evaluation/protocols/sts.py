"""STS12 to STS16, and the STS benchmark."""

from dataclasses import dataclass
from pathlib import Path

import numpy

from ...errors import Errors
from ...files.text_lines import read_lines
from ...readers.datasets import sts_rows
from ...readers.examples import check_members, check_score
from ..results import Measured
from ..scoring import DEPENDS_ON, TRAINED, GradedPairs, GradedSet, GradedTask, score_graded
from ..task import DataFile, Run, Task, check_count, filled

MAX_SCORE = 5.0
SENTENCES = ("sentence1", "sentence2")
SOURCE = "http://ixa2.si.ehu.eus/stswiki"
# Pairs with a gold score.
SUBSETS = {
    12: {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
    13: {"FNWN": 189, "headlines": 750, "OnWN": 561},
    14: {"OnWN": 750, "deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "tweet-news": 750},
    15: {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    16: {"answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209},
}
OPTIONAL = {13: {"SMT": 750}}  # taken where they are there: the LDC licenses the texts
WITHOUT = "Without the sub-set {name} of {count} pairs, which is not there: its texts are licensed by the LDC."
WITH = "With the sub-set {name}, which SentEval leaves out: figures without it are of other pairs."
# What the official archives unpack to.
UNPACKED = {
    12: "test-gold",
    13: "test-gs",
    14: "sts-en-test-gs-2014",
    15: "test_evaluation_task2a",
    16: "sts2016-english-with-gs-v1.0",
}
COUNTS = {"train": 5749, "dev": 1500, "test": 1379}  # of the STS benchmark, chosen from STS12 to STS17
TRAINED_ON = ("sts", "glue")
OVERLAP = (
    "STS benchmark train was drawn from STS12 to STS17: if the encoder was trained on it, this score is not zero-shot."
)


@dataclass(frozen=True)
class YearTask:
    """The STS task of one year, English, test: each sub-set is in two files."""

    year: int
    suite: str = "sts"
    depends_on: tuple[str, ...] = DEPENDS_ON

    @property
    def name(self) -> str:
        return f"STS{self.year}"

    @property
    def place(self) -> DataFile:
        return DataFile((f"STS{self.year}-en-test", UNPACKED[self.year]), SOURCE)

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
        """The sub-sets with their numbers of pairs; an optional one counts if one of its files is there."""
        optional = OPTIONAL.get(self.year, {}).items()
        there = {name: n for name, n in optional if any(file.is_file() for file in _files(folder, self.year, name))}
        return SUBSETS[self.year] | there

    def run(self, run: Run) -> Measured:
        folder = self.place.find(run.root)
        rows, asked = [], self.subsets(folder)
        optional = OPTIONAL.get(self.year, {}).items()
        notes = [(WITH if name in asked else WITHOUT).format(name=name, count=n) for name, n in optional]
        for subset, official in asked.items():
            given, gold = _files(folder, self.year, subset)
            found = filled(read_subset(given, gold), gold)
            notes += check_count(len(found), official, gold, run.settings.any_count)
            rows += [(*row, subset.removeprefix("surprise.")) for row in found]
        first, second, scores, subsets = zip(*rows, strict=True)
        pairs = GradedPairs(first, second, numpy.array(scores), subsets)
        return score_graded(pairs, run, [*notes, *(run.settings.touched(TRAINED, *TRAINED_ON) or [OVERLAP])])


def _benchmark_place(split: str) -> DataFile:
    file = f"sts-{split}.csv"
    return DataFile((f"STSBenchmark/{file}", f"stsbenchmark/{file}", file), f"{SOURCE}/index.php/STSbenchmark")


BENCHMARK = GradedSet(
    {split: _benchmark_place(split) for split in COUNTS}, COUNTS, sts_rows, low=0.0, high=MAX_SCORE, trained=TRAINED_ON
)
TASKS: tuple[Task, ...] = (
    *(YearTask(year) for year in SUBSETS),
    *(GradedTask(f"STSb-{split}", "sts", BENCHMARK, split, (OVERLAP,)) for split in ("dev", "test")),
)


def read_subset(given: Path, gold: Path) -> list[tuple[str, str, float]]:
    """Read the pairs of one sub-set that have a gold score.

    given (Path): two sentences a line, a tab between them; further columns are passed over.
    gold (Path): a score from 0 to 5 a line, blank for a pair that does not count.
    RETURNS (list of (str, str, float)): the sentences without white space around them, and the score.
    RAISES (ValueError): if the files differ in length, or a line is not what it should be.
    """
    sentences, scores = list(read_lines(given)), list(read_lines(gold))
    if len(sentences) != len(scores):
        shorter = gold if len(scores) < len(sentences) else given
        line = min(len(sentences), len(scores)) + 1
        counts = {"given": given, "lines": len(sentences), "gold": gold, "scores": len(scores)}
        raise ValueError(
            (
                "{path}, line {line}: the file ends before this line, but the other one goes on. {given} has "
                "{lines} lines, {gold} has {scores}: expected one score, or a blank line, for each pair."
            ).format(path=shorter, line=line, **counts)
        )
    pairs = []
    for (line, text), (_, score) in zip(sentences, scores, strict=True):
        if not score.strip():
            continue
        columns = text.rstrip("\r\n").split("\t")
        if len(columns) < len(SENTENCES):
            raise ValueError(Errors.SHORT_LINE.format(path=given, line=line, column=SENTENCES[1], given=len(columns)))
        first, second = check_members(columns[:2], SENTENCES, given, line)
        pairs.append((first, second, MAX_SCORE * check_score(score.strip(), 0.0, MAX_SCORE, gold, line, "score")))
    return pairs


def _files(folder: Path, year: int, subset: str) -> tuple[Path, Path]:
    """Sentences and scores; STS16's own names begin with the year."""
    official = folder / f"STS20{year}.input.{subset}.txt"
    prefix = f"STS20{year}" if official.is_file() else "STS"
    return folder / f"{prefix}.input.{subset}.txt", folder / f"{prefix}.gs.{subset}.txt"
