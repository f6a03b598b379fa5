"""The texts of a file without blank ones, and their vectors: encoded, or read from a file."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from numpy.typing import ArrayLike

from ..arrays import checked
from ..bulk import FileVectors
from ..errors import Errors
from ..files.tables import TABLES, NamedRecord, TextColumns, read_columns, read_text_rows
from ..files.text_lines import format_suffix
from ..pipeline.sbert import SentenceBert
from ..progress import progress_of
from ..similarity import cosine
from ..validation import short_repr
from .exact import nearest
from .identity import EncoderIdentity, check_same_encoder

# The default column
TEXT_COLUMN = "text"
# How many texts are encoded to find out whether given vectors are theirs
_COMPARED = 8
# How much less similar to a new vector of a text its own may be than another
_LESS_SIMILAR = 0.02


class Corpus(NamedTuple):
    """Texts of a file that are not blank.

    rows (list of int): the row of each text in the file, from 0; blank rows count, as in the
        vectors of `encode`.
    ids (list): the id of each text, None if no column was named for them.
    others (list of dict): the other columns of each text, None if not read.
    n_blank (int): how many rows of the file are blank.
    """

    texts: list[str]
    rows: list[int]
    ids: list[str | int] | None = None
    others: list[NamedRecord] | None = None
    n_blank: int = 0


def read_corpus(
    path: Path | str,
    column: str = TEXT_COLUMN,
    *,
    id_column: str | None = None,
    header: bool = True,
    others: bool = False,
    progress: bool = False,
) -> Corpus:
    """Read the texts of a file, without blank ones.

    path (Path or str): .txt with a text a line, .jsonl, .csv, .tsv (each .gz or not) or .parquet.
    column (str): the column or field of the texts. id_column (str): that of the ids, strings or
        whole numbers.
    header (bool): whether .csv and .tsv have one; if not, columns are named "0", "1", ...
    others (bool): whether to read the other columns of a table, too. progress (bool): whether to
        show a progress bar.
    RAISES (ValueError): if it holds none, or has a bad row, with its line.
    """
    path = Path(path)
    texts: list[str] = []
    numbers: list[int] = []
    ids: list[Any] = []
    kept: list[NamedRecord] = []
    has_others = others and format_suffix(path) in TABLES
    columns: Iterable[NamedRecord] = repeat({})
    if has_others:
        columns = read_columns(path, header=header)
    records = read_text_rows(path, TextColumns(column, id_column, header))
    records = progress_of(records, desc="Reading", unit="rows", shown=progress)
    n_blank = 0
    for number, (record, own) in enumerate(zip(records, columns, strict=has_others)):
        if not record.text.strip():
            n_blank += 1
        else:
            texts.append(record.text)
            numbers.append(number)
            ids.append(record.id)
            kept.append({name: own[name] for name in own if name not in (column, id_column)})
    if not texts:
        raise ValueError(f"{path} holds no text: expected one a line, or .jsonl with text.")
    corpus = Corpus(texts, numbers, n_blank=n_blank)
    if id_column is not None:
        corpus = corpus._replace(ids=ids)
    if has_others:
        corpus = corpus._replace(others=kept)
    return corpus


class TextVectors:
    """Vectors that `encode` wrote, known to be those of the texts of a file, in their order.

    path (Path): of the vectors. corpus (Path), columns (TextColumns): the file, and what is read.
    rows (float32 (n, width)): the vectors, without those of blank texts.
    RAISES (ValueError): if they are of other texts, or not as they were written.
    """

    def __init__(self, path: Path, corpus: Path, columns: TextColumns):
        self._file = FileVectors(path)
        self.rows = self._file.of_texts(corpus, columns)

    def by(self, pipe: SentenceBert) -> numpy.ndarray:
        """Return the vectors. RAISES (ValueError): if another encoder made them."""
        check_same_encoder(EncoderIdentity.of(self._file), pipe, self._file.path)
        return self.rows


GivenVectors = ArrayLike | TextVectors | None


def text_vectors(
    pipe: SentenceBert,
    texts: Sequence[str],
    vectors: GivenVectors,
    progress: bool,
) -> numpy.ndarray:
    """Return the given vectors of texts, or new ones, float32 (n, width).

    RAISES (ValueError): if the given ones are of other texts, or by another encoder.
    """
    if vectors is None:
        return pipe.encode(texts, progress=progress)
    if isinstance(vectors, TextVectors):
        rows = checked(vectors.by(pipe), "vectors")
    else:
        rows = checked(vectors, "vectors")
    if len(rows) != len(texts):
        raise ValueError(
            f"Given {len(texts)} texts for {len(rows)} vectors: expected one for each."
        )
    if not isinstance(vectors, TextVectors):
        _check_order(pipe, texts, rows)
    return rows


def _check_order(pipe: SentenceBert, texts: Sequence[str], vectors: numpy.ndarray) -> None:
    """Encode a few of the texts, and raise ValueError if the given vectors seem to be of others.

    Of all given vectors its own must be the most similar to the new vector of a text, except for
    rounding and a prompt.
    """
    places = numpy.unique(numpy.linspace(0, len(texts) - 1, _COMPARED).round().astype("int64"))
    # The given ones may be truncated
    new = pipe.encode([texts[place] for place in places])[:, : vectors.shape[1]]
    scores, best = nearest(new, vectors, k=1)
    own = cosine(new, vectors[places])
    is_other = own < scores[:, 0] - _LESS_SIMILAR
    if is_other.any():
        first = int(is_other.argmax())
        place = int(places[first])
        raise ValueError(
            f"Vector {place} is not of the text {short_repr(texts[place])}: its cosine to a new "
            f"one is {own[first]:.2f}, and that of vector {best[first, 0]} is "
            f"{scores[first, 0]:.2f}. Give vectors by this encoder, in the order of the texts."
        )


def encode_queries(
    pipe: SentenceBert, queries: Sequence[str], prompt: str | None, *, progress: bool
) -> numpy.ndarray:
    """Return the vectors of queries, float32 (n, width).

    RAISES (ValueError): if one has no text.
    """
    vectors = pipe.encode(queries, prompt_name=prompt, progress=progress)
    empty = numpy.flatnonzero(~vectors.any(axis=1))
    if len(empty):
        first = int(empty[0])
        named = f"query number {first + 1}, {queries[first][:50]!r}"
        raise ValueError(Errors.SEARCH_EMPTY_QUERY.format(query=named))
    return vectors
