"""What the speed benchmarks compare: ways from texts to sentence vectors, all with one encoder."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy
import spacy
import torch
from measure import Encode
from sentence_transformers import SentenceTransformer
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import get_torch_default_device
from thinc.util import to_numpy
from transformers import AutoModel, AutoTokenizer

from spacy_sbert.architectures import DEFAULT_NAME
from spacy_sbert.models.resolve import resolve

STOCK = "stock"
LISTENING = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}


def own(precision: str, token_vectors: bool = True, **settings: Any) -> Language:
    """A pipeline whose `sbert` has a transformer of its own; settings: more of its model."""
    nlp = spacy.blank("en")
    nlp.add_pipe(
        "sbert",
        config={"model": {"precision": precision, **settings}, "token_vectors": token_vectors},
    )
    return nlp


def pipe(precision: str, token_vectors: bool = True, **settings: Any) -> Encode:
    """The vectors of the Docs of `nlp.pipe`, see own."""
    return through_docs(own(precision, token_vectors, **settings))


def direct(precision: str, **settings: Any) -> Encode:
    """`encode` of the `sbert` pipe, without Docs, see own."""
    sbert: Any = own(precision, **settings).get_pipe("sbert")
    return sbert.encode


def single_docs(precision: str, **settings: Any) -> Encode:
    """The vectors of Docs that are made one by one, see own."""
    nlp = own(precision, **settings)
    return lambda texts: numpy.stack([to_numpy(nlp(text).vector) for text in texts])


def one_by_one(make: Callable[..., Encode], **settings: Any) -> Encode:
    """A variant that is given one text at a time, as a search is its query."""
    encode = make(**settings)
    return lambda texts: numpy.concatenate([encode([text]) for text in texts])


def shared(kind: str, token_vectors: bool = True, name: str = DEFAULT_NAME) -> Encode:
    """The vectors of a `sbert` that shares a `transformer`: of spacy-transformers ("stock"), or
    ours in a precision.
    """
    nlp = spacy.blank("en")
    if kind == STOCK:
        spans = {"@span_getters": "spacy-transformers.doc_spans.v1"}
        model = {
            "@architectures": "spacy-transformers.TransformerModel.v3",
            "name": str(resolve(name)),
        }
    else:
        spans = {"@span_getters": "spacy-sbert.sentence_spans.v1"}
        model = {
            "@architectures": "spacy-sbert.TransformerModel.v1",
            "name": name,
            "precision": kind,
        }
    # See docs/spacy-transformers.md
    batches = {} if kind == STOCK else {"max_batch_items": 32768}
    nlp.add_pipe("transformer", config={**batches, "model": {**model, "get_spans": spans}})
    nlp.add_pipe("sbert", config={"model": LISTENING, "token_vectors": token_vectors})
    nlp.initialize()
    return through_docs(nlp)


def through_docs(nlp: Language) -> Encode:
    """From texts to `doc.vector`, which the hooks answer."""

    def rows(docs: Iterable[Doc]) -> list[numpy.ndarray]:
        return [to_numpy(doc.vector) for doc in docs]

    return lambda texts: numpy.stack(rows(nlp.pipe(texts)))


def sentence_transformer(precision: str, batch_size: int, name: str = DEFAULT_NAME) -> Encode:
    """sentence-transformers, with all weights in the precision."""
    reduced = precision != "float32"
    model = SentenceTransformer(str(resolve(name)), device=str(get_torch_default_device()))
    model.to(getattr(torch, precision))

    def encode(texts: list[str]) -> numpy.ndarray:
        vectors = model.encode(
            texts, batch_size=batch_size, convert_to_tensor=reduced, show_progress_bar=False
        )
        return vectors.float().cpu().numpy() if reduced else vectors

    return encode


def padded(batch_size: int, name: str = DEFAULT_NAME) -> Encode:
    """The Hugging Face model in float32 over batches in the order of the texts, padded to the
    longest of each.
    """
    folder, device = resolve(name), get_torch_default_device()
    tokenizer, model = (
        AutoTokenizer.from_pretrained(folder),
        AutoModel.from_pretrained(folder).eval().to(device),
    )

    @torch.inference_mode()
    def encode_batch(texts: list[str]) -> numpy.ndarray:
        inputs = tokenizer(texts, padding=True, truncation=True, return_tensors="pt").to(device)
        mask = inputs["attention_mask"].unsqueeze(-1).float()
        states = (model(**inputs).last_hidden_state * mask).sum(1) / mask.sum(1)
        return torch.nn.functional.normalize(states).cpu().numpy()

    return lambda texts: numpy.vstack(
        [
            encode_batch(texts[start : start + batch_size])
            for start in range(0, len(texts), batch_size)
        ]
    )
