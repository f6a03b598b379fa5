"""What an `sbert_reranker` pipe does with texts: scores of pairs, and ranks."""

from collections.abc import Iterable, Sized
from typing import Any, Literal, Unpack, overload

import numpy
import torch
from thinc.util import to_numpy

from ..errors.checks import Positive, validated
from ..errors.notices import Notices
from ..errors.progress import progress_bar
from ..errors.texts import NOT_SEVERAL, Text, one_column
from ..losses.parts.cross_entropy import softmax
from ..vectors.arguments import ScoreOptions, check_device, check_form
from .activation import Activation, apply_activation
from .cross_encoder import CrossEncoder
from .cuts import PairCuts
from .errors import Errors, Warnings
from .texts import WINDOW, Ranked, TextT, read_windows
from .tokenizer import Pair


class _PairOptions(ScoreOptions, total=False):
    activation_fn: Activation | None
    apply_softmax: bool


class Ranking:
    """The use of a cross-encoder for texts; see SentenceReranker, which trains it."""

    name: str
    model: CrossEncoder
    _notices: Notices[PairCuts]

    @overload
    def score_pairs(
        self,
        pairs: Iterable[tuple[Text, Text]],
        *,
        convert_to_tensor: Literal[True],
        **options: Unpack[_PairOptions],
    ) -> torch.Tensor: ...

    @overload
    def score_pairs(
        self,
        pairs: Iterable[tuple[Text, Text]],
        *,
        convert_to_tensor: Literal[False] = ...,
        **options: Unpack[_PairOptions],
    ) -> numpy.ndarray: ...

    @validated
    def score_pairs(
        self,
        pairs: Iterable[tuple[Text, Text]],
        *,
        progress: bool = False,
        show_progress_bar: bool | None = None,
        activation_fn: Activation | None = None,
        apply_softmax: bool = False,
        batch_size: Positive | None = None,
        convert_to_tensor: bool = False,
        convert_to_numpy: bool = True,
        device: str | torch.device | None = None,
    ) -> Any:
        """Return the scores of pairs of texts, such as query and passage.

        pairs (Iterable[tuple]): n pairs of str, Doc or Span, from wherever; they are read window by window.
        progress (bool): whether to show a progress bar.
        show_progress_bar, activation_fn, apply_softmax, batch_size, convert_to_tensor, convert_to_numpy, device: as in
            `CrossEncoder.predict` of sentence-transformers. activation_fn takes logits, float32 (n, outputs), and
            replaces the activation of the cross-encoder; batch_size is the most pairs that are scored together, the
            fewer the more slowly; device must be the device of the pipeline.
        RETURNS (float32 (n,), or (n, outputs) of several): on the CPU, in the order of the pairs.
        RAISES (TypeError): if one is not a pair of texts. (ValueError): if a score is not finite, activation_fn gives
            another shape, or softmax of a single output is asked for.
        """
        check_device(device, self.model.ops)
        check_form(convert_to_numpy=convert_to_numpy, convert_to_tensor=convert_to_tensor)
        total, shown = len(pairs) if isinstance(pairs, Sized) else None, progress or bool(show_progress_bar)
        found = []
        with self._notices.one_for_cuts(), progress_bar(total, shown=shown, unit="pairs") as bar:
            for window in read_windows(pairs, min(WINDOW, batch_size or WINDOW)):
                found.append(self._score_window(window, activation_fn, apply_softmax=apply_softmax))
                bar.update(len(window))
        if not found:
            found.append(self._score_window([], activation_fn, apply_softmax=apply_softmax))
        scores = numpy.concatenate(found)
        scores = scores[:, 0] if scores.shape[1] == 1 else scores
        return torch.from_numpy(scores) if convert_to_tensor else scores

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
        top_k: Positive | None = None,
        batch_size: Positive | None = None,
        return_documents: Literal[True] = True,
        device: str | torch.device | None = None,
    ) -> list[Ranked[TextT]]:
        """Order texts by how well they answer a query.

        query (str, Doc or Span): stands first in every pair.
        texts (Iterable): str, Docs or Spans, such as those that a search found, or a column, see SentenceBert.encode.
        k (int): how many to return, by default all. progress (bool): as of score_pairs.
        show_progress_bar, activation_fn, top_k, batch_size, return_documents, device: as in `CrossEncoder.rank` of
            sentence-transformers. Of fewer than top_k texts all are returned; each result has its text.
        RETURNS (list[Ranked]): the best first, the earlier first of equal ones.
        RAISES (TypeError): if a single text is given. (ValueError): if there are fewer than k texts, both k and top_k
            are given, or the cross-encoder has several outputs.
        """
        check_device(device, self.model.ops)
        if k is not None and top_k is not None:
            raise ValueError(Errors.RERANKER_TWO_COUNTS.format(k=k, top_k=top_k))
        texts = _checked(texts)
        if k is not None and not 1 <= k <= len(texts):
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

    def _score_window(
        self, pairs: list[Pair], activation_fn: Activation | None = None, *, apply_softmax: bool = False
    ) -> numpy.ndarray:
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
        if activation_fn is None:
            scores = self.model.scores(found.logits)
        else:
            scores = apply_activation(activation_fn, found.logits)
        if not apply_softmax:
            return to_numpy(scores)
        if scores.shape[1] == 1:
            raise ValueError(Errors.RERANKER_SOFTMAX_OF_ONE)
        return to_numpy(softmax(scores))

    @property
    def _limit(self) -> int | None:
        return self.model.pair_tokenizer.limit if self.model.shim.is_loaded else None


def _checked(texts: Iterable[TextT]) -> list[TextT]:
    if isinstance(texts, NOT_SEVERAL):
        raise TypeError(Errors.RERANKER_ONE_TEXT.format(given=repr(texts)[:100]))
    return list(one_column(texts))
