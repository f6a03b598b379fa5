"""What an `sbert_reranker` pipe does with texts: scores of pairs, and ranks."""

from collections.abc import Iterable, Sized
from typing import Any, Literal, NoReturn, overload

import numpy
import torch
from thinc.util import to_numpy

from ..errors.checks import Positive, check
from ..errors.habits import devices, not_ours, refuse
from ..errors.notices import Notices
from ..errors.progress import progress_bar
from ..errors.texts import NOT_SEVERAL, Text, one_column
from .cross_encoder import CrossEncoder
from .cuts import PairCuts
from .errors import Errors, Warnings
from .habits import RANK_DONE, RANK_WAY, Activation, ScoreHabits
from .texts import WINDOW, Ranked, TextT, read_windows
from .tokenizer import Pair


class Ranking:
    """The use of a cross-encoder for texts; see SentenceReranker, which trains it."""

    name: str
    model: CrossEncoder
    _notices: Notices[PairCuts]

    @overload
    def score_pairs(
        self, pairs: Iterable[tuple[Text, Text]], *, convert_to_tensor: Literal[True], **options: Any
    ) -> torch.Tensor: ...

    @overload
    def score_pairs(
        self,
        pairs: Iterable[tuple[Text, Text]],
        *,
        progress: bool = ...,
        show_progress_bar: bool | None = ...,
        activation_fn: Activation | None = ...,
        apply_softmax: bool = ...,
        batch_size: int | None = ...,
        device: str | torch.device | None = ...,
        convert_to_tensor: Literal[False] = ...,
        convert_to_numpy: bool = ...,
    ) -> numpy.ndarray: ...

    def score_pairs(self, pairs: Iterable[tuple[Text, Text]], *, progress: bool = False, **habits: Any) -> Any:
        """The scores of pairs of texts, such as query and passage.

        pairs (Iterable[tuple]): n pairs of str, Doc or Span, from wherever; they are read window by window.
        progress (bool): whether to show a progress bar.
        habits: show_progress_bar, activation_fn, apply_softmax, batch_size, convert_to_tensor and convert_to_numpy, as
            in `CrossEncoder.predict` of sentence-transformers; the fewer pairs in a batch, the more slowly.
        RETURNS (float32 (n,), or (n, outputs) of several): on the CPU, in the order of the pairs.
        RAISES (TypeError): if one is not a pair of texts, or for another argument. (ValueError): if a score is not
            finite.
        """
        theirs = ScoreHabits.of(habits, self.model.ops)
        total, shown = len(pairs) if isinstance(pairs, Sized) else None, progress or bool(theirs.show_progress_bar)
        found = []
        with self._notices.one_for_cuts(), progress_bar(total, shown=shown, unit="pairs") as bar:
            for window in read_windows(pairs, min(WINDOW, theirs.batch_size or WINDOW)):
                found.append(self._score_window(window, theirs))
                bar.update(len(window))
        scores = numpy.concatenate(found) if found else self._score_window([], theirs)
        return theirs.form(scores[:, 0] if scores.shape[1] == 1 else scores)

    def rank(
        self,
        query: Text,
        texts: Iterable[TextT],
        k: int | None = None,
        *,
        progress: bool = False,
        show_progress_bar: bool | None = None,
        activation_fn: Activation | None = None,
        top_k: int | None = None,
        batch_size: int | None = None,
        return_documents: bool = True,
        device: str | torch.device | None = None,
        **habits: NoReturn,
    ) -> list[Ranked[TextT]]:
        """Order texts by how well they answer a query.

        query (str, Doc or Span): stands first in every pair.
        texts (Iterable): str, Docs or Spans, such as those that a search found, or a column, see SentenceBert.encode.
        k (int): how many to return, by default all. progress (bool): as of score_pairs.
        show_progress_bar, activation_fn, top_k, batch_size, return_documents, device: as in `CrossEncoder.rank` of
            sentence-transformers. Of fewer than top_k texts all are returned; each result has its text.
        RETURNS (list[Ranked]): the best first, the earlier first of equal ones.
        RAISES (TypeError): if a single text is given, or for another argument. (ValueError): if there are fewer than k
            texts, or the cross-encoder has several outputs.
        """
        refuse("rank", {**habits, "device": device}, RANK_WAY, {**RANK_DONE, "device": devices(self.model.ops)})
        if not return_documents:
            raise not_ours(
                "rank", "return_documents = False", "each result is Ranked(text, score, index); leave it out"
            )
        if k is not None and top_k is not None:
            raise not_ours("rank", "top_k beside k", "give one of them")
        check("top_k", top_k, Positive | None)
        texts = _checked(texts)
        if k is not None and not (isinstance(k, int | numpy.integer) and 1 <= k <= len(texts) and k is not True):
            raise ValueError(Errors.RERANKER_COUNT.format(given=k, most=len(texts)))
        self.model.shim.load()
        if (given := self.model.shim.config.num_labels) > 1:
            raise ValueError(Errors.RERANKER_SEVERAL_OUTPUTS.format(name=self.name, given=given))
        pairs = [(query, text) for text in texts]
        shown = progress or bool(show_progress_bar)
        scores = self.score_pairs(pairs, progress=shown, activation_fn=activation_fn, batch_size=batch_size)
        order = numpy.argsort(-scores, kind="stable")[: k or top_k].tolist()
        return [Ranked(texts[i], float(scores[i]), i) for i in order]

    def load(self) -> None:
        """Load the cross-encoder, which is otherwise loaded with the first pair.

        RAISES (OSError, ValueError): if it is not found, or damaged.
        """
        self.model.shim.load()

    def _score_window(self, pairs: list[Pair], habits: ScoreHabits) -> numpy.ndarray:
        """The scores, float32 (n, outputs)."""
        found = self.model.predict(pairs)
        if pairs and self.model.shim.has_new_head:
            self._notices.once(Warnings.RERANKER_NEW_HEAD.format(name=self.name))
        cuts = self._notices.cuts
        cuts.count, cuts.total, cuts.limit = cuts.count + found.n_cut, cuts.total + len(pairs), self._limit
        bad = numpy.flatnonzero(~numpy.isfinite(to_numpy(found.logits)).all(axis=1))
        if len(bad):
            first, second = (text[:50] for text in pairs[int(bad[0])])
            raise ValueError(Errors.RERANKER_NOT_FINITE.format(name=self.name, first=first, second=second))
        return to_numpy(habits.scores(self.model, found.logits))

    @property
    def _limit(self) -> int | None:
        return self.model.pair_tokenizer.limit if self.model.shim.is_loaded else None


def _checked(texts: Iterable[TextT]) -> list[TextT]:
    if isinstance(texts, NOT_SEVERAL):
        raise TypeError(Errors.RERANKER_ONE_TEXT.format(given=repr(texts)[:100]))
    return list(one_column(texts))
