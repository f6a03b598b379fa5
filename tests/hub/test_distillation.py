"""distill_static: the table is the one of its formula, and goes on learning from the same
teacher.
"""

import gzip
import json
import shutil
import time

import numpy
import pytest
import spacy
import torch
from helpers.pipelines import TRANSFORMERS, real_data, write_modules
from scipy import sparse
from spacy.training import Example
from thinc.api import Adam
from tokenizers import Tokenizer
from transformers import AutoTokenizer, BertModel, BertTokenizerFast

from spacy_sbert.hub.distillation import _frequent_words, _least_squares, distill_static
from spacy_sbert.models.static_embedding import without_special_tokens
from spacy_sbert.pipeline.sentence_model import find_static_embedding
from spacy_sbert.readers import read_sts
from spacy_sbert.readers.examples import example_doc
from spacy_sbert.similarity import spearman

WORDS = [
    "a",
    "man",
    "is",
    "eating",
    "food",
    "the",
    "cat",
    "sat",
    "mat",
    "he",
    "go",
    "dog",
    "ran",
    "fast",
]
WORDS += ["zebra", "ox"]
TEXTS = [" ".join(words) for words in numpy.random.default_rng(0).choice(WORDS, size=(60, 5))]
TEXTS[7] = ""
# A word that is seen four times
TEXTS += ["one horse", "A Horse.", "horse", "the horse"]
# The words that the teacher cuts, and that are seen five times
WHOLE = ["ox", "zebra"]


def table_of(nlp):
    return find_static_embedding(nlp.get_pipe("sbert").model).get_param("E")


def projection_of(nlp):
    return nlp.get_pipe("sbert").model.get_ref("loss").get_param("W")


def expected_table(folder, targets, axes):
    """The formula, written out: v from the network itself, ids word by word, and the fit by a
    pseudo-inverse.
    """
    network = BertModel.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    n_pieces, (cls, sep) = len(tokenizer), tokenizer("").input_ids
    words = sorted(WHOLE, key=lambda word: -sum(text.split().count(word) for text in TEXTS))

    def vector(ids):
        with torch.inference_mode():
            return (
                network(torch.tensor([[cls, *ids, sep]])).last_hidden_state[0].mean(dim=0).numpy()
            )

    def ids_of(text):
        found = []
        for word in text.lower().replace(".", " .").split():
            plain = tokenizer(word, add_special_tokens=False).input_ids
            found += [n_pieces + words.index(word)] if word in words else plain
        return found

    v = [vector([number]) for number in range(n_pieces)]
    v += [vector(tokenizer(word, add_special_tokens=False).input_ids) for word in words]
    ids = [ids_of(text) for text in TEXTS]
    p = numpy.bincount(numpy.concatenate(ids).astype("int64"), minlength=len(v)) / sum(
        map(len, ids)
    )
    weighted = numpy.array(v, dtype="float64") * (0.01 / (0.01 + p))[:, None]
    means = numpy.array([weighted[row].mean(axis=0) for row in ids if row])
    return weighted @ (numpy.linalg.pinv(means, rcond=1e-6) @ (targets @ axes))


@pytest.mark.parametrize(("encoder", "size"), zip(TRANSFORMERS, (6, 16, 16), strict=True))
def test_the_table_is_that_of_the_formula(make_nlp, tiny_bert, encoder, size):
    """v is the teacher's vector before it is normalised, t the one that it gives."""
    teacher = make_nlp(encoder, model={"normalize": True})
    nlp = distill_static(teacher, TEXTS, size=size)
    targets = teacher.get_pipe("sbert").encode([text for text in TEXTS if text])
    assert numpy.allclose(numpy.linalg.norm(targets, axis=1), 1.0, atol=1e-6)
    axes = projection_of(nlp)
    expected = expected_table(tiny_bert, targets, axes.astype("float64"))
    assert table_of(nlp).shape == (len(AutoTokenizer.from_pretrained(tiny_bert)) + len(WHOLE), size)
    # Means of texts have directions of 2e-4 of their size, along which the rounding of the
    # network's float32 grows.
    assert abs(table_of(nlp) - expected).max() < 1e-3 * abs(expected).max()
    if size == 16:
        assert numpy.array_equal(axes, numpy.eye(16))
    else:
        main = numpy.linalg.eigh(numpy.cov(targets.T.astype("float64")))[1][:, ::-1][:, :size]
        assert numpy.allclose(abs(main.T @ axes), numpy.eye(size), atol=1e-5)
    doc = nlp("A zebra sat.")
    ids = [
        AutoTokenizer.from_pretrained(tiny_bert).convert_tokens_to_ids(token)
        for token in ("a", "sat", ".")
    ]
    mean = table_of(nlp)[[*ids, word_id(nlp, "zebra")]].mean(axis=0)
    assert numpy.allclose(doc.vector, mean / numpy.linalg.norm(mean), atol=1e-6)


def word_id(nlp, word):
    return json.loads(find_static_embedding(nlp.get_pipe("sbert").model).attrs["tokenizer"])[
        "model"
    ]["vocab"][word]


def test_the_same_bytes_twice_and_no_teacher_once_saved(make_nlp, tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    nlp, again = (distill_static(make_nlp("own", name=folder), TEXTS, size=6) for _ in range(2))
    assert nlp.to_bytes() == again.to_bytes()
    expected = nlp.get_pipe("sbert").encode(TEXTS)
    nlp.to_disk(tmp_path / "nlp")
    shutil.rmtree(folder)
    loaded = spacy.load(tmp_path / "nlp")
    assert numpy.array_equal(loaded.get_pipe("sbert").encode(TEXTS), expected)
    assert expected.shape == (64, 6)


def test_training_after_distillation(make_nlp):
    """The table moves, and its projection to the teacher's width does not."""
    teacher = make_nlp("own", model={"normalize": True})
    nlp = distill_static(teacher, TEXTS, size=12)
    texts = [text for text in TEXTS if text][:16]
    batch = []
    for text, vector in zip(texts, teacher.get_pipe("sbert").encode(texts), strict=True):
        reference = example_doc(nlp, [text], vector=vector)
        predicted = reference.copy()
        del predicted.spans["sbert"].attrs["vector"]
        batch.append(Example(predicted, reference))
    table = table_of(nlp).copy()
    axes = projection_of(nlp).copy()
    optimizer = Adam(0.05)
    losses = [nlp.update(batch, sgd=optimizer)["sbert"] for _ in range(40)]
    ids = (
        find_static_embedding(nlp.get_pipe("sbert").model)
        .wordpiece_tokenizer(texts, offsets=False)
        .ids
    )
    moved = (table_of(nlp) != table).any(axis=1)
    assert moved[ids].all()
    assert moved.sum() == len(set(ids))
    assert numpy.array_equal(projection_of(nlp), axes)
    assert losses[-1] < losses[0] / 2


def test_teacher_that_lower_cases(tiny_bert, make_nlp, tmp_path):
    """Its tokenizer does not: without it, "A" and "Man" would be unknown."""
    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    cased = BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=False)
    assert cased.tokenize("A Man") == ["[UNK]", "[UNK]"]
    cased.save_pretrained(folder)
    write_modules(folder, ("Transformer", ""))
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 24, "do_lower_case": True})
    )
    upper = [text.upper() for text in TEXTS]
    nlp = distill_static(make_nlp("own", name=folder), upper, size=6)
    assert word_id(nlp, "zebra")
    assert word_id(nlp, "ox")
    given = nlp.get_pipe("sbert").encode(["A Zebra sat", "a zebra sat"])
    assert numpy.array_equal(*given)
    assert given.any()
    expected = distill_static(make_nlp("own"), TEXTS, size=6)
    assert numpy.allclose(table_of(nlp), table_of(expected), atol=1e-5)


@pytest.fixture(scope="module")
def tokenizer(tiny_bert):
    """The JSON of a tokenizer that lower-cases, and knows few words."""
    return without_special_tokens(
        AutoTokenizer.from_pretrained(tiny_bert).backend_tokenizer.to_str()
    )


def pieces(tokenizer, text):
    return Tokenizer.from_str(tokenizer).encode(text).tokens


def test_no_special_tokens_no_cut_no_padding(tiny_bert):
    backend = AutoTokenizer.from_pretrained(tiny_bert).backend_tokenizer
    backend.enable_truncation(3)
    backend.enable_padding(length=9)
    assert len(backend.encode("a man is eating").tokens) == 9
    assert pieces(without_special_tokens(backend.to_str()), "a man is eating") == [
        "a",
        "man",
        "is",
        "eating",
    ]


def test_words_are_counted_by_the_tokenizers_normaliser(tokenizer):
    texts = [
        "Zebra, ZEBRA zébra zebra's",
        "the the the the the the",
        "zebra horse horse horse horse",
        "ox " * 5,
    ]
    assert _frequent_words(tokenizer, texts, 10) == ["zebra", "ox"], (
        "the is known, horse was seen four times"
    )
    assert _frequent_words(tokenizer, texts, 1) == ["zebra"]
    assert _frequent_words(tokenizer, texts, 0) == []
    assert _frequent_words(tokenizer, ["x" * 101 + " "] * 9, 10) == [], (
        "longer than a word may be: it is unknown"
    )


def test_words_stay_whole_and_all_else_is_as_before(make_nlp, tokenizer):
    n = len(json.loads(tokenizer)["model"]["vocab"])
    nlp = distill_static(make_nlp(), TEXTS, size=6)
    given = find_static_embedding(nlp.get_pipe("sbert").model).attrs["tokenizer"]
    assert pieces(given, "A Zebra, an ox.") == ["a", "zebra", ",", "a", "##n", "ox", "."]
    vocabulary = json.loads(given)["model"]["vocab"]
    assert {vocabulary.pop(word) for word in WHOLE} == {n, n + 1}
    assert vocabulary == json.loads(tokenizer)["model"]["vocab"]
    for text in ("The man cannot go.", "he sat on a horse", "axe", "zeb", "", "[MASK] 123"):
        assert pieces(given, text) == pieces(tokenizer, text)
    assert pieces(given, "zebras") == ["zebra", "##s"], "the longest wordpiece that it begins with"


def test_no_other_map_is_nearer():
    """The gradient of the error is zero; with fewer texts than numbers, the map is the one of least
    norm.
    """
    rng = numpy.random.default_rng(3)
    table = rng.normal(size=(30, 8))
    counts = rng.integers(0, 3, size=(50, 30))
    targets = rng.normal(size=(50, 5))
    means = counts @ table / counts.sum(axis=1)[:, None]
    found = _least_squares(table, sparse.csr_array(counts), targets)
    assert (
        abs(means.T @ (means @ found - targets)).max() < 1e-12 * abs(means.T @ targets).max() * 100
    )
    few = _least_squares(table, sparse.csr_array(counts[:3]), targets[:3])
    assert numpy.allclose(few, numpy.linalg.pinv(means[:3]) @ targets[:3], atol=1e-12)


@pytest.mark.parametrize(
    ("encoder", "texts", "settings", "message"),
    [
        ("own", TEXTS, {"name": "other"}, "other"),
        (
            "own",
            TEXTS,
            {"size": 17},
            "17 numbers from the teacher, whose vectors have 16: set size to at most",
        ),
        (
            "own",
            ["a man", "", " ", "the dog"],
            {},
            "has 2 texts with words, and 6 are needed to fit a table of 6",
        ),
        ("own", [], {}, "has 0 texts with words, and 6 are needed to fit a table of 6"),
        ("tokens", TEXTS, {}, r"works? with transformers"),
        ("curated", TEXTS, {}, r"works? with transformers"),
        ("static", TEXTS, {}, r"works? with transformers"),
    ],
)
def test_refused(make_nlp, encoder, texts, settings, message):
    with pytest.raises(ValueError, match=message):
        distill_static(make_nlp(encoder), texts, **{"size": 6, **settings})


@pytest.mark.slow
def test_all_minilm(minilm):
    """On 3,000 sentences, none of STSb: 83.2 on its dev set (the teacher has 86.7), 30 to 90 times
    as fast.
    """
    folder = real_data() / "sts" / "STSBenchmark"
    pairs, others = (list(read_sts(folder / f"sts-{part}.csv")) for part in ("dev", "train"))
    known = {text for *texts, _ in [*pairs, *others] for text in texts}
    with gzip.open(
        real_data() / "corpora" / "english_sentences.tsv.gz", "rt", encoding="utf8"
    ) as file:
        sentences = dict.fromkeys(line.rstrip("\n").split("\t")[1] for line in file)
    texts = [text for text in sentences if text not in known]
    texts = texts[:: len(texts) // 3000][:3000]
    nlp = distill_static(minilm, texts, size=256)
    first, second = (nlp.get_pipe("sbert").encode([pair[i] for pair in pairs]) for i in (0, 1))
    assert spearman((first * second).sum(axis=1), [score for *_, score in pairs]) > 0.825
    taken = {name: [] for name in ("static", "teacher")}
    for _ in range(3):
        for name, pipeline in (("teacher", minilm), ("static", nlp)):
            start = time.perf_counter()
            pipeline.get_pipe("sbert").encode(texts[:1000])
            taken[name].append(time.perf_counter() - start)
    assert min(taken["teacher"]) > 20 * min(taken["static"])
