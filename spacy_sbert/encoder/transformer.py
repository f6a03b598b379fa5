"""A transformer over rows of Docs: a drop-in for the TransformerModel of spacy-transformers."""

from collections.abc import Callable
from typing import Any, cast

import numpy
import torch
from spacy.tokens import Doc
from spacy_transformers.data_classes import FullTransformerBatch
from spacy_transformers.layers import TransformerModel
from spacy_transformers.layers.transformer_model import _convert_transformer_inputs, _convert_transformer_outputs
from thinc.api import Model
from thinc.layers.pytorchwrapper import forward as pytorch_forward
from transformers.file_utils import ModelOutput

from ..errors.checks import NonNegative, check
from ..files.sealed import SealedModel
from ..spans import SpanGetter
from .engine.batch import encode_spans
from .engine.inference import REFERENCE
from .engine.packed_bert import is_packable
from .engine.runner import run
from .engine.windows import spread
from .errors import Errors
from .forks import use_one_thread_in_forks
from .output import RowsOutput
from .prompts import Prompts
from .replace_listeners import replace_listener, replace_listener_cfg
from .shim import EncoderShim
from .wordpieces import OVERFLOWS, Wordpieces, WordpieceTokenizer


class EncoderModel(SealedModel, TransformerModel):
    """Encode the rows of Docs with a Hugging Face encoder that is loaded on first use.

    Beyond the model of spacy-transformers it looks a name up in installed packages too, knows the length limit that
    the encoder was trained for, and cuts a row that is too long so that it keeps its final special token.

    name (str): a folder or a name, see resolve.
    get_spans (Callable): from Docs to the Spans that are its rows.
    overflow (str): "truncate" or "windows", for rows longer than the limit.
    max_batch_items (int): the most wordpieces in a forward pass in use, see run; 0 for what suits the device.
    prompts (Prompts): what may be put before texts; None where other components read the states, too.
    For the others see EncoderShim.
    """

    def __init__(
        self,
        name: str,
        get_spans: SpanGetter,
        *,
        overflow: str,
        max_batch_items: int = 0,
        prompts: Prompts | None = None,
        **shim_config: Any,
    ):
        if overflow not in OVERFLOWS:
            raise ValueError(Errors.UNKNOWN_OVERFLOW.format(given=overflow, expected=", ".join(OVERFLOWS)))
        use_one_thread_in_forks()
        check("max_batch_items", max_batch_items, NonNegative)
        if max_batch_items and shim_config.get("precision") == REFERENCE:
            raise ValueError(Errors.REFERENCE_BATCH.format(given=max_batch_items))
        self.overflow = overflow  # no attr: those are saved, and would win over the config when loaded
        self.max_batch_items = max_batch_items
        self.prompts = prompts or Prompts(default_name="")
        if overflow == "windows" and not self.prompts.include:
            raise ValueError(Errors.PROMPT_WINDOWS)
        self._tokenizer: tuple[Any, WordpieceTokenizer] | None = None
        own = {"name": name, "get_spans": get_spans, "overflow": overflow, "max_batch_items": max_batch_items}
        self._config = {**own, "prompts": prompts, **shim_config}
        huggingface: Model = Model(
            "hf-pytorch",
            pytorch_forward,
            attrs={"convert_inputs": _convert_transformer_inputs, "convert_outputs": _convert_transformer_outputs},
            shims=[EncoderShim(name, **shim_config)],
            dims={"nI": None, "nO": None},
        )
        Model.__init__(
            self,
            "transformer",
            forward,
            init=init,
            layers=[huggingface],
            dims={"nO": None},
            attrs={
                "get_spans": get_spans,
                "name": name,
                "has_transformer": False,
                "replace_listener": replace_listener,
                "replace_listener_cfg": replace_listener_cfg,
            },
        )

    @property
    def shim(self) -> EncoderShim:
        return self.layers[0].shims[0]  # type: ignore[return-value]

    @property
    def wordpiece_tokenizer(self) -> WordpieceTokenizer:
        """The encoder's tokenizer, for whole batches."""
        settings, tokenizer = self.shim.load(), self.shim._hfmodel.tokenizer
        if self._tokenizer is None or self._tokenizer[0] is not tokenizer:
            include = self.prompts.include
            own = WordpieceTokenizer(tokenizer, settings, self.overflow, include_prompt=include)
            self._tokenizer = tokenizer, own
        return self._tokenizer[1]

    def prompt(self, prompt: str | None = None) -> str:
        """What is put before texts: the prompt that is given, or else the default one of the config or the folder."""
        return self.prompts.find(self.shim.load()) if prompt is None else prompt

    def to_dict(self) -> dict:
        """The model's state; loads the weights first, so that its width is saved with them."""
        load(self)
        return super().to_dict()

    def copy(self) -> "EncoderModel":
        """A copy with weights of its own."""
        copied = EncoderModel(**self._config)
        copied.layers[0].shims[0] = self.shim.copy()
        if self.has_dim("nO"):
            copied.set_dim("nO", self.get_dim("nO"))
        copied.attrs["has_transformer"] = self.attrs["has_transformer"]
        return copied


def init(model: Model, X: Any = None, Y: Any = None) -> None:
    load(model)


def load(model: Model) -> EncoderShim:
    """Load the weights, unless they are."""
    shim = cast(EncoderShim, model.layers[0].shims[0])
    shim.load()
    if not model.has_dim("nO"):
        model.set_dim("nO", shim._hfmodel.transformer.config.hidden_size)
    model.attrs["has_transformer"] = True
    return shim


def forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[FullTransformerBatch, Callable]:
    shim = load(model)
    spans = model.attrs["get_spans"](docs)
    if not any(spans):
        return FullTransformerBatch.empty(len(docs)), lambda d_output: docs
    encoder = cast(EncoderModel, model)
    spans, wordpieces, batch, align = encode_spans(encoder.wordpiece_tokenizer, spans, encoder.prompt())
    if not is_train and is_packable(shim._model):
        output = _run(shim, wordpieces, encoder.max_batch_items)
        return RowsOutput(spans=spans, wordpieces=batch, model_output=output, align=align), lambda d_output: docs
    model_output, backprop_huggingface = model.layers[0](batch, is_train)

    def backprop(d_output: FullTransformerBatch) -> list[Doc]:
        backprop_huggingface(d_output.model_output)
        return docs

    return RowsOutput(spans=spans, wordpieces=batch, model_output=model_output, align=align), backprop


@torch.no_grad()
def _run(shim: EncoderShim, wordpieces: Wordpieces, budget: int) -> ModelOutput:
    """The output of the Hugging Face model, with zeros at padding: states and, if it has a pooler, what that makes."""
    n_rows, row_width = len(wordpieces.lengths), int(wordpieces.lengths.max())
    states = torch.zeros(n_rows * row_width, shim._model.config.hidden_size, device=shim.device)
    rows = numpy.arange(n_rows) * row_width
    with shim.encoding() as encoder:
        for part in run(encoder, wordpieces, budget=budget):
            states[torch.from_numpy(spread(rows[part.windows], part.lengths)).to(shim.device)] = part.states
        output = ModelOutput(last_hidden_state=states.view(n_rows, row_width, -1))
        if shim._model.pooler is not None:  # which has no dropout
            output["pooler_output"] = shim._model.pooler(output["last_hidden_state"])
    return output
