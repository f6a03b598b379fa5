import pytest
import spacy
from helpers.pipelines import make_example
from spacy.training import Example

from spacy_sbert.training.batchers import batch_by_objective, batch_in_turn, batch_mixed

NLP = spacy.blank("en")


def make(kinds):
    """An example for each letter: its objective, "-" for one without members."""
    found = []
    for kind in kinds:
        example = make_example(NLP, "a man", "a dog")
        if kind == "-":
            example = Example(NLP.make_doc("a man"), NLP.make_doc("a man"))
        else:
            example.reference.spans["sbert"].attrs["objective"] = kind
        found.append(example)
    return found


def kinds_of(batches):
    found = []
    for batch in batches:
        groups = [example.reference.spans.get("sbert") for example in batch]
        found.append(
            "".join("-" if group is None else group.attrs["objective"] for group in groups)
        )
    return found


def sizes_of(batches):
    """What each batch says of its sizes while it is the one at hand, by its kinds."""
    found = {}
    for batch in batches:
        groups = [eg.reference.spans["sbert"] for eg in batch if "sbert" in eg.reference.spans]
        found[kinds_of([batch])[0]] = [group.attrs["batch_size"] for group in groups]
    return found


def test_batches_hold_one_objective_each():
    examples = make("abab-abba--b")
    batches = list(batch_by_objective(2)(examples))
    assert sorted(kinds_of(batches)) == ["---", "aa", "aa", "bb", "bbb"]
    assert sorted(id(eg) for batch in batches for eg in batch) == sorted(map(id, examples))
    assert sizes_of(batch_by_objective(2)(examples)) == {
        "aa": [2, 2],
        "bbb": [3, 3, 3],
        "bb": [2, 2],
        "---": [],
    }


def test_batches_come_in_turn():
    assert kinds_of(batch_in_turn(2)(make("abaaaaabbbaaaaaaaa"))) == ["aa", "bb", "aa", "bb", "aa"]
    assert sizes_of(batch_in_turn(2)(make("abab"))) == {"aa": [2, 2], "bb": [2, 2]}
    # In memory: all known
    assert kinds_of(batch_in_turn(2)(make("a" * 12 + "bbbb"))) == [
        "aa",
        "bb",
        "aa",
        "bb",
        "aa",
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("aaab", r"found only 1 examples of the objective 'b'"),
        ("aa-", "only 1 examples without members"),
        ("a", "'a'"),
    ],
)
def test_too_few_examples_for_turns(given, told):
    """spaCy would ask for epoch after epoch without a word."""
    with pytest.raises(ValueError, match=rf"with size = 2 .*{told}.*Set size to 1 or less"):
        list(batch_in_turn(2)(make(given)))


def test_single_leftover_joins_the_last_batch():
    assert kinds_of(batch_by_objective(3)(make("aaaaaaa"))) == ["aaa", "aaaa"]
    assert kinds_of(batch_by_objective(3)(make("aaaaaaaa"))) == ["aaa", "aaa", "aa"]
    assert kinds_of(batch_by_objective(3)(make("a"))) == ["a"]
    assert kinds_of(batch_by_objective(1)(make("aa"))) == ["a", "a"]


def test_mixed_batches_whose_sizes_are_dropped_after_each():
    assert sizes_of(batch_mixed(3)(make("ab-aa"))) == {"ab-": [1, 1], "aa": [2, 2]}
    assert kinds_of(batch_mixed(3)(make("ab-a"))) == ["ab-a"]
    examples = make("aaa-")
    list(batch_mixed(2)(examples))
    assert all("batch_size" not in eg.reference.spans["sbert"].attrs for eg in examples[:3])
