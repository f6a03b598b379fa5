"""Components before an encoder of spaCy's tokens that may change what it reads of them."""

from spacy.attrs import NAMES
from spacy.language import Language
from thinc.api import Model

from ..errors import Warnings
from .sentence_model import SentenceModel

# In the attrs of spaCy's layer that reads features of tokens
_COLUMNS = "columns"


def token_changes_warning(model: SentenceModel, nlp: Language, name: str) -> str | None:
    """Return the warning that texts may be encoded otherwise than their Docs, None if they are not.

    Of a text only the tokenizer makes tokens. Components before the pipe may join or split them, or
    set attributes that the encoder reads.
    """
    if not model.source.reads_tokens or name not in nlp.pipe_names:
        return None
    read = _attributes_read([model, *model.encoding_models(nlp, name)])
    changing = []
    for before in nlp.pipe_names[: nlp.pipe_names.index(name)]:
        meta = nlp.get_pipe_meta(before)
        # One that says nothing of itself may do anything
        may_change = not meta.assigns or not read.isdisjoint(meta.assigns)
        if meta.retokenizes or may_change:
            changing.append(before)
    if not changing:
        return None
    return Warnings.TOKENS_CHANGED.format(name=name, pipes=", ".join(changing))


def _attributes_read(models: list[Model]) -> set[str]:
    """Return the attributes that models embed, as components say what they assign: token.norm."""
    columns = {column for model in models for node in model.walk() for column in _columns(node)}
    return {f"token.{column.lower()}" for column in columns}


def _columns(node: Model) -> list[str]:
    columns = node.attrs.get(_COLUMNS, [])
    return [NAMES[column] if isinstance(column, int) else str(column) for column in columns]
