from collections.abc import Iterator

import pytest
from gpu_rehearsal.strict_arrays import Looks
from gpu_rehearsal.strict_ops import strict_device


@pytest.fixture
def strict() -> Iterator[Looks]:
    """Thinc on a device of strict arrays; what the host has waited for."""
    with strict_device() as looks:
        yield looks
