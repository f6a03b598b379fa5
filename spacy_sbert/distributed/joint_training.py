"""Updates and evaluations of a pipeline that several ranks train together."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spacy.language import Language
from spacy.training import Example
from thinc.api import Model

from ..models.spans import members
from .checkpoint import content_of
from .torch_distributed import TorchDistributed


class JointTraining:
    """Updates and evaluates a pipeline on all ranks; with one rank, as the pipeline itself does.

    Each update learns from the rank's part of a batch, and sums the gradients of the encoders.
    Heads have those of the whole batch already, because each rank computes its loss. Rank 0 gives
    all its weights, and evaluates for all.
    """

    def __init__(self, nlp: Language, ranks: TorchDistributed):
        self._nlp = nlp
        self._ranks = ranks
        self._step = 0
        self.pipes: list[Any] = []
        if ranks.size == 1:
            return
        config = nlp.config["training"]
        self.pipes, upstream = _trained(nlp, config["frozen_components"], ranks.size)
        if config["accumulate_gradient"] != 1:
            raise ValueError(
                f"training.accumulate_gradient is {config['accumulate_gradient']}, but "
                f"{ranks.size} ranks need 1. For batches larger than memory take "
                "spacy-sbert.CachedMultipleNegativesRankingLoss.v1."
            )
        self._encoders = [*upstream, *(pipe.model.get_ref("encoder") for pipe in self.pipes)]
        self._models = [*upstream, *(pipe.model for pipe in self.pipes)]
        ranks.broadcast_parameters(self._models)
        for pipe in self.pipes:
            pipe.peers = ranks

    def close(self) -> None:
        """Let the pipes train alone again."""
        for pipe in self.pipes:
            pipe.peers = None

    def update(self, examples: Sequence[Example], **settings: Any) -> dict[str, float]:
        """Learn from a batch, which must be the same on all ranks.

        Settings are those of Language.update.
        """
        if self._ranks.size == 1:
            return self._nlp.update(examples, **settings)
        batch = list(examples)
        if not self._ranks.agree([content_of(batch)]):
            raise ValueError(
                f"The ranks have different batches in step {self._step}. Set training.seed (it is "
                f"{self._nlp.config['training']['seed']}), give all ranks the same files, and "
                "shuffle with a seed."
            )
        for pipe in self.pipes:
            self._check_shares(batch, pipe)
        share = self._ranks.share(batch)
        losses = self._nlp.update(share, **settings)
        for pipe in self.pipes:
            # It has counted those of its share itself
            pipe.examples_seen += len(batch) - len(share)
        self._ranks.sum_gradients(self._encoders)
        self._step += 1
        return losses

    def _check_shares(self, batch: Sequence[Example], pipe: Any) -> None:
        """Refuse a batch that leaves a rank without an example for a pipe."""
        size = self._ranks.size
        has_members = [bool(members(example.predicted, pipe.spans_key)) for example in batch]
        for rank in range(size):
            if not any(has_members[rank::size]):
                raise ValueError(
                    f"A batch of {len(batch)} examples leaves rank {rank} without one for "
                    f"'{pipe.name}', with members in doc.spans['{pipe.spans_key}']. Set a larger "
                    f"size in [training.batcher], or take fewer ranks than {size}."
                )

    def evaluate(self, evaluate: Callable[[], Any]) -> Any:
        """Return the result of a function, which only rank 0 calls, on all ranks."""
        if self._ranks.size == 1:
            return evaluate()
        if not self._ranks.agree_on_weights(self._models):
            raise ValueError(
                f"The ranks have different weights after step {self._step}. Set system.seed and "
                "training.seed, and give all ranks the same files, versions and kind of machine."
            )
        # A reader that shuffles must not leave the other ranks behind
        state = random.getstate()
        scores = evaluate() if self._ranks.is_first else None
        random.setstate(state)
        return self._ranks.gather_objects(scores)[0]


def _trained(nlp: Language, frozen: Sequence[str], size: int) -> tuple[list[Any], list[Model]]:
    """Return the `sbert` pipes that are trained, and the models of the components upstream."""
    trained: dict[str, Any] = {}
    for name, pipe in nlp.pipeline:
        if name not in frozen and getattr(pipe, "is_trainable", False):
            trained[name] = pipe
    pipes = {name: pipe for name, pipe in trained.items() if getattr(pipe, "takes_peers", False)}
    upstream = _upstream(trained, pipes)
    others = trained.keys() - pipes.keys() - upstream.keys()
    if not others and pipes:
        return list(pipes.values()), list(upstream.values())
    given = ", ".join(sorted(others)) or "nothing"
    names = ", ".join(nlp.pipe_names) or "none"
    raise ValueError(
        f"{size} ranks cannot train {given} together: expected `sbert` pipes and the transformers "
        f"they listen to, the pipeline has {names}. Name other trainable components in "
        "training.frozen_components, or train them on one rank."
    )


def _upstream(trained: Mapping[str, Any], pipes: Mapping[str, Any]) -> dict[str, Model]:
    """Return the models of components to which `sbert` pipes listen, and no other trained ones."""
    upstream: dict[str, Model] = {}
    for name, component in trained.items():
        listeners = trained.keys() & set(getattr(component, "listening_components", ()))
        if listeners and listeners <= pipes.keys():
            upstream[name] = component.model
    return upstream
