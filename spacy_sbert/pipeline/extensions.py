"""The extension attributes of pipes: doc._.sbert_vector and its like, which need no hooks.

Light, as `import spacy_sbert` imports them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from spacy.tokens import Doc, Span, Token

DocSpanOrToken = Doc | Span | Token


def _extensions(pipe: str) -> Iterator[tuple[Any, str, dict[str, Callable]]]:
    """Yield the classes, names and functions of the extension attributes of a pipe."""
    vector = partial(_answer, pipe, "doc_vectors", "vector")
    similarity = partial(_answer, pipe, "doc_vectors", "sentence_similarity")
    most_similar = partial(_answer, pipe, "most_similar", "most_similar")
    for kind in (Doc, Span, Token):
        yield kind, f"{pipe}_vector", {"getter": vector}
        yield kind, f"{pipe}_similarity", {"method": similarity}
    for kind in (Doc, Span):
        yield kind, f"{pipe}_most_similar", {"method": most_similar}
    yield Doc, "sbert_truncated", {"getter": _is_truncated}


def install_extensions(pipe: str = "sbert") -> None:
    """Register the extension attributes of a pipe, which need no hooks.

    They are doc._.sbert_vector, sbert_similarity, sbert_most_similar and sbert_truncated. Those of
    another pipe have its name. Those of "sbert" answer for the pipe that answers `doc.vector` where
    no pipe is called "sbert".
    """
    for kind, name, function in _extensions(pipe):
        if not kind.has_extension(name):
            kind.set_extension(name, **function)


class ExtensionNames:
    """The name under which a pipe has its extension attributes; it may be renamed."""

    def __init__(self) -> None:
        self._checked = ""

    def install(self, pipe: str) -> None:
        """Register the attributes of a pipe, see install_extensions.

        RAISES (ValueError): if other code had registered one of them when the pipe got its name.
        """
        if pipe != self._checked:
            check_extensions(pipe)
            self._checked = pipe
        install_extensions(pipe)


def check_extensions(pipe: str) -> None:
    """Check that no other code has registered an extension attribute of a pipe.

    RAISES (ValueError): if it has.
    """
    for kind, name, _ in _extensions(pipe):
        if not kind.has_extension(name):
            continue
        registered = [getattr(part, "func", part) for part in kind.get_extension(name)]
        if all(getattr(part, "__module__", None) != __name__ for part in registered):
            raise ValueError(
                f"{kind.__name__.lower()}._.{name} of the pipe '{pipe}' is registered already, by "
                f'other code. Remove it, {kind.__name__}.remove_extension("{name}"), or give the '
                'pipe another name: nlp.add_pipe("sbert", name=...).'
            )


def _is_truncated(doc: Doc) -> bool:
    """Return whether any row of a Doc was longer than the encoder's limit and was cut."""
    from .records import find, names  # noqa: PLC0415 (`import spacy_sbert` is light)

    for name in names(doc):
        records = find(doc, name)
        for record in records:
            if record.data["truncated"] and record.place_in(records.text):
                return True
    return False


def _answer(
    pipe: str, module: str, function: str, obj: DocSpanOrToken, *args: Any, **options: Any
) -> Any:
    """Call a function of this package, imported late, for the pipe that answers."""
    from .records import names  # noqa: PLC0415 (`import spacy_sbert` is light)

    doc = obj if isinstance(obj, Doc) else obj.doc
    name: str | None = pipe
    if pipe == "sbert" and "sbert" not in names(doc):
        # The pipe that answers doc.vector
        name = None
    answer = getattr(import_module(f".{module}", __package__), function)
    return answer(obj, *args, name=name, **options)
