from importlib.metadata import version

import numpy
import pytest
from helpers.made_views import WORDS
from helpers.pipelines import PAIRS, no_warnings, scored_pairs
from packaging.version import Version
from scipy.stats import pearsonr, spearmanr
from spacy.training import Example
from spacy.training.loop import create_evaluation_callback

from spacy_sbert.evaluation import evaluate
from spacy_sbert.pipeline.scorer import _average_precision, score_pairs, score_sts, threshold_scores
from spacy_sbert.readers import example_doc


def processed(nlp, members, **gold):
    """An example that the pipeline has processed."""
    reference = example_doc(nlp, members, **gold)
    return Example(nlp(reference.copy()), reference)


def pairs_of(nlp, pairs):
    return [processed(nlp, (first, second), score=score) for first, second, score in pairs]


def test_correlations(make_nlp):
    """They equal SciPy's, are None where they are undefined, and NaN is an error."""
    nlp = make_nlp()
    similarities = [nlp(first).similarity(nlp(second)) for first, second, _ in PAIRS]
    gold = [score for *_, score in PAIRS]
    scores = nlp.evaluate(scored_pairs(nlp))
    assert scores["sts_spearman"] == pytest.approx(spearmanr(similarities, gold)[0])
    assert scores["sts_pearson"] == pytest.approx(pearsonr(similarities, gold)[0], abs=1e-5)
    alike = [("a man", "the cat", 0.1), ("a man", "the cat", 0.9)]
    for pairs in (PAIRS[:1], alike, [(first, second, 0.5) for first, second, _ in PAIRS], []):
        assert set(score_sts(pairs_of(nlp, pairs)).values()) == {None}
    examples = pairs_of(nlp, PAIRS)
    next(iter(examples[0].predicted.user_data.values()))["vectors"][:] = numpy.nan
    with pytest.raises(ValueError, match="not finite"):
        score_sts(examples)


def test_own_key_and_own_scorer(make_nlp, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(
        "".join(f"a\tb\tc\td\t{5 * s}\t{u}\t{v}\n" for u, v, s in PAIRS), encoding="utf8"
    )
    spans = {"@span_getters": "spacy-sbert.sentence_spans.v1", "spans_key": "mine"}
    nlp = make_nlp()
    scores = evaluate(make_nlp(spans_key="mine", model={"get_spans": spans}), path)
    assert scores == evaluate(nlp, path)
    assert scores["sts_spearman"] is not None
    nlp.get_pipe("sbert").scorer = lambda examples, **_: {
        "n": len(examples),
        "none": None,
        "of_each": {"a": 1},
    }
    found = evaluate(nlp, path)
    assert (found["pairs"], found["n"], found["none"], found["sts_spearman"]) == (
        len(PAIRS),
        len(PAIRS),
        None,
        None,
    )
    assert "of_each" not in found
    nlp.remove_pipe("sbert")
    with pytest.raises(ValueError, match="no 'sbert' pipe that scores pairs"):
        evaluate(nlp, path)


def test_each_pipe_scores_its_own_vectors(make_nlp, tiny_bert):
    nlp = make_nlp()
    nlp.add_pipe("sbert", name="cls", config={"model": {"name": str(tiny_bert), "pooling": "cls"}})
    examples = pairs_of(nlp, PAIRS)
    by_name = {name: score_sts(examples, name=name)["sts_pearson"] for name in ("sbert", "cls")}
    assert by_name["sbert"] != by_name["cls"]
    assert score_sts(examples)["sts_pearson"] == by_name["cls"]


def test_similarities_that_differ_by_rounding_are_alike(make_nlp, tmp_path):
    """Of 80 identical pairs there is no correlation, and among others they are equal ones."""
    nlp = make_nlp()
    rng = numpy.random.default_rng(1)
    texts = [" ".join(rng.choice(WORDS, 6)) for _ in range(80)]
    gold = rng.permutation(80) / 80
    path = tmp_path / "pairs.jsonl"

    def evaluated(pairs):
        path.write_text(
            "".join(f'{{"text": "{u}", "other": "{v}", "score": {g}}}\n' for u, v, g in pairs)
        )
        found = evaluate(nlp, path, format="table", members=["text", "other"], score="score")
        return found["sts_spearman"], found["sts_pearson"]

    assert evaluated([(text, text, score) for text, score in zip(texts, gold, strict=True)]) == (
        None,
        None,
    )
    others = [(texts[i], texts[i - 1], gold[i]) for i in range(0, 80, 2)]
    assert len({nlp(first).similarity(nlp(second)) for first, second, _ in others}) == 40
    same = [(texts[i], texts[i], gold[i]) for i in range(1, 80, 2)]
    cosines = [nlp(u).similarity(nlp(v)) for u, v, _ in others] + [1.0] * 40
    expected = spearmanr(cosines, [score for *_, score in [*others, *same]])[0]
    assert evaluated([*others, *same])[0] == pytest.approx(expected, abs=1e-9)


# Every kind of gold


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 3, 5, 40, 200])
def test_threshold_scores_of_every_threshold(dtype, n):
    """They are those of the threshold that scikit-learn's measures choose among all."""
    metrics = pytest.importorskip("sklearn.metrics")
    rng = numpy.random.default_rng(0)
    # Equal scores are one step
    for steps in (1, 3, n):
        scores = (rng.integers(0, steps, n) / 7).astype(dtype)
        relevant = (numpy.arange(n) % 2).astype(float)
        rng.shuffle(relevant)
        found = threshold_scores(scores, relevant)
        cuts = [numpy.inf, *numpy.unique(scores)]
        f1 = [metrics.f1_score(relevant, scores >= cut, zero_division=0) for cut in cuts]
        assert found["pair_acc"] == pytest.approx(
            max(numpy.mean((scores >= c) == relevant) for c in cuts), abs=1e-12
        )
        assert found["pair_f1"] == pytest.approx(max(f1), abs=1e-12)
        at = numpy.mean((scores >= numpy.array(found["pair_acc_threshold"], dtype)) == relevant)
        assert at == pytest.approx(found["pair_acc"], abs=1e-12)
        chosen = scores >= numpy.array(found["pair_f1_threshold"], dtype)
        for name, measure in (
            ("f1", "f1_score"),
            ("precision", "precision_score"),
            ("recall", "recall_score"),
        ):
            assert found[f"pair_{name}"] == pytest.approx(
                getattr(metrics, measure)(relevant, chosen), abs=1e-12
            )
        assert found["pair_mcc"] == pytest.approx(
            metrics.matthews_corrcoef(relevant, chosen), abs=1e-12
        )


@pytest.mark.parametrize("n", [3, 7, 300])
def test_threshold_scores_equal_sentence_transformers(n):
    module = pytest.importorskip("sentence_transformers.sentence_transformer.evaluation")
    evaluator = module.BinaryClassificationEvaluator
    rng = numpy.random.default_rng(0)
    # before, equal scores count one by one
    has_steps = Version(version("sentence-transformers")) >= Version("6.2")
    scores = (rng.integers(0, n, n) if has_steps else rng.permutation(n)).astype("float32") / 7
    relevant = (scores + rng.normal(size=n) > n / 14).astype(float)
    best, worst = numpy.argsort(scores)[[-1, 0]]
    relevant[best], relevant[worst] = 1.0, 0.0
    accuracy = evaluator.find_best_acc_and_threshold(scores, relevant, True)
    f1 = evaluator.find_best_f1_and_threshold(scores, relevant, True)
    found = threshold_scores(scores, relevant)
    ours = [
        found[f"pair_{name}"]
        for name in ("acc", "acc_threshold", "f1", "precision", "recall", "f1_threshold")
    ]
    assert ours == pytest.approx([float(value) for value in (*accuracy, *f1)], abs=1e-9)


@pytest.mark.parametrize("n", [2, 5, 300])
def test_average_precision_equals_scikit_learn(n):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = numpy.random.default_rng(0)
    scores = rng.integers(0, max(3, n // 4), n) / 7
    relevant = rng.integers(0, 2, n).astype(float)
    relevant[0] = 1.0
    expected = metrics.average_precision_score(relevant, scores)
    assert _average_precision(scores.tolist(), relevant) == pytest.approx(expected, abs=1e-12)


SENTENCES = ["A man is eating food.", "The cat sat on the mat.", "He cannot go."]


@pytest.fixture
def triplets(make_nlp):
    nlp = make_nlp()
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2)]
    return [processed(nlp, [SENTENCES[i] for i in order]) for order in orders]


@pytest.fixture
def duplicates(make_nlp):
    """Pairs that are alike or not."""
    nlp = make_nlp()
    pairs = [(0, 1, 1.0), (0, 2, 0.0), (1, 1, 1.0)]
    return [processed(nlp, [SENTENCES[i], SENTENCES[j]], score=score) for i, j, score in pairs]


def test_triplets_are_measured_by_distances(make_nlp, triplets):
    nlp = make_nlp()
    first, second, third = (nlp(text).vector for text in SENTENCES)
    near = numpy.linalg.norm(first - second)
    far = numpy.linalg.norm(first - third)
    from_second = numpy.linalg.norm(second - third)
    right = [near < far, far < near, near < from_second]
    scores = score_pairs(triplets)
    assert scores["triplet_acc"] == pytest.approx(sum(right) / 3)
    assert all(scores[key] is None for key in ("sts_spearman", "pair_ap", "nli_acc"))


def test_duplicates_are_measured_by_ranks_and_thresholds(duplicates):
    scores = score_pairs(duplicates)
    members = [example.predicted.spans["sbert"] for example in duplicates]
    cosines = [first.similarity(second) for first, second in members]
    gold = numpy.array([1.0, 0.0, 1.0])
    assert scores["pair_ap"] == pytest.approx(_average_precision(cosines, gold))
    found = threshold_scores(numpy.array(cosines, dtype="float32"), gold)
    assert {key: scores[key] for key in found} == pytest.approx(found, abs=1e-6)
    assert scores["sts_spearman"] is not None
    assert scores["triplet_acc"] is None


def test_labels_are_measured_by_accuracy(make_nlp):
    nlp = make_nlp()
    labelled = [processed(nlp, SENTENCES[:2], label=label) for label in ("yes", "no", "yes")]
    for example in labelled:
        example.predicted.spans["sbert"].attrs["sbert_label"] = "yes"
    assert score_pairs(labelled)["nli_acc"] == pytest.approx(2 / 3)


def test_labels_without_a_head_are_not_measured(make_nlp):
    """Nor are gold labels taken for those of a head."""
    nlp = make_nlp()
    labelled = [processed(nlp, SENTENCES[:2], label=label) for label in ("yes", "no", "yes")]
    assert score_pairs(labelled)["nli_acc"] is None
    assert all("label" in example.predicted.spans["sbert"].attrs for example in labelled)


def test_examples_of_several_kinds(triplets, duplicates):
    assert score_pairs([*triplets, *duplicates])["triplet_acc"] is not None


def look_up_gold(examples, **settings):
    return examples[0].reference.spans["sbert"].attrs["gold"]


def half(examples, **settings):
    return 0.5


@pytest.mark.parametrize(
    ("score", "message"),
    [
        pytest.param(look_up_gold, "looked up 'gold', .*'score'", id="KeyError"),
        pytest.param(half, "returned float. Expected a dict", id="a number"),
    ],
)
def test_errors_of_a_scorer_of_ones_own(make_nlp, score, message):
    """As spaCy takes any KeyError for that of a component without weights, E900."""
    nlp = make_nlp()
    examples = scored_pairs(nlp)
    nlp.get_pipe("sbert").scorer = score
    with pytest.raises(ValueError, match=message):
        create_evaluation_callback(nlp, lambda nlp: examples, {"a": 1.0})()


def test_texts_with_a_label_of_their_own_are_left_out_with_a_warning(make_nlp, tmp_path):
    path = tmp_path / "texts.csv"
    texts = {"a dog": "x", "the dog": "x", "a cat": "y", "the cat": "y", "he ran": "z"}
    lines = [f"{text},{label}\n" for text, label in texts.items()]
    path.write_text("text,label\n" + "".join(lines))
    with pytest.warns(UserWarning, match=r"\[sbert-labels-once\] knn_acc is of 4 of 5 .*\('z'\)"):
        scores = evaluate(make_nlp(), path, format="table", members=["text"], label="label")
    assert scores["knn_acc"] in (0, 0.25, 0.5, 0.75, 1)
    path.write_text("text,label\n" + "".join(lines[:4]))
    with no_warnings():
        evaluate(make_nlp(), path, format="table", members=["text"], label="label")
