"""Fitting of a meta-embedding: plain sentences, and the members' vectors of them."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path

import numpy
from pydantic import NonNegativeInt
from spacy.language import Language
from spacy.tokens import Doc

from ..files import checksum, serialization
from ..files.atomic import atomic_write, check_output
from ..files.delimited import SHORT_LINE, read_delimited
from ..files.manifest import Manifest
from ..files.tables import read_table
from ..files.text_lines import format_suffix, read_lines, read_objects
from ..pipeline.digest import pipeline_digest
from ..progress import progress_of
from ..validation import NonNegative, Positive
from .estimator import EMPTY_CORPUS, MetaEmbedding
from .members import BLOCK, FunctionMember, Member

# A corpus that is read more than once
Texts = Callable[[], Iterable[str]]
MAX_TOKENS = 60
VECTORS_MANIFEST = "vectors.json"


def read_sentences(path: Path, column: Positive | None = None) -> Iterator[str]:
    """Read one sentence a line, without white space around it; blank lines are passed over.

    path (Path): UTF-8, gzip-compressed if it ends in .gz; with .jsonl, objects with "text".
    column (int): which of the columns of a .csv or .tsv, or of lines with tabs between them, from
        1; None for the whole line.
    YIELDS (str): sentences.
    RAISES (ValueError): for a line without the column or without "text"; the message names file and
        line.
    """
    for cell in _read_cells(path, column):
        text = cell.strip()
        if text:
            yield text


def _read_cells(path: Path, column: int | None) -> Iterator[str]:
    suffix = format_suffix(path)
    if suffix == ".jsonl":
        yield from _texts_of_objects(path)
    elif column is None:
        for _, line in read_lines(path):
            yield line
    elif suffix in (".csv", ".tsv"):
        for _, (cell,) in read_table(path, [str(column - 1)], header=False):
            yield str(cell)
    else:
        yield from _cells_between_tabs(path, column)


def _texts_of_objects(path: Path) -> Iterator[str]:
    for line, record in read_objects(path):
        text = record.get("text")
        if not isinstance(text, str):
            raise ValueError(
                f'{path}, line {line}: expected an object with a string "text", found '
                f"{str(record)[:50]}."
            )
        yield text


def _cells_between_tabs(path: Path, column: int) -> Iterator[str]:
    for line, cells in read_delimited(path, delimiter="\t"):
        if column > len(cells):
            raise ValueError(
                SHORT_LINE.format(path=path, line=line, column=column, given=len(cells))
            )
        yield cells[column - 1]


class ShortSentences:
    """The sentences of a corpus that have fewer than max_tokens tokens.

    All of them with 0. It may be called several times.

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


class _VectorManifest(Manifest):
    """Contents of vectors.json: key of the cache, names, number of vectors, digests of files."""

    key: str
    names: list[str]
    n: NonNegativeInt
    files: list[str]


class _VectorCache:
    """A folder with a file of float32 vectors for each member.

    It is found by a digest of all that the vectors depend on.
    """

    def __init__(self, folder: Path, key: str, names: Sequence[str]):
        self.folder = folder / key[:16]
        self.key = key
        self.names = list(names)
        # File systems may not hold names
        self.paths = [self.folder / f"{i}.f32" for i in range(len(self.names))]

    def read(self) -> list[numpy.ndarray] | None:
        """Return the members' vectors, memory-mapped, float32 (n, d_j) each.

        None if they are missing or damaged.
        """
        try:
            manifest = _VectorManifest.read(self.folder / VECTORS_MANIFEST)
            is_whole = manifest.files == self._digests()
        except (OSError, ValueError):
            # Incomplete or damaged: vectors are computed again
            return None
        if not is_whole or manifest.key != self.key or manifest.names != self.names:
            return None
        return self._mapped(manifest.n)

    def _digests(self) -> list[str]:
        return [checksum.file_digest(path) for path in self.paths]

    def _mapped(self, n: int) -> list[numpy.ndarray]:
        return [numpy.memmap(path, dtype="<f4", mode="r").reshape(n, -1) for path in self.paths]

    def write(self, blocks: Iterable[Sequence[numpy.ndarray]]) -> list[numpy.ndarray]:
        """Write blocks of the members' vectors, float32 (b, d_j), and return them as `read` does.

        RAISES (ValueError): if a member's vectors change their width.
        """
        check_output(self.folder, is_folder=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        n = 0
        widths: dict[str, int] = {}
        # Another process may write or read the same
        with ExitStack() as stack:
            outputs = [stack.enter_context(atomic_write(path)) for path in self.paths]
            for block in blocks:
                for name, rows, output in zip(self.names, block, outputs, strict=True):
                    if widths.setdefault(name, rows.shape[1]) != rows.shape[1]:
                        raise ValueError(
                            f"The vectors of the member '{name}' of a meta-embedding change their "
                            f"width from {widths[name]} to {rows.shape[1]} numbers."
                        )
                    output.write(numpy.ascontiguousarray(rows, dtype="<f4").data)
                n += len(block[0])
        manifest = _VectorManifest(key=self.key, names=self.names, n=n, files=self._digests())
        manifest.write(self.folder / VECTORS_MANIFEST)
        return self._mapped(n)


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
    """Return the members' vectors of sentences.

    From a folder if it has them, else they are computed and written there.

    name (str): of the meta-embedding; the pipes before it encode. estimator (MetaEmbedding): whose
        size is checked.
    RETURNS (J arrays, float32 (n, d_j)): memory-mapped.
    RAISES (ValueError): if there is no sentence, or the estimator is to be wider than these members
        can make it.
    """
    n = 0

    def counted() -> Iterator[str]:
        nonlocal n
        for text in progress_of(texts(), desc="Reading", unit="sentences", shown=progress):
            n += 1
            yield text

    with nlp.select_pipes(enable=nlp.pipe_names[: nlp.pipe_names.index(name)]):
        key = checksum.digest_of_stream(chain(_settings(nlp, name, members), counted()))
        cache = _VectorCache(folder, key, [member.name for member in members])
        if not n:
            raise ValueError(EMPTY_CORPUS)
        if estimator is not None:
            a_text = [nlp("A text.")]
            estimator.check_size([member.vectors(a_text).shape[1] for member in members], n)
        views = cache.read()
        if views is not None:
            return views
        encoded = nlp.pipe(texts(), batch_size=BLOCK)
        docs = progress_of(encoded, total=n, desc="Encoding", unit="sentences", shown=progress)
        return cache.write(_vectors_of_blocks(members, docs))


def _vectors_of_blocks(
    members: Sequence[Member], docs: Iterator[Doc]
) -> Iterator[list[numpy.ndarray]]:
    """Yield the members' vectors of Docs, float32 (b, d_j) each, a block at a time."""
    while block := list(islice(docs, BLOCK)):
        yield [member.vectors(block) for member in members]


def _settings(nlp: Language, name: str, members: Sequence[Member]) -> Iterator[str | bytes]:
    """Yield all that the members' vectors depend on, except the sentences."""
    yield checksum.digest_of_parts(
        pipeline_digest(nlp), serialization.device(), serialization.versions()
    )
    functions = nlp.config["components"].get(name, {}).get("functions", {})
    for member in members:
        yield member.name
        if isinstance(member, FunctionMember):
            yield json.dumps(functions.get(member.name), sort_keys=True, default=str)
            yield from member.identity()
