"""The card of a folder that sentence-transformers loads."""

import json
from collections.abc import Iterator
from dataclasses import replace

from spacy.language import Language

from ..render.markdown import escape
from .facts import PipelineFacts, describe
from .hub import hub_metadata, with_metadata
from .scores import of_pipe
from .tables import data_section, encoder_table, score_section, versions_text

LIBRARY = "sentence-transformers"


def sentence_transformers_card(nlp: Language, pipe_name: str = "sbert", *, folder: str | None = None) -> str:
    """The README.md, front matter included, of the encoder of one pipe, exported for sentence-transformers.

    nlp (Language): the pipeline that was exported. pipe_name (str): its `sbert` pipe.
    folder (str): what to give to SentenceTransformer; by default the name of the pipeline.
    RAISES (ValueError): if the pipe makes no sentence vectors.
    """
    facts = replace(of_pipe(describe(nlp), pipe_name), answering=pipe_name)
    text = "\n\n".join(_blocks(facts, folder or facts.name)) + "\n"
    return with_metadata(hub_metadata(facts, library=LIBRARY), text)


def _blocks(facts: PipelineFacts, folder: str) -> Iterator[str]:
    yield f"# {escape(facts.name)}"
    if facts.meta.get("description"):
        yield escape(facts.meta["description"])
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
    yield escape(f"Languages: {facts.languages}. Licence: {licence}. Made with {versions_text()}.")
