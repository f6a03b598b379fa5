"""An index that grows: texts are added, replaced and deleted, it is saved, loaded, and killed while
it is saved. Prints times, memory, what was lost, and how it differs from one built at once.

Usage: python benchmarks/search/growing.py [SOURCE] [--vectors FILE.npy] [--encoder NAME_OR_FOLDER]
    [--n 100000] [--width 384] [--kinds flat,hnsw,ivf] [--kills 50] [--output FOLDER]
SOURCE: a folder with corpora/english_sentences.tsv.gz, as SPACY_SBERT_DATA names, which is the
    default; its distinct sentences are the texts.
n / 10 texts are added, n / 20 replaced and n / 20 deleted. --vectors has 1.15 n + 1000 rows, the
last 1000 of which are queries; with --encoder it is written if it is not there, of the texts.
Without it vectors are drawn at random. A process that saves the
changed index over the one before is killed, half of the times before it changes a file, half of
them at a moment drawn at random: the old or the new one must be there, whole. (Linux) Writes
growing.json and growing.md to the output folder.
"""

import argparse
import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import faiss
import numpy
import spacy

from spacy_sbert import find_sbert
from spacy_sbert.evaluation.protocols.speed import machine
from spacy_sbert.files.serialization import versions
from spacy_sbert.meta.fit import read_sentences
from spacy_sbert.search import VectorIndex, nearest, recall
from spacy_sbert.similarity import unit_length

K = 10
QUERIES = 1000
# What changes files: an event of each is a moment to be killed before
EVENTS = {"os.remove", "os.rename", "os.mkdir", "os.truncate"}


class Timed:
    """Seconds by the name of what took them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def run(self, name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        self.seconds[name] = round(time.perf_counter() - start, 3)
        return result


def drawn_vectors(path: Path | None, count: int, width: int, seed: int) -> numpy.ndarray:
    if path is None:
        rng = numpy.random.default_rng(seed)
        return rng.standard_normal((count, width), dtype="float32")
    vectors = numpy.load(path, allow_pickle=False)
    if len(vectors) < count:
        raise SystemExit(f"{path} has {len(vectors)} vectors, expected {count}: give a lower --n.")
    return vectors[:count].astype("float32")


def n_texts(n: int) -> int:
    """How many texts there are, with those that are added and those that replace others."""
    return n + n // 10 + n // 20


def encode_texts(encoder: str, texts: list[str], path: Path) -> None:
    """Write the vectors of texts to a .npy file."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": encoder}})
    numpy.save(path, find_sbert(nlp).encode(texts, progress=True))


def drawn_texts(source: Path | None, count: int) -> list[str]:
    """Distinct sentences, and numbered ones where they end."""
    texts: list[str] = []
    if source is not None:
        texts = list(dict.fromkeys(read_sentences(source / "corpora/english_sentences.tsv.gz", 2)))
    return [*texts[:count], *(f"text {i}" for i in range(len(texts), count))]


def row_columns(ids: list[int]) -> list[dict[str, Any]]:
    return [{"document": row_id // 10, "start_char": 100 * (row_id % 10)} for row_id in ids]


def stored_vectors(index: VectorIndex) -> numpy.ndarray:
    """The vector of each row."""
    vectors = index.index.reconstruct_n(0, index.index.ntotal)
    return vectors if index.places is None else vectors[index.places]


def changed(
    index: VectorIndex, vectors: numpy.ndarray, texts: list[str], n: int, seed: int, timed: Timed
) -> dict[int, int]:
    """Add, replace and delete. RETURNS (dict): the number of the vector of each id, in order."""
    rng = numpy.random.default_rng(seed)
    n_added = n // 10
    n_changed = n // 20
    model = {i: i for i in range(n)}

    def put(ids: list[int], numbers: list[int], **settings: Any) -> None:
        own = [texts[number] for number in numbers]
        index.add(vectors[numbers], ids=ids, texts=own, columns=row_columns(ids), **settings)
        for row_id, number in zip(ids, numbers, strict=True):
            model.pop(row_id, None)
            model[row_id] = number

    added = list(range(n, n + n_added))
    timed.run("add", lambda: put(added, added))
    replaced = rng.choice(n + n_added, n_changed, replace=False).tolist()
    others = list(range(n + n_added, n + n_added + n_changed))
    timed.run("replace", lambda: put(replaced, others, replace=True))
    deleted = rng.choice(list(model), n_changed, replace=False).tolist()
    timed.run("delete", lambda: index.delete(deleted))
    for row_id in deleted:
        del model[row_id]
    one = next(iter(model))
    timed.run("replace one", lambda: put([one], [model[one]], replace=True))
    return model


def compare(
    index: VectorIndex,
    once: VectorIndex,
    model: dict[int, int],
    vectors: numpy.ndarray,
    texts: list[str],
    queries: numpy.ndarray,
) -> dict[str, Any]:
    """What was lost, and how the results differ from those of an index built at once."""
    numbers = list(model.values())
    expected = [
        (texts[number], row_id, record)
        for (row_id, number), record in zip(model.items(), row_columns(list(model)), strict=True)
    ]
    rows = [(row.text, row.id, row.columns) for row in index.rows or ()]
    kept = vectors[numbers]
    is_same = numpy.isclose(stored_vectors(index), unit_length(kept), atol=1e-6).all(axis=1)
    exact = nearest(queries, kept, k=K)[1]
    scores, found = index.search(queries, k=K)
    once_scores, once_found = once.search(queries, k=K)
    return {
        "lost or wrong rows": sum(
            ours != theirs for ours, theirs in zip(rows, expected, strict=False)
        )
        + abs(len(rows) - len(expected)),
        "wrong vectors": int((~is_same).sum()),
        "recall": round(recall(found, exact), 4),
        "recall, built at once": round(recall(once_found, exact), 4),
        "same rows": round(float((found == once_found).mean()), 4),
        "same scores": round(float((scores == once_scores).mean()), 4),
    }


def save_and_be_killed(index: VectorIndex, folder: Path, event: int | None) -> None:
    """Save, and end this process before it changes a file for the n-th time."""
    left = [event]

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        is_write = (
            name == "open"
            and isinstance(arguments[2], int)
            and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if left[0] is None or not (is_write or name in EVENTS):
            return
        if not str(arguments[0]).startswith(str(folder)):
            return
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    sys.addaudithook(hook)
    index.save(folder)


def kill(
    old: Path, index: VectorIndex, folder: Path, kills: int, seconds: float, seed: int
) -> dict[str, int]:
    """Kill a process that saves the index over an old one, and count what is there then."""
    rng = numpy.random.default_rng(seed)
    context = get_context("fork")
    new = folder / "new"
    index.save(new)
    fingerprints = {"old": fingerprint(old), "new": fingerprint(new)}
    work = folder / "work"
    counts = {"old": 0, "new": 0, "lost": 0, "not killed": 0}
    for number in range(kills):
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(old, work)
        by_event = number % 2 == 0
        # About as many changes of files as there are, again and again
        event = (number // 2) % 16 if by_event else None
        process = context.Process(target=save_and_be_killed, args=(index, work, event))
        process.start()
        if not by_event:
            time.sleep(seconds * float(rng.random()))
            process.kill()
        process.join()
        if process.exitcode != -signal.SIGKILL:
            counts["not killed"] += 1
        there = fingerprint(work)
        found = [name for name, own in fingerprints.items() if own == there]
        counts[found[0] if found else "lost"] += 1
    return counts


def fingerprint(folder: Path) -> Any:
    """What is loaded: rows, and vectors."""
    try:
        index = VectorIndex.load(folder)
    except (OSError, ValueError) as error:
        return repr(error)
    return index.rows, hashlib.sha256(stored_vectors(index).tobytes()).digest()


def measure(kind: str, args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    n = args.n
    count = n_texts(n)
    vectors = drawn_vectors(args.vectors, count + QUERIES, args.width, args.seed)
    queries = vectors[count:]
    texts = drawn_texts(args.source, count)
    timed = Timed()
    ids = list(range(n))
    index = timed.run(
        "build",
        lambda: VectorIndex.build(
            vectors[:n], kind=kind, ids=ids, texts=texts[:n], columns=row_columns(ids)
        ),
    )
    old = folder / "old"
    timed.run("save", lambda: index.save(old))
    model = changed(index, vectors, texts, n, args.seed, timed)
    timed.run("save changed", lambda: index.save(folder / "saved"))
    loaded = timed.run("load", lambda: VectorIndex.load(folder / "saved"))
    kept = vectors[list(model.values())]
    once = timed.run("build at once", lambda: VectorIndex.build(kept, kind=kind))
    result = compare(loaded, once, model, vectors, texts, queries)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    kills = kill(old, index, folder, args.kills, timed.seconds["save changed"], args.seed)
    return {
        "texts": len(loaded),
        "vectors in FAISS": int(loaded.index.ntotal),
        "seconds": timed.seconds,
        "peak MB": round(peak),
        **result,
        "kills": kills,
    }


def measure_apart(kind: str, args: argparse.Namespace) -> dict[str, Any]:
    """Measure in a process of its own, whose memory is counted."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "result.json"
        work = get_context("spawn").Process(target=_write, args=(kind, args, Path(place), path))
        work.start()
        work.join()
        if work.exitcode:
            raise SystemExit(f"{kind}: the process ended with {work.exitcode}.")
        result: dict[str, Any] = json.loads(path.read_text())
    return result


def _write(kind: str, args: argparse.Namespace, folder: Path, path: Path) -> None:
    path.write_text(json.dumps(measure(kind, args, folder)))


def table(result: dict[str, Any]) -> str:
    """The results as Markdown."""
    kinds = result["kinds"]
    lines = [f"| | {' | '.join(kinds)} |", "|---" * (len(kinds) + 1) + "|"]
    first = next(iter(kinds.values()))
    for name in first["seconds"]:
        cells = [f"{own['seconds'][name]:.2f}" for own in kinds.values()]
        lines.append(f"| {name}, s | {' | '.join(cells)} |")
    for name in first:
        if name != "seconds":
            cells = [_cell(own[name]) for own in kinds.values()]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return str(value)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", type=Path, default=os.environ.get("SPACY_SBERT_DATA"))
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--encoder")
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--kinds", default="flat,hnsw,ivf")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    args.source = Path(args.source) if args.source else None
    if args.encoder is not None and args.vectors is None:
        parser.error("--encoder needs --vectors: the file to write to.")
    if args.encoder is not None and not args.vectors.exists():
        texts = drawn_texts(args.source, n_texts(args.n) + QUERIES)
        encode_texts(args.encoder, texts, args.vectors)
    result: dict[str, Any] = {
        "n": args.n,
        "vectors": args.encoder or str(args.vectors or f"random, {args.width} wide"),
        "seed": args.seed,
        "kinds": {},
        "machine": {**machine(), "faiss_threads": faiss.omp_get_max_threads()},
        "versions": {**versions(), "faiss-cpu": version("faiss-cpu")},
    }
    args.output.mkdir(parents=True, exist_ok=True)
    for kind in args.kinds.split(","):
        result["kinds"][kind] = measure_apart(kind, args)
        print(kind, result["kinds"][kind], flush=True)
        for file, text in (
            ("growing.json", json.dumps(result, indent=2) + "\n"),
            ("growing.md", table(result)),
        ):
            (args.output / file).write_text(text, encoding="utf8")
    print(table(result))


if __name__ == "__main__":
    main()
