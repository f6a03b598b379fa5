import numpy
import pytest
from pipelines import PAIRS, make_example
from scipy.stats import pearsonr, spearmanr

from spacy_sbert.scorer import score_sts


@pytest.fixture
def scored(make_nlp):
    def scored(pairs, **config):
        nlp = make_nlp(**config)
        examples = [make_example(nlp, *pair) for pair in pairs]
        return nlp, examples

    return scored


def test_scores_are_scipys_on_separately_encoded_texts(scored):
    nlp, examples = scored(PAIRS)
    similarities = [nlp(first).similarity(nlp(second)) for first, second, _ in PAIRS]
    gold = [score for *_, score in PAIRS]
    scores = nlp.evaluate(examples)
    assert scores["sts_spearman"] == pytest.approx(spearmanr(similarities, gold)[0])
    assert scores["sts_pearson"] == pytest.approx(pearsonr(similarities, gold)[0], abs=1e-5)


@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS[:1],
        [("a man", "the cat", 0.1), ("a man", "the cat", 0.9)],  # all similarities alike
        [(first, second, 0.5) for first, second, _ in PAIRS],  # all gold scores alike
        [],
    ],
)
def test_undefined_correlations_are_none(scored, pairs):
    nlp, examples = scored(pairs)
    assert score_sts(examples if not pairs else [_run(nlp, e) for e in examples]) == {
        "sts_spearman": None,
        "sts_pearson": None,
    }


def _run(nlp, example):
    example.predicted = nlp.get_pipe("sbert")(example.predicted)
    return example


def test_docs_without_vectors(scored):
    _, examples = scored(PAIRS)
    with pytest.raises(ValueError, match="carries no sentence vectors"):
        score_sts(examples)


def test_nan_is_an_error(scored):
    nlp, examples = scored(PAIRS)
    run = [_run(nlp, example) for example in examples]
    next(iter(run[0].predicted.user_data.values()))["vectors"][:] = numpy.nan
    with pytest.raises(ValueError, match="not finite"):
        score_sts(run)


def test_pipe_without_scorer(scored):
    nlp, examples = scored(PAIRS, scorer=None)
    assert "sts_spearman" not in nlp.evaluate(examples)


def test_the_pipe_that_answers_reports_the_plain_keys(scored, tiny_bert):
    nlp, examples = scored(PAIRS)
    expected = nlp.evaluate(examples)
    quiet = {"model": {"name": str(tiny_bert), "pooling": "cls"}, "set_hooks": False}
    nlp.add_pipe("sbert", name="quiet", config=quiet)
    scores = nlp.evaluate(examples)
    assert scores["sts_pearson"] == expected["sts_pearson"] != scores["quiet_sts_pearson"]


def test_evaluate_follows_the_pipes_key(make_nlp, tmp_path):
    from spacy_sbert.evaluate import evaluate

    path = tmp_path / "pairs.csv"
    path.write_text("".join(f"a\tb\tc\td\t{5 * s}\t{u}\t{v}\n" for u, v, s in PAIRS), encoding="utf8")
    spans = {"@span_getters": "spacy-sbert.sentence_spans.v1", "spans_key": "mine"}
    scores = evaluate(make_nlp(spans_key="mine", model={"get_spans": spans}), path)
    assert scores == evaluate(make_nlp(), path) and scores["sts_spearman"] is not None


def test_each_pipe_scores_its_own_vectors(scored, tiny_bert):
    nlp, examples = scored(PAIRS)
    nlp.add_pipe("sbert", name="cls", config={"model": {"name": str(tiny_bert), "pooling": "cls"}})
    docs = [nlp(e.predicted) for e in examples]
    for example, doc in zip(examples, docs, strict=True):
        example.predicted = doc
    by_name = {name: score_sts(examples, name=name)["sts_pearson"] for name in ("sbert", "cls")}
    assert by_name["sbert"] != by_name["cls"]
    assert score_sts(examples)["sts_pearson"] == by_name["cls"]
