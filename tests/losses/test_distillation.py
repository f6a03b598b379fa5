import numpy
import pytest

from spacy_sbert.losses.distillation import DistillationLoss

RNG = numpy.random.default_rng(7)
MEMBERS, TEACHER = [RNG.normal(size=(5, 4)) for _ in range(2)], RNG.normal(size=(5, 4))


def test_value_by_hand():
    teacher = numpy.zeros((1, 2))
    value, _ = DistillationLoss()(([numpy.array([[1.0, 3.0]]), numpy.array([[0.0, 2.0]])], teacher), True)
    assert value == (1 + 9 + 0 + 4) / 4


@pytest.mark.parametrize("n_members", [1, 2])
def test_gradients(judge, n_members):
    judge.gradients(DistillationLoss(), MEMBERS[:n_members], TEACHER)
    judge.float32(DistillationLoss(), MEMBERS[:n_members], TEACHER)


@pytest.mark.parametrize("n_members", [1, 2])
def test_agrees_with_sentence_transformers(judge, embedder, st_losses, n_members):
    torch = pytest.importorskip("torch")
    theirs = st_losses.MSELoss(embedder(4))
    teachers = [torch.tensor(TEACHER)] * n_members
    reference = lambda tensors: theirs.compute_loss_from_embeddings(tensors, teachers)  # noqa: E731
    judge.parity(DistillationLoss(), MEMBERS[:n_members], TEACHER, reference)


def test_errors():
    with pytest.raises(ValueError, match="learn are 4 wide, the teacher's are 3 wide"):
        DistillationLoss()((MEMBERS, TEACHER[:, :3]), True)
    with pytest.raises(ValueError, match="got 5, 5 and 4"):
        DistillationLoss()((MEMBERS, TEACHER[:4]), True)
    with pytest.raises(ValueError, match="takes examples of 1 or 2 members, got 3"):
        DistillationLoss()(([*MEMBERS, TEACHER], TEACHER), True)
