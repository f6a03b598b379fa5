import numpy
import pytest
import torch
from helpers.loss_checks import Embedder, check_gradients, check_parity
from sentence_transformers.sentence_transformer import losses as st_losses

from spacy_sbert.losses.similarity import AnglELoss, CoSENTLoss, CosineSimilarityLoss

RNG = numpy.random.default_rng(4)
PAIRS = [RNG.normal(size=(10, 4)) for _ in range(2)]
# Two ties
SCORES = numpy.array([0.1, 0.9, 0.5, 0.5, 0.0, 1.0, 0.3, 0.9, 0.2, 0.7])
ONES = numpy.ones((3, 2))
ZEROS = numpy.zeros((3, 2))
# Their cosines are 1 and 0
EAST = numpy.array([[1.0, 0.0], [1.0, 0.0]])
BOTH = numpy.array([[1.0, 0.0], [0.0, 1.0]])

both_rankings = pytest.mark.parametrize("build", [CoSENTLoss, AnglELoss])
every_scale = pytest.mark.parametrize("scale", [1.0, 20.0])


@both_rankings
@every_scale
def test_gradients_of_rankings(build, scale):
    check_gradients(build(scale), PAIRS, SCORES)


@both_rankings
@every_scale
def test_rankings_as_in_sentence_transformers(build, scale):
    theirs = getattr(st_losses, build.__name__)(Embedder(4), scale=scale)

    def reference(tensors):
        return theirs.compute_loss_from_embeddings(tensors, torch.tensor(SCORES))

    check_parity(build(scale), PAIRS, SCORES, reference, 1e-9)


def test_squared_error_of_the_cosine():
    """In float64, which the loss of sentence-transformers is not."""

    def reference(tensors):
        return torch.nn.functional.mse_loss(torch.cosine_similarity(*tensors), torch.tensor(SCORES))

    check_gradients(CosineSimilarityLoss(), PAIRS, SCORES)
    check_parity(CosineSimilarityLoss(), PAIRS, SCORES, reference, 1e-12)


@pytest.mark.parametrize(
    ("loss", "gold", "expected"),
    [
        pytest.param(CosineSimilarityLoss(), [0.8, 0.5], (0.04 + 0.25) / 2, id="squared error"),
        pytest.param(CoSENTLoss(2.0), [1.0, 0.0], numpy.log1p(numpy.exp(-2)), id="right order"),
        pytest.param(CoSENTLoss(2.0), [0.0, 1.0], numpy.log1p(numpy.exp(2)), id="wrong order"),
    ],
)
def test_values_by_hand(loss, gold, expected):
    value, _ = loss(([EAST, BOTH], numpy.array(gold)), True)
    assert value == pytest.approx(expected)


def test_angles_by_hand():
    """(1 + 2i) (3 + i) = 1 + 7i, of norms 5^0.5 and 10^0.5: 8 / 50^0.5. The other pair: 1."""
    u = numpy.array([[1.0, 2.0], [1.0, 0.0]])
    v = numpy.array([[3.0, -1.0], [1.0, 0.0]])
    value, _ = AnglELoss(1.0)(([u, v], numpy.array([1.0, 0.0])), True)
    assert value == pytest.approx(numpy.log1p(numpy.exp(1 - 8 / 50**0.5)))


@pytest.mark.parametrize(
    ("build", "members", "gold", "expected"),
    [
        pytest.param(CosineSimilarityLoss, [ZEROS, ONES], numpy.ones(3), 1.0, id="zeros"),
        pytest.param(CoSENTLoss, PAIRS, numpy.ones(10), 0.0, id="CoSENT, equal gold"),
        pytest.param(AnglELoss, PAIRS, numpy.ones(10), 0.0, id="AnglE, equal gold"),
        # Three pairs of pairs
        pytest.param(
            CoSENTLoss, [ZEROS, ONES], numpy.arange(3.0), numpy.log(4), id="CoSENT, zeros"
        ),
        pytest.param(AnglELoss, [ZEROS, ONES], numpy.arange(3.0), numpy.log(4), id="AnglE, zeros"),
    ],
)
def test_no_gradient(build, members, gold, expected):
    value, backprop = build()((members, gold), True)
    assert value == pytest.approx(expected, abs=1e-15)
    gradients = backprop()
    assert [d.shape for d in gradients] == [member.shape for member in members]
    assert not any(d.any() for d in gradients)


def test_a_complex_vector_has_an_even_width():
    odd = [member[:, :3] for member in PAIRS]
    with pytest.raises(ValueError, match="an even width, got 3"):
        AnglELoss()((odd, SCORES), True)


def test_unequal_numbers_of_rows():
    first, second = PAIRS
    with pytest.raises(ValueError, match="got 10, 9 and 10"):
        CosineSimilarityLoss()(([first, second[:9]], SCORES), True)
    with pytest.raises(ValueError, match="got 10, 10 and 7"):
        CoSENTLoss()((PAIRS, SCORES[:7]), True)
