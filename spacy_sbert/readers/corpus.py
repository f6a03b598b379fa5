"""The reader of training and evaluation data."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

from spacy.language import Language
from spacy.training import Example
from spacy.util import registry

from ..errors import reason_of
from ..errors.checks import Name, NonNegative, validated
from ..spans import SPANS_KEY
from .docbin import load_docbin, read_docs
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
    shuffle_buffer (int): shuffle through a buffer of so many examples, 0 for the order of the file. Each call of the
        reader (spaCy makes one an epoch where max_epochs = -1) has another order, and each run the same orders.
    seed (int): of the shuffling.
    RAISES (ValueError): if path is None or the settings do not fit together; on reading, if the file is missing or
        not what it should be; file and line are named.
    """

    @validated
    def __init__(
        self,
        path: str | Path | None,
        spans_key: Name = SPANS_KEY,
        limit: NonNegative = 0,
        format: str = AUTO,
        members: list[str] | None = None,
        score: str | None = None,
        label: str | None = None,
        min_score: float = 0.0,
        max_score: float = 1.0,
        header: bool = True,
        shuffle_buffer: NonNegative = 0,
        seed: int = 0,
    ):
        if path is None:
            raise ValueError(Errors.NO_PATH)
        self.path = Path(path)
        self.spans_key = spans_key
        self.limit = limit
        self.columns = Columns(tuple(members or ()), score, label, min_score, max_score, header)
        self.format = find_format(self.path, format, self.columns)
        self.shuffle_buffer = shuffle_buffer
        self.seed = seed
        self.epoch = 0
        self._count: int | None = None

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield an Example for each: members on both Docs, gold on the reference alone."""
        random = Random(self.seed + self.epoch)
        self.epoch += 1
        return self._read(nlp, random)

    def count(self) -> int:
        """The number of examples, which is found by reading the file once, without making Docs.

        RETURNS (int): at most limit.
        RAISES (ValueError): if the file is not what it should be.
        """
        if self._count is None and self.format == SPACY:
            size = len(load_docbin(self.path))
            self._count = min(size, self.limit or size)
        elif self._count is None:
            self._count = sum(1 for _ in self._read_rows())
        return self._count

    def _read(self, nlp: Language, random: Random) -> Iterator[Example]:
        if self.format == SPACY:
            docs = islice(read_docs(self.path, nlp, self.spans_key), self.limit or None)
            for reference in shuffle(docs, self.shuffle_buffer, random):
                yield make_example(reference, self.spans_key)
            return
        for row in shuffle(self._read_rows(), self.shuffle_buffer, random):
            try:
                example = text_example(nlp, row.members, spans_key=self.spans_key, score=row.score, label=row.label)
            except ValueError as error:  # of the tokenizer, which does not know the file
                named = {"path": self.path, "line": row.line, "reason": reason_of(error)}
                raise ValueError(Errors.BAD_EXAMPLE.format(**named)) from error
            yield example

    def _read_rows(self) -> Iterator[Row]:
        return islice(read_rows(self.path, self.format, self.columns), self.limit or None)
