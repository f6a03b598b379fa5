"""From plain sentences to a fitted meta-embedding inside a pipeline."""

import json
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy
from spacy.language import Language
from spacy.util import logger
from tqdm import tqdm

from ..errors import Errors, Warnings
from ..evaluation.environment import device, versions
from ..evaluation.sources import precisions
from ..validation import Name, Width, validated
from .component import SentenceMeta
from .corpus import Texts
from .members import FunctionMember
from .vector_cache import VectorCache, digest

BLOCK = 1024  # Docs whose vectors are written at once


@validated
def fit_meta(
    nlp: Language, name: Name, texts: Texts, *, cache: Path | None = None, progress: bool = False
) -> list[numpy.ndarray]:
    """Fit an `sbert_meta` pipe, and the functions among its members, on sentences.

    nlp (Language): the pipeline; the pipes before the one to fit encode the sentences.
    name (str): the pipe.
    texts (Callable): the sentences, gone through several times.
    cache (Path): where the members' vectors are kept for another method or the next time; None to forget them.
    progress (bool): whether to show progress bars.
    RETURNS (J arrays, float32 (n, d_j)): the members' vectors, memory-mapped from the cache; none without one.
    RAISES (ValueError): if the pipe is no `sbert_meta`, there is no sentence, a member's vectors are not what they
        should be, see MetaEmbedding.fit; and, before any sentence is encoded, if the size is more than any can give.
    """
    pipe = nlp.get_pipe(name)
    if not isinstance(pipe, SentenceMeta):
        raise ValueError(Errors.META_NOT_A_META.format(name=name, given=type(pipe).__name__))
    for member in pipe.members:
        if isinstance(member, FunctionMember) and hasattr(member.function, "fit"):
            shown = partial(tqdm, desc=f"Learning {member.name}", unit=" sentences", disable=not progress)
            member.function.fit(lambda shown=shown: map(nlp.make_doc, shown(texts())))
    if cache is not None:
        views = member_vectors(nlp, pipe, texts, cache, progress)
        _fit(pipe, views, progress)
        return views
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows: what is mapped stays
        _fit(pipe, member_vectors(nlp, pipe, texts, Path(folder), progress), progress)
    return []


def _fit(pipe: SentenceMeta, views: list[numpy.ndarray], progress: bool) -> None:
    estimator = pipe.estimator.fit(views, [member.name for member in pipe.members], progress=progress)
    if estimator.width < max(estimator.widths_) and estimator.size is None:
        sizes = {"size": estimator.width, "widest": max(estimator.widths_)}
        logger.warning(Warnings.META_FEWER_DIRECTIONS.format(name=pipe.name, method=estimator.method, **sizes))


def member_vectors(
    nlp: Language, pipe: SentenceMeta, texts: Texts, folder: Path, progress: bool
) -> list[numpy.ndarray]:
    """The members' vectors of sentences, from a folder if it has them, or else made and kept there.

    RETURNS (J arrays, float32 (n, d_j)): memory-mapped.
    RAISES (ValueError): if there is no sentence, or the meta-embedding is to be wider than these members can make it.
    """
    before = nlp.pipe_names[: nlp.pipe_names.index(pipe.name)]
    names = [member.name for member in pipe.members]
    n = 0

    def counted() -> Iterator[str]:
        nonlocal n
        for text in tqdm(texts(), desc="Reading", unit=" sentences", disable=not progress):
            n += 1
            yield text

    with nlp.select_pipes(enable=before):
        doc = nlp("A text.")  # what is loaded on first use is, so that use changes no byte
        cache = VectorCache(folder, digest(chain(_parts(nlp, pipe), counted())))
        if not n:
            raise ValueError(Errors.META_EMPTY_CORPUS)
        pipe.estimator.check_size([view.shape[1] for view in pipe.member_vectors([doc])], names, n)
        found = cache.read(names)
        if found is not None:
            return found
        with tqdm(total=n, desc="Encoding", unit=" sentences", disable=not progress) as bar:
            return cache.write(names, _blocks(nlp, pipe, texts, bar))


def _parts(nlp: Language, pipe: SentenceMeta) -> Iterator[str | bytes]:
    """All that the members' vectors depend on, but the sentences."""
    yield str(nlp.lang)
    settings = {name: nlp.config["components"].get(name) for name in nlp.pipe_names}
    yield json.dumps([settings, precisions(nlp), device(), versions()], sort_keys=True, default=str)
    yield nlp.tokenizer.to_bytes(exclude=["vocab"])  # type: ignore[union-attr]
    if nlp.vocab.vectors.size:
        yield nlp.vocab.vectors.to_bytes(exclude=["strings"])
    for name, component in nlp.pipeline:
        yield name
        if hasattr(component, "to_bytes"):
            yield component.to_bytes(exclude=["vocab"])
    for member in pipe.members:
        yield member.name
        if isinstance(member, FunctionMember):
            yield type(member.function).__qualname__
            if hasattr(member.function, "to_bytes"):
                yield member.function.to_bytes()


def _blocks(nlp: Language, pipe: SentenceMeta, texts: Texts, bar: Any) -> Iterator[list[numpy.ndarray]]:
    docs = iter(nlp.pipe(texts(), batch_size=BLOCK))
    while block := list(islice(docs, BLOCK)):
        yield pipe.member_vectors(block)
        bar.update(len(block))


@validated
def set_method(nlp: Language, name: Name, method: Name | None, size: Width | None, options: dict[str, Any]) -> None:
    """Put an `sbert_meta` pipe with another method into a pipeline, in place of the one of this name or at the end.

    method (str), size (int), options (dict): see make_estimator; None for what the config of the pipe says. Options
        are kept where the method is.
    RAISES (ValueError): if the pipe is no `sbert_meta`, or the method has no such options.
    """
    if name not in nlp.component_names:
        config: dict[str, Any] = {"method": method or "conc", "size": size, "options": options}
        nlp.add_pipe("sbert_meta", name=name, config=config)
        return
    if not isinstance(nlp.get_pipe(name), SentenceMeta):
        raise ValueError(Errors.META_NOT_A_META.format(name=name, given=type(nlp.get_pipe(name)).__name__))
    config = {key: value for key, value in nlp.config["components"][name].items() if key != "factory"}
    is_other = method is not None and method != config["method"]
    config["options"] = {**({} if is_other else config["options"]), **options}
    config["method"] = method or config["method"]
    config["size"] = size if size is not None or is_other else config["size"]
    place = nlp.component_names.index(name)
    nlp.remove_pipe(name)
    nlp.add_pipe("sbert_meta", name=name, config=config, before=place if place < len(nlp.component_names) else None)
