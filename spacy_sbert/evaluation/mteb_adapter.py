"""The adapter that makes a pipeline an encoder of mteb, version 2."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy
import torch
from spacy.language import Language
from torch.nn.functional import normalize

from ..errors import import_extra
from ..models.surroundings import undisturbed
from .encoders import PipelineSource

if TYPE_CHECKING:
    from mteb.models import ModelMeta

_Vectors = numpy.ndarray | torch.Tensor
# What a pipeline does not say of itself
_UNKNOWN = (
    "release_date languages n_parameters memory_usage_mb max_tokens license open_weights "
    "public_training_code public_training_data training_datasets"
)


class MtebEncoder:
    """The vectors of a pipeline for mteb: `mteb.evaluate(MtebEncoder(nlp), tasks)`.

    It has what mteb's EncoderProtocol asks for. Prompts are those that mteb gives a
    SentenceTransformer: the first that the encoder has of "TASK-query", "TASK", "KIND-query",
    "KIND" and "query", such as "STS", and for documents the same with "document". Its
    revision is the digest of the pipeline, so that results that mteb keeps are never those of
    another one.
    SOURCE: Muennighoff et al. 2023, MTEB: Massive Text Embedding Benchmark.
    """

    def __init__(self, nlp: Language, *, name: str | None = None):
        """Take the vectors of a pipeline, nlp (Language).

        name (str): "organisation/model", in mteb's results; by default "spacy/" and the name in the
            pipeline's meta.
        """
        self.source = PipelineSource(nlp)
        self.name = name or f"spacy/{self.source.name}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def encode(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any = None,
        prompt_type: object = None,
        batch_size: int | None = None,
        **kwargs: object,
    ) -> numpy.ndarray:
        """Encode the texts of batches.

        inputs (iterable): batches, {"text": [...]} each; mteb has joined titles and texts.
        task_metadata, prompt_type: the task, and PromptType.query or document, which decide the
            prompt.
        batch_size (int): of mteb's encode_kwargs. kwargs: hf_split, hf_subset and other
            encode_kwargs; they are not used.
        RETURNS (float32 (n, width)): in the order of the texts.
        RAISES (ValueError): if a batch has no text, or the pipeline no vectors.
        """
        role = getattr(prompt_type, "value", None)
        # In the order of mteb
        names: list[str] = []
        if task_metadata is not None:
            for name in (task_metadata.name, task_metadata.type):
                names += [f"{name}-{role}", name]
        texts: list[str] = []
        for batch in inputs:
            if "text" not in batch:
                task = getattr(task_metadata, "name", "unknown")
                raise ValueError(
                    f"The task '{task}' gave a batch with {', '.join(batch) or 'nothing'}, but no "
                    "text. Choose tasks whose modality is text."
                )
            texts += batch["text"]
        self.source.batch_size = batch_size or self.source.batch_size
        vectors = numpy.zeros((len(texts), self.width), dtype="float32")
        # Wastes no work on padding
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]), reverse=True)
        if order:
            vectors[order] = self.source.encode_role([texts[i] for i in order], role, names)
        return vectors

    @undisturbed()
    def similarity(self, embeddings1: _Vectors, embeddings2: _Vectors) -> torch.Tensor:
        """Return the cosine of every vector of one side with every one of the other.

        embeddings1 (float (n, width) or (width,)), embeddings2 (float (m, width) or (width,)):
            NumPy or PyTorch.
        RETURNS (float32 tensor (n, m)).
        """
        return (_unit(embeddings1) @ _unit(embeddings2).T).float()

    @undisturbed()
    def similarity_pairwise(self, embeddings1: _Vectors, embeddings2: _Vectors) -> torch.Tensor:
        """Return the cosine of paired vectors, (n, width) each or (width,).

        RETURNS (float32 tensor (n,)).
        """
        return (_unit(embeddings1) * _unit(embeddings2)).sum(dim=1).float()

    @cached_property
    def width(self) -> int:
        """Return the width of the vectors."""
        return self.source.encode(["a"]).shape[1]

    @property
    def mteb_model_meta(self) -> "ModelMeta":
        """Return what mteb notes of the model in its results, a ModelMeta.

        RAISES (ImportError): without mteb 2.
        """
        modules = ("mteb.models", "mteb.models.model_meta")
        models, model_meta = (
            import_extra(name, "The adapter for mteb needs mteb 2", "mteb") for name in modules
        )
        return models.ModelMeta(
            loader=None,
            name=self.name,
            # As long as a commit's
            revision=self.source.digest[:40],
            embed_dim=self.width,
            framework=[],
            similarity_fn_name=model_meta.ScoringFunction.COSINE,
            use_instructions=False,
            **dict.fromkeys(_UNKNOWN.split()),
        )


def _unit(vectors: _Vectors) -> torch.Tensor:
    """Return vectors scaled to length 1, float64 (n, width); those of length 0 stay."""
    return normalize(torch.atleast_2d(torch.as_tensor(vectors).double()))
