"""Every way that a Doc can take through spaCy: its vectors are those that it had, or it says that
they are not.
"""

import json
import pickle
import random
from contextlib import contextmanager
from itertools import product
from typing import NamedTuple

import numpy
import pytest
import spacy
from helpers.counted_cases import parts
from helpers.pipelines import INSTALLED, TRANSFORMERS, reloaded, warnings_with
from spacy.pipeline.functions import DocCleaner
from spacy.tokens import Doc, DocBin, Span

from spacy_sbert import restore
from spacy_sbert.pipeline import doc_vectors, lost_hooks

UNITS = ("doc", "sent", "doc+sent")
POOLINGS = ("mean", "max", "cls", "cls+mean", "lasttoken", "weightedmean")
SHARING = [encoder for encoder in TRANSFORMERS if encoder in INSTALLED]
WAYS = [*product(SHARING, UNITS, POOLINGS, ("nothing", "tok2vec", "static vectors"))]
random.Random(0).shuffle(WAYS)
TOK2VEC = {"pretrained_vectors": None, "width": 8, "depth": 1, "embed_size": 50, "window_size": 1}
TOK2VEC |= {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "maxout_pieces": 2,
    "subword_features": False,
}
WORDS = [
    "a",
    "man",
    "is",
    "eating",
    "food",
    "the",
    "cat",
    "sat",
    "on",
    "mat",
    "he",
    "cannot",
    "go",
    "dog",
    "ran",
]
NONE = "carries no sentence vectors"
pytestmark = pytest.mark.filterwarnings("ignore:.*W10[129]")


@pytest.fixture
def pipeline(request, make_nlp):
    """A pipeline with sentence borders, its name before it and a source of chance behind it."""
    way = encoder, unit, pooling, beside = WAYS[request.param]
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
    return " ".join(way), nlp, random.Random(str(way))


def make_text(chance, *around):
    """One to three sentences; around: a word at both ends of each."""
    n_words = [chance.randint(1, 4 - len(around)) for _ in range(chance.randint(1, 3))]
    return " ".join(
        " ".join([*around, *chance.choices(WORDS, k=n), *around]) + "." for n in n_words
    )


def pieces(doc):
    """What is asked for: the Doc or Span, its sentences, other Spans and Tokens."""
    sentences = (
        [sentence for sentence in doc.sents if len(sentence) <= len(doc)] if len(doc) else []
    )
    return [doc, *sentences, *(doc[i : i + 3] for i in range(0, len(doc) - 3, 2)), *list(doc)[::2]]


def answers(doc):
    return [(piece.vector, piece.has_vector) for piece in pieces(doc)]


def check(cases, what, piece, vector, has_vector):
    """One piece has this vector."""
    found = piece.vector
    same = (
        found.shape == vector.shape
        and numpy.allclose(found, vector, atol=2e-6)
        and piece.has_vector is has_vector
    )
    cases.check(same, f"{what}: {piece.text!r}")


def compare(cases, what, given, expected):
    for piece, answered in zip(pieces(given), expected, strict=True):
        check(cases, f"{what}, {given.text!r}", piece, *answered)


@contextmanager
def warned():
    """Ours among the warnings, as in a process where nothing was said yet."""
    lost_hooks._warned.clear()
    with warnings_with("spacy_sbert.restore") as ours:
        yield ours


def through_docbin(doc, *, store_user_data=True):
    data = DocBin(docs=[doc], store_user_data=store_user_data).to_bytes()
    return next(DocBin().from_bytes(data).get_docs(doc.vocab))


def through_bytes(doc, **settings):
    return Doc(doc.vocab).from_bytes(doc.to_bytes(**settings))


def through_disk(doc, path):
    doc.to_disk(path)
    return Doc(doc.vocab).from_disk(path)


def pickled(doc):
    return pickle.loads(pickle.dumps(doc))


# With hooks: as before, and no warning
KEPT = {
    "copy": Doc.copy,
    "pickle": pickled,
    "as_doc with user data": lambda doc: doc[:].as_doc(copy_user_data=True),
    "doc_cleaner": lambda doc: DocCleaner({"tensor": None, "_.trf_data": None})(doc.copy()),
    "restore of what needs none": lambda doc: restore(doc.copy()),
    "copy, pickle, copy": lambda doc: pickled(doc.copy()).copy(),
}
# Without hooks: compared, a warning; as before after restore
RESTORED = {
    "to_bytes": through_bytes,
    "DocBin with user data": through_docbin,
    "from_docs of one": lambda doc: Doc.from_docs([doc]),
    "to_bytes, DocBin": lambda doc: through_docbin(through_bytes(doc)),
    "pickle, to_bytes, pickle": lambda doc: pickled(through_bytes(pickled(doc))),
}
# Without what is stored: all that reads it refuses
LOST = {
    "DocBin without user data": lambda doc: through_docbin(doc, store_user_data=False),
    "JSON": lambda doc: Doc(doc.vocab).from_json(json.loads(json.dumps(doc.to_json()))),
    "to_bytes without user data": lambda doc: through_bytes(doc, exclude=["user_data"]),
    "from_docs without user data": lambda doc: Doc.from_docs([doc], exclude=["user_data"]),
}


@pytest.mark.parametrize("pipeline", parts(len(WAYS)), indirect=True)
def test_whole_docs(pipeline, counted, tmp_path):
    name, nlp, chance = pipeline
    ways = {**RESTORED, "to_disk": lambda doc: through_disk(doc, tmp_path / "doc")}
    with counted(
        "a Doc that was copied, stored or sent has the vectors that it had, or says that it has not"
    ) as cases:
        docs = list(nlp.pipe([make_text(chance), make_text(chance), "", " "]))
        for doc in docs:
            expected = answers(doc)
            for way, go in KEPT.items():
                with warned() as ours:
                    compare(cases, f"{name}, {way}", go(doc), expected)
                cases.check(not ours, f"{name}, {way}, {doc.text!r}: warns, though all is right")
            for way, go in ways.items():
                with warned() as ours:
                    given = go(doc)
                    docs[0].similarity(given)
                cases.check(
                    len(ours) == 1,
                    f"{name}, {way}, {doc.text!r}: {len(ours)} warnings that name restore",
                )
                compare(cases, f"{name}, {way}", restore(given), expected)
                similar = (restore(given).similarity(docs[0]), docs[0].similarity(given))
                holds = numpy.allclose(similar, doc.similarity(docs[0]), atol=1e-5)
                cases.check(holds, f"{name}, {way}, {doc.text!r}: similarity {similar}")
            for way, go in LOST.items():
                check_lost(cases, f"{name}, {way}, {doc.text!r}", go(doc), doc)
        for merge in (True, False):
            check_retokenized(cases, f"{name}, retokenizer, merge = {merge}", docs[0], merge=merge)


def check_lost(cases, what, given, doc):
    for ask in (restore, lambda given: list(restore([given])), lambda given: given._.sbert_vector):
        with cases.refuses(what, NONE, "store_user_data=True"):
            ask(given)
    # Similar to nothing
    if not doc.has_vector:
        return
    if given.has_vector and given.vector.shape == doc.vector.shape:
        # spaCy's mean of doc.tensor, which an sbert_transformer sets
        doc_vectors._warned.clear()
        with warnings_with("sbert-other-encoder") as ours:
            doc.similarity(given)
        cases.check(len(ours) == 1, f"{what}: similarity without a warning of two encoders")
        return
    with cases.refuses(f"{what}: similarity", "Both sides" if given.has_vector else NONE):
        doc.similarity(given)


def check_retokenized(cases, what, doc, *, merge):
    asked = [doc[:], *(piece for piece in pieces(doc) if isinstance(piece, Span))]
    expected = {(span.start_char, span.end_char): (span.vector, span.has_vector) for span in asked}
    given = doc.copy()
    # spaCy would give the new word the Span's vector, as a static one
    if merge and doc.vocab.vectors_length:
        given.user_span_hooks.clear()
        given.user_token_hooks.clear()
    with given.retokenize() as retokenizer:
        if merge:
            retokenizer.merge(given[0:2])
        else:
            first = max(given, key=len)
            retokenizer.split(
                first, [first.text[:1], first.text[1:]], heads=[(first, 0), (first, 0)]
            )
    restore(given)
    for place, answered in expected.items():
        span = given.char_span(*place)
        if span is not None:
            check(cases, f"{what}, {doc.text!r}", span, *answered)


class Part(NamedTuple):
    """A Doc to join; source: the Doc that it was cut out of, None if it carries no vectors."""

    kind: str
    doc: Doc
    source: Doc | None

    @property
    def is_whole(self):
        return self.source is not None and self.doc.text == self.source.text


KINDS = (
    "whole",
    "cut left",
    "cut right",
    "cut",
    "sentence",
    "unprocessed",
    "without user data",
    "empty",
)


def make_part(kind, nlp, chance, letter):
    """A part of a joined Doc. Its letter at both ends of each sentence makes its text unlike that
    of other parts.
    """
    text = make_text(chance, letter) + (
        " " + make_text(chance, letter) if kind.startswith("cut") else ""
    )
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


@pytest.mark.parametrize("pipeline", parts(len(WAYS)), indirect=True)
def test_joined_docs(pipeline, counted):
    name, nlp, chance = pipeline
    promise = (
        "a cut or joined Doc has the vectors of the text that is there, or an error names what "
        "has none"
    )
    with counted(promise) as cases:
        pairs = chance.sample([*product(KINDS, repeat=2)], 24)
        for kinds in [*pairs, *(chance.choices(KINDS, k=chance.randint(1, 5)) for _ in range(12))]:
            made = [
                make_part(kind, nlp, chance, letter)
                for kind, letter in zip(kinds, "bcdfg", strict=False)
            ]
            check_joined(cases, name, made, chance)


def check_joined(cases, name, made, chance):
    ensure_whitespace = chance.random() < 0.7
    kinds = [(part.kind, part.doc.text) for part in made]
    what = f"{name}, {kinds}, ensure_whitespace = {ensure_whitespace}"
    # spaCy cannot join them
    exclude = ["tensor"] if len({part.doc.tensor.shape[1:] for part in made}) > 1 else []
    given = Doc.from_docs(
        [part.doc for part in made], ensure_whitespace=ensure_whitespace, exclude=exclude
    )
    if all(part.source is None for part in made):
        with cases.refuses(what, NONE):
            restore(given)
        return
    way = chance.choice([lambda doc: doc, through_bytes, through_docbin, Doc.copy])
    given = restore(way(given))
    first = 0
    for part in made:
        check_part(cases, what, part, given[first : first + len(part.doc)])
        first += len(part.doc)
    check_mean(cases, f"{what}: the mean", name, made, given)


def check_part(cases, what, part, there):
    """Compare Spans of a part with the same Spans where it stands now."""
    n = len(part.doc)
    for start, end in {(0, n), *((i, min(i + 2, n)) for i in range(0, n, 2))}:
        piece = part.doc[start:end]
        if not piece.text.strip():
            continue
        right = None if part.source is None else piece.vector
        place = f"{what}, in the part {part.kind}: {piece.text!r}"
        judge(cases, place, there[start:end], right, must=part.is_whole)


def check_mean(cases, what, name, made, given):
    """Compare the vector of the joined Doc with the mean of its parts, where it has one."""
    texts = [part for part in made if part.doc.text.strip()]
    if all(part.is_whole for part in texts):
        judge(cases, what, given, mean_of_parts(name, made, texts), must=True)
        return
    is_one = len(texts) == 1 and texts[0].source is not None
    judge(cases, what, given, texts[0].doc.vector if is_one else None, must=False)


def mean_of_parts(name, made, texts):
    """The mean is of the sentences where they alone were encoded."""
    of_sentences = name.split()[1] == "sent"
    rows = []
    for part in texts:
        rows.extend(part.doc.sents if of_sentences else [part.doc])
    vectors = [row.vector for row in rows if row.text.strip()]
    return numpy.mean(vectors, axis=0) if vectors else 0 * made[0].doc.vector


def judge(cases, what, given, right, *, must):
    """The vector is right, or, unless there must be one, an error says that there is none; None:
    there is none.
    """
    try:
        vector = given.vector
    except ValueError as error:
        if must:
            cases.wrong(f"{what}: {error}")
        else:
            cases.check_message(error, what, "joined from others")
    else:
        cases.check(
            right is not None and numpy.allclose(vector, right, atol=2e-6),
            f"{what}: another vector",
        )


def sourced(nlp):
    other = spacy.blank("xx", vocab=nlp.vocab)
    other.tokenizer = nlp.tokenizer
    for name in nlp.pipe_names:
        other.add_pipe(name, source=nlp)
    return other


@pytest.mark.parametrize("pipeline", parts(len(WAYS))[::3], indirect=True)
def test_pipelines(pipeline, counted, tmp_path):
    name, nlp, chance = pipeline
    with counted(
        "a pipeline that was stored, taken apart or sourced makes the vectors that it made"
    ) as cases:
        texts = [make_text(chance) for _ in range(4)] + [""]
        docs = list(nlp.pipe(texts))
        expected = [answers(doc) for doc in docs]

        def compare_all(what, given):
            for doc, answered in zip(given, expected, strict=True):
                compare(cases, f"{name}, {what}", doc, answered)

        for way, other in {
            "to_disk": reloaded(nlp, tmp_path / "nlp"),
            "sourced": sourced(nlp),
        }.items():
            compare_all(way, map(other, texts))
        with nlp.select_pipes(disable=["sbert"]):
            compare_all("select_pipes", map(nlp, docs))
            for text in texts:
                with cases.refuses(f"{name}, select_pipes", NONE):
                    restore(nlp(text))
        with warned() as ours:
            docs = list(restore(nlp.pipe(texts, n_process=2, batch_size=2)))
        cases.check(not ours, f"{name}, n_process and restore: warns")
        compare_all("n_process", docs)
        if "transformer" in nlp.pipe_names:
            nlp.replace_listeners("transformer", "sbert", ["model.tok2vec"])
            compare_all("replace_listeners", map(nlp, texts))
