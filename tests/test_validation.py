"""Settings are checked by their annotations; what is refused is named, and not allocated."""

import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy
import pytest

from spacy_sbert.evaluation import Settings
from spacy_sbert.meta import CrossViewAutoencoder
from spacy_sbert.models.heads import Dense
from spacy_sbert.reranker.cross_encoder import cross_encoder
from spacy_sbert.training.schedules import linear_warmup
from spacy_sbert.validation import (
    Cosine,
    Name,
    NonNegative,
    NonNegativeFloat,
    Positive,
    PositiveFloat,
    Seed,
    check,
    validated,
)

RIGHT = [
    (int, [0, -3, numpy.int64(2)]),
    (Positive, [1, 10**18, numpy.int32(1)]),
    (float, [0, 1.5, -2, numpy.float32(0.5), 3.4e38]),
    (PositiveFloat, [1e-30, 2]),
    (Cosine, [-1, 0, 1]),
    (bool, [True, False, numpy.True_]),
    (str, ["", "a", "ä😀"]),
    (Name, ["a"]),
    (Path, [Path("a")]),
    (str | Path, ["a", Path("a"), "undecodable \udcff"]),
    (str | None, [None, ""]),
    (bool | Literal["auto"], [True, "auto"]),
    (list[Positive], [[], [1, 2]]),
    (tuple[int, ...], [(), (1, 2)]),
    (Sequence[str], [(), ["a"]]),
    (dict[str, float], [{}, {"a": 1.0}]),
    (Mapping[str, Any], [{"a": Ellipsis}]),
    (list[Name] | dict[str, list[Name]] | None, [None, ["a"], {"": ["a"]}]),
    (Callable[[int], int], [len]),
]
WRONG = [
    (int, [True, 1.0, "1", None, 10**30]),
    (Positive, [0, -1, 1.5, False]),
    (NonNegative, [-1]),
    (float, [True, "1", float("nan"), float("inf"), 1e39, 10**400]),
    (PositiveFloat, [0, -1e-9, float("nan")]),
    (NonNegativeFloat, [-1e-9, float("inf")]),
    (Cosine, [1.001, -2, float("nan")]),
    (Seed, [2**32, -1]),
    (bool, [0, 1, "true", None]),
    (str, [None, b"a", 1, "\ud800"]),
    (Name, ["", None]),
    (str | Path, ["", "a\0", "\ud800", 5]),
    (Path | None, ["a", ""]),
    (bool | Literal["auto"], [1, "Auto", None]),
    (list[Positive], [[0], [True], "12", None, {1: 2}]),
    (Sequence[str], ["abc", b"abc", [1], ["\ud800"]]),
    (dict[str, float], [{"a": "b"}, {1: 1.0}, [("a", 1.0)], {"a": float("nan")}]),
    (Callable[[int], int], [5, None]),
]
TOO_MANY = "{} = 65536: expected at most 268435456 weights in a layer, not 65536 x 65536"


def each(cases):
    """One parameter a value, with its annotation."""
    return [
        pytest.param(annotation, value, id=f"{number}: {type(value).__name__}")
        for number, (annotation, values) in enumerate(cases)
        for value in values
    ]


@pytest.mark.parametrize(("annotation", "value"), each(RIGHT))
def test_right(annotation, value):
    check("setting", value, annotation)


@pytest.mark.parametrize(("annotation", "value"), each(WRONG))
def test_wrong(annotation, value):
    with pytest.raises(ValueError, match=r"Cannot use setting = .*: expected ") as refused:
        check("setting", value, annotation)
    assert len(str(refused.value)) < 300
    assert str(refused.value).isprintable()


def test_decorated_functions_stay_what_they_are():
    @validated
    def scaled(
        rows: Any, scale: PositiveFloat = 2.0, *more: int, key: Name = "a", **rest: int
    ) -> float:
        """A docstring."""
        return rows * scale

    assert scaled(3) == 6
    assert scaled(3, 4) == 12
    assert scaled.__doc__ == "A docstring."
    with pytest.raises(ValueError, match="Cannot use scale = 0: expected greater than 0"):
        scaled(3, 0)
    with pytest.raises(ValueError, match="Cannot use key = ''"):
        scaled(3, key="")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'rows'"):
        scaled()


def test_nothing_is_allocated_for_what_is_refused():
    tracemalloc.start()
    try:
        for make, named in [
            (lambda: Dense(16, 10**9), "nO = 1000000000: expected less than or equal to 65536"),
            (lambda: Dense(2**16, 2**16), TOO_MANY.format("nO")),
            (
                lambda: cross_encoder(n_outputs=10**9),
                "n_outputs = 1000000000: expected less than or equal to 16384",
            ),
            (
                lambda: CrossViewAutoencoder(size=10**9),
                "size = 1000000000: expected less than or equal to 65536",
            ),
            (
                lambda: CrossViewAutoencoder(epochs=10**9),
                "epochs = 1000000000: expected less than or equal to 1000000",
            ),
            (
                lambda: Settings(bootstrap=10**9),
                "bootstrap = 1000000000: expected less than or equal to 1000000",
            ),
        ]:
            with pytest.raises(ValueError, match=named):
                make()
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_an_autoencoder_of_too_many_weights():
    views = [numpy.ones((2, 16)) * [[1.0], [-1.0]]] * 2
    with pytest.raises(ValueError, match=TOO_MANY.format("size")):
        CrossViewAutoencoder(size=2**16, hidden_layers=1).fit(views)


def test_a_schedule_begins_far_away_at_once():
    assert next(linear_warmup(1.0, 10, start_step=10**18)) == 0.0
    assert next(linear_warmup(1.0, 4 * 10**18, warmup=0.5, start_step=10**18)) == 0.5
