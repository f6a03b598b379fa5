import numpy
import pytest
from spacy.tokens import Doc
from transformers import AutoTokenizer

from spacy_sbert.models.resolve import resolve
from spacy_sbert.models.span_batch import _align_offsets

TEXTS = [
    "He cannot go, don't you  think?",
    "  leading and trailing  ",
    "é中文 😀 a\x00b \u200b",
    "dog",
    " ",
    "U.S.-based co-op's e-mail: x@y.com (sic)...",
]
PARTS = {"docs": lambda doc: [doc[:]], "strided": lambda doc: [doc[i : i + 4] for i in range(0, len(doc), 2)]}


@pytest.mark.spacy_transformers
@pytest.mark.parametrize("getter", PARTS)
def test_equals_spacy_transformers(minilm, getter):
    from spacy_transformers.align import get_alignment_via_offset_mapping

    tokenizer = AutoTokenizer.from_pretrained(resolve("sentence-transformers/all-MiniLM-L6-v2"))
    of_docs = [PARTS[getter](minilm.make_doc(text)) for text in TEXTS]
    spans = [span for doc_spans in of_docs for span in doc_spans]
    data = tokenizer([span.text for span in spans], padding=True, return_offsets_mapping=True, return_tensors="np")
    expected = get_alignment_via_offset_mapping(spans, data["offset_mapping"])
    offsets = data["offset_mapping"]
    span_of = numpy.repeat(numpy.arange(len(spans)), offsets.shape[1])
    given = _align_offsets(of_docs, offsets.reshape(-1, 2), span_of)
    assert numpy.array_equal(given.lengths, expected.lengths)
    assert numpy.array_equal(given.dataXd, expected.dataXd)


def test_tokens_of_other_docs_do_not_mix(minilm):
    """Two Docs that are equal word for word are still two."""
    docs = [Doc(minilm.vocab, words=["a", "dog"]) for _ in range(2)]
    offsets = numpy.array([[0, 0], [0, 1], [2, 5], [0, 0]] * 2)
    align = _align_offsets([[doc[:]] for doc in docs], offsets, numpy.repeat(numpy.arange(2), 4))
    assert align.lengths.tolist() == [1, 1, 1, 1] and align.dataXd.tolist() == [1, 2, 5, 6]
