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

    def find(self, settings: FolderSettings, name: str | None = None) -> str:
        """The prompt of a name, or the default one.

        settings (FolderSettings): what the folder says. name (str): None for the default.
        RETURNS (str): "" for none.
        RAISES (ValueError): if there is none of that name.
        """
        known = {**settings.prompts, **self.own}
        message = Errors.UNKNOWN_PROMPT
        if name is None:
            if self.default_name is None:
                message = Errors.UNKNOWN_DEFAULT_PROMPT
            name = settings.default_prompt_name if self.default_name is None else self.default_name
            if not name:
                return ""
        if name not in known:
            expected = ", ".join(f"'{one}'" for one in known) or "none"
            raise ValueError(message.format(given=name, expected=expected))
        return known[name]
