"""The fingerprint in each record: who has the same, what changes it, and comparisons across
encoders; and digests.
"""

import dataclasses
import pickle
import shutil
import warnings

import numpy
import pytest
import spacy
import torch
from helpers.pipelines import (
    ENCODERS,
    HOLDER,
    OTHERS,
    TRANSFORMERS,
    finish_update,
    reloaded,
    shim_of,
    slow,
    stock_nlp,
    through_docbin,
    write_modules,
)
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vectors import Vectors
from thinc.api import SGD, Adam

from spacy_sbert import find_sbert, restore
from spacy_sbert.meta.component import fit_meta
from spacy_sbert.models import fingerprint
from spacy_sbert.models.fingerprint import encoder_digest
from spacy_sbert.pipeline import doc_vectors as encoders
from spacy_sbert.pipeline.digest import pipeline_digest
from spacy_sbert.pipeline.doc_vectors import find
from spacy_sbert.search import SpanSearch, collect_spans, identify
from spacy_sbert.similarity import cosine
from spacy_sbert.visual import render

TEXT = "A man is eating food. The cat sat on the mat."
TEXTS = ["A man is eating food.", "The cat sat on the mat.", "a dog"]
DENSE = {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 16, "activation": "tanh"}


def quick(*encoders, of=ENCODERS):
    """All encoders, those that are not named in the slow suite."""
    return [one if one in encoders else pytest.param(one, marks=pytest.mark.slow) for one in of]


@pytest.fixture(autouse=True)
def nothing_warned(monkeypatch):
    monkeypatch.setattr(encoders, "_warned", set())


def of(doc, name=None):
    """The fingerprint in the record of a Doc."""
    (record,) = find(doc, name)
    return record.data["fingerprint"]


def caught(do):
    """What a call returns, and its warnings of other encoders."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        given = do()
    return given, [one for one in found if str(one.message).startswith("[sbert-other-encoder]")]


@pytest.mark.parametrize("encoder", quick("own"))
def test_same_after_saving_copying_and_use(make_nlp, encoder, tmp_path):
    nlp = make_nlp(encoder)
    first = of(nlp(TEXT))
    assert len(first) == 12
    assert int(first, 16) >= 0
    assert [of(doc) for doc in nlp.pipe([TEXT, "a dog"])] == [first] * 2
    assert find_sbert(nlp).fingerprint() == first
    loaded = reloaded(nlp, tmp_path)
    same = make_nlp(encoder, unit="doc+sent")
    # Which spaCy cannot pickle
    copies = [] if encoder == "curated" else [pickle.loads(pickle.dumps(nlp))]
    for one in (loaded, same, *copies):
        assert one in copies or find_sbert(one).fingerprint() == first
        assert caught(lambda one=one: one(TEXT).similarity(nlp(TEXT)))[1] == []
    assert of(loaded(TEXT)) == of(same(TEXT)) == first
    assert "fingerprint" not in find(nlp(""))[0].data


@pytest.mark.parametrize("way", ["disk", "bytes"])
@pytest.mark.parametrize("encoder", quick("own"))
def test_same_when_saved_before_the_first_text(make_nlp, encoder, tmp_path, way):
    """And asked for before it, of the pipeline that was saved and of the one that was loaded."""
    expected = of(make_nlp(encoder)(TEXT))
    nlp = make_nlp(encoder)
    if way == "disk":
        loaded = reloaded(nlp, tmp_path)
    else:
        loaded = make_nlp(encoder).from_bytes(nlp.to_bytes())
    for one in (nlp, loaded):
        assert find_sbert(one).fingerprint() == expected
        assert of(one(TEXT)) == expected


@pytest.mark.spacy_transformers
def test_fingerprint_of_comparable_vectors(make_nlp, tiny_bert, tmp_path):
    nlp = make_nlp()
    first = of(nlp(TEXT))
    folder = shutil.copytree(tiny_bert, tmp_path / "elsewhere")
    (folder / "pytorch_model.txt").write_text("a note")
    same = {"name": str(folder), "precision": "bfloat16", "normalize": True, "truncate_dim": 16}
    same |= {"prompts": {"query": "a query: "}, "default_prompt_name": "query"}
    assert of(make_nlp(model=same, unit="sent")("a dog. a cat.")) == first
    shared = make_nlp("shared")
    assert of(shared(TEXT)) == first
    shared.replace_listeners("transformer", "sbert", ["model.tok2vec"])
    assert of(shared(TEXT)) == first
    assert of(stock_nlp(tiny_bert, "spacy-transformers.doc_spans.v1")(TEXT)) == first


def test_fingerprint_of_other_vectors(make_nlp, other_bert, tiny_bert, tmp_path):
    cased = shutil.copytree(tiny_bert, tmp_path / "cased")
    write_modules(cased, ("Transformer", ""))
    (cased / "sentence_bert_config.json").write_text(
        '{"do_lower_case": false, "max_seq_length": 24}'
    )
    for name in ("tokenizer.json", "tokenizer_config.json"):
        text = (cased / name).read_text(encoding="utf8")
        changed = text.replace('"lowercase": true', '"lowercase": false')
        (cased / name).write_text(
            changed.replace('"do_lower_case": true', '"do_lower_case": false'), encoding="utf8"
        )
    layers = {"transformer_config": {"num_hidden_layers": 1}}
    models = [
        {},
        {"pooling": "cls"},
        {"truncate_dim": 8},
        {"name": str(other_bert)},
        layers,
        {"name": str(cased)},
    ]
    found = [of(make_nlp(model=model)("a dog")) for model in models]
    nlp = make_nlp(model={"dense": DENSE})
    nlp.initialize()
    found += [of(nlp("a dog")), of(make_nlp("static")("a dog"))]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("encoder", quick("own", "listening", "static"))
def test_a_step_of_training_changes_it(make_nlp, examples, encoder):
    # Few rows of a table change
    nlp = make_nlp(encoder)
    optimizer = SGD if encoder == "static" else Adam
    pairs = examples(nlp)
    nlp.initialize(lambda: pairs) if encoder != "curated" else find_sbert(nlp).initialize(
        lambda: pairs, nlp=nlp
    )
    before = nlp(TEXT)
    # A component that is shared learns by the second
    for _ in range(2):
        nlp.update(pairs, sgd=optimizer(0.01))
    after = nlp(TEXT)
    assert of(before) != of(after) == find_sbert(nlp).fingerprint()
    assert len(caught(lambda: before.similarity(after))[1]) == 1
    # With averaged weights, too, for a while
    if encoder == "own":
        shim = shim_of(nlp)
        state = shim.network.state_dict()
        with nlp.use_params(
            {(shim.id, key): value.numpy() + 1 for key, value in state.items() if "weight" in key}
        ):
            assert of(nlp(TEXT)) != of(after)
        assert of(nlp(TEXT)) == of(after)


@pytest.mark.parametrize("encoder", ["listening", *slow("shared", "curated")])
def test_fingerprint_after_training_the_shared_component(make_nlp, encoder):
    nlp = make_nlp(encoder)
    before = of(nlp(TEXT))
    upstream = nlp.get_pipe(HOLDER[encoder])
    for node in upstream.model.walk():
        for name in node.param_names:
            if node.has_param(name):
                node.set_grad(name, node.get_param(name) * 0 + 1)
        for shim in node.shims:
            for weight in shim._model.parameters():
                weight.grad = torch.ones_like(weight)
    upstream.finish_update(SGD(0.01))
    assert of(nlp(TEXT)) != before


def test_it_is_not_computed_for_each_doc(make_nlp, examples, monkeypatch):
    from spacy_sbert.models import fingerprint

    done = []
    digest = fingerprint._digest
    monkeypatch.setattr(fingerprint, "_digest", lambda *given: done.append(1) or digest(*given))
    for encoder in ("own", "listening"):
        nlp = make_nlp(encoder)
        done.clear()
        list(nlp.pipe([TEXT] * 5, batch_size=2)), nlp(TEXT), nlp("a dog")
        assert done == [1], encoder
    nlp = make_nlp()
    pairs = examples(nlp)
    nlp.initialize(lambda: pairs)
    done.clear()
    for _ in range(2):
        nlp.update(pairs, sgd=Adam(0.01))
        nlp.evaluate(
            [Example(nlp.make_doc(pair.text), pair.reference) for pair in pairs * 2], batch_size=1
        )
    assert done == [1, 1]


def test_comparison_across_encoders_warns_once(make_nlp, other_bert):
    nlp = make_nlp(unit="doc+sent")
    other = make_nlp(name=other_bert)
    third = make_nlp(model={"pooling": "cls"})
    doc = nlp(TEXT)
    theirs = other(TEXT)
    expected = float(cosine(doc.vector[None], theirs.vector[None])[0])
    joined = spacy.blank("xx", vocab=nlp.vocab)
    joined.add_pipe("sbert", config={"model": {"name": str(other_bert)}})
    given, warned = caught(lambda: doc.similarity(theirs))
    assert given == pytest.approx(expected, abs=1e-6)
    assert len(warned) == 1
    assert f"'{other_bert}' of the pipe 'sbert'" in str(warned[0].message)
    assert of(doc) not in str(warned[0].message)
    assert warned[0].filename == __file__
    again = [lambda: theirs.similarity(doc), lambda: doc[0:2].similarity(theirs[1])]
    assert [caught(do)[1] for do in again] == [[], []]
    _, (same_name,) = caught(lambda: doc[1].similarity(third(TEXT)[1]))
    # What tells them apart
    assert of(doc) in str(same_name.message)
    assert of(third(TEXT)) in str(same_name.message)
    for do in (
        lambda: doc[1:3].similarity(theirs[1:3]),
        lambda: doc._.sbert_similarity(theirs),
        lambda: doc._.sbert_most_similar(theirs),
        lambda: SpanSearch(collect_spans(doc, "sent")).search(theirs),
        lambda: SpanSearch([*collect_spans(doc, "sent"), theirs[:]]),
        lambda: render([doc, theirs], jupyter=False),
        lambda: render([doc], jupyter=False, options={"columns": [theirs]}),
        lambda: render([doc, theirs], "tokens", jupyter=False),
        lambda: render([doc, theirs], "map", jupyter=False),
        lambda: restore(Doc.from_docs([doc, joined("a cat.")])).vector,
    ):
        encoders._warned.clear()
        assert len(caught(do)[1]) == 1


@pytest.mark.spacy_transformers
def test_one_encoder_never_warns(make_nlp, tmp_path):
    nlp = make_nlp(unit="doc+sent", model={"prompts": {"query": "a query: "}})
    doc = nlp(TEXT)
    (stored,) = through_docbin([doc], spacy.blank("xx").vocab)
    prompted = nlp(TEXT, component_cfg={"sbert": {"prompt_name": "query"}})
    others = [
        stored,
        restore(stored),
        doc.copy(),
        pickle.loads(pickle.dumps(doc)),
        prompted,
        nlp(""),
        doc[:4].as_doc(),
    ]
    others += [make_nlp()(TEXT), make_nlp("shared")(TEXT), doc[1:4].as_doc(copy_user_data=True)]
    for other in others:
        assert (
            caught(lambda other=other: (doc.similarity(other), doc[1].similarity(other)))[1] == []
        )
    assert of(stored) == of(doc)


def test_a_meta_embedding_has_one_of_its_members(make_nlp, tiny_bert, other_bert):
    def make(second, **config):
        nlp = make_nlp(unit="doc+sent")
        nlp.add_pipe("sbert", name="other", config={"model": {"name": str(second)}})
        nlp.add_pipe("sbert_meta", config=config)
        return nlp

    nlp = make(tiny_bert)
    same = make(tiny_bert)
    # Before its first use
    assert same.get_pipe("sbert_meta").fingerprint() == nlp.get_pipe("sbert_meta").fingerprint()
    docs = [one(TEXT) for one in (nlp, same, make(other_bert), make(tiny_bert, method="avg"))]
    found = [of(doc, "sbert_meta") for doc in docs]
    assert found[0] == found[1] == nlp.get_pipe("sbert_meta").fingerprint()
    assert len(set(found)) == 3
    assert len(caught(lambda: docs[0].similarity(docs[2]))[1]) == 1
    assert caught(lambda: docs[0].similarity(docs[1]))[1] == []
    expected = [one.score for one in docs[0]._.sbert_meta_most_similar(nlp("the dog"))]
    assert [one.score for one in docs[0]._.sbert_meta_most_similar("the dog")] == pytest.approx(
        expected, abs=1e-6
    )


# Digests of pipelines, by which evaluations know them, and of encoders, by which resumed runs and
# indexes do


def digests(nlp):
    return pipeline_digest(nlp), identify(find_sbert(nlp))


@pytest.mark.parametrize("kind", [*quick("own", "shared", "tokens", "static"), "reranked", "meta"])
def test_use_and_saving_change_no_digest(make_nlp, tiny_bert, tmp_path, kind):
    encoder = kind if kind in ENCODERS else "own"
    model = {"name": str(tiny_bert)}
    nlp = make_nlp(encoder)
    if encoder == kind:
        assert digests(nlp) == digests(make_nlp(encoder))
    if encoder in TRANSFORMERS:
        first = identify(find_sbert(nlp))
        assert first == identify(find_sbert(make_nlp())), "whosever the transformer is"
        assert (first.name, first.width, len(first.digest)) == (str(tiny_bert), 16, 64)
    if kind == "reranked":
        nlp.add_pipe("sbert_reranker", config={"model": model})
    if kind == "meta":
        nlp.add_pipe("sbert", name="other", config={"model": {**model, "pooling": "max"}})
        nlp.add_pipe("sbert_meta", config={"pipes": ["sbert", "other"]})
        fit_meta(nlp, "sbert_meta", lambda: TEXTS)
    before = digests(nlp)
    list(nlp.pipe(TEXTS))
    assert digests(nlp) == before
    assert digests(reloaded(nlp, tmp_path / "nlp")) == before


@pytest.mark.parametrize("encoder", quick("tokens", of=OTHERS))
def test_pooling_tokens_and_training_change_the_identity(make_nlp, examples, encoder):
    """Of encoders without a transformer of this package; for the others see
    test_fingerprint_settings.py.
    """
    nlp = make_nlp(encoder)
    first = identify(find_sbert(nlp))
    changed = [
        make_nlp(encoder, model=model) for model in ({"pooling": "max"}, {"normalize": True}, {})
    ]
    changed[-1].tokenizer.add_special_case("eating", [{"ORTH": "eat"}, {"ORTH": "ing"}])
    others = [identify(find_sbert(other)) for other in changed]
    if encoder == "static":
        assert others.pop() == first, "a table reads no tokens"
    nlp.update(examples(nlp), sgd=False)
    finish_update(nlp, nlp.create_optimizer())
    others.append(identify(find_sbert(nlp)))
    assert len({first.digest, *(one.digest for one in others)}) == 1 + len(others)
    assert dataclasses.replace(others[0], digest=first.digest) == first


def test_what_else_vectors_depend_on(make_nlp):
    nlp = make_nlp()
    digests = [pipeline_digest(nlp)]
    with nlp.select_pipes(disable=["sbert"]):
        digests.append(pipeline_digest(nlp))
    nlp.tokenizer.add_special_case("cannot", [{"ORTH": "cannot"}])
    digests.append(pipeline_digest(nlp))
    nlp.vocab.set_vector("dog", numpy.ones(3, dtype="float32"))
    digests.append(pipeline_digest(nlp))
    nlp.add_pipe("sentencizer")
    digests.append(pipeline_digest(nlp))
    assert len(set(digests)) == len(digests)


def test_training_a_head_changes_no_vector(make_nlp, examples):
    nlp = make_nlp(loss={"@layers": "spacy-sbert.SoftmaxLoss.v1"})
    pairs = examples(nlp)
    for example, label in zip(pairs, "aba", strict=True):
        example.reference.spans["sbert"].attrs["label"] = label
    nlp.initialize(lambda: pairs)
    before = pipeline_digest(nlp)
    (head,) = nlp.get_pipe("sbert").model.heads.values()
    head.set_param("W", head.get_param("W") + 1)
    assert pipeline_digest(nlp) == before


def test_the_digest_of_an_encoder(make_nlp):
    """Each number of the weights; for settings see test_fingerprint_settings.py."""
    encoders = [
        make_nlp(model=model).get_pipe("sbert").text_encoder() for model in ({}, {"dense": DENSE})
    ]
    dense = encoders[-1].pooling.dense
    for name, shape in (("W", (16, 16)), ("b", (16,))):
        dense.set_param(name, numpy.ones(shape, dtype="float32"))
    digests = [encoder_digest(encoder.model, encoder.pooling) for encoder in encoders]
    assert digests[0] == encoder_digest(encoders[0].model.copy(), encoders[0].pooling)
    dense.get_param("b")[3] += 1e-6
    weight = encoders[0].model.shim.network.embeddings.word_embeddings.weight.data
    weight[7, 3] += 1e-6
    digests += [
        encoder_digest(encoder.model, encoder.pooling) for encoder in (encoders[0], encoders[-1])
    ]
    assert len(set(digests)) == len(digests)


# `_.sbert_similarity`


def test_sbert_similarity_without_hooks(make_nlp):
    quiet = make_nlp(set_hooks=False)
    hooked = make_nlp()
    a, b = (nlp(TEXT) for nlp in (quiet, hooked))
    for ours, theirs in ((a, b), (a[1:4], b[1:4]), (a[1], b[1])):
        for other, expected in ((a[6:9], b[6:9]), (a[7], b[7]), (a, b)):
            assert ours._.sbert_similarity(other) == pytest.approx(
                theirs.similarity(expected), abs=1e-6
            )
    assert a._.sbert_similarity(quiet(" ")) == 0.0
    for given in ("a dog", a.vocab["dog"], b.vector, None):
        with pytest.raises(TypeError, match=rf"A {type(given).__name__} has no sentence vector"):
            a._.sbert_similarity(given)
    plain = spacy.blank("xx", vocab=a.vocab)("a dog")
    for ours, theirs in ((a, plain), (plain, a)):
        with pytest.raises(ValueError, match="carries no sentence vectors"):
            ours._.sbert_similarity(theirs)


@pytest.mark.parametrize("mode", ["default", "floret"])
@pytest.mark.parametrize("change", ["a word", "all", "another table", "no word that was read"])
def test_static_vectors_of_an_encoder_that_change(mode, change):
    nlp = spacy.blank("xx")
    words = ["the", "dog", "ran", "cat"]
    table = (
        numpy.random.default_rng(0)
        .normal(size=(4 if mode == "default" else 40, 6))
        .astype("float32")
    )
    settings = (
        {"keys": words}
        if mode == "default"
        else {"mode": "floret", "hash_count": 1, "minn": 2, "maxn": 3}
    )
    nlp.vocab.vectors = Vectors(data=table, strings=nlp.vocab.strings, **settings)
    tok2vec = {"@architectures": "spacy-sbert.WordVectors.v1"}
    architecture = {"@architectures": "spacy-sbert.Tok2VecSentenceEncoder.v1", "tok2vec": tok2vec}
    nlp.add_pipe("sbert", config={"model": architecture})
    nlp.initialize()
    before = of(nlp("the dog ran"))
    nlp("the"), nlp(""), nlp(" "), list(nlp.pipe(["ran", "dog"]))
    assert of(nlp("the dog ran")) == before == find_sbert(nlp).fingerprint()
    if change == "a word":
        row = nlp.vocab.vectors.find(key="dog") if mode == "default" else slice(None)
        nlp.vocab.vectors.data[row] += 1
    elif change == "all":
        nlp.vocab.vectors.data *= 2
    elif change == "another table":
        nlp.vocab.vectors.data = numpy.flip(table, axis=1).copy()
    else:
        nlp("cat")
        assert of(nlp("the dog ran")) == before
        return
    after = nlp("the dog ran")
    assert before != of(after) == find_sbert(nlp).fingerprint()


def test_weights_are_read_apart_from_gradients(make_nlp):
    """Else two locks are taken in two orders, where another thread trains."""
    shim = shim_of(make_nlp())
    shim.load()
    network = shim.network
    assert any(parameter.requires_grad for parameter in network.parameters())
    assert not any(tensor.requires_grad for _, tensor in fingerprint._tensors(network))


def words_of(seed):
    nlp = spacy.blank("xx")
    rng = numpy.random.default_rng(seed)
    for word in ("the", "dog", "ran"):
        nlp.vocab.set_vector(word, rng.normal(size=6).astype("float32"))
    return nlp


@pytest.mark.parametrize("kind", ["words", "meta"])
def test_docs_of_two_vocabs_in_a_batch_have_fingerprints_of_their_own(kind, tiny_bert):
    nlp = words_of(0)
    other = words_of(1)
    if kind == "words":
        tok2vec = {"@architectures": "spacy-sbert.WordVectors.v1"}
        model = {"@architectures": "spacy-sbert.Tok2VecSentenceEncoder.v1", "tok2vec": tok2vec}
        nlp.add_pipe("sbert", config={"model": model})
        nlp.initialize()
    else:
        nlp.add_pipe("sbert", config={"model": {"name": str(tiny_bert)}})
        function = {"@misc": "spacy-sbert.MeanStaticVectors.v1"}
        nlp.add_pipe("sbert_meta", config={"pipes": ["sbert"], "functions": {"words": function}})
    texts = ["the dog", "dog ran"]
    ours = [of(nlp(nlp.make_doc(text))) for text in texts]
    theirs = [of(nlp(other.make_doc(text))) for text in texts]
    assert ours[0] == ours[1] != theirs[0] == theirs[1]
    mixed = [nlp.make_doc(texts[0]), *map(other.make_doc, texts), nlp.make_doc(texts[1])]
    assert [of(doc) for doc in nlp.pipe(mixed)] == [ours[0], *theirs, ours[1]]
