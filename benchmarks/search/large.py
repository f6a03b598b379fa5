"""An index on disk of many vectors that stand in parts: memory and time to build it, and what it
finds.

Usage: python benchmarks/search/large.py PIPELINE [SOURCE] --work FOLDER [--n 1000000] [--parts 10]
    [--output FOLDER]
SOURCE: a folder with corpora/english_sentences.tsv.gz, as SPACY_SBERT_DATA names, which is the
    default. Of its distinct
sentences 1000 are held out as queries; the others, and the first and the second half of each, in an
order drawn at random, are written to the work folder, encoded there in float16, and indexed by a
process of its own, whose peak of memory is compared with that before it began (Linux). Parts that
are there already are not encoded again. Writes large.json and large.md to the output folder.
"""

import argparse
import json
import os
import time
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import faiss
import numpy
import spacy

from spacy_sbert.bulk import PartVectors, encode_dataset
from spacy_sbert.evaluation.protocols.speed import machine
from spacy_sbert.files.serialization import versions
from spacy_sbert.meta.fit import read_sentences
from spacy_sbert.search import VectorIndex, build_ivfpq, nearest_stored, recall

K = 10
HELD_OUT = 1000
RESCORED = (4, 10, 40)


def make_texts(source: Path, folder: Path, n: int, parts: int, seed: int) -> list[str]:
    """Write n texts to files, and return the queries."""
    sentences = list(dict.fromkeys(read_sentences(source / "corpora/english_sentences.tsv.gz", 2)))
    rng = numpy.random.default_rng(seed)
    order = rng.permutation(len(sentences))
    queries, kept = (
        [sentences[i] for i in chosen] for chosen in (order[:HELD_OUT], order[HELD_OUT:])
    )
    words = [sentence.split() for sentence in kept]
    halves = [
        " ".join(half)
        for one in words
        for half in (one[: len(one) // 2], one[len(one) // 2 :])
        if half
    ]
    texts = list(dict.fromkeys([*kept, *halves]))[:n]
    if len(texts) < n:
        raise SystemExit(f"There are {len(texts)} different texts, expected {n}: give a lower --n.")
    folder.mkdir(parents=True, exist_ok=True)
    mixed = rng.permutation(n)
    for number, own in enumerate(numpy.array_split(mixed, parts)):
        path = folder / f"{number:03}.txt"
        text = "".join(f"{texts[i]}\n" for i in own)
        if not path.exists() or path.read_text(encoding="utf8") != text:
            path.write_text(text, encoding="utf8")
    return queries


def memory(which: str) -> int:
    """Bytes in memory: VmRSS now, VmHWM the most since the mark was taken back."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(which)).split()[1])


def build(vectors: str, folder: str, answer: Any) -> None:
    """Build an index, and say how long that took and how much memory."""
    stored = PartVectors(vectors)
    # Imports
    stored[numpy.array([0])]
    faiss.IndexFlatIP(8).add(numpy.ones((1, 8), dtype="float32"))
    # VmHWM is VmRSS from here
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before, start = memory("VmRSS"), time.perf_counter()
    build_ivfpq(stored, folder)
    answer.send(
        {"seconds": round(time.perf_counter() - start, 1), "peak_bytes": memory("VmHWM") - before}
    )


def searched(
    index: VectorIndex, queries: numpy.ndarray, exact: numpy.ndarray, **options: Any
) -> dict[str, float]:
    start = time.perf_counter()
    _, found = index.search(queries, k=K, **options)
    seconds = time.perf_counter() - start
    return {
        "recall_at_10": round(recall(found, exact), 4),
        "first_found": round(float((found == exact[:, :1]).any(axis=1).mean()), 4),
        "query_ms": round(1000 * seconds / len(queries), 2),
    }


def table(result: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = [
        "| candidates scored by their vectors | recall@10 | nearest found | a query of 1000, ms |",
        "|---|---|---|---|",
    ]
    for name, one in result["search"].items():
        lines.append(
            f"| {name} | {one['recall_at_10']:.3f} | {one['first_found']:.3f} | "
            f"{one['query_ms']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pipeline")
    parser.add_argument("source", nargs="?", type=Path, default=os.environ.get("SPACY_SBERT_DATA"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--parts", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    if args.source is None:
        raise SystemExit(
            "Give a folder with corpora/english_sentences.tsv.gz, or set SPACY_SBERT_DATA."
        )
    texts, vectors, folder = (args.work / name for name in ("texts", "vectors", "index"))
    queries = make_texts(Path(args.source), texts, args.n, args.parts, args.seed)
    start = time.perf_counter()
    encode_dataset(texts, vectors, pipeline=args.pipeline, dtype="float16", progress=True)
    encode_seconds = time.perf_counter() - start
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=build, args=(str(vectors), str(folder), theirs))
    process.start()
    process.join()
    built = ours.recv()
    stored, index = PartVectors(vectors), VectorIndex.load(folder)
    encoded = spacy.load(args.pipeline).get_pipe("sbert").encode(queries)
    exact = nearest_stored(encoded, stored, k=K)[1]
    ways = {"none": searched(index, encoded, exact)}
    for rescore in RESCORED:
        ways[str(rescore * K)] = searched(index, encoded, exact, vectors=stored, rescore=rescore)
    result = {
        "vectors": stored.shape[0],
        "width": stored.shape[1],
        "encoder": stored.encoder[0],
        "parts": len(stored.parts),
        "part_bytes": max((vectors / part.vectors).stat().st_size for part in stored.parts),
        "index_bytes": sum(path.stat().st_size for path in folder.iterdir()),
        "n_lists": index.index.nlist,
        "probed": index.index.nprobe,
        "code_bytes": index.index.code_size,
        "encode_seconds": round(encode_seconds, 1),
        "build": built,
        "search": ways,
        "seed": args.seed,
        "machine": {**machine(), "faiss_threads": faiss.omp_get_max_threads()},
        "versions": {**versions(), "faiss-cpu": version("faiss-cpu")},
    }
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "large.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf8")
    (args.output / "large.md").write_text(table(result), encoding="utf8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
