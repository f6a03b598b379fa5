"""Examples in a .spacy file, as `convert` makes it."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, DocBin, SpanGroup

from ..errors.checks import SCORE_RANGE
from ..spans.objectives import OBJECTIVE
from .errors import Errors
from .layouts import check_file


def read_docs(path: Path, nlp: Language, spans_key: str) -> Iterator[Doc]:
    """Read the Docs of a .spacy file, which is held in memory whole.

    path (Path): the file. nlp (Language): whose vocab the Docs get. spans_key (str): where the members stand.
    YIELDS (Doc): the references, members and gold in doc.spans[spans_key].
    RAISES (ValueError): if the file is damaged or empty, a Doc has no members or an empty one, or gold that is there
        is not what it should be; the number of the Doc is named.
    """
    docs = load_docbin(path).get_docs(nlp.vocab)
    for number in count(1):
        try:
            doc = next(docs)
        except StopIteration:
            return
        except Exception as error:  # whatever msgpack and the Doc say of bytes that are not a Doc
            raise ValueError(Errors.BAD_DOCBIN.format(path=path, reason=f"Doc number {number}: {error}")) from error
        if not _is_example(doc.spans.get(spans_key)):
            text = doc.text[:50]
            raise ValueError(Errors.NOT_PAIRS.format(path=path, number=number, text=text, key=spans_key))
        yield doc


def load_docbin(path: Path) -> DocBin:
    """Load a .spacy file. RAISES (ValueError): if it is missing, damaged or empty."""
    check_file(path)
    try:
        docs = DocBin().from_disk(path)
    except Exception as error:  # zlib, msgpack and DocBin each have their own
        raise ValueError(Errors.BAD_DOCBIN.format(path=path, reason=error)) from error
    if not len(docs):
        raise ValueError(Errors.NO_PAIRS.format(path=path, expected="a Doc a pair or other example"))
    return docs


def has_objectives(path: Path) -> bool:
    """Whether a Doc of a .spacy file notes an objective beside its members. RAISES (ValueError): as load_docbin."""
    return any(OBJECTIVE.encode() in group for group in load_docbin(path).span_groups)


def _is_example(group: SpanGroup | None) -> bool:
    if group is None or not len(group) or not all(span.text.strip() for span in group):
        return False
    score, label = group.attrs.get("score", 0.0), group.attrs.get("label", "none")
    low, high = SCORE_RANGE
    return isinstance(score, (int, float)) and low <= score <= high and isinstance(label, str) and bool(label)
