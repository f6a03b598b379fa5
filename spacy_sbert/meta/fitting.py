"""From plain sentences to a fitted meta-embedding inside a pipeline."""

import json
import tempfile
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy
from spacy.language import Language

from ..errors import Errors
from ..evaluation.environment import device, versions
from ..evaluation.sources import precisions
from .component import SentenceMeta
from .corpus import Texts
from .members import FunctionMember
from .vector_cache import VectorCache, digest

BLOCK = 1024  # Docs whose vectors are written at once


def fit_meta(nlp: Language, name: str, texts: Texts, *, cache: Path | None = None) -> list[numpy.ndarray]:
    """Fit an `sbert_meta` pipe, and the functions among its members, on sentences.

    nlp (Language): the pipeline; the pipes before the one to fit encode the sentences.
    name (str): the pipe.
    texts (Callable): the sentences, gone through several times.
    cache (Path): where the members' vectors are kept for another method or the next time; None to forget them.
    RETURNS (J arrays, float32 (n, d_j)): the members' vectors, memory-mapped from the cache; none without one.
    RAISES (ValueError): if the pipe is no `sbert_meta`, there is no sentence, or a member's vectors are not what they
        should be, see MetaEmbedding.fit.
    """
    pipe = nlp.get_pipe(name)
    if not isinstance(pipe, SentenceMeta):
        raise ValueError(Errors.META_NOT_A_META.format(name=name, given=type(pipe).__name__))
    for member in pipe.members:
        if isinstance(member, FunctionMember) and hasattr(member.function, "fit"):
            member.function.fit(lambda: map(nlp.make_doc, texts()))
    names = [member.name for member in pipe.members]
    if cache is not None:
        views = member_vectors(nlp, pipe, texts, cache)
        pipe.estimator.fit(views, names)
        return views
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows: what is mapped stays
        pipe.estimator.fit(member_vectors(nlp, pipe, texts, Path(folder)), names)
    return []


def member_vectors(nlp: Language, pipe: SentenceMeta, texts: Texts, folder: Path) -> list[numpy.ndarray]:
    """The members' vectors of sentences, from a folder if it has them, or else made and kept there.

    RETURNS (J arrays, float32 (n, d_j)): memory-mapped.
    """
    before = nlp.pipe_names[: nlp.pipe_names.index(pipe.name)]
    names = [member.name for member in pipe.members]
    with nlp.select_pipes(enable=before):
        nlp("A text.")  # what is loaded on first use is, so that use changes no byte
        cache = VectorCache(folder, digest(chain(_parts(nlp, pipe), texts())))
        found = cache.read(names)
        return found if found is not None else cache.write(names, _blocks(nlp, pipe, texts))


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


def _blocks(nlp: Language, pipe: SentenceMeta, texts: Texts) -> Iterator[list[numpy.ndarray]]:
    docs = iter(nlp.pipe(texts(), batch_size=BLOCK))
    while block := list(islice(docs, BLOCK)):
        yield pipe.member_vectors(block)


def set_method(nlp: Language, name: str, method: str | None, size: int | None, options: dict[str, Any]) -> None:
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
