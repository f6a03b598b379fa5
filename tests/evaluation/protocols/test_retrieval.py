"""Retrieval: readers of collections, measures of rankings, the suite, and the scorer."""

import json

import numpy
import pytest
from helpers.pipelines import real_data
from spacy.training import Example

from spacy_sbert import find_sbert
from spacy_sbert.evaluation import PipelineSource, Settings, evaluate_suites
from spacy_sbert.evaluation.compare import compare
from spacy_sbert.evaluation.ranking_measures import MEASURES, ranking_measures
from spacy_sbert.evaluation.retrieval_data import read_beir, read_cranfield
from spacy_sbert.evaluation.retrieval_scorer import make_retrieval_scorer
from spacy_sbert.search import nearest

DOCUMENTS = {
    "d1": "A man is eating food.",
    "d2": "The cat sat on the mat.",
    "d3": "He cannot go to work today.",
    "d4": "The dog ran fast.",
}
QUERIES = {"q1": "Someone is having a meal.", "q2": "The cat sat.", "q3": "Nobody asks."}
QRELS = [("q1", "d1", 2), ("q1", "d4", 1), ("q2", "d2", 1), ("q3", "d1", 0)]


def write_beir(folder, documents=DOCUMENTS, queries=QUERIES, qrels=QRELS, split="test"):
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    corpus = [{"_id": key, "title": "", "text": text} for key, text in documents.items()]
    asked = [{"_id": key, "text": text} for key, text in queries.items()]
    for name, records in (("corpus", corpus), ("queries", asked)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf8")
    rows = [("query-id", "corpus-id", "score"), *qrels]
    table = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    (folder / "qrels" / f"{split}.tsv").write_text(table, encoding="utf8")
    return folder


def test_measures_by_hand():
    # Relevant: 7 with gain 3, 5 with gain 1, 9 with gain 1, which is not found
    ranked = numpy.array([[4, 7, 1, 5]])
    measured = ranking_measures(ranked, [{7: 3, 5: 1, 9: 1, 4: 0}])
    found = 3 / numpy.log2(3) + 1 / numpy.log2(5)
    best = 3 + 1 / numpy.log2(3) + 1 / numpy.log2(4)
    assert tuple(measured) == MEASURES
    assert measured["ndcg_at_10"] == pytest.approx(found / best)
    assert measured["mrr_at_10"] == pytest.approx(1 / 2)
    assert measured["recall_at_100"] == pytest.approx(2 / 3)
    assert measured["map_at_100"] == pytest.approx((1 / 2 + 2 / 4) / 3)


def test_only_the_first_ten_count():
    ranked = numpy.arange(100)[None]
    measured = ranking_measures(ranked, [{10: 1}])
    assert measured["ndcg_at_10"] == measured["mrr_at_10"] == 0
    assert measured["recall_at_100"] == 1
    assert measured["map_at_100"] == pytest.approx(1 / 11)


def test_measures_of_sentence_transformers():
    rng = numpy.random.default_rng(0)
    queries = [f"query {number}" for number in range(20)]
    documents = [f"document {number}" for number in range(300)]
    rows = rng.normal(size=(320, 8)).astype("float32")
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    vector_of = dict(zip([*queries, *documents], rows, strict=True))
    relevant = [set(rng.choice(300, rng.integers(1, 140), replace=False).tolist()) for _ in queries]
    torch = pytest.importorskip("torch")

    class Encoder:
        def encode(self, texts, **kwargs):
            return torch.from_numpy(numpy.stack([vector_of[text] for text in texts]))

        encode_query = encode
        encode_document = encode

    evaluation = pytest.importorskip("sentence_transformers.evaluation")
    evaluator = evaluation.InformationRetrievalEvaluator(
        {str(row): text for row, text in enumerate(queries)},
        {f"{row:05d}": text for row, text in enumerate(documents)},
        {str(row): {f"{each:05d}" for each in found} for row, found in enumerate(relevant)},
        mrr_at_k=[10],
        ndcg_at_k=[10],
        precision_recall_at_k=[100],
        map_at_k=[100],
        score_functions={"cosine": lambda a, b: a @ b.T},
    )
    theirs = evaluator.compute_metrices(Encoder())["cosine"]
    _, found = nearest(rows[:20], rows[20:], k=100)
    ours = ranking_measures(found, [dict.fromkeys(rows, 1) for rows in relevant])
    pairs = {
        "ndcg_at_10": theirs["ndcg@k"][10],
        "mrr_at_10": theirs["mrr@k"][10],
        "recall_at_100": theirs["recall@k"][100],
        "map_at_100": theirs["map@k"][100],
    }
    for name, expected in pairs.items():
        assert ours[name].mean() == pytest.approx(expected, abs=1e-6), name


def test_a_collection_is_read(tmp_path):
    collection = read_beir(write_beir(tmp_path))
    assert list(collection.documents) == list(DOCUMENTS.values())
    assert list(collection.queries) == [QUERIES["q1"], QUERIES["q2"]], "q3 has none relevant"
    assert [dict(gains) for gains in collection.gains] == [{0: 2, 3: 1}, {1: 1}]


def test_titles_stand_before_texts(tmp_path):
    write_beir(tmp_path)
    records = [{"_id": key, "title": "A title", "text": text} for key, text in DOCUMENTS.items()]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "corpus.jsonl").write_text(lines, encoding="utf8")
    assert read_beir(tmp_path).documents[0] == "A title A man is eating food."


BAD_QRELS = {
    "unknown_query": (("q9", "d1", 1), r"test.tsv, line 2: .*'q9'"),
    "unknown_document": (("q1", "d9", 1), r"test.tsv, line 2: .*'d9'"),
    "no_whole_number": (("q1", "d1", "high"), r"test.tsv, line 2: .*'high' is no whole number"),
    "half": (("q1", "d1", 0.5), r"test.tsv, line 2: .*'0.5' is no whole number"),
    "nothing_relevant": (("q1", "d1", 0), "no relevant document"),
}


@pytest.mark.parametrize(("row", "message"), BAD_QRELS.values(), ids=BAD_QRELS)
def test_bad_judgements_are_named(tmp_path, row, message):
    with pytest.raises(ValueError, match=message):
        read_beir(write_beir(tmp_path, qrels=[row]))


def test_judgements_twice_are_named(tmp_path):
    folder = write_beir(tmp_path, qrels=[("q1", "d1", 1), ("q1", "d1", 2)])
    with pytest.raises(ValueError, match=r"line 3: .*'d1'"):
        read_beir(folder)


def test_ids_twice_and_empty_queries_are_named(tmp_path):
    write_beir(tmp_path)
    corpus = tmp_path / "corpus.jsonl"
    text = corpus.read_text(encoding="utf8")
    corpus.write_text(text + text.splitlines()[0] + "\n", encoding="utf8")
    with pytest.raises(ValueError, match=r"corpus.jsonl, line 5: .*'d1'"):
        read_beir(tmp_path)
    write_beir(tmp_path, queries={**QUERIES, "q4": " "})
    with pytest.raises(ValueError, match=r"queries.jsonl, line 4: .*'q4'"):
        read_beir(tmp_path)
    corpus.write_text('{"_id": "d1", "title": ""}\n', encoding="utf8")
    with pytest.raises(ValueError, match="'text'"):
        read_beir(tmp_path)


@pytest.fixture(scope="module")
def collections(tmp_path_factory):
    root = tmp_path_factory.mktemp("collections")
    write_beir(root / "animals")
    write_beir(root / "animals", split="dev")
    return root


def test_the_suite_measures_each_search(collections, make_nlp):
    nlp = make_nlp()
    results = evaluate_suites(
        PipelineSource(nlp), collections, ["retrieval"], settings=Settings(bootstrap=50)
    )
    assert not results["failed"]
    task = results["tasks"]["animals"]
    scores = task["variants"][0]["scores"]
    assert task["counts"] == {"documents": 4, "all": 2}
    assert set(scores) >= {"vectors", "hnsw", "bm25", "hybrid"}
    pipe = find_sbert(nlp)
    collection = read_beir(collections / "animals")
    rows = nearest(pipe.encode(collection.queries), pipe.encode(collection.documents), k=4)[1]
    expected = ranking_measures(rows, collection.gains)
    for name, values in expected.items():
        assert scores["vectors"][name] == pytest.approx(values.mean()), name
    low, high = task["intervals"]["vectors.ndcg_at_10"]
    assert low <= scores["vectors"]["ndcg_at_10"] <= high
    # "cat" and "sat" are words of d2 alone
    assert scores["bm25"]["recall_at_100"] == 1.0
    compared = compare([results, results], files=["a", "b"])
    assert compared["tasks"]["animals"]["figures"][0] == scores["vectors"]["ndcg_at_10"]


def prompted(make_nlp, **prompts):
    return make_nlp(model={"prompts": prompts})


def test_queries_and_documents_get_their_prompts(collections, make_nlp):
    nlp = prompted(make_nlp, query="The cat ", passage="He cannot ")
    results = evaluate_suites(
        PipelineSource(nlp), collections, ["retrieval"], settings=Settings(bootstrap=0)
    )
    pipe = find_sbert(nlp)
    collection = read_beir(collections / "animals")
    queries = pipe.encode(collection.queries, prompt_name="query")
    documents = pipe.encode(collection.documents, prompt_name="passage")
    assert numpy.abs(queries - pipe.encode(collection.queries)).max() > 1e-3
    rows = nearest(queries, documents, k=4)[1]
    expected = ranking_measures(rows, collection.gains)
    scores = results["tasks"]["animals"]["variants"][0]["scores"]["vectors"]
    for name, values in expected.items():
        assert scores[name] == pytest.approx(values.mean()), name


def test_the_scorer_searches(collections, make_nlp):
    scorer = make_retrieval_scorer(str(collections / "animals"), split="dev")
    nlp = make_nlp()
    pipe = find_sbert(nlp)
    pipe.scorer = scorer
    example = Example(nlp.make_doc("A cat."), nlp.make_doc("A cat."))
    scores = nlp.evaluate([example])
    collection = read_beir(collections / "animals", "dev")
    rows = nearest(pipe.encode(collection.queries), pipe.encode(collection.documents), k=4)[1]
    expected = ranking_measures(rows, collection.gains)
    for name in MEASURES:
        assert scores[name] == pytest.approx(expected[name].mean()), name


def test_the_scorer_names_a_folder_that_is_missing(tmp_path, make_nlp):
    nlp = make_nlp()
    find_sbert(nlp).scorer = make_retrieval_scorer(str(tmp_path / "missing"))
    example = Example(nlp.make_doc("A cat."), nlp.make_doc("A cat."))
    with pytest.raises(OSError, match="missing"):
        nlp.evaluate([example])


def test_cranfield_is_read():
    collection = read_cranfield(real_data() / "retrieval" / "cranfield")
    assert (len(collection.documents), len(collection.queries)) == (1400, 225)
    best = [max(gains.values()) for gains in collection.gains]
    assert min(best) >= 1
    assert max(best) == 4
    assert sum(sum(gain > 0 for gain in gains.values()) for gains in collection.gains) == 1612
    assert collection.queries[0].startswith("what similarity laws must be obeyed")
