"""The most similar pair of 10,000 sentences, and clusters of them: Sentence-BERT, sections 1 and 8.

    python benchmarks/papers/pair_search.py [--encoders NAME ...] [--n 10000] [--pairs 1000]
    --output benchmarks/papers/results/pair-search

Sentences: the first n different ones of the STS benchmark and of STS12 to STS16. They are encoded
three times: in padded batches of 32 in their order; the same sorted by length, smart batching in
the paper; and as the pipeline encodes. A cross-encoder of the first encoder's weights, with a new
head, scores --pairs pairs, drawn with seed 0, and what all n (n - 1) / 2 would take is computed
from that. Times need a quiet machine; the pair that is found, its similarity and the number of
clusters do not depend on it.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import spacy
from runs import markdown, write_json
from spacy.util import import_file

from spacy_sbert import find_sbert
from spacy_sbert.evaluation.protocols.speed import machine
from spacy_sbert.files.serialization import versions
from spacy_sbert.search import hierarchical_clusters, most_similar_pairs

SPEED = Path(__file__).parent.parent / "speed"
# For what search.py imports
sys.path.append(str(SPEED))
speed_search: Any = import_file("speed_search", SPEED / "search.py")

# Of the cosine distance of clusters
THRESHOLD: float = speed_search.THRESHOLD
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
WARM_UP = 64


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what the work gives, and its seconds."""
    result, (seconds,) = speed_search.timed(work)
    return result, seconds


def encoder_of(name: str, **settings: object) -> Any:
    """Return a pipe, loaded and warmed up."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": name, **settings}})
    sbert = find_sbert(nlp)
    sbert.encode(["a sentence"] * WARM_UP)
    return sbert


def measured(name: str, texts: list[str]) -> dict[str, Any]:
    """Return the seconds of each step with an encoder, and what was found."""
    padded = encoder_of(name, precision="reference")
    by_length = sorted(texts, key=len)
    _, in_order = timed(lambda: padded.encode(texts))
    _, is_sorted = timed(lambda: padded.encode(by_length))
    sbert = encoder_of(name)
    vectors, own = timed(lambda: sbert.encode(texts))
    (scores, rows), search = timed(lambda: most_similar_pairs(vectors))
    labels, clusters = timed(lambda: hierarchical_clusters(vectors, threshold=THRESHOLD))
    return {
        "seconds": {
            "encode, padded": in_order,
            "encode, sorted": is_sorted,
            "encode, as it is": own,
            "pair": search,
            "clusters": clusters,
        },
        "pair": [texts[row] for row in rows[0]],
        "similarity": float(scores[0]),
        "clusters": int(labels.max()) + 1,
    }


def cross_encoder(name: str, texts: list[str], n_pairs: int) -> dict[str, Any]:
    """Return the seconds of some pairs, and of all by the same rate."""
    nlp = spacy.blank("en")
    reranker: Any = nlp.add_pipe("sbert_reranker", config={"model": {"name": name}})
    nlp.initialize()
    drawn = numpy.random.default_rng(0).integers(len(texts), size=(n_pairs, 2))
    pairs = [(texts[i], texts[j]) for i, j in drawn.tolist()]
    reranker.score_pairs(pairs[:WARM_UP])
    _, seconds = timed(lambda: reranker.score_pairs(pairs))
    n = len(texts)
    all_pairs = n * (n - 1) // 2
    return {
        "pairs": n_pairs,
        "seconds": seconds,
        "all_pairs": all_pairs,
        "hours of all": round(seconds / n_pairs * all_pairs / 3600, 1),
    }


def table(found: dict[str, Any]) -> str:
    """Return a row an encoder: seconds, and what was found."""
    encoders = found["encoders"]
    steps = list(next(iter(encoders.values()))["seconds"])
    rows = []
    for name, one in encoders.items():
        seconds = one["seconds"]
        whole = seconds["encode, as it is"] + seconds["pair"]
        row = [name, *(f"{seconds[step]:.1f}" for step in steps), f"{whole:.1f}"]
        rows.append([*row, f"{one['similarity']:.4f}", one["clusters"]])
    header = ["", *(f"{step}, s" for step in steps), "as it is, and the pair, s"]
    cross = found["cross-encoder"]
    said = (
        f"\nA cross-encoder took {cross['seconds']:.1f} s for {cross['pairs']} pairs. At this rate "
        f"all {cross['all_pairs']:,} take {cross['hours of all']:,.0f} hours.\n"
    )
    return markdown([*header, "similarity of the pair", "clusters"], rows) + said


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--encoders", nargs="+", default=[MINILM])
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    texts = speed_search.first_distinct(Path(os.environ["SPACY_SBERT_DATA"]), args.n)
    found: dict[str, Any] = {
        "sentences": args.n,
        "threshold": THRESHOLD,
        "encoders": {Path(name).name: measured(name, texts) for name in args.encoders},
        "cross-encoder": cross_encoder(args.encoders[0], texts, args.pairs),
        "machine": machine(),
        "versions": versions(),
    }
    args.output.mkdir(parents=True, exist_ok=True)
    write_json(args.output / "pairs.json", found)
    (args.output / "table.md").write_text(table(found), encoding="utf8")


if __name__ == "__main__":
    main()
