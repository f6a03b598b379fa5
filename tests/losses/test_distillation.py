import numpy
import pytest

from spacy_sbert.losses.distillation import DistillationLoss
from spacy_sbert.losses.projected_distillation import ProjectedDistillationLoss

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


def projected(teacher):
    loss = ProjectedDistillationLoss()
    loss.initialize(X=(MEMBERS, teacher))
    return loss


@pytest.mark.parametrize("n_members", [1, 2])
@pytest.mark.parametrize("width", [3, 4, 7])
def test_gradients_through_a_projection(judge, n_members, width):
    teacher = RNG.normal(size=(5, width))
    judge.gradients(projected(teacher), MEMBERS[:n_members], teacher)
    judge.float32(projected(teacher.astype("float32")), MEMBERS[:n_members], teacher)


def test_identity_projects_nothing():
    loss = projected(TEACHER)
    loss.set_param("W", numpy.eye(4))
    assert loss((MEMBERS, TEACHER), True)[0] == pytest.approx(DistillationLoss()((MEMBERS, TEACHER), True)[0])


def test_a_projection_is_saved():
    loss = projected(RNG.normal(size=(5, 7)))
    loaded = ProjectedDistillationLoss().from_bytes(loss.to_bytes())
    assert numpy.array_equal(loaded.get_param("W"), loss.get_param("W"))


def test_projection_errors():
    with pytest.raises(ValueError, match=r"widths none .* the batch \(4, 4\)"):
        ProjectedDistillationLoss()((MEMBERS, TEACHER), True)
    with pytest.raises(ValueError, match=r"widths \(4, 4\) .* the batch \(3, 4\)"):
        projected(TEACHER)((MEMBERS, TEACHER[:, :3]), True)
