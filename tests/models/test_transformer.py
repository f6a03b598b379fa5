"""spacy-sbert.TransformerModel.v1 is a drop-in for spacy-transformers' own."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy
import pytest
import spacy
import srsly
from helpers.pipelines import SHARING, TRANSFORMERS, one_pipe
from transformers import BertTokenizer

from spacy_sbert.models.encoder_state import SETTINGS_FILE
from spacy_sbert.models.sbert_config import TransformerConfig
from spacy_sbert.models.shim import TransformerShim
from spacy_sbert.models.transformer import SpanTransformer, encoder_of

TEXTS = ["A man is eating food. He cannot go.", "", "The cat sat on the mat.", "dog"]


def pipeline(folder, architecture, get_spans):
    nlp = one_pipe(folder, "transformer", get_spans=get_spans, **{"@architectures": architecture})
    nlp.add_pipe("sentencizer", first=True)
    nlp.initialize()
    return nlp


SPANS = [{"@span_getters": "spacy-transformers.sent_spans.v1"}]
SPANS += [{"@span_getters": "spacy-transformers.strided_spans.v1", "window": 4, "stride": 3}]
AWKWARD = [
    "He cannot go, don't you  think?",
    "  leading and trailing  ",
    "é中文 😀 a\x00b \u200b",
    " ",
]
AWKWARD += ["U.S.-based, (sic)...", "co-op's e-mail: x@y.com"]
# Two that are equal word for word are two
AWKWARD += ["a dog", "a dog"]


def assert_same_states(given, expected):
    """Those of padding are zero in ours."""
    kept = expected.wordpieces.attention_mask.astype(bool)
    ours = given.model_output.last_hidden_state
    theirs = expected.model_output.last_hidden_state
    assert ours.shape == theirs.shape
    assert not ours[~kept].any()
    assert numpy.allclose(ours[kept], theirs[kept], atol=1e-5)
    pooler = expected.model_output.pooler_output
    assert numpy.allclose(given.model_output.pooler_output, pooler, atol=1e-5)


def assert_same_wordpieces(given, expected):
    assert given.strings == expected.strings
    assert given.lengths == expected.lengths
    for field in ("input_ids", "attention_mask", "token_type_ids"):
        ours = getattr(given, field)
        theirs = getattr(expected, field)
        assert (ours is None) == (theirs is None), field
        if ours is not None:
            assert numpy.array_equal(ours, theirs), field
            assert ours.dtype == theirs.dtype, field


@pytest.mark.spacy_transformers
@pytest.mark.parametrize("get_spans", SPANS)
def test_same_output_as_spacy_transformers(tiny_bert, get_spans):
    from spacy_transformers.data_classes import TransformerData

    texts = TEXTS + AWKWARD
    stock = pipeline(tiny_bert, "spacy-transformers.TransformerModel.v3", get_spans)
    ours = pipeline(tiny_bert, "spacy-sbert.TransformerModel.v1", get_spans)
    for theirs, doc in zip(stock.pipe(texts), ours.pipe(texts), strict=True):
        expected = theirs._.trf_data
        given = doc._.trf_data
        assert isinstance(given, TransformerData)
        assert given.model_output.keys() == expected.model_output.keys()
        assert bool(given.model_output) == bool(doc.text)
        if doc.text:
            assert_same_states(given, expected)
        assert_same_wordpieces(given.wordpieces, expected.wordpieces)
        assert numpy.array_equal(given.align.dataXd, expected.align.dataXd)
        assert numpy.array_equal(given.align.lengths, expected.align.lengths)
    width = ours.get_pipe("transformer").model.get_dim("nO")
    assert stock.get_pipe("transformer").model.get_dim("nO") == width


@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_a_doc_may_be_in_a_batch_twice(make_nlp, encoder):
    nlp = make_nlp(encoder)
    doc = nlp.make_doc(TEXTS[0])
    other = nlp.make_doc(TEXTS[2])
    docs = list(nlp.pipe([doc, doc, other]))
    assert numpy.allclose(docs[0].vector, nlp(TEXTS[0]).vector, atol=1e-6)
    assert docs[0] is docs[1]
    assert numpy.allclose(docs[2][1].vector, nlp(TEXTS[2])[1].vector, atol=1e-6)


@pytest.mark.spacy_transformers
def test_settings_can_be_overridden_when_loading(make_nlp, tmp_path):
    make_nlp("shared").to_disk(tmp_path)
    override = {
        "components.transformer.model.overflow": "windows",
        "components.sbert.model.normalize": True,
    }
    doc = spacy.load(tmp_path, config=override)("the cat sat on a mat he is eating food " * 6)
    assert not doc._.sbert_truncated
    assert doc.vector_norm == pytest.approx(1.0)


def test_threads_may_come_first(tiny_bert):
    """A server's first requests arrive together, on weights that load lazily."""
    nlp = one_pipe(tiny_bert)
    with ThreadPoolExecutor(6) as pool:
        vectors = list(pool.map(lambda _: nlp("The cat sat.").vector, range(6)))
    assert all(numpy.array_equal(vector, vectors[0]) for vector in vectors)


def new_shim(folder, **settings):
    return TransformerShim(str(folder), TransformerConfig(**settings))


def test_slow_tokenizer_survives(tiny_bert):
    slow = {"tokenizer_config": {"use_fast": False}}
    shim = new_shim(tiny_bert, **slow)
    again = new_shim("gone", **slow).from_bytes(shim.to_bytes())
    assert isinstance(again.tokenizer, BertTokenizer)
    assert again.tokenizer.tokenize("he cannot") == shim.tokenizer.tokenize("he cannot")
    assert again.from_bytes(again.to_bytes()).settings == shim.settings, (
        "the second generation, too"
    )


def test_saved_state(tiny_bert):
    """It names no place of this machine; no file leaves its folder, and the settings are there."""
    shim = new_shim(tiny_bert)
    shim.load()
    shim.settings = replace(shim.settings, name="org/name")
    shim.config._name_or_path = "org/name"
    data = shim.to_bytes()
    assert b"/tmp/" not in data
    assert str(tiny_bert).encode() not in data
    whole = srsly.msgpack_loads(data)["files"]
    for name in ("../evil.txt", "/etc/evil", "sub/file"):
        with pytest.raises(ValueError, match="damaged: it names the file"):
            new_shim("x").from_bytes(srsly.msgpack_dumps({"files": {**whole, name: b"evil"}}))
    del whole[SETTINGS_FILE]
    with pytest.raises(ValueError, match="damaged"):
        new_shim("x").from_bytes(srsly.msgpack_dumps({"files": whole}))


@pytest.mark.parametrize("encoder", SHARING)
def test_copy_has_weights_and_optimizer_keys_of_its_own(make_nlp, encoder):
    model = make_nlp(encoder).get_pipe("transformer").model
    model.initialize()
    model, copied = encoder_of(model), encoder_of(model.copy())
    assert isinstance(copied, SpanTransformer)
    assert copied.get_dim("nO") == 16
    assert copied.attrs["has_transformer"]
    assert copied.shim.id != model.shim.id
    assert copied.shim.name == model.shim.name
    for (_, a), (_, b) in zip(
        model.shim.network.named_parameters(), copied.shim.network.named_parameters(), strict=True
    ):
        assert a is not b
        assert numpy.array_equal(a.detach().numpy(), b.detach().numpy())


def test_encoder_decoders_are_refused(tmp_path, tiny_bert):
    folder = shutil.copytree(tiny_bert, tmp_path / "bart")
    (folder / "config.json").write_text(json.dumps({"model_type": "bart", "d_model": 8}))
    with pytest.raises(ValueError, match="is an encoder with a decoder"):
        one_pipe(folder)("text")
