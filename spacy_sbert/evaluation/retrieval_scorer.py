"""The scorer of retrieval for `spacy train`: a collection is searched at each evaluation."""

from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

from spacy.training import Example

from ..pipeline.sbert import SentenceBert
from ..search.exact import nearest
from ..validation import Name, validated
from .ranking_measures import DEPTH, ranking_measures
from .retrieval_data import Collection, read_beir


@validated
def make_retrieval_scorer(path: Path | str, split: Name = "dev") -> Callable[..., dict[str, float]]:
    """Return the scorer of an `sbert` pipe by how it retrieves documents.

    path (str): a folder in BEIR's layout, see read_beir; it is read at the first evaluation, so
        that a trained pipeline loads without it.
    split (str): of its judgements, qrels/SPLIT.tsv.
    """
    # Encoded anew at each evaluation, but read once
    return partial(_score, read=cache(partial(read_beir, Path(path), split)))


def _score(
    examples: Iterable[Example],
    *,
    read: Callable[[], Collection],
    pipe: SentenceBert,
    **kwargs: Any,
) -> dict[str, float]:
    """Return ranking_measures of exact search, means over the queries.

    The examples are not read: the corpus of `spacy train` may hold one.

    RAISES (ValueError): if the pipe encodes no texts, or as read_beir.
    """
    if not isinstance(pipe, SentenceBert):
        raise ValueError(
            f"The pipe '{pipe.name}' cannot be scored by spacy-sbert.retrieval_scorer.v1: expected "
            "an 'sbert' pipe. Set another scorer for it."
        )
    collection = read()
    documents = pipe.encode(collection.documents, prompt=pipe.prompt_of_role("document"))
    queries = pipe.encode(collection.queries, prompt=pipe.prompt_of_role("query"))
    _, rows = nearest(queries, documents, k=min(DEPTH, len(documents)))
    measures = ranking_measures(rows, collection.gains)
    return {name: float(values.mean()) for name, values in measures.items()}
