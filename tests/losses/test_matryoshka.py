import numpy
import pytest

from spacy_sbert.losses.cosent import CoSENTLoss
from spacy_sbert.losses.cosine_similarity import CosineSimilarityLoss
from spacy_sbert.losses.distillation import DistillationLoss
from spacy_sbert.losses.matryoshka import MatryoshkaLoss
from spacy_sbert.losses.multi_task import MultiTaskLoss
from spacy_sbert.losses.multiple_negatives_ranking import CachedMultipleNegativesRankingLoss
from spacy_sbert.losses.softmax import SoftmaxLoss
from spacy_sbert.models.heads import unit_length

RNG = numpy.random.default_rng(10)
MEMBERS = [RNG.normal(size=(5, 6)) for _ in range(2)]
SCORES, LABELS = RNG.uniform(size=5), list("abcab")
DIMS, WEIGHTS = [6, 4, 2], [1.0, 0.5, 2.0]


def test_value_is_the_weighted_sum():
    value, _ = MatryoshkaLoss(CosineSimilarityLoss(), DIMS, WEIGHTS)((MEMBERS, SCORES), True)
    parts = [CosineSimilarityLoss()(([m[:, :dim] for m in MEMBERS], SCORES), True)[0] for dim in DIMS]
    assert value == pytest.approx(parts[0] + 0.5 * parts[1] + 2 * parts[2])
    value, _ = MatryoshkaLoss(CosineSimilarityLoss(), DIMS)((MEMBERS, SCORES), True)
    assert value == pytest.approx(sum(parts))


@pytest.mark.parametrize(
    ("inner", "gold"),
    [
        (CosineSimilarityLoss, SCORES),
        (CoSENTLoss, SCORES),
        (SoftmaxLoss, LABELS),
        (DistillationLoss, RNG.normal(size=(5, 6))),
        (CachedMultipleNegativesRankingLoss, [list("abcde"), list("fghij")]),
    ],
)
def test_gradients(judge, inner, gold):
    for weights in (None, WEIGHTS):
        loss = MatryoshkaLoss(inner(), DIMS, weights).initialize(X=(MEMBERS, gold))
        judge.gradients(loss, MEMBERS, gold)
    judge.float32(MatryoshkaLoss(inner(), DIMS).initialize(X=(MEMBERS, gold)), MEMBERS, gold)


def test_agrees_with_sentence_transformers(judge, embedder, st_losses):
    torch = pytest.importorskip("torch")
    model = embedder(6)
    theirs = st_losses.MatryoshkaLoss(model, st_losses.CoSENTLoss(model), DIMS, WEIGHTS)
    reference = lambda tensors: theirs([{"vectors": x} for x in tensors], torch.tensor(SCORES))  # noqa: E731
    judge.parity(MatryoshkaLoss(CoSENTLoss(), DIMS, WEIGHTS), MEMBERS, SCORES, reference, 1e-9)


def test_each_width_has_its_head_and_they_survive_saving():
    loss = MatryoshkaLoss(SoftmaxLoss(learn_rate_factor=4.0), DIMS).initialize(X=(MEMBERS, LABELS))
    assert [layer.get_dim("nI") for layer in loss.layers] == [18, 12, 6]
    assert all(layer.learn_rate_factor == 4.0 and layer.attrs["labels"] == ["a", "b", "c"] for layer in loss.layers)
    loaded = MatryoshkaLoss(SoftmaxLoss(), DIMS).from_bytes(loss.to_bytes())
    assert loaded((MEMBERS, LABELS), True)[0] == loss((MEMBERS, LABELS), True)[0]
    assert loaded.initialize()((MEMBERS, LABELS), True)[0] == loss((MEMBERS, LABELS), True)[0]


def test_weights_are_the_configs():
    saved = MatryoshkaLoss(CosineSimilarityLoss(), DIMS).to_bytes()
    loaded = MatryoshkaLoss(CosineSimilarityLoss(), DIMS, [0.0, 0.0, 0.0]).from_bytes(saved)
    assert loaded((MEMBERS, SCORES), True)[0] == 0.0


def test_errors():
    for dims in ([0], [-1, 3], [2**16 + 1]):
        with pytest.raises(ValueError, match=r"Cannot use dims = .* expected "):
            MatryoshkaLoss(CosineSimilarityLoss(), dims)
    for dims in ([], [4, 4]):
        with pytest.raises(ValueError, match=r"cannot work with dims = .* expected positive numbers, each once"):
            MatryoshkaLoss(CosineSimilarityLoss(), dims)
    with pytest.raises(ValueError, match=r"cannot work with weights = \[1.0\]: expected 3 numbers"):
        MatryoshkaLoss(CosineSimilarityLoss(), DIMS, [1.0])
    with pytest.raises(ValueError, match="cut vectors to 8 dimensions: they are 6 wide"):
        MatryoshkaLoss(CosineSimilarityLoss(), [8, 4])((MEMBERS, SCORES), True)
    with pytest.raises(ValueError, match="cut vectors to 8 dimensions: they are 6 wide"):
        MatryoshkaLoss(SoftmaxLoss(), [8, 4]).initialize(X=(MEMBERS, LABELS))
    with pytest.raises(ValueError, match=r"is built of loss layers, .* got the Thinc model 'unit_length'"):
        MatryoshkaLoss(unit_length(), DIMS)
    with pytest.raises(ValueError, match="cannot contain 'MultiTaskLoss'"):
        MatryoshkaLoss(MultiTaskLoss({"one": CosineSimilarityLoss()}), DIMS)
