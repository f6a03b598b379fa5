"""Corpora of training examples: pairs, several files, a teacher's vectors."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, count, islice
from pathlib import Path
from random import Random
from typing import Literal, TypeVar, cast

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..models.load_pipeline import Teacher
from ..models.spans import SPANS_KEY
from ..training.examples import OBJECTIVE, Counts, Reader, count_objectives
from ..validation import Name, NonNegative, Positive, PositiveFloat, validated
from .examples import Row, example_doc, make_example
from .formats import (
    AUTO,
    SPACY,
    Columns,
    find_format,
    load_docbin,
    read_docs,
    read_rows,
)

_ItemT = TypeVar("_ItemT")


class PairCorpus:
    """Read pairs, triplets or single texts as Examples, one Doc an example.

    Files of text are streamed: with max_epochs = -1 in [training] the memory they take does not
    grow with their size.

    path (str or Path): the file, or several; .gz is read as it is. spans_key (str): where the
        members stand.
    limit (int): the most examples to read, the first of the file, 0 for all.
    format (str): the layout of a file of text: "sts", "nli", "sick", "wikisection", "quora", "text"
        or "table"; "auto" is a table if members is given, else .csv and .tsv are read as the STS
        benchmark has them. .spacy: see convert.
    members (list[str]): for tables, the columns of the texts.
    score, label (str): for tables, the columns of gold, None where there is none.
    min_score, max_score (float): for tables, what is scaled to 0..1.
    header (bool): for tables, whether .csv and .tsv have one; without, columns are named "0", "1",
        ...
    missing (list[str]): for tables, the values of score or label that mark rows without gold, such
        as "-1", "-" and "" for a blank cell. These rows are skipped, and their number is logged.
    cats (bool): whether the label of a row is in `doc.cats` of the reference too, with 1.0 beside
        0.0 for all other labels of the files, as spaCy's `textcat` reads it.
    shuffle_buffer (int): shuffle through a buffer of so many examples, 0 for the order of the
        files. Each call of the reader (spaCy makes one an epoch where max_epochs = -1) has another
        order, and each run the same orders.
    seed (int): of the shuffling.
    scores (str): for tables, the column of a teacher's scores of the members after the first, a
        list of numbers, in .csv and .tsv as JSON: [0.9, 0.4].
    RAISES (ValueError): if the settings do not fit together; on reading, for a bad file or line,
        which is named.
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
        cats: bool = False,
        scores: str | None = None,
    ):
        paths = [path] if isinstance(path, (str, Path)) else path
        if not paths:
            raise ValueError(
                "spacy-sbert.PairCorpus.v1 was given no path. Set it in the config, or on the "
                "command line: --paths.train pairs.spacy --paths.dev pairs.spacy."
            )
        self.spans_key = spans_key
        self.limit = limit
        self.columns = Columns(
            tuple(members or ()),
            score,
            label,
            min_score,
            max_score,
            header,
            tuple(missing or ()),
            scores,
        )
        self.files = [(file, find_format(file, format, self.columns)) for file in map(Path, paths)]
        for file, kind in self.files:
            if cats and kind == SPACY:
                raise ValueError(
                    f"The Docs of {file} have cats of their own: leave out cats = true, which is "
                    "for files of text."
                )
        self.cats = cats
        self.shuffle_buffer = shuffle_buffer
        # Each call of the reader takes the next one
        self._seeds = count(seed)
        self._count: int | None = None

    def __repr__(self) -> str:
        shown = ", ".join(f"{file} as {kind}" for file, kind in self.files)
        if self.limit:
            shown += f", the first {self.limit}"
        return f"PairCorpus({shown})"

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield an Example for each: members on both Docs, gold on the reference alone."""
        return self._read(nlp, Random(next(self._seeds)))

    def count(self) -> int:
        """Return the number of examples, found by reading the files once, without making Docs."""
        if self._count is None:
            self._count = sum(1 for _ in self._limited(self._uncounted()))
        return self._count

    def _uncounted(self) -> Iterator[object]:
        """Yield something for each example of the files."""
        for path, format in self.files:
            if format == SPACY:
                yield from range(len(load_docbin(path)))
            else:
                yield from read_rows(path, format, self.columns)

    def _limited(self, items: Iterable[_ItemT]) -> Iterator[_ItemT]:
        return islice(items, self.limit or None)

    def rows(self) -> Iterator[Row]:
        """Yield the examples of files of text without making Docs; none of .spacy files."""
        of_text = [(path, format) for path, format in self.files if format != SPACY]
        rows = (read_rows(path, format, self.columns) for path, format in of_text)
        return self._limited(chain.from_iterable(rows))

    def counts(self, spans_key: str) -> Counts:
        """Return how many examples of each objective there are.

        None for examples without members in spans_key.
        """
        if spans_key != self.spans_key:
            return Counter({None: self.count()})
        docbins = [load_docbin(path) for path, format in self.files if format == SPACY]
        groups = chain.from_iterable(docbin.span_groups for docbin in docbins)
        if any(OBJECTIVE.encode() in group for group in groups):
            return count_objectives(partial(self._read, random=Random()), spans_key)
        # All are of one objective, which has no name; no Docs are made
        return Counter({"": self.count()})

    def _read(self, nlp: Language, random: Random) -> Iterator[Example]:
        stream = self._limited(self._stream(nlp))
        for path, item in _shuffled(stream, self.shuffle_buffer, random):
            if isinstance(item, Doc):
                yield make_example(item, self.spans_key)
                continue
            try:
                predicted = example_doc(nlp, item.members, spans_key=self.spans_key)
            except ValueError as error:
                # The tokenizer does not know the file
                raise ValueError(f"{path}, line {item.line}: {error}") from error
            # Quicker than make_example
            reference = predicted.copy()
            gold = reference.spans[self.spans_key].attrs
            if item.score is not None:
                gold["score"] = item.score
            if item.label is not None:
                gold["label"] = item.label
            if item.scores is not None:
                gold["scores"] = item.scores
            if self.cats:
                reference.cats = {label: float(label == item.label) for label in self._labels}
            yield Example(predicted, reference)

    @cached_property
    def _labels(self) -> list[str]:
        """The labels of all rows; reads the files. RAISES (ValueError): if there are none."""
        labels = sorted({row.label for row in self.rows() if row.label is not None})
        if not labels:
            raise ValueError(
                f"cats = true needs labels, and {self.files[0][0]} has none. Name their column in "
                "label, or leave out cats."
            )
        return labels

    def _stream(self, nlp: Language) -> Iterator[tuple[Path, Row | Doc]]:
        for path, format in self.files:
            items: Iterator[Row | Doc]
            if format == SPACY:
                items = read_docs(path, nlp, self.spans_key)
            else:
                items = read_rows(path, format, self.columns)
            for item in items:
                yield path, item


def _shuffled(items: Iterable[_ItemT], size: int, random: Random) -> Iterator[_ItemT]:
    """Shuffle a stream through a buffer of so many items.

    An item moves forward by the buffer at most.
    """
    if not size:
        yield from items
        return
    stream = iter(items)
    held = list(islice(stream, size))
    for item in stream:
        place = random.randrange(size)
        yield held[place]
        held[place] = item
    random.shuffle(held)
    yield from held


class MultiCorpus:
    """Mix several corpora.

    Each example says in attrs["objective"], on both Docs, which corpus it is from.

    The order is for streams (max_epochs = -1). Where spaCy holds a corpus in memory it shuffles it,
    and every batcher samples the data sets by their sizes, but for spacy-sbert.batch_in_turn.v1;
    sampling is to be "proportional" then.

    corpora (dict[str, Callable]): readers by name, spaCy's own among them if you like: examples
        without members are passed on as they are.
    sampling (str): "proportional" for every example of every corpus once, the next from a corpus
        drawn by how many it has left; "round_robin" for one of each in turn until the shortest
        ends.
    weights (dict[str, float]): with "proportional", draw by these in place of how many are left; a
        corpus that is used up drops out.
    seed (int): of the drawing, which differs from call to call of the reader but not from run to
        run.
    spans_key (str): where the members stand.
    RAISES (ValueError): for settings that do not fit together; on reading, for a corpus without
        examples.
    """

    @validated
    def __init__(
        self,
        # Not Reader: confection checks a nested block before it has built the readers
        corpora: dict[str, object],
        sampling: Literal["proportional", "round_robin"] = "proportional",
        weights: dict[str, PositiveFloat] | None = None,
        seed: int = 0,
        spans_key: Name = SPANS_KEY,
    ):
        if not corpora:
            raise ValueError(
                "spacy-sbert.MultiCorpus.v1 was given no corpora: expected a reader for each name, "
                'such as [corpora.train.corpora.sts] @readers = "spacy-sbert.PairCorpus.v1".'
            )
        for name, corpus in corpora.items():
            if not callable(corpus):
                raise ValueError(
                    f"The corpus '{name}' is not a reader: got {corpus!r}, expected in corpora "
                    "what a registered reader builds, such as @readers = "
                    '"spacy-sbert.PairCorpus.v1" in its block.'
                )
        if weights is not None and sampling != "proportional":
            raise ValueError(
                f'Weights are of no use with sampling = "{sampling}": set "proportional".'
            )
        if weights is not None and weights.keys() != corpora.keys():
            given = ", ".join(weights) or "none"
            expected = ", ".join(corpora)
            raise ValueError(
                f"Weights were given for {given}, expected one for each of the corpora: {expected}."
            )
        self.corpora = cast(dict[str, Reader], dict(corpora))
        self.sampling = sampling
        self.weights = weights
        self.spans_key = spans_key
        # Each call of the reader takes the next one
        self._seeds = count(seed)
        self._counted: dict[str, float] | None = None

    def __repr__(self) -> str:
        return f"MultiCorpus({self.sampling}: {', '.join(self.corpora)})"

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield the Examples of all corpora, mixed."""
        return self._read(nlp, Random(next(self._seeds)))

    def counts(self, spans_key: str) -> Counts:
        """Return how many examples of each corpus there are.

        None for examples without members in spans_key.

        A corpus is read if it cannot count them. With "round_robin" it is as many as come until the
        shortest ends.
        """
        found = []
        for name, corpus in self.corpora.items():
            counts = count_objectives(corpus, spans_key)
            # Examples with members get the name of their corpus
            if spans_key == self.spans_key:
                counts = Counter({name: counts.total() - counts[None], None: counts[None]})
            found.append(+counts)
        if self.sampling == "round_robin":
            # Only reading tells which of a corpus' objectives come before the shortest ends
            if any(len(counts) > 1 for counts in found):
                return count_objectives(partial(self._read, random=Random()), spans_key)
            shortest = min(counts.total() for counts in found)
            found = [Counter(dict.fromkeys(counts, shortest)) for counts in found]
        return sum(found, Counter())

    def _read(self, nlp: Language, random: Random) -> Iterator[Example]:
        if self.sampling == "round_robin":
            drawn = self._in_turn(nlp)
        else:
            drawn = self._by_weight(nlp, random)
        for name, example in drawn:
            for doc in (example.predicted, example.reference):
                if self.spans_key in doc.spans:
                    doc.spans[self.spans_key].attrs[OBJECTIVE] = name
            yield example

    def _in_turn(self, nlp: Language) -> Iterator[tuple[str, Example]]:
        examples: tuple[Example, ...] | None = None
        for examples in zip(*(corpus(nlp) for corpus in self.corpora.values()), strict=False):
            yield from zip(self.corpora, examples, strict=True)
        if examples is None:
            raise _empty_corpus(" or ".join(self.corpora))

    def _by_weight(self, nlp: Language, random: Random) -> Iterator[tuple[str, Example]]:
        weights = dict(self.weights or self._sizes(nlp))
        streams: dict[str, Iterator[Example]] = {}
        # The next example of each corpus that has one
        upcoming: dict[str, Example] = {}
        for name, corpus in self.corpora.items():
            streams[name] = iter(corpus(nlp))
            first = next(streams[name], None)
            if first is None:
                raise _empty_corpus(name)
            upcoming[name] = first
        while upcoming:
            names = list(upcoming)
            (name,) = random.choices(names, [weights[name] for name in names])
            example = upcoming[name]
            following = next(streams[name], None)
            if following is None:
                del upcoming[name]
            else:
                upcoming[name] = following
            if self.weights is None:
                # A file may have grown since it was counted
                weights[name] = max(weights[name] - 1, 1)
            yield name, example

    def _sizes(self, nlp: Language) -> dict[str, float]:
        if self._counted is None:
            totals = {
                name: count_objectives(reader, self.spans_key, nlp)
                for name, reader in self.corpora.items()
            }
            self._counted = {name: max(counts.total(), 1) for name, counts in totals.items()}
        return self._counted


def _empty_corpus(name: str) -> ValueError:
    return ValueError(f"The corpus '{name}' holds no examples. Check its path, or leave it out.")


class TeacherCorpus:
    """Give the examples of another reader the vector that a teacher has for their first member.

    corpus (Callable): the reader; examples without members are passed on as they are.
    teacher (str): a pipeline, a folder or an installed package, or the name of an encoder; loaded
        when the first example is read.
    batch_size (int): how many texts the teacher gets at once.
    spans_key (str): where the members stand. The vector stands in attrs["vector"] of the reference,
        a float32 array.
    RAISES (ValueError): for a batch_size below 1; on reading, if the teacher has no vector for a
        text.
    SOURCE: Reimers and Gurevych 2020, Making Monolingual Sentence Embeddings Multilingual.
    """

    @validated
    def __init__(
        self,
        corpus: Reader,
        teacher: str | Path,
        batch_size: Positive = 128,
        spans_key: Name = SPANS_KEY,
    ):
        self.corpus = corpus
        self._teacher = Teacher(teacher, batch_size)
        self.spans_key = spans_key

    def __repr__(self) -> str:
        corpus = getattr(self.corpus, "__name__", type(self.corpus).__name__)
        return f"TeacherCorpus({corpus}, taught by {self._teacher.name})"

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield the Examples of the corpus, the teacher's vectors on their references."""
        return self._read(iter(self.corpus(nlp)))

    def count(self) -> int:
        """Return the number of examples, without loading the teacher."""
        return self.counts(self.spans_key).total()

    def counts(self, spans_key: str) -> Counts:
        """Return how many examples of each objective there are, see count_objectives."""
        return count_objectives(self.corpus, spans_key)

    def _read(self, examples: Iterator[Example]) -> Iterator[Example]:
        while batch := list(islice(examples, self._teacher.batch_size)):
            groups = [example.reference.spans.get(self.spans_key) for example in batch]
            taught = [group for group in groups if group is not None and len(group)]
            texts = tuple(group[0].text for group in taught)
            for group, vector in zip(taught, self._teacher.vectors(texts), strict=True):
                group.attrs["vector"] = vector
            yield from batch
