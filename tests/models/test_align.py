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


@pytest.mark.spacy_transformers
@pytest.mark.parametrize("getter", ["docs", "halves", "strided"])
def test_equals_spacy_transformers(minilm, getter):
    from spacy_transformers.align import get_alignment_via_offset_mapping

    tokenizer = AutoTokenizer.from_pretrained(resolve("sentence-transformers/all-MiniLM-L6-v2"))
    docs = [minilm.make_doc(text) for text in TEXTS]
    spans = []
    for doc in docs:
        half = max(1, len(doc) // 2)
        if getter == "docs":
            spans.append(doc[:])
        elif getter == "halves":
            spans.extend(span for span in (doc[:half], doc[half:]) if len(span))
        else:
            spans.extend(doc[start : start + 4] for start in range(0, len(doc), 2))
    data = tokenizer([span.text for span in spans], padding=True, return_offsets_mapping=True, return_tensors="np")
    expected = get_alignment_via_offset_mapping(spans, data["offset_mapping"])
    offsets = data["offset_mapping"]
    doc_of = [docs.index(span.doc) for span in spans]
    given = _align_offsets(
        spans, doc_of, offsets.reshape(-1, 2), numpy.repeat(numpy.arange(len(spans)), offsets.shape[1])
    )
    assert numpy.array_equal(given.lengths, expected.lengths)
    assert numpy.array_equal(given.dataXd, expected.dataXd)


def test_tokens_of_other_docs_do_not_mix(minilm):
    """Two Docs that are equal word for word are still two."""
    docs = [Doc(minilm.vocab, words=["a", "dog"]) for _ in range(2)]
    offsets = numpy.array([[0, 0], [0, 1], [2, 5], [0, 0]] * 2)
    align = _align_offsets([doc[:] for doc in docs], [0, 1], offsets, numpy.repeat(numpy.arange(2), 4))
    assert align.lengths.tolist() == [1, 1, 1, 1] and align.dataXd.tolist() == [1, 2, 5, 6]
