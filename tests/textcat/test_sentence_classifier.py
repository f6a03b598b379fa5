"""spaCy's own `textcat` over sentence vectors: scores, gradients, and a shared transformer."""

import subprocess
import sys

import numpy
import pytest
import spacy
import torch
from helpers.pipelines import (
    CNN,
    LISTENER,
    MAX_LENGTH,
    ROOT,
    SHARING,
    STOCK_LISTENER,
    TOK2VEC_LISTENER,
    add_curated,
    autograd,
    error_of_gradients,
    finish_update,
    make_example,
    reloaded,
    shim_of,
    shipped_config,
    stock_nlp,
    warnings_with,
    weights,
)
from helpers.workflows import TWO_STEPS
from spacy.cli.train import train
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.training.initialize import init_nlp
from thinc.api import SGD, Adam
from thinc.util import to_numpy

ARCHITECTURE = "spacy-sbert.TextCatSentenceVectors.v1"
TEXTS = {
    "A man is eating food.": "food",
    "The cat sat on the mat.": "animals",
    "the dog ran fast": "animals",
    "having a meal.": "food",
}
LABELS = ("animals", "food")
KINDS = {"textcat": True, "textcat_multilabel": False}
NER = {
    "@architectures": "spacy.TransitionBasedParser.v2",
    "state_type": "ner",
    "extra_state_tokens": False,
    "hidden_width": 8,
    "maxout_pieces": 2,
    "use_upper": False,
}
# The transformer upstream, or an encoder of its own
ENCODERS = [*SHARING, "own"]


def labelled(nlp, text, label):
    cats = {} if label is None else {name: float(name == label) for name in LABELS}
    return Example.from_dict(nlp.make_doc(text), {"cats": cats})


def labelled_texts(nlp):
    return [labelled(nlp, *item) for item in TEXTS.items()]


def add_textcat(nlp, factory="textcat", *, seed=0, init=True, **model):
    """Add a text classifier whose weights are drawn, as a softmax begins with zeros."""
    model = {"exclusive_classes": KINDS[factory], **model}
    nlp.add_pipe(factory, config={"model": {"@architectures": ARCHITECTURE, **model}})
    if init:
        nlp.initialize(lambda: labelled_texts(nlp))
        draw(nlp, factory, seed)
    return nlp


def draw(nlp, factory, seed=0):
    rng = numpy.random.default_rng(seed)
    output = nlp.get_pipe(factory).model.get_ref("output_layer")
    for name in output.param_names:
        output.set_param(name, rng.normal(size=output.get_param(name).shape).astype("float32"))


@pytest.fixture
def make(make_nlp, tiny_bert):
    """Build a pipeline with a text classifier, and no sbert unless `sbert`."""

    def build(factory="textcat", kind="shared", *, sbert=False, unit="doc", **settings):
        shared = kind if kind in SHARING else "shared"
        nlp = make_nlp(shared, unit=unit)
        if not sbert:
            nlp.remove_pipe("sbert")
        if kind not in SHARING:
            nlp.remove_pipe("transformer")
            own = {"@architectures": SHARING["shared"][1], "name": str(tiny_bert)}
            settings["tok2vec"] = {**own, **settings.get("tok2vec", {})}
        return add_textcat(nlp, factory, **settings)

    return build


def cats_of(docs):
    return numpy.array([[doc.cats[label] for label in LABELS] for doc in docs])


def head(nlp, factory):
    """The parameters behind the encoder, in float64, by their layer and name."""
    layers = nlp.get_pipe(factory).model.layers
    return {
        (layer.name, name): torch.from_numpy(to_numpy(layer.get_param(name))).double()
        for layer in (layers[1], layers[3].layers[0])
        for name in layer.param_names
    }


def expected_scores(nlp, factory, vectors, parameters=None):
    scale, shift, weight, bias = (parameters or head(nlp, factory)).values()
    normed = torch.nn.functional.layer_norm(vectors, vectors.shape[-1:], scale, shift, eps=1e-8)
    logits = normed @ weight.T + bias
    return logits.softmax(-1) if KINDS[factory] else logits.sigmoid()


@pytest.mark.parametrize("factory", KINDS)
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("pooling", ["mean", "cls+max"])
def test_scores_by_hand(make, make_nlp, factory, encoder, pooling):
    """Beside those of PyTorch on the vectors that an `sbert` pipe has, of unit length or not; of a
    text without words, and of no token, zeros.
    """
    nlp = make(factory, encoder, pooling=pooling)
    for normalize in (True, False):
        other = make_nlp("own", model={"pooling": pooling, "normalize": normalize})
        vectors = torch.tensor(numpy.array([other(text).vector for text in TEXTS])).double()
        expected = expected_scores(nlp, factory, vectors)
        docs = list(nlp.pipe([*TEXTS, "", "  "]))
        assert cats_of(docs[:4]) == pytest.approx(expected.numpy(), abs=1e-5)
        assert not cats_of(docs[4:]).any()
    assert nlp.get_pipe(factory).labels == LABELS
    # Whatever else is in the batch
    assert not cats_of([nlp(""), nlp(" ")]).any()


def loss_of(nlp, factory, parameters):
    """The loss whose gradient spaCy's component gives, of a network and a tokenizer."""

    def loss(network, tokenizer):
        total = torch.zeros((), dtype=torch.float64)
        for text, label in TEXTS.items():
            states = network(torch.tensor([tokenizer(text)["input_ids"]])).last_hidden_state[0]
            (scores,) = expected_scores(nlp, factory, states.mean(0)[None], parameters)
            gold = torch.tensor([float(name == label) for name in LABELS])
            if KINDS[factory]:
                total = total - (gold * scores.log()).sum()
            else:
                total = total + 0.5 * ((scores - gold) ** 2).sum()
        return total

    return loss


@pytest.mark.parametrize("factory", KINDS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_gradients_as_autograd(make, tiny_bert, factory, encoder):
    """Of the transformer and of all parameters behind it; an empty text has none."""
    nlp = make(factory, encoder)
    parameters = head(nlp, factory)
    for parameter in parameters.values():
        parameter.requires_grad_()
    expected = autograd(tiny_bert, loss_of(nlp, factory, parameters))
    nlp.update([*labelled_texts(nlp), labelled(nlp, "", "food")], sgd=False)
    shim = shim_of(nlp, factory if encoder == "own" else "transformer")
    assert error_of_gradients(shim, expected) < 1e-5
    layers = nlp.get_pipe(factory).model.layers
    nodes = {layer.name: layer for layer in (layers[1], layers[3].layers[0])}
    for (layer, name), parameter in parameters.items():
        given = to_numpy(nodes[layer].get_grad(name))
        assert given == pytest.approx(parameter.grad.numpy(), abs=1e-5), (layer, name)


@pytest.mark.parametrize("factory", KINDS)
@pytest.mark.parametrize("grad_factor", [0.0, 0.5])
def test_grad_factor_of_the_listener(make, tiny_bert, factory, grad_factor):
    listener = {"@architectures": "spacy-sbert.SentenceListener.v1", "grad_factor": grad_factor}
    nlp = make(factory, tok2vec=listener)
    expected = autograd(tiny_bert, loss_of(nlp, factory, head(nlp, factory)))
    nlp.update(labelled_texts(nlp), sgd=False)
    assert error_of_gradients(shim_of(nlp, "transformer"), expected, grad_factor) < 1e-5


@pytest.fixture
def counted(monkeypatch):
    """The forward passes of every BERT, packed or not, in use or in training."""
    from transformers import BertModel

    from spacy_sbert.models.engine import training
    from spacy_sbert.models.engine.packed_bert import PackedBert

    calls = []
    places = [(BertModel, "forward"), (PackedBert, "__call__"), (training, "packed_states")]
    for kind, name in places:
        stock = getattr(kind, name)
        monkeypatch.setattr(
            kind,
            name,
            lambda self, *args, stock=stock, **kw: calls.append(1) or stock(self, *args, **kw),
        )
    return calls


@pytest.mark.parametrize("factory", KINDS)
@pytest.mark.parametrize("encoder", SHARING)
def test_one_pass_beside_sbert_and_ner(make, counted, factory, encoder):
    """In use and in training, where all learn: from texts with classes, pairs, and entities."""
    nlp = make(factory, encoder, sbert=True, init=False)
    listener = LISTENER if encoder == "shared" else STOCK_LISTENER
    nlp.add_pipe("ner", config={"model": {**NER, "tok2vec": listener}}).add_label("ANIMAL")
    nlp.initialize(lambda: labelled_texts(nlp))
    counted.clear()
    docs = list(nlp.pipe(TEXTS, batch_size=8))
    assert len(counted) == 1
    assert all(doc.vector.any() and doc.cats and doc.has_annotation("ENT_IOB") for doc in docs)
    counted.clear()
    pair = make_example(nlp, "A man is eating.", "The cat sat.", 0.9)
    entities = Example.from_dict(nlp.make_doc("the dog"), {"entities": [(4, 7, "ANIMAL")]})
    losses = nlp.update([*labelled_texts(nlp), pair, entities], sgd=False)
    assert len(counted) == 1
    assert min(losses[name] for name in ("sbert", factory, "ner", "transformer")) > 0
    before = weights(nlp, "transformer")
    finish_update(nlp, SGD(0.1))
    after = weights(nlp, "transformer")
    assert any(not numpy.array_equal(before[key], after[key]) for key in before)


@pytest.mark.filterwarnings("ignore:.*training batch without pairs")
@pytest.mark.parametrize("factory", KINDS)
@pytest.mark.parametrize("encoder", SHARING)
def test_gradients_of_components_add_up(make, factory, encoder):
    def gradients(*names):
        nlp = make(factory, encoder, sbert="sbert" in names)
        if factory not in names:
            nlp.remove_pipe(factory)
        pair = make_example(nlp, "A man is eating.", "The cat sat.", 0.9)
        nlp.update([*labelled_texts(nlp), pair], sgd=False)
        named = shim_of(nlp, "transformer")._model.named_parameters()
        return {name: own.grad.double() for name, own in named if own.grad is not None}

    each = [gradients(factory), gradients("sbert")]
    both = gradients(factory, "sbert")
    scale = max(float(own.abs().max()) for own in both.values())
    for name, own in both.items():
        total = sum(gradient.get(name, torch.zeros(1)) for gradient in each)
        assert float((own - total).abs().max()) < 1e-5 * scale, name


@pytest.mark.parametrize("factory", KINDS)
def test_pairs_are_no_texts(make, factory):
    """Of a pair nothing is learned, and it has no class; it may not have gold of classes."""
    nlp = make(factory, sbert=True)
    textcat = nlp.get_pipe(factory)
    pair = make_example(nlp, "A man is eating.", "The cat sat.")
    doc = nlp(pair.predicted.copy())
    assert set(doc.cats.values()) == {0.0}
    before = [to_numpy(textcat.model.get_ref("output_layer").get_param(n)).copy() for n in "Wb"]
    losses = nlp.update([pair], sgd=SGD(0.1), exclude=["sbert"])
    assert losses[factory] == 0
    after = [to_numpy(textcat.model.get_ref("output_layer").get_param(n)) for n in "Wb"]
    assert all(map(numpy.array_equal, before, after))
    pair.reference.cats = {"food": 1.0}
    with pytest.raises(ValueError, match=r"has doc\.cats and several members"):
        nlp.update([pair], sgd=SGD(0.1), exclude=["sbert"])


def test_a_single_member_is_a_text(make):
    """As PairCorpus reads a table of texts and labels."""
    nlp = make()
    doc = nlp.make_doc("the dog ran fast")
    doc.spans["sbert"] = [doc[:]]
    assert nlp(doc).cats == nlp("the dog ran fast").cats
    assert sum(doc.cats.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("unit", ["doc+sent", "sent"])
def test_row_of_the_whole_doc(make, unit):
    nlp = make(unit=unit)
    (one, expected) = (pipeline("A man is eating.").cats for pipeline in (nlp, make()))
    assert one == pytest.approx(expected, abs=1e-5)
    two = "A man is eating. The cat sat."
    if unit == "sent":
        with pytest.raises(ValueError, match=r"did not read the Doc 'A man is .* 2 parts"):
            nlp(two)
    else:
        assert nlp(two).cats == pytest.approx(make()(two).cats, abs=1e-5)


@pytest.mark.parametrize("factory", KINDS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_saved_and_loaded(make, tmp_path, factory, encoder):
    nlp = make(factory, encoder)
    expected = cats_of(nlp.pipe(TEXTS))
    loaded = reloaded(nlp, tmp_path / "saved")
    assert numpy.array_equal(cats_of(loaded.pipe(TEXTS)), expected)
    assert loaded.get_pipe(factory).model.get_ref("output_layer").get_dim("nO") == 2
    again = spacy.blank(nlp.lang).from_config(loaded.config)
    again.from_bytes(nlp.to_bytes())
    assert numpy.array_equal(cats_of(again.pipe(TEXTS)), expected)
    file = tmp_path / "saved" / factory / "model"
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"damaged|checksum|corrupt"):
        spacy.load(tmp_path / "saved")


@pytest.mark.parametrize("encoder", ["shared", "own"])
def test_processes(make, encoder):
    nlp = make(kind=encoder)
    texts = [*TEXTS] * 3
    assert cats_of(nlp.pipe(texts, n_process=2, batch_size=4)) == pytest.approx(
        cats_of(nlp.pipe(texts)), abs=1e-5
    )


@pytest.mark.parametrize("factory", KINDS)
@pytest.mark.parametrize("encoder", SHARING)
def test_copy_of_its_own(make, tmp_path, factory, encoder):
    """The vectors and the gradient stay, and the shared transformer learns nothing."""
    nlp = make(factory, encoder)
    expected = cats_of(nlp.pipe(TEXTS))
    nlp.replace_listeners("transformer", factory, ["model.tok2vec"])
    assert cats_of(nlp.pipe(TEXTS)) == pytest.approx(expected, abs=1e-6)
    loaded = reloaded(nlp, tmp_path)
    assert cats_of(loaded.pipe(TEXTS)) == pytest.approx(expected, abs=1e-6)
    before = [weights(loaded, name) for name in ("transformer", factory)]
    loaded.update(labelled_texts(loaded), sgd=SGD(0.1))
    after = [weights(loaded, name) for name in ("transformer", factory)]
    changed = [
        any(not numpy.array_equal(old[key], new[key]) for key in old)
        for old, new in zip(before, after, strict=True)
    ]
    assert changed == [False, True]


@pytest.mark.parametrize("factory", KINDS)
def test_labels_added_to_trained_ones(make, tmp_path, factory):
    """The scores of the others stay, as with spaCy's own architectures."""
    nlp = make(factory)
    expected = cats_of(nlp.pipe(TEXTS))
    model = nlp.get_pipe(factory).model
    assert nlp.get_pipe(factory).add_label("weather") == 1
    assert [model.get_dim("nO"), model.get_ref("output_layer").get_dim("nO")] == [3, 3]
    docs = list(nlp.pipe(TEXTS))
    assert cats_of(docs) == pytest.approx(expected, abs=1e-6)
    assert {doc.cats["weather"] for doc in docs} == ({0.0} if KINDS[factory] else {0.5})
    loaded = reloaded(nlp, tmp_path)
    assert cats_of(loaded.pipe(TEXTS)) == pytest.approx(expected, abs=1e-6)
    copied = loaded.get_pipe(factory).model.copy()
    copied.attrs["resize_output"](copied, 4)
    # Not that of the original
    assert [one.get_ref("output_layer").get_dim("nO") for one in (copied, model)] == [4, 3]


@pytest.mark.parametrize("encoder", SHARING)
def test_frozen_transformer(make, encoder):
    """Its weights stay, and the classes learn."""
    nlp = make(kind=encoder)
    before = weights(nlp, "transformer")
    optimizer = Adam(0.05)
    losses = []
    for _ in range(20):
        examples = labelled_texts(nlp)
        losses.append(
            nlp.update(examples, sgd=optimizer, exclude=["transformer"], annotates=["transformer"])[
                "textcat"
            ]
        )
    assert losses[-1] < 0.2 * losses[0]
    after = weights(nlp, "transformer")
    assert all(numpy.array_equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize("factory", KINDS)
@pytest.mark.parametrize("encoder", [*SHARING, "own"])
def test_learns_with_the_encoder(make, factory, encoder):
    nlp = make(factory, encoder, init=False)
    optimizer = nlp.initialize(lambda: labelled_texts(nlp))
    optimizer.learn_rate = 0.01
    for _ in range(30):
        nlp.update(labelled_texts(nlp), sgd=optimizer, drop=0.1)
    best = [LABELS[row.argmax()] for row in cats_of(nlp.pipe(TEXTS))]
    assert best == list(TEXTS.values())
    assert nlp.evaluate(labelled_texts(nlp))["cats_score"] == 1.0


def test_dropout_of_training(make):
    nlp = make()
    textcat = nlp.get_pipe("textcat")
    nlp.update(labelled_texts(nlp), sgd=False, drop=0.4)
    (layer,) = [node for node in textcat.model.walk() if node.name == "dropout"]
    assert layer.attrs["dropout_rate"] == 0.4


@pytest.mark.parametrize("encoder", [*SHARING, "own"])
def test_warns_of_texts_that_are_cut(make, encoder):
    nlp = make(kind=encoder)
    with warnings_with("longer than the encoder's limit") as found:
        list(nlp.pipe(["the dog ran " * MAX_LENGTH, "a man"] * 2))
        nlp("the dog ran " * MAX_LENGTH)
    assert len(found) == 1
    assert found[0].startswith("[sbert-truncated] 2 of 4 rows")


def test_transformer_of_another_width(make, make_nlp, narrow_bert):
    nlp = make()
    narrow = make_nlp("shared", narrow_bert)
    narrow.add_pipe("textcat", source=nlp)
    with pytest.raises(ValueError, match="for vectors of 16 numbers, and its encoder makes 8"):
        narrow("a man")


@pytest.mark.parametrize(
    "tok2vec",
    [CNN, TOK2VEC_LISTENER, LISTENER, {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}],
)
def test_other_models_are_refused(tok2vec):
    with pytest.raises(ValueError, match=r"'.*', which has no wordpieces: expected"):
        add_textcat(spacy.blank("en"), init=False, tok2vec=tok2vec)


def test_no_transformer_before_it():
    with pytest.raises(ValueError, match="Add one before it"):
        add_textcat(spacy.blank("en"))


def test_curated_transformer_is_refused(tiny_bert):
    nlp = spacy.blank("en")
    add_curated(nlp, tiny_bert)
    with pytest.raises(ValueError, match="Add one before it"):
        add_textcat(nlp)


@pytest.mark.spacy_transformers
@pytest.mark.parametrize("factory", KINDS)
def test_stock_model_of_spacy_transformers(tiny_bert, factory):
    """Which leaves out the special tokens of no row, as its own span getter reads Docs."""
    nlp = stock_nlp(tiny_bert, "spacy-transformers.doc_spans.v1")
    add_textcat(nlp, factory)
    docs = list(nlp.pipe(TEXTS))
    vectors = torch.tensor(numpy.array([doc.vector for doc in docs])).double()
    assert cats_of(docs) == pytest.approx(expected_scores(nlp, factory, vectors), abs=1e-5)


def test_frozen_in_training(make, tmp_path):
    """A sourced transformer, which is not initialized again, and classes that are new."""
    nlp = make()
    nlp.to_disk(tmp_path / "source")
    config = nlp.config.copy()
    config["components"]["transformer"] = {"source": str(tmp_path / "source")}
    config["training"]["frozen_components"] = ["transformer"]
    docs = [example.reference for example in labelled_texts(nlp)]
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    config["paths"]["train"] = config["paths"]["dev"] = str(tmp_path / "train.spacy")
    found = init_nlp(config)
    assert found.get_pipe("textcat").labels == LABELS
    # A softmax begins with zeros
    assert cats_of(found.pipe(TEXTS)) == pytest.approx(numpy.full((4, 2), 0.5))


@pytest.mark.parametrize("encoder", SHARING)
def test_shipped_config_trains(tiny_bert, tmp_path, monkeypatch, encoder):
    monkeypatch.chdir(ROOT)
    config = shipped_config("textcat", tiny_bert)
    config.to_disk(tmp_path / "textcat.cfg", interpolate=False)
    script = [sys.executable, "scripts/choose_transformer.py", *[tmp_path / "textcat.cfg"] * 2]
    subprocess.run([*map(str, script), "--transformer", SHARING[encoder][0]], check=True)
    settings = {**TWO_STEPS, "corpora.train.limit": 96, "corpora.dev.limit": 40}
    train(tmp_path / "textcat.cfg", tmp_path / "out", overrides=settings)
    nlp = spacy.load(tmp_path / "out" / "model-last")
    assert nlp.get_pipe_meta("transformer").factory == SHARING[encoder][0]
    assert len(nlp.get_pipe("textcat").labels) == 10
    assert 0 < nlp.meta["performance"]["cats_score"] < 1
    assert sum(nlp("A man is eating.").cats.values()) == pytest.approx(1.0, abs=1e-5)
