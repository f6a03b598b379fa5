"""Collections for retrieval: documents, queries, and which documents answer them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..files.tables import read_table
from ..files.text_lines import check_cell, check_text, read_lines

# Line, id of a query, id of a document, gain
_Judgement = tuple[int, str, str, int]
# In SMART's layout a line such as ".I 1" begins a record, and ".T", ".A", ".B" and ".W" begin its
# title, author, source and text
_RECORD = re.compile(r"^\.I.*$", re.MULTILINE)
_TITLE_OR_TEXT = re.compile(r"^\.[TW]\s*$(.*?)(?=^\.[A-Z]\s*$|\Z)", re.MULTILINE | re.DOTALL)
# Query, 0, document, grade
_GRADED = re.compile(r"(\S+)\s+0\s+(\S+)\s+([1-5])\s*")


@dataclass(frozen=True)
class Collection:
    """Documents, queries, and the documents that answer them.

    documents (m strings): in the order of their ids, so that the lower id wins of equal scores, as
        in sentence-transformers.
    queries (n strings): those with a relevant document, in the order of their file.
    gains (n dicts): of each query, the gains, 0 or more, of the rows of the documents that were
        judged.
    """

    documents: Sequence[str]
    queries: Sequence[str]
    gains: Sequence[Mapping[int, int]]


def read_beir(folder: Path, split: str = "test") -> Collection:
    """Read a collection in BEIR's layout.

    folder (Path): with corpus.jsonl (_id, title, text), queries.jsonl (_id, text) and
        qrels/SPLIT.tsv (query-id, corpus-id, score). Title and text are joined by a space; both may
        be empty. Scores below 0 count as 0. A query without a relevant document is left out.
    RAISES (ValueError): for a missing column, a query without a text, an id that is there twice or
        not at all, a score that is no whole number, or no relevant document, with file and line;
        (OSError): if a file is missing.
    SOURCE: Thakur et al. 2021, BEIR.
    """
    corpus = folder / "corpus.jsonl"
    documents: dict[str, str] = {}
    for line, (key, *parts) in read_table(corpus, ("_id", "title", "text"), optional=("title",)):
        title, text = (
            check_text(part or "", "title or text", corpus, line).strip() for part in parts
        )
        _add(documents, key, f"{title} {text}".strip(), corpus, line)
    asked = folder / "queries.jsonl"
    queries: dict[str, str] = {}
    for line, (key, query) in read_table(asked, ("_id", "text")):
        _add(queries, key, check_cell(query, f"text of '{key}'", asked, line), asked, line)
    qrels = folder / "qrels" / f"{split}.tsv"
    return _collection(documents, queries, _beir_judgements(qrels), qrels)


def _add(texts: dict[str, str], key: object, text: str, path: Path, line: int) -> None:
    """Add a text by its id. RAISES (ValueError): if the id is there twice."""
    if str(key) in texts:
        raise _error(path, line, f"the id '{key}' was there before")
    texts[str(key)] = text


def _beir_judgements(path: Path) -> Iterator[_Judgement]:
    for line, cells in read_table(path, ("query-id", "corpus-id", "score")):
        query, document, score = (str(cell).strip() for cell in cells)
        try:
            gain = max(int(score), 0)
        except ValueError as error:
            raise _error(path, line, f"the score '{score}' is no whole number") from error
        yield line, query, document, gain


def read_cranfield(folder: Path) -> Collection:
    """Read the Cranfield collection, in SMART's layout.

    folder (Path): with cran.all.1400, cran.qry and QRelsCorrectedforTRECeval (query, 0, document,
        grade). The n-th text of a file is that of number n, whatever its .I says: in cran.qry it
        is another number.

    The lower a grade, the better: 1 is "a complete answer to the question", 2 "of a high degree of
    relevance", 3 "useful", 4 "of minimum interest", 5 "of no interest", which each query has once.
    Gains are 4, 3, 2, 1, 0: grades as gains, as trec_eval would take them, would be upside down.
    RAISES (ValueError): as read_beir.
    """
    documents = _smart_texts(folder / "cran.all.1400")
    queries = _smart_texts(folder / "cran.qry")
    qrels = folder / "QRelsCorrectedforTRECeval"
    return _collection(documents, queries, _cranfield_judgements(qrels), qrels)


def _smart_texts(path: Path) -> dict[str, str]:
    """Return title and text of each record by its number, from 1."""
    records = _RECORD.split(path.read_text(encoding="utf8"))[1:]
    texts: dict[str, str] = {}
    for number, record in enumerate(records, 1):
        words = " ".join(_TITLE_OR_TEXT.findall(record)).split()
        texts[str(number)] = " ".join(words)
    return texts


def _cranfield_judgements(path: Path) -> Iterator[_Judgement]:
    for line, text in read_lines(path):
        graded = _GRADED.fullmatch(text)
        if graded is None:
            raise _error(path, line, "expected query, 0, document, and a grade from 1 to 5")
        query, document, grade = graded.groups()
        yield line, query, document, 5 - int(grade)


def _collection(
    documents: Mapping[str, str],
    queries: Mapping[str, str],
    judgements: Iterable[_Judgement],
    path: Path,
) -> Collection:
    """Return a collection. path (Path): of the judgements, for errors."""
    rows = {key: row for row, key in enumerate(sorted(documents))}
    gains: dict[str, dict[int, int]] = {query: {} for query in queries}
    for line, query, document, gain in judgements:
        if query not in gains:
            raise _error(path, line, f"there is no query '{query}'")
        if document not in rows:
            raise _error(path, line, f"there is no document '{document}'")
        if rows[document] in gains[query]:
            raise _error(path, line, f"the document '{document}' of '{query}' was judged before")
        gains[query][rows[document]] = gain
    answered = [query for query, judged in gains.items() if any(judged.values())]
    if not answered:
        raise ValueError(f"{path} has no relevant document: expected a score of 1 or more.")
    return Collection(
        [documents[key] for key in rows],
        [queries[query] for query in answered],
        [gains[query] for query in answered],
    )


def _error(path: Path, line: int, problem: str) -> ValueError:
    return ValueError(f"{path}, line {line}: {problem}. Repair the line.")
