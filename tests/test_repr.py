"""What things say of themselves: one line, no addresses, and nothing is loaded for it."""

import re
from html.parser import HTMLParser

import numpy
import pytest
import spacy
from pipelines import ENCODERS

from spacy_sbert.evaluation import PipelineSource
from spacy_sbert.evaluation.baselines import make_baseline
from spacy_sbert.evaluation.mteb_adapter import MtebEncoder
from spacy_sbert.evaluation.shown_results import shown
from spacy_sbert.meta.average import Average
from spacy_sbert.meta.gcca import GCCA
from spacy_sbert.readers.corpus import PairCorpus
from spacy_sbert.readers.multi import MultiCorpus
from spacy_sbert.readers.teacher import TeacherCorpus
from spacy_sbert.search import (
    BinaryVectors,
    EncoderIdentity,
    Int8Vectors,
    SpanSearch,
    VectorIndex,
    collect_spans,
    identify,
)
from spacy_sbert.visual.heatmap import heatmap

VECTORS = numpy.random.default_rng(0).normal(size=(5, 16)).astype("float32")


def is_a_line(said):
    return "\n" not in said and not re.search("0x[0-9a-f]{6}|array", said)


def test_lines():
    assert is_a_line("Thing(5 vectors)") and not is_a_line("<Thing object at 0x7f75f7cf97d0>")


def test_an_encoder_of_its_own(tiny_bert):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("sbert", name="mine", config={"model": {"name": str(tiny_bert), "pooling": "mean+max"}})
    assert repr(pipe) == f"SentenceBert('mine': {tiny_bert}, mean+max pooling, float32, not loaded yet)"
    (encoded,) = pipe.predict([nlp.make_doc("A man is eating food.")])
    assert repr(pipe) == f"SentenceBert('mine': {tiny_bert}, mean+max pooling, 32 numbers, float32 on cpu)"
    assert repr(encoded) == "EncodedDoc(1 vectors of 32 numbers, mean+max pooling)"


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder(make_nlp, tiny_bert, encoder):
    pipe = make_nlp(encoder, model={"pooling": "max"}).get_pipe("sbert")
    said = repr(pipe)
    assert is_a_line(said) and said.startswith("SentenceBert('sbert': ") and "max pooling" in said
    kinds = {
        "own": f"{tiny_bert}, ",
        "shared": f"{tiny_bert} (shared)",
        "static": f"table of wordpieces of {tiny_bert}",
        "curated": "hears any component",
        "listening": "hears any component",
    }
    assert kinds.get(encoder, "tokens, ") in said


def test_meta_embeddings(make_nlp):
    nlp = make_nlp()
    nlp.add_pipe("sbert", name="other", source=make_nlp())
    meta = nlp.add_pipe("sbert_meta")
    assert repr(meta) == "SentenceMeta('sbert_meta': conc of sbert, other, not fitted yet)"
    nlp("a man")
    assert repr(meta) == "SentenceMeta('sbert_meta': conc of sbert, other, 32 numbers)"


def test_reranker(tiny_bert):
    pipe = spacy.blank("en").add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert)}})
    assert repr(pipe) == f"SentenceReranker('sbert_reranker': {tiny_bert}, regression, float32, not loaded yet)"
    pipe.score_pairs([("a man", "the dog")])
    assert repr(pipe) == f"SentenceReranker('sbert_reranker': {tiny_bert}, regression, float32 on cpu)"


def test_vectors():
    index = VectorIndex.build(VECTORS, encoder=EncoderIdentity("model-a", 16, "a" * 64), ids=range(5))
    assert repr(index) == "VectorIndex(flat: 5 vectors of 16 numbers by model-a, with texts or ids)"
    assert repr(VectorIndex.build(VECTORS, kind="hnsw")) == "VectorIndex(hnsw: 5 vectors of 16 numbers)"
    assert repr(Int8Vectors.fit(VECTORS).apply(VECTORS)) == "Int8Vectors(5 vectors of 16 numbers)"
    assert repr(BinaryVectors.of(VECTORS)) == "BinaryVectors(5 vectors of 16 numbers)"


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])
def test_every_index(kind, tmp_path):
    pytest.importorskip("faiss")
    index = VectorIndex.build(numpy.random.default_rng(0).normal(size=(200, 8)), kind=kind)
    index.save(tmp_path / "index")
    assert repr(VectorIndex.load(tmp_path / "index")) == f"VectorIndex({kind}: 200 vectors of 8 numbers)" == repr(index)


def test_search_among_spans(make_nlp):
    docs = list(make_nlp(unit="sent").pipe(["A man is eating. The cat sat."]))
    assert repr(SpanSearch(collect_spans(docs))) == "SpanSearch(exact: 2 Spans, vectors of 16 numbers)"
    assert repr(SpanSearch(collect_spans(docs), kind="flat")) == "SpanSearch(flat: 2 Spans, vectors of 16 numbers)"


def test_models(make_nlp, tiny_bert):
    pipe = make_nlp().get_pipe("sbert")
    pipe.encode(["a man"])
    assert repr(pipe.model) == f"SentenceModel({tiny_bert}, mean pooling, 16 numbers, float32 on cpu)"
    assert is_a_line(repr(identify(pipe)))
    parts = [part for node in pipe.model.walk() for part in (node, *node.shims)]
    said = {repr(part) for part in parts if type(part).__module__.startswith("spacy_sbert")}
    assert all(map(is_a_line, said))
    assert {
        "RowTransformer(transformer)",
        "SentencePooling(sentence_pooling)",
        "SentenceEncoder(sentence_encoder)",
    } <= said
    assert f"TransformerShim({tiny_bert}, float32, on cpu)" in said
    assert is_a_line(repr(pipe.text_encoder()))


def test_sources(make_nlp):
    nlp = make_nlp()
    assert repr(PipelineSource(nlp, name="mine")) == "PipelineSource(mine)"
    assert repr(MtebEncoder(nlp)) == "MtebEncoder(spacy/en_pipeline)"
    assert repr(make_baseline("random-projection")) == "RandomProjection(random-projection (2048, seed 0))"


def test_corpora(tmp_path):
    pairs = PairCorpus("pairs.csv", limit=5)
    assert repr(pairs) == "PairCorpus(pairs.csv as sts, the first 5)"
    assert repr(PairCorpus(["a.jsonl", "b.tsv"], format="nli")) == "PairCorpus(a.jsonl as nli, b.tsv as nli)"
    assert repr(MultiCorpus({"sts": pairs, "nli": pairs})) == "MultiCorpus(proportional: sts, nli)"
    assert repr(TeacherCorpus(pairs, "teacher")) == "TeacherCorpus(PairCorpus, taught by teacher)"


def test_estimators():
    gcca = GCCA(size=2)
    assert repr(gcca) == "GCCA(size=2, normalize=True, tau=10.0: not fitted yet)"
    views = [numpy.random.default_rng(seed).normal(size=(20, 4)) for seed in range(2)]
    assert repr(gcca.fit(views)) == "GCCA(size=2, normalize=True, tau=10.0: 2 numbers)"
    assert repr(Average()) == "Average(size=None, normalize=True: any width)"


def task(suite, primary, value):
    scores = value
    for key in reversed(primary.split(".")):
        scores = {key: scores}
    return {"suite": suite, "primary": primary, "variants": [{"scores": scores}]}


def test_results():
    tasks = {
        "STS12": task("sts", "cosine.spearman.pooled", 0.72366),
        "speed": task("speed", "own.sentences_per_second", 812.34),
        "NLI": task("nli", "accuracy", None),
    }
    model = {"name": "en_mine", "digest": "0" * 64}
    results = shown({"model": model, "tasks": tasks, "skipped": {"STS13": "why"}, "failed": {}})
    assert repr(results) == "Results(en_mine: STS12 72.37, speed 812.3 sentences/s, NLI undefined, 1 skipped)"
    assert (
        repr(shown({"model": model, "tasks": {}, "skipped": {}, "failed": {}}))
        == "Results(en_mine: nothing measured yet)"
    )
    assert repr(shown({"tasks": {}})) == "{'tasks': {}}"


def test_pictures(make_nlp):
    picture = heatmap(list(make_nlp().pipe(["a man", "the dog"])))
    assert repr(picture) == "Picture('Cosine similarity of 2 texts', visual/heatmap.html)"
    assert picture._repr_html_().startswith("<figure ")


class Balance(HTMLParser):
    """The elements and their texts; each is closed where it was opened."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.cells = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open[-1] == "td":
            self.cells.append(text)


def test_a_notebook_shows_the_first_texts_of_an_index(make_nlp):
    pytest.importorskip("faiss")
    texts = ["<script>alert(1)</script> & more", "two\nlines", "x" * 200, "four", "five", "six", "seven"]
    vectors = numpy.random.default_rng(0).normal(size=(7, 4))
    page = VectorIndex.build(vectors, texts=texts)._repr_html_()
    assert Balance(page).cells[1::2] == [texts[0], "two lines", "x" * 99 + "…", "four", "five"] and "and 2 more" in page
    assert "<p>VectorIndex(flat: 7 vectors of 4 numbers, with texts or ids)</p>" in page
    assert "<td dir=auto>a</td>" in VectorIndex.build(vectors[:1], ids=["a"])._repr_html_()
    assert VectorIndex.build(vectors)._repr_html_() == "<p>VectorIndex(flat: 7 vectors of 4 numbers)</p>"
    docs = list(make_nlp(unit="sent").pipe(["A man is eating. The cat sat."]))
    page = SpanSearch(collect_spans(docs))._repr_html_()
    assert Balance(page).cells[1::2] == ["A man is eating.", "The cat sat."] and "more" not in page
