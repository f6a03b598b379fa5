"""The sentence encoder's ear on a transformer that the pipeline shares."""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from spacy_transformers.data_classes import TransformerData
from spacy_transformers.layers.listener import TransformerListener
from thinc.api import Model

from .errors import Errors
from .forks import use_one_thread_in_forks


class SentenceListener(TransformerListener):
    """A TransformerListener that never makes up output: where the transformer left none, it says so.

    upstream_name (str): the name of the transformer component, "*" for any.
    grad_factor (float): factor on the gradient that goes upstream; 0 keeps the transformer as it is.
    """

    name = "sentence-listener"

    def __init__(self, upstream_name: str, grad_factor: float):
        super().__init__(upstream_name)
        self._func = forward
        self.transformer: Model | None = None  # the transformer's model, once the pipeline is known
        self.grad_factor = grad_factor  # no attr: those are saved, and would win over the config when loaded
        use_one_thread_in_forks()


def forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[TransformerData], Callable]:
    if not is_train or model._batch_id is None:  # type: ignore[attr-defined]
        return [_output_of(doc) for doc in docs], lambda d_datas: []  # frozen: nothing listens to the gradient
    model.verify_inputs(docs)  # type: ignore[attr-defined]
    grad_factor = model.grad_factor  # type: ignore[attr-defined]
    outputs, upstream = model._outputs, model._backprop  # type: ignore[attr-defined]

    def backprop(d_datas: list[TransformerData]) -> Any:
        for d_data in d_datas:
            d_data.model_output["last_hidden_state"] *= grad_factor
        # Before the step ends: then another thread may begin one, whose output would be forgotten.
        model._batch_id = model._outputs = model._backprop = None  # type: ignore[attr-defined]
        return upstream(d_datas)

    return outputs, backprop


def _output_of(doc: Doc) -> TransformerData:
    data = doc._.get("trf_data") if doc.has_extension("trf_data") else None
    if data is None:
        raise ValueError(Errors.NO_TRANSFORMER_OUTPUT.format(text=doc.text[:50]))
    if not isinstance(data, TransformerData):
        raise ValueError(Errors.CURATED_UPSTREAM.format(name=""))
    return data
