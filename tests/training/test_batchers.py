import random
from collections import Counter

import pytest
import spacy
from helpers.pipelines import make_example
from spacy.training import Example

from spacy_sbert.readers import example_doc
from spacy_sbert.training.batchers import (
    batch_by_label,
    batch_by_objective,
    batch_in_turn,
    batch_mixed,
)

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


def labelled(counts, seed=0):
    """Single texts, so many of each label, in random order."""
    labels = [label for label, n in counts.items() for _ in range(n)]
    random.Random(seed).shuffle(labels)
    docs = [example_doc(NLP, [f"text {i}"], label=label) for i, label in enumerate(labels)]
    return [Example(example_doc(NLP, [doc.text]), doc) for doc in docs]


def labels_in(batch):
    return Counter(example.reference.spans["sbert"].attrs["label"] for example in batch)


def has_triplets(batch):
    """Whether a batch-hard loss finds an anchor: two texts of a label, one of another."""
    counts = labels_in(batch)
    return len(counts) > 1 and max(counts.values()) > 1


SHARES = {
    "as many of each": ({str(i): 8 for i in range(77)}, 64),
    "odd numbers": ({str(i): 5 for i in range(40)}, 16),
    "most of one label": ({"a": 300, "b": 11, "c": 9}, 16),
    "too few pairs of the others": ({"a": 300, "b": 12, "c": 9}, 16),
    "many single texts": ({"a": 30, "b": 20} | {f"rare {i}": 1 for i in range(60)}, 16),
    "one batch": ({"a": 2, "b": 1}, 64),
    "the smallest size": ({"a": 8, "b": 4, "c": 8}, 4),
    "one text more than a batch holds": ({"a": 9, "b": 8}, 16),
}


@pytest.mark.parametrize("shares", SHARES)
def test_batches_hold_several_texts_of_several_labels(shares):
    counts, size = SHARES[shares]
    examples = labelled(counts)
    batcher = batch_by_label(size)
    batches = list(batcher(examples))
    assert sorted(id(eg) for batch in batches for eg in batch) == sorted(map(id, examples))
    assert len(batches) == batcher.count([len(examples)], size)
    sizes = [len(batch) for batch in batches]
    assert max(sizes) <= size + 1
    assert max(sizes) - min(sizes) <= 2
    assert all(map(has_triplets, batches))


def test_texts_of_a_label_come_in_pairs():
    """So that nearly each is an anchor: by chance a third of them would be alone."""
    for batch in batch_by_label(64)(labelled({str(i): 8 for i in range(77)})):
        assert set(labels_in(batch).values()) == {2}
        assert len(labels_in(batch)) >= 30


def test_batches_by_label_depend_on_the_seed_and_the_order():
    def texts(examples, **settings):
        batches = batch_by_label(16, **settings)(examples)
        return [[example.reference.text for example in batch] for batch in batches]

    examples = labelled({"a": 40, "b": 40})
    assert texts(examples) == texts(iter(examples)) == texts(examples, seed=0)
    assert texts(examples) != texts(examples, seed=1)
    assert texts(examples) != texts(examples[::-1])


def test_other_objectives_beside_labels():
    classes = labelled({"a": 9, "b": 8})
    for example in classes:
        example.reference.spans["sbert"].attrs["objective"] = "c"
    batches = list(batch_by_label(4)([*make("pppp--p"), *classes]))
    kinds = kinds_of(batches)
    assert sorted(kinds) == ["--", "cccc", "cccc", "cccc", "ccccc", "ppppp"]
    assert kinds != sorted(kinds)
    assert all(has_triplets(batch) for batch in batches if "c" in kinds_of([batch])[0])
    assert sizes_of(batch_by_label(4)(make("pp") + classes))["pp"] == [2, 2]


def test_batches_without_triplets_are_counted():
    warned = r"batches-without-triplets\] 5 of 7 batches have no two texts of a label beside one"
    with pytest.warns(UserWarning, match=warned):
        batches = list(batch_by_label(16)(labelled({"a": 110, "b": 2})))
    assert sorted(map(has_triplets, batches)) == [False] * 5 + [True] * 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"a": 9}, "needs two labels, and two texts of one: it got 9 texts of 1"),
        ({"a": 1, "b": 1, "c": 1}, "two texts of one: it got 3 texts of 3"),
    ],
)
def test_labels_without_triplets_are_refused(given, told):
    with pytest.raises(ValueError, match=told):
        list(batch_by_label(4)(labelled(given)))


def test_texts_without_label_are_refused():
    with pytest.raises(ValueError, match="'a man a dog ' has no gold value 'label'"):
        list(batch_by_label(4)(make("aa-")))
    examples = labelled({"a": 4, "b": 4})
    del examples[3].reference.spans["sbert"].attrs["label"]
    with pytest.raises(ValueError, match="'text 3 ' has no gold value 'label'"):
        list(batch_by_label(4)(examples))
    with pytest.raises(ValueError, match="size = 3: expected"):
        batch_by_label(3)
