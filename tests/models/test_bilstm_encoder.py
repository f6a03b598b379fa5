"""The states of a Doc are those of PyTorch's LSTM over it alone, whatever stands beside it; and the way back."""

import numpy
import pytest
import torch
from gradients import finite_differences, relative_error

from spacy_sbert.models.word_layers import bilstm_encoder

RNG = numpy.random.default_rng(0)
LENGTHS = [3, 0, 7, 1]


def in_float64(depth):
    torch.manual_seed(0)
    model = bilstm_encoder(4, depth)
    return model, model.shims[0]._model.double()


def docs():
    return [RNG.normal(size=(length, 4)) for length in LENGTHS]


@pytest.mark.parametrize("depth", [1, 2])
def test_states_are_those_of_the_doc_alone(depth):
    with pytest.raises(ValueError, match=r"width = 5.*an even number"):
        bilstm_encoder(5, depth)
    model, lstm = in_float64(depth)
    states, backprop = model.begin_update([numpy.zeros((0, 4))] * 2)
    assert [len(rows) for rows in [*states, *backprop(states)]] == [0] * 4
    plain = torch.nn.LSTM(4, 2, depth, bidirectional=True).double()
    plain.load_state_dict(lstm.state_dict())
    given = docs()
    for found, own in zip(model.predict(given), given, strict=True):
        expected = plain(torch.tensor(own))[0].detach().numpy() if len(own) else own
        assert numpy.allclose(found, expected, atol=1e-12) and found.shape == own.shape


@pytest.mark.parametrize("depth", [1, 2])
def test_gradients(depth):
    model, lstm = in_float64(depth)
    given, upstream = docs(), docs()
    _, backprop = model.begin_update(given)
    d_given = backprop(upstream)

    def value(_=None):
        return sum(float((own * d).sum()) for own, d in zip(model.predict(given), upstream, strict=True))

    for own, d_own in zip(given, d_given, strict=True):
        assert d_own.shape == own.shape
        if len(own):
            assert relative_error(d_own, finite_differences(value, own)) < 1e-6
    for name, parameter in lstm.named_parameters():
        expected = finite_differences(value, parameter.detach().numpy())  # the same memory
        assert relative_error(parameter.grad.numpy(), expected) < 1e-6, name


def test_a_vector_does_not_depend_on_the_batch(make_nlp):
    """Which is why the layer is there: spacy.TorchBiLSTMEncoder.v1 reads the padding of a batch."""
    embed = {"@architectures": "spacy.MultiHashEmbed.v2", "width": 16, "attrs": ["NORM"], "rows": [50]}
    texts = ["A man eats.", "A much longer sentence, that goes on and on for a while."]
    differences = {}
    for name, rest in (("spacy-sbert.BiLSTMEncoder.v1", {}), ("spacy.TorchBiLSTMEncoder.v1", {"dropout": 0.0})):
        encode = {"@architectures": name, "width": 16, "depth": 1, **rest}
        tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": {**embed, "include_static_vectors": False}}
        nlp = make_nlp("tokens", model={"tok2vec": {**tok2vec, "encode": encode}, "pooling": "max"})
        together = next(nlp.pipe(texts)).vector
        differences[name] = abs(nlp(texts[0]).vector - together).max()
    assert differences["spacy-sbert.BiLSTMEncoder.v1"] < 1e-6
    assert differences["spacy.TorchBiLSTMEncoder.v1"] > 1e-3, "mended in Thinc?"


def test_weights_are_saved():
    model, given = bilstm_encoder(4), [rows.astype("float32") for rows in docs()]
    other = bilstm_encoder(4).from_bytes(model.to_bytes())
    assert all(numpy.array_equal(*pair) for pair in zip(model.predict(given), other.predict(given), strict=True))
