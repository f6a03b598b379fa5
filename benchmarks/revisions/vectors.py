"""The vectors of equal.py: what a revision makes of fixed texts, by all ways of encoding."""

from collections.abc import Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy
import spacy
import srsly
from digests import Digests
from spacy.language import Language
from spacy.tokens import Doc, Span
from thinc.util import to_numpy

from spacy_sbert.architectures import DEFAULT_NAME
from spacy_sbert.meta.component import fit_meta
from spacy_sbert.models.resolve import resolve

ASSETS = Path(__file__).parent.parent.parent / "assets"
POOLINGS = (
    "mean",
    "max",
    "cls",
    "mean_sqrt_len",
    "weightedmean",
    "lasttoken",
    "cls+mean",
    "mean+max",
)
PRECISIONS = ("float32", "bfloat16", "int8", "reference")
OVERFLOWS = ("truncate", "windows", "cut")
UNITS = ("doc", "sent", "doc+sent")
# The settings of each method; "ae" trains for few epochs
METHODS: dict[str, dict[str, Any]] = {
    "conc": {},
    "avg": {},
    "svd": {"size": 16},
    "gcca": {"size": 16, "options": {"tau": 10.0}},
    "ae": {"size": 16, "options": {"epochs": 2, "batch_size": 20, "seed": 0}},
}
SHARED = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}
SPANS = {"@span_getters": "spacy-sbert.sentence_spans.v1"}
DOC_SPANS = {"@span_getters": "spacy-transformers.doc_spans.v1"}
LISTENERS = ("mean", "cls")
# The component, and settings of its model, of each transformer that can be shared
TRANSFORMERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sbert_transformer": ("sbert_transformer", {"get_spans": SPANS}),
    "transformer": (
        "transformer",
        {"@architectures": "spacy-sbert.TransformerModel.v1", "get_spans": SPANS},
    ),
    "stock transformer": (
        "transformer",
        {
            "@architectures": "spacy-transformers.TransformerModel.v3",
            "name": str(resolve(DEFAULT_NAME)),
            "get_spans": DOC_SPANS,
        },
    ),
}


def lines_of(name: str) -> list[str]:
    """Return the lines of a file of sample texts."""
    return (ASSETS / name).read_text(encoding="utf8").splitlines()


# White space, and letters and signs beyond ASCII
TEXTS = [*lines_of("texts-dev.txt"), "", "  ", "Übermut tut selten gut, 你好 🙂"]
SENTENCES = lines_of("texts-train.txt")
# The span getters of spacy-transformers refuse a Doc without tokens
TEXTS_WITH_WORDS = lines_of("texts-dev.txt")
# Each of three sentences
PARAGRAPHS = [" ".join(SENTENCES[i : i + 3]) for i in range(0, 60, 3)]
# Up to some thousand wordpieces, where the encoder reads 256
LONG_TEXTS = [" ".join(SENTENCES[:n]) for n in (10, 40, 100, 300)]


def add_vectors(digests: Digests) -> None:
    """Add the digests of vectors by all ways of encoding."""
    add_poolings(digests)
    add_docs(digests)
    add_overflow(digests)
    add_pairs(digests)
    add_shared(digests)
    add_saved(digests)
    add_meta(digests)


def pipeline(**settings: Any) -> Language:
    """Return a blank pipeline whose `sbert` pipe has a model with these settings."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": settings})
    return nlp


def encoded(nlp: Language, texts: Sequence[str]) -> numpy.ndarray:
    """Return the vectors of texts by `encode`."""
    sbert: Any = nlp.get_pipe("sbert")
    return sbert.encode(texts)


def vectors_of(parts: Iterable[Doc | Span]) -> numpy.ndarray:
    """Return the vectors of Docs or Spans, as their hooks answer."""
    return numpy.stack([to_numpy(part.vector) for part in parts])


def add_poolings(digests: Digests) -> None:
    """Add `encode` with each pooling, precision and normalization."""
    for precision in PRECISIONS:
        for pooling in POOLINGS:
            for normalize in (True, False):
                name = f"encode, {precision}, {pooling}, normalize {normalize}"
                settings = {"precision": precision, "pooling": pooling, "normalize": normalize}
                digests.add(name, partial(encoded_with, settings))


def encoded_with(settings: dict[str, Any]) -> numpy.ndarray:
    """Return the vectors by `encode` of a pipeline with these settings."""
    return encoded(pipeline(**settings), TEXTS)


def add_docs(digests: Digests) -> None:
    """Add the vectors of Docs, sentences, other Spans and tokens, with each unit."""
    for unit in UNITS:
        digests.add_several(f"nlp.pipe, unit {unit}", partial(doc_vectors, unit))
    digests.add("nlp of one text at a time", one_at_a_time)


def doc_vectors(unit: str) -> dict[str, numpy.ndarray]:
    """Return the vectors of Docs and of their parts."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    get_spans = {**SPANS, "unit": unit}
    nlp.add_pipe("sbert", config={"model": {"get_spans": get_spans}})
    docs = list(nlp.pipe(PARAGRAPHS))
    return {
        ", Docs": vectors_of(docs),
        ", sents": vectors_of(sent for doc in docs for sent in doc.sents),
        ", Spans": vectors_of(doc[1:4] for doc in docs),
        ", tokens": numpy.stack([to_numpy(doc[1].vector) for doc in docs]),
    }


def one_at_a_time() -> numpy.ndarray:
    """Return the vectors of Docs that are made one by one."""
    nlp = pipeline()
    return vectors_of(nlp(text) for text in TEXTS)


def add_overflow(digests: Digests) -> None:
    """Add the vectors of texts longer than the encoder's limit."""
    for overflow in OVERFLOWS:
        digests.add_several(f"long texts, overflow {overflow}", partial(long_vectors, overflow))


def long_vectors(overflow: str) -> dict[str, numpy.ndarray]:
    """Return the vectors of long texts, by `encode` and by Docs."""
    nlp = pipeline(overflow=overflow)
    docs = list(nlp.pipe(LONG_TEXTS))
    return {
        ", encode": encoded(nlp, LONG_TEXTS),
        ", Docs": vectors_of(docs),
        ", Spans": vectors_of(doc[10:300] for doc in docs),
    }


def add_pairs(digests: Digests) -> None:
    """Add the vectors of the members of pairs, which are in one Doc."""
    digests.add("members of pairs", member_vectors)


def member_vectors() -> numpy.ndarray:
    """Return the vectors of the Spans in `doc.spans["sbert"]`."""
    nlp = pipeline()
    docs = [nlp.make_doc(f"{u} {v}") for u, v in zip(SENTENCES[:20], SENTENCES[20:40], strict=True)]
    for doc in docs:
        half = len(doc) // 2
        doc.spans["sbert"] = [doc[:half], doc[half:]]
    return vectors_of(span for doc in nlp.pipe(docs) for span in doc.spans["sbert"])


def add_shared(digests: Digests) -> None:
    """Add the vectors of two `sbert` pipes that listen to one transformer."""
    has_spacy_transformers = find_spec("spacy_transformers") is not None
    for name, (component, settings) in TRANSFORMERS.items():
        if component == "transformer" and not has_spacy_transformers:
            digests.left_out[f"shared, {name}"] = "spacy-transformers is not installed"
        else:
            digests.add_several(f"shared, {name}", partial(shared_vectors, component, settings))


def shared_vectors(component: str, settings: dict[str, Any]) -> dict[str, numpy.ndarray]:
    """Return the vectors of each listener to a shared transformer."""
    nlp = spacy.blank("en")
    nlp.add_pipe(component, name="transformer", config={"model": settings})
    for pooling in LISTENERS:
        nlp.add_pipe("sbert", name=pooling, config={"model": {**SHARED, "pooling": pooling}})
    nlp.initialize()
    docs = list(nlp.pipe(TEXTS_WITH_WORDS))
    return {f", {name}": pipe_vectors(nlp, name, docs) for name in LISTENERS}


def pipe_vectors(nlp: Language, name: str, docs: Sequence[Doc]) -> numpy.ndarray:
    """Return the vectors that the pipe of a name has set on Docs."""
    pipe: Any = nlp.get_pipe(name)
    return numpy.stack([to_numpy(pipe.vector(doc)) for doc in docs])


def add_saved(digests: Digests) -> None:
    """Add the vectors of pipelines that were saved and loaded, and the bytes of the parts."""
    digests.add("saved and loaded, to_disk", lambda: encoded(from_disk(pipeline()), TEXTS))
    digests.add("saved and loaded, to_bytes", lambda: encoded(from_bytes(pipeline()), TEXTS))
    digests.add_several("bytes of the sbert pipe", sbert_bytes)


def from_disk(nlp: Language) -> Language:
    """Return the pipeline after it was saved to a folder and loaded."""
    with TemporaryDirectory() as folder:
        nlp.to_disk(folder)
        loaded = spacy.load(folder)
        # Weights are read when they are first needed
        encoded(loaded, TEXTS[:1])
    return loaded


def from_bytes(nlp: Language) -> Language:
    """Return the pipeline after it was saved to bytes and loaded."""
    return pipeline().from_bytes(nlp.to_bytes())


def sbert_bytes() -> dict[str, bytes]:
    """Return the bytes of each part of a pipe: of its model, its settings, and so on."""
    sbert: Any = pipeline().get_pipe("sbert")
    sbert.load()
    parts = srsly.msgpack_loads(sbert.to_bytes())
    return {f", {name}": srsly.msgpack_dumps(part) for name, part in parts.items()}


def add_meta(digests: Digests) -> None:
    """Add meta-embeddings of two members by each method."""
    for method, settings in METHODS.items():
        digests.add(f"meta-embedding, {method}", partial(meta_vectors, method, settings))


def meta_vectors(method: str, settings: dict[str, Any]) -> numpy.ndarray:
    """Return meta-embeddings by a method, which is fitted if it has settings."""
    nlp = spacy.blank("en")
    for pooling in ("mean", "max"):
        nlp.add_pipe("sbert", name=pooling, config={"model": {"pooling": pooling}})
    meta: Any = nlp.add_pipe("sbert_meta", config={"method": method, **settings})
    if settings:
        fit_meta(nlp, "sbert_meta", lambda: SENTENCES)
    return meta.encode(TEXTS)
