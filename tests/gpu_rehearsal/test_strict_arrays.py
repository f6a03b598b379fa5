"""The double refuses what CuPy refuses, and counts what waits for a device: else no other test here
could fail.
"""

import numpy
import pytest
import torch
from gpu_rehearsal.strict_arrays import IMPLICIT, StrictArray, xp
from thinc.api import Model, get_current_ops, torch2xp, xp2torch
from thinc.backends import get_array_ops
from thinc.util import get_array_module, is_cupy_array, to_numpy

HOST = numpy.arange(6, dtype="float32").reshape(2, 3)
MASK = HOST > 2


def test_no_implicit_conversion():
    x = xp.asarray(HOST)
    for convert in (
        numpy.asarray,
        numpy.array,
        lambda x: numpy.zeros((2, 3)) + numpy.asanyarray(x),
    ):
        with pytest.raises(TypeError, match="Implicit conversion"):
            convert(x)
    with pytest.raises(TypeError, match=IMPLICIT[:20]):
        xp.asarray([x[0, 0], 1.0])
    with pytest.raises(TypeError):
        range(xp.asarray(3))
    with pytest.raises(TypeError):
        numpy.zeros(3)[xp.asarray(1)]


MIXED = [
    lambda x: x + HOST,
    lambda x: HOST @ x.T,
    lambda x: x == HOST,
    lambda x: HOST.__iadd__(x),
    lambda x: xp.where(MASK, x, 0),
    lambda x: xp.concatenate([x, HOST]),
    lambda x: xp.zeros_like(HOST),
    lambda x: xp.maximum(x, [1, 2, 3]),
    lambda x: xp.zeros(xp.asarray(3)),
    lambda x: x == None,  # noqa: E711
]


def test_no_mixing_with_numpy():
    for mix in MIXED:
        with pytest.raises(TypeError):
            mix(xp.asarray(HOST))
    x = xp.zeros((2, 3), dtype="float32")
    x[:] = HOST
    # Indices bring it along
    x[[1, 0]] = HOST
    assert (x.get() == HOST[::-1]).all()
    for places, given in [
        (slice(0, 1), HOST[:1]),
        (slice(None), HOST.astype("float64")),
        (0, HOST[0]),
    ]:
        with pytest.raises(ValueError):
            x[places] = given
    x[0] = numpy.float32(7)
    assert x.get()[0].tolist() == [7, 7, 7]
    for refused in (
        lambda: xp.split(x, xp.asarray([1])),
        lambda: xp.repeat(x, xp.asarray([1, 2]), axis=0),
    ):
        with pytest.raises(ValueError):
            refused()
    assert not hasattr(xp, "errstate")
    assert not hasattr(x, "ctypes")
    assert not hasattr(x, "__index__")


WAITS = [
    ("get", to_numpy),
    ("bool", lambda x: x[0, 0] in [1.0]),
    ("float", lambda x: float(x[0, 0])),
    ("item", lambda x: x.sum().item()),
    ("tolist", lambda x: x.tolist()),
    ("format", lambda x: f"{x.sum()}"),
    ("mask", lambda x: x[x > 2]),
    ("mask", lambda x: x.__setitem__(MASK, 0)),
    ("flatnonzero", xp.flatnonzero),
    ("where", lambda x: xp.where(x > 1)),
]


def test_waits_are_counted(strict):
    x = xp.asarray(HOST)
    for found in (x[0, 1], x.sum(), xp.mean(x), next(iter(x[0])), numpy.sum(x), xp.allclose(x, x)):
        assert type(found) is StrictArray
        assert found.shape == ()
        assert strict == []
    for how, read in WAITS:
        read(xp.asarray(HOST))
        assert [(look.how, look.module) for look in strict] == [(how, __name__)]
        strict.clear()
    empty = xp.zeros((0, 3))
    assert empty.get().shape == (0, 3)
    assert empty[empty[:, 0] > 0].shape == (0, 3)
    assert strict == []


def test_thinc_sees_a_device_array(strict):
    x = xp.asarray(HOST)
    assert is_cupy_array(x)
    assert get_array_module(x) is xp
    assert get_array_ops(x).name == "strict"
    assert Model("any", lambda *args: args).ops.name == "strict"
    tensor = xp2torch(x, requires_grad=True)
    found = torch2xp(tensor.detach())
    # On the same memory
    found += 1
    assert strict == []
    assert (x.get() == HOST + 1).all()
    assert tensor.tolist() == (HOST + 1).tolist()
    assert type(get_current_ops().asarray2f(torch.ones(2, 2))) is StrictArray


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_mean", "reduce_max"])
def test_kernels_check_their_input(strict, name):
    ops = get_current_ops()
    wide = ops.asarray2f(numpy.arange(24, dtype="float32").reshape(4, 6))
    lengths = ops.asarray1i([3, 1])
    getattr(ops, name)(xp.ascontiguousarray(wide[:, :3]), lengths)
    # Thinc looks at them
    assert strict.of_package == []
    assert strict
    with pytest.raises(ValueError, match="not contiguous"):
        getattr(ops, name)(wide[:, :3], lengths)
    with pytest.raises(IndexError):
        getattr(ops, name)(wide, ops.asarray1i([3, 2]))
