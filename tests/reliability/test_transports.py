"""Every way that a Doc can take through spaCy: its vectors are those that it had, or it says that they are not.

Loud is an error by name, or, where a Doc without hooks is compared, a warning that names `restore`.
"""

import json
import pickle
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
from counting import Cases, parts
from pipelines import INSTALLED, TRANSFORMERS
from spacy.language import Language
from spacy.pipeline.functions import DocCleaner
from spacy.tokens import Doc, DocBin, Span

from spacy_sbert import restore
from spacy_sbert.pipeline import doc_vectors as hooks
from spacy_sbert.pipeline.doc_vectors import PREFIX

WHOLE = "a Doc that was copied, stored or sent has the vectors that it had, or says that it has not"
JOINED = "a cut or joined Doc has the vectors of the text that is there, or an error names what has none"
PIPELINES = "a pipeline that was stored, taken apart or sourced makes the vectors that it made"
UNITS, POOLINGS = ("doc", "sent", "doc+sent"), ("mean", "max", "cls", "cls+mean", "lasttoken", "weightedmean")
SHARING = [encoder for encoder in TRANSFORMERS if encoder in INSTALLED]
WAYS = [*product(SHARING, UNITS, POOLINGS, ("nothing", "tok2vec", "static vectors"))]
random.Random(0).shuffle(WAYS)
N_PARTS = 18
TOK2VEC = {"pretrained_vectors": None, "width": 8, "depth": 1, "embed_size": 50, "window_size": 1}
TOK2VEC |= {"@architectures": "spacy.HashEmbedCNN.v2", "maxout_pieces": 2, "subword_features": False}
WORDS = ["a", "man", "is", "eating", "food", "the", "cat", "sat", "on", "mat", "he", "cannot", "go", "dog", "ran"]
NAMED = ("joined from others",)  # what an error says of a Doc that has no vector somewhere
pytestmark = pytest.mark.filterwarnings("ignore:.*W10[129]")


def build(make_nlp: Callable, encoder: str, unit: str, pooling: str, beside: str) -> Language:
    """A pipeline with sentence borders, and maybe with what spaCy answers from where hooks are gone."""
    nlp = make_nlp(encoder, unit=unit, model={"pooling": pooling})
    if "sentencizer" not in nlp.pipe_names:
        nlp.add_pipe("sentencizer", first=True)
    if beside == "tok2vec":
        nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
        nlp.initialize()
    if beside == "static vectors":
        nlp.vocab.reset_vectors(width=12)
        for i, word in enumerate([*WORDS, "."]):
            nlp.vocab.set_vector(word, numpy.eye(12, dtype="float32")[i % 12])
    return nlp


@pytest.fixture(params=parts(N_PARTS, quick=1))
def pipelines(request, make_nlp) -> Iterator[tuple[str, Language, random.Random]]:
    """A part of all pipelines, each with its name and a source of chance."""
    return ((" ".join(way), build(make_nlp, *way), random.Random(str(way))) for way in WAYS[request.param :: N_PARTS])


def make_text(chance: random.Random) -> str:
    sentences = [" ".join(chance.choices(WORDS, k=chance.randint(1, 4))) + "." for _ in range(chance.randint(1, 3))]
    return " ".join(sentences)


def pieces(doc: Doc | Span) -> list[Any]:
    """What is asked for: the Doc or Span, its sentences, other Spans and Tokens."""
    sentences = [sentence for sentence in doc.sents if len(sentence) <= len(doc)] if len(doc) else []
    return [doc, *sentences, *(doc[i : i + 3] for i in range(0, len(doc) - 3, 2)), *list(doc)[::2]]


def is_same(given: Any, vector: numpy.ndarray, has_vector: bool) -> bool:
    found = given.vector
    return found.shape == vector.shape and numpy.allclose(found, vector, atol=2e-6) and given.has_vector is has_vector


@contextmanager
def warned() -> Iterator[list[str]]:
    """Ours among the warnings, as in a process where nothing was said yet."""
    hooks._warned.clear()
    ours: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield ours
    ours += [str(one.message) for one in caught if "spacy_sbert.restore" in str(one.message)]


# Docs that stay whole


def through_docbin(doc: Doc, *, store_user_data: bool = True) -> Doc:
    data = DocBin(docs=[doc], store_user_data=store_user_data).to_bytes()
    return next(DocBin().from_bytes(data).get_docs(doc.vocab))


def through_bytes(doc: Doc, **settings: Any) -> Doc:
    return Doc(doc.vocab).from_bytes(doc.to_bytes(**settings))


def through_disk(doc: Doc, folder: Path) -> Doc:
    doc.to_disk(folder / "doc")
    return Doc(doc.vocab).from_disk(folder / "doc")


KEPT: dict[str, Callable[[Doc, Path], Doc]] = {  # with hooks: as before, and no warning
    "copy": lambda doc, _: doc.copy(),
    "pickle": lambda doc, _: pickle.loads(pickle.dumps(doc)),
    "as_doc with user data": lambda doc, _: doc[:].as_doc(copy_user_data=True),
    "doc_cleaner": lambda doc, _: DocCleaner({"tensor": None, "_.trf_data": None})(doc.copy()),
    "restore of what needs none": lambda doc, _: restore(doc.copy()),
    "copy, pickle, copy": lambda doc, _: pickle.loads(pickle.dumps(doc.copy())).copy(),
}
RESTORED: dict[str, Callable[[Doc, Path], Doc]] = {  # without hooks: compared, a warning; as before after restore
    "to_bytes": lambda doc, _: through_bytes(doc),
    "to_disk": through_disk,
    "DocBin with user data": lambda doc, _: through_docbin(doc),
    "from_docs of one": lambda doc, _: Doc.from_docs([doc]),
    "to_bytes, DocBin": lambda doc, _: through_docbin(through_bytes(doc)),
    "pickle, to_bytes, pickle": lambda doc, _: pickle.loads(
        pickle.dumps(through_bytes(pickle.loads(pickle.dumps(doc))))
    ),
}
LOST: dict[str, Callable[[Doc, Path], Doc]] = {  # without what is stored: all that reads it refuses
    "DocBin without user data": lambda doc, _: through_docbin(doc, store_user_data=False),
    "JSON": lambda doc, _: Doc(doc.vocab).from_json(json.loads(json.dumps(doc.to_json()))),
    "to_bytes without user data": lambda doc, _: through_bytes(doc, exclude=["user_data"]),
    "from_docs without user data": lambda doc, _: Doc.from_docs([doc], exclude=["user_data"]),
}


def test_whole_docs(pipelines, counted, tmp_path):
    with counted(WHOLE) as cases:
        for name, nlp, chance in pipelines:
            docs = list(nlp.pipe([make_text(chance), make_text(chance), "", " "]))
            for doc in docs:
                expected = [(piece.vector, piece.has_vector) for piece in pieces(doc)]
                for way, go in KEPT.items():
                    with warned() as ours:
                        given = go(doc, tmp_path)
                        compare(cases, f"{name}, {way}", given, expected)
                    cases.check(not ours, f"{name}, {way}, {doc.text!r}: warns, though all is right")
                for way, go in RESTORED.items():
                    given = go(doc, tmp_path)
                    with warned() as ours:
                        docs[0].similarity(given)
                    cases.check(len(ours) == 1, f"{name}, {way}, {doc.text!r}: {len(ours)} warnings that name restore")
                    compare(cases, f"{name}, {way}", restore(given), expected)
                    similar = (restore(given).similarity(docs[0]), docs[0].similarity(given))
                    holds = numpy.allclose(similar, doc.similarity(docs[0]), atol=1e-5)
                    cases.check(holds, f"{name}, {way}, {doc.text!r}: similarity {similar}")
                for way, go in LOST.items():
                    check_lost(cases, f"{name}, {way}, {doc.text!r}", go(doc, tmp_path), doc)
            for merge in (True, False):
                check_retokenized(cases, f"{name}, retokenizer, merge = {merge}", docs[0], merge=merge)


def compare(cases: Cases, what: str, given: Doc, expected: list[tuple[numpy.ndarray, bool]]) -> None:
    for piece, answered in zip(pieces(given), expected, strict=True):
        cases.check(is_same(piece, *answered), f"{what}: {piece.text!r} of {given.text!r}")


def check_lost(cases: Cases, what: str, given: Doc, doc: Doc) -> None:
    for ask in (restore, lambda given: list(restore([given])), lambda given: given._.sbert_vector):
        with cases.refuses(what, "carries no sentence vectors", "store_user_data=True"):
            ask(given)
    if not doc.has_vector:  # similar to nothing
        return
    with cases.refuses(f"{what}: similarity", "Both sides" if given.has_vector else "carries no sentence vectors"):
        doc.similarity(given)


def check_retokenized(cases: Cases, what: str, doc: Doc, *, merge: bool) -> None:
    asked = [doc[:], *(piece for piece in pieces(doc) if isinstance(piece, Span))]
    expected = {(span.start_char, span.end_char): (span.vector, span.has_vector) for span in asked}
    given = doc.copy()
    if merge and doc.vocab.vectors_length:  # spaCy would give the new word the Span's vector, as a static one
        given.user_span_hooks.clear()
        given.user_token_hooks.clear()
    with given.retokenize() as retokenizer:
        if merge:
            retokenizer.merge(given[0:2])
        else:
            first = max(given, key=len)
            retokenizer.split(first, [first.text[:1], first.text[1:]], heads=[(first, 0), (first, 0)])
    restore(given)
    for place, answered in expected.items():
        span = given.char_span(*place)
        if span is not None:
            cases.check(is_same(span, *answered), f"{what}: {span.text!r} of {doc.text!r}")


# Docs that were cut and joined


@dataclass
class Part:
    """A Doc to join, and the Doc that it was cut out of; no source if it carries no vectors."""

    kind: str
    doc: Doc
    source: Doc | None
    first: int = 0  # its first character in the joined Doc

    @property
    def last(self) -> int:
        return self.first + len(self.doc.text)


def whole(nlp: Language, chance: random.Random) -> tuple[Doc, Doc]:
    doc = nlp(make_text(chance))
    return doc, doc


def cut(nlp: Language, chance: random.Random, *, left: bool, right: bool) -> tuple[Doc, Doc]:
    doc = nlp(make_text(chance) + " " + make_text(chance))
    start = chance.randint(1, len(doc) - 2) if left else 0
    end = chance.randint(start + 1, len(doc) - 1) if right else len(doc)
    return doc[start:end].as_doc(copy_user_data=True), doc


def sentence(nlp: Language, chance: random.Random) -> tuple[Doc, Doc]:
    doc = nlp(make_text(chance))
    return chance.choice(list(doc.sents)).as_doc(copy_user_data=True), doc


def empty(nlp: Language, chance: random.Random) -> tuple[Doc, Doc]:
    doc = nlp(chance.choice(["", " "]))
    return doc, doc


def unprocessed(nlp: Language, chance: random.Random) -> tuple[Doc, None]:
    return nlp.get_pipe("sentencizer")(nlp.make_doc(make_text(chance))), None


def without_user_data(nlp: Language, chance: random.Random) -> tuple[Doc, None]:
    doc = nlp(make_text(chance))
    return doc[: chance.randint(1, len(doc))].as_doc(), None


PARTS: dict[str, Callable[[Language, random.Random], tuple[Doc, Doc | None]]] = {
    "whole": whole,
    "cut left": partial(cut, left=True, right=False),
    "cut right": partial(cut, left=False, right=True),
    "cut": partial(cut, left=True, right=True),
    "sentence": sentence,
    "unprocessed": unprocessed,
    "without user data": without_user_data,
    "empty": empty,
}


def test_joined_docs(pipelines, counted):
    with counted(JOINED) as cases:
        for name, nlp, chance in pipelines:
            pairs = chance.sample([*product(PARTS, repeat=2)], 24)
            for kinds in [*pairs, *(chance.choices(list(PARTS), k=chance.randint(1, 5)) for _ in range(12))]:
                check_joined(cases, name, [Part(kind, *PARTS[kind](nlp, chance)) for kind in kinds], chance)


def check_joined(cases: Cases, name: str, made: list[Part], chance: random.Random) -> None:
    ensure_whitespace = chance.random() < 0.7
    what = f"{name}, {[(part.kind, part.doc.text) for part in made]}, ensure_whitespace = {ensure_whitespace}"
    exclude = ["tensor"] if len({part.doc.tensor.shape[1:] for part in made}) > 1 else []  # spaCy cannot join them
    docs = [part.doc for part in made]
    given = Doc.from_docs(docs, ensure_whitespace=ensure_whitespace, exclude=exclude)
    if all(part.source is None for part in made):
        with cases.refuses(what, "carries no sentence vectors"):
            restore(given)
        return
    given = restore(chance.choice([lambda doc: doc, through_bytes, through_docbin, Doc.copy])(given))
    at = 0
    spans = []
    for part in made:
        spans.append(given[at : at + len(part.doc)])
        part.first = given[at].idx if at < len(given) else len(given.text)
        at += len(part.doc)
    known = [i for i, part in enumerate(made) if part.source is not None]
    standing = [found for i in known for found in stretches(given.text, made, i)]
    for part, span in zip(made, spans, strict=True):
        for start, end in {(0, len(span)), *((i, min(i + 2, len(span))) for i in range(0, len(span), 2))}:
            if span[start:end].text.strip():
                check_piece(cases, f"{what}, in the part {part.kind}", part, span, start, end, standing)
    check_mean(cases, what, given, made, standing)
    if all(part.kind in ("whole", "empty") for part in made):
        cases.check(given.vector is not None, f"{what}: whole Docs have a vector")


def stretches(text: str, made: list[Part], i: int) -> Iterator[tuple[int, int, Part, int]]:
    """Where the whole text of a part's source, or of one of its rows, stands, and how many whole parts around it go on
    as its source does: first and last character, the part, and where its source would begin."""
    part = made[i]
    key, record = record_of(part.doc)
    at, source = part.first + key[2], part.source.text

    def stands(first: int, last: int) -> bool:
        return at <= first and text[first:last].rstrip() == source[first - at : last - at].rstrip()

    for first, last in [(0, len(source)), *record["rows"].tolist()]:
        if stands(at + first, at + last):
            yield at + first, at + last, part, at
    left = right = i
    while left > 0 and stands(made[left - 1].first, part.last):
        left -= 1
    while right + 1 < len(made) and stands(part.first, made[right + 1].last):
        right += 1
    yield made[left].first, made[right].last, part, at


def check_piece(cases: Cases, what: str, part: Part, span: Span, start: int, end: int, standing: list[Any]) -> None:
    """It has its vector, or that of a text that was encoded and by chance stands here, whole."""
    piece = span[start:end]
    what = f"{what}: {piece.text!r}"
    try:
        vector = piece.vector
    except ValueError as error:
        refused(cases, what, error)
        return
    expected = [] if part.source is None else [part.doc[start:end]]
    first, last = piece.start_char, piece.start_char + len(piece.text)
    for begin, stop, other, at in standing:
        if begin <= first and last <= stop:
            expected.append(other.source.char_span(first - at, last - at))
    found = [one is not None and numpy.allclose(vector, one.vector, atol=2e-6) for one in expected]
    by_chance = any(begin < last and first < stop for begin, stop, *_ in by_chance_elsewhere(span.doc.text, standing))
    if any(found) or not by_chance:
        cases.check(any(found), f"{what} has another vector")


def by_chance_elsewhere(text: str, standing: list[Any]) -> list[Any]:
    """Those of the stretches that reach out of the part that they are of."""
    return [
        found for found in standing if text[found[0] : found[2].first].strip() or text[found[2].last : found[1]].strip()
    ]


def check_mean(cases: Cases, what: str, given: Doc, made: list[Part], standing: list[Any]) -> None:
    """The mean of rows; not judged where a text of one part by chance reaches into another."""
    try:
        vector = given.vector
    except ValueError as error:
        refused(cases, what, error)
        return
    if by_chance_elsewhere(given.text, standing):
        return
    ones = [part.doc for part in made if part.doc.text.strip()]
    if any(part.source is None for part in made):
        cases.wrong(f"{what}: a mean of what has no vectors")
    elif len(ones) > 1:
        expected = numpy.mean(numpy.concatenate([rows_of(doc) for doc in ones]), axis=0)
        cases.check(numpy.allclose(vector, expected, atol=2e-6), f"{what}: another mean")
    else:
        expected = ones[0].vector if ones else 0 * vector
        cases.check(numpy.allclose(vector, expected, atol=2e-6), f"{what}: another vector")


def refused(cases: Cases, what: str, error: ValueError) -> None:
    if any(named in str(error) for named in NAMED):
        cases.refused()
    else:
        cases.wrong(f"{what}: {error}")


def record_of(doc: Doc) -> tuple[Any, dict[str, Any]]:
    return next((key, record) for key, record in doc.user_data.items() if key[1].startswith(PREFIX))


def rows_of(doc: Doc) -> numpy.ndarray:
    """The vectors of the rows of a part, by what the part answers for itself."""
    key, record = record_of(doc)
    places = {(first + key[2], last + key[2]) for first, last in record["rows"].tolist()}
    stripped = len(doc.text) - len(doc.text.lstrip()), len(doc.text.rstrip())
    sentences = [span for span in doc.sents if span.text.strip()]
    are_rows = all((span.start_char, span.start_char + len(span.text.rstrip())) in places for span in sentences)
    return numpy.stack([doc.vector] if stripped in places or not are_rows else [span.vector for span in sentences])


# Pipelines


def rebuilt(nlp: Language, folder: Path) -> Language:
    nlp.to_disk(folder)
    return spacy.load(folder)


def sourced(nlp: Language) -> Language:
    other = spacy.blank("en", vocab=nlp.vocab)
    for name in nlp.pipe_names:
        other.add_pipe(name, source=nlp)
    return other


def test_pipelines(pipelines, counted, tmp_path):
    with counted(PIPELINES) as cases:
        for i, (name, nlp, chance) in enumerate(pipelines):
            if i > 1:
                break
            texts = [make_text(chance) for _ in range(4)] + [""]
            docs = list(nlp.pipe(texts))
            expected = [[(piece.vector, piece.has_vector) for piece in pieces(doc)] for doc in docs]
            ways = {"to_disk": rebuilt(nlp, tmp_path / str(i)), "sourced": sourced(nlp)}
            for way, other in ways.items():
                for text, answers in zip(texts, expected, strict=True):
                    compare(cases, f"{name}, {way}", other(text), answers)
            with nlp.select_pipes(disable=["sbert"]):
                for doc, answers in zip([nlp(doc) for doc in docs], expected, strict=True):
                    compare(cases, f"{name}, select_pipes", doc, answers)
                for text in texts:
                    with cases.refuses(f"{name}, select_pipes", "carries no sentence vectors"):
                        restore(nlp(text))
            check_processes(cases, name, nlp, texts, expected)
            if "transformer" in nlp.pipe_names:
                nlp.replace_listeners("transformer", "sbert", ["model.tok2vec"])
                for text, answers in zip(texts, expected, strict=True):
                    compare(cases, f"{name}, replace_listeners", nlp(text), answers)


def check_processes(cases: Cases, name: str, nlp: Language, texts: list[str], expected: list[list[Any]]) -> None:
    with warned() as ours:
        docs = list(restore(nlp.pipe(texts, n_process=2, batch_size=2)))
    cases.check(not ours, f"{name}, n_process and restore: warns")
    for doc, answers in zip(docs, expected, strict=True):
        compare(cases, f"{name}, n_process", doc, answers)
