"""What versions of Transformers do differently."""

from types import SimpleNamespace

import pytest

from spacy_sbert.models import transformers_versions
from spacy_sbert.models.transformers_versions import (
    GLOBAL_ATTENTION,
    LOCAL_ATTENTION,
    modernbert_attention,
    modernbert_rope,
)

PLAIN = {"rope_type": "default"}
LINEAR = {"rope_type": "linear", "factor": 2.0}


@pytest.mark.parametrize(
    ("is_4", "given", "expected"),
    [
        (True, {"global_rope_theta": 5.0, "local_rope_theta": 3.0}, [(PLAIN, 5.0), (PLAIN, 3.0)]),
        (True, {"global_rope_theta": 5.0, "local_rope_theta": None}, [(PLAIN, 5.0), (PLAIN, 5.0)]),
        (
            True,
            {"global_rope_theta": 5.0, "local_rope_theta": 3.0, "rope_scaling": LINEAR},
            [(LINEAR, 5.0), (LINEAR, 3.0)],
        ),
        (
            False,
            {
                "rope_parameters": {
                    GLOBAL_ATTENTION: {**PLAIN, "rope_theta": 7.0},
                    LOCAL_ATTENTION: {**LINEAR, "rope_theta": 2.0},
                }
            },
            [(PLAIN, 7.0), (LINEAR, 2.0)],
        ),
    ],
    ids=["4", "4_with_one_base", "4_scaled", "5"],
)
def test_rotary_positions_of_modernbert(monkeypatch, is_4, given, expected):
    monkeypatch.setattr(transformers_versions, "_IS_4", is_4)
    found = modernbert_rope(SimpleNamespace(**given))
    assert found == {
        name: {**parameters, "rope_theta": base}
        for name, (parameters, base) in zip(
            (GLOBAL_ATTENTION, LOCAL_ATTENTION), expected, strict=True
        )
    }


@pytest.mark.parametrize(
    ("is_4", "layer", "expected"),
    [
        (
            True,
            SimpleNamespace(attn=SimpleNamespace(local_attention=(-1, -1))),
            GLOBAL_ATTENTION,
        ),
        (True, SimpleNamespace(attn=SimpleNamespace(local_attention=(64, 64))), LOCAL_ATTENTION),
        (False, SimpleNamespace(attention_type=LOCAL_ATTENTION), LOCAL_ATTENTION),
    ],
)
def test_attention_of_layers_of_modernbert(monkeypatch, is_4, layer, expected):
    monkeypatch.setattr(transformers_versions, "_IS_4", is_4)
    assert modernbert_attention(layer) == expected
