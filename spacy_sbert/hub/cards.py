"""Model cards: a pipeline's sentence vectors, described for its package and the hub."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from jinja2 import Environment, PackageLoader
from spacy.language import Language
from spacy.util import registry
from thinc.api import Model

from ..files.atomic import check_output, write_text
from ..files.checksum import digest_of_bytes
from ..files.serialization import versions
from ..pipeline import doc_vectors, sentence_model
from ..pipeline.sbert import SentenceBert
from ..pipeline.upstream import find_upstream
from ..render.document import escape_markdown
from ..render.plots import clean
from ..training.gold import shown_score

_README = "README.md"
# Cards do not show the paths of local folders
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
_MARK = (
    "<!-- Written by python -m spacy sbert card, which replaces it as long as nobody changes it: "
    "{digest} -->\n"
)
_PACKAGES = ("spacy-sbert", "spacy", "spacy-transformers", "transformers", "torch")
_TASK = "sentence-similarity"
# Measures of sentence vectors: a label, and the task and metric of the hub, as
# sentence-transformers has them
_MEASURES = {
    "sts_spearman": (
        "Spearman correlation of cosine and gold score",
        "Semantic Similarity",
        "Spearman Cosine",
    ),
    "sts_pearson": (
        "Pearson correlation of cosine and gold score",
        "Semantic Similarity",
        "Pearson Cosine",
    ),
    "pair_ap": (
        "Average precision of cosine on labelled pairs",
        "Binary Classification",
        "Cosine Ap",
    ),
    "pair_acc": (
        "Accuracy of the best threshold on cosine",
        "Binary Classification",
        "Cosine Accuracy",
    ),
    "pair_acc_threshold": (
        "Threshold of that accuracy, not x 100",
        "Binary Classification",
        "Cosine Accuracy Threshold",
    ),
    "pair_f1": ("F1 of the best threshold on cosine", "Binary Classification", "Cosine F1"),
    "pair_f1_threshold": (
        "Threshold of that F1, not x 100",
        "Binary Classification",
        "Cosine F1 Threshold",
    ),
    "pair_precision": ("Precision at that F1", "Binary Classification", "Cosine Precision"),
    "pair_recall": ("Recall at that F1", "Binary Classification", "Cosine Recall"),
    "pair_mcc": ("Matthews correlation at that F1", "Binary Classification", "Cosine Mcc"),
    "nli_acc": ("Accuracy of the label of a pair", "Natural Language Inference", "Accuracy"),
    "triplet_acc": ("Accuracy of triplets, Euclidean", "Triplet", "Euclidean Accuracy"),
    "knn_acc": (
        "Accuracy of the nearest text's label, cosine",
        "Text Classification",
        "Cosine Knn Accuracy",
    ),
}


class _Corpus(NamedTuple):
    """The data that one reader in [corpora] of a config reads.

    role: where the reader is, such as "train" or "dev, sts". file: the name of the file, or of
        several, without folders. size: the number of examples; None if it is not known.
    """

    role: str
    file: str
    size: int | None


@dataclass(frozen=True)
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
    is_on_hub: bool
    pooling: str
    normalized: bool
    width: int
    max_length: int | None
    objectives: tuple[str, ...]
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
        return "no limit" if self.n_wordpieces else str(self.max_length or "not stated")


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
        return "multilingual" if self.meta["lang"] == "xx" else self.meta["lang"]

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
    performance = nlp.meta.get("performance") or {}
    scores = {key: float(value) for key, value in performance.items() if _is_score(key, value)}
    encoders = [_describe_encoder(nlp, own, width, performance) for own, width in widths.items()]
    corpora: list[_Corpus] = []
    if any(encoder.objectives for encoder in encoders):
        for role, block in nlp.config.interpolate().get("corpora", {}).items():
            corpora += _read_corpora(block, (role,))
    answering = doc_vectors.find(doc)[0].name
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
        corpora=tuple(corpora),
        scores=scores,
        n_parameters=_count_parameters(nlp),
        size=None if folder is None else _size_of(folder),
    )


def _package_name(nlp: Language, name: str | None) -> str:
    """Return the name of a package, which begins with the language."""
    name = name or str(nlp.meta["name"])
    prefix = f"{nlp.lang}_"
    return name if name.startswith(prefix) else f"{prefix}{name}"


def _size_of(folder: Path) -> int:
    """Return the bytes of a folder, without the card, which states them."""
    card = folder / _README
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
    measured = {key: value for key, value in scores.items() if _measure(key)}
    if is_answering:
        prefixes = tuple(f"{name}_" for name in others)
        return {key: value for key, value in measured.items() if not key.startswith(prefixes)}
    # Scores of a pipe that does not answer `doc.vector` begin with its name
    prefix = f"{pipe}_"
    own = [key for key in measured if key.startswith(prefix)]
    return {key.removeprefix(prefix): measured[key] for key in own}


def _describe_encoder(
    nlp: Language, name: str, width: int, performance: Mapping[str, object]
) -> _EncoderFacts:
    pipe = nlp.get_pipe(name)
    config = nlp.config["components"][name]
    if not isinstance(pipe, SentenceBert):
        # A meta-embedding
        members = ", ".join(member.name for member in pipe.members)  # type: ignore[attr-defined]
        return _EncoderFacts(
            pipe=name,
            base_model=members,
            is_on_hub=False,
            pooling=config["method"],
            normalized=config["normalize"],
            width=width,
            max_length=None,
            objectives=(),
        )
    base_model = _base_model(nlp, pipe, config["model"])
    is_hub_name = bool(_HUB_NAME.fullmatch(base_model)) and not Path(base_model).exists()
    pooling = pipe.model.get_ref("pooling")
    settings = None
    rounding = ""
    # A tok2vec, or a transformer of spacy-transformers, has no settings of ours
    with suppress(ValueError):
        transformer = sentence_model.find_transformer(name, pipe.model)
        settings = transformer.shim.load()
        rounding = sentence_model.describe_int8(transformer)
    table = sentence_model.find_static_embedding(pipe.model)
    loss = config.get("loss") if f"{name}_loss" in performance else None
    return _EncoderFacts(
        pipe=name,
        base_model=base_model if is_hub_name else Path(base_model).name,
        is_on_hub=table is None and is_hub_name,
        pooling=pooling.pooling_name,  # type: ignore[attr-defined]
        normalized=pooling.normalizes(settings),  # type: ignore[attr-defined]
        width=width,
        max_length=settings.max_length if settings else None,
        objectives=tuple(_objectives(loss)) if loss else (),
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


def _read_corpora(block: Mapping[str, Any], role: tuple[str, ...]) -> Iterator[_Corpus]:
    """Yield the data of a reader and of the readers inside it."""
    given = block.get("path")
    entries = given if isinstance(given, list) else [given]
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
        return int(registry.resolve({"corpus": dict(block)})["corpus"].count())
    return None


def _count_parameters(nlp: Language) -> int:
    """Count the parameters of all pipes, including those in PyTorch; shared ones count once."""
    sizes: dict[int, int] = {}
    for _, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        for node in model.walk() if model else ():
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


def _is_score(key: str, value: object) -> bool:
    if key == "speed" or key.endswith("_loss"):
        return False
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)


def _measure(key: str) -> tuple[str, str] | None:
    """Return the measure and the corpus or pipe that a key of meta.json names.

    None for scores of other components.
    """
    for measure in _MEASURES:
        if match := re.fullmatch(rf"(?:(.+)_)?{measure}(?:_(.+))?", key):
            return measure, match[1] or match[2] or ""
    return None


def package_card(facts: PipelineFacts, *, front_matter: bool = False) -> str:
    """Return the README of a pipeline's package, in Markdown.

    front_matter: whether the metadata of the hub begin.
    """
    card = _render("spacy", facts)
    return _metadata_block(facts, "spacy") + card if front_matter else card


def sentence_transformers_card(
    nlp: Language, pipe_name: str = "sbert", *, folder: str | None = None
) -> str:
    """Return the README.md, with front matter, of an exported encoder.

    nlp (Language): the pipeline that was exported. pipe_name (str): its `sbert` pipe.
    folder (str): what to give to SentenceTransformer; by default the name of the pipeline.
    RAISES (ValueError): if the pipe makes no sentence vectors.
    """
    facts = describe(nlp, pipe=pipe_name)
    library = "sentence-transformers"
    return _metadata_block(facts, library) + _render(library, facts, folder=folder or facts.name)


def _metadata(facts: PipelineFacts, library: str) -> ModelCardData:
    """Return the front matter of a card.

    library: what loads the model, "spacy" or "sentence-transformers".
    """
    # Spelled as spacy-huggingface-hub does
    licence = clean(facts.meta.get("license") or "").strip()
    licence = licence.replace(" ", "-").lower().removeprefix("gnu-")
    base_models = [encoder.base_model for encoder in facts.encoders if encoder.is_on_hub]
    return ModelCardData(
        language=facts.languages,
        license=licence or None,
        library_name=library,
        tags=[library, _TASK, "feature-extraction"],
        base_model=list(dict.fromkeys(base_models)) or None,
        pipeline_tag=_TASK,
        model_name=clean(facts.name),
        eval_results=list(_eval_results(facts)) or None,
    )


def _metadata_block(facts: PipelineFacts, library: str) -> str:
    return f"---\n{_metadata(facts, library).to_yaml()}\n---\n\n"


def _eval_results(facts: PipelineFacts) -> Iterator[EvalResult]:
    """Yield the scores of sentence vectors, from 0 to 1, in the format of the hub's model-index."""
    for key, value in facts.scores.items():
        if measure := _measure(key):
            name, part = measure
            _, task, metric = _MEASURES[name]
            dataset = facts.scored_on or "Unknown"
            dataset = clean(f"{dataset}, {part}" if part else dataset)
            yield EvalResult(
                task_type=_slug(task, "-"),
                task_name=task,
                dataset_type=_slug(dataset, "-"),
                dataset_name=dataset,
                metric_type=_slug(metric, "_"),
                metric_name=metric,
                metric_value=value,
            )


def _slug(text: str, joint: str) -> str:
    return re.sub(r"[\W_]+", joint, text.lower()).strip(joint)


def write_readme(folder: Path, text: str, *, force: bool = False) -> bool:
    """Write a card as README.md into the folder of a pipeline.

    One that somebody wrote or changed stays, unless `force` is set.

    RETURNS (bool): whether it was written.
    RAISES (ValueError): if README.md is a link, or not a file.
    """
    path = folder / _README
    check_output(path)
    if path.exists() and not force:
        present, _, mark = path.read_bytes().decode("utf8", errors="replace").rpartition("\n<!--")
        if f"<!--{mark}" != _mark(present):
            return False
    write_text(path, f"{text}\n{_mark(text)}")
    return True


def _mark(text: str) -> str:
    return _MARK.format(digest=digest_of_bytes(text.encode("utf8"))[:16])


def update_hub(repo: str, facts: PipelineFacts) -> None:
    """Put the metadata of sentence vectors into the card of a repository on the hub.

    Its text and own tags stay.

    repo (str): such as "organisation/en_sbert_sts", where `spacy huggingface-hub push` wrote a
        card.
    """
    metadata = _metadata(facts, "spacy")
    card = ModelCard.load(repo)
    tags = [*(card.data.get("tags") or []), *(metadata.tags or [])]
    for key, value in vars(metadata).items():
        if value is not None:
            card.data[key] = value
    card.data["tags"] = list(dict.fromkeys(tags))
    card.push_to_hub(repo, commit_message="Sentence similarity in the metadata of the card")


def _render(library: str, facts: PipelineFacts, **values: str) -> str:
    """Return the card for users of a library, "spacy" or "sentence-transformers"."""
    environment = Environment(
        loader=PackageLoader("spacy_sbert.hub", "."), trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"md": escape_markdown, "clean": clean, "quote": json.dumps}
    environment.filters["either"] = lambda value, yes, no: yes if value else no
    meta = facts.meta
    author = [str(meta[key]) for key in ("author", "email", "url") if meta.get(key)]
    sources = [
        one.get("name") if isinstance(one, dict) else one for one in meta.get("sources") or ()
    ]
    installed = versions()
    packages = [f"{name} {installed[name]}" for name in _PACKAGES if name in installed]
    text = environment.get_template("card.md.jinja").render(
        library=library,
        facts=facts,
        meta=meta,
        scores=list(_score_rows(facts)),
        licence=meta.get("license") or "not stated",
        author=", ".join(author) or "not stated",
        sources=[str(name) for name in sources if name],
        versions=", ".join(packages),
        **values,
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _score_rows(facts: PipelineFacts) -> Iterator[tuple[str, str, str]]:
    """Yield the label, the key in meta.json and the value x 100 of every score.

    Scores of other components have no label. A threshold is not multiplied: a cosine is compared
    with it.
    """
    for key, value in facts.scores.items():
        measure = _measure(key)
        if measure is None:
            yield key, key, shown_score(key, value)
            continue
        name, part = measure
        label = _MEASURES[name][0]
        yield (f"{label}, {part}" if part else label), key, shown_score(name, value)
