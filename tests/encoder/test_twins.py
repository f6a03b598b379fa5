"""Copies of a model's modules on the same weights: never in training mode, and one for each thread."""

import copy
import pickle

import pytest
import torch
from transformers import DistilBertConfig, DistilBertModel

from spacy_sbert.encoder.engine.twins import Twins


def make_model():
    config = DistilBertConfig(
        vocab_size=50, dim=16, n_layers=2, n_heads=2, hidden_dim=32, initializer_range=0.5, dropout=0.5
    )
    return DistilBertModel(config)


def states(model):
    with torch.no_grad():
        return model(torch.tensor([[3, 4, 5]])).last_hidden_state


def test_the_weights_are_shared_and_dropout_is_not():
    model, twins = make_model().train(), Twins()
    with twins.lend(model) as twin:
        assert all(own is other for own, other in zip(model.parameters(), twin.parameters(), strict=True))
        assert model.training and all(module.training for module in model.modules())
        assert not any(module.training for module in twin.modules())
        before = states(twin)
        assert torch.equal(before, states(twin)) and not torch.allclose(before, states(model), atol=1e-3)
        model.train(), model.transformer.layer[0].ffn.lin1.weight.data.mul_(-1)
        after = states(twin)
        assert not torch.allclose(before, after, atol=1e-3)
        assert torch.equal(after, states(model.eval()))


def test_each_of_several_at_a_time_has_modules_of_its_own():
    model, twins = make_model(), Twins()
    with twins.lend(model) as first, twins.lend(model) as second:
        assert first is not second
        assert not {id(module) for module in first.modules()} & {id(module) for module in second.modules()}
    with twins.lend(model) as again:
        assert again in (first, second)


def test_other_modules_or_weights_are_noticed():
    model, twins = make_model(), Twins()
    with twins.lend(model) as first:
        pass
    model.transformer.layer[1].ffn.lin1 = torch.nn.Linear(16, 32)
    with twins.lend(model) as second:
        assert second is not first and torch.equal(states(second), states(model.eval()))
    model.transformer.layer[1].ffn.lin1.weight = torch.nn.Parameter(torch.ones(32, 16))
    with twins.lend(model) as third:
        assert third is not second and torch.equal(states(third), states(model.eval()))
    model.config.output_hidden_states = True
    with twins.lend(model) as fourth:
        assert fourth is third and len(fourth(torch.tensor([[3]])).hidden_states) == 3


def test_after_an_error_it_is_not_lent_again():
    model, twins = make_model(), Twins()
    with pytest.raises(ZeroDivisionError), twins.lend(model) as first:
        raise ZeroDivisionError
    with twins.lend(model) as second:
        assert second is not first


def test_copies_begin_without():
    model, twins = make_model(), Twins()
    with twins.lend(model) as twin:
        pass
    for other in (copy.deepcopy(twins), pickle.loads(pickle.dumps(twins))):
        with other.lend(model) as found:
            assert found is not twin
