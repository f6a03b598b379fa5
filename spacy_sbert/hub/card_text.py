"""Model cards as Markdown, for packages and the Hugging Face hub."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from huggingface_hub import ModelCard, ModelCardData
from spacy.language import Language

from ..files.atomic import check_output, write_text
from ..render.document import Table, escape_markdown, render_table
from ..render.plots import clean
from .card import (
    README,
    PipelineFacts,
    data_section,
    describe,
    encoder_table,
    eval_results,
    of_pipe,
    score_section,
    versions_text,
)

MARK = "<!-- Written by python -m spacy sbert card, which replaces it as long as nobody changes it: {digest} -->\n"


def package_card(facts: PipelineFacts) -> str:
    """Return the README of a pipeline's package, in Markdown."""
    return "\n\n".join(_readme_blocks(facts)) + "\n"


def write_readme(folder: Path, text: str, *, force: bool = False) -> bool:
    """Write a card as README.md into the folder of a pipeline, unless somebody wrote or changed the one there.

    RETURNS (bool): whether it was written.
    RAISES (ValueError): if the one that stands there is a link, or not a file.
    """
    path = folder / README
    check_output(path)
    if path.exists() and not force:
        there, _, mark = path.read_bytes().decode("utf8", errors="replace").rpartition("\n<!--")
        if f"<!--{mark}" != _mark(there):
            return False
    write_text(path, f"{text}\n{_mark(text)}")
    return True


def _mark(text: str) -> str:
    return MARK.format(digest=hashlib.sha256(text.encode("utf8")).hexdigest()[:16])


def _readme_blocks(facts: PipelineFacts) -> Iterator[str]:
    meta = facts.meta
    yield f"# {escape_markdown(facts.name)}"
    if meta.get("description"):
        yield escape_markdown(meta["description"])
    yield (
        "Sentence vectors in a spaCy pipeline, made with spacy-sbert: `doc.vector`, `span.vector`, `token.vector` and "
        "`similarity` answer with them."
    )
    yield _use(facts)
    yield "## Pipeline"
    yield render_table(Table("", ["", ""], list(_pipeline_rows(facts)), texts=2))
    yield "## Sentence vectors"
    yield encoder_table(facts.encoders)
    if len(facts.encoders) > 1:
        yield escape_markdown(
            f"doc.vector answers with {facts.answering}; each has its own vector, doc._.<name>_vector."
        )
    yield from data_section(facts)
    yield from score_section(facts)
    labels = [(pipe, ", ".join(map(str, found))) for pipe, found in (meta.get("labels") or {}).items() if found]
    if labels:
        yield "## Labels"
        yield render_table(Table("", ["Component", "Labels"], labels, texts=2))
    if meta.get("notes"):
        yield escape_markdown(meta["notes"])


def _use(facts: PipelineFacts) -> str:
    answers = next((encoder for encoder in facts.encoders if encoder.pipe == facts.answering), None)
    if answers is None:  # another pipe is described
        (described,) = facts.encoders
        shown = f"print(doc._.{described.pipe}_vector.shape)  # ({described.width},)"
    else:
        shown = (
            f'print(doc.vector.shape)  # ({answers.width},)\nprint(doc.similarity(nlp("Someone is having a meal.")))'
        )
    return f"""```bash
pip install {clean(facts.name)}-{clean(facts.version)}-py3-none-any.whl
```

```python
import spacy

nlp = spacy.load({json.dumps(facts.name)})
doc = nlp("A man is eating food.")
{shown}
```"""


def _pipeline_rows(facts: PipelineFacts) -> Iterator[tuple[str, str]]:
    meta = facts.meta
    yield "Name", facts.name
    yield "Version", facts.version
    yield "Languages", facts.languages
    yield "Components", ", ".join(facts.components)
    yield "Parameters", f"{facts.n_parameters:,}"
    if facts.size is not None:
        yield "Size on disk", f"{facts.size / 1e6:,.1f} MB"
    yield "spaCy", meta.get("spacy_version") or "not stated"
    yield "Made with", versions_text()
    if meta.get("sources"):
        named = [source.get("name") if isinstance(source, dict) else source for source in meta["sources"]]
        yield "Sources", ", ".join(str(name) for name in named if name)
    yield "Licence", meta.get("license") or "not stated"
    author = ", ".join(str(meta[key]) for key in ("author", "email", "url") if meta.get(key))
    yield "Author", author or "not stated"


TASK = "sentence-similarity"
TAGS = (TASK, "feature-extraction")


def hub_metadata(facts: PipelineFacts, *, library: str = "spacy") -> ModelCardData:
    """Return the front matter of a card.

    library (str): what loads the model: "spacy" or "sentence-transformers".
    """
    licence = clean(facts.meta.get("license") or "").strip()  # spelled as spacy-huggingface-hub does
    return ModelCardData(
        language=facts.languages,
        license=licence.replace(" ", "-").lower().removeprefix("gnu-") or None,
        library_name=library,
        tags=[library, *TAGS],
        base_model=list(dict.fromkeys(one.base_model for one in facts.encoders if one.is_on_hub)) or None,
        pipeline_tag=TASK,
        model_name=clean(facts.name),
        eval_results=list(eval_results(facts)) or None,
    )


def _with_metadata(metadata: ModelCardData, text: str) -> str:
    """Return a card with its front matter."""
    return f"---\n{metadata.to_yaml()}\n---\n\n{text}"


def hub_card(facts: PipelineFacts) -> str:
    """Return the README of the pipeline's repository on the hub: front matter and the card of its package."""
    return _with_metadata(hub_metadata(facts), package_card(facts))


def update_hub(repo: str, metadata: ModelCardData) -> None:
    """Put metadata into the card of a repository on the hub; its text and its own tags stay.

    `spacy huggingface-hub push` writes a front matter of its own, which does not mention sentence vectors.

    repo (str): such as "organisation/en_sbert_sts".
    """
    card = ModelCard.load(repo)
    tags: Sequence[str] = [*(card.data.get("tags") or []), *(metadata.tags or [])]
    for key, value in {**vars(metadata), "tags": list(dict.fromkeys(tags))}.items():
        if value is not None:
            card.data[key] = value
    card.push_to_hub(repo, commit_message="Sentence similarity in the metadata of the card")


LIBRARY = "sentence-transformers"


def sentence_transformers_card(nlp: Language, pipe_name: str = "sbert", *, folder: str | None = None) -> str:
    """Return the README.md, with front matter, of a pipe's encoder as exported for sentence-transformers.

    nlp (Language): the pipeline that was exported. pipe_name (str): its `sbert` pipe.
    folder (str): what to give to SentenceTransformer; by default the name of the pipeline.
    RAISES (ValueError): if the pipe makes no sentence vectors.
    """
    facts = replace(of_pipe(describe(nlp), pipe_name), answering=pipe_name)
    text = "\n\n".join(_blocks(facts, folder or facts.name)) + "\n"
    return _with_metadata(hub_metadata(facts, library=LIBRARY), text)


def _blocks(facts: PipelineFacts, folder: str) -> Iterator[str]:
    yield f"# {escape_markdown(facts.name)}"
    if facts.meta.get("description"):
        yield escape_markdown(facts.meta["description"])
    width = facts.encoders[0].width
    yield f"A sentence encoder with {width} dimensions, exported from a spaCy pipeline by spacy-sbert."
    yield f"""```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer({json.dumps(folder)})
embeddings = model.encode(["A man is eating food.", "Someone is having a meal."])
print(model.similarity(embeddings, embeddings))
```"""
    yield "## Encoder"
    yield encoder_table(facts.encoders)
    yield from data_section(facts)
    yield from score_section(facts)
    licence = facts.meta.get("license") or "not stated"
    yield escape_markdown(f"Languages: {facts.languages}. Licence: {licence}. Made with {versions_text()}.")
