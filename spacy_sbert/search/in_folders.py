"""Search among stored vectors, alone or through their index: what `search` of a folder does."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..component.sbert import SentenceBert
from ..errors.checks import Positive
from ..errors.progress import ticking
from .encoder import check_encoder, identify
from .index import VectorIndex
from .index_folder import read_manifest
from .stored import StoredVectors, identity_of, nearest_stored
from .texts import encode_queries


class FoundVector(NamedTuple):
    """A vector that was found: cosine similarity to the query, its file, its row there (from 0), its id and its text
    where they were written."""

    score: float
    part: str
    row: int
    id: str | int | None
    text: str | None


def is_of_stored(folder: Path) -> bool:
    """Whether an index is of stored vectors. RAISES (OSError, ValueError): if there is no index that can be read."""
    return read_manifest(folder).vectors is not None


def search_folder(
    pipe: SentenceBert,
    folder: Path,
    queries: Sequence[str],
    *,
    is_index: bool,
    open_vectors: Callable[[str], StoredVectors],
    k: Positive = 10,
    vectors: str | None = None,
    query_prompt: str | None = None,
    progress: bool = False,
) -> list[list[FoundVector]]:
    """The vectors of a folder that are most similar to each query.

    pipe (SentenceBert): what made them. queries (Sequence[str]): what to search for.
    folder (Path): stored vectors, all of which are read, or an index of such, of whose candidates the best are found.
    is_index (bool): which of them it is.
    open_vectors (Callable): opens a folder of stored vectors, as bulk.PartVectors.
    k (int): how many for each query; all if there are fewer.
    vectors (str): the folder of the vectors of an index, if they stand elsewhere than when it was built.
    query_prompt (str): the encoder's prompt for the queries, by its name. progress (bool): whether to show bars.
    RETURNS (list of lists of FoundVector): the best first.
    RAISES (ValueError): if a query has no text; if vectors are of another encoder, or not those of the index.
    """
    encoder = identify(pipe)
    index = VectorIndex.load(folder, encoder=encoder) if is_index else None
    stored = open_vectors(vectors or (index and index.folder) or str(folder))
    check_encoder(identity_of(stored), encoder, stored.name)
    wanted, k = encode_queries(pipe, queries, query_prompt, progress=progress), min(k, stored.shape[0])
    if index is None:
        scores, rows = nearest_stored(wanted, stored, k=k, progress=progress)
    else:
        with ticking("Searching", shown=progress):
            scores, rows = index.search(wanted, k=k, vectors=stored)
    return [
        [FoundVector(score, *where) for score, where in zip(own.tolist(), stored.where(found), strict=True)]
        for own, found in zip(scores, rows, strict=True)
    ]
