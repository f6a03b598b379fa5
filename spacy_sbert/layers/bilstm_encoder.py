"""A bidirectional LSTM over the tokens of each Doc, whose states are those of the Doc alone."""

from collections.abc import Callable
from typing import Annotated, cast

import numpy
import torch
from pydantic import Field
from spacy.util import registry
from thinc.api import ArgsKwargs, Model, PyTorchShim, torch2xp, xp2torch
from thinc.types import Floats2d
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from ..errors.checks import Width, bad_setting, check_weights, validated

Encode = Model[list[Floats2d], list[Floats2d]]
Depth = Annotated[int, Field(ge=1, le=20)]


@registry.architectures("spacy-sbert.BiLSTMEncoder.v1")
@validated
def bilstm_encoder(width: Width = 256, depth: Depth = 1) -> Encode:
    """Read the tokens of each Doc from both ends, and no padding.

    y_t = [LSTM(x_1 .. x_t); LSTM(x_n .. x_t)]

    spacy.TorchBiLSTMEncoder.v1 pads Docs to the longest of a batch, and its backward half begins in that padding: there
    the states of a Doc depend on the Docs beside it.

    width (int): of x and of y, half of it for each direction. depth (int): how many such layers, at most 20.
    Input: x, float (tokens, width) of each Doc. Output: y, the same.
    RAISES (ValueError): for an odd width, or one that takes more than 1 GB.
    SOURCE: Graves and Schmidhuber 2005; Conneau et al. 2017 (InferSent), section 3.2.1.
    """
    if width % 2:
        raise ValueError(bad_setting("width", width, "an even number, half of it for each direction"))
    check_weights("width", width, 4 * width, width)
    lstm = PackedLSTM(width, width // 2, depth, bidirectional=True)
    return Model("bilstm_encoder", forward, dims={"nI": width, "nO": width}, shims=[PyTorchShim(lstm)])


class PackedLSTM(torch.nn.LSTM):
    """An LSTM over sequences that stand one after another: tokens, float (tokens, width), and the length of each."""

    def forward(self, tokens: torch.Tensor, lengths: list[int]) -> torch.Tensor:  # type: ignore[override]
        states, _ = super().forward(pack_sequence(tokens.split(lengths), enforce_sorted=False))
        return torch.cat(unpack_sequence(states))


def forward(
    model: Encode, inputs: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats2d]]]:
    xp, lengths = model.ops.xp, [len(tokens) for tokens in inputs]
    if not any(lengths):
        return inputs, lambda d_states: d_states
    borders = numpy.cumsum(lengths)[:-1].tolist()
    shim = cast(PyTorchShim, model.shims[0])
    tokens = xp2torch(xp.concatenate(inputs), requires_grad=is_train, device=shim.device)
    given = ArgsKwargs((tokens, [length for length in lengths if length]), {})  # an empty sequence cannot be packed
    states, backprop = shim(given, is_train)

    def backprop_tokens(d_states: list[Floats2d]) -> list[Floats2d]:
        gradient = xp2torch(xp.concatenate(d_states), device=shim.device)
        d_given = backprop(ArgsKwargs((states,), {"grad_tensors": gradient}))
        return xp.split(torch2xp(d_given.args[0]), borders)

    return xp.split(torch2xp(states), borders), backprop_tokens
