"""docs/search.md: the most similar sentences of two Docs; Spans are collected by a generator."""

import re
from pathlib import Path

import spacy

from spacy_sbert.search import SpanSearch, collect_spans

TEXT = (Path(__file__).parents[2] / "docs" / "search.md").read_text(encoding="utf8")


def test_each_sentence_finds_the_one_of_the_other_doc_that_says_the_same():
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("sbert")
    recipe = re.search(r"two Docs\n.*?```python\n(.*?)```", TEXT, re.DOTALL)[1]
    found: dict = {"nlp": nlp, "SpanSearch": SpanSearch, "collect_spans": collect_spans}
    exec(recipe, found)
    pairs = {sentence.text: other.text for _, sentence, other in found["matches"]}
    assert pairs["A man is eating food."] == "Someone is having a meal."
    assert pairs["The bank raised its rates."] == "Interest is higher now."
    assert len(pairs) == 3
    spans = collect_spans(nlp("One is here. Another is there."), "sent")
    assert len(list(spans)) == 2 and list(spans) == []
