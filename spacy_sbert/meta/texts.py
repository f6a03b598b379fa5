"""What an `sbert_meta` pipe does with texts, as `sbert` does."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy

from ..errors.checks import Positive, validated
from ..errors.progress import progress_of
from ..hooks import hooks
from ..hooks.in_pipeline import InPipeline
from ..similarity.similarities import Similarities
from ..vectors.habits import Habits
from ..vectors.texts import checked_texts
from .errors import Errors

if TYPE_CHECKING:
    import torch


class MetaTexts(Similarities):
    """From texts to meta-embeddings; see SentenceMeta."""

    name: str
    _in_pipeline: InPipeline

    @overload
    def encode(self, texts: Iterable[str], *, convert_to_tensor: Literal[True], **options: Any) -> "torch.Tensor": ...

    @overload
    def encode(
        self,
        texts: Iterable[str],
        *,
        window: int = ...,
        progress: bool = ...,
        show_progress_bar: bool | None = ...,
        normalize_embeddings: bool = ...,
        convert_to_tensor: Literal[False] = ...,
        convert_to_numpy: bool = ...,
    ) -> numpy.ndarray: ...

    @validated
    def encode(self, texts: Iterable[str], *, window: Positive = 1000, progress: bool = False, **habits: Any) -> Any:
        """The vectors of texts, each the one that `nlp(text).vector` is where this pipe answers it.

        The members, which may be any functions of Docs, are given Docs that do not stay.

        texts (Iterable[str]): n texts, from wherever; they are read window by window.
        window (int): texts that are worked on together. progress (bool): whether to show a progress bar.
        habits: as of SentenceBert.encode.
        RETURNS (float32 (n, width)): in the order of the texts; zeros for a text that has none.
        RAISES (TypeError): if what is given is not text. (ValueError): if the pipe is in no pipeline.
        """
        theirs, nlp = Habits.of(habits), self._in_pipeline.nlp
        if nlp is None or self.name not in nlp.pipe_names:
            raise ValueError(Errors.META_NOT_IN_PIPELINE.format(name=self.name))
        names, total = nlp.pipe_names, len(texts) if isinstance(texts, Sequence) else None
        with nlp.select_pipes(enable=names[: names.index(self.name) + 1]):
            docs = nlp.pipe(checked_texts(texts), batch_size=window)
            shown = progress or bool(theirs.show_progress_bar)
            rows = [hooks.vector(doc, self.name) for doc in progress_of(docs, total=total, shown=shown, unit="texts")]
            vectors = numpy.array(rows or [hooks.vector(nlp(""), self.name)], dtype="float32")  # which has the width
        return theirs.form(vectors[: len(rows)])
