from itertools import islice

import pytest
from thinc.api import warmup_linear

from spacy_sbert.training.schedules import linear_warmup


def test_equals_thinc_warmup_in_steps():
    ours = list(islice(linear_warmup(2e-5, total_steps=360, warmup=0.1), 400))
    assert ours == pytest.approx(list(islice(warmup_linear(2e-5, 36, 360), 400)))
    assert ours[0] == 0.0 and ours[36] == 2e-5 and ours[360] == 0.0


def test_without_warmup():
    assert list(islice(linear_warmup(1.0, total_steps=2, warmup=0), 4)) == [1.0, 0.5, 0.0, 0.0]


def test_going_on_from_a_step():
    whole = list(islice(linear_warmup(1.0, total_steps=20), 30))
    assert list(islice(linear_warmup(1.0, total_steps=20, start_step=7), 23)) == whole[7:]


@pytest.mark.parametrize("warmup", [-0.1, 1, 36])
def test_warmup_is_a_fraction(warmup):
    with pytest.raises(ValueError, match="expected a fraction"):
        linear_warmup(1.0, 10, warmup)
