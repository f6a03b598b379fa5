"""Baselines: hand-computed values, parity with scikit-learn, what each needs, and suites through
the command line.
"""

import hashlib
import json
import sys

import numpy
import pytest
import spacy
from helpers.invoking import invoke
from helpers.made_data import write_benchmark, write_year
from helpers.pipelines import ROOT
from protocols import learned_similarity, mlp
from scipy import linalg

from spacy_sbert.evaluation import baselines
from spacy_sbert.evaluation.baselines import _BASELINES, _word_signs, make_baseline
from spacy_sbert.evaluation.encoders import VectorStore
from spacy_sbert.files.text_lines import read_counts

VECTORS = {"cat": [1.0, 0.0, 2.0], "dog": [3.0, -4.0, 0.0], "Cat": [0.0, 8.0, 0.0]}
# Of the deviation of inner products of unit vectors, times the root of the width
BOUND = 2**0.5
CORPUS = ["cat dog", "a cat, a dog and a dog", "the dog", "Cat and cat", "", "zebra"]


@pytest.fixture
def nlp():
    """A pipeline with three static vectors."""
    nlp = spacy.blank("xx")
    for word, vector in VECTORS.items():
        nlp.vocab.set_vector(word, numpy.array(vector, dtype="float32"))
    return nlp


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.txt"
    path.write_text("the 700\ncat 200\n\ndog 100\n", encoding="utf8")
    return path


@pytest.fixture
def make_source(nlp, counts, tiny_bert):
    def make(name):
        return make_baseline(name, nlp=nlp, counts=counts, encoder=str(tiny_bert))

    return make


every_baseline = pytest.mark.parametrize("name", _BASELINES)


@every_baseline
def test_a_baseline_has_a_name_and_a_digest(make_source, name):
    source = make_source(name)
    assert source.name.startswith(name)
    assert source.nlp is None
    assert len(source.digest) == 64
    assert source.digest == make_source(name).digest


@every_baseline
def test_vectors_of_a_baseline(make_source, name):
    source = make_source(name)
    rows = source.encode(CORPUS, CORPUS)
    assert rows.dtype == "float32"
    assert rows.shape[0] == len(CORPUS)
    assert numpy.isfinite(rows).all()
    assert numpy.array_equal(rows, make_source(name).encode(CORPUS, CORPUS))
    store = VectorStore(source, None, lambda items, _: items)
    assert store(CORPUS[:1], fit_on=CORPUS).shape == (1, rows.shape[1])


@every_baseline
def test_no_words_no_vector(make_source, name):
    source = make_source(name)
    rows = source.encode(CORPUS, CORPUS)
    assert rows[0].any()
    assert not rows[4].any()
    assert not source.encode([""], [""]).any()


@pytest.mark.parametrize("name", ["static", "sif", "power-means"])
def test_no_known_words_no_vector(make_source, name):
    assert not make_source(name).encode(["zebra", " "], CORPUS).any()


@every_baseline
def test_what_learns_depends_on_what_it_learns_of(make_source, name):
    source = make_source(name)
    of_all = source.encode(CORPUS[:1], CORPUS)
    of_one = source.encode(CORPUS[:1], CORPUS[:1])
    assert (not numpy.array_equal(of_all, of_one)) == source.learns


def test_digests_tell_vectors_apart(nlp, counts):
    first = make_baseline("sif", nlp=nlp, counts=counts).digest
    counts.write_text("the 1\n", encoding="utf8")
    second = make_baseline("sif", nlp=nlp, counts=counts).digest
    nlp.vocab.set_vector("cat", numpy.zeros(3, dtype="float32"))
    assert len({first, second, make_baseline("sif", nlp=nlp, counts=counts).digest}) == 3
    for name in ("random-projection", "tf-idf"):
        each = [
            make_baseline(name, nlp=nlp, **more).digest for more in ({}, {"seed": 1}, {"width": 8})
        ]
        assert len({*each}) == 3


def test_averages_and_power_means_of_static_vectors(nlp):
    rows = make_baseline("static", nlp=nlp).encode(
        ["cat dog", "a cat, a dog and a dog", "Cat", "cat zebra"]
    )
    assert rows.tolist() == [
        [2, -2, 1],
        pytest.approx([7 / 3, -8 / 3, 2 / 3]),
        [0, 8, 0],
        [1, 0, 2],
    ]
    (row,) = make_baseline("power-means", nlp=nlp).encode(["a cat, a dog and a dog"])
    assert row.tolist() == pytest.approx([1, -4, 0, 7 / 3, -8 / 3, 2 / 3, 3, 0, 2])


def test_smooth_inverse_frequency(nlp, counts, monkeypatch):
    """Weights a / (a + p) with p(cat) = 0.2 and p(dog) = 0.1, 1 for a word without a count; then no
    first component.

    A vector is that of the token as it is written, a count that of its lower-cased form.
    """
    # A
    monkeypatch.setattr(baselines, "SMOOTHING", 0.1)
    source = make_baseline("sif", nlp=nlp, counts=counts)
    # Has no count
    nlp.vocab.set_vector("emu", numpy.array([1.0, 1.0, 1.0], dtype="float32"))
    cat = numpy.array([1, 0, 2])
    dog = numpy.array([3, -4, 0])
    emu = numpy.ones(3)
    upper = numpy.array([0, 8, 0])
    # "Emu" has no vector
    texts = ["cat dog", "dog", "Emu emu cat the", "Cat"]
    before = numpy.array([(cat / 3 + dog / 2) / 2, dog / 2, (emu + cat / 3) / 2, upper / 3])
    # All but what is across the dog's
    for corpus, u in (
        (texts, linalg.svd(before)[2][0]),
        (["dog"], dog / 5),
    ):
        expected = before - before @ numpy.outer(u, u)
        assert numpy.allclose(source.encode(texts, corpus), expected, atol=1e-6)
    assert numpy.allclose(source.encode(texts, ["zebra"]), before, atol=1e-6), (
        "nothing known, nothing removed"
    )


def test_word_counts(counts):
    assert read_counts(counts) == {"the": 700, "cat": 200, "dog": 100}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("the 7\ncat\n", "line 2: expected a word .*'cat'", id="no count"),
        pytest.param("the 0\n", "line 1: .*'the 0'", id="a count of 0"),
        pytest.param("a b 7\n", "line 1: .*'a b 7'", id="two words"),
        pytest.param("the 7\nthe 8\n", "line 2: the word 'the'", id="a word twice"),
        pytest.param("\n", "holds no word counts", id="empty"),
    ],
)
def test_bad_word_counts(counts, text, message):
    counts.write_text(text, encoding="utf8")
    with pytest.raises(ValueError, match=rf"counts\.txt.* ?{message}"):
        read_counts(counts)


def test_tf_idf_equals_scikit_learn():
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["a dog and a Cat", "zebra zebra", "unheard of", ""]
    corpus = [text.replace(",", "") for text in CORPUS]
    theirs = TfidfVectorizer(token_pattern=r"\w+").fit(corpus)
    with_comma = make_baseline("tf-idf").encode(["Cat, dog"], CORPUS)
    assert with_comma.shape == (1, len(theirs.vocabulary_) + 1), "the comma is a word of spaCy's"
    rows = make_baseline("tf-idf").encode(texts, corpus)
    assert numpy.allclose(rows, theirs.transform(texts).toarray(), atol=1e-6)
    assert not rows[2:].any()


def test_tf_idf_of_many_words_keeps_inner_products():
    rng = numpy.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in rng.zipf(1.3, 30) % 3000) for _ in range(200)]
    whole = make_baseline("tf-idf", width=10_000).encode(texts, texts)
    projected = make_baseline("tf-idf", width=512).encode(texts, texts)
    assert whole.shape[1] > 512
    assert projected.shape == (200, 512)
    assert projected.dtype == "float32"
    assert numpy.abs(projected @ projected.T - whole @ whole.T).max() < 6 * BOUND / 512**0.5


def test_random_projection_adds_up_words_and_keeps_inner_products():
    bits = "".join(f"{byte:08b}" for byte in hashlib.shake_256(b"7 cat").digest(2))[:11]
    assert _word_signs("cat", 11, 7).tolist() == [1 if bit == "1" else -1 for bit in bits]
    texts = ["cat", "dog", "Dog cat  dog", "dog dog cat"]
    rows, others = (
        make_baseline("random-projection", width=64, seed=seed).encode(texts) for seed in (3, 4)
    )
    assert set(numpy.abs(rows[0]).tolist()) == {0.125}
    assert not numpy.array_equal(rows, others)
    assert numpy.allclose(rows[2], rows[0] + 2 * rows[1])
    assert numpy.array_equal(rows[2], rows[3])
    bags = numpy.random.default_rng(0).integers(0, 3, (60, 40))
    texts = [" ".join(f"w{word} " * count for word, count in enumerate(bag)) for bag in bags]
    rows = make_baseline("random-projection", width=4096).encode(texts)
    lengths = numpy.linalg.norm(bags, axis=1)
    errors = (rows @ rows.T - bags @ bags.T) / numpy.outer(lengths, lengths)
    assert numpy.abs(errors).max() < 6 * BOUND / 4096**0.5


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_untuned_transformer_is_the_pipe_as_it_is(pooling, tiny_bert, make_nlp):
    texts = ["A man is eating food.", "The cat sat.", ""]
    source = make_baseline(f"untuned-{pooling}", encoder=str(tiny_bert))
    nlp = make_nlp(model={"pooling": pooling, "normalize": False})
    rows = source.encode(texts)
    assert numpy.abs(rows - [nlp(text).vector for text in texts]).max() < 1e-6
    assert abs(numpy.linalg.norm(rows[0]) - 1) > 1e-3, "not scaled"


def test_an_unknown_baseline():
    with pytest.raises(ValueError, match="baseline 'glove': expected one of static, sif, "):
        make_baseline("glove")


@pytest.mark.parametrize("name", ["tf-idf", "random-projection"])
def test_a_width_of_0(name):
    with pytest.raises(ValueError, match="width = 0"):
        make_baseline(name, width=0)


def test_what_a_baseline_needs(nlp, counts, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    with pytest.raises(ValueError, match="'static' needs a pipeline with static vectors"):
        make_baseline("static")
    with pytest.raises(ValueError, match="xx_pipeline has no static vectors"):
        make_baseline("sif", nlp=spacy.blank("xx"), counts=counts)
    with pytest.raises(ValueError, match="'sif' needs word counts"):
        make_baseline("sif", nlp=nlp)
    with pytest.raises(ImportError, match=r"'tf-idf' needs .*'spacy-sbert\[evaluation\]"):
        make_baseline("tf-idf")


# Suites that need no more than vectors

SUITES = ("sts", "sick", "triplets", "arguments", "learned", "transfer", "probing", "speed")
FEW = ("sts", "triplets", "speed")
SLOW = pytest.mark.slow
WORDS = ["man", "cat", "dog", "eating", "food", "mat", "meal", "going"]


def text(*numbers):
    return " ".join(WORDS[number % len(WORDS)] for number in numbers)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A little of one data set of each suite."""
    root = tmp_path_factory.mktemp("data")
    write_year(root)
    for split in ("train", "dev", "test"):
        write_benchmark(root, split)
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    pairs = [f"{i}\t{text(i)}\t{text(i, i + i % 5)}\t{1 + i % 5}\tNEUTRAL" for i in range(12)]
    for split in ("train", "trial"):
        (root / f"SICK_{split}.txt").write_text("\n".join([header, *pairs]))
    (root / "wikisec").mkdir()
    triplets = [f"title,{text(i)},{text(i, i + 1)},{text(i + 2, i + 3)}" for i in range(9)]
    (root / "wikisec/test.csv").write_text(
        "\n".join(["Article Title,Sentence1,Sentence2,Sentence3", *triplets])
    )
    rows = [("xy"[i % 2], text(i), text(i, i + 2), ("NS", "SS", "HS")[i % 3]) for i in range(24)]
    lines = ["topic\tsentence_1\tsentence_2\tlabel", *map("\t".join, rows)]
    (root / "UKP_ASPECT.tsv").write_text("\n".join(lines))
    (root / "MR").mkdir()
    for number, label in enumerate(("pos", "neg")):
        (root / f"MR/rt-polarity.{label}").write_text(
            "\n".join(text(number, i, i // 3) for i in range(14))
        )
    probing = [
        f"{split}\t{i % 2}\t{text(i % 2, i)}" for split in ("tr", "va", "te") for i in range(12)
    ]
    (root / "past_present.txt").write_text("\n".join(probing))
    return root


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A pipeline with static vectors, and no pipe of this package."""
    folder = tmp_path_factory.mktemp("vectors")
    nlp = spacy.blank("xx")
    for number, word in enumerate(WORDS):
        nlp.vocab.set_vector(
            word, numpy.random.default_rng(number).normal(size=5).astype("float32")
        )
    nlp.to_disk(folder / "pipeline")
    (folder / "counts.txt").write_text(
        "".join(f"{word} {9 * i + 1}\n" for i, word in enumerate(WORDS))
    )
    return folder


@pytest.mark.parametrize(
    "baseline", ["tf-idf", "untuned-cls", *(pytest.param(x, marks=SLOW) for x in ("sif", None))]
)
def test_suites(data, vectors, tiny_bert, tmp_path, monkeypatch, baseline):
    monkeypatch.setattr(learned_similarity, "_MAX_PASSES", 0)
    monkeypatch.setattr(mlp, "_MAX_PASSES", 8)
    suites = SUITES if baseline == "tf-idf" else FEW
    output = tmp_path / "results.json"
    options = [
        "--suite",
        ",".join(suites),
        "--any-count",
        "--bootstrap",
        "0",
        "--seeds",
        "1",
        "--output",
        output,
    ]
    options += ["--counts", vectors / "counts.txt", "--encoder", tiny_bert, "--classifier", "mlp"]
    options += ["--code", ROOT / "benchmarks" / "papers" / "paper_tasks.py"]
    options += [] if baseline is None else ["--baseline", baseline]
    invoke("benchmark", vectors / "pipeline", data, *options)
    results = json.loads(output.read_text())
    assert results["failed"] == {}
    assert {task["suite"] for task in results["tasks"].values()} == set(suites)
    assert baseline is None or results["model"]["name"].startswith(baseline)
    speed = results["tasks"]["speed"]["variants"][0]["scores"]
    assert set(speed) == (
        {"naive", "smart", "own"} if (baseline or "").startswith("untuned") else {"own"}
    )
