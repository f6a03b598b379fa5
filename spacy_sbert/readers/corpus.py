"""The reader of training and evaluation data."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

from ..errors import reason_of
from ..errors.checks import Name, NonNegative, validated
from ..spans import SPANS_KEY
from ..spans.objectives import Counts, kind_of, reading_pipeline
from .docbin import has_objectives, load_docbin, read_docs
from .docs import make_example, text_example
from .errors import Errors
from .layouts import AUTO, SPACY, find_format, read_rows
from .rows import Row
from .shuffle import shuffle
from .table import Columns


@registry.readers("spacy-sbert.PairCorpus.v1")
class PairCorpus:
    """Read pairs, triplets or single texts as Examples, one Doc an example.

    Files of text are streamed: with max_epochs = -1 in [training] the memory they take does not grow with their size.

    path (str or Path): the file; .gz is read as it is. spans_key (str): where the members stand, doc.spans[spans_key].
    limit (int): the most examples to read, the first of the file, 0 for all.
    format (str): the layout of a file of text: "sts", "nli", "sick", "wikisection", "quora", "text" or "table"; "auto"
        is a table if members is given, else .csv and .tsv are read as the STS benchmark has them. A file that ends in
        .spacy is read as `convert` makes it.
    members (list[str]): for tables, the columns of the texts.
    score, label (str): for tables, the columns of gold, None where there is none.
    min_score, max_score (float): for tables, what is scaled to 0..1.
    header (bool): for tables, whether .csv and .tsv have one; without, columns are named "0", "1", ...
    missing (list[str]): for tables, the values of score or label that mark rows without gold, such as "-1", "-" and ""
        for a blank cell. These rows are skipped, and their number is logged.
    shuffle_buffer (int): shuffle through a buffer of so many examples, 0 for the order of the files. Each call of the
        reader (spaCy makes one an epoch where max_epochs = -1) has another order, and each run the same orders.
    seed (int): of the shuffling.
    RAISES (ValueError): if path is None or the settings do not fit together; on reading, if the file is missing or
        not what it should be; file and line are named.
    """

    @validated
    def __init__(
        self,
        path: str | Path | Sequence[str | Path] | None,
        spans_key: Name = SPANS_KEY,
        limit: NonNegative = 0,
        format: str = AUTO,
        members: Sequence[str] | None = None,
        score: str | None = None,
        label: str | None = None,
        min_score: float = 0.0,
        max_score: float = 1.0,
        header: bool = True,
        missing: Sequence[str] | None = None,
        shuffle_buffer: NonNegative = 0,
        seed: int = 0,
    ):
        paths = [path] if isinstance(path, (str, Path)) else path
        if not paths:
            raise ValueError(Errors.NO_PATH)
        self.spans_key = spans_key
        self.limit = limit
        self.columns = Columns(tuple(members or ()), score, label, min_score, max_score, header, tuple(missing or ()))
        self.files = [(file, find_format(file, format, self.columns)) for file in map(Path, paths)]
        self.shuffle_buffer = shuffle_buffer
        self.seed = seed
        self.epoch = 0
        self._count: int | None = None

    def __repr__(self) -> str:
        files = ", ".join(f"{file} as {kind}" for file, kind in self.files)
        return f"PairCorpus({files}{f', the first {self.limit}' if self.limit else ''})"

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield an Example for each: members on both Docs, gold on the reference alone."""
        random = Random(self.seed + self.epoch)
        self.epoch += 1
        return self._read(nlp, random)

    def count(self) -> int:
        """The number of examples, which is found by reading the files once, without making Docs.

        RETURNS (int): at most limit.
        RAISES (ValueError): if a file is not what it should be.
        """
        if self._count is None:
            found, most = 0, self.limit or sys.maxsize
            for path, format in self.files:
                if found < most:
                    found += self._count_file(path, format, most - found)
            self._count = found
        return self._count

    def counts(self, spans_key: str) -> Counts:
        """How many examples of each objective, as count(); Docs are made only of a .spacy that notes objectives.

        spans_key (str): where the members are looked for.
        RETURNS (Counter): by the names of the objectives; None for examples that have no members there.
        """
        if spans_key != self.spans_key:
            return Counter({None: self.count()})
        if any(has_objectives(path) for path, format in self.files if format == SPACY):
            examples = self._read(reading_pipeline(), Random())
            return Counter(kind_of(example.reference, spans_key) for example in examples)
        return Counter({"": self.count()})

    def _read(self, nlp: Language, random: Random) -> Iterator[Example]:
        stream = islice(self._stream(nlp), self.limit or None)
        for path, item in shuffle(stream, self.shuffle_buffer, random):
            if isinstance(item, Doc):
                yield make_example(item, self.spans_key)
                continue
            try:
                example = text_example(nlp, item.members, spans_key=self.spans_key, score=item.score, label=item.label)
            except ValueError as error:  # of the tokenizer, which does not know the file
                named = {"path": path, "line": item.line, "reason": reason_of(error)}
                raise ValueError(Errors.BAD_EXAMPLE.format(**named)) from error
            yield example

    def _stream(self, nlp: Language) -> Iterator[tuple[Path, Row | Doc]]:
        for path, format in self.files:
            for item in read_docs(path, nlp, self.spans_key) if format == SPACY else self._rows(path, format):
                yield path, item

    def _rows(self, path: Path, format: str) -> Iterator[Row]:
        return read_rows(path, format, self.columns)

    def _count_file(self, path: Path, format: str, most: int) -> int:
        if format == SPACY:
            return min(len(load_docbin(path)), most)
        return sum(1 for _ in islice(self._rows(path, format), most))
