"""The counting itself: a case that goes wrong fails its test, and so does a test without cases."""

import pytest
from counting import COUNTS, Cases


@pytest.fixture(autouse=True)
def forgotten(request):
    yield
    for promise in ("counting", "counting, empty"):
        request.config.stash.get(COUNTS, {}).pop(promise, None)


def test_wrong_cases_fail_and_are_listed(counted):
    with pytest.raises(AssertionError, match=r"(?s)1 wrong of 3: .*half a vector"), counted("counting") as cases:
        cases.right()
        cases.check(True, "never shown")
        cases.check(False, "half a vector")


def test_no_case_at_all_fails(counted):
    with pytest.raises(AssertionError, match="no case of"), counted("counting, empty"):
        pass


def test_refusal_must_name_its_cause():
    cases = Cases("refusals")
    for error in (ValueError("max_length is -3"), ValueError("list index out of range"), AttributeError("encode")):
        with cases.refuses(str(error), "max_length", "-3"):
            raise error
    with cases.refuses("accepted"):
        pass
    assert cases.counts == {"refused": 1, "wrong": 3}
