"""Settings are checked by their annotations; what is refused is named, and not allocated."""

import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy
import pytest

from spacy_sbert.errors.checks import (
    MOST_SEED,
    Cosine,
    Name,
    NonNegative,
    NonNegativeFloat,
    Positive,
    PositiveFloat,
    Range,
    check,
    describe,
    validated,
)
from spacy_sbert.evaluation import Settings
from spacy_sbert.layers.dense import Dense
from spacy_sbert.meta import CrossViewAutoencoder
from spacy_sbert.reranker.cross_encoder import cross_encoder
from spacy_sbert.training.schedules import linear_warmup

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
    (list[Positive], [[], [1, 2], (3,)]),
    (tuple[int, ...], [(), (1, 2)]),
    (Sequence[str], [(), ["a"]]),
    (dict[str, float], [{}, {"a": 1.0}]),
    (Mapping[str, Any], [{"a": Ellipsis}]),
    (list[Name] | dict[str, list[Name]] | None, [None, ["a"], {"": ["a"]}]),
    (Callable[[int], int], [len]),
    (Iterable[str], [None, 5]),  # left to the function
    (Annotated[float, Range(0, 1, below=True)], [0, 0.999]),
]
WRONG = [
    (int, [True, 1.0, "1", None, 10**30], "a whole number"),
    (Positive, [0, -1, 1.5, False], "1 or more, as a whole number"),
    (NonNegative, [-1], "0 or more, as a whole number"),
    (float, [True, "1", float("nan"), float("inf"), 1e39, 10**400], "a finite number"),
    (PositiveFloat, [0, -1e-9], "more than 0, as a finite number"),
    (NonNegativeFloat, [-1e-9], "0 or more, as a finite number"),
    (Cosine, [1.001, -2], "-1 to 1, as a finite number"),
    (Annotated[int, Range(0, MOST_SEED)], [2**32], "0 to 4294967295, as a whole number"),
    (Annotated[float, Range(0, 1, below=True)], [1], "0 to less than 1, as a finite number"),
    (bool, [0, 1, "true", None], "true or false"),
    (str, [None, b"a", 1, "\ud800"], "text"),
    (Name, ["", None], "text that is not empty"),
    (str | Path, ["", "a\0", "\ud800", 5], "text or a path"),
    (Path | None, ["a", ""], "a path or none"),
    (bool | Literal["auto"], [1, "Auto", None], 'true or false or "auto"'),
    (list[Positive], [[0], [True], "12", None, {1: 2}], "a list of 1 or more, as a whole number"),
    (Sequence[str], ["abc", b"abc", [1]], "a list of text"),
    (dict[str, float], [{"a": "b"}, {1: 1.0}, [("a", 1.0)]], "a dict of a finite number"),
    (Callable[[int], int], [5, None], "a function"),
]
TOO_MANY = "{} = 65536: expected at most 268435456 weights in a layer, not 65536 x 65536"


@pytest.mark.parametrize(("annotation", "values"), RIGHT, ids=lambda one: str(one)[:40])
def test_right(annotation, values):
    for value in values:
        check("setting", value, annotation)


@pytest.mark.parametrize(("annotation", "values", "expected"), WRONG, ids=lambda one: str(one)[:40])
def test_wrong(annotation, values, expected):
    assert describe(annotation) == expected
    for value in values:
        with pytest.raises(ValueError, match="Cannot use setting = ") as refused:
            check("setting", value, annotation)
        assert f": expected {expected}" in str(refused.value)
        assert len(str(refused.value)) < 300 and str(refused.value).isprintable()


def test_decorated_functions_stay_what_they_are():
    @validated
    def scaled(rows: Any, scale: PositiveFloat = 2.0, *more: int, key: Name = "a", **rest: int) -> float:
        """A docstring."""
        return rows * scale

    assert scaled(3) == 6 and scaled(3, 4) == 12 and scaled.__doc__ == "A docstring."
    with pytest.raises(ValueError, match="Cannot use scale = 0: expected more than 0"):
        scaled(3, 0)
    with pytest.raises(ValueError, match="Cannot use key = ''"):
        scaled(3, key="")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'rows'"):
        scaled()


def test_nothing_is_allocated_for_what_is_refused():
    tracemalloc.start()
    try:
        for make, named in [
            (lambda: Dense(16, 10**9), "nO = 1000000000: expected 1 to 65536"),
            (
                lambda: Dense(2**16, 2**16),
                "nO = 65536: expected at most 268435456 weights in a layer, not 65536 x 65536",
            ),
            (lambda: cross_encoder(n_outputs=10**9), "n_outputs = 1000000000: expected 0 to 16384"),
            (lambda: CrossViewAutoencoder(size=10**9), "size = 1000000000: expected 1 to 65536"),
            (lambda: CrossViewAutoencoder(epochs=10**9), "epochs = 1000000000: expected 1 to 1000000"),
            (lambda: Settings(sizes=("up-1000000000",)), "Unknown size 'up-1000000000'"),
            (lambda: Settings(bootstrap=10**9), "bootstrap = 1000000000: expected 0 to 1000000"),
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
