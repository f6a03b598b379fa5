"""Fit a meta-embedding on a corpus."""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

import numpy
import srsly
from pydantic import BaseModel, NonNegativeInt
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import logger
from tqdm import tqdm

from ..errors import Errors
from ..files.atomic import atomic_write, check_folder, write_text
from ..files.delimited import read_tabs
from ..files.serialization import (
    checksummed_json,
    device,
    digest_of_parts,
    digest_of_stream,
    file_digest,
    parse_checksummed,
    versions,
)
from ..files.tables import read_objects, read_table
from ..files.text_lines import format_suffix, read_lines
from ..models.digests import pipeline_digest
from ..models.fingerprint import combined
from ..progress import progress_bar, progress_of
from ..validation import NonNegative, Positive
from .estimators import MetaEmbedding
from .members import FunctionMember, Member, learner

Texts = Callable[[], Iterable[str]]  # a corpus that is read more than once
MAX_TOKENS = 60
_DELIMITED = (".csv", ".tsv")


def read_sentences(path: Path, column: Positive | None = None) -> Iterator[str]:
    """Read one sentence a line, without white space around it; blank lines are passed over.

    path (Path): UTF-8, gzip-compressed if it ends in .gz; with .jsonl, objects with "text".
    column (int): which of the columns of a .csv or .tsv, or of lines with tabs between them, from 1; None for the whole
        line.
    YIELDS (str): sentences.
    RAISES (ValueError): for a line without the column or without "text"; the message names file and line.
    """
    if format_suffix(path) == ".jsonl":
        for line, record in read_objects(path):
            if not isinstance(record.get("text"), str):
                raise ValueError(
                    f'{path}, line {line}: expected an object with a string "text", found {str(record)[:50]}.'
                )
            if text := str(record["text"]).strip():
                yield text
        return
    if column is not None and format_suffix(path) in _DELIMITED:
        records = read_table(path, [str(column - 1)], header=False)
        yield from (text for _, (cell,) in records if (text := str(cell).strip()))
        return
    place = (column or 1) - 1
    for line, columns in read_tabs(path) if column else ((line, [text]) for line, text in read_lines(path)):
        if place >= len(columns):
            raise ValueError(Errors.SHORT_LINE.format(path=path, line=line, column=column, given=len(columns)))
        if text := columns[place].strip():
            yield text


class ShortSentences:
    """The sentences of a corpus that have fewer than so many tokens, as often as it is called.

    nlp (Language): whose tokenizer counts. texts (Callable): the corpus. max_tokens (int): 0 for no limit.
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


MANIFEST = "vectors.json"


class _Manifest(BaseModel):
    """Contents of vectors.json: the cache's key, the members' names and widths, the number of vectors, file digests."""

    key: str
    names: list[str]
    n: NonNegativeInt
    widths: list[NonNegativeInt]
    files: list[str]


class VectorCache:
    """A folder with one file of float32 rows for each member, and what they were made of.

    folder (Path): where; it is made. key (str): a digest of pipeline and corpus, which decides whether what is there
    can be used.
    """

    def __init__(self, folder: Path, key: str):
        self.folder = folder / key[:16]
        self.key = key

    def read(self, names: Sequence[str]) -> list[numpy.ndarray] | None:
        """Return the members' vectors, memory-mapped, float32 (n, d_j) each; None if they are missing or damaged."""
        manifest = self._manifest()
        if manifest is None or (manifest.key, manifest.names) != (self.key, list(names)):
            return None
        n, views = manifest.n, []
        for i, width in enumerate(manifest.widths):
            path = self._path(i)
            if not path.is_file() or path.stat().st_size != 4 * n * width:
                return None
            if file_digest(path) != manifest.files[i]:
                return None
            views.append(numpy.memmap(path, dtype="<f4", mode="r", shape=(n, width)) if n else numpy.zeros((0, width)))
        return views

    def write(self, names: Sequence[str], blocks: Iterable[Sequence[numpy.ndarray]]) -> list[numpy.ndarray]:
        """Write blocks of the members' vectors, float32 (b, d_j) each, then `read` them.

        RAISES (ValueError): if a member's vectors change their width, or there is no block.
        """
        check_folder(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        n, widths = 0, [0] * len(names)
        digests = [hashlib.sha256() for _ in names]
        with ExitStack() as stack:  # another process may write or read the same
            files = [stack.enter_context(atomic_write(self._path(i))) for i in range(len(names))]
            for block in blocks:
                for i, (name, rows) in enumerate(zip(names, block, strict=True)):
                    first, widths[i] = widths[i], rows.shape[1]
                    if n and widths[i] != first:
                        raise ValueError(
                            f"The vectors of the member '{name}' of a meta-embedding change their width from "
                            f"{first} to {widths[i]} numbers."
                        )
                    data = numpy.ascontiguousarray(rows, dtype="<f4").data
                    files[i].write(data)
                    digests[i].update(data)
                n += len(block[0])
            if not n:
                raise ValueError(Errors.META_EMPTY_CORPUS)
        manifest = _Manifest(
            key=self.key, names=list(names), n=n, widths=widths, files=[digest.hexdigest() for digest in digests]
        )
        write_text(self.folder / MANIFEST, json.dumps(checksummed_json(manifest.model_dump())) + "\n")
        views = self.read(names)
        if views is None:
            raise OSError(
                f"The members' vectors in {self.folder} changed while they were written. Give each run a folder."
            )
        return views

    def _path(self, member: int) -> Path:
        return self.folder / f"{member}.f32"  # a number: names may hold what file systems do not

    def _manifest(self) -> _Manifest | None:
        try:
            return parse_checksummed(_Manifest, (self.folder / MANIFEST).read_bytes())
        except (FileNotFoundError, ValueError):  # incomplete or damaged: vectors are computed again
            return None


class MetaFingerprint:
    """The fingerprint of one meta-embedding; a fitted estimator is read again. A copy starts without it."""

    def __init__(self) -> None:
        self._read: tuple[list[object], str] | None = None
        self._found: dict[tuple[str, ...], str] = {}

    def __reduce__(self) -> tuple[type, tuple]:
        return MetaFingerprint, ()

    def of(self, estimator: MetaEmbedding, members: Sequence[Member], encoders: Mapping[str, str]) -> str:
        """Return the fingerprint; encoders (dict): that of each member that is a pipe, "" if it is not known."""
        if not all(encoders.values()):
            return ""
        learned: list[Any] = [estimator, *(getattr(estimator, name, None) for name in estimator.learned)]
        learned.append(estimator.widths_)
        if self._read is None or not _are_identical(self._read[0], learned):
            own = [part for member in members if isinstance(member, FunctionMember) for part in member.identity()]
            state = {"method": estimator.method, "settings": estimator.settings, "arrays": estimator.state()["arrays"]}
            self._read = learned, combined(srsly.msgpack_dumps(state), *own)
            self._found.clear()
        key = self._read[1], *encoders.values()
        if key not in self._found:
            self._found[key] = combined(*key)
        return self._found[key]


def _are_identical(ours: Sequence[object], theirs: Sequence[object]) -> bool:
    return len(ours) == len(theirs) and all(a is b for a, b in zip(ours, theirs, strict=True))


_BLOCK = 1024  # Docs whose vectors are written at once


class _MetaPipe(Protocol):
    """What fitting needs of an `sbert_meta` pipe."""

    name: str
    members: list[Member]
    estimator: MetaEmbedding

    def member_vectors(self, docs: list[Doc]) -> list[numpy.ndarray]: ...


def fit_pipe(
    nlp: Language, pipe: _MetaPipe, texts: Texts, *, cache: Path | None = None, progress: bool = False
) -> list[numpy.ndarray]:
    """Fit a pipe of a pipeline; for the arguments, what is returned and raised see fit_meta."""
    for member in pipe.members:
        if (function := learner(member)) is not None:
            shown = partial(progress_of, desc=f"Learning {member.name}", unit="sentences", shown=progress)
            function.fit(partial(_docs, nlp, texts, shown))
    with nullcontext(cache) if cache else tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        views = member_vectors(nlp, pipe, texts, Path(folder), progress)
        estimator = pipe.estimator.fit(views, [member.name for member in pipe.members], progress=progress)
        if cache is None:
            views = []  # Windows removes nothing that is mapped
    for note in estimator.notes(pipe.name):
        logger.warning(note)
    return views


def _docs(nlp: Language, texts: Texts, shown: Callable[[Iterable[str]], Iterable[str]]) -> Iterator[Doc]:
    return map(nlp.make_doc, shown(texts()))


def member_vectors(nlp: Language, pipe: _MetaPipe, texts: Texts, folder: Path, progress: bool) -> list[numpy.ndarray]:
    """Return the members' vectors of sentences, from a folder if it has them, or else computed and written there.

    RETURNS (J arrays, float32 (n, d_j)): memory-mapped.
    RAISES (ValueError): if there is no sentence, or the meta-embedding is to be wider than these members can make it.
    """
    before = nlp.pipe_names[: nlp.pipe_names.index(pipe.name)]
    names = [member.name for member in pipe.members]
    n = 0

    def counted() -> Iterator[str]:
        nonlocal n
        for text in progress_of(texts(), desc="Reading", unit="sentences", shown=progress):
            n += 1
            yield text

    with nlp.select_pipes(enable=before):
        cache = VectorCache(folder, digest_of_stream(chain(_parts(nlp, pipe), counted())))
        if not n:
            raise ValueError(Errors.META_EMPTY_CORPUS)
        pipe.estimator.check_size([view.shape[1] for view in pipe.member_vectors([nlp("A text.")])], names, n)
        if (views := cache.read(names)) is not None:
            return views
        with progress_bar(n, desc="Encoding", unit="sentences", shown=progress) as bar:
            return cache.write(names, _blocks(nlp, pipe, texts, bar))


def _parts(nlp: Language, pipe: _MetaPipe) -> Iterator[str | bytes]:
    """Yield all that the members' vectors depend on, except the sentences."""
    yield digest_of_parts(pipeline_digest(nlp), device(), versions())
    functions = nlp.config["components"].get(pipe.name, {}).get("functions", {})
    for member in pipe.members:
        yield member.name
        if isinstance(member, FunctionMember):
            yield json.dumps(functions.get(member.name), sort_keys=True, default=str)
            yield from member.identity()


def _blocks(nlp: Language, pipe: _MetaPipe, texts: Texts, bar: tqdm) -> Iterator[list[numpy.ndarray]]:
    docs = iter(nlp.pipe(texts(), batch_size=_BLOCK))
    while block := list(islice(docs, _BLOCK)):
        yield pipe.member_vectors(block)
        bar.update(len(block))
