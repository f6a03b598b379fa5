"""Facts, scores and data sets of a model card."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from huggingface_hub import EvalResult
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from spacy.language import Language
from spacy.util import registry
from thinc.api import Config, Model

from ..errors import Errors
from ..files.serialization import versions
from ..pipeline import doc_vectors
from ..pipeline.listeners import (
    describe_int8,
    encodes_whole_docs,
    find_listeners,
    find_static_embedding,
    find_transformer,
    find_upstream,
    transformer_name,
)
from ..pipeline.sbert import SentenceBert
from ..render.document import Table, escape_markdown, render_table
from ..render.plots import clean

OURS = "spacy-sbert.PairCorpus.v1"


@dataclass(frozen=True)
class Corpus:
    """One file of data, or several that are read as one.

    role: where it stands in [corpora], such as "train" or "dev, sts". file: its name, without the folder it was in, or
    theirs.
    count: of its examples, None where that is not known.
    """

    role: str
    file: str
    count: int | None


def _read_corpora(config: Config) -> Iterator[Corpus]:
    """Find the files that [corpora] of a config names, and count the examples of those files of pairs that still exist.

    config (Config): of a pipeline that `spacy train` made.
    """
    for key, block in config.interpolate().get("corpora", {}).items():
        yield from _read(block, (key,))


def _read(block: Mapping[str, object], role: tuple[str, ...]) -> Iterator[Corpus]:
    path = block.get("path")
    paths = [one for one in (path if isinstance(path, list) else [path]) if isinstance(one, str) and one]
    if paths:
        yield Corpus(", ".join(role), ", ".join(Path(one).name for one in paths), _count(block, paths))
    for key, inner in block.items():
        if isinstance(inner, Mapping):
            # Readers that hold others call them "corpora" or "corpus", which says nothing about them.
            yield from _read(inner, role if key in ("corpora", "corpus") else (*role, key))


def _count(block: Mapping[str, object], paths: list[str]) -> int | None:
    if block.get("@readers") != OURS or not all(Path(path).is_file() for path in paths):
        return None
    try:
        return registry.resolve({"corpus": dict(block)})["corpus"].count()
    except (OSError, TypeError, ValueError):
        return None  # another file by now, or another layout: not what was trained on


README = "README.md"
PROBE = "a"  # any text with a wordpiece: all vectors are as wide as its own
Json = dict[str, Any]  # a part of meta.json or of a config


class _Named(Protocol):
    """A member of a meta-embedding."""

    name: str


@runtime_checkable
class Combined(Protocol):
    """A pipe that combines the vectors of others, such as `sbert_meta`."""

    members: Sequence[_Named]


@dataclass(frozen=True)
class _EncoderFacts:
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
    encoders: tuple[_EncoderFacts, ...]
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
        corpora=tuple(_read_corpora(nlp.config)) if trained else (),
        scores={key: float(value) for key, value in performance.items() if _is_score(key, value)},
        n_parameters=_count_parameters(model for _, pipe in nlp.pipeline if (model := getattr(pipe, "model", None))),
        size=None if folder is None else _folder_size(folder),
    )


def _count_parameters(models: Iterable[Model]) -> int:
    """Count the parameters of Thinc models, including those in PyTorch; shared ones count once."""
    sizes: dict[int, int] = {}
    for node in (node for model in models for node in model.walk()):
        arrays = [node.get_param(name) for name in node.param_names if node.has_param(name)]
        modules = [shim._model for shim in node.shims]  # noqa: SLF001 (shims of all kinds hold their module there)
        tensors = [p for module in modules if hasattr(module, "parameters") for p in module.parameters()]
        sizes.update({id(array): array.size for array in arrays})
        sizes.update({id(tensor): tensor.numel() for tensor in tensors})
    return sum(sizes.values())


def _folder_size(folder: Path) -> int:
    """Return the total size in bytes of the files in a folder, except its README.md, which states the size."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and file != folder / README)


def _describe_encoder(nlp: Language, name: str, width: int, performance: Json) -> _EncoderFacts:
    pipe, config = nlp.get_pipe(name), nlp.config["components"][name]
    if isinstance(pipe, Combined):
        members = ", ".join(member.name for member in pipe.members)
        return _EncoderFacts(name, members, False, config["method"], config["normalize"], width, None, ())
    if not isinstance(pipe, SentenceBert):
        raise ValueError(Errors.CARD_NO_ENCODER.format(given=name))
    base_model, pooling = _base_model(nlp, pipe, config["model"]), pipe.model.get_ref("pooling")
    settings, rounding = None, ""
    with suppress(ValueError):  # a tok2vec, or a transformer of spacy-transformers
        transformer = find_transformer(name, pipe.model)
        settings, rounding = transformer.shim.load(), describe_int8(transformer)
    table = find_static_embedding(pipe.model)
    loss = config.get("loss") if f"{name}_loss" in performance else None
    return _EncoderFacts(
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
    """Return the name of a pipe's encoder; if it encodes whole Docs, the architecture of its tok2vec."""
    listeners = find_listeners(pipe.model)
    if encodes_whole_docs(pipe.model):
        for listener in listeners:
            model = {"tok2vec": nlp.get_pipe_config(find_upstream(nlp, pipe.name, listener).name)["model"]}
        return str(model["tok2vec"]["@architectures"])
    if find_static_embedding(pipe.model) is not None:
        return str(model["name"])
    return transformer_name(pipe.model)


def _is_hub_name(name: str) -> bool:
    """Return whether a name can be a repository on the hub. Cards do not show the paths of local folders."""
    if "/" not in name or Path(name).exists():
        return False
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _objectives(block: Json, name: str = "") -> Iterator[str]:
    """Yield the loss layers of a config with their settings, each layer before the layers inside it."""
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


class Measure(NamedTuple):
    """A measure of sentence vectors. label: in tables. task, metric: on the hub, as sentence-transformers has them."""

    label: str
    task: str
    metric: str


MEASURES = {
    "sts_spearman": Measure("Spearman correlation of cosine and gold score", "Semantic Similarity", "Spearman Cosine"),
    "sts_pearson": Measure("Pearson correlation of cosine and gold score", "Semantic Similarity", "Pearson Cosine"),
    "pair_ap": Measure("Average precision of cosine on labelled pairs", "Binary Classification", "Cosine Ap"),
    "nli_acc": Measure("Accuracy of the label of a pair", "Natural Language Inference", "Accuracy"),
    "triplet_acc": Measure("Accuracy of triplets, Euclidean", "Triplet", "Euclidean Accuracy"),
    "knn_acc": Measure("Accuracy of the nearest text's label, cosine", "Text Classification", "Cosine Knn Accuracy"),
}


def _score_rows(facts: PipelineFacts) -> list[tuple[str, str, str]]:
    """Return the label, key in meta.json and value x 100 of every score, including scores of other components."""
    rows = []
    for key, value in facts.scores.items():
        measure, of = _measure(key)
        label = ", ".join(filter(None, (MEASURES[measure].label, of))) if measure else key
        rows.append((label, key, f"{100 * value:.2f}"))
    return rows


def eval_results(facts: PipelineFacts) -> Iterator[EvalResult]:
    """Yield the scores of sentence vectors, from 0 to 1, in the format of the hub's model-index."""
    dataset = scored_on(facts) or "Unknown"
    for key, value in facts.scores.items():
        measure, of = _measure(key)
        if measure:
            _, task, metric = MEASURES[measure]
            name = clean(f"{dataset}, {of}" if of else dataset)
            yield EvalResult(
                task_type=_slug(task, "-"),
                task_name=task,
                dataset_type=_slug(name, "-"),
                dataset_name=name,
                metric_type=_slug(metric, "_"),
                metric_name=metric,
                metric_value=value,
            )


def _is_of_vectors(key: str) -> bool:
    """Return whether a key of meta.json is a score of sentence vectors, not of another component."""
    return bool(_measure(key)[0])


def scored_on(facts: PipelineFacts) -> str:
    """Return the names of the files that the pipeline was scored on."""
    return ", ".join(corpus.file for corpus in facts.corpora if corpus.role.split(", ")[0] == "dev")


def _measure(key: str) -> tuple[str, str]:
    """Return the measure and the corpus or pipe that a key of meta.json names; two empty strings for other keys."""
    for measure in MEASURES:
        if found := re.fullmatch(rf"(?:(.+)_)?{measure}(?:_(.+))?", key):
            return measure, found[1] or found[2] or ""
    return "", ""


def _slug(text: str, joint: str) -> str:
    return re.sub(r"[\W_]+", joint, text.lower()).strip(joint)


def of_pipe(facts: PipelineFacts, pipe: str) -> PipelineFacts:
    """Return the facts of one pipe: its encoder and its scores.

    RAISES (ValueError): if the pipe makes no sentence vectors.
    """
    encoders = tuple(encoder for encoder in facts.encoders if encoder.pipe == pipe)
    if not encoders:
        given = ", ".join(encoder.pipe for encoder in facts.encoders)
        raise ValueError(f"The pipe '{pipe}' makes no sentence vectors: expected one of {given}.")
    others = [encoder.pipe for encoder in facts.encoders if encoder.pipe != pipe]
    scores = {key: value for key, value in facts.scores.items() if _is_of_vectors(key)}
    if pipe == facts.answering:
        own = {key: value for key, value in scores.items() if not key.startswith(tuple(f"{name}_" for name in others))}
    else:  # scores of a pipe that does not answer `doc.vector` begin with its name
        prefix = f"{pipe}_"
        own = {key.removeprefix(prefix): value for key, value in scores.items() if key.startswith(prefix)}
    return replace(facts, encoders=encoders, scores=own)


PACKAGES = ("spacy-sbert", "spacy", "spacy-transformers", "transformers", "torch")
NOT_RECORDED = "no training by spacy train is recorded"


def encoder_table(encoders: Sequence[_EncoderFacts]) -> str:
    """Return a Markdown table of encoder settings, with one column for each encoder."""
    rows = [
        ("Base model", *map(_base_text, encoders)),
        ("Pooling", *(encoder.pooling for encoder in encoders)),
        ("Normalisation", *("unit length" if encoder.normalized else "none" for encoder in encoders)),
        ("Width", *(str(encoder.width) for encoder in encoders)),
        ("Longest text, in wordpieces", *map(_limit_text, encoders)),
        ("Objective", *("; ".join(encoder.objectives) or NOT_RECORDED for encoder in encoders)),
    ]
    if any(encoder.rounding for encoder in encoders):
        rows.append(("Arithmetic", *(encoder.rounding or "floating point" for encoder in encoders)))
    columns = ["", *(encoder.pipe for encoder in encoders)]
    return render_table(Table("", columns, rows, texts=len(columns)))


def _base_text(encoder: _EncoderFacts) -> str:
    if not encoder.n_wordpieces:
        return encoder.base_model
    return f"none: a table of {encoder.n_wordpieces:,} wordpieces; tokenizer after {encoder.base_model}"


def _limit_text(encoder: _EncoderFacts) -> str:
    return "no limit" if encoder.n_wordpieces else str(encoder.max_length or "not stated")


def data_section(facts: PipelineFacts) -> Iterator[str]:
    """Yield the section on the training and evaluation data."""
    if facts.corpora:
        counts = ["not known" if corpus.count is None else f"{corpus.count:,}" for corpus in facts.corpora]
        rows = [(corpus.role, corpus.file, count) for corpus, count in zip(facts.corpora, counts, strict=True)]
        yield "## Data"
        yield render_table(Table("", ["Corpus", "File", "Examples"], rows, texts=2))
        yield "Examples as counted in the files when this card was written."


def score_section(facts: PipelineFacts) -> Iterator[str]:
    """Yield the section on the scores that training stored in meta.json."""
    if facts.scores:
        yield "## Scores"
        where = scored_on(facts)
        on = f" on {where}, by which the best weights are chosen: a test set scores lower, as a rule" if where else ""
        yield escape_markdown(f"x 100, as spacy train measured them{on}.")
        yield render_table(Table("", ["Measure", "Name", "Score"], _score_rows(facts), texts=2))


def versions_text() -> str:
    """Return the versions of the packages that the card was written with."""
    found = versions()
    return ", ".join(f"{name} {found[name]}" for name in PACKAGES if name in found)
