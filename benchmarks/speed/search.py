"""How fast the most similar pair of 10,000 sentences is found, and how fast they are clustered.

Usage: python benchmarks/speed/search.py [TEXT_FILE_OR_FOLDER] [--n 10000] [--output FILE.json]
A text file has one sentence a line. A folder has the data of STS below sts/, as SPACY_SBERT_DATA does, which is the
default: sentences of the STS benchmark and of STS12 to STS16. The first n different ones are encoded, which is not part
of the other times. Prints the result, and writes it.
SOURCE: Reimers and Gurevych 2019, section 1: 10,000 sentences take BERT 65 hours, and sentence vectors 5 seconds.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy
import spacy
from thinc.util import to_numpy

from spacy_sbert.evaluation.speed import machine
from spacy_sbert.files.environment import versions
from spacy_sbert.search import hierarchical_clusters, most_similar_pairs

REPETITIONS = 5
THRESHOLD = 0.4  # of cosine distance, at which the number of clusters is reported
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
            f"{source} has {len(found)} different sentences, expected {n}: give more data, or a lower --n."
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


def measure(texts: list[str]) -> dict[str, Any]:
    vectors, encoding = timed(lambda: encode(texts))
    (scores, pairs), searches = timed(lambda: most_similar_pairs(vectors), REPETITIONS)
    labels, clustering = timed(lambda: hierarchical_clusters(vectors, threshold=THRESHOLD))
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
        "machine": machine(),
        "versions": versions(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?", type=Path, default=os.environ.get("SPACY_SBERT_DATA"))
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    if args.source is None:
        parser.error("give a text file or a folder, or set SPACY_SBERT_DATA")
    result = json.dumps(measure(first_distinct(args.source, args.n)), indent=2, ensure_ascii=False)
    print(result)
    if args.output:
        args.output.write_text(result + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
