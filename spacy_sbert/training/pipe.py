"""What the pipes that learn from pairs, or are measured on them, have in common."""

from collections.abc import Callable, Iterable

from spacy.training import Example, validate_examples
from thinc.api import Model

from ..spans import members
from .errors import Errors
from .peers import ALONE, Peers

Scores = dict[str, float | None]


class PairPipe:
    """A pipe whose examples stand in doc.spans[spans_key].

    scorer (Callable): what to report of pairs; None for nothing.
    examples_seen (int), loss_seen (float): in training, for reporting speed, and the sum of the loss.
    takes_peers (bool): whether it can learn from a batch of which other processes have a part.
    peers (Peers): in training, those processes.
    """

    name: str
    model: Model
    spans_key: str
    scorer: Callable[..., Scores] | None
    examples_seen = 0
    loss_seen = 0.0
    takes_peers = False
    peers: Peers = ALONE

    def score(self, examples: Iterable[Example], **kwargs: object) -> Scores:
        """Score the pairs among the examples with the pipe's scorer.

        RETURNS (dict): the scores; under the pipe's name if another pipe answers `doc.vector`.
        RAISES (ValueError): if the scorer returns no dict, or raises a KeyError, which spaCy would report as E900.
        """
        if self.scorer is None:
            return {}
        examples = self._scored(list(examples))
        try:
            scores = self.scorer(examples, name=self.name, spans_key=self.spans_key, **kwargs)
        except KeyError as error:
            raise ValueError(Errors.SCORER_KEY.format(name=self.name, given=error, key=self.spans_key)) from error
        if not isinstance(scores, dict):
            raise ValueError(Errors.SCORER_NO_DICT.format(name=self.name, given=type(scores).__name__))
        return scores if self._answers(examples) else {f"{self.name}_{key}": value for key, value in scores.items()}

    def learns_from(self, example: Example) -> bool:
        """Whether an example has members."""
        return bool(members(example.predicted, self.spans_key))

    def _found_members(self, examples: Iterable[Example]) -> str:
        """Return where else members are, if no predicted Doc has them, for a message."""
        on_reference = any(members(example.reference, self.spans_key) for example in examples)
        return " (example.reference has them: make the predicted Doc by reference.copy())" if on_reference else ""

    def _scored(self, examples: list[Example]) -> list[Example]:
        """The examples that are scored."""
        return examples

    def _answers(self, examples: list[Example]) -> bool:
        """Whether scores without a name are those of this pipe."""
        raise NotImplementedError

    def _received(
        self, examples: Iterable[Example], losses: dict[str, float] | None
    ) -> tuple[list[Example], dict[str, float]]:
        """The examples of an update, checked and counted, and where its losses are noted."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        self.examples_seen += len(examples)
        return examples, losses
