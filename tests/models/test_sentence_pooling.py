"""The whole way from wordpiece states to vectors and back: windows, normalisation, empty rows, precision."""

import numpy
import pytest
from gradients import finite_differences, relative_error
from thinc.api import Model
from thinc.types import Ragged
from transformers.file_utils import ModelOutput

from spacy_sbert.models.encoded_docs import EncodeSettings
from spacy_sbert.models.pooling import POOLING
from spacy_sbert.models.sbert_config import SentenceTransformersConfig
from spacy_sbert.models.sentence_encoder import listening_encoder, predict
from spacy_sbert.models.sentence_pooling import SentencePooling
from spacy_sbert.models.spacy_transformers import is_installed

if is_installed():
    from spacy_transformers.data_classes import TransformerData

    from spacy_sbert.models.shared_batch import PaddedBatch

pytestmark = pytest.mark.spacy_transformers

NO_TOKENS = EncodeSettings(token_vectors=False)

MASK = numpy.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 0, 0]], dtype="float32")
SPANS = numpy.array([[0, 0, 3], [0, 0, 3], [1, 3, 5], [2, 5, 6]])  # the first Span has two windows
N_TEXT = numpy.array([2, 1, 1, 0])  # the last row has special tokens alone


def data(states):
    n, width, _ = states.shape
    batch = PaddedBatch(
        strings=[["x"] * width] * n,
        input_ids=numpy.zeros((n, width), dtype="i"),
        attention_mask=MASK,
        lengths=[],
        token_type_ids=None,
        spans=SPANS,
        n_text=N_TEXT,
        n_cut=numpy.zeros(n, dtype="int64"),
        row_characters=numpy.zeros((n, 2), dtype="int64"),
        characters=None,
        settings=SentenceTransformersConfig("x"),
    )
    align = Ragged(numpy.array([1, 5, 9], dtype="i"), numpy.array([1, 1, 0, 1, 0, 0], dtype="i"))
    return TransformerData(batch, ModelOutput(last_hidden_state=states), align)


def listening(pooling):
    """An encoder that hears what it is given in place of Docs."""
    return listening_encoder(Model("given", lambda model, datas, is_train: (datas, lambda d_datas: d_datas)), pooling)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("pooling", POOLING)
def test_gradient(pooling, normalize):
    rng = numpy.random.default_rng(3)
    states, upstream = rng.normal(size=(4, 4, 3)), rng.normal(size=(3, 3))
    layer = listening(SentencePooling(pooling, normalize))
    (encoded, empty), backprop = layer.begin_update([data(states), TransformerData.empty()])
    assert encoded.vectors.shape == (3, 3) and empty.vectors.shape == (0, 3)

    def value(x):
        return float((layer.begin_update([data(x)])[0][0].vectors * upstream).sum())

    (given,) = backprop([upstream, numpy.zeros((0, 3))])  # none for the empty Doc
    gradient = given.model_output["last_hidden_state"]
    assert relative_error(gradient, finite_differences(value, states)) < 1e-6
    assert not gradient[3].any(), "a row without text learns nothing"
    assert not gradient[MASK == 0].any(), "nor does padding"


def test_padding_on_the_left():
    states = numpy.arange(12, dtype="float32").reshape(1, 4, 3)
    given = data(numpy.zeros((4, 4, 3)))
    given.wordpieces = given.wordpieces[3:]
    given.wordpieces.attention_mask = numpy.array([[0, 0, 1, 1]], dtype="float32")
    given.wordpieces.n_text = numpy.array([1])
    given.model_output["last_hidden_state"] = states
    given.align = Ragged(numpy.array([2, 3], dtype="i"), numpy.array([1, 1], dtype="i"))
    (encoded,) = predict(listening(SentencePooling("cls", False)), [given], NO_TOKENS)
    assert encoded.vectors.tolist() == [[6.0, 7.0, 8.0]]


@pytest.mark.parametrize("pooling", POOLING)
def test_half_precision_states(pooling):
    states = numpy.random.default_rng(4).normal(size=(4, 4, 3))
    layer = listening(SentencePooling(pooling, True))
    half = states.astype("float16")
    (expected,) = predict(layer, [data(half.astype("float32"))], NO_TOKENS)
    (encoded,), backprop = layer.begin_update([data(half)])
    assert encoded.vectors.dtype == numpy.float32
    assert numpy.array_equal(encoded.vectors, expected.vectors)
    (given,) = backprop([encoded.vectors])
    assert given.model_output["last_hidden_state"].dtype == numpy.float16, "PyTorch wants the dtype of its output"
