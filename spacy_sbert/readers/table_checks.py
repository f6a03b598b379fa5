"""Find inverted scores, contradictions, repeated rows and leaks in examples."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy

from ..errors import Warnings
from .corpora import PairCorpus
from .examples import Row, listed_lines

_Key = tuple[str, ...]
# A finding about a smaller share of the rows is normal, as published data sets show
_SHARE = 0.02
# How many pairs have their texts compared
_COMPARED = 20_000
# How many pairs of a kind are needed to compare their scores
_FEWEST = 3
# By how much, of 0 to 1, the scores of near-identical texts are lower if scores are inverted
_LOWER = 0.2
# The least similarity of near-identical texts, and the largest of unlike ones: see
# character_similarity
_ALIKE = 0.6
_UNLIKE = 0.25
# Means that differ by fewer standard errors may differ by chance
_ERRORS = 2.0
_LABELS_COMPARED = 1000
# Characters that show nothing: soft hyphens, joiners, marks of direction and of the byte order
_INVISIBLE = dict.fromkeys([0xAD, *range(0x200B, 0x2010), 0x2060, 0xFEFF])
_DASHES = "\\-\u2010-\u2015"
_ENDS_OF_WORDS = ".,;:!?\"'`()\u2018\u2019\u201c\u201d\u2026\u3001\u3002"


@dataclass(frozen=True)
class Finding:
    """What is odd about some rows.

    is_rare: whether so few have it that a message will do in place of a warning.
    """

    message: str
    is_rare: bool = False


@dataclass
class ScannedRows:
    """Texts and gold of the examples of a file.

    first_rows: the line and the gold of each example, by its texts, see row_key. count (int): of
        rows.
    repeated, contradicting (list[int]): lines of rows with the texts of one before, and its gold,
        or another gold.
    alike, unlike (list[float]): scores of pairs of near-identical texts, and of texts with little
        in common.
    labels: up to 1,000 of them, by how they are read without case, spaces, hyphens and underscores.
    """

    first_rows: dict[_Key, tuple[int, object]] = field(default_factory=dict)
    count: int = 0
    repeated: list[int] = field(default_factory=list)
    contradicting: list[int] = field(default_factory=list)
    alike: list[float] = field(default_factory=list)
    unlike: list[float] = field(default_factory=list)
    labels: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def findings(self, name: str) -> list[Finding]:
        """Return what is odd about the rows. name (str): of the file."""
        found = self._inverted(name)
        found += _finding(Warnings.GOLD_CONTRADICTS, self.contradicting, self.count, path=name)
        found += _finding(Warnings.ROWS_REPEATED, self.repeated, self.count, path=name)
        for spellings in self.labels.values():
            if len(spellings) > 1:
                listed = ", ".join(map(repr, sorted(spellings)))
                found.append(Finding(Warnings.LABELS_ALIKE.format(path=name, labels=listed)))
        return found

    def _inverted(self, name: str) -> list[Finding]:
        """Return that near-identical texts have lower scores than unlike ones, if they do."""
        if min(len(self.alike), len(self.unlike)) < _FEWEST:
            return []
        alike = float(numpy.mean(self.alike))
        unlike = float(numpy.mean(self.unlike))
        variances = [numpy.var(scores) / len(scores) for scores in (self.alike, self.unlike)]
        error = numpy.sqrt(sum(variances))
        if unlike - alike <= max(_LOWER, _ERRORS * error):
            return []
        message = Warnings.SCORES_INVERTED.format(
            path=name,
            alike=alike,
            unlike=unlike,
            n_alike=len(self.alike),
            n_unlike=len(self.unlike),
        )
        return [Finding(message)]

    def add(self, row: Row) -> None:
        """Count an example."""
        self.count += 1
        if row.label is not None and len(self.labels) < _LABELS_COMPARED:
            self.labels[_label_key(row.label)].add(row.label)
        self._compare_gold(row)
        if row.score is not None and len(row.members) == 2 and self.count <= _COMPARED:
            self._compare_texts(row.score, *row.members)

    def _compare_gold(self, row: Row) -> None:
        """Count a row whose texts came before."""
        gold: object = row.score
        if gold is None:
            gold = row.label
        line, first_gold = self.first_rows.setdefault(row_key(row), (row.line, gold))
        if line == row.line:
            return
        if gold == first_gold:
            self.repeated.append(row.line)
        else:
            self.contradicting.append(row.line)

    def _compare_texts(self, score: float, first: str, second: str) -> None:
        """Count the score of two texts that are near-identical, or have little in common."""
        similarity = character_similarity(first, second)
        if similarity >= _ALIKE:
            self.alike.append(score)
        elif similarity <= _UNLIKE:
            self.unlike.append(score)


def scan_rows(rows: Iterable[Row | None]) -> ScannedRows:
    """Read examples; None is a row without gold, and passed over."""
    scanned = ScannedRows()
    for row in rows:
        if row is not None:
            scanned.add(row)
    return scanned


def find_leak(
    train: ScannedRows, dev: Iterable[Row | None], name: str, train_name: str
) -> list[Finding]:
    """Return how many rows of the dev file have the texts of training examples.

    name, train_name: of both files.
    """
    lines = []
    count = 0
    for row in dev:
        if row is not None:
            count += 1
            if row_key(row) in train.first_rows:
                lines.append(row.line)
    return _finding(Warnings.DEV_IN_TRAIN, lines, count, path=name, train=train_name)


def odd_corpora(train: object, dev: object) -> list[Finding]:
    """Return what is odd about the corpora of a training.

    Nothing of other readers than PairCorpus.
    """
    if not isinstance(train, PairCorpus) or not isinstance(dev, PairCorpus):
        return []
    scanned = scan_rows(train.rows())
    return [
        *scanned.findings("The training corpus"),
        *scan_rows(dev.rows()).findings("The dev corpus"),
        *find_leak(scanned, dev.rows(), "The dev corpus", "the training corpus"),
    ]


def row_key(row: Row) -> _Key:
    """Return the texts of a row as they are compared: without case, spaces, and marks around words.

    Those of a pair with a score come in any order.
    """
    texts = list(map(_text_key, row.members))
    if row.score is not None:
        texts.sort()
    return tuple(texts)


def _text_key(text: str) -> str:
    """Return a text as many encoders read it; the text itself if it is nothing but marks."""
    words = _folded(text).split()
    stripped = [word.strip(_ENDS_OF_WORDS) for word in words]
    return " ".join(filter(None, stripped)) or text


def _label_key(label: str) -> str:
    return re.sub(rf"(?<=\w)[\s_{_DASHES}]+(?=\w)", " ", _folded(label))


def _folded(text: str) -> str:
    """Return a text without differences of case, width, composition and invisible characters."""
    return unicodedata.normalize("NFKC", text.translate(_INVISIBLE)).casefold()


def _finding(message: str, lines: Sequence[int], count: int, **names: str) -> list[Finding]:
    """Return that so many of all rows have something in common; nothing if there are none."""
    if not lines:
        return []
    text = message.format(found=len(lines), count=count, lines=listed_lines(lines), **names)
    return [Finding(text, is_rare=len(lines) < _SHARE * count)]


def character_similarity(first: str, second: str) -> float:
    """Return the Dice coefficient of two texts, each a set of three characters in a row.

    2 |A n B| / (|A| + |B|)
    """
    a = _trigrams(first)
    b = _trigrams(second)
    return 2 * len(a & b) / (len(a) + len(b))


def _trigrams(text: str) -> set[str]:
    padded = f" {' '.join(text.lower().split())} "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}
