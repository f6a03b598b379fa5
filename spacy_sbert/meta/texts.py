"""What an `sbert_meta` pipe answers of texts, and of Docs and their parts, as `sbert` does."""

from collections.abc import Iterable, Sequence, Sized
from typing import Any, Literal, Unpack, overload

import numpy
import torch
from spacy.tokens import Doc, Span, Token
from thinc.api import get_current_ops

from ..errors.checks import Positive, validated
from ..errors.notices import Notices
from ..errors.progress import progress_of
from ..errors.texts import Text, checked_texts
from ..hooks import doc_vectors
from ..hooks.in_pipeline import InPipeline
from ..similarity.similarities import Similarities
from ..vectors.arguments import EncodeOptions, check_device, check_form, unit_vectors
from ..vectors.cuts import CutCounter
from .errors import Errors
from .estimator import MetaEmbedding
from .members import Member


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
    def encode(
        self,
        texts: Iterable[Text],
        *,
        convert_to_tensor: Literal[True],
        prompt_name: str | None = ...,
        **options: Unpack[EncodeOptions],
    ) -> torch.Tensor: ...

    @overload
    def encode(
        self,
        texts: Iterable[Text],
        *,
        convert_to_tensor: Literal[False] = ...,
        prompt_name: str | None = ...,
        **options: Unpack[EncodeOptions],
    ) -> numpy.ndarray: ...

    @validated
    def encode(
        self,
        texts: Iterable[Text],
        *,
        window: Positive = 1000,
        progress: bool = False,
        prompt_name: str | None = None,
        batch_size: Positive | None = None,
        show_progress_bar: bool | None = None,
        normalize_embeddings: bool = False,
        convert_to_tensor: bool = False,
        convert_to_numpy: bool = True,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
        precision: Literal["float32"] = "float32",
        device: str | torch.device | None = None,
    ) -> Any:
        """Return the meta-embeddings of texts, each equal to `nlp(text).vector` if this pipe answers it.

        The members, which may be any functions of Docs, are given Docs that do not stay.

        texts (Iterable): n texts, see SentenceBert.encode.
        window (int): texts that are worked on together. progress (bool): whether to show a progress bar.
        prompt_name (None): the members have their own. For the other arguments see SentenceBert.encode.
        RETURNS (float32 (n, width)): in the order of the texts; zeros for a text that has none.
        RAISES (TypeError, ValueError): if a text is not text, a prompt is given, or the pipe is in no pipeline.
        """
        check_device(device, get_current_ops())
        check_form(convert_to_numpy=convert_to_numpy, convert_to_tensor=convert_to_tensor)
        if prompt_name is not None:
            raise ValueError(Errors.META_PROMPT.format(given=prompt_name))
        nlp = self._in_pipeline.nlp
        if nlp is None or self.name not in nlp.pipe_names:
            raise ValueError(Errors.META_NOT_IN_PIPELINE.format(name=self.name))
        names, checked = nlp.pipe_names, checked_texts(texts)
        total = len(texts) if isinstance(texts, Sized) else None
        with nlp.select_pipes(enable=names[: names.index(self.name) + 1]):
            docs = nlp.pipe(checked, batch_size=min(window, batch_size or window))
            shown = progress or bool(show_progress_bar)
            rows = [
                doc_vectors.vector(doc, self.name) for doc in progress_of(docs, total=total, shown=shown, unit="texts")
            ]
            vectors = numpy.array(
                rows or [doc_vectors.vector(nlp(""), self.name)], dtype="float32"
            )  # which has the width
        vectors = vectors[: len(rows)]
        if normalize_embeddings:
            vectors = unit_vectors(vectors)
        return torch.from_numpy(vectors) if convert_to_tensor else vectors

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
