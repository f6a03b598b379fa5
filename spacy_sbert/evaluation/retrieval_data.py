"""Collections for retrieval: documents, queries, and which documents answer them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..files.tables import read_table
from ..files.text_lines import check_cell, has_text, read_lines

# Line, id, text
_Record = tuple[int, str, str]
# Line, query, document, gain
_Judgement = tuple[int, str, str, int]
# A line of SMART's layout that begins a part of a record: title, author, source, text
_PART = re.compile(r"\.[A-Z]\s*")
# The grade of Cranfield that is "of no interest"
_NO_INTEREST = 5


@dataclass(frozen=True)
class Collection:
    """Documents, queries, and the documents that answer them.

    documents (m strings): in the order of their ids, so that the lower id wins of equal scores, as
        in sentence-transformers.
    queries (n strings): those with a relevant document, in the order of their file.
    gains (n dicts): of each query, the gains of the rows of the documents that were judged.
    """

    documents: Sequence[str]
    queries: Sequence[str]
    gains: Sequence[Mapping[int, int]]


def read_beir(folder: Path, split: str = "test") -> Collection:
    """Read a collection in BEIR's layout.

    folder (Path): with corpus.jsonl (_id, title, text), queries.jsonl (_id, text) and
        qrels/SPLIT.tsv (query-id, corpus-id, score). Title and text are joined by a space; both may
        be empty. A query without a relevant document is left out.
    RAISES (ValueError): for a missing column, a query without a text, an id that is there twice or
        not at all, a score that is no whole number, or no relevant document, with file and line;
        (OSError): if a file is missing.
    SOURCE: Thakur et al. 2021, BEIR.
    """
    corpus = folder / "corpus.jsonl"
    queries = folder / "queries.jsonl"
    qrels = folder / "qrels" / f"{split}.tsv"
    documents = _by_id(_beir_records(corpus, ("title", "text")), corpus)
    texts = _by_id(_beir_records(queries, ("text",)), queries, is_query=True)
    return _collection(documents, texts, _beir_gains(qrels), qrels)


def _beir_records(path: Path, columns: Sequence[str]) -> Iterator[_Record]:
    for line, (key, *parts) in read_table(path, ("_id", *columns), optional=("title",)):
        texts = []
        for column, part in zip(columns, parts, strict=True):
            if str(part or "").strip():
                texts.append(check_cell(part, column, path, line))
        if isinstance(key, int):
            key = str(key)
        yield line, check_cell(key, "_id", path, line), " ".join(texts)


def _beir_gains(path: Path) -> Iterator[_Judgement]:
    for line, cells in read_table(path, ("query-id", "corpus-id", "score")):
        query, document, score = (str(cell).strip() for cell in cells)
        yield line, query, document, _whole(score, path, line)


def read_cranfield(folder: Path) -> Collection:
    """Read the Cranfield collection, in SMART's layout.

    folder (Path): with cran.all.1400, cran.qry and QRelsCorrectedforTRECeval (query, 0, document,
        grade). The n-th query of cran.qry is query n, whatever its .I says.

    The lower a grade, the better: 1 is "a complete answer to the question", 2 "of a high degree of
    relevance", 3 "useful", 4 "of minimum interest", 5 "of no interest", which each query has once.
    Gains are 4, 3, 2, 1, 0: grades as gains, as trec_eval would take them, would be upside down.
    RAISES (ValueError): as read_beir.
    """
    corpus = folder / "cran.all.1400"
    queries = folder / "cran.qry"
    qrels = folder / "QRelsCorrectedforTRECeval"
    documents = _by_id(_smart_records(corpus), corpus)
    numbered = enumerate(_smart_records(queries), 1)
    asked = ((line, str(number), text) for number, (line, _, text) in numbered)
    texts = _by_id(asked, queries, is_query=True)
    return _collection(documents, texts, _cranfield_gains(qrels), qrels)


def _smart_records(path: Path) -> Iterator[_Record]:
    """Yield line, number, and title and text of each record."""
    records: list[tuple[int, str, list[str]]] = []
    part = ""
    for line, text in read_lines(path):
        if text.startswith(".I"):
            records.append((line, text[2:].strip(), []))
        elif _PART.fullmatch(text):
            part = text[1]
        elif records and part in "TW":
            records[-1][2].extend(text.split())
    for line, number, words in records:
        yield line, number, " ".join(words)


def _cranfield_gains(path: Path) -> Iterator[_Judgement]:
    for line, text in read_lines(path):
        cells = text.split()
        if len(cells) != 4:
            raise _error(path, line, "expected query, 0, document and grade")
        grade = _whole(cells[3], path, line)
        if grade not in range(1, _NO_INTEREST + 1):
            raise _error(path, line, f"the grade {grade} is not from 1 to {_NO_INTEREST}")
        yield line, cells[0], cells[2], _NO_INTEREST - grade


def _collection(
    documents: Mapping[str, str],
    queries: Mapping[str, str],
    judgements: Iterable[_Judgement],
    path: Path,
) -> Collection:
    """Return a collection. path (Path): of the judgements, for errors."""
    ids = sorted(documents)
    rows = {key: row for row, key in enumerate(ids)}
    gains: dict[str, dict[int, int]] = {query: {} for query in queries}
    for line, query, document, gain in judgements:
        if query not in gains:
            raise _error(path, line, f"there is no query '{query}'")
        if document not in rows:
            raise _error(path, line, f"there is no document '{document}'")
        if rows[document] in gains[query]:
            raise _error(path, line, f"the document '{document}' of '{query}' was judged before")
        gains[query][rows[document]] = gain
    answered = [key for key, judged in gains.items() if max(judged.values(), default=0) > 0]
    if not answered:
        raise ValueError(f"{path} has no relevant document: expected a score of 1 or more.")
    return Collection(
        [documents[key] for key in ids],
        [queries[key] for key in answered],
        [gains[key] for key in answered],
    )


def _by_id(records: Iterable[_Record], path: Path, *, is_query: bool = False) -> dict[str, str]:
    """Return texts by their ids. RAISES (ValueError): if an id is there twice, or a query empty."""
    texts: dict[str, str] = {}
    for line, key, text in records:
        if key in texts:
            raise _error(path, line, f"the id '{key}' was there before")
        if is_query and not has_text(text):
            raise _error(path, line, f"the query '{key}' has no text")
        texts[key] = text
    if not any(map(has_text, texts.values())):
        raise ValueError(f"{path} has no text: expected documents or queries.")
    return texts


def _whole(value: str, path: Path, line: int) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise _error(path, line, f"the score '{value}' is no whole number") from error


def _error(path: Path, line: int, problem: str) -> ValueError:
    return ValueError(f"{path}, line {line}: {problem}. Repair the line.")
