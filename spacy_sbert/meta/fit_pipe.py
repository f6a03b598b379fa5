"""A pipe's members encode sentences, and its estimator is fitted on their vectors."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Protocol

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import logger
from tqdm import tqdm

from ..errors.progress import progress_bar, progress_of
from ..files.digests import digest_of_parts, digest_of_stream
from ..files.environment import device, versions
from ..vectors.identity import pipeline_digest
from .corpus import Texts
from .errors import Errors
from .estimator import MetaEmbedding
from .members import FunctionMember, Member, learner
from .vector_cache import VectorCache

BLOCK = 1024  # Docs whose vectors are written at once


class MetaPipe(Protocol):
    """What an `sbert_meta` pipe is to those who fit it."""

    name: str
    members: list[Member]
    estimator: MetaEmbedding

    def member_vectors(self, docs: list[Doc]) -> list[numpy.ndarray]: ...


def fit_pipe(
    nlp: Language, pipe: MetaPipe, texts: Texts, *, cache: Path | None = None, progress: bool = False
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


def member_vectors(nlp: Language, pipe: MetaPipe, texts: Texts, folder: Path, progress: bool) -> list[numpy.ndarray]:
    """The members' vectors of sentences, from a folder if it has them, or else made and kept there.

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
        if (found := cache.read(names)) is not None:
            return found
        with progress_bar(n, desc="Encoding", unit="sentences", shown=progress) as bar:
            return cache.write(names, _blocks(nlp, pipe, texts, bar))


def _parts(nlp: Language, pipe: MetaPipe) -> Iterator[str | bytes]:
    """All that the members' vectors depend on, but the sentences."""
    yield digest_of_parts(pipeline_digest(nlp), device(), versions())
    functions = nlp.config["components"].get(pipe.name, {}).get("functions", {})
    for member in pipe.members:
        yield member.name
        if isinstance(member, FunctionMember):
            yield json.dumps(functions.get(member.name), sort_keys=True, default=str)
            yield from member.identity()


def _blocks(nlp: Language, pipe: MetaPipe, texts: Texts, bar: tqdm) -> Iterator[list[numpy.ndarray]]:
    docs = iter(nlp.pipe(texts(), batch_size=BLOCK))
    while block := list(islice(docs, BLOCK)):
        yield pipe.member_vectors(block)
        bar.update(len(block))
