"""The width of a meta-embedding: what there is to have, said early and with a remedy where more is asked for."""

import logging

import numpy
import pytest
import spacy
from made_views import SENTENCES, make_views

from spacy_sbert.meta import GCCA, SVD, CrossViewAutoencoder
from spacy_sbert.meta.component import fit_meta
from spacy_sbert.meta.methods import estimator_from_bytes


@pytest.fixture
def make_members(make_nlp, tiny_bert):
    """Members of widths 16, and 16 or less."""

    def make(width=0, **config):
        nlp = make_nlp()
        nlp.add_pipe("sbert", name="other", config={"model": {"name": str(tiny_bert), "truncate_dim": width}})
        nlp.add_pipe("sbert_meta", config=config)
        return nlp

    return make


def deficient(n=300):
    """Views 7 and 5 wide of 4 and 5 directions."""
    views = make_views(n=n)[:2]
    views[0] = (views[0][:, :4] @ numpy.random.default_rng(0).normal(size=(4, 7))).astype("f4").astype("f8")
    views[0][:, 4:] = views[0][:, :3]  # exactly, whatever the rounding
    return views


def test_the_default_is_what_there_is_and_is_saved():
    views = deficient()
    for estimator, width in ((GCCA(normalize=False), 7), (SVD(normalize=False), 7), (GCCA(), 7)):
        fitted = estimator.fit(views if not estimator.normalize else make_views()[:2])
        assert fitted.width == fitted.size_ == width and fitted.size is None
        assert fitted.transform(views).shape == (300, width)
        again = estimator_from_bytes(fitted.to_bytes())
        assert again.width == width and again.size is None
        assert numpy.array_equal(again.transform(views), fitted.transform(views))
    for kind in (SVD, GCCA):
        assert kind().fit([view[:4] for view in make_views()]).width == 3  # of 4 sentences, about their mean
    assert CrossViewAutoencoder(epochs=1).fit([view[:4] for view in make_views()]).width == 7


def test_the_remedies_of_messages_work():
    views = deficient()
    with pytest.raises(ValueError, match=r"size = 10: .* have only 9 directions to give on 300 sentences"):
        SVD(size=10, normalize=False).fit(views, ["a", "b"])
    assert SVD(size=9, normalize=False).fit(views).width == 9
    with pytest.raises(ValueError, match=r"member 'a' cannot be inverted with tau = 0.0: .* 4 directions, of the 7"):
        GCCA(tau=0.0, normalize=False).fit(views, ["a", "b"])
    assert GCCA(tau=0.1, normalize=False).fit(views).width == 7


def test_numbers_too_large_for_their_squares():
    views = [view.astype("f8") * 1e200 for view in make_views()]
    with pytest.raises(ValueError, match=r"too large for their squares\. Set normalize = true"):
        SVD(size=3, normalize=False).fit(views)
    assert SVD(size=3).fit(views).transform(views) == pytest.approx(SVD(size=3).fit(make_views()).transform(views))


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
    nlp, encoded = make_members(width, **config), []
    monkeypatch.setattr(nlp, "pipe", lambda *args, **kwargs: encoded.append(args) or iter(()))
    with pytest.raises(ValueError, match=message):
        fit_meta(nlp, "sbert_meta", lambda: SENTENCES[:n])
    assert not encoded


def test_fewer_directions_than_the_widest_member_are_logged(make_members, caplog, monkeypatch, tmp_path):
    monkeypatch.setattr(logging.getLogger("spacy"), "propagate", True)
    nlp = make_members(4, method="svd")
    with caplog.at_level(logging.WARNING, "spacy"):
        fit_meta(nlp, "sbert_meta", lambda: SENTENCES[:9])
    assert "'svd' the members of 'sbert_meta' have 8 directions to give, fewer than the 16" in caplog.text
    vector = nlp("A man.").vector
    assert vector.shape == (8,)
    nlp.to_disk(tmp_path)
    assert numpy.array_equal(spacy.load(tmp_path)("A man.").vector, vector)
    caplog.clear()
    fit_meta(make_members(method="svd", size=3), "sbert_meta", lambda: SENTENCES[:9])
    assert "directions" not in caplog.text


@pytest.mark.parametrize("normalize", [False, True])
def test_gcca_takes_the_largest_rho_whatever_their_sign(normalize):
    views = [rows[:, :width] for rows, width in zip(make_views(widths=(7, 7)), (7, 4), strict=True)]
    whole = GCCA(size=11, normalize=normalize).fit(views)
    assert whole.values_ == pytest.approx(-whole.values_[::-1], abs=1e-12)  # 4 pairs of canonical correlations
    assert (whole.values_[:4] > 1e-4).all() and whole.values_[4:7] == pytest.approx(numpy.zeros(3), abs=1e-12)
    for size in (4, 7, 9):
        narrow = GCCA(size=size, normalize=normalize).fit(views)
        assert narrow.values_ == pytest.approx(whole.values_[:size], abs=1e-12)
        assert (len(list(narrow.notes("it"))) > 0) == (size > 4)
    with pytest.raises(ValueError, match=r"size = 12: .* only 11 directions to give on 300 sentences"):
        GCCA(size=12).fit(views)
