"""How fast the most similar pair of 10,000 sentences is found, how fast they are clustered, and
what others take.

Usage: python benchmarks/speed/search.py [TEXT_FILE_OR_FOLDER] [--n 10000] [--searched 100000]
    [--rounds 5] [--output FILE.json]
A text file has one sentence a line. A folder has the data of STS below sts/, as SPACY_SBERT_DATA
does, which is the
default: sentences of the STS benchmark and of STS12 to STS16. The first n different ones are
    encoded, which is not part
of the other times. Clusters, communities and the nearest of one query, among random vectors
(--searched of them, seed 0), are also found by other libraries, in turn: round by round, after a
first pass. Prints the result, and writes it.
SOURCE: Reimers and Gurevych 2019, section 1: 10,000 sentences take BERT 65 hours, and sentence
    vectors 5 seconds.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import faiss
import numpy
import spacy
import torch
from measure import Processor, alternate, timing
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist
from sentence_transformers.util import community_detection, semantic_search
from sklearn.cluster import AgglomerativeClustering
from sklearn.neighbors import NearestNeighbors
from thinc.util import to_numpy

from spacy_sbert.evaluation.protocols.speed import machine
from spacy_sbert.files.serialization import versions
from spacy_sbert.search import communities, hierarchical_clusters, most_similar_pairs, nearest

REPETITIONS = 5
# Of cosine distance, at which the number of clusters is reported
THRESHOLD = 0.4
# The least cosine similarity to the centre of a community
COMMUNITY = 0.75
# How many nearest are found of each query, and how many queries come, one after the other
K, QUERIES = (
    10,
    20,
)
Way = Callable[[], Any]
COLUMNS = {"STSBenchmark/sts-*.csv": slice(5, 7), "STS*/STS.input.*.txt": slice(0, 2)}


def sentences(source: Path) -> Iterator[str]:
    """The sentences of a text file or of the data of STS, in the order of the files' names."""
    if source.is_file():
        yield from source.read_text(encoding="utf8").split("\n")
        return
    for pattern, columns in COLUMNS.items():
        for path in sorted((source / "sts").glob(pattern)):
            for line in path.read_text(encoding="utf8").split("\n"):
                yield from line.split("\t")[columns]


def first_distinct(source: Path, n: int) -> list[str]:
    """The first n different sentences without white space around them."""
    stripped = (sentence.strip() for sentence in sentences(source))
    found = list(islice(dict.fromkeys(filter(None, stripped)), n))
    if len(found) < n:
        raise SystemExit(
            f"{source} has {len(found)} different sentences, expected {n}: give more data, or a "
            "lower --n."
        )
    return found


def encode(texts: list[str]) -> numpy.ndarray:
    """The sentence vectors of the default encoder: float32 (n, width)."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"token_vectors": False})
    return numpy.stack([to_numpy(doc.vector) for doc in nlp.pipe(texts, batch_size=64)])


def timed(work: Callable[[], Any], repetitions: int = 1) -> tuple[Any, list[float]]:
    """What the work gives, and the seconds of each repetition."""
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        result = work()
        seconds.append(round(time.perf_counter() - start, 4))
    return result, seconds


def nearest_ways(n: int, width: int) -> dict[str, Way]:
    """What finds the nearest vectors of queries that come alone, among vectors of any length: int
    (QUERIES, K).
    """
    random = numpy.random.default_rng(0)
    vectors = random.standard_normal((n, width), dtype="float32")
    queries = random.standard_normal((QUERIES, 1, width), dtype="float32")
    unit, k = vectors.copy(), min(K, n)
    faiss.normalize_L2(unit)
    index = faiss.IndexFlatIP(width)
    index.add(unit)
    neighbours = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute").fit(vectors)
    tensor = torch.from_numpy(vectors)

    def faiss_alone(query: numpy.ndarray) -> numpy.ndarray:
        rows = vectors.copy()
        faiss.normalize_L2(rows)
        return faiss.knn(query, rows, k, metric=faiss.METRIC_INNER_PRODUCT)[1]

    def torch_alone(query: numpy.ndarray) -> list[int]:
        return [
            one["corpus_id"] for one in semantic_search(torch.from_numpy(query), tensor, top_k=k)[0]
        ]

    def numpy_alone(query: numpy.ndarray) -> numpy.ndarray:
        return largest(vectors @ query[0] / numpy.linalg.norm(vectors, axis=1), k)

    alone: dict[str, Callable[[numpy.ndarray], Any]] = {
        "ours": lambda query: nearest(query, vectors, k=k)[1],
        "FAISS, flat index": lambda query: index.search(query, k)[1],
        "NumPy, length 1 before": lambda query: largest(unit @ query[0], k),
        "FAISS, copy and knn": faiss_alone,
        "NumPy": numpy_alone,
        "scikit-learn": lambda query: neighbours.kneighbors(query, return_distance=False),
        "sentence-transformers": torch_alone,
    }
    return {
        name: lambda way=way: numpy.reshape([way(query) for query in queries], (-1, k))
        for name, way in alone.items()
    }


def largest(scores: numpy.ndarray, k: int) -> numpy.ndarray:
    """The places of the k largest of scores (n,), the largest first."""
    found = numpy.argpartition(-scores, k - 1)[:k]
    return found[numpy.argsort(-scores[found])]


def cluster_ways(vectors: numpy.ndarray) -> dict[str, Way]:
    """What makes hierarchical clusters: labels (n,)."""
    distances = pdist(vectors, "cosine")
    theirs = AgglomerativeClustering(
        n_clusters=None, distance_threshold=THRESHOLD, metric="cosine", linkage="average"
    )
    return {
        "ours": lambda: hierarchical_clusters(vectors, threshold=THRESHOLD),
        "SciPy, of known distances": lambda: fcluster(
            linkage(distances, "average"), THRESHOLD, criterion="distance"
        ),
        "scikit-learn": lambda: theirs.fit_predict(vectors),
    }


def community_ways(vectors: numpy.ndarray) -> dict[str, Way]:
    """What finds communities: a list of groups of rows."""
    tensor = torch.from_numpy(vectors)
    return {
        "ours": lambda: communities(vectors, threshold=COMMUNITY),
        "sentence-transformers": lambda: community_detection(
            tensor, threshold=COMMUNITY, show_progress_bar=False
        ),
    }


def same_clusters(ours: numpy.ndarray, theirs: numpy.ndarray) -> bool:
    """Whether two labellings are the same but for the names of the labels."""
    pairs = len(set(zip(ours.tolist(), theirs.tolist(), strict=True)))
    return pairs == len(set(ours.tolist())) == len(set(theirs.tolist()))


def same_groups(ours: list[Any], theirs: list[Any]) -> bool:
    """Whether groups have the same members, in whatever order."""
    return {frozenset(map(int, group)) for group in ours} == {
        frozenset(map(int, group)) for group in theirs
    }


def compared(
    ways: Mapping[str, Way], same: Callable[[Any, Any], bool], rounds: int, items: int = 1
) -> dict[str, Any]:
    """The timing of each way, and whether it finds the same as ours.

    items (int): what each finds in a round, such as the nearest of so many queries.
    """
    found = {name: way() for name, way in ways.items()}
    seconds = alternate(ways, rounds)
    return {
        name: {**timing(seconds[name], items), "same": bool(same(found["ours"], found[name]))}
        for name in ways
    }


def measure(texts: list[str], searched: int, rounds: int) -> dict[str, Any]:
    start = Processor.read()
    vectors, encoding = timed(lambda: encode(texts))
    (scores, pairs), searches = timed(lambda: most_similar_pairs(vectors), REPETITIONS)
    labels, clustering = timed(lambda: hierarchical_clusters(vectors, threshold=THRESHOLD))
    beside = {
        f"nearest of one query among {searched}": compared(
            nearest_ways(searched, vectors.shape[1]), numpy.array_equal, rounds, QUERIES
        ),
        f"hierarchical clusters of {len(texts)}": compared(
            cluster_ways(vectors), same_clusters, rounds
        ),
        f"communities of {len(texts)}": compared(community_ways(vectors), same_groups, rounds),
    }
    return {
        "sentences": len(texts),
        "width": vectors.shape[1],
        "load_and_encode_seconds": encoding[0],
        "most_similar_pairs": {
            "median_seconds": median(searches),
            "seconds": searches,
            "score": float(scores[0]),
            "texts": [texts[i] for i in pairs[0]],
        },
        "hierarchical_clusters": {
            "seconds": clustering[0],
            "linkage": "average",
            "threshold": THRESHOLD,
            "clusters": int(labels.max()) + 1,
        },
        "beside": beside,
        "others": start.others(),
        "machine": machine(),
        "versions": {
            **versions(),
            **{name: version(name) for name in ("faiss-cpu", "sentence-transformers")},
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", type=Path, default=os.environ.get("SPACY_SBERT_DATA"))
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--searched", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    if args.source is None:
        parser.error("give a text file or a folder, or set SPACY_SBERT_DATA")
    result = json.dumps(
        measure(first_distinct(args.source, args.n), args.searched, args.rounds),
        indent=2,
        ensure_ascii=False,
    )
    print(result)
    if args.output:
        args.output.write_text(result + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
