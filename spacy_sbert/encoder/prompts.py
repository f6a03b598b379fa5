"""Prompts: what is put before a text to tell the encoder what it is for, such as "query: "."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .errors import Errors
from .settings import FolderSettings


@dataclass(frozen=True)
class Prompts:
    """The prompts of an encoder.

    own: prompts by name, beside those that the encoder's folder names; equal names win over them.
    default_name: the one that is used if nobody asks for another; "" for none, None for that of the folder.
    include: whether the wordpieces of a prompt are pooled with those of the text.
    """

    own: Mapping[str, str] = field(default_factory=dict)
    default_name: str | None = None
    include: bool = True

    def __post_init__(self) -> None:
        for name, prompt in self.own.items():
            if "${" in prompt or not _is_key(name):
                raise ValueError(Errors.PROMPT_NOT_SAVED.format(name=name, given=prompt))
        if "${" in (self.default_name or ""):
            raise ValueError(Errors.DEFAULT_PROMPT_NOT_SAVED.format(given=self.default_name))

    def find(self, settings: FolderSettings, name: str | None = None) -> str:
        """The prompt of a name, or the default one.

        settings (FolderSettings): what the folder says. name (str): None for the default.
        RETURNS (str): "" for none.
        RAISES (ValueError): if there is none of that name.
        """
        known = {**settings.prompts, **self.own}
        by_folder = name is None and self.default_name is None
        wanted = name if name is not None else settings.default_prompt_name if by_folder else self.default_name
        if name is None and not wanted:
            return ""
        if wanted not in known:
            message = Errors.UNKNOWN_DEFAULT_PROMPT if by_folder else Errors.UNKNOWN_PROMPT
            raise ValueError(message.format(given=wanted, expected=", ".join(f"'{one}'" for one in known) or "none"))
        return known[wanted]


def _is_key(name: str) -> bool:
    """True if a config reads the name as it was written."""
    return name == name.strip() and name[:1] not in ("", *"#;[") and not any(one in name for one in ":=\n")
