"""Whatever reads a Doc first, after whatever way it took: it has its vector, or a warning has named
`restore`.
"""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
from helpers.pipelines import warnings_with
from spacy.tokens import Doc, DocBin
from spacy.util import minibatch

from spacy_sbert import restore
from spacy_sbert.pipeline import lost_hooks
from spacy_sbert.visual import render

TEXT = "A man is eating food. The cat sat on the mat."
OTHER = "A dog ran. He cannot go."
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*W(007|008|10[129])", "ignore:.*sbert-pooled-in-context"
)


@pytest.fixture(scope="module")
def nlp(make_nlp):
    """With a tok2vec, which answers once the hooks are gone."""
    nlp = make_nlp(unit="doc+sent")
    nlp.add_pipe("tok2vec")
    nlp.initialize()
    return nlp


def docbin(*docs):
    return DocBin(docs=docs, store_user_data=True)


def merged(doc):
    data = docbin(doc)
    data.merge(docbin(doc))
    return next(data.get_docs(doc.vocab))


def through_disk(doc, path):
    docbin(doc).to_disk(path / "docs.spacy")
    return next(DocBin().from_disk(path / "docs.spacy").get_docs(doc.vocab))


def doc_through_disk(doc, path):
    doc.to_disk(path / "doc")
    return Doc(doc.vocab).from_disk(path / "doc")


def whole(stream):
    """The only item of a stream, read to its end."""
    (item,) = stream
    return item


def in_thread(read):
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(read).result()


def retokenized(doc):
    with doc.retokenize() as retokenizer:
        retokenizer.split(doc[1], ["m", "an"], heads=[(doc[1], 0), (doc[1], 0)])
    return doc


KEPT = {
    "nothing": lambda nlp, doc, path: doc,
    "copy": lambda nlp, doc, path: doc.copy(),
    "copy.copy": lambda nlp, doc, path: copy.copy(doc),
    "deepcopy": lambda nlp, doc, path: copy.deepcopy(doc),
    "pickle": lambda nlp, doc, path: pickle.loads(pickle.dumps(doc)),
    "as_doc": lambda nlp, doc, path: doc[:].as_doc(copy_user_data=True),
    "char_span": lambda nlp, doc, path: doc.char_span(0, len(doc.text)).as_doc(copy_user_data=True),
    "as_tuples": lambda nlp, doc, path: next(nlp.pipe([(doc.text, 1)], as_tuples=True))[0],
    "retokenizer": lambda nlp, doc, path: retokenized(doc),
    "thread": lambda nlp, doc, path: in_thread(lambda: nlp(doc.text)),
    "minibatch": lambda nlp, doc, path: next(minibatch([doc], 1))[0],
    "restore of a stream": lambda nlp, doc, path: next(restore(docbin(doc).get_docs(nlp.vocab))),
    "restore of from_docs": lambda nlp, doc, path: next(
        restore(Doc.from_docs(docs) for docs in [[doc]])
    ),
    "restore of n_process": lambda nlp, doc, path: next(restore(nlp.pipe([doc.text], n_process=2))),
    "restore of as_tuples": lambda nlp, doc, path: next(
        restore(nlp.pipe([(doc.text, 1)], n_process=2, as_tuples=True))
    )[0],
}
LOST = {
    "to_bytes": lambda nlp, doc, path: Doc(nlp.vocab).from_bytes(doc.to_bytes()),
    "to_dict": lambda nlp, doc, path: Doc(nlp.vocab).from_dict(doc.to_dict()),
    "to_disk": lambda nlp, doc, path: doc_through_disk(doc, path),
    "DocBin": lambda nlp, doc, path: next(docbin(doc).get_docs(nlp.vocab)),
    "DocBin, bytes": lambda nlp, doc, path: next(
        DocBin().from_bytes(docbin(doc).to_bytes()).get_docs(nlp.vocab)
    ),
    "DocBin, disk": lambda nlp, doc, path: through_disk(doc, path),
    "DocBin, merged": lambda nlp, doc, path: merged(doc),
    "DocBin, pickle": lambda nlp, doc, path: next(
        pickle.loads(pickle.dumps(docbin(doc))).get_docs(nlp.vocab)
    ),
    "DocBin in a thread": lambda nlp, doc, path: in_thread(
        lambda: next(docbin(doc).get_docs(nlp.vocab))
    ),
    "from_docs": lambda nlp, doc, path: Doc.from_docs([doc]),
    "from_docs of a copy": lambda nlp, doc, path: Doc.from_docs([doc.copy()]),
    "from_docs of a pickle": lambda nlp, doc, path: Doc.from_docs(
        [pickle.loads(pickle.dumps(doc))]
    ),
    "from_docs of as_doc": lambda nlp, doc, path: Doc.from_docs(
        [doc[:].as_doc(copy_user_data=True)]
    ),
    "from_docs of restored": lambda nlp, doc, path: Doc.from_docs(
        list(restore(docbin(doc).get_docs(nlp.vocab)))
    ),
    "n_process": lambda nlp, doc, path: whole(nlp.pipe([doc.text], n_process=2)),
    "n_process, as_tuples": lambda nlp, doc, path: whole(
        nlp.pipe([(doc.text, 1)], n_process=2, as_tuples=True)
    )[0],
    "pickle of to_bytes": lambda nlp, doc, path: pickle.loads(
        pickle.dumps(Doc(nlp.vocab).from_bytes(doc.to_bytes()))
    ),
}
# Of a Doc and another one that has its hooks
READS = {
    "vector": lambda doc, other: doc.vector,
    "vector_norm": lambda doc, other: doc.vector_norm,
    "has_vector": lambda doc, other: doc.has_vector,
    "span.vector": lambda doc, other: doc[0:6].vector,
    "token.vector": lambda doc, other: doc[3].vector,
    "sents": lambda doc, other: numpy.stack([sent.vector for sent in doc.sents]),
    "similarity": lambda doc, other: doc.similarity(other),
    "similarity to a Span": lambda doc, other: doc.similarity(other[:]),
    "similarity to a Token": lambda doc, other: doc.similarity(other[1]),
    "similarity of another": lambda doc, other: other.similarity(doc),
    "similarity of a Span": lambda doc, other: other[:].similarity(doc[0:6]),
    "similarity of a Token": lambda doc, other: other[1].similarity(doc[3]),
    "_.sbert_vector": lambda doc, other: doc._.sbert_vector,
    "_.sbert_similarity": lambda doc, other: doc._.sbert_similarity(other),
    "_.sbert_most_similar": lambda doc, other: [
        found.score for found in doc._.sbert_most_similar(other)
    ],
    "render": lambda doc, other: render([doc, other], jupyter=False).count("0."),
}
# Our functions: right at once
NEED_NONE = [name for name in READS if name.startswith(("_.", "similarity of", "render"))]


def same(found, expected):
    return numpy.shape(found) == numpy.shape(expected) and numpy.allclose(
        found, expected, atol=2e-6
    )


@pytest.mark.parametrize("way", [*KEPT, *LOST])
def test_first_reads(nlp, counted, tmp_path, way):
    other = nlp(OTHER)
    reads = (
        READS
        if way != "retokenizer"
        else {name: READS[name] for name in ("vector", "has_vector", "similarity")}
    )
    with counted("whatever reads a Doc first: the vector, or a warning has named restore") as cases:
        lost_hooks._warned.clear()
        with warnings_with("spacy_sbert.restore") as ours:
            doc = {**KEPT, **LOST}[way](nlp, nlp(TEXT), tmp_path)
        cases.check(len(ours) == (way in LOST), f"{way}: {len(ours)} warnings")
        for name, read in reads.items():
            expected = read(nlp(TEXT), other)
            if way in KEPT or name in NEED_NONE:
                cases.check(same(read(doc, other), expected), f"{way}, {name}: another result")
        restore(doc)
        for name, read in reads.items():
            cases.check(
                same(read(doc, other), read(nlp(TEXT), other)),
                f"{way}, restored, {name}: another result",
            )


def test_nothing_warns_of_vectors_that_do_not_answer(make_nlp, tmp_path):
    nlp = make_nlp(set_hooks=False)
    lost_hooks._warned.clear()
    with warnings_with("spacy_sbert.restore") as ours:
        for way, go in LOST.items():
            if "restored" not in way:
                go(nlp, nlp(TEXT), tmp_path)
    assert ours == []
