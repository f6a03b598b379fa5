"""Plain sentences to fit a meta-embedding on."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from spacy.language import Language

from ..errors.checks import NonNegative, Positive
from ..files.lines import format_suffix, read_lines
from ..files.tables import read_objects, read_table, read_tabs
from .errors import Errors

Texts = Callable[[], Iterable[str]]  # a corpus that can be gone through more than once
MAX_TOKENS = 60
DELIMITED = (".csv", ".tsv")


def read_sentences(path: Path, column: Positive | None = None) -> Iterator[str]:
    """Read one sentence a line, without white space around it; blank lines are passed over.

    path (Path): UTF-8, gzip-compressed if it ends in .gz; with .jsonl, objects with "text".
    column (int): which of the columns of a .csv or .tsv, or of lines with tabs between them, from 1; None for the whole
        line.
    YIELDS (str): sentences.
    RAISES (ValueError): for a line without the column or without "text"; the message names file and line.
    """
    if format_suffix(path) == ".jsonl":
        for line, record in read_objects(path):
            if not isinstance(record.get("text"), str):
                raise ValueError(Errors.META_NO_TEXT.format(path=path, line=line, given=str(record)[:50]))
            if text := str(record["text"]).strip():
                yield text
        return
    if column is not None and format_suffix(path) in DELIMITED:
        records = read_table(path, [str(column - 1)], header=False)
        yield from (text for _, (cell,) in records if (text := str(cell).strip()))
        return
    place = (column or 1) - 1
    for line, columns in read_tabs(path) if column else ((line, [text]) for line, text in read_lines(path)):
        if place >= len(columns):
            raise ValueError(Errors.SHORT_LINE.format(path=path, line=line, column=column, given=len(columns)))
        if text := columns[place].strip():
            yield text


class ShortSentences:
    """The sentences of a corpus that have fewer than so many tokens, as often as it is called.

    nlp (Language): whose tokenizer counts. texts (Callable): the corpus. max_tokens (int): 0 for no limit.
    n_left_out (int): how many sentences the last pass left out.
    SOURCE: Poerner et al. 2020, section 4.1: fewer than 60.
    """

    def __init__(self, nlp: Language, texts: Texts, max_tokens: NonNegative = MAX_TOKENS):
        self.nlp = nlp
        self.texts = texts
        self.max_tokens = max_tokens
        self.n_left_out = 0

    def __call__(self) -> Iterator[str]:
        self.n_left_out = 0
        for text in self.texts():
            if self.max_tokens and len(self.nlp.make_doc(text)) >= self.max_tokens:
                self.n_left_out += 1
            else:
                yield text
