"""How much of what exact search finds indexes and quantised vectors find, how fast, and in how many
bytes.

Usage: python benchmarks/search/recall.py [SOURCE] [--vectors FILE.npy] [--queries FILE.npy]
    [--output FOLDER]
SOURCE: a text file, or a folder with corpora/english_sentences.tsv.gz, as SPACY_SBERT_DATA names,
    which is the default:
distinct sentences are drawn at random and encoded by the default encoder (precision "auto"). With
--vectors they are kept there; if the file is there already it is taken as it is, whatever made it,
and no SOURCE is needed. Of the vectors 1000 are drawn as queries and held out, unless --queries
gives others. Writes recall.json and recall.md to the folder.
"""

import argparse
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import faiss
import numpy
import spacy

from spacy_sbert.evaluation.protocols.speed import machine
from spacy_sbert.files.atomic import atomic_write
from spacy_sbert.files.serialization import versions
from spacy_sbert.meta.fit import read_sentences
from spacy_sbert.search import BinaryVectors, Int8Vectors, VectorIndex, nearest, recall

K = 10
# Vectors that the ranges of int8 are learned from
SAMPLE = 10_000
# Queries that are searched one by one
SINGLE = 100
Search = Callable[[numpy.ndarray], tuple[numpy.ndarray, numpy.ndarray]]
# What searches, and how many bytes it keeps
Built = tuple[Search, Callable[[], int]]
Build = Callable[[numpy.ndarray], Built]


def encode(source: Path, n: int, seed: int) -> numpy.ndarray:
    """The vectors of n distinct sentences, drawn at random: float32 (n, width)."""
    path, column = (
        (source / "corpora/english_sentences.tsv.gz", 2) if source.is_dir() else (source, None)
    )
    sentences = list(dict.fromkeys(read_sentences(path, column)))
    if len(sentences) < n:
        raise SystemExit(
            f"{path} has {len(sentences)} different sentences, expected {n}: give more, or a "
            "lower --n."
        )
    drawn = numpy.random.default_rng(seed).choice(len(sentences), n, replace=False)
    sbert = spacy.blank("en").add_pipe("sbert", config={"model": {"precision": "auto"}})
    return sbert.encode([sentences[i] for i in drawn], progress=True)


def load(args: argparse.Namespace) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The queries and the vectors to search in."""
    held_out = 0 if args.queries else args.held_out
    if args.vectors and args.vectors.exists():
        vectors = numpy.load(args.vectors, allow_pickle=False)
    elif args.source is None:
        raise SystemExit(
            "Give a text file or a folder, or set SPACY_SBERT_DATA, or give --vectors that are "
            "there."
        )
    else:
        vectors = encode(args.source, args.n + held_out, args.seed)
        if args.vectors:
            with atomic_write(args.vectors) as file:
                numpy.save(file, vectors)
    if args.queries:
        return numpy.load(args.queries, allow_pickle=False), vectors
    order = numpy.random.default_rng(args.seed).permutation(len(vectors))
    return vectors[numpy.sort(order[:held_out])], vectors[numpy.sort(order[held_out:])]


def of_index(kind: str) -> Build:
    def build(vectors: numpy.ndarray) -> Built:
        index = VectorIndex.build(vectors, kind=kind)
        return lambda queries: index.search(queries, k=K), lambda: file_bytes(index)

    return build


def file_bytes(index: VectorIndex) -> int:
    """The size of the file of an index."""
    with tempfile.TemporaryDirectory() as folder:
        index.save(folder)
        return next(Path(folder).glob("*.faiss")).stat().st_size


def of_exact(vectors: numpy.ndarray) -> Built:
    return lambda queries: nearest(queries, vectors, k=K), lambda: vectors.nbytes


def of_int8(vectors: numpy.ndarray) -> Built:
    drawn = numpy.random.default_rng(0).choice(
        len(vectors), min(SAMPLE, len(vectors)), replace=False
    )
    stored = Int8Vectors.fit(vectors[drawn]).apply(vectors)
    n_bytes = stored.codes.nbytes + stored.low.nbytes + stored.step.nbytes
    return lambda queries: stored.search(queries, k=K), lambda: n_bytes


def of_binary(rescore: int, by_vectors: bool) -> Build:
    def build(vectors: numpy.ndarray) -> Built:
        stored, by = BinaryVectors.of(vectors), vectors if by_vectors else None
        search = partial(stored.search, k=K, rescore=rescore, vectors=by)
        return search, lambda: stored.bits.nbytes

    return build


WAYS: dict[str, Build] = {
    "exact, `nearest`": of_exact,
    "index, flat": of_index("flat"),
    "index, hnsw": of_index("hnsw"),
    "index, ivf": of_index("ivf"),
    "int8": of_int8,
    "binary, Hamming": of_binary(0, False),
    "binary, 40 rescored by signs": of_binary(4, False),
    "binary, 40 rescored by float32": of_binary(4, True),
    "binary, 200 rescored by float32": of_binary(20, True),
}


def measure(
    build: Build, queries: numpy.ndarray, vectors: numpy.ndarray, exact: numpy.ndarray, rounds: int
) -> dict[str, Any]:
    """Build once, search for all queries together in rounds and for some of them one by one."""
    start = time.perf_counter()
    search, n_bytes = build(vectors)
    build_seconds = time.perf_counter() - start
    found = search(queries)[1]
    together, alone = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        search(queries)
        together.append(1000 * (time.perf_counter() - start) / len(queries))
    for query in queries[:SINGLE]:
        start = time.perf_counter()
        search(query[None])
        alone.append(1000 * (time.perf_counter() - start))
    return {
        "build_seconds": round(build_seconds, 2),
        "query_ms_together": round(median(together), 3),
        "query_ms_alone": round(median(alone), 3),
        "bytes": n_bytes(),
        "recall_at_10": round(recall(found, exact), 4),
        "first_found": round(float((found == exact[:, :1]).any(axis=1).mean()), 4),
    }


def table(result: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = [
        "| | build, s | a query alone, ms | of 1000 together, ms | MB | recall@10 | nearest found |"
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    for name, way in result["ways"].items():
        times = (
            f"{way['build_seconds']:.1f} | {way['query_ms_alone']:.2f} | "
            f"{way['query_ms_together']:.2f}"
        )
        scores = f"{way['recall_at_10']:.3f} | {way['first_found']:.3f}"
        lines.append(f"| {name} | {times} | {way['bytes'] / 1e6:.1f} | {scores} |")
    return "\n".join(lines).replace("of 1000", f"of {result['queries']}", 1) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", type=Path, default=os.environ.get("SPACY_SBERT_DATA"))
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--held-out", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    args.source = Path(args.source) if args.source else None
    queries, vectors = load(args)
    exact = nearest(queries, vectors, k=K)[1]
    result: dict[str, Any] = {
        "vectors": len(vectors),
        "width": vectors.shape[1],
        "queries": len(queries),
        "sha256": hashlib.sha256(numpy.ascontiguousarray(vectors).data).hexdigest(),
        "seed": args.seed,
        "rounds": args.rounds,
        "ways": {},
        "machine": {**machine(), "faiss_threads": faiss.omp_get_max_threads()},
        "versions": {**versions(), "faiss-cpu": version("faiss-cpu")},
    }
    args.output.mkdir(parents=True, exist_ok=True)
    for name, build in WAYS.items():
        result["ways"][name] = measure(build, queries, vectors, exact, args.rounds)
        print(name, result["ways"][name], flush=True)
        for file, text in (
            ("recall.json", json.dumps(result, indent=2) + "\n"),
            ("recall.md", table(result)),
        ):
            (args.output / file).write_text(text, encoding="utf8")
    print(table(result))


if __name__ == "__main__":
    main()
