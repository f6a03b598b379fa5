"""The model tree of an `sbert` pipe: its encoder and its loss, saved, loaded and optimised as one."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Model, Optimizer

from ..encoder.shim import TransformerShim
from ..encoder.wordpiece_table import WordpieceTable
from ..files.sealed_states import SealedModel
from ..losses.by_name import saved_by_name
from ..vectors.encoded import EncodedDoc
from .shown import shown


class SentenceModel(SealedModel[list[Doc], list[EncodedDoc]]):
    """The tree, whose table, which is no shim, is read before it is saved, whether it was used or not."""

    def __repr__(self) -> str:
        return f"SentenceModel({shown(self)})"

    def to_bytes(self) -> bytes:
        for node in self.walk():
            if isinstance(node, WordpieceTable):
                node.load()
        return super().to_bytes()


def with_loss(encoder: Model[list[Doc], list[EncodedDoc]], loss: Model | None) -> Model[list[Doc], list[EncodedDoc]]:
    """Encode Docs with the encoder; the loss stands beside it, so that its head belongs to the same tree.

    encoder (Model): from Docs to one EncodedDoc each.
    loss (Model): a loss layer, None for an encoder that is not trained. Heads are initialised by the component, which
        knows their labels.
    """
    layers = [encoder] if loss is None else [encoder, loss]
    refs = {"encoder": encoder, "loss": loss, "pooling": encoder.get_ref("pooling")}
    return SentenceModel("sbert", forward, init=init, layers=layers, refs=refs)


def forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[EncodedDoc], Callable]:
    return model.layers[0](docs, is_train)


def init(model: Model, X: Any = None, Y: Any = None) -> None:
    model.get_ref("encoder").initialize(X=X)


def finish_update(model: Model, optimizer: Optimizer) -> None:
    """Update encoder and heads; a head's learn_rate_factor is a factor on the optimizer's learning rate."""
    encoder = model.get_ref("encoder")
    with ExitStack() as alone:  # another thread encodes before or after, with all layers or none as they were
        for node in encoder.walk():
            for shim in node.shims:
                if isinstance(shim, TransformerShim):  # it may be a stock one, after replace_listeners
                    alone.enter_context(shim.use.changing())
        encoder.finish_update(optimizer)
    loss = model.maybe_get_ref("loss")
    for node in [] if loss is None else loss.walk():
        factor = getattr(node, "learn_rate_factor", 1.0)
        for name in node.param_names:
            # Thinc keeps a gradient of zeros: Adam's momentum would move a head without examples all the same.
            if node.has_grad(name) and node.get_grad(name).any():
                key = (node.id, name)
                param, _ = optimizer(key, node.get_param(name), node.get_grad(name), lr_scale=factor)
                node.set_param(name, param)


def save_loss_by_name(nlp: Language, pipe: object) -> None:
    """Replace a loss of the user's own by LossByName in the config of a pipe.

    The saved pipeline can then be loaded in a process that does not import the code of the loss.
    """
    for name, found in nlp.components:
        if found is pipe:
            blocks = nlp.config.interpolate()["components"][name]
            config = nlp.get_pipe_config(name)
            config["loss"] = saved_by_name(config["loss"], blocks["loss"])
