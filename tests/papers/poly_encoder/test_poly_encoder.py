"""The poly-encoder of benchmarks/papers/poly_encoder: its formula, its gradients, and a pipeline of
it that is trained, saved and loaded.
"""

import numpy
import pytest
import spacy
from helpers.pipelines import ROOT, real_data
from sklearn.metrics import average_precision_score
from spacy.cli.train import train
from spacy.util import import_file, load_config
from thinc.types import Ragged

from spacy_sbert import find_sbert
from spacy_sbert.losses import check_gradient

FOLDER = ROOT / "benchmarks" / "papers" / "poly_encoder"
N_CODES = 3
WIDTH = 16
TEXTS = ["A man is eating food.", "Someone has a meal.", "It rains."]


@pytest.fixture(scope="module")
def poly():
    """The file that --code names."""
    return import_file("poly_encoder", FOLDER / "poly_encoder.py")


@pytest.fixture(scope="module")
def compare(load_script):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield load_script("compare")


@pytest.fixture
def nlp(poly, tiny_bert):
    encoder = {"@architectures": "spacy-sbert.SentenceEncoder.v1", "name": str(tiny_bert)}
    model = {
        "@architectures": "poly_encoder.v1",
        "encoder": encoder,
        "n_codes": N_CODES,
        "width": WIDTH,
    }
    loss = {"@layers": "poly_ranking.v1", "n_codes": N_CODES}
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": model, "loss": loss, "token_vectors": False})
    nlp.initialize()
    return nlp


@pytest.fixture
def layer(poly):
    """The layer of codes in float64, with states of three texts."""
    rng = numpy.random.default_rng(0)
    layer = poly.code_attention(N_CODES, 6, learn_rate_factor=2.0)
    layer.initialize()
    layer.set_param("codes", rng.normal(size=(N_CODES, 6)))
    return layer, Ragged(rng.normal(size=(9, 6)), numpy.array([4, 1, 4], dtype="int32"))


def softmax(logits):
    powers = numpy.exp(logits)
    return powers / powers.sum()


def test_vectors_by_hand(layer):
    """The mean, and each code's weighted mean of the states, at unit length."""
    model, states = layer
    codes = 2.0 * model.get_param("codes")
    vectors = model.predict(states)
    for vector, x in zip(vectors, numpy.split(states.dataXd, [4, 5]), strict=True):
        parts = [x.mean(axis=0), *(softmax(x @ code) @ x for code in codes)]
        expected = [part / numpy.linalg.norm(part) for part in parts]
        numpy.testing.assert_allclose(vector, numpy.concatenate(expected), rtol=1e-12)


def test_scores_by_hand(poly):
    """Humeau et al. 2020, section 4.4, of vectors that are multiplied with sqrt(scale)."""
    rng = numpy.random.default_rng(1)
    contexts = rng.normal(size=(4, N_CODES, 6))
    candidates = rng.normal(size=(5, 6))
    scores, _ = poly.poly_scores(contexts, candidates, scale=7.0)
    for i, j in numpy.ndindex(4, 5):
        y = contexts[i] * 7**0.5
        candidate = candidates[j] * 7**0.5
        weights = softmax(y @ candidate)
        assert scores[i, j] == pytest.approx((weights @ y) @ candidate, rel=1e-12)


def test_scores_of_rows(poly):
    first, second = numpy.random.default_rng(2).normal(size=(2, 5, (1 + N_CODES) * 6))
    contexts = poly.context_vectors(first, N_CODES)
    candidates = poly.candidate_vectors(second, N_CODES)
    scores, _ = poly.poly_scores(contexts, candidates)
    rows = poly.score_rows(first, second, N_CODES)
    numpy.testing.assert_allclose(rows, scores.diagonal(), rtol=1e-12)


def test_gradients_of_the_losses(poly):
    """Also if texts come twice."""
    members = numpy.random.default_rng(3).normal(size=(2, 5, (1 + N_CODES) * 6))
    loss = poly.poly_ranking(N_CODES, scale=2.0)
    check_gradient(loss, members, [list("abcde"), list("vwxyz")])
    check_gradient(loss, members, [list("abcda"), list("vwxyx")])
    check_gradient(poly.poly_regression(N_CODES, scale=2.0), members, [0.0, 0.2, 0.5, 0.8, 1.0])


def test_repeated_texts_are_no_negatives(poly):
    """A pair that comes twice is no negative of itself: each copy has the loss of the one."""
    members = numpy.random.default_rng(4).normal(size=(2, 2, (1 + N_CODES) * 6))
    loss = poly.poly_ranking(N_CODES, scale=1.0)
    value, _ = loss((list(members), [list("ab"), list("xy")]), False)
    copied = [member[[0, 0, 1, 1]] for member in members]
    negative = loss((copied, [list("aabb"), list("xxyy")]), False)[0]
    contexts = poly.context_vectors(members[0], N_CODES)
    candidates = poly.candidate_vectors(members[1], N_CODES)
    right, wrong = (
        numpy.exp(poly.poly_scores(contexts, each, 1.0)[0].diagonal())
        for each in (candidates, candidates[::-1])
    )
    assert value == pytest.approx(-numpy.log(right / (right + wrong)).mean())
    assert negative == pytest.approx(-numpy.log(right / (right + 2 * wrong)).mean())


def test_gradient_of_the_codes(layer):
    """By the states and by the codes, against finite differences."""
    model, states = layer
    d_vectors = numpy.random.default_rng(5).normal(size=(3, (1 + N_CODES) * 6))
    _, backprop = model(states, True)
    d_states = backprop(d_vectors).dataXd
    pairs = [(states.dataXd, d_states), (model.get_param("codes"), model.get_grad("codes").copy())]
    step = 1e-6
    for array, gradient in pairs:
        expected = numpy.zeros_like(array)
        for place in numpy.ndindex(*array.shape):
            original = array[place]
            array[place] = original + step
            above = (model.predict(states) * d_vectors).sum()
            array[place] = original - step
            expected[place] = (above - (model.predict(states) * d_vectors).sum()) / (2 * step)
            array[place] = original
        numpy.testing.assert_allclose(gradient, expected, atol=1e-8)


def codes_of(nlp):
    return find_sbert(nlp).model.pooling.layers[0].get_param("codes")


def test_vectors_in_a_pipeline(poly, nlp):
    """Docs and texts have the same, and a truncated vector is that of a candidate."""
    vectors = find_sbert(nlp).encode(TEXTS)
    assert vectors.shape == (3, (1 + N_CODES) * WIDTH)
    numpy.testing.assert_allclose([doc.vector for doc in nlp.pipe(TEXTS)], vectors, atol=1e-6)
    candidates = find_sbert(nlp).encode(TEXTS, truncate_dim=WIDTH)
    numpy.testing.assert_array_equal(candidates, poly.candidate_vectors(vectors, N_CODES))


def test_saved_and_loaded(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    numpy.testing.assert_array_equal(codes_of(loaded), codes_of(nlp))
    numpy.testing.assert_array_equal(
        find_sbert(loaded).encode(TEXTS), find_sbert(nlp).encode(TEXTS)
    )


def test_config_trains_the_codes(poly, tiny_bert, tmp_path):
    """Two steps of spaCy's loop, by the config as it is but for sizes and encoder."""
    config = FOLDER / "poly_encoder.cfg"
    overrides = {
        "poly.n_codes": N_CODES,
        "components.sbert.model.width": WIDTH,
        "components.sbert.model.encoder.name": str(tiny_bert),
        "paths.train": str(ROOT / "assets" / "duplicates-train.tsv"),
        "paths.dev": str(ROOT / "assets" / "questions-dev.tsv"),
        "corpora.dev.limit": 20,
        "training.max_epochs": 0,
        "training.eval_frequency": 1,
        "training.logger.progress_bar": False,
    }
    codes = []
    for n_steps in (1, 2):
        output = tmp_path / str(n_steps)
        train(config, output, overrides={**overrides, "training.max_steps": n_steps})
        codes.append(codes_of(spacy.load(output / "model-last")))
    assert abs(codes[1] - codes[0]).max() > 0
    scores = spacy.load(output / "model-last").meta["performance"]
    assert 0 < scores["poly_ap"] <= 1
    assert load_config(config)["components"]["sbert"]["model"]["width"] == 384


def test_average_precision_of_samples(compare):
    """As scikit-learn has it, which takes a sample as weights."""
    rng = numpy.random.default_rng(6)
    scores = rng.normal(size=50)
    gold = rng.integers(2, size=50)
    counts = rng.multinomial(50, numpy.full(50, 1 / 50), size=4)
    found = compare.resampled_precisions(scores, gold, counts)
    expected = [average_precision_score(gold, scores, sample_weight=each) for each in counts]
    numpy.testing.assert_allclose(found, expected)


def test_table_of_the_comparison(compare):
    gold = numpy.array([1, 0] * 20)
    right = " ".join(f"{score}" for score in gold + numpy.arange(40) / 100)
    wrong = " ".join(f"{score}" for score in numpy.arange(40) / 100)

    def run(pairs, **more):
        scores = {"pairs": pairs}
        found = compare.average_precision(compare.read_pairs(scores), gold)
        return {**scores, "average_precision": found, **more}

    found = {
        (compare.BI, "1"): run(wrong),
        (compare.BI, "2"): run(wrong),
        (compare.POLY, "1"): run(right, seconds={"encoding": 0.01, "scoring": 0.0005}),
    }
    *_, bi, poly = compare.table(gold, found).splitlines()
    assert bi.endswith("| 0.00 | - | - | - | - | 2 |")
    cells = [cell.strip() for cell in poly.strip("|").split("|")]
    assert cells[1:3] == ["100.00", "-"]
    low, high = map(float, cells[4].split(" to "))
    assert low < float(cells[3]) < high
    assert cells[5:] == ["10.0", "0.5", "1"]


def test_pairs_of_quora(compare):
    """Different texts, and samples that stay the same, one to learn from and one to score."""
    data = compare.Quora(real_data() / "quora", 200, 100)
    assert len(set(data.pairs)) == 200
    assert all(first != second for first, second in data.pairs)
    assert data.scored == compare.Quora(data.folder, 200, 100).scored
    assert set(data.gold.tolist()) == {0, 1}
    scored = {(first, second) for _, first, second in data.scored}
    assert len(data.to_learn) == 200
    assert not scored & {(first, second) for first, second, _ in data.to_learn}
