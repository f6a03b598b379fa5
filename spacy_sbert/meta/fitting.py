"""From plain sentences to a fitted meta-embedding inside a pipeline."""

from pathlib import Path

import numpy
from spacy.language import Language

from ..errors.checks import Name, Width
from .component import SentenceMeta
from .corpus import Texts
from .errors import Errors
from .fit_pipe import fit_pipe


def fit_meta(
    nlp: Language, name: Name, texts: Texts, *, cache: Path | None = None, progress: bool = False
) -> list[numpy.ndarray]:
    """Fit an `sbert_meta` pipe, and the functions among its members, on sentences.

    nlp (Language): the pipeline; the pipes before the one to fit encode the sentences. name (str): the pipe.
    texts (Callable): the sentences, gone through several times.
    cache (Path): where the members' vectors are kept for another method or the next time; None to forget them.
    progress (bool): whether to show progress bars.
    RETURNS (J arrays, float32 (n, d_j)): the members' vectors, memory-mapped from the cache; none without one.
    RAISES (ValueError): if the pipe is not an `sbert_meta`, there is no sentence, a member's vectors are not what they
        should be, see MetaEmbedding.fit; and, before any sentence is encoded, if the size is more than any can give.
    """
    return fit_pipe(nlp, _find_meta(nlp, name), texts, cache=cache, progress=progress)


def set_method(nlp: Language, name: Name, method: Name | None, size: Width | None, options: dict[str, object]) -> None:
    """Put an `sbert_meta` pipe with another method into a pipeline, in place of the one of this name or at the end.

    method (str), size (int), options (dict): see make_estimator; None for what the config of the pipe says. Options
        are kept where the method is.
    RAISES (ValueError): if the pipe is not an `sbert_meta`, or the method has no such options.
    """
    if name not in nlp.component_names:
        nlp.add_pipe("sbert_meta", name=name, config={"method": method or "conc", "size": size, "options": options})
        return
    _find_meta(nlp, name)
    config = {key: value for key, value in nlp.config["components"][name].items() if key != "factory"}
    if method not in (None, config["method"]):
        config.update(method=method, size=size, options=options)
    else:
        config.update(options={**config["options"], **options}, size=config["size"] if size is None else size)
    place = nlp.component_names.index(name)
    nlp.remove_pipe(name)
    nlp.add_pipe("sbert_meta", name=name, config=config, before=place if place < len(nlp.component_names) else None)


def _find_meta(nlp: Language, name: str) -> SentenceMeta:
    pipe = nlp.get_pipe(name)
    if not isinstance(pipe, SentenceMeta):
        raise ValueError(Errors.META_NOT_A_META.format(name=name, given=type(pipe).__name__))
    return pipe
