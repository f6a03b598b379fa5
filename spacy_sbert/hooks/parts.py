"""Which stored record answers for which characters of a Doc that was cut (`Span.as_doc`) or joined (`Doc.from_docs`).

spaCy shifts the place of a record and does not say what it cut off. So a record keeps the text it was made of, and
answers only where that text stands:

1. A record whose whole text stands in its place answers for it.
2. What lies between those, a gap, belongs to the one record whose text stands there all through, a part cut out by
   `as_doc`, or to one whose text ends there and one whose text begins behind it; if nothing else may be there.
3. In any other gap a row, such as a sentence, whose whole text stands there answers for itself.
4. What is left was not processed, or is a part of which nobody knows where it ends: its vector is refused.

All that is asked for is thus the vector of the text that is there, or an error.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING
from weakref import ref

import numpy
from spacy.tokens import Doc

from .errors import Errors

if TYPE_CHECKING:
    from .placed import PlacedRecord

NOBODY, SEVERAL = -1, -2  # whose a character is, where it is of no part alone


@dataclass(frozen=True)
class Part:
    """The characters [start, end) of a Doc, for which one record answers.

    whole: whether the record's whole text is there, with all its rows. in_context: whether pieces of the part may be
        pooled in context; not those of a row inside of another that was cut: the context may be that one's.
    """

    start: int
    end: int
    record: "PlacedRecord"
    whole: bool = False
    in_context: bool = True


class Parts:
    """The parts of one Doc, in the order of its text, and that text.

    doc (Doc): the Doc. records (list): those of one pipe on it.
    """

    def __init__(self, doc: Doc, records: Sequence["PlacedRecord"]):
        self._records = list(records)
        self.text = doc.text
        self._parts: list[Part] = []
        first = self._records[0]
        self.is_one = len(self._records) == 1 and _fills(first, self.text)  # as most Docs have it
        if self.is_one:
            self._parts.append(Part(first.start, first.end, first, whole=True))
            return
        self._owner = numpy.full(len(self.text), NOBODY, dtype="int32")
        self._is_white = numpy.fromiter(map(str.isspace, self.text), dtype=bool, count=len(self.text))
        cut = self._claim_whole()
        self._claim_gaps(cut, [(token.idx, token.idx + len(token)) for token in doc if not token.is_space])

    def is_of(self, records: Sequence["PlacedRecord"]) -> bool:
        """Whether these are still the records that the parts were found for."""
        ours = self._records
        return len(ours) == len(records) and all(
            a.data is b.data and a.start == b.start for a, b in zip(ours, records, strict=True)
        )

    def over(self, start: int, end: int) -> list[Part]:
        """The parts that characters [start, end) are of; white space counts for nothing.

        RAISES (ValueError): if one of them is of no part, or several claim it.
        """
        if self.is_one:
            return self._parts
        owner = self._owner[start:end]
        is_text = ~self._is_white[start:end]
        lost = numpy.flatnonzero((owner < 0) & is_text)
        if len(lost):
            self._refuse(start + int(lost[0]))
        return sorted((self._parts[i] for i in numpy.unique(owner[is_text])), key=lambda part: part.start)

    def whole_at(self, start: int, texts: Iterable[str]) -> "PlacedRecord | None":
        """The record whose Doc begins at a character and has one of these texts, if there is one."""
        for part in self._parts:
            if part.whole and part.start == start and self.text[part.start : part.end] in texts:
                return part.record
        return None

    def check_in_context(self, parts: Iterable[Part]) -> None:
        """RAISES (ValueError): if pieces of a part cannot be pooled in context."""
        for part in parts:
            if not part.in_context:
                self._refuse(part.start)

    def _refuse(self, at: int) -> None:
        """RAISES (ValueError): that the part around a character is of no record, or not known to be of one."""
        borders = numpy.flatnonzero(numpy.diff(self._owner)) + 1
        start = int(max(borders[borders <= at], default=0))
        end = int(min(borders[borders > at], default=len(self.text)))
        text, name = self.text[start:end].strip()[:50], self._records[0].name
        near = [record for record in self._records if record.start < end and record.end > start]
        if not near:
            raise ValueError(Errors.PART_NOT_PROCESSED.format(text=text, name=name))
        raise ValueError(Errors.PART_CUT.format(text=text, name=name))

    def _claim_whole(self) -> list["PlacedRecord"]:
        """Rule 1; gives the records that are cut."""
        cut = []
        for record in self._records:
            if _is_whole(record, self.text):
                self._add(Part(record.start, record.end, record, whole=True))
            else:
                cut.append(record)
        return cut

    def _claim_gaps(self, cut: list["PlacedRecord"], tokens: list[tuple[int, int]]) -> None:
        """Rules 2 and 3. tokens: the characters of each token that is not white space.

        Something is left of each record, in one gap. So what fills a gap fits only if its records can be in no other,
        and if no record may be in this gap but those, and such as fill another one.
        """
        gaps = self._gaps()
        ways = [self._ways(cut, *gap) for gap in gaps]
        homes = [{id(part.record) for part in found[0]} if len(found) == 1 else set() for found in ways]
        inside = [[token for token in tokens if start <= token[0] and token[1] <= end] for start, end in gaps]
        may_be = [{id(r) for r in cut if any(self._stands(r, *token) for token in here)} for here in inside]
        for i, gap in enumerate(gaps):
            elsewhere = set().union(*(homes[j] for j in range(len(gaps)) if j != i))
            unsettled = set().union(*(homes[j] or may_be[j] for j in range(len(gaps)) if j != i))
            if homes[i] and not homes[i] & unsettled and not may_be[i] - homes[i] - elsewhere:
                for part in ways[i][0]:
                    self._add(part)
            else:
                self._claim_rows(cut, *gap)

    def _ways(self, cut: Sequence["PlacedRecord"], start: int, end: int) -> list[list[Part]]:
        """All ways to fill a gap by one record, or by one that ends and one that begins there."""
        ways = [[Part(start, end, record)] for record in cut if self._stands(record, start, end)]
        lefts = [record for record in cut if record.end < end and self._stands(record, start, record.end)]
        rights = [record for record in cut if start < record.start and self._stands(record, record.start, end)]
        for left, right in product(lefts, rights):
            if left.end <= right.start and self._is_white[left.end : right.start].all():
                ways.append([Part(start, left.end, left), Part(right.start, end, right)])
        return ways

    def _claim_rows(self, cut: Iterable["PlacedRecord"], start: int, end: int) -> None:
        seen: set[tuple[int, int]] = set()
        for record in cut:
            rows = [(first, last) for first, last in record.rows.tolist() if first < last]
            here = [row for row in rows if start <= row[0] and row[1] <= end and self._stands(record, *row)]
            for row in here:
                if row in seen or any(_is_inside(row, other) for other in here):
                    continue
                seen.add(row)
                self._add(Part(*row, record, in_context=not any(_is_inside(row, other) for other in rows)))

    def _add(self, part: Part) -> None:
        owner = self._owner[part.start : part.end]
        owner[:] = numpy.where(owner == NOBODY, len(self._parts), SEVERAL)
        self._parts.append(part)

    def _gaps(self) -> list[tuple[int, int]]:
        """Stretches between the parts found so far, without white space at their ends."""
        edges = numpy.flatnonzero(numpy.diff(numpy.concatenate([[False], self._owner == NOBODY, [False]]).astype(int)))
        gaps = []
        for start, end in edges.reshape(-1, 2).tolist():
            inside = numpy.flatnonzero(~self._is_white[start:end])
            if len(inside):
                gaps.append((start + int(inside[0]), start + int(inside[-1]) + 1))
        return gaps

    def _stands(self, record: "PlacedRecord", start: int, end: int) -> bool:
        """Whether characters [start, end) are those of the record's text at that place."""
        at = record.start
        return at <= start < end <= record.end and record.data["text"][start - at : end - at] == self.text[start:end]


# Of the Docs that were asked last; a Doc's text never changes. No WeakKeyDictionary: a Ctrl-C that comes while one
# forgets a Doc is lost, and training forgets thousands a second.
_known: dict[tuple[int, str], tuple[ref[Doc], Parts]] = {}
KNOWN = 32


def parts_of(doc: Doc, records: Sequence["PlacedRecord"]) -> Parts:
    """The parts of a Doc by the records of one pipe, found once."""
    key = id(doc), records[0].name
    of_doc, found = _known.get(key, (None, None))
    if found is None or of_doc is None or of_doc() is not doc or not found.is_of(records):
        found = Parts(doc, records)
        for oldest in list(_known)[: len(_known) + 1 - KNOWN]:
            _known.pop(oldest, None)
        _known[key] = ref(doc), found
    return found


def _fills(record: "PlacedRecord", text: str) -> bool:
    return (record.start, record.end) == (0, len(text)) and record.data["text"] == text


def _is_whole(record: "PlacedRecord", text: str) -> bool:
    return record.start >= 0 and record.data["text"] == text[record.start : record.end]


def _is_inside(row: tuple[int, int], other: tuple[int, int]) -> bool:
    return row != other and other[0] <= row[0] and row[1] <= other[1]
