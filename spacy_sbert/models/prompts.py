"""The prompts of an encoder: texts that are put before others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .sbert_config import SentenceTransformersConfig

# What a text is in a search
Role = Literal["query", "document"]
# As in encode_query and encode_document of sentence-transformers
_NAMES_OF_ROLES: dict[Role | None, tuple[str, ...]] = {
    "query": ("query",),
    "document": ("document", "passage", "corpus"),
    None: (),
}


@dataclass(frozen=True)
class Prompts:
    """The prompts of an encoder.

    own: prompts by name, beside those that the encoder's folder names; equal names win over them.
    default_name: the one that is used if nobody asks for another; "" for none, None for that of the
        folder.
    include: whether the wordpieces of a prompt are pooled with those of the text; None to do as the
        folder says.
    """

    own: Mapping[str, str] = field(default_factory=dict)
    default_name: str | None = None
    include: bool | None = None

    def __post_init__(self) -> None:
        for name, prompt in (*self.own.items(), ("default_prompt_name", self.default_name or "")):
            if "$" in prompt or not _is_key(name):
                raise ValueError(
                    f"Cannot save the prompt {name!r} = {prompt!r} in a config: expected a name "
                    "without ':', '=', '$' and line breaks, nor '#', ';', '[' or white space at "
                    "its ends, and a text without '$'. Give such a prompt with each call: "
                    "encode(texts, prompt=...), or encode(texts, prompt_name=...)."
                )

    def includes(self, settings: SentenceTransformersConfig) -> bool:
        """Return whether the wordpieces of a prompt are pooled; settings: of the folder."""
        if self.include is None:
            return settings.include_prompt
        return self.include

    def find(self, settings: SentenceTransformersConfig, name: str | None = None) -> str:
        """Return the prompt of a name, None for the default one.

        "" if there is none. settings: of the folder.

        RAISES (ValueError): if there is none of that name.
        """
        known = {**settings.prompts, **self.own}
        setting = "prompt_name"
        wanted = name
        if name is None and self.default_name is not None:
            setting = "default_prompt_name"
            wanted = self.default_name
        elif name is None:
            setting = "default_prompt_name of its folder"
            wanted = settings.default_prompt_name
        if name is None and not wanted:
            return ""
        if wanted in known:
            return known[wanted]
        names = ", ".join(f"'{each}'" for each in known) or "none"
        raise ValueError(
            f"Cannot use {setting} = '{wanted}': the prompts of the encoder are {names}. Name it "
            f'in the config of the encoder, prompts = {{"{wanted}": "..."}}, or give the text '
            "itself as prompt."
        )

    def of_role(
        self, settings: SentenceTransformersConfig, role: Role | None, names: Sequence[str] = ()
    ) -> str | None:
        """Return the prompt of queries or documents, None for the default one.

        It is that of the first name that the encoder has; without any, queries and documents get
        none, and other texts the default one.

        settings: of the folder. names: of prompts that come before "query", or "document",
            "passage" and "corpus".
        """
        known = {**settings.prompts, **self.own}
        for name in (*names, *_NAMES_OF_ROLES[role]):
            if name in known:
                return known[name]
        if role is None:
            return None
        return ""


def _is_key(name: str) -> bool:
    """Return True if a config reads the name as it was written."""
    if not name or name != name.strip() or name.startswith(("#", ";", "[")):
        return False
    return not any(character in name for character in ":=$\n")
