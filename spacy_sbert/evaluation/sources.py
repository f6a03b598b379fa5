"""Where an evaluation has its vectors from."""

import hashlib
from collections.abc import Iterator, Sequence
from importlib.metadata import packages_distributions, version
from typing import Protocol

import numpy
from spacy.language import Language
from thinc.api import Model
from thinc.shims import Shim

from ..similarity import as_numpy
from .errors import Errors


class Source(Protocol):
    """Something that gives vectors for texts: a pipeline, or a baseline.

    name: in results. digest: of everything its vectors depend on, but the corpus. learns: whether they also depend on a
        corpus, such as the idf of its words. nlp: the pipeline, where it is one.
    """

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def learns(self) -> bool: ...

    @property
    def nlp(self) -> Language | None: ...

    def encode(self, texts: Sequence[str], fit_on: Sequence[str]) -> numpy.ndarray:
        """texts (n strings, one or more); fit_on: the corpus. RETURNS (float32 (n, width))."""


class PipelineSource:
    """The vectors that a pipeline gives its Docs, whichever component makes them."""

    learns = False

    def __init__(self, nlp: Language, *, name: str | None = None, batch_size: int = 64):
        """nlp (Language): the pipeline. name (str): its name in results, by default that of its meta. batch_size (int):
        Docs in a batch."""
        self.nlp = nlp
        self.name = name or "{lang}_{name}".format(**nlp.meta)
        self.batch_size = batch_size
        self.digest = digest_of(nlp)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """The vectors of texts; fit_on is not looked at.

        RAISES (ValueError): if the pipeline has no vectors, or one is not finite.
        """
        rows = list(self._vectors(texts))
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=min(widths), theirs=max(widths)))
        return numpy.stack(rows)

    def _vectors(self, texts: Sequence[str]) -> Iterator[numpy.ndarray]:
        for doc in self.nlp.pipe(texts, batch_size=self.batch_size):
            vector = as_numpy(doc.vector).astype("float32", copy=False)
            if not vector.size:
                raise ValueError(Errors.PIPELINE_WITHOUT_VECTORS.format(name=self.name, pipes=self.nlp.pipe_names))
            if not numpy.isfinite(vector).all():
                raise ValueError(Errors.NOT_FINITE.format(text=doc.text[:50]))
            yield vector


def digest_of(nlp: Language) -> str:
    """The SHA-256 of a pipeline: its config, its components and its static vectors, but not the words it has seen."""
    nlp("A text.")  # what is loaded and set on first use is, so that use changes no byte
    found = hashlib.sha256(nlp.to_bytes(exclude=["vocab"]))
    found.update("".join([*_versions(nlp), *precisions(nlp)]).encode("utf8"))
    if nlp.vocab.vectors.size:
        found.update(nlp.vocab.vectors.to_bytes(exclude=["strings"]))
    return found.hexdigest()


def precisions(nlp: Language) -> list[str]:
    """The precisions that encoders work in, where that is not float32: "auto" in the config does not tell."""
    models = [(name, getattr(pipe, "model", None)) for name, pipe in nlp.pipeline]
    shims = [(name, shim) for name, model in models if isinstance(model, Model) for shim in _shims(model)]
    found = [(name, getattr(shim, "precision", "float32")) for name, shim in shims]
    return [f"{name} {precision};" for name, precision in found if precision != "float32"]


def _shims(model: Model) -> Iterator[Shim]:
    for node in model.walk():
        yield from node.shims


def _versions(nlp: Language) -> list[str]:
    """The versions of the packages that the components come from, such as those of plugins."""
    names = {type(pipe).__module__.partition(".")[0] for _, pipe in nlp.pipeline}
    packages = packages_distributions()
    found = {name for module in names for name in packages.get(module, [])}
    return sorted(f"{name} {version(name)};" for name in found)
