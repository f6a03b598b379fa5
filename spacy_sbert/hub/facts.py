"""What a model card says about a pipeline: its encoders, its training and its scores."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from spacy.language import Language
from spacy.util import registry
from thinc.api import Model

from ..pipeline import doc_vectors, sentence_model
from ..pipeline.sbert import SentenceBert
from ..pipeline.upstream import find_upstream
from .scores import is_score, measure_of

README = "README.md"
# Cards do not show the paths of local folders
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


class _Corpus(NamedTuple):
    """The data that one reader in [corpora] of a config reads.

    role: where the reader is, such as "train" or "dev, sts". file: the name of the file, or of
        several, without folders. size: the number of examples; None if it is not known.
    """

    role: str
    file: str
    size: int | None


@dataclass(frozen=True, kw_only=True)
class _EncoderFacts:
    """The sentence vectors of one pipe.

    base_model: the encoder's name; for a local folder only the last part. is_on_hub: whether
        weights of it were taken, and it can be a name on the Hugging Face hub.
    pooling: its name, or the method of a meta-embedding. width: as measured.
    max_length: the most wordpieces of a span, None if unknown.
    objectives: the loss layers of the config with their settings; none if no training is recorded.
    n_wordpieces: in the table of a static encoder, which has no transformer and no limit.
    rounding: what `precision = "int8"` rounds by.
    """

    pipe: str
    base_model: str
    pooling: str
    normalized: bool
    width: int
    is_on_hub: bool = False
    max_length: int | None = None
    objectives: tuple[str, ...] = ()
    n_wordpieces: int = 0
    rounding: str = ""

    @property
    def source(self) -> str:
        """The base model, or the table that takes its place."""
        if not self.n_wordpieces:
            return self.base_model
        return (
            f"none: a table of {self.n_wordpieces:,} wordpieces; tokenizer after {self.base_model}"
        )

    @property
    def limit(self) -> str:
        """The length of the longest text."""
        if self.n_wordpieces:
            return "no limit"
        return str(self.max_length or "not stated")


@dataclass(frozen=True)
class PipelineFacts:
    """A pipeline with sentence vectors.

    name, version: of its package. meta: its meta.json. components: names of the pipes.
    encoders: those that make sentence vectors. answering: the pipe whose vectors `doc.vector`
        gives.
    corpora: what it was trained and scored on. scores: as `spacy train` left them, from 0 to 1;
        only finite ones.
    n_parameters: of all components. size: bytes of its folder, None if it has none.
    """

    name: str
    version: str
    meta: dict[str, Any]
    components: tuple[str, ...]
    encoders: tuple[_EncoderFacts, ...]
    answering: str
    corpora: tuple[_Corpus, ...]
    scores: dict[str, float]
    n_parameters: int
    size: int | None

    @property
    def languages(self) -> str:
        """The language, or "multilingual"."""
        if self.meta["lang"] == "xx":
            return "multilingual"
        return self.meta["lang"]

    @property
    def scored_on(self) -> str:
        """The names of the files that the pipeline was scored on."""
        scored = [corpus for corpus in self.corpora if corpus.role.split(", ")[0] == "dev"]
        return ", ".join(corpus.file for corpus in scored)


def describe(
    nlp: Language,
    *,
    folder: Path | None = None,
    name: str | None = None,
    version: str | None = None,
    pipe: str | None = None,
) -> PipelineFacts:
    """Collect what a card says about a pipeline.

    nlp (Language): with at least one `sbert` or `sbert_meta` pipe. It encodes a text, which shows
        the vectors' width.
    folder (Path): where it is saved, for its size.
    name, version (str): of the package, as `spacy package` takes them; by default those of
        meta.json.
    pipe (str): the only pipe whose encoder and scores are described; by default all.
    RAISES (ValueError): if no pipe of the pipeline, or not this one, makes sentence vectors.

    Example:
        print(package_card(describe(nlp)))

    """
    # Any text with a wordpiece: all vectors are as wide as its own
    doc = nlp("a")
    widths = {own: doc_vectors.find(doc, own)[0].data["width"] for own in doc_vectors.names(doc)}
    if not widths:
        given = ", ".join(nlp.pipe_names) or "none"
        raise ValueError(
            f"No card: none of the pipes makes sentence vectors (given: {given}). Add an 'sbert' "
            "pipe."
        )
    answering = doc_vectors.find(doc)[0].name
    encoders = [_describe_encoder(nlp, own, width) for own, width in widths.items()]
    was_trained = any(encoder.objectives for encoder in encoders)
    scores = _scores(nlp)
    if pipe is not None:
        scores = _scores_of(pipe, scores, list(widths), is_answering=pipe == answering)
        encoders = [encoder for encoder in encoders if encoder.pipe == pipe]
    return PipelineFacts(
        name=_package_name(nlp, name),
        version=version or nlp.meta["version"],
        meta=dict(nlp.meta),
        components=tuple(nlp.pipe_names),
        encoders=tuple(encoders),
        answering=answering,
        corpora=tuple(_corpora(nlp)) if was_trained else (),
        scores=scores,
        n_parameters=_count_parameters(nlp),
        size=_size_of(folder),
    )


def _performance(nlp: Language) -> Mapping[str, Any]:
    """Return what `spacy train` noted in the meta.json of a pipeline."""
    return nlp.meta.get("performance") or {}


def _scores(nlp: Language) -> dict[str, float]:
    return {key: float(value) for key, value in _performance(nlp).items() if is_score(key, value)}


def _package_name(nlp: Language, name: str | None) -> str:
    """Return the name of a package, which begins with the language."""
    name = name or str(nlp.meta["name"])
    prefix = f"{nlp.lang}_"
    return prefix + name.removeprefix(prefix)


def _size_of(folder: Path | None) -> int | None:
    """Return the bytes of a folder, if there is one, without the card, which states them."""
    if folder is None:
        return None
    card = folder / README
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files if path != card)


def _scores_of(
    pipe: str, scores: dict[str, float], pipes: list[str], *, is_answering: bool
) -> dict[str, float]:
    """Return the scores of one pipe. RAISES (ValueError): if it makes no sentence vectors."""
    others = [name for name in pipes if name != pipe]
    if pipe not in pipes:
        raise ValueError(
            f"The pipe '{pipe}' makes no sentence vectors: expected one of {', '.join(others)}."
        )
    measured = {key: value for key, value in scores.items() if measure_of(key)}
    if is_answering:
        prefixes = tuple(f"{name}_" for name in others)
        return {key: value for key, value in measured.items() if not key.startswith(prefixes)}
    # Scores of a pipe that does not answer `doc.vector` begin with its name
    prefix = f"{pipe}_"
    own = [key for key in measured if key.startswith(prefix)]
    return {key.removeprefix(prefix): measured[key] for key in own}


def _describe_encoder(nlp: Language, name: str, width: int) -> _EncoderFacts:
    pipe = nlp.get_pipe(name)
    config = nlp.config["components"][name]
    if isinstance(pipe, SentenceBert):
        return _describe_sbert(nlp, pipe, config, width)
    members = ", ".join(member.name for member in cast(Any, pipe).members)
    return _EncoderFacts(
        pipe=name,
        base_model=members,
        pooling=config["method"],
        normalized=config["normalize"],
        width=width,
    )


def _describe_sbert(
    nlp: Language, pipe: SentenceBert, config: dict[str, Any], width: int
) -> _EncoderFacts:
    base_model = _base_model(nlp, pipe, config["model"])
    settings = None
    rounding = ""
    # A tok2vec, or a transformer of spacy-transformers, has no settings of ours
    with suppress(ValueError):
        transformer = sentence_model.find_transformer(pipe.name, pipe.model)
        settings = transformer.shim.load()
        rounding = sentence_model.describe_int8(transformer)
        base_model = settings.adapter or base_model
    is_hub_name = bool(_HUB_NAME.fullmatch(base_model)) and not Path(base_model).exists()
    table = sentence_model.find_static_embedding(pipe.model)
    objectives: Iterator[str] = iter(())
    if config.get("loss") and f"{pipe.name}_loss" in _performance(nlp):
        objectives = _objectives(config["loss"])
    pooling = pipe.model.pooling
    return _EncoderFacts(
        pipe=pipe.name,
        base_model=base_model if is_hub_name else Path(base_model).name,
        pooling=pooling.pooling_name,
        normalized=pooling.normalizes(settings),
        width=width,
        is_on_hub=table is None and is_hub_name,
        max_length=settings.max_length if settings else None,
        objectives=tuple(objectives),
        n_wordpieces=0 if table is None else len(table.table()),
        rounding=rounding,
    )


def _base_model(nlp: Language, pipe: SentenceBert, model: dict[str, Any]) -> str:
    """Return the name of a pipe's encoder.

    If it encodes whole Docs, the architecture of its tok2vec.
    """
    if pipe.model.source.reads_tokens:
        for listener in pipe.model.sentence_listeners:
            upstream = find_upstream(nlp, pipe.name, listener)
            model = {"tok2vec": nlp.get_pipe_config(upstream.name)["model"]}
        return str(model["tok2vec"]["@architectures"])
    if sentence_model.find_static_embedding(pipe.model) is not None:
        return str(model["name"])
    return pipe.model.transformer_name


def _objectives(block: dict[str, Any], name: str = "") -> Iterator[str]:
    """Yield the loss layers of a config with their settings, outer layers first.

    name: the setting of the outer layer that holds the block.
    """
    if block.get("@layers") == "spacy-sbert.LossByName.v1":
        block = {"@layers": block["name"], **block["settings"]}
    inner = {key: value for key, value in block.items() if isinstance(value, dict)}
    settings = [f"{key} = {block[key]}" for key in block if key not in ("@layers", *inner)]
    if "@layers" in block:
        line = str(block["@layers"])
        if name:
            line = f"{name}: {line}"
        if settings:
            line += f" ({', '.join(settings)})"
        yield line
    for key, value in inner.items():
        yield from _objectives(value, key)


def _corpora(nlp: Language) -> Iterator[_Corpus]:
    """Yield the data that the readers in [corpora] of a config read."""
    for role, block in nlp.config.interpolate().get("corpora", {}).items():
        yield from _read_corpora(block, (role,))


def _read_corpora(block: Mapping[str, Any], role: tuple[str, ...]) -> Iterator[_Corpus]:
    """Yield the data of a reader and of the readers inside it."""
    entries = block.get("path")
    if not isinstance(entries, list):
        entries = [entries]
    paths = [Path(entry) for entry in entries if isinstance(entry, str) and entry]
    if paths:
        files = ", ".join(path.name for path in paths)
        yield _Corpus(", ".join(role), files, _count_examples(block, paths))
    for key, inner in block.items():
        if isinstance(inner, Mapping):
            # Readers that hold others call them "corpora" or "corpus", which says nothing more
            own_role = role if key in ("corpora", "corpus") else (*role, key)
            yield from _read_corpora(inner, own_role)


def _count_examples(block: Mapping[str, Any], paths: Sequence[Path]) -> int | None:
    """Return the number of examples that a reader gives; None if it is not known."""
    is_ours = block.get("@readers") == "spacy-sbert.PairCorpus.v1"
    if not is_ours or not all(path.is_file() for path in paths):
        return None
    # The file may be another one by now, or have another layout
    with suppress(OSError, TypeError, ValueError):
        corpus = registry.resolve({"corpus": dict(block)})["corpus"]
        return int(corpus.count())
    return None


def _count_parameters(nlp: Language) -> int:
    """Count the parameters of all pipes, including those in PyTorch; shared ones count once."""
    sizes: dict[int, int] = {}
    for _, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        if model:
            for node in model.walk():
                sizes |= _parameter_sizes(node)
    return sum(sizes.values())


def _parameter_sizes(node: Model) -> dict[int, int]:
    """Return the sizes of the parameters of a layer by their identities."""
    sizes: dict[int, int] = {}
    for name in node.param_names:
        if node.has_param(name):
            array = node.get_param(name)
            sizes[id(array)] = array.size
    for shim in node.shims:
        module = shim._model  # noqa: SLF001 (shims of all kinds hold their module there)
        if hasattr(module, "parameters"):
            sizes |= {id(tensor): tensor.numel() for tensor in module.parameters()}
    return sizes
