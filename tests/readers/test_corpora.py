"""The readers as training calls them: streamed, shuffled, from .spacy, several at once, with a
teacher.
"""

import json
import random
from collections import Counter
from itertools import islice

import numpy
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Corpus
from spacy.util import registry
from thinc.api import Config

from spacy_sbert.readers import MultiCorpus, PairCorpus, TeacherCorpus, convert, example_doc
from spacy_sbert.readers.examples import make_example

SIZE = 50
NLP = spacy.blank("en")


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"text {i}\n" for i in range(SIZE)), encoding="utf8")
    return path


def firsts(examples):
    return [example.reference.spans["sbert"][0].text for example in examples]


def objectives(examples):
    found = []
    for example in examples:
        names = {
            doc.spans["sbert"].attrs["objective"] for doc in (example.predicted, example.reference)
        }
        assert len(names) == 1
        found.append(names.pop())
    return found


def table(tmp_path, name, size, **columns):
    path = tmp_path / f"{name}.jsonl"
    path.write_text(
        "".join(json.dumps({"a": f"{name} {i}", **columns}) + "\n" for i in range(size)),
        encoding="utf8",
    )
    return path


def test_members_gold_and_objective():
    doc = example_doc(
        NLP, ["One (1)", ")two", "Three."], spans_key="k", score=0.5, label=None, vector=[1.0]
    )
    assert [span.text for span in doc.spans["k"]] == ["One (1)", ")two", "Three."]
    assert doc.spans["k"].attrs == {"score": 0.5, "vector": [1.0]}
    doc.spans["k"].attrs["objective"] = "x"
    example = make_example(doc, "k")
    assert example.predicted.spans["k"].attrs == {"objective": "x"}
    assert [span.text for span in example.predicted.spans["k"]] == ["One (1)", ")two", "Three."]
    with pytest.raises(ValueError, match=r"number 2 of an example .* has no tokens"):
        example_doc(NLP, ["a", ""])
    with pytest.raises(ValueError, match="was given no members"):
        example_doc(NLP, [])


def test_tokens_are_those_of_the_pipeline(tmp_path):
    """Also what the tokenizer says of them: an encoder that embeds norms trains on "can not", as it
    will read.
    """
    texts = ["He can't go.", "They're here."]
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"a": texts[0], "b": texts[1]}), encoding="utf8")
    convert(path, tmp_path / "pairs.spacy", format="table", members=["a", "b"])
    expected = [token.norm_ for text in texts for token in NLP(text)]
    assert "not" in expected
    assert "are" in expected
    for corpus in (PairCorpus(path, members=["a", "b"]), PairCorpus(tmp_path / "pairs.spacy")):
        (example,) = corpus(NLP)
        for doc in (example.predicted, example.reference):
            assert [token.norm_ for token in doc] == expected


def test_nothing_is_read_ahead(tmp_path):
    path = tmp_path / "sts.tsv"
    line = "a\tb\tc\td\t{}\tA text that is read.\tAnother one."
    path.write_text("\n".join([*[line.format(1)] * 20000, line.format("broken")]), encoding="utf8")
    assert len(list(islice(PairCorpus(path)(NLP), 3))) == 3
    assert len(list(PairCorpus(path, limit=10, shuffle_buffer=5)(NLP))) == 10
    assert PairCorpus(path, limit=10).count() == 10
    with pytest.raises(ValueError, match="line 20001"):
        PairCorpus(path).count()


@pytest.mark.parametrize("buffer", [1, 7, 1000])
def test_shuffling(texts, buffer):
    given = firsts(PairCorpus(texts, format="text")(NLP))
    state = random.getstate()
    readers = [
        PairCorpus(texts, format="text", shuffle_buffer=buffer, seed=seed) for seed in (0, 0, 9)
    ]
    orders, again, (other, *_) = ([firsts(reader(NLP)) for _ in range(3)] for reader in readers)
    assert orders == again
    assert random.getstate() == state
    assert all(sorted(order) == sorted(given) for order in orders)
    if buffer > 1:
        assert len({tuple(order) for order in (given, *orders, other)}) == 5
        early = [order.index(text) - given.index(text) for order in orders for text in given]
        assert min(early) >= -buffer, "nothing can be seen before it is read"


def test_convert_takes_settings(tmp_path):
    path = table(tmp_path, "t", 10, b="other", s=3)
    settings = {"members": ["a", "b"], "score": "s", "max_score": 4, "limit": 7}
    assert convert(path, tmp_path / "out.spacy", expect=7, **settings) == 7
    found = list(PairCorpus(tmp_path / "out.spacy", limit=3, shuffle_buffer=2)(NLP))
    assert len(found) == 3
    assert found[0].reference.spans["sbert"].attrs == {"score": 0.75}
    with pytest.raises(ValueError, match=r"Cannot read .*out\.spacy"):
        convert(tmp_path / "out.spacy", tmp_path / "again.spacy")


def docbin(path, attrs, words=("a", "b"), spans=((0, 1), (1, 2))):
    doc = Doc(NLP.vocab, words=list(words))
    doc.spans["sbert"] = SpanGroup(
        doc, name="sbert", attrs=attrs, spans=[Span(doc, *span) for span in spans]
    )
    DocBin(docs=[doc]).to_disk(path)
    return path


def test_gold_is_optional(tmp_path):
    path = docbin(tmp_path / "a.spacy", {"objective": "x"})
    (example,) = PairCorpus(path)(NLP)
    assert example.predicted.spans["sbert"].attrs == {"objective": "x"}


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"attrs": {"score": 1.5}}, id="score above 1"),
        pytest.param({"attrs": {"score": float("nan")}}, id="NaN"),
        pytest.param({"attrs": {"score": "1"}}, id="score as a str"),
        pytest.param({"attrs": {"label": ""}}, id="empty label"),
        pytest.param({"attrs": {"label": 1}}, id="label as a number"),
        pytest.param({"attrs": {}, "words": ("a", "\n")}, id="member without text"),
        pytest.param({"attrs": {}, "spans": ()}, id="no members"),
    ],
)
def test_a_doc_that_is_no_example(tmp_path, settings):
    path = docbin(tmp_path / "a.spacy", **settings)
    with pytest.raises(ValueError, match=r"(?s)a\.spacy: the Doc number 1 .* is not a pair"):
        list(PairCorpus(path)(NLP))


def test_a_damaged_docbin(tmp_path):
    path = tmp_path / "a.spacy"
    DocBin(docs=[NLP("no pair")]).to_disk(path)
    with pytest.raises(ValueError, match=r"Doc number 1 .* is not a pair"):
        list(PairCorpus(path)(NLP))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"a\.spacy cannot be read"):
        list(PairCorpus(path)(NLP))


def test_an_empty_docbin(tmp_path):
    path = tmp_path / "a.spacy"
    DocBin().to_disk(path)
    with pytest.raises(ValueError, match="holds no pairs"):
        list(PairCorpus(path)(NLP))
    with pytest.raises(ValueError, match="holds no pairs"):
        PairCorpus(path).count()


def make_multi(tmp_path, **settings):
    sizes = {"big": 300, "small": 100, "tiny": 3}
    readers = {
        name: PairCorpus(table(tmp_path, name, size), members=["a"]) for name, size in sizes.items()
    }
    return MultiCorpus(readers, **settings), sizes


def test_proportional_sampling(tmp_path):
    corpus, sizes = make_multi(tmp_path)
    examples = list(corpus(NLP))
    names = objectives(examples)
    assert Counter(names) == sizes
    assert len(set(firsts(examples))) == 403, "every example once"
    assert all(text.startswith(name) for text, name in zip(firsts(examples), names, strict=True))
    assert 60 <= names[:100].count("big") <= 90, "75 of 100 are expected, with a deviation of 4"
    again, _ = make_multi(tmp_path)
    assert objectives(again(NLP)) == names != objectives(corpus(NLP))
    other, _ = make_multi(tmp_path, seed=5)
    assert objectives(other(NLP)) != names


def test_weights_and_round_robin(tmp_path):
    corpus, sizes = make_multi(tmp_path, weights={"big": 0.01, "small": 10, "tiny": 10})
    names = objectives(corpus(NLP))
    assert Counter(names) == sizes
    assert names[-250:] == ["big"] * 250, "what is used up drops out"
    corpus, sizes = make_multi(tmp_path, sampling="round_robin")
    assert objectives(corpus(NLP)) == list(sizes) * 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param({"corpora": {}}, "no corpora", id="no corpora"),
        pytest.param({"corpora": {"a": "a.tsv"}}, "'a'", id="a path"),
        pytest.param({"sampling": "random"}, "'random'", id="sampling"),
        pytest.param({"weights": {"a": 1.0, "c": 1.0}}, "a, c", id="weight of no corpus"),
        pytest.param({"weights": {"a": 1.0, "b": 0.0}}, "'b'", id="weight 0"),
        pytest.param(
            {"weights": {"a": 1, "b": 1}, "sampling": "round_robin"},
            "no use",
            id="weights of round robin",
        ),
    ],
)
def test_settings_of_multi(settings, message):
    with pytest.raises(ValueError, match=message):
        MultiCorpus(**{"corpora": {"a": list, "b": list}, **settings})


@pytest.mark.parametrize("sampling", ["proportional", "round_robin"])
def test_spacys_own_corpus_is_passed_on(texts, tmp_path, sampling):
    nlp = spacy.blank("xx")
    docs = [nlp(f"Named {i}") for i in range(5)]
    for doc in docs:
        doc.ents = [Span(doc, 0, 1, label="X")]
    DocBin(docs=docs).to_disk(tmp_path / "ner.spacy")
    corpora = {"texts": PairCorpus(texts, format="text"), "ner": Corpus(tmp_path / "ner.spacy")}
    found = list(MultiCorpus(corpora, sampling=sampling)(nlp))
    ner = [example for example in found if "sbert" not in example.reference.spans]
    assert len(ner) == 5
    assert all(example.reference.ents for example in ner)
    assert len(found) == (10 if sampling == "round_robin" else SIZE + 5)
    with pytest.raises(ValueError, match=r"'(texts or ner or )?none' holds no examples"):
        list(MultiCorpus({**corpora, "none": lambda nlp: iter(())}, sampling=sampling)(nlp))


@Language.component("spacy_sbert_test_teacher")
def teach(doc):
    """A teacher of two dimensions: characters and tokens; words that start with "un" are unknown to
    it.
    """
    if not doc.text.startswith("un"):
        doc.tensor = numpy.tile(
            numpy.asarray([[len(doc.text), len(doc)]], dtype="float32"), (len(doc), 1)
        )
    return doc


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    nlp = spacy.blank("xx")
    path = tmp_path_factory.mktemp("teacher")
    nlp.add_pipe("spacy_sbert_test_teacher")
    nlp.to_disk(path)
    return str(path)


@pytest.mark.parametrize("batch_size", [2, 100])
def test_teacher(tmp_path, teacher, batch_size):
    path = table(tmp_path, "One sentence", 5, b="Ein Satz und mehr")
    corpus = TeacherCorpus(PairCorpus(path, members=["a", "b"]), teacher, batch_size=batch_size)
    assert corpus.count() == 5
    # Epochs
    for _ in range(2):
        examples = list(corpus(NLP))
        assert firsts(examples) == [f"One sentence {i}" for i in range(5)]
        for example in examples:
            (vector,) = example.reference.spans["sbert"].attrs.values()
            assert vector.dtype == numpy.float32
            assert vector.tolist() == [14.0, 3.0]
            assert not example.predicted.spans["sbert"].attrs


def test_vectors_of_a_teacher_survive(teacher, texts, tmp_path):
    (example,) = TeacherCorpus(PairCorpus(texts, format="text", limit=1), teacher)(NLP)
    DocBin(docs=[example.reference]).to_disk(tmp_path / "a.spacy")
    (loaded,) = PairCorpus(tmp_path / "a.spacy")(NLP)
    assert not loaded.predicted.spans["sbert"].attrs
    for doc in (loaded.reference, example.reference.copy()):
        numpy.testing.assert_array_equal(doc.spans["sbert"].attrs["vector"], [6.0, 2.0])


def test_teacher_that_does_not_know_a_text(tmp_path, teacher):
    corpus = TeacherCorpus(PairCorpus(table(tmp_path, "unknown", 1), members=["a"]), teacher)
    with pytest.raises(ValueError, match="has no vector for 'unknown 0'"):
        list(corpus(NLP))


def test_teacher_without_vectors(tmp_path):
    NLP.to_disk(tmp_path / "blank")
    pairs = PairCorpus(table(tmp_path, "text", 1), members=["a"])
    with pytest.raises(ValueError, match="has no vector for 'text 0'"):
        list(TeacherCorpus(pairs, str(tmp_path / "blank"))(NLP))


def test_an_encoder_as_teacher(tmp_path):
    pairs = PairCorpus(table(tmp_path, "a man", 2), members=["a"])
    corpus = TeacherCorpus(pairs, "sentence-transformers/all-MiniLM-L6-v2")
    for example in corpus(NLP):
        assert example.reference.spans["sbert"].attrs["vector"].shape == (384,)
    with pytest.raises(OSError, match="Cannot load 'no_such_teacher'"):
        list(TeacherCorpus(pairs, "no_such_teacher")(NLP))


def test_several_files_are_one(tmp_path):
    """SNLI and MultiNLI: in their order, and errors name the file."""
    files = [table(tmp_path, name, size, b="other") for name, size in (("one", 3), ("two", 2))]
    convert(table(tmp_path, "three", 2, b="other"), tmp_path / "three.spacy", members=["a", "b"])
    corpus = PairCorpus([*files, tmp_path / "three.spacy"], format="auto", members=["a", "b"])
    expected = ["one 0", "one 1", "one 2", "two 0", "two 1", "three 0", "three 1"]
    assert firsts(corpus(NLP)) == expected
    assert corpus.count() == 7
    for limit in range(1, 9):
        first = PairCorpus([*files, tmp_path / "three.spacy"], members=["a", "b"], limit=limit)
        assert firsts(first(NLP)) == expected[:limit]
        assert first.count() == min(limit, 7)
    shuffled = PairCorpus(files, members=["a", "b"], shuffle_buffer=100, seed=3)
    assert sorted(firsts(shuffled(NLP))) == sorted(expected[:5])
    assert firsts(shuffled(NLP)) != expected[:5]
    with files[1].open("a", encoding="utf8") as file:
        file.write('{"a": "", "b": "x"}\n')
    for call in (
        PairCorpus(files, members=["a", "b"]).count,
        lambda: list(PairCorpus(files, members=["a", "b"])(NLP)),
    ):
        with pytest.raises(ValueError, match=r"two\.jsonl, line 3"):
            call()
    with pytest.raises(ValueError, match=r"no file .*none\.jsonl"):
        PairCorpus([files[0], tmp_path / "none.jsonl"], members=["a", "b"]).count()
    with pytest.raises(ValueError, match="was given no path"):
        PairCorpus([], format="text")


def test_from_a_config(texts, tmp_path):
    """Several readers in one, and several files of one."""
    files = [str(table(tmp_path, name, 2, b="other")) for name in ("one", "two")]
    readers = {"one": {"path": str(texts), "format": "text", "shuffle_buffer": 10}}
    readers["two"] = {"path": "${paths.train}", "members": ["a", "b"]}
    blocks = {
        name: {"@readers": "spacy-sbert.PairCorpus.v1", **block} for name, block in readers.items()
    }
    train = {
        "@readers": "spacy-sbert.MultiCorpus.v1",
        "weights": {"one": 1, "two": 2.5},
        "corpora": blocks,
    }
    text = Config({"paths": {"train": None}, "corpora": {"train": train}}).to_str(interpolate=False)
    config = Config().from_str(text, overrides={"paths.train": files})
    corpus = registry.resolve(config)["corpora"]["train"]
    assert Counter(objectives(corpus(NLP))) == {"one": SIZE, "two": 4}


def test_scores_of_a_teacher(tmp_path):
    """A list of JSON; in a table of text its writing."""
    members = ["anchor", "positive", "negative_1"]
    (tmp_path / "tuples.jsonl").write_text(
        json.dumps(dict(zip([*members, "scores"], [*"abc", [0.9, -4]], strict=True))) + "\n"
    )
    (tmp_path / "tuples.csv").write_text('anchor,positive,negative_1,scores\na,b,c,"[0.9, -4]"\n')
    for name in ("tuples.jsonl", "tuples.csv"):
        reader = PairCorpus(tmp_path / name, members=members, scores="scores")
        (example,) = reader(NLP)
        assert example.reference.spans["sbert"].attrs["scores"] == [0.9, -4.0]


@pytest.mark.parametrize("scores", ["0.9", "[]", "[0.9, null]", '["much"]', "high", ""])
def test_scores_of_a_teacher_that_are_none(scores, tmp_path):
    table = tmp_path / "tuples.tsv"
    table.write_text(f"anchor\tpositive\tnegative\tscores\na\tb\tc\t{scores}\n")
    reader = PairCorpus(table, members=["anchor", "positive", "negative"], scores="scores")
    with pytest.raises(ValueError, match=r"tuples\.tsv, line 2: .*column 'scores'"):
        list(reader(NLP))


def test_labels_as_cats(tmp_path):
    """Of the reference alone, beside the label; all labels of the files, of those that are read."""
    path = tmp_path / "topics.csv"
    path.write_text("text,label\nA cat.,b\nA dog.,a\nA man.,c\n", encoding="utf8")
    settings = {"members": ["text"], "label": "label"}
    examples = list(PairCorpus(path, **settings, cats=True, limit=2)(NLP))
    assert [example.reference.cats for example in examples] == [
        {"a": 0.0, "b": 1.0},
        {"a": 1.0, "b": 0.0},
    ]
    assert not any(example.predicted.cats for example in examples)
    assert [example.reference.spans["sbert"].attrs["label"] for example in examples] == ["b", "a"]
    (first, *_) = PairCorpus(path, **settings)(NLP)
    assert first.reference.cats == {}


def test_cats_need_labels_of_a_file_of_text(tmp_path):
    (tmp_path / "texts.csv").write_text("text\nA cat.\n", encoding="utf8")
    with pytest.raises(ValueError, match=r"cats = true needs labels, and .*texts\.csv has none"):
        list(PairCorpus(tmp_path / "texts.csv", members=["text"], cats=True)(NLP))
    with pytest.raises(ValueError, match=r"The Docs of .*a\.spacy have cats of their own"):
        PairCorpus(tmp_path / "a.spacy", cats=True)
