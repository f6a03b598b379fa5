import numpy
import pytest

from spacy_sbert.losses.mega_batch_margin import MegaBatchMarginLoss

RNG = numpy.random.default_rng(8)
MEMBERS = [RNG.normal(size=(7, 4)), RNG.normal(size=(7, 4))]
TEXTS = [list("abcdefg"), list("hijklmn")]
REPEATED = [list("abadefg"), list("hiikfmn")]  # 0 and 2 have one anchor, 1 and 2 one positive, 4 answers 5


def test_value_by_hand():
    anchors = numpy.array([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]])
    positives = numpy.array([[2.0, 0.0], [1.0, 1.0], [4.0, 3.0]])  # cosines by row: 1, 0.707, 0.96
    value, _ = MegaBatchMarginLoss(margin=0.5)(([anchors, positives], [list("abc"), list("def")]), True)
    root = 0.5**0.5
    hinges = [0.5 - 1 + 0.8, 0.5 - root + 0.6, 0.5 - 0.96 + 1.4 * root]
    assert value == pytest.approx(sum(hinges) / 3)


@pytest.mark.parametrize("margin", [0.1, 0.4, 2.0])
@pytest.mark.parametrize("texts", [TEXTS, REPEATED])
def test_gradients(judge, margin, texts):
    judge.gradients(MegaBatchMarginLoss(margin), MEMBERS, texts)


@pytest.mark.parametrize("margin", [0.1, 0.4, 2.0])
def test_agrees_with_pytorch(judge, margin):
    torch = pytest.importorskip("torch")

    def reference(tensors):
        unit = [torch.nn.functional.normalize(tensor) for tensor in tensors]
        similar = unit[0] @ unit[1].T
        wrong = similar.masked_fill(torch.eye(len(similar), dtype=bool), -torch.inf)
        return torch.relu(margin - similar.diagonal() + wrong.max(dim=1).values).mean()

    judge.parity(MegaBatchMarginLoss(margin), MEMBERS, TEXTS, reference)


def test_what_is_right_too_is_no_negative():
    """The nearest other positive has the text of the own one, of the anchor, or belongs to an anchor of its text."""
    anchors = numpy.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    positives = numpy.array([[1.0, 0.1], [-1.0, 0.0], [1.0, 0.0]])
    for texts in ([list("abc"), list("ded")], [list("abc"), list("dea")], [list("aba"), list("def")]):
        value, _ = MegaBatchMarginLoss(margin=0.0)(([anchors, positives], texts), True)
        hinges = [0.0, 1.0 / 1.01**0.5 * 0.1 - 0.0]
        assert value == pytest.approx(sum(hinges) / 3), texts


def test_pairs_without_a_wrong_positive_count_nothing():
    texts = [list("aaaaaaa"), list("hijklmn")]
    value, backprop = MegaBatchMarginLoss()((MEMBERS, texts), True)
    assert value == 0.0 and not any(d.any() for d in backprop())


def test_rest(judge):
    judge.float32(MegaBatchMarginLoss(), MEMBERS, TEXTS)
    loss = MegaBatchMarginLoss()
    assert (loss.n_members, loss.gold, loss.whole_batch, loss.is_sum) == ((2,), "text", True, False)
    with pytest.raises(ValueError, match="got 7, 7, 7 and 6"):
        loss((MEMBERS, [TEXTS[0], TEXTS[1][:6]]), True)
    with pytest.raises(ValueError, match="MegaBatchMarginLoss"):
        loss(([member[:1] for member in MEMBERS], [["a"], ["b"]]), True)
