"""Sources of sentence vectors under evaluation, and the store that keeps their vectors."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
from spacy.language import Language
from thinc.util import to_numpy

from ..errors import DivergedError, Errors, import_extra
from ..files.atomic import check_output
from ..files.checksum import digest_of_bytes, digest_of_parts
from ..files.serialization import device, read_arrays, versions, write_arrays
from ..models.prompts import Role
from ..pipeline.digest import pipeline_digest
from ..pipeline.sbert import SentenceBert
from ..similarity import check_widths

# From items, and the name of the work, to the items with a progress bar
Progress = Callable[[Sequence[Any], str], Iterable[Any]]


class VectorSource:
    """Vectors of texts: of a pipeline, or of a baseline.

    name (str): in results.
    learns (bool): whether they also depend on a corpus, such as the idf of its words.
    nlp (Language): the pipeline that is evaluated, None for a baseline.
    """

    name: str
    learns: bool = False
    nlp: Language | None = None

    @property
    def digest(self) -> str:
        """The digest of everything that the vectors depend on now, except the corpus."""
        raise NotImplementedError

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """Return the vectors of n texts, one or more, float32 (n, width).

        fit_on: the corpus, ignored if `learns` is False.
        """
        raise NotImplementedError

    def encode_role(self, texts: Sequence[str], role: Role | None) -> numpy.ndarray:
        """Return the vectors of queries or documents, which may have prompts, see encode."""
        return self.encode(texts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class PipelineSource(VectorSource):
    """The vectors that a pipeline gives its Docs, whichever component makes them."""

    def __init__(self, nlp: Language, *, name: str | None = None, batch_size: int = 64):
        """Take the vectors of a pipeline; name (str): in results, by default that of its meta."""
        self.nlp = nlp
        self.pipeline = nlp
        self.name = name or "{lang}_{name}".format(**nlp.meta)
        self.batch_size = batch_size

    @property
    def digest(self) -> str:
        # Since the last time the pipeline may have been trained
        return pipeline_digest(self.pipeline)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        """Return the vectors of texts, float32 (n, width); fit_on is ignored.

        RAISES (ValueError): if the pipeline has no vectors, or one is not finite.
        """
        return self.encode_role(texts, None)

    def encode_role(
        self, texts: Sequence[str], role: Role | None, names: Sequence[str] = ()
    ) -> numpy.ndarray:
        """Return the vectors of queries or documents, see encode and Prompts.of_role."""
        options = {
            name: {"prompt": pipe.prompt_of_role(role, names)}
            for name, pipe in self.pipeline.pipeline
            if isinstance(pipe, SentenceBert)
        }
        rows: list[numpy.ndarray] = []
        docs = self.pipeline.pipe(texts, batch_size=self.batch_size, component_cfg=options)
        for doc in docs:
            vector = to_numpy(doc.vector).astype("float32", copy=False)
            if not vector.size:
                raise ValueError(
                    f"The pipeline {self.name} gives no vectors: doc.vector is empty. Add a pipe "
                    "that sets it, such as "
                    'nlp.add_pipe("sbert"), or static vectors.'
                )
            if not numpy.isfinite(vector).all():
                raise DivergedError(Errors.NOT_FINITE.format(text=doc.text[:50]))
            rows.append(vector)
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            check_widths(min(widths), max(widths))
        return numpy.stack(rows)


# Texts encoded and saved at once: what an interruption may lose
_CHUNK = 1024
# Bytes of a text's digest, and digits of others in names
_KEY = 16
_BAD_CACHE = "{path} does not hold saved vectors of an evaluation: {reason}. Delete it."


class VectorStore:
    """Vectors of texts, each distinct text encoded once, and kept in a folder.

    The folder's name is a digest of all that the vectors depend on but the texts. Each chunk is a
    file, written whole or not at all, with the digests of its texts: what is there was finished.
    Called as Run.encode.

    source (Source): gives the vectors. folder (Path): None to keep them only in memory.
    width (int): of the vectors, None until it is known. encoded (int): how many distinct texts were
        encoded, and not read from the folder.
    """

    def __init__(self, source: VectorSource, folder: Path | None, progress: Progress):
        self.source = source
        self.progress = progress
        self.width: int | None = None
        self.encoded = 0
        self.rows: dict[bytes, numpy.ndarray] = {}
        self.folder: Path | None = None
        if folder is not None:
            made_by = digest_of_parts(source.digest, versions(), device())
            self.folder = folder / f"vectors-{made_by[:_KEY]}"
            check_output(self.folder, is_folder=True)
            for path in sorted(self.folder.glob("*.npz")):
                self._load(path)

    def _load(self, path: Path) -> None:
        expected = {"keys": ("uint8", 2), "vectors": ("float32", 2)}
        arrays = read_arrays(path, expected, message=_BAD_CACHE)
        if arrays["keys"].shape != (len(arrays["vectors"]), _KEY):
            raise ValueError(_BAD_CACHE.format(path=path, reason="arrays of another shape"))
        self._add((key.tobytes() for key in arrays["keys"]), arrays["vectors"])

    def __call__(
        self,
        texts: Sequence[str],
        *,
        fit_on: Sequence[str] | None = None,
        role: Role | None = None,
    ) -> numpy.ndarray:
        """Return the vectors of n texts, float32 (n, width); fit_on, role: see Run."""
        distinct = list(dict.fromkeys(texts))
        if self.source.learns:
            corpus = texts if fit_on is None else fit_on
            rows = self.source.encode(distinct, list(dict.fromkeys(corpus)))
            self.encoded += len(distinct)
            self.width = rows.shape[1]
            row_of = dict(zip(distinct, rows, strict=True))
            return numpy.stack([row_of[text] for text in texts])
        new = [text for text in distinct if _key(text, role) not in self.rows]
        # By length: batches of texts of like length waste no work on padding
        new.sort(key=len, reverse=True)
        if new:
            for start in self.progress(range(0, len(new), _CHUNK), "encoding"):
                self._encode(new[start : start + _CHUNK], role)
        return numpy.stack([self.rows[_key(text, role)] for text in texts])

    def _encode(self, texts: Sequence[str], role: Role | None) -> None:
        """Encode texts, and save their vectors."""
        vectors = self.source.encode_role(texts, role).astype("float32", copy=False)
        keys = [_key(text, role) for text in texts]
        self.encoded += len(keys)
        self._add(keys, vectors)
        if self.folder is None:
            return
        joined = b"".join(keys)
        # A name of its own, so that processes may share the folder
        path = self.folder / f"{digest_of_bytes(joined)[:_KEY]}.npz"
        keys_of_rows = numpy.frombuffer(joined, "uint8").reshape(-1, _KEY)
        write_arrays(path, {"keys": keys_of_rows, "vectors": vectors})

    def _add(self, keys: Iterable[bytes], vectors: numpy.ndarray) -> None:
        self.width = self.width or vectors.shape[1]
        self.rows.update(zip(keys, vectors, strict=True))


def _key(text: str, role: Role | None) -> bytes:
    if role is not None:
        text = f"{role}: {text}"
    return bytes.fromhex(digest_of_bytes(text.encode("utf8")))[:_KEY]


def sklearn_module(name: str, task: str) -> ModuleType:
    """Return a module of scikit-learn.

    RAISES (ImportError): if it is not installed; the message names the task.
    """
    return import_extra(name, f"{task} needs scikit-learn", "evaluation")
