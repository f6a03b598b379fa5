"""What the tests of pictures share: texts with vectors of choice, and what a page holds."""

import json
import re
from html.parser import HTMLParser

import numpy
import spacy
from spacy.tokens import Doc

NLP = spacy.blank("en")
VOID = {"meta", "br", "img", "input", "link", "hr"}


def made(text, vector):
    """A Doc that answers with this vector, and has no others."""
    doc = NLP.make_doc(text)
    found = numpy.asarray(vector, dtype="float32")
    doc.user_hooks["has_vector"] = lambda doc: True
    doc.user_hooks["vector"] = lambda doc: found
    return doc


class Reader(HTMLParser):
    """Elements with their attributes, and the texts of cells; every element must be closed where it
    was opened.
    """

    def __init__(self):
        super().__init__()
        self.elements = []
        self.open = []
        self.cells = []
        self.texts = []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        assert len(attributes) == len(dict(attributes)), "an attribute twice"
        if tag not in VOID:
            self.open.append(tag)
        if tag == "td" and "data-cosine" in dict(attributes):
            self.cells.append("")

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.cells and self.open and self.open[-1] == "td":
            self.cells[-1] += text
        if not self.open or self.open[-1] not in ("script", "style"):
            self.texts.append(text)


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def data_of(page):
    (found,) = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


def doc_of(words, vocab=NLP.vocab):
    return Doc(vocab, words=words)
