"""The README.md of a pipeline, which `spacy package` includes."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from ..files.regular import check_output
from ..files.whole import write_text
from ..render.document import Table
from ..render.markdown import escape, render_table
from ..render.markup import clean
from .facts import README, PipelineFacts
from .tables import data_section, encoder_table, score_section, versions_text

MARK = "<!-- Written by python -m spacy sbert card, which replaces it as long as nobody changes it: {digest} -->\n"


def package_card(facts: PipelineFacts) -> str:
    """The README of a pipeline's package, in Markdown."""
    return "\n\n".join(_blocks(facts)) + "\n"


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


def _blocks(facts: PipelineFacts) -> Iterator[str]:
    meta = facts.meta
    yield f"# {escape(facts.name)}"
    if meta.get("description"):
        yield escape(meta["description"])
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
        yield escape(f"doc.vector answers with {facts.answering}; each has its own vector, doc._.<name>_vector.")
    yield from data_section(facts)
    yield from score_section(facts)
    labels = [(pipe, ", ".join(map(str, found))) for pipe, found in (meta.get("labels") or {}).items() if found]
    if labels:
        yield "## Labels"
        yield render_table(Table("", ["Component", "Labels"], labels, texts=2))
    if meta.get("notes"):
        yield escape(meta["notes"])


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
