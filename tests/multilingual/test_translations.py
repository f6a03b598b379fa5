"""How often the nearest sentence of another language is the translation, and what is trained on."""

import gzip

import numpy
import pytest
import translations
from sentence_transformers.sentence_transformer.evaluation import TranslationEvaluator
from translations import LANGUAGES, dev_rows, interval, is_nearest, measure, table, training_rows


def test_nearest_by_hand():
    """By cosine, whatever the lengths; the two ways differ."""
    sources = numpy.array([[1.0, 0.0], [0.0, 3.0], [1.0, 1.0]])
    targets = numpy.array([[2.0, 0.1], [0.5, 1.0], [9.0, 1.0]])
    assert is_nearest(sources, targets).tolist() == [True, True, False]
    assert is_nearest(targets, sources).tolist() == [True, False, False]
    assert is_nearest(sources, sources).all()


class Encoder:
    """Gives texts the vectors of a table."""

    def __init__(self, vectors):
        self.vectors = vectors
        self.model_card_data = None

    def encode(self, sentences, **settings):
        return [self.vectors[text] for text in sentences]


def test_as_in_sentence_transformers():
    torch = pytest.importorskip("torch")
    rng = numpy.random.default_rng(5)
    sources = rng.normal(size=(40, 6))
    targets = sources + rng.normal(size=(40, 6))
    vectors = {f"s{i}": torch.tensor(vector) for i, vector in enumerate(sources)}
    vectors |= {f"t{i}": torch.tensor(vector) for i, vector in enumerate(targets)}
    evaluator = TranslationEvaluator([f"s{i}" for i in range(40)], [f"t{i}" for i in range(40)])
    evaluator.store_metrics_in_model_card_data = lambda *found: None
    expected = evaluator(Encoder(vectors))
    there, back = is_nearest(sources, targets).mean(), is_nearest(targets, sources).mean()
    assert there == pytest.approx(expected["src2trg_accuracy"])
    assert back == pytest.approx(expected["trg2src_accuracy"])
    assert 0 < there < 1 and there != back


def test_the_interval_of_an_accuracy_is_that_of_a_binomial():
    values = numpy.arange(1000) < 300
    low, high = interval(values)
    width = 1.96 * (0.3 * 0.7 / 1000) ** 0.5
    assert (low, high) == pytest.approx((0.3 - width, 0.3 + width), abs=0.003)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Made sentences, in the layout of the data."""
    monkeypatch.setenv("SPACY_SBERT_DATA", str(tmp_path))
    multi30k, tatoeba, sts = (
        tmp_path / name
        for name in ("multilingual/multi30k", "multilingual/tatoeba", "sts/STSBenchmark")
    )
    for folder in (multi30k, tatoeba, sts):
        folder.mkdir(parents=True)
    for part in ("train", "val"):
        for code in ("en", "de", "fr", "cs"):
            with gzip.open(multi30k / f"{part}.{code}.gz", "wt", encoding="utf8") as file:
                file.writelines(f"{part} {code} {i}\n" for i in range(10))
    for code in LANGUAGES:
        for side in (code, "eng"):
            text = "".join(f"{side} {i}\n" for i in range(20))
            (tatoeba / f"tatoeba.{code}-eng.{side}").write_text(text, encoding="utf8")
    lines = (f"a\tb\tc\td\t{i}\tdev eng {i}\tdev deu {i}\n" for i in range(5))
    (sts / "sts-dev.csv").write_text("".join(lines), encoding="utf8")


def test_each_caption_has_a_translation_in_turn(data):
    rows = training_rows(7)
    codes = ["de", "fr", "cs", "de", "fr", "cs", "de"]
    assert rows == [(f"train en {i}", f"train {code} {i}") for i, code in enumerate(codes)]
    rows = dev_rows(2)
    assert [label for _, label in rows] == [0, 1] * 4
    assert rows[2:4] == [("val de 0", 0), ("val de 1", 1)]


def test_the_figures_of_an_encoder_that_confuses_a_language(data, monkeypatch):
    """Numbers are its vectors, but in French that of the number behind."""
    monkeypatch.setattr(translations, "RESAMPLES", 100)

    def encode(texts):
        angles = [int(text.split()[-1]) + text.startswith("fra") for text in texts]
        return numpy.stack([numpy.cos(angles), numpy.sin(angles)], axis=1)

    found = measure(encode)
    for code in LANGUAGES:
        expected = 0 if code == "fra" else 100
        for way in ("to English", "from English"):
            assert found[code][way]["accuracy"] == expected
            assert found[code][way]["right"] == str(expected)[0] * 20
    lines = table(found, found, dict.fromkeys(LANGUAGES, 2.0)).splitlines()
    assert lines[2] == f"| German |{' 100.0 (100.0 to 100.0) |' * 4} 2.00 |"
    assert lines[3] == f"| French |{' 0.0 (0.0 to 0.0) |' * 4} 2.00 |"
