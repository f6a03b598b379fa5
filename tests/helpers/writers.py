"""All that writes files: each as a call, and what is there when it is done; and calls in processes
of their own.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import spacy
from helpers.made_data import HashedSource, write_benchmark
from spacy.language import Language

from spacy_sbert.bulk import encode_file, file_encoding
from spacy_sbert.evaluation import Settings, evaluate_suites
from spacy_sbert.evaluation.suite import write_json
from spacy_sbert.files.atomic import atomic_write
from spacy_sbert.files.tables import write_table
from spacy_sbert.hub.cards import write_readme
from spacy_sbert.meta.component import fit_meta
from spacy_sbert.readers import convert
from spacy_sbert.search import BinaryVectors, VectorIndex

# That a call may take on a busy machine; what hangs takes for ever
SECONDS = 20
TEXTS = [
    "A man is eating.",
    "The cat sat.",
    "",
    "He cannot go.",
    "The dog ran fast.",
    "A meal.",
] * 4


class Writer(NamedTuple):
    """work: writes to a folder. result: what is there then, to compare."""

    work: Callable[[], Any]
    result: Callable[[], Any]


def encode(nlp: Language, folder: Path, suffix: str = ".npy") -> Writer:
    given = folder / "in.txt"
    output = folder / f"out{suffix}"
    given.write_text("\n".join(TEXTS) + "\n")
    return Writer(
        lambda: encode_file(nlp.get_pipe("sbert"), given, output, window=4, overwrite=True),
        output.read_bytes,
    )


def encode_parquet(nlp: Language, folder: Path) -> Writer:
    return encode(nlp, folder, ".parquet")


def resume(nlp: Language, folder: Path, suffix: str = ".npy") -> Writer:
    """A run that was broken off: what it kept is there."""
    writer = encode(nlp, folder, suffix)
    with pytest.MonkeyPatch.context() as patch, suppress(ZeroDivisionError):
        patch.setattr(file_encoding, f"_write_{suffix[1:]}", lambda *_: 1 / 0)
        writer.work()
    return writer


def convert_table(nlp: Language, folder: Path) -> Writer:
    given = folder / "in.tsv"
    output = folder / "out.spacy"
    given.write_text("text\n" + "\n".join(filter(None, TEXTS)) + "\n")
    return Writer(lambda: convert(given, output, members=["text"]), output.read_bytes)


def save_index(nlp: Language, folder: Path) -> Writer:
    vectors = nlp.get_pipe("sbert").encode(TEXTS)
    index = VectorIndex.build(vectors, texts=TEXTS)

    def result() -> Any:
        found = VectorIndex.load(folder / "index")
        return [row.text for row in found.rows or ()], found.search(vectors[:2], k=3)[1].tolist()

    return Writer(lambda: index.save(folder / "index"), result)


def save_vectors(nlp: Language, folder: Path) -> Writer:
    made = BinaryVectors.of(nlp.get_pipe("sbert").encode(TEXTS[:2]))
    return Writer(
        lambda: made.save(folder / "out.npz"),
        lambda: BinaryVectors.load(folder / "out.npz").bits.tolist(),
    )


def run_suite(data: Path, cache: Path | None) -> dict[str, Any]:
    """Results on the STS sets of a folder."""
    settings = Settings(any_count=True, bootstrap=0)
    return evaluate_suites(
        HashedSource(), data, ["sts"], settings=settings, cache=cache, progress_bar=False
    )


def evaluate(nlp: Language, folder: Path) -> Writer:
    for split in ("dev", "test"):
        write_benchmark(folder / "data", split)

    def run() -> dict:
        found = run_suite(folder / "data", folder / "cache")
        if found["failed"]:
            raise ValueError(str(found["failed"]))
        return {name: task["variants"] for name, task in found["tasks"].items()}

    return Writer(run, run)


def member_vectors(nlp: Language, texts: Iterable[str], cache: Path) -> list:
    """The vectors of two members that a meta-embedding is fitted on."""
    meta = spacy.blank("xx")
    for name in ("one", "two"):
        meta.add_pipe(
            "sbert", name=name, config={"model": nlp.config["components"]["sbert"]["model"]}
        )
    meta.add_pipe("sbert_meta")
    lines = list(filter(None, texts))
    return [view.tolist() for view in fit_meta(meta, "sbert_meta", lambda: lines, cache=cache)]


def keep_member_vectors(nlp: Language, folder: Path) -> Writer:
    run = partial(member_vectors, nlp, TEXTS, folder / "cache")
    return Writer(run, run)


def write_card(nlp: Language, folder: Path) -> Writer:
    return Writer(
        lambda: write_readme(folder, "# A card", force=True), (folder / "README.md").read_bytes
    )


def write_rows(nlp: Language, folder: Path) -> Writer:
    return Writer(
        lambda: write_table(folder / "out.tsv", ("a",), [("1",)]), (folder / "out.tsv").read_bytes
    )


def write_results(nlp: Language, folder: Path) -> Writer:
    return Writer(
        lambda: write_json(folder / "out.json", {"a": 1}), (folder / "out.json").read_bytes
    )


def write_page(nlp: Language, folder: Path) -> Writer:
    def work() -> None:
        with atomic_write(folder / "out.html") as file:
            file.write(b"<html>" * 100)

    return Writer(work, (folder / "out.html").read_bytes)


Make = Callable[[Language, Path], Writer]
WRITERS: list[Make] = [
    encode,
    encode_parquet,
    resume,
    convert_table,
    save_index,
    save_vectors,
    evaluate,
]
WRITERS += [keep_member_vectors, write_card, write_rows, write_results, write_page]


def in_time(*works: Callable[[], Any]) -> Iterator[Any]:
    """What calls say, one after the other in a process that ends: their text, or None, and errors
    with type.
    """
    ours, theirs = get_context("fork").Pipe()
    pid = os.fork()
    if not pid:
        for work in works:
            try:
                said = work()
                theirs.send(said if isinstance(said, str) else None)
            except BaseException as error:
                theirs.send(f"{type(error).__name__}: {error}")
        os._exit(0)
    return _said(pid, ours, len(works))


def _said(pid: int, connection: Connection, n: int) -> Iterator[Any]:
    try:
        for _ in range(n):
            yield connection.recv() if connection.poll(SECONDS) else "it hangs"
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def together(*works: Callable[[], Any]) -> list[Any]:
    """What calls say that begin at the same time, each in a process of its own."""
    barrier = get_context("fork").Barrier(len(works))

    def begin(work: Callable[[], Any]) -> Any:
        barrier.wait(SECONDS)
        return work()

    begun = [in_time(partial(begin, work)) for work in works]
    return [said for (said,) in begun]
