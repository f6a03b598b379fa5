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
    with cases.refuses("named", "max_length", "-3"):
        raise ValueError("max_length is -3")
    with cases.refuses("not named", "max_length"):
        raise ValueError("list index out of range")
    with cases.refuses("of another kind"):
        raise AttributeError("encode")
    with cases.refuses("accepted"):
        pass
    assert cases.counts == {"refused": 1, "wrong": 3}
    assert [failure.split(":")[0] for failure in cases.failures] == ["not named", "of another kind", "accepted"]
