"""Docs that come without hooks: `restore` brings them back, and comparisons that notice it name
that.
"""

import subprocess
import sys
import warnings
from collections import deque
from itertools import count, islice

import numpy
import pytest
from helpers.pipelines import warnings_with
from spacy.tokens import Doc, DocBin

from spacy_sbert import restore
from spacy_sbert.pipeline import lost_hooks
from spacy_sbert.search import SpanSearch

TEXT = "A man is eating food. The cat sat on the mat."


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(lost_hooks, "_warned", set())


@pytest.fixture
def nlp(make_nlp):
    """With a tok2vec, which answers once the hooks are gone."""
    nlp = make_nlp()
    nlp.add_pipe("tok2vec")
    nlp.initialize()
    return nlp


def docbin(*docs):
    data = DocBin(docs=docs, store_user_data=True).to_bytes()
    return DocBin().from_bytes(data).get_docs(docs[0].vocab)


def said(do):
    """Ours among the warnings."""
    with warnings_with("spacy_sbert.restore") as ours:
        given = do()
    return given, ours


def test_what_notices(make_nlp, nlp):
    doc = nlp(TEXT)
    given = next(restore(docbin(nlp(TEXT))))
    given.user_hooks.clear()
    found, warned = said(lambda: given._.sbert_most_similar(doc))
    assert len(warned) == 1
    assert found[0].score == pytest.approx(1)
    # Once
    assert said(lambda: doc.similarity(given))[1] == []
    # Whose pipe does not answer
    doc = make_nlp(set_hooks=False)(TEXT)
    given = next(docbin(doc))
    lost_hooks._warned.clear()
    assert said(lambda: (given._.sbert_similarity(doc), given._.sbert_most_similar(doc)))[1] == []


HOOKS = [
    *(("user_hooks", name) for name in ("vector", "has_vector", "vector_norm", "similarity")),
    *(("user_span_hooks", name) for name in ("vector", "has_vector", "similarity")),
    *(("user_token_hooks", name) for name in ("vector", "has_vector", "vector_norm", "similarity")),
]
READERS = {
    "doc.similarity": lambda whole, given: whole.similarity(given),
    "doc._.sbert_similarity": lambda whole, given: given._.sbert_similarity(whole),
    "doc._.sbert_most_similar": lambda whole, given: given._.sbert_most_similar(whole),
    "a query": lambda whole, given: whole._.sbert_most_similar(given),
    "SpanSearch": lambda whole, given: SpanSearch([given[:]]),
    "SpanSearch.search": lambda whole, given: SpanSearch([whole[:]]).search(given),
}


@pytest.mark.parametrize(("kind", "name"), HOOKS)
@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_a_hook_that_is_lost_is_noticed_by_the_next_comparison(nlp, kind, name, change):
    whole = nlp(TEXT)
    given = nlp(TEXT)
    hooks = getattr(given, kind)
    for reader in READERS.values():
        if change == "removed":
            hooks.pop(name)
        else:
            hooks[name] = lambda *objects: 0.0
        lost_hooks._warned.clear()
        assert len(said(lambda reader=reader: reader(whole, given))[1]) == 1
        restore(given)
        assert said(lambda reader=reader: reader(whole, given))[1] == []


@pytest.mark.parametrize("kind", ["user_hooks", "user_span_hooks", "user_token_hooks"])
def test_cleared_hooks_come_back(nlp, kind):
    doc = nlp(TEXT)
    expected = nlp(TEXT)
    setattr(doc, kind, {})
    restore(doc)
    for given, one in ((doc, expected), (doc[2:4], expected[2:4]), (doc[0], expected[0])):
        assert numpy.array_equal(given.vector, one.vector)
        assert given.similarity(one) == pytest.approx(1)


OTHER_TEXTS = [
    "A cat is eating food. The man sat on the mat.",
    "The cat sat.",
    TEXT + " He cannot go.",
    "A dog",
]
# Ways on which a Doc comes by the user data of another
TAKEN = {
    "Doc(user_data=)": lambda nlp, doc, other: restore(
        Doc(
            nlp.vocab,
            words=[token.text for token in doc],
            spaces=[bool(token.whitespace_) for token in doc],
            user_data=other.user_data,
        )
    ),
    "update": lambda nlp, doc, other: doc.user_data.update(other.user_data) or doc,
    "assigned": lambda nlp, doc, other: setattr(doc, "user_data", other.user_data) or doc,
    "copied": lambda nlp, doc, other: (
        setattr(doc, "user_data", dict(other.user_data)) or doc.copy()
    ),
    "in bytes": lambda nlp, doc, other: restore(
        Doc(nlp.vocab).from_bytes((setattr(doc, "user_data", other.user_data) or doc).to_bytes())
    ),
}


@pytest.mark.parametrize("way", TAKEN)
@pytest.mark.parametrize("text", OTHER_TEXTS)
def test_vectors_of_another_text_are_refused(nlp, way, text):
    doc = TAKEN[way](nlp, nlp(text), nlp(TEXT))
    for read in (
        lambda: doc.vector,
        lambda: doc._.sbert_vector,
        lambda: doc.has_vector,
        lambda: doc.similarity(nlp(TEXT)),
        lambda: nlp(TEXT).similarity(doc),
        lambda: SpanSearch([doc[:]]),
    ):
        with pytest.raises(ValueError, match=r"of another text.*nlp\(doc\.text\)"):
            read()
    assert not doc._.sbert_truncated
    assert numpy.array_equal(nlp.get_pipe("sbert")(doc).vector, nlp(text).vector)


def test_docs_with_their_contexts_are_restored(nlp):
    """As nlp.pipe(..., as_tuples=True, n_process=2) hands them on."""
    docs = [nlp("A man is eating."), nlp("The cat sat.")]
    for given in (
        zip(docbin(*docs), "ab", strict=True),
        list(zip(docbin(*docs), "ab", strict=True)),
    ):
        found, _ = said(lambda given=given: list(restore(given)))
        assert [context for _, context in found] == ["a", "b"]
        for (one, _), expected in zip(found, docs, strict=True):
            assert numpy.array_equal(one.vector, expected.vector)
            assert one.vector.any()
    with pytest.raises(TypeError, match="Cannot restore "):
        restore([(docs[0], "a", "b")])


def test_restore_takes_docs_alone(nlp):
    doc = nlp(TEXT)
    for given in (5, None, doc[:3], doc[0], "text", [doc, "text"], DocBin(docs=[doc])):
        with pytest.raises(TypeError, match=r"Cannot restore "):
            restore(given)
    with pytest.raises(TypeError, match="Cannot restore 'text'"):
        next(restore(iter(["text"])))
    with pytest.raises(ValueError, match="carries no sentence vectors"):
        restore([nlp.make_doc(TEXT)])
    assert restore([]) == []
    assert list(restore(iter([]))) == []


@pytest.mark.parametrize("kind", [tuple, set, deque, lambda docs: dict(enumerate(docs)).values()])
def test_restore_of_a_collection_is_a_statement(nlp, kind):
    """As the README and the warning have it: what comes back need not be used."""
    expected = [nlp("A man is eating."), nlp("The cat sat.")]
    docs = list(docbin(*expected))
    assert all(
        doc.vector.shape != one.vector.shape for doc, one in zip(docs, expected, strict=True)
    )
    collection = kind(docs)
    _, warned = said(lambda: restore(collection) and None)
    assert warned == []
    assert all(
        numpy.array_equal(doc.vector, one.vector) for doc, one in zip(docs, expected, strict=True)
    )
    again = restore(collection, nlp)
    assert isinstance(again, list)
    assert all(doc in docs for doc in again)
    assert len(again) == 2
    # Encoded by the pipeline that was given
    ((_, score),) = docs[0]._.sbert_most_similar("A man is eating.")
    assert score == pytest.approx(1)


def test_restore_of_a_stream_without_an_end_is_lazy(nlp):
    data = DocBin(
        docs=[nlp("A man is eating."), nlp("The cat sat.")], store_user_data=True
    ).to_bytes()
    taken = []

    def stream():
        for number in count():
            taken.append(number)
            yield from DocBin().from_bytes(data).get_docs(nlp.vocab)

    restored = restore(stream())
    assert taken == []
    docs, warned = said(lambda: list(islice(restored, 5)))
    assert taken == [0, 1, 2]
    assert warned == []
    assert [doc.text for doc in docs] == ["A man is eating.", "The cat sat."] * 2 + [
        "A man is eating."
    ]
    for doc in docs:
        assert numpy.array_equal(doc.vector, nlp(doc.text).vector)
    assert next(restored).text == "The cat sat."
    assert iter(restored) is restored

    # Makes its Docs each time it is read, and does not say how many
    class Stored:
        def __iter__(self):
            return docbin(nlp(TEXT))

    (doc,) = restore(Stored())
    assert numpy.array_equal(doc.vector, nlp(TEXT).vector)


def test_restore_of_a_stream_as_a_statement_says_that_nothing_was_done(nlp):
    docs = docbin(nlp(TEXT))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        restore(docs)
        (one,) = caught
    assert str(one.message).startswith("[sbert-restore-unused] Nothing was restored")
    # Where it was written
    assert one.filename == __file__
    docs, _ = said(lambda: list(docs))
    # None was taken
    assert len(docs) == 1
    # Taken of, if not to the end
    assert said(lambda: next(restore(iter(docs))))[1] == []
    assert said(lambda: list(restore(iter([]))))[1] == []


READ = """
import sys, warnings
import srsly
before = set(sys.modules)
srsly.msgpack_loads(srsly.msgpack_dumps({"a": {"b": 1}}))
print(sorted(name for name in set(sys.modules) - before if "spacy" in name))
import spacy
from spacy.tokens import Doc, DocBin
data = DocBin().from_disk(sys.argv[1])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    docs = list(data.get_docs(spacy.vocab.Vocab()))
print([(str(one.message)[:18], one.filename) for one in caught], docs[0].vector.any())
print(docs[0]._.sbert_vector.shape)
"""


def test_a_process_that_does_not_know_the_package_is_warned(nlp, tmp_path):
    DocBin(docs=[nlp(TEXT), nlp(TEXT)], store_user_data=True).to_disk(tmp_path / "docs.spacy")
    done = subprocess.run(
        [sys.executable, "-c", READ, tmp_path / "docs.spacy"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [
        # And not spaCy
        "['spacy_sbert_msgpack']",
        "[('[sbert-lost-hooks]', '<string>')] False",
        f"({len(nlp(TEXT).vector)},)",
    ], done.stderr
