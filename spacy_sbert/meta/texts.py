"""What an `sbert_meta` pipe answers of texts, and of Docs and their parts, as `sbert` does."""

from collections.abc import Iterable, Sequence, Sized
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy
from spacy.tokens import Doc, Span, Token
from thinc.api import get_current_ops

from ..errors.checks import Positive, validated
from ..errors.notices import Notices
from ..errors.progress import progress_of
from ..errors.texts import Text, checked_texts
from ..hooks import doc_vectors
from ..hooks.in_pipeline import InPipeline
from ..similarity.similarities import Similarities
from ..vectors.cuts import CutCounter
from .errors import Errors
from .estimator import MetaEmbedding
from .habits import MetaHabits
from .members import Member

if TYPE_CHECKING:
    import torch


class MetaTexts(Similarities):
    """From texts to meta-embeddings; see SentenceMeta."""

    name: str
    members: list[Member]
    estimator: MetaEmbedding
    _in_pipeline: InPipeline
    _notices: Notices[CutCounter]

    def notify(self, message: str) -> None:
        """Warn of something about the vectors of the pipe, once."""
        self._notices.once(message)

    @overload
    def encode(self, texts: Iterable[Text], *, convert_to_tensor: Literal[True], **options: Any) -> "torch.Tensor": ...

    @overload
    def encode(
        self,
        texts: Iterable[Text],
        *,
        window: int = ...,
        progress: bool = ...,
        prompt_name: str | None = ...,
        show_progress_bar: bool | None = ...,
        batch_size: int | None = ...,
        device: "str | torch.device | None" = ...,
        output_value: Literal["sentence_embedding"] = ...,
        precision: Literal["float32"] = ...,
        normalize_embeddings: bool = ...,
        convert_to_tensor: Literal[False] = ...,
        convert_to_numpy: bool = ...,
    ) -> numpy.ndarray: ...

    @validated
    def encode(
        self,
        texts: Iterable[Text],
        *,
        window: Positive = 1000,
        progress: bool = False,
        prompt_name: str | None = None,
        **habits: Any,
    ) -> Any:
        """The vectors of texts, each the one that `nlp(text).vector` is where this pipe answers it.

        The members, which may be any functions of Docs, are given Docs that do not stay.

        texts (Iterable): n texts, see SentenceBert.encode.
        window (int): texts that are worked on together. progress (bool): whether to show a progress bar.
        prompt_name (None): the members have their own. habits: as of SentenceBert.encode.
        RETURNS (float32 (n, width)): in the order of the texts; zeros for a text that has none.
        RAISES (TypeError): if what is given is not text, or the members decide on it. (ValueError): if the pipe is in
            no pipeline.
        """
        given = habits if prompt_name is None else {**habits, "prompt_name": prompt_name}
        theirs = MetaHabits.of(given, get_current_ops())
        nlp = self._in_pipeline.nlp
        if nlp is None or self.name not in nlp.pipe_names:
            raise ValueError(Errors.META_NOT_IN_PIPELINE.format(name=self.name))
        names, checked = nlp.pipe_names, checked_texts(texts)
        total = len(texts) if isinstance(texts, Sized) else None
        with nlp.select_pipes(enable=names[: names.index(self.name) + 1]):
            docs = nlp.pipe(checked, batch_size=theirs.window(window))
            shown = progress or bool(theirs.show_progress_bar)
            docs = progress_of(docs, total=total, shown=shown, unit="texts")
            rows = [doc_vectors.vector(doc, self.name) for doc in docs]
            rows_or_empty = rows or [doc_vectors.vector(nlp(""), self.name)]  # which has the width
            vectors = numpy.array(rows_or_empty, dtype="float32")
        return theirs.form(vectors[: len(rows)])

    def vector(self, obj: Doc | Span | Token) -> numpy.ndarray:
        """The meta-embedding of any Doc, Span or Token, also of one that is not a row, from the members' vectors of it.

        RETURNS (float32 (width,)). RAISES (ValueError): if a member has no vector of it.
        """
        doc = doc_vectors.doc_of(obj)
        return self._combine(self.member_vectors([doc[obj.i : obj.i + 1] if isinstance(obj, Token) else obj]))[0]

    def member_vectors(self, stretches: Sequence[Doc | Span]) -> list[numpy.ndarray]:
        """The members' vectors, not normalised: J arrays, float32 (n, d_j).

        RAISES (ValueError): if a member left none, or a number in one is not finite.
        """
        views = [member.vectors(stretches) for member in self.members]
        for member, view in zip(self.members, views, strict=True):
            bad = numpy.flatnonzero(~numpy.isfinite(view).all(axis=1))
            if len(bad):
                text = stretches[int(bad[0])].text[:50]
                raise ValueError(Errors.META_NOT_FINITE_TEXT.format(name=member.name, text=text))
        return views

    def _combine(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        if not self.estimator.needs_fit and not self.estimator.widths_:
            self.estimator.fit(views, [member.name for member in self.members])  # now their widths are known
        return self.estimator.transform(views).astype("float32")
