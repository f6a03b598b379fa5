"""One transformer for the whole pipeline: no forward pass of our own, and clear errors where it
cannot be shared.
"""

import pickle
from copy import deepcopy

import numpy
import pytest
import spacy
from helpers.pipelines import (
    CNN,
    CURATED_LISTENER,
    LISTENER,
    SHARING,
    STOCK_LISTENER,
    TOK2VEC_LISTENER,
    add_tagger,
    finish_update,
    make_example,
    parameters_of,
    reloaded,
    weights,
)
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import fix_random_seed, registry
from thinc.api import SGD

TEXT = "A man is eating food. He cannot go."
SHARED = {"model": {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}}


def tagged(nlp: Language, text: str) -> Example:
    doc = nlp.make_doc(text)
    return Example.from_dict(doc, {"tags": ["X"] * len(doc)})


@pytest.fixture
def counted(monkeypatch):
    """Counts the forward passes of every BERT, packed or not, in use or in training."""
    from transformers import BertModel

    from spacy_sbert.models.engine import training as forward
    from spacy_sbert.models.engine.packed_bert import PackedBert

    calls = []
    for kind, name in (
        (BertModel, "forward"),
        (PackedBert, "__call__"),
        (forward, "packed_states"),
    ):
        stock = getattr(kind, name)
        monkeypatch.setattr(
            kind,
            name,
            lambda self, *args, stock=stock, **kw: calls.append(1) or stock(self, *args, **kw),
        )
    return calls


@pytest.mark.parametrize("encoder", SHARING)
def test_one_forward_pass_for_two_listeners(make_nlp, encoder, counted):
    nlp = make_nlp(encoder)
    add_tagger(nlp)
    nlp.initialize(lambda: [tagged(nlp, TEXT)])
    counted.clear()
    list(nlp.pipe([TEXT, "The cat sat.", "dog"], batch_size=8))
    assert len(counted) == 1
    counted.clear()
    nlp.update(
        [tagged(nlp, TEXT), make_example(nlp, "A man.", "The cat.")], sgd=nlp.create_optimizer()
    )
    assert len(counted) == 1


@pytest.mark.filterwarnings("ignore:.*training batch without pairs")
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("encoder", SHARING)
def test_both_listeners_train_the_same_weights(make_nlp, encoder, first):
    nlp = make_nlp(encoder)
    add_tagger(nlp, before="sbert") if first else add_tagger(nlp)
    pair = make_example(nlp, "A man is eating.", "The cat sat.", 0.9)
    tags = tagged(nlp, "The dog ran.")
    nlp.initialize(lambda: [tags])
    optimizer = nlp.create_optimizer()
    for batch in ([pair], [tags], [pair, tags]):
        before = weights(nlp, "transformer")
        nlp.update(batch, sgd=False)
        finish_update(nlp, optimizer)
        after = weights(nlp, "transformer")
        moved = [key for key in before if not numpy.array_equal(before[key], after[key])]
        assert any("query" in key for key in moved), "the encoder did not learn"


@pytest.mark.parametrize(
    ("encoder", "architecture"),
    [("shared", "TransformerTok2Vec"), ("spacy-transformers", "Tok2VecTransformer")],
)
def test_replace_listeners(make_nlp, tmp_path, encoder, architecture):
    nlp = make_nlp(encoder)
    add_tagger(nlp)
    nlp.initialize(lambda: [tagged(nlp, TEXT)])
    expected = nlp(TEXT).vector
    nlp.replace_listeners("transformer", "sbert", ["model.tok2vec"])
    nlp.replace_listeners("transformer", "tagger", ["model.tok2vec"])
    assert nlp.get_pipe("transformer").listener_map == {}
    assert numpy.array_equal(nlp(TEXT).vector, expected)
    loaded = reloaded(nlp, tmp_path / "nlp", exclude=["transformer"])
    assert numpy.array_equal(loaded(TEXT).vector, expected)
    assert loaded.config["components"]["tagger"]["model"]["tok2vec"]["@architectures"] == (
        f"spacy-sbert.{architecture}.v1"
    )
    assert [t.tag_ for t in loaded(TEXT)] == ["X"] * len(loaded(TEXT))


@pytest.mark.parametrize("encoder", SHARING)
def test_pairs_with_gaps_beside_a_tagger(make_nlp, encoder):
    nlp = make_nlp(encoder)
    add_tagger(nlp)
    doc = nlp.make_doc("dog The cat sat on the mat. he ran A man is eating. fast")
    example = Example.from_dict(doc, {"tags": ["X"] * len(doc)})
    for one in (example.predicted, example.reference):
        one.spans["sbert"] = [one[10:15], one[1:8]]
    example.reference.spans["sbert"].attrs["score"] = 0.7
    nlp.initialize(lambda: [example])
    losses = nlp.update([tagged(nlp, TEXT), example, tagged(nlp, "dog")], sgd=False)
    assert losses["sbert"] > 0
    assert "tagger" in losses
    given = nlp(doc.copy())
    assert [token.tag_ for token in given] == ["X"] * len(doc)
    assert not given[0].has_vector
    assert given[1].has_vector


@pytest.mark.parametrize("encoder", SHARING)
def test_a_disabled_transformer(make_nlp, encoder):
    nlp = make_nlp(encoder)
    with nlp.select_pipes(disable="transformer"), pytest.raises(ValueError, match="it is disabled"):
        nlp(TEXT)


@pytest.mark.parametrize(
    ("listener", "message"),
    [
        pytest.param({}, "no 'sbert_transformer', 'transformer'", id="any"),
        pytest.param(
            {
                "tok2vec": {
                    "@architectures": "spacy-sbert.SentenceListener.v1",
                    "upstream": "other",
                }
            },
            'upstream = "other"',
            id="of another name",
        ),
    ],
)
def test_no_transformer(listener, message):
    nlp = spacy.blank("xx")
    nlp.add_pipe("sbert", config={"model": {**SHARED["model"], **listener}})
    with pytest.raises(ValueError, match=message):
        nlp.initialize()
    with pytest.raises(ValueError, match="has not processed this Doc"):
        nlp(TEXT)


# A pipeline of four that listen, as it is afterwards

MAX = {**LISTENER, "pooling": {"@layers": "reduce_max.v1"}}
LISTENERS = ["tagger", "maxima", "sbert", "first"]
STATES = "spacy_sbert.states"


@pytest.fixture
def four(make_nlp):
    """The vectors of tokens by spaCy's listener and by ours with another pooling, and two poolings
    of rows.
    """
    nlp = make_nlp("shared")
    add_tagger(nlp, tok2vec=TOK2VEC_LISTENER, before="sbert")
    add_tagger(nlp, "maxima", tok2vec=MAX, before="sbert")
    nlp.add_pipe("sbert", name="first", config={"model": {**SHARED["model"], "pooling": "cls"}})
    for name in ("tagger", "maxima"):
        nlp.get_pipe(name).add_label("Y")
    fix_random_seed(0)
    nlp.initialize(lambda: batch_of(nlp))
    optimizer = nlp.create_optimizer()
    for _ in range(3):
        nlp.update(batch_of(nlp), sgd=optimizer)
    return nlp


def batch_of(nlp):
    return [
        tagged(nlp, TEXT),
        make_example(nlp, "A man is eating.", "The cat sat.", 0.9),
        tagged(nlp, ""),
    ]


GIVEN = [TEXT, "", "The cat sat on the mat. A dog ran.", " ", "dog"]


def found_on(doc):
    """What the components have left on a Doc."""
    tags = [[token.tag_ for token in doc]]
    vectors = [doc.vector, doc._.sbert_vector] if len(doc) else []
    return [doc.tensor.tobytes(), *(vector.tobytes() for vector in vectors), tags]


def seen(nlp, texts=GIVEN, **settings):
    return [found_on(doc) for doc in nlp.pipe(texts, **settings)]


def pickled(nlp, path):
    return pickle.loads(pickle.dumps(spacy.load(path)))


def from_bytes(nlp, path):
    blank = spacy.util.load_model_from_config(nlp.config)
    return blank.from_bytes(nlp.to_bytes())


WAYS = {
    "saved": lambda nlp, path: spacy.load(path),
    "bytes": from_bytes,
    "pickled": pickled,
    "copied": lambda nlp, path: deepcopy(spacy.load(path)),
    "assembled": lambda nlp, path: assembled(path),
    "loaded while disabled": lambda nlp, path: enabled(
        spacy.load(path, disable=["transformer", *LISTENERS])
    ),
    "loaded while those that listen were": lambda nlp, path: enabled(
        spacy.load(path, disable=LISTENERS)
    ),
    "renamed": lambda nlp, path: renamed(spacy.load(path)),
    "sourced": lambda nlp, path: sourced(path),
    "sourced of a disabled one": lambda nlp, path: sourced_by_hand(
        spacy.load(path, disable=LISTENERS)
    ),
    "replaced": lambda nlp, path: replaced(spacy.load(path)),
    "replaced and saved": lambda nlp, path: reloaded(replaced(spacy.load(path)), path / "again"),
    "replaced by source": lambda nlp, path: sourced(path, replace_listeners=["model.tok2vec"]),
    "disabled for a while": lambda nlp, path: disabled_for_a_while(spacy.load(path)),
    "initialized while disabled": lambda nlp, path: linked_while_disabled(spacy.load(path)),
}


def enabled(nlp):
    for name in list(nlp.disabled):
        nlp.enable_pipe(name)
    return nlp


def renamed(nlp):
    nlp.rename_pipe("transformer", "encoder")
    nlp.rename_pipe("maxima", "other")
    return nlp


def assembled(path):
    # All texts stay in one batch: by itself a text is rounded otherwise, see the test below
    return spacy.load(path, config={"nlp.batch_size": 500})


def sourced(path, **settings):
    config = spacy.load(path).config.copy()
    for name in config["components"]:
        listens = name in LISTENERS
        config["components"][name] = {"source": str(path), **(settings if listens else {})}
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    nlp.tokenizer.from_disk(path / "tokenizer", exclude=["vocab"])
    return nlp


def sourced_by_hand(source):
    nlp = spacy.blank("xx")
    nlp.tokenizer = source.tokenizer
    for name in ("transformer", *LISTENERS):
        nlp.add_pipe(name, source=source)
    return nlp


def replaced(nlp):
    for name in LISTENERS:
        nlp.replace_listeners("transformer", name, ["model.tok2vec"])
    return nlp


def disabled_for_a_while(nlp):
    with nlp.select_pipes(enable="transformer"):
        nlp(TEXT)
    return nlp


def linked_while_disabled(nlp):
    with nlp.select_pipes(disable=LISTENERS):
        # As nlp.initialize does where they are frozen
        nlp._link_components()
    return nlp


@pytest.mark.parametrize("way", WAYS)
def test_the_same_to_the_last_bit(four, tmp_path, way):
    expected = seen(four)
    four.to_disk(tmp_path)
    nlp = WAYS[way](four, tmp_path)
    assert seen(nlp) == expected
    assert [found_on(nlp(text)) for text in GIVEN] == [found_on(four(text)) for text in GIVEN]
    docs = list(nlp.pipe(GIVEN))
    assert not [key for doc in docs for key in doc.user_hooks if key.startswith(STATES)]


@pytest.mark.parametrize(
    "sizes",
    [{"batch_size": 1}, {"batch_size": 2}, {"component_cfg": {"tagger": {"batch_size": 3}}}],
)
def test_batches_of_any_size(four, sizes):
    for given, expected in zip(four.pipe(GIVEN, **sizes), four.pipe(GIVEN), strict=True):
        assert numpy.allclose(given.tensor, expected.tensor, atol=1e-6)
        assert numpy.allclose(given.vector, expected.vector, atol=1e-6)
        assert [token.tag_ for token in given] == [token.tag_ for token in expected]


def test_several_processes(four, tmp_path):
    four.to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    expected = list(nlp.pipe(GIVEN))
    for given, doc in zip(
        nlp.pipe(GIVEN, n_process=2, batch_size=len(GIVEN)), expected, strict=True
    ):
        assert numpy.array_equal(given.tensor, doc.tensor)
        assert [t.tag_ for t in given] == [t.tag_ for t in doc]
        assert not len(doc) or numpy.array_equal(given._.sbert_vector, doc._.sbert_vector)


def states_left(docs):
    return [key for doc in docs for key in doc.user_hooks if key.startswith(STATES)]


@pytest.mark.parametrize(
    "gone", [["sbert"], ["maxima"], ["first", "maxima"], ["sbert", "first", "maxima"], LISTENERS]
)
@pytest.mark.parametrize(
    "how", ["disabled", "excluded", "removed", "loaded while disabled", "selected"]
)
def test_no_states_are_left(four, tmp_path, gone, how):
    four.to_disk(tmp_path)
    nlp = spacy.load(
        tmp_path,
        exclude=gone if how == "excluded" else [],
        disable=gone if how == "loaded while disabled" else [],
    )
    for name in gone:
        if how == "removed":
            nlp.remove_pipe(name)
        elif how == "disabled":
            nlp.disable_pipe(name)
    with nlp.select_pipes(disable=gone if how == "selected" else []):
        assert not states_left([*nlp.pipe(GIVEN), *map(nlp, GIVEN)])


def test_states_of_a_copy(four):
    """A Doc that is copied, or saved, between the components."""
    doc = four.get_pipe("transformer")(four.make_doc(TEXT))
    assert states_left([doc])
    copy = doc.copy()
    restored = Doc(four.vocab).from_bytes(doc.to_bytes())
    pipe = four.get_pipe("sbert")
    assert numpy.array_equal(pipe(copy).vector, pipe(doc).vector)
    with pytest.raises(ValueError, match="has not processed this Doc"):
        pipe(restored)
    assert four.get_pipe("tagger")(restored)[0].tag_


# Training with some components frozen


def step(nlp, n_steps=1, batch=(), **settings):
    # A Softmax of zeros gives no gradient in the first
    for _ in range(n_steps):
        # spaCy's listener takes an empty Doc for one that was not processed.
        nlp.update(batch or batch_of(nlp)[:2], sgd=False, **settings)
        for name, pipe in nlp.pipeline:
            if name not in settings.get("exclude", ()):
                pipe.finish_update(SGD(0.1))


def state(nlp, name):
    return {key: value for key, value in parameters_of(nlp).items() if key[0] == name}


def same(first, second):
    return all(numpy.array_equal(first[key], second[key]) for key in first)


def test_frozen_transformer(four):
    """Others learn from what it leaves on the Docs as from a pass in training, and it stays as it
    is.
    """
    frozen = spacy.util.load_model_from_config(four.config).from_bytes(four.to_bytes())
    before = parameters_of(frozen)
    with pytest.raises(ValueError, match=r"E203|has not processed this Doc"):
        step(frozen, exclude=["transformer"])
    step(frozen, exclude=["transformer"], annotates=["transformer"])
    step(four)
    for name in ("tagger", "maxima"):
        given = state(frozen, name)
        expected = state(four, name)
        assert all(numpy.allclose(given[key], expected[key], atol=1e-5) for key in expected)
        assert not same(given, before)
    assert same(state(frozen, "transformer"), before)
    assert not same(state(four, "transformer"), before)


@pytest.mark.parametrize("name", LISTENERS)
def test_frozen_listener(four, name):
    """The others learn as if it were disabled, and it is right in use, and may annotate if the
    transformer does.
    """
    other = spacy.util.load_model_from_config(four.config).from_bytes(four.to_bytes())
    with other.select_pipes(disable=name):
        step(other)
    step(four, exclude=[name], annotates=["transformer", name])
    assert same(parameters_of(four), parameters_of(other))
    assert seen(four) == seen(other)


def test_frozen_from_the_beginning(four, tmp_path):
    """Those that are frozen are disabled while spaCy initializes and links the others, and then
    evaluated.
    """
    four.to_disk(tmp_path)
    config = spacy.load(tmp_path).config.copy()
    for name in LISTENERS[1:]:
        config["components"][name] = {"source": str(tmp_path)}
    config["components"]["transformer"] = {"source": str(tmp_path)}
    config["training"] |= {
        "frozen_components": ["transformer", *LISTENERS[1:]],
        "annotating_components": ["transformer"],
    }
    config["initialize"]["components"]["tagger"] = {"labels": ["X", "Y"]}
    config["corpora"] = {
        "train": {"@readers": "tests.none.v1"},
        "dev": {"@readers": "tests.none.v1"},
    }
    registry.readers("tests.none.v1", func=lambda: batch_of)
    nlp = init_nlp(config)
    assert numpy.array_equal(nlp(TEXT).vector, four(TEXT).vector)
    before = parameters_of(nlp)
    frozen = config["training"]["frozen_components"]
    step(nlp, exclude=frozen, annotates=["transformer"])
    moved = {
        key[0]
        for key, value in parameters_of(nlp).items()
        if not numpy.array_equal(value, before[key])
    }
    assert moved == {"tagger"}
    assert nlp.evaluate(batch_of(nlp))["tag_acc"] is not None
    assert not states_left(nlp.pipe(GIVEN))


def test_a_transformer_that_was_never_initialized(make_nlp):
    """A new one that is frozen, whose width is not known before it is loaded."""
    nlp = make_nlp("shared")
    add_tagger(nlp)
    add_tagger(nlp, "maxima", tok2vec=MAX)
    nlp.get_pipe("maxima").add_label("Y")
    with nlp.select_pipes(disable="transformer"):
        nlp.initialize(lambda: batch_of(nlp))
    before = parameters_of(nlp)
    step(nlp, exclude=["transformer"], annotates=["transformer"])
    assert not same(state(nlp, "maxima"), before)
    assert same(state(nlp, "transformer"), before)
    assert nlp(TEXT)[0].tag_ == "X"


def test_pooling_with_weights(make_nlp):
    """It is initialized and trained, also while the transformer is frozen, and saved."""
    attention = {"@layers": "ParametricAttention.v1"}
    pooling = {
        "@layers": "chain.v1",
        "*": {"attention": attention, "sum": {"@layers": "reduce_sum.v1"}},
    }
    nlp = make_nlp("shared", transformer={"pooling": pooling})
    for name in ("tagger", "second"):
        add_tagger(nlp, name, tok2vec={**LISTENER, "pooling": pooling})
        nlp.get_pipe(name).add_label("Y")
    nlp.initialize(lambda: batch_of(nlp))
    for frozen in ([], ["transformer"]):
        before = parameters_of(nlp)
        step(nlp, 2, [tagged(nlp, "dogs eat in kilos")], exclude=frozen, annotates=["transformer"])
        moved = {
            key[0]
            for key, value in parameters_of(nlp).items()
            if key[2] == "Q" and (value != before[key]).any()
        }
        assert moved >= {"tagger", "second"}
    other = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert seen(other) == seen(nlp)


# Several transformers


def test_two_transformers(make_nlp, other_bert):
    """Each component gets the vectors of its own, in use and in training, though both set
    doc.tensor.
    """
    nlp = make_nlp(
        "shared",
        model={
            "tok2vec": {
                "@architectures": "spacy-sbert.SentenceListener.v1",
                "upstream": "transformer",
            }
        },
    )
    second = {"model": {**nlp.get_pipe_config("transformer")["model"], "name": str(other_bert)}}
    nlp.add_pipe("sbert_transformer", name="second", config=second, before="sbert")
    nlp.add_pipe("sbert", name="other", config=SHARED)
    add_tagger(nlp, "one", tok2vec={**LISTENER, "upstream": "transformer"})
    add_tagger(nlp, "two", tok2vec={**LISTENER, "upstream": "second"})
    add_tagger(nlp, "nearest", tok2vec=TOK2VEC_LISTENER)
    nlp.initialize(lambda: batch_of(nlp))
    first = make_nlp()(TEXT).vector
    other = make_nlp(name=other_bert)(TEXT).vector
    doc = nlp(TEXT)
    assert abs(doc._.sbert_vector - first).max() < 1e-6
    assert abs(doc._.other_vector - other).max() < 1e-6
    assert not states_left([doc])
    doc = nlp.make_doc(TEXT)
    tensors = {}
    for name in ("transformer", "second"):
        nlp.get_pipe(name)(doc)
        tensors[name] = doc.tensor
    for name, upstream in (("one", "transformer"), ("two", "second")):
        node = next(
            node
            for node in nlp.get_pipe(name).model.walk()
            if node.name == "sbert-transformer-listener"
        )
        assert numpy.allclose(node.predict([doc])[0], tensors[upstream], atol=1e-6)
    moved = []
    for excluded in (["one", "sbert"], ["two", "other", "nearest"]):
        before = parameters_of(nlp)
        step(nlp, exclude=excluded)
        changed = {
            key[0]
            for key, value in parameters_of(nlp).items()
            if not numpy.array_equal(value, before[key])
        }
        moved.append(changed & {"transformer", "second"})
    assert moved == [{"second"}, {"transformer"}]
    with pytest.raises(
        ValueError,
        match=r"'late' listens to 'transformer'",
    ):
        add_tagger(nlp, "late", tok2vec={**TOK2VEC_LISTENER, "upstream": "transformer"})


def test_beside_a_tok2vec(make_nlp):
    """A component that listens to a tok2vec stands before the transformer, which replaces
    doc.tensor.
    """
    nlp = spacy.blank("xx")
    nlp.add_pipe("tok2vec", config={"model": CNN})
    transformer = make_nlp("shared").get_pipe_config("transformer")["model"]
    nlp.add_pipe("sbert_transformer", name="transformer", config={"model": transformer})
    with pytest.raises(
        ValueError,
        match=r"'tagger' .* 'tok2vec', .* 'transformer'",
    ):
        add_tagger(nlp, tok2vec={**TOK2VEC_LISTENER, "upstream": "tok2vec"})
    nlp.remove_pipe("tagger")
    add_tagger(nlp, tok2vec={**TOK2VEC_LISTENER, "upstream": "tok2vec"}, before="transformer")
    nlp.add_pipe("sbert", config=SHARED)
    nlp.initialize(lambda: [tagged(nlp, TEXT)])
    assert abs(nlp(TEXT).vector - make_nlp()(TEXT).vector).max() < 1e-6
    nlp = spacy.blank("xx")
    nlp.add_pipe("sbert_transformer", name="transformer", config={"model": transformer})
    nlp.add_pipe("tok2vec", config={"model": {**CNN, "width": 8}})
    # To the nearest
    add_tagger(nlp, tok2vec={**TOK2VEC_LISTENER, "width": 8})
    add_tagger(nlp, "other")
    for name in ("tagger", "other"):
        nlp.get_pipe(name).add_label("Y")
    nlp.initialize(lambda: [tagged(nlp, TEXT)])
    before = weights(nlp, "transformer")
    step(nlp, 2, exclude=["other"])
    assert nlp(TEXT)[0].tag_ == "X"
    assert same(weights(nlp, "transformer"), before)
    step(nlp, 2)
    assert not same(weights(nlp, "transformer"), before)


# Refused


def test_another_width(make_nlp):
    nlp = make_nlp("shared")
    add_tagger(nlp, tok2vec={**TOK2VEC_LISTENER, "width": 96})
    with pytest.raises(ValueError, match=r"'tagger' .* 96 .*'transformer' .* 16"):
        nlp.initialize(lambda: [tagged(nlp, TEXT)])


@pytest.mark.spacy_transformers
def test_listener_of_spacy_transformers(make_nlp):
    """It would make up vectors of zeros."""
    message = (
        r"'tagger' has the listener 'transformer-listener'.*spacy-sbert\.TransformerListener\.v1"
    )
    with pytest.raises(ValueError, match=message):
        add_tagger(make_nlp("shared"), tok2vec=STOCK_LISTENER)
    source = make_nlp("spacy-transformers")
    add_tagger(source)
    source.initialize(lambda: [tagged(source, TEXT)])
    with pytest.raises(ValueError, match=message):
        make_nlp("shared").add_pipe("tagger", source=source)
    # Beside it
    nlp = make_nlp("spacy-transformers")
    nlp.remove_pipe("sbert")
    block = make_nlp("shared").get_pipe_config("transformer")["model"]
    nlp.add_pipe("sbert_transformer", name="ours", config={"model": block})
    add_tagger(nlp)
    nlp.add_pipe(
        "sbert",
        config={
            "model": {
                **SHARED["model"],
                "tok2vec": {
                    "@architectures": "spacy-sbert.SentenceListener.v1",
                    "upstream": "ours",
                },
            }
        },
    )
    nlp.initialize(lambda: [tagged(nlp, TEXT)])
    assert abs(nlp(TEXT).vector - make_nlp()(TEXT).vector).max() < 1e-6


def test_listener_of_curated_transformers(make_nlp):
    message = (
        r"'tagger' has the listener '.*' of another package.*spacy-sbert\.TransformerListener\.v1"
    )
    with pytest.raises(ValueError, match=message):
        add_tagger(make_nlp("shared"), tok2vec=CURATED_LISTENER)


@pytest.mark.parametrize("listener", [LISTENER, MAX], ids=["mean", "max"])
def test_transformer_that_is_missing(make_nlp, listener):
    nlp = make_nlp("shared")
    add_tagger(nlp, tok2vec=listener)
    nlp.initialize(lambda: [tagged(nlp, TEXT)])
    for settings in ({"disable": ["transformer", "sbert"]}, {"enable": ["tagger"]}):
        with (
            nlp.select_pipes(**settings),
            pytest.raises(ValueError, match="has not processed this Doc"),
        ):
            nlp(TEXT)
    nlp = spacy.blank("xx")
    config = {"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}}
    nlp.add_pipe("tagger", config=config).add_label("X")
    with pytest.raises(ValueError, match=r"'sbert_transformer'.* none stands before"):
        nlp.initialize(lambda: [tagged(nlp, TEXT)])


def test_another_batch(make_nlp):
    nlp = make_nlp("shared")
    add_tagger(nlp)
    nlp.initialize(lambda: [tagged(nlp, TEXT)])
    nlp.get_pipe("transformer").update([tagged(nlp, TEXT)])
    with pytest.raises(ValueError, match="gave the output of another batch of Docs"):
        nlp.get_pipe("tagger").update([tagged(nlp, "dog")])


def test_errors_go_to_the_handler(four, monkeypatch):
    """Docs of a batch that failed are left out, as with every pipe of spaCy; others are as
    always.
    """
    expected = seen(four, [TEXT, "dog"])
    told = []
    four.set_error_handler(
        lambda name, pipe, docs, error: told.append((name, len(docs), str(error)))
    )
    transformer = four.get_pipe("transformer")
    predict = transformer.predict

    def failing(docs):
        docs = list(docs)
        if any("cat" in doc.text for doc in docs):
            raise ValueError("a cat")
        return predict(docs)

    monkeypatch.setattr(transformer, "predict", failing)
    found = seen(four, [TEXT, "The cat sat.", "dog"], batch_size=1)
    assert told == [("transformer", 1, "a cat")]
    assert len(found) == 2
    assert [tags for *_, tags in found] == [tags for *_, tags in expected]


@pytest.mark.parametrize("first", ["textcat", "ner"])
def test_textcat_ensemble_listens(make_nlp, first):
    """It adds up what the backward passes of its parts return."""
    nlp = make_nlp("shared")
    for name in (first, {"textcat": "ner", "ner": "textcat"}[first]):
        architecture = {"@architectures": "spacy.TextCatEnsemble.v2"} if name == "textcat" else {}
        nlp.add_pipe(name, config={"model": {**architecture, "tok2vec": LISTENER}})
    gold = {"cats": {"x": 1.0, "y": 0.0}, "entities": [(2, 5, "PERSON")]}
    examples = [Example.from_dict(nlp.make_doc("a man is eating"), gold)]
    optimizer = nlp.initialize(lambda: examples)
    before = weights(nlp, "transformer")
    # At first the heads are zeros
    for _ in range(3):
        nlp.update(examples, sgd=optimizer, exclude=["sbert"])
    assert any((before[key] != after).any() for key, after in weights(nlp, "transformer").items())
