"""What `nlp(text)` does to a text that `encode(text)` does not: tokenizer and components."""

from spacy.attrs import NAMES
from spacy.language import Language
from thinc.api import Model

from ..errors import Warnings
from .sentence_model import SentenceModel

# In the attrs of spaCy's layer that reads features of tokens
_COLUMNS = "columns"
# With what tokenizers strip or normalize: capitals, an accent, markup, white space
_TRIAL = "The  <b>Café</b> is\nopen. "


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


def text_changes_warning(nlp: Language, name: str) -> str | None:
    """Return the warning that the pipeline's tokenizer changes texts, None if it does not.

    spaCy's own keep each character. Others are tried on a text.
    """
    if type(nlp.tokenizer).__module__.partition(".")[0] == "spacy":
        return None
    text = nlp.make_doc(_TRIAL).text
    if text == _TRIAL:
        return None
    return Warnings.TEXT_CHANGED.format(name=name, text=_TRIAL, changed=text)


def _attributes_read(models: list[Model]) -> set[str]:
    """Return the attributes that models embed, as components say what they assign: token.norm."""
    columns = {column for model in models for node in model.walk() for column in _columns(node)}
    return {f"token.{column.lower()}" for column in columns}


def _columns(node: Model) -> list[str]:
    columns = node.attrs.get(_COLUMNS, [])
    return [NAMES[column] if isinstance(column, int) else str(column) for column in columns]
