"""Model cards: a pipeline's sentence vectors, described for its package, the Hugging Face hub and other libraries."""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from jinja2 import Environment, PackageLoader
from spacy.language import Language
from spacy.util import registry

from ..files.atomic import check_output, write_text
from ..files.serialization import versions
from ..pipeline import doc_vectors, listeners
from ..pipeline.sbert import SentenceBert
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
# Of sentence vectors: a label, and the task and metric of the hub, as sentence-transformers has
# them
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
    """The data that one reader in [corpora] of a config reads."""

    # Its place there, such as "train" or "dev, sts"
    role: str
    # Its name, or names, without folders
    file: str
    # Of its examples; None if it is not known
    size: int | None


@dataclass(frozen=True)
class _EncoderFacts:
    """The sentence vectors of one pipe."""

    pipe: str
    # The encoder's name; for a local folder only the last part
    base_model: str
    is_on_hub: (
        # Whether weights of it were taken, and that can be a name on the Hugging Face hub
        bool
    )
    # The mode, or the method of a meta-embedding
    pooling: str
    normalized: bool
    # Measured
    width: int
    # Wordpieces of a row, None if unknown
    max_length: int | None
    # The loss layers of the config with their settings; none if no training is recorded
    objectives: tuple[str, ...]
    # In the table of a static encoder, which has no transformer and no limit
    n_wordpieces: int = 0
    # What `precision = "int8"` rounds by
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
        return ", ".join(
            corpus.file for corpus in self.corpora if corpus.role.split(", ")[0] == "dev"
        )


def describe(
    nlp: Language,
    *,
    folder: Path | None = None,
    name: str | None = None,
    version: str | None = None,
    pipe: str | None = None,
) -> PipelineFacts:
    """Find out what a card says about a pipeline.

    nlp (Language): with at least one `sbert` or `sbert_meta` pipe. It encodes a text, which shows
        the vectors' width.
    folder (Path): where it is saved, for its size.
    name, version (str): of the package, as `spacy package` takes them; by default those of
        meta.json.
    pipe (str): whose encoder and scores alone are described; by default all.
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
    encoders = tuple(
        _describe_encoder(nlp, own, width, performance) for own, width in widths.items()
    )
    corpora = (
        nlp.config.interpolate().get("corpora", {})
        if any(encoder.objectives for encoder in encoders)
        else {}
    )
    answering = doc_vectors.find(doc)[0].name
    if pipe is not None:
        scores = _scores_of(pipe, scores, list(widths), is_answering=pipe == answering)
        encoders = tuple(encoder for encoder in encoders if encoder.pipe == pipe)
    name = name or nlp.meta["name"]
    size = None
    # Without the card, which states it
    if folder is not None:
        files = [file for file in folder.rglob("*") if file.is_file() and file != folder / _README]
        size = sum(file.stat().st_size for file in files)
    return PipelineFacts(
        name=name if name.startswith(f"{nlp.lang}_") else f"{nlp.lang}_{name}",
        version=version or nlp.meta["version"],
        meta=dict(nlp.meta),
        components=tuple(nlp.pipe_names),
        encoders=encoders,
        answering=answering,
        corpora=tuple(
            corpus for key, block in corpora.items() for corpus in _read_corpora(block, (key,))
        ),
        scores=scores,
        n_parameters=_count_parameters(nlp),
        size=size,
    )


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
    # Scores of a pipe that does not answer `doc.vector` begin with its name.
    return {
        key.removeprefix(f"{pipe}_"): value
        for key, value in measured.items()
        if key.startswith(f"{pipe}_")
    }


def _describe_encoder(
    nlp: Language, name: str, width: int, performance: Mapping[str, object]
) -> _EncoderFacts:
    pipe, config = nlp.get_pipe(name), nlp.config["components"][name]
    # A meta-embedding
    if not isinstance(pipe, SentenceBert):
        names = ", ".join(member.name for member in pipe.members)  # type: ignore[attr-defined]
        return _EncoderFacts(
            name, names, False, config["method"], config["normalize"], width, None, ()
        )
    base_model, pooling = _base_model(nlp, pipe, config["model"]), pipe.model.get_ref("pooling")
    is_hub_name = bool(_HUB_NAME.fullmatch(base_model)) and not Path(base_model).exists()
    settings, rounding = None, ""
    # A tok2vec, or a transformer of spacy-transformers
    with suppress(ValueError):
        transformer = listeners.find_transformer(name, pipe.model)
        settings, rounding = transformer.shim.load(), listeners.describe_int8(transformer)
    table = listeners.find_static_embedding(pipe.model)
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
            model = {
                "tok2vec": nlp.get_pipe_config(
                    listeners.find_upstream(nlp, pipe.name, listener).name
                )["model"]
            }
        return str(model["tok2vec"]["@architectures"])
    if listeners.find_static_embedding(pipe.model) is not None:
        return str(model["name"])
    return listeners.transformer_name(pipe.model)


def _objectives(block: dict[str, Any], name: str = "") -> Iterator[str]:
    """Yield the loss layers of a config with their settings, each layer before the layers inside it."""
    if block.get("@layers") == "spacy-sbert.LossByName.v1":
        block = {"@layers": block["name"], **block["settings"]}
    plain = {
        key: value
        for key, value in block.items()
        if key != "@layers" and not isinstance(value, dict)
    }
    settings = ", ".join(f"{key} = {value}" for key, value in plain.items())
    if "@layers" in block:
        yield (
            (f"{name}: " if name else "")
            + block["@layers"]
            + (f" ({settings})" if settings else "")
        )
    for key, value in block.items():
        if isinstance(value, dict):
            yield from _objectives(value, key)


def _read_corpora(block: Mapping[str, Any], role: tuple[str, ...]) -> Iterator[_Corpus]:
    """Yield the data of a reader and of the readers inside it."""
    path = block.get("path")
    paths = [
        Path(entry)
        for entry in (path if isinstance(path, list) else [path])
        if entry and isinstance(entry, str)
    ]
    if paths:
        count = None
        if block.get("@readers") == "spacy-sbert.PairCorpus.v1" and all(
            file.is_file() for file in paths
        ):
            # Another file by now, or another layout
            with suppress(OSError, TypeError, ValueError):
                count = registry.resolve({"corpus": dict(block)})["corpus"].count()
        yield _Corpus(", ".join(role), ", ".join(file.name for file in paths), count)
    for key, inner in block.items():
        if isinstance(inner, Mapping):
            # Readers that hold others call them "corpora" or "corpus", which says nothing about
            # them.
            yield from _read_corpora(inner, role if key in ("corpora", "corpus") else (*role, key))


def _count_parameters(nlp: Language) -> int:
    """Count the parameters of all pipes, including those in PyTorch; shared ones count once."""
    models = [model for _, pipe in nlp.pipeline if (model := getattr(pipe, "model", None))]
    sizes: dict[int, int] = {}
    for node in (node for model in models for node in model.walk()):
        arrays = [node.get_param(name) for name in node.param_names if node.has_param(name)]
        modules = [shim._model for shim in node.shims]  # noqa: SLF001 (shims of all kinds hold their module there)
        tensors = [
            p for module in modules if hasattr(module, "parameters") for p in module.parameters()
        ]
        sizes.update({id(array): array.size for array in arrays})
        sizes.update({id(tensor): tensor.numel() for tensor in tensors})
    return sum(sizes.values())


def _is_score(key: str, value: object) -> bool:
    is_number = (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    )
    return is_number and not key.endswith("_loss") and key != "speed"


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
    return (_metadata_block(facts, "spacy") if front_matter else "") + _render("spacy", facts)


def sentence_transformers_card(
    nlp: Language, pipe_name: str = "sbert", *, folder: str | None = None
) -> str:
    """Return the README.md, with front matter, of a pipe's encoder as exported for sentence-transformers.

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
    return ModelCardData(
        language=facts.languages,
        license=licence.replace(" ", "-").lower().removeprefix("gnu-") or None,
        library_name=library,
        tags=[library, _TASK, "feature-extraction"],
        base_model=list(
            dict.fromkeys(encoder.base_model for encoder in facts.encoders if encoder.is_on_hub)
        )
        or None,
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
            _, task, metric = _MEASURES[measure[0]]
            dataset = clean(", ".join(filter(None, (facts.scored_on or "Unknown", measure[1]))))
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
    """Write a card as README.md into the folder of a pipeline, unless somebody wrote or changed the one there.

    RETURNS (bool): whether it was written.
    RAISES (ValueError): if the one that stands there is a link, or not a file.
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
    return _MARK.format(digest=hashlib.sha256(text.encode("utf8")).hexdigest()[:16])


def update_hub(repo: str, facts: PipelineFacts) -> None:
    """Put the metadata of sentence vectors into the card of a repository on the hub.

    Its text and own tags stay.

    repo (str): such as "organisation/en_sbert_sts", where `spacy huggingface-hub push` wrote a
        card.
    """
    metadata = _metadata(facts, "spacy")
    card = ModelCard.load(repo)
    tags = [*(card.data.get("tags") or []), *(metadata.tags or [])]
    for key, value in {**vars(metadata), "tags": list(dict.fromkeys(tags))}.items():
        if value is not None:
            card.data[key] = value
    card.push_to_hub(repo, commit_message="Sentence similarity in the metadata of the card")


def _render(library: str, facts: PipelineFacts, **values: str) -> str:
    """Return the card for those who load the model with a library: "spacy" or "sentence-transformers"."""
    environment = Environment(
        loader=PackageLoader("spacy_sbert.hub", "."), trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"md": escape_markdown, "clean": clean, "quote": json.dumps}
    environment.filters["either"] = lambda value, yes, no: yes if value else no
    meta, installed = facts.meta, versions()
    sources = [
        one.get("name") if isinstance(one, dict) else one for one in meta.get("sources") or ()
    ]
    text = environment.get_template("card.md.jinja").render(
        library=library,
        facts=facts,
        meta=meta,
        scores=list(_score_rows(facts)),
        licence=meta.get("license") or "not stated",
        author=", ".join(str(meta[key]) for key in ("author", "email", "url") if meta.get(key))
        or "not stated",
        sources=[str(name) for name in sources if name],
        versions=", ".join(f"{name} {installed[name]}" for name in _PACKAGES if name in installed),
        **values,
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _score_rows(facts: PipelineFacts) -> Iterator[tuple[str, str, str]]:
    """Yield the label, key in meta.json and value of every score x 100, including scores of other components.

    A threshold is not a score: it is what a cosine is compared with.
    """
    for key, value in facts.scores.items():
        measure = _measure(key)
        label = ", ".join(filter(None, (_MEASURES[measure[0]][0], measure[1]))) if measure else key
        yield label, key, shown_score(measure[0] if measure else key, value)
