"""Readers of graded pairs: one Doc an example, its two members in doc.spans["sbert"], gold on the reference."""

import math
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Example
from spacy.util import registry

from .errors import Errors
from .spans import SPANS_KEY, members

STS_COLUMNS = 7  # genre, file, year, id, score, sentence1, sentence2; some lines carry licence columns behind them
STS_MAX_SCORE = 5.0
Pair = tuple[str, str, float]


@registry.readers("spacy-sbert.PairCorpus.v1")
class PairCorpus:
    """Read graded pairs as Examples, one Doc a pair.

    path (str or Path): a file in the layout of the STS benchmark (.csv or .tsv), or .spacy as `convert` makes it.
    spans_key (str): where the members stand, doc.spans[spans_key].
    limit (int): the most pairs to read, 0 for all.
    RAISES (ValueError): if path is None; on reading, if the file is missing or not what it should be; file and line
        are named.
    """

    def __init__(self, path: str | Path | None, spans_key: str = SPANS_KEY, limit: int = 0):
        if path is None:
            raise ValueError(Errors.NO_PATH)
        self.path = Path(path)
        self.spans_key = spans_key
        self.limit = limit

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield an Example a pair: members on both Docs, the gold score on the reference alone."""
        count = 0
        for reference in self._read_docs(nlp):
            predicted = Doc(
                nlp.vocab,
                words=[token.text for token in reference],
                spaces=[bool(token.whitespace_) for token in reference],
            )
            pair = [Span(predicted, span.start, span.end) for span in members(reference, self.spans_key)]
            predicted.spans[self.spans_key] = SpanGroup(predicted, name=self.spans_key, spans=pair)
            yield Example(predicted, reference)
            count += 1
            if count == self.limit:
                break
        if not count:
            expected = "a pair a line" if self.path.suffix != ".spacy" else "a Doc a pair"
            raise ValueError(Errors.NO_PAIRS.format(path=self.path, expected=expected))

    def _read_docs(self, nlp: Language) -> Iterator[Doc]:
        if not self.path.is_file():
            raise ValueError(Errors.NO_FILE.format(path=self.path))
        if self.path.suffix.lower() in (".csv", ".tsv"):
            return (pair_doc(nlp, *pair, spans_key=self.spans_key) for pair in read_sts(self.path))
        if self.path.suffix == ".spacy":
            return self._read_docbin(nlp)
        raise ValueError(Errors.UNKNOWN_FORMAT.format(path=self.path))

    def _read_docbin(self, nlp: Language) -> Iterator[Doc]:
        for number, doc in enumerate(DocBin().from_disk(self.path).get_docs(nlp.vocab), start=1):
            pair = members(doc, self.spans_key)
            score = doc.spans[self.spans_key].attrs.get("score") if pair else None
            if len(pair) != 2 or not isinstance(score, (int, float)) or not 0 <= score <= 1:
                message = Errors.NOT_PAIRS.format(path=self.path, number=number, text=doc.text[:50], key=self.spans_key)
                raise ValueError(message)
            yield doc


def read_sts(path: Path) -> Iterator[Pair]:
    """Read the official layout of the STS benchmark: tab-separated, no header, no quoting.

    YIELDS (str, str, float): the two sentences without white space around them, and the score scaled from 0..5 to 0..1.
    RAISES (ValueError): for a line with fewer than 7 columns, a score that is no number from 0 to 5, or an empty
        sentence; the message names file and line.
    SOURCE: Cer et al. 2017, SemEval-2017 task 1.
    """
    with path.open("rb") as file:
        for line, raw in enumerate(file, start=1):
            try:
                text = raw.decode("utf8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise ValueError(Errors.BAD_ENCODING.format(path=path, line=line, reason=error.reason)) from error
            if not text.strip():
                continue
            columns = text.split("\t")
            if len(columns) < STS_COLUMNS:
                raise ValueError(Errors.MISSING_COLUMN.format(path=path, line=line, given=len(columns)))
            score = _parse_score(columns[4], path, line)
            sentences = [column.strip() for column in columns[5:7]]
            for name, sentence in zip(("sentence1", "sentence2"), sentences, strict=True):
                if not _has_text(sentence):
                    raise ValueError(Errors.EMPTY_SENTENCE.format(path=path, line=line, column=name))
            yield sentences[0], sentences[1], score / STS_MAX_SCORE


def pair_doc(nlp: Language, first: str, second: str, score: float, *, spans_key: str = SPANS_KEY) -> Doc:
    """One Doc of two texts, with the texts as members and the score as gold.

    nlp (Language): whose tokenizer makes the Doc.
    first, second (str): the texts, not empty.
    score (float): gold similarity, from 0 to 1.
    RETURNS (Doc): first and second one after the other; doc.spans[spans_key] holds a Span for each, and the score in
        its attrs["score"].
    """
    docs = [nlp.make_doc(first), nlp.make_doc(second)]
    words = [token.text for doc in docs for token in doc]
    spaces = [bool(token.whitespace_) for doc in docs for token in doc]
    border = len(docs[0])
    spaces[border - 1] = True  # a member ends where the next begins
    doc = Doc(nlp.vocab, words=words, spaces=spaces)
    pair = [Span(doc, 0, border), Span(doc, border, len(doc))]
    doc.spans[spans_key] = SpanGroup(doc, name=spans_key, attrs={"score": score}, spans=pair)
    return doc


def convert(input_path: Path, output_path: Path, *, lang: str = "en", expect: int | None = None) -> int:
    """Convert graded pairs in the layout of the STS benchmark to .spacy.

    input_path (Path): see read_sts.
    output_path (Path): the .spacy file to write.
    lang (str): the language whose tokenizer makes the Docs.
    expect (int): how many pairs there must be, None for any number above zero.
    RETURNS (int): the number of pairs written.
    RAISES (ValueError): if a line is not what it should be, or their number not as expected; nothing is written then.
    """
    if output_path.suffix != ".spacy":
        raise ValueError(Errors.NOT_SPACY.format(path=output_path))
    nlp = spacy.blank(lang)
    docs = [pair_doc(nlp, *pair) for pair in read_sts(input_path)]
    if not docs:
        raise ValueError(Errors.NO_PAIRS.format(path=input_path, expected="a pair a line"))
    if expect is not None and len(docs) != expect:
        raise ValueError(Errors.WRONG_COUNT.format(path=input_path, given=len(docs), expected=expect))
    output_path.parent.mkdir(parents=True, exist_ok=True)
    DocBin(docs=docs).to_disk(output_path)
    return len(docs)


def _has_text(sentence: str) -> bool:
    """Whether there is more than white space, control and format characters, which tokenizers drop."""
    return any(unicodedata.category(character)[0] not in "CZ" for character in sentence)


def _parse_score(text: str, path: Path, line: int) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not 0 <= score <= STS_MAX_SCORE:  # also refuses nan
        raise ValueError(Errors.BAD_SCORE.format(path=path, line=line, given=text))
    return score
