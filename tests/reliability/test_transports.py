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

WHOLE = "a Doc that was copied, stored or sent has the vectors that it had, or says that it has not"
JOINED = "a cut or joined Doc has the vectors of the text that is there, or an error names what has none"
PIPELINES = "a pipeline that was stored, taken apart or sourced makes the vectors that it made"
UNITS, POOLINGS = ("doc", "sent", "doc+sent"), ("mean", "max", "cls", "cls+mean", "lasttoken", "weightedmean")
SHARING = [encoder for encoder in TRANSFORMERS if encoder in INSTALLED]
WAYS = [*product(SHARING, UNITS, POOLINGS, ("nothing", "tok2vec", "static vectors"))]
random.Random(0).shuffle(WAYS)
N_PARTS = 36
TOK2VEC = {"pretrained_vectors": None, "width": 8, "depth": 1, "embed_size": 50, "window_size": 1}
TOK2VEC |= {"@architectures": "spacy.HashEmbedCNN.v2", "maxout_pieces": 2, "subword_features": False}
WORDS = ["a", "man", "is", "eating", "food", "the", "cat", "sat", "on", "mat", "he", "cannot", "go", "dog", "ran"]
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


def make_text(chance: random.Random, *around: str) -> str:
    """One to three sentences; around: a word at both ends of each."""
    n_words = [chance.randint(1, 4 - len(around)) for _ in range(chance.randint(1, 3))]
    return " ".join(" ".join([*around, *chance.choices(WORDS, k=n), *around]) + "." for n in n_words)


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
    """A Doc to join; source: the Doc that it was cut out of, None if it carries no vectors."""

    kind: str
    doc: Doc
    source: Doc | None

    @property
    def is_whole(self) -> bool:
        return self.source is not None and self.doc.text == self.source.text


KINDS = ("whole", "cut left", "cut right", "cut", "sentence", "unprocessed", "without user data", "empty")


def make_part(kind: str, nlp: Language, chance: random.Random, letter: str) -> Part:
    """A part of a joined Doc. Its letter at both ends of each sentence makes its text unlike that of other parts."""
    text = make_text(chance, letter) + (" " + make_text(chance, letter) if kind.startswith("cut") else "")
    if kind == "unprocessed":
        return Part(kind, nlp.get_pipe("sentencizer")(nlp.make_doc(text)), None)
    doc = nlp(chance.choice(["", " "]) if kind == "empty" else text)
    if kind in ("whole", "empty"):
        return Part(kind, doc, doc)
    if kind == "without user data":
        return Part(kind, doc[: chance.randint(1, len(doc))].as_doc(), None)
    start = chance.randint(1, len(doc) - 2) if kind in ("cut left", "cut") else 0
    end = chance.randint(start + 1, len(doc) - 1) if kind in ("cut right", "cut") else len(doc)
    span = chance.choice(list(doc.sents)) if kind == "sentence" else doc[start:end]
    return Part(kind, span.as_doc(copy_user_data=True), doc)


def test_joined_docs(pipelines, counted):
    with counted(JOINED) as cases:
        for name, nlp, chance in pipelines:
            pairs = chance.sample([*product(KINDS, repeat=2)], 24)
            for kinds in [*pairs, *(chance.choices(KINDS, k=chance.randint(1, 5)) for _ in range(12))]:
                made = [make_part(kind, nlp, chance, letter) for kind, letter in zip(kinds, "bcdfg", strict=False)]
                check_joined(cases, name, made, chance)


def check_joined(cases: Cases, name: str, made: list[Part], chance: random.Random) -> None:
    ensure_whitespace = chance.random() < 0.7
    what = f"{name}, {[(part.kind, part.doc.text) for part in made]}, ensure_whitespace = {ensure_whitespace}"
    exclude = ["tensor"] if len({part.doc.tensor.shape[1:] for part in made}) > 1 else []  # spaCy cannot join them
    given = Doc.from_docs([part.doc for part in made], ensure_whitespace=ensure_whitespace, exclude=exclude)
    if all(part.source is None for part in made):
        with cases.refuses(what, "carries no sentence vectors"):
            restore(given)
        return
    given = restore(chance.choice([lambda doc: doc, through_bytes, through_docbin, Doc.copy])(given))
    first = 0
    for part in made:
        n = len(part.doc)
        for start, end in {(0, n), *((i, min(i + 2, n)) for i in range(0, n, 2))}:
            piece = part.doc[start:end]
            if piece.text.strip():
                right = None if part.source is None else piece.vector
                place = f"{what}, in the part {part.kind}: {piece.text!r}"
                judge(cases, place, given[first + start : first + end], right, must=part.is_whole)
        first += n
    texts = [part for part in made if part.doc.text.strip()]
    if all(part.is_whole for part in texts):
        rows = [rows_of(part.doc, name) for part in texts]
        mean = numpy.mean(numpy.concatenate(rows), axis=0) if rows else 0 * made[0].doc.vector
        judge(cases, f"{what}: the mean", given, mean, must=True)
    else:
        alone = texts[0] if len(texts) == 1 and texts[0].source is not None else None
        judge(cases, f"{what}: the mean", given, None if alone is None else alone.doc.vector, must=False)


def judge(cases: Cases, what: str, given: Doc | Span, right: numpy.ndarray | None, *, must: bool) -> None:
    """The vector is right, or, unless there must be one, an error says that there is none; None: there is none."""
    try:
        vector = given.vector
    except ValueError as error:
        if must or "joined from others" not in str(error):
            cases.wrong(f"{what}: {error}")
        else:
            cases.refused()
    else:
        cases.check(right is not None and numpy.allclose(vector, right, atol=2e-6), f"{what}: another vector")


def rows_of(doc: Doc, name: str) -> list[numpy.ndarray]:
    """The vectors whose mean is that of a Doc: of its sentences where they alone were encoded."""
    sentences = [sentence.vector for sentence in doc.sents if sentence.text.strip()]
    return sentences if name.split()[1] == "sent" else [doc.vector]


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
        *_, (name, nlp, chance) = pipelines
        texts = [make_text(chance) for _ in range(4)] + [""]
        docs = list(nlp.pipe(texts))
        expected = [[(piece.vector, piece.has_vector) for piece in pieces(doc)] for doc in docs]
        ways = {"to_disk": rebuilt(nlp, tmp_path), "sourced": sourced(nlp)}
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
