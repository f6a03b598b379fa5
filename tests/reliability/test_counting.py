"""The counting itself: a case that goes wrong fails its test, and so does a test without cases."""

import pytest
from helpers.counted_cases import COUNTS, Cases


def test_wrong_cases_fail_and_are_listed(counted, request):
    with (
        pytest.raises(AssertionError, match=r"(?s)1 wrong of 2: .*half a vector"),
        counted("counting") as cases,
    ):
        cases.check(True, "never shown")
        cases.check(False, "half a vector")
    with pytest.raises(AssertionError, match="no case of"), counted("counting"):
        pass
    del request.config.stash[COUNTS]["counting"]


def test_refusal_must_name_its_cause():
    cases = Cases("refusals")
    for error in (
        ValueError("max_length is -3"),
        ValueError("list index out of range"),
        AttributeError("encode"),
    ):
        with cases.refuses(str(error), "max_length", "-3"):
            raise error
    with cases.refuses("accepted"):
        pass
    assert cases.counts == {"refused": 1, "wrong": 3}
