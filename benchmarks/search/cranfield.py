"""Retrieval on Cranfield: whole documents and passages, by vectors, words, and both.

python benchmarks/search/cranfield.py DATA [--encoder NAME_OR_FOLDER] [--max-length 128]
    [--output FILE.json]

DATA holds retrieval/cranfield. Documents are encoded whole, up to the encoder's limit; as passages
alone; and as passages in the context of their document, of which the best one counts. The first 100
documents are also put in the order of MaxSim, of the same encoder's wordpieces. It prints
means over the queries with 95 % bootstrap intervals (1,000 resamples, seed 1), the differences in
nDCG@10 from vectors of whole documents with theirs, and how far the measures of these vectors are
from those of InformationRetrievalEvaluator of sentence-transformers, with grades above 0 as 1.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy
import spacy
import torch
from sentence_transformers.evaluation import InformationRetrievalEvaluator
from spacy.language import Language
from spacy.tokens import Doc

from spacy_sbert import find_sbert
from spacy_sbert.evaluation.protocols.speed import machine
from spacy_sbert.evaluation.ranking_measures import DEPTH, ranking_measures
from spacy_sbert.evaluation.results import interval, mean_of, resample
from spacy_sbert.evaluation.retrieval_data import Collection, read_cranfield
from spacy_sbert.files.serialization import versions
from spacy_sbert.search import nearest, rank_by_max_sim, reciprocal_rank_fusion
from spacy_sbert.search.bm25 import BM25
from spacy_sbert.search.exact import Best

SPANS = {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc+chunk"}


def best_of_documents(found: Best, documents: numpy.ndarray, n_documents: int) -> Best:
    """Return the documents of the passages that were found, each by its best passage.

    documents (int (passages,)): that of each passage.
    """
    scores, rows = found
    best = numpy.full((len(scores), n_documents), -numpy.inf, dtype="float32")
    for query, own in enumerate(rows):
        numpy.maximum.at(best[query], documents[own], scores[query])
    order = numpy.argsort(-best, axis=1, kind="stable")[:, :DEPTH]
    return numpy.take_along_axis(best, order, axis=1), order


def reranked(
    queries: Sequence[str], docs: Sequence[Doc], nlp: Language, found: Best
) -> numpy.ndarray:
    """Return the rows that were found in the order of MaxSim; those without text come last.

    docs (Sequence): the documents, processed by nlp.
    """
    best = numpy.empty_like(found[1])
    for place, (query, rows) in enumerate(zip(nlp.pipe(queries), found[1], strict=True)):
        with_text = [row for row in rows.tolist() if len(docs[row])]
        ranked = rank_by_max_sim(query, [docs[row] for row in with_text])
        order = [with_text[each.index] for each in ranked]
        best[place] = order + [row for row in rows.tolist() if not len(docs[row])]
    return best


def whole_documents(collection: Collection, encoder: str) -> tuple[Language, list[Doc]]:
    """Return a pipeline of an encoder, and the documents of a collection that it processed."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": encoder}})
    return nlp, list(nlp.pipe(collection.documents))


def searches(
    collection: Collection,
    encoder: str,
    max_length: int,
    whole_nlp: Language,
    docs: Sequence[Doc],
) -> Iterator[tuple[str, Best]]:
    """Yield what each search finds; the first are vectors of whole documents.

    docs (Sequence): the documents, processed by whole_nlp.
    """
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("sbert_chunks", config={"max_length": max_length, "min_length": 16})
    model = {"name": encoder, "get_spans": SPANS, "overflow": "windows"}
    nlp.add_pipe("sbert", config={"model": model})
    sbert = find_sbert(nlp)
    texts = list(collection.documents)
    n = len(texts)
    queries = sbert.encode(collection.queries)
    vectors = nearest(queries, numpy.stack([doc.vector for doc in docs]), k=DEPTH)
    words = BM25.build(texts).search(collection.queries, k=DEPTH)
    both = reciprocal_rank_fusion([vectors, words], k=DEPTH)
    for name, found in (("vectors", vectors), ("BM25", words), ("hybrid", both)):
        yield f"whole: {name}", found
        ranked = reranked(collection.queries, docs, whole_nlp, found)
        yield f"whole: {name}, reranked by MaxSim", (found[0], ranked)
    numbers: list[int] = []
    spans: list[str] = []
    alone: list[numpy.ndarray] = []
    context: list[numpy.ndarray] = []
    for number, doc in enumerate(nlp.pipe(texts)):
        for span in doc.spans["chunks"]:
            numbers.append(number)
            spans.append(span.text)
            alone.append(sbert.vector(span))
            context.append(sbert.vector(span, context=True))
    documents = numpy.array(numbers)
    k = len(documents)
    words_of_passages = BM25.build(spans).search(collection.queries, k=k)
    by_words = best_of_documents(words_of_passages, documents, n)
    yield f"{k} passages: BM25", by_words
    for name, rows in (("alone", alone), ("in context", context)):
        found = best_of_documents(nearest(queries, numpy.stack(rows), k=k), documents, n)
        yield f"{k} passages {name}: vectors", found
        yield f"{k} passages {name}: hybrid", reciprocal_rank_fusion([found, by_words], k=DEPTH)
        yield (
            f"{k} passages {name} and whole: vectors",
            reciprocal_rank_fusion([found, vectors], k=DEPTH),
        )


def parity(
    collection: Collection, nlp: Language, docs: Sequence[Doc], found: Best
) -> dict[str, float]:
    """Return how far our measures of whole documents are from those of sentence-transformers.

    docs (Sequence): the documents, processed by nlp.
    """
    sbert = find_sbert(nlp)
    vector_of = {doc.text: doc.vector for doc in docs}

    class Encoder:
        """Our vectors for their evaluator, which encodes queries and documents."""

        def encode(self, texts: list[str], **kwargs: object) -> torch.Tensor:
            if texts[0] in vector_of:
                vectors = numpy.stack([vector_of[text] for text in texts])
            else:
                vectors = sbert.encode(texts)
            return torch.from_numpy(vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True))

        encode_query = encode
        encode_document = encode

    # In the order of the rows, as empty documents have no length
    kept = [row for row, text in enumerate(collection.documents) if text.strip()]
    relevant = [{row for row, gain in gains.items() if gain > 0} for gains in collection.gains]
    evaluator = InformationRetrievalEvaluator(
        {str(row): text for row, text in enumerate(collection.queries)},
        {f"{row:05d}": collection.documents[row] for row in kept},
        {str(row): {f"{each:05d}" for each in rows} for row, rows in enumerate(relevant)},
        mrr_at_k=[10],
        ndcg_at_k=[10],
        precision_recall_at_k=[DEPTH],
        map_at_k=[DEPTH],
        score_functions={"cosine": lambda a, b: a @ b.T},
    )
    theirs = evaluator.compute_metrices(Encoder())["cosine"]
    ours = ranking_measures(found[1], [dict.fromkeys(rows, 1) for rows in relevant])
    expected = {
        "ndcg_at_10": theirs["ndcg@k"][10],
        "mrr_at_10": theirs["mrr@k"][10],
        "recall_at_100": theirs["recall@k"][DEPTH],
        "map_at_100": theirs["map@k"][DEPTH],
    }
    return {name: float(abs(ours[name].mean() - value)) for name, value in expected.items()}


def markdown(report: dict[str, Any]) -> str:
    """Return the figures of a report as a table, x 100."""

    def shown(cell: list[Any]) -> str:
        mean, (low, high) = cell
        return f"{100 * mean:.2f} ({100 * low:.1f} to {100 * high:.1f})"

    lines = [
        "| search | nDCG@10 | difference from the first | MRR@10 | recall@100 | MAP@100 |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in report.items():
        if "ndcg_at_10 more" in row:
            means = [
                f"{100 * row[key][0]:.2f}" for key in ("mrr_at_10", "recall_at_100", "map_at_100")
            ]
            cells = [name, shown(row["ndcg_at_10"]), shown(row["ndcg_at_10 more"]), *means]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--encoder", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    collection = read_cranfield(given.data / "retrieval" / "cranfield")
    report: dict[str, Any] = {}
    first: tuple[Best, numpy.ndarray] | None = None
    nlp, docs = whole_documents(collection, given.encoder)
    for name, found in searches(collection, given.encoder, given.max_length, nlp, docs):
        measures = ranking_measures(found[1], collection.gains)
        row: dict[str, Any] = {}
        for measure, values in measures.items():
            ends = interval(resample(mean_of(values), len(values), 1000, 1))
            row[measure] = [float(values.mean()), ends]
        ndcg = measures["ndcg_at_10"]
        if first is None:
            first = (found, ndcg)
        gain = ndcg - first[1]
        row["ndcg_at_10 more"] = [
            float(gain.mean()),
            interval(resample(mean_of(gain), len(gain), 1000, 1)),
        ]
        report[name] = row
        print(name, json.dumps(row), flush=True)
    if first is not None:
        report["differences from sentence-transformers"] = parity(collection, nlp, docs, first[0])
        print(report["differences from sentence-transformers"])
    if given.output is not None:
        report |= {
            "machine": machine(),
            "versions": {**versions(), "bm25s": version("bm25s")},
        }
        given.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf8")
        given.output.with_suffix(".md").write_text(markdown(report), encoding="utf8")


if __name__ == "__main__":
    main()
