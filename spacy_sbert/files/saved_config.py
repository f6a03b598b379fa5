"""Configs that spaCy reads again as they were: it writes `$` doubled, and reads it as it is written."""

from collections.abc import Iterator, Mapping
from typing import Any

from spacy.language import Language
from thinc.api import Config

from .errors import Errors

KEPT, SETTLED = "kept_config", "settled"  # in the cfg of a pipe
DECIDED = ("name", "n_outputs")  # settings of a model that its weights decide once they are there
OTHERS = ("nlp", "components")  # sections that spaCy fills from the pipes


def config_text(config: Config) -> str:
    """Return the text of a config whose values spaCy reads as they are, interpolated or not."""
    return config.to_str(interpolate=False).replace("$$", r"\u0024")


def check_value(value: str) -> None:
    """RAISES (ValueError): if a config cannot hold a text, which spaCy would read as a variable."""
    if "${" in value:
        raise ValueError(Errors.CONFIG_VARIABLE.format(given=value))


def as_read(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what spaCy reads from the file that it writes for a config."""
    return Config().from_str(Config({KEPT: config}).to_str(), interpolate=False)[KEPT]


def kept_config(nlp: Language | None, pipe: object) -> dict[str, Any] | None:
    """Return what spaCy would not read as it is, of a pipe's config and of other sections; None if there is nothing."""
    name = _name_in(nlp, pipe)
    if nlp is None or name is None:
        return None
    config = _config_of(nlp, name)
    sections = {
        key: section for key, section in nlp.config.items() if key not in OTHERS and as_read(section) != section
    }
    changes = as_read(config) != config
    return {"pipe": config if changes else None, "sections": sections} if changes or sections else None


def restore_config(nlp: Language | None, pipe: object, kept: Mapping[str, Any]) -> Any:
    """Put what was kept in place of what spaCy read, in the pipeline's config.

    RETURNS (pipe): the pipe, made again if its own config changes.
    """
    name = _name_in(nlp, pipe)
    if nlp is None or name is None:
        return pipe
    config = nlp.config
    given = config.interpolate()["components"][name]
    for key in kept["sections"].keys() & config.keys():
        config[key] = _restored(config[key], as_read(kept["sections"][key]), kept["sections"][key])
    found = given if kept["pipe"] is None else _restored(given, as_read(kept["pipe"]), kept["pipe"])
    if found == given:
        return pipe
    settings = {key: value for key, value in found.items() if key != "factory"}
    return nlp.create_pipe(nlp.get_pipe_meta(name).factory, name, config=settings)


def settled(nlp: Language | None, pipe: object) -> dict[str, Any]:
    """Return the settings of a pipe's model that its weights decide, by their names in the config."""
    name = _name_in(nlp, pipe)
    return {} if nlp is None or name is None else dict(_decided(_config_of(nlp, name).get("model"), "model"))


def check_settled(nlp: Language | None, pipe: object, saved: Mapping[str, Any]) -> None:
    """RAISES (ValueError): if the config has other settings than those that the saved weights were made with."""
    for setting, given in settled(nlp, pipe).items():
        if given != saved.get(setting, given):
            told = {"setting": setting, "given": given, "saved": saved[setting]}
            raise ValueError(Errors.SETTING_IGNORED.format(name=_name_in(nlp, pipe), **told))


def _decided(block: Any, path: str) -> Iterator[tuple[str, Any]]:
    for key, value in block.items() if isinstance(block, Mapping) else ():
        if key in DECIDED and "@architectures" in block:
            yield f"{path}.{key}", value
        yield from _decided(value, f"{path}.{key}")


def _config_of(nlp: Language, name: str) -> Mapping[str, Any]:
    """Return the config of a pipe, without variables."""
    config = nlp.get_pipe_config(name)
    return nlp.config.interpolate()["components"][name] if "$" in str(config) else config


def _restored(given: Any, read: Any, saved: Any) -> Any:
    """Return the saved values where those given are what spaCy read, and the others, which are overrides."""
    if given == read:
        return saved
    if not all(isinstance(one, Mapping) for one in (given, read, saved)):
        return given
    known = read.keys() & saved.keys()
    return {key: _restored(value, read[key], saved[key]) if key in known else value for key, value in given.items()}


def _name_in(nlp: Language | None, pipe: object) -> str | None:
    """Return the name of a pipe in a pipeline; None if it is not in it."""
    return None if nlp is None else next((name for name, other in nlp.components if other is pipe), None)
