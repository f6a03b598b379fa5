"""What `CrossEncoder.predict` and `CrossEncoder.rank` of sentence-transformers take."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from thinc.api import torch2xp, xp2torch
from thinc.types import Floats2d

from ..errors.checks import Positive
from ..errors.habits import Habits
from ..losses.parts.cross_entropy import softmax
from .cross_encoder import CrossEncoder
from .errors import Errors

Activation = Callable[[torch.Tensor], torch.Tensor]
SCORE_WAY = {
    "chunk_size": "pairs are read window by window, in this process; leave it out",
    "device": "call spacy.require_gpu() before the pipeline is loaded",
    "max_length": "set max_length in the config of the model",
    "num_workers": "pairs are tokenised in threads; leave it out",
    "pool": "pairs are scored in this process; nlp.pipe(docs, n_process = 2) scores Docs that are pairs",
    "processing_kwargs": "set max_length in the config of the model",
    "prompt": "write it before the texts of the pairs",
    "prompt_name": "write the prompt before the texts of the pairs",
}
RANK_WAY = SCORE_WAY | {
    "apply_softmax": "softmax of the single score of a pair is always 1",
    "convert_to_numpy": "the score of each result is a float",
    "convert_to_tensor": "the score of each result is a float",
    "documents": "give the texts as second argument, or as texts",
}
SCORE_DONE = {"num_workers": (0,)}
RANK_DONE = SCORE_DONE | {"apply_softmax": (False,), "convert_to_numpy": (True,), "convert_to_tensor": (False,)}


@dataclass(frozen=True)
class ScoreHabits(Habits):
    """What was given to `score_pairs`; see Habits.

    activation_fn (Callable): in place of the cross-encoder's activation: from logits, float32 (n, outputs) on the
        device, to as many scores. apply_softmax (bool): whether softmax over the outputs follows.
    batch_size (int): the most pairs that are scored together; None for no other limit.
    """

    FUNCTION = "score_pairs"
    OUR_WAY = SCORE_WAY
    DONE = SCORE_DONE

    activation_fn: Activation | None = None
    apply_softmax: bool = False
    batch_size: Positive | None = None

    def scores(self, model: CrossEncoder, logits: Floats2d) -> Floats2d:
        """Logits (n, outputs) -> scores of the same shape.

        RAISES (ValueError): if activation_fn gives something else, or softmax was asked for of one output.
        """
        found = model.scores(logits) if self.activation_fn is None else _applied(self.activation_fn, logits)
        if not self.apply_softmax:
            return found
        if logits.shape[1] == 1:
            raise ValueError(Errors.RERANKER_SOFTMAX_OF_ONE)
        return softmax(found)


def _applied(activation: Activation, logits: Floats2d) -> Floats2d:
    with torch.no_grad():
        found = activation(xp2torch(logits))
    shape = tuple(found.shape) if torch.is_tensor(found) else type(found).__name__
    if shape != logits.shape:
        raise ValueError(Errors.RERANKER_ACTIVATION_SHAPE.format(given=shape, expected=logits.shape))
    return cast(Floats2d, torch2xp(found.float()))


AS_CONFIGURED = ScoreHabits()
