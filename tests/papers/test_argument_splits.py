"""Folds that keep sentences apart."""

import pytest


def test_folds_that_keep_sentences_apart(load_script):
    """Pairs are linked by sentences, also through others: a-b, b-c and e-c are one group."""
    splitting = load_script("argument_splits")
    members = [tuple(pair) for pair in ("ab", "pq", "bc", "rs", "ec", "tq")]
    assert sorted(splitting.connected(members)) == [[0, 2, 4], [1, 5], [3]]
    splits = splitting.split_sentences(members, 2)
    assert [split.test for split in splits] == [(0, 2, 4), (1, 3, 5)]
    assert [split.train for split in splits] == [(1, 3, 5), (0, 2, 4)], "nothing is lost"
    with pytest.raises(ValueError, match=r"4 folds of 3 groups .*: expected 2 to 3"):
        splitting.split_sentences(members, 4)
