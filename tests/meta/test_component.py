"""The `sbert_meta` pipe: members side by side, one vector out, through fitting, saving and bad
input.
"""

import logging
import pickle

import numpy
import pytest
import spacy
import srsly
from helpers.made_views import SENTENCES as CORPUS
from helpers.made_views import WORDS, unit
from helpers.pipelines import (
    OTHER_VECTORS,
    make_example,
    reloaded,
    shim_of,
    through_docbin,
    warnings_with,
)
from spacy.tokens import Doc
from spacy.util import import_file
from spacy.vectors import Vectors

from spacy_sbert import find_meta, restore
from spacy_sbert.meta.component import fit_meta
from spacy_sbert.meta.methods import make_estimator
from spacy_sbert.pipeline import doc_vectors
from spacy_sbert.pipeline.doc_vectors import encoders_of_vector
from spacy_sbert.search import SpanSearch, collect_spans

TEXT = "A man is eating food. The cat sat on the mat."
METHODS = {
    "conc": {},
    "avg": {},
    "svd": {"size": 6},
    "gcca": {"size": 6},
    "ae": {"size": 6, "epochs": 3},
}
SHARED = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}


@pytest.fixture(scope="module")
def make_meta(make_nlp, tiny_bert):
    """A pipeline of a mean and a max encoder, and a meta-embedding of both."""

    def make(encoder="own", fit=True, unit="doc", **config):
        nlp = make_nlp(encoder, unit=unit, model={"normalize": False})
        spans = {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": unit}
        model = {"name": str(tiny_bert), "get_spans": spans} if encoder == "own" else SHARED
        nlp.add_pipe(
            "sbert",
            name="sbert_max",
            config={"model": {**model, "pooling": "max", "normalize": False}},
        )
        nlp.add_pipe("sbert_meta", config=config)
        if encoder == "shared":
            nlp.initialize(lambda: [make_example(nlp, *CORPUS[i : i + 2]) for i in range(0, 80, 2)])
        elif fit and config.get("method", "conc") in ("svd", "gcca", "ae"):
            fit_meta(nlp, "sbert_meta", lambda: CORPUS)
        return nlp

    return make


@pytest.fixture(scope="module")
def nlp(make_meta):
    """Of concatenations, of whole Docs and sentences."""
    return make_meta(unit="doc+sent")


@pytest.fixture(scope="module")
def svd(make_meta):
    return make_meta(method="svd", size=6)


@pytest.fixture(scope="module")
def saved(svd, tmp_path_factory):
    folder = tmp_path_factory.mktemp("svd")
    svd.to_disk(folder)
    return folder


def test_texts_without_docs(svd, saved):
    texts = [TEXT, "", "a dog", "he ran"]
    for loaded in (svd, spacy.load(saved)):
        meta = find_meta(loaded)
        found = meta.encode(iter(texts), window=2)
        assert found.dtype == "float32"
        assert found.shape == (4, 6)
        assert not found[1].any()
        assert numpy.allclose(
            found, [doc._.sbert_meta_vector for doc in loaded.pipe(texts)], atol=1e-6
        )
        assert meta.encode([]).shape == (0, 6)
    tensor = meta.encode(texts, convert_to_tensor=True, normalize_embeddings=True)
    assert tensor.norm(dim=1).tolist() == pytest.approx([1, 0, 1, 1])
    assert numpy.allclose(
        meta.similarity(tensor, tensor)[0, 2:], meta.similarity_pairwise(found[[0, 0]], found[2:])
    )
    assert numpy.allclose(meta.encode("a dog"), meta.encode(["a dog"])[0], atol=1e-6)
    assert numpy.allclose(meta.encode(texts, batch_size=3), meta.encode(texts), atol=1e-6)
    with pytest.raises(ValueError, match="is in no pipeline"):
        pickle.loads(pickle.dumps(meta)).encode(texts)


@pytest.mark.parametrize(
    ("name", "value"), [("device", "cuda"), ("prompt_name", "query"), ("convert_to_numpy", False)]
)
def test_arguments_of_encode_that_a_combination_cannot_follow(svd, name, value):
    with pytest.raises(ValueError, match=f"Cannot use {name} = "):
        find_meta(svd).encode([TEXT], **{name: value})


def test_the_meta_embedding_answers_and_members_keep_their_own(nlp):
    doc = nlp(TEXT)
    mean = doc._.sbert_vector
    highest = doc._.sbert_max_vector
    assert mean.shape == highest.shape == (16,)
    assert not numpy.allclose(mean, highest)
    expected = numpy.concatenate([unit(mean), unit(highest)])
    assert doc.vector == pytest.approx(expected, abs=1e-6)
    assert doc.vector.dtype == "float32"
    assert numpy.array_equal(doc._.sbert_meta_vector, doc.vector)
    with nlp.select_pipes(disable="sbert_meta"):
        assert numpy.array_equal(nlp(TEXT)._.sbert_vector, mean)
    other = nlp("He can go.")
    cosine = unit(doc.vector) @ unit(other.vector)
    assert doc.similarity(other) == pytest.approx(cosine, abs=1e-6)
    assert doc.has_vector
    assert doc.vector_norm == pytest.approx(2**0.5, abs=1e-6)


def test_docs_get_what_the_estimator_gives(make_meta):
    nlp = make_meta(fit=False)
    pipe = nlp.get_pipe("sbert_meta")
    texts = [*CORPUS[:5], "", TEXT]
    docs = list(nlp.pipe(CORPUS))
    views = [
        numpy.stack([doc._.get(f"{name}_vector") for doc in docs])
        for name in ("sbert", "sbert_max")
    ]
    for method, settings in METHODS.items():
        pipe.estimator = make_estimator(method, **settings).fit(views, ["sbert", "sbert_max"])
        docs = list(nlp.pipe(texts))
        given = [
            numpy.stack([doc._.get(f"{name}_vector") for doc in docs])
            for name in ("sbert", "sbert_max")
        ]
        found = pipe.estimator.transform(given)
        for i in (0, 1, 4, 6):
            assert docs[i].vector == pytest.approx(found[i], abs=1e-6), method
        assert docs[5].vector.tolist() == [0.0] * pipe.estimator.width
        assert not docs[5].has_vector


def test_sentences_and_other_spans(make_meta):
    nlp = make_meta(unit="sent")
    doc = nlp(TEXT)
    pipe = nlp.get_pipe("sbert_meta")
    for sent in doc.sents:
        expected = numpy.concatenate([unit(sent._.sbert_vector), unit(sent._.sbert_max_vector)])
        assert sent.vector == pytest.approx(expected, abs=1e-6)
    assert doc.vector == pytest.approx(
        numpy.mean([sent.vector for sent in doc.sents], axis=0), abs=1e-6
    )
    with pytest.raises(
        ValueError, match=r"'man is' .* nlp.get_pipe\('sbert_meta'\).vector\(span\)"
    ):
        _ = doc[1:3].vector
    expected = numpy.concatenate([unit(doc[1:3]._.sbert_vector), unit(doc[1:3]._.sbert_max_vector)])
    assert pipe.vector(doc[1:3]) == pytest.approx(expected, abs=1e-6)
    members = [unit(nlp.get_pipe(name).vector(doc[1])) for name in ("sbert", "sbert_max")]
    assert pipe.vector(doc[1]) == pytest.approx(numpy.concatenate(members), abs=1e-6)
    with pytest.raises(TypeError, match="There is no vector of 'a man'"):
        pipe.vector("a man")


def test_most_similar_to_a_text(nlp):
    doc = nlp(TEXT)
    found = doc._.sbert_meta_most_similar("the cat", k=2)
    expected = {
        sent.text: find_meta(nlp).vector(nlp("the cat")) @ sent.vector / 2 for sent in doc.sents
    }
    assert {one.span.text: one.score for one in found} == pytest.approx(expected, abs=1e-6)
    assert found[0].score > found[1].score
    search = SpanSearch(collect_spans(doc, "sent"))
    assert search.search("the cat", k=2) == found
    with pytest.raises(ValueError, match=r"Cannot use prompt_name = 'query'.* default_prompt_name"):
        search.search("the cat", prompt_name="query")


@pytest.mark.parametrize("given", ["a text", None, 3, ["a", "b"]])
def test_a_pipe_takes_docs(nlp, given):
    pipe = nlp.get_pipe("sbert_meta")
    for use in (pipe, lambda one: list(pipe.pipe([one]))):
        with pytest.raises(TypeError, match=r"The pipe 'sbert_meta' takes Docs, not .*encode"):
            use(given)


def test_errors_go_to_the_error_handler(make_meta, monkeypatch):
    nlp = make_meta()
    failed = []
    meta = find_meta(nlp)
    nlp.set_error_handler(
        lambda name, pipe, docs, error: failed.append((name, len(docs), str(error)))
    )
    combine = meta._combine
    monkeypatch.setattr(
        meta, "_combine", lambda stretches: combine(stretches) if len(stretches) == 1 else 1 / 0
    )
    texts = ["a man", "a dog", "he ran"]
    assert [doc.text for doc in nlp.pipe(texts, batch_size=2)] == ["he ran"]
    assert failed == [("sbert_meta", 2, "division by zero")]


def test_vectors_are_computed_once(make_meta, tmp_path):
    nlp = make_meta(method="svd", size=5, fit=False)
    corpus = CORPUS[:30]

    def fit(texts=corpus):
        views = fit_meta(nlp, "sbert_meta", lambda: texts, cache=tmp_path)
        return [view.shape for view in views], nlp(TEXT).vector.tolist()

    shapes, first = fit()
    assert shapes == [(30, 16), (30, 16)]
    files = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.f32")}
    assert fit() == (shapes, first)
    assert len(files) == 2
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.f32")} == files
    damaged = next(iter(files))
    damaged.write_bytes(damaged.read_bytes()[:-4])
    assert fit() == (shapes, first)
    (damaged.parent / "vectors.json").write_text('{"key": ', encoding="utf8")
    assert fit() == (shapes, first)
    # Another corpus
    assert fit(corpus[:20])[1] != first
    assert len(list(tmp_path.rglob("*.f32"))) == 4


CODE = """
import numpy
from spacy.util import registry

@registry.misc("made_powers.v1")
def make_powers(power: int = 1):
    def powers(spans):
        return numpy.array([[len(span.text) ** power, FACTOR] for span in spans], dtype="f4")
    return powers
"""


def test_a_changed_function_does_not_reuse_vectors(make_nlp, tmp_path):
    def fit(power, factor):
        (tmp_path / "code.py").write_text(
            CODE.replace("FACTOR", f"{factor} * len(span)"), encoding="utf8"
        )
        import_file("made_code", tmp_path / "code.py")
        nlp = make_nlp()
        functions = {"powers": {"@misc": "made_powers.v1", "power": power}}
        nlp.add_pipe("sbert_meta", config={"functions": functions, "method": "svd"})
        return fit_meta(
            nlp, "sbert_meta", lambda: ["a cat", "a man ran"] * 3, cache=tmp_path / "cache"
        )[1][1].tolist()

    assert fit(1, 1) == [9, 3]
    assert fit(2, 1) == [81, 3]
    assert fit(2, 5) == fit(2, 5) == [81, 15]
    assert len(list((tmp_path / "cache").iterdir())) == 3


def test_a_member_with_nan(nlp):
    pipe = nlp.get_pipe("sbert_meta")
    doc = nlp(TEXT)
    (stored,) = (
        record for key, record in doc.user_data.items() if key[1] == "spacy-sbert:sbert_max"
    )
    stored["vectors"][0, 3] = numpy.nan
    with pytest.raises(
        ValueError,
        match=r"'sbert_max' .* not finite in the vector of sentence 0",
    ):
        pipe(doc)


@pytest.mark.parametrize(
    "text", ["\n\nA cat.  Sat on\ta mat.\n", "\n", "A cat.\n\n The dog ran. \n\n"]
)
def test_sentences_of_white_space(nlp, text):
    """Their rows are empty ranges, also at the very end of the Doc."""
    doc = nlp(text)
    for sent in doc.sents:
        if sent.text.strip():
            expected = numpy.concatenate([unit(sent._.sbert_vector), unit(sent._.sbert_max_vector)])
            assert sent.vector == pytest.approx(expected, abs=1e-6)
        else:
            assert not sent.vector.any()
            assert not sent.has_vector
    assert doc.vector.shape == (32,)
    assert doc.has_vector == bool(text.strip())


def test_one_transformer_and_one_forward_pass(make_meta, monkeypatch):
    from spacy_sbert.models.engine.packed_bert import PackedBert

    calls = []
    stock = PackedBert.__call__
    monkeypatch.setattr(PackedBert, "__call__", lambda *args: calls.append(1) or stock(*args))
    nlp = make_meta("shared", method="gcca", size=4)
    calls.clear()
    docs = list(nlp.pipe(CORPUS[:6]))
    assert len(calls) == 1
    assert docs[0].vector.shape == (4,)
    assert docs[0]._.sbert_vector.shape == (16,)


def test_initialize_fits_on_a_corpus(make_meta, svd, tmp_path):
    lines = [f"made\t{text}\n" for text in [*CORPUS, "a " * 60]]
    (tmp_path / "corpus.tsv").write_text("".join(lines) + "\n", encoding="utf8")
    nlp = make_meta(method="svd", size=6, fit=False)
    with pytest.raises(ValueError, match="has not been fitted"):
        nlp(TEXT)
    settings = {
        "corpus": str(tmp_path / "corpus.tsv"),
        "column": 2,
        "cache": str(tmp_path / "cache"),
    }
    nlp.config["initialize"]["components"]["sbert_meta"] = settings
    with pytest.warns(UserWarning, match="1 sentences of 60 tokens or more were left out"):
        nlp.initialize()
    assert numpy.array_equal(nlp(TEXT).vector, svd(TEXT).vector)
    assert len(list((tmp_path / "cache").rglob("*.f32"))) == 2


@pytest.mark.filterwarnings("ignore:.*W109")
def test_vectors_survive_transport(svd, saved):
    doc = svd(TEXT)
    again = spacy.blank("xx").from_config(svd.config).from_bytes(svd.to_bytes())
    (carried,) = through_docbin([doc])
    assert numpy.array_equal(carried._.sbert_max_vector, doc._.sbert_max_vector)
    restored = restore(Doc(svd.vocab).from_bytes(doc.to_bytes()))
    for other in (spacy.load(saved)(TEXT), again(TEXT), pickle.loads(pickle.dumps(doc)), restored):
        assert numpy.array_equal(other.vector, doc.vector)
    assert numpy.array_equal(carried._.sbert_meta_vector, doc.vector)


def test_functions_are_members(make_nlp, tmp_path):
    nlp = make_nlp()
    corpus = CORPUS[:40]
    text = "the cat ran"
    for word in WORDS:
        nlp.vocab.set_vector(
            word, numpy.random.default_rng(len(word) + ord(word[0])).normal(size=5).astype("f4")
        )
    functions = {
        "mean": {"@misc": "spacy-sbert.MeanStaticVectors.v1"},
        "sif": {"@misc": "spacy-sbert.SmoothInverseFrequency.v1", "a": 0.01},
    }
    nlp.add_pipe("sbert_meta", config={"functions": functions})
    with pytest.raises(ValueError, match="smooth inverse frequency are not known yet"):
        nlp(TEXT)
    nlp.initialize(lambda: [make_example(nlp, *corpus[i : i + 2]) for i in range(0, 40, 2)])
    words = [token.lower_ for text in corpus for token in nlp.make_doc(text)]

    def weighted(text):
        tokens = [token for token in nlp.make_doc(text) if nlp.vocab.has_vector(token.orth)]
        weights = [0.01 / (0.01 + words.count(token.lower_) / len(words)) for token in tokens]
        return numpy.mean(
            [w * nlp.vocab.get_vector(t.orth) for w, t in zip(weights, tokens, strict=True)], axis=0
        )

    first = numpy.linalg.svd(numpy.stack([weighted(text) for text in corpus]))[2][0]
    sif = weighted(text) - first * (first @ weighted(text))
    mean = numpy.mean([nlp.vocab.get_vector(word) for word in text.split()], axis=0)
    doc = nlp(text)
    expected = numpy.concatenate([unit(doc._.sbert_vector), unit(mean)])
    assert doc.vector[:21] == pytest.approx(expected, abs=1e-6)
    assert doc.vector[21:] == pytest.approx(unit(sif), abs=1e-5)
    assert numpy.array_equal(reloaded(nlp, tmp_path)(text).vector, doc.vector)


def with_functions(make_nlp, **config):
    """A meta-embedding of an encoder, the mean of static vectors, and a function that learns."""
    nlp = make_nlp()
    nlp.vocab.reset_vectors(width=5)
    for number, word in enumerate(WORDS):
        nlp.vocab.set_vector(word, numpy.random.default_rng(number).normal(size=5).astype("f4"))
    functions = {
        "mean": {"@misc": "spacy-sbert.MeanStaticVectors.v1"},
        "sif": {"@misc": "spacy-sbert.SmoothInverseFrequency.v1", "a": 0.01},
    }
    nlp.add_pipe("sbert_meta", config={"functions": functions, **config})
    fit_meta(nlp, "sbert_meta", lambda: CORPUS[:40])
    return nlp


def sif_of(nlp):
    return nlp.get_pipe("sbert_meta").members[-1].function


def change_in_place(array, change):
    array[:] = change(array)


def swap_rows(table):
    table[[0, 1]] = table[[1, 0]]


def remap(vectors):
    first, second = list(vectors.key2row)[:2]
    vectors.add(first, row=vectors.key2row[second])


ONES = numpy.ones(5, dtype="f4")
# Of static vectors, or of what a function has learned
CHANGES = {
    "a word": lambda nlp: nlp.vocab.set_vector(WORDS[1], ONES),
    "a word, in place": lambda nlp: change_in_place(
        nlp.vocab.vectors[nlp.vocab.strings[WORDS[1]]], lambda row: 2 * row
    ),
    "all, in place": lambda nlp: change_in_place(nlp.vocab.vectors.data, lambda table: 2 * table),
    "two words": lambda nlp: swap_rows(nlp.vocab.vectors.data),
    "the row of a word": lambda nlp: remap(nlp.vocab.vectors),
    "another table": lambda nlp: setattr(
        nlp.vocab,
        "vectors",
        Vectors(data=ONES * ONES[:, None], keys=WORDS[:5], strings=nlp.vocab.strings),
    ),
    "another array": lambda nlp: setattr(nlp.vocab.vectors, "data", 2 * nlp.vocab.vectors.data),
    "fewer words": lambda nlp: nlp.vocab.prune_vectors(2),
    "no words": lambda nlp: (nlp.vocab.reset_vectors(width=5), nlp.vocab.set_vector("x", ONES)),
    "fitted again": lambda nlp: sif_of(nlp).fit(lambda: map(nlp.make_doc, CORPUS[40:60])),
    "loaded": lambda nlp: sif_of(nlp).from_bytes(
        srsly.msgpack_dumps({"weights": {"a": 0.5}, "component": ONES / 5**0.5})
    ),
    "component, in place": lambda nlp: change_in_place(
        sif_of(nlp).component, lambda component: -component[::-1]
    ),
    "one word more": lambda nlp: sif_of(nlp).weights.update(zebra=0.5),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", ["conc", "svd"])
def test_vectors_of_before_and_after_a_change_are_told_apart(make_nlp, change, method, monkeypatch):
    monkeypatch.setattr(doc_vectors, "_warned", set())
    nlp = with_functions(make_nlp, method=method, **({"size": 6} if method == "svd" else {}))
    text = " ".join(WORDS)
    pipe = nlp.get_pipe("sbert_meta")
    before = nlp(text)
    same = nlp(text)
    fingerprint = pipe.fingerprint()
    assert {fingerprint} == {*encoders_of_vector(before)} == {*encoders_of_vector(same)}
    assert before.similarity(same) == pytest.approx(1)
    CHANGES[change](nlp)
    with warnings_with("sbert-meta-other-members") as members:
        after = nlp(text)
    assert len(members) == (method == "svd")
    assert {*encoders_of_vector(after)} == {pipe.fingerprint()} != {fingerprint}
    with pytest.warns(UserWarning, match="sbert-other-encoder"):
        before.similarity(after)


def test_a_word_that_comes_or_changes_before_it_was_read(make_nlp):
    nlp = with_functions(make_nlp)
    pipe = nlp.get_pipe("sbert_meta")
    nlp("the cat")
    fingerprint = pipe.fingerprint()
    nlp("the zebra"), nlp(""), nlp(" "), list(nlp.pipe(["a man", "the mat"]))
    assert pipe.fingerprint() == fingerprint
    nlp.vocab.set_vector("zebra", ONES)
    nlp("the zebra")
    assert pipe.fingerprint() != fingerprint


def test_two_pipelines_of_other_static_vectors(make_nlp, tmp_path):
    first = with_functions(make_nlp)
    second = with_functions(make_nlp)
    assert first.get_pipe("sbert_meta").fingerprint() == second.get_pipe("sbert_meta").fingerprint()
    assert (
        reloaded(first, tmp_path).get_pipe("sbert_meta").fingerprint()
        == first.get_pipe("sbert_meta").fingerprint()
    )
    second.vocab.set_vector("fast", ONES)
    assert first.get_pipe("sbert_meta").fingerprint() != second.get_pipe("sbert_meta").fingerprint()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        pytest.param({}, r"at least two members, given: sbert\.", id="one member"),
        pytest.param(
            {"pipes": ["sbert", "sbert"]}, "names of their own, given: sbert, sbert", id="twice"
        ),
        pytest.param(
            {"functions": {"static": "mean"}}, "'static' .* not a function but a str", id="a str"
        ),
    ],
)
def test_members_that_cannot_be(make_nlp, config, message):
    with pytest.raises(ValueError, match=message):
        make_nlp().add_pipe("sbert_meta", config=config)


def test_a_member_that_is_not_loaded(make_meta, tmp_path):
    make_meta(pipes=["sbert", "sbert_max"]).to_disk(tmp_path)
    with pytest.raises(ValueError, match=r"sbert_max, which .* does not have \(it has: sbert\)"):
        spacy.load(tmp_path, exclude=["sbert_max"])
    with pytest.raises(ValueError, match=r"'sbert_max' .* left no vector .* disabled"):
        spacy.load(tmp_path, disable=["sbert_max"])(TEXT)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            {"size": 6, "pipes": ["sbert_max", "sbert"]},
            r"\('sbert', 'sbert_max'\), .* \('sbert_max', 'sbert'\)",
            id="another order",
        ),
        pytest.param({"size": 3}, r"'size': 6.* config says .*'size': 3", id="another size"),
    ],
)
def test_other_members_than_it_was_fitted_with(make_meta, svd, settings, message):
    other = make_meta(method="svd", fit=False, **settings).get_pipe("sbert_meta")
    with pytest.raises(ValueError, match=message):
        other.from_bytes(find_meta(svd).to_bytes())


@pytest.fixture
def make_members(make_nlp, tiny_bert):
    """Members of widths 16, and 16 or less."""

    def make(width=0, **config):
        nlp = make_nlp()
        nlp.add_pipe(
            "sbert", name="other", config={"model": {"name": str(tiny_bert), "truncate_dim": width}}
        )
        nlp.add_pipe("sbert_meta", config=config)
        return nlp

    return make


WIDE = {"method": "ae", "size": 2**15, "options": {"hidden_layers": 1}}


@pytest.mark.parametrize(
    ("config", "width", "n", "message"),
    [
        ({"method": "svd", "size": 21}, 4, 120, "only 20 directions to give on 120 sentences"),
        (WIDE, 0, 8, "at most 268435456 weights in a layer, not 32768 x 32768"),
        ({"method": "svd"}, 0, 0, "no sentence to fit the meta-embedding on"),
    ],
)
def test_said_before_anything_is_encoded(make_members, monkeypatch, config, width, n, message):
    nlp = make_members(width, **config)
    encoded = []
    monkeypatch.setattr(nlp, "pipe", lambda *args, **kwargs: encoded.append(args) or iter(()))
    with pytest.raises(ValueError, match=message):
        fit_meta(nlp, "sbert_meta", lambda: CORPUS[:n])
    assert not encoded


def test_fewer_directions_than_the_widest_member_are_logged(
    make_members, caplog, monkeypatch, tmp_path
):
    monkeypatch.setattr(logging.getLogger("spacy"), "propagate", True)
    nlp = make_members(4, method="svd")
    with caplog.at_level(logging.WARNING, "spacy"):
        fit_meta(nlp, "sbert_meta", lambda: CORPUS[:9])
    assert (
        "'svd' the members of 'sbert_meta' have 8 directions to give, fewer than the 16"
        in caplog.text
    )
    vector = nlp("A man.").vector
    assert vector.shape == (8,)
    assert numpy.array_equal(reloaded(nlp, tmp_path)("A man.").vector, vector)
    caplog.clear()
    fit_meta(make_members(method="svd", size=3), "sbert_meta", lambda: CORPUS[:9])
    assert "directions" not in caplog.text


@pytest.mark.filterwarnings("error:.sbert-meta-other-members")
@pytest.mark.parametrize("method", ["conc", "avg"])
def test_members_that_stayed_are_not_warned_of(svd, saved, make_meta, method):
    spacy.load(saved)(TEXT)
    svd.get_pipe("sbert_meta").encode([TEXT])
    # Which learn nothing
    made = make_meta(method=method)
    made(TEXT)
    made.get_pipe("sbert").model.get_ref("pooling").normalize = True
    made(TEXT)


@pytest.mark.parametrize("setting", OTHER_VECTORS)
def test_a_fit_warns_of_members_that_are_set_otherwise(svd, make_nlp, tiny_bert, setting):
    """Each setting that changes vectors; another width is refused."""
    spans = {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc"}
    nlp = make_nlp(unit="doc", model={"normalize": False, **OTHER_VECTORS[setting]})
    if (dense := nlp.get_pipe("sbert").model.get_ref("pooling").dense) is not None:
        dense.set_param("W", numpy.ones((4, 16), dtype="float32"))
        dense.set_param("b", numpy.ones(4, dtype="float32"))
    model = {"name": str(tiny_bert), "get_spans": spans, "pooling": "max", "normalize": False}
    nlp.add_pipe("sbert", name="sbert_max", config={"model": model})
    nlp.add_pipe("sbert_meta", config={"method": "svd", "size": 6})
    nlp.get_pipe("sbert_meta").from_bytes(svd.get_pipe("sbert_meta").to_bytes())
    if "dense" in setting or setting in ("width", "two poolings"):
        with pytest.raises(ValueError, match="Members of widths"):
            nlp(TEXT)
    else:
        with pytest.warns(
            UserWarning, match=r"sbert-meta-other-members.* than its members have now \(sbert\)"
        ):
            nlp(TEXT)


@pytest.mark.parametrize("change", ["trained", "replaced", "saved, trained"])
def test_a_fit_warns_of_members_that_were_trained_or_replaced(make_meta, change, tmp_path):
    nlp = make_meta(method="svd", size=6)
    if change == "saved, trained":
        nlp = reloaded(nlp, tmp_path)
    nlp(TEXT)
    if change == "replaced":
        for weights in shim_of(nlp, "sbert_max").weights.parameters():
            weights.data = 1.5 * weights.data
    else:
        pairs = [make_example(nlp, *CORPUS[i : i + 2], score=0.5) for i in range(0, 8, 2)]
        nlp.update(pairs, sgd=nlp.resume_training())
    with pytest.warns(UserWarning, match="sbert-meta-other-members"):
        nlp(TEXT)


@pytest.mark.parametrize("method", ["svd", "conc"])
def test_members_in_another_order_are_refused(make_meta, method):
    nlp = make_meta(method=method)
    nlp(TEXT)
    nlp.get_pipe("sbert_meta").members.reverse()
    with pytest.raises(ValueError, match=r"members \('sbert', 'sbert_max'\)"):
        nlp(TEXT)


@pytest.mark.parametrize("read", ["vector", "pipe"])
def test_docs_of_another_pipeline_are_warned_of(make_meta, saved, read):
    """Their members' vectors are of the same names and widths, but of other encoders."""
    other = make_meta(method="conc")
    other(TEXT)
    for weights in shim_of(other, "sbert_max").weights.parameters():
        weights.data = 1.5 * weights.data
    doc = other(TEXT)
    meta = spacy.load(saved).get_pipe("sbert_meta")
    with pytest.warns(UserWarning, match=r"sbert-meta-other-doc.* sbert_max"):
        meta.vector(doc) if read == "vector" else meta(doc)
