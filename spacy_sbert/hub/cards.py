"""Model cards: a pipeline's sentence vectors, described for its package and the hub."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from jinja2 import Environment, PackageLoader
from spacy.language import Language

from ..files.atomic import check_output, write_text
from ..files.checksum import digest_of_bytes
from ..files.serialization import versions
from ..render.document import escape_markdown
from ..render.plots import clean
from ..training.gold import shown_score
from .facts import README, PipelineFacts, describe
from .scores import measure_of

_MARK = (
    "<!-- Written by python -m spacy sbert card, which replaces it as long as nobody changes it: "
    "{digest} -->\n"
)
_PACKAGES = ("spacy-sbert", "spacy", "spacy-transformers", "transformers", "torch")
_TASK = "sentence-similarity"


def package_card(facts: PipelineFacts, *, front_matter: bool = False) -> str:
    """Return the README of a pipeline's package, in Markdown.

    front_matter: whether it begins with the metadata of the hub.

    Example:
        write_readme(Path("pipeline"), package_card(describe(nlp)))

    """
    card = _render("spacy", facts)
    if front_matter:
        card = _front_matter(facts, "spacy") + card
    return card


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
    return _front_matter(facts, library) + _render(library, facts, folder=folder or facts.name)


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


def _front_matter(facts: PipelineFacts, library: str) -> str:
    return f"---\n{_metadata(facts, library).to_yaml()}\n---\n\n"


def _eval_results(facts: PipelineFacts) -> Iterator[EvalResult]:
    """Yield the scores of sentence vectors, from 0 to 1, in the format of the hub's model-index."""
    scored_on = facts.scored_on or "Unknown"
    for key, value in facts.scores.items():
        found = measure_of(key)
        if found is None:
            continue
        measure, part = found
        dataset = clean(_joined(scored_on, part))
        yield EvalResult(
            task_type=_slug(measure.task, "-"),
            task_name=measure.task,
            dataset_type=_slug(dataset, "-"),
            dataset_name=dataset,
            metric_type=_slug(measure.metric, "_"),
            metric_name=measure.metric,
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
    path = folder / README
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
    environment.filters |= {
        "md": escape_markdown,
        "clean": clean,
        "quote": json.dumps,
        "either": _either,
    }
    meta = facts.meta
    author = _joined(*(str(meta.get(key) or "") for key in ("author", "email", "url")))
    installed = versions()
    packages = [f"{name} {installed[name]}" for name in _PACKAGES if name in installed]
    text = environment.get_template("card.md.jinja").render(
        library=library,
        facts=facts,
        meta=meta,
        scores=list(_score_rows(facts)),
        licence=meta.get("license") or "not stated",
        author=author or "not stated",
        sources=list(_sources(facts)),
        versions=", ".join(packages),
        **values,
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _either(value: object, yes: str, no: str) -> str:
    return yes if value else no


def _sources(facts: PipelineFacts) -> Iterator[str]:
    """Yield the names of the sources in a meta.json, which are objects or names."""
    for source in facts.meta.get("sources") or ():
        name = source.get("name") if isinstance(source, dict) else source
        if name:
            yield str(name)


def _score_rows(facts: PipelineFacts) -> Iterator[tuple[str, str, str]]:
    """Yield the label, the key in meta.json and the value x 100 of every score.

    Scores of other components have their key as label. A threshold is not multiplied: a cosine is
    compared with it.
    """
    for key, value in facts.scores.items():
        found = measure_of(key)
        if found is None:
            yield key, key, shown_score(key, value)
            continue
        measure, part = found
        yield _joined(measure.label, part), key, shown_score(measure.key, value)


def _joined(*names: str) -> str:
    """Return names with commas between them; empty ones are left out."""
    return ", ".join(filter(None, names))
