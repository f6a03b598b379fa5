"""Collections for retrieval: documents, queries, and which documents answer them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import Errors
from ..files.tables import read_table
from ..files.text_lines import check_cell, check_encoding, has_text, read_lines
from ..validation import short_repr

# Line, query, document, gain
_Judgement = tuple[int, str, str, int]
_WHOLE = re.compile(r"-?[0-9]{1,9}")
# A line of SMART's layout that begins a part of a record: title, author, source, text
_PART = re.compile(r"\.([A-Z])\s*")
# The grades of Cranfield, which its readme names
_BEST_GRADE = 1
_NO_INTEREST = 5


@dataclass(frozen=True)
class Collection:
    """Documents, queries, and the documents that answer them.

    documents (m strings): in the order of their ids, so that the lower row wins of equal scores, as
        in sentence-transformers.
    query_ids, queries (n strings each): those with a relevant document, in the order of their file.
    gains (n dicts): of the rows of the documents that were judged.
    notes: what a reader has to know.
    """

    documents: Sequence[str]
    query_ids: Sequence[str]
    queries: Sequence[str]
    gains: Sequence[Mapping[int, int]]
    notes: Sequence[str]


def beir_files(folder: Path, split: str) -> list[Path]:
    """Return the files of a folder in BEIR's layout: corpus, queries, judgements of a split."""
    return [folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels" / f"{split}.tsv"]


def read_beir(folder: Path, split: str = "test") -> Collection:
    """Read a collection in BEIR's layout.

    folder (Path): with corpus.jsonl (_id, title, text), queries.jsonl (_id, text) and
        qrels/SPLIT.tsv (query-id, corpus-id, score). Title and text are joined by a space; a corpus
        may have no titles.
    RAISES (ValueError): for a missing column, a record without a text, an id that is there twice or
        not at all, a score that is no whole number, or no relevant document, with file and line;
        (OSError): if a file is missing.
    SOURCE: Thakur et al. 2021, BEIR.
    """
    corpus, queries, qrels = beir_files(folder, split)
    documents: dict[str, str] = {}
    columns = ("_id", "title", "text")
    for line, (key, title, text) in read_table(corpus, columns, optional=("title",)):
        parts = [_checked_text(text, "text", corpus, line)]
        if title is not None:
            parts.insert(0, _checked_text(title, "title", corpus, line))
        _add(documents, key, " ".join(parts).strip(), corpus, line)
    texts: dict[str, str] = {}
    for line, (key, text) in read_table(queries, ("_id", "text")):
        _add(texts, key, check_cell(text, "text", queries, line), queries, line)
    return _collection(documents, texts, _beir_judgements(qrels), corpus, qrels)


def read_cranfield(folder: Path) -> Collection:
    """Read the Cranfield collection, in SMART's layout.

    folder (Path): with cran.all.1400, cran.qry and QRelsCorrectedforTRECeval (query, 0, document,
        grade). The n-th query of cran.qry is query n.
    RAISES (ValueError): as read_beir.
    """
    corpus = folder / "cran.all.1400"
    qrels = folder / "QRelsCorrectedforTRECeval"
    documents: dict[str, str] = {}
    for line, key, text in _smart_records(corpus):
        _add(documents, key, text, corpus, line)
    records = _smart_records(folder / "cran.qry")
    queries = {str(number): text for number, (_, _, text) in enumerate(records, 1)}
    return _collection(documents, queries, _cranfield_judgements(qrels), corpus, qrels)


def _smart_records(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, number, and title and text of each record."""
    start = 0
    number = ""
    part = ""
    words: list[str] = []
    for line, text in read_lines(path):
        found = _PART.fullmatch(text)
        if text.startswith(".I"):
            if start:
                yield start, number, " ".join(words)
            start, number = line, text[2:].strip()
            words = []
        elif found:
            part = found[1]
        elif part in ("T", "W"):
            words += text.split()
    if start:
        yield start, number, " ".join(words)


def _beir_judgements(path: Path) -> Iterator[_Judgement]:
    columns = ("query-id", "corpus-id", "score")
    for line, (query, document, score) in read_table(path, columns):
        yield line, str(query).strip(), str(document).strip(), _whole(score, path, line)


def _cranfield_judgements(path: Path) -> Iterator[_Judgement]:
    """Yield judgements with gains from 4, for a complete answer, to 0.

    The lower a grade, the better: 1 is "a complete answer to the question", 2 "of a high degree of
    relevance", 3 "useful", 4 "of minimum interest". 5, "of no interest", has the paper that a query
    was asked for. Taken as gains, as trec_eval would, they would be upside down.
    """
    for line, text in read_lines(path):
        cells = text.split()
        if not cells:
            continue
        if len(cells) != 4:
            raise ValueError(
                f"{path}, line {line}: expected query, 0, document and grade, got "
                f"{short_repr(text.strip())}. Repair the line."
            )
        grade = _whole(cells[3], path, line)
        if not _BEST_GRADE <= grade <= _NO_INTEREST:
            raise ValueError(
                f"{path}, line {line}: the grade {grade} is not from {_BEST_GRADE} to "
                f"{_NO_INTEREST}. Repair the line."
            )
        yield line, cells[0], cells[2], _NO_INTEREST - grade


def _collection(
    documents: Mapping[str, str],
    queries: Mapping[str, str],
    judgements: Iterable[_Judgement],
    corpus: Path,
    qrels: Path,
) -> Collection:
    """Return a collection. corpus, qrels (Path): for errors."""
    if not documents:
        raise ValueError(f"{corpus} has no documents: expected one a line.")
    ids = sorted(documents)
    rows = {key: row for row, key in enumerate(ids)}
    gains: dict[str, dict[int, int]] = {}
    for line, query, document, gain in judgements:
        for what, key, known in (("query", query, queries), ("document", document, documents)):
            if key not in known:
                raise ValueError(
                    f"{qrels}, line {line}: there is no {what} with the id '{key}'. Remove the "
                    f"line, or add the {what}."
                )
        judged = gains.setdefault(query, {})
        if rows[document] in judged:
            raise ValueError(
                f"{qrels}, line {line}: the document '{document}' was judged before for the query "
                f"'{query}'. Keep one line of them."
            )
        judged[rows[document]] = gain
    answered = [key for key in queries if max(gains.get(key, {}).values(), default=0) > 0]
    if not answered:
        raise ValueError(f"{qrels} has no relevant document: expected a score of 1 or more.")
    notes: list[str] = []
    # Queries of other splits have no judgements
    n_unanswered = len(gains) - len(answered)
    if n_unanswered:
        notes.append(f"{n_unanswered} queries are left out: no document is relevant to them.")
    empty = [key for key in ids if not has_text(documents[key])]
    if empty:
        notes.append(f"{len(empty)} of {len(ids)} documents are empty, the first is '{empty[0]}'.")
    texts = [documents[key] for key in ids]
    questions = [queries[key] for key in answered]
    return Collection(texts, answered, questions, [gains[key] for key in answered], notes)


def _add(texts: dict[str, str], key: object, text: str, path: Path, line: int) -> None:
    """Add a text by its id. RAISES (ValueError): if the id is no text, empty, or there already."""
    if isinstance(key, int):
        key = str(key)
    key = check_cell(key, "_id", path, line)
    if key in texts:
        raise ValueError(
            f"{path}, line {line}: the id '{key}' was there before. Give each text its own id."
        )
    texts[key] = text


def _checked_text(value: object, column: str, path: Path, line: int) -> str:
    """Return a text, which may be empty. RAISES (ValueError): if it is no text."""
    if not isinstance(value, str):
        raise ValueError(
            Errors.NOT_A_TEXT.format(path=path, line=line, column=column, given=short_repr(value))
        )
    check_encoding(value, path, line)
    return value


def _whole(value: object, path: Path, line: int) -> int:
    """Return a score of a judgement. RAISES (ValueError): if it is no whole number."""
    if not _WHOLE.fullmatch(str(value).strip()):
        raise ValueError(
            f"{path}, line {line}: the score {short_repr(value)} is no whole number. Repair the "
            "line."
        )
    return int(str(value))
