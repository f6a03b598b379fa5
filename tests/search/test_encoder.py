"""The identity of an encoder: what changes it, and what does not."""

import pytest
import spacy

from spacy_sbert.search import identify
from spacy_sbert.upstream import find_encoder


def identity(nlp):
    return identify(nlp.get_pipe("sbert"))


@pytest.mark.parametrize("encoder", ["own", "shared"])
def test_use_saving_and_copies_change_nothing(make_nlp, encoder, tiny_bert, tmp_path):
    nlp = make_nlp(encoder)
    first = identity(nlp)
    assert (first.name, first.width, len(first.digest)) == (str(tiny_bert), 16, 64)
    nlp("A man is eating food, and the cat sat on the mat, and the dog ran, ran, ran, ran, ran, ran and ran.")
    nlp.to_disk(tmp_path / "nlp")
    assert identity(nlp) == identity(spacy.load(tmp_path / "nlp")) == identity(make_nlp(encoder)) == first


def test_own_and_shared_are_one_encoder(make_nlp):
    assert identity(make_nlp("own")) == identity(make_nlp("shared"))


@pytest.mark.parametrize("setting", [{"pooling": "cls"}, {"normalize": True}, {"overflow": "windows"}])
def test_other_settings_are_another_encoder(make_nlp, setting):
    assert identity(make_nlp(model=setting)).digest != identity(make_nlp()).digest


def test_training_makes_another_encoder(make_nlp, examples):
    nlp = make_nlp()
    before = identity(nlp)
    nlp.initialize(lambda: examples(nlp))
    assert identity(nlp) == before
    nlp.update(examples(nlp), sgd=nlp.create_optimizer())
    after = identity(nlp)
    assert after.digest != before.digest and after.width == before.width


def test_another_vocabulary(make_nlp):
    nlp = make_nlp()
    before = identity(nlp)
    find_encoder("sbert", nlp.get_pipe("sbert").model).shim._hfmodel.tokenizer.add_tokens(["newword"])
    assert identity(nlp).digest != before.digest
