"""Classes of texts are scikit-learn's on the same vectors, however they were given or stored."""

import pickle
from copy import deepcopy

import numpy
import pytest
import spacy
from helpers.pipelines import scored_pairs, slow
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from spacy.cli.find_threshold import find_threshold
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_sbert import find_sbert
from spacy_sbert.readers import example_doc
from spacy_sbert.textcat import find_textcat

EXAMPLES = {
    "food": ["a man is eating", "someone is having a meal", "a man is having food"],
    "cats": ["the cat sat", "the cat sat on the mat", "the cat is on the mat"],
    "dogs": ["the dog ran fast", "a dog ran", "the dog can ran fast"],
}
NONE = ["he cannot go", "he can go", "he cannot"]
TEXTS = ["a man is eating food", "the cat on the mat", "a dog ran fast", "he cannot go", "  "]


@pytest.fixture
def with_classes(make_nlp):
    def make(encoder="own", unit="doc", upstream="doc", upstream_pipe="*", **config):
        nlp = make_nlp(encoder, unit=upstream)
        config = {"examples": EXAMPLES, "unit": unit, "upstream": upstream_pipe, **config}
        nlp.add_pipe("sbert_textcat", config=config)
        return nlp

    return make


def cats_of(nlp, texts=TEXTS):
    return [doc.cats for doc in nlp.pipe(texts)]


def check_same(first, second, atol=1e-6):
    for one, other in zip(first, second, strict=True):
        assert list(one) == list(other)
        numpy.testing.assert_allclose(list(one.values()), list(other.values()), atol=atol)


def labelled(examples=EXAMPLES):
    texts = [text for given in examples.values() for text in given]
    return texts, [label for label, given in examples.items() for _ in given]


@pytest.mark.parametrize("encoder", ["own", "shared", "tokens", *slow("static", "listening")])
def test_probabilities_are_those_of_scikit_learn(with_classes, encoder):
    nlp = with_classes(encoder)
    if encoder in ("tokens", "listening"):
        nlp.initialize()
    textcat = find_textcat(nlp)
    texts, labels = labelled()
    sbert = find_sbert(nlp)
    found = cats_of(nlp, TEXTS[:4])
    model = LogisticRegression(C=textcat.cfg["strength"], max_iter=1000)
    model.fit(sbert.encode(texts).astype("float64"), labels)
    logits = model.decision_function(sbert.encode(TEXTS[:4]).astype("float64"))
    expected = softmax(textcat.cfg["scale"] * logits, axis=1)
    for cats, probabilities in zip(found, expected, strict=True):
        given = [cats[label] for label in model.classes_]
        numpy.testing.assert_allclose(given, probabilities, atol=1e-5)
    assert textcat.labels == ("food", "cats", "dogs")


def test_a_text_without_wordpieces_has_no_label(with_classes):
    doc = with_classes()("   ")
    assert set(doc.cats.values()) == {0.0}
    assert doc._.sbert_label == ""


def test_the_order_of_examples_does_not_matter(with_classes):
    backwards = {label: given[::-1] for label, given in EXAMPLES.items()}
    assert cats_of(with_classes(examples=backwards)) == cats_of(with_classes())


def test_config_fit_and_add_give_the_same(with_classes, make_nlp, tmp_path):
    expected = cats_of(with_classes())
    nlp = make_nlp()
    nlp.add_pipe("sbert_textcat")
    find_textcat(nlp).fit(*labelled())
    check_same(cats_of(nlp), expected)
    first = {label: texts[:2] for label, texts in EXAMPLES.items()}
    nlp = with_classes(examples=first)
    before = cats_of(nlp)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert cats_of(loaded) == before
    for label, texts in EXAMPLES.items():
        find_textcat(loaded).add(label, texts[2:])
    check_same(cats_of(loaded), expected)
    assert cats_of(loaded) != before


def test_saved_classes_need_no_scikit_learn(with_classes, tmp_path, monkeypatch):
    nlp = with_classes(threshold="auto", none_examples=NONE)
    expected = cats_of(nlp)
    threshold = find_textcat(nlp).threshold
    nlp.to_disk(tmp_path)
    state = nlp.to_bytes()
    monkeypatch.setitem(__import__("sys").modules, "sklearn.linear_model", None)
    loaded = spacy.load(tmp_path)
    assert cats_of(loaded) == expected
    assert find_textcat(loaded).threshold == threshold
    restored = with_classes(threshold="auto").from_bytes(state)
    assert cats_of(restored) == expected
    find_textcat(loaded).add("food", ["a meal"])
    with pytest.raises(ImportError, match="Fitting classes needs scikit-learn"):
        loaded("a meal")


def test_loading_over_fitted_classes(with_classes):
    nlp = with_classes()
    expected = cats_of(nlp)
    fewer = with_classes(examples={label: EXAMPLES[label] for label in ("food", "cats")})
    fewer("a man")
    fewer.from_bytes(nlp.to_bytes())
    assert cats_of(fewer) == expected


def test_a_pickled_pipe_classifies_the_vectors_of_its_own_pipe(with_classes, other_bert):
    nlp = with_classes(upstream_pipe="sbert")
    nlp.add_pipe("sbert", name="other", config={"model": {"name": str(other_bert)}})
    expected = cats_of(nlp)
    copied = pickle.loads(pickle.dumps(find_textcat(nlp)))
    docs = list(nlp.pipe(TEXTS))
    for doc in docs:
        doc.cats = {}
        copied(doc)
    assert [doc.cats for doc in docs] == expected


@pytest.mark.parametrize("copied", [deepcopy, lambda nlp: pickle.loads(pickle.dumps(nlp))])
def test_copies_of_a_pipeline_before_its_first_text(with_classes, copied):
    copy = copied(with_classes())
    assert cats_of(copy) == cats_of(with_classes())


def test_processes_and_docs_that_travel(with_classes):
    nlp = with_classes()
    expected = cats_of(nlp)
    assert [doc.cats for doc in nlp.pipe(TEXTS, n_process=2)] == expected
    docs = list(nlp.pipe(TEXTS))
    stored = DocBin(docs=docs, store_user_data=True).to_bytes()
    loaded = list(DocBin().from_bytes(stored).get_docs(nlp.vocab))
    assert [doc.cats for doc in loaded] == expected
    assert [doc._.sbert_label for doc in loaded] == [doc._.sbert_label for doc in docs]


def train(nlp, steps=2):
    examples = scored_pairs(nlp)
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 0.01
    for _ in range(steps):
        nlp.update(examples, sgd=optimizer)


def test_a_trained_encoder_has_the_classes_fitted_again(with_classes, tmp_path):
    nlp = with_classes()
    before = cats_of(nlp)
    train(nlp)
    after = cats_of(nlp)
    assert before != after
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert cats_of(again) == after
    find_textcat(again).fit(*labelled())
    check_same(cats_of(again), after)


def test_saved_right_after_training(with_classes, tmp_path):
    nlp = with_classes()
    cats_of(nlp)
    train(nlp)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    fitted_on = find_textcat(loaded).cfg["encoder"]
    assert fitted_on == find_sbert(loaded).fingerprint()
    check_same(cats_of(loaded), cats_of(nlp))


def test_vectors_of_another_encoder_are_refused(with_classes):
    nlp = with_classes()
    nlp("a man")
    other = with_classes()
    train(other)
    doc = other("a man is eating")
    with pytest.raises(ValueError, match="fitted on vectors of the encoder"):
        find_textcat(nlp)(doc)


# None of these


def test_a_text_of_none_has_no_label(with_classes):
    nlp = with_classes(threshold="auto", none_examples=NONE)
    textcat = find_textcat(nlp)
    assert 0 < textcat.threshold < 1
    for doc in nlp.pipe(TEXTS[:4]):
        best = max(doc.cats, key=doc.cats.__getitem__)
        expected = best if doc.cats[best] >= textcat.threshold else ""
        assert doc._.sbert_label == expected
    assert nlp(NONE[0])._.sbert_label == ""
    scores = textcat.cross_validation
    assert 0.5 < scores["none_auc"] <= 1.0
    assert scores["known_accuracy"] + scores["none_accuracy"] > 1.0


def test_examples_of_none_do_not_move_exclusive_labels(with_classes):
    """But for the scale, of other folds."""
    without = find_textcat(with_classes())
    given = find_textcat(with_classes(none_examples=NONE))
    weights = []
    for textcat in (without, given):
        assert textcat.threshold is not None
        weights.append(textcat.model.layers[0].get_param("W") / textcat.cfg["scale"])
    numpy.testing.assert_allclose(weights[0], weights[1], rtol=1e-4, atol=1e-6)


def test_examples_of_none_ask_for_a_threshold(with_classes):
    assert find_textcat(with_classes()).threshold == 0.0
    assert find_textcat(with_classes(threshold=0.0, none_examples=NONE)).threshold == 0.0
    fitted = find_textcat(with_classes(threshold="auto", none_examples=NONE)).threshold
    assert find_textcat(with_classes(none_examples=NONE)).threshold == fitted > 0
    nlp = with_classes()
    find_textcat(nlp).add("", NONE)
    assert find_textcat(nlp).threshold == fitted


def test_the_threshold_of_the_config_holds_when_a_pipeline_is_loaded(with_classes, tmp_path):
    nlp = with_classes(threshold="auto", none_examples=NONE)
    fitted = find_textcat(nlp).threshold
    nlp.to_disk(tmp_path)

    def loaded(threshold):
        config = {"components": {"sbert_textcat": {"threshold": threshold}}}
        return spacy.load(tmp_path, config=config)

    assert find_textcat(loaded(0.25)).threshold == 0.25
    assert find_textcat(loaded("auto")).threshold == fitted
    loaded(0.25).to_disk(tmp_path)
    assert find_textcat(spacy.load(tmp_path)).threshold == 0.25
    assert find_textcat(loaded("auto")).threshold == fitted


def test_several_labels(with_classes):
    both = "a man is eating on the mat"
    examples = {**EXAMPLES, "food": [*EXAMPLES["food"], both], "cats": [*EXAMPLES["cats"], both]}
    nlp = with_classes(examples=examples, multi_label=True, none_examples=NONE)
    textcat = find_textcat(nlp)
    texts, targets = textcat.examples.texts_and_targets()
    assert targets[texts.index(both)].tolist() == [True, True, False]
    assert targets[[texts.index(text) for text in NONE]].any() == numpy.False_
    cats = cats_of(nlp, TEXTS[:4])
    sbert = find_sbert(nlp)
    for label, has_label in zip(textcat.labels, targets.T, strict=True):
        model = LogisticRegression(C=textcat.cfg["strength"], max_iter=1000)
        model.fit(sbert.encode(texts).astype("float64"), has_label)
        expected = model.predict_proba(sbert.encode(TEXTS[:4]).astype("float64"))[:, 1]
        numpy.testing.assert_allclose([each[label] for each in cats], expected, atol=1e-5)
    assert find_textcat(nlp).threshold == 0.5


def test_labels_without_examples_stand_for_themselves(make_nlp):
    nlp = make_nlp()
    nlp.add_pipe("sbert_textcat", config={"labels": ["food", "cat"]})
    assert nlp("food")._.sbert_label == "food"
    assert nlp("cat")._.sbert_label == "cat"
    expected = make_nlp()
    expected.add_pipe("sbert_textcat", config={"examples": {"food": ["food"], "cat": ["cat"]}})
    assert cats_of(nlp) == cats_of(expected)
    find_textcat(nlp).add("cat", ["the cat sat"])
    assert find_textcat(nlp).examples.by_label == {"food": [], "cat": ["the cat sat"]}


# Units


@pytest.mark.parametrize("unit", ["sent", "ents", "noun_chunks", "mine"])
def test_spans(with_classes, unit):
    nlp = with_classes(unit=unit, upstream="doc+sent", spans_key="classes")

    @spacy.Language.component(f"set_spans_{unit}")
    def set_spans(doc):
        spans = [Span(doc, 0, 4, label="X"), Span(doc, 5, 8, label="X")]
        doc.ents = spans
        doc.spans["mine"] = spans
        return doc

    nlp.add_pipe(f"set_spans_{unit}", first=True)
    text = "a man is eating . the cat sat ."
    if unit == "noun_chunks":
        with pytest.raises(NotImplementedError, match="E894"):
            nlp(text)
        return
    doc = nlp(text)
    expected = list(doc.sents) if unit == "sent" else list(doc.ents)
    found = list(doc.spans["classes"])
    assert [(span.start, span.end) for span in found] == [(s.start, s.end) for s in expected]
    for span in found:
        assert span.label_ == max(span._.sbert_cats, key=span._.sbert_cats.__getitem__)
        assert sum(span._.sbert_cats.values()) == pytest.approx(1.0, abs=1e-6)
    if unit == "sent":
        alone = with_classes()
        given = alone("a man is eating .").cats
        check_same([found[0]._.sbert_cats], [given], atol=1e-4)
    assert doc.cats == {}


def test_spans_of_none_are_left_out(with_classes):
    nlp = with_classes(unit="sent", upstream="doc+sent", threshold=1.0)
    assert list(nlp("a man is eating . the cat sat .").spans["sbert_textcat"]) == []


# Gold and scores


def gold(nlp, examples=EXAMPLES, none=()):
    made = []
    for label, texts in examples.items():
        for text in texts:
            doc = nlp.make_doc(text)
            doc.cats = {other: float(other == label) for other in EXAMPLES}
            made.append(Example(nlp.make_doc(text), doc))
    for text in none:
        doc = nlp.make_doc(text)
        doc.cats = dict.fromkeys(EXAMPLES, 0.0)
        made.append(Example(nlp.make_doc(text), doc))
    return made


def test_gold_of_textcat_and_labels_of_single_members_are_examples(make_nlp, with_classes):
    expected = cats_of(with_classes())
    nlp = make_nlp()
    nlp.add_pipe("sbert_textcat")
    nlp.initialize(lambda: gold(nlp))
    check_same(cats_of(nlp), expected)

    def members():
        for label, texts in EXAMPLES.items():
            for text in texts:
                doc = example_doc(nlp, [text], label=label)
                yield Example(doc.copy(), doc)

    nlp.initialize(members)
    check_same(cats_of(nlp), expected)
    assert nlp.get_pipe("sbert_textcat").labels == tuple(EXAMPLES)
    assert nlp.update(gold(nlp), sgd=None).get("sbert_textcat") is None


def members(nlp, texts, labels):
    made = []
    for text, label in zip(texts, labels, strict=True):
        doc = example_doc(nlp, [text], label=label)
        made.append(Example(example_doc(nlp, [text]), doc))
    return made


def test_labels_of_single_members_are_scored_as_those_of_textcat(with_classes):
    nlp = with_classes()
    texts, labels = labelled()
    # One is wrong
    labels[0] = "cats"
    found = nlp.evaluate(members(nlp, texts, labels))
    as_textcat = members(nlp, texts, [None] * len(texts))
    for example, label in zip(as_textcat, labels, strict=True):
        example.reference.cats = {label: 1.0}
    expected = nlp.evaluate(as_textcat)
    names = [name for name in expected if name.startswith("cats_")]
    assert {name: found[name] for name in names} == {name: expected[name] for name in names}
    assert 0 < found["cats_acc"] < 1
    assert found["cats_macro_f"] > 0


def test_a_text_with_two_labels_counts_with_the_first(make_nlp, with_classes):
    nlp = make_nlp()
    textcat = nlp.add_pipe("sbert_textcat")
    texts, labels = labelled()
    given = members(nlp, [*texts, texts[0], texts[0]], [*labels, "cats", labels[0]])
    with pytest.warns(UserWarning, match=rf"classes-contradict\] 1 examples .* '{texts[0]}'"):
        nlp.initialize(lambda: given)
    assert textcat.examples.by_label == with_classes().get_pipe("sbert_textcat").examples.by_label


def test_scores_count_texts_of_none(with_classes):
    nlp = with_classes(threshold="auto", none_examples=NONE)
    scores = nlp.evaluate(gold(nlp, none=NONE))
    docs = list(nlp.pipe([*labelled()[0], *NONE]))
    expected = [*labelled()[1], *[""] * len(NONE)]
    right = [doc._.sbert_label == label for doc, label in zip(docs, expected, strict=True)]
    assert scores["cats_acc"] == pytest.approx(numpy.mean(right))
    # spaCy's own, of the texts with a label
    best = [max(doc.cats, key=doc.cats.__getitem__) for doc in docs[: -len(NONE)]]
    micro = numpy.mean([a == b for a, b in zip(best, expected, strict=False)])
    assert scores["cats_micro_f"] == pytest.approx(micro)


def test_find_threshold(with_classes, tmp_path):
    nlp = with_classes(threshold="auto", none_examples=NONE)
    nlp.to_disk(tmp_path / "nlp")
    docs = [example.reference for example in gold(nlp, none=NONE)]
    DocBin(docs=docs).to_disk(tmp_path / "dev.spacy")
    threshold, score, every = find_threshold(
        str(tmp_path / "nlp"), tmp_path / "dev.spacy", "sbert_textcat", "threshold", "cats_acc"
    )
    assert score == max(every.values())
    assert every[1.0] == pytest.approx(len(NONE) / len(docs))
    assert every[0.0] <= score
    assert 0 < threshold <= 1


# What is refused


def text_of(label, *texts):
    return {**EXAMPLES, label: list(texts)}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"examples": text_of("food")}, "The label 'food' has no examples"),
        ({"examples": text_of("food", " ")}, "An example of 'food' is empty"),
        ({"examples": text_of("food", "the cat sat")}, "has the labels 'food' and 'cats'"),
        ({"labels": ["food"]}, "The label 'food' is given twice"),
        ({"labels": ["a", "a"]}, "The label 'a' is given twice"),
        ({"threshold": 1.5}, "threshold = 1.5"),
        ({"threshold": -0.1}, "threshold = -0.1"),
        ({"threshold": "best"}, "threshold = 'best'"),
        ({"threshold": "auto", "multi_label": True}, "is for classes of which a text has one"),
        ({"examples": text_of("a = b", "one")}, "The label 'a = b' cannot stand in a config"),
        ({"examples": text_of("food", "for $5")}, "cannot stand in a config, where spaCy doubles"),
    ],
)
def test_settings_that_are_wrong(with_classes, config, message):
    with pytest.raises(ValueError, match=message):
        with_classes(**config)


def test_too_few_labels_or_vectors(make_nlp):
    nlp = make_nlp()
    nlp.add_pipe("sbert_textcat", config={"examples": {"food": ["a meal"]}})
    with pytest.raises(
        ValueError, match="has the label 'food' alone: expected examples of several"
    ):
        nlp("a man")
    nlp = make_nlp()
    nlp.add_pipe("sbert_textcat")
    with pytest.raises(ValueError, match="has no label: expected examples"):
        nlp("a man")
    nlp = make_nlp()
    nlp.add_pipe("sbert_textcat", config={"examples": EXAMPLES}, before="sbert")
    with pytest.raises(ValueError, match=r"there is no 'sbert' there.*'sbert_meta'"):
        nlp("a man")
    nlp = make_nlp()
    nlp.add_pipe("sbert_textcat", config={"examples": EXAMPLES, "upstream": "other"})
    with pytest.raises(ValueError, match="there is no 'other' there"):
        nlp("a man")
    everything = {"food": ["a meal"], "cats": ["a meal"]}
    nlp = make_nlp()
    nlp.add_pipe("sbert_textcat", config={"examples": everything, "multi_label": True})
    with pytest.raises(ValueError, match="All examples have the label 'food'"):
        nlp("a man")


def test_a_fit_that_is_refused_keeps_the_classes(with_classes):
    nlp = with_classes()
    expected = cats_of(nlp)
    textcat = find_textcat(nlp)
    with pytest.raises(ValueError, match="Got 1 texts and 2 labels"):
        textcat.fit(["a man"], ["food", "cats"])
    with pytest.raises(ValueError, match="has the label 'food' alone"):
        textcat.fit(["a man", "a meal"], ["food", "food"])
    assert cats_of(nlp) == expected


def test_gold_that_is_wrong(make_nlp):
    nlp = make_nlp()
    textcat = nlp.add_pipe("sbert_textcat")
    nlp.initialize(lambda: gold(nlp))
    unknown = gold(nlp, {"birds": ["a meal"]})[0]
    unknown.reference.cats = {"birds": 1.0}
    with pytest.raises(ValueError, match="has the label 'birds', which the classes do not have"):
        nlp.update([unknown])
    two = gold(nlp)
    two[0].reference.cats = {"food": 1.0, "cats": 1.0}
    with pytest.raises(ValueError, match="has the labels food, cats: expected one"):
        textcat.initialize(lambda: two, nlp=nlp)


@pytest.mark.parametrize(
    ("label", "texts", "error", "message"),
    [
        ("food", "a meal", TypeError, "are one text: expected a list"),
        ("food", [3], TypeError, "is a int: expected text"),
        ("food", ["\ud800"], ValueError, "half"),
        (3, ["a meal"], TypeError, "The label 3 is a int"),
        ("cats", ["a man is eating"], ValueError, "has the labels 'food' and 'cats'"),
    ],
)
def test_examples_that_are_wrong(with_classes, label, texts, error, message):
    textcat = find_textcat(with_classes())
    with pytest.raises(error, match=message):
        textcat.add(label, texts)
    assert textcat.examples.by_label == EXAMPLES


def test_a_saved_pipe_keeps_its_kind(with_classes, tmp_path):
    with_classes().to_disk(tmp_path)
    with pytest.raises(ValueError, match="saved with multi_label = False"):
        spacy.load(tmp_path, config={"components": {"sbert_textcat": {"multi_label": True}}})


def test_a_doc_without_vectors_of_the_pipe(with_classes):
    nlp = with_classes()
    with pytest.raises(ValueError, match="a Doc has spaCy's own vectors"):
        find_textcat(nlp)(Doc(nlp.vocab, words=["a", "man"]))
