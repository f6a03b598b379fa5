"""Part of the `sbert_reranker` component: score pairs of texts, and rank, without making Docs."""

from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, TypeVar, Unpack, cast, overload

import numpy
import torch
from spacy.util import minibatch
from thinc.api import torch2xp, xp2torch
from thinc.types import Floats2d
from thinc.util import to_numpy

from ..errors import Warnings, WarnOnce
from ..losses._common import softmax
from ..models.encoded_docs import TruncationCounter
from ..models.surroundings import undisturbed
from ..pipeline.call_options import ScoreCall, ScoreOptions, check_device
from ..progress import progress_bar
from ..validation import Positive, Text, one_column, validated, with_fields_of
from .cross_encoder import SOFTMAX_OF_ONE, CrossEncoder
from .pair_tokenizer import Pair
from .pairs import TextPair, TextPairs, is_pair, several_pairs, texts_of

# Pairs that are tokenised and sorted together
WINDOW = 4096
Activation = Callable[[torch.Tensor], torch.Tensor]
TextT = TypeVar("TextT", bound=Text)


class _PairOptions(ScoreOptions, total=False):
    activation_fn: Activation | None
    apply_softmax: bool
    prompt_name: str | None
    prompt: str | None


@dataclass(frozen=True)
class Ranked(Generic[TextT]):
    """One of the texts that were ranked.

    text: as it was given. score: that of its pair with the query. index: its place among those
        given.
    """

    text: TextT
    score: float
    index: int


def best_first(texts: Sequence[TextT], scores: numpy.ndarray, k: int | None) -> list[Ranked[TextT]]:
    """Return the k texts of the highest scores, the earlier first of equal ones; None for all."""
    order = numpy.argsort(-scores, kind="stable")[:k].tolist()
    return [Ranked(texts[i], float(scores[i]), i) for i in order]


class PairScoring:
    """Part of an `sbert_reranker` pipe that scores pairs of texts without making Docs."""

    model: CrossEncoder
    name: str
    # Counts cut pairs by PairTruncation
    _notices: WarnOnce

    @overload
    def score_pairs(
        self, pairs: TextPair, *, convert_to_tensor: bool = ..., **options: Unpack[_PairOptions]
    ) -> Any: ...

    @overload
    def score_pairs(
        self, pairs: TextPairs, *, convert_to_tensor: Literal[True], **options: Unpack[_PairOptions]
    ) -> torch.Tensor: ...

    @overload
    def score_pairs(
        self,
        pairs: TextPairs,
        *,
        convert_to_tensor: Literal[False] = ...,
        **options: Unpack[_PairOptions],
    ) -> numpy.ndarray: ...

    @validated
    @with_fields_of(ScoreCall, "call")
    def score_pairs(
        self,
        pairs: TextPairs | TextPair,
        *,
        activation_fn: Activation | None = None,
        apply_softmax: bool = False,
        prompt_name: str | None = None,
        prompt: str | None = None,
        call: ScoreCall,
    ) -> Any:
        """Return the scores of pairs of texts, such as query and passage.

        pairs (Iterable[tuple]): n pairs of str, Doc or Span; an array of shape (n, 2), or a table
            of two columns; or a single pair. Iterators are read window by window.
        progress (bool): whether to show a progress bar.
        show_progress_bar, activation_fn, apply_softmax, prompt_name, prompt, batch_size,
            convert_to_tensor, convert_to_numpy, device: as in `CrossEncoder.predict` of
            sentence-transformers. A prompt is put before the first text of each pair; by default
            that of the folder, "" is none. activation_fn takes logits, float32 (n, outputs), and
            replaces the activation of the cross-encoder; batch_size is the most pairs that are
            scored together, the fewer the more slowly; device must be the device of the pipeline.
        RETURNS (float32 (n,), or (n, outputs) of several): on the CPU, in the order of the pairs.
            Of a single pair its score, a scalar or (outputs,).
        RAISES (TypeError): if one is not a pair of texts. (ValueError): if a score is not finite,
            activation_fn gives another shape, or softmax of a single output is asked for.

        Example:
            find_reranker(nlp).score_pairs([("Who eats?", "A man."), ("Who eats?", "It rains.")])

        """
        call.check(self.model.ops)
        if prompt_name is not None:
            if prompt is not None:
                raise ValueError(
                    f"Got both prompt_name = {prompt_name!r} and prompt = {prompt!r}: give one of "
                    "them."
                )
            prompt = self.model.prompt(prompt_name)
        score = partial(
            self._score, activation_fn=activation_fn, apply_softmax=apply_softmax, prompt=prompt
        )
        is_single = is_pair(pairs)
        given = [pairs] if is_single else several_pairs(pairs)
        total = len(given) if isinstance(given, Sized) else None
        stream = (texts_of(pair, number) for number, pair in enumerate(given))
        parts = []
        bar = progress_bar(total, shown=call.shows_progress, unit="pairs")
        with self._notices.one_for_cuts(), bar as shown:
            for chunk in minibatch(stream, call.n_together(WINDOW)):
                parts.append(score(chunk))
                shown.update(len(chunk))
        if not parts:
            # For the number of outputs
            parts.append(score([]))
        scores = numpy.concatenate(parts)
        if scores.shape[1] == 1:
            scores = scores[:, 0]
        return call.returned(scores, is_single=is_single)

    @validated
    def rank(
        self,
        query: Text,
        texts: Iterable[TextT],
        k: int | None = None,
        *,
        progress: bool = False,
        show_progress_bar: bool | None = None,
        activation_fn: Activation | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        top_k: Positive | None = None,
        batch_size: Positive | None = None,
        return_documents: Literal[True] = True,
        device: str | torch.device | None = None,
    ) -> list[Ranked[TextT]]:
        """Order texts by how well they answer a query.

        query (str, Doc or Span): the first text of every pair.
        texts (Iterable): str, Docs or Spans, such as those that a search found, or a column, see
            SentenceBert.encode.
        k (int): how many to return, by default all. progress (bool): as of score_pairs.
        show_progress_bar, activation_fn, prompt_name, prompt, top_k, batch_size, return_documents,
            device: as in `CrossEncoder.rank` of sentence-transformers. Of fewer than top_k texts
            all are returned; each result has its text.
        RETURNS (list[Ranked]): the best first, the earlier first of equal ones.
        RAISES (TypeError): if a single text is given. (ValueError): if there are fewer than k
            texts, both k and top_k are given, or the cross-encoder has several outputs.

        Example:
            best = find_reranker(nlp).rank("Who eats?", ["It rains.", "A man eats."], k=1)[0]
            best.text

        """
        check_device(device, self.model.ops)
        if k is not None and top_k is not None:
            raise ValueError(
                f"Cannot rank with k = {k} and top_k = {top_k}: expected one of them. Leave one "
                "out."
            )
        texts = list(one_column(texts))
        if k is not None and not 1 <= k <= len(texts):
            raise ValueError(
                f"Cannot rank with k = {k}: expected at least 1 and at most {len(texts)}, the "
                "texts."
            )
        self.model.shim.load()
        n_outputs = self.model.shim.n_logits
        if n_outputs > 1:
            raise ValueError(
                f"Cannot rank with '{self.name}', it gives {n_outputs} numbers a pair: expected "
                "one. See score_pairs."
            )
        scores = self.score_pairs(
            [(query, text) for text in texts],
            progress=progress or bool(show_progress_bar),
            activation_fn=activation_fn,
            prompt_name=prompt_name,
            prompt=prompt,
            batch_size=batch_size,
        )
        return best_first(texts, scores, k or top_k)

    @undisturbed()
    def _score(
        self,
        pairs: list[Pair],
        *,
        activation_fn: Activation | None = None,
        apply_softmax: bool = False,
        prompt: str | None = None,
    ) -> numpy.ndarray:
        """Return the scores, float32 (n, outputs); prompt (str): None for the default one."""
        predicted = self.model.predict(self.model.prompted(pairs, prompt))
        if pairs and self.model.shim.has_new_head:
            self._notices.once(Warnings.RERANKER_NEW_HEAD.format(name=self.name))
        self._notices.cuts.add_rows(len(pairs), predicted.n_cut, self._limit)
        logits = predicted.logits
        finite = numpy.isfinite(to_numpy(logits)).all(axis=1)
        if not finite.all():
            first, second = pairs[int(finite.argmin())]
            raise ValueError(
                f"The score that '{self.name}' gives to the pair ('{first[:50]}', "
                f"'{second[:50]}') is not finite. Train again."
            )
        if activation_fn is None:
            scores = self.model.scores(logits)
        else:
            scores = _apply(activation_fn, logits)
        if apply_softmax:
            if scores.shape[1] == 1:
                raise ValueError(SOFTMAX_OF_ONE)
            scores = softmax(scores)
        return to_numpy(scores)

    @property
    def _limit(self) -> int | None:
        if not self.model.shim.is_loaded:
            return None
        return self.model.pair_tokenizer.limit

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the labels of the outputs, if there are several.

        None before the weights are loaded.
        """
        if not self.model.shim.is_loaded:
            return ()
        return self.model.shim.labels


class PairTruncation(TruncationCounter):
    """Counts the pairs that were longer than a cross-encoder's limit, for one warning for many."""

    @property
    def message(self) -> str:
        return Warnings.RERANKER_TRUNCATED.format(
            count=self.count, total=self.total, limit=self.limit
        )


def _apply(activation_fn: Activation, logits: Floats2d) -> Floats2d:
    """Return the scores that a function of PyTorch makes of logits.

    RAISES (ValueError): if their shape is another.
    """
    with torch.no_grad():
        scores = activation_fn(xp2torch(logits))
    if not torch.is_tensor(scores) or scores.shape != logits.shape:
        made = tuple(scores.shape) if torch.is_tensor(scores) else type(scores).__name__
        raise ValueError(
            f"activation_fn made {made} of logits of shape {logits.shape}: expected a tensor of "
            "the same shape."
        )
    return cast(Floats2d, torch2xp(scores.float()))
