"""The tables that cards have in common."""

from collections.abc import Iterator, Sequence

from ..files.environment import versions
from ..render.document import Table
from ..render.markdown import escape, render_table
from .facts import EncoderFacts, PipelineFacts
from .scores import score_rows, scored_on

PACKAGES = ("spacy-sbert", "spacy", "spacy-transformers", "transformers", "torch")
NOT_RECORDED = "no training by spacy train is recorded"


def encoder_table(encoders: Sequence[EncoderFacts]) -> str:
    """The settings of one or several encoders, a column each."""
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


def _base_text(encoder: EncoderFacts) -> str:
    if not encoder.n_wordpieces:
        return encoder.base_model
    return f"none: a table of {encoder.n_wordpieces:,} wordpieces; tokenizer after {encoder.base_model}"


def _limit_text(encoder: EncoderFacts) -> str:
    return "no limit" if encoder.n_wordpieces else str(encoder.max_length or "not stated")


def data_section(facts: PipelineFacts) -> Iterator[str]:
    """What was trained and scored on."""
    if facts.corpora:
        counts = ["not known" if corpus.count is None else f"{corpus.count:,}" for corpus in facts.corpora]
        rows = [(corpus.role, corpus.file, count) for corpus, count in zip(facts.corpora, counts, strict=True)]
        yield "## Data"
        yield render_table(Table("", ["Corpus", "File", "Examples"], rows, texts=2))
        yield "Examples as counted in the files when this card was written."


def score_section(facts: PipelineFacts) -> Iterator[str]:
    """The scores that training left in meta.json."""
    if facts.scores:
        yield "## Scores"
        where = scored_on(facts)
        on = f" on {where}, by which the best weights are chosen: a test set scores lower, as a rule" if where else ""
        yield escape(f"x 100, as spacy train measured them{on}.")
        yield render_table(Table("", ["Measure", "Name", "Score"], score_rows(facts), texts=2))


def versions_text() -> str:
    """The versions of the packages that the card was written with."""
    found = versions()
    return ", ".join(f"{name} {found[name]}" for name in PACKAGES if name in found)
