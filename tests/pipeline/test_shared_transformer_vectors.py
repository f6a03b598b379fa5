"""Vectors over a shared transformer are those of an own encoder, and of sentence-transformers."""

import numpy
import pytest
from helpers.pipelines import (
    change_json,
    make_example,
)
from helpers.small_models import SHARED_FAMILIES
from helpers.small_tokenizers import make_folder
from sentence_transformers import SentenceTransformer

PROMPT = {"prompts": {"query": "a man: "}, "default_prompt_name": "query"}
TEXTS = [
    "One two three. Four five.",
    "",
    "A MAN is eating naïve food.\n\nThe dog ran, not fast. " * 3,
    " ",
    "a",
    "one. two",
]
SETTINGS = {
    "truncate": ("doc", {}),
    "windows": ("doc", {"overflow": "windows"}),
    "prompt": ("doc", PROMPT),
    "without the prompt": ("doc", {**PROMPT, "include_prompt": False}),
    "prompt, windows": ("doc", {**PROMPT, "overflow": "windows"}),
    "sentences": ("sent", {}),
    "both": ("doc+sent", {}),
    "both, windows": ("doc+sent", {"overflow": "windows"}),
}


@pytest.fixture(scope="module", params=SHARED_FAMILIES)
def family(request, tmp_path_factory):
    kind, config = SHARED_FAMILIES[request.param]
    folder = make_folder(
        tmp_path_factory.mktemp("family") / request.param, kind, request.param, 24, **config
    )
    change_json(folder / "tokenizer_config.json", model_input_names=["input_ids", "attention_mask"])
    return folder


def vectors_of(doc):
    """Of the Doc, its sentences, a stretch in the middle, and its tokens."""
    sentences = list(doc.sents) if doc.has_annotation("SENT_START") else []
    parts = [doc, *sentences, *([doc[1:3]] if len(doc) > 3 else []), *doc]
    return numpy.stack([part.vector for part in parts])


@pytest.mark.filterwarnings("ignore:.*(pooled-in-context|longer than the encoder's limit)")
@pytest.mark.parametrize("pooling", ["mean", "cls+max"])
@pytest.mark.parametrize("name", SETTINGS)
def test_vectors_of_an_own_encoder(make_nlp, family, name, pooling):
    if name == "without the prompt" and pooling != "mean":
        pytest.skip("as mean")
    unit, settings = SETTINGS[name]
    shared = make_nlp("shared", family, unit, transformer=settings, model={"pooling": pooling})
    own = make_nlp("own", family, unit, model={**settings, "pooling": pooling})
    for given, expected in zip(shared.pipe(TEXTS), own.pipe(TEXTS), strict=True):
        if not given.text.strip() and unit == "sent":
            continue
        found = vectors_of(given) if len(given) else given.vector
        assert (
            abs(found - (vectors_of(expected) if len(given) else expected.vector)).max(initial=0)
            < 1e-6
        )
        assert given._.sbert_truncated == expected._.sbert_truncated
    assert shared.get_pipe("sbert").fingerprint() == own.get_pipe("sbert").fingerprint()
    if unit == "doc":
        text_vectors = [shared.get_pipe("sbert").encode(TEXTS), own.get_pipe("sbert").encode(TEXTS)]
        assert numpy.array_equal(*text_vectors)


@pytest.mark.filterwarnings("ignore:.*longer than the encoder's limit")
@pytest.mark.parametrize("prompt", [None, "a man: "])
def test_vectors_of_sentence_transformers(make_nlp, family, prompt):
    settings = {} if prompt is None else PROMPT
    nlp = make_nlp("shared", family, transformer=settings)
    texts = [text for text in TEXTS if text.strip()]
    expected = SentenceTransformer(str(family), device="cpu").encode(texts, prompt=prompt)
    difference = abs(numpy.stack([doc.vector for doc in nlp.pipe(texts)]) - expected)
    assert (difference / numpy.linalg.norm(expected, axis=1, keepdims=True)).max() < 1e-6


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_members_are_encoded_by_themselves(make_nlp, pooling):
    nlp = make_nlp("shared", model={"pooling": pooling})
    own = make_nlp(model={"pooling": pooling})
    doc = nlp(make_example(nlp, "A man is eating.", "The cat sat on a mat.", 0.5).predicted)
    for span in doc.spans["sbert"]:
        assert abs(span.vector - own(span.text).vector).max() < 1e-6


@pytest.mark.parametrize("window", [5, 9])
def test_strided_windows(make_nlp, window):
    """A Doc in one window has the vector of an own encoder, whatever else is in the batch; others a
    warning.
    """
    spans = {"@span_getters": "spacy-sbert.strided_spans.v1", "window": window, "stride": 3}
    nlp = make_nlp("shared", transformer={"get_spans": spans})
    own = make_nlp()
    short = "A man ran."
    long = "the cat sat on a mat he is eating food a man ran"
    with pytest.warns(UserWarning, match="overlapping windows"):
        docs = list(nlp.pipe([short, long, short]))
    for doc in (docs[0], docs[2], nlp(short)):
        assert abs(doc.vector - own(short).vector).max() < 1e-6
    assert numpy.array_equal(nlp(long).vector, docs[1].vector)
    assert docs[1].vector.any()
    pair = make_example(nlp, long, short)
    for learn in (
        lambda: nlp.update([pair]),
        lambda: nlp.initialize(lambda: [pair]),
        lambda: nlp.evaluate([pair]),
    ):
        with pytest.raises(ValueError, match=r"spacy-sbert\.sentence_spans\.v1"):
            learn()
