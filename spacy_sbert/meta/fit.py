"""Fit a meta-embedding on a corpus of plain sentences."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from itertools import chain, islice
from pathlib import Path

import numpy
from pydantic import BaseModel, NonNegativeInt
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import logger

from ..files.atomic import atomic_write, check_output, write_text
from ..files.serialization import (
    checksummed_json,
    device,
    digest_of_parts,
    digest_of_stream,
    file_digest,
    parse_checksummed,
    versions,
)
from ..files.tables import SHORT_LINE, read_delimited, read_table
from ..files.text_lines import format_suffix, read_lines, read_objects
from ..models.fingerprint import pipeline_digest
from ..progress import progress_of
from ..validation import NonNegative, Positive
from .members import FunctionMember, Member, member_vectors
from .methods import EMPTY_CORPUS, MetaEmbedding

Texts = Callable[[], Iterable[str]]  # a corpus that is read more than once
MAX_TOKENS = 60
MANIFEST = "vectors.json"
_BLOCK = 1024  # Docs whose vectors are written at once


def read_sentences(path: Path, column: Positive | None = None) -> Iterator[str]:
    """Read one sentence a line, without white space around it; blank lines are passed over.

    path (Path): UTF-8, gzip-compressed if it ends in .gz; with .jsonl, objects with "text".
    column (int): which of the columns of a .csv or .tsv, or of lines with tabs between them, from 1; None for the whole
        line.
    YIELDS (str): sentences.
    RAISES (ValueError): for a line without the column or without "text"; the message names file and line.
    """
    return (text for cell in _read_cells(path, column) if (text := cell.strip()))


def _read_cells(path: Path, column: int | None) -> Iterator[str]:
    if format_suffix(path) == ".jsonl":
        for line, record in read_objects(path):
            if not isinstance(record.get("text"), str):
                raise ValueError(
                    f'{path}, line {line}: expected an object with a string "text", found {str(record)[:50]}.'
                )
            yield str(record["text"])
    elif column is None:
        yield from (text for _, text in read_lines(path))
    elif format_suffix(path) in (".csv", ".tsv"):
        yield from (str(cell) for _, (cell,) in read_table(path, [str(column - 1)], header=False))
    else:
        for line, columns in read_delimited(path, delimiter="\t"):
            if column > len(columns):
                raise ValueError(SHORT_LINE.format(path=path, line=line, column=column, given=len(columns)))
            yield columns[column - 1]


class ShortSentences:
    """The sentences of a corpus that have fewer than max_tokens tokens of nlp, or all with 0, as often as it is called.

    n_left_out (int): how many sentences the last pass left out.
    SOURCE: Poerner et al. 2020, section 4.1: fewer than 60.
    """

    def __init__(self, nlp: Language, texts: Texts, max_tokens: NonNegative = MAX_TOKENS):
        self.nlp = nlp
        self.texts = texts
        self.max_tokens = max_tokens
        self.n_left_out = 0

    def __call__(self) -> Iterator[str]:
        self.n_left_out = 0
        for text in self.texts():
            if self.max_tokens and len(self.nlp.make_doc(text)) >= self.max_tokens:
                self.n_left_out += 1
            else:
                yield text


class _Manifest(BaseModel):
    """Contents of vectors.json: the key of the cache, the members' names, the number of vectors, and file digests."""

    key: str
    names: list[str]
    n: NonNegativeInt
    files: list[str]


def _mapped(paths: Sequence[Path], n: int) -> list[numpy.ndarray]:
    return [numpy.memmap(path, dtype="<f4", mode="r").reshape(n, -1) for path in paths]


class VectorCache:
    """A folder with one file of float32 rows for each member, and what they were made of.

    folder (Path): where; it is made. key (str): a digest of pipeline and corpus, which decides whether what is there
    can be used.
    """

    def __init__(self, folder: Path, key: str):
        self.folder = folder / key[:16]
        self.key = key

    def _path(self, member: int) -> Path:
        return self.folder / f"{member}.f32"  # a number: names may hold what file systems do not

    def read(self, names: Sequence[str]) -> list[numpy.ndarray] | None:
        """Return the members' vectors, memory-mapped, float32 (n, d_j) each; None if they are missing or damaged."""
        try:
            manifest = parse_checksummed(_Manifest, (self.folder / MANIFEST).read_bytes())
        except (FileNotFoundError, ValueError):  # incomplete or damaged: vectors are computed again
            return None
        paths = [self._path(i) for i in range(len(names))]
        if (manifest.key, manifest.names) != (self.key, list(names)) or not all(path.is_file() for path in paths):
            return None
        if [file_digest(path) for path in paths] != manifest.files:
            return None
        return _mapped(paths, manifest.n)

    def write(self, names: Sequence[str], blocks: Iterable[Sequence[numpy.ndarray]]) -> list[numpy.ndarray]:
        """Write blocks of the members' vectors, float32 (b, d_j) each, and return them as `read` does.

        RAISES (ValueError): if a member's vectors change their width, or there is no block.
        """
        check_output(self.folder, is_folder=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        n, widths = 0, [0] * len(names)
        with ExitStack() as stack:  # another process may write or read the same
            files = [stack.enter_context(atomic_write(self._path(i))) for i in range(len(names))]
            for block in blocks:
                for i, (name, rows) in enumerate(zip(names, block, strict=True)):
                    if n and rows.shape[1] != widths[i]:
                        raise ValueError(
                            f"The vectors of the member '{name}' of a meta-embedding change their width from "
                            f"{widths[i]} to {rows.shape[1]} numbers."
                        )
                    widths[i] = rows.shape[1]
                    files[i].write(numpy.ascontiguousarray(rows, dtype="<f4").data)
                n += len(block[0])
            if not n:
                raise ValueError(EMPTY_CORPUS)
        paths = [self._path(i) for i in range(len(names))]
        manifest = {"key": self.key, "names": list(names), "n": n, "files": [file_digest(path) for path in paths]}
        write_text(self.folder / MANIFEST, json.dumps(checksummed_json(manifest)) + "\n")
        return _mapped(paths, n)


def fit_members(
    nlp: Language,
    name: str,
    members: Sequence[Member],
    estimator: MetaEmbedding,
    texts: Texts,
    *,
    cache: Path | None = None,
    progress: bool = False,
) -> list[numpy.ndarray]:
    """Fit the functions among the members, and an estimator; see fit_meta.

    name (str): of the pipe; those before it encode.
    """
    for member in members:
        if hasattr(member.function, "fit"):

            def docs(title: str = f"Learning {member.name}") -> Iterator[Doc]:
                return map(nlp.make_doc, progress_of(texts(), desc=title, unit="sentences", shown=progress))

            member.function.fit(docs)
    with nullcontext(cache) if cache else tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        views = corpus_vectors(nlp, name, members, texts, Path(folder), estimator=estimator, progress=progress)
        estimator.fit(views, [member.name for member in members], progress=progress)
        if cache is None:
            views = []  # Windows removes nothing that is mapped
    for note in estimator.notes(name):
        logger.warning(note)
    return views


def corpus_vectors(
    nlp: Language,
    name: str,
    members: Sequence[Member],
    texts: Texts,
    folder: Path,
    *,
    estimator: MetaEmbedding | None = None,
    progress: bool = False,
) -> list[numpy.ndarray]:
    """Return the members' vectors of sentences, from a folder if it has them, or else computed and written there.

    name (str): of the meta-embedding; the pipes before it encode. estimator (MetaEmbedding): whose size is checked.
    RETURNS (J arrays, float32 (n, d_j)): memory-mapped.
    RAISES (ValueError): if there is no sentence, or the estimator is to be wider than these members can make it.
    """
    names = [member.name for member in members]
    n = 0

    def counted() -> Iterator[str]:
        nonlocal n
        for text in progress_of(texts(), desc="Reading", unit="sentences", shown=progress):
            n += 1
            yield text

    with nlp.select_pipes(enable=nlp.pipe_names[: nlp.pipe_names.index(name)]):
        cache = VectorCache(folder, digest_of_stream(chain(_settings(nlp, name, members), counted())))
        if not n:
            raise ValueError(EMPTY_CORPUS)
        if estimator is not None:
            estimator.check_size([view.shape[1] for view in member_vectors(members, [nlp("A text.")])], n)
        if (views := cache.read(names)) is not None:
            return views
        encoded = nlp.pipe(texts(), batch_size=_BLOCK)
        docs = progress_of(encoded, total=n, desc="Encoding", unit="sentences", shown=progress)
        blocks = iter(lambda: list(islice(docs, _BLOCK)), [])
        return cache.write(names, (member_vectors(members, block) for block in blocks))


def _settings(nlp: Language, name: str, members: Sequence[Member]) -> Iterator[str | bytes]:
    """Yield all that the members' vectors depend on, except the sentences."""
    yield digest_of_parts(pipeline_digest(nlp), device(), versions())
    functions = nlp.config["components"].get(name, {}).get("functions", {})
    for member in members:
        yield member.name
        if isinstance(member, FunctionMember):
            yield json.dumps(functions.get(member.name), sort_keys=True, default=str)
            yield from member.identity()
