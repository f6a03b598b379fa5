"""What spaCy would silently leave aside in a config, and where the trained pipeline cannot be saved."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from spacy.schemas import ConfigSchemaInit, ConfigSchemaNlp, ConfigSchemaTraining

from .errors import Errors

SECTIONS: dict[str, Any] = {"nlp": ConfigSchemaNlp, "training": ConfigSchemaTraining, "initialize": ConfigSchemaInit}

WITH_SOURCE = ("source", "component", "replace_listeners")  # what spaCy reads of a component with a source
NAMED = ("paths", "system", "corpora", "components")  # sections whose names a config chooses


def check_config(config: Mapping[str, Any]) -> None:
    """Refuse a config with a setting that would have no effect.

    config (Config): to train by.
    RAISES (ValueError): for one without [training], an unknown setting of [nlp], [training] or [initialize], a
        component with a `name`, which spaCy has from its section, or with settings beside a `source`.
    """
    if "training" not in config:
        raise ValueError(Errors.NO_TRAINING_SECTION.format(given=", ".join(config) or "none"))
    for section, schema in SECTIONS.items():
        for key in config.get(section, {}):
            if key not in schema.model_fields:
                expected = get_close_matches(key, schema.model_fields, n=1) or schema.model_fields
                raise ValueError(
                    Errors.NO_SUCH_SETTING.format(section=section, given=key, expected=", ".join(expected))
                )
    for name, block in config.get("components", {}).items():
        if isinstance(block, Mapping) and "name" in block:
            raise ValueError(Errors.NAME_OF_PIPE.format(pipe=name, given=block["name"]))
        if isinstance(block, Mapping) and "source" in block and "factory" not in block:
            beside = [key for key in block if key not in WITH_SOURCE]
            if beside:
                given = {"pipe": name, "settings": ", ".join(beside), "source": block["source"]}
                raise ValueError(Errors.BESIDE_SOURCE.format(first=beside[0], **given))


def check_overrides(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> None:
    """Refuse settings, given beside a config, of what it does not have, and nothing in it refers to.

    config (Config): without them, not interpolated. overrides: from names with dots, such as "paths.train", to values.
    RAISES (ValueError): if spaCy would ignore one.
    """
    for given in overrides:
        section, _, rest = given.partition(".")
        name, known = rest.split(".")[0], config.get(section, {})
        if section in NAMED and name not in known and f"${{{section}.{name}" not in str(config):
            expected = get_close_matches(name, known, n=1) or known or ["none"]
            raise ValueError(Errors.NO_SUCH_SETTING.format(section=section, given=name, expected=", ".join(expected)))


def check_output(output: Path | None) -> None:
    """RAISES (ValueError): if a folder cannot be written to, or made."""
    if output is None:
        return
    there = next(path for path in (output.absolute(), *output.absolute().parents) if path.exists())
    if not there.is_dir():
        raise ValueError(Errors.OUTPUT_NOT_WRITABLE.format(path=output, there=there, reason="is no folder"))
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(Errors.OUTPUT_NOT_WRITABLE.format(path=output, there=there, reason="is not yours to write to"))
