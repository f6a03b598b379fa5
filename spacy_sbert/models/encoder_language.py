"""The language that an encoder was made for, beside the language of its pipeline."""

from pathlib import Path

import srsly
from spacy.language import Language
from spacy.util import find_matching_language

from ..errors import Warnings, warn
from .private_attributes import saved_components
from .resolve import find_card, package_of

# Languages of a pipeline that are taken for texts of any language
_OF_ANY = ("en", "xx")


def warn_of_language(nlp: Language, pipe: str, name: str) -> None:
    """Warn if the encoder of a new pipe was made for one other language.

    A saved pipe may have learned its own.
    """
    if nlp.lang in _OF_ANY or pipe in saved_components(nlp):
        return
    language = language_of(name)
    if language not in (None, "xx", nlp.lang):
        warn(Warnings.ENCODER_LANGUAGE.format(pipe=pipe, name=name, theirs=language, ours=nlp.lang))


def language_of(name: str) -> str | None:
    """Return the language that an encoder was made for, as its card says.

    None for several, or if it is not known.
    """
    card = find_card(name)
    if card is None:
        package = None if Path(name).is_dir() else package_of(name)
        return None if package is None else package.language
    languages = _metadata(card).get("language")
    if isinstance(languages, list) and len(languages) == 1:
        languages = languages[0]
    # "en-US"
    code = languages.lower().partition("-")[0] if isinstance(languages, str) else ""
    return find_matching_language(code) or code if len(code) in (2, 3) else None


def _metadata(card: Path) -> dict[str, object]:
    """Return the metadata at the beginning of a card, between two lines of dashes.

    None if there are none to read.
    """
    try:
        before, block, _ = card.read_text(encoding="utf8").split("---\n", maxsplit=2)
        metadata = srsly.yaml_loads(block)
    except (OSError, ValueError):
        return {}
    return metadata if isinstance(metadata, dict) and not before.strip("\ufeff \n") else {}
