"""The readers as training calls them: streamed, shuffled, from .spacy, several at once, with a teacher."""

import json
import random
from collections import Counter
from itertools import islice

import numpy
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Corpus, Example
from spacy.training.loop import create_train_batches
from spacy.util import minibatch, registry
from thinc.api import Config

from spacy_sbert.readers import MultiCorpus, PairCorpus, TeacherCorpus, convert, example_doc
from spacy_sbert.readers.examples import make_example

SIZE = 50


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
        names = {doc.spans["sbert"].attrs["objective"] for doc in (example.predicted, example.reference)}
        assert len(names) == 1
        found.append(names.pop())
    return found


def table(tmp_path, name, size, **columns):
    path = tmp_path / f"{name}.jsonl"
    records = [{"a": f"{name} {i}", **columns} for i in range(size)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf8")
    return path


def test_members_gold_and_objective():
    nlp = spacy.blank("en")
    doc = example_doc(nlp, ["One (1)", ")two", "Three."], spans_key="k", score=0.5, label=None, vector=[1.0])
    assert [span.text for span in doc.spans["k"]] == ["One (1)", ")two", "Three."]
    assert doc.spans["k"].attrs == {"score": 0.5, "vector": [1.0]}
    doc.spans["k"].attrs["objective"] = "x"
    example = make_example(doc, "k")
    assert example.predicted.spans["k"].attrs == {"objective": "x"}
    assert [span.text for span in example.predicted.spans["k"]] == ["One (1)", ")two", "Three."]
    with pytest.raises(ValueError, match=r"number 2 of an example .* has no tokens"):
        example_doc(nlp, ["a", ""])
    with pytest.raises(ValueError, match="was given no members"):
        example_doc(nlp, [])


@pytest.mark.parametrize("format", ["table", "spacy"])
def test_tokens_are_those_of_the_pipeline(tmp_path, format):
    """Also what the tokenizer says of them: an encoder that embeds norms trains on "can not", as it will read."""
    nlp, texts = spacy.blank("en"), ["He can't go.", "They're here."]
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"a": texts[0], "b": texts[1]}), encoding="utf8")
    if format == "spacy":
        convert(path, tmp_path / "pairs.spacy", format="table", members=["a", "b"])
        path = tmp_path / "pairs.spacy"
    columns = {"members": ["a", "b"]} if format == "table" else {}
    (example,) = PairCorpus(path, format=format, **columns)(nlp)
    expected = [token.norm_ for text in texts for token in nlp(text)]
    assert "not" in expected and "are" in expected
    for doc in (example.predicted, example.reference):
        assert [token.norm_ for token in doc] == expected


def test_nothing_is_read_ahead(tmp_path):
    nlp = spacy.blank("en")
    path = tmp_path / "sts.tsv"
    line = "a\tb\tc\td\t{}\tA text that is read.\tAnother one."
    path.write_text("\n".join([*[line.format(1)] * 20000, line.format("broken")]), encoding="utf8")
    assert len(list(islice(PairCorpus(path)(nlp), 3))) == 3
    assert len(list(PairCorpus(path, limit=10, shuffle_buffer=5)(nlp))) == 10
    assert PairCorpus(path, limit=10).count() == 10
    with pytest.raises(ValueError, match="line 20001"):
        PairCorpus(path).count()


@pytest.mark.parametrize("buffer", [1, 7, SIZE, 1000])
def test_shuffling(texts, buffer):
    nlp = spacy.blank("en")
    given = firsts(PairCorpus(texts, format="text")(nlp))
    state = random.getstate()

    def corpus(seed=0):
        return PairCorpus(texts, format="text", shuffle_buffer=buffer, seed=seed)

    reader, other = corpus(), corpus()
    orders = [firsts(reader(nlp)) for _ in range(3)]
    assert orders == [firsts(other(nlp)) for _ in range(3)]
    assert random.getstate() == state
    assert all(sorted(order) == sorted(given) for order in orders)
    if buffer > 1:
        assert len({tuple(order) for order in (given, *orders, firsts(corpus(seed=9)(nlp)))}) == 5
        early = [order.index(text) - given.index(text) for order in orders for text in given]
        assert min(early) >= -buffer, "nothing can be seen before it is read"


def test_epochs_of_a_streamed_corpus_differ(texts):
    """As `spacy train` reads with max_epochs = -1: the reader is called again each epoch."""

    def orders():
        corpus = PairCorpus(texts, format="text", shuffle_buffer=20)
        batches = create_train_batches(spacy.blank("en"), corpus, lambda examples: minibatch(examples, 10), -1)
        epochs = [(epoch, firsts(batch)) for epoch, batch in islice(batches, 10)]
        return [[text for number, batch in epochs if number == epoch for text in batch] for epoch in (0, 1)]

    first, second = orders()
    assert first != second and sorted(first) == sorted(second) and len(first) == SIZE
    assert orders() == [first, second]


@pytest.mark.parametrize(
    ("format", "suffix", "lines", "expected"),
    [
        ("text", "txt", ["One.", "Two."], [(["One."], {}), (["Two."], {})]),
        ("wikisection", "csv", ["Sentence1,Sentence2,Sentence3", "A,B b,C"], [(["A", "B b", "C"], {})]),
        (
            "sick",
            "txt",
            ["sentence_A\tsentence_B\trelatedness_score\tentailment_judgment", "A\tB\t2\tNEUTRAL"],
            [(["A", "B"], {"score": 0.25, "label": "neutral"})],
        ),
    ],
)
def test_round_trip(tmp_path, format, suffix, lines, expected):
    path, out = tmp_path / f"in.{suffix}", tmp_path / "out.spacy"
    path.write_text("\n".join(lines), encoding="utf8")
    assert convert(path, out, format=format) == len(expected)
    corpus = PairCorpus(out)
    assert corpus.count() == len(expected)
    found = list(corpus(spacy.blank("en")))
    for example, (members, gold) in zip(found, expected, strict=True):
        for doc in (example.predicted, example.reference):
            assert [span.text for span in doc.spans["sbert"]] == members
        assert example.reference.spans["sbert"].attrs == gold
        assert not example.predicted.spans["sbert"].attrs


def test_convert_takes_settings(tmp_path):
    path = table(tmp_path, "t", 10, b="other", s=3)
    settings = {"members": ["a", "b"], "score": "s", "max_score": 4, "limit": 7}
    assert convert(path, tmp_path / "out.spacy", expect=7, **settings) == 7
    found = list(PairCorpus(tmp_path / "out.spacy", limit=3, shuffle_buffer=2)(spacy.blank("en")))
    assert len(found) == 3 and found[0].reference.spans["sbert"].attrs == {"score": 0.75}
    with pytest.raises(ValueError, match=r"Cannot read .*out\.spacy"):
        convert(tmp_path / "out.spacy", tmp_path / "again.spacy")


def docbin(path, attrs, words=("a", "b"), spans=((0, 1), (1, 2))):
    doc = Doc(spacy.blank("en").vocab, words=list(words))
    group = [Span(doc, *span) for span in spans]
    doc.spans["sbert"] = SpanGroup(doc, name="sbert", attrs=attrs, spans=group)
    DocBin(docs=[doc]).to_disk(path)
    return path


def test_gold_in_a_docbin_is_optional(tmp_path):
    (example,) = PairCorpus(docbin(tmp_path / "a.spacy", {"objective": "x"}))(spacy.blank("en"))
    assert example.predicted.spans["sbert"].attrs == {"objective": "x"}


@pytest.mark.parametrize(
    ("attrs", "settings"),
    [
        *(({"score": score}, {}) for score in (1.5, float("nan"), "1")),
        *(({"label": label}, {}) for label in ("", 1)),
        ({}, {"spans": ()}),
        ({}, {"words": ("a", "\n"), "spans": ((0, 1), (1, 2))}),
    ],
)
def test_bad_docs_are_named(tmp_path, attrs, settings):
    path = docbin(tmp_path / "a.spacy", attrs, **settings)
    with pytest.raises(ValueError, match=r"(?s)a\.spacy: the Doc number 1 .* is not a pair or another example"):
        list(PairCorpus(path)(spacy.blank("en")))


def test_bad_docbins(tmp_path):
    nlp = spacy.blank("en")
    path = tmp_path / "a.spacy"
    DocBin(docs=[nlp("no pair")]).to_disk(path)
    with pytest.raises(ValueError, match=r"Doc number 1 .* is not a pair"):
        list(PairCorpus(path)(nlp))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"a\.spacy cannot be read"):
        list(PairCorpus(path)(nlp))
    DocBin().to_disk(path)
    for call in (lambda: list(PairCorpus(path)(nlp)), PairCorpus(path).count):
        with pytest.raises(ValueError, match="holds no pairs"):
            call()


def make_multi(tmp_path, **settings):
    sizes = {"big": 300, "small": 100, "tiny": 3}
    readers = {name: PairCorpus(table(tmp_path, name, size), members=["a"]) for name, size in sizes.items()}
    return MultiCorpus(readers, **settings), sizes


def test_proportional_sampling(tmp_path):
    nlp = spacy.blank("en")
    corpus, sizes = make_multi(tmp_path)
    examples = list(corpus(nlp))
    names = objectives(examples)
    assert Counter(names) == sizes
    assert len(set(firsts(examples))) == 403, "every example once"
    assert all(text.startswith(name) for text, name in zip(firsts(examples), names, strict=True))
    assert 60 <= names[:100].count("big") <= 90, "75 of 100 are expected, with a deviation of 4"
    again, _ = make_multi(tmp_path)
    assert objectives(again(nlp)) == names != objectives(corpus(nlp))
    other, _ = make_multi(tmp_path, seed=5)
    assert objectives(other(nlp)) != names


def test_weights(tmp_path):
    corpus, sizes = make_multi(tmp_path, weights={"big": 0.01, "small": 10, "tiny": 10})
    names = objectives(corpus(spacy.blank("en")))
    assert Counter(names) == sizes
    assert names[-250:] == ["big"] * 250, "what is used up drops out"


def test_round_robin(tmp_path):
    corpus, sizes = make_multi(tmp_path, sampling="round_robin")
    assert objectives(corpus(spacy.blank("en"))) == list(sizes) * 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"corpora": {}}, "no corpora"),
        ({"corpora": {"a": "a.tsv"}}, "'a'"),
        ({"sampling": "random"}, "'random'"),
        ({"weights": {"a": 1.0, "c": 1.0}}, "a, c"),
        ({"weights": {"a": 1.0, "b": 0.0}}, "'b'"),
        ({"weights": {"a": 1, "b": 1}, "sampling": "round_robin"}, "no use"),
    ],
)
def test_settings_of_multi(settings, message):
    with pytest.raises(ValueError, match=message):
        MultiCorpus(**{"corpora": {"a": list, "b": list}, **settings})


@pytest.mark.parametrize("sampling", ["proportional", "round_robin"])
def test_empty_corpora_are_named(texts, sampling):
    corpus = MultiCorpus({"full": PairCorpus(texts, format="text"), "none": lambda nlp: iter(())}, sampling=sampling)
    with pytest.raises(ValueError, match=r"'(full or )?none' holds no examples"):
        list(corpus(spacy.blank("en")))


@pytest.mark.parametrize("sampling", ["proportional", "round_robin"])
def test_spacys_own_corpus_is_passed_on(texts, tmp_path, sampling):
    nlp = spacy.blank("en")
    docs = [nlp(f"Named {i}") for i in range(5)]
    for doc in docs:
        doc.ents = [Span(doc, 0, 1, label="X")]
    DocBin(docs=docs).to_disk(tmp_path / "ner.spacy")
    corpora = {"texts": PairCorpus(texts, format="text"), "ner": Corpus(tmp_path / "ner.spacy")}
    found = list(MultiCorpus(corpora, sampling=sampling)(nlp))
    ner = [example for example in found if "sbert" not in example.reference.spans]
    assert len(ner) == 5 and all(example.reference.ents for example in ner)
    assert len(found) == (10 if sampling == "round_robin" else SIZE + 5)


def test_multi_from_a_config(texts):
    config = f"""
    [corpora]
    [corpora.train]
    @readers = "spacy-sbert.MultiCorpus.v1"
    sampling = "proportional"
    [corpora.train.weights]
    one = 1
    two = 2.5
    [corpora.train.corpora]
    [corpora.train.corpora.one]
    @readers = "spacy-sbert.PairCorpus.v1"
    path = {json.dumps(str(texts))}
    format = "text"
    [corpora.train.corpora.two]
    @readers = "spacy-sbert.PairCorpus.v1"
    path = {json.dumps(str(texts))}
    format = "text"
    shuffle_buffer = 10
    """
    corpus = registry.resolve(Config().from_str(config))["corpora"]["train"]
    assert Counter(objectives(corpus(spacy.blank("en")))) == {"one": SIZE, "two": SIZE}


@Language.component("spacy_sbert_test_teacher")
def teach(doc):
    """A teacher of two dimensions: characters and tokens; words that start with "un" are unknown to it."""
    if not doc.text.startswith("un"):
        doc.tensor = numpy.tile(numpy.asarray([[len(doc.text), len(doc)]], dtype="float32"), (len(doc), 1))
    return doc


@pytest.fixture
def teacher(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("spacy_sbert_test_teacher")
    nlp.to_disk(tmp_path / "teacher")
    return str(tmp_path / "teacher")


@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_teacher(tmp_path, teacher, batch_size):
    path = table(tmp_path, "One sentence", 5, b="Ein Satz und mehr")
    corpus = TeacherCorpus(PairCorpus(path, members=["a", "b"]), teacher, batch_size=batch_size)
    assert corpus.count() == 5
    for _ in range(2):  # epochs
        examples = list(corpus(spacy.blank("en")))
        assert firsts(examples) == [f"One sentence {i}" for i in range(5)]
        for example in examples:
            (vector,) = example.reference.spans["sbert"].attrs.values()
            assert vector.dtype == numpy.float32 and vector.tolist() == [14.0, 3.0]
            assert not example.predicted.spans["sbert"].attrs


def test_vectors_of_a_teacher_survive(teacher, texts, tmp_path):
    (example,) = TeacherCorpus(PairCorpus(texts, format="text", limit=1), teacher)(spacy.blank("en"))
    DocBin(docs=[example.reference]).to_disk(tmp_path / "a.spacy")
    (loaded,) = PairCorpus(tmp_path / "a.spacy")(spacy.blank("en"))
    numpy.testing.assert_array_equal(loaded.reference.spans["sbert"].attrs["vector"], [6.0, 2.0])
    assert not loaded.predicted.spans["sbert"].attrs
    copied = example.reference.copy().spans["sbert"].attrs["vector"]
    numpy.testing.assert_array_equal(copied, [6.0, 2.0])


def test_teacher_with_static_vectors(texts, tmp_path):
    nlp = spacy.blank("en")
    nlp.vocab.set_vector("text", numpy.asarray([1.0, 3.0], dtype="float32"))
    nlp.to_disk(tmp_path / "static")
    (example,) = TeacherCorpus(PairCorpus(texts, format="text", limit=1), str(tmp_path / "static"))(spacy.blank("en"))
    assert example.reference.spans["sbert"].attrs["vector"].tolist() == [0.5, 1.5]


def test_teacher_without_a_vector(tmp_path, teacher):
    for name in ("unknown", "text"):
        taught_by = teacher
        if name == "text":  # a pipeline that has no vectors at all
            taught_by = str(tmp_path / "blank")
            spacy.blank("en").to_disk(taught_by)
        corpus = TeacherCorpus(PairCorpus(table(tmp_path, name, 1), members=["a"]), taught_by)
        with pytest.raises(ValueError, match=f"has no vector for '{name} 0'"):
            list(corpus(spacy.blank("en")))


def test_teacher_passes_other_examples_on(teacher):
    def plain(nlp):
        yield Example(nlp.make_doc("plain"), nlp.make_doc("plain"))

    corpus = TeacherCorpus(plain, teacher)
    assert corpus.count() == 1
    assert len(list(corpus(spacy.blank("en")))) == 1


def test_several_files_are_one(tmp_path):
    """SNLI and MultiNLI: in their order, and errors name the file."""
    nlp = spacy.blank("en")
    files = [table(tmp_path, name, size, b="other") for name, size in (("one", 3), ("two", 2))]
    convert(table(tmp_path, "three", 2, b="other"), tmp_path / "three.spacy", members=["a", "b"])
    corpus = PairCorpus([*files, tmp_path / "three.spacy"], format="auto", members=["a", "b"])
    expected = ["one 0", "one 1", "one 2", "two 0", "two 1", "three 0", "three 1"]
    assert firsts(corpus(nlp)) == expected and corpus.count() == 7
    for limit in range(1, 9):
        first = PairCorpus([*files, tmp_path / "three.spacy"], members=["a", "b"], limit=limit)
        assert firsts(first(nlp)) == expected[:limit] and first.count() == min(limit, 7)
    shuffled = PairCorpus(files, members=["a", "b"], shuffle_buffer=100, seed=3)
    assert sorted(firsts(shuffled(nlp))) == sorted(expected[:5]) and firsts(shuffled(nlp)) != expected[:5]
    with files[1].open("a", encoding="utf8") as file:
        file.write('{"a": "", "b": "x"}\n')
    for call in (PairCorpus(files, members=["a", "b"]).count, lambda: list(PairCorpus(files, members=["a", "b"])(nlp))):
        with pytest.raises(ValueError, match=r"two\.jsonl, line 3"):
            call()
    with pytest.raises(ValueError, match=r"no file .*none\.jsonl"):
        PairCorpus([files[0], tmp_path / "none.jsonl"], members=["a", "b"]).count()
    with pytest.raises(ValueError, match="was given no path"):
        PairCorpus([], format="text")


def test_several_files_in_a_config(tmp_path):
    files = [str(table(tmp_path, name, 2, b="other")) for name in ("one", "two")]
    text = """
    [paths]
    train = null

    [corpus]
    @readers = "spacy-sbert.PairCorpus.v1"
    path = ${paths.train}
    members = ["a", "b"]
    """
    config = Config().from_str(text, overrides={"paths.train": files})
    assert registry.resolve(config)["corpus"].count() == 4
