import pytest
import spacy
from pipelines import make_example
from spacy.training import Example

from spacy_sbert.batchers import batch_by_objective, batch_mixed

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
        found.append("".join("-" if group is None else group.attrs["objective"] for group in groups))
    return found


def test_batches_hold_one_objective_each():
    examples = make("abab-abba--b")
    batches = list(batch_by_objective(2)(examples))
    assert sorted(kinds_of(batches)) == ["---", "aa", "aa", "bb", "bbb"]
    assert sorted(id(eg) for batch in batches for eg in batch) == sorted(map(id, examples))
    noted = {b: {eg.reference.spans["sbert"].attrs["batch_size"] for eg in batch if "sbert" in eg.reference.spans}
             for b, batch in zip(kinds_of(batches), batches, strict=True)}  # fmt: skip
    assert noted == {"aa": {2}, "bbb": {3}, "bb": {2}, "---": set()}


def test_one_example_alone_joins_the_batch_before():
    assert kinds_of(batch_by_objective(3)(make("aaaaaaa"))) == ["aaa", "aaaa"]
    assert kinds_of(batch_by_objective(3)(make("aaaaaaaa"))) == ["aaa", "aaa", "aa"]
    assert kinds_of(batch_by_objective(3)(make("a"))) == ["a"]
    assert kinds_of(batch_by_objective(1)(make("aa"))) == ["a", "a"]


def test_batches_are_streamed():
    def endless():
        while True:
            yield from make("ab")

    batches = batch_by_objective(2)(endless())
    assert [kinds_of([next(batches)])[0] for _ in range(4)] in (["aa", "bb"] * 2, ["bb", "aa"] * 2)


def test_mixed_batches_keep_the_order_and_count_each_objective():
    batches = list(batch_mixed(3)(make("ab-aa")))
    assert kinds_of(batches) == ["ab-", "aa"]
    sizes = [[g.attrs["batch_size"] for eg in b if (g := eg.reference.spans.get("sbert"))] for b in batches]
    assert sizes == [[1, 1], [2, 2]]


@pytest.mark.parametrize("batcher", [batch_by_objective, batch_mixed])
def test_bad_size(batcher):
    with pytest.raises(ValueError, match="Cannot make batches of 0 examples"):
        batcher(0)
