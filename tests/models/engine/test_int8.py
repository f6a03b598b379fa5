"""precision = "int8": how ranges are found and kept, what is rounded by them, and where it is
something else.
"""

from dataclasses import replace

import numpy
import pytest
import spacy
import torch
from helpers.pipelines import make_pipeline, reloaded
from helpers.small_models import PACKED, batch_of, by_window, make_model, make_rows, make_window
from srsly import cloudpickle
from thinc.api import Adam

from spacy_sbert.bulk import encode_file
from spacy_sbert.models.engine import torch_backend
from spacy_sbert.models.engine.bert_families import (
    ATTENTION_OUTPUT,
    INTERMEDIATE,
    LINEARS,
    OUTPUT,
    layers_of,
)
from spacy_sbert.models.engine.int8 import MIN_COSINE, calibrate, int8_bert, read_calibration
from spacy_sbert.models.engine.packed_bert import PackedBert
from spacy_sbert.models.engine.torch_backend import (
    CALIBRATION_FILE,
    TorchBackendCache,
    resolve_precision,
)
from spacy_sbert.models.private_attributes import has_int8_product
from spacy_sbert.pipeline.digest import pipeline_digest

needs_int8 = pytest.mark.skipif(
    not has_int8_product(), reason="needs PyTorch's int8 products, and AVX-512 VNNI"
)
TEXTS = ["A man is eating food.", "the dog cannot", "a b c d e f", "man.", "the food, a dog"] * 3


def windows_of(lengths, seed=0):
    return batch_of(
        lengths, [each for i, n in enumerate(lengths) for each in make_window(n, 1, seed + i)[0]]
    )


@pytest.fixture
def quick(monkeypatch):
    """Whatever the CPU has beside them, int8 products are the quickest."""
    monkeypatch.setattr(torch_backend, "has_int8_product", lambda: True)
    monkeypatch.setattr(torch_backend, "uses_amx", lambda: False)


@pytest.fixture
def make_pipe(make_nlp, quick):
    def make(encoder="own", **model):
        nlp = make_pipeline(make_nlp, encoder, precision="int8", **model)
        return nlp, nlp.get_pipe("sbert")

    return make


def shim_of(sbert):
    return sbert.text_encoder().model.shim


@pytest.mark.parametrize("name", PACKED)
def test_ranges_are_those_of_what_hugging_face_gives_its_layers(name):
    model = make_model(name)
    wordpieces = windows_of([9, 5, 20, 3, 8, 1, 8])
    found = calibrate(model, wordpieces)
    seen = [{part: [] for part in LINEARS} for _ in layers_of(model)]
    for parts, lists in zip(layers_of(model), seen, strict=True):
        for part in LINEARS:
            parts.get(part, parts["attention.self.query"]).register_forward_hook(
                lambda _, given, __, own=lists[part]: own.append(given[0][0])
            )
    starts = numpy.cumsum(wordpieces.lengths) - wordpieces.lengths
    for start, length in zip(starts, wordpieces.lengths, strict=True):
        ids = torch.from_numpy(wordpieces.ids[start : start + length])[None]
        with torch.no_grad():
            model(input_ids=ids, attention_mask=torch.ones_like(ids))
    for part in LINEARS:
        given = [torch.cat(lists[part]) for lists in seen]
        expected = torch.stack([torch.stack([rows.amin(0), rows.amax(0)]) for rows in given])
        assert torch.allclose(found.ranges[part], expected, atol=1e-4, rtol=1e-4)
    assert found.n_wordpieces == 54
    assert 0.9 < found.lowest_cosine < 1


def lowest_cosine(engine, exact):
    """Of the mean state of a window."""
    pairs = zip(by_window(engine, make_rows()), by_window(exact, make_rows()), strict=True)
    return min(
        torch.cosine_similarity(given.float().mean(0), expected.mean(0), dim=0)
        for given, expected in pairs
    )


@pytest.fixture
def outlying():
    """A model of which one number that is narrowed in the last layer is far greater than all
    others.
    """
    model = make_model("bert")
    last = layers_of(model)[-1]
    with torch.no_grad():
        last[INTERMEDIATE].bias[3] = 400.0
        last[OUTPUT].weight[:, 3] /= 100
        last[OUTPUT].bias -= 400 * last[OUTPUT].weight[:, 3]
    return model


def test_products_that_do_not_bear_it_are_left_out(outlying):
    windows = windows_of([20] * 40, seed=1)
    found = calibrate(outlying, windows)
    plain = calibrate(make_model("bert"), windows)
    place = len(layers_of(outlying)) - 1, LINEARS.index(OUTPUT)
    assert plain.is_rounded[place]
    assert not found.is_rounded[place]
    assert found.lowest_cosine >= MIN_COSINE
    everywhere = replace(found, is_rounded=torch.ones_like(found.is_rounded))
    if has_int8_product():
        engines = [int8_bert(outlying, each, torch.float32) for each in (found, everywhere)]
        lowest = [lowest_cosine(engine, PackedBert(outlying, torch.float32)) for engine in engines]
        assert lowest[0] > 0.985
        assert lowest[1] < 0.95


@needs_int8
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["bert", "mpnet", "distilbert"])
def test_near_the_model(name, dtype):
    """Weights are drawn at random here, and layers have 16 numbers, so that roundings do not cancel
    out.
    """
    model = make_model(name)
    encoder = int8_bert(model, calibrate(model, windows_of([20] * 40, seed=1)), dtype)
    assert lowest_cosine(encoder, PackedBert(model, torch.float32)) > 0.97


@pytest.mark.parametrize(
    ("has_product", "has_amx"), [(True, False), (True, True), (False, False), (False, True)]
)
def test_elsewhere_it_is_auto(monkeypatch, has_product, has_amx):
    monkeypatch.setattr(torch_backend, "has_int8_product", lambda: has_product)
    monkeypatch.setattr(torch_backend, "uses_amx", lambda: has_amx)
    is_quick = has_product and not has_amx
    assert resolve_precision("int8", "cpu") == (
        "int8" if is_quick else resolve_precision("auto", "cpu")
    )


@needs_int8
@pytest.mark.parametrize("encoder", ["own", pytest.param("shared", marks=pytest.mark.slow)])
def test_from_the_first_texts_that_are_enough(make_pipe, monkeypatch, encoder):
    monkeypatch.setattr(torch_backend, "ENOUGH", 60)
    nlp, sbert = make_pipe(encoder)
    shim = shim_of(sbert)
    before = nlp(TEXTS[0]).vector
    assert shim.calibration is None
    assert shim.precision == "int8"
    plain = TorchBackendCache().backend_of(shim.network, resolve_precision("auto", "cpu"))
    assert type(shim.backend().layers[0].linears[ATTENTION_OUTPUT]) is type(
        plain.layers[0].linears[ATTENTION_OUTPUT]
    )
    list(nlp.pipe(TEXTS, batch_size=len(TEXTS)))
    found = shim.calibration
    after = nlp(TEXTS[0]).vector
    assert found.n_wordpieces >= 60
    assert not numpy.array_equal(after, before)
    assert numpy.dot(after, before) / numpy.linalg.norm(after) / numpy.linalg.norm(before) > 0.97
    list(nlp.pipe(TEXTS[::-1] * 2, batch_size=len(TEXTS)))
    assert shim.calibration is found
    assert numpy.array_equal(nlp(TEXTS[0]).vector, after)


@needs_int8
@pytest.mark.parametrize("encoder", ["shared", pytest.param("own", marks=pytest.mark.slow)])
def test_ranges_are_saved_with_the_pipeline(make_pipe, tmp_path, encoder):
    nlp, sbert = make_pipe(encoder)
    sbert.calibrate(TEXTS)
    expected = nlp(TEXTS[0]).vector
    ranges = shim_of(sbert).calibration.digest()
    copies = [reloaded(nlp, tmp_path), cloudpickle.loads(cloudpickle.dumps(nlp))]
    for copied in copies:
        assert shim_of(copied.get_pipe("sbert")).calibration.digest() == ranges
        assert numpy.array_equal(copied(TEXTS[0]).vector, expected)
    copied = shim_of(sbert).copy()
    assert copied.calibration.digest() == ranges
    assert copied.backends is not shim_of(sbert).backends
    assert pipeline_digest(copies[0]) == pipeline_digest(nlp)
    sbert.calibrate(TEXTS[:2])
    assert pipeline_digest(copies[0]) != pipeline_digest(nlp)


@needs_int8
def test_training_forgets_them(make_pipe, examples):
    nlp, sbert = make_pipe()
    sbert.calibrate(TEXTS)
    # As `spacy train` evaluates without averages
    with nlp.use_params({}):
        assert shim_of(sbert).calibration is not None
    nlp.update(examples(nlp), sgd=Adam(0.02))
    assert shim_of(sbert).calibration is None
    sbert.calibrate(TEXTS)
    with torch.no_grad():
        # Behind its back
        shim_of(sbert).network.pooler.dense.weight.add_(1)
    assert shim_of(sbert).calibration is None


@needs_int8
def test_other_vectors_are_not_mixed(make_pipe, tmp_path):
    """Files that are gone on with must have been made by the same ranges, and processes must not
    have their own.
    """
    _, sbert = make_pipe()
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf8")
    given = tmp_path / "texts.txt", tmp_path / "vectors.npy"
    with pytest.raises(ValueError, match=r"sbert\.calibrate\(texts\)"):
        encode_file(sbert, *given)
    with pytest.raises(ValueError, match=r"sbert\.calibrate\(texts\)"):
        sbert.encode(TEXTS, n_process=2)
    sbert.calibrate(TEXTS)
    encode_file(sbert, *given)
    assert numpy.array_equal(numpy.load(given[1]), sbert.encode(TEXTS))
    alone = sbert.encode(TEXTS[:1])
    together = sbert.encode([TEXTS[0], *TEXTS[1:5], "zz " * 20])
    assert numpy.allclose(alone[0], together[0], atol=2e-2 * abs(alone).max())


def test_what_cannot_be_calibrated(make_pipe, make_nlp):
    _, sbert = make_pipe()
    with pytest.raises(ValueError, match="no texts to calibrate on"):
        sbert.calibrate([])
    with pytest.raises(TypeError):
        sbert.calibrate("a text")
    with pytest.raises(ValueError, match="transformer"):
        make_nlp("tokens").get_pipe("sbert").calibrate(TEXTS)
    model = make_model("distilbert", activation="silu")
    with pytest.raises(ValueError, match="class DistilBertModel is not calibrated"):
        TorchBackendCache().calibrate(model, windows_of([3]))
    with pytest.raises(ValueError, match=r"precision.*'int8'"):
        spacy.blank("xx").add_pipe("sbert_reranker", config={"model": {"precision": "int8"}})


def test_damaged_ranges(tmp_path):
    model = make_model("bert")
    path = tmp_path / CALIBRATION_FILE
    found = calibrate(model, windows_of([9, 5]))
    path.write_bytes(found.to_bytes())
    assert read_calibration(path, model).digest() == found.digest()
    mix = found.ranges[ATTENTION_OUTPUT]
    others = {name: each for name, each in found.ranges.items() if name != ATTENTION_OUTPUT}
    damaged = [
        {**others, ATTENTION_OUTPUT: mix[:, :, 1:].contiguous()},
        {**others, ATTENTION_OUTPUT: mix * torch.nan},
        others,
    ]
    for data in (
        *(replace(found, ranges=ranges).to_bytes() for ranges in damaged),
        found.to_bytes()[:-9],
    ):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=CALIBRATION_FILE.replace(".", r"\.")):
            read_calibration(path, model)


def test_as_many_windows_as_are_enough():
    model = make_model("bert")
    windows = windows_of([9, 5, 20, 3])
    for enough, expected in ((1, 9), (9, 9), (10, 14), (0, 37), (99, 37)):
        assert calibrate(model, windows, enough=enough).n_wordpieces == expected
    assert (
        calibrate(model, windows, enough=14).digest()
        == calibrate(model, windows_of([9, 5])).digest()
    )
