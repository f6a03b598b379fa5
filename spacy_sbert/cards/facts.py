"""What a card says about a pipeline: read from its meta.json and config, counted and measured on the pipeline."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from spacy.language import Language
from thinc.api import Model

from ..component.sbert import SentenceBert
from ..component.shown import rounding_of
from ..component.upstream import (
    find_listeners,
    find_table,
    find_transformer,
    find_upstream,
    reads_docs,
    transformer_name,
)
from ..hooks import doc_vectors
from .data import Corpus, read_corpora
from .errors import Errors

README = "README.md"
PROBE = "a"  # any text with a wordpiece: all vectors are as wide as its own
Json = dict[str, Any]  # a part of meta.json or of a config


class Named(Protocol):
    """A member of a meta-embedding."""

    name: str


@runtime_checkable
class Combined(Protocol):
    """A pipe that combines the vectors of others, such as `sbert_meta`."""

    members: Sequence[Named]


@dataclass(frozen=True)
class EncoderFacts:
    """The sentence vectors of one pipe.

    pipe: its name. base_model: the encoder's name; for a local folder only the last part. is_on_hub: whether weights of
        it were taken, and that can be a name on the Hugging Face hub. pooling: the mode, or the method of a
        meta-embedding. normalized: whether vectors get unit length. width: of the vectors, measured. max_length:
        wordpieces of a row, None if unknown.
    objectives: the loss layers of the config with their settings, empty where no training is recorded.
    rounding: what `precision = "int8"` rounds by, empty for other precisions.
    n_wordpieces: in the table of a static encoder, which has no transformer and no limit; 0 for others.
    """

    pipe: str
    base_model: str
    is_on_hub: bool
    pooling: str
    normalized: bool
    width: int
    max_length: int | None
    objectives: tuple[str, ...]
    n_wordpieces: int = 0
    rounding: str = ""


@dataclass(frozen=True)
class PipelineFacts:
    """A pipeline with sentence vectors.

    name, version: of its package. meta: its meta.json. components: names of the pipes.
    encoders: those that make sentence vectors. answering: the pipe whose vectors `doc.vector` gives.
    corpora: what it was trained and scored on. scores: as `spacy train` left them, from 0 to 1; only finite ones.
    n_parameters: of all components. size: bytes of its folder, None if it has none.
    """

    name: str
    version: str
    meta: Json
    components: tuple[str, ...]
    encoders: tuple[EncoderFacts, ...]
    answering: str
    corpora: tuple[Corpus, ...]
    scores: dict[str, float]
    n_parameters: int
    size: int | None

    @property
    def languages(self) -> str:
        return "multilingual" if self.meta["lang"] == "xx" else self.meta["lang"]


def describe(
    nlp: Language, *, folder: Path | None = None, name: str | None = None, version: str | None = None
) -> PipelineFacts:
    """Find out what a card says about a pipeline.

    nlp (Language): with at least one `sbert` or `sbert_meta` pipe. It encodes a text, which shows the vectors' width.
    folder (Path): where it is saved, for its size.
    name, version (str): of the package, as `spacy package` takes them; by default those of meta.json.
    RAISES (ValueError): if no pipe of the pipeline makes sentence vectors.
    """
    doc = nlp(PROBE)
    widths = {pipe: doc_vectors.find(doc, pipe)[0].data["width"] for pipe in doc_vectors.names(doc)}
    if not widths:
        raise ValueError(Errors.CARD_NO_ENCODER.format(given=", ".join(nlp.pipe_names) or "none"))
    performance = nlp.meta.get("performance") or {}
    encoders = tuple(_describe_encoder(nlp, pipe, width, performance) for pipe, width in widths.items())
    name = name or nlp.meta["name"]
    trained = any(encoder.objectives for encoder in encoders)
    return PipelineFacts(
        name=name if name.startswith(f"{nlp.lang}_") else f"{nlp.lang}_{name}",
        version=version or nlp.meta["version"],
        meta=dict(nlp.meta),
        components=tuple(nlp.pipe_names),
        encoders=encoders,
        answering=doc_vectors.find(doc)[0].name,
        corpora=tuple(read_corpora(nlp.config)) if trained else (),
        scores={key: float(value) for key, value in performance.items() if _is_score(key, value)},
        n_parameters=count_parameters(model for _, pipe in nlp.pipeline if (model := getattr(pipe, "model", None))),
        size=None if folder is None else folder_size(folder),
    )


def count_parameters(models: Iterable[Model]) -> int:
    """The number of parameters of Thinc models, including those in PyTorch; shared ones count once."""
    sizes: dict[int, int] = {}
    for node in (node for model in models for node in model.walk()):
        arrays = [node.get_param(name) for name in node.param_names if node.has_param(name)]
        tensors = [p for shim in node.shims if hasattr(shim._model, "parameters") for p in shim._model.parameters()]
        sizes.update({id(array): array.size for array in arrays})
        sizes.update({id(tensor): tensor.numel() for tensor in tensors})
    return sum(sizes.values())


def folder_size(folder: Path) -> int:
    """Bytes of the files in a folder, without its README.md, which states the size."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and file != folder / README)


def _describe_encoder(nlp: Language, name: str, width: int, performance: Json) -> EncoderFacts:
    pipe, config = nlp.get_pipe(name), nlp.config["components"][name]
    if isinstance(pipe, Combined):
        members = ", ".join(member.name for member in pipe.members)
        return EncoderFacts(name, members, False, config["method"], config["normalize"], width, None, ())
    if not isinstance(pipe, SentenceBert):
        raise ValueError(Errors.CARD_NO_ENCODER.format(given=name))
    base_model, pooling = _base_model(nlp, pipe, config["model"]), pipe.model.get_ref("pooling")
    settings, rounding = None, ""
    with suppress(ValueError):  # a tok2vec, or a transformer of spacy-transformers
        transformer = find_transformer(name, pipe.model)
        settings, rounding = transformer.shim.load(), rounding_of(transformer)
    table = find_table(pipe.model)
    loss = config.get("loss") if f"{name}_loss" in performance else None
    return EncoderFacts(
        pipe=name,
        base_model=base_model if _is_hub_name(base_model) else Path(base_model).name,
        is_on_hub=table is None and _is_hub_name(base_model),
        pooling=pooling.pooling_name,  # type: ignore[attr-defined]
        normalized=pooling.normalizes(settings),  # type: ignore[attr-defined]
        width=width,
        max_length=settings.max_length if settings else None,
        objectives=tuple(_objectives(loss)) if loss else (),
        n_wordpieces=0 if table is None else len(table.table()),
        rounding=rounding,
    )


def _base_model(nlp: Language, pipe: SentenceBert, model: Json) -> str:
    """What the encoder is called."""
    listeners = find_listeners(pipe.model)
    if reads_docs(pipe.model):
        for listener in listeners:
            model = {"tok2vec": nlp.get_pipe_config(find_upstream(nlp, pipe.name, listener).name)["model"]}
        return str(model["tok2vec"]["@architectures"])
    if find_table(pipe.model) is not None:
        return str(model["name"])
    return transformer_name(pipe.model)


def _is_hub_name(name: str) -> bool:
    """Whether a name can be one on the hub. Cards do not show the paths of local folders."""
    if "/" not in name or Path(name).exists():
        return False
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _objectives(block: Json, name: str = "") -> Iterator[str]:
    """The loss layers of a config with their settings; a layer comes before those inside it."""
    if block.get("@layers") == "spacy-sbert.LossByName.v1":
        block = {"@layers": block["name"], **block["settings"]}
    plain = {key: value for key, value in block.items() if key != "@layers" and not isinstance(value, dict)}
    settings = ", ".join(f"{key} = {value}" for key, value in plain.items())
    if "@layers" in block:
        yield (f"{name}: " if name else "") + block["@layers"] + (f" ({settings})" if settings else "")
    for key, value in block.items():
        if isinstance(value, dict):
            yield from _objectives(value, key)


def _is_score(key: str, value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return is_number and not key.endswith("_loss") and key != "speed"
