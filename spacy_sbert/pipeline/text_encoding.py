"""Part of the `sbert` component: encode texts without making Docs, and tell encoders apart."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast, overload

import numpy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import logger
from spacy.vocab import Vocab
from thinc.api import Model

from ..errors import Errors, Warnings, WarnOnce, warn
from ..models.encoded_docs import EncodeSettings, TruncationCounter
from ..models.fingerprint import Fingerprint
from ..models.sbert_config import SentenceTransformersConfig
from ..validation import (
    NonNegative,
    Positive,
    Processes,
    Text,
    TextOrTexts,
    Width,
    several_texts,
    validated,
    with_fields_of,
)
from . import sentence_model
from .call_options import EncodeCall, EncodeOptions, PredictOptions
from .components import InPipeline

if TYPE_CHECKING:
    from ..models.prompts import Role
    from ..models.text_encoders import TextEncoder


class _EncodeOptions(EncodeOptions, PredictOptions, total=False):
    n_process: int
    gpu_ids: Sequence[int]


class TextEncoding:
    """Part of an `sbert` pipe that encodes texts without making Docs.

    The pipe has the settings that it names.
    """

    model: sentence_model.SentenceModel
    name: str
    vocab: Vocab
    token_vectors: bool
    _in_pipeline: InPipeline
    _notices: WarnOnce
    _fingerprint: Fingerprint

    @overload
    def encode(
        self,
        texts: TextOrTexts,
        *,
        convert_to_tensor: Literal[True],
        **options: Unpack[_EncodeOptions],
    ) -> torch.Tensor: ...

    @overload
    def encode(
        self,
        texts: TextOrTexts,
        *,
        convert_to_tensor: Literal[False] = ...,
        **options: Unpack[_EncodeOptions],
    ) -> numpy.ndarray: ...

    @validated
    @with_fields_of(EncodeCall, "call")
    def encode(
        self,
        texts: TextOrTexts,
        *,
        window: Positive = 4096,
        n_process: Processes = 1,
        gpu_ids: Sequence[NonNegative] = (),
        prompt_name: str | None = None,
        prompt: str | None = None,
        truncate_dim: int | None = None,
        call: EncodeCall,
    ) -> Any:
        """Return the vectors of texts without making Docs, for bulk work.

        The vector of a text is `nlp(text).vector` if the row is the whole Doc.

        texts (Iterable): n texts, Docs or Spans; a column of pandas, polars, pyarrow or NumPy, or a
            table of one. Of a Doc or Span its text is encoded, without context. Iterators are read
            window by window. Or a single text.
        window (int): texts that are sorted, packed and encoded together.
        progress (bool): whether to show a progress bar.
        n_process (int): processes to work in; each loads the encoder. As with all that spawns, the
            main module must be guarded by `if __name__ == "__main__"`.
        gpu_ids (Sequence[int]): GPUs to work on, a process for each.
        prompt_name, prompt (str), truncate_dim (int): see PredictOptions.
        batch_size, show_progress_bar, normalize_embeddings, convert_to_tensor, convert_to_numpy,
            output_value, precision, device: as in sentence-transformers, see EncodeCall. The fewer
            texts are encoded together, the more slowly; a tensor is on the CPU.
        RETURNS (float32 (n, width)): on the CPU, in the order of the texts; zeros for a text
            without wordpieces. Of a single text its vector, (width,).
        RAISES (TypeError, ValueError): if a text is not text, or the transformer is not of this
            package.

        Example:
            vectors = find_sbert(nlp).encode(["A man is eating.", "Somebody has a meal."])
            assert vectors.shape == (2, find_sbert(nlp).width)

        """
        from ..models.text_encoders import encode_all  # noqa: PLC0415 (not needed for Docs)

        call.check(self.model.ops)
        texts, is_single = several_texts(texts)
        encoder = self.text_encoder(
            prompt_name=prompt_name, prompt=prompt, truncate_dim=truncate_dim
        )
        cuts = TruncationCounter()
        vectors = encode_all(
            encoder,
            texts,
            window=call.n_together(window),
            progress=call.shows_progress,
            n_process=n_process,
            gpu_ids=gpu_ids,
            cuts=cuts,
        )
        self._warn_of_folder(encoder.folder, has_prompt=encoder.settings.prompt is not None)
        if cuts.count:
            warn(cuts.message)
        return call.returned(vectors, is_single=is_single)

    def text_encoder(self, **options: Unpack[PredictOptions]) -> "TextEncoder":
        """Return the encoder of texts without Docs, loaded with the first text.

        For the options see PredictOptions.
        """
        nlp = self._in_pipeline.nlp
        if nlp is not None and self._notices.is_new("changes"):
            self._warn_of_changes(nlp)
        return self.model.text_encoder(nlp, self.name, self._settings(**options))

    def prompt_of_role(self, role: "Role | None", names: Sequence[str] = ()) -> str | None:
        """Return the prompt of queries or documents, see Prompts.of_role; None for the default."""
        if not self.model.source.takes_prompts:
            return None
        encoder = sentence_model.find_transformer(self.name, self.model)
        return encoder.prompts.of_role(encoder.shim.load(), role, names)

    def _warn_of_changes(self, nlp: Language) -> None:
        """Warn if the pipeline changes a text, or its tokens, before it encodes the Doc."""
        from .token_changes import text_changes_warning, token_changes_warning  # noqa: PLC0415 (not needed for Docs)

        for message in (
            text_changes_warning(nlp, self.name),
            token_changes_warning(self.model, nlp, self.name),
        ):
            if message is not None:
                self._notices.once(message)

    @validated
    def _settings(
        self,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        truncate_dim: Width | None = None,
    ) -> EncodeSettings:
        """Return the settings of a call, of texts or of Docs, with the prompt of the name."""
        if prompt_name is not None and prompt is not None:
            raise ValueError(
                f"Got both prompt_name = {prompt_name!r} and prompt = {prompt!r}: give one of them."
            )
        text = prompt_name or prompt
        if text and not self.model.source.takes_prompts:
            raise ValueError(Errors.TOKEN_PROMPT.format(prompt=text))
        if prompt_name is not None:
            encoder = sentence_model.find_transformer(self.name, self.model)
            prompt = encoder.prompts.find(encoder.shim.load(), prompt_name)
        return EncodeSettings(prompt, truncate_dim, self.token_vectors)

    def _warn_of_folder(
        self, settings: SentenceTransformersConfig | None, *, has_prompt: bool = False
    ) -> None:
        """Warn if the encoder's folder asks for another pooling, or for a missing prompt.

        has_prompt (bool): whether a prompt was given with the call.
        """
        if settings is None:
            return
        prompt = settings.prompts.get(settings.default_prompt_name or "", "")
        transformer = self.model.source.span_transformer
        puts_none = transformer is not None and not transformer.has_prompts
        if prompt and not has_prompt and puts_none:
            self._notices.once(
                Warnings.SHARED_DEFAULT_PROMPT.format(name=settings.name, prompt=prompt)
            )
        given = self.model.pooling.pooling_name
        if settings.pooling not in (None, given) and self._notices.is_new("pooling"):
            logger.warning(
                Warnings.OTHER_POOLING.format(
                    name=settings.name, expected=settings.pooling, given=given
                )
            )

    # The encoder

    def load(self) -> None:
        """Load the encoder, else loaded with the first text.

        RAISES (OSError, ValueError): if missing or damaged.
        """
        encoder = self.text_encoder()
        encoder.load()
        self._warn_of_folder(encoder.folder)

    @property
    def width(self) -> int:
        """The number of dimensions of the vectors; loads the encoder."""
        self.load()
        return self.text_encoder().width

    @property
    def max_length(self) -> int | None:
        """The most wordpieces of a text, special tokens included, None for no limit.

        Loads the encoder.
        """
        self.load()
        return self.text_encoder().max_length

    def calibrate(self, texts: Iterable[Text]) -> None:
        """Find the ranges by which `precision = "int8"` rounds, and which layers bear it.

        The inputs of linear layers are rounded.

        They are saved with the pipeline, until training changes the weights. The layers that add
        the most noise stay in floating point, until the mean states of every text keep a cosine of
        at least 0.99 to those without rounding. Without a call, the first 2048 wordpieces that are
        encoded at once are taken; until then nothing is rounded.

        texts (Iterable): a few hundred, like those that will be encoded.
        RAISES (TypeError, ValueError): if `texts` has no text, or the encoder is of a family that
            is not rounded.
        """
        # Raises if the encoder is no transformer
        sentence_model.find_transformer(self.name, self.model)
        cast(Any, self.text_encoder()).calibrate(texts)

    # Its fingerprint

    def fingerprint(self, *, load: bool = True) -> str:
        """Return 12 hexadecimal digits of the encoder, as in records.

        load: load it first, else "" if it is not.
        """
        nlp = self._in_pipeline.nlp
        if nlp is not None:
            self.model.link_upstream(nlp, self.name)
        models = self.model.encoding_models(nlp, self.name)
        if not sentence_model.are_loaded(models):
            if not load:
                return ""
            self.load()
        vocab = self.vocab if nlp is None else nlp.vocab
        return self._fingerprint_of(models, vocab, refresh=True)

    def _fingerprint_of(
        self, models: list[Model], vocab: Vocab, docs: Sequence[Doc] = (), *, refresh: bool = False
    ) -> str:
        """Return the fingerprint of the models that encode; "" if they are not known."""
        if not models:
            return ""
        own = set(map(id, self.model.walk()))
        upstream = [model for model in models if id(model) not in own]
        return self._fingerprint.of(
            models, self.model.pooling, vocab, upstream=upstream, docs=docs, refresh=refresh
        )
